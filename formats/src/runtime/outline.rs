//! A first look at a JSON object: which form it has, before any type is asked of it.
//!
//! The look walks every value and keeps none, so it costs no memory, and it refuses what only a
//! full parse finds in fields nobody reads: too deep nesting, numbers out of range, half surrogates.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// What the top level of an object says about itself.
#[derive(Debug, Default)]
pub(super) struct Outline {
    /// Its `kind`, when that is a string.
    pub kind: Option<String>,
    pub has_schema: bool,
    pub has_run: bool,
}

impl<'de> Deserialize<'de> for Outline {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OutlineVisitor)
    }
}

struct OutlineVisitor;

impl<'de> Visitor<'de> for OutlineVisitor {
    type Value = Outline;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Outline, A::Error> {
        let mut outline = Outline::default();
        let mut kinds = 0_u32;
        while let Some(key) = map.next_key::<Key>()? {
            match key {
                Key::Kind => {
                    kinds = kinds.saturating_add(1);
                    outline.kind = map.next_value::<Walk<true>>()?.0;
                    continue;
                }
                Key::Schema => outline.has_schema = true,
                Key::Run => outline.has_run = true,
                Key::Other => {}
            }
            map.next_value::<Walk<false>>()?;
        }
        if kinds > 1 && !outline.has_run {
            return Err(A::Error::duplicate_field("kind"));
        }
        Ok(outline)
    }
}

enum Key {
    Kind,
    Schema,
    Run,
    Other,
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_identifier(KeyVisitor)
    }
}

struct KeyVisitor;

impl Visitor<'_> for KeyVisitor {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Key, E> {
        Ok(match key {
            "kind" => Key::Kind,
            "schema" => Key::Schema,
            "run" => Key::Run,
            _ => Key::Other,
        })
    }
}

/// Any value, walked to its end. With `KEEP`, a string is kept; everything else never is.
struct Walk<const KEEP: bool>(Option<String>);

impl<'de, const KEEP: bool> Deserialize<'de> for Walk<KEEP> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WalkVisitor::<KEEP>)
    }
}

struct WalkVisitor<const KEEP: bool>;

impl<'de, const KEEP: bool> Visitor<'de> for WalkVisitor<KEEP> {
    type Value = Walk<KEEP>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Walk(KEEP.then(|| text.to_owned())))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Walk(None))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Walk(None))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Walk(None))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Walk(None))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Walk(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<Walk<false>>()?.is_some() {}
        Ok(Walk(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_key::<Key>()?.is_some() {
            map.next_value::<Walk<false>>()?;
        }
        Ok(Walk(None))
    }
}
