//! Where do the bytes come from: a file, a pipe or standard input, plain or compressed?

use std::fs::File;
use std::io::{self, BufReader, IsTerminal, Read};
#[cfg(unix)]
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;

use super::lz4::Lz4;
use super::placed::Placed;
use super::room::{Held, Room, window};
use super::stop::{self, Waiting};
use super::trouble::Failure;

/// How an input is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Nothing.
    None,
    /// gzip, one or more members.
    Gzip,
    /// Zstandard, one or more frames.
    Zstd,
    /// xz, one or more streams.
    Xz,
    /// LZ4, one or more frames.
    Lz4,
}

impl Compression {
    /// By the first bytes: file names can be wrong, and pipes have none.
    fn detect(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, ..] => Self::Gzip,
            // A frame, or a skippable frame before the first (RFC 8878, 3.1).
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            [0xfd, b'7', b'z', b'X', ..] => Self::Xz,
            [0x04, 0x22, 0x4d, 0x18, ..] => Self::Lz4,
            _ => Self::None,
        }
    }

    /// The name in reports; empty for plain files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Xz => "xz",
            Self::Lz4 => "lz4",
        }
    }
}

/// Holds a frame's header after a short skippable frame, or a stream's header and its first
/// block's.
const HEAD_LEN: usize = 40;

/// The stored bytes, counted.
#[derive(Debug)]
struct Stored {
    /// Read ahead to recognise the compression and what it needs, then given again.
    head: [u8; HEAD_LEN],
    head_len: usize,
    head_given: usize,
    from: From,
    /// Bytes given so far.
    count: u64,
}

#[derive(Debug)]
enum From {
    File(Placed),
    #[cfg(not(unix))]
    Stdin(io::Stdin),
    /// Standard input, or a file that is not regular.
    Pipe(File, Waiting),
}

impl Read for From {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(buf),
            #[cfg(not(unix))]
            Self::Stdin(stdin) => stdin.lock().read(buf),
            Self::Pipe(file, waiting) => {
                #[cfg(unix)]
                if !waiting.until_readable(file.as_fd()) {
                    return Ok(0);
                }
                file.read(buf)
            }
        }
    }
}

impl Stored {
    fn new(mut from: From) -> io::Result<Self> {
        let (mut head, mut head_len) = ([0; HEAD_LEN], 0);
        // A pipe may send a capture's header and nothing more for long: that is enough.
        while head_len < head.len()
            && (head_len < 4 || Compression::detect(&head[..head_len]) != Compression::None)
        {
            match from.read(&mut head[head_len..]) {
                Ok(0) => break,
                Ok(n) => head_len += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self { head, head_len, head_given: 0, from, count: 0 })
    }
}

impl Read for Stored {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let head = &self.head[self.head_given..self.head_len];
        let n = if head.is_empty() {
            self.from.read(buf)?
        } else {
            let n = head.len().min(buf.len());
            buf[..n].copy_from_slice(&head[..n]);
            self.head_given += n;
            n
        };
        self.count += n as u64;
        Ok(n)
    }
}

/// The bytes of a capture, decompressed.
pub(super) struct Source {
    unpack: Unpack,
    /// For what decompression needs, and how much of that it holds.
    room: Room,
    held: Option<Held>,
    /// Bytes that decompression turned out to need.
    pub(super) needs: usize,
    /// Stored bytes, if known in advance.
    pub(super) stored_len: Option<u64>,
}

enum Unpack {
    /// Not read yet; the compression is detected on the first read.
    Unseen(Option<From>),
    Plain(Stored),
    Gzip(Box<MultiGzDecoder<BufReader<Stored>>>),
    Zstd(zstd::Decoder<'static, BufReader<Stored>>),
    Xz(Box<XzReader<BufReader<Stored>>>),
    Lz4(Box<Lz4<Stored>>),
}

impl Unpack {
    /// Where the bytes come from, once they have been looked at.
    fn stored(&self) -> Option<&Stored> {
        match self {
            Self::Unseen(_) => None,
            Self::Plain(stored) => Some(stored),
            Self::Gzip(decoder) => Some(decoder.get_ref().get_ref()),
            Self::Zstd(decoder) => Some(decoder.get_ref().get_ref()),
            Self::Xz(decoder) => Some(decoder.inner().get_ref()),
            Self::Lz4(decoder) => Some(decoder.get_ref()),
        }
    }
}

/// Compressed bytes are read in chunks of this size.
pub(super) const STORED_BUFFER_LEN: usize = 128 << 10;
/// The largest window accepted: `zstd --long=27` needs this much, `xz -9` half of it.
const WINDOW_MAX: usize = 128 << 20;
/// Later frames of the same input may have larger windows than the first; this is the largest of
/// the levels that need no extra option (`zstd -19`, `xz -6`).
const WINDOW_USUAL: usize = 8 << 20;
/// Memory for decompression besides its window.
const BESIDES: usize = 1 << 20;
/// Both, for an input that may have such frames.
pub(super) const UNPACKING_USUAL: usize = WINDOW_USUAL + BESIDES;

impl Source {
    pub(super) fn open(path: &Path, room: &Room) -> Result<Self, Failure> {
        if path.as_os_str() == "-" {
            let stdin = io::stdin();
            if stdin.is_terminal() {
                return Err(Failure::NotACapture(
                    "standard input is a terminal; pipe a capture in: `tcpdump -U -w - | tcpwhy read -`",
                ));
            }
            // Uses a descriptor of its own: the standard library's stdin may have buffered bytes,
            // which `poll` would not see.
            #[cfg(unix)]
            let from = From::Pipe(File::from(stdin.as_fd().try_clone_to_owned()?), Waiting::default());
            #[cfg(not(unix))]
            let from = From::Stdin(stdin);
            return Ok(Self::unseen(from, None, room));
        }
        Self::of(path, File::open(path).map_err(Failure::from_open)?, room)
    }

    /// A file already opened under this name.
    pub(super) fn of(path: &Path, file: File, room: &Room) -> Result<Self, Failure> {
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(Failure::Directory(PathBuf::from(path)));
        }
        if metadata.is_file() {
            return Ok(Self::unseen(From::File(Placed::new(file)), Some(metadata.len()), room));
        }
        Ok(Self::unseen(From::Pipe(file, Waiting::default()), None, room))
    }

    /// Nothing is read before it is asked for: by then rights have been given up.
    fn unseen(from: From, stored_len: Option<u64>, room: &Room) -> Self {
        Self { unpack: Unpack::Unseen(Some(from)), room: room.clone(), held: None, needs: 0, stored_len }
    }

    /// Looks at the first bytes, if not done yet, to detect the compression. Creating the gzip
    /// decompressor reads the whole gzip header.
    fn look(&mut self) -> io::Result<()> {
        let Unpack::Unseen(from) = &mut self.unpack else { return Ok(()) };
        // None if an earlier look failed.
        let Some(from) = from.take() else { return Ok(()) };
        let stored = Stored::new(from)?;
        let head = &stored.head[..stored.head_len];
        let compression = Compression::detect(head);
        let window = self.take_window(compression, window(head).unwrap_or(WINDOW_USUAL))?;
        let buffered = |stored| BufReader::with_capacity(STORED_BUFFER_LEN, stored);
        self.unpack = match compression {
            Compression::None => Unpack::Plain(stored),
            Compression::Gzip => Unpack::Gzip(Box::new(MultiGzDecoder::new(buffered(stored)))),
            Compression::Zstd => {
                let mut decoder = zstd::Decoder::with_buffer(buffered(stored))?;
                decoder.window_log_max(window.max(1 << 10).next_power_of_two().ilog2())?;
                Unpack::Zstd(decoder)
            }
            Compression::Xz => {
                let kib = ((window + BESIDES) >> 10) as u32;
                Unpack::Xz(Box::new(XzReader::new_mem_limit(buffered(stored), true, kib)))
            }
            Compression::Lz4 => Unpack::Lz4(Box::new(Lz4::new(buffered(stored)))),
        };
        Ok(())
    }

    /// Takes room for a window of this size, or for the usual one if that is larger and there is
    /// enough. Returns how large the window may be.
    fn take_window(&mut self, compression: Compression, window: usize) -> io::Result<usize> {
        self.held = None;
        if !matches!(compression, Compression::Zstd | Compression::Xz) {
            return Ok(0);
        }
        // A window larger than the maximum is refused by the decompressor.
        let window = window.clamp(1 << 10, WINDOW_MAX);
        self.needs = window + BESIDES;
        let usual = if self.room.is_tight() { window } else { window.max(WINDOW_USUAL) };
        let taken =
            [usual, window].into_iter().find_map(|window| Some((window, self.room.take(window + BESIDES)?)));
        let Some((window, held)) = taken else {
            let mb = window.div_ceil(1_000_000);
            let why = format!(
                "unpacking it needs {mb} MB, more than --memory leaves beside the other inputs; raise it, unpack the file \
                 first, or give fewer files at a time"
            );
            return Err(io::Error::other(why));
        };
        self.held = Some(held);
        Ok(window)
    }

    /// What decompression needs at most besides its buffers, as far as it can be known in advance.
    pub(super) fn unpacking_needs(&mut self) -> usize {
        // If this fails, reading will report it.
        let _ = self.look();
        self.needs
    }

    /// Bytes of the room that it holds.
    pub(super) fn held_bytes(&self) -> usize {
        self.held.as_ref().map_or(0, Held::bytes)
    }

    /// Takes room for a buffer of this many bytes.
    pub(super) fn take_room(&self, bytes: usize) -> io::Result<Held> {
        self.room.take(bytes).ok_or_else(|| {
            let mb = bytes.div_ceil(1_000_000);
            io::Error::other(format!(
                "a block of it needs {mb} MB, more than --memory leaves beside the other inputs"
            ))
        })
    }

    /// The descriptor of the input.
    #[cfg(unix)]
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self.from()? {
            From::File(placed) => Some(placed.file().as_fd()),
            From::Pipe(file, _) => Some(file.as_fd()),
        }
    }

    fn from(&self) -> Option<&From> {
        match &self.unpack {
            Unpack::Unseen(from) => from.as_ref(),
            unpack => unpack.stored().map(|stored| &stored.from),
        }
    }

    /// Whether the input ends here because the user asked: a file at once, a pipe when it is empty.
    pub(super) fn is_stopped(&self) -> bool {
        match self.from() {
            Some(From::Pipe(_, waiting)) => waiting.gave_up(),
            _ => stop::is_asked(),
        }
    }

    /// Rewinds to the start; only regular files can.
    pub(super) fn rewind(&mut self) -> io::Result<()> {
        if let Some(From::File(file)) = self.from() {
            let file = file.again()?;
            let needs = self.needs;
            *self = Self::unseen(From::File(file), self.stored_len, &self.room);
            self.needs = needs;
        }
        Ok(())
    }

    /// The same file from its start.
    pub(super) fn duplicate(&self) -> Option<Self> {
        let Some(From::File(file)) = self.from() else { return None };
        Some(Self::unseen(From::File(file.again().ok()?), self.stored_len, &self.room))
    }

    pub(super) fn can_rewind(&self) -> bool {
        self.stored_len.is_some()
    }

    /// The compression, as far as it is known by now.
    pub(super) fn compression(&self) -> Compression {
        match self.unpack {
            Unpack::Unseen(_) | Unpack::Plain(_) => Compression::None,
            Unpack::Gzip(_) => Compression::Gzip,
            Unpack::Zstd(_) => Compression::Zstd,
            Unpack::Xz(_) => Compression::Xz,
            Unpack::Lz4(_) => Compression::Lz4,
        }
    }

    /// Continues at another offset of an uncompressed file.
    pub(super) fn jump(&mut self, offset: u64) {
        if let Unpack::Plain(stored) = &mut self.unpack
            && let From::File(file) = &mut stored.from
        {
            file.go_to(offset);
            (stored.head_given, stored.count) = (stored.head_len, offset);
        }
    }

    /// The length of a file that can be searched: regular and uncompressed.
    ///
    /// # Errors
    /// Its first bytes cannot be read.
    pub(super) fn searchable_len(&mut self) -> io::Result<Option<u64>> {
        self.look()?;
        Ok(self.stored_len.filter(|_| self.compression() == Compression::None))
    }

    /// Stored (compressed) bytes read so far.
    pub(super) fn stored_read(&self) -> u64 {
        self.unpack.stored().map_or(0, |stored| stored.count)
    }
}

impl Read for Source {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.look()?;
        match &mut self.unpack {
            Unpack::Unseen(_) => Ok(0),
            Unpack::Plain(stored) => stored.read(buf),
            Unpack::Gzip(decoder) => decoder.read(buf),
            Unpack::Zstd(decoder) => decoder.read(buf),
            Unpack::Xz(decoder) => decoder.read(buf),
            Unpack::Lz4(decoder) => decoder.read(buf),
        }
    }
}
