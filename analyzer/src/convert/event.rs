//! Event ids: the one place that says what they look like.

use tmrun_formats::LaneId;

use super::text::Ascii;

const LANE: usize = 5;
const LEN: usize = LANE + 1 + 20;

/// The id of the first record of lane 0, and zeros up to a whole number of words.
const FIRST: Ascii<32> = Ascii(*b"00000-00000000000000000000\0\0\0\0\0\0");

/// The id of an observation: `{lane:05}-{position:020}` of its record. It is as long for every
/// record, so that the order of texts within a lane is the order of events; readers sort by text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventId {
    text: Ascii<32>,
}

impl EventId {
    /// The id of the record at this position of the lane.
    pub(crate) fn at(lane: LaneId, position: u64) -> Self {
        let mut id = Self { text: FIRST };
        let (lane_digits, rest) = id.digits().split_at_mut(LANE);
        add(lane_digits, lane.0.into());
        add(rest.get_mut(1..).unwrap_or_default(), position);
        id
    }

    /// The id of the record so many positions further on. Adding to the digits is many times cheaper
    /// than writing all twenty anew.
    #[inline]
    pub(super) fn advance(&mut self, records: usize) {
        add(self.digits().get_mut(LANE.saturating_add(1)..).unwrap_or_default(), records as u64);
    }

    fn digits(&mut self) -> &mut [u8] {
        self.text.0.get_mut(..LEN).unwrap_or_default()
    }

    pub(crate) fn text(&self) -> &str {
        self.text.text(LEN)
    }
}

/// Adds to a number in decimal digits, the last digit first.
#[inline]
fn add(digits: &mut [u8], mut carry: u64) {
    for digit in digits.iter_mut().rev() {
        if carry == 0 {
            return;
        }
        // Without overflow: the sum of a digit and what is left of a u64 after the first division.
        let low = u64::from(*digit & 15).saturating_add(carry % 10);
        *digit = b'0' | (low % 10) as u8;
        carry = (carry / 10).saturating_add(low / 10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_lane_and_position_zero_padded() {
        assert_eq!(EventId::at(LaneId(3), 17).text(), "00003-00000000000000000017");
        assert_eq!(EventId::at(LaneId(u16::MAX), u64::MAX).text(), "65535-18446744073709551615");
    }

    #[test]
    fn going_on_is_the_same_as_starting_further() {
        for position in [0, 9, 99, 12_345, u64::from(u32::MAX), u64::MAX - 16] {
            for by in 0..=16 {
                let mut id = EventId::at(LaneId(1), position);
                id.advance(by);
                assert_eq!(id, EventId::at(LaneId(1), position + by as u64));
            }
        }
    }

    #[test]
    fn text_order_is_event_order() {
        let ids: Vec<_> = [0, 2, 9, 10, 11, 1 << 40]
            .map(|at| EventId::at(LaneId(0), at).text().to_owned())
            .into();
        assert!(ids.is_sorted());
    }
}
