//! Retransmissions that were not needed: the original had arrived, and the path or the receiver was late (RFC
//! 2883, RFC 3522). What shows it, and how certain is a loss if nothing does?

use tcpwhy_core::cause::{Cause, Side};
use tcpwhy_core::report::Confidence::{Certain, Likely, Possible};
use tcpwhy_wire::{Duration, SackBlock, Segment, Seq, TcpOptions};

use crate::packet_log::{End, SERVER, log, ms, settled};
use crate::seen::Seen;

/// A request is retransmitted after 219 ms, and acknowledged 284 ms later, with an RTT of 5 ms: a radio that
/// held up everything looks the same as a lost retransmission, and as a host that took its time (frames 23 to
/// 26 of a drone's controller).
#[test]
fn which_of_two_copies_was_acknowledged_late_is_not_known() {
    for (late, known) in [(284, false), (3, true)] {
        let text = format!(
            "handshake\n +1 C 106\n +5 S 106\n +1 C 106 lost #q\n q+219 C 106..212 #again\n again+{late} S ack\n +7 S 106\n +0 C ack"
        );
        let seen = log(text).rtt(ms(5)).without_timestamps().seen_at(End::Client);
        let bill = seen.exchange(2);
        assert_eq!(bill.of(Cause::Rto).confidence, Likely, "{seen}");
        assert_eq!(seen.exchange(2).of(Cause::ServerThink).confidence == Possible, !known, "{seen}");
    }
}

/// A stalled radio: the client's RTO expires three times, then all replies come at once, the first of which
/// echoes the original request (frames 108 to 126 of a phone's connection). The host had acknowledged in
/// time.
#[test]
fn behind_a_spurious_timeout_the_path_may_have_held_the_answer() {
    let text = "handshake\n +1 C 100\n +5 S 200\n +0 C ack\n +5 C 169 #q\n q+284 C 100..269 late=500 #again\n q+5 S 1448 late=770\n +0 C ack";
    let seen = log(text).rtt(ms(20)).seen_at(End::Client);
    assert_eq!(seen.exchange(2).of(Cause::ServerThink).confidence, Possible, "{seen}");
}

/// The last 648 bytes of a write are retransmitted after 125 ms, and acknowledged at once (frames 546 to 549
/// of an upload to Windows, which delays ACKs by up to 200 ms and has no D-SACK): it is unknown whether the
/// original was lost.
#[test]
fn a_probe_finds_a_loss_for_certain_only_where_the_peer_would_say_that_it_did_not() {
    let text = "handshake\n +5 C 1448x4 #w\n w+0.2 S ack\n +0.1 C 648 lost #tail\n tail+125 C 5792..6440\n +0 S ack\n +5 S 100\n +0 C ack";
    for (stamps, most) in [(true, Certain), (false, Possible)] {
        let log = log(text).rtt(ms(0.3));
        let log = if stamps { log } else { log.without_timestamps() };
        let seen = log.seen_at(End::Client);
        let losses = seen.longer(Cause::Loss, ms(50));
        assert!(!losses.is_empty() && losses.iter().all(|line| line.confidence == most), "{stamps}: {seen}");
    }
}

/// A reply is retransmitted 100 ms later, when the client had delayed its ACK (frames 170 to 172 of a mail
/// client's capture), or for seconds to a host that no longer answers (frames 1380 to 1897 of a laptop whose
/// VPN had come up): near the client both transmissions were captured, and the path lost neither. Near the
/// server it is unknown.
#[test]
fn beside_the_receiver_the_path_lost_nothing_that_passed() {
    for (copies, most) in [("first+100 S 0..53", Possible), ("first+300 S 0..53\n first+900 S 0..53", Likely)]
    {
        let text = format!("handshake\n +0 C 340\n +5 S 53 #first\n {copies}\n +0 C ack");
        let without_sack = |mut segment: Segment| {
            segment.options = if segment.flags.syn() { segment.options } else { TcpOptions::default() };
            segment
        };
        let segments = log(text).rtt(ms(60)).without_timestamps().capture(End::Client);
        let seen = Seen::of(segments.into_iter().map(without_sack).collect(), "the client");
        let lines = seen.connection().exchanges.iter().flat_map(|exchange| &exchange.bill);
        let repairs = lines.filter(|line| matches!(line.cause, Cause::Loss | Cause::Rto));
        assert_eq!(repairs.map(|line| line.confidence).max(), Some(most), "{seen}");
    }
}

/// A Wi-Fi stalls for 300 ms: the client's RTO expires, and the original's ACK comes 68 ms after the
/// retransmission, with an RTT of 19 ms (frames 241 to 299 of a laptop's TLS). Without time stamps it is
/// unknown which of them it acknowledges, so the timer is only likely, until a D-SACK for the retransmission:
/// the path was late, and lost nothing.
#[test]
fn which_copy_was_acknowledged_says_the_d_sack() {
    for (first, told, timers, late) in
        [("lost", "", Some(Likely), 0.0), ("late=286", "again+0 S ack\n +20 S 900", None, 237.0)]
    {
        let answers = if told.is_empty() { "again+0 S 800" } else { "q+0 S ack\n +0 S 1000 more" };
        let text = format!(
            "handshake\n +1 C 106\n +5 S 106\n +1 C 560 {first} #q\n q+237 C 106..666 late=80 #again\n {answers}\n {told}\n +0 C ack"
        );
        let seen = log(text).rtt(ms(19)).without_timestamps().seen_at(End::Client);
        let most = seen.lines(Cause::Rto, Side::Path).iter().map(|line| line.confidence).max();
        assert_eq!(most, timers, "{seen}");
        let queued = seen.spent(Cause::Queueing, Side::Path);
        assert!((queued - ms(late)).as_nanos().abs() <= ms(20).as_nanos(), "{seen}");
    }
}

/// An upload's segment is retransmitted after 680 ms, and acknowledged 121 ms later with an RTT of 258 ms
/// (frames 3121 to 3191 of a laptop's TLS): that is for the original, and the path was late. An ACK a round
/// trip after the retransmission is for that, or the original's ACK was lost.
#[test]
fn no_copy_is_acknowledged_sooner_than_it_can_have_arrived() {
    for (lost, acked, timers) in [("late=545", "q+0 S ack", 0.0), ("lost", "again+0 S ack", 680.0)] {
        let text = format!(
            "handshake\n +1 C 106\n +5 S 106\n +1 C 1400 more {lost} #q\n q+680 C 106..1506 #again\n {acked}\n +0 C 1400\n +0 S 300\n +0 C ack"
        );
        let seen = log(text).rtt(ms(258)).without_timestamps().seen_at(End::Client);
        let timer = seen.spent(Cause::Rto, Side::Path);
        assert!((timer - ms(timers)).as_nanos().abs() <= ms(1).as_nanos(), "{seen}");
        // A host that has these bytes acknowledges a retransmission at once as well (RFC 9293, 3.10.7.4).
        let sure = seen.lines(Cause::Rto, Side::Path).iter().any(|line| line.confidence == Certain);
        assert!(!sure, "{seen}");
        let queued = seen.spent(Cause::Queueing, Side::Path);
        assert_eq!(queued >= ms(680), timers == 0.0, "{seen}");
    }
}

/// A hotspot's handshake takes 74 ms, a request is lost, and its copy is acknowledged after 62, once (frames 1360 to 1798 of a laptop's capture; the
/// path takes 29 ms later on). The only round trip so far need not be the least; where a second one is as long, the copy was not needed.
#[test]
fn a_copy_answered_a_little_sooner_than_the_only_round_trip_was_needed() {
    let agrees = "+1 C 60\n +0 S ack late=12\n +1 S 60 late=12\n +0 C ack\n";
    for (before, n, timers) in [("", 1, 305), (agrees, 2, 0)] {
        let text = format!(
            "@0 C syn\n +0 S syn late=12\n +0 C ack\n {before} +1 C 517 lost #q\n q+305 C @..@ #again\n again+0 S ack\n again+500 S 1300x2\n +0 C ack"
        );
        let from = if n == 1 { 0 } else { 60 };
        let text = text.replace("@..@", &format!("{from}..{}", from + 517));
        let seen = log(text).rtt(ms(62)).without_timestamps().seen_at(End::Client);
        assert_eq!(seen.exchange(n).ns(Cause::Rto, Side::Path), ms(timers), "{n}: {seen}");
    }
}

/// In a local network an alert is retransmitted after 301 ms, and acknowledged 0.35 ms later, which is half of what its server's host took
/// before (frames 1160 to 1184 of a browser): a host now and then takes less, and no path delays a packet until just then.
#[test]
fn a_copy_answered_at_once_after_a_long_timer_was_needed() {
    let text = "@0 C syn\n +0 S syn late=0.32\n +0 C ack\n +1 C 60\n +0 S ack late=0.32\n +1 S 60 late=0.32\n +0 C ack
        +1 C 31 lost #q\n q+301 C 60..91 #again\n again+0 S ack";
    let seen = log(text).rtt(ms(0.35)).without_timestamps().seen_at(End::Client);
    assert!(seen.spent(Cause::Rto, Side::Path) >= ms(300), "{seen}");
    assert!(seen.spent(Cause::Queueing, Side::Path) <= ms(1), "{seen}");
}

/// A request is retransmitted after 240 ms, with a D-SACK for that in the very first ACK, 288 ms after the
/// original with an RTT of 15 ms (frames 198 to 214): no host delays an ACK for so long, so the path had held
/// the request, whatever the server's time. An ACK 40 ms after the original leaves the rest to the server.
#[test]
fn no_host_acknowledges_so_late_what_it_had() {
    for (held, surest) in [(260.0, Possible), (0.0, Likely)] {
        let acked = if held > 0.0 { "" } else { "ask+40 S ack\n" };
        let text = format!(
            "handshake\n +5 C 100\n +1 S 300\n +0 C ack\n +20 C 488 late={held} #ask\n {acked} ask+240 C 100..588 late=25 #again\n again+0 S ack\n +0.1 S 964\n +0 C ack"
        );
        let seen = log(text).rtt(ms(15)).without_timestamps().seen_at(End::Client);
        let server =
            seen.lines(Cause::ServerThink, Side::Server).into_iter().filter(|line| line.ns >= ms(20));
        assert_eq!(server.map(|line| line.confidence).max(), Some(surest), "{seen}");
    }
}

/// A router does not echo the keys of a password, and acknowledges each only when it is retransmitted, 65 ms
/// later: it had delayed its ACK, which a client with such a short timer cannot know (frames 261 to 332 of a
/// router's telnet, fifteen keys in a row). A client that had waited for the longest delayed ACK knows more.
#[test]
fn a_lone_copy_within_a_held_back_acknowledgement_may_be_for_nothing() {
    for (timer, most) in [(65, Possible), (400, Likely)] {
        let key = |n: u32| {
            let [from, to] = [100 + n, 101 + n];
            format!("+300 C 1 lost #k{n}\n k{n}+{timer} C {from}..{to} #c{n}\n c{n}+0 S ack\n")
        };
        let keys: String = (0..5).map(key).collect();
        let text = format!("handshake\n +5 C 100\n +1 S 50\n +0 C ack\n {keys}");
        let seen = log(text).rtt(ms(1.3)).without_timestamps().seen_at(End::Client);
        let repairs = [Cause::Loss, Cause::Rto].map(|cause| seen.lines(cause, Side::Path));
        let sure = repairs.iter().flatten().map(|line| line.confidence).max();
        assert_eq!(sure, Some(most), "{timer}: {seen}");
    }
}

/// Near the receiver the original was captured, but its host did not accept it. The ACK of the retransmission
/// comes sooner than any ACK of that host before, which says something about the host and nothing about the
/// path.
#[test]
fn beside_the_receiver_a_prompt_acknowledgement_answers_the_copy() {
    let text = "@0 C syn\n +1 S syn\n +0 C ack\n +5 C 100\n +1 S 300\n +0 C ack\n +20 C 500 refused #q\n \
                q+300 C 100..600 #again\n again+0.3 S ack\n +5 S 200\n +0 C ack";
    let seen = log(text).rtt(ms(20)).without_timestamps().seen_at(End::Server);
    let repaired = [Side::Path, Side::Server].map(|side| seen.spent(Cause::Rto, side));
    assert!(repaired.into_iter().sum::<Duration>() >= ms(299), "{seen}");
    assert_eq!(seen.spent(Cause::Queueing, Side::Path), ms(0), "{seen}");
}

/// A segment that its receiver reports missing was lost, although the path has become shorter meanwhile, so
/// that its retransmission is acknowledged sooner than anything before. If nothing is reported, the original
/// may have come late.
#[test]
fn what_is_reported_missing_was_lost_however_soon_its_copy_is_acknowledged() {
    for (behind, lost) in [("first+0 C 1448x2\n first+10 S ack\n +0 S ack", true), ("", false)] {
        let end = if lost { 4_444 } else { 1_548 };
        let text = format!(
            "@0 C syn\n +0 S syn late=20\n +0 C ack\n +5 C 100\n +0 S 300 late=20\n +0 C ack\n +20 C 1448 lost more #first\n {behind}\n \
             first+260 C 100..1548 #again\n again+0 S ack ack={end}\n +20 S 200\n +0 C ack"
        );
        let seen = log(text).rtt(ms(20)).without_timestamps().seen_at(End::Client);
        assert_eq!(seen.spent(Cause::Rto, Side::Path) >= ms(200), lost, "{seen}");
        assert_eq!(seen.spent(Cause::Queueing, Side::Path) >= ms(200), !lost, "{seen}");
    }
}

/// A phone's network stalls for two seconds (frames 132 to 274 beyond it): the SYN is retransmitted
/// meanwhile, and both are answered. The first answer may be to the first SYN, whatever it echoes.
#[test]
fn a_second_syn_may_not_have_been_needed() {
    let text = "@0 C syn #one\n @1005 C syn\n one+0 S syn\n +0 C ack";
    let log = log(text).rtt(ms(1906));
    for seen in [log.clone().without_timestamps(), log].map(|log| log.seen_at(End::Client)) {
        let timers = seen.lines(Cause::SynRetransmit, Side::Path);
        assert!(timers.iter().all(|line| line.confidence == Possible && line.ns <= ms(1006)), "{seen}");
        let whose = [Side::Path, Side::Client].map(|side| seen.spent(Cause::Handshake, side));
        assert!(whose.into_iter().sum::<Duration>() >= ms(900), "{seen}");
    }
}

/// A path with an RTT of 859 ms stalls for half a second more, and the SYN is retransmitted: its answer
/// echoes the first one's stamp (frames 321 to 994 of a browser with a busy router). Neither was lost. An
/// answer one timer late may be the SYN-ACK's retransmission, and a later one, at no timer's time, was
/// possibly held up (frames 1174 to 1397 of a phone's network that stalls for seconds).
#[test]
fn a_syn_that_was_answered_was_not_lost() {
    for (late, lost) in [(500, false), (1000, true), (1512, false)] {
        let text = format!(
            "@0 C syn late={late} #one\n @1027 C syn late={late}\n one+0 S syn\n +0 C ack\n +1 C 100\n +0 S ack\n +1 S 100\n +0 C ack\n +1 C 100\n +1 S 100\n +0 C ack"
        );
        let seen = log(text).rtt(ms(859)).seen_at(End::Client);
        let timers = seen.spent(Cause::SynRetransmit, Side::Path);
        assert_eq!(timers.is_positive(), lost, "{seen}");
        if !lost {
            let stood = seen.lines(Cause::Queueing, Side::Path);
            let sure = if late < 900 { Likely } else { Possible };
            let near = |ns: Duration| (ns - ms(late)).as_nanos().abs() <= 2_000_000;
            assert!(stood.iter().any(|line| near(line.ns) && line.confidence == sure), "{seen}");
        }
    }
}

/// A phone's reply is lost twice; a keep-alive probe repeats the byte before it, and a D-SACK names that
/// (frames 1092 to 1105 of a screen mirrored elsewhere): the loss repaired by the retransmissions was real. A
/// D-SACK that names the reply shows that it was not.
#[test]
fn what_arrived_twice_before_a_message_says_nothing_of_its_copies() {
    for (twice, lost) in [("199..200", true), ("200..246", false)] {
        let text = format!(
            "handshake\n +1 C 100\n +1 S 200\n +0 C ack\n +5 C 100\n +0.4 S 46 lost #a\n a+300 S 200..246 lost\n a+900 S 200..246\n a+910 S {twice}\n \
             +0 C ack\n +50 C 100\n +0 S 200\n +0 C ack"
        );
        let seen = log(text).rtt(ms(4)).seen_at(End::Server);
        let waited = seen.exchange(2).ns(Cause::Rto, Side::Path);
        assert_eq!(waited >= ms(890), lost, "{waited}: {seen}");
    }
}

/// A request and two retransmissions are held up on the path for seconds, and a reply comes sooner than the
/// last of them can have triggered it (frames 2192 to 2370 of a client's updates): a host that had it, or an
/// earlier transmission, would have acknowledged it within 200 ms.
#[test]
fn what_is_answered_too_soon_for_its_last_copy_was_late_on_its_way() {
    let text = "handshake
         +5 C 93 late=3605 #asked
         asked+50 S 51 #answer
         asked+1368 C 0..93 late=2500
         asked+3749 C 0..93 late=500
         answer+0 C ack";
    let seen = log(text).rtt(ms(222)).without_timestamps().seen_at(End::Client);
    let bill = seen.exchange(1);
    bill.is_within(
        ms(1),
        &[
            (Cause::RoundTrip, Side::Path, ms(222)),
            (Cause::Queueing, Side::Path, ms(3455)),
            (Cause::ServerThink, Side::Server, ms(200)),
        ],
    );
    assert_eq!(bill.of(Cause::ServerThink).confidence, Possible, "{seen}");
    assert_eq!(bill.of(Cause::Queueing).confidence, Possible, "{seen}");
}

/// The uplink carries 14 kB/s, and a request of two segments is acknowledged after 1,010 ms instead of 247, 5
/// ms before its reply (frames 89 to 117 of an upload): the server took no more than the time after the ACK.
/// An ACK that may have been delayed by a timer shows nothing.
#[test]
fn a_question_that_is_acknowledged_late_by_itself_had_just_arrived() {
    let text = "handshake
         +1 C 1460 late=677 more
         +0 C 1157 late=763 #asked
         asked+0 S ack
         asked+5 S 18
         +0 C ack";
    let seen = log(text).rtt(ms(247)).without_timestamps().seen_at(End::Client);
    let bill = seen.exchange(1);
    assert_eq!(bill.of(Cause::ServerThink).confidence, Possible, "{seen}");
    let is_near = |cause, about| (about - ms(1)..about + ms(1)).contains(&bill.of(cause).ns);
    assert!(is_near(Cause::ServerThink, ms(5)) && is_near(Cause::Queueing, ms(763)), "{seen}");
    let text =
        text.replace("late=677", "late=40").replace("late=763", "late=44").replace("asked+5 ", "asked+400 ");
    let seen = log(text).rtt(ms(247)).without_timestamps().seen_at(End::Client);
    assert!(seen.exchange(1).of(Cause::ServerThink).ns >= ms(440), "{seen}");
}

/// The same 150 ms late, between the delayed-ACK timers of Linux and those of older hosts (frames 217 to 231
/// of a browser's capture; frames 1209 to 1227 of a phone's, one segment, 100 ms late): one small write is
/// acknowledged by a timer or at once, and more than a segment at once. The second of two small ones may be
/// acknowledged when the program reads.
#[test]
fn what_is_acknowledged_between_timers_was_late() {
    let asks = ["C 1460 late=140 more\n +0 C 1157 late=150 #asked", "C 300 late=150 #asked"];
    let small = "C 98\n +0.2 C 120 late=150 #asked";
    for (ask, late) in [(asks[0], true), (asks[1], true), (small, false)] {
        let text = format!(
            "handshake\n +1 C 100\n +0 S 100\n +30 {ask}\n asked+0 S ack\n asked+400 S 18\n +0 C ack"
        );
        let seen = log(text).rtt(ms(24)).without_timestamps().seen_at(End::Client);
        let bill = seen.exchange(2);
        let own = bill.of(Cause::ServerThink);
        assert_eq!(own.ns < ms(401), late, "{seen}");
        assert_eq!(bill.ns(Cause::Queueing, Side::Path) >= ms(149), late, "{seen}");
        assert_eq!(own.confidence, Likely, "{seen}");
    }
}

/// In the middle of a connection all requests so far were sent twice, so the server's distance is unknown: a
/// D-SACK after the reply shows all the same that the original had arrived (frames 80 to 141 of a browser
/// that polls a television). The path had stalled.
#[test]
fn a_d_sack_of_a_server_of_unknown_distance_tells_as_much() {
    let asked = "C 110 late=650 #a\n a+646 C 0..110 late=130 #b\n a+0 S 110\n b+0 S ack\n +4 C ack";
    let next = "C 110 late=880 #c\n c+645 C 110..220 late=245 #d\n c+0 S 110 #e\n d+0 S ack\n e+40 C ack\n +5000 C 110\n +0 S 110\n +0 C ack";
    let text = format!("handshake\n +10 {asked}\n +5000 {next}");
    let log = log(text).rtt(ms(4)).without_timestamps();
    let seen = Seen::of(log.capture(End::Client).split_off(3), "the client, midway");
    let bill = seen.exchange(2).never(Cause::Rto);
    assert!(bill.ns(Cause::Queueing, Side::Path) >= ms(645), "{seen}");
    assert!(bill.of(Cause::ServerThink).confidence <= Possible, "{seen}");
}

/// A mobile network stalls for 2.4 s: three small segments leave, and then all of them as one, twice. The
/// separate ACKs of the first two end within that (frames 210 to 264 of a phone's capture; frames 3430 to
/// 3438 of a browser's on Wi-Fi): neither retransmission had arrived, and no timer repaired anything. An ACK
/// that ends where a retransmission does may be for that.
#[test]
fn what_is_acknowledged_within_a_copy_had_left_before_it() {
    for (last, within) in [(2300, true), (2425, true), (2300, false)] {
        let acks = if within { "a+0 S ack\n b+0 S ack\n" } else { "" };
        let text = format!(
            "handshake\n +5 C 100\n +1 S 200\n +0 C ack\n +20 C 90 late=2400 #a\n +0.1 C 92 late=2400 #b\n +0.1 C 883 late=2400 #c\n \
             a+1004 C 100..1165 late=1500\n a+{last} C 100..1165 late=300\n {acks} c+0 S 1016\n +0 C ack"
        );
        let seen = log(text).rtt(ms(30)).without_timestamps().seen_at(End::Client);
        let bill = seen.exchange(2);
        assert_eq!(bill.ns(Cause::Rto, Side::Path).is_positive(), !within && last == 2300, "{seen}");
        if within {
            let queued = bill.of(Cause::Queueing);
            assert!(queued.ns >= ms(2299) && queued.ns <= ms(2401), "{seen}");
            assert_eq!(queued.confidence, Likely, "{seen}");
            assert!(seen.exchange(2).ns(Cause::ServerThink, Side::Server) <= ms(1), "{seen}");
        }
    }
}

/// A ping is sent three times within a second, and two D-SACKs after its reply name both retransmissions
/// (frames 675 to 740 of a browser's idle connection): the original had arrived. After a single D-SACK, the
/// first retransmission may have delivered it; then the second was unnecessary.
#[test]
fn as_many_d_sacks_as_copies_say_that_the_first_one_had_arrived() {
    for (second, lost) in [("late=500", false), ("lost", true)] {
        let told = if lost { "" } else { "d+0 S ack\n" };
        let text = format!(
            "handshake\n +5 C 29\n +1 S 24\n +0 C ack\n +2000 C 29 late=1000 #q\n q+259 C 29..58 late=770 #c\n q+572 C 29..58 {second} #d\n \
             q+0 S 24 #answer\n c+0 S ack\n {told} answer+0 C ack"
        );
        let seen = log(text).rtt(ms(35)).without_timestamps().seen_at(End::Client);
        let bill = seen.exchange(2);
        let repaired = bill.ns(Cause::Rto, Side::Path);
        assert_eq!(repaired, if lost { ms(259) } else { Duration::ZERO }, "{seen}");
        assert_eq!(seen.exchange(2).ns(Cause::Queueing, Side::Path) >= ms(700), !lost, "{seen}");
    }
}

/// One SYN, and its SYN-ACK 1.4 or 2.2 s later with an RTT of 25 ms (frames 54 to 69 of a browser's capture
/// during a download, whose server's second SYN-ACK comes 1.2 s after the first; frames 967 to 972 of a
/// scanner's): no server's timer runs for so long, so the path possibly stalled. After one or two of a
/// server's timers, a SYN-ACK was lost.
#[test]
fn a_syn_ack_that_comes_at_no_timers_time_was_not_lost() {
    for (late, lost) in [(1361, false), (2216, false), (1010, true), (3040, true), (7050, true)] {
        let text = format!(
            "@0 C syn late={late} #one\n one+0 S syn\n +0 C ack\n +1 C 100\n +0 S ack\n +1 S 100\n +0 C ack\n +1 C 100\n +1 S 100\n +0 C ack"
        );
        let seen = log(text).rtt(ms(25)).without_timestamps().seen_at(End::Client);
        let timers = seen.spent(Cause::SynRetransmit, Side::Path);
        assert_eq!(timers.is_positive(), lost, "{seen}");
        let stood = seen.lines(Cause::Queueing, Side::Path);
        let near = |ns: Duration| (ns - ms(late)).as_nanos().abs() <= 2_000_000;
        assert_eq!(stood.iter().any(|line| near(line.ns) && line.confidence == Possible), !lost, "{seen}");
    }
}

/// Between the ends a SYN-ACK is retransmitted by a timer of 300 ms, then comes an ACK that echoes the first
/// one's stamp: that had arrived (frames 759 to 878 at a hotspot), 36.7 ms after the SYN here, and nothing
/// was lost. An ACK that echoes the second may have waited for that.
#[test]
fn a_syn_ack_whose_stamp_is_echoed_was_not_lost() {
    for first in [true, false] {
        let handshake = if first {
            "+0 S syn #a\n a+300 S syn late=95\n a+340 C ack"
        } else {
            "+0 S syn lost #a\n a+300 S syn #b\n b+0 C ack"
        };
        let text = format!("@0 C syn\n {handshake}\n +0.3 C 1724\n +0 S ack\n +1.7 S 1448x3\n +0 C ack");
        let seen = Seen::of(log(text).rtt(ms(82)).capture_at(9), "between");
        let bill = seen.setup();
        assert_eq!(
            bill.exchange.bill.iter().any(|line| line.cause == Cause::SynRetransmit),
            !first,
            "{seen}"
        );
        assert!(bill.exchange.elapsed >= ms(380), "{seen}");
    }
}

/// A request is retransmitted, and its reply comes before the D-SACK for that, which arrives during the next
/// request (frames 2381 to 2491 of a browser on a phone's network): the path had stalled all the same.
/// Without a D-SACK, the retransmission may have been needed.
#[test]
fn a_d_sack_behind_the_end_of_an_exchange_says_the_same_of_it() {
    for (copy, lost) in [("late=687", false), ("lost", true)] {
        let told = if lost { "" } else { "again+0 S ack\n" };
        let text = format!(
            "handshake\n +5 C 100\n +1 S 200\n +0 C ack\n +20 C 658 late=380 #q\n q+307 C 100..758 {copy} #again\n q+0 S ack\n q+0.1 S 212 #a\n \
             a+0 C ack\n a+33 C 64 #next\n {told} next+614 S 179\n +0 C ack\n +2500 C 100\n +1 S 200\n +0 C ack"
        );
        let seen = log(text).rtt(ms(74)).without_timestamps().seen_at(End::Client);
        let bill = seen.exchange(2);
        assert_eq!(bill.ns(Cause::Rto, Side::Path).is_positive(), lost, "{seen}");
        assert_eq!(seen.exchange(2).ns(Cause::Queueing, Side::Path) >= ms(307), !lost, "{seen}");
        assert_eq!(
            seen.connection().exchanges.iter().map(|exchange| exchange.n).collect::<Vec<_>>(),
            [0, 1, 2, 3, 4]
        );
    }
}

/// A server's messages, one every half a second, on a path that stalls now and then: the D-SACK for a
/// retransmission comes 80 us after the ACK, when the next message has left (frames 349 to 353 of an SSH
/// server, showing a program's output).
#[test]
fn a_d_sack_behind_the_next_message_is_of_the_one_before_it() {
    for (copy, lost) in [("late=90", false), ("lost", true)] {
        let told = if lost { "" } else { "again+0 C ack\n" };
        let before = "+500 S 52\n +0 C ack\n".repeat(4);
        let text = format!(
            "handshake\n +5 C 36\n +1 S 36\n +0 C ack\n {before} +500 S 52 late=430 #m\n m+341 S 244..296 {copy} #again\n m+506 S 52 #n\n \
             m+0 C ack\n {told} n+0 C ack\n +500 S 52\n +0 C ack\n +500 S 52\n +0 C ack\n +500 S 52\n +0 C ack\n +500 S 52\n +0 C ack"
        );
        let seen = log(text).rtt(ms(97)).without_timestamps().seen_at(End::Server);
        assert_eq!(seen.spent(Cause::Rto, Side::Path) >= ms(340), lost, "{seen}");
        assert_eq!(seen.spent(Cause::Queueing, Side::Path) >= ms(340), !lost, "{seen}");
    }
}

/// Two segments and a tail loss probe 17 ms after them, which goes back by a full segment (Windows), on a
/// path of 6 ms that stalls: all is acknowledged when the probe can have arrived, and a D-SACK names it at
/// the same instant (frames 395 to 399 of a browser's capture). Nothing was lost.
#[test]
fn a_tail_probe_that_a_d_sack_names_had_found_nothing() {
    for (late, lost) in [("late=17.4", false), ("lost", true)] {
        let told = if lost { "" } else { "p+0 S ack\n" };
        let first = if lost { "p+0 S ack\n" } else { "q+0 S ack\n" };
        let text = format!(
            "handshake\n +42 C 1460 {late} more\n +0 C 111 {late} #q\n q+17.2 C 111..1571 late=0.3 #p\n {first} {told} \
             p+4 S 581\n +0 C ack"
        );
        let seen = log(text).rtt(ms(6.3)).without_timestamps().seen_at(End::Client);
        let repaired = [Cause::Loss, Cause::Rto].map(|cause| seen.spent(cause, Side::Path));
        assert_eq!(repaired.into_iter().sum::<Duration>().is_positive(), lost, "{seen}");
        let stood = seen.lines(Cause::Queueing, Side::Path).into_iter().filter(|line| line.ns >= ms(17));
        assert_eq!(stood.map(|line| line.confidence).max(), (!lost).then_some(Possible), "{seen}");
    }
}

/// The first of two segments is lost. A tail loss probe that goes back by a full segment delivers most of it,
/// and a timer the rest (frames 1427 to 1500 of a browser on Windows). The D-SACKs name only a part of either
/// retransmission: its rest was missing.
#[test]
fn a_copy_of_which_a_part_had_arrived_was_needed() {
    let text = "handshake\n +1 C 100\n +1 S 100\n +0 C ack\n +20 C 1460 lost more #a\n +0 C 322 #b\n b+0 S ack\n a+265 C 422..1882 #p\n p+0 S ack\n \
                a+577.5 C 100..1560 #r\n r+2 S ack\n +0.1 S 981\n +0 C ack";
    let mut segments = log(text).rtt(ms(131)).without_timestamps().capture(End::Client);
    let acks = segments
        .iter_mut()
        .filter(|segment| segment.src == SERVER && segment.payload_len == 0 && !segment.flags.syn());
    let first = |offset: u32| Seq(1_001) + offset;
    for (ack, (start, end)) in acks.skip(1).zip([(1560, 1882), (422, 1560)]) {
        let islands: Vec<SackBlock> = ack.options.sack().to_vec();
        ack.options = TcpOptions::default();
        ack.options.push_sack(SackBlock { start: first(start), end: first(end) });
        for island in islands {
            ack.options.push_sack(island);
        }
    }
    let seen = Seen::of(segments, "the client");
    let bill = seen.exchange(2);
    let repaired = bill.ns(Cause::Rto, Side::Path) + bill.ns(Cause::Loss, Side::Path);
    assert!((repaired - ms(577.5)).as_nanos().abs() < 1_000_000, "{seen}");
    assert!(bill.ns(Cause::ServerThink, Side::Server) < ms(4), "{seen}");
}

/// A phone's network stalls for 4.5 s: the very first ACK names a retransmission that had left 2.5 s before
/// it, with an RTT of 174 ms, and all are named in the end (frames 3539 to 3579). A host acknowledges a
/// retransmission on arrival, so the path had held that, and possibly the request too. A retransmission that
/// left within one RTT shows nothing of that.
#[test]
fn a_copy_that_is_told_late_had_stood_and_its_question_with_it() {
    for (late, stood) in [(3630, true), (0, false)] {
        let text = format!(
            "handshake\n +7 C 559 late={} #q\n q+810 C 0..559 late={late} #c\n q+{} C 0..559 late=200 #e\n c+0 S ack\n c+0.2 S 1280\n +0 C ack\n e+0 S ack",
            late + 809,
            late + 840
        );
        let seen = log(text).rtt(ms(174)).without_timestamps().seen_at(End::Client);
        let bill = seen.exchange(1);
        assert_eq!(bill.ns(Cause::Queueing, Side::Path) > ms(late), stood, "{seen}");
        assert_eq!(bill.ns(Cause::ServerThink, Side::Server) < ms(1), stood, "{seen}");
        assert_eq!(
            bill.of(if stood { Cause::Queueing } else { Cause::ServerThink }).confidence,
            Possible,
            "{seen}"
        );
        bill.never(Cause::Rto);
    }
}

/// A message is retransmitted singly, and then with the next one as one segment: two D-SACKs name both
/// retransmissions, each with its own edges (frames 405 to 412 of the same server).
#[test]
fn a_copy_of_two_messages_is_one_copy() {
    let before = "+500 S 52\n +0 C ack\n".repeat(4);
    let after = "+500 S 52\n +0 C ack\n".repeat(4);
    for (second, lost) in [("late=150", false), ("lost", true)] {
        let told = if lost { "" } else { "d+0 C ack\n" };
        let text = format!(
            "handshake\n +5 C 36\n +1 S 36\n +0 C ack\n {before} +500 S 52 late=1000 #m\n m+311 S 244..296 late=700 #c\n m+518 S 52 late=490 #n\n \
             m+867 S 244..348 {second} #d\n m+1024 S 52 #o\n m+0 C ack\n c+0 C ack\n {told} o+0 C ack\n {after}"
        );
        let seen = log(text).rtt(ms(97)).without_timestamps().seen_at(End::Server);
        let repaired = [Cause::Loss, Cause::Rto].map(|cause| seen.spent(cause, Side::Path));
        assert_eq!(repaired.into_iter().sum::<Duration>().is_positive(), lost, "{seen}");
    }
}

/// The answer is lost, the request is retransmitted after 227 ms, and the answer's copy passes that on its way; the D-SACK for
/// the request comes 2 ms later, beside the next one (frames 8 to 12 of a client without time stamps): the path held nothing
/// for certain, as what came first may be a copy.
#[test]
fn a_d_sack_behind_the_copy_of_a_lost_answer_shows_no_queue() {
    let text = "handshake\n +5 C 100\n +0 S 200\n +0 C ack\n +5 C 100 #q\n q+0.5 S 200 lost\n q+225 S 200..400 #copy\n \
                q+227 C 100..200 #again\n copy+0.1 C 100 #next\n again+0 S ack\n next+0.2 S 200\n +0 C ack";
    let seen = log(text).rtt(ms(18)).without_timestamps().seen_at(End::Client);
    let queued = seen.longer(Cause::Queueing, ms(100));
    assert!(queued.iter().all(|line| line.confidence == Possible), "{seen}");
    assert!(seen.longer(Cause::ServerThink, ms(50)).iter().all(|line| line.confidence == Possible), "{seen}");
}

/// The last byte of a question in two pieces is lost, and its first piece not acknowledged yet: the receiver
/// echoes that piece's time stamp, not the probe's, which does not continue what it has acknowledged (frames 22
/// to 28 of a search in a database far away). Nothing says that the byte had arrived.
#[test]
fn an_echo_of_a_piece_before_tells_nothing_of_the_probe() {
    for pieces in ["+5 C 2 #q\n q+0.03 C 1 lost #tail", "+5 C 1448 #q\n q+0 C 1 lost #tail"] {
        let len = if pieces.contains("1448") { 1448 } else { 2 };
        let (begins, ends) = (300 + len, 301 + len);
        let text = format!(
            "{}{pieces}\n tail+12 C {begins}..{ends} #again\n again+0 S ack\n +0.1 S 300\n +0 C ack",
            settled(3)
        );
        log(text.clone()).rtt(ms(5)).both_ends(|seen| {
            let lost = seen.exchange(4).ns(Cause::Loss, Side::Path);
            assert!(lost >= ms(11), "{seen}");
            assert!(seen.exchange(4).ns(Cause::ServerThink, Side::Server) <= ms(1), "{seen}");
        });
        // A D-SACK may be cut off behind it.
        let mut cut = log(text).rtt(ms(5)).capture(End::Client);
        for segment in cut.iter_mut().filter(|segment| segment.payload_len == 0 && !segment.flags.syn()) {
            segment.options.cut = true;
        }
        let seen = Seen::of(cut, "the client, cut");
        assert!(seen.lines(Cause::Loss, Side::Path).iter().all(|line| line.confidence < Certain), "{seen}");
    }
}
