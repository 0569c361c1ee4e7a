//! Which memory will be read soon, and is not in the cache yet?
//!
//! A read from memory stalls; a prefetch lets the processor work on something else meanwhile.
//! Processors have an instruction for that, which has no safe form in Rust. It reads nothing,
//! changes only caches, and never faults (Intel's manual, volume 2, PREFETCHh), whatever the
//! address is. This crate has it so that the engine needs no unsafe code.
//!
//! Where memory is, a processor finds out page by page, and remembers few of them: `heap`.

#![allow(unsafe_code, reason = "this is what the crate is for")]

#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub mod heap;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Prefetches all of an item into the second-level cache, if the processor supports it; otherwise
/// does nothing.
#[inline]
pub fn fetch<T>(item: &T) {
    let first = std::ptr::from_ref(item).cast::<i8>();
    let mut at = 0;
    while at < size_of::<T>() {
        fetch_line(first.wrapping_add(at));
        at += LINE;
    }
}

/// The same for this many bytes from here on, at most four lines, whether they exist or not.
#[inline]
pub fn fetch_bytes(bytes: &[u8], from: usize, len: usize) {
    let first = bytes.as_ptr().wrapping_add(from).cast::<i8>();
    for line in 0..4 {
        if line * LINE >= len {
            return;
        }
        fetch_line(first.wrapping_add(line * LINE));
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn fetch_line(at: *const i8) {
    use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
    // SAFETY: every x86-64 has it, and it has no effect visible to the program.
    unsafe { _mm_prefetch::<_MM_HINT_T1>(at) };
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn fetch_line(_: *const i8) {}
