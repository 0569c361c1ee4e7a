//! A link that is slow for the path: whatever holds the sender, the link is busy with what it has
//! sent.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server, Unknown};
use tcpwhy_core::report::{Confidence, Kind};
use tcpwhy_wire::{Duration, Endpoint, Segment};

use crate::packet_log;
use crate::packet_log::{End, each, log, ms};
use crate::seen::Seen;

const LINK_BPS: u64 = 2_000_000;

const SEGMENT_MS: f64 = 1448.0 * 8.0 / 2e6 * 1e3;

/// Ten segments in flight take 58 ms on the link and the RTT is one: the window releases each pair
/// when one has arrived, and the link is never idle.
#[test]
fn a_flight_longer_than_the_round_trip_keeps_the_link_busy() {
    let pairs = each(0..30, |pair| {
        let when = if pair < 5 { "@20".to_owned() } else { format!("a{}+0", pair - 5) };
        format!("{when} S 1448 more\n {when} S 1448 more #p{pair}\n p{pair}+0 C ack #a{pair}")
    });
    let text = format!("handshake\n +5 C 100\n {pairs}\n a29+0 S 100\n +0 C ack");
    log(text).rtt(ms(1)).bottleneck(End::Server, LINK_BPS).both_ends(|seen| {
        let bill = seen.exchange(1);
        // The link's rate is unknown until the first ACKs have come.
        assert!(bill.ns(Cause::Bandwidth, Path) >= ms(57.0 * SEGMENT_MS), "{seen}");
    });
}

/// Ten segments take 58 ms on the link and the RTT is 100: the link is idle for the rest of the
/// first round, and no longer. Its rate shows to the sender only after that round.
#[test]
fn the_first_round_s_time_on_the_link_is_the_link_s() {
    let first = each(1..10, |n| format!("s0+0 S 1448 more #s{n}"));
    let second = each(0..10, |n| {
        format!(
            "s{n}+0 C ack #a{n}\n a{n}+0 S 1448 more #r{n}\n a{n}+0 S 1448 more #t{n}\n r{n}+0 C ack\n t{n}+0 C ack"
        )
    });
    let text = format!(
        "handshake\n +5 C 100\n +0 S 1448 more #s0\n {first}\n {second}\n a9+0 S 100 #end\n end+0 C ack"
    );
    log(text).rtt(ms(100)).bottleneck(End::Server, LINK_BPS).both_ends(|seen| {
        let bill = seen.exchange(1);
        let idle = ms(100.0 - 9.0 * SEGMENT_MS);
        let held = bill.ns(Cause::SlowStart, Server);
        assert!(held >= idle - ms(1) && held <= idle + ms(1), "{seen}");
        // Near the client, the first segment's time may equally be the server's.
        assert!(bill.ns(Cause::Bandwidth, Path) >= ms(29.0 * SEGMENT_MS), "{seen}");
    });
}

/// One of ten segments is lost and retransmitted while the link still has four to send: it costs
/// its own time on the link, and the repair nothing.
#[test]
fn a_repair_that_the_link_does_not_wait_for_costs_nothing() {
    let arrivals = each([1, 2, 4, 5, 6, 7, 8, 9, 10], |n| format!("s{n}+0 C ack"));
    let flight = each(1..=10, |n| format!("@20 S 1448 more #s{n}{}", if n == 3 { " lost" } else { "" }));
    // The third duplicate acknowledgement.
    let again = 20.0 + 5.0 * SEGMENT_MS + 1.0;
    let text = format!(
        "handshake\n +5 C 100\n {flight}\n {arrivals}\n @{again:.3} S 2896..4344 more #again\n again+0 C ack\n +0 S 100\n +0 C ack"
    );
    log(text).rtt(ms(1)).bottleneck(End::Server, LINK_BPS).both_ends(|seen| {
        let bill = seen.exchange(1);
        assert!(bill.ns(Cause::Loss, Path) <= ms(0.5), "{seen}");
        // Near the client, the first segment's time may equally be the server's.
        assert!(bill.ns(Cause::Bandwidth, Path) >= ms(9.0 * SEGMENT_MS), "{seen}");
    });
}

/// Twelve segments leave at once, the queue before the link has room for six, and one of these is
/// lost: each packet that arrives after a hole is acknowledged at once, and when the ACKs stop the
/// link has nothing more to do.
#[test]
fn what_a_full_queue_has_dropped_keeps_no_link_busy() {
    let singles = each(0..60, |n| {
        let when = if n < 10 { "@20".to_owned() } else { format!("a{}+0", n - 10) };
        format!("{when} S 1448 more #p{n}\n p{n}+0 C ack #a{n}")
    });
    let flight =
        each(1..=12, |n| format!("a59+0 S 1448 more #f{n}{}", if n == 5 || n > 6 { " lost" } else { "" }));
    let arrivals = each([1, 2, 3, 4, 6], |n| format!("f{n}+0 C ack #b{n}"));
    let again = each([4, 6, 7, 8, 9, 10, 11], |n: u32| {
        let from = (60 + n) * 1448;
        format!("b6+70 S {from}..{} more #r{n}\n r{n}+0 C ack", from + 1448)
    });
    let text = format!(
        "handshake\n +5 C 100\n {singles}\n {flight}\n {arrivals}\n {again}\n r11+0 S 100\n +0 C ack"
    );
    let seen = log(text).rtt(ms(1)).bottleneck(End::Server, LINK_BPS).seen_at(End::Server);
    let bill = seen.exchange(1);
    // Sixty segments before it, the five that arrived and the seven retransmitted; and the time for
    // another three.
    assert!(bill.ns(Cause::Bandwidth, Path) <= ms(76.0 * SEGMENT_MS), "{seen}");
    assert!(bill.ns(Cause::Loss, Path) >= ms(70.0 - 3.5 * SEGMENT_MS), "{seen}");
}

/// A sender that paces near the link's rate sends only full segments, pushed each time
/// (__tcp_transmit_skb, net/ipv4/tcp_output.c, since 5.4): no application writes like that. The RTT
/// is shorter than the spacing.
#[test]
fn full_segments_near_the_rate_of_the_link_are_no_pauses_of_an_application() {
    let first = each(0..10, |n| format!("@20 S 14480 #f{n}\n f{n}+0 C ack"));
    let spaced = each(0..90, |n| {
        let at = 40.0 + 1.8 * f64::from(n) + 0.3 * f64::from(n % 3);
        format!("@{at:.1} S 14480 #s{n}\n s{n}+0 C ack")
    });
    let text = format!("handshake\n +5 C 100\n {first}\n {spaced}\n s89+0.1 S 100\n +0 C ack");
    let seen = log(text).rtt(ms(0.3)).bottleneck(End::Server, 100_000_000).seen_at(End::Server);
    let bill = seen.exchange(1);
    // The 8 ms after the first flight are neither.
    assert!(bill.ns(Cause::SenderThink, Server) <= ms(10), "{seen}");
    assert!(bill.ns(Cause::Pacing, Server) >= ms(40), "{seen}");
}

/// Without time stamps, a sender that paces faster in each round trip: the first flight came within
/// a moment, and a link that had passed that is at most a guess.
#[test]
fn what_comes_faster_and_faster_is_no_slow_link() {
    let first = each(0..10, |n| format!("@30 S 1460 #f{n}\n f{n}+0 C ack"));
    let spaced = each(0..600, |n| {
        let at = 50.0 + 1.5 * (1.0 - 0.995_f64.powi(n)) / 0.005;
        format!("@{at:.3} S 2920 #s{n}\n s{n}+0 C ack")
    });
    let text = format!("handshake\n +5 C 100\n {first}\n {spaced}\n s599+0.1 S 100\n +0 C ack");
    let path = log(text).without_timestamps().rtt(ms(20)).bottleneck(End::Server, 1_000_000_000);
    let seen = path.seen_at(End::Client);
    assert_eq!(seen.exchange(1).of(Cause::Bandwidth).confidence, Confidence::Possible, "{seen}");
}

/// Five ACKs within a moment are all that is known of the link: its part of the next flight is a
/// guess.
#[test]
fn a_rate_that_a_moment_has_shown_is_a_guess() {
    let first = each(0..5, |n| format!("@50 S 2896 more #s{n}"));
    let acks = each(0..5, |n| format!("s4+{:.2} C ack ack={} #a{n}", 0.15 * f64::from(n), 2_896 * (n + 1)));
    let second = each(0..5, |n| format!("a4+0 S 2896 more #t{n}\n t{n}+0 C ack"));
    let text = format!("handshake\n +5 C 100\n {first}\n {acks}\n {second}\n t4+0.3 S 100\n +0 C ack");
    let seen = log(text).rtt(ms(40)).seen_at(End::Server);
    assert_eq!(seen.exchange(1).of(Cause::Bandwidth).confidence, Confidence::Possible, "{seen}");
}

/// Small messages that are acknowledged late, or with the next one, say nothing about a link.
#[test]
fn messages_acknowledged_late_are_no_slow_link() {
    let rounds = "+200 C 132\n +0.05 S 132\n +0.05 C 132\n +0.02 S 132 #last\n last+42 C ack\n".repeat(20);
    log(format!("handshake\n {rounds}")).rtt(ms(0.1)).both_ends(|seen| {
        for n in 30..=40 {
            assert!(seen.exchange(n).ns(Cause::Bandwidth, Path) <= ms(0.1), "{seen}");
        }
    });
}

/// The rest came 10 ms later and the reply 2: the server had waited for it, both times.
#[test]
fn an_answer_that_comes_a_little_later_with_the_rest_waited_for_it() {
    let text = "handshake
         +5 C 100 #a
         a+0 S ack
         a+150 C 300
         a+170 S 50
         +5 C 100 #b
         b+0 S ack
         b+160 C 300
         b+172 S 50";
    log(text).rtt(ms(2)).both_ends(|seen| {
        assert!(seen.exchange(2).ns(Cause::ServerThink, Server) <= ms(13), "{seen}");
    });
}

/// Two uploads that take the link equally long, the second sent all at once: the server had not
/// answered the first piece, but waited for the last.
#[test]
fn uploads_that_take_the_link_s_time_are_not_answered_from_their_beginning() {
    let upload = |name: char, when: &dyn Fn(usize) -> f64| {
        each(0..20, |pair| {
            let at = when(pair);
            format!("@{at} C 1448 more\n @{at} C 1448 #{name}{pair}\n {name}{pair}+0 S ack")
        })
    };
    let at_once = upload('a', &|_| 20.0);
    let slowly = upload('b', &|pair| 520.0 + 20.0 * (pair / 5) as f64);
    let text = format!("handshake\n {at_once}\n a19+3 S 50\n {slowly}\n b19+3 S 50");
    log(text).rtt(ms(1)).bottleneck(End::Client, LINK_BPS).both_ends(|seen| {
        assert!(seen.exchange(2).ns(Cause::ServerThink, Server) <= ms(15), "{seen}");
    });
}

/// A program that reads 30 kB every 20 ms: one ACK for all data in flight, when it reads. Nothing
/// in between was slow.
#[test]
fn a_slow_reader_behind_a_large_window_is_no_slow_link() {
    let rounds = each(0..30, |n| {
        let when = if n == 0 { "@30".to_owned() } else { format!("a{}+0", n - 1) };
        format!(
            "{when} S 7240x3 more\n {when} S 7240 #f{n}\n f{n}+{} C ack win=28960 #a{n}",
            if n < 3 { 0 } else { 20 }
        )
    });
    let text = format!("handshake\n +5 C 100\n +0 S 100\n {rounds}\n a29+0 S 100\n +0 C ack");
    log(text).rtt(ms(2)).window(End::Client, 28_960).both_ends(|seen| {
        let bill = seen.exchange(1);
        assert!(bill.ns(Cause::ReceiverThink, Client) >= ms(500), "{seen}");
        assert!(bill.ns(Cause::Bandwidth, Path) <= ms(5), "{seen}");
    });
}

/// 800 kB to a program that reads 64 KB every 20 ms from a buffer of 84 KB, 50 ms away, in the
/// sender's capture. Its ACKs come at 20 Mbit/s, as from a link; but each round has flights of 30
/// KB and more that left at once, and were acknowledged a round trip later within 0.2 ms. A link of
/// that rate takes 12 ms for them.
#[test]
fn bursts_that_pass_at_once_refute_a_rate() {
    let seen = log(include_str!("read_in_steps.log"))
        .without_ip_ids()
        .rtt(ms(50))
        .window(End::Server, 84_150)
        .seen_at(End::Client);
    let (link, window) = (seen.spent(Cause::Bandwidth, Path), seen.spent(Cause::ReceiveWindow, Server));
    assert!(link <= ms(20) && window >= ms(400), "{link} and {window}{seen}");
}

/// Forty segments arrive at once at a program that does not read yet: the receiver acknowledges the
/// first ones quickly, and the last two when the first are read, 10 ms later. From then on the pace
/// is the program's.
#[test]
fn what_is_acknowledged_when_it_is_read_is_no_slow_link() {
    let unread = |pairs: i64| 57_920 - pairs * 2_896;
    let flight = each(0..20, |n| format!("@30 S 1448 more #a{n}\n @30 S 1448 more #b{n}"));
    let quick = each(0..19, |n| format!("b{n}+0 C ack win={}", unread(n)));
    let reads = each(0..30, |n| {
        format!("r{n}+0 S 1448x7 more\n r{n}+0 S 1448 #f{n}\n f{n}+10 C ack win=11584 #r{}", n + 1)
    });
    let text = format!(
        "handshake\n +5 C 100\n +0 S 100\n {flight}\n {quick}\n b19+10 C ack win=11584 #r0\n {reads}\n r30+0 S 100\n +0 C ack"
    );
    log(text).rtt(ms(10)).window(End::Client, 57_920).bottleneck(End::Server, 1_000_000_000).both_ends(
        |seen| {
            let bill = seen.exchange(1);
            // With forty segments per round trip it would have taken 60 ms of the 600.
            assert!(bill.ns(Cause::ReceiverThink, Client) >= ms(530), "{seen}");
            assert!(bill.ns(Cause::ReceiveWindow, Client) <= ms(85), "{seen}");
            assert!(bill.ns(Cause::Bandwidth, Path) <= ms(10), "{seen}");
        },
    );
}

/// The first flight is small and its receiver takes its time: five ACKs, 0.3 ms apart. The next
/// flights leave with them, each twice as large, and keep their spacing; the last one leaves at
/// once and is acknowledged within a moment. No link was as slow as the first one suggested.
#[test]
fn a_first_flight_that_is_answered_slowly_is_no_slow_link() {
    let first = each(0..5, |n| format!("@50 S 2896 more #s0x{n}"));
    let acks =
        each(0..5, |n| format!("s0x4+{:.1} C ack ack={} #a0x{n}", 0.3 * f64::from(n), 2_896 * (n + 1)));
    let rounds = each(1..6, |round| {
        each(0..5, |n| {
            let released = format!("a{}x{}", round - 1, if round == 5 { 4 } else { n });
            let len = 2_896 << round;
            format!("{released}+0 S {len} more #s{round}x{n}\n s{round}x{n}+0 C ack #a{round}x{n}")
        })
    });
    let text = format!("handshake\n +5 C 100\n {first}\n {acks}\n {rounds}\n a5x4+0 S 100\n +0 C ack");
    let seen = log(text).rtt(ms(25)).bottleneck(End::Server, 100_000_000_000).seen_at(End::Server);
    let bill = seen.exchange(1);
    assert!(bill.ns(Cause::SlowStart, Server) >= ms(5 * 24), "{seen}");
    assert!(bill.ns(Cause::Bandwidth, Path) <= ms(8), "{seen}");
}

/// Flights of forty segments, and a link that needs 0.5 ms for two of them or, every second time, 2
/// ms: the link's part of each wait is a guess. With 0.5 ms each time it is not.
#[test]
fn the_time_of_a_link_that_goes_by_fits_and_starts_is_a_guess() {
    for (slow, confidence) in [(2.0, Confidence::Possible), (0.5, Confidence::Likely)] {
        let rounds = each(0..16, |round| {
            let released = if round == 0 { "@60".to_owned() } else { format!("a{}x19+0", round - 1) };
            let flight = each(0..20, |n| format!("{released} S 2896 more #s{round}x{n}"));
            let apart = if round % 2 == 1 { slow } else { 0.5 };
            let acks = each(0..20, |n| {
                let at = apart * f64::from(n + 1);
                format!("s{round}x19+{at:.1} C ack ack={} #a{round}x{n}", 2_896 * (20 * round + n + 1))
            });
            format!("{flight}\n {acks}")
        });
        let text = format!("handshake\n +5 C 100\n {rounds}\n a15x19+0 S 100\n +0 C ack");
        let seen = log(text).rtt(ms(10)).seen_at(End::Server);
        let bill = seen.exchange(1);
        let link = bill.of(Cause::Bandwidth);
        assert!(link.ns >= ms(100) && link.confidence == confidence, "{seen}");
    }
}

/// The tail of a reply is lost, and the last segment to arrive is acknowledged singly, by the
/// receiver's timer. The link had been fast before, and it still is.
#[test]
fn an_acknowledgement_held_back_before_a_lost_tail_is_no_slow_link() {
    let reply = "+0 S 1448 more #1\n +0 S 1448 more #2\n +0 S 1448 more #3\n +0 S 1448 more #4\n +0 S 1208 #5
         2+0 C ack\n 4+0 C ack\n 5+0 C ack";
    let lost =
        "+0 S 1448 more #6\n 6+0 S 1448 more #7\n 6+0 S 1448 more #8\n 6+0 S 1448 more lost\n 6+0 S 1208 lost
         7+0 C ack\n 8+43 C ack #held
         held+120 S 32984..34192 #probe
         probe+0 C ack #answer
         answer+0 S 31536..32984 #again
         again+0 C ack";
    let replies = each(0..4, |n| {
        let named = (1..6)
            .fold(reply.to_owned(), |text, k| text.replace(&format!(" {k}+0 C"), &format!(" e{n}x{k}+0 C")));
        format!("+5 C 100\n {}", named.replace('#', &format!("#e{n}x")))
    });
    let text = format!("handshake\n {replies}\n +5 C 100\n {lost}");
    log(text).rtt(ms(40)).bottleneck(End::Server, 900_000_000).both_ends(|seen| {
        let bill = seen.exchange(5);
        assert!(bill.ns(Cause::Loss, Path) >= ms(200), "{seen}");
        assert!(bill.ns(Cause::Bandwidth, Path) <= ms(1), "{seen}");
    });
}

/// A transfer fills a queue of 40 ms; a second connection between the same hosts opens into it and
/// never sees a shorter RTT, nor one that varies. The first one does.
#[test]
fn a_connection_that_opens_into_a_queue_waits_in_it() {
    let transfer = each(0..100, |n| {
        let late = if n < 10 { 4 * n } else { 40 };
        format!("@{} S 1448x2 more late={late} #s{n}\n s{n}+0 C ack", 30 + 6 * n)
    });
    let transfer = log(format!("handshake\n +0 C 100\n {transfer}\n")).rtt(ms(20));
    let asking =
        "@300 C syn\n +0 S syn\n +0 C ack".to_owned() + &"\n +5 C 100\n +0 S 200\n +0 C ack".repeat(3);
    let other = Endpoint::v4([10, 0, 0, 1], 40_001);
    let asking = log(asking).rtt(ms(60)).between([other, packet_log::SERVER]);
    for end in End::BOTH {
        let mut segments = transfer.capture(end);
        segments.extend(asking.capture(end));
        segments.sort_by_key(|segment| segment.at);
        for (segment, packet) in segments.iter_mut().zip(1..) {
            segment.packet = packet;
        }
        let seen = Seen::of(segments, &format!("the {end:?}"));
        let connection =
            seen.report.connections.iter().find(|connection| connection.client == other).unwrap();
        for exchange in connection.exchanges.iter().filter(|exchange| exchange.kind == Kind::Exchange) {
            let of =
                |cause| exchange.bill.iter().filter(|line| line.cause == cause).map(|line| line.ns).sum();
            let [way, queue]: [Duration; 2] = [of(Cause::RoundTrip), of(Cause::Queueing)];
            assert!(way <= ms(22) && queue >= ms(38), "{seen}");
        }
    }
}

/// A token bucket on the sender's own interface: captures are taken after it. Each packet has the
/// time stamp of when TCP handed it over, and is acknowledged before the next one gets through.
#[test]
fn a_queue_on_the_sender_s_own_interface_is_bandwidth() {
    // 200 segments handed over at once, one every 250 us, or the first ten of a connection, one
    // every 6 ms.
    for (settled, count, every_ms) in [(5, 200, 0.25), (0, 10, 6.0)] {
        let reply = format!("+5 C 100\n +0 S 1448x{count} every={every_ms} more\n +0 C ack");
        let text = packet_log::settled(settled) + &reply;
        let mut segments = log(text).rtt(ms(0.05)).capture(End::Server);
        let first = segments.iter().find(|segment| segment.payload_len == 1448).expect("data");
        let sent = first.options.timestamps.expect("a stamp").val;
        let mut acks = Vec::new();
        for segment in segments.iter_mut().filter(|segment| segment.payload_len == 1448) {
            if let Some(stamps) = &mut segment.options.timestamps {
                stamps.val = sent;
            }
            acks.push((segment.at + ms(0.05), segment.seq + segment.payload_len));
        }
        let last = *segments.last().expect("the last acknowledgement");
        segments.extend(acks.into_iter().map(|(at, ack)| Segment { at, ack, ..last }));
        segments.sort_by_key(|segment| segment.at);
        let seen = Seen::of(segments, "the server");
        let all = ms(every_ms * f64::from(count - 1));
        assert!(seen.exchange(settled + 1).ns(Cause::Bandwidth, Path) >= all - ms(7), "{seen}");
    }
}

/// A receiver's program sleeps, and its host delays the ACK. The probe sent by the sender's timer
/// is new data: it repairs nothing, and shows no loss.
#[test]
fn a_probe_with_new_data_is_no_more_than_possibly_a_loss() {
    let slow =
        "+5 C 100\n +0 S 1448x10 more #sent\n sent+14 S 1448 more\n +20 C ack\n +0 S 1448x4\n +0 C ack";
    let seen = log(packet_log::settled(5) + slow).rtt(ms(4)).seen_at(End::Server);
    let lost = seen.exchange(6).exchange.bill.iter().find(|line| line.cause == Cause::Loss);
    assert!(lost.is_none_or(|line| line.confidence == Confidence::Possible), "{seen}");
}

/// The last two segments of a reply are lost; the rest ends with a single segment, whose ACK is
/// delayed by 43 ms. No link is as slow as that.
#[test]
fn a_lone_segment_s_timer_is_no_link() {
    let text = "handshake
        +5 C 100 #q
        q+0 S 1448x3 more #r
        q+0.02 S 1448 more lost
        q+0.03 S 1208 lost
        r+0 C ack ack=2896
        r+43 C ack
        q+180 S 4344..5792
        +0 C ack
        +0 S 5792..7000
        +0 C ack";
    log(text).rtt(ms(40)).both_ends(|seen| {
        let bill = seen.exchange(1);
        assert!(bill.ns(Cause::Bandwidth, Path) < ms(1), "{seen}");
    });
}

/// A satellite link that is used a quarter of the time, by a fast host and a slow one: segments
/// that leave together after one ACK need the link for what that acknowledged, once, and nothing is
/// paced.
#[test]
fn segments_that_share_an_acknowledgement_need_the_bottleneck_once() {
    const ROUNDS: usize = 12;
    for late in [0.3, 1.6] {
        let pair = |round: usize, j: usize| {
            let when = match round {
                0 => format!("@{}", 600.0 + 2.6 * j as f64),
                _ => format!("a{}_{j}+{late}", round - 1),
            };
            let label = format!("{round}_{j}");
            format!("{when} C 1448 more\n +1.3 C 1448 more #s{label}\n s{label}+0 S ack #a{label}\n")
        };
        let text: String = (0..ROUNDS).flat_map(|round| (0..5).map(move |j| pair(round, j))).collect();
        let transfer = log(format!("handshake\n {text}")).rtt(ms(250)).bottleneck(End::Client, 1_500_000);
        let seen = transfer.seen_at(End::Client);
        let bill = seen.one_way(1);
        let needed = Duration::from_nanos(1448 * 8 * 1_000_000 / 1500).times(10 * ROUNDS as i64);
        let billed = bill.ns(Cause::Bandwidth, Path);
        assert!(billed <= needed + needed.divided_by(10), "{billed} of {needed}: {seen}");
        assert!(billed >= needed.divided_by(2), "{billed} of {needed}: {seen}");
        let paced: Duration = [Client, Server].into_iter().map(|side| bill.ns(Cause::Pacing, side)).sum();
        assert!(paced <= bill.exchange.elapsed.divided_by(20), "{paced}: {seen}");
    }
}

/// Over a phone's network of 224 ms, the acknowledgements of 28,000 bytes are on their way for 148 ms longer, and the next
/// flight of a server with more to send comes that late (frames 1202 to 1337 of a browser): its window was used up, and the
/// path was late, as nothing was retransmitted.
#[test]
fn a_window_that_opens_much_later_than_a_round_trip_is_used_up_all_the_same() {
    let text = "handshake\n +5 C 390\n +2 S 1400x10 more\n +0 C ack\n +0 S 1400x20 more\n +0 C ack late=148\n +0 S 1400x40 more\n \
                +0 C ack late=170\n +0 S 1400x80\n +0 C ack";
    let seen = log(text).rtt(ms(224)).seen_at(End::Client);
    let bill = seen.exchange(1);
    let (window, late) = (bill.ns(Cause::SlowStart, Server), bill.ns(Cause::Queueing, Path));
    assert!(
        window >= ms(3 * 220) && late >= ms(310) && bill.ns(Cause::Unexplained, Unknown) == ms(0),
        "{seen}"
    );
}

/// Three short messages are acknowledged late and one right behind the other (frames 37 to 42 of a laboratory's virtual link): their link
/// has shown no rate, and their receiver may have been late.
#[test]
fn a_link_that_has_shown_no_rate_is_possible() {
    let text = "handshake
         +1 C 132
         +0 S 132
         +20 C 132 #q
         q+0.3 S 132
         +0.3 S 132
         +0.3 S 132 #last
         last+5 C ack ack=264
         +0.3 C ack ack=396
         +0.3 C ack
         +50 C 132
         +0 S 100
         +0 C ack";
    let seen = log(text).rtt(ms(1)).seen_at(End::Server);
    let bill = seen.exchange(2);
    let link = bill.of(Cause::Bandwidth);
    assert!(link.ns >= ms(5) && link.confidence == Confidence::Possible, "{seen}");
}

/// The acknowledgements of a flight come in clumps 11, 2.1, 0.8 and 2.9 ms apart (frames 47 to 63 of a page over Wi-Fi): what their
/// distances show is no link's rate for certain. Of a link of 6 Mbit/s each pair of segments takes as long as the last.
#[test]
fn acknowledgements_that_come_by_jerks_show_no_rate_for_certain() {
    for (steps, most) in [
        ([4.0; 12], Confidence::Likely),
        ([11.0, 2.1, 0.8, 2.9, 9.0, 0.6, 0.7, 4.9, 8.7, 0.9, 1.2, 3.0], Confidence::Possible),
    ] {
        let at = |n: usize| steps[..n].iter().sum::<f64>();
        let acks = each(0..12, |n| {
            let more = if n < 8 { "+0 S 1448x2 more" } else { "" };
            format!("a+{} C ack ack={}\n {more}", at(n), 2896 * (n + 1))
        });
        let text =
            format!("handshake\n +5 C 100\n +3 S 1448x8 more #a\n {acks}\n a+80 C 100\n +0 S 100\n +0 C ack");
        let seen = log(text).rtt(ms(6)).without_timestamps().seen_at(End::Server);
        let link = seen.exchange(1).exchange.bill.iter().find(|line| line.cause == Cause::Bandwidth);
        assert_eq!(link.map(|line| line.confidence), Some(most), "{seen}");
    }
}

/// A flight comes at once, and what its acknowledgements release 17 ms late, all in one moment (frames 21 to 27 of a page): a link
/// would have spread it, and no rate of one has shown.
#[test]
fn what_comes_late_without_a_rate_may_have_stood_on_the_path() {
    let text = "handshake\n +5 C 78 #q\n q+35 S 1448x8 more #flight\n flight+0 C ack #open\n
         open+0 S 1448 more late=17\n open+1 S 1448x4 more late=16\n open+1 S 1255 late=16\n +0 C ack";
    let seen = log(text).rtt(ms(6)).seen_at(End::Client);
    let bill = seen.exchange(1);
    let late = bill.of(Cause::Bandwidth);
    assert!(late.ns >= ms(15) && late.confidence == Confidence::Possible, "{seen}");
}
