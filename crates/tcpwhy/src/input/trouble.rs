//! What went wrong with an input, in words that say what to do next?

use std::fmt;
use std::io;
use std::path::PathBuf;

use tcpwhy_wire::capture::{Damage, DamageKind};

/// Why an input gives nothing at all.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// No such file.
    #[error("no such file")]
    NotFound,
    /// Not permitted.
    #[error("permission denied; run as the user who recorded it, or make it readable with `sudo chmod a+r`")]
    NotPermitted,
    /// It is a directory.
    #[error("is a directory; name the captures in it: {}", .0.join("*.pcap*").display())]
    Directory(PathBuf),
    /// It is empty.
    #[error(
        "the capture is empty; if tcpdump is still running, stop it or use `tcpdump -U` to flush packets to the file"
    )]
    Empty,
    /// Not even a complete file header.
    #[error("truncated: {has} bytes, but the file header alone takes {needs}")]
    HeaderCutShort {
        /// Bytes of the header, as far as that is known.
        needs: u64,
        /// Bytes that are there.
        has: u64,
    },
    /// Too many open files, in this process or on the system.
    #[error(
        "too many open files; read fewer at a time, merge them with mergecap, or raise the limit (`ulimit -Hn`)"
    )]
    TooManyOpen,
    /// A compression that is not supported.
    #[error("compressed with {name}; pipe it in: `{command} FILE | tcpwhy read -`")]
    Compressed {
        /// The compression's name.
        name: &'static str,
        /// What decompresses to standard output.
        command: &'static str,
    },
    /// Another file format.
    #[error("not a pcap or pcapng capture: {}", .0)]
    NotACapture(&'static str),
    /// Reading failed before the first packet.
    #[error("cannot read: {0}")]
    Io(#[from] io::Error),
}

/// Why the window does not select any part of the inputs.
#[derive(Debug, thiserror::Error)]
pub enum WindowError {
    /// Nothing can be in it.
    #[error("the time window is empty: --to is before --from")]
    Empty,
    /// A time before the end of an input whose end cannot be read.
    #[error("{}: {why}", path.display())]
    NoEnd {
        /// The input.
        path: PathBuf,
        /// Why not.
        why: io::Error,
    },
}

impl Failure {
    pub(super) fn from_open(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound,
            io::ErrorKind::PermissionDenied => Self::NotPermitted,
            // EMFILE and ENFILE, which have no `ErrorKind`; the numbers are the same on all Unix
            // systems.
            _ if cfg!(unix) && matches!(error.raw_os_error(), Some(23 | 24)) => Self::TooManyOpen,
            _ => Self::Io(error),
        }
    }

    /// What the first bytes identify, if known.
    pub(super) fn from_magic(magic: [u8; 4]) -> Self {
        let compressed = |name, command| Self::Compressed { name, command };
        match magic {
            [0xfd, b'7', b'z', b'X'] => compressed("xz inside another compression", "xz -dc"),
            [b'B', b'Z', b'h', _] => compressed("bzip2", "bzip2 -dc"),
            [0x04, 0x22, 0x4d, 0x18] => compressed("lz4 inside another compression", "lz4 -dc"),
            [b'P', b'K', 3, 4] => compressed("zip", "unzip -p"),
            [0x1f, 0x8b, ..] => compressed("gzip, twice", "gzip -dc"),
            [0x28, 0xb5, 0x2f, 0xfd] => compressed("zstd inside another compression", "zstd -dc"),
            [b's', b'n', b'o', b'o'] => {
                Self::NotACapture("it is a snoop file; convert it with `editcap -F pcapng FILE out.pcapng`")
            }
            [b'G', b'M', b'B', b'U'] => Self::NotACapture(
                "it is a Microsoft Network Monitor file; convert it with `editcap -F pcapng FILE out.pcapng`",
            ),
            [b'R', b'T', b'S', b'S'] => Self::NotACapture(
                "it is a Network Monitor 1 file; convert it with `editcap -F pcapng FILE out.pcapng`",
            ),
            [a, b, c, d]
                if [a, b, c, d].iter().all(|byte| matches!(byte, b'\t' | b'\n' | b'\r' | 32..=126)) =>
            {
                Self::NotACapture("it is text; tcpwhy reads files written by `tcpdump -w FILE` or Wireshark")
            }
            _ => Self::NotACapture(
                "unknown format; if Wireshark can open it, convert it with `editcap -F pcapng FILE out.pcapng`",
            ),
        }
    }
}

/// A problem in an input that was readable otherwise. Offsets count decompressed bytes from the
/// start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The capture itself is damaged.
    Damage(Damage),
    /// The compressed data end too early.
    CompressedCutShort {
        /// Where.
        offset: u64,
    },
    /// Reading or decompressing failed.
    Unreadable {
        /// Where.
        offset: u64,
        /// What the library or the system says.
        why: String,
    },
    /// The file became shorter while it was read.
    Shrunk {
        /// Length when it was opened.
        had: u64,
        /// Bytes that could be read.
        has: u64,
    },
    /// The compressed data unpack to more than the limit allows.
    Bomb {
        /// Where reading stopped.
        offset: u64,
        /// Compressed bytes up to there.
        compressed: u64,
    },
}

impl Trouble {
    /// Reading ended at `offset` with an error.
    pub(super) fn from_read(error: &io::Error, offset: u64) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::CompressedCutShort { offset },
            _ => Self::Unreadable { offset, why: error.to_string() },
        }
    }

    /// Offset in decompressed bytes.
    pub fn offset(&self) -> u64 {
        match self {
            Self::Damage(damage) => damage.offset,
            Self::CompressedCutShort { offset }
            | Self::Unreadable { offset, .. }
            | Self::Bomb { offset, .. }
            | Self::Shrunk { has: offset, .. } => *offset,
        }
    }

    /// Whether the end of the input is missing.
    pub fn is_truncation(&self) -> bool {
        match self {
            Self::Damage(damage) => matches!(damage.what, DamageKind::CutShort { .. }),
            Self::CompressedCutShort { .. } | Self::Shrunk { .. } | Self::Bomb { .. } => true,
            Self::Unreadable { .. } => false,
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damage(damage) => damage.fmt(f),
            Self::CompressedCutShort { offset } => {
                write!(f, "at byte {offset}: the compressed data is truncated")
            }
            Self::Unreadable { offset, why } => write!(f, "at byte {offset}: {why}"),
            Self::Shrunk { had, has } => {
                write!(f, "at byte {has}: the file shrank from {had} bytes while it was being read")
            }
            Self::Bomb { offset, compressed } => write!(
                f,
                "at byte {offset}: {compressed} compressed bytes exceed the decompression limit; \
                 if you trust the file, raise --max-ratio"
            ),
        }
    }
}
