//! Which bytes make up a packet?

use tcpwhy_wire::Instant;

use crate::Packet;
use crate::connection::{Connection, Sent, Side};

const ETHERNET: usize = 14;
const IP: usize = 20;
const TCP: usize = 20;
/// Two bytes of padding and time stamps, as Linux writes them.
const STAMPS: usize = 12;
const SYN_OPTIONS: usize = 20;
/// In units of 128 bytes: larger than the largest flight.
const WINDOW: u16 = 1_024;

/// The bytes of the last packet built; the payload stays zero.
pub(crate) struct Frame {
    bytes: Box<[u8; 2048]>,
    len: usize,
    captured: usize,
}

impl Default for Frame {
    fn default() -> Self {
        Self { bytes: Box::new([0; 2048]), len: 0, captured: 0 }
    }
}

impl Frame {
    pub(crate) fn packet(&self, at_ns: i64) -> Packet<'_> {
        Packet {
            at: Instant::from_nanos(at_ns),
            original_len: self.len as u32,
            data: &self.bytes[..self.captured],
        }
    }

    pub(crate) fn build(&mut self, connection: &mut Connection, sent: &Sent, at_ns: i64, snaplen: u32) {
        let syn = sent.flags & 0x02 != 0;
        let options = if syn { SYN_OPTIONS } else { STAMPS };
        let ip_len = IP + TCP + options + sent.len as usize;
        self.len = ETHERNET + ip_len;
        self.captured = self.len.min(snaplen as usize);

        let (by, to) = match sent.by {
            Side::Client => (0, 1),
            Side::Server => (1, 0),
        };
        let mac = |side: usize| [2, 0, 0, 0, 0, side as u8 + 1];
        let (src, dst) = (connection.ends[by], connection.ends[to]);
        connection.ip_id[by] = connection.ip_id[by].wrapping_add(1);
        let mut out = Out { bytes: &mut self.bytes[..], at: 0 };
        out.put(&mac(to));
        out.put(&mac(by));
        out.put(&[0x08, 0x00]);

        out.put(&[0x45, 0]);
        out.put(&(ip_len as u16).to_be_bytes());
        out.put(&connection.ip_id[by].to_be_bytes());
        // Do not fragment. Three routers are between the client and the server.
        out.put(&[0x40, 0, if by == 0 { 64 } else { 61 }, 6, 0, 0]);
        out.put(&src.0);
        out.put(&dst.0);

        out.put(&src.1.to_be_bytes());
        out.put(&dst.1.to_be_bytes());
        out.put(&connection.isn[by].wrapping_add(sent.seq).to_be_bytes());
        let has_ack = sent.flags & 0x10 != 0;
        let ack = if has_ack { connection.isn[to].wrapping_add(sent.ack) } else { 0 };
        out.put(&ack.to_be_bytes());
        out.put(&[(((TCP + options) / 4) << 4) as u8, sent.flags]);
        out.put(&if syn { 64_240_u16 } else { WINDOW }.to_be_bytes());
        // TCP checksums are left to the network card, as in a capture at the sender.
        out.put(&[0; 4]);

        let own_ns = if by == 0 { at_ns } else { at_ns - connection.rtt_ns / 2 };
        let stamp = |side: usize, ns: i64| connection.clock[side].wrapping_add((ns / 1_000_000) as u32);
        let val = stamp(by, own_ns).to_be_bytes();
        let ecr = if has_ack { stamp(to, sent.echo_ns) } else { 0 }.to_be_bytes();
        if syn {
            out.put(&[2, 4, 0x05, 0xb4, 4, 2, 8, 10]);
            out.put(&val);
            out.put(&ecr);
            out.put(&[1, 3, 3, 7]);
        } else {
            out.put(&[1, 1, 8, 10]);
            out.put(&val);
            out.put(&ecr);
            // The options of an earlier SYN were here; now it is payload.
            out.put(&[0; SYN_OPTIONS - STAMPS]);
        }
        let sum = checksum(&self.bytes[ETHERNET..ETHERNET + IP]);
        self.bytes[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&sum.to_be_bytes());
    }
}

struct Out<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl Out<'_> {
    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }
}

/// The internet checksum (RFC 1071).
fn checksum(header: &[u8]) -> u16 {
    let sum: u32 = header.as_chunks::<2>().0.iter().map(|word| u32::from(u16::from_be_bytes(*word))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    !(((sum & 0xffff) + (sum >> 16)) as u16)
}
