//! Closed sets of words, as they stand in JSON.

use std::fmt;

/// A closed vocabulary.
pub trait Word: Copy + fmt::Debug + 'static {
    /// Every word, in the order of the enumeration.
    const ALL: &'static [Self];

    /// The word in JSON.
    fn name(self) -> &'static str;

    /// The member of that word.
    #[must_use]
    fn of(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|word| word.name() == text)
    }
}

/// Defines an enumeration by its words.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $word:ident $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$word_doc])* #[serde(rename = $text)] $word,)*
        }

        impl $name {
            /// Every word, in the order of the enumeration.
            pub const ALL: &'static [Self] = &[$(Self::$word),*];

            /// The word in JSON.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$word => $text,)*
                }
            }
        }

        impl $crate::words::Word for $name {
            const ALL: &'static [Self] = Self::ALL;

            fn name(self) -> &'static str {
                self.name()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}
pub(crate) use words;
