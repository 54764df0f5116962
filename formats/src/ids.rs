//! Identities: one type each, so that none can stand for another.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($int:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize, serde::Deserialize)]
        #[repr(transparent)]
        pub struct $name(pub $int);

        impl $name {
            /// Nothing: no name, no span, no storage.
            pub const NONE: Self = Self(0);

            /// Whether this is [`NONE`](Self::NONE).
            pub const fn is_none(self) -> bool {
                self.0 == 0
            }
        }
    };
}

id! {
    /// An entry of the name table: a site's name, a node's address or a session's label. 0 is none.
    NameId(u32)
}
id! {
    /// A span, counted from 1 within its lane; an id whose low half is 0 is left out, because
    /// records carry low halves and 0 there is none.
    SpanId(u64)
}
id! {
    /// An opaque tensor identity. 0 is none; with the record's *named* flag the low half is a
    /// [`NameId`].
    TensorId(u64)
}
id! {
    /// An opaque storage identity: for candle an address (low 48 bits) and an epoch (high 16; 0
    /// means that its lifetime was not recorded). 0 is none.
    StorageId(u64)
}
id! {
    /// An opaque stream identity of a device. 0 is none.
    StreamId(u64)
}

/// One producer's ring. Usually one thread has one lane.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    serde::Serialize,
    serde::Deserialize,
)]
#[repr(transparent)]
pub struct LaneId(pub u16);

impl LaneId {
    /// The recorder's own lane, filled by the drain alone.
    pub const RECORDER: Self = Self(u16::MAX);
}

/// The identity of one run, drawn at its start; every file of the run carries it.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct RunId(pub [u8; 16]);

impl core::fmt::Display for RunId {
    /// 32 lowercase hexadecimal digits.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl SpanId {
    /// The id with this low half that is nearest to this one; none where that half is 0.
    #[inline]
    pub const fn nearest(self, low: u32) -> Self {
        const TURN: u64 = 1 << 32;
        if low == 0 {
            return Self::NONE;
        }
        let step = low.wrapping_sub(self.0 as u32) as i32;
        let id = self.0.wrapping_add_signed(step as i64);
        Self(match self.0.checked_add_signed(step as i64) {
            Some(_) => id,
            None if step < 0 => id.wrapping_add(TURN),
            None => id.wrapping_sub(TURN),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_shown_as_32_hexadecimal_digits() {
        let run = RunId(core::array::from_fn(|i| i as u8 * 17));
        assert_eq!(run.to_string(), "00112233445566778899aabbccddeeff");
    }
}
