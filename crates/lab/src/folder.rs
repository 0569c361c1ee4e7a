//! How are recordings left in a directory that the user named, without anyone else deciding what is
//! overwritten? Files are created anew, never written through whatever has their name; the document
//! that marks a recording as complete appears whole or not at all.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, open, openat, renameat, unlinkat};

/// An open directory for recordings: its files are reached by descriptor, not by path.
#[derive(Debug)]
pub struct Folder {
    fd: File,
    path: PathBuf,
}

impl Folder {
    /// Creates it if necessary.
    ///
    /// # Errors
    /// It cannot be created; or it, or a directory or link on the way to it, was put there by
    /// another user in a place that everyone can write to.
    pub fn make(path: &Path) -> io::Result<Self> {
        refuse_planted(path)?;
        std::fs::create_dir_all(path)?;
        let fd = File::open(path)?;
        if !fd.metadata()?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        // Check again what was created meanwhile.
        refuse_planted(path)?;
        Ok(Self { fd, path: path.to_owned() })
    }

    /// Opens an existing one to read its content. Only the path itself may contain links.
    ///
    /// # Errors
    /// Those of the system.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { fd: File::open(path)?, path: path.to_owned() })
    }

    /// The content of a file in one of its subdirectories, if neither is a link or a device, and if
    /// the file has at most `most` bytes.
    ///
    /// # Errors
    /// Those of the system.
    pub fn read_below(&self, folder: &str, name: &str, most: u64) -> io::Result<Vec<u8>> {
        let flags = READING | OFlags::NOFOLLOW;
        let folder = openat(&self.fd, folder, flags | OFlags::DIRECTORY, Mode::empty())?;
        content(&regular(openat(&folder, name, flags, Mode::empty())?.into())?, most)
    }

    /// The path of one of its files.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Creates a file. An existing file of that name is removed first; if it was a link, its target
    /// is left alone.
    ///
    /// # Errors
    /// Those of the system.
    pub fn create(&self, name: &str) -> io::Result<File> {
        self.remove(name)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.fd, name, flags, Mode::from_raw_mode(0o666))?.into())
    }

    /// Removes a file, if it exists.
    ///
    /// # Errors
    /// Those of the system.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes a file that appears only when it is complete: with a full disk there is none, rather
    /// than a part.
    ///
    /// # Errors
    /// Those of the system.
    pub fn write_whole(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let part = format!("{name}.part");
        let write = || {
            let mut file = self.create(&part)?;
            file.write_all(content)?;
            // Some file systems only report now that there is no room.
            file.sync_all()?;
            Ok(renameat(&self.fd, &part, &self.fd, name)?)
        };
        write().inspect_err(|_| {
            let _ = self.remove(&part);
        })
    }
}

/// A name may belong to a pipe: do not wait for its writer.
const READING: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// Opens another user's file for reading. Anything but a regular file, such as a pipe without a
/// writer or a device, is an error at once.
///
/// # Errors
/// Those of the system.
pub fn open_file(path: &Path) -> io::Result<File> {
    regular(open(path, READING, Mode::empty())?.into())
}

/// The content of another user's file, if it has at most `most` bytes.
///
/// # Errors
/// As [`open_file`].
pub fn read_file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    content(&open_file(path)?, most)
}

fn regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

fn content(file: &File, most: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    file.take(most + 1).read_to_end(&mut content)?;
    if content.len() as u64 > most { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(content) }
}

/// In a directory that everyone can write to, such as /tmp, entries of other users must not be part
/// of a path. Root's may.
fn refuse_planted(path: &Path) -> io::Result<()> {
    let path = std::path::absolute(path)?;
    let us = rustix::process::geteuid().as_raw();
    for step in path.ancestors() {
        let (Ok(there), Some(parent)) = (step.symlink_metadata(), step.parent()) else { continue };
        let shared = parent.metadata().is_ok_and(|parent| parent.mode() & 0o002 != 0);
        if shared && there.uid() != us && there.uid() != 0 {
            let (what, who) = (step.display(), there.uid());
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!(
                    "{what} belongs to another user ({who}) in a world-writable directory; name another folder"
                ),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;
    use crate::private::Private;

    #[test]
    fn a_planted_link_is_replaced_and_what_it_led_to_stays() {
        let private = Private::make("tcpwhy-test-folder-").unwrap();
        let (victim, path) = (private.path().join("victim"), private.path().join("kept"));
        fs::write(&victim, "precious").unwrap();
        fs::create_dir(&path).unwrap();
        symlink(&victim, path.join("one")).unwrap();
        fs::hard_link(&victim, path.join("two")).unwrap();
        symlink(&victim, path.join("two.part")).unwrap();
        let folder = Folder::make(&path).unwrap();
        folder.create("one").unwrap().write_all(b"new").unwrap();
        folder.write_whole("two", b"new").unwrap();
        assert_eq!(fs::read_to_string(victim).unwrap(), "precious");
        assert!(!path.join("one").is_symlink());
        assert_eq!(fs::read_to_string(path.join("two")).unwrap(), "new");
        assert_eq!(fs::read_dir(path).unwrap().count(), 2, "no part is left");
    }

    #[test]
    fn what_is_copied_from_others_is_a_file_in_a_folder_of_theirs() {
        let private = Private::make("tcpwhy-test-others-").unwrap();
        let path = private.path().join("theirs");
        fs::create_dir_all(path.join("one")).unwrap();
        fs::write(path.join("one/file"), "theirs").unwrap();
        fs::write(private.path().join("secret"), "ours").unwrap();
        symlink("../../secret", path.join("one/link")).unwrap();
        symlink("..", path.join("up")).unwrap();
        let folder = Folder::open(&path).unwrap();
        assert_eq!(folder.read_below("one", "file", 6).unwrap(), b"theirs");
        rustix::fs::mkfifoat(rustix::fs::CWD, path.join("one/pipe"), Mode::RWXU).unwrap();
        for (below, name) in
            [("one", "link"), ("up", "secret"), ("one", "."), ("one", "none"), ("one", "pipe")]
        {
            folder.read_below(below, name, 1_000).unwrap_err();
        }
        // Whatever length it claims, no more is read.
        File::options().write(true).open(path.join("one/file")).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(folder.read_below("one", "file", 6).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read_file(&path.join("one/file"), 6).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(open_file(&path.join("one/pipe")).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn what_does_not_fit_is_not_there_at_all() {
        let private = Private::make("tcpwhy-test-whole-").unwrap();
        let folder = Folder::make(private.path()).unwrap();
        folder.write_whole("truth", b"the first").unwrap();
        // A directory in the way simulates a full disk: the second of three steps fails.
        fs::create_dir(private.path().join("truth.part")).unwrap();
        folder.write_whole("truth", b"the second").unwrap_err();
        assert_eq!(fs::read_to_string(private.path().join("truth")).unwrap(), "the first");
    }

    #[test]
    fn a_folder_that_another_user_planted_among_temporary_files_is_refused() {
        let private = Private::make("tcpwhy-test-planted-").unwrap();
        let shared = private.path().join("tmp");
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
        for name in ["folder", "home"] {
            fs::create_dir(shared.join(name)).unwrap();
        }
        symlink(private.path(), shared.join("link")).unwrap();
        Folder::make(&shared.join("own/deeper")).unwrap();
        if std::os::unix::fs::lchown(shared.join("folder"), Some(65_534), None)
            .and_then(|()| std::os::unix::fs::lchown(shared.join("link"), Some(65_534), None))
            .is_err()
        {
            return crate::test_support::skip(
                "a_folder_that_another_user_planted",
                &"only root gives files away",
            );
        }
        for path in ["folder", "folder/deeper", "link", "link/deeper"] {
            let error = Folder::make(&shared.join(path)).unwrap_err();
            assert!(error.to_string().contains("belongs to another user"), "{path}: {error}");
        }
        assert!(!private.path().join("deeper").exists());
        // Another user's, but where not everyone can write: like `sudo` in a user's home.
        let home = shared.join("home");
        std::os::unix::fs::lchown(&home, Some(0), None).unwrap();
        fs::create_dir(home.join("theirs")).unwrap();
        std::os::unix::fs::lchown(home.join("theirs"), Some(65_534), None).unwrap();
        Folder::make(&home.join("theirs")).unwrap();
    }
}
