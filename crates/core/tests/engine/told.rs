//! What do D-SACKs show of a path that stalled: how many retransmissions were unnecessary, and how
//! long did it stall (RFC 2883)?

use tcpwhy_core::cause::{Cause, Side};
use tcpwhy_core::report::Confidence::{Likely, Possible};
use tcpwhy_wire::{Duration, Endpoint, TcpOptions};

use crate::distance::merged;
use crate::packet_log::{CLIENT, End, SERVER, log, ms, settled};
use crate::seen::Seen;

/// The repairs and the queues of an exchange.
fn repaired(seen: &Seen, n: usize) -> [Duration; 2] {
    let bill = seen.exchange(n);
    let repaired = [Cause::Rto, Cause::Loss]
        .into_iter()
        .flat_map(|cause| [Side::Path, Side::Server].map(|side| bill.ns(cause, side)));
    [repaired.sum(), bill.ns(Cause::Queueing, Side::Path)]
}

/// The first data is sent four times within 1.2 s, as to a server that does not accept its
/// connection, and answered 166 ms after the last with an RTT of 74 ms; then D-SACKs name all three
/// retransmissions (frames 125 to 281 of a browser's capture over a phone): the earlier ones had
/// arrived, and the server's queue had not dropped them. The server's part of the rest is unknown.
/// If a queue is full, only the last one arrives.
#[test]
fn no_accept_queue_had_dropped_what_d_sacks_name() {
    for (late, dropped) in [("late=1210", false), ("lost", true)] {
        let told = if dropped { "" } else { "c+0 S ack\n d+0 S ack\n e+0 S ack\n" };
        let first = if dropped { "lost" } else { "late=1319" };
        let last = if dropped { "late=0" } else { "late=540" };
        let answered = if dropped { "e+92" } else { "q+0" };
        let text = format!(
            "handshake\n +2 C 203 {first} #q\n q+310.5 C 0..203 {late} #c\n q+612 C 0..203 {late} #d\n q+1226.6 C 0..203 {last} #e\n \
             {answered} S 1240 more #a\n a+3.6 S 1240 more\n +0 S 729\n +0 C ack\n {told} +500 C 100\n +1 S 200\n +0 C ack"
        );
        let seen = log(text).rtt(ms(74)).without_timestamps().seen_at(End::Client);
        let [lost, stood] = repaired(&seen, 1);
        assert_eq!(lost >= ms(1226), dropped, "{seen}");
        assert_eq!(stood >= ms(1226), !dropped, "{seen}");
        let bill = seen.exchange(1);
        let own = bill.of(Cause::ServerThink);
        assert_eq!(own.confidence, if dropped { Likely } else { Possible }, "{seen}");
    }
}

/// The first of two segments is retransmitted three times, and one of these delivers it, 2.0 s
/// later: two D-SACKs name as many duplicates of the four packets (frames 254 to 472 of a browser's
/// capture). Two of three timers had repaired nothing; and a host acknowledges a retransmission on
/// arrival, so the last one had been held up until then, and possibly the request too. Its reply
/// comes 21 ms later.
#[test]
fn of_several_copies_as_many_were_for_nothing_as_d_sacks_name() {
    let text = "handshake
         +0.3 C 1282 lost more #a
         +0 C 510 #b
         b+175 S ack
         a+230 C 0..1282 late=1717 #c
         a+531.4 C 0..1282 late=1415.7 #d
         a+1134 C 0..1282 late=813.2 #e
         c+0 S ack
         d+0 S ack
         e+0 S ack
         e+21 S 1220 more
         +0 S 786
         +0 C ack";
    let seen = log(text).rtt(ms(55)).without_timestamps().seen_at(End::Client);
    let [lost, stood] = repaired(&seen, 1);
    assert!(lost <= ms(230), "{seen}");
    assert!(stood >= ms(1715) && stood <= ms(1720), "{seen}");
    let bill = seen.exchange(1);
    let own = bill.of(Cause::ServerThink);
    assert!(own.ns <= ms(22) && own.confidence == Possible, "{seen}");
}

/// A hello is retransmitted after 629 ms, answered 895 ms later with an RTT of 285, and a D-SACK
/// names the retransmission (frames 1920 to 1955 of the same browser): no host that has it delays
/// the ACK by more than 200 ms.
#[test]
fn an_answer_comes_with_its_acknowledgement_no_later_than_hosts_acknowledge() {
    let text = "handshake
         +11 C 559 late=1239 #q
         q+628.8 C 0..559 late=815 #c
         q+0 S 1220x5 more
         +0 S 307
         +0 C ack
         c+0 S ack
         +300 C 100
         +1 S 200
         +0 C ack";
    let seen = log(text).rtt(ms(285)).without_timestamps().seen_at(End::Client);
    let [lost, stood] = repaired(&seen, 1);
    assert!(!lost.is_positive() && stood >= ms(1037), "{seen}");
    let bill = seen.exchange(1);
    let own = bill.of(Cause::ServerThink);
    assert!(own.ns <= ms(201) && own.confidence == Possible, "{seen}");
    let text = "handshake
         +11 C 559 lost #q
         q+628.8 C 0..559 #c
         c+0 S ack
         c+374 S 307
         +0 C ack";
    let seen = log(text).rtt(ms(5)).without_timestamps().seen_at(End::Client);
    let bill = seen.exchange(1);
    let own = bill.of(Cause::ServerThink);
    assert!(own.ns >= ms(373) && own.confidence == Likely, "{seen}");
}

/// Two segments, a probe of the last 1,240 bytes, the first one twice by a timer, and the second
/// one after its ACK: all had arrived, except that no D-SACK names the second retransmission of the
/// first (frames 1982 to 2022 of the same browser). The timer before that one may have been waited
/// for; a retransmission with the same bytes as a named one was unnecessary.
#[test]
fn what_a_named_copy_had_was_there_when_it_went_out_again() {
    let text = "handshake
         +6 C 1240 late=1222 more #a
         +0 C 752 late=1225 #b
         a+202.7 C 752..1992 late=1400 #p
         a+570.8 C 0..1240 late=1500 #r
         a+1181.7 C 0..1240 lost
         a+0 S ack
         a+1323.7 C 1240..1992 late=100 #t
         b+0 S ack
         b+2.5 S 1240 more
         +3.4 S 978
         +0 C ack
         p+0 S ack
         r+0 S ack
         t+0 S ack
         +800 C 100
         +1 S 200
         +0 C ack";
    let seen = log(text).rtt(ms(100.6)).without_timestamps().seen_at(End::Client);
    let [lost, stood] = repaired(&seen, 1);
    assert!(lost <= ms(369), "{seen}");
    assert!(stood >= ms(811), "{seen}");
    assert_eq!(seen.exchange(1).of(Cause::ServerThink).confidence, Possible, "{seen}");
}

/// A message is held up on the path for 800 ms, and a timer retransmits it with the 79 bytes
/// written meanwhile (frames 1846 to 1853 of the same browser): when those were written is unknown.
#[test]
fn when_was_written_what_goes_out_with_a_copy_is_not_known() {
    let text = "handshake
         +100 C 406 late=1479 #p
         p+815.4 C 0..485 late=664 #p2
         p+1459 S ack
         +0 C 406..485 late=5
         p2+20 S 385
         +42 C ack
         +27000 C 406 late=783 #q
         q+817 C 485..970 late=1180 #again
         q+0 S ack
         +0 C 891..970 late=1150 #t
         again+0 S ack
         t+0 S ack
         t+19 S 386
         +0 C ack";
    let log = log(text).rtt(ms(35)).without_timestamps();
    let seen = Seen::of(log.capture(End::Client).split_off(3), "the client, midway");
    let pauses = seen.lines(Cause::SenderThink, Side::Client);
    let pauses: Vec<_> =
        pauses.iter().filter(|line| line.ns >= ms(800)).map(|line| line.confidence).collect();
    assert_eq!(pauses, [Possible; 2], "{seen}");
}

/// The same after 427 ms with an RTT of 300: a probe's retransmission finds a loss or none, and if
/// it includes new bytes, no D-SACK shows later which (frames 1985 to 2009 of the same browser).
#[test]
fn what_a_probe_with_new_bytes_repeats_may_have_arrived() {
    let text = "handshake
         +5 C 100
         +1 S 200
         +0 C ack
         +20 C 400 late=1100 #q
         q+427 C 100..722 late=1700 #again
         q+0 S ack
         again+0 S ack
         again+133 S 407
         +0 C ack";
    let seen = log(text).rtt(ms(300)).without_timestamps().seen_at(End::Client);
    let losses = seen.lines(Cause::Loss, Side::Path);
    assert!(losses.iter().any(|line| line.ns >= ms(400)), "{seen}");
    assert!(losses.iter().all(|line| line.confidence == Possible), "{seen}");
}

/// A request is retransmitted twice by a timer on a path that stands still, and a D-SACK after its
/// reply names one of the retransmissions (frames 4312 to 4508 of a browser, whose session ends
/// before another can come): whether the first transmission was lost or delayed is unknown. Without
/// a D-SACK it counts as lost.
#[test]
fn a_timer_before_a_copy_that_was_for_nothing_is_in_doubt() {
    for (last, sure) in [("late=500", Possible), ("lost", Likely)] {
        let told = if sure == Possible { "d+0 S ack\n" } else { "" };
        let text = format!(
            "handshake\n +5 C 100\n +1 S 200\n +0 C ack\n +5 C 1400 lost #q\n q+300 C 100..1500 late=900 #c\n q+900 C 100..1500 {last} #d\n \
             c+0 S ack\n c+5 S 300 #a\n a+0 C ack\n {told} +500 C 100\n +1 S 200\n +0 C ack"
        );
        let seen = log(text).rtt(ms(20)).without_timestamps().seen_at(End::Client);
        assert_eq!(seen.exchange(2).of(Cause::Rto).confidence, sure, "{seen}");
    }
}

/// A question goes out again, and an acknowledgement by itself that repeats what the answer had said comes behind that (frames 345
/// to 368 of a session without SACK or time stamps): both copies had arrived, and the first one was late. Where one was lost
/// there is none; and a path that repeats acknowledgements whatever was sent (frames 256 to 335 of a page) says nothing.
#[test]
fn a_repeated_acknowledgement_behind_a_copy_says_that_both_had_arrived() {
    let unasked = "+100 S ack\n +100 S ack\n";
    for (before, first, repeated, timers) in [
        ("", "late=700", "again+0 S ack", false),
        ("", "lost", "", true),
        (unasked, "late=700", "again+0 S ack", true),
    ] {
        let answered = if repeated.is_empty() { "again+0" } else { "q+0" };
        let text = format!(
            "{}{before}+500 C 100 {first} #q\n q+500 C 300..400 late=300 #again\n {answered} S 200\n +150 C ack\n {repeated}\n +500 C 100\n +0 S 100\n +0 C ack",
            settled(3)
        );
        let mut segments = log(text).rtt(ms(50)).without_timestamps().capture(End::Client);
        for segment in &mut segments {
            segment.options = TcpOptions::default();
        }
        let seen = Seen::of(segments, "the client");
        let timed = seen.longer(Cause::Rto, ms(300)).iter().any(|line| line.confidence > Possible);
        assert_eq!(timed, timers, "{first} {repeated}: {seen}");
    }
}

/// A probe repeats the first bytes of a segment, and the acknowledgement, without SACK, ends where only the first transmission ended
/// (frames 2042 to 2052 of a browser): that had arrived, and the probe repaired nothing. One that ends with the probe may answer it.
#[test]
fn what_ends_beyond_a_retransmission_answers_the_first_one() {
    for (again, needless) in [("300..1100", true), ("300..1526", false)] {
        let text = format!("{} +500 C 1226 #q\n q+60 C {again}\n q+50 S 200\n +0 C ack", settled(3));
        let mut segments = log(text).rtt(ms(100)).without_timestamps().capture(End::Client);
        for segment in segments.iter_mut().filter(|segment| !segment.flags.syn()) {
            segment.options = TcpOptions::default();
        }
        let seen = Seen::of(segments, "the client");
        let repairs = [Cause::Loss, Cause::Rto].map(|cause| seen.exchange(4).ns(cause, Side::Path));
        assert_eq!(repairs == [ms(0); 2], needless, "{seen}");
    }
}

/// A router's answers to twelve SYNs come together after 6.5 ms; a copy of a lost question on one of these connections is acknowledged after 2, once
/// (frames 841 to 1055 of a laptop's capture). Another connection to the router has taken 2 ms before: the copy was needed. An acknowledgement sooner
/// than that is of the first transmission, which was late.
#[test]
fn a_copy_answered_as_soon_as_another_connection_s_is_no_late_original() {
    for (first, acked, needed) in [("lost", "again+0 S ack", true), ("late=218.8", "q+0 S ack", false)] {
        let before = "handshake\n +1 C 45\n +0 S ack\n +5 S 90\n +0 C ack".to_owned();
        let text = format!(
            "@2000 C syn #s\n s+0 S syn late=4.5 #first\n first+0 C ack\n +1 C 43 {first} #q\n q+220 C 0..43 #again\n {acked}\n +100 S 90\n +0 C ack"
        );
        let ends = [Endpoint { port: 40_001, ..CLIENT }, SERVER];
        let [before, text] = [before, text].map(|text| log(text).rtt(ms(2)).without_timestamps());
        let seen = merged(&[before, text.between(ends)], End::Client);
        let lines = seen.report.connections[1].exchanges.iter().flat_map(|exchange| &exchange.bill);
        let of =
            |cause| lines.clone().filter(|line| line.cause == cause).map(|line| line.ns).sum::<Duration>();
        assert_eq!([of(Cause::Rto) >= ms(200), of(Cause::Queueing) >= ms(200)], [needed, !needed], "{seen}");
    }
}

/// The last segment of a question is sent again after 1.7 s, and the answer, which acknowledges all of it, comes 6 s later and echoes the first
/// transmission (frames 47 to 75 of a laptop's capture): the copy repaired nothing. After 450 ms, the receiver may have held back its
/// acknowledgement of the segment before until the copy came.
#[test]
fn what_echoes_the_first_of_two_segments_did_not_wait_for_a_late_copy_of_the_second() {
    for (after, needed) in [(1_700, false), (450, true)] {
        let text = format!(
            "handshake\n +5 C 1348 more #q\n q+0 C 134 #tail\n tail+{after} C 1348..1482\n tail+160 S 473 late=6900\n +0 C ack"
        );
        let seen = log(text).rtt(ms(625)).seen_at(End::Client);
        assert_eq!(repaired(&seen, 1)[0] >= ms(400), needed, "{seen}");
    }
}
