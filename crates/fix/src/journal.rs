//! What was changed and not reverted? A file records each change before it is made.
//!
//! Lines of JSON, appended and synced: `begin` with the change, `end` with its outcome. A line that
//! a crash cut off was never acted on. A process that changes or reverts something holds the file's
//! lock meanwhile, so that two never interleave.

use std::fmt;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, mkdirat, open, openat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::{Change, Error};

/// The journal of one user; root's is the machine's.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
}

/// A change that was begun and not reverted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its number.
    pub id: u64,
    /// Seconds since 1970.
    pub at_s: u64,
    /// The boot in which it was made.
    pub boot: String,
    /// What was changed.
    #[serde(flatten)]
    pub change: Change,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line {
    Begin(Entry),
    End { id: u64, how: String },
}

/// The outcome of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// It was made.
    Made(Entry),
    /// Nothing to do: it already has the value, which is for its setter to revert.
    AlreadySo,
}

/// The outcome of reverting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undone {
    /// It has its old value again.
    TakenBack,
    /// It already had its old value: the change was not made, or someone else reverted it.
    AsBefore,
    /// What was changed no longer exists.
    Gone(String),
    /// The machine was restarted since, which reverted it.
    Restarted,
}

impl fmt::Display for Undone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TakenBack => f.write_str("reverted"),
            Self::AsBefore => f.write_str("nothing to revert: it has its old value"),
            Self::Gone(what) => write!(f, "nothing to revert: {what} is gone"),
            Self::Restarted => f.write_str("nothing to revert: the machine has been restarted since"),
        }
    }
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const NAME: &str = "journal";
/// More than any change takes.
const LINE_MAX: usize = 16 << 10;

impl Journal {
    /// Opens the journal: `/var/lib/tcpwhy` for root, `~/.local/state/tcpwhy` for others; created
    /// if necessary.
    ///
    /// # Errors
    /// The directory belongs to another user, or others can write into it.
    pub fn open() -> Result<Self, Error> {
        if rustix::process::geteuid().is_root() {
            return Self::open_in(Path::new("/var/lib"));
        }
        #[expect(clippy::disallowed_methods, reason = "where a user's files are is in the environment")]
        let state = std::env::var("XDG_STATE_HOME")
            .or_else(|_| std::env::var("HOME").map(|home| home + "/.local/state"));
        let state = PathBuf::from(state.map_err(|_| Error::Journal {
            path: "~/.local/state/tcpwhy".to_owned(),
            why: "HOME is not set".to_owned(),
        })?);
        let why =
            |why: std::io::Error| Error::Journal { path: state.display().to_string(), why: why.to_string() };
        std::fs::create_dir_all(&state).map_err(why)?;
        Self::open_in(&state)
    }

    /// Opens the directory `tcpwhy` in `place`.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub fn open_in(place: &Path) -> Result<Self, Error> {
        let path = place.join("tcpwhy");
        let failed = |why: String| Error::Journal { path: path.display().to_string(), why };
        let system = |errno: Errno| failed(errno.to_string());
        let opened = open(place, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        let place: OwnedFd = opened.map_err(|errno| match errno {
            // Not created here: a user who may write above it could redirect it.
            Errno::NOENT => {
                let place = place.display();
                failed(format!("there is no folder {place}, make it first (mkdir -m 700 {place})"))
            }
            errno => system(errno),
        })?;
        match mkdirat(&place, "tcpwhy", Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(system(errno)),
        }
        let folder = openat(&place, "tcpwhy", FOLDER, Mode::empty()).map_err(system)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let us = rustix::process::geteuid().as_raw();
        let stat = fstat(&folder).map_err(system)?;
        if stat.st_uid != us || stat.st_mode & 0o077 != 0 {
            return Err(failed(format!("only user {us} may own and access it (chown, chmod 700)")));
        }
        let file = openat(&folder, NAME, flags, Mode::RUSR | Mode::WUSR).map_err(system)?;
        let stat = fstat(&file).map_err(system)?;
        if stat.st_uid != us || stat.st_nlink != 1 {
            return Err(failed(format!("its file must belong to user {us} and have no other hard link")));
        }
        // The directory entry has to survive a crash too.
        rustix::fs::fsync(&folder).map_err(system)?;
        Ok(Self { file: file.into(), path: path.join(NAME) })
    }

    /// Changes begun and not reverted, latest first.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn entries(&self) -> Result<Vec<Entry>, Error> {
        let _lock = self.lock()?;
        self.read()
    }

    /// Makes a change: writes and syncs the journal, makes the change, then checks it.
    ///
    /// # Errors
    /// [`Error::ChangedSince`] if it does not have the value that the change starts from.
    pub fn apply(&self, change: &Change) -> Result<Applied, Error> {
        let _lock = self.lock()?;
        let now = change.target.read()?;
        if now == change.to {
            return Ok(Applied::AlreadySo);
        }
        if now != change.from {
            return Err(changed_since(change, now, &change.from));
        }
        let entries = self.read()?;
        if entries.is_empty() {
            // Entries of completed changes are no longer needed.
            self.file.set_len(0).map_err(|error| self.failed(&error))?;
        }
        let id = entries.iter().map(|entry| entry.id).max().unwrap_or(0) + 1;
        let at_s = now_s();
        let change = &Change { memo: change.target.memo()?, ..change.clone() };
        let entry = Entry { id, at_s, boot: boot(), change: change.clone() };
        self.append(&Line::Begin(entry.clone()))?;
        let made = change.target.write(&change.to, None).and_then(|()| {
            let now = change.target.read()?;
            if now == change.to {
                return Ok(());
            }
            change.target.write(&change.from, change.memo.as_deref())?;
            Err(Error::NotTaken { what: change.target.shown(), now, wanted: change.to.clone() })
        });
        if let Err(error) = made {
            // Back to the old value, or `undo` will say that it is not.
            if change.target.read().is_ok_and(|now| now == change.from) {
                self.append(&Line::End { id, how: "not made".to_owned() })?;
            }
            return Err(error);
        }
        Ok(Applied::Made(entry))
    }

    /// Reverts a change, unless someone else has changed the value since.
    /// [`Error::ChangedSince`] in that case; the change stays in the journal.
    /// # Errors
    /// [`Error::ChangedSince`] in that case; the change stays in the journal.
    pub fn undo(&self, entry: &Entry) -> Result<Undone, Error> {
        let _lock = self.lock()?;
        let change = &entry.change;
        let undone = if entry.boot == boot() {
            match change.target.read() {
                Err(Error::Gone(what)) => Undone::Gone(what),
                Err(error) => return Err(error),
                Ok(now) if now == change.from => {
                    if change.memo.is_some() {
                        // A setting that depends on it may have changed.
                        change.target.write(&change.from, change.memo.as_deref())?;
                    }
                    Undone::AsBefore
                }
                Ok(now) if now != change.to && !change.target.is_passing(&now, &change.from, &change.to) => {
                    return Err(changed_since(change, now, &change.to));
                }
                Ok(_) => {
                    change.target.write(&change.from, change.memo.as_deref())?;
                    let now = change.target.read()?;
                    if now != change.from {
                        let (what, wanted) = (change.target.shown(), change.from.clone());
                        return Err(Error::NotTaken { what, now, wanted });
                    }
                    Undone::TakenBack
                }
            }
        } else {
            Undone::Restarted
        };
        self.append(&Line::End { id: entry.id, how: undone.to_string() })?;
        Ok(undone)
    }

    /// Forgets a change that someone else has changed since, or that is to stay.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn forget(&self, entry: &Entry) -> Result<(), Error> {
        let _lock = self.lock()?;
        self.append(&Line::End { id: entry.id, how: "forgotten".to_owned() })
    }

    fn read(&self) -> Result<Vec<Entry>, Error> {
        let mut text = Vec::new();
        let mut file = &self.file;
        file.seek(SeekFrom::Start(0))
            .and_then(|_| file.read_to_end(&mut text))
            .map_err(|error| self.failed(&error))?;
        let mut entries: Vec<Entry> = Vec::new();
        for line in text.split(|byte| *byte == b'\n').filter(|line| line.len() <= LINE_MAX) {
            match serde_json::from_slice(line) {
                Ok(Line::Begin(entry)) => entries.push(entry),
                Ok(Line::End { id, .. }) => entries.retain(|entry| entry.id != id),
                // Cut off by a crash: the change was not made.
                Err(_) => {}
            }
        }
        entries.reverse();
        Ok(entries)
    }

    /// The line is on disk when this returns.
    fn append(&self, line: &Line) -> Result<(), Error> {
        let text = serde_json::to_string(line).map_err(|error| self.failed(&error.into()))?;
        if text.len() > LINE_MAX {
            // It could not be read back.
            return Err(self.failed(&std::io::ErrorKind::InvalidData.into()));
        }
        // Begins with a line feed: the previous line may have been cut off.
        let bytes = format!("\n{text}\n");
        let mut file = &self.file;
        file.write_all(bytes.as_bytes()).and_then(|()| file.sync_data()).map_err(|error| self.failed(&error))
    }

    fn lock(&self) -> Result<Lock<'_>, Error> {
        flock(&self.file, FlockOperation::LockExclusive).map_err(|errno| self.failed(&errno.into()))?;
        Ok(Lock(&self.file))
    }

    fn failed(&self, error: &std::io::Error) -> Error {
        Error::Journal { path: self.path.display().to_string(), why: error.to_string() }
    }
}

fn changed_since(change: &Change, now: String, expected: &str) -> Error {
    Error::ChangedSince { what: change.target.shown(), now, expected: expected.to_owned() }
}

/// The kernel releases it when the process ends, in whatever way.
struct Lock<'a>(&'a File);

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        let _ = flock(self.0, FlockOperation::Unlock);
    }
}

/// Changes with every boot.
fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|id| id.trim().to_owned())
        .unwrap_or_default()
}

#[expect(clippy::disallowed_methods, reason = "when a change was made, for people who read the list")]
fn now_s() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::Target;

    fn begin(id: u64) -> Line {
        let target = Target::Sysctl { namespace: 1, cookie: 0, key: "net.ipv4.tcp_sack".to_owned() };
        let (fix, from, to) = ("test".to_owned(), "1".to_owned(), "0".to_owned());
        let change = Change { fix, target, from, to, memo: None };
        Line::Begin(Entry { id, at_s: 0, boot: "another".to_owned(), change })
    }

    #[test]
    fn a_line_that_a_crash_cut_off_is_no_line_and_spoils_none() {
        let place = tempfile::tempdir().unwrap();
        let journal = Journal::open_in(place.path()).unwrap();
        journal.append(&begin(1)).unwrap();
        let mut cut = serde_json::to_string(&begin(2)).unwrap();
        cut.truncate(cut.len() / 2);
        (&journal.file).write_all(cut.as_bytes()).unwrap();
        journal.append(&begin(3)).unwrap();
        journal.append(&Line::End { id: 1, how: String::new() }).unwrap();
        let again = Journal::open_in(place.path()).unwrap();
        let numbers: Vec<u64> = again.entries().unwrap().iter().map(|entry| entry.id).collect();
        assert_eq!(numbers, [3]);
    }

    #[test]
    fn what_could_not_be_read_again_is_not_begun() {
        let place = tempfile::tempdir().unwrap();
        let journal = Journal::open_in(place.path()).unwrap();
        let Line::Begin(mut entry) = begin(1) else { unreachable!() };
        entry.change.from = "x".repeat(LINE_MAX);
        assert!(matches!(journal.append(&Line::Begin(entry)), Err(Error::Journal { .. })));
        assert!(journal.entries().unwrap().is_empty());
    }

    #[test]
    fn a_namespace_of_the_same_number_is_not_the_one_that_was_changed() {
        use tcpwhy_sockets::namespace::Namespace;
        let own = Namespace::own().unwrap();
        let key = "net.ipv4.tcp_sack";
        let target = Target::sysctl(&own, key);
        let Target::Sysctl { namespace, cookie, .. } = target else { unreachable!() };
        assert!(target.read().is_ok());
        let later = Target::Sysctl { namespace, cookie: cookie + 1, key: key.to_owned() };
        // A kernel without cookies cannot tell.
        assert_eq!(matches!(later.read(), Err(Error::Gone(_))), cookie != 0);
    }

    #[test]
    fn a_restart_took_back_what_was_changed_before_it() {
        let place = tempfile::tempdir().unwrap();
        let journal = Journal::open_in(place.path()).unwrap();
        journal.append(&begin(7)).unwrap();
        let entries = journal.entries().unwrap();
        assert_eq!(journal.undo(&entries[0]).unwrap(), Undone::Restarted);
        assert!(journal.entries().unwrap().is_empty());
    }

    #[test]
    fn a_file_that_has_another_name_or_can_be_written_by_others_is_refused() {
        let place = tempfile::tempdir().unwrap();
        drop(Journal::open_in(place.path()).unwrap());
        let file = place.path().join("tcpwhy/journal");
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::hard_link(&file, place.path().join("other")).unwrap();
        assert!(Journal::open_in(place.path()).unwrap_err().to_string().contains("no other hard link"));
    }
}
