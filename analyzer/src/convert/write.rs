//! The output, piece by piece.

use std::io::Write;

use tmrun_formats::json;
use tmrun_formats::runtime::encode::meta_line;
use tmrun_formats::runtime::{DocumentEncoder, Section};

use super::batch::Slots;
use super::encode::{Encoder, Order};
use super::error::ConvertError;
use super::fact::Sections;
use super::options::Form;
use super::plan::Plan;
use crate::scan::Block;

impl<'r> Plan<'r> {
    /// Writes the trace. `progress` is told of bytes of the recording as they have been encoded, on
    /// any thread; all together are [`work`](Self::work).
    ///
    /// # Errors
    ///
    /// When `out` cannot be written.
    pub fn write(
        &self,
        out: &mut dyn Write,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<(), ConvertError> {
        match self.form() {
            Form::Document => self.document(out, progress),
            Form::Lines => self.lines(out, progress),
        }
    }

    /// Bytes of the recording that have to be gone through.
    pub fn work(&self) -> u64 {
        let of = |wanted| {
            self.blocks(wanted).fold(0_u64, |sum, block| sum.saturating_add(block.bytes()))
        };
        match self.form() {
            Form::Lines => of(Sections::ALL),
            Form::Document => Section::ALL
                .iter()
                .fold(0, |sum, &section| sum.saturating_add(of(Sections::only(section)))),
        }
    }

    fn document(
        &self,
        out: &mut dyn Write,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<(), ConvertError> {
        let mut head = Vec::new();
        let mut document =
            DocumentEncoder::begin(&mut head, self.options.schema.label(), &self.run)
                .map_err(ConvertError::Assembly)?;
        let mut slots = Slots::default();
        for section in Section::ALL {
            self.pieces(&mut slots, Sections::only(section), progress, |piece| {
                // The encoder is handed the first byte, and writes what belongs before it; the rest
                // goes out without being copied.
                let (first, rest) = piece.split_at_checked(1).unwrap_or_default();
                document.splice(&mut head, section, first).map_err(ConvertError::Assembly)?;
                out.write_all(&head)?;
                head.clear();
                Ok(out.write_all(rest)?)
            })?;
        }
        document.finish(&mut head, &[]);
        self.extend(&mut head);
        Ok(out.write_all(&head)?)
    }

    fn lines(
        &self,
        out: &mut dyn Write,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<(), ConvertError> {
        let mut meta = Vec::new();
        meta_line(&mut meta, self.options.schema.label(), &self.run, &[]);
        self.extend(&mut meta);
        out.write_all(&meta)?;
        self.pieces(&mut Slots::default(), Sections::ALL, progress, |piece| {
            Ok(out.write_all(piece)?)
        })
    }

    /// Adds our own keys to an object that has just been closed. Readers skip keys that they do not
    /// know; a line of a kind that they do not know they would refuse.
    fn extend(&self, out: &mut Vec<u8>) {
        const CLOSED: &[u8] = b"}\n";
        if out.ends_with(CLOSED) {
            out.truncate(out.len().saturating_sub(CLOSED.len()));
        }
        out.extend_from_slice(b",\"gaps\":");
        json::push_array(out, self.gaps(), |out, gap| gap.write_json(out));
        self.census.tally.write_json(out);
        out.extend_from_slice(CLOSED);
    }

    /// Encodes the blocks that have any of these, and hands out what they make, in file order.
    fn pieces(
        &self,
        slots: &mut Slots<Encoder<'r>>,
        wanted: Sections,
        progress: &(dyn Fn(u64) + Sync),
        mut piece: impl FnMut(&[u8]) -> Result<(), ConvertError>,
    ) -> Result<(), ConvertError> {
        let Self { recording, source, selection, .. } = self;
        let order = Order { source, selection, wanted, form: self.form() };
        let encode = |block: &'r Block, encoder: &mut Encoder<'r>| {
            encoder.begin(recording.records_in(block), order);
            progress(block.bytes());
        };
        let mut blocks = self.blocks(wanted);
        slots.in_order(&mut blocks, encode, |_, encoder| {
            loop {
                if let Some(refusal) = encoder.refused() {
                    return Err(refusal.into());
                }
                if !encoder.out.is_empty() {
                    piece(&encoder.out)?;
                }
                if !encoder.has_more() {
                    return Ok(());
                }
                encoder.go_on(order);
            }
        })
    }

    fn blocks(&self, wanted: Sections) -> impl Iterator<Item = &'r Block> {
        let sections = self.census.blocks.iter();
        let of_interest = move |(block, sections): (&'r Block, &Sections)| {
            sections.meets(wanted).then_some(block)
        };
        self.recording.blocks().iter().zip(sections).filter_map(of_interest)
    }
}
