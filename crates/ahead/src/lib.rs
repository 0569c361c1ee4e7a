//! What will be read in a moment, and is far away now?
//!
//! Whoever reads from memory waits for it; whoever says beforehand what will be read works on something else meanwhile. Processors have an
//! instruction for that, which has no safe form in Rust. It reads nothing, changes nothing but caches, and never faults (Intel's manual,
//! volume 2, PREFETCHh), whatever the address is. That is all that is unsafe here, so that the engine need not be.

#![allow(unsafe_code, reason = "this is what the crate is for")]

/// Bytes of a cache line.
const LINE: usize = 64;

/// Has all of an item fetched into the second-level cache, where the processor can be told to; elsewhere nothing happens.
#[inline]
pub fn fetch<T>(item: &T) {
    let first = std::ptr::from_ref(item).cast::<i8>();
    let mut at = 0;
    while at < size_of::<T>() {
        fetch_line(first.wrapping_add(at));
        at += LINE;
    }
}

/// The same of so many bytes from here on, of four lines at most, whether they are there or not.
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
    // SAFETY: every x86-64 has it, and it does nothing that the program can see.
    unsafe { _mm_prefetch::<_MM_HINT_T1>(at) };
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn fetch_line(_: *const i8) {}
