//! Who waits for a message, an answer and a way that a capture does not show, as strangers' captures had it, as packet logs.

use tcpwhy_core::cause::{Cause, Side};
use tcpwhy_core::report::Confidence::{Likely, Possible};
use tcpwhy_core::report::Kind;
use tcpwhy_wire::Endpoint;

use crate::packet_log::{End, log, ms};

/// A client publishes something that no protocol answers (MQTT 3.1.1, 4.3.1), and its host has an acknowledgement one round trip later (frames 77 to
/// 86 of a broker's client): the way is known, and that somebody waits for its end is not.
#[test]
fn nobody_says_that_a_message_without_an_answer_is_waited_for() {
    for [asks, answers] in [["", ""], ["asks", "answers"]] {
        let text = format!(
            "handshake\n +1 C 34 {asks}\n +0 S ack #connect\n connect+177 S 24 {answers}\n +45 C ack\n +5586 C 55\n +0 S ack"
        );
        log(text).rtt(ms(187)).both_ends(|seen| {
            assert_eq!((seen.count(Kind::Exchange), seen.count(Kind::OneWay)), (1, 1), "{seen}");
            let lines = &seen.one_way(1).exchange.bill;
            assert!(lines.iter().all(|line| line.confidence == Possible), "{seen}");
        });
    }
}

/// A file goes up over SSH; before all of it has arrived the server opens the channel's window further, and 1.2 s behind that it answers (frames 59 to 111
/// of an upload). What a host acknowledges is what it has, so that the first word had not seen all of the file. Where it had, the second one
/// is a message of its own.
#[test]
fn what_had_not_seen_all_of_a_request_does_not_answer_it() {
    for (seen_of_it, early) in [(60_000, true), (144_900, false)] {
        let text = format!(
            "handshake\n +5 C 100\n +1 S 200\n +0 C ack\n +5 C 1448x100 #file\n file+4 S 36 ack={seen_of_it} #grown\n grown+0 C ack\n grown+2 S ack\n grown+1220 S 668\n +0 C ack"
        );
        let logged = log(text).rtt(ms(0.6));
        logged.both_ends(|seen| {
            let waited = seen.lines(Cause::ServerThink, Side::Server);
            let longest = waited.iter().max_by_key(|line| line.ns).unwrap_or_else(|| panic!("{seen}"));
            assert_eq!(longest.ns >= ms(1_200), early, "{seen_of_it}: {seen}");
            assert!(longest.confidence <= Likely || !early, "{seen}");
        });
    }
}

/// A user network acknowledges within a millisecond for a server 280 ms away, and the capture begins behind the handshake that would show it (frames 1 to 3
/// of a mirror's FTP): a packet that no router has touched has not come from a public address to a private one.
#[test]
fn who_cannot_be_the_server_acknowledges_for_it() {
    let private = Endpoint::v4([192, 168, 85, 132], 32_936);
    let server = Endpoint::v4([209, 51, 188, 20], 21);
    for (client, sure) in [(private, Possible), (Endpoint::v4([209, 51, 188, 77], 32_936), Likely)] {
        let text = "@0 C 31 #asked\n asked+0 S ack #taken\n asked+279 S 51\n +0 C ack\n +1 C 6\n +0 S ack";
        let seen = log(text).rtt(ms(0.6)).between([client, server]).without_timestamps().seen_at(End::Client);
        let waited = seen.lines(Cause::ServerThink, Side::Server);
        assert!(waited[0].ns >= ms(270) && waited[0].confidence == sure, "{seen}");
    }
}

/// In the middle of a download over 330 ms the client's acknowledgements are held back for 280 and 140 ms, so that what the one of two rounds ago
/// lets go comes soon behind the latest one (frames 38 to 78 of a search): nothing says that the server is so near.
#[test]
fn what_comes_soon_behind_an_acknowledgement_may_follow_an_earlier_one() {
    let text = "@0 C 1007 #asked
         +154 S 1448x2 more #one
         one+0.2 S 1183 #rest
         one+0 C ack
         rest+279 C ack #held
         one+331 S 1448x2 more #two
         two+6 S 1448 more #three
         two+0 C ack
         three+136 C ack
         held+0 S 1355 #last
         last+170 C ack
         last+867 C 1020
         +35 S 215
         +146 C ack";
    let seen = log(text).rtt(ms(331)).without_timestamps().seen_at(End::Client);
    let last = seen.connection().exchanges.last().unwrap_or_else(|| panic!("{seen}"));
    let own = last.bill.iter().find(|line| line.cause == Cause::ServerThink && line.ns > ms(60));
    assert_eq!(own.map(|line| line.confidence), Some(Possible), "{seen}");
}

/// A chat's client says that its user types: 85 bytes, and as many 97 ms later (frames 764 to 783 of a chat's client). Nobody answers either, and
/// nothing says that the second was waited for.
#[test]
fn a_pause_between_small_pieces_without_an_answer_may_be_nobodys() {
    for begins in ["handshake\n +5 C 100", "@0 C 100"] {
        let text = format!("{begins}\n +1 S 80\n +0 C ack\n +825 C 85\n +97 C 85\n +0 S ack");
        let seen = log(text).rtt(ms(31)).seen_at(End::Client);
        let paused = seen.one_way(1).exchange.bill.iter().filter(|line| line.cause == Cause::SenderThink);
        let surest = paused.map(|line| line.confidence).max().unwrap_or_else(|| panic!("{seen}"));
        assert_eq!(surest, Possible, "{seen}");
    }
}

/// Heart-beats over a phone's network are answered after 153, 290 and 120 ms, and no packet of the server's comes without data (frames 76 to 237 of a
/// client's connection): a host that takes its time acknowledges first, within 40 ms (TCP_DELACK_MIN, include/net/tcp.h, Linux 6.12), so
/// that the path was as likely late.
#[test]
fn who_never_acknowledges_before_it_answers_may_be_behind_a_late_path() {
    for (late, sure) in [(137, Possible), (30, Likely)] {
        let beat = |wait: i64| format!("+40000 C 50 #b{wait}\n b{wait}+{wait} S 39\n +54 C ack\n");
        let text = format!("@0 C 50 #b\n b+33 S 39\n +54 C ack\n {}{}", beat(1), beat(i64::from(late)));
        let beats = log(text).rtt(ms(119));
        for log in [beats.clone(), beats.without_timestamps()] {
            let seen = log.seen_at(End::Client);
            let own = seen.lines(Cause::ServerThink, Side::Server);
            let surest = own.iter().filter(|line| line.ns > ms(20)).map(|line| line.confidence).max();
            assert_eq!(surest, Some(sure), "{late}: {seen}");
        }
    }
}
