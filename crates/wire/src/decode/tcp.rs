//! What does the TCP header say?

use super::Skip;
use crate::segment::{Flags, SackBlock, TcpOptions, Timestamps};
use crate::seq::Seq;

/// Ports to window: without checksum and urgent pointer, which are irrelevant to timing.
const NEEDED_LEN: usize = 16;
const HEADER_LEN: usize = 20;
/// RFC 7323, 2.3: a larger shift is treated as 14.
pub(super) const MAX_WINDOW_SCALE: u8 = 14;

#[derive(Clone, Copy, Debug)]
pub(super) struct Tcp<'a> {
    pub(super) src_port: u16,
    pub(super) dst_port: u16,
    pub(super) seq: Seq,
    pub(super) ack: Seq,
    pub(super) window: u16,
    pub(super) flags: Flags,
    pub(super) payload_len: u32,
    pub(super) options: TcpOptions,
    /// The captured part.
    pub(super) payload: &'a [u8],
}

/// Reads the header at the front of `data`, for a segment of `len` bytes.
#[expect(clippy::inline_always, reason = "a segment is not copied from step to step")]
#[inline(always)]
pub(super) fn decode(data: &[u8], len: u32) -> Result<Tcp<'_>, Skip> {
    let [s0, s1, d0, d1, q0, q1, q2, q3, a0, a1, a2, a3, offset, flags, w0, w1] =
        *data.first_chunk::<NEEDED_LEN>().ok_or(Skip::TruncatedHeader)?;
    let header_len = usize::from(offset >> 4) * 4;
    if header_len < HEADER_LEN || (header_len as u32) > len {
        return Err(Skip::BadTcpHeader);
    }
    let flags = Flags(flags);
    let mut options = TcpOptions { cut: data.len() < header_len, ..TcpOptions::default() };
    match data.get(HEADER_LEN..data.len().min(header_len)) {
        // Linux writes these on all segments except SYNs and SACKs: two bytes of padding, then time
        // stamps.
        Some([1, 1, 8, 10, stamps @ ..]) if stamps.len() == 8 => options.timestamps = timestamps(stamps),
        Some([]) | None => {}
        Some(bytes) => read_options(bytes, flags.syn(), &mut options),
    }
    if !flags.syn() {
        let stamps = if options.timestamps.is_some() { STAMPS_LEN } else { 0 };
        options.beside_stamps = (header_len - HEADER_LEN).saturating_sub(stamps) as u8;
    }
    Ok(Tcp {
        src_port: u16::from_be_bytes([s0, s1]),
        dst_port: u16::from_be_bytes([d0, d1]),
        seq: Seq(u32::from_be_bytes([q0, q1, q2, q3])),
        ack: Seq(u32::from_be_bytes([a0, a1, a2, a3])),
        window: u16::from_be_bytes([w0, w1]),
        flags,
        payload_len: len - header_len as u32,
        options,
        payload: data.get(header_len..).unwrap_or_default(),
    })
}

/// Ports, sequence and acknowledgement number and control bits, even if the rest of the header is
/// malformed.
pub(super) fn names(data: &[u8]) -> Option<([u16; 2], Seq, Seq, Flags)> {
    let [s0, s1, d0, d1, q0, q1, q2, q3, a0, a1, a2, a3, _, flags, _, _] =
        *data.first_chunk::<NEEDED_LEN>()?;
    let ports = [u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1])];
    let [seq, ack] = [[q0, q1, q2, q3], [a0, a1, a2, a3]].map(|bytes| Seq(u32::from_be_bytes(bytes)));
    Some((ports, seq, ack, Flags(flags)))
}

/// Time stamps with two bytes of padding.
const STAMPS_LEN: usize = 12;

/// Reads options as far as possible: the snap length may have cut them, and a wrong length ends
/// them.
fn read_options(mut rest: &[u8], syn: bool, options: &mut TcpOptions) {
    loop {
        rest = match rest {
            [1, rest @ ..] => rest,
            [0, ..] => return,
            [kind, len, ..] => {
                let len = usize::from(*len);
                let Some(value) = rest.get(2..len) else { return };
                read_option(*kind, value, syn, options);
                &rest[len..]
            }
            _ => return,
        };
    }
}

fn read_option(kind: u8, value: &[u8], syn: bool, options: &mut TcpOptions) {
    match (kind, value) {
        // Three options that are valid only on a SYN (RFC 9293, 3.7.1; RFC 7323, 2.2; RFC 2018, 2).
        (2, &[a, b]) if syn => options.mss = Some(u16::from_be_bytes([a, b])),
        (3, &[shift]) if syn => options.window_scale = Some(shift.min(MAX_WINDOW_SCALE)),
        (4, []) if syn => options.sack_permitted = true,
        (5, blocks) => {
            for block in blocks.as_chunks::<8>().0 {
                let (start, end) = two_words(*block);
                options.push_sack(SackBlock { start: Seq(start), end: Seq(end) });
            }
        }
        (8, stamps) => options.timestamps = timestamps(stamps),
        _ => {}
    }
}

#[inline]
fn timestamps(value: &[u8]) -> Option<Timestamps> {
    let (val, ecr) = two_words(value.try_into().ok()?);
    Some(Timestamps { val, ecr })
}

#[inline]
fn two_words([a0, a1, a2, a3, b0, b1, b2, b3]: [u8; 8]) -> (u32, u32) {
    (u32::from_be_bytes([a0, a1, a2, a3]), u32::from_be_bytes([b0, b1, b2, b3]))
}
