//! Which bytes express a segment, and nothing else?
//!
//! For captures that are given away: an IP and a TCP header are built from the segment, so that
//! none of the packet's own bytes remain. Link headers, tunnels, payload and options irrelevant to
//! timing are left out; length fields keep the original lengths.

use std::net::IpAddr;

use crate::{Endpoint, Segment};

const TCP_LEN: usize = 20;
const V4_LEN: usize = 20;
const V6_LEN: usize = 40;
const TCP: u8 = 6;

/// A packet of link type RAW: the headers, and its original length with payload.
pub fn headers(segment: &Segment) -> (Vec<u8>, u32) {
    let options = options(segment);
    let tcp_len = TCP_LEN + options.len();
    let carried = tcp_len as u32 + segment.payload_len;
    let is_v4 = segment.src.ip().is_ipv4() && segment.dst.ip().is_ipv4();
    let mut out = Vec::with_capacity(V6_LEN + tcp_len);
    if is_v4 {
        let total = carried + V4_LEN as u32;
        out.extend([0x45, 0]);
        // 0 if the length exceeds the field, as segmentation offload does.
        out.extend(u16::try_from(total).unwrap_or(0).to_be_bytes());
        out.extend(segment.ip_id.unwrap_or(0).to_be_bytes());
        out.extend([0x40, 0, segment.ttl, TCP, 0, 0]);
        address(&mut out, segment.src);
        address(&mut out, segment.dst);
        let sum = checksum(&out);
        out[10..12].copy_from_slice(&sum.to_be_bytes());
    } else {
        out.extend([0x60, 0, 0, 0]);
        out.extend(u16::try_from(carried).unwrap_or(0).to_be_bytes());
        out.extend([TCP, segment.ttl]);
        out.extend(segment.src.addr.to_be_bytes());
        out.extend(segment.dst.addr.to_be_bytes());
    }
    let ip_len = out.len() as u32;
    out.extend(segment.src.port.to_be_bytes());
    out.extend(segment.dst.port.to_be_bytes());
    out.extend(segment.seq.0.to_be_bytes());
    out.extend(segment.ack.0.to_be_bytes());
    out.extend([(tcp_len as u8 / 4) << 4, segment.flags.0]);
    out.extend(segment.window.to_be_bytes());
    // Checksum 0: the payload that it covered is gone.
    out.extend([0; 4]);
    out.extend(options);
    (out, ip_len + carried)
}

fn address(out: &mut Vec<u8>, endpoint: Endpoint) {
    match endpoint.ip() {
        IpAddr::V4(address) => out.extend(address.octets()),
        IpAddr::V6(address) => out.extend(address.octets()),
    }
}

/// The options that timing needs (RFC 9293, 3.2; RFC 7323; RFC 2018), padded to whole words.
fn options(segment: &Segment) -> Vec<u8> {
    let of = &segment.options;
    let mut out = Vec::new();
    if let Some(mss) = of.mss {
        out.extend([2, 4]);
        out.extend(mss.to_be_bytes());
    }
    if let Some(scale) = of.window_scale {
        out.extend([3, 3, scale]);
    }
    if of.sack_permitted {
        out.extend([4, 2]);
    }
    if let Some(stamps) = of.timestamps {
        out.extend([8, 10]);
        out.extend(stamps.val.to_be_bytes());
        out.extend(stamps.ecr.to_be_bytes());
    }
    // A header has room for forty bytes of options.
    let room = 38_usize.saturating_sub(out.len()) / 8;
    let blocks = &of.sack()[..of.sack().len().min(room)];
    if !blocks.is_empty() {
        out.extend([5, 2 + 8 * blocks.len() as u8]);
        for block in blocks {
            out.extend(block.start.0.to_be_bytes());
            out.extend(block.end.0.to_be_bytes());
        }
    }
    out.resize(out.len().next_multiple_of(4), 1);
    out
}

/// RFC 1071.
fn checksum(header: &[u8]) -> u16 {
    let sum: u32 =
        header.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}
