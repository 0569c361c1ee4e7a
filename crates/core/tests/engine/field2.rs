//! What everyday traffic showed to be wrong: clocks that are no measure of a queue, counters that a host shares among its
//! connections, captures without bare acknowledgements, holes that were taken for a reader.

use tcpwhy_core::Form;
use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server};
use tcpwhy_wire::{Duration, Endpoint, Segment};

use crate::packet_log::{CLIENT, End, SERVER, each, log, ms, settled};
use crate::seen::Seen;

/// The same capture from a client whose time stamps count something else: `clock` makes nanoseconds since the capture's start the
/// value of its stamps. What the server echoes is changed alike.
fn stamped(mut segments: Vec<Segment>, clock: impl Fn(i64) -> i64) -> Vec<Segment> {
    let start = segments[0].at;
    let mut client = 0;
    for segment in &mut segments {
        let val = clock((segment.at - start).as_nanos()) as u32;
        let Some(stamps) = segment.options.timestamps.as_mut() else { continue };
        if segment.src == CLIENT {
            (stamps.val, client) = (val + 77_000, val + 77_000);
        } else {
            stamps.ecr = client;
        }
    }
    segments
}

fn queued(seen: &Seen) -> Duration {
    let lines = seen.report.connections.iter().flat_map(|connection| &connection.exchanges);
    let lines = lines.flat_map(|exchange| &exchange.bill);
    lines.filter(|line| line.cause == Cause::Queueing).map(|line| line.ns).sum()
}

/// A panel that polls each 20 ms or whenever it is done, and whose clock counts 1.29 ms a tick, as macOS does while it is busy: the
/// server's 1 ms was a queue of 3.6 ms.
#[test]
fn a_clock_at_a_rate_of_its_own_is_no_queue() {
    let polls = each(0..150, |n| format!("+{} C 60\n +1 S 90\n +0 C ack", 2 + n * 7 % 23));
    let log = log(format!("handshake\n{polls}")).rtt(ms(0.4));
    for end in End::BOTH {
        for tick_ns in [1_290_000, 1_200_000, 5_000_000, 4_700_000] {
            let seen = Seen::of(stamped(log.capture(end), |ns| ns / tick_ns), &format!("{end:?}, {tick_ns}"));
            assert!(queued(&seen) <= ms(2), "{seen}");
        }
    }
}

/// A person's phone with a clock of 5 ms (HZ=200), whose radio makes the first answers late; its pause of two seconds was a queue.
#[test]
fn a_pause_is_no_queue_before_the_clocks_rate_is_known() {
    let text = "handshake\n +1 C 690\n +400 S 620\n +112 C ack\n +45 C 800\n +230 S 500\n +27 C ack\n +2000 C 800\n +5 S 200\n +0 C ack";
    for late_ns in [0, 17_000_000] {
        let segments = stamped(log(text).rtt(ms(1)).capture(End::Server), |ns| (ns + late_ns) / 5_000_000);
        let seen = Seen::of(segments, &format!("a phone, {late_ns}"));
        assert!(queued(&seen) <= ms(1), "{seen}");
        seen.exchange(3).elapsed(ms(6), ms(1));
    }
}

/// A host slept for 13 s, or its clock stood still while it was idle: the question behind that had not been on its way.
#[test]
fn a_step_that_stays_is_the_clock() {
    for pause_ms in [0, 7_700] {
        let polls = each(0..100, |_| "+1000 C 60\n +1 S 90\n +0 C ack".to_owned());
        let text = format!(
            "handshake\n{polls}\n +15000 C 60\n +1 S 90\n +0 C ack\n +{pause_ms} C 6\n +1 S 14\n +0 C ack"
        );
        let slept = |ns: i64| (ns - (ns - 101_000_000_000).clamp(0, 13_000_000_000)) / 1_000_000;
        for end in End::BOTH {
            let seen =
                Seen::of(stamped(log(text.clone()).rtt(ms(0.4)).capture(end), slept), "a host that slept");
            assert!(queued(&seen) <= ms(1), "{seen}");
            seen.exchange(101).elapsed(ms(1.4), ms(1));
        }
    }
}

/// One host stood still for 48 s, and both its clocks with it.
#[test]
fn on_one_host_nothing_is_queued() {
    let polls = each(0..300, |_| "+1000 C 60\n +1 S 90\n +0 C ack".to_owned());
    let text = format!("handshake\n{polls}\n +60000 C 60\n +1 S 90\n +0 C ack");
    let ends = [Endpoint { addr: SERVER.addr, ..CLIENT }, SERVER];
    let mut segments = log(text).between(ends).capture(End::Client);
    let start = segments[0].at;
    for segment in &mut segments {
        let slept = (segment.at - start - ms(301_000)).at_least_zero().min(ms(48_000));
        let ticks = (slept.as_nanos() / 1_000_000) as u32;
        let Some(stamps) = segment.options.timestamps.as_mut() else { continue };
        (stamps.val, stamps.ecr) = (stamps.val - ticks, stamps.ecr - ticks);
    }
    let seen = Seen::of(segments, "one host");
    assert!(queued(&seen) == Duration::ZERO, "{seen}");
}

/// A request that was late beside others that were late as well is still told, and so is a lone one of a clock that is known.
#[test]
fn a_queue_is_still_one() {
    let polls = each(0..20, |_| "+100 C 60\n +1 S 90\n +0 C ack".to_owned());
    let text = format!("handshake\n{polls}\n +100 C 60 late=40\n +1 S 90\n +0 C ack late=30");
    let seen = log(text).rtt(ms(20)).seen_at(End::Server);
    seen.exchange(21).is_within(
        ms(1.5),
        &[
            (Cause::RoundTrip, Path, ms(20)),
            (Cause::Queueing, Path, ms(40)),
            (Cause::ServerThink, Server, ms(1)),
        ],
    );
}

fn lost(seen: &Seen) -> Duration {
    let exchanges = seen.report.connections.iter().flat_map(|connection| &connection.exchanges);
    let lines = exchanges.flat_map(|exchange| &exchange.bill);
    lines.filter(|line| matches!(line.cause, Cause::Rto | Cause::Loss)).map(|line| line.ns).sum()
}

/// Windows and a NAT number all packets of a host in one row, and a reply whose second half came as late as a timer looked repaired.
/// What came a minute later is none of its copies: a keep-alive was acknowledged with the next sequence number in between.
#[test]
fn nothing_is_lost_that_was_not_sent_yet() {
    for keep_alive in ["", "+40000 C 899..900\n +0 S ack\n"] {
        let text = settled(8)
            + "+5 C 100\n +0 S 274 #a\n a+281 S 396\n +0 C ack\n"
            + keep_alive
            + "+20000 S 31\n +0 S fin\n +0 C ack";
        let mut segments = log(text).rtt(ms(30)).without_timestamps().capture(End::Client);
        let (mut others, mut before) = (0_u16, segments[0].at);
        for segment in segments.iter_mut().filter(|segment| segment.src != CLIENT) {
            others += if segment.at - before > ms(200) { 5 } else { 0 };
            before = segment.at;
            segment.ip_id = segment.ip_id.map(|id| id.wrapping_add(others));
        }
        let seen = Seen::of(segments, "a shared counter");
        assert!(lost(&seen) <= ms(300), "{seen}");
        seen.exchange(9).elapsed(ms(311), ms(40));
    }
}

/// The last words of an idle connection were lost and came 40 s later, with the FIN. The reply before had been whole for a minute.
#[test]
fn last_words_that_were_lost_are_nobodys_wait() {
    let text = settled(4)
        + "+5 C 244\n +40 S 192\n +0 C ack\n +45000 C 643..644\n +0 S ack\n +15000 S 77 lost\n +0 S fin\n +0 C ack\n
           +39800 S 992..1069 fin\n +0 C ack";
    let seen = log(text).rtt(ms(168)).capture(End::Client);
    let seen = Seen::of(seen, "lost last words");
    assert!(lost(&seen) <= ms(1), "{seen}");
    seen.exchange(5).elapsed(ms(208), ms(1));
}

/// Packets with data alone, as a filter leaves them: the numbers that are missing are the acknowledgements', and a server that takes
/// 330 ms for a long question had not lost its answer.
#[test]
fn without_bare_acknowledgements_their_absence_says_nothing() {
    let question = each(0..3, |_| "+0 C 1448x2 more\n +0 S ack".to_owned());
    let text = settled(12)
        + &format!(
            "+5 C 1448 more\n {question}\n +0 C 500\n +0 S ack\n +330 S 1000\n +0 C ack\n +5 C 66\n +15 S 600\n +0 C ack"
        );
    for end in End::BOTH {
        let all = log(text.clone()).rtt(ms(20)).capture(end).into_iter();
        let segments: Vec<Segment> = all.filter(|segment| segment.payload_len > 0).collect();
        let seen = Seen::of(segments, &format!("data alone, {end:?}"));
        assert!(lost(&seen) + queued(&seen) == Duration::ZERO, "{seen}");
        let bill = seen.exchange(13);
        assert!(bill.ns(Cause::ServerThink, Server) >= ms(325), "{seen}");
    }
}

/// An acknowledgement that stands while the next byte is missing waits for that byte, not for a reader.
#[test]
fn a_hole_is_no_slow_reader() {
    let round = "+0 S 1448x2 more\n +0 C ack\n";
    let text = settled(4)
        + "+5 C 100\n"
        + &round.repeat(4)
        + "+0 S 1448 more lost\n +0 S 1448x5 more #hole\n +0 C ack\n hole+900 S 12384..13832 unseen\n +0 C ack\n +0 S 1448x2 more\n +0 C ack\n +0 S 500\n +0 C ack";
    let seen = log(text).rtt(ms(60)).window(End::Client, 12_000).seen_at(End::Client);
    let bill = seen.exchange(5);
    bill.never(Cause::ReceiverThink);
    assert!(bill.ns(Cause::Rto, Path) >= ms(700), "{seen}");
}

/// A SYN that the capture does not have: the handshake took its timer, 3 s, and the path's round trip, which the server's reaction shows.
#[test]
fn a_handshake_of_a_timer_and_a_round_trip_lost_a_syn() {
    let text = "@0 C syn\n +3000 S syn\n +0 C ack\n +1 C 757\n +3010 S ack\n +0 S 1288\n +50 C ack\n +0 S 1288\n +2 C ack\n +0 S 100\n +0 C ack\n
                +500 C 100\n +0 S 100\n +0 C ack";
    let seen = log(text).rtt(ms(360)).without_timestamps().seen_at(End::Client);
    seen.setup()
        .is_within(ms(5), &[(Cause::SynRetransmit, Path, ms(3000)), (Cause::Handshake, Client, ms(360))]);
}

/// A tail loss probe takes new data where there is some (tcp_send_loss_probe, net/ipv4/tcp_output.c): nothing was sent twice.
#[test]
fn a_probe_with_new_data_is_no_retransmission() {
    let text = settled(6)
        + "+5 C 100\n +0 S 1448x2 more #reply\n +0 C ack late=100\n reply+82 S 500\n +0 C ack late=40\n +500 C 100\n +0 S 100\n +0 C ack";
    let seen = log(text).rtt(ms(40)).seen_at(End::Server);
    let probe = seen.exchange(7).of(Cause::Loss).detail;
    assert_eq!((probe.form, probe.retransmits), (Some(Form::NewDataProbe), None), "{seen}");
}
