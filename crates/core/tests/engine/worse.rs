//! Conclusions that must not be drawn from a degraded capture: packets out of order, duplicated,
//! cut, missing, or stamped by a clock that is coarse or set meanwhile.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Path, Server};
use tcpwhy_core::report::Confidence::{Certain, Likely, Possible};
use tcpwhy_core::report::Kind;
use tcpwhy_wire::{Duration, Instant, Segment};

use crate::packet_log::{End, SERVER, log, ms, settled};
use crate::seen::Seen;

/// Two queues of an interface: the client's next request passes 10 us before the reply that it
/// reacts to, twice. The server did not send that in reaction to the request, and is no nearer.
#[test]
fn what_passes_behind_its_acknowledgement_is_no_reaction() {
    let text = "handshake".to_owned() + &"\n +0 C 100 #asked\n asked+0 S ack\n asked+30 S 200".repeat(9);
    let mut segments = log(text).rtt(ms(6)).without_timestamps().capture(End::Client).split_off(3);
    let answers: Vec<usize> = (0..segments.len()).filter(|&n| segments[n].payload_len == 200).collect();
    for &n in &answers[3..5] {
        segments[n].at = segments[n].at + Duration::from_micros(10);
        segments.swap(n, n + 1);
    }
    let seen = Seen::of(segments, "the client, out of order");
    let measured = seen.connection().rtt_min.expect("a round trip");
    assert!(measured >= ms(5.5), "{measured}: {seen}");
}

/// Two queues of an interface: a reply passes 10 us after the FIN that follows it, and a round's
/// first segment after its second. No signal reaches a sender so soon, and nothing was lost.
#[test]
fn what_passes_by_a_hair_behind_the_next_was_not_lost() {
    let answer = settled(4)
        + "+5 C 100
 +40 S 200
 +0 S fin
 +0 C ack";
    let round = settled(4)
        + "+5 C 100 #asked
 asked+0 S ack
 asked+40 S 1448x2
 +30 S 1448x2
 +0 C ack";
    for (text, behind) in [(answer, 1), (round, 3)] {
        for end in End::BOTH {
            let log = log(&text).rtt(ms(20)).without_timestamps().without_ip_ids();
            let mut segments = log.capture(end);
            let of_server = |segment: &Segment| segment.src == SERVER && segment.seq_len() > 0;
            let n =
                (0..segments.len()).filter(|&n| of_server(&segments[n])).nth(5 + behind - 1).expect("sent");
            segments[n].at = segments[n].at + Duration::from_micros(10);
            segments.swap(n, n + 1);
            let seen = Seen::of(segments, &format!("the {end:?}, {behind}"));
            assert!(
                !seen.report.bill.iter().any(|line| matches!(line.cause, Cause::Loss | Cause::Rto)),
                "{seen}"
            );
            let own = seen.exchange(5).ns(Cause::ServerThink, Server);
            assert!((ms(39)..ms(41)).contains(&own), "{own}: {seen}");
        }
    }
}

/// By its options, the answer to a retransmission would show that the original had arrived (RFC
/// 3522, RFC 2883): if these are cut off, an unnecessary timeout looks like a needed one.
#[test]
fn a_copy_whose_answer_is_cut_is_no_more_than_possible() {
    let lost = settled(4) + "+5 C 100 lost #asked\n asked+300 C 400..500 #again\n again+0 S 200\n +0 C ack";
    let spurious = settled(4) + "+5 C 100 #asked\n asked+300 C 400..500\n asked+340 S 200\n +0 C ack";
    for (text, arrived) in [(lost, false), (spurious, true)] {
        let mut segments = log(text).rtt(ms(40)).capture(End::Client);
        let whole = Seen::of(segments.clone(), "the client");
        let sure = |seen: &Seen| seen.lines(Cause::Rto, Path).iter().map(|line| line.confidence).max();
        assert!(arrived || sure(&whole) == Some(Certain), "{whole}");
        for segment in &mut segments {
            let options = &mut segment.options;
            (options.cut, options.timestamps, options.sack_permitted) = (true, None, false);
        }
        let cut = Seen::of(segments, "the client, without options");
        assert!(sure(&cut).is_none_or(|sure| sure == Possible), "{cut}");
    }
}

/// The clock of the client's capture is set on by a second within the handshake, which then takes as long as
/// the server's timer: the client's own timer had run as long, and no copy of its SYN has passed. It is no
/// more than possible that a packet was lost; where the copy has passed, one was.
#[test]
fn a_handshake_as_long_as_a_timer_without_a_copy_has_no_likely_loss() {
    let sure = |seen: &Seen| seen.lines(Cause::SynRetransmit, Path).iter().map(|line| line.confidence).max();
    let mut segments = log(settled(3)).rtt(ms(20)).capture(End::Client);
    for segment in &mut segments[1..] {
        segment.at = segment.at + ms(1_000);
    }
    let set = Seen::of(segments, "the client, whose clock is set");
    assert!(sure(&set).is_none_or(|sure| sure == Possible), "{set}");
    let copied = settled(3).replacen("handshake", "@0 C syn lost\n @1000 C syn\n +0 S syn\n +0 C ack", 1);
    let copied = log(copied).rtt(ms(20)).seen_at(End::Client);
    assert!(sure(&copied) > Some(Possible), "{copied}");
}

/// The server's FIN is missing from the capture, but was acknowledged: nobody waited for that byte
/// until the client closed.
#[test]
fn an_end_that_the_capture_does_not_have_is_not_missing() {
    let text = settled(4)
        + "+5 C 100\n +40 S 200\n +0 C ack\n +5000 S fin unseen #end\n end+0 C ack\n end+1 C fin #both\n both+0 S ack";
    log(text).rtt(ms(20)).both_ends(|seen| {
        assert!(seen.lines(Cause::Rto, Path).is_empty(), "{seen}");
        seen.exchange(5).is(&[(Cause::RoundTrip, Path, ms(20)), (Cause::ServerThink, Server, ms(40))]);
    });
}

/// A packet captured a second time 3 ms later, after a firewall or a tunnel, left with its first
/// sighting, as its sender's clock and numbers show.
#[test]
fn what_comes_again_with_the_clock_of_the_first_is_no_second_copy() {
    let text = settled(12) + "+5 C 100 #asked\n asked+20 S 4344\n +0 C ack\n +5 C 100\n +7 S 200\n +0 C ack";
    for ids in [true, false] {
        let log = log(text.clone()).rtt(ms(20));
        let log = if ids { log } else { log.without_ip_ids() };
        for end in End::BOTH {
            let once = log.capture(end);
            let again = |segment: &Segment| Segment { at: segment.at + ms(3), ttl: 63, ..*segment };
            let mut twice: Vec<Segment> = once.iter().flat_map(|one| [*one, again(one)]).collect();
            twice.sort_by_key(|segment| segment.at); // stable
            let seen = Seen::of(twice, &format!("the {end:?}, {ids}"));
            for cause in [Cause::Loss, Cause::Rto, Cause::SynRetransmit] {
                assert!(!seen.report.bill.iter().any(|line| line.cause == cause), "{cause}: {seen}");
            }
        }
    }
}

/// A millisecond clock shows no distance of either end, and is set forward by a second: a report
/// published every second is not late because of a queue, which a path without length does not
/// have.
#[test]
fn nothing_is_late_on_a_way_that_has_shown_no_length() {
    let text = "handshake".to_owned() + &"\n +1000.7 C 26\n +0.1 S ack".repeat(25);
    let mut segments = log(text).rtt(ms(0.1)).capture(End::Server).split_off(3);
    let set = segments.len() / 2;
    for (n, segment) in segments.iter_mut().enumerate() {
        let whole = Instant::from_nanos(segment.at.as_nanos() / 1_000_000 * 1_000_000);
        segment.at = if n < set { whole } else { whole + ms(1000) };
    }
    let seen = Seen::of(segments, "a clock that is set");
    assert!(seen.lines(Cause::Queueing, Path).is_empty(), "{seen}");
}

/// A client that acknowledges with its next request, 4.5 ms later, and once by its timer: neither
/// shows its distance, and nobody waited for that.
#[test]
fn a_timer_s_acknowledgement_shows_no_way() {
    let round = "\n +130 C ack\n +50 C 56\n +2.5 S 60\n +4.5 C 56\n +2.5 S 60\n +4.5 C 56\n +2.5 S 60";
    let log = log("handshake".to_owned() + &round.repeat(4)).rtt(ms(1)).without_timestamps();
    let seen = Seen::of(log.capture(End::Client).split_off(3), "the client, midway");
    let all = &seen.connection().exchanges;
    for exchange in all.iter().filter(|exchange| exchange.kind == Kind::Exchange && exchange.n > 2) {
        assert!(exchange.elapsed <= ms(3.6), "{}: {seen}", exchange.n);
    }
}

/// A reply is sent again when its sender's timer expires, and the capture ends there: the acknowledgement that follows
/// might still say that the client had it (a D-SACK, RFC 2883). With one that does not, it was lost.
#[test]
fn a_copy_that_ends_the_capture_was_not_certainly_needed() {
    for (rest, sure) in [("", Likely), ("\n +0 C ack", Certain)] {
        let text = settled(3) + "+5 C 100\n +0 S 200 lost #reply\n reply+224 S 600..800" + rest;
        let seen = log(text).rtt(ms(20)).seen_at(End::Server);
        assert_eq!(seen.exchange(4).of(Cause::Rto).confidence, sure, "{seen}");
    }
}
