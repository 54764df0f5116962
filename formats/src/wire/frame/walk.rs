//! Frames in and out of a payload.

use postcard::ser_flavors::{Flavor, Size};

use super::Frame;
use crate::DecodeError;
use crate::wire::offset_add;

/// Bytes before a frame's body.
const HEAD: usize = 8;

/// Why a frame could not be written: the space is too small, or the body longer than 2^32 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a metadata frame of kind {kind} does not fit the {space} bytes that are left")]
pub struct EncodeError {
    /// The frame's kind.
    pub kind: u16,
    /// The bytes that there were.
    pub space: usize,
}

impl Frame<'_> {
    /// Writes the frame into `out` and returns how many bytes it took.
    ///
    /// # Errors
    ///
    /// When `out` is too small; what it then holds is unspecified.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, EncodeError> {
        let (kind, version) = self.kind();
        let error = EncodeError { kind, space: out.len() };
        let (head, body) = out.split_first_chunk_mut::<HEAD>().ok_or(error)?;
        let used = self.encode_body(body).map_err(|_| error)?;
        let length = u32::try_from(used).map_err(|_| error)?;
        *head = Self::head(kind, version, length);
        Ok(HEAD + used)
    }

    const fn head(kind: u16, version: u16, length: u32) -> [u8; HEAD] {
        (kind as u64 | (version as u64) << 16 | (length as u64) << 32).to_le_bytes()
    }

    /// Hands the frame to `out` piece by piece, for a writer that has no place for all of it; the
    /// pieces are what [`encode`](Self::encode) writes.
    ///
    /// # Errors
    ///
    /// When the body is longer than 2^32 bytes; nothing was handed out then.
    pub fn emit(&self, mut out: impl FnMut(&[u8])) -> Result<(), EncodeError> {
        let (kind, version) = self.kind();
        let error = EncodeError { kind, space: u32::MAX as usize };
        let length = self.serialize_body(Size::default()).map_err(|_| error)?;
        let length = u32::try_from(length).map_err(|_| error)?;
        out(&Self::head(kind, version, length));
        self.serialize_body(Pieces(out)).map_err(|_| error)
    }
}

/// Passes each piece of a body on.
struct Pieces<F>(F);

impl<F: FnMut(&[u8])> Flavor for Pieces<F> {
    type Output = ();

    fn try_extend(&mut self, data: &[u8]) -> postcard::Result<()> {
        (self.0)(data);
        Ok(())
    }

    fn try_push(&mut self, data: u8) -> postcard::Result<()> {
        (self.0)(&[data]);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

/// A frame in place: its length held, its body not yet read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawFrame<'a> {
    /// Its kind.
    pub kind: u16,
    /// The version of its body.
    pub version: u16,
    /// Its body.
    pub body: &'a [u8],
    /// Where it starts in the file.
    pub offset: u64,
}

/// Why a frame could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A kind or version of a newer writer: skip and count it.
    #[error(
        "metadata frame at offset {offset} has kind {kind} version {version}, which this reader \
         does not know; it is skipped"
    )]
    Unknown {
        /// Its kind.
        kind: u16,
        /// Its version.
        version: u16,
        /// Where it starts in the file.
        offset: u64,
    },
    /// A body that contradicts its version.
    #[error(transparent)]
    Decode(#[from] DecodeError),
}

impl<'a> RawFrame<'a> {
    /// Hands the frame to `out` piece by piece, as it is: for a writer that copies what it need not
    /// know.
    pub fn emit(&self, mut out: impl FnMut(&[u8])) {
        // The length came from a 32-bit field.
        out(&Frame::head(self.kind, self.version, self.body.len() as u32));
        out(self.body);
    }

    /// Reads the body.
    ///
    /// # Errors
    ///
    /// Unknown for a kind or version of a newer writer; malformed when the body is not one of its
    /// version, or is longer.
    pub fn decode(&self) -> Result<Frame<'a>, FrameError> {
        let &Self { kind, version, body, offset } = self;
        let malformed = |what, found| {
            let expected = body.len() as u64;
            FrameError::Decode(DecodeError::Malformed { what, offset, expected, found })
        };
        match Frame::decode_body(kind, version, body) {
            None => Err(FrameError::Unknown { kind, version, offset }),
            Some(Err(_)) => Err(malformed("body of a metadata frame", 0)),
            Some(Ok((frame, []))) => Ok(frame),
            Some(Ok((_, rest))) => {
                let used = (body.len() as u64).saturating_sub(rest.len() as u64);
                Err(malformed("length of a metadata frame's body", used))
            }
        }
    }
}

/// The frames of a metadata payload. It ends at the padding, or behind the first error.
#[derive(Debug, Clone)]
pub struct Frames<'a> {
    rest: &'a [u8],
    offset: u64,
}

impl<'a> Frames<'a> {
    /// The frames of a payload that starts at `offset` in the file.
    pub const fn new(payload: &'a [u8], offset: u64) -> Self {
        Self { rest: payload, offset }
    }

    fn padding(&self) -> Option<DecodeError> {
        let stray = self.rest.iter().position(|&byte| byte != 0)?;
        let (what, offset) = ("padding of a metadata payload", offset_add(self.offset, stray));
        let found = self.rest.get(stray).copied().unwrap_or_default().into();
        Some(DecodeError::Malformed { what, offset, expected: 0, found })
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<RawFrame<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (rest, offset) = (self.rest, self.offset);
        let Some((head, behind)) = rest.split_first_chunk::<HEAD>() else {
            let error = self.padding();
            self.rest = &[];
            return error.map(Err);
        };
        let head = u64::from_le_bytes(*head);
        let (kind, version, length) = (head as u16, (head >> 16) as u16, (head >> 32) as usize);
        if kind == 0 {
            let error = self.padding();
            self.rest = &[];
            return error.map(Err);
        }
        let Some((body, rest)) = behind.split_at_checked(length) else {
            self.rest = &[];
            // The payload is whole, so nothing is to be waited for: the length is wrong.
            return Some(Err(DecodeError::Malformed {
                what: "length of a metadata frame, within its payload",
                offset: offset_add(offset, HEAD / 2),
                expected: behind.len() as u64,
                found: length as u64,
            }));
        };
        self.rest = rest;
        self.offset = offset_add(offset, HEAD.saturating_add(length));
        Some(Ok(RawFrame { kind, version, body, offset }))
    }
}
