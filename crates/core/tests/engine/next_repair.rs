//! What does one loss cost where it needs several repairs, and the first transmissions are in no packet?

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server};
use tcpwhy_core::report::Confidence::{Certain, Likely, Possible};
use tcpwhy_wire::TcpOptions;

use crate::packet_log::{End, SERVER, log, ms, settled};
use crate::seen::Seen;

/// Of a flight of six segments only the second arrives, 112 bytes; the first is repaired by a timer, and the last four one round trip
/// after another (frames 2347 to 2360 of a browser behind a VPN). The numbers of the lost ones are missing, so the server did not pause
/// when the repair had closed the only hole.
#[test]
fn what_is_lost_behind_the_segment_that_showed_a_hole_is_repaired_after_it() {
    let text = format!(
        "{} +5 C 641 #q\n q+160 S 1448 lost\n +0 S 112\n +0 S 1448x3 more lost\n q+415 S 8000..9448 #first\n +0 C ack\n \
         first+300 S 9560..11008 more #second\n +0 C ack\n second+300 S 11008..12456 more\n +0 S 12456..13904\n +0 C ack",
        settled(40)
    );
    let seen = log(text).rtt(ms(200)).without_timestamps().seen_at(End::Client);
    let bill = seen.exchange(41);
    assert!(bill.ns(Cause::SenderThink, Server) < ms(10), "{seen}");
    assert!(bill.ns(Cause::Rto, Path) + bill.ns(Cause::Loss, Path) >= ms(800), "{seen}");
}

/// Three segments of a reply are lost and repaired one and two at a time (frames 1293 to 1463 of the same capture): the second repair
/// leaves when its sender hears of the first, and waits for no timer.
#[test]
fn repairs_of_one_round_wait_for_no_timer_of_their_own() {
    let text = format!(
        "{} +5 C 641 #q\n q+10 S 1448x3 lost more\n +0 S 1448x2 more #seen\n seen+0 C ack\n q+345 S 8000..9448 more #first\n +0 C ack #heard\n \
         heard+158 S 9448..10896 more\n +2.8 S 10896..12344 more #last\n last+0 C ack\n last+201 S 1000\n +0 C ack",
        settled(40)
    );
    let seen = log(text).rtt(ms(200)).without_timestamps().seen_at(End::Client);
    let bill = seen.exchange(41);
    let rto = bill.ns(Cause::Rto, Path);
    assert!(rto < ms(400), "{rto}: {seen}");
    assert!(bill.ns(Cause::Loss, Path) >= ms(350), "{seen}");
}

/// The second of two repairs of one burst is 3 ms behind the first, which a timer had waited for: of a loss for that, it is no proof.
#[test]
fn a_repair_beside_another_one_waited_for_no_loss() {
    let text = format!(
        "{} +5 C 641 #q\n q+10 S 1448x2 lost more\n +0 S 1448x2 more #seen\n seen+0 C ack\n q+420 S 8000..9448 more\n \
         +3 S 9448..10896 more #last\n last+0 C ack\n last+201 S 1000\n +0 C ack",
        settled(40)
    );
    let seen = log(text).rtt(ms(200)).without_timestamps().seen_at(End::Client);
    assert_eq!(seen.exchange(41).of(Cause::Loss).confidence, Possible, "{seen}");
}

/// The first segment of a question is lost, and what the probe repeats is beyond it: without SACK, the duplicate acknowledgement
/// says nothing of the probe, and the client waits for its timer all the while (frames 42 to 65 of a browser whose path had a smaller
/// packet size). A probe that moves the acknowledgement had repaired something.
#[test]
fn a_probe_that_moves_no_acknowledgement_repaired_nothing() {
    let stays = "+500 C 1448 lost #q\n +0 C 336 #second\n second+0 S ack win=43200\n q+310 C 1000..2084 #probe\n probe+0 S ack win=43200\n \
                 probe+528 C 300..1748 #last";
    let moves = "+500 C 1448 #q\n +0 C 336 lost\n +0 C 800 lost\n q+0 S ack\n q+310 C 1748..2084 #probe\n probe+0 S ack\n \
                 probe+528 C 2084..2884 #last";
    for (sent, probed) in [(stays, ms(0)), (moves, ms(300))] {
        let text = format!("{}{sent}\n last+0 S ack\n +1 S 200\n +0 C ack", settled(3));
        let mut segments = log(text).rtt(ms(150)).without_timestamps().capture(End::Client);
        for segment in segments.iter_mut().filter(|segment| !segment.flags.syn()) {
            segment.options = TcpOptions::default();
        }
        let seen = Seen::of(segments, "the client");
        let bill = seen.exchange(4);
        assert_eq!(bill.ns(Cause::Loss, Path) >= ms(290), probed > ms(0), "{seen}");
        assert!(bill.ns(Cause::Rto, Path) >= ms(820) - probed, "{seen}");
    }
}

/// A segment that fills a hole comes much later than a fast repair takes, behind nothing, and sooner than any timer (frames 943 to 949 of
/// a station that sleeps): that the time was a loss's is possible.
#[test]
fn a_repair_behind_a_long_silence_was_no_fast_one_for_certain() {
    for (late, most) in [(6.0, Certain), (17.0, Likely), (180.0, Possible)] {
        let text = format!(
            "{} +5 C 641 #q\n q+2 S 1448 lost more #lost\n +0 S 1448x2 #seen\n seen+0 C ack\n lost+{late} S 8000..9448\n +0 C ack",
            settled(40)
        );
        let seen = log(text).rtt(ms(3)).seen_at(End::Client);
        assert_eq!(seen.exchange(41).of(Cause::Loss).confidence, most, "{seen}");
    }
}

/// A server whose TTL is not Linux's own and whose SYN-ACK has no number counts per connection as Linux does: what is missing before
/// an answer, and behind the acknowledgement of its question, was its first transmission, lost (frames 553 to 569 of an app's TLS).
#[test]
fn a_server_with_another_ttl_has_lost_what_its_numbers_lack() {
    for (ttl, servers) in [(217, false), (117, true)] {
        let text = format!(
            "{} +5 C 641 #q\n q+50 S ack\n +1 S 51 lost #first\n first+700 S 8000..8051\n +0 C ack",
            settled(40)
        );
        let mut segments = log(text).rtt(ms(200)).capture(End::Client);
        for segment in segments.iter_mut().filter(|segment| segment.src == SERVER) {
            segment.ttl = ttl;
            if segment.flags.syn() {
                segment.ip_id = Some(0);
            }
        }
        let seen = Seen::of(segments, "the client");
        let likely = seen.longer(Cause::ServerThink, ms(60)).iter().any(|line| line.confidence > Possible);
        assert_eq!(likely, servers, "{seen}");
    }
}

/// What the numbers of a reply lack comes right behind it, in the other order, and the server says that nothing of it is outstanding
/// (frames 2425 to 2439 of a browser behind a VPN): its next answer repeats nothing, and waits for its program or for Nagle.
#[test]
fn what_comes_after_all_is_not_repaired_later() {
    for (gone, repaired) in [("late=305.5", false), ("lost", true)] {
        let text = format!(
            "{} +5 C 641 #q\n q+10 S 1448x2 more #first\n first+0 C ack\n first+5 S 8000..9448 {gone} more\n +0 S 9448..10896 {gone}\n \
             first+310 S 400 #third\n third+1 C ack\n third+250 S 300\n +0 C ack\n",
            settled(40)
        );
        let seen = log(text).rtt(ms(180)).without_timestamps().seen_at(End::Client);
        let likely = |cause| seen.longer(cause, ms(100)).iter().any(|line| line.confidence > Possible);
        assert_eq!(likely(Cause::Loss) || likely(Cause::Rto), repaired, "{seen}");
    }
}

/// Two segments of a reply are lost, and one repair shows (frames 2436 to 2439 of the same): the server's next number is that of an
/// acknowledgement without data, so nothing of them is outstanding, and what follows in its next reply repeats nothing.
#[test]
fn nothing_is_to_be_repaired_once_nothing_is_outstanding() {
    for (says, repaired) in [("q2+100 S ack\n", false), ("q2+100", true)] {
        let text = format!(
            "{} +5 C 641 #q\n q+10 S 1448x2 more #first\n first+0 C ack\n first+5 S 8000..9448 lost more\n +0 S 9448..10896 lost\n \
             first+310 S 400\n +1 C ack\n +5 C 500 #q2\n {says} S 274 #half\n half+40 C ack\n half+250 S 391\n +0 C ack\n",
            settled(40)
        );
        let seen = log(text.replace("ack\n S 274", "ack\n +0 S 274"))
            .rtt(ms(180))
            .without_timestamps()
            .seen_at(End::Client);
        let bill = seen.exchange(42);
        let ns = bill.ns(Cause::Loss, Path) + bill.ns(Cause::Rto, Path);
        assert_eq!(ns > ms(200), repaired, "{seen}");
    }
}

/// After a time-out the second of two lost segments leaves as soon as its sender hears of the first, and its peer acknowledges that
/// late, as a segment by itself (frames 4594 to 4647 of an FTP server's and 915 to 917 of a download): no probe waited, but the
/// sender for its peer's timer.
#[test]
fn a_repair_behind_a_late_acknowledgement_waited_for_that() {
    for end in End::BOTH {
        let text = format!(
            "{} +5 C 641 #q\n q+2 S 1448 more\n +0 S 1448x2 lost more\n +0 S 1448 #seen\n seen+0 C ack\n q+490 S 9448..10896 more #first\n \
             first+150 C ack #late\n late+0 S 10896..12344 #last\n last+0 C ack",
            settled(40)
        );
        let seen = log(text).rtt(ms(16)).seen_at(end);
        let bill = seen.exchange(41);
        assert!((ms(140)..=ms(152)).contains(&bill.ns(Cause::DelayedAckCwnd, Client)), "{seen}");
        assert!(bill.ns(Cause::Loss, Path) < ms(20), "{seen}");
    }
}

/// The same at the heels of an acknowledgement that the path held up.
#[test]
fn a_repair_behind_an_acknowledgement_of_several_waited_for_no_timer_of_its_peer() {
    let text = format!(
        "{} +5 C 641 #q\n q+2 S 1448x4 lost more\n +0 S 1448 #seen\n seen+0 C ack\n q+490 S 8000..9448 more\n +0 S 9448..10896 more #first\n \
         first+150 C ack #late\n late+0 S 10896..13792 #last\n last+0 C ack",
        settled(40)
    );
    let seen = log(text).rtt(ms(16)).seen_at(End::Server);
    assert!(
        seen.longer(Cause::DelayedAckCwnd, ms(9)).iter().all(|line| line.confidence == Possible),
        "{seen}"
    );
}

/// All acknowledgements of a flight come 30 ms late, behind a tail loss probe (frames 86 to 94 of an upload). The first one is of a single segment of twenty
/// that left together: its receiver's timer would have acknowledged all that was there.
#[test]
fn a_probe_behind_a_large_flight_waits_for_no_timer_of_its_peer() {
    let text = "handshake\n +5 C 100\n +0 S 1448x10 more\n +0 C ack #open\n open+0 S 1448x20 more #flight\n
         flight+320 S 41992..43440 more #probe\n flight+35 C ack ack=15928 #first\n first+0 S 1448x2 more\n
         first+1 C ack ack=41992\n probe+0 C ack";
    let seen = log(text).rtt(ms(300)).seen_at(End::Server);
    seen.exchange(1).never(Cause::DelayedAckCwnd);
}

/// The tail of a flight is lost, and what a timer repeats is acknowledged 42 ms later, as a segment by itself (frames 1054 to 1059 of a map): the
/// window was one segment since, and no probe ended the wait.
#[test]
fn behind_a_timer_a_lost_tail_waits_for_its_receiver() {
    let text = format!(
        "{} +5 C 641 #q\n q+2 S 1448x4 more\n +0 S 1448x6 more lost\n q+4 C ack\n q+237 S 13792..15240 more #first\n
         first+42 C ack #late\n late+0 S 15240..16688 more\n +0 S 16688..22480\n +0 C ack",
        settled(40)
    );
    let seen = log(text).rtt(ms(3)).without_timestamps().seen_at(End::Client);
    let bill = seen.exchange(41);
    assert_eq!(bill.ns(Cause::DelayedAckCwnd, Client), ms(42), "{seen}");
    assert!(bill.ns(Cause::Loss, Path) <= ms(4) && bill.ns(Cause::Rto, Path) >= ms(230), "{seen}");
}

/// All acknowledgements of a flight are lost, and its last segment is repeated 664 ms later, behind a path of 320 ms (frames 382 to 434 of a browser):
/// the first timer is three round trips, and would have repeated the first segment. If that comes again, it was the timer.
#[test]
fn what_repeats_the_end_of_a_flight_before_its_beginning_is_a_probe() {
    let end = ["", "lost", "4677..5077"];
    let beginning = ["lost", "", "207..333"];
    for ([first, last, again], cause, other) in
        [(end, Cause::Loss, Cause::Rto), (beginning, Cause::Rto, Cause::Loss)]
    {
        let text = format!(
            "handshake\n +5 C 207\n +0 S 1448x2\n +0 C ack\n +15 C 126 {first} #w\n w+80 C 1448x3 more #mid\n mid+0 S ack lost\n mid+0 C 400 {last} #last\n \
             last+664 C {again} #again\n again+0 S ack\n +100 S 51\n +0 C ack"
        );
        let seen = log(text).rtt(ms(320)).seen_at(End::Client);
        let bill = seen.exchange(2).never(other);
        assert!(bill.ns(cause, Path) >= ms(660), "{seen}");
    }
}

/// A probe repeats the last segment of a flight, so that one number is missing before it, or two with an acknowledgement. Where more are, and no
/// hole is left, the sender's other packets have taken them, and nothing was lost (frames 8166 to 8168 of an upload): it paused. The same holds
/// where more are missing than a flight that is lost as a whole may have (frames 3249 to 3251).
#[test]
fn a_silence_with_several_numbers_missing_and_no_hole_is_no_likely_probe() {
    for (packets, gap, likely) in [(1, 230, true), (4, 230, false), (4, 340, true), (20, 340, false)] {
        let text = format!(
            "{} +5 C 641 #q\n q+10 S 1448x2 #first\n first+0 C ack\n {}\n first+{gap} S 1448 more\n +0 S 1448\n +0 C ack",
            settled(40),
            vec!["first+60 S ack lost"; packets].join("\n")
        );
        let seen = log(text).rtt(ms(100)).without_timestamps().seen_at(End::Client);
        let of = |cause| seen.longer(cause, ms(100)).iter().any(|line| line.confidence > Possible);
        assert_eq!(of(Cause::Loss) || of(Cause::Rto), likely, "{packets} {gap} {seen}");
    }
}

/// Two segments of a reply are lost and reported; a timer repairs the first after a second, and the second leaves with the acknowledgement
/// of that (frames 1233 to 1238 of a browser): a window of one segment held it, not a report. Behind a repair that a report had set off, the next
/// one is a fast one as well.
#[test]
fn what_follows_a_timers_repair_is_hardly_a_fast_one() {
    for (first, surest) in [("seen+1008", [Possible].as_slice()), ("dup+0", &[Likely, Certain])] {
        let text = format!(
            "{} +5 C 464 #q\n q+10 S 1448x2 lost more\n +0 S 932 #seen\n seen+0 C ack #dup\n {first} S 800..2248 more #first\n first+0 C ack #heard\n \
             heard+0 S 2248..3696 more #second\n second+0 C ack",
            settled(4)
        );
        let seen = log(text).rtt(ms(306)).without_timestamps().seen_at(End::Client);
        let bill = seen.exchange(5);
        assert!(surest.contains(&bill.of(Cause::Loss).confidence), "{first}: {seen}");
        assert!(bill.ns(Cause::Loss, Path) + bill.ns(Cause::Rto, Path) >= ms(306), "{first}: {seen}");
    }
}

/// Three packets of an earlier answer are in no capture, 35, 78 and 499 bytes, and the next answer comes 234 ms behind its request, three numbers
/// later (frames 51 to 112 of a browser): none of them need have been its first copy.
#[test]
fn numbers_that_a_hole_may_have_used_are_no_lost_copies() {
    let text = format!(
        "{} +5 C 215 #q\n q+40 S 35 unseen\n +0 S 78 unseen\n +0 S 499 unseen\n q+207 S 35 #a\n a+0 C ack",
        settled(12)
    );
    let seen = log(text).rtt(ms(53)).without_timestamps().seen_at(End::Client);
    let repairs = seen.exchange(13).exchange.bill.iter().filter(|line| line.cause == Cause::Rto);
    let surest = repairs.map(|line| line.confidence).max();
    assert_eq!(surest, Some(Possible), "{seen}");
}
