//! Which segments have a wrong checksum although their sender fills it in?
//!
//! On the host that sends, checksums are usually not there yet when a packet is captured, and what some interfaces or tools leave in
//! their place is as wrong as damage. Both directions of a connection tell: an address whose checksums are right shows that they
//! are filled in by the time the capture sees them. The same number in segments of other sums is no sum: who made packets anonymous, or left
//! out what they carried, has put it there. Whoever gets such a segment drops it (`tcp_v4_rcv`, net/ipv4/tcp_ipv4.c).

use tcpwhy_wire::capture::RawPacket;
use tcpwhy_wire::decode::{Checksum, checksum};
use tcpwhy_wire::{Decoded, Endpoint, Flags};

/// Addresses that are remembered at a time, each in the place that its bits give.
const ADDRESSES: usize = 1 << 12;
/// A right one proves that they are filled in, and so many more for each one that was not: no link damages every fifth packet.
const PROOF: u32 = 1;
const PROOF_EACH: u32 = 4;
/// After so many more that were not filled in, nobody looks any more.
const HOPELESS: u32 = 16;

/// What the packets from one address have shown.
#[derive(Clone, Copy, Debug, Default)]
struct Sender {
    address: u128,
    right: u32,
    /// Not filled in, or wrong.
    other: u32,
    /// The longest right one: longer ones may have been merged or not divided yet.
    longest: u32,
}

/// What the packets of all inputs have shown.
#[derive(Debug, Default)]
pub(super) struct Senders {
    /// Empty until a whole packet comes.
    known: Vec<Sender>,
    /// The last wrong one, and what the sum was with it.
    last_wrong: Option<(u16, u16)>,
    /// What has stood in the place of several sums.
    mark: Option<u16>,
}

/// What an Ethernet packet carries without time stamps: no interface that merges says how long its segments are.
const USUAL_LEN: u32 = 1_460;

impl Senders {
    /// Whether a segment is not as it was sent.
    #[inline]
    pub(super) fn is_damaged(&mut self, packet: &RawPacket<'_>, decoded: &Decoded<'_>) -> bool {
        // Not as a segment, which would be a copy: see `Usual`.
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
            // A reset is made whole by a host that leaves all others to its interface (tcp_v4_send_reset, net/ipv4/tcp_ipv4.c).
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

/// The same in every run. Who makes addresses that share a place takes nothing but these addresses' proofs.
fn place(end: Endpoint) -> usize {
    let folded = (end.addr ^ end.addr >> 64) as u64;
    (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize % ADDRESSES
}
