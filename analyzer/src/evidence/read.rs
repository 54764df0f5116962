//! A trace's lines, read on all cores.

use rayon::prelude::*;
use tmrun_formats::trace::{ReadError, TraceDocument, TracePart};

/// Bytes of a piece, about.
const PIECE: usize = 1 << 20;

/// Reads a trace as [`TraceDocument::read`] does, with the same answer.
///
/// # Errors
/// Anything that is not a trace, with the place where it stops being one.
pub fn read(bytes: &[u8]) -> Result<TraceDocument<'_>, ReadError> {
    if bytes.len() <= PIECE {
        return TraceDocument::read(bytes);
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| ReadError::NotUtf8 { offset: error.valid_up_to() })?;
    if text.starts_with('\u{feff}') {
        return Err(ReadError::ByteOrderMark);
    }
    let pieces = pieces(text, PIECE);
    let parts: Vec<_> = pieces.into_par_iter().map(TracePart::parse).collect();
    TraceDocument::assemble(parts)
}

/// The text cut behind line ends, none of the pieces much longer than asked for but for its last line.
fn pieces(mut text: &str, length: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    while let Some(rest) = text.as_bytes().get(length..) {
        let Some(end) = rest.iter().position(|byte| *byte == b'\n') else { break };
        let Some((piece, behind)) =
            text.split_at_checked(length.saturating_add(end).saturating_add(1))
        else {
            break;
        };
        pieces.push(piece);
        text = behind;
    }
    pieces.push(text);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_end_behind_lines_and_are_the_text() {
        for text in ["", "\n", "ab\ncd", "ab\n\ncdé\nf\n", "abcdef"] {
            for length in 0..8 {
                let pieces = pieces(text, length);
                assert_eq!(pieces.concat(), text);
                let (_, whole) = pieces.split_last().unwrap();
                assert!(whole.iter().all(|piece| piece.ends_with('\n')), "{pieces:?}");
            }
        }
    }

    #[test]
    fn a_fault_is_on_the_line_that_it_is_on_however_the_text_is_cut() {
        let line = format!("{{\"kind\":\"unknown\",\"x\":\"{}\"}}\n", "-".repeat(PIECE / 3));
        let text = format!("{}{line}", "\n".repeat(2 * PIECE));
        let (whole, cut) = (TraceDocument::read(text.as_bytes()), read(text.as_bytes()));
        assert_eq!(whole.unwrap_err().to_string(), cut.unwrap_err().to_string());
    }
}
