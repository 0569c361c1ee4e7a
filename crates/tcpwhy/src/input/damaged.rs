//! Which segments have a wrong checksum although their sender fills it in?
//!
//! On the sending host, checksums are usually not filled in yet when a packet is captured, and some
//! interfaces or tools leave values there that look like damage. The segments themselves tell: an
//! address with right checksums fills them in before the capture sees them. The same value on
//! segments with different sums is not a checksum: a tool that anonymized packets or cut their
//! payload put it there. The receiver drops a segment with a wrong checksum (`tcp_v4_rcv`,
//! net/ipv4/tcp_ipv4.c).

use tcpwhy_wire::capture::RawPacket;
use tcpwhy_wire::decode::{Checksum, checksum};
use tcpwhy_wire::{Decoded, Endpoint, Flags};

/// Addresses remembered at a time, each at the index that its bits give.
const ADDRESSES: usize = 1 << 12;
/// A right checksum proves that they are filled in if there are this many, plus so many more for
/// each one that was not right: no link damages every fifth packet.
const PROOF: u32 = 1;
const PROOF_EACH: u32 = 4;
/// With this many more that were not filled in, the address is no longer checked.
const HOPELESS: u32 = 16;

/// What the packets from one address have shown.
#[derive(Clone, Copy, Debug, Default)]
struct Sender {
    address: u128,
    right: u32,
    /// Not filled in, or wrong.
    other: u32,
    /// The longest payload with a right checksum: longer ones may be merged, or not segmented yet.
    longest: u32,
}

/// What the packets of all inputs have shown.
#[derive(Debug, Default)]
pub(super) struct Senders {
    /// Empty until the first complete packet.
    known: Vec<Sender>,
    /// The last wrong checksum, and the sum of its segment.
    last_wrong: Option<(u16, u16)>,
    /// The value found in place of several different sums.
    mark: Option<u16>,
}

/// The payload of a full Ethernet packet without time stamps: an interface that merges packets does
/// not say how long the segments were.
const USUAL_LEN: u32 = 1_460;

impl Senders {
    /// Whether a segment was damaged on the path.
    #[inline]
    pub(super) fn is_damaged(&mut self, packet: &RawPacket<'_>, decoded: &Decoded<'_>) -> bool {
        // Takes no segment, which would be a copy: see `Usual`.
        packet.data.len() >= packet.original_len as usize
            && self.look(packet, decoded.src(), decoded.flags(), decoded.payload_len())
    }

    #[inline(never)]
    fn look(&mut self, packet: &RawPacket<'_>, src: Endpoint, flags: Flags, payload_len: u32) -> bool {
        if self.known.is_empty() {
            self.known = vec![Sender::default(); ADDRESSES];
        }
        let sender = &mut self.known[place(src)];
        if sender.address != src.addr {
            *sender = Sender { address: src.addr, ..Sender::default() };
        }
        if sender.other > sender.right.saturating_add(HOPELESS) {
            return false;
        }
        match checksum(packet) {
            None => false,
            // A host fills in the checksum of a reset itself, even if it leaves all others to its
            // interface (tcp_v4_send_reset, net/ipv4/tcp_ipv4.c).
            Some(Checksum::Right) if flags.rst() => false,
            Some(Checksum::Right) => {
                sender.right = sender.right.saturating_add(1);
                sender.longest = sender.longest.max(payload_len);
                false
            }
            Some(Checksum::Unfilled) => {
                sender.other = sender.other.saturating_add(1);
                false
            }
            Some(Checksum::Wrong { field, sum }) => {
                let last = self.last_wrong.replace((field, sum));
                if last.is_some_and(|last| last.0 == field && last.1 != sum) {
                    self.mark = Some(field);
                }
                let proof = PROOF_EACH.saturating_mul(sender.other).saturating_add(PROOF);
                let whole = payload_len <= sender.longest.max(USUAL_LEN);
                sender.other = sender.other.saturating_add(1);
                whole && sender.right >= proof && self.mark != Some(field)
            }
        }
    }
}

/// The same in every run. Forged addresses that share an index can only destroy each other's proof.
fn place(end: Endpoint) -> usize {
    let folded = (end.addr ^ end.addr >> 64) as u64;
    (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize % ADDRESSES
}
