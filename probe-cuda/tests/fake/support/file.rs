//! Recording the probe into memory, and reading back what the device's lane says.

use tmrun_formats::wire::{
    Chunks, ClockSync, DeviceInterval, DeviceMemory, FileHeader, Frame, Gap, Kind, Walked,
};
use tmrun_formats::{GapReason, Level, NameId, RunId, Ticks};
use tmrun_probe_core::{Drain, Flush, Sink, Start};

use super::{PROBE, SimulatedClock};

const HEADER: FileHeader =
    FileHeader { run: RunId([7; 16]), created_ns: 1, ticks_per_second: 1_000_000_000 };

#[derive(Debug, Default)]
pub struct Memory(Vec<u8>);

impl Sink for Memory {
    type Error = std::convert::Infallible;

    fn write(&mut self, pieces: &[&[u8]]) -> Result<(), Self::Error> {
        pieces.iter().for_each(|piece| self.0.extend_from_slice(piece));
        Ok(())
    }

    fn cut(&mut self, len: u64) -> Result<(), Self::Error> {
        self.0.truncate(len as usize);
        Ok(())
    }
}

/// The probe, being recorded.
pub struct Recording(Drain<'static, SimulatedClock, Memory>);

impl Recording {
    pub fn start(level: Level) -> Self {
        match Drain::start(*PROBE, Memory::default(), &HEADER, &[], level) {
            Ok(drain) => Self(drain),
            Err(Start::Unavailable(why)) => panic!("{why}"),
            Err(Start::Sink(never)) => match never {},
        }
    }

    pub fn poll(&mut self) {
        let Ok(_) = self.0.poll(Flush::All);
    }

    pub fn finish(self) -> File {
        let (_, sink) = self.0.finish(&[]);
        let Ok(sink) = sink;
        File::read(&sink.0)
    }
}

/// An interval as it is recorded.
#[derive(Debug, Clone, Copy)]
pub struct Interval {
    pub ticks: Ticks,
    pub name: NameId,
    pub is: DeviceInterval,
}

/// What a recording says of devices.
#[derive(Debug, Default)]
pub struct File {
    pub intervals: Vec<Interval>,
    pub gaps: Vec<(NameId, Gap)>,
    pub syncs: Vec<ClockSync>,
    pub memory: Vec<DeviceMemory>,
    pub names: Vec<(NameId, String)>,
}

impl File {
    fn read(bytes: &[u8]) -> Self {
        let mut file = Self::default();
        for walked in Chunks::new(bytes) {
            let chunk = match walked {
                Walked::Chunk(chunk) => chunk,
                Walked::Trailer(_) => continue,
                hole => panic!("the file is whole: {hole:?}"),
            };
            for raw in chunk.frames() {
                let raw = raw.expect("the frame is whole");
                if let Ok(Frame::Name(name)) = raw.decode() {
                    file.names.push((name.id, name.text.to_owned()));
                }
            }
            for record in chunk.records() {
                let header = record.header();
                match record.kind() {
                    Some(Kind::DeviceInterval) => {
                        file.intervals.extend(record.payload().map(|is| Interval {
                            ticks: header.ticks,
                            name: header.name,
                            is,
                        }))
                    }
                    Some(Kind::Gap) => {
                        file.gaps.extend(record.payload().map(|gap| (header.name, gap)));
                    }
                    Some(Kind::ClockSync) => file.syncs.extend(record.payload::<ClockSync>()),
                    Some(Kind::DeviceMemory) => {
                        file.memory.extend(record.payload::<DeviceMemory>())
                    }
                    _ => {}
                }
            }
        }
        file
    }

    /// How many records gaps of this reason count.
    pub fn missing(&self, reason: GapReason) -> u64 {
        self.gaps.iter().filter(|(_, gap)| gap.reason == reason).map(|(_, gap)| gap.records).sum()
    }

    /// How many records all gaps count.
    pub fn all_missing(&self) -> u64 {
        self.gaps.iter().map(|(_, gap)| gap.records).sum()
    }

    pub fn name(&self, id: NameId) -> &str {
        self.names.iter().find(|(known, _)| *known == id).map_or("", |(_, text)| text)
    }
}
