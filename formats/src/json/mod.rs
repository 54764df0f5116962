//! The one JSON writer: everything that emits JSON appends to a `Vec<u8>` through these functions.
//!
//! - Strings are escaped so that the output is also safe inside HTML scripts and line-based tools:
//!   quotes, backslash, every byte below 0x20, U+2028 and U+2029.
//! - Integers keep all 64 bits.
//! - A float is the shortest decimal that reads back to the same bits; `-0.0` is written `0.0`, and
//!   NaN or an infinity is refused with [`NonFinite`]: JSON has no word for them.
//!
//! ```
//! use tmrun_formats::json::{self, Object};
//!
//! let mut out = Vec::new();
//! let mut object = Object::begin(&mut out);
//! object.string("name", "layer \"0\"");
//! object.u64("bytes", u64::MAX);
//! object.f64("loss", 0.25)?;
//! object.end();
//! assert_eq!(out, br#"{"name":"layer \"0\"","bytes":18446744073709551615,"loss":0.25}"#);
//!
//! assert!(json::push_f64(&mut out, f64::NAN).is_err());
//! # Ok::<(), json::NonFinite>(())
//! ```

pub(crate) mod field;
mod room;

pub use room::Room;
pub(crate) use room::{FloatText, Write, append};

use thiserror::Error;

/// A float that JSON cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[error(
    "{value} cannot be written as JSON: expected a finite number; leave the field out or count it instead"
)]
pub struct NonFinite {
    /// What was to be written.
    pub value: f64,
}

/// The bytes of an object key that is not the first: `,"name":`, built at compile time.
macro_rules! key {
    ($name:literal) => {
        $crate::json::constant!(",\"", $name, "\":")
    };
    // The same for a string, whose opening quote is constant too.
    ($name:literal, string) => {
        $crate::json::constant!(",\"", $name, "\":\"")
    };
}
pub(crate) use key;

/// Constant text as an array, whose length is known where it is copied.
macro_rules! constant {
    ($($part:literal),*) => {
        const {
            const TEXT: &[u8] = concat!($($part),*).as_bytes();
            match TEXT.first_chunk::<{ TEXT.len() }>() {
                Some(text) => text,
                None => unreachable!(),
            }
        }
    };
}
pub(crate) use constant;

/// More than any number is long.
const NUMBER: usize = 48;

/// Appends `text` as a JSON string with its quotes.
#[inline]
pub fn push_str(out: &mut Vec<u8>, text: &str) {
    append(out, text.len().saturating_add(2), &|room: &mut Room<'_>| {
        room.raw(b"\"")?;
        room.string(text)
    });
}

/// Appends an unsigned integer.
#[inline]
pub fn push_u64(out: &mut Vec<u8>, value: u64) {
    append(out, NUMBER, &|room: &mut Room<'_>| room.u64(value));
}

/// Appends a signed integer.
#[inline]
pub fn push_i64(out: &mut Vec<u8>, value: i64) {
    append(out, NUMBER, &|room: &mut Room<'_>| {
        if value < 0 {
            room.raw(b"-")?;
        }
        room.u64(value.unsigned_abs())
    });
}

/// Appends `true` or `false`.
#[inline]
pub fn push_bool(out: &mut Vec<u8>, value: bool) {
    append(out, NUMBER, &|room: &mut Room<'_>| room.bool(value));
}

/// Appends a finite float. `-0.0` becomes `0.0`: a sign on nothing only confuses who compares text.
///
/// # Errors
/// [`NonFinite`], and nothing is appended.
#[inline]
pub fn push_f64(out: &mut Vec<u8>, value: f64) -> Result<(), NonFinite> {
    if !value.is_finite() {
        return Err(NonFinite { value });
    }
    append(out, NUMBER, &|room: &mut Room<'_>| room.plain(FloatText::new().of(value)));
    Ok(())
}

/// Appends an array: brackets and commas here, one element at a time by `element`.
#[inline]
pub fn push_array<T>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    mut element: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(b'[');
    let mut first = true;
    for item in items {
        if !first {
            out.push(b',');
        }
        first = false;
        element(out, item);
    }
    out.push(b']');
}

/// Appends an array of strings.
#[inline]
pub fn push_strings<S: AsRef<str>>(out: &mut Vec<u8>, items: &[S]) {
    push_array(out, items, |out, item| push_str(out, item.as_ref()));
}

/// An object under construction. Keys are the program's own and must need no escaping.
///
/// [`end`](Object::end) writes the closing brace; a dropped `Object` leaves it out.
#[derive(Debug)]
pub struct Object<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
}

impl<'a> Object<'a> {
    /// Writes the opening brace.
    pub fn begin(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Object { out, first: true }
    }

    /// Writes a key and lends the buffer for its value.
    pub fn value(&mut self, key: &'static str) -> &mut Vec<u8> {
        self.out.extend_from_slice(if self.first { b"\"" } else { b",\"" });
        self.first = false;
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    /// A string field.
    pub fn string(&mut self, key: &'static str, value: &str) {
        push_str(self.value(key), value);
    }

    /// An unsigned field.
    pub fn u64(&mut self, key: &'static str, value: u64) {
        push_u64(self.value(key), value);
    }

    /// A signed field.
    pub fn i64(&mut self, key: &'static str, value: i64) {
        push_i64(self.value(key), value);
    }

    /// A boolean field.
    pub fn bool(&mut self, key: &'static str, value: bool) {
        push_bool(self.value(key), value);
    }

    /// A float field.
    ///
    /// # Errors
    /// [`NonFinite`], and neither key nor value is written.
    pub fn f64(&mut self, key: &'static str, value: f64) -> Result<(), NonFinite> {
        if !value.is_finite() {
            return Err(NonFinite { value });
        }
        push_f64(self.value(key), value)
    }

    /// A field that is `null`.
    pub fn null(&mut self, key: &'static str) {
        self.value(key).extend_from_slice(b"null");
    }

    /// An array of strings.
    pub fn strings<S: AsRef<str>>(&mut self, key: &'static str, items: &[S]) {
        push_strings(self.value(key), items);
    }

    /// Writes the closing brace.
    pub fn end(self) {
        self.out.push(b'}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(text: &str) -> String {
        let mut out = Vec::new();
        push_str(&mut out, text);
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn every_ascii_byte_reads_back() {
        for byte in 0..=0x7f_u8 {
            let text = format!("a{}b", char::from(byte));
            let json = written(&text);
            assert_eq!(serde_json::from_str::<String>(&json).expect("valid JSON"), text);
            assert!(json.bytes().all(|byte| byte >= 0x20));
        }
    }

    #[test]
    fn line_and_paragraph_separators_are_escaped_and_their_neighbours_are_not() {
        assert_eq!(written("\u{2028}\u{2029}"), r#""\u2028\u2029""#);
        assert_eq!(written("\u{2027}\u{202a}\u{20ac}"), "\"\u{2027}\u{202a}\u{20ac}\"");
    }

    #[test]
    fn negative_zero_is_written_as_zero() {
        let mut out = Vec::new();
        push_f64(&mut out, -0.0).expect("finite");
        assert_eq!(out, b"0.0");
    }

    #[test]
    fn a_refused_float_leaves_the_object_as_it_was() {
        let mut out = Vec::new();
        let mut object = Object::begin(&mut out);
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(object.f64("bad", value).is_err());
        }
        object.end();
        assert_eq!(out, b"{}");
    }

    proptest! {
        #[test]
        fn any_string_reads_back(text in any::<String>()) {
            prop_assert_eq!(serde_json::from_str::<String>(&written(&text)).expect("valid JSON"), text);
        }

        #[test]
        fn any_finite_float_reads_back_bit_for_bit(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            let mut out = Vec::new();
            if push_f64(&mut out, value).is_ok() {
                let read: f64 = serde_json::from_slice(&out).expect("valid JSON");
                prop_assert_eq!(read.to_bits(), (value + 0.0).to_bits());
                let std_read: f64 = std::str::from_utf8(&out).expect("ASCII").parse().expect("float");
                prop_assert_eq!(std_read.to_bits(), (value + 0.0).to_bits());
            } else {
                prop_assert!(!value.is_finite());
                prop_assert!(out.is_empty());
            }
        }

        #[test]
        fn any_integer_reads_back(unsigned in any::<u64>(), signed in any::<i64>()) {
            let mut out = Vec::new();
            push_u64(&mut out, unsigned);
            prop_assert_eq!(serde_json::from_slice::<u64>(&out).expect("valid JSON"), unsigned);
            out.clear();
            push_i64(&mut out, signed);
            prop_assert_eq!(serde_json::from_slice::<i64>(&out).expect("valid JSON"), signed);
        }
    }
}
