//! What becomes of segments with a wrong checksum? The capture sees them, but the receiver drops
//! them: the wait for the retransmission is a loss on the path, and nothing else in them is true.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Path, Server};
use tcpwhy_core::report::Confidence::{Certain, Possible};
use tcpwhy_wire::{Duration, Flags, SackBlock, Segment};

use crate::invariants::analyse;
use crate::packet_log::{End, MSS, SERVER, log, ms, settled};
use crate::seen::Seen;

#[test]
fn a_damaged_request_waits_for_its_timer() {
    let rtt = ms(20);
    let text = format!(
        "{}+5 C 100 damaged #ask
         ask+240 C 300..400 #again
         again+0 S 200
         +0 C ack",
        settled(3)
    );
    log(text).rtt(rtt).both_ends(|seen| {
        let bill = seen.exchange(4).is(&[(Cause::RoundTrip, Path, rtt), (Cause::Rto, Path, ms(240))]);
        assert_eq!(bill.of(Cause::Rto).confidence, Certain, "{seen}");
    });
}

/// A whole reply is damaged, and is retransmitted by its sender's timer, or after the request is:
/// its server had thought for 4 ms.
#[test]
fn a_damaged_answer_was_thought_about_once_and_waits_for_its_timer() {
    let rtt = ms(20);
    for before in [0, 3] {
        for again in ["reply+240 S", "ask+265 C ASK\n +0 S"] {
            let asked = format!("{}..{}", before * 100, before * 100 + 100);
            let copy = format!("{again} {}..{}", before * 200, before * 200 + 200).replace("ASK", &asked);
            let text =
                format!("{}+5 C 100 #ask\n +4 S 200 damaged #reply\n {copy}\n +0 C ack", settled(before));
            let seen = log(text).rtt(rtt).seen_at(End::Client);
            let bill = seen.exchange(before + 1);
            assert!(bill.ns(Cause::ServerThink, Server) <= ms(5), "{seen}");
            assert!(bill.ns(Cause::Rto, Path) >= ms(235), "{seen}");
        }
    }
}

/// The third of ten segments; selective acknowledgements of the later ones trigger its
/// retransmission.
#[test]
fn a_damaged_segment_of_a_reply_is_repaired_like_a_lost_one() {
    let rtt = ms(40);
    let reply = |third: &str| {
        let begin = 600 + 2 * MSS;
        let text = format!(
            "{}+5 C 100
             +0 S {MSS}x2 more #first
             first+0 S {MSS} {third} more
             first+0 S {MSS}x7 #rest
             rest+0 C ack #told
             told+0 S {begin}..{}
             +0 C ack",
            settled(3),
            begin + MSS
        );
        log(text).rtt(rtt)
    };
    for end in End::BOTH {
        let seen = reply("damaged").seen_at(end);
        seen.exchange(4).is(&[(Cause::RoundTrip, Path, rtt), (Cause::Loss, Path, rtt)]);
        assert_eq!(seen.exchange(4).of(Cause::Loss).confidence, Certain, "{seen}");
    }
    // As in the sender's capture, if it was lost later on the path.
    let (damaged, lost) = (reply("damaged").seen_at(End::Server), reply("lost").seen_at(End::Server));
    assert_eq!(damaged.report.bill, lost.report.bill, "{damaged} but {lost}");
}

/// Forged resets, acknowledgements, windows, SYNs and data between the packets of a connection: the
/// bill is the one without them.
#[test]
fn what_a_damaged_header_says_is_not_believed() {
    let text =
        settled(4) + "+5 C 100\n +30 S 20000 more\n +0 S 4344\n +0 C ack\n +5 C 100\n +0 S 200\n +0 C ack";
    for end in End::BOTH {
        let honest = log(text.clone()).rtt(ms(10)).capture(end);
        let kinds: [fn(&mut Segment); 6] = [
            |made_up| made_up.flags = Flags(Flags::RST | Flags::ACK),
            |made_up| made_up.flags = Flags(Flags::SYN),
            |made_up| made_up.ack += 50_000,
            |made_up| made_up.options.push_sack(SackBlock { start: made_up.ack + 9, end: made_up.ack + 99 }),
            |made_up| (made_up.seq, made_up.payload_len) = (made_up.seq + 70_000, 1_000),
            |made_up| (made_up.window, made_up.flags) = (0, Flags(Flags::FIN | Flags::ACK)),
        ];
        for (n, change) in kinds.into_iter().enumerate() {
            let mut mixed = Vec::new();
            for segment in &honest {
                mixed.push(*segment);
                let at = segment.at + Duration::from_micros(1);
                let mut made_up = Segment { at, payload_len: 0, damaged: true, ip_id: None, ..*segment };
                change(&mut made_up);
                mixed.push(made_up);
            }
            let (with, without) = (analyse(&mixed), analyse(&honest));
            assert_eq!(with.bill, without.bill, "kind {n}, the {end:?}");
            assert_eq!(with.connections, without.connections, "kind {n}, the {end:?}");
        }
    }
}

/// A reply passes again six milliseconds later behind itself, with its identification and its time stamp (frames 4542 to 4558 of a capture
/// that was edited): what such a capture shows is possible at most. Two segments of a super-segment are full, and those of one tick have
/// numbers of their own.
#[test]
fn what_passes_again_under_other_sequence_numbers_was_edited() {
    for (len, edited, doubted) in [(87, true, true), (87, false, false), (1448, true, false)] {
        let text = format!(
            "{} +5 C 100\n +40 S {len} more\n +6 S {len}\n +0 C ack\n +500 C 100\n +60 S 300\n +0 C ack",
            settled(6)
        );
        let mut segments = log(text).rtt(ms(30)).capture(End::Client);
        let first = segments.iter().position(|segment| segment.payload_len == len && segment.src == SERVER);
        let first = first.expect("it has passed");
        if edited {
            segments[first + 1].ip_id = segments[first].ip_id;
            segments[first + 1].options.timestamps = segments[first].options.timestamps;
        }
        let seen = Seen::of(segments, "the client");
        let lines = seen.longer(Cause::ServerThink, ms(50));
        assert_eq!(lines.iter().all(|line| line.confidence == Possible), doubted, "{seen}");
    }
}
