//! How far a publication has come.

use std::io;

/// A step of the protocol that has just been done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Moment<'m> {
    /// It is known what is planned, and nothing is written.
    Planned,
    /// Nothing is at the destination.
    Free,
    /// The directories around the destination are there.
    Parents,
    /// The staging directory is there, and empty.
    Staged,
    /// A file of it is there, and empty.
    Begun(&'m str),
    /// A file of it is written and synchronised.
    Written(&'m str),
    /// What is staged was checked.
    Verified,
    /// Its directories are synchronised.
    Synced,
    /// It is at the destination.
    Renamed,
    /// The directory around the destination is synchronised: it stays, whatever happens.
    Durable,
    /// It was checked where it lies.
    Checked,
}

/// Is told of every [`Moment`]. An error ends the publication there, as a failure of the system would.
pub type Observer<'o> = dyn FnMut(Moment<'_>) -> io::Result<()> + 'o;
