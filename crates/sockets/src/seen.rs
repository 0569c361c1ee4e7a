//! What does an answer of sock_diag show before it is fully parsed? Most sockets of a host are
//! idle: a few words of the answer show that.

use netlink_packet_core::NlasIterator;
use netlink_packet_sock_diag::constants::{INET_DIAG_CONG, INET_DIAG_INFO, INET_DIAG_SKMEMINFO};

use crate::socket::{Socket, State};

/// INET_DIAG_CGROUP_ID, Linux 5.8.
const CGROUP_ID: u16 = 21;
/// `struct inet_diag_msg`, and offsets in it.
pub(crate) const HEADER_BYTES: usize = 72;
const STATE: usize = 1;
const TIMER: usize = 2;
const COOKIE: usize = 44;
const RECEIVE_QUEUE: usize = 56;
const SEND_QUEUE: usize = 60;
const INODE: usize = 68;
/// Values of `idiag_timer` without a timer, or with a keep-alive timer.
const NO_TIMER: u8 = 0;
const KEEP_ALIVE: u8 = 2;

/// An answer about one socket; fields are read in place.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    pub(crate) payload: &'a [u8],
    /// `struct tcp_info`, as far as this kernel has it.
    pub(crate) info: &'a [u8],
    pub(crate) memory: &'a [u8],
    pub(crate) congestion: &'a [u8],
    pub(crate) cgroup: &'a [u8],
}

impl<'a> Seen<'a> {
    /// `None` if it is not such an answer.
    pub(crate) fn of(payload: &'a [u8]) -> Option<Self> {
        let mut seen = Self { payload, info: &[], memory: &[], congestion: &[], cgroup: &[] };
        for attribute in NlasIterator::new(payload.get(HEADER_BYTES..)?) {
            let attribute = attribute.ok()?;
            let value = attribute.into_inner().get(ATTRIBUTE_BYTES..usize::from(attribute.length()))?;
            match attribute.kind() {
                INET_DIAG_INFO => seen.info = value,
                INET_DIAG_SKMEMINFO => seen.memory = value,
                INET_DIAG_CONG => seen.congestion = value,
                CGROUP_ID => seen.cgroup = value,
                _ => {}
            }
        }
        Some(seen)
    }

    /// Distinguishes it from all other sockets since boot.
    pub fn cookie(&self) -> u64 {
        // Two words of 32 bits, the lower one first, on any machine (sock_diag_save_cookie).
        u64::from(self.word(COOKIE)) | u64::from(self.word(COOKIE + 4)) << 32
    }

    /// Inode of its file; 0 if no process holds one.
    pub fn inode(&self) -> u32 {
        self.word(INODE)
    }

    /// The parsed answer; `None` if its state is invalid.
    pub fn socket(&self) -> Option<Socket> {
        Socket::of(self)
    }

    /// Whether it is open, with nothing queued on either side, and no timer other than keep-alive.
    pub fn is_still(&self) -> bool {
        let byte = |at: usize| self.payload.get(at).copied().unwrap_or(u8::MAX);
        byte(STATE) == State::Established as u8
            && [NO_TIMER, KEEP_ALIVE].contains(&byte(TIMER))
            && self.receive_queue() == 0
            && self.word(SEND_QUEUE) == 0
            // tcpi_retransmits and tcpi_probes, tcpi_notsent_bytes.
            && self.info.get(2..4) == Some(&[0, 0])
            && word_at(self.info, 144) == 0
    }

    /// Time since it last sent data, received data, or was acknowledged, ms; the smallest of these.
    pub fn silent_ms(&self) -> u32 {
        [44, 52, 56].map(|at| word_at(self.info, at)).into_iter().min().unwrap_or(0)
    }

    pub(crate) fn receive_queue(&self) -> u32 {
        self.word(RECEIVE_QUEUE)
    }

    fn word(&self, at: usize) -> u32 {
        word_at(self.payload, at)
    }
}

/// `struct nlattr`.
const ATTRIBUTE_BYTES: usize = 4;

/// The 32-bit word at this offset; 0 if an older kernel returns less.
pub(crate) fn word_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u32::from_ne_bytes(*word))
}

/// The same for 64 bits.
pub(crate) fn long_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u64::from_ne_bytes(*word))
}
