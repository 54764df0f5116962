//! What the recording must say, read back by the format's own crate.

use tmrun_formats::wire::{Chunks, FileHeader, Frame, Gap, Kind, Op, OpInput, Record, Walked};
use tmrun_formats::{GapReason, LaneId};

use crate::record::{FLOOD, INPUTS, UPDATES};

/// What is counted in the file.
#[derive(Default)]
struct Found {
    spans: u64,
    steps: u64,
    scalars: u64,
    operations: u64,
    inputs: u64,
    dropped: u64,
    next: Option<u64>,
    complete: bool,
    names: u32,
    trailer: bool,
}

/// Holds these bytes against what was recorded.
///
/// # Errors
///
/// The first thing that is not as it should be.
pub fn check(file: &[u8]) -> Result<(), &'static str> {
    FileHeader::decode(file).map_err(|_| "the file's header does not decode")?;
    let mut found = Found::default();
    for walked in Chunks::new(file) {
        match walked {
            Walked::Damage(_) => return Err("the file is damaged"),
            Walked::Trailer(_) => found.trailer = true,
            Walked::Chunk(chunk) => {
                chunk.check().map_err(|_| "a chunk does not pass its check")?;
                let (lane, first) = (chunk.header.lane, chunk.header.first_sequence);
                found.records(lane, first, chunk.records())?;
                for frame in chunk.frames() {
                    let frame = frame.map_err(|_| "a frame is cut")?;
                    found.frame(&frame.decode().map_err(|_| "a frame does not decode")?);
                }
            }
        }
    }
    found.verdict()
}

impl Found {
    fn records(
        &mut self,
        lane: LaneId,
        first: u64,
        records: &[Record],
    ) -> Result<(), &'static str> {
        if lane != LaneId::RECORDER && !records.is_empty() {
            if self.next.is_some_and(|next| next != first) {
                return Err("the lane's sequence has a hole");
            }
            self.next = Some(first + records.len() as u64);
        }
        for record in records {
            match record.kind() {
                Some(Kind::Span) => self.spans += 1,
                Some(Kind::Step) => self.steps += 1,
                Some(Kind::Scalar) => self.scalars += 1,
                Some(Kind::Op) => {
                    let op = record.payload::<Op>().ok_or("an operation is none")?;
                    self.operations += u64::from(usize::from(op.inputs) == INPUTS.len());
                }
                Some(Kind::OpInput) => {
                    let inputs = record.payload::<OpInput>().ok_or("an input is none")?;
                    let whole = inputs.tensors.iter().filter(|tensor| **tensor == INPUTS[0]);
                    self.inputs += whole.count() as u64;
                }
                Some(Kind::Gap) => {
                    let gap = record.payload::<Gap>().ok_or("a gap is none")?;
                    if gap.reason != GapReason::OVERRUN {
                        return Err("a gap has another reason");
                    }
                    self.dropped += gap.records;
                }
                Some(Kind::Shape | Kind::Level) => {}
                _ => return Err("a record of another kind"),
            }
        }
        Ok(())
    }

    fn frame(&mut self, frame: &Frame<'_>) {
        match frame {
            Frame::Name(name) if ["forward", "loss", "model.layers.0"].contains(&name.text) => {
                self.names += 1;
            }
            Frame::Terminal(terminal) => self.complete = terminal.complete,
            _ => {}
        }
    }

    fn verdict(&self) -> Result<(), &'static str> {
        let claims = [
            (self.trailer, "there is no trailer"),
            (self.complete, "the run is not complete"),
            (self.names >= 3, "names are missing"),
            (self.spans == 2 * UPDATES, "spans are missing"),
            (self.steps == 2 * UPDATES, "steps are missing"),
            (self.operations == UPDATES, "operations are missing"),
            (self.inputs == UPDATES * INPUTS.len() as u64, "inputs are missing"),
            (self.dropped > 0, "the flood was not dropped"),
            (
                self.scalars + self.dropped == UPDATES + u64::from(FLOOD),
                "stored + dropped is wrong",
            ),
        ];
        claims.iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, what)| Err(*what))
    }
}
