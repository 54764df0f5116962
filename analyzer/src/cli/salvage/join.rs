//! The files of a flight recorder: which belong together.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tmrun::input::{Input, InputError};
use tmrun::salvage::{Process, Rings, join};
use tmrun::scan::{OpenError, Recording};
use tmrun_formats::rings::RINGS_MAGIC;
use tmrun_formats::{RunId, parts};

use super::super::output::OutputArgs;
use super::super::{Failure, say};

/// What is to be salvaged.
pub(super) struct Found {
    pub(super) input: Input,
    /// Its process kept rings and did not come to the end, and what they held is not in the input:
    /// they are not there, or nobody can read them.
    pub(super) lacks_rings: bool,
}

impl From<Input> for Found {
    fn from(input: Input) -> Self {
        Self { input, lacks_rings: false }
    }
}

/// The recording that was drained, with what its mapped rings still hold. Either of the two files
/// may be given; they name each other. Of a recording of several files the rings belong to the last.
///
/// A process that is there moves records from the rings into the file all the while. The rings are
/// read first, so that none is missing between the two.
pub(super) fn with_rings(file: &Path, output: &OutputArgs) -> Result<Found, Failure> {
    let input = Input::open(file)?;
    if input.starts_with(&RINGS_MAGIC) {
        let open = |source| OpenError { file: input.name().to_owned(), source };
        let rings = Rings::open(&input).map_err(open)?;
        let Some(last) = last_file(&rings, &input, output)? else {
            let path = rings.recording_file().unwrap_or("the recording");
            say(format_args!(
                "{}: {path} {}; only the rings are left",
                input.name(),
                absence(path)
            ));
            return Ok(joined(None, &rings, &input)?.into());
        };
        if read(&last).is_some_and(|recording| has_everything(&recording)) {
            return Ok(last.into());
        }
        return Ok(joined(Some(&last), &rings, &input)?.into());
    }
    let Some(recording) = read(&input).filter(|recording| !has_everything(recording)) else {
        return Ok(input.into()); // when it cannot be read, that is said where it is opened for good
    };
    let Some(named) = recording.meta().run.and_then(|run| run.rings) else {
        return Ok(input.into());
    };
    let run = recording.header().run;
    let rings_file = match rings_of(run, &input, named, output)? {
        Ok(rings_file) => rings_file,
        Err(why) => {
            let lacks_rings = recording.needs_rings().is_some();
            if lacks_rings {
                say(format_args!(
                    "{}: its rings are missing, with what the process recorded last: {why}; put them \
                     beside it",
                    input.name()
                ));
            }
            drop(recording);
            return Ok(Found { input, lacks_rings });
        }
    };
    let open = |source| OpenError { file: rings_file.name().to_owned(), source };
    let rings = Rings::open(&rings_file).map_err(open)?;
    let last = last_file(&rings, &input, output)?;
    let is_later = |last: &&Input| read(last).is_some_and(|l| number(&l) > number(&recording));
    if let Some(last) = last.as_ref().filter(is_later) {
        say(format_args!(
            "{}: what the rings hold belongs to {}, the recording's last file",
            input.name(),
            last.name()
        ));
        return Ok(input.into());
    }
    // What was drained since is in the file by now, unless that came through a pipe.
    let input = if file.as_os_str() == "-" { input } else { Input::open(file)? };
    if read(&input).is_some_and(|recording| has_everything(&recording)) {
        return Ok(input.into());
    }
    Ok(joined(Some(&input), &rings, &rings_file)?.into())
}

/// The file with the rings of this run, which a recording names; or why there is none that can be
/// read, of each place where it may be.
fn rings_of(
    run: RunId,
    file: &Input,
    named: &str,
    output: &OutputArgs,
) -> Result<Result<Input, String>, Failure> {
    let mut reasons: Vec<String> = Vec::new();
    for path in places(file, named) {
        let found = match Input::open(&path) {
            Ok(found) => found,
            Err(error) => {
                reasons.push(error.to_string());
                continue;
            }
        };
        let error = match Rings::open(&found) {
            Ok(rings) if rings.run() == run => return Ok(Ok(checked((found, path), output)?)),
            Ok(rings) => format!("expected rings of run {run}, found those of {}", rings.run()),
            Err(error) => error.to_string(),
        };
        reasons.push(format!("{}: {error}", path.display()));
    }
    reasons.dedup();
    Ok(Err(reasons.join("; ")))
}

/// What is at this path instead of a recording of the rings' run.
fn absence(path: &str) -> String {
    match Input::open(Path::new(path)) {
        Ok(_) => "is none of the same run".to_owned(),
        Err(InputError::File { source, .. }) if source.kind() == ErrorKind::NotFound => {
            "is gone".to_owned()
        }
        Err(InputError::File { source, .. }) => format!("cannot be read ({source})"),
        Err(_) => "is no regular file".to_owned(),
    }
}

/// The number of a process that is gone may be another's by now: then too the rings were read first.
fn process(rings: &Rings<'_>) -> Process {
    if rings.is_alive() { Process::There } else { Process::Gone }
}

fn read(input: &Input) -> Option<Recording<'_>> {
    Recording::open_damaged(input, input.name(), &|_| ()).ok()
}

/// It was finished: nothing of it is elsewhere.
fn has_everything(recording: &Recording<'_>) -> bool {
    recording.trailer().is_some() && !recording.goes_on()
}

/// Which of the files of its recording it is; 0 when it does not say.
fn number(recording: &Recording<'_>) -> u64 {
    recording.meta().part.map_or(0, |part| part.number)
}

/// A file that another one names may lie where that says, or in the same folder: both may have been
/// moved.
fn places(file: &Input, named: &str) -> impl Iterator<Item = PathBuf> {
    let path = Path::new(named);
    let folder = Path::new(file.name()).parent();
    let moved = folder.zip(path.file_name()).map(|(folder, name)| folder.join(name));
    [Some(path.to_owned()), moved].into_iter().flatten()
}

/// The file that the rings were being drained into.
fn last_file(
    rings: &Rings<'_>,
    file: &Input,
    output: &OutputArgs,
) -> Result<Option<Input>, Failure> {
    let named = rings.recording_file();
    let mut places = named.into_iter().flat_map(|named| places(file, named));
    let found = places.find_map(|first| last_begun(&first, rings.run()));
    found.map(|found| checked(found, output)).transpose()
}

/// A file that another one names is an input too, which the result must not replace.
fn checked((input, path): (Input, PathBuf), output: &OutputArgs) -> Result<Input, Failure> {
    output.check(&path)?;
    Ok(input)
}

/// The last file of this run that has begun, of those that lie beside its first. One that the
/// process died on before it said which it is has nothing yet: then the one before it is the last.
fn last_begun(first: &Path, run: RunId) -> Option<(Input, PathBuf)> {
    let folder = first.parent().filter(|folder| *folder != Path::new(""));
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?.flatten();
    let mut numbers: Vec<_> =
        entries.filter_map(|entry| parts::number(first, entry.file_name().as_ref())).collect();
    numbers.push(1);
    numbers.sort_unstable();
    numbers.into_iter().rev().find_map(|number| {
        let path = parts::path(first, number);
        let input = Input::open(&path).ok()?;
        let begun = read(&input).is_some_and(|recording| {
            recording.header().run == run && (number == 1 || recording.meta().part.is_some())
        });
        begun.then_some((input, path))
    })
}

fn joined(drained: Option<&Input>, rings: &Rings<'_>, file: &Input) -> Result<Input, Failure> {
    let name = drained.unwrap_or(file).name();
    let recording = drained.map(|drained| Recording::open_damaged(drained, name, &|_| ()));
    let recording = recording.transpose()?;
    let process = process(rings);
    if process == Process::There {
        let (file, pid) = (file.name(), rings.pid());
        say(format_args!(
            "{file}: process {pid} is there and may still record; this is a snapshot"
        ));
    }
    Ok(Input::made(name, |out| join(recording.as_ref(), rings, process, out))?)
}
