//! Imperfect captures: cut, doubled, one-sided, with clocks that step and numbers that wrap.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server};
use tcpwhy_core::report::{Confidence, Exchange, Kind};
use tcpwhy_wire::{Duration, Segment};

use crate::packet_log::{self, End, PacketLog, each, log, ms};
use crate::seen::Seen;

const THINK_MS: i32 = 7;

/// Ten exchanges with a server that takes 7 ms, and the end.
fn talk() -> PacketLog {
    let exchange = format!("\n +5 C 100\n +{THINK_MS} S 3000\n +0 C ack");
    log("handshake".to_owned() + &exchange.repeat(10) + "\n +5 C fin\n +0 S fin\n +0 C ack").rtt(ms(20))
}

fn expect_talk(seen: &Seen, exchanges: std::ops::RangeInclusive<usize>) {
    assert_eq!(seen.count(Kind::Exchange), exchanges.clone().count(), "{seen}");
    for n in exchanges {
        seen.exchange(n).is(&[(Cause::RoundTrip, Path, ms(20)), (Cause::ServerThink, Server, ms(THINK_MS))]);
    }
}

/// The part of an exchange that does not depend on its time or its sequence numbers.
fn costs(exchange: &Exchange) -> (Kind, Duration, Vec<(Cause, Duration)>) {
    (exchange.kind, exchange.elapsed, exchange.bill.iter().map(|line| (line.cause, line.ns)).collect())
}

#[test]
fn a_capture_that_starts_in_mid_connection_bills_what_it_has() {
    // Requests are acknowledged at once, so the RTT shows without the handshake.
    let exchange = "\n +5 C 100 #request\n +0 S ack\n request+7 S 3000\n +0 C ack";
    let talk = log("handshake".to_owned() + &exchange.repeat(10)).rtt(ms(20));
    for end in End::BOTH {
        // After the handshake and three and a half exchanges: the first packet is the fourth reply.
        let segments = talk.capture(end).split_off(3 + 3 * 4 + 2);
        let seen = Seen::of(segments, "the middle");
        assert!(seen.connection().assumed);
        assert_eq!(seen.connection().client, packet_log::CLIENT);
        // The cut reply may be anything; the six exchanges after it are whole.
        assert_eq!(seen.count(Kind::Exchange), 6, "{seen}");
        for n in 1..=6 {
            let bill = seen.exchange(n);
            assert_eq!((bill.exchange.request_bytes, bill.exchange.reply_bytes), (100, 3000), "{seen}");
            bill.is(&[(Cause::RoundTrip, Path, ms(20)), (Cause::ServerThink, Server, ms(THINK_MS))]);
        }
    }
}

/// Half of the conversation: nothing can be said about replies, and nothing is made up about them.
#[test]
fn one_direction_alone_blames_nobody_for_what_it_cannot_see() {
    for end in End::BOTH {
        for present in [packet_log::CLIENT, packet_log::SERVER] {
            let segments: Vec<Segment> =
                talk().capture(end).into_iter().filter(|segment| segment.src == present).collect();
            let seen = Seen::of(segments, "one direction");
            for exchange in &seen.connection().exchanges {
                for line in &exchange.bill {
                    let made_up = matches!(
                        line.cause,
                        Cause::ServerThink
                            | Cause::Nagle
                            | Cause::NagleDelayedAck
                            | Cause::ReceiveWindow
                            | Cause::ReceiverThink
                            | Cause::Loss
                            | Cause::Rto
                    );
                    assert!(!made_up, "{seen}");
                }
            }
        }
    }
}

/// The same addresses and ports again: another SYN with another initial sequence number is another
/// connection, whether or not the first had ended.
#[test]
fn a_port_that_is_used_again_is_another_connection() {
    let exchange = "\n +5 C 100\n +7 S 300\n +0 C ack";
    for end in End::BOTH {
        for closing in ["", "\n +5 C fin\n +0 S fin\n +0 C ack", "\n +5 C rst"] {
            let one = |seq, text: String| log(text).rtt(ms(20)).first_seq(End::Client, seq).capture(end);
            let mut segments = one(1_000, format!("handshake{exchange}{exchange}{closing}"));
            let gap = ms(300);
            segments.extend(
                one(9_000_000, format!("handshake{exchange}"))
                    .into_iter()
                    .map(|segment| Segment { at: segment.at + gap, ..segment }),
            );
            let seen = Seen::of(segments, "a port used twice");
            let exchanges: Vec<usize> =
                seen.report.connections.iter().map(|connection| connection.exchanges.len()).collect();
            assert_eq!(exchanges, [3, 2], "{seen}");
            assert!(seen.report.connections.iter().all(|connection| !connection.assumed));
        }
    }
}

#[test]
fn sequence_numbers_that_wrap_change_nothing() {
    for end in End::BOTH {
        let plain = talk().seen_at(end);
        for before_wrap in [0, 1, 50, 100, 101, 150, 3_000, 29_999] {
            let wrapped = talk()
                .first_seq(End::Client, u32::MAX - before_wrap)
                .first_seq(End::Server, u32::MAX - before_wrap)
                .seen_at(end);
            let [plain, wrapped] = [&plain, &wrapped]
                .map(|seen| seen.connection().exchanges.iter().map(costs).collect::<Vec<_>>());
            assert_eq!(plain, wrapped, "{before_wrap} bytes before the wrap");
        }
    }
}

/// An idle connection is probed every 15 s, with and without a byte of garbage (RFC 9293, 3.8.4).
#[test]
fn keep_alives_are_nobody_s_time() {
    for probe in ["99..99", "99..100"] {
        let probes = format!("+15000 C {probe}\n +0 S ack\n").repeat(4);
        let text = format!(
            "handshake
             +5 C 100
             +7 S 300
             +0 C ack
             {probes}
             +15000 C 100
             +7 S 300
             +0 C ack"
        );
        log(text).rtt(ms(20)).both_ends(|seen| {
            assert_eq!((seen.count(Kind::Exchange), seen.count(Kind::OneWay)), (2, 0), "{seen}");
            for n in [1, 2] {
                seen.exchange(n).is(&[(Cause::RoundTrip, Path, ms(20)), (Cause::ServerThink, Server, ms(7))]);
            }
        });
    }
}

/// The client does not read for 1.5 s. Meanwhile the server probes the window with a byte that it
/// has sent before, with none (Linux), or with the next one, which is not accepted (RFC 9293,
/// 3.8.6.1).
#[test]
fn zero_window_probes_belong_to_the_closed_window() {
    let rtt = ms(20);
    let window = 48 * 1448;
    for (from, to) in [(window - 1, window), (window - 1, window - 1), (window, window + 1)] {
        let probes = each([220, 640, 1480], |after_ms| {
            format!("closed+{after_ms} S {from}..{to}\n +0 C ack win=0 ack={window}")
        });
        let text = format!(
            "handshake
             +5 C 100
             +0 S 1448x48 more #full
             full+0 C ack win=0 #closed
             {probes}
             closed+1500 C ack ack={window}
             +0 S {window}..{} more
             +0 S 1448x19
             +0 C ack",
            window + 1448
        );
        log(text).rtt(rtt).window(End::Client, window).both_ends(|seen| {
            assert_eq!(seen.count(Kind::Exchange), 1, "{seen}");
            seen.exchange(1)
                .is(&[(Cause::RoundTrip, Path, rtt), (Cause::ReceiverThink, Client, rtt + ms(1500))]);
        });
    }
}

#[test]
fn a_reset_ends_what_is_under_way() {
    let rtt = ms(20);
    // Refused: no exchange, and the handshake has no answer.
    log("@0 C syn\n +0 S rst").rtt(rtt).both_ends(|seen| {
        assert_eq!(seen.count(Kind::Exchange), 0, "{seen}");
    });
    // In the middle of the reply.
    log("handshake\n +5 C 100\n +10 S 1448x4 more\n +3 S rst").rtt(rtt).both_ends(|seen| {
        let bill =
            seen.exchange(1).is(&[(Cause::RoundTrip, Path, rtt), (Cause::ServerThink, Server, ms(10))]);
        assert_eq!(bill.exchange.reply_bytes, 4 * 1448);
    });
    // Before it: the request was delivered and never answered.
    log("handshake\n +5 C 100\n +500 S rst").rtt(rtt).both_ends(|seen| {
        assert_eq!((seen.count(Kind::Exchange), seen.count(Kind::OneWay)), (0, 1), "{seen}");
        seen.one_way(1).is(&[(Cause::RoundTrip, Path, rtt)]);
    });
}

/// Both ends connect at the same time (RFC 9293, 3.5): one connection.
#[test]
fn a_simultaneous_open_is_one_connection() {
    let rtt = ms(20);
    let both = log("@0  C syn
         @1  S syn
         @10 S syn
         @11 C syn
         @25 C 100 #request
         +0 S ack
         request+7 S 300
         +0 C ack");
    // Each end's capture has its own SYN first, so each takes its own host for the client.
    for (end, first) in [(End::Client, packet_log::CLIENT), (End::Server, packet_log::SERVER)] {
        let seen = both.clone().rtt(rtt).seen_at(end);
        assert_eq!(seen.connection().client, first, "{seen}");
    }
    both.rtt(rtt)
        .seen_at(End::Client)
        .exchange(1)
        .is(&[(Cause::RoundTrip, Path, rtt), (Cause::ServerThink, Server, ms(7))]);
}

/// `-i any` shows a packet on each interface that it crosses.
#[test]
fn packets_seen_twice_count_once() {
    // Hosts that answer within 50 us, so that no two packets carry one time.
    let text = "@0 C syn\n +0.05 S syn\n +0.05 C ack".to_owned()
        + &"\n +5 C 100\n +7 S 3000\n +0.05 C ack".repeat(10);
    for ip_ids in [true, false] {
        let log = log(text.clone()).rtt(ms(20));
        let log = if ip_ids { log } else { log.without_ip_ids() };
        for end in End::BOTH {
            let once = log.capture(end);
            let again = once.iter().filter(|segment| ip_ids || segment.seq_len() > 0);
            let again =
                again.map(|segment| Segment { at: segment.at + Duration::from_micros(4), ..*segment });
            let mut twice: Vec<Segment> = once.iter().copied().chain(again).collect();
            twice.sort_by_key(|segment| segment.at);
            let doubled = twice.len() - once.len();
            let (plain, twice) = (Seen::of(once, "once"), Seen::of(twice, "twice"));
            assert_eq!(twice.notes("duplicates"), doubled as u64, "{twice}");
            let [plain, twice] = [&plain, &twice]
                .map(|seen| seen.connection().exchanges.iter().map(costs).collect::<Vec<_>>());
            assert_eq!(plain, twice);
        }
    }
}

/// The clock is set back in the middle of the capture: events while it catches up take no time,
/// nothing takes negative time, no round trip is measured across the step, and everything after it
/// is right again.
#[test]
fn a_clock_that_steps_back_costs_what_it_steps() {
    for end in End::BOTH {
        let mut segments = talk().capture(end);
        let middle = 3 + 5 * 3 + 1;
        for segment in &mut segments[middle..] {
            segment.at = segment.at - ms(60);
        }
        let seen = Seen::of(segments, "a clock set back");
        assert!(seen.notes("time-steps-back") > 0, "{seen}");
        assert_eq!(seen.connection().rtt_min, Some(ms(20)), "{seen}");
        let wrong = seen.connection().exchanges.iter().filter(|exchange| {
            let off = exchange.elapsed - ms(20 + THINK_MS);
            exchange.kind == Kind::Exchange && off.max(-off) > ms(1)
        });
        // 60 ms are two exchanges of 32 ms, cut anywhere.
        assert!(wrong.count() <= 3, "{seen}");
    }
}

#[test]
fn without_any_trouble_the_talk_is_what_it_is() {
    talk().both_ends(|seen| expect_talk(seen, 1..=10));
    talk().without_timestamps().both_ends(|seen| expect_talk(seen, 1..=10));
    talk().without_ip_ids().both_ends(|seen| expect_talk(seen, 1..=10));
    talk().without_window_scale().both_ends(|seen| expect_talk(seen, 1..=10));
}

/// A write that seems to leave while another is unacknowledged, because the capture missed the ACK,
/// does not permanently count as a sign of TCP_NODELAY.
#[test]
fn one_missed_acknowledgement_does_not_refute_nagle() {
    for rtt in [0, 2, 26].map(ms) {
        let stall = "\n +5 C 20\n +40 S ack\n +0 C 100\n +0 S 64\n +0 C ack";
        let split = log("handshake".to_owned() + &stall.repeat(8)).rtt(rtt);
        for end in End::BOTH {
            let mut segments = split.capture(end);
            let acks: Vec<usize> = (3..segments.len())
                .filter(|&i| segments[i].payload_len == 0 && segments[i].src.port == 80)
                .collect();
            segments.remove(acks[1]);
            let seen = Seen::of(segments, &format!("the {end:?}"));
            for n in 4..=8 {
                seen.exchange(n)
                    .is(&[(Cause::RoundTrip, Path, rtt), (Cause::NagleDelayedAck, Client, ms(40) + rtt)]);
            }
        }
    }
}

/// Ten segments arrive, and the twenty that their ACKs release are all lost. The probe comes two
/// round trips after these, so they had waited for the window until then: a window begins with ten.
#[test]
fn what_a_window_held_before_a_lost_flight_is_no_repair() {
    let first = each(1..10, |n| format!("s0+0 S 1448 more #s{n}"));
    let second =
        each(0..10, |n| format!("s{n}+0 C ack #a{n}\n a{n}+0 S 1448 more lost\n a{n}+0 S 1448 #t{n} lost"));
    let text = format!(
        "handshake\n +5 C 100\n +0 S 1448 more #s0\n {first}\n {second}
         t9+84 S 41992..43440 #probe
         probe+0 C ack #answer
         answer+0 S 14480..41992 #again
         again+0 C ack"
    );
    log(text).rtt(ms(40)).both_ends(|seen| {
        let bill = seen.exchange(1);
        let (held, repair) = (bill.ns(Cause::SlowStart, Server), bill.ns(Cause::Loss, Path));
        assert!(held >= ms(39) && held <= ms(41), "{seen}");
        assert!(repair >= ms(122) && repair <= ms(126), "{seen}");
    });
}

/// The same, with the probe lost as well: the RTO expires, and the first of the twenty is
/// retransmitted. Nothing is missing in the sequence space then, only in the packet numbers.
#[test]
fn what_a_window_held_before_a_lost_flight_is_no_timeout() {
    let first = each(1..10, |n| format!("s0+0 S 1448 more #s{n}"));
    let second =
        each(0..10, |n| format!("s{n}+0 C ack #a{n}\n a{n}+0 S 1448 more lost\n a{n}+0 S 1448 #t{n} lost"));
    let settled = packet_log::settled(6);
    let text = format!(
        "{settled}\n +5 C 100\n +0 S 1448 more #s0\n {first}\n {second}
         t9+84 S 43192..44640 lost #probe
         probe+248 S 15680..17128 more #again
         again+0 C ack #answer
         answer+0 S 17128..44640 #rest
         rest+0 C ack"
    );
    log(text).rtt(ms(40)).both_ends(|seen| {
        let bill = seen.exchange(7);
        let held = bill.ns(Cause::SlowStart, Server);
        assert!(held >= ms(39) && held <= ms(41), "{seen}");
        assert!(bill.ns(Cause::Rto, Path) >= ms(245), "{seen}");
    });
}

/// A sender whose second pieces are always held: one came 12 ms later than the ACK that released it
/// allows, because that ACK was as late on the path beyond the capture point.
#[test]
fn a_held_write_is_held_however_late_its_release_was() {
    let exchange =
        |ack: &str| format!("+700 C 100 #head\n +40 S ack {ack}\n +0 C 150\n +0 S 300\n +0 C ack\n");
    let text = "handshake\n".to_owned() + &exchange("").repeat(4) + &exchange("late=12");
    for rtt in [4, 20].map(ms) {
        let seen = log(text.clone()).rtt(rtt).seen_at(End::Server);
        let bill = seen.exchange(5);
        assert!(bill.ns(Cause::NagleDelayedAck, Client) >= ms(39) + rtt, "{seen}");
        assert_eq!(bill.ns(Cause::SenderThink, Client), ms(0), "{seen}");
    }
}

/// The only round trip so far, the handshake's, took 1.7 ms too long: a held write seems to come
/// before its release.
#[test]
fn a_write_that_comes_nearly_a_round_trip_behind_an_acknowledgement_may_have_waited_for_it() {
    let text =
        "@0 C syn\n +0 S syn\n +0 C ack late=1.7\n +2 C 100\n +0.02 S ack\n +0 C 150\n +0 S 300\n +0 C ack";
    let seen = log(text).rtt(ms(20)).without_timestamps().seen_at(End::Server);
    let lines = seen.connection().exchanges.iter().flat_map(|exchange| &exchange.bill);
    let mut thinks = lines.filter(|line| line.cause == Cause::SenderThink);
    assert!(thinks.all(|line| line.confidence == Confidence::Possible), "{seen}");
}

/// A packet without ACK has 0 in that field, which is no number of its peer's (RFC 9293, 3.1):
/// wherever those begin, the reset that a crossed SYN gets shows no RTT.
#[test]
fn what_acknowledges_nothing_reacts_to_nothing_wherever_numbers_begin() {
    let crossed = |server| {
        log("@0 C syn
             @0.5 S syn
             +0.5 C syn
             +0 S ack
             +0 C 1
             +0 S syn
             +0 C rst"
            .to_owned())
        .rtt(ms(2))
        .first_seq(End::Server, server)
        .without_timestamps()
        .seen_at(End::Client)
    };
    let shown = [0, 1, 1 << 31, u32::MAX - 40_000].map(|server| crossed(server).connection().rtt_min);
    assert_eq!(shown, [shown[0]; 4]);
}
