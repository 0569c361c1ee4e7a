//! Where can a laboratory that runs as root put files without another user having prepared the
//! place? In a directory that it created itself, with an unpredictable name, and that it reaches by
//! its descriptor only.
//!
//! It is locked while in use. Locks belong to the kernel, not to a namespace: so directories left
//! over by earlier runs can be told from those in use, even if another container shares the
//! temporary directory.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags, flock, fstat, mkdirat, open, openat, unlinkat};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

/// A directory of mode 0700 among the temporary files. Dropping it removes it and its content.
#[derive(Debug)]
pub struct Private {
    /// The directory that contains it.
    place: OwnedFd,
    name: String,
    folder: OwnedFd,
    path: PathBuf,
}

/// An attacker who knew the names could keep us trying forever.
const TRIES: u32 = 16;
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Private {
    /// Creates one, whose name begins with `prefix`.
    ///
    /// # Errors
    /// There is no directory for temporary files, or nothing can be created there.
    pub fn make(prefix: &str) -> io::Result<Self> {
        for _ in 0..TRIES {
            let place = place()?;
            let name = format!("{prefix}{:032x}", u128::from_ne_bytes(random()?));
            match mkdirat(&place, &name, Mode::RWXU) {
                Ok(()) => {}
                Err(Errno::EXIST) => continue,
                Err(error) => return Err(error.into()),
            }
            // Until it is locked, it looks like a leftover.
            match openat(&place, &name, FOLDER, Mode::empty()) {
                Ok(folder) if is_ours(&folder)? && lock(&folder) && is_there(&folder)? => {
                    let path = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
                    return Ok(Self { place, name, folder, path });
                }
                Ok(_) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// A path for this process, which leads to the directory by its descriptor, wherever its name
    /// leads meanwhile.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it and its content.
    pub fn remove(&self) {
        clear(self.folder.as_fd());
        // If another process removed it first, the result is the same.
        let _ = unlinkat(&self.place, &self.name, AtFlags::REMOVEDIR);
    }

    /// Removes leftovers of earlier runs with this prefix: directories of this user that no other
    /// user could write into, and that no living process holds. Nothing else is touched, whatever
    /// its name.
    pub fn sweep(prefix: &str) {
        let Ok(place) = place() else { return };
        each(place.as_fd(), |name| {
            let ours = name.to_str().is_ok_and(|name| {
                name.strip_prefix(prefix).is_some_and(|rest| rest.len() == 32 && rest.bytes().all(is_hex))
            });
            if !ours {
                return;
            }
            if let Ok(folder) = openat(&place, name, FOLDER, Mode::empty())
                && is_ours(&folder).is_ok_and(|ours| ours)
                && lock(&folder)
            {
                clear(folder.as_fd());
                let _ = unlinkat(&place, name, AtFlags::REMOVEDIR);
            }
        });
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        self.remove();
    }
}

/// The directory for temporary files.
fn place() -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(open(std::env::temp_dir(), flags, Mode::empty())?)
}

fn random() -> io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    // A request this small is served at once (getrandom(2)).
    let given = getrandom(&mut bytes, GetRandomFlags::empty())?;
    if given == bytes.len() { Ok(bytes) } else { Err(io::ErrorKind::Interrupted.into()) }
}

const fn is_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

/// Whether it belongs to this user, and others have no rights to it.
fn is_ours(folder: &OwnedFd) -> io::Result<bool> {
    let stat = fstat(folder)?;
    Ok(stat.st_uid == rustix::process::geteuid().as_raw() && stat.st_mode & 0o777 == 0o700)
}

fn is_there(folder: &OwnedFd) -> io::Result<bool> {
    Ok(fstat(folder)?.st_nlink > 0)
}

fn lock(folder: &OwnedFd) -> bool {
    flock(folder, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// Removes the content of a directory. Links are removed, not followed.
fn clear(folder: BorrowedFd<'_>) {
    each(folder, |name| {
        if unlinkat(folder, name, AtFlags::empty()).is_ok() {
            return;
        }
        if let Ok(below) = openat(folder, name, FOLDER, Mode::empty()) {
            clear(below.as_fd());
            let _ = unlinkat(folder, name, AtFlags::REMOVEDIR);
        }
    });
}

/// Visits the entries of a directory.
fn each(folder: BorrowedFd<'_>, mut visit: impl FnMut(&CStr)) {
    let Ok(entries) = Dir::read_from(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if name != c"." && name != c".." {
            visit(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn it_is_new_private_and_gone_afterwards() {
        let one = Private::make("tcpwhy-test-new-").unwrap();
        let two = Private::make("tcpwhy-test-new-").unwrap();
        let real = fs::canonicalize(one.path()).unwrap();
        assert_ne!(real, fs::canonicalize(two.path()).unwrap());
        assert_eq!(fs::metadata(&real).unwrap().mode() & 0o777, 0o700);
        let outside = two.path().join("outside");
        fs::write(&outside, "stays").unwrap();
        fs::create_dir_all(one.path().join("deep/er")).unwrap();
        symlink(&outside, one.path().join("deep/er/link")).unwrap();
        symlink(fs::canonicalize(two.path()).unwrap(), one.path().join("folder")).unwrap();
        drop(one);
        assert!(!real.exists());
        assert_eq!(fs::read_to_string(outside).unwrap(), "stays", "links are not followed");
    }

    #[test]
    fn files_go_where_the_descriptor_leads_whatever_takes_the_name() {
        let private = Private::make("tcpwhy-test-moved-").unwrap();
        let real = fs::canonicalize(private.path()).unwrap();
        let moved = real.with_extension("moved");
        fs::rename(&real, &moved).unwrap();
        fs::create_dir(&real).unwrap();
        fs::write(private.path().join("file"), "ours").unwrap();
        assert!(moved.join("file").exists() && !real.join("file").exists());
        fs::write(real.join("other"), "not ours").unwrap();
        drop(private);
        assert!(real.join("other").exists(), "what has content and is not ours stays");
        fs::remove_dir_all(real).unwrap();
        fs::remove_dir_all(moved).unwrap();
    }

    #[test]
    fn sweeping_takes_what_was_left_and_nothing_that_is_used_shared_or_planted() {
        let prefix = "tcpwhy-test-sweep-";
        let used = Private::make(prefix).unwrap();
        fs::write(used.path().join("file"), "used").unwrap();
        let folder = |digit: &str, mode| {
            let path = std::env::temp_dir().join(format!("{prefix}{}", digit.repeat(32)));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("file"), "left").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let (left, shared) = (folder("a", 0o700), folder("b", 0o777));
        let target = folder("z", 0o700);
        let planted = std::env::temp_dir().join(format!("{prefix}{}", "c".repeat(32)));
        let _ = fs::remove_file(&planted);
        symlink(&target, &planted).unwrap();
        Private::sweep(prefix);
        assert!(!left.exists());
        assert!(used.path().join("file").exists() && shared.join("file").exists());
        assert!(planted.is_symlink() && target.join("file").exists());
        fs::remove_file(planted).unwrap();
        fs::remove_dir_all(shared).unwrap();
        fs::remove_dir_all(target).unwrap();
    }
}
