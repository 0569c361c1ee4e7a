//! Handshakes on a stalled path: the time above the path's RTT is a queue's, if something shows
//! that.

use tcpwhy_core::cause::{Cause, Side};
use tcpwhy_core::report::Confidence::{self, Certain, Likely, Possible};
use tcpwhy_core::report::Exchange;
use tcpwhy_wire::{Duration, Endpoint};

use crate::distance::merged;
use crate::packet_log::{CLIENT, End, PacketLog, SERVER, each, log, ms};
use crate::seen::Seen;

/// The handshake's time on the path, its time in a queue, and the confidence of that.
fn parts(setup: &Exchange) -> (Duration, Duration, Option<Confidence>) {
    let of = |cause| setup.bill.iter().find(move |line| line.cause == cause);
    let ns = |cause| of(cause).map_or(Duration::ZERO, |line| line.ns);
    (ns(Cause::Handshake), ns(Cause::Queueing), of(Cause::Queueing).map(|line| line.confidence))
}

/// One SYN is answered after 887 ms, and again 490 ms later, though no host's timer is so short;
/// the request waits for 1,185, and the next one for the RTT of 199 (frames 1755 to 1959 of a
/// browser's connection).
#[test]
fn a_second_answer_to_the_only_syn_that_comes_too_soon_shows_that_the_first_one_stood() {
    for (next, way, stood, sure) in [(0, 199.0, 688.0, Likely), (900, 377.0, 510.0, Possible)] {
        let text = format!(
            "@0 C syn #syn
             syn+0 S syn late=688 #first
             first+0 C ack
             first+0.3 C 517 late=986 #hello
             @1277.5 S syn
             hello+0 S ack
             hello+0 S 2000 #answer
             answer+0 C ack
             answer+11 C 64 late={next} #next
             next+0 S 100
             +0 C ack
             +5 C 90 late={next}
             +0 S 100
             +0 C ack"
        );
        let seen = log(text).rtt(ms(199)).without_timestamps().seen_at(End::Client);
        assert_eq!(parts(seen.setup().exchange), (ms(way), ms(stood), Some(sure)), "{seen}");
    }
}

/// The first of two SYNs is answered after 1,058 ms; by stamps, 808 of them are lateness, as later
/// packets show, which take 250 (frames 91 to 460 of a phone's capture).
#[test]
fn what_a_way_takes_that_stands_behind_the_handshake_too_shows_later() {
    let text = "@0 C syn #syn
         syn+0 S syn late=808 #first
         @1000 C syn lost
         first+0 C ack
         first+0.5 C 517 #hello
         hello+0 S ack late=1240
         hello+1 S 2000 late=1240 #answer
         answer+0 C ack
         answer+14 C 80 #next
         next+0 S 100
         +0 C ack
         +5 C 90
         +0 S 100
         +0 C ack";
    let seen = log(text).rtt(ms(250)).seen_at(End::Client);
    assert_eq!(parts(seen.setup().exchange), (ms(250), ms(808), Some(Likely)), "{seen}");
}

/// A SYN is answered after 427 ms, and the request after 200 (frames 1183 to 1221 of a web page): a
/// queue of 227, or a host that is slow for the first packet. Nor is 60 the path's (frames 4559 to 4567 of an
/// app's). For 27, no queue is reported, but not all of it is certainly the RTT.
#[test]
fn what_a_handshake_took_above_the_way_may_be_a_queue() {
    let none = |ns: i32| (ms(ns), Duration::ZERO, None);
    for (late, expected, sure) in [
        (227, (ms(200), ms(227), Some(Possible)), Likely),
        (60, (ms(200), ms(60), Some(Possible)), Likely),
        (27, none(227), Likely),
        (20, none(220), Likely),
        (11, none(211), Certain),
    ] {
        let text = format!(
            "@0 C syn #syn\n syn+0 S syn late={late} #first\n first+0 C ack\n +5 C 100\n +0 S ack\n +1 S 200\n +0 C ack"
        );
        let seen = log(text).rtt(ms(200)).without_timestamps().seen_at(End::Client);
        assert_eq!(parts(seen.setup().exchange), expected, "{seen}");
        assert_eq!(seen.setup().of(Cause::Handshake).confidence, sure, "{seen}");
    }
}

/// Six retransmissions of a SYN without stamps, and the only SYN-ACK 1.48 s after the last of them
/// (frames 706 to 1088 of a phone's capture), or 100 ms: nothing else shows the RTT.
#[test]
fn behind_copies_of_a_syn_no_way_is_known_for_certain() {
    for (late, sure) in [(1_440, Possible), (60, Likely)] {
        let text = format!(
            "@0 C syn lost\n @1005 C syn lost\n @2007 C syn lost\n @4016 C syn late={late} #last\n last+0 S syn\n +0 C ack\n +0.3 C 166 lost"
        );
        let seen = log(text).rtt(ms(40)).without_timestamps().seen_at(End::Client);
        let setup = seen.setup();
        let way = setup.of(Cause::Handshake);
        assert!(way.ns == ms(40 + late) && way.confidence == sure, "{seen}");
        assert!(setup.exchange.bill.iter().all(|line| line.confidence <= sure), "{seen}");
    }
}

/// A handshake takes 250 ms, and so does an exchange: only a bare ACK shows whether that is the
/// RTT, or the path stalled both times, or its server took the rest.
#[test]
fn one_long_handshake_makes_no_certain_way() {
    for (acked, rtt, sure) in [("", 250, Likely), ("+0 S ack\n", 250, Certain), ("", 80, Certain)] {
        let text =
            format!("handshake\n +5 C 100\n {acked} +4 S 200\n +0 C ack\n +5 C 100\n +4 S 200\n +0 C ack");
        let seen = log(text).rtt(ms(rtt)).without_timestamps().seen_at(End::Client);
        assert_eq!(seen.exchange(2).of(Cause::RoundTrip).confidence, sure, "{seen}");
        assert_eq!(seen.setup().of(Cause::Handshake).confidence, sure, "{seen}");
    }
}

/// Another connection between the same hosts has an RTT of 200 ms. This one's SYN-ACK takes 360,
/// and its request is acknowledged after 900 by the reply (frames 1358 to 2247 of a browser's
/// connection): the time above the RTT was queued.
#[test]
fn what_stood_in_a_handshake_is_no_round_trip_of_the_question_behind_it() {
    let other = "handshake\n +5 C 100\n +0 S ack\n +1 S 200\n +0 C ack";
    let text = "@2000 C syn #syn
         syn+0 S syn late=160 #first
         first+0 C ack
         first+4 C 661 late=700 #hello
         hello+0 S ack
         hello+0 S 1288 #answer
         answer+0 C ack";
    let hosts = [Endpoint { port: 40_001, ..CLIENT }, SERVER];
    let logs = [log(other).rtt(ms(200)), log(text).rtt(ms(200)).between(hosts)];
    let seen = merged(&logs, End::Client);
    let late = &seen.report.connections[1];
    let lines = |n: usize| -> Vec<(Cause, Duration, Confidence)> {
        late.exchanges[n].bill.iter().map(|line| (line.cause, line.ns, line.confidence)).collect()
    };
    assert_eq!(lines(0), [(Cause::Handshake, ms(200), Likely), (Cause::Queueing, ms(160), Likely)], "{seen}");
    let way = lines(1).into_iter().find(|line| line.0 == Cause::RoundTrip);
    assert_eq!(way, Some((Cause::RoundTrip, ms(200), Likely)), "{seen}");
    let stood = lines(1).into_iter().find(|line| line.0 == Cause::Queueing).expect("a queue");
    assert!(stood.1 >= ms(160) && stood.2 == Possible, "{seen}");
}

/// A handshake takes 300 ms, and the request is acknowledged after 300, or after 800: then no
/// second round trip confirms the RTT.
#[test]
fn a_long_way_is_certain_once_a_second_round_trip_is_as_long() {
    for (late, sure) in [(0, Certain), (500, Likely)] {
        let text = format!(
            "handshake\n +5 C 100 late={late} #asked\n asked+0 S ack\n asked+30 S 200\n +0 C ack\n +5 C 100 late={late} #next\n next+0 S ack\n next+30 S 200\n +0 C ack"
        );
        let seen = log(text).rtt(ms(300)).without_timestamps().seen_at(End::Client);
        assert_eq!(seen.exchange(1).of(Cause::RoundTrip).confidence, sure, "{seen}");
        assert_eq!(seen.setup().of(Cause::Handshake).confidence, sure, "{seen}");
    }
}

/// A host in between acknowledges at once, and takes 514 ms to open a connection whose replies come
/// through it in 3 ms (frames 29 to 38 of a machine behind NAT): the RTT is not that long.
#[test]
fn answers_show_how_long_the_way_behind_a_host_in_between_is_at_most() {
    // After a reply as late as the handshake it is unknown what released it.
    for (first, answer, way, stood) in
        [(3.0, 3.0, 3.0, 511.0), (514.0, 514.0, 514.0, 0.0), (514.0, 21.0, 514.0, 0.0)]
    {
        let asks = |wait: f64| format!("+5 C 40 #asked\n asked+0 S ack #box\n box+{wait} S 60\n +0 C ack\n");
        let text = format!("@0 C syn\n @514 S syn\n +0 C ack\n {}{}", asks(first), asks(answer).repeat(3));
        let seen = log(text).rtt(Duration::ZERO).without_timestamps().seen_at(End::Client);
        let (handshake, queue, _) = parts(seen.setup().exchange);
        assert!((handshake - ms(way)).max(ms(way) - handshake) <= ms(0.5), "{seen}");
        assert!((queue - ms(stood)).max(ms(stood) - queue) <= ms(0.5), "{seen}");
        let doubtful = seen.setup().exchange.bill.iter().all(|line| line.confidence <= Likely);
        assert!(doubtful == (answer < 500.0), "{seen}");
    }
}

/// The way beyond a virtual machine's NAT takes 952 ms to open, nearly as long as a SYN's timer, and an answer comes after 912 (frames 92
/// to 97 of one): no more than possibly was that a lost SYN, and the answer's time its server's. Without a host in between, both likely.
#[test]
fn a_way_behind_a_host_may_take_as_long_as_a_timer() {
    let server = Endpoint::v4([223, 25, 233, 244], 80);
    for (client, most) in [([192, 168, 106, 141], Possible), ([223, 25, 233, 7], Likely)] {
        let text =
            "@0 C syn\n @951.5 S syn\n +0 C ack\n +0.2 C 160 #q\n q+0 S ack\n q+911.5 S 1430\n +0 C ack";
        let ends = [Endpoint::v4(client, 1_204), server];
        let seen = log(text).rtt(ms(0.2)).between(ends).without_timestamps().seen_at(End::Client);
        let bill = seen.exchange(1);
        let longest = bill.exchange.bill.iter().max_by_key(|line| line.ns).expect("a line");
        let path = longest.cause == Cause::RoundTrip;
        assert!(longest.confidence == most && path == (most == Possible), "{seen}");
    }
}

/// A SYN is answered after 139 ms and the first request is acknowledged after 2.5 (as frames 1 to 11 of a browser's on a LAN), and answered after
/// 53: no path to another host is as long as the handshake either. If the answer takes 100, one may be.
#[test]
fn a_handshake_twice_as_long_as_the_first_answer_was_not_the_path_of_any_host() {
    for (answer, way, stood) in [(50, 2.5, 136.5), (98, 139., 0.)] {
        let text = format!(
            "@0 C syn\n @137.75 S syn\n +0 C ack\n +12 C 56 #q\n q+0 S ack\n q+{answer} S 1448x2\n +0 S 1052\n +0.1 C ack"
        );
        let seen = log(text).rtt(ms(2.5)).without_timestamps().seen_at(End::Client);
        let (handshake, queue, _) = parts(seen.setup().exchange);
        assert!((handshake - ms(way)).max(ms(way) - handshake) <= ms(0.5), "{seen}");
        assert!((queue - ms(stood)).max(ms(stood) - queue) <= ms(0.5), "{seen}");
    }
}

/// The SYN-ACK comes 358 ms after the second SYN, which left after 1,029, with an RTT of 254, and
/// echoes the first one (frames 2365 to 2369 of a browser's connection): no server's timer runs for
/// 1,133 ms. One of 1 s does.
#[test]
fn a_syn_ack_that_echoes_the_first_syn_is_no_timers_beyond_the_last_one() {
    for (left, stood) in [(1_029, 104), (1_030, 0)] {
        let text = format!(
            "@0 C syn #syn
             syn+0 S syn lost
             syn+{left} S syn late={stood} #first
             @1029 C syn lost
             first+0 C ack
             +5 C 100 #asked
             asked+0 S ack
             asked+10 S 200
             +0 C ack
             +5 C 100 #next
             next+0 S ack
             next+10 S 200
             +0 C ack"
        );
        let seen = log(text).rtt(ms(254)).seen_at(End::Client);
        let setup = seen.setup();
        let copies = setup.of(Cause::SynRetransmit);
        let off = (copies.ns - ms(left)).max(ms(left) - copies.ns);
        assert!(off <= ms(1) && copies.confidence == Likely, "{seen}");
        let (_, queue, sure) = parts(setup.exchange);
        assert!((queue - ms(stood)).max(ms(stood) - queue) <= ms(1), "{seen}");
        assert_eq!(sure, (stood > 0).then_some(Possible), "{seen}");
    }
}

/// The path stalls for a second while a connection is opened: the SYN-ACK passes 6 ms after the
/// second SYN, and the request's ACK comes 1,031 ms after that (frames 546 to 556 of a phone's
/// capture). Nothing comes back so much sooner than everything later: the first SYN was answered.
/// If later packets take 6 ms as well, or the server's program answers after 106, a SYN was lost.
#[test]
fn a_syn_ack_sooner_than_any_way_since_answers_the_first_syn() {
    for (stood, late, answer, lost) in [(1_003, 1_025, 0, false), (0, 0, 0, true), (0, 0, 100, true)] {
        let opened = if stood > 0 {
            format!("@0 C syn #syn\n syn+0 S syn late={stood}\n @1003 C syn lost\n @1009 C ack")
        } else {
            "@0 C syn lost\n @1003 C syn\n +0 S syn\n +0 C ack".to_owned()
        };
        let text = opened
            + &format!(
                "\n +5 C 575 late={late}\n +{answer} S 1260\n +0 C ack\n +5 C 80\n +0 S 90\n +0 C ack"
            );
        let seen = log(text).rtt(ms(6)).without_timestamps().seen_at(End::Client);
        let setup = seen.setup();
        let (handshake, queue, sure) = parts(setup.exchange);
        assert_eq!(setup.ns(Cause::SynRetransmit, Side::Path).is_positive(), lost, "{seen}");
        assert_eq!(queue, if lost { ms(0) } else { ms(1_003) }, "{seen}");
        assert!(sure.is_none_or(|sure| sure == Possible), "{seen}");
        assert!(answer > 0 || handshake == ms(6), "{seen}");
    }
}

/// A virtual machine's NAT answers the SYN after 11 ms and acknowledges within 0.2; a reply
/// requested earlier comes 0.9 ms after a request, and later one 326 ms after another (frames 78 to
/// 79 and 614 to 636 of a browser's capture): the path beyond a host that must be there may be
/// longer than 0.9 ms all the same, and the server's time is only likely. Without that host, and
/// for the first reply's server, it is certain.
#[test]
fn behind_a_host_that_must_be_there_no_server_s_time_is_certain() {
    let server = Endpoint::v4([185, 199, 111, 153], 443);
    for (client, sure) in [([192, 168, 125, 129], Likely), ([185, 199, 110, 7], Certain)] {
        let ask = |waits: f64| {
            format!("+50 C 195 #q{waits}\n q{waits}+0 S ack\n q{waits}+{waits} S 158\n +0 C ack\n")
        };
        let text = format!("@0 C syn\n @11 S syn\n +0 C ack\n {}{}", ask(0.9), ask(326.4));
        let ends = [Endpoint::v4(client, 52_478), server];
        let seen = log(text).rtt(ms(0.2)).between(ends).without_timestamps().seen_at(End::Client);
        let think = seen.exchange(2);
        let think = think.of(Cause::ServerThink);
        assert!(think.ns >= ms(326) && think.confidence == sure, "{seen}");
    }
}

/// Handshakes between the same hosts take 50 ms, and one takes 520 (frames 261 to 608 of a
/// telephone): the host that answers the SYNs is equally far away, so 470 of it are a queue. Likewise
/// if only later answers of a long handshake's connection are so near: a host in between answers nothing. If all
/// later round trips take 520 as well, that port leads to another host.
#[test]
fn a_handshake_ten_times_as_long_as_others_between_its_hosts_stood() {
    let asks = "+1 C 45\n +0 S ack\n +0 S 90\n +0 C ack";
    let hosts = [Endpoint { port: 40_001, ..CLIENT }, SERVER];
    let none = (ms(520), Duration::ZERO, None);
    for (late_sibling, way, expected) in [
        (0, 50, (ms(50), ms(470), Some(Possible))),
        (440, 50, (ms(50), ms(470), Some(Possible))),
        (0, 520, none),
    ] {
        let [other, text] = [(0, late_sibling), (2_000, 520 - way)].map(|(at, late)| {
            format!(
                "@{at} C syn #syn\n syn+0 S syn late={late} #first\n first+0 C ack\n {asks}\n +5 C 45\n +0 S ack\n +5 C 45\n +0 S ack"
            )
        });
        let other = log(other).rtt(ms(50)).without_timestamps();
        let seen = merged(&[other, log(text).rtt(ms(way)).without_timestamps().between(hosts)], End::Client);
        assert_eq!(parts(&seen.report.connections[1].exchanges[0]), expected, "{seen}");
    }
}

/// The handshake through a virtual machine's NAT takes 344 ms while others fill the path, and the first reply as long;
/// a second later a reply comes 89 ms after its request (packets 240 to 550 of a browser's capture). Not all of the
/// handshake was the path's. If every reply takes as long, it was.
#[test]
fn a_handshake_four_times_as_long_as_a_reply_is_not_likely_to_be_the_paths() {
    for (reply, most) in [(88, Possible), (382, Likely)] {
        let text = format!(
            "@0 C syn\n @343.6 S syn\n +0 C ack\n +16 C 517 #q\n q+0.2 S ack\n q+382 S 1360\n +0 C ack\n \
             +660 C 64 #r\n r+0.2 S ack\n r+{reply} S 586\n +0 C ack"
        );
        let ends = [Endpoint::v4([10, 0, 2, 15], 45_592), Endpoint::v4([34, 149, 100, 209], 443)];
        let seen = log(text).rtt(ms(0.2)).between(ends).without_timestamps().seen_at(End::Client);
        let setup = seen.setup();
        let way = setup.of(Cause::Handshake);
        assert!(way.ns >= ms(343) && way.confidence == most, "{seen}");
    }
}

/// A server sends its SYN-ACK again after 303 ms, sooner than it can have the client's ACK, whose way takes 382
/// (frames 1041 to 1484 of a telephone's capture): later segments are acknowledged after 382 ms as well, so
/// that the handshake was the path's. Where they take 80, the first SYN-ACK had stood.
#[test]
fn a_path_longer_than_its_servers_timer_is_no_queue() {
    for (late, way) in [(0, 382), (302, 80)] {
        let text = format!(
            "@0 C syn #syn\n syn+0 S syn late={late} #first\n first+0 C ack\n first+1 C 1412 more\n +0 C 343 #hello\n \
             syn+303 S syn late={late} #again\n again+0 C ack\n hello+0 S ack\n hello+15 S 1412x3 #reply\n reply+0 C ack\n \
             +1 C 74\n +0 S 956\n +0 C ack"
        );
        let seen = log(text).rtt(ms(way)).without_timestamps().seen_at(End::Client);
        let (handshake, queue, _) = parts(seen.setup().exchange);
        let stood = handshake < ms(way + 1) && queue >= ms(late - 20);
        assert!(stood && (late > 0 || !queue.is_positive() && handshake >= ms(way)), "{seen}");
    }
}

/// A SYN is answered after 10 ms, and every request within half of one (packets 1 to 28 of a server's capture, whose time stamps say that the
/// SYN was late): the path takes 0.3, and ARP, a new entry of a table on the way or the host the rest. If 1.5 ms are missing, that is no more
/// than hosts vary.
#[test]
fn a_first_packet_that_waited_on_its_way_makes_no_long_handshake() {
    for (late, queue) in [(9.7, Some((ms(9.7), Possible))), (1.5, None)] {
        let turn = "+1 C 100\n +0 S ack\n +0.1 S 200\n +0 C ack\n";
        let text = format!("@0 C syn late={late} #syn\n syn+0 S syn\n +0 C ack\n {}", turn.repeat(3));
        let seen = log(text).rtt(ms(0.3)).without_timestamps().seen_at(End::Client);
        let (way, stood, sure) = parts(seen.setup().exchange);
        assert_eq!(sure.map(|sure| (stood, sure)), queue, "{seen}");
        assert_eq!(way, if queue.is_some() { ms(0.3) } else { ms(0.3 + late) }, "{seen}");
    }
}

/// A handshake takes 53 ms, and the next exchange shows a path of 26 (frames 5977 to 5996 of a telephone's capture).
#[test]
fn a_handshake_twice_as_long_as_the_path_that_the_next_exchange_shows_may_have_met_a_queue() {
    for (late, queue) in [(27, Some((ms(27), Possible))), (6, None)] {
        let text = format!(
            "@0 C syn #syn\n syn+0 S syn late={late}\n +0 C ack\n +1 C 517 late={late} #hello\n hello+9 S 1200 #answer\n answer+0 C ack
             +5 C 300 #next\n next+0 S ack\n next+20 S 900\n +0 C ack"
        );
        let seen = log(text).rtt(ms(26)).without_timestamps().seen_at(End::Client);
        let (way, stood, sure) = parts(seen.setup().exchange);
        assert_eq!(sure.map(|sure| (stood, sure)), queue, "{seen}");
        assert_eq!(way, if queue.is_some() { ms(26) } else { ms(26 + late) }, "{seen}");
    }
}

/// The second SYN, 1,042 ms behind the first, is answered after 152 ms, twice the RTT (frames 76 to 500 of a course's capture): a
/// wait for a retransmission is over as that leaves.
#[test]
fn a_syn_timer_has_no_part_of_what_its_copy_took() {
    let text = "@0 C syn lost
         @1042 C syn #again
         again+0 S syn late=76
         +0 C ack
         +0.3 C 517 #hello
         hello+0 S ack
         hello+0 S 2000
         +0 C ack
         +5 C 90 #next
         next+0 S 100
         +0 C ack";
    for text in [text.to_owned(), text.replace("late=76", "")] {
        let late = if text.contains("late") { 76 } else { 0 };
        let seen = log(text).rtt(ms(76)).seen_at(End::Client);
        let setup = seen.setup();
        assert_eq!(setup.of(Cause::SynRetransmit).ns, ms(1_042), "{seen}");
        assert_eq!(parts(setup.exchange), (ms(76), ms(late), (late > 0).then_some(Possible)), "{seen}");
    }
}

/// A path stands for a second while a connection is opened: the SYN is repeated after 997 ms, and the SYN-ACK that comes 266 ms later echoes
/// the first one (frames 30 to 60 of a browser over a telephone). By its server's time stamps it had left before the second one came:
/// nothing was lost. If it left then, it answers the second SYN, though it echoes the first one, as Linux does.
#[test]
fn a_syn_ack_that_left_before_the_second_syn_came_repaired_nothing() {
    let stood = "@0 C syn\n +0 S syn late=985 #first\n @997 C syn lost\n first+0 C ack #open";
    let lost = "@0 C syn #syn\n syn+0 S syn lost\n @997 C syn\n +0 S syn\n +0 C ack #open";
    let asks = each(1..6, |n| format!("open+{} C 224\n +0 S ack\n +{n} S 145\n +0 C ack", 400 * n));
    for (opened, times) in [(stood, [0, 985]), (lost, [997, 0])] {
        let mut segments = log(format!("{opened}\n {asks}")).rtt(ms(278)).capture(End::Client);
        let first = segments[0].options.timestamps.map_or(0, |stamps| stamps.val);
        let syn_acks = segments.iter_mut().filter(|segment| segment.flags.syn() && segment.flags.ack());
        for stamps in syn_acks.filter_map(|segment| segment.options.timestamps.as_mut()) {
            stamps.ecr = first;
        }
        let seen = Seen::of(segments, "the client");
        let setup = seen.setup();
        let took = [Cause::SynRetransmit, Cause::Queueing].map(|cause| setup.ns(cause, Side::Path));
        assert!(
            took.iter().zip(times).all(|(took, ns)| (*took - ms(ns)).as_nanos().abs() <= 1_000_000),
            "{seen}"
        );
        assert!(setup.exchange.bill.iter().all(|line| line.confidence == Likely), "{seen}");
    }
}

/// The same where nothing but the handshake has time stamps. The answer to the second SYN passes 12 ms behind the first SYN-ACK, 997 ticks later (frames 39 to 47
/// of that capture), which no clock takes for less than a second: the first one had stood. One that comes 133 ms behind the second SYN, with a
/// round trip of 164, is too soon for that and for a server's timer (frames 33 to 43), and possibly stood.
#[test]
fn a_syn_ack_too_soon_for_the_second_syn_and_any_timer_possibly_stood() {
    let asks = "open+1 C 224\n +0 S ack\n +1 S 145\n +0 C ack\n +5 C 100\n +0 S 100\n +0 C ack";
    for (way, late, again, queue, lost) in [
        (278, 985, "again+0 S syn", Some(Likely), None),
        (164, 968, "", None, Some(Possible)),
        (164, 1_010, "", None, Some(Likely)),
    ] {
        let text = format!(
            "@0 C syn\n +0 S syn late={late} #first\n @997 C syn #again\n {again}\n first+0 C ack #open\n {asks}"
        );
        let mut segments = log(text).rtt(ms(way)).capture(End::Client);
        for segment in segments.iter_mut().filter(|segment| !segment.flags.syn()) {
            segment.options.timestamps = None;
        }
        let seen = Seen::of(segments, "the client");
        let sure = |cause| {
            let mut lines = seen.setup().exchange.bill.iter().filter(move |line| line.cause == cause);
            lines.find(|line| line.ns >= ms(900)).map(|line| line.confidence)
        };
        assert_eq!((sure(Cause::Queueing), sure(Cause::SynRetransmit)), (queue, lost), "{seen}");
    }
}

/// A SYN is answered after 62 ms, the data behind it acknowledged after 6.6, and another connection's SYN took 5 (frames 2452 to 2456 of a browser that
/// finds a television asleep): the host that answers SYNs is no farther than that.
#[test]
fn a_handshake_much_longer_than_another_one_and_its_own_round_trips_stood() {
    let hosts = [Endpoint { port: 40_001, ..CLIENT }, SERVER];
    let other = "handshake\n +5 C 100\n +0 S ack\n +1 S 200\n +0 C ack";
    for (way, late, expected) in
        [(5, 57, (ms(5), ms(57), Some(Possible))), (62, 0, (ms(62), Duration::ZERO, None))]
    {
        let text = format!("@9000 C syn\n +0 S syn late={late}\n +0 C ack\n +0.4 C 517 late=1\n +0.6 S ack");
        let logs =
            [log(other).rtt(ms(5)), log(text).rtt(ms(way)).between(hosts)].map(PacketLog::without_timestamps);
        let seen = merged(&logs, End::Client);
        assert_eq!(parts(&seen.report.connections[1].exchanges[0]), expected, "{seen}");
    }
}
