//! What the file says of its names, sites, codes and lanes.
//!
//! A chunk of frames is produced twice, once for its length and once for its bytes. What may change
//! at any moment is therefore copied first, and what is copied is written in small chunks.

use tmrun_formats::wire::{Frame, LaneV1, NameV1, RecorderCostV1, SiteV1};
use tmrun_formats::{LaneId, NameId};

use super::Drain;
use crate::clock::Clock;
use crate::codes::Clocks;
use crate::lane::LaneBlock;
use crate::names::Names;
use crate::sink::Sink;
use crate::site::Site;

/// Frames that are copied and written together.
const BATCH: usize = 16;

/// How much of the tables the file knows.
#[derive(Default)]
pub(super) struct Known {
    /// All names up to here.
    pub(super) names: u32,
    pub(super) devices: u8,
    pub(super) dtypes: u8,
    pub(super) clocks: Clocks,
    /// The newest site.
    site: Option<&'static Site>,
}

impl<C: Clock, S: Sink> Drain<'_, C, S> {
    /// Writes frames of things that may change meanwhile.
    pub(super) fn write_copied<'f>(
        &mut self,
        frames: impl IntoIterator<Item = Frame<'f>>,
    ) -> Result<(), S::Error> {
        let mut copied = [Frame::RecorderCost(RecorderCostV1::default()); BATCH];
        let mut frames = frames.into_iter();
        loop {
            let mut used = 0;
            for (place, frame) in copied.iter_mut().zip(frames.by_ref()) {
                *place = frame;
                used += 1;
            }
            self.out.frames(copied.get(..used).unwrap_or_default())?;
            if used < BATCH {
                return Ok(());
            }
        }
    }

    /// Writes what the file does not know of names, sites and codes.
    pub(super) fn write_new_names(&mut self) -> Result<(), S::Error> {
        let (names, shared) = (self.probe.names(), self.probe.shared);
        // What refers to the others first: then those are among the others.
        let clocks = shared.clocks.defined();
        let (devices, dtypes) = (shared.devices.count(), shared.dtypes.count());
        let count = names.count();
        let known = &self.known;
        let (from, from_device, from_dtype) = (known.names + 1, known.devices, known.dtypes);
        let new_clocks = clocks & !known.clocks;
        let new_codes = (devices, dtypes) != (from_device, from_dtype) || new_clocks != 0;
        if count > known.names || new_codes {
            // An id may be handed out before its entry is there. No record that was observed has
            // it, but one may have an id behind it.
            let ready = |id: &u32| names.get(NameId(*id)).is_some();
            let to = (from..=count).take_while(ready).last().unwrap_or(known.names);
            self.out.meta(&|each: &mut dyn FnMut(&Frame<'_>)| {
                (from..=to).filter_map(|id| name(names, id)).for_each(|frame| each(&frame));
                let (devices, dtypes) = (from_device..devices, from_dtype..dtypes);
                shared.emit_codes(names, devices, dtypes, new_clocks, each);
            })?;
            self.write_copied((to + 1..=count).filter_map(|id| name(names, id)))?;
            (self.known.names, self.known.devices, self.known.dtypes) = (to, devices, dtypes);
            self.known.clocks = clocks;
        }
        let last = self.known.site;
        let is_new = |site: &&'static Site| !last.is_some_and(|last| core::ptr::eq(*site, last));
        let mut new = shared.sites.iter().take_while(is_new).peekable();
        let Some(newest) = new.peek().copied() else { return Ok(()) };
        self.write_copied(new.map(site))?;
        self.known.site = Some(newest);
        Ok(())
    }

    /// Writes all names and codes that the file knows once more: one damaged chunk cannot unname a
    /// file.
    pub(super) fn write_names_again(&mut self) -> Result<(), S::Error> {
        let (names, shared) = (self.probe.names(), self.probe.shared);
        let Known { names: last, devices, dtypes, clocks, .. } = self.known;
        self.out.meta(&|each: &mut dyn FnMut(&Frame<'_>)| {
            (1..=last).filter_map(|id| name(names, id)).for_each(|frame| each(&frame));
            shared.emit_codes(names, 0..devices, 0..dtypes, clocks, each);
        })?;
        self.write_copied((last + 1..=names.count()).filter_map(|id| name(names, id)))
    }

    /// Writes who claimed the lane since the last look.
    pub(super) fn write_claims(&mut self, id: LaneId, block: &LaneBlock) -> Result<(), S::Error> {
        if !block.has_new_claims() {
            return Ok(());
        }
        let names = self.probe.names();
        self.write_copied(block.new_claims().map(|claim| {
            let name = names.get(claim.name);
            Frame::Lane(LaneV1 {
                lane: id,
                claim: claim.number,
                sequence: claim.sequence.max(block.first_position()),
                name: name.map_or("", |node| node.name),
                thread: claim.thread,
            })
        }))
    }
}

fn name<'p>(names: Names<'p>, id: u32) -> Option<Frame<'p>> {
    let node = names.get(NameId(id))?;
    Some(Frame::Name(NameV1 {
        id: NameId(id),
        text: node.name,
        node_type: node.node_type,
        static_id: node.static_id,
        source: node.source,
    }))
}

fn site(site: &'static Site) -> Frame<'static> {
    let (file, line) = site.place();
    let (name, kind, level) = (site.name_id(), site.kind() as u8, site.level());
    Frame::Site(SiteV1 { name, kind, level, file, line })
}
