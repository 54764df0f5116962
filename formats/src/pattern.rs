//! Patterns of names: which nodes something is about.

/// A pattern of dotted names, such as `encoder.layers.*.attn`.
///
/// | in a pattern | stands for |
/// | --- | --- |
/// | `*` within a segment | any text without a dot, none included |
/// | a segment `**` | any number of segments, none included |
/// | a last segment `*` | one segment or more: everything below what is before it |
/// | anything else | itself |
///
/// So `encoder.*` is everything below `encoder`, `encoder.**` is that and `encoder` itself, and `*`
/// is every name.
///
/// ```
/// use tmrun_formats::Pattern;
///
/// let heads = Pattern::new("encoder.*.attn*.**")?;
/// assert!(heads.matches("encoder.3.attn") && heads.matches("encoder.3.attn_out.proj.bias"));
/// assert!(!heads.matches("encoder.layers.3.attn"));
/// # Ok::<(), tmrun_formats::PatternError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pattern<'a> {
    text: &'a str,
}

/// A text that is no pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// There is nothing in it.
    #[error("a pattern of names is empty: expected a name, such as `encoder.*`")]
    Empty,
    /// Nothing stands before, between or behind dots.
    #[error("a pattern of names has an empty segment at byte {at}")]
    EmptySegment {
        /// Where the segment would begin, in bytes.
        at: usize,
    },
    /// `**` within a longer segment.
    #[error(
        "a pattern of names has `**` in the segment at byte {at}: it stands alone in a segment"
    )]
    Stars {
        /// Where the segment begins, in bytes.
        at: usize,
    },
}

const ANY_SEGMENTS: &str = "**";

impl<'a> Pattern<'a> {
    /// Reads a pattern.
    ///
    /// # Errors
    ///
    /// When it is empty, a segment of it is, or `**` is a part of a segment.
    pub fn new(text: &'a str) -> Result<Self, PatternError> {
        if text.is_empty() {
            return Err(PatternError::Empty);
        }
        let mut at = 0_usize;
        for segment in text.split('.') {
            if segment.is_empty() {
                return Err(PatternError::EmptySegment { at });
            }
            if segment != ANY_SEGMENTS && segment.contains(ANY_SEGMENTS) {
                return Err(PatternError::Stars { at });
            }
            at = at.saturating_add(segment.len()).saturating_add(1);
        }
        Ok(Self { text })
    }

    /// The pattern's text.
    pub const fn text(&self) -> &'a str {
        self.text
    }

    /// Whether the pattern stands for this name. It allocates nothing; the time is at most the
    /// product of both lengths.
    pub fn matches(&self, name: &str) -> bool {
        let mut wanted = self.text.split('.');
        let mut found = name.split('.');
        // Where to go on from when what follows the last `**` does not fit: each time with one
        // segment more for it. An earlier `**` need not be tried again: giving it more would leave
        // less for the rest.
        let mut again = None;
        loop {
            let before = found.clone();
            match (wanted.next(), found.next()) {
                (Some(ANY_SEGMENTS), _) => {
                    found = before;
                    again = Some((wanted.clone(), found.clone()));
                    continue;
                }
                (Some("*"), Some(_)) if wanted.clone().next().is_none() => return true,
                (Some(wanted), Some(segment)) if segment_matches(wanted, segment) => continue,
                (None, None) => return true,
                _ => {}
            }
            let Some((rest, mut more)) = again.take() else { return false };
            if more.next().is_none() {
                return false;
            }
            (wanted, found) = (rest.clone(), more.clone());
            again = Some((rest, more));
        }
    }
}

/// Whether a segment is as a segment with `*` in it says.
fn segment_matches(wanted: &str, segment: &str) -> bool {
    let Some((head, rest)) = wanted.split_once('*') else { return wanted == segment };
    let Some(mut left) = segment.strip_prefix(head) else { return false };
    let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
    // Each piece as early as it can be leaves the most for those behind it.
    for piece in middle.split('*') {
        let Some((_, behind)) = left.split_once(piece) else { return false };
        left = behind;
    }
    left.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(pattern: &str, name: &str) -> bool {
        Pattern::new(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}")).matches(name)
    }

    /// The same by trying everything.
    fn naive(wanted: &[&str], found: &[&str]) -> bool {
        match (wanted, found) {
            ([], []) => true,
            ([], _) => false,
            (["*"], found) => !found.is_empty(),
            (["**", rest @ ..], found) => (0..=found.len()).any(|at| naive(rest, &found[at..])),
            ([first, rest @ ..], [segment, found @ ..]) => {
                naive_segment(first.as_bytes(), segment.as_bytes()) && naive(rest, found)
            }
            (_, []) => false,
        }
    }

    fn naive_segment(wanted: &[u8], found: &[u8]) -> bool {
        match (wanted, found) {
            ([], []) => true,
            ([b'*', rest @ ..], found) => {
                (0..=found.len()).any(|at| naive_segment(rest, &found[at..]))
            }
            ([a, wanted @ ..], [b, found @ ..]) => a == b && naive_segment(wanted, found),
            _ => false,
        }
    }

    #[test]
    fn a_name_without_a_star_stands_for_itself() {
        assert!(matches("encoder.layers.3", "encoder.layers.3"));
        for other in ["encoder.layers", "encoder.layers.3.attn", "encoder.layers.33", "", "encoder"]
        {
            assert!(!matches("encoder.layers.3", other), "{other}");
        }
    }

    #[test]
    fn a_last_star_is_everything_below_and_two_stars_are_that_and_the_node_itself() {
        for below in ["encoder.3", "encoder.3.attn.q_proj"] {
            assert!(matches("encoder.*", below) && matches("encoder.**", below), "{below}");
        }
        assert!(!matches("encoder.*", "encoder") && matches("encoder.**", "encoder"));
        assert!(!matches("encoder.*", "encoders.3") && !matches("encoder.**", "encoders.3"));
        assert!(matches("*", "a") && matches("*", "a.b") && matches("**", "a.b"));
    }

    #[test]
    fn a_star_before_the_last_segment_is_one_segment_or_a_part_of_one() {
        assert!(matches("layers.*.attn", "layers.3.attn"));
        assert!(
            !matches("layers.*.attn", "layers.3.4.attn")
                && !matches("layers.*.attn", "layers.attn")
        );
        assert!(matches("a.l*er_*d.b", "a.layer_3d.b") && !matches("a.l*er.b", "a.layers.b"));
        assert!(matches("loss/*", "loss/total") && !matches("loss/*", "loss/total.x"));
        assert!(!matches("ab*ba", "aba") && matches("ab*ba", "abba"), "no letter counts twice");
        assert!(matches("*.bias", "layer.bias") && matches("**.bias", "a.b.bias"));
        assert!(matches("**.bias", "bias") && !matches("**.bias", "bias.a"));
        assert!(matches("**.ä*.**.z", "x.äö.y.z.z"));
    }

    #[test]
    fn what_is_no_pattern_says_where_it_is_wrong() {
        assert_eq!(Pattern::new(""), Err(PatternError::Empty));
        for (text, at) in [(".", 0), (".a", 0), ("a.", 2), ("a..b", 2), ("ä.b..c", 5)] {
            assert_eq!(Pattern::new(text), Err(PatternError::EmptySegment { at }), "{text}");
        }
        for (text, at) in [("a.b**", 2), ("***", 0), ("**a.b", 0)] {
            assert_eq!(Pattern::new(text), Err(PatternError::Stars { at }), "{text}");
        }
    }

    proptest! {
        #[test]
        fn it_agrees_with_trying_everything(
            pattern in "[ab*.]{1,12}",
            name in "[ab.]{0,12}",
        ) {
            let parsed = Pattern::new(&pattern);
            prop_assume!(parsed.is_ok());
            let wanted: Vec<_> = pattern.split('.').collect();
            let found: Vec<_> = name.split('.').collect();
            prop_assert_eq!(parsed.unwrap().matches(&name), naive(&wanted, &found));
        }

        #[test]
        fn segments_agree_with_trying_everything(
            wanted in "([ab]|\\*[ab]){0,6}\\*?",
            found in "[ab]{0,10}",
        ) {
            prop_assert_eq!(
                segment_matches(&wanted, &found),
                naive_segment(wanted.as_bytes(), found.as_bytes()),
            );
        }

        #[test]
        fn any_text_is_a_pattern_or_an_error(text in ".*", name in ".*") {
            if let Ok(pattern) = Pattern::new(&text) {
                pattern.matches(&name);
            }
        }
    }
}
