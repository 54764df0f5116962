//! The two forms, and how to tell them apart.
//!
//! Text without a newline is a document. Text of several lines is a document if the whole of it is
//! one object, and JSONL otherwise. The neighbour decides the same way; where it then reports an
//! error of the form it fell back to, this reader names the form that was meant.

use super::error::{JsonFault, Place, ReadError};
use super::outline::Outline;
use super::{RunMetadata, RuntimeDocument, RuntimeGap, SCHEMA_V1, Section, validate};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;

/// Reads a trace in either form from bytes.
///
/// # Errors
/// Anything that is not a valid trace, with the place where it stops being one.
pub fn read(bytes: &[u8]) -> Result<RuntimeDocument, ReadError> {
    match std::str::from_utf8(bytes) {
        Ok(text) => parse(text),
        Err(error) => Err(ReadError::NotUtf8 { offset: error.valid_up_to() }),
    }
}

/// Reads a trace in either form.
///
/// # Errors
/// As [`read`].
pub fn parse(text: &str) -> Result<RuntimeDocument, ReadError> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(ReadError::Empty);
    }
    if text.starts_with('\u{feff}') {
        return Err(ReadError::ByteOrderMark);
    }
    if !trimmed.starts_with('{') {
        return parse_jsonl(text);
    }
    if !trimmed.contains('\n') {
        return parse_json(text).map_err(|error| single_line_error(trimmed, error));
    }
    let mut json = serde_json::Deserializer::from_str(trimmed);
    match Outline::deserialize(&mut json) {
        Ok(outline) if json.end().is_ok() => match outline {
            Outline { has_schema: true, has_run: true, .. } => parse_json(text),
            Outline { has_schema: false, .. } => Err(ReadError::DocumentWithout { key: "schema" }),
            Outline { .. } => Err(ReadError::DocumentWithout { key: "run" }),
        },
        // The first object does not end on the first line: this was meant as a document.
        Err(error) if error.line() > 1 => Err(Source::of(text).error(&error)),
        _ => parse_jsonl(text),
    }
}

/// Reads a trace in the document form.
///
/// # Errors
/// As [`read`].
pub fn parse_json(text: &str) -> Result<RuntimeDocument, ReadError> {
    let mut document: RuntimeDocument = Source::of(text).parse()?;
    document.validate()?;
    document.normalize();
    Ok(document)
}

/// A single line was taken for a document and is none: if it is a JSONL record, say so.
fn single_line_error(line: &str, error: ReadError) -> ReadError {
    match serde_json::from_str(line) {
        Ok(Outline { kind: Some(kind), has_run: false, .. }) => {
            if kind == "meta" {
                ReadError::LoneMeta
            } else {
                ReadError::NoMeta
            }
        }
        Ok(Outline { has_schema: false, .. }) => ReadError::DocumentWithout { key: "schema" },
        Ok(Outline { has_run: false, .. }) => ReadError::DocumentWithout { key: "run" },
        _ => error,
    }
}

/// What the meta line holds beside the fields of [`RunMetadata`].
#[derive(Deserialize)]
struct Meta {
    schema: String,
    #[serde(default)]
    gaps: Vec<RuntimeGap>,
}

/// Reads a trace in the JSONL form. The meta line may stand anywhere; blank lines are skipped.
///
/// # Errors
/// As [`read`]. A cut last line fails the whole stream.
pub fn parse_jsonl(text: &str) -> Result<RuntimeDocument, ReadError> {
    let mut document = RuntimeDocument { schema: SCHEMA_V1.to_owned(), ..Default::default() };
    let mut lines = LineNumbers::default();
    let mut meta_line = None;
    let mut offset = 0_usize;
    for (index, raw) in text.split_inclusive('\n').enumerate() {
        let line = index.saturating_add(1);
        let source = Source::line(raw, line, offset);
        offset = offset.saturating_add(raw.len());
        if source.text.is_empty() {
            continue;
        }
        let section = match source.kind()?.as_str() {
            "meta" => {
                if let Some(first) = meta_line.replace(line) {
                    return Err(ReadError::SecondMeta { line, first });
                }
                let meta: Meta = source.parse()?;
                document.run = source.parse::<RunMetadata>()?;
                document.schema = meta.schema;
                document.gaps = meta.gaps;
                continue;
            }
            "tensor" => {
                document.tensors.push(source.parse()?);
                Section::Tensors
            }
            "operation" => {
                document.operations.push(source.parse()?);
                Section::Operations
            }
            "gradient" => {
                document.gradients.push(source.parse()?);
                Section::Gradients
            }
            "value" => {
                document.values.push(source.parse()?);
                Section::Values
            }
            "edge_timing" => {
                document.edge_timings.push(source.parse()?);
                Section::EdgeTimings
            }
            found => return Err(ReadError::UnknownKind { line, found: found.to_owned() }),
        };
        lines.push(section, line);
    }
    let meta_line = meta_line.ok_or(ReadError::NoMeta)?;
    validate::document(&document, Place::Line(meta_line), |section, index| {
        lines.place(section, index)
    })?;
    document.normalize();
    Ok(document)
}

/// The line of every record, by collection: eight bytes a record, so that a broken rule can be
/// reported where the reader of the message will look for it.
#[derive(Default)]
struct LineNumbers([Vec<usize>; Section::ALL.len()]);

impl LineNumbers {
    fn push(&mut self, section: Section, line: usize) {
        if let Some(lines) = self.0.get_mut(section as usize) {
            lines.push(line);
        }
    }

    fn place(&self, section: Section, index: usize) -> Place {
        match self.0.get(section as usize).and_then(|lines| lines.get(index)) {
            Some(&line) => Place::Line(line),
            None => Place::Item { section, index },
        }
    }
}

/// A piece of JSON, trimmed, and where it stands in the input.
struct Source<'a> {
    text: &'a str,
    line: usize,
    offset: usize,
    column: usize,
}

impl<'a> Source<'a> {
    fn of(text: &'a str) -> Self {
        let body = text.trim_start();
        let skipped = text.get(..text.len().saturating_sub(body.len())).unwrap_or_default();
        let newlines = skipped.bytes().filter(|&byte| byte == b'\n').count();
        let column = skipped.len().saturating_sub(skipped.rfind('\n').map_or(0, |at| at + 1));
        Source {
            text: body.trim_end(),
            line: newlines.saturating_add(1),
            offset: skipped.len(),
            column,
        }
    }

    fn line(raw: &'a str, line: usize, offset: usize) -> Self {
        let body = raw.trim_start();
        let column = raw.len().saturating_sub(body.len());
        Source { text: body.trim_end(), line, offset: offset.saturating_add(column), column }
    }

    fn parse<T: DeserializeOwned>(&self) -> Result<T, ReadError> {
        serde_json::from_str(self.text).map_err(|error| self.error(&error))
    }

    /// The `kind` of a JSONL line.
    fn kind(&self) -> Result<String, ReadError> {
        let outline: Outline = serde_json::from_str(self.text).map_err(|error| {
            match (error.classify(), self.text.as_bytes().first()) {
                (Category::Data, Some(b'[')) => self.not_an_object("an array"),
                (Category::Data, Some(b'"')) => self.not_an_object("a string"),
                (Category::Data, Some(b'-' | b'0'..=b'9')) => self.not_an_object("a number"),
                (Category::Data, Some(b't' | b'f')) => self.not_an_object("a boolean"),
                (Category::Data, Some(b'n')) => self.not_an_object("null"),
                _ => self.error(&error),
            }
        })?;
        outline.kind.ok_or(ReadError::NoKind { line: self.line })
    }

    fn not_an_object(&self, found: &'static str) -> ReadError {
        ReadError::NotAnObject { line: self.line, found }
    }

    /// Translates a position in this piece into one in the whole input.
    fn error(&self, error: &serde_json::Error) -> ReadError {
        let fault = match error.classify() {
            Category::Eof => JsonFault::Truncated,
            Category::Syntax | Category::Io => JsonFault::Malformed,
            Category::Data => JsonFault::WrongShape,
        };
        let whole = error.to_string();
        let detail = whole.rsplit_once(" at line ").map_or(whole.as_str(), |(detail, _)| detail);
        let above = error.line().saturating_sub(1);
        let line_start = match above {
            0 => 0,
            _ => self.text.match_indices('\n').nth(above - 1).map_or(0, |(at, _)| at + 1),
        };
        let in_line = error.column().saturating_sub(1);
        let indent = if above == 0 { self.column } else { 0 };
        ReadError::Json {
            place: Place::Text {
                line: self.line.saturating_add(above),
                column: indent.saturating_add(error.column().max(1)),
                offset: self.offset.saturating_add(line_start).saturating_add(in_line),
            },
            fault,
            detail: detail.to_owned(),
        }
    }
}
