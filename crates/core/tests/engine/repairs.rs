//! Was something retransmitted, and how long did that take, or did its sender only pause for as long? What
//! the capture does not show must be told from numbers and times.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server};
use tcpwhy_core::report::Confidence::{Certain, Likely, Possible};
use tcpwhy_core::{Analysis, Form, Options, Report};
use tcpwhy_wire::Segment;

use crate::invariants::EVERYTHING;
use crate::packet_log::{End, MSS, each, log, ms, settled};
use crate::seen::Seen;

/// Replies before the lost one, and their total bytes.
const BEFORE: usize = 20;

const SENT: usize = 200 * BEFORE;

/// A reply of 200 bytes that is lost, and retransmitted after these ms.
fn lost_reply(again_ms: &[u32]) -> String {
    let copy = |(n, at): (usize, &u32)| {
        let lost = if n + 1 < again_ms.len() { "lost" } else { "" };
        format!("reply+{at} S {SENT}..{} {lost}\n", SENT + 200)
    };
    let copies: String = again_ms.iter().enumerate().map(copy).collect();
    format!("{}+5 C 100\n +0 S 200 lost #reply\n {copies} +0 C ack", settled(BEFORE))
}

/// Near the client, the server's numbers show that a packet is missing before the reply, and the time shows
/// that it was the reply: once, or twice in a row with the second timer doubled, and a little late.
#[test]
fn a_reply_that_nobody_saw_waited_for_its_timers() {
    let rtt = ms(40);
    for copies in [&[240][..], &[240, 480], &[240, 508]] {
        let waited = ms(copies[copies.len() - 1]);
        let seen = log(lost_reply(copies)).rtt(rtt).seen_at(End::Client);
        let bill = seen.exchange(BEFORE + 1).is(&[(Cause::RoundTrip, Path, rtt), (Cause::Rto, Path, waited)]);
        let line = bill.of(Cause::Rto);
        assert_eq!((line.detail.form, line.confidence), (Some(Form::Timeout), Likely), "{seen}");
    }
    // The packet missing before a reply that took this long need not have been one.
    let seen = log(lost_reply(&[900])).rtt(rtt).seen_at(End::Client);
    seen.exchange(BEFORE + 1).is(&[(Cause::RoundTrip, Path, rtt), (Cause::ServerThink, Server, ms(900))]);
}

/// A short conversation has few numbers. Its server has sent a bare ACK of the request, and nothing was left
/// to acknowledge when a packet went missing: possibly the reply. If something was left, it may have been an
/// ACK.
#[test]
fn a_reply_that_is_missing_behind_its_acknowledgement_was_lost() {
    let rtt = ms(34);
    let exchange = |n: i64, missing: &str, again: &str| {
        format!("+0 C 50 #q{n}\n +0 S ack\n {missing}\n q{n}+{again}\n +0 C ack\n")
    };
    let text = |missing: &str| {
        format!("handshake\n{}{}", exchange(1, "", "41 S 2"), exchange(2, missing, "281 S 2..4"))
    };
    let seen = log(text("q2+41 S 2 lost")).rtt(rtt).seen_at(End::Client);
    let bill = seen.exchange(2);
    let line = bill.of(Cause::Rto);
    assert_eq!(line.confidence, Possible, "{seen}");
    assert!(line.ns >= ms(220) && bill.ns(Cause::ServerThink, Server) >= ms(20), "{seen}");
    let unacked = text("").replace("+0 C 50 #q2\n +0 S ack\n", "+0 C 50 #q2\n +0 S ack lost\n");
    log(unacked).rtt(rtt).seen_at(End::Client).exchange(2).never(Cause::Rto);
}

/// A shallow queue drops packet after packet: each hole has as many segments as missing numbers, which
/// therefore count this connection only. The very last segment is lost too, and shows only as a missing
/// number (it passed for a cork).
#[test]
fn numbers_that_every_hole_confirms_show_a_lost_tail() {
    let every_second = "+0 S 1448 more\n +0 S 1448 more lost\n ".repeat(4);
    let copies = |from: i64| {
        let copy = |n: i64| format!("+0 S {}..{} more", (from + n) * MSS, (from + n + 1) * MSS);
        [1, 3, 5, 7].map(copy).join("\n ")
    };
    let burst = |n: i64| {
        format!("{every_second} +0 S 1448 more\n +0 C ack\n +30 S ack\n {}\n +0 C ack", copies(n * 9))
    };
    let tail = 8 * 9 * MSS;
    let text = format!(
        "handshake\n +5 C 100\n {}\n +0 S 1448 more #a\n a+0 S 183 lost\n a+40 C ack\n a+288 S {}..{}\n +0 C ack",
        each(0..8, burst),
        tail + MSS,
        tail + MSS + 183,
    );
    let seen = log(text).rtt(ms(20)).seen_at(End::Client);
    let bill = seen.exchange(1).never(Cause::Cork);
    assert!(bill.ns(Cause::Rto, Path) >= ms(280), "{seen}");
}

/// A link of 10 Mbit/s whose queue has room for five segments. Each burst of eight from a pacing sender loses
/// its last three, as the next burst shows: while no ACK came, the link was idle, whatever had been sent.
#[test]
fn a_link_has_nothing_to_do_while_nothing_is_acknowledged() {
    let each_acked = |first: i64, at: &str| {
        let more = |n: i64| format!("s{}+0 S 1448 more #s{n}\n s{n}+0 C ack", n - 1);
        let first_line = format!("{at} S 1448 more #s{first}\n s{first}+0 C ack");
        std::iter::once(first_line).chain((first + 1..first + 5).map(more)).collect::<Vec<_>>().join("\n ")
    };
    let tail = |n: i64| format!("s{}+0 S 1448x3 more lost", n + 4);
    let smooth: Vec<String> = (0..8).map(|n| each_acked(n * 5, if n == 0 { "+5" } else { "+4" })).collect();
    let (lost, next) = (40 * MSS + 5 * MSS, 40 * MSS + 8 * MSS);
    let text = format!(
        "handshake\n +5 C 100\n {}\n {}\n {}\n {}\n {}\n s49+30 S {lost}..{next}\n +0 C ack",
        smooth.join("\n "),
        each_acked(40, "+4"),
        tail(40),
        each_acked(45, "s44+16"),
        tail(45),
    );
    let seen = log(text).rtt(ms(2)).bottleneck(End::Server, 10_000_000).seen_at(End::Server);
    // Five segments of 1.1584 ms of the last thirty.
    let lost = seen.exchange(1).ns(Cause::Loss, Path);
    assert!(lost >= ms(24.1) && lost <= ms(24.3), "{lost}{seen}");
}

/// An ACK after the lost reply shows the gap: then the loss is certain, with or without numbers; that it was
/// lost twice is not.
#[test]
fn a_reply_that_left_a_gap_was_lost_for_certain() {
    let rtt = ms(40);
    for (again, sure) in [(240, Certain), (480, Likely)] {
        let text = format!(
            "{}+5 C 100 #request
             +0 S 200 lost #reply
             request+150 C {}..{} #again
             again+0 S ack
             reply+{again} S {SENT}..{}
             +0 C ack",
            settled(BEFORE),
            100 * BEFORE,
            100 * BEFORE + 100,
            SENT + 200,
        );
        let seen = log(text).rtt(rtt).without_ip_ids().seen_at(End::Client);
        let bill =
            seen.exchange(BEFORE + 1).is(&[(Cause::RoundTrip, Path, rtt), (Cause::Rto, Path, ms(again))]);
        assert_eq!(bill.of(Cause::Rto).confidence, sure, "{seen}");
    }
}

/// A probe may find that nothing was lost: without the options that would contain a D-SACK, it is only
/// possible.
#[test]
fn a_probe_whose_answer_cannot_be_read_is_possible() {
    let probe = settled(BEFORE)
        + &format!(
            "+5 C 100\n +0 S 1448x3 #first\n +0 S 1000 lost\n first+0 C ack\n first+82 S {}..{}\n +0 C ack",
            SENT as i64 + 3 * MSS,
            SENT as i64 + 3 * MSS + 1000
        );
    let fast = format!(
        "{}+5 C 100\n +0 S 1448 more lost #hole\n hole+0 S 1448x9 #rest
         rest+0 C ack\n rest+0 C ack\n rest+0 C ack\n +0 S {SENT}..{}\n +0 C ack",
        settled(BEFORE),
        SENT as i64 + MSS
    );
    for (text, form, cut_sure) in [(probe, Form::TailProbe, Possible), (fast, Form::Fast, Certain)] {
        for (cut, sure) in [(false, Certain), (true, cut_sure)] {
            let mut segments = log(text.clone()).rtt(ms(40)).capture(End::Server);
            for segment in segments.iter_mut().filter(|segment| segment.flags.syn()) {
                segment.options.cut = cut;
            }
            let seen = Seen::of(segments, "the server");
            let bill = seen.exchange(BEFORE + 1);
            let line = bill.of(Cause::Loss);
            assert_eq!((line.detail.form, line.confidence), (Some(form), sure), "{cut}{seen}");
        }
    }
}

/// A segment 90 ms after those that overtook it, with an RTT of 40 ms, looks retransmitted if neither clock
/// nor numbers tell. Nothing was retransmitted here, and none is certain.
#[test]
fn what_closes_a_gap_is_no_certain_copy_without_clock_and_numbers() {
    for late in [25, 90] {
        let text = format!(
            "{}+5 C 100\n +5 S 1448 more\n +0 S 1448 more late={late}\n +0 S 1448 more\n +0 S 1448\n +0 C ack",
            settled(3)
        );
        for end in End::BOTH {
            let seen = log(text.clone()).rtt(ms(40)).without_timestamps().without_ip_ids().seen_at(end);
            let bill = &seen.exchange(4).exchange.bill;
            let lost = bill.iter().filter(|line| matches!(line.cause, Cause::Loss | Cause::Rto));
            assert!(lost.into_iter().all(|line| line.confidence <= Likely), "{late}: {seen}");
        }
    }
}

/// Of two segments that a third one overtakes, the second left after the first, and before the third: it was
/// overtaken as well.
#[test]
fn two_that_were_overtaken_are_no_copies() {
    let text = settled(3)
        + "+5 C 100\n +5 S 1448 more #a\n a+2 S 1448 more late=60\n a+4 S 1448 more late=60\n a+6 S 1448 more\n a+6 S 1448\n +0 C ack";
    let seen = log(text).rtt(ms(40)).without_ip_ids().seen_at(End::Client);
    seen.exchange(4).never(Cause::Loss).never(Cause::Rto);
}

/// The request arrived, and its server takes 245 ms without acknowledging before: no D-SACK and no time stamp
/// shows it, nor if the original was lost. With time stamps a reply shows which transmission it answers.
#[test]
fn a_copy_that_nothing_could_refute_is_no_certain_repair() {
    let text = settled(BEFORE)
        + &format!(
            "+5 C 100 #q\n q+240 C {}..{} #x\n x+5 S 200\n +0 C ack",
            100 * BEFORE,
            100 * BEFORE + 100
        );
    for end in End::BOTH {
        let seen = log(text.clone()).rtt(ms(40)).without_timestamps().seen_at(end);
        assert!(seen.exchange(BEFORE + 1).of(Cause::Rto).confidence <= Likely, "{seen}");
    }
}

/// With one direction only, a gap that is filled shows a retransmission for a signal that was not seen.
#[test]
fn a_gap_that_is_filled_is_a_fast_repair_whatever_was_signalled() {
    let text = format!(
        "handshake\n +5 C 100\n +0 S 1448 more lost #hole\n hole+0 S 1448x9 #rest
         rest+0 C ack\n rest+0 C ack\n rest+0 C ack\n +0 S 0..{MSS}\n +0 C ack"
    );
    let mut segments: Vec<Segment> = log(text).rtt(ms(40)).capture(End::Client);
    segments.retain(|segment| segment.flags.syn() || segment.src.port == 80 || segment.payload_len > 0);
    let seen = Seen::of(segments, "the client, without its acknowledgements");
    assert_eq!(seen.exchange(1).of(Cause::Loss).detail.form, Some(Form::Fast), "{seen}");
}

/// The kernel's RTT estimate may be below this one's: a retransmission a little before the expected timer is
/// the timer's.
#[test]
fn a_timer_that_is_a_little_early_is_one() {
    let rtt = ms(160);
    let text = settled(BEFORE) + "+5 C 100 lost #request\n request+338 C 2000..2100\n +0 S 200";
    let seen = log(text).rtt(rtt).seen_at(End::Client);
    seen.exchange(BEFORE + 1).is(&[(Cause::RoundTrip, Path, rtt), (Cause::Rto, Path, ms(338))]);
}

/// An ACK of the server's is lost while it pauses for less than a round trip between two writes: that is no
/// repair's time.
#[test]
fn a_missing_packet_does_not_make_a_short_pause_a_repair() {
    let text = settled(BEFORE) + "+5 C 100\n +0 S 1448x2 more\n +5 S ack lost\n +27 S 1448x2\n +0 C ack";
    let seen = log(text).rtt(ms(40)).seen_at(End::Client);
    seen.exchange(BEFORE + 1).never(Cause::Loss).never(Cause::Rto);
}

/// A tail of three segments is lost and retransmitted after a timeout. After all of it, new data follows.
#[test]
fn what_follows_the_copies_of_a_tail_is_none() {
    let rtt = ms(40);
    let at = |segment: i64| segment * MSS;
    let text = format!(
        "handshake
         +5 C 100
         +0 S 1448x10 more
         +0 C ack
         +0 S 1448x3 lost #tail
         tail+290 S {}..{} more
         +0 C ack
         +0 S {}..{}
         +0 C ack
         +60 S 1448x2
         +0 C ack
         +60 S 1448x2
         +0 C ack",
        at(10),
        at(11),
        at(11),
        at(13),
    );
    log(text).rtt(rtt).both_ends(|seen| {
        let bill = seen.exchange(1);
        let repair = bill.ns(Cause::Loss, Path) + bill.ns(Cause::Rto, Path);
        assert!(repair >= ms(289) && repair <= ms(290 + 2 * 41), "{repair}{seen}");
    });
}

/// Two round trips after a segment whose ACK is late, a program writes: more than a segment, or on a sender
/// without Nagle. Neither is a probe; nor is data sooner than the probe of a single segment.
#[test]
fn a_write_two_round_trips_behind_the_last_is_no_probe() {
    let rtt = ms(40);
    let write =
        settled(BEFORE) + "+5 C 100\n +0 S 1448x3 #first\n first+85 S 2896\n first+60 C ack\n +0 C ack";
    log(write).rtt(rtt).seen_at(End::Server).exchange(BEFORE + 1).never(Cause::Loss).never(Cause::Rto);
    let nodelay = "+5 C 20\n +0 C 30\n +0 S 64\n +0 C ack\n";
    let write = format!("{}{nodelay}+5 C 20\n +0 C 30 #last\n last+85 C 100\n +0 S 64", settled(BEFORE));
    let seen = log(write).rtt(rtt).seen_at(End::Client);
    seen.exchange(BEFORE + 2).is(&[(Cause::RoundTrip, Path, rtt), (Cause::SenderThink, Client, ms(85))]);
    let lone = settled(BEFORE) + "+5 C 20 #head\n head+180 C 80\n +0 S 64";
    let seen = log(lone).rtt(rtt).seen_at(End::Client);
    seen.exchange(BEFORE + 1).is(&[(Cause::RoundTrip, Path, rtt), (Cause::SenderThink, Client, ms(180))]);
}

/// A flight whose ACK is lost is probed with new data two round trips later, a little more as seen from afar.
/// Near the sender it may have left as one super-segment: it does not count as a single packet.
#[test]
fn a_flight_is_probed_after_two_round_trips_however_it_left() {
    for (rtt, probe) in [(20, 51), (40, 82)] {
        let text = |flight: &str| {
            format!(
                "handshake
                 +5 C 100
                 +0 S 1448x10 more
                 +0 C ack
                 +0 S {flight} more #flight
                 flight+0 C ack lost
                 flight+{probe} S 1448 more
                 +42 C ack
                 +0 S 1448x10
                 +0 C ack"
            )
        };
        for (flight, end) in [("1448x20", End::Client), ("1448x20", End::Server), ("14480", End::Server)] {
            let seen = log(text(flight)).rtt(ms(rtt)).seen_at(end);
            assert!(seen.exchange(1).ns(Cause::Loss, Path) >= ms(probe - 1), "{seen}");
        }
    }
}

/// A server thinks for 100 ms, its reply is lost, and an ACK right after it shows the gap: its timer is the
/// repair's, but its thinking before is not.
#[test]
fn a_server_s_time_before_a_reply_that_was_lost_is_its_own() {
    let rtt = ms(40);
    let text = format!(
        "{}+5 C 100 #request
         +100 S 200 lost #reply
         request+104 C {}..{} #again
         again+0 S ack
         reply+250 S {SENT}..{}
         +0 C ack",
        settled(BEFORE),
        100 * BEFORE,
        100 * BEFORE + 100,
        SENT + 200,
    );
    let seen = log(text).rtt(rtt).seen_at(End::Client);
    let bill =
        [(Cause::RoundTrip, Path, rtt), (Cause::Rto, Path, ms(245)), (Cause::ServerThink, Server, ms(105))];
    seen.exchange(BEFORE + 1).is_within(ms(6), &bill);
}

/// Near the client, the rest of a reply comes this many ms after its beginning, with one or two of the
/// server's packets before it missing: its earlier transmissions, if that is the time of a probe, a timer or
/// two timers. Otherwise the program paused, and the missing packets were ACKs.
#[test]
fn a_rest_behind_missing_packets_was_sent_again_if_it_took_as_long_as_that_does() {
    let rtt = ms(40);
    let rest = |waited: i32, missing: usize, resent: bool| {
        let copy = format!("{}..{}", SENT + 500, SENT + 800);
        let lost = match (resent, missing) {
            (true, 1) => "a+0 S 300 lost".to_owned(),
            (true, _) => format!("a+0 S 300 lost\n a+240 S {copy} lost"),
            (false, _) => "a+50 S ack lost\n".repeat(missing),
        };
        let rest = if resent { copy } else { "300".to_owned() };
        log(format!("{}+5 C 100\n +0 S 500 #a\n {lost}\n a+{waited} S {rest}\n +0 C ack", settled(BEFORE)))
    };
    for (waited, missing) in [(120, 1), (228, 1), (320, 1), (720, 2)] {
        let seen = rest(waited, missing, true).rtt(rtt).seen_at(End::Client);
        let bill = seen.exchange(BEFORE + 1);
        let repair = bill.ns(Cause::Loss, Path) + bill.ns(Cause::Rto, Path);
        assert_eq!(repair, ms(waited), "{waited} {missing}{seen}");
    }
    for (waited, missing) in [(180, 1), (400, 1), (720, 1), (500, 2)] {
        let seen = rest(waited, missing, false).rtt(rtt).seen_at(End::Client);
        let bill = seen.exchange(BEFORE + 1).never(Cause::Loss).never(Cause::Rto);
        assert_eq!(bill.exchange.elapsed, rtt + ms(waited), "{seen}");
    }
}

/// With an RTT of 2 ms one packet takes 4 ms longer than the later ones. The signal for a repair could have
/// been there and back, but by its number it had left before them: it was overtaken, and costs the time from
/// the overtaking packet to itself.
#[test]
fn a_packet_that_was_overtaken_is_no_copy_however_late_it_comes() {
    let text = settled(6)
        + "+5 C 100
        +0 S 1448 more #head
        head+0 S 1448 more late=4
        head+0 S 1448x6
        head+4 C ack
        +0 C ack";
    let seen = log(text).rtt(ms(2)).seen_at(End::Client);
    let bill = seen.exchange(7).never(Cause::Loss).never(Cause::Rto);
    let late = bill.ns(Cause::Queueing, Path);
    assert!(late >= ms(3.5) && late <= ms(4.5), "{seen}");
}

/// The same hole, filled by a packet that left after the others.
#[test]
fn a_copy_that_fills_a_hole_is_a_repair() {
    let text = settled(6)
        + "+5 C 100
        +0 S 1448 more #head
        head+0 S 1448 more lost
        head+0 S 1448x6
        +0 C ack
        +2 S 2648..4096
        +0 C ack";
    for ids in [true, false] {
        let log = log(text.clone()).rtt(ms(2));
        let seen = if ids { log } else { log.without_ip_ids() }.seen_at(End::Client);
        assert!(seen.exchange(7).ns(Cause::Loss, Path) >= ms(3.5), "{seen}");
    }
}

/// A load balancer answers a retransmitted SYN too, with another sequence number: that is not this
/// connection's server (RFC 9293, 3.10.7.4).
#[test]
fn a_second_syn_ack_of_somebody_else_changes_nothing() {
    let log =
        log("handshake\n +5 C 100\n +20 S 200 #a\n a+0 C ack\n +5 C 100\n +20 S 300\n +0 C ack").rtt(ms(10));
    let read = |stray: bool| {
        let mut analysis = Analysis::new(Options { ..EVERYTHING });
        let capture = log.capture(End::Client);
        let syn_ack = capture.iter().find(|segment| segment.flags.syn() && segment.flags.ack()).copied();
        for segment in &capture {
            analysis.on_segment(segment);
            if let Some(other) = syn_ack.filter(|_| stray && segment.packet == 4) {
                analysis.on_segment(&Segment { at: segment.at, seq: other.seq + 1_230_000_000, ..other });
            }
        }
        analysis.finish()
    };
    let bills = |report: &Report| -> Vec<_> {
        report.connections[0]
            .exchanges
            .iter()
            .map(|exchange| (exchange.reply_bytes, exchange.elapsed))
            .collect()
    };
    assert_eq!(bills(&read(true)), bills(&read(false)));
}

/// A tail of twelve segments is lost with the probe after it. After the timeout all of it is retransmitted in
/// slow start: near the receiver, which never saw it, that is a repair as well.
#[test]
fn copies_of_a_lost_tail_are_repairs_at_either_end() {
    let rtt = ms(40);
    let at = |segment: i64| segment * MSS;
    let again = |n: i64, few: i64| format!("{}..{} more", at(n), at(n + few));
    let text = format!(
        "handshake
         +5 C 100
         +0 S 1448x10 more
         +0 C ack
         +0 S 1448x12 lost #tail
         tail+82 S {} lost
         tail+290 S {}
         +0 C ack
         +0 S {}
         +0 C ack
         +0 S {}
         +0 C ack
         +0 S {}",
        again(21, 1),
        again(10, 1),
        again(11, 2),
        again(13, 4),
        again(17, 5),
    );
    log(text).rtt(rtt).both_ends(|seen| {
        let repair = seen.exchange(1).ns(Cause::Loss, Path) + seen.exchange(1).ns(Cause::Rto, Path);
        assert!(repair >= ms(290 + 3 * 40), "{seen}");
    });
}

/// A download's last segments come in another order, the pushed one before one that is not (frames 848 to
/// 850), and 4.7 seconds later the server closes: nothing was queued in between.
#[test]
fn an_overtaken_segment_does_not_say_that_more_is_queued() {
    let text = "handshake\n +1 C 300\n +20 S 1448x3 more\n +0 C ack\n +0 S 1448 late=0.3 more\n +0.05 S 60\n +1 C ack\n +4724 S 63\n +0 S fin\n +1 C fin";
    let seen = log(text).rtt(ms(20)).seen_at(End::Client);
    assert!(seen.longer(Cause::Unexplained, ms(100)).is_empty(), "{seen}");
}

/// A reply stops for 1.6 s with all of it acknowledged, and its sender's numbers show that packets were sent
/// meanwhile and lost (frames 3040 to 3300 of a lossy download): whether a timer or a pause, it continues. If
/// no number is missing, the next data is a separate message.
#[test]
fn an_answer_whose_next_packets_were_lost_goes_on() {
    let copies = "b+221 S 14896..16344 more lost\n b+662 S 14896..16344 more lost\n b+1545 S 14896..16344 more\n +0 C ack\n +0.1 S 16344..19240";
    for (lost, goes_on) in
        [(format!("a+100 S 1448x3 lost #b\n {copies}"), true), ("a+1645 S 4344".to_owned(), false)]
    {
        let text = format!("{} +5 C 100 #q\n q+20 S 1448x2 #a\n +0 C ack\n {lost}\n +0 C ack", settled(60));
        let seen = log(text).rtt(ms(20)).seen_at(End::Client);
        assert_eq!(seen.exchange(61).exchange.elapsed >= ms(1600), goes_on, "{seen}");
        assert!(seen.spent(Cause::SenderThink, Server) < ms(2) || goes_on, "{seen}");
        let pauses = seen.lines(Cause::SenderThink, Server);
        assert!(pauses.iter().all(|line| line.confidence == Possible || line.ns < ms(2)), "{seen}");
    }
}
