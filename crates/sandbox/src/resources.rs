//! How much of the machine may a reader use? Limited files and memory, and no inherited
//! descriptors.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises this process's limit of open files to the one of the administrator: the initial limit is
/// often lower, for the sake of programs that use select(2).
pub fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    // If that is refused, the limit stays.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Large pieces of memory return to the system as soon as they are freed, by whatever thread;
/// otherwise each thread keeps its own, and memory that has moved between threads exists several
/// times.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "nothing safe speaks to the C library's allocator")]
pub fn give_memory_back() {
    // SAFETY: two numbers.
    let _ = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE) };
}

/// Other C libraries' allocators decide themselves.
#[cfg(not(target_env = "gnu"))]
pub fn give_memory_back() {}

/// Free gaps between small pieces return to the system now: the next allocations may have other
/// sizes, or be another thread's.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "nothing safe speaks to the C library's allocator")]
pub fn give_gaps_back() {
    // SAFETY: a number.
    let _ = unsafe { libc::malloc_trim(0) };
}

/// Other C libraries' allocators decide themselves.
#[cfg(not(target_env = "gnu"))]
pub fn give_gaps_back() {}

/// Less than the size of a chunk of connections (`crates/core/src/epoch/slab.rs`).
#[cfg(target_env = "gnu")]
const LARGE: libc::c_int = 256 << 10;

/// Permanently limits this process's address space to this many bytes. It is the last line of
/// defence: if every other memory limit has failed, the program ends instead of the machine.
///
/// # Errors
/// The system refuses it.
pub fn limit_memory(bytes: u64) -> io::Result<()> {
    let limit = getrlimit(Resource::As);
    let least = |there: Option<u64>| Some(there.map_or(bytes, |there| there.min(bytes)));
    let limit = Rlimit { current: least(limit.current), maximum: least(limit.maximum) };
    Ok(setrlimit(Resource::As, limit)?)
}

/// The machine's memory, in bytes.
pub fn memory_there() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram.saturating_mul(u64::from(info.mem_unit))
}

/// Closes every descriptor but the standard ones and `keep`.
///
/// # Safety
/// No other descriptor belongs to anything in this process, and no other thread opens one
/// meanwhile.
#[expect(
    unsafe_code,
    reason = "descriptors of whoever started us have no owner here; nothing safe closes them"
)]
pub unsafe fn close_others(keep: &[BorrowedFd<'_>]) {
    let mut kept: Vec<u32> = keep.iter().map(|fd| fd.as_raw_fd().unsigned_abs()).collect();
    kept.sort_unstable();
    let mut first = 3;
    for fd in kept.into_iter().filter(|fd| *fd >= 3).chain([u32::MAX]) {
        if first < fd {
            let last = if fd == u32::MAX { fd } else { fd - 1 };
            // SAFETY: numbers only; the caller is responsible for what is closed. Linux before 5.9
            // lacks the call, and they stay open.
            let _ = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        }
        first = fd.saturating_add(1);
    }
}
