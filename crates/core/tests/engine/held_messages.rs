//! Is what Nagle held the rest of a message, or a separate message? Only the rest of one could have
//! been written with its beginning.

use tcpwhy_core::Form;
use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Server};
use tcpwhy_core::report::Confidence::Possible;

use crate::packet_log::{End, log, ms, settled};
use crate::seen::Seen;

/// Two requests, each in these packets, and two replies of a server with Nagle; the client delays
/// its ACK by 40 ms.
fn held(requests: &str) -> String {
    format!("+5 {requests}\n +0 S 20 answers\n +40 C ack\n +0 S 60 answers #said\n said+0 C ack\n")
}

/// The forms of what Nagle held at the server, for a round trip or longer.
fn of_each(seen: &Seen) -> Vec<Option<Form>> {
    let held = [Cause::Nagle, Cause::NagleDelayedAck].map(|cause| seen.lines(cause, Server)).concat();
    held.into_iter().filter(|line| line.ns >= ms(1)).map(|line| line.detail.form).collect()
}

/// Two requests under way at once (a PostgreSQL pipeline that is not read): a server may have
/// answered each separately.
#[test]
fn replies_to_several_requests_may_be_messages_of_their_own() {
    let text = held("C 30\n +0 C 40").replace(" answers", "");
    log(format!("handshake\n{}", text.repeat(6))).rtt(ms(2)).both_ends(|seen| {
        let forms = of_each(seen);
        assert!(forms.len() >= 5 && forms.iter().all(|form| *form == Some(Form::OwnMessage)), "{seen}");
    });
}

/// One request in one piece, or in full segments: its reply was written in pieces.
#[test]
fn a_reply_to_one_request_was_written_in_pieces() {
    for request in ["C 30", "C 1448x2\n +0 C 40"] {
        let text = held(request).replace(" answers", "");
        log(format!("handshake\n{}", text.repeat(6))).rtt(ms(2)).both_ends(|seen| {
            let forms = of_each(seen);
            assert!(forms.len() >= 5 && forms.iter().all(Option::is_none), "{request}: {seen}");
        });
    }
}

/// If the protocol is read, a reply is known by its head: the second of a pipeline was no piece of
/// the first.
#[test]
fn a_reply_that_is_read_is_a_message_of_its_own() {
    let text = held("C 30 asks\n +0 C 40 asks");
    log(format!("handshake\n{}", text.repeat(6))).rtt(ms(2)).both_ends(|seen| {
        let forms = of_each(seen);
        assert!(forms.len() >= 5 && forms.iter().all(|form| *form == Some(Form::OwnMessage)), "{seen}");
    });
    // Its rest, after its head, is none.
    let rest = "+5 C 30 asks\n +0 C 40 asks\n +0 S 20 answers\n +40 C ack\n +0 S 60 #said\n said+0 C ack
                +1 S 30 answers #last\n last+0 C ack\n";
    log(format!("handshake\n{}", rest.repeat(6))).rtt(ms(2)).both_ends(|seen| {
        let forms = of_each(seen);
        assert!(!forms.is_empty() && forms.iter().all(Option::is_none), "{seen}");
    });
}

/// A request in two pieces that is read as one: so is its reply.
#[test]
fn a_reply_to_a_request_in_pieces_is_one_where_that_is_read() {
    let text = "+5 C 30 asks\n +0 C 40\n +0 S 20 answers\n +40 C ack\n +0 S 60 #said\n said+0 C ack\n";
    log(format!("handshake\n{}", text.repeat(6))).rtt(ms(2)).both_ends(|seen| {
        let forms = of_each(seen);
        assert!(forms.len() >= 5 && forms.iter().all(Option::is_none), "{seen}");
    });
}

/// No host delays an ACK by half a second: what Nagle waited for all that time was late or lost for
/// an unknown reason.
#[test]
fn a_hold_longer_than_any_timer_of_acknowledgements_is_possible() {
    let stall = |held: u32| format!("\n +5 C 120\n +0 S 150\n +{held} C ack\n +0 S 1000\n +0 C ack");
    for (held, doubtful) in [(200, false), (900, true)] {
        let seen = log(settled(4) + &stall(held).repeat(6)).rtt(ms(2)).seen_at(End::Server);
        let bill = seen.exchange(9);
        let line = bill.of(Cause::NagleDelayedAck);
        assert!(line.ns >= ms(held) - ms(1), "{seen}");
        assert_eq!(line.confidence == Possible, doubtful, "{seen}");
    }
}

/// A DNS server writes the first byte of a message's length separately, and the rest comes 7.4 ms
/// after the delayed ACK, where the quickest round trip took 3.8 (frames 614 to 654 of a lookup
/// over TCP, the first of its connection): what follows one byte of a message is not held by its
/// program.
#[test]
fn the_rest_of_a_length_waits_for_its_acknowledgement_however_late_that_is() {
    for (first, held) in [(1, true), (60, false)] {
        let text = format!(
            "handshake\n +0.1 C 2\n +0 C 33 #q\n q+42 S ack\n q+147 S {first} #length\n length+48.8 C ack late=3.6\n +0 S 324\n +0 C ack"
        );
        let seen = log(text).rtt(ms(3.8)).without_timestamps().seen_at(End::Client);
        let line = seen.exchange(1).exchange.bill.iter().find(|line| line.cause == Cause::NagleDelayedAck);
        let ns = line.map(|line| line.ns);
        assert_eq!(ns.is_some_and(|ns| ns >= ms(48) && ns <= ms(57)), held, "{first}: {seen}");
    }
}

/// A station confirms a command (IEC 60870-5-104), and reports its completion in a second write,
/// which Nagle holds until its client acknowledges the first by a timer (frames 29 to 32, and four
/// times more): the second, which is not requested separately, was written before. One that comes
/// with the first was not held.
#[test]
fn what_nobody_asks_for_was_held_behind_a_late_acknowledgement_all_the_same() {
    let turn = "+2000 C 16 asks\n +26 S 16 answers\n +194 C ack\n +0.1 S 32 tells\n +200 C ack\n";
    let at_once = "+2000 C 16 asks\n +126 S 48 answers\n +200 C ack\n";
    let text = format!("handshake\n{}", (turn.to_owned() + at_once).repeat(3));
    log(text).rtt(ms(0.5)).both_ends(|seen| {
        let lines = seen.lines(Cause::NagleDelayedAck, Server);
        let held: Vec<_> = lines.iter().map(|line| line.ns).collect();
        assert_eq!(held.len(), 3, "{seen}");
        assert!(held.iter().all(|&ns| ns >= ms(190) && ns <= ms(195)), "{held:?}: {seen}");
    });
}

/// Both ends of SSH list their algorithms (RFC 4253, 7.1), and the client begins the key exchange
/// in a second write, which Nagle holds until its server acknowledges the list by a timer (frames
/// 75 to 80 of a laboratory's capture). After a list acknowledged at once nothing is held, and a
/// client that takes longer pauses.
#[test]
fn a_key_exchange_is_held_behind_its_clients_list() {
    for (acked, paused, held) in [(41.2, 0.05, true), (0.0, 0.05, false), (0.0, 41.2, false)] {
        let text = format!(
            "handshake\n +4 S 40 greets\n +14 C 33 greets #version\n version+0 S ack\n version+1 S 672 serves #list\n list+8 C 1000 serves #own
             own+{acked} S ack\n +{paused} C 48 asks #dh\n dh+0.2 S ack\n dh+5 S 208 answers\n +40 C ack"
        );
        log(text).rtt(ms(0.6)).both_ends(|seen| {
            let lines = seen.lines(Cause::NagleDelayedAck, Client);
            let ns = lines.iter().map(|line| line.ns).max();
            assert_eq!(ns.is_some_and(|ns| ns >= ms(41) && ns <= ms(42.5)), held, "{acked} {paused}: {seen}");
            assert!(held || lines.is_empty(), "{acked} {paused}: {seen}");
        });
    }
}

/// An HTTP/2 client acknowledges SETTINGS and sends its first request 50 to 60 ms later, about when
/// a delayed ACK reaches it (frames 10 to 12 of node). A request that does not echo that ACK's time
/// stamp left before it, and one later than a round trip after it was not held either. A request
/// that leaves with the ACK was held.
#[test]
fn a_question_that_a_program_pauses_before_is_not_held() {
    for (asks, held) in [
        ("ack+52.5 C 337", false),
        ("ack+52 C 337 late=3.6", false),
        ("ack+55.5 C 337", false),
        ("+0.05 C 337", true),
        ("+0.05 C 337 late=0.7", true),
    ] {
        let text = format!(
            "handshake\n +1 C 52 serves #own\n own+0 S ack\n own+3 S 28 serves #settings\n +0.1 S 9 serves\n settings+0.1 C ack\n settings+0.2 C ack
             settings+2.2 C 9 serves #ack\n ack+43 S ack #acked\n {asks} asks #question\n question+0.1 S ack\n question+7 S 300 answers\n +0 C ack
             +40 C 100 asks #more\n more+0.1 S ack\n more+7 S 300 answers\n +40 C ack"
        );
        log(text).rtt(ms(10)).both_ends(|seen| {
            let ns = seen.lines(Cause::NagleDelayedAck, Client).iter().map(|line| line.ns).max();
            assert_eq!(ns.is_some_and(|ns| ns >= ms(50)), held, "{asks}: {seen}");
            assert!(held || ns.is_none(), "{asks}: {seen}");
        });
    }
}

/// A broker passes on what another client published, each message when it comes, and its subscriber delays
/// ACKs by 100 to 230 ms (frames 60 to 134 of an MQTT broker's capture): one that leaves 0.03 ms behind
/// such an ACK was held, for an unknown time; one that leaves 0.84 ms behind it was not.
#[test]
fn an_event_that_comes_later_than_what_an_ack_releases_was_not_held() {
    let held = "+231 C ack\n +0.03 S 64 tells\n +100 C ack\n +13 S 22 tells\n";
    for (behind, held_for) in [(0.03, true), (0.84, false)] {
        let last = format!("+217.2 C ack\n +{behind} S 22 tells #last\n last+50 C ack\n");
        let text = format!(
            "handshake\n +1 C 30 asks\n +5 S 20 answers\n +200 C ack\n +9 S 22 tells\n{}{last}",
            held.repeat(2)
        );
        let seen = log(text).rtt(ms(1.6)).without_timestamps().seen_at(End::Server);
        let lines = seen.lines(Cause::NagleDelayedAck, Server);
        assert!(lines.iter().all(|line| line.confidence == Possible), "{seen}");
        let long = lines.iter().filter(|line| line.ns >= ms(200)).count();
        assert_eq!(long, 2 + usize::from(held_for), "{behind}: {seen}");
    }
}

/// The lists of both ends of SSH cross. The client's next request acknowledges the server's list for the
/// first time and so echoes that one's stamp, although it was released by the acknowledgement of its own
/// (RFC 7323, 4.3, 2; frames 36 to 39 of a laboratory's capture). One that had nothing to acknowledge would
/// have echoed what released it.
#[test]
fn what_acknowledges_data_for_the_first_time_echoes_that_datas_stamp() {
    for (acked, held) in [("", true), ("list+0 C ack\n ", false)] {
        let text = format!(
            "handshake\n +4 S 40 greets\n +14 C 33 greets #version\n version+0 S ack\n version+1 S 672 serves #list\n \
             version+2.5 C 1000 serves #own\n {acked}own+34 S ack\n +0.05 C 48 asks #dh\n dh+0.2 S ack\n dh+5 S 208 answers\n +40 C ack"
        );
        let log = log(text).rtt(ms(2));
        let mut segments = log.capture(End::Client);
        let list = segments.iter().find(|segment| segment.payload_len == 672);
        let stamp = list.and_then(|list| list.options.timestamps).expect("a log has them").val;
        for segment in segments.iter_mut().filter(|segment| segment.payload_len == 48) {
            segment.options.timestamps.as_mut().expect("a log has them").ecr = stamp;
        }
        let seen = Seen::of_marked(segments, log.marks(), "the client");
        let ns = seen.lines(Cause::NagleDelayedAck, Client).iter().map(|line| line.ns).max();
        assert_eq!(ns.is_some_and(|ns| ns >= ms(35.5) && ns <= ms(36.5)), held, "{acked}: {seen}");
    }
}
