//! What is given up before a byte of a stranger is looked at? Rights, whatever whoever started this process left open, and the
//! memory that no honest capture needs.

#[cfg(target_os = "linux")]
use std::{fs::File, os::fd::AsFd as _, os::fd::BorrowedFd, path::Path};

use tcpwhy::input::Inputs;
use tcpwhy_sandbox::{PARTS, Shortfall};

use crate::cli::{ReadArgs, Sandbox};
use crate::output::complain;

/// Gives it all up, as far as the arguments ask for it. Call it when everything is open and before the first thread starts. What
/// is missing is said; says whether reading may go on.
pub(crate) fn confine(args: &ReadArgs, inputs: &[&Inputs], threads: usize) -> bool {
    let required = args.sandbox() == Sandbox::Require;
    if args.sandbox() == Sandbox::Off || (!cfg!(target_os = "linux") && !required) {
        return true;
    }
    let mut shortfalls = before_reading(args, inputs, threads);
    let parts = tcpwhy_sandbox::restrict();
    // Where none of it is to be had, a warning is not enough.
    let fatal = parts.len() == PARTS || (required && !(parts.is_empty() && shortfalls.is_empty()));
    shortfalls.extend(parts);
    say(&shortfalls, fatal);
    if fatal {
        complain(
            "nothing was read: it would have been outside of the sandbox; --no-sandbox reads all the same",
        );
    }
    !fatal
}

/// The same for recordings of others: from here on only files below `from` can be opened, and only to be read; `out` is written.
#[cfg(target_os = "linux")]
pub(crate) fn confine_to(from: &Path, out: Option<&File>) -> anyhow::Result<()> {
    let ours: Vec<_> = out.into_iter().map(|file| file.as_fd()).collect();
    let mut shortfalls = resources(&ours, memory(1));
    let parts = tcpwhy_sandbox::restrict_to_reading(from);
    let fatal = parts.len() == PARTS;
    shortfalls.extend(parts);
    say(&shortfalls, fatal);
    anyhow::ensure!(!fatal, "recordings of others are not read outside of the sandbox");
    Ok(())
}

fn say(shortfalls: &[Shortfall], fatal: bool) {
    for shortfall in shortfalls {
        if fatal {
            complain(&shortfall.to_string());
        } else {
            complain(&format!("warning: {shortfall}; going on without it"));
        }
    }
}

#[cfg(target_os = "linux")]
fn before_reading(args: &ReadArgs, inputs: &[&Inputs], threads: usize) -> Vec<Shortfall> {
    let ours: Vec<_> = inputs.iter().flat_map(|inputs| inputs.descriptors()).collect();
    // Whoever asks for more connections gets more.
    let connections = (args.max_connections.get() as u64).saturating_mul(CONNECTION);
    resources(&ours, memory(threads).saturating_add(connections))
}

#[cfg(not(target_os = "linux"))]
fn before_reading(_args: &ReadArgs, _inputs: &[&Inputs], _threads: usize) -> Vec<Shortfall> {
    Vec::new()
}

/// Descriptors of others, and memory.
#[cfg(target_os = "linux")]
fn resources(ours: &[BorrowedFd<'_>], memory: u64) -> Vec<Shortfall> {
    // SAFETY: no thread has been started, and these are all that this process has opened and not closed.
    #[expect(unsafe_code, reason = "descriptors of whoever started us have no owner here")]
    unsafe {
        tcpwhy_sandbox::close_others(ours);
    }
    let limited = tcpwhy_sandbox::limit_memory(memory);
    let shortfall = |error: std::io::Error| Shortfall { what: "a limit of memory", why: error.to_string() };
    limited.map_err(shortfall).err().into_iter().collect()
}

/// The last line: three quarters of the machine's memory, within bounds. The analysis's own bounds are far below.
#[cfg(target_os = "linux")]
fn memory(threads: usize) -> u64 {
    let machine = (tcpwhy_sandbox::memory_there() / 4 * 3).clamp(MEMORY_LEAST, MEMORY_MOST);
    machine.saturating_add(THREAD * threads as u64)
}

#[cfg(target_os = "linux")]
const MEMORY_LEAST: u64 = 1 << 30;
#[cfg(target_os = "linux")]
const MEMORY_MOST: u64 = 8 << 30;
/// What an open connection may take at most.
#[cfg(target_os = "linux")]
const CONNECTION: u64 = 16 << 10;
/// Addresses that a thread reserves: its stack, and a heap of its own (malloc/arena.c, HEAP_MAX_SIZE, twice for alignment).
#[cfg(target_os = "linux")]
const THREAD: u64 = 160 << 20;
