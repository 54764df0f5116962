//! What the code of a record's kind allows, as a table: kinds follow one another in any order, and branches
//! on them would be guessed wrong as often as not.

use tmrun_formats::wire::Kind;

/// It may begin a group.
pub(super) const BEGINS: u8 = 1;
/// It may continue one.
pub(super) const CONTINUES: u8 = 1 << 1;
/// It says something about other records.
pub(super) const NOTED: u8 = 1 << 2;
/// This version knows it.
pub(super) const KNOWN: u8 = 1 << 3;
/// Its flags say how many dimensions it has.
pub(super) const SHAPE: u8 = 1 << 4;
/// The first word of its payload is ticks.
pub(super) const TICKS_FIRST: u8 = 1 << 5;
/// Another word of it is.
pub(super) const TICKS_BEHIND: u8 = 1 << 6;

/// Places for dimensions in a record.
pub(super) const DIMS: u16 = 5;

#[inline(always)]
pub(super) fn of(code: u8) -> u8 {
    TABLE.get(usize::from(code)).copied().unwrap_or_default()
}

#[expect(clippy::indexing_slicing, reason = "while compiling")]
static TABLE: [u8; 256] = {
    let mut table = [0; 256];
    let mut code = 1;
    while code < table.len() {
        table[code] = match Kind::from_code(code as u8) {
            // Of kinds of newer versions it is not known.
            None => BEGINS | CONTINUES,
            Some(kind) => {
                let role = match kind {
                    Kind::Shape => CONTINUES | SHAPE,
                    Kind::OpInput | Kind::Stats => CONTINUES,
                    Kind::Range => BEGINS | CONTINUES,
                    Kind::Step | Kind::Level | Kind::Gap => BEGINS | NOTED,
                    _ => BEGINS,
                };
                let ticks = match kind.ticks_in_payload() {
                    0 => 0,
                    1 => TICKS_FIRST,
                    _ => TICKS_BEHIND,
                };
                KNOWN | role | ticks
            }
        };
        code += 1;
    }
    table
};
