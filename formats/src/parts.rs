//! The files of a recording that has several: what they are called.

use std::path::{Path, PathBuf};

/// The file of this number, from 1, of a recording whose first file is `first`: behind `run.tmrun`
/// comes `run.0002.tmrun`.
pub fn path(first: &Path, number: u64) -> PathBuf {
    if number <= 1 {
        return first.to_owned();
    }
    let mut name = first.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{number:04}"));
    if let Some(extension) = first.extension() {
        name.push(".");
        name.push(extension);
    }
    first.with_file_name(name)
}

/// The number of a file of this name, if it can be one of that recording but the first.
pub fn number(first: &Path, name: &Path) -> Option<u64> {
    let name = name.file_name()?;
    let digits = match first.extension() {
        Some(_) => Path::new(name.to_str()?).file_stem()?.to_str()?,
        None => name.to_str()?,
    };
    let number = digits.rsplit_once('.')?.1.parse().ok().filter(|number| *number > 1)?;
    (path(first, number).file_name()? == name).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_by_the_name_that_it_gets() {
        for first in ["/there/run.tmrun", "run", "a.b.tmrun", ".hidden", "run.0002.tmrun"] {
            let first = Path::new(first);
            assert_eq!(path(first, 1), first);
            assert_eq!(number(first, first), None, "{first:?} is the first");
            for n in [2, 9_999, 10_000, u64::MAX] {
                assert_eq!(number(first, &path(first, n)), Some(n), "{first:?}");
            }
        }
        let first = Path::new("run.tmrun");
        assert_eq!(path(first, 2), Path::new("run.0002.tmrun"));
        for other in
            ["run.2.tmrun", "run.0001.tmrun", "ran.0002.tmrun", "run.0002.other", "run.0002"]
        {
            assert_eq!(number(first, Path::new(other)), None, "{other}");
        }
    }
}
