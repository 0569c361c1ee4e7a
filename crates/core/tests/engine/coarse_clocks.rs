//! Delays that a time-stamp clock's ticks, or a host's timer, are too coarse to show.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Path, Server};
use tcpwhy_core::report::Confidence::{Likely, Possible};
use tcpwhy_wire::{Instant, Segment};

use crate::packet_log::{End, each, log, ms};
use crate::seen::Seen;

/// One end's clock, in ticks of so many ms.
fn ticking(mut segments: Vec<Segment>, end: End, tick_ms: u32) -> Vec<Segment> {
    for segment in &mut segments {
        let Some(stamps) = segment.options.timestamps.as_mut() else { continue };
        if (segment.src == crate::packet_log::CLIENT) == (end == End::Client) {
            stamps.val /= tick_ms;
        } else {
            stamps.ecr /= tick_ms;
        }
    }
    segments
}

/// A request's stamp is 55.9 ms older than a clock of 100 ms allows (packet 547 of a server's capture, whose client's
/// clock had drifted): the clock does not show so little. It does show 250 ms.
#[test]
fn less_than_a_long_tick_is_no_delay() {
    for (late, shown) in [(150, 0.), (350, 250.)] {
        let polls = each(0..40, |n| format!("@{} C 60\n +1 S 90\n +0 C ack", 300 * (n + 1)));
        let text = format!("handshake\n{polls}\n @12300 C 60 late={late}\n +1 S 90\n +0 C ack");
        let seen =
            Seen::of(ticking(log(text).rtt(ms(46)).capture(End::Server), End::Client, 100), "the server");
        let queued = seen.exchange(41).ns(Cause::Queueing, Path);
        assert!(queued >= ms(shown) && queued <= ms(shown + 1.), "{seen}");
        seen.exchange(41).elapsed(ms(47. + shown), ms(1));
    }
}

/// A first request is acknowledged 8 ms late, which is nobody's timer, and the next one's reply, 23 ms late, is its
/// first acknowledgement (packets 4 to 9 of a web server's capture): no host has to acknowledge within 18 ms. What
/// takes 150 ms without an acknowledgement was on its way, where the timer is one of 40.
#[test]
fn a_delay_that_is_no_timer_bounds_no_acknowledgement() {
    for (first, reply, on_its_way) in [(8, 23, 0.), (40, 150, 92.)] {
        let text = format!(
            "handshake\n +1 C 579 #q\n q+{first} S ack\n +100 S 1153\n +0 C ack\n +960 C 610\n +{reply} S 1107\n +0 C ack"
        );
        let seen = log(text).rtt(ms(1.9)).seen_at(End::Client);
        let bill = seen.exchange(2);
        assert!(bill.ns(Cause::Queueing, Path) - ms(on_its_way) <= ms(1), "{seen}");
        assert!(bill.ns(Cause::Queueing, Path) >= ms(on_its_way) - ms(1), "{seen}");
        assert!(bill.of(Cause::ServerThink).confidence >= Likely || on_its_way > 0., "{seen}");
        assert!(bill.ns(Cause::ServerThink, Server) >= ms(22), "{seen}");
    }
}

/// A server writes head and body 1.5 ms apart, 3 ms away, and its clock has not ticked since its SYN-ACK (frames 84
/// to 90 of a small web server): the equal stamps do not show that the body was on its way.
#[test]
fn a_clock_that_has_not_ticked_shows_no_link() {
    let text = "handshake\n +0.2 C 93\n +0 S ack\n +0.4 S 236\n +1.5 S 63\n +0 C ack";
    let seen = Seen::of(ticking(log(text).rtt(ms(3)).capture(End::Client), End::Server, 100), "the client");
    assert_eq!(seen.spent(Cause::Bandwidth, Path), ms(0), "{seen}");
    assert_eq!(seen.spent(Cause::SenderThink, Server), ms(1.5), "{seen}");
}

/// A capture whose clock advances by 4 ms: what a server took beyond a path of 300 ms (frames 162 and 163 of a phone's capture) may be anything up
/// to 16 ms, where it shows 8. What takes five ticks is the server's, all but one of them.
#[test]
fn two_ticks_behind_a_long_path_are_not_likely_to_be_the_server_s() {
    for (takes, sure) in [(8., Possible), (20., Likely)] {
        let turns = each(0..9, |n| {
            format!("+{} C 100 #q{n}\n q{n}+0 S ack\n q{n}+{takes} S 200\n +0 C ack", 36 + n * 8 % 20)
        });
        let mut segments =
            log(format!("handshake\n {turns}")).rtt(ms(300)).without_timestamps().capture(End::Client);
        for segment in &mut segments {
            segment.at = Instant::from_nanos(segment.at.as_nanos() / 4_000_000 * 4_000_000);
        }
        let seen = Seen::of(segments, "the client, by a clock of 4 ms");
        let own = seen.exchange(8);
        assert_eq!(own.of(Cause::ServerThink).confidence, sure, "{seen}");
    }
}

/// One end's clock gains 500 us per second on the capture's.
fn gaining(mut segments: Vec<Segment>, end: End) -> Vec<Segment> {
    for segment in &mut segments {
        let Some(stamps) = segment.options.timestamps.as_mut() else { continue };
        let own = (segment.src == crate::packet_log::CLIENT) == (end == End::Client);
        let stamp = if own { &mut stamps.val } else { &mut stamps.ecr };
        *stamp += *stamp / 2_000;
    }
    segments
}

/// A client sends a piece every 15 s, and each takes 7 ms less than the one before, by its clock, which gains on the
/// capture's (frames 15721 to 22512 of a web server's capture): none was late. What takes 40 ms less 5 s later was.
#[test]
fn a_clock_that_gains_shows_no_queue() {
    for (late, apart) in [(0, 15_000), (40, 5_000)] {
        let turns = each(1..4, |n| {
            let late = if n < 3 { late } else { 0 };
            format!("@{} C 20 late={late}\n +0 S ack\n +1 S 90\n +0 C ack late={late}", apart * n)
        });
        let text = format!("@0 C syn late={late}\n +0 S syn\n +0 C ack late={late}\n {turns}");
        let seen = Seen::of(gaining(log(text).rtt(ms(20)).capture(End::Server), End::Client), "the server");
        let spent = seen.exchange(2).ns(Cause::Queueing, Path);
        assert!(if late == 0 { spent == ms(0) } else { spent >= ms(37) }, "{spent} {seen}");
    }
}

/// A clock of 100 ms is read up to 100 ms after its tick (frames 977 to 1269 of a chat): a piece that took 10 ms longer
/// than the next one, by that clock, was perhaps as quick.
#[test]
fn what_a_long_tick_may_be_is_no_delay() {
    let polls = each(0..40, |n| format!("@{} C 60\n +1 S 90\n +0 C ack", 300 * (n + 1) + 50));
    let next = |at| format!("@{at} C 60\n +1 S 90\n +0 C ack\n");
    let text = format!("@50 C syn\n +0 S syn\n +0 C ack\n{polls}\n {} {}", next(27_150), next(27_540));
    let seen = Seen::of(ticking(log(text).rtt(ms(46)).capture(End::Server), End::Client, 100), "the server");
    assert_eq!(seen.spent(Cause::Queueing, Path), ms(0), "{seen}");
}
