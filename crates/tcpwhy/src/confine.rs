//! What is given up before a byte of a stranger's capture is read? Rights, inherited descriptors,
//! and the memory that no honest capture needs.

#[cfg(unix)]
use std::os::fd::BorrowedFd;
#[cfg(target_os = "linux")]
use std::{fs::File, os::fd::AsFd as _, path::Path};

use tcpwhy::input::Inputs;
#[cfg(target_os = "linux")]
use tcpwhy_core::Options;
use tcpwhy_sandbox::{PARTS, Shortfall};

use crate::cli::{InputArgs, Sandbox};
use crate::output::complain;

/// What stays open besides the inputs.
#[cfg(unix)]
pub(crate) type Kept<'a> = BorrowedFd<'a>;
#[cfg(not(unix))]
pub(crate) type Kept<'a> = &'a ();

/// Gives up all of it, as far as the arguments ask for. Call it when everything is open and before
/// the first thread starts. It reports what is missing; it returns whether reading may go on.
pub(crate) fn confine(
    args: &InputArgs,
    inputs: &[&Inputs],
    keep: &[Kept<'_>],
    threads: usize,
    serves: bool,
) -> bool {
    let required = args.sandbox() == Sandbox::Require;
    if args.sandbox() == Sandbox::Off || (!cfg!(target_os = "linux") && !required) {
        return true;
    }
    let mut shortfalls = before_reading(args, inputs, keep, threads);
    let parts = if serves { tcpwhy_sandbox::restrict_to_serving() } else { tcpwhy_sandbox::restrict() };
    // Where none of the sandbox is available, a warning is not enough.
    let fatal = parts.len() == PARTS || (required && !(parts.is_empty() && shortfalls.is_empty()));
    shortfalls.extend(parts);
    say(&shortfalls, fatal);
    if fatal {
        complain("refusing to read without the sandbox; use --no-sandbox to read anyway");
    }
    !fatal
}

/// The same for other people's recordings: from here on only files below `from` can be opened, and
/// only for reading; `out` is written.
#[cfg(target_os = "linux")]
pub(crate) fn confine_to(from: &Path, out: Option<&File>) -> anyhow::Result<()> {
    let ours: Vec<_> = out.into_iter().map(|file| file.as_fd()).collect();
    let mut shortfalls = resources(&ours, memory(Options::default().memory as u64, 1));
    let parts = tcpwhy_sandbox::restrict_to_reading(from);
    let fatal = parts.len() == PARTS;
    shortfalls.extend(parts);
    say(&shortfalls, fatal);
    anyhow::ensure!(!fatal, "untrusted captures are not read without the sandbox");
    Ok(())
}

fn say(shortfalls: &[Shortfall], fatal: bool) {
    for shortfall in shortfalls {
        if fatal {
            complain(&shortfall.to_string());
        } else {
            complain(&format!("warning: {shortfall}; continuing without it"));
        }
    }
}

#[cfg(target_os = "linux")]
fn before_reading(args: &InputArgs, inputs: &[&Inputs], keep: &[Kept<'_>], threads: usize) -> Vec<Shortfall> {
    let ours: Vec<_> =
        inputs.iter().flat_map(|inputs| inputs.descriptors()).chain(keep.iter().copied()).collect();
    resources(&ours, memory(args.memory as u64, threads))
}

#[cfg(not(target_os = "linux"))]
fn before_reading(
    _args: &InputArgs,
    _inputs: &[&Inputs],
    _keep: &[Kept<'_>],
    _threads: usize,
) -> Vec<Shortfall> {
    Vec::new()
}

/// Closes inherited descriptors, and limits memory.
#[cfg(target_os = "linux")]
fn resources(ours: &[BorrowedFd<'_>], memory: u64) -> Vec<Shortfall> {
    // SAFETY: no thread has been started, and these are all that this process has opened and not closed.
    #[expect(unsafe_code, reason = "descriptors of whoever started us have no owner here")]
    unsafe {
        tcpwhy_sandbox::close_others(ours);
    }
    let limited = tcpwhy_sandbox::limit_memory(memory);
    let shortfall = |error: std::io::Error| Shortfall { what: "the memory limit", why: error.to_string() };
    limited.map_err(shortfall).err().into_iter().collect()
}

/// The last line of defence: twice the limit that the analysis keeps by itself, for memory that its
/// books do not count and for reserved room that is never used, plus what the program itself takes
/// and reads.
#[cfg(target_os = "linux")]
fn memory(allowed: u64, threads: usize) -> u64 {
    allowed.saturating_mul(2).saturating_add(OWN + HEAP as u64).saturating_add(THREAD * threads as u64)
}

/// Addresses reserved for the heap: with 500,000 connections, what does not lie outside takes less.
#[cfg(target_os = "linux")]
pub(crate) const HEAP: usize = 128 << 20;

#[cfg(target_os = "linux")]
const OWN: u64 = 512 << 20;
/// Addresses that a thread reserves: its stack, and a heap of its own (malloc/arena.c, HEAP_MAX_SIZE, twice for alignment).
#[cfg(target_os = "linux")]
const THREAD: u64 = 160 << 20;
