//! Packets that were sent and arrived but are not in the capture: conclusions that depend on them
//! are not made up.

use tcpwhy_core::Form;
use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server, Unknown};
use tcpwhy_core::report::{Confidence, Kind, Line};
use tcpwhy_wire::{Duration, Segment};

use crate::packet_log::{CLIENT, End, MSS, each, log, ms, settled};
use crate::seen::Seen;

/// A request in two writes; Nagle holds the second until the delayed ACK.
const STALL: &str = "\n +5 C 20 #first\n +40 S ack\n +0 C 100\n +0 S 64";

/// A client that has got its reply continues with the next request, whether the capture has that
/// reply or not.
#[test]
fn a_missing_reply_does_not_join_two_exchanges() {
    for rtt in [0, 26].map(ms) {
        let missing = STALL.replace("S 64", "S 64 unseen");
        let text = format!("handshake{}{missing}{}", STALL.repeat(3), STALL.repeat(3));
        log(text).rtt(rtt).both_ends(|seen| {
            assert_eq!(seen.count(Kind::Exchange), 6, "{seen}");
            for n in 2..=6 {
                seen.exchange(n)
                    .is(&[(Cause::RoundTrip, Path, rtt), (Cause::NagleDelayedAck, Client, ms(40) + rtt)]);
            }
        });
    }
}

/// A sender that uses Nagle has got the ACK, so it is unknown what it waited for.
#[test]
fn a_missing_acknowledgement_makes_no_pause_of_a_hold() {
    for rtt in [0, 26].map(ms) {
        let missing = STALL.replace("S ack", "S ack unseen");
        let text = format!("handshake{}{missing}{}", STALL.repeat(3), STALL.repeat(3));
        log(text).rtt(rtt).both_ends(|seen| {
            let bill = seen.exchange(4).elapsed(ms(40) + rtt.times(2), ms(1));
            bill.never(Cause::SenderThink);
            assert!(bill.of(Cause::Unexplained).ns >= ms(40), "{seen}");
            seen.exchange(5)
                .is(&[(Cause::RoundTrip, Path, rtt), (Cause::NagleDelayedAck, Client, ms(40) + rtt)]);
        });
    }
}

/// Nothing is sent beyond a window: a larger one had come.
#[test]
fn a_missing_window_makes_no_pause_of_a_reader_s() {
    let window = 20 * MSS;
    let text = format!(
        "handshake
         +5 C 100
         +0 S 1448x20 more
         +0 C ack win=0 #full
         +180 C ack win={window} unseen
         +0 S 1448x20
         +0 C ack"
    );
    log(text).rtt(ms(10)).window(End::Client, window as u32).both_ends(|seen| {
        let bill = seen.exchange(1).never(Cause::SenderThink).never(Cause::CongestionWindow);
        assert!(bill.of(Cause::Unexplained).ns >= ms(180), "{seen}");
    });
}

/// Before the first prompt reply, only a delayed ACK shows the distance of the peer.
#[test]
fn the_first_hold_behind_the_beginning_is_as_long_as_the_next_ones() {
    let reply = "\n +5 C 120\n +0 S 150\n +40 C ack\n +0 S 1000";
    for rtt in [0, 2].map(ms) {
        for (stall, side) in [(STALL, Client), (reply, Server)] {
            let all = log("handshake".to_owned() + &stall.repeat(6)).rtt(rtt);
            for end in End::BOTH {
                let seen = Seen::of(all.capture(end).split_off(3), &format!("the {end:?}, midway"));
                let first = seen.exchange(1).never(Cause::Nagle);
                // At the far end, the sender's distance has not shown either.
                let held = first.ns(Cause::NagleDelayedAck, side) >= ms(39);
                let line = &first.exchange.bill[0];
                assert!(held || line.confidence == Confidence::Possible, "{seen}");
            }
        }
    }
}

/// The server's timer was estimated before the capture began: a whole reply held by a cork cannot
/// be told from a pause.
#[test]
fn a_pause_as_long_as_a_timer_is_not_certain_without_the_beginning() {
    let round = each(0..6, |_| "+5 C 100 #request\n request+40 S ack\n request+206 S 200".to_owned());
    let corked = log(format!("handshake\n{round}"));
    for end in End::BOTH {
        let seen = Seen::of(corked.capture(end).split_off(3), &format!("the {end:?}, midway"));
        for n in 1..=6 {
            for line in &seen.exchange(n).exchange.bill {
                let sure = line.confidence == Confidence::Certain && line.ns >= ms(100);
                assert!(line.cause != Cause::ServerThink || !sure, "{seen}");
            }
        }
    }
}

/// If an ACK was not captured, its sender's packet numbers skip it: the next packet shows that, and
/// that the segment before was subject to Nagle after all.
#[test]
fn a_missing_acknowledgement_does_not_turn_nagle_off() {
    let reply = "\n +5 C 100\n +0 S 60\n +40 C ack\n +0 S 120\n +0 C ack";
    let missing = "\n +5 C 100\n +0 S 60\n +0 C ack unseen\n +0 S 120\n +0 C ack";
    for rtt in [0, 26].map(ms) {
        let text = format!("handshake{missing}{}", reply.repeat(4));
        log(text).rtt(rtt).both_ends(|seen| {
            for n in 2..=5 {
                let held = seen.exchange(n).ns(Cause::NagleDelayedAck, Server);
                assert!(held >= ms(40), "{n}{seen}");
            }
        });
    }
}

/// A server that answers a request missing from the capture is not still answering the one before.
#[test]
fn a_missing_request_does_not_join_two_exchanges() {
    let missing = "\n +5 C 100 unseen\n +0 S 60\n +40 C ack\n +0 S 120\n +0 C ack";
    let reply = missing.replace(" unseen", "");
    let text = format!("handshake{}{missing}{}", reply.repeat(3), reply.repeat(2));
    for rtt in [0, 26].map(ms) {
        log(&text).rtt(rtt).both_ends(|seen| {
            assert_eq!(seen.count(Kind::Exchange), 5, "{seen}");
            for n in 1..=5 {
                let bill = seen.exchange(n);
                assert!(bill.exchange.elapsed <= ms(41) + rtt.times(2), "{n}{seen}");
            }
        });
    }
}

/// A slow server acknowledges the request meanwhile. If that packet is not in the capture, it was
/// not a reply that was lost and retransmitted.
#[test]
fn a_missing_acknowledgement_makes_no_repair_of_a_pause() {
    let request = "\n +5 C 100 #request\n request+40 S ack\n request+260 S 200\n +0 C ack";
    let talk = |n: usize| request.repeat(n).replace("#request", "#r").replace("request+", "r+");
    let missing = request.replace("S ack", "S ack unseen");
    let text = format!("handshake{}{missing}{}", talk(4), talk(1));
    for rtt in [0, 26].map(ms) {
        log(&text).rtt(rtt).both_ends(|seen| {
            let bill = seen.exchange(5).never(Cause::Rto);
            assert!(bill.of(Cause::ServerThink).confidence < Confidence::Certain, "{seen}");
        });
    }
}

/// The first data acknowledged after the beginning left before it: the RTT is that of the captured
/// data.
#[test]
fn a_stream_s_first_acknowledgement_does_not_shorten_the_way() {
    let rtt = ms(10);
    let flights = each(0..12, |n| format!("@{} C 1448x4 more\n @{} S ack", 20 + 10 * n, 25 + 10 * n));
    let upload = log(format!("handshake\n {flights}\n +0 C 100\n +0 S 50")).rtt(rtt);
    let seen = Seen::of(upload.capture(End::Client).split_off(3 + 4 + 2), "the client, midway");
    let measured = seen.connection().rtt_min.expect("a round trip");
    assert!(measured >= ms(9), "{measured}{seen}");
}

/// Only packets with data, as in an export of "what is HTTP": the client's next request minutes
/// later is the first to acknowledge the reply, and is no round trip.
#[test]
fn a_pause_of_minutes_is_no_round_trip() {
    let polls = log("handshake".to_owned() + &"\n +300000 C 100 \n +27 S 350".repeat(6)).rtt(ms(20));
    for end in End::BOTH {
        let all = polls.capture(end).into_iter();
        let segments: Vec<Segment> = all.filter(|segment| segment.payload_len > 0).collect();
        let seen = Seen::of(segments, "data alone");
        for n in 1..=6 {
            let poll = seen.exchange(n);
            assert!(poll.exchange.elapsed <= ms(48), "{seen}");
        }
    }
}

/// The capture dropped most of the reply: the client acknowledges data that is missing here. No
/// window is blamed for that.
#[test]
fn what_the_capture_dropped_is_unexplained() {
    let reply =
        each(0..20, |n| format!("+0 S 1448 more {}\n +60 C ack", if n % 5 == 4 { "" } else { "unseen" }));
    let text = format!("handshake\n +5 C 100\n +0 S 500 more \n +0 C ack\n {reply}\n +0 S 100\n +0 C ack");
    for end in End::BOTH {
        let seen = log(text.clone()).rtt(ms(20)).seen_at(end);
        assert!(seen.notes("capture-drops") >= 4, "{seen}");
        let bill = seen.exchange(1);
        let unexplained = bill.ns(Cause::Unexplained, Unknown);
        assert!(unexplained >= bill.exchange.elapsed.divided_by(2), "{seen}");
        for cause in [Cause::SlowStart, Cause::SlowStartAfterIdle, Cause::SendBuffer, Cause::Loss, Cause::Rto]
        {
            bill.never(cause);
        }
        assert_eq!(bill.of(Cause::Unexplained).detail.form, Some(Form::NotCaptured));
    }
}

/// A single direction is noted once for each such connection.
#[test]
fn one_direction_is_noted() {
    let talk = log(settled(5));
    let requests: Vec<Segment> =
        talk.capture(End::Client).into_iter().filter(|segment| segment.src == CLIENT).collect();
    assert_eq!(Seen::of(requests, "requests alone").notes("one-direction"), 1);
    assert_eq!(talk.seen_at(End::Client).notes("one-direction"), 0);
}

/// Only packets with data: a push a minute later is a separate message, though no ACK in the
/// capture shows that the data before it had arrived.
#[test]
fn a_push_without_acknowledgements_begins_a_message() {
    let pushes = log(settled(4) + "+5 C 100\n +7 S 900\n" + &"+60000 S 24\n".repeat(5)).rtt(ms(20));
    for end in End::BOTH {
        let all = pushes.capture(end).into_iter();
        let segments: Vec<Segment> = all.filter(|segment| segment.payload_len > 0).collect();
        let seen = Seen::of(segments, "data alone");
        let billed: Duration = seen.connection().exchanges.iter().map(|exchange| exchange.elapsed).sum();
        assert!(billed < ms(500), "{billed}: {seen}");
    }
}

/// The reply's second part answers a request that the capture lacks: that is no pause of the
/// server's.
#[test]
fn an_answer_to_an_unseen_request_is_no_pause() {
    let polls = log(settled(4) + "+5 C 100\n +7 S 200\n +500 C 100 unseen\n +7 S 200\n +0 C ack").rtt(ms(20));
    for end in End::BOTH {
        let seen = polls.seen_at(end);
        seen.exchange(5).never(Cause::SenderThink);
    }
}

/// Only packets with data, as a filter leaves them: the missing numbers are those of ACKs, and a
/// server that takes 330 ms for a long request had not lost its reply.
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
        assert!(seen.lost() + seen.queued() == Duration::ZERO, "{seen}");
        let bill = seen.exchange(13);
        assert!(bill.ns(Cause::ServerThink, Server) >= ms(325), "{seen}");
    }
}

/// The capture lacks the second byte of a two-byte request, and the server answers both: no
/// interval is in two bills.
#[test]
fn a_question_whose_end_is_not_in_the_capture_reaches_into_no_other_bill() {
    let text = "handshake\n+0 C ack\n+0.05 C ack\n+0 S 1\n+0 C 1 late=6\n+0 C ack\n+0 S 1\n+0 C 1 unseen\n+0 S 1\n+0.2 S 1";
    let whole = log(text).rtt(ms(6.201)).without_timestamps().without_ip_ids().without_window_scale();
    let seen = Seen::of(whole.capture_at(16), "the server");
    let asked = seen.exchange(2);
    let pushed = seen.connection().exchanges.last().expect("the last byte is a message");
    // Its way back is not in the capture.
    let end = asked.exchange.start + asked.exchange.elapsed - asked.ns(Cause::RoundTrip, Path);
    assert!(end <= pushed.start, "{seen}");
}

/// Only the client's packets: what it acknowledges shows that it has had replies, and no pause is
/// within a request.
#[test]
fn whoever_acknowledges_what_is_in_no_packet_asks_anew() {
    let asks = [0, 7, 40].map(|think| format!("\n +35 C 24\n +{think} S 200\n +0 C ack")).concat();
    let beside = [0, 7, 40].map(|think| format!("\n +0 C 24\n +{think} S 200")).concat();
    for text in [asks, beside] {
        let all = log("handshake".to_owned() + &text.repeat(4)).rtt(ms(20));
        for end in End::BOTH {
            let mut segments = all.capture(end);
            segments.retain(|segment| segment.src == CLIENT);
            let seen = Seen::of(segments, &format!("the {end:?}, the client's packets"));
            assert_eq!(seen.count(Kind::OneWay), 12, "{seen}");
            assert_eq!(seen.spent(Cause::SenderThink, Client), Duration::ZERO, "{seen}");
        }
    }
}

/// A super-segment missing from the capture is acknowledged just after the one that its predecessor
/// released: that shows no round trip, and later connections were not queued merely for being no
/// shorter.
#[test]
fn what_is_missing_before_a_segment_is_not_timed_by_it() {
    let text = "handshake
         +1 C 100
         +0 S 2896 more #a
         +0.13 S 2896 more unseen #b
         a+0 C ack #x
         b+0 C ack
         x+0 S 2896 #c
         c+0 C ack";
    let seen = log(text).rtt(ms(30)).seen_at(End::Server);
    assert!(seen.connection().rtt_min.is_some_and(|rtt| rtt >= ms(29)), "{seen}");
}

/// A capture that drops packets in bursts: their numbers are missing, and so are their bytes.
/// Nothing was retransmitted.
#[test]
fn numbers_that_are_missing_with_their_bytes_are_no_copies() {
    let pieces = |seen: &str, count| format!("\n +60 S 1000{seen}\n +0 C ack{seen}").repeat(count);
    let text = settled(4) + "\n +5 C 100\n +0 S 100\n +0 C ack";
    for dropped in 2..20 {
        let text = text.clone() + &pieces("", 12) + &pieces(" unseen", dropped) + &pieces("", 4);
        let seen = log(text).rtt(ms(20)).seen_at(End::Client);
        for cause in [Cause::Rto, Cause::Loss] {
            let sure = |line: &&&Line| line.confidence > Confidence::Possible;
            assert_eq!(seen.longer(cause, Duration::ZERO).iter().find(sure), None, "{dropped}: {seen}");
        }
    }
}

/// Both ends' last messages are missing from the capture, and each is acknowledged by what the other sends
/// next: the client, which resets at the server's FIN, waited for no retransmission of them (frames 33 to
/// 35 of redis). If the server's last message was lost, it did.
#[test]
fn nobody_waits_for_what_is_missing_from_the_capture() {
    let last = "+5 C 100 SEEN\n +0 S 300 SEEN\n +0 C ack SEEN\n +900 S fin #end\n +0 C rst";
    let unseen = last.replace("SEEN", "unseen");
    log(settled(6) + "+5 C 100\n +0 S 100\n +0 C ack\n" + &unseen).rtt(ms(80)).both_ends(|seen| {
        assert!(seen.lines(Cause::Rto, Path).is_empty(), "{seen}");
    });
    let lost = "+5 C 100\n +0 S 1448 more #reply\n reply+1 S 300 lost\n reply+2 S fin lost\n reply+500 S fin\n +300 C rst";
    let seen = log(settled(6) + lost).rtt(ms(80)).seen_at(End::Client);
    assert!(!seen.lines(Cause::Rto, Path).is_empty(), "{seen}");
}

/// Only the client's packets, with numbers in them: data that continues an earlier request may
/// answer a message that is in no packet.
#[test]
fn a_question_that_goes_on_is_no_likely_pause_where_answers_are_in_no_packet() {
    let call = |n| {
        format!(
            "\n +5 C 109 asks={n}\n +1 S 4 answers={n}\n +0 C 4 asks={n}\n +40 S 4 answers={n}\n +0 C ack"
        )
    };
    let all = log("handshake".to_owned() + &each(1..9, call)).rtt(ms(20));
    for end in End::BOTH {
        let mut segments = all.capture(end);
        segments.retain(|segment| segment.src == CLIENT);
        let seen = Seen::of_marked(segments, all.marks(), &format!("the {end:?}, the client's packets"));
        let pauses = seen.lines(Cause::SenderThink, Client);
        assert!(pauses.iter().all(|line| line.confidence == Confidence::Possible), "{seen}");
    }
}

/// Only the client's packets: its first SYN was lost on the path, or dropped by a host whose queue
/// was full.
#[test]
fn a_syn_whose_answer_is_in_no_packet_was_not_certainly_lost_on_the_path() {
    let text = "@0 C syn lost\n +1000 C syn\n +0 S syn\n +0 C ack\n +5 C 100\n +0 S 200\n +0 C ack";
    let mut segments = log(text).rtt(ms(20)).capture(End::Client);
    segments.retain(|segment| segment.src == CLIENT);
    let seen = Seen::of(segments, "the client's packets");
    assert_eq!(seen.setup().of(Cause::SynRetransmit).confidence, Confidence::Likely, "{seen}");
}

/// All of a reply's first flight and a copy are lost, so that a second copy is the first that the client
/// gets: the numbers between say so, although too few packets came before to prove whose they are.
#[test]
fn a_reply_behind_unseen_packets_is_hardly_its_server_s_own_time() {
    let lost =
        "+0.2 S 1448x10 lost #sent\n sent+135 S 1448 lost\n sent+419 S 0..1448 lost\n sent+963 S 0..1448";
    for (reply, own, most) in
        [(lost, ms(0.2), Confidence::Possible), ("+963 S 1448", ms(963), Confidence::Likely)]
    {
        let text = format!("handshake\n +0 C 166\n +0 S ack\n {reply}\n +0 C ack");
        let near = log(text.clone()).rtt(ms(2)).seen_at(End::Client);
        assert_eq!(near.exchange(1).of(Cause::ServerThink).confidence, most, "{near}");
        let beside = log(text).rtt(ms(2)).seen_at(End::Server);
        let think = beside.exchange(1).ns(Cause::ServerThink, Server);
        assert!((think - own).max(own - think) <= ms(0.1), "{beside}");
    }
}

/// A server thinks for 240 ms and answers in two segments, the first of which is lost and retransmitted at once (frames 10 to
/// 14 of a client): one IP identification is missing, and that is the lost segment's. No timer ran.
#[test]
fn what_is_missing_before_a_hole_is_the_hole_itself() {
    let text = "handshake\n +0.1 C 130\n +0 S ack\n +40 S 90\n +0 C ack\n +200 S 410\n +0 C ack\n +80 C 130 #q\n q+0 S ack\n \
                q+240 S 90 lost #first\n first+0.1 S 410 #second\n second+0 C ack\n +0 S 590..680\n +0 C ack";
    let seen = log(text).rtt(ms(1.5)).seen_at(End::Client);
    assert!(seen.longer(Cause::Rto, ms(1)).is_empty(), "{seen}");
    assert!(seen.exchange(2).ns(Cause::ServerThink, Server) >= ms(235), "{seen}");
}

/// The end of a server's answer comes 1,089 ms after the rest of it, and one number is missing, though the client has sent nothing but acknowledgements
/// meanwhile (frames 341 to 407 of a TLS handshake): that packet carried data, and a timer sent them again. Where few numbers have shown that they
/// are the connection's, that is not likely. An acknowledgement of the client's own data may be missing as well, and a path that
/// stood shows by the sender's clock.
#[test]
fn a_number_that_is_missing_where_nothing_was_to_be_acknowledged_was_data() {
    let own = Some(Confidence::Likely);
    let copy = |exchanges: i64, after: i64| {
        let first = 200 * exchanges + 1_448 * 2 + 900;
        format!("r+0 S 923 lost\n r+0 C ack\n r+{after} S {first}..{}", first + 923)
    };
    let asked = "r+0 C ack\n +100 C 50\n +0 S ack lost\n r+1089 S 923".to_owned();
    let stood = "r+0 C ack\n r+0 S ack lost\n r+0.1 S 923 late=1089".to_owned();
    for (exchanges, tail, expected) in
        [(30, copy(30, 1_089), own), (2, copy(2, 1_200), None), (30, asked, None), (30, stood, None)]
    {
        let text = settled(exchanges)
            + &format!("+5 C 517\n +0 S ack\n +0 S 1448x2 more\n +0 S 900 #r\n {tail}\n +0 C ack");
        let seen = log(text).rtt(ms(254)).seen_at(End::Client);
        let lines = seen.lines(Cause::Rto, Path).into_iter().filter(|line| line.ns >= ms(800));
        assert_eq!(lines.map(|line| line.confidence).max(), expected, "{exchanges} {tail}: {seen}");
    }
}

/// Likewise behind the second of its packets, which had no PSH: four numbers are missing, and nothing that a write would have ended (frames 163 to 228).
/// Few numbers prove little: possible.
#[test]
fn numbers_that_are_missing_behind_a_segment_with_more_to_come_were_data() {
    let text = "handshake\n +1 C 517\n +0 S ack\n +1 S 1388 more #r\n r+0 S 1388x2 more lost\n r+700 S 1388..2776 more lost\n r+1100 S 1388..2776 more lost\n r+0 C ack\n r+2261 S 1388..2776 more\n +0 C ack\n +0 S 2776..4164\n +0 C ack";
    let seen = log(text).rtt(ms(357)).seen_at(End::Client);
    let lines = seen.lines(Cause::Rto, Path).into_iter().filter(|line| line.ns >= ms(2_000));
    assert_eq!(lines.map(|line| line.confidence).max(), Some(Confidence::Possible), "{seen}");
}
