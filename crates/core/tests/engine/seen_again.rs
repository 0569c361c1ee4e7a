//! One packet captured twice: on two interfaces of a host, or before and after a hop, and segmented
//! differently there.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server};
use tcpwhy_core::report::Confidence::{Likely, Possible};
use tcpwhy_wire::{Duration, Flags, Segment, Timestamps};

use crate::packet_log::{End, MSS, PacketLog, log, ms, settled};
use crate::seen::Seen;

/// How the second sighting is segmented.
#[derive(Clone, Copy, Debug)]
enum Cut {
    AsItWas,
    InPieces,
    Merged,
}

/// Each packet a second time `later`, a hop further.
fn twice(segments: &[Segment], later: Duration, cut: Cut) -> Vec<Segment> {
    let mut seen: Vec<Segment> = Vec::new();
    for segment in segments {
        let again = Segment { at: segment.at + later, ttl: segment.ttl - 1, ..*segment };
        let pieces = segment.payload_len.div_ceil(MSS as u32).max(1);
        match cut {
            Cut::InPieces if pieces > 1 => {
                seen.push(*segment);
                seen.extend((0..pieces).map(|n| piece(&again, n)));
            }
            Cut::Merged if pieces > 1 => {
                let first = Segment { at: segment.at, ..again };
                seen.extend((0..pieces).map(|n| piece(&first, n)));
                seen.push(Segment { at: again.at, ..*segment });
            }
            _ => seen.extend([*segment, again]),
        }
    }
    seen.sort_by_key(|segment| segment.at); // stable
    seen
}

/// The n-th packet of a super-segment.
fn piece(whole: &Segment, n: u32) -> Segment {
    let offset = n * MSS as u32;
    let len = (MSS as u32).min(whole.payload_len - offset);
    let last = offset + len == whole.payload_len;
    let pushed = if last { whole.flags.0 } else { whole.flags.0 & !(Flags::PSH | Flags::FIN) };
    Segment {
        seq: whole.seq + offset,
        payload_len: len,
        flags: Flags(pushed),
        ip_id: whole.ip_id.map(|id| id.wrapping_add(n as u16)),
        ..*whole
    }
}

fn without_loss() -> String {
    settled(3)
        + "
        +5 C 100 #asked
        +20 S 14480 more
        +0 S 4344
        +0 C ack
        +5 C 100
        +0 S ack
        +50 S 14480
        +0 C ack
        +0 C fin"
}

#[track_caller]
fn as_if_seen_once(log: &PacketLog, name: &str) {
    for end in End::BOTH {
        let once = log.seen_at(end);
        for (later, cut) in [
            (ms(0.02), Cut::AsItWas),
            (ms(0.02), Cut::InPieces),
            (ms(0.02), Cut::Merged),
            (ms(1.7), Cut::AsItWas),
            (ms(2.9), Cut::AsItWas),
            (ms(0.3), Cut::InPieces),
        ] {
            let seen =
                Seen::of(twice(&once.segments, later, cut), &format!("the {end:?}, {name}, {later} {cut:?}"));
            assert!(seen.notes("duplicates") > 0, "{seen}");
            for (here, there) in seen.connection().exchanges.iter().zip(&once.connection().exchanges) {
                for line in &here.bill {
                    let same = there
                        .bill
                        .iter()
                        .filter(|other| (other.cause, other.side) == (line.cause, line.side));
                    let had: Duration = same.map(|line| line.ns).sum();
                    let off = (line.ns - had).max(had - line.ns);
                    assert!(off <= later + ms(0.5), "{} {had}: {seen} but {once}", line.cause);
                }
            }
            for cause in [Cause::Loss, Cause::Rto, Cause::SynRetransmit] {
                assert!(!seen.report.bill.iter().any(|line| line.cause == cause), "{cause}: {seen}");
            }
        }
    }
}

/// `-i any` on a container's host: the super-segment that left the container, and the packets that
/// left the host.
#[test]
fn what_is_seen_again_is_no_loss_however_it_is_cut() {
    for rtt in [0.2, 2.0, 40.0] {
        as_if_seen_once(&log(without_loss()).rtt(ms(rtt)), "with identifications");
        let bare = log(without_loss()).rtt(ms(rtt)).without_ip_ids();
        as_if_seen_once(&bare, "without");
        as_if_seen_once(&bare.without_timestamps(), "with nothing that tells");
    }
}

/// A repair on a path of 0.3 ms leaves within half a millisecond of the original, with the same
/// time stamp. It has its own identification, and follows a signal.
#[test]
fn a_fast_repair_on_a_short_path_is_a_loss_though_all_is_seen_twice() {
    let text = settled(6)
        + "
        +5 C 100
        +0 S 1448 lost more #first
        first+0 S 1448x6 more
        +0 C ack
        +0 C ack
        +0 C ack
        first+0.4 S 1200..2648 more
        +0 C ack
        +0 S 1448x2
        +0 C ack";
    for ids in [true, false] {
        let log = log(text.clone()).rtt(ms(0.3));
        let log = if ids { log } else { log.without_ip_ids() };
        for later in [None, Some(ms(0.01))] {
            let mut segments = log.capture(End::Server);
            if let Some(later) = later {
                segments = twice(&segments, later, Cut::AsItWas);
            }
            let seen = Seen::of(segments, &format!("the server, {ids} {later:?}"));
            assert!(seen.exchange(7).ns(Cause::Loss, Path) >= ms(0.2), "{seen}");
        }
    }
}

/// A timeout is found, though the retransmission is captured twice as well.
#[test]
fn a_timeout_of_what_is_seen_twice_is_found() {
    let text = settled(4) + "+5 C 100\n +0 S 200 lost #reply\n reply+240 S 800..1000\n +0 C ack";
    for (end, cut) in [(End::Server, Cut::AsItWas), (End::Client, Cut::InPieces)] {
        let segments = twice(&log(text.clone()).rtt(ms(40)).capture(end), ms(0.1), cut);
        let seen = Seen::of(segments, &format!("the {end:?}"));
        assert!(seen.exchange(5).ns(Cause::Rto, Path) >= ms(230), "{seen}");
    }
}

/// A host that numbers all its packets from one counter, without time stamps: the second sighting
/// of its SYN-ACK comes after the ACK, and signals no loss, so that the second sighting of the
/// request after it is no retransmission either (frames 2256 to 2277 of a doubled capture).
#[test]
fn a_syn_ack_seen_again_behind_its_acknowledgement_signals_nothing() {
    let log = log("handshake\n +0.1 C 329\n +0 S ack\n +1.7 S 1460x2 more\n +0 S 358\n +0 C ack")
        .rtt(ms(3.6))
        .without_timestamps();
    let mut segments = log.capture(End::Client);
    for (n, segment) in segments.iter_mut().enumerate() {
        segment.ip_id = segment.ip_id.filter(|&id| id != 0).map(|id| id.wrapping_add(n as u16 * 4));
    }
    let later = |n: usize| Duration::from_micros([1_442, 551, 227, 1_903, 1_498, 700, 900, 445, 320][n % 9]);
    let copies = segments.iter().enumerate().map(|(n, segment)| Segment {
        at: segment.at + later(n),
        ttl: segment.ttl - 1,
        ..*segment
    });
    let mut seen: Vec<Segment> = segments.iter().copied().chain(copies).collect();
    seen.sort_by_key(|segment| segment.at);
    let seen = Seen::of(seen, "the client, twice");
    let mechanisms: Vec<_> = seen.report.bill.iter().filter(|line| line.cause == Cause::Loss).collect();
    assert!(mechanisms.is_empty(), "{seen}");
}

/// An unanswered SYN passes a second time 120 ms later, after a tunnel that delayed it: with the
/// identification and time stamp of the first it is the same packet, and no timer sent it. With
/// different marks it was retransmitted sooner than any usual timer: at most possible.
#[test]
fn a_syn_with_the_marks_of_the_last_one_is_no_other() {
    let first = log("@0 C syn").capture(End::Client)[0];
    for (stamp, number, other) in [(0, 0, false), (120, 1, true), (0, 1, true), (120, 0, true)] {
        let later = |stamps: Timestamps| Timestamps { val: stamps.val + stamp, ..stamps };
        let mut again = Segment { at: first.at + ms(120), ip_id: first.ip_id.map(|id| id + number), ..first };
        again.options.timestamps = first.options.timestamps.map(later);
        let seen = Seen::of(vec![first, again], "the client");
        let lines: Vec<_> = seen.connection().exchanges.iter().flat_map(|exchange| &exchange.bill).collect();
        let lost = lines.iter().find(|line| line.cause == Cause::SynRetransmit);
        assert_eq!(lost.map(|line| line.confidence), other.then_some(Possible), "{stamp} {number}: {seen}");
    }
}

/// A second SYN after a second is its timer's, whatever its marks; the fate of the first is unknown
/// near the client.
#[test]
fn a_syn_behind_a_second_was_sent_again() {
    for timestamps in [true, false] {
        let text = "@0 C syn lost\n @1000 C syn\n +0 S syn\n +0 C ack\n +5 C 100\n +0 S 200\n +0 C ack";
        let talk = if timestamps { log(text) } else { log(text).without_timestamps() };
        let seen = talk.rtt(ms(20)).seen_at(End::Client);
        let setup = seen.setup();
        setup.is(&[(Cause::SynRetransmit, Path, ms(1000)), (Cause::Handshake, Client, ms(20))]);
        assert_eq!(setup.of(Cause::SynRetransmit).confidence, Likely, "{seen}");
    }
}

/// The captures of both ends merged, of hosts without time stamps.
fn in_one_file(log: PacketLog) -> Seen {
    let log = log.without_timestamps();
    let mut both = End::BOTH.map(|end| log.capture(end)).concat();
    both.sort_by_key(|segment| segment.at); // stable
    for syn_ack in both.iter_mut().filter(|segment| segment.flags.syn() && segment.flags.ack()) {
        syn_ack.ip_id = Some(0); // as Linux numbers it
    }
    Seen::of(both, "both ends in one file")
}

/// Each packet seen by two interfaces of one host.
fn on_two_interfaces(once: &[Segment]) -> Vec<Segment> {
    let again = once.iter().map(|segment| Segment { at: segment.at + ms(0.1), ..*segment });
    let mut both: Vec<_> = once.iter().copied().chain(again).collect();
    both.sort_by_key(|segment| segment.at); // stable
    both
}

/// A SYN-ACK without a number passes twice within less than any timer: its client is not near the
/// second sighting.
#[test]
fn a_syn_ack_without_a_number_is_seen_again_within_its_timer() {
    let stall = "\n +5 C 100 #first\n +40 S ack\n +0 C 150\n +0 S 300\n +0 C ack";
    let seen = in_one_file(log("handshake".to_owned() + &stall.repeat(6)).rtt(ms(20)));
    for n in 2..=6 {
        let held = seen.exchange(n).never(Cause::SenderThink).of(Cause::NagleDelayedAck).ns;
        assert!(held >= ms(58), "{held}: {seen}");
    }
}

/// More packets pass before the first one is captured again than captures ever miss at once.
#[test]
fn what_is_seen_again_behind_a_long_flight_is_no_loss() {
    let text = settled(30) + "+5 C 100\n +0 S 1448x600\n +0 C ack\n +5 C 100\n +0 S 1448x600\n +0 C ack";
    let seen = in_one_file(log(text).rtt(ms(20)));
    assert_eq!(seen.lost(), Duration::ZERO, "{seen}");
}

/// A host's bridge, with no router between: each ACK of an upload passes a second time, and neither
/// identification nor time stamp shows that it is the same (frames 5029 to 5157 of a browser's
/// capture, seen twice). The link is as slow as before.
#[test]
fn acknowledgements_seen_again_right_behind_others_hide_no_link() {
    let upload = "+30 C 1460 more #a\n +0 C 1460 more #b\n +0 C 1460 more #c\n +0 C 1460 #d
         a+0 S ack late=11.65\n b+0 S ack\n c+0 S ack late=11.65\n d+0 S ack\n d+24 S 18\n +0 C ack\n";
    let log = log("handshake\n +1 C 100\n +0 S 100\n +0 C ack\n".to_owned() + &upload.repeat(4))
        .bottleneck(End::Client, 1_000_000)
        .rtt(ms(24))
        .without_timestamps()
        .without_ip_ids();
    let once = log.capture(End::Client);
    let doubled = on_two_interfaces(&once);
    let [once, twice] = [(once, "once"), (doubled, "twice")].map(|(seen, name)| Seen::of(seen, name));
    let [link, seen] = [&once, &twice].map(|seen| seen.exchange(5).ns(Cause::Bandwidth, Path));
    assert!(link >= ms(40) && link == seen, "{link}: {twice} but {once}");
}

/// A capture on both sides of a forwarding host, which takes 0.2 ms for each packet, and 40 for a
/// request: these are the path's, whose RTT is 1 ms. After the second sighting 0.3 ms remain of the
/// way there, 3 for the server and 0.5 of the way back. If the server takes 43 ms, they are its
/// own.
#[test]
fn what_passes_between_two_sightings_is_the_paths() {
    for (held, own, server) in [(40, 3, 3.8), (0, 43, 43.0)] {
        let text = format!("+5 C 150 late={held}\n +{own} S 200\n +0 C ack");
        let once = log(settled(3) + &text).rtt(ms(1)).capture(End::Client);
        let again = |segment: &Segment| {
            let waits = if segment.payload_len == 150 { ms(held) } else { Duration::ZERO };
            Segment { at: segment.at + waits + ms(0.2), ttl: segment.ttl - 1, ..*segment }
        };
        let mut both: Vec<_> = once.iter().copied().chain(once.iter().map(again)).collect();
        both.sort_by_key(|segment| segment.at); // stable
        let seen = Seen::of(both, "both sides of a host in between");
        let last = seen.exchange(4);
        let think = last.ns(Cause::ServerThink, Server);
        assert!((think - ms(server)).max(ms(server) - think) <= ms(0.1), "{think}: {seen}");
        assert!(last.ns(Cause::Queueing, Path) >= ms(held) - ms(1), "{seen}");
    }
}

/// Both ends in one file, with no router in between: a request stands on the path for 60 ms, and its server answers at
/// once (a merged capture of a mobile path: 78 ms of the server, likely).
#[test]
fn what_passes_both_ends_was_on_its_way_in_between() {
    let text = settled(3) + "+5 C 150 late=60\n +0 S 200\n +0 C ack";
    let seen = in_one_file(log(text).rtt(ms(40)));
    let bill = seen.exchange(4);
    let queue = bill.ns(Cause::Queueing, Path);
    assert!((queue - ms(60)).max(ms(60) - queue) <= ms(2), "{seen}");
    assert!(bill.ns(Cause::ServerThink, Server) <= ms(1), "{seen}");
}

/// A request is sent again just before its answer comes, and each packet passes two interfaces: the second sighting
/// is of the copy, and says nothing of how long the first transmission was on its way (a phone's, captured on `any`:
/// 253 ms of a queue, likely, beside 3 of the server).
#[test]
fn a_copy_that_passes_twice_says_nothing_of_its_original() {
    let text = settled(3) + "+5 C 150 #q\n q+238 C 300..450\n q+200 S 200\n +0 C ack";
    let once = log(text).rtt(ms(40)).capture(End::Client);
    let seen = Seen::of(on_two_interfaces(&once), "twice");
    let think = seen.exchange(4).ns(Cause::ServerThink, Server);
    assert!((think - ms(200)).max(ms(200) - think) <= ms(2), "{seen}");
}

/// A radio link repeats a frame of a reply 2.7 ms later, with its identification and everything else (frames 31 and 32 of a page over
/// 802.11), from a host that numbers what it sends to all others too: it is one packet. A retransmission has a number of its own.
#[test]
fn a_frame_that_a_radio_link_repeats_is_one_packet() {
    for (number, packets) in [(0, 1), (1, 0)] {
        let text = settled(3)
            + "+5 C 100\n +30 S 1448x2 more\n +0 C ack\n +0 S 1448 more\n +5 S 1448x2 more\n +0 C ack\n +0 S 300\n +0 C ack";
        let mut segments = log(text).rtt(ms(80)).without_timestamps().capture(End::Client);
        for (n, segment) in segments.iter_mut().enumerate() {
            segment.ip_id = Some(1_000 + 700 * n as u16);
        }
        let alone = segments.iter().filter(|segment| segment.payload_len == 1448).nth(2).copied();
        let again = alone.map(|first| Segment {
            at: first.at + ms(2.7),
            ip_id: first.ip_id.map(|id| id + number),
            ..first
        });
        segments.extend(again);
        segments.sort_by_key(|segment| segment.at);
        let seen = Seen::of(segments, "the client");
        assert_eq!(seen.notes("duplicates"), packets, "{seen}");
    }
}
