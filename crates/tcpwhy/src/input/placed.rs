//! Where in a regular file is this reader?
//!
//! The system keeps one file position for all duplicates of a descriptor. Each reader here has its
//! own, so that several threads can read one file that may not be opened again.

use std::fs::File;
use std::io::{self, Read};

/// A file, and where its next byte is read.
#[derive(Debug)]
pub(super) struct Placed {
    file: File,
    at: u64,
}

impl Placed {
    /// At its start.
    pub(super) fn new(file: File) -> Self {
        Self { file, at: 0 }
    }

    /// The same file once more, at its start.
    pub(super) fn again(&self) -> io::Result<Self> {
        Ok(Self::new(self.file.try_clone()?))
    }

    pub(super) fn go_to(&mut self, offset: u64) {
        self.at = offset;
    }

    #[cfg(unix)]
    pub(super) fn file(&self) -> &File {
        &self.file
    }
}

impl Read for Placed {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = read_at(&self.file, buf, self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

#[cfg(unix)]
fn read_at(file: &File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buf, offset)
}

#[cfg(windows)]
fn read_at(file: &File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buf, offset)
}
