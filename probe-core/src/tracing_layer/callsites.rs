//! What a probe calls the callsites of `tracing`: looked up, not interned, once it is known.

use std::collections::HashMap;
use std::sync::RwLock;

use tmrun_formats::{Level, NameId};
use tracing_core::callsite::Identifier;
use tracing_core::field::Field;
use tracing_core::{Level as Verbosity, Metadata};

use crate::probe::ProbeRef;
use crate::sync::{AtomicU32, Ordering};

/// The level that asks for what is of this verbosity.
pub(super) fn level(metadata: &Metadata<'_>) -> Level {
    match *metadata.level() {
        Verbosity::ERROR | Verbosity::WARN | Verbosity::INFO => Level::TIMING,
        Verbosity::DEBUG => Level::METADATA,
        Verbosity::TRACE => Level::NUMERICS,
    }
}

/// What a callsite is called. An event whose author gave it no name has one that says where it
/// stands; it goes by its target.
fn text<'m>(metadata: &'m Metadata<'_>) -> &'m str {
    let unnamed = metadata.is_event() && metadata.name().starts_with("event ");
    if unnamed { metadata.target() } else { metadata.name() }
}

/// A callsite as the probe knows it.
#[derive(Debug)]
pub(super) struct Callsite {
    text: Box<str>,
    name: NameId,
    level: Level,
    /// The label of each field, 0 before its first number.
    labels: Box<[AtomicU32]>,
}

impl Callsite {
    fn new<C>(metadata: &Metadata<'_>, probe: &ProbeRef<'_, C>) -> Self {
        let text = text(metadata);
        // Only spans are named; an event's name is part of its labels.
        let name = if metadata.is_span() { probe.name(text) } else { NameId::NONE };
        let labels = metadata.fields().iter().map(|_| AtomicU32::new(0)).collect();
        Self { text: text.into(), name, level: level(metadata), labels }
    }

    pub(super) fn name(&self) -> NameId {
        self.name
    }

    pub(super) fn level(&self) -> Level {
        self.level
    }

    /// The label of a field's numbers.
    pub(super) fn label<C>(&self, probe: &ProbeRef<'_, C>, field: &Field) -> NameId {
        let label = self.labels.get(field.index());
        match label.map_or(0, |label| label.load(Ordering::Relaxed)) {
            0 => {
                let name = probe.name(&format!("{}.{}", self.text, field.name()));
                if let Some(label) = label {
                    label.store(name.0, Ordering::Relaxed);
                }
                name
            }
            known => NameId(known),
        }
    }
}

/// The callsites that were reached while the probe recorded. They are few and live as long as the
/// program, as the callsites of `tracing` do.
#[derive(Debug, Default)]
pub(super) struct Callsites(RwLock<HashMap<Identifier, &'static Callsite>>);

impl Callsites {
    pub(super) fn get<C>(
        &self,
        metadata: &Metadata<'_>,
        probe: &ProbeRef<'_, C>,
    ) -> &'static Callsite {
        let id = metadata.callsite();
        let known =
            self.0.read().unwrap_or_else(|poisoned| poisoned.into_inner()).get(&id).copied();
        known.unwrap_or_else(|| {
            let mut callsites = self.0.write().unwrap_or_else(|poisoned| poisoned.into_inner());
            callsites.entry(id).or_insert_with(|| Box::leak(Callsite::new(metadata, probe).into()))
        })
    }
}
