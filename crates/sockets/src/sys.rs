//! How are socket options read that no safe wrapper supports?
#![expect(unsafe_code, reason = "getsockopt of options that rustix does not have")]

use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

/// An option whose value is an int.
pub(crate) fn int_option(socket: &impl AsFd, level: i32, option: i32) -> io::Result<i32> {
    let mut value: libc::c_int = 0;
    let mut length = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into a live int.
    let result = unsafe {
        libc::getsockopt(socket.as_fd().as_raw_fd(), level, option, (&raw mut value).cast(), &raw mut length)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(value) }
}

/// An option whose value has 64 bits.
pub(crate) fn long_option(socket: &impl AsFd, level: i32, option: i32) -> io::Result<u64> {
    let mut value: u64 = 0;
    let mut length = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into a live u64.
    let result = unsafe {
        libc::getsockopt(socket.as_fd().as_raw_fd(), level, option, (&raw mut value).cast(), &raw mut length)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(value) }
}
