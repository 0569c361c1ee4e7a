//! What may a program still do that has opened its inputs and is about to parse bytes of a stranger?
//!
//! Read and write what is open, get memory, start threads, ask for the time. Nothing else: no file is opened, made or
//! removed, no socket made, no program started, no other process touched. Landlock says so about files, sockets and
//! signals (Linux 5.13 and later), seccomp about system calls; each stands where the other is missing.
use std::fmt;
use std::path::Path;

#[cfg(target_os = "linux")]
mod landlocked;
#[cfg(target_os = "linux")]
mod resources;
#[cfg(target_os = "linux")]
mod system_calls;

#[cfg(target_os = "linux")]
pub use resources::{
    allow_many_files, close_others, give_gaps_back, give_memory_back, limit_memory, memory_there,
};

/// Of how many parts a whole sandbox is: Landlock and seccomp.
pub const PARTS: usize = 2;

/// A part of the sandbox that could not be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortfall {
    /// The part.
    pub what: &'static str,
    /// Why not.
    pub why: String,
}

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not available: {}", self.what, self.why)
    }
}

/// Restricts the calling thread and those that it starts later, for good. Call it before the first thread starts, and
/// after everything is open. Returns what could not be had, after doing what could; elsewhere than on Linux that is all of it.
pub fn restrict() -> Vec<Shortfall> {
    parts(None, Extra::Nothing)
}

/// The same, but connections to sockets that already listen may be taken and answered. No other socket is made.
pub fn restrict_to_serving() -> Vec<Shortfall> {
    parts(None, Extra::Serving)
}

/// The same, but files below `folder` may still be opened for reading, and no others: for more files than can be open. Links that
/// lead out of it lead nowhere. Without Landlock, all files can be read.
pub fn restrict_to_reading(folder: &Path) -> Vec<Shortfall> {
    parts(Some(folder), Extra::Opening)
}

/// What may be done besides reading what is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extra {
    Nothing,
    Opening,
    Serving,
}

fn parts(readable: Option<&Path>, extra: Extra) -> Vec<Shortfall> {
    #[cfg(target_os = "linux")]
    {
        // Landlock first: the filter of system calls does not let it in any more.
        let parts = [
            landlocked::restrict(readable).map_err(|why| Shortfall { what: "Landlock", why }),
            system_calls::restrict(extra).map_err(|why| Shortfall { what: "seccomp", why }),
        ];
        parts.into_iter().filter_map(Result::err).collect()
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (readable, extra);
    #[cfg(not(target_os = "linux"))]
    ["Landlock", "seccomp"].map(|what| Shortfall { what, why: "it needs Linux".to_owned() }).into()
}
