//! The rest of a JSON object whose keys are all known, in one pass.
//!
//! A struct derived with serde ignores keys that it does not know, and does not look at their values
//! as closely as a reader that keeps them first. So a key that is not known is an error here, and the
//! line is left to the reader that keeps everything.

use serde::de::value::U64Deserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde::forward_to_deserialize_any;

/// What is left of an object, as a struct.
pub(super) struct Rest<A>(pub A);

impl<'de, A: MapAccess<'de>> Deserializer<'de> for Rest<A> {
    type Error = A::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        visitor.visit_map(Known { map: self.0, fields, next: 0 })
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, A::Error> {
        Err(A::Error::custom("expected a struct"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

struct Known<A> {
    map: A,
    fields: &'static [&'static str],
    /// Behind the last field: writers keep the order of the fields, and mostly this is the next.
    next: usize,
}

impl<A> Known<A> {
    fn index(&self, key: &str) -> Option<usize> {
        let (before, behind) = self.fields.split_at_checked(self.next)?;
        let found = |fields: &[&str]| fields.iter().position(|field| *field == key);
        match found(behind) {
            Some(index) => self.next.checked_add(index),
            None => found(before),
        }
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Known<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        let Some(key) = self.map.next_key::<&str>()? else { return Ok(None) };
        let index = self.index(key).ok_or_else(|| A::Error::unknown_field(key, self.fields))?;
        self.next = index.saturating_add(1);
        // A derived struct knows its fields by their index too.
        seed.deserialize(U64Deserializer::new(index as u64)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}
