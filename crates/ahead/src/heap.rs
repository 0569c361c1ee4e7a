//! In which pages is the heap?
//!
//! Tens of thousands of connections are spread over tens of megabytes. A processor remembers where some
//! hundreds of pages are; of 4 KB, these are a few megabytes, and for each other one it reads tables
//! first, in a virtual machine those of the host as well. One large page has 2 MB. Linux gives them to
//! programs that ask (Documentation/admin-guide/mm/transhuge.rst), and asks for zeroes once instead of
//! 512 times.

/// Reserves so many bytes of addresses for the heap, and asks for large pages there. They are taken from
/// the front as memory is needed; what is freed at the end goes back once it is more than that. Call it
/// on the main thread, whose heap it is, before anything large is allocated and before a limit of addresses
/// is set. Other threads have small heaps of their own besides. Without effect where the system has none.
pub fn use_large_pages(bytes: usize) {
    // What is reserved here stays at the end of the heap when it is freed, from where glibc takes what
    // its lists of free pieces do not have (malloc/malloc.c, `top`).
    set(libc::M_TRIM_THRESHOLD, libc::c_int::try_from(bytes + MORE).unwrap_or(libc::c_int::MAX));
    set(libc::M_MMAP_MAX, 0);
    let mut reserved: Vec<u8> = Vec::new();
    if reserved.try_reserve_exact(bytes).is_ok() {
        advise(std::hint::black_box(&mut reserved).spare_capacity_mut());
    }
    drop(reserved);
    set(libc::M_MMAP_MAX, MAPPED_MAX);
}

/// What the end of the heap may have besides before it goes back.
const MORE: usize = 1 << 20;
/// The largest pages that a kernel is built with, in bytes.
const PAGE_MAX: usize = 64 << 10;
/// The number of large pieces that may lie outside the heap unless set otherwise (mallopt(3)).
const MAPPED_MAX: libc::c_int = 65_536;

fn set(parameter: libc::c_int, value: libc::c_int) {
    // SAFETY: two numbers.
    let _ = unsafe { libc::mallopt(parameter, value) };
}

/// Asks for large pages in this memory.
fn advise(memory: &mut [std::mem::MaybeUninit<u8>]) {
    let before = memory.as_ptr().align_offset(PAGE_MAX);
    let Some(pages) = memory.get_mut(before..) else { return };
    let len = pages.len() / PAGE_MAX * PAGE_MAX;
    // SAFETY: the pages belong to this slice, and this advice changes nothing that a program sees
    // (madvise(2), MADV_HUGEPAGE).
    let _ = unsafe { libc::madvise(pages.as_mut_ptr().cast(), len, libc::MADV_HUGEPAGE) };
}
