//! Each general rule of the engine (docs/rules.md) that no other packet log needs: what is billed
//! if it is taken out.

use tcpwhy_core::cause::{Cause, Side};
use tcpwhy_core::report::Confidence::{Certain, Likely, Possible};
use tcpwhy_core::report::{Confidence, Line};
use tcpwhy_wire::{Endpoint, Instant, Segment};

use crate::packet_log::{CLIENT, End, SERVER, each, log, ms, settled};
use crate::seen::Seen;

/// All lines of the only connection's exchanges with this cause.
fn lines(seen: &Seen, cause: Cause) -> Vec<&Line> {
    let exchanges = seen.connection().exchanges.iter();
    exchanges.flat_map(|exchange| &exchange.bill).filter(|line| line.cause == cause).collect()
}

fn surest(seen: &Seen, cause: Cause) -> Option<Confidence> {
    lines(seen, cause).iter().filter(|line| line.ns > ms(1)).map(|line| line.confidence).max()
}

/// R9: a window of 32 segments is full for a round trip, which its ACK ends. A clock of whole
/// milliseconds does not show the order within one.
#[test]
fn by_a_clock_of_milliseconds_a_full_window_is_possible() {
    let text = "handshake\n +5 C 100\n +0 S 1448x32 more\n +0 C ack\n +0 S 1448x8\n +0 C ack";
    let whole = |segment: Segment| {
        let at = segment.at.as_nanos();
        Segment { at: Instant::from_nanos(at - at % 1_000_000), ..segment }
    };
    for end in End::BOTH {
        let segments = log(text).rtt(ms(20)).window(End::Client, 32 * 1448).capture(end);
        let coarse = Seen::of(segments.iter().copied().map(whole).collect(), "a clock of milliseconds");
        let fine = Seen::of(segments, "a clock of nanoseconds");
        assert_eq!(surest(&fine, Cause::ReceiveWindow), Some(Certain), "{fine}");
        assert_eq!(surest(&coarse, Cause::ReceiveWindow), Some(Possible), "{coarse}");
    }
}

/// C4: the fourth of a reply's segments is lost after the capture point, and retransmitted by the
/// timer. If the capture lacks the handshake, that is only likely.
#[test]
fn without_the_handshake_a_timeout_is_no_more_than_likely() {
    let text = settled(6)
        + "+5 C 100\n +0 S 1448x3 more\n +0 S 1448 lost #tail\n tail+240 S 5544..6992\n +0 C ack\n +0 S 1448\n +0 C ack";
    let segments = log(text).rtt(ms(20)).capture(End::Server);
    for (from, most) in [(0, Certain), (3, Likely)] {
        let seen = Seen::of(segments[from..].to_vec(), "the server");
        assert_eq!(surest(&seen, Cause::Rto), Some(most), "{from}: {seen}");
    }
}

/// R6: the second of four segments comes 3 ms after the others, where a retransmission would take a
/// round trip of 40 ms: it was overtaken.
#[test]
fn what_closes_a_hole_sooner_than_a_signal_can_arrive_was_overtaken() {
    for (late, lost) in [(3, false), (90, true)] {
        let text = format!(
            "handshake\n +5 C 100\n +5 S 1448 more\n +0 S 1448 more late={late}\n +0 S 1448 more\n +0 S 1448\n +0 C ack"
        );
        let seen = log(text).rtt(ms(40)).without_timestamps().without_ip_ids().seen_at(End::Client);
        let repairs = lines(&seen, Cause::Loss).len() + lines(&seen, Cause::Rto).len();
        assert_eq!(repairs > 0, lost, "{late}: {seen}");
    }
}

/// R3: within a host a reply that is 30 ms late by its stamp was not on any path: its server had
/// not been woken.
#[test]
fn within_a_host_nothing_waits_on_its_way() {
    let here = Endpoint { port: 80, ..CLIENT };
    let text = "handshake\n".to_owned()
        + &"+20 C 100\n +1 S 200\n +0 C ack\n".repeat(40)
        + "+20 C 100\n +1 S 200 late=30\n +0 C ack";
    for (ends, queued) in [([CLIENT, here], false), ([CLIENT, SERVER], true)] {
        let seen = log(text.clone()).rtt(ms(0.02)).between(ends).seen_at(End::Client);
        assert_eq!(seen.spent(Cause::Queueing, Side::Path) >= ms(25), queued, "{seen}");
    }
}

/// S5: flights of 65,160 bytes fill windows of 65,536 again and again: no handshake shows the
/// scale, but that a scale gives exactly these windows is no chance.
#[test]
fn windows_that_flights_fill_again_and_again_are_as_large_as_those() {
    let text =
        "handshake\n +5 C 100\n".to_owned() + &"+0 S 1448x45 more\n +0 C ack\n".repeat(16) + "+0 S 100";
    for end in End::BOTH {
        let segments = log(text.clone()).rtt(ms(20)).window(End::Client, 65_536).capture(end).split_off(3);
        let seen = Seen::of(segments, "midway");
        assert!(seen.spent(Cause::ReceiveWindow, Side::Client) >= ms(20 * 9), "{seen}");
    }
}

/// S5: while 34,752 bytes arrive the window field falls by 272: its unit is 128 bytes, and later
/// its rest is less than a segment, until the program has read.
#[test]
fn a_window_that_falls_by_what_arrives_shows_how_small_it_became() {
    let round = "+5 C 100\n +0 S 1448x24 more\n +0 C ack win=30784\n +0 S 1448x21 more\n +0 C ack win=376 #full\n full+300 C ack win=65536\n +0 S 1448x4\n +0 C ack\n";
    let text = "handshake\n".to_owned() + &round.repeat(3);
    for end in End::BOTH {
        let segments = log(text.clone()).rtt(ms(20)).window(End::Client, 65_536).capture(end).split_off(3);
        let seen = Seen::of(segments, "midway");
        assert!(seen.spent(Cause::ReceiverThink, Side::Client) >= ms(600), "{seen}");
    }
}

/// R3: a virtual machine was stopped for 1.5 s between two exchanges, and its clock too. It
/// acknowledges the next request at once, and answers 300 ms later: that time was its own, and not
/// the queue that its stamps would suggest.
#[test]
fn a_host_that_stood_still_between_two_exchanges_is_not_late_on_its_way() {
    let text = "handshake\n".to_owned()
        + &"+500 C 100\n +0 S 200\n +0 C ack\n".repeat(16)
        + "+3000 C 100\n +0 S ack #taken\n taken+300 S 200\n +0 C ack";
    let log = log(text).rtt(ms(20));
    for end in End::BOTH {
        let mut segments = log.capture(end);
        let asleep = segments.len() - 4;
        for segment in &mut segments[asleep..] {
            let stamps = segment.options.timestamps.as_mut().expect("all are stamped");
            let servers = if segment.src == SERVER { &mut stamps.val } else { &mut stamps.ecr };
            *servers -= if segment.packet as usize > asleep + 1 { 1_500 } else { 0 };
        }
        let seen = Seen::of(segments, &format!("the {end:?}"));
        let bill = seen.exchange(17);
        bill.is_within(
            ms(1.5),
            &[(Cause::ServerThink, Side::Server, ms(300)), (Cause::RoundTrip, Side::Path, ms(20))],
        );
    }
}

/// R5: sixteen ACKs of an upload come 0.5 ms apart, except for one moment of 12 ms in which the
/// path stalled. The link needs 8 ms for the next upload, and the server thinks about it for 50
/// more.
#[test]
fn a_moment_in_which_the_path_stood_still_is_no_slow_link() {
    let flight =
        |name: &str| each(0..17, |n| format!("+0 C 1448 {} #{name}{n}", if n < 16 { "more" } else { "" }));
    let acks = each(0..17, |n| format!("a{n}+0 S ack{}", if n < 8 { "" } else { " late=12" }));
    let text = format!(
        "{}+5 {}\n{acks}\n a16+20 S 200\n +0 C ack\n +5 {}\n b16+50 S 200\n +0 C ack",
        settled(6),
        &flight("a")[2..],
        &flight("b")[2..],
    );
    let seen = log(text).rtt(ms(60)).bottleneck(End::Client, 1448 * 8 * 2_000).seen_at(End::Client);
    let last = seen.exchange(8);
    assert!(last.ns(Cause::ServerThink, Side::Server) >= ms(49), "{seen}");
}

/// R8: the request is retransmitted after 400 ms, which is lost; the reply comes 70 ms later, with
/// an RTT of 100. The server had answered the original, and waited for no retransmission. It may
/// have thought for 370 ms, with its ACK lost; or the request reached it that late.
#[test]
fn what_is_answered_sooner_than_a_copy_can_be_had_not_waited_for_it() {
    let text = settled(6)
        + "+5 C 100 #asked\n asked+0 S ack lost\n asked+400 C 600..700 lost\n asked+370 S 200\n +0 C ack";
    let seen = log(text).rtt(ms(100)).without_timestamps().without_ip_ids().seen_at(End::Client);
    let last = seen.exchange(7);
    let [own, late] = [last.ns(Cause::ServerThink, Side::Server), last.ns(Cause::Queueing, Side::Path)];
    assert!(own >= ms(200) && own + late >= ms(360), "{seen}");
    assert_eq!(last.of(Cause::ServerThink).confidence, Possible, "{seen}");
}

/// C1: the reset that ends a connection passes two interfaces, like all packets.
#[test]
fn a_reset_seen_twice_is_one_packet() {
    let text = settled(3) + "+5 C 100\n +20 S 200\n +0 S rst twice";
    let seen = log(text).rtt(ms(20)).seen_at(End::Server);
    assert_eq!((seen.connection().packets, seen.notes("duplicates")), (15, 1), "{seen}");
}
