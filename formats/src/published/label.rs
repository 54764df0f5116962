//! Schema labels as types: a document of one schema cannot be built or read with another's.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// Defines the type of the field `schema` of one kind of document.
macro_rules! label {
    ($(#[$doc:meta])* $name:ident = $label:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
        pub struct $name;

        impl $name {
            /// The string in JSON.
            pub const LABEL: &'static str = $label;
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(Self::LABEL)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::published::label::expect(deserializer, Self::LABEL).map(|()| Self)
            }
        }
    };
}
pub(crate) use label;

/// Reads a string that must be `label`.
pub(crate) fn expect<'de, D: Deserializer<'de>>(from: D, label: &str) -> Result<(), D::Error> {
    let found = String::deserialize(from)?;
    if found == label {
        Ok(())
    } else {
        Err(D::Error::custom(format_args!("expected schema {label:?}, found {found:?}")))
    }
}
