//! The fields of an object, after its first: each with its key, and nothing where there is no value.

use super::Room;

/// A string field, of a key whose opening quote is written with it.
#[inline(always)]
pub(crate) fn text<const N: usize>(
    room: &mut Room<'_>,
    key: &[u8; N],
    value: Option<&str>,
) -> Option<()> {
    let Some(value) = value else { return Some(()) };
    room.raw(key)?;
    room.string(value)
}

/// An unsigned field.
#[inline(always)]
pub(crate) fn number<const N: usize>(
    room: &mut Room<'_>,
    key: &[u8; N],
    value: Option<u64>,
) -> Option<()> {
    let Some(value) = value else { return Some(()) };
    room.raw(key)?;
    room.u64(value)
}

/// The comma before element `i` of an array.
#[inline(always)]
pub(crate) fn separate(room: &mut Room<'_>, i: usize) -> Option<()> {
    if i > 0 { room.raw(b",") } else { Some(()) }
}
