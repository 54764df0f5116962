//! What is wrong with a directory that claims to be a bundle.

use std::fmt;

use serde::Serialize;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// What.
    pub kind: ProblemKind,
    /// Of which file, relative to the bundle.
    pub path: String,
    /// What should be there.
    pub expected: Option<String>,
    /// What is.
    pub found: Option<String>,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $text:literal $says:literal,)*) => {
        /// What can be wrong.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum ProblemKind {
            $($(#[$doc])* $kind,)*
        }

        impl ProblemKind {
            /// What it is called in JSON.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $text,)*
                }
            }

            const fn says(self) -> &'static str {
                match self {
                    $(Self::$kind => $says,)*
                }
            }
        }
    };
}

kinds! {
    /// There is no such directory.
    NotADirectory "not_a_directory" "is no directory",
    /// It was never published: a publisher was stopped while it put it together.
    Unpublished "unpublished" "was never published: its publisher was stopped before it was done",
    /// There is no manifest, or none that is a regular file.
    NoManifest "no_manifest" "is no regular file, so this is no bundle",
    /// The manifest is none.
    BadManifest "bad_manifest" "is no manifest of a bundle",
    /// A declared path leaves the bundle, or is not written as one is.
    UnsafePath "unsafe_path" "is declared, and no path within a bundle",
    /// The manifest declares itself.
    DeclaresItself "declares_itself" "declares itself",
    /// A file is declared twice.
    DeclaredTwice "declared_twice" "is declared twice",
    /// A declared digest is none.
    BadDigest "bad_digest" "has no digest in the manifest",
    /// A symbolic link.
    SymbolicLink "symbolic_link" "is a symbolic link",
    /// Neither file nor directory.
    SpecialFile "special_file" "is neither a file nor a directory",
    /// A file that is not declared.
    Undeclared "undeclared" "is not declared",
    /// A declared file that is not there.
    Missing "missing" "is declared, and missing",
    /// A declared file that is a directory.
    NotAFile "not_a_file" "is declared, and no regular file",
    /// A file of another size.
    Size "size" "has another size",
    /// A file of another content.
    Sha256 "sha256" "has another content",
    /// Something that cannot be read.
    Unreadable "unreadable" "cannot be read",
    /// A file that is not what it was when it was checked.
    Changed "changed" "changed while it was read",
    /// A bundle without a trace, or without evidence.
    Incomplete "incomplete" "has to be in a bundle, and is not declared",
    /// The trace is none.
    BadTrace "bad_trace" "is no trace",
    /// The evidence is none.
    BadEvidence "bad_evidence" "is no evidence",
    /// The manifest names another run than the trace.
    RunId "run_id" "names another run than the trace",
    /// The evidence says something else of its run than the trace.
    Provenance "provenance" "is of another run than the trace",
}

impl Problem {
    pub(super) fn of(kind: ProblemKind, path: impl Into<String>) -> Self {
        Self { kind, path: path.into(), expected: None, found: None }
    }

    pub(super) fn expected(mut self, expected: impl ToString) -> Self {
        self.expected = Some(expected.to_string());
        self
    }

    pub(super) fn found(mut self, found: impl ToString) -> Self {
        self.found = Some(found.to_string());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.path, self.kind.says())?;
        match (&self.expected, &self.found) {
            (Some(expected), Some(found)) => write!(f, ": expected {expected}, found {found}"),
            (Some(expected), None) => write!(f, ": expected {expected}"),
            (None, Some(found)) => write!(f, ": {found}"),
            (None, None) => Ok(()),
        }
    }
}
