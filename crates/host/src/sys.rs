//! How is `TCP_INFO` read? It is the one socket option that no safe wrapper supports.
#![expect(
    unsafe_code,
    reason = "getsockopt(TCP_INFO) into bytes of our own: the structures of the C libraries are too short"
)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Fills `room` from the front; returns the part that the kernel wrote.
pub(crate) fn tcp_info<'a>(socket: BorrowedFd<'_>, room: &'a mut [u8]) -> io::Result<&'a [u8]> {
    let mut length = room.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into the live slice and says how many.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            room.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(&room[..length as usize]) }
}
