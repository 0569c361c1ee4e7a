//! How much memory may inputs take together that are read at the same time?
//!
//! A decompressor keeps a window of its output, up to 128 MB, and a pcapng block is read whole.
//! Each of many inputs may need that at once. An input that finds no room ends there, and says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Bytes left for all inputs of a run.
#[derive(Clone, Debug)]
pub(super) struct Room(Arc<Left>);

#[derive(Debug)]
struct Left {
    bytes: AtomicUsize,
    /// No input may take more than it needs.
    is_tight: AtomicBool,
}

/// A part of the room, given back on drop.
#[derive(Debug)]
pub(super) struct Held {
    bytes: usize,
    room: Room,
}

impl Room {
    pub(super) fn new(bytes: usize) -> Self {
        Self(Arc::new(Left { bytes: AtomicUsize::new(bytes), is_tight: AtomicBool::new(false) }))
    }

    /// Sets the free room; nothing of it is held.
    pub(super) fn set(&self, bytes: usize, is_tight: bool) {
        self.0.bytes.store(bytes, Ordering::Relaxed);
        self.0.is_tight.store(is_tight, Ordering::Relaxed);
    }

    pub(super) fn is_tight(&self) -> bool {
        self.0.is_tight.load(Ordering::Relaxed)
    }

    /// Takes this many bytes, if they are free.
    pub(super) fn take(&self, bytes: usize) -> Option<Held> {
        let less = |left: usize| left.checked_sub(bytes);
        let taken = self.0.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        taken.is_ok().then(|| Held { bytes, room: self.clone() })
    }
}

impl Held {
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.room.0.bytes.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

/// The window that the first frame of a compressed input needs, as far as its first bytes tell.
pub(super) fn window(head: &[u8]) -> Option<usize> {
    match head {
        // A skippable frame before it (RFC 8878, 3.1.2), as pzstd writes them.
        [0x50..=0x5f, 0x2a, 0x4d, 0x18, a, b, c, d, rest @ ..] => {
            let len = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
            window(rest.get(len..)?)
        }
        [0x28, 0xb5, 0x2f, 0xfd, rest @ ..] => zstd(rest),
        [0xfd, b'7', b'z', b'X', b'Z', 0, _, _, _, _, _, _, block @ ..] => xz(block),
        _ => None,
    }
}

/// RFC 8878, 3.1.1.1.
fn zstd(header: &[u8]) -> Option<usize> {
    let (descriptor, rest) = header.split_first()?;
    if descriptor & 0x20 == 0 {
        let window = *rest.first()?;
        let base = 1usize << (10 + u32::from(window >> 3));
        return Some(base + base / 8 * usize::from(window & 7));
    }
    // A single segment: all of it is kept.
    let rest = rest.get([0, 1, 2, 4][usize::from(descriptor & 3)]..)?;
    let size = |bytes: &[u8]| bytes.iter().rev().fold(0usize, |n, byte| n << 8 | usize::from(*byte));
    match descriptor >> 6 {
        0 => Some(size(rest.get(..1)?)),
        1 => Some(size(rest.get(..2)?) + 256),
        2 => Some(size(rest.get(..4)?)),
        _ => Some(size(rest.get(..8)?)),
    }
}

/// The XZ file format 1.2.1, 3.1 and 5.3.1: the size of LZMA2's dictionary.
fn xz(block: &[u8]) -> Option<usize> {
    let (&[_, flags], mut rest) = block.split_first_chunk()?;
    for present in [0x40, 0x80] {
        if flags & present != 0 {
            let last = rest.iter().take(9).position(|byte| byte & 0x80 == 0)?;
            rest = &rest[last + 1..];
        }
    }
    // Another filter comes before it.
    let &[0x21, 1, bits, ..] = rest else { return None };
    let bits = u32::from(bits & 0x3f);
    (bits <= 36).then(|| (2 | (bits as usize & 1)) << (bits / 2 + 11))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `zstd -19`, `zstd --long=27`, a single segment of 300 bytes, `xz -6`, `xz -9` and pzstd
    /// write them.
    #[test]
    fn the_first_bytes_say_how_large_the_window_is() {
        let zstd = [0x28, 0xb5, 0x2f, 0xfd];
        let pzstd = [0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 9, 9, 0, 0];
        let xz = [0xfd, b'7', b'z', b'X', b'Z', 0];
        assert_eq!(window(&[&zstd[..], &[0x04, 0x68]].concat()), Some(8 << 20));
        assert_eq!(window(&[&zstd[..], &[0x04, 0x88]].concat()), Some(128 << 20));
        assert_eq!(window(&[&zstd[..], &[0x64, 44, 0]].concat()), Some(300));
        assert_eq!(window(&[&pzstd[..], &zstd, &[0x04, 0x58]].concat()), Some(2 << 20));
        for (bits, mb) in [(0x16, 8), (0x1c, 64)] {
            let head = [&xz[..], &[0, 4, 0xe6, 0xd6, 0xb4, 0x46], &[2, 0, 0x21, 1, bits]].concat();
            assert_eq!(window(&head), Some(mb << 20), "{bits}");
        }
        assert_eq!(window(&[0x1f, 0x8b, 8, 0]), None);
    }

    #[test]
    fn what_is_given_back_is_there_again() {
        let room = Room::new(100);
        let held = room.take(60).expect("there is room");
        assert!(room.take(60).is_none());
        drop(held);
        assert!(room.take(100).is_some());
    }
}
