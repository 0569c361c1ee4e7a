//! Which network namespaces exist, and how is one examined? By a thread that moves into it:
//! everything that it opens belongs there.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::net::{AddressFamily, SocketType, socket};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::owner::{name_of, processes};
use crate::sys::long_option;

/// include/uapi/asm-generic/socket.h, Linux 5.14.
const SO_NETNS_COOKIE: i32 = 71;

/// A network namespace.
#[derive(Debug)]
pub struct Namespace {
    file: File,
    /// Its number, as shown by `lsns -t net` and `readlink /proc/PID/ns/net`.
    pub inode: u64,
    /// A process in it, with its command's name; `None` if only a name keeps it alive.
    pub process: Option<(u32, String)>,
    /// Its name in `ip netns`.
    pub name: Option<String>,
}

impl Namespace {
    /// The calling thread's namespace.
    ///
    /// # Errors
    /// There is no /proc.
    pub fn own() -> io::Result<Self> {
        Self::open(Path::new("/proc/thread-self/ns/net"))
    }

    /// A process's namespace.
    ///
    /// # Errors
    /// The process is gone, or may not be accessed.
    pub fn of_process(pid: u32) -> io::Result<Self> {
        let found = Self::open(&PathBuf::from(format!("/proc/{pid}/ns/net")))?;
        Ok(Self { process: Some((pid, name_of(pid))), ..found })
    }

    /// A namespace named by `ip netns`.
    ///
    /// # Errors
    /// There is no such name.
    pub fn named(name: &str) -> io::Result<Self> {
        let found = Self::open(&Path::new(NAMED).join(name))?;
        Ok(Self { name: Some(name.to_owned()), ..found })
    }

    fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let inode = file.metadata()?.ino();
        Ok(Self { file, inode, process: None, name: None })
    }

    /// All that have processes or names: first the calling thread's, then by smallest pid. Those of
    /// processes that may not be accessed are missing.
    pub fn all() -> Vec<Self> {
        let mut all: Vec<Self> = Self::own().into_iter().collect();
        let add = |found: io::Result<Self>, all: &mut Vec<Self>| {
            let Ok(found) = found else { return };
            match all.iter_mut().find(|other| other.inode == found.inode) {
                Some(known) => {
                    known.process = known.process.take().or(found.process);
                    known.name = known.name.take().or(found.name);
                }
                None => all.push(found),
            }
        };
        for pid in processes() {
            add(Self::of_process(pid), &mut all);
        }
        for entry in std::fs::read_dir(NAMED).into_iter().flatten().flatten() {
            if let Some(name) = entry.file_name().to_str() {
                add(Self::named(name), &mut all);
            }
        }
        all
    }

    /// Distinguishes it from all others since boot, including later ones with the same number;
    /// `None` if it may not be entered, or before Linux 5.14.
    pub fn cookie(&self) -> Option<u64> {
        let cookie = || {
            let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
            long_option(&socket, libc::SOL_SOCKET, SO_NETNS_COOKIE)
        };
        self.enter(cookie).and_then(|cookie| cookie).ok()
    }

    /// Runs `work` on a separate thread inside the namespace.
    ///
    /// # Errors
    /// This process may not enter it: that needs CAP_SYS_ADMIN there.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                // Entering the own one needs no rights.
                if Self::own()?.inode != self.inode {
                    move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network))?;
                }
                Ok(work())
            });
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

/// The directory of `ip netns` names.
const NAMED: &str = "/run/netns";
