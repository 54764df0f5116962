//! A block's observations as JSON, in pieces of bounded size.

use tmrun_formats::runtime::Refusal;
use tmrun_formats::runtime::encode::{Record, element, line};

use super::cursor::Cursor;
use super::fact::{self, Fact, Sections};
use super::options::Form;
use super::phase::Selection;
use super::source::Source;
use super::tally::Tally;
use super::text::Text;
use crate::scan::BlockRecords;

/// A piece ends with the record that brings it to this size. Most blocks make one piece; those that
/// make several (very large chunks, or very long names) are gone on with when the piece has been
/// written.
const PIECE: usize = 1 << 20;

/// Room for the record that ends a piece, so that the buffer hardly ever grows. Pages of it that
/// nothing was written to take no memory.
const ROOM: usize = PIECE + (16 << 10);

/// Where a block is encoded, used again for the next block.
#[derive(Debug, Default)]
pub(super) struct Encoder<'r> {
    /// The piece: JSONL lines, or elements joined by commas.
    pub(super) out: Vec<u8>,
    chunks: Option<BlockRecords<'r>>,
    cursor: Option<Cursor<'r>>,
    scratch: Scratch<'r>,
    refused: Option<Refusal>,
}

#[derive(Debug, Default)]
struct Scratch<'r> {
    dims: Vec<u64>,
    texts: Vec<Text<'r>>,
    tally: Tally,
}

/// What is encoded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Order<'s, 'r> {
    pub(super) source: &'s Source<'r>,
    pub(super) selection: &'s Selection,
    pub(super) wanted: Sections,
    pub(super) form: Form,
}

impl<'r> Encoder<'r> {
    /// Makes the first piece of a block.
    pub(super) fn begin(&mut self, chunks: BlockRecords<'r>, order: Order<'_, 'r>) {
        self.chunks = Some(chunks);
        self.cursor = None;
        self.refused = None;
        self.out.clear();
        self.out.reserve(ROOM);
        self.go_on(order);
    }

    /// Whether the block goes on behind the piece.
    pub(super) const fn has_more(&self) -> bool {
        self.chunks.is_some()
    }

    /// What the rules of the format have against an observation. It is not in the piece.
    pub(super) fn refused(&mut self) -> Option<Refusal> {
        self.refused.take()
    }

    /// Makes the next piece.
    pub(super) fn go_on(&mut self, order: Order<'_, 'r>) {
        self.out.clear();
        while let Some(chunks) = &mut self.chunks {
            if self.cursor.is_none() {
                self.cursor = chunks.next().map(|chunk| Cursor::over(&chunk, order.wanted));
            }
            if self.cursor.is_none() {
                self.chunks = None;
            } else if self.chunk(order) {
                return;
            } else {
                self.cursor = None;
            }
        }
    }

    /// Goes on with a chunk; whether the piece is full.
    fn chunk(&mut self, order: Order<'_, 'r>) -> bool {
        let Some(cursor) = &mut self.cursor else { return false };
        let Order { source, selection, wanted, form } = order;
        let mut put = Put { out: &mut self.out, form, refused: &mut self.refused };
        let Scratch { dims, texts, tally } = &mut self.scratch;
        while let Some(placed) = cursor.next() {
            if !placed.is_in(selection) {
                continue;
            }
            let step = placed.state.open.filter(|_| source.schema.has_steps());
            let step = step.map(|open| open.number);
            fact::read(source, placed.group, wanted, tally, |at, fact, _| {
                let event = cursor.event(at);
                let place = (event.text(), step);
                match &fact {
                    Fact::Tensor(fact) => fact.write(source, place, dims, &mut put),
                    Fact::Operation(fact) => fact.write(source, place, texts, &mut put),
                    Fact::Gradient(fact) => fact.write(&event, place, &mut put),
                    Fact::Value(fact) => fact.write(place, &mut put),
                    Fact::Edge(fact) => fact.write(place, &mut put),
                }
            });
            if put.out.len() >= PIECE {
                return true;
            }
        }
        false
    }
}

/// Where records are written.
pub(super) struct Put<'o> {
    out: &'o mut Vec<u8>,
    form: Form,
    refused: &'o mut Option<Refusal>,
}

impl Put<'_> {
    #[inline]
    pub(super) fn record<R: Record>(&mut self, record: &R) {
        let before = self.out.len();
        let written = match self.form {
            Form::Lines => line(self.out, record),
            Form::Document => {
                if before > 0 {
                    self.out.push(b',');
                }
                element(self.out, record)
            }
        };
        if let Err(refusal) = written {
            self.out.truncate(before);
            self.refused.get_or_insert(refusal);
        }
    }
}
