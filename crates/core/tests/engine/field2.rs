//! What everyday traffic showed to be wrong: clocks that are no measure of a queue, counters that a host shares among its
//! connections, captures without bare acknowledgements, holes that were taken for a reader.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Path, Server};
use tcpwhy_wire::{Duration, Endpoint, Segment};

use crate::packet_log::{CLIENT, End, SERVER, each, log, ms};
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
