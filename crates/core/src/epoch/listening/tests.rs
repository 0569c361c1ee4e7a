//! Is what listening keeps bounded, and what does it tell of connections that it cannot read?

use tcpwhy_wire::{Endpoint, Flags, Instant, TcpOptions};

use super::*;
use crate::words::mark::Role;

const ENDS: u64 = 7;

fn segment(by_client: bool, flags: u8, seq: u32, payload_len: u32) -> Segment {
    let (client, server) = (Endpoint::v4([10, 0, 0, 1], 4_000), Endpoint::v4([10, 0, 0, 2], 9_999));
    let (src, dst) = if by_client { (client, server) } else { (server, client) };
    Segment {
        packet: 1,
        at: Instant::MIN,
        src,
        dst,
        seq: Seq(seq),
        ack: Seq(1),
        window: 1_000,
        flags: Flags(flags),
        payload_len,
        options: TcpOptions::default(),
        ip_id: None,
        ttl: 64,
        damaged: false,
    }
}

/// What is kept of a connection of unknown protocol after such a segment of its server and both ends'
/// FINs.
fn kept(server: Option<Segment>) -> (usize, usize) {
    let mut listening = Listening::new(1 << 20);
    let mut hear = |segment: Segment| {
        listening.on_segment(ENDS, &segment, &[0x41][..segment.payload_len.min(1) as usize]);
    };
    hear(segment(true, Flags::SYN, 99, 0));
    hear(segment(false, Flags::SYN | Flags::ACK, 499, 0));
    hear(segment(true, Flags::ACK, 100, 1));
    server.into_iter().for_each(&mut hear);
    hear(segment(true, Flags::ACK | Flags::FIN, 101, 0));
    hear(segment(false, Flags::ACK | Flags::FIN, 501, 0));
    (listening.heard.len(), listening.deaf.len())
}

#[test]
fn keeps_next_to_nothing_of_who_has_said_all() {
    assert_eq!(kept(Some(segment(false, Flags::ACK, 500, 1))), (0, 1));
    assert_eq!(kept(None), (1, 0), "a byte is missing that may still come");
}

#[test]
fn a_syn_is_listened_to_again() {
    let mut listening = Listening::new(1 << 20);
    listening.deaf.insert(ENDS);
    listening.on_segment(ENDS, &segment(true, Flags::ACK, 100, 1), b"A");
    assert!(listening.is_deaf() && listening.heard.is_empty());
    listening.on_segment(ENDS, &segment(true, Flags::SYN, 5_000, 0), &[]);
    assert!(!listening.is_deaf() && listening.heard.len() == 1 && listening.deaf.is_empty());
}

/// Each end has sent records of TLS (RFC 8446, 5.1) before the capture began, or bytes of no protocol.
#[test]
fn what_was_encrypted_before_the_capture_is_sealed() {
    for (head, sealed) in [([23, 3, 3, 0, 26], true), (*b"hello", false)] {
        let mut listening = Listening::new(1 << 20);
        let captured = [&head[..], &[0x41; 26]].concat();
        let roles: Vec<Role> = (0..16)
            .flat_map(|n| {
                let segment = segment(n % 2 == 0, Flags::ACK, 100 + n / 2 * 31, 31);
                listening
                    .on_segment(ENDS, &segment, &captured)
                    .iter()
                    .map(|mark| mark.role)
                    .collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(roles.contains(&Role::Sealed), sealed, "{roles:?}");
        assert!(listening.is_deaf(), "it is not read any further");
    }
}

/// A record of TLS that holds an alert (RFC 5246, 7.2) on a connection that is not read any further, and one that does not end with
/// its segment, or holds data.
#[test]
fn an_alert_is_told_of_who_is_not_listened_to() {
    for (kind, record, told) in [(21, 26, true), (21, 27, false), (23, 26, false)] {
        let mut listening = Listening::new(1 << 20);
        listening.deaf.insert(ENDS);
        let captured = [&[kind, 3, 3, 0, record][..], &[0x41; 26]].concat();
        let marks = listening.on_segment(ENDS, &segment(false, Flags::ACK, 100, 31), &captured);
        assert_eq!(marks.iter().any(|mark| mark.role == Role::Alert), told, "{kind} {record}");
    }
}
