//! Which network namespaces are there, and how is one asked? By a thread that moves into it: everything it opens belongs there.

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
    /// Its number, as `lsns -t net` and `readlink /proc/PID/ns/net` show it.
    pub inode: u64,
    /// A process that lives in it, with its command's name; none for one that only a name holds.
    pub process: Option<(u32, String)>,
    /// The name that `ip netns` gives it.
    pub name: Option<String>,
}

impl Namespace {
    /// The calling thread's.
    ///
    /// # Errors
    /// There is no /proc.
    pub fn own() -> io::Result<Self> {
        Self::open(Path::new("/proc/thread-self/ns/net"))
    }

    /// That of a process.
    ///
    /// # Errors
    /// It is gone, or may not be looked into.
    pub fn of_process(pid: u32) -> io::Result<Self> {
        let found = Self::open(&PathBuf::from(format!("/proc/{pid}/ns/net")))?;
        Ok(Self { process: Some((pid, name_of(pid))), ..found })
    }

    /// One that `ip netns` gave a name.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn named(name: &str) -> io::Result<Self> {
        let found = Self::open(&Path::new(NAMED).join(name))?;
        Ok(Self { name: Some(name.to_owned()), ..found })
    }

    fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let inode = file.metadata()?.ino();
        Ok(Self { file, inode, process: None, name: None })
    }

    /// All that processes live in or that have names: first the calling thread's, then by the smallest pid in them. Those of
    /// processes that may not be looked into are missing.
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

    /// Tells it from all others of this boot, also from later ones of the same number; `None` where it may not be entered, or before Linux
    /// 5.14.
    pub fn cookie(&self) -> Option<u64> {
        let cookie = || {
            let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
            long_option(&socket, libc::SOL_SOCKET, SO_NETNS_COOKIE)
        };
        self.enter(cookie).and_then(|cookie| cookie).ok()
    }

    /// Runs `work` on a thread of its own inside the namespace.
    ///
    /// # Errors
    /// This process may not enter it: that takes CAP_SYS_ADMIN there.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                // The own one is entered without any right.
                if Self::own()?.inode != self.inode {
                    move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network))?;
                }
                Ok(work())
            });
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

/// Where `ip netns` keeps its names.
const NAMED: &str = "/run/netns";
