//! Tails that come as late as a timer: held by a cork, or lost and retransmitted?

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Server};
use tcpwhy_core::report::Confidence;
use tcpwhy_wire::{Endpoint, Segment};

use crate::invariants::analyse;
use crate::packet_log::{CLIENT, End, SERVER, log, ms, settled};

/// A tail leaves with its sender's timer, which began when all before it was acknowledged: a
/// cork's, or the RTO after the original was lost before the capture point. Near the sender the
/// original would have been captured; far from it, its numbers show it, if it counts its packets.
#[test]
fn a_tail_that_may_have_been_lost_is_possibly_a_cork_s() {
    let held =
        || log(settled(20) + "+5 C 100\n +0 S 1448x2 more\n +0 C ack\n +208 S 100\n +0 C ack").rtt(ms(4));
    for (log, far) in [(held(), Confidence::Likely), (held().without_ip_ids(), Confidence::Possible)] {
        for (end, sure) in [(End::Server, Confidence::Likely), (End::Client, far)] {
            let seen = log.seen_at(end);
            assert_eq!(seen.exchange(21).of(Cause::Cork).confidence, sure, "{seen}");
        }
    }
}

/// Four exchanges whose second pieces leave with the acknowledgement of the first, and a fifth in which that left 4 ms
/// later: its host was busy, or the program wrote it then. An imprecise clock showed one piece, of the first exchange,
/// as if it had left before the acknowledgement came.
#[test]
fn a_piece_that_is_always_held_is_not_certainly_written_late() {
    let quick = "handshake\n +5 C 100\n +0.1 S 400 #a\n a+0.1 S 400 #b\n a+0.1 C ack\n b+0.1 C ack";
    let held = "\n +5 C 100\n +0.1 S 400\n +42.5 C ack\n +0 S 800\n +0 C ack";
    let late = "\n +5 C 100\n +0.1 S 400\n +42.5 C ack\n +4 S 800\n +0 C ack";
    for end in End::BOTH {
        let seen = log(format!("{quick}{}{late}{held}", held.repeat(4))).rtt(ms(0.05)).seen_at(end);
        let bill = seen.exchange(6);
        let think = bill.exchange.bill.iter().find(|line| line.cause == Cause::SenderThink);
        assert!(think.is_none_or(|line| line.confidence == Confidence::Possible), "{seen}");
    }
}

/// A proxy writes 1,448 and 64 bytes, full segments, and 1,303 bytes at last, which leave when the 64 bytes are acknowledged; those are
/// overtaken by the full segment behind them (frames 1314 to 1416 of a browser behind a VPN): Nagle held the tail, and no window.
#[test]
fn a_small_segment_that_is_overtaken_holds_the_tail_all_the_same() {
    let text = format!(
        "{} +5 C 500 #q\n q+80 S 1448 more #a\n +0 S 64 late=5 #small\n +0 S 1448 more\n +7 S 1448x4 more #full\n small+0 C ack #acked\n \
         full+0 C ack\n acked+0 S 1303\n +0 C ack",
        settled(40)
    );
    let seen = log(text).rtt(ms(200)).seen_at(End::Client);
    let bill = seen.exchange(41);
    let held = bill.ns(Cause::Nagle, Server) + bill.ns(Cause::NagleDelayedAck, Server);
    assert!(held >= ms(185), "{seen}");
    assert!(bill.ns(Cause::SlowStart, Server) < ms(5), "{seen}");
}

/// Twenty bytes, and 168 that leave with their acknowledgement, on a path of 293 ms that took 306 twice (frames 74 to 86 of a
/// browser): a path varies by that, and nobody held the acknowledgement back.
#[test]
fn an_acknowledgement_as_late_as_a_path_varies_was_prompt() {
    let text = "@0 C syn\n +0 S syn late=13\n +0 C ack\n +1 C 20\n +0 S ack late=13\n +0 C 168\n +0 S ack\n +0 S 300\n +0 C ack";
    let seen = log(text).rtt(ms(293)).without_timestamps().seen_at(End::Client);
    let bill = seen.exchange(1);
    assert!(bill.ns(Cause::Nagle, Client) >= ms(290), "{seen}");
    bill.never(Cause::NagleDelayedAck);
}

/// A small segment leaves with the acknowledgement of the small one before it, and the next one before its own is
/// acknowledged: its sender may do without Nagle's algorithm, here and on its other connections.
#[test]
fn who_leaves_small_behind_small_later_need_not_have_been_held() {
    for (next, sure) in [("+5 S 512\n +0 C ack", Confidence::Possible), ("+0 C ack", Confidence::Likely)] {
        let text = settled(1) + &format!("+5 C 100\n +2 S 256\n +0 C ack\n +0 S 281\n {next}");
        let seen = log(text).rtt(ms(380)).seen_at(End::Server);
        assert_eq!(seen.exchange(2).of(Cause::Nagle).confidence, sure, "{next}{seen}");
    }
}

/// Full segments and one of 1,104 bytes come a millisecond apart, as the link lets them pass, a round trip behind what released
/// the first (frames 1069 to 1079 of a browser): nothing held the short one, of which more was to come.
#[test]
fn a_short_segment_within_a_burst_is_not_corked() {
    let text = settled(4)
        + "+5 C 100\n +2 S 1448x10 more\n +0 C ack\n +0 S 1448x2 more every=3\n +3 S 1104 more\n +3 S 1448x4 more every=3\n +3 S 100\n +0 C ack";
    let seen = log(text).rtt(ms(360)).without_timestamps().seen_at(End::Client);
    seen.exchange(5).never(Cause::Cork);
}

/// Two connections to one server: on the first it leaves a small segment behind a small one, on the other a small one leaves with
/// the acknowledgement of the small one before (frames 312 to 654 of a browser). Nagle's algorithm need not have held that, unless
/// the acknowledgement had been held back.
#[test]
fn who_leaves_small_behind_small_beside_need_not_have_been_held() {
    for (first, held_back, sure) in [
        ("+3", 0, Confidence::Possible),
        ("+0 C ack\n +20", 0, Confidence::Likely),
        ("+3", 40, Confidence::Likely),
    ] {
        let beside = log(settled(2)
            + &format!("+5 C 100\n +2 S 288\n {first} S 653\n +0 C ack\n +5 C 100\n +10 S 100\n +0 C ack"));
        let beside =
            beside.rtt(ms(40)).between([Endpoint { port: 40_001, ..CLIENT }, SERVER]).capture(End::Server);
        let held =
            log(settled(2) + &format!("+400 C 100\n +10 S 256\n +{held_back} C ack\n +0 S 281\n +0 C ack"));
        let mut segments = held.rtt(ms(40)).capture(End::Server);
        segments.extend(beside.into_iter().map(|segment| Segment { at: segment.at - ms(300), ..segment }));
        segments.sort_by_key(|segment| segment.at);
        (1..).zip(&mut segments).for_each(|(packet, segment)| segment.packet = packet);
        let report = analyse(&segments);
        let lines = report
            .connections
            .iter()
            .flat_map(|connection| &connection.exchanges)
            .flat_map(|exchange| &exchange.bill);
        let nagle = [Cause::Nagle, Cause::NagleDelayedAck];
        let held: Vec<_> =
            lines.filter(|line| nagle.contains(&line.cause)).map(|line| line.confidence).collect();
        assert_eq!(held, [sure], "{first} {held_back}");
    }
}

/// Keys that are typed where nothing is echoed (frames 140 to 152 of a telnet session's password) leave with the acknowledgements of
/// those before them, 200 ms late: when each was typed is unknown. The pieces of a program's message were written at once.
#[test]
fn keys_that_are_typed_were_not_all_held_for_as_long() {
    for (len, most) in [(1, Confidence::Possible), (40, Confidence::Likely)] {
        let keys = format!("+0 C {len}\n +200 S ack\n ").repeat(3);
        let seen =
            log(settled(2) + &format!("+700 C {len}\n +200 S ack\n {keys} +0 S 200\n +0 C ack")).rtt(ms(1));
        let seen = seen.seen_at(End::Client);
        let held = seen.lines(Cause::NagleDelayedAck, Client);
        assert!(!held.is_empty(), "{seen}");
        assert!(
            held.iter()
                .all(|line| (line.confidence == Confidence::Possible) == (most == Confidence::Possible)),
            "{seen}"
        );
    }
}

/// Two writes of four segments and a short one each fill a window of ten behind a pause; the acknowledgement releases the next short one, and full
/// segments with it (frames 1467 to 1489 of a browser): nothing corked that.
#[test]
fn an_initial_window_holds_a_short_segment_without_a_cork() {
    let write = "S 1448x4 more\n +0 S 1000 more\n +0";
    let text = format!(
        "{} +10000 C 641 #q\n q+40 {write} {write} C ack #open\n open+0 S 1000 more\n +0 S 1448x2 more\n +0 S 700\n +0 C ack",
        settled(3)
    );
    log(text).rtt(ms(22)).both_ends(|seen| {
        let bill = seen.exchange(4).never(Cause::Cork);
        assert_eq!(
            bill.ns(Cause::SlowStart, Server) + bill.ns(Cause::SlowStartAfterIdle, Server),
            ms(22),
            "{seen}"
        );
    });
}

/// The same where each few segments are acknowledged as they come: the flight does not show, but nothing had held the first short one.
#[test]
fn who_leaves_out_psh_without_a_cork_may_have_done_so_again() {
    let text = format!(
        "{} +10000 C 641 #q\n q+40 S 1448x4 more #a\n q+40.1 S 1000 more\n q+40.1 S 1448x3 more #b\n q+40.2 S 1448x2 more #c\n
         a+0 C ack ack=6392 #open\n b+0 C ack ack=11736\n c+0 C ack\n open+0 S 1000 more\n +0 S 1448x2 more\n +0 S 700\n +0 C ack",
        settled(3)
    );
    let seen = log(text).rtt(ms(22)).without_timestamps().seen_at(End::Client);
    assert!(
        seen.longer(Cause::Cork, ms(1)).iter().all(|line| line.confidence == Confidence::Possible),
        "{seen}"
    );
    assert!(!seen.longer(Cause::Cork, ms(1)).is_empty(), "{seen}");
}

/// A device asks the same of one server again and again, in two writes; the second follows the delayed acknowledgement of the first after 0 to 5 ms,
/// as its radio has it (frames 2025 to 2454 of a voice assistant, seen beside that). Where one connection shows that Nagle's algorithm holds it,
/// another one's was possibly held as well, behind as many bytes.
#[test]
fn what_was_held_beside_was_possibly_held_here_though_a_little_later() {
    let asks = |first: u32, late: f64| {
        log(format!(
            "handshake\n +1 C 258\n +0 S 137\n +0.3 C {first} #first\n first+52 S ack #acked\n acked+{late} C 712\n +1 S 363\n +0 C ack"
        ))
        .rtt(ms(37))
    };
    for (first, held) in [(51, true), (80, false)] {
        let beside =
            asks(51, 0.0).between([Endpoint { port: 40_001, ..CLIENT }, SERVER]).capture(End::Client);
        let mut segments = asks(first, 3.0).capture(End::Client);
        segments.extend(beside.into_iter().map(|segment| Segment { at: segment.at - ms(900), ..segment }));
        segments.sort_by_key(|segment| segment.at);
        (1..).zip(&mut segments).for_each(|(packet, segment)| segment.packet = packet);
        let report = analyse(&segments);
        let lines = report.connections[1].exchanges.iter().flat_map(|exchange| &exchange.bill);
        let nagle = lines.filter(|line| line.cause == Cause::NagleDelayedAck && line.ns >= ms(90));
        let sure: Vec<_> = nagle.map(|line| line.confidence).collect();
        assert_eq!(sure, if held { vec![Confidence::Possible] } else { Vec::new() }, "{first}");
    }
}
