//! What may a program still do that has opened its inputs and is about to parse a stranger's bytes?
//!
//! It may read and write what is open, allocate memory, start threads, and ask for the time.
//! Nothing else: no file is opened, created or removed, no socket created, no program started, no
//! other process touched. Landlock enforces this for files, sockets and signals (Linux 5.13 and
//! later), seccomp for system calls; each covers for the other if that is missing.
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

/// Number of parts of a complete sandbox: Landlock and seccomp.
pub const PARTS: usize = 2;

/// A part of the sandbox that is not available.
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

/// Restricts the calling thread and those that it starts later, permanently. Call it before the
/// first thread starts, and after everything is open. Applies whatever is available and returns the
/// rest; on systems other than Linux that is all of it.
pub fn restrict() -> Vec<Shortfall> {
    parts(None, Extra::Nothing)
}

/// The same, but connections to sockets that already listen may be accepted and answered. No other
/// socket is created.
pub fn restrict_to_serving() -> Vec<Shortfall> {
    parts(None, Extra::Serving)
}

/// The same, but files below `folder` may still be opened for reading, and no others: for more
/// files than can be open. Links that lead outside cannot be followed. Without Landlock, all files
/// can be read.
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
        // Landlock first: the system call filter does not allow it afterwards.
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
