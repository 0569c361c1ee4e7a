//! The same packet again: retransmissions that were lost in a row, and some that arrived.

use tcpwhy_core::Form;
use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server};
use tcpwhy_core::report::Confidence::{Likely, Possible};
use tcpwhy_wire::Segment;

use crate::packet_log;
use crate::packet_log::{End, log, ms, settled};
use crate::seen::Seen;

/// The probe that replaces the first timer is lost as well: two timers of 240 ms with an RTT of 40
/// ms (tcp_schedule_loss_probe, net/ipv4/tcp_output.c); the client sees the third transmission of
/// the reply.
#[test]
fn a_reply_that_is_lost_twice_waits_for_both_timers() {
    let rtt = ms(40);
    for settled_by in [2, 20] {
        let sent = settled_by * 200;
        let copies = format!(
            "
            +5 C 100 #request
            +0 S 200 lost #reply
            request+244 C {}..{} #again
            again+0 S ack
            reply+240 S {sent}..{} lost
            reply+480 S {sent}..{}
            +0 C ack",
            settled_by * 100,
            settled_by * 100 + 100,
            sent + 200,
            sent + 200,
        );
        let seen = log(settled(settled_by) + &copies).rtt(rtt).seen_at(End::Client);
        seen.exchange(settled_by + 1).is(&[(Cause::RoundTrip, Path, rtt), (Cause::Rto, Path, ms(480))]);
    }
}

/// The same for a request, near the server: only the gap in the client's numbers and the silence
/// show it.
#[test]
fn a_request_that_is_lost_twice_early_began_two_timers_earlier() {
    let rtt = ms(40);
    let text = settled(3)
        + "
        +0 C 100 lost #request
        request+240 C 300..400 lost
        request+480 C 300..400
        +0 S 200
        +0 C ack";
    let seen = log(text).rtt(rtt).seen_at(End::Server);
    let rto = seen.exchange(4).ns(Cause::Rto, Path);
    assert!(rto >= ms(456) && rto <= ms(504), "{seen}");
}

/// A SYN duplicated by the path comes again after the SYN-ACK. Its TSecr is 0, which looks later
/// than half of all time stamps.
#[test]
fn a_syn_behind_its_answer_echoes_nothing() {
    let rtt = ms(20);
    let log = log(settled(4)).rtt(rtt);
    for end in End::BOTH {
        let mut segments: Vec<Segment> = log.capture(end);
        let syn = segments[0];
        let later = segments[1].at + ms(0.01);
        segments.insert(2, Segment { at: later, ..syn });
        for segment in &mut segments {
            if let Some(stamps) = &mut segment.options.timestamps {
                let of_server =
                    if segment.src == packet_log::SERVER { &mut stamps.val } else { &mut stamps.ecr };
                let echoes_nothing = segment.flags.syn() && segment.src == packet_log::CLIENT;
                *of_server = if echoes_nothing { 0 } else { of_server.wrapping_add(3 << 30) };
            }
        }
        let seen = Seen::of(segments, &format!("the {end:?}"));
        for n in 1..=4 {
            seen.exchange(n).is(&[(Cause::RoundTrip, Path, rtt), (Cause::ServerThink, Server, ms(0))]);
        }
    }
}

/// The client's own timer expires along with the server's, and the ACK of its retransmission shows
/// that the reply had been sent: a packet more than a timer later is the third transmission,
/// whatever reset the server's timer in between.
#[test]
fn a_reply_that_is_missing_for_longer_than_a_timer_was_lost_twice() {
    let text = settled(1)
        + "+5 C 200 #asked
        +0 S 300 lost #reply
        asked+296 C 100..300
        +0 S ack
        reply+290 S 200..500 lost
        reply+639 S 200..500
        +0 C ack";
    let seen = log(text).rtt(ms(90)).seen_at(End::Client);
    let bill = seen.exchange(2);
    assert!(bill.ns(Cause::Rto, Path) >= ms(600), "{seen}");
    assert!(bill.ns(Cause::ServerThink, Server) <= ms(30), "{seen}");
}

/// Two segments at the end of a reply are lost. The probe leaves 2 * SRTT + 2 ms after them and
/// arrives, which restarts the timer (tcp_send_loss_probe, net/ipv4/tcp_output.c): the timer takes
/// what is left, at either end.
#[test]
fn a_timer_behind_a_probe_that_arrived_began_with_it() {
    let rtt = ms(40);
    let text = settled(4)
        + "+5 C 100 #request
        +0 S 1448x3 #reply
        reply+0 S 1448 lost #first
        first+0 S 500 lost
        reply+0 C ack
        first+127 S 6592..7092 #probe
        probe+0 C ack
        probe+250 S 5144..6592
        +0 C ack";
    log(text).rtt(rtt).both_ends(|seen| {
        let bill = seen.exchange(5);
        bill.is_within(
            ms(1),
            &[
                (Cause::RoundTrip, Path, rtt),
                (Cause::Loss, Path, ms(127)),
                (Cause::Rto, Path, ms(250)),
                (Cause::ServerThink, Server, ms(0)),
            ],
        );
    });
}

/// Of two small writes the first is lost, and Nagle holds the second. Nothing comes back, and the
/// tail loss probe takes the new data: two round trips and 200 ms after the only packet in flight,
/// or at the RTO if that is sooner (tcp_schedule_loss_probe and tcp_send_loss_probe,
/// net/ipv4/tcp_output.c).
#[test]
fn a_probe_takes_what_nagle_held() {
    let rtt = ms(40);
    let text = settled(6)
        + "+5 C 20 lost #head
        head+244 C 80
        +0 S ack
        +0 C 600..620
        +0 S 200
        +0 C ack";
    let seen = log(text).rtt(rtt).seen_at(End::Client);
    let bill = seen.exchange(7);
    let repair = bill.ns(Cause::Rto, Path) + bill.ns(Cause::Loss, Path);
    assert!(repair >= ms(280), "{seen}");
    bill.never(Cause::SenderThink).never(Cause::Unexplained);
}

/// A greeting is lost, and Nagle holds the server's next message until the probe's timer of 579 ms,
/// which the kernel's wheel rounds up to 640 (kernel/time/timer.c): the server was not thinking.
#[test]
fn a_probe_s_timer_is_rounded_up() {
    let rtt = ms(193);
    let text = "handshake
        +0.8 C 24
        +0 S ack
        +0.5 S 42 lost #greeting
        greeting+643 S 1120
        +0 C ack
        +0 S 0..42
        +0 C ack";
    let seen = log(text).rtt(rtt).seen_at(End::Server);
    let bill = seen.exchange(1);
    let repair = bill.ns(Cause::Rto, Path) + bill.ns(Cause::Loss, Path);
    assert!(repair >= ms(835), "{seen}");
    bill.never(Cause::SenderThink).never(Cause::Unexplained);
}

/// A partial segment was held back until the rest of its bytes (MSG_MORE), and the data in flight
/// is lost: the probe takes it.
#[test]
fn a_probe_takes_what_a_cork_held() {
    let rtt = ms(40);
    let text = settled(6)
        + "+5 C 100
        +0 S 1448x2 more lost #reply
        reply+82 S 500
        +0 C ack
        +0 S 1200..2648 #again
        again+0 S 2648..4096
        +0 C ack";
    let seen = log(text).rtt(rtt).seen_at(End::Server);
    let bill = seen.exchange(7);
    assert!(bill.ns(Cause::Loss, Path) >= ms(120), "{seen}");
    bill.never(Cause::SenderThink).never(Cause::Unexplained);
}

/// The ACK of a whole flight is lost on its way back. The sender has more to send and probes with
/// one new segment two round trips later, whose ACK is delayed by the timer: neither its program
/// nor its window took that time.
#[test]
fn a_lost_acknowledgement_of_a_flight_is_probed_with_new_data() {
    let rtt = ms(20);
    let text = "handshake
        +5 C 100
        +0 S 1448x10 more
        +0 C ack
        +0 S 1448x20 more #flight
        flight+0 C ack lost
        flight+51 S 1448 more
        +42 C ack
        +0 S 1448x10
        +0 C ack";
    log(text).rtt(rtt).both_ends(|seen| {
        let bill = seen.exchange(1).never(Cause::SenderThink);
        assert_eq!(bill.of(Cause::Loss).confidence, Possible, "{seen}");
        assert!(seen.exchange(1).ns(Cause::Loss, Path) >= ms(50), "{seen}");
        assert!(seen.exchange(1).ns(Cause::DelayedAckCwnd, Client) >= ms(60), "{seen}");
    });
}

/// A window of 128 bytes opens again, and its sender's host takes 6 ms to continue, two round trips
/// after the flight: that is no probe.
#[test]
fn a_segment_that_a_window_let_go_is_no_probe() {
    let text = "handshake
        +5 C 100
        +0 S 1448x10 more #flight
        flight+0 C ack win=128
        +26 C ack win=20480
        +6 S 1448 more
        +0 C ack win=20480
        +0 S 1448x9
        +0 C ack win=20480";
    log(text).rtt(ms(20)).window(End::Client, 14_592).both_ends(|seen| {
        seen.exchange(1).never(Cause::Loss);
    });
}

/// Two segments are lost, and retransmitted when the timer has expired, the second 7 ms after the
/// first. The ACK of the first retransmission comes a round trip of 40 ms after it, and 33 ms after
/// the second, about which it says nothing.
#[test]
fn an_acknowledgement_is_held_against_the_copy_that_it_is_for() {
    let text = settled(6)
        + "+5 C 1448 more lost #one\n +0 C 300 lost\n one+260 C 600..2048 more #again\n again+0 S ack\n again+7 C 2048..2348 #rest\n rest+0 S ack\n rest+5 S 200\n +0 C ack";
    let seen = log(text).rtt(ms(40)).without_timestamps().seen_at(End::Client);
    assert!(seen.spent(Cause::Rto, Path) >= ms(250), "{seen}");
    assert_eq!(seen.spent(Cause::Queueing, Path), ms(0), "{seen}");
}

/// A path that is dead for nine seconds: six retransmissions, not one.
#[test]
fn every_copy_is_counted() {
    let dead = log(settled(8)
        + "+5 C 100 lost #first
           first+240 C 800..900 lost
           first+720 C 800..900 lost
           first+1680 C 800..900 lost
           first+3600 C 800..900 #last
           last+0 S 50
           +0 C ack")
    .rtt(ms(20));
    let seen = dead.seen_at(End::Client);
    let bill = seen.exchange(9);
    let line = bill.of(Cause::Rto);
    assert_eq!(line.detail.retransmits, Some(4), "{seen}");
    // The two longest waits, the longest first: between the third, fourth and fifth transmission.
    let [first, second, third] = line.evidence[..] else { panic!("{seen}") };
    assert!(third < first && first < second, "{seen}");
}

/// The last message of an idle connection was lost and came 40 s later, with the FIN. The reply
/// before had been complete for a minute.
#[test]
fn last_words_that_were_lost_are_nobodys_wait() {
    let text = settled(4)
        + "+5 C 244\n +40 S 192\n +0 C ack\n +45000 C 643..644\n +0 S ack\n +15000 S 77 lost\n +0 S fin\n +0 C ack\n
           +39800 S 992..1069 fin\n +0 C ack";
    let seen = log(text).rtt(ms(168)).capture(End::Client);
    let seen = Seen::of(seen, "lost last words");
    assert!(seen.lost() <= ms(1), "{seen}");
    seen.exchange(5).elapsed(ms(208), ms(1));
}

/// A tail loss probe takes new data if there is any (tcp_send_loss_probe, net/ipv4/tcp_output.c):
/// nothing was sent twice.
#[test]
fn a_probe_with_new_data_is_no_retransmission() {
    let text = settled(6)
        + "+5 C 100\n +0 S 1448x2 more #reply\n +0 C ack late=100\n reply+82 S 500\n +0 C ack late=40\n +500 C 100\n +0 S 100\n +0 C ack";
    let seen = log(text).rtt(ms(40)).seen_at(End::Server);
    let probe = seen.exchange(7).of(Cause::Loss).detail;
    assert_eq!((probe.form, probe.retransmits), (Some(Form::NewDataProbe), None), "{seen}");
}

/// Two small segments are retransmitted as one; the capture has seen only the first of them (a
/// queueing discipline drops before it).
#[test]
fn what_begins_with_bytes_sent_before_is_sent_again() {
    let text = "handshake\n +5 C 100\n +0 S 10\n +0 C ack\n +5 C 500 lost #first\n first+0.1 C 8 lost unseen\n \
                first+4600 C 100..608\n +0 S ack\n +1 S 5\n +0 C ack";
    let seen = log(text).seen_at(End::Client);
    let bill = seen.exchange(2);
    let line = bill.of(Cause::Rto);
    assert_eq!((line.side, line.confidence), (Path, Likely), "{seen}");
    assert!(line.ns >= ms(4599), "{seen}");
}

/// An ACK is lost, and the next one answers a retransmission three seconds later: what Nagle holds
/// meanwhile waits for the timer.
#[test]
fn a_hold_that_a_copy_ends_was_the_timer_s() {
    let text = "handshake\n +5 C 100\n +0 S 10\n +0 C ack\n +5 C 500 #held\n +0 S ack lost\n held+3160 C 100..600\n +0 S ack #again\n \
                again+0 C 7\n +0.2 S 5\n +0 C ack";
    let seen = log(text).seen_at(End::Client);
    let bill = seen.exchange(2);
    let line = bill.of(Cause::Rto);
    assert!(line.ns >= ms(3159), "{seen}");
    assert!(!bill.exchange.bill.iter().any(|line| line.cause == Cause::Nagle && line.ns > ms(1)), "{seen}");
}

/// The four packets of a reply pass in another order, at one instant, the first of them last
/// (frames 50 to 59 of a shop's page), or a part of a round trip later: the number missing when the
/// reply began comes with it, and the server had taken its time. If it comes as a retransmission,
/// it had been lost before.
#[test]
fn a_first_packet_that_comes_last_at_the_same_instant_was_not_lost() {
    for behind in [0, 30] {
        let text = settled(40)
            + "+10 C 485 #q\n q+0 S ack\n q+288 S 1397 #first\n first+0 S 1397\n first+0 S 1125\n first+0 S 37\n +0 C ack";
        let mut segments = log(text).rtt(ms(266)).without_timestamps().capture(End::Client);
        let first = segments.iter().position(|segment| segment.payload_len == 1397).expect("an answer");
        let at = segments[first + 3].at;
        segments[first..=first + 3].rotate_left(1);
        for (n, segment) in segments[first..=first + 3].iter_mut().enumerate() {
            (segment.at, segment.packet) = (at, (first + n + 1) as u64);
        }
        for segment in &mut segments[first + 3..] {
            segment.at = segment.at + ms(behind);
        }
        let seen = Seen::of(segments, "the client, in another order");
        assert_eq!(seen.spent(Cause::Rto, Path), ms(0), "{seen}");
        assert!(seen.spent(Cause::ServerThink, Server) >= ms(286), "{seen}");
    }
}

/// An overtaken packet has the same time stamp as those that overtook it, by a millisecond clock,
/// and comes 163 ms later (frames 73 to 81 of a voice message): it left with them, and was delayed.
/// A retransmission triggered by a signal has a later one.
#[test]
fn what_has_the_stamp_of_its_overtaker_was_late_and_not_lost() {
    for lost in [false, true] {
        let answer = if lost {
            "q+0 S 1428 more lost\n q+0 S 1428 more #b\n +0 C ack #told\n told+126 S 1200..2628 more"
        } else {
            "q+0 S 1428 more late=163\n q+0 S 1428 more #b\n +0 C ack"
        };
        let text = settled(6) + "+5 C 253 #q\n" + answer + "\n b+200 S 360\n +0 C ack";
        let seen = log(text).rtt(ms(37)).without_ip_ids().seen_at(End::Client);
        let bill = seen.exchange(7);
        let [repair, late] = [Cause::Loss, Cause::Queueing].map(|cause| bill.ns(cause, Path));
        let repair = repair + bill.ns(Cause::Rto, Path);
        assert!(if lost { repair >= ms(120) } else { late >= ms(162) && repair == ms(0) }, "{seen}");
    }
}

/// The reply and all ACKs of its request are lost; the request is retransmitted three times, until
/// a packet with a number after the missing reply arrives from the server, 0.6 s before the reply's
/// retransmission (frames 1603 to 1608 of a phone's capture): all but the path's RTT was loss. A
/// server that acknowledges at once, and takes 1.2 s before it sends the reply that is lost, has
/// taken that time.
#[test]
fn who_is_heard_from_behind_an_unseen_answer_had_answered() {
    let lost = "+5 C 158 #q\n q+20 S 120 lost\n q+307 C 400..558 lost\n q+612 C 400..558 lost\n q+1222 C 400..558 #last
         last+0 S ack #heard\n heard+580 S 800..920\n +0 C ack";
    let slow = "+5 C 158 #q\n q+0 S ack\n q+1200 S 120 lost #a\n a+5 S ack\n a+300 S 800..920\n +0 C ack";
    for (text, own, repair) in [(lost, [0, 21], 1_780), (slow, [1_150, 1_210], 290)] {
        let seen = log(settled(4) + text).rtt(ms(100)).seen_at(End::Client);
        let bill = seen.exchange(5);
        let think = bill.ns(Cause::ServerThink, Server);
        assert!((ms(own[0])..=ms(own[1])).contains(&think), "{think}: {seen}");
        assert!(bill.ns(Cause::Rto, Path) >= ms(repair), "{seen}");
    }
}
