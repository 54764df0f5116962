//! Text from outside, where people read it: it shows, and does nothing else.
//!
//! There is one set of characters that are not shown as they are ([`acts`]), for tables, messages and
//! the JSON that commands print.
//!
//! ```
//! use tmrun::escape::{escaped, json};
//!
//! assert_eq!(escaped("a\u{1b}[2J\u{202e}b\n"), r"a\u{1b}[2J\u{202e}b\n");
//! assert_eq!(json("\"a\u{9b}2J\""), r#""a\u009b2J""#);
//! ```

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::str;

/// Whether a character acts on what shows it: a control character, or one of no width that breaks
/// lines, turns the writing direction, or only hides.
#[must_use]
pub fn acts(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}'
                | '\u{200b}'
                | '\u{200e}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
        )
}

/// Text in which nothing acts: what would is escaped, as in a string of Rust's.
#[must_use]
pub fn escaped(text: &str) -> Cow<'_, str> {
    with(text, acts, |c, out| out.extend(c.escape_default()))
}

/// JSON in which nothing acts, and of the same value. Line ends around values stay; the control
/// characters of ASCII are escaped in any JSON, and what else acts can be in strings alone.
#[must_use]
pub fn json(text: &str) -> Cow<'_, str> {
    let acts = |c| c >= '\u{7f}' && acts(c);
    // All of them are below U+10000, so that one escape is enough.
    with(text, acts, |c, out| _ = write!(out, "\\u{:04x}", u32::from(c)))
}

fn with(text: &str, is: impl Fn(char) -> bool, escape: impl Fn(char, &mut String)) -> Cow<'_, str> {
    if !text.contains(&is) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is(c) { escape(c, &mut out) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// A writer of JSON in which nothing acts. What it is given at a time are whole characters.
#[derive(Debug)]
pub struct JsonWriter<W>(pub W);

impl<W: Write> Write for JsonWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = str::from_utf8(bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        self.0.write_all(json(text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_acts_is_escaped_and_nothing_else() {
        for c in "\0\x07\x1b\x7f\u{80}\u{9b}\u{9f}\u{61c}\u{200f}\u{2028}\u{202e}\u{2069}\u{feff}"
            .chars()
        {
            let shown = escaped(&c.to_string()).into_owned();
            assert!(acts(c) && shown.starts_with('\\') && shown.is_ascii(), "{shown:?}");
        }
        let plain = "encoder.layers.3 é 🙂 👩‍👧 \u{a0}\u{10ffff}";
        assert_eq!(escaped(plain), plain);
        assert_eq!(json(plain), plain);
    }

    #[test]
    fn a_writer_is_given_text() {
        let mut out = JsonWriter(Vec::new());
        out.write_all("\"\u{9b}\"\n".as_bytes()).expect("text");
        assert_eq!(out.0, b"\"\\u009b\"\n");
        assert!(out.write_all(b"\xc2").is_err());
    }

    proptest! {
        #[test]
        fn json_keeps_its_value(text in any::<String>()) {
            let written = serde_json::to_string(&text).expect("JSON");
            let shown = json(&written).into_owned();
            prop_assert!(!shown.contains(acts), "{shown:?}");
            prop_assert_eq!(serde_json::from_str::<String>(&shown).expect("JSON"), text);
        }
    }
}
