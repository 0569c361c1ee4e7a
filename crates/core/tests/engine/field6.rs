//! What a sixth reading of strangers' captures showed, as packet logs.

use tcpwhy_core::cause::{Cause, Side};
use tcpwhy_core::report::Confidence::{Certain, Likely, Possible};
use tcpwhy_wire::{Segment, TcpOptions};

use crate::packet_log::{End, each, log, ms};
use crate::seen::Seen;

/// Options of telnet cross: the client's three bytes leave before the server's last fifteen arrive, whose acknowledgement it holds back, and 26 us
/// behind that the server's eighteen follow (frames 8 to 12 of a login): Nagle held them, for all that they seem to answer. Where the question
/// acknowledges everything, it is the server's own time.
#[test]
fn an_answer_is_held_beside_what_was_said_before_its_question() {
    for (crosses, held) in [(true, true), (false, false)] {
        let (asks, released) =
            if crosses { ("a+0.03", "tail+41.2 C ack\n +0.03") } else { ("tail+0.01", "late+0.2") };
        let text = format!(
            "handshake\n +4 C 24\n +0.05 S ack\n +0.6 S 12\n +0.05 C ack #a\n +0.02 S 15 #tail\n {asks} C 3 #ask\n \
             ask+41 S ack #late\n {released} S 18\n +0.01 C 9"
        );
        let seen = log(text).rtt(ms(0.6)).seen_at(End::Server);
        assert_eq!(seen.spent(Cause::NagleDelayedAck, Side::Server) >= ms(40), held, "{crosses}: {seen}");
        assert_eq!(seen.spent(Cause::ServerThink, Side::Server) >= ms(40), !held, "{crosses}: {seen}");
    }
}

/// A NAT that ends TCP acknowledges within half a millisecond; its SYN had gone out three times, so that nothing shows how long opening took, and no
/// answer ever came within 60 ms (frames 1495 to 1899 of a machine behind VMware's). What the server took is no more than likely, and what
/// looks like pauses of its program may be rounds on the way behind. A server whose answers come as soon as its acknowledgements thinks.
#[test]
fn behind_whoever_acknowledges_nothing_is_sure() {
    for (answer, sure) in [(300.0, false), (1.2, true)] {
        let rounds = "+30 S 1440 more\n +0 S 1000\n +0 C ack\n".repeat(4);
        let text = format!(
            "@0 C syn lost\n @3000 C syn lost\n @9000 C syn\n +253 S syn\n +0 C ack\n +1 C 246 #q\n +0 S ack\n q+{answer} S 1440 more\n \
             +0 S 1400\n +0 C ack\n {rounds}"
        );
        let seen = log(text).rtt(ms(0.4)).seen_at(End::Client);
        let think = seen.lines(Cause::ServerThink, Side::Server);
        assert_eq!(think.iter().any(|line| line.confidence == Certain), sure, "{answer}: {seen}");
        let pauses = seen.lines(Cause::SenderThink, Side::Server);
        assert_eq!(pauses.iter().any(|line| line.confidence > Possible), sure, "{answer}: {seen}");
    }
}

/// A reply goes out again 100 ms later, where the client had held back its acknowledgement (frames 170 to 172 of a mail client's), or for seconds
/// to a host that answers no more (frames 1380 to 1897 of a laptop whose VPN had come up): beside the client both copies passed, and the path
/// lost neither. Near the server nobody knows.
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

/// A wrong password is answered after 2.7 seconds, and the client closes, then the server (frames 106 to 111 of FTP): who had asked closed because of
/// that answer, and waited for it. A server that closes first has given up.
#[test]
fn who_closes_behind_an_answer_had_waited_for_it() {
    for (closing, waited) in [("+0.2 C fin\n +0.4 S fin", true), ("+0 S fin\n +0 C ack", false)] {
        let text = format!(
            "handshake\n +3 S 20\n +0 C ack\n +350 C 16\n +0.5 S 34\n +0 C ack\n +0.1 C 17 #ask\n ask+41 S ack\n ask+2737 S 22\n {closing}"
        );
        let seen = log(text).rtt(ms(0.4)).seen_at(End::Client);
        assert_eq!(seen.spent(Cause::ServerThink, Side::Server) >= ms(2_700), waited, "{closing}: {seen}");
    }
}

/// Readings of 26 bytes leave once a second. One comes 2.9 seconds late, because both hosts and the capture had slept (frames 522 to 528 of a
/// broker's): nothing of the broker's was on its way, so that no link was busy with that.
#[test]
fn no_link_is_busy_with_what_left_a_second_later() {
    let readings =
        each(0..12, |n| format!("+1000 S 26{}\n +0 C ack", if n == 8 { " late=2900" } else { "" }));
    let seen = log(format!("handshake\n +0 C 20\n +0.1 S 4\n +0 C ack\n {readings}"))
        .rtt(ms(0.2))
        .seen_at(End::Client);
    assert!(seen.spent(Cause::Bandwidth, Side::Path) < ms(100), "{seen}");
}

/// Media come in small pieces, each with its own write, for as long as anybody listens (RTP within RTSP, frames 20 to 1020 of a camera's):
/// nobody knows that somebody waits for the last of them. A few pieces are an answer.
#[test]
fn an_answer_that_goes_on_in_many_pieces_may_be_a_stream() {
    for (pieces, most) in [(80, Likely), (12, Certain)] {
        let media = each(0..pieces, |n| format!("+{} S {}\n +0.2 C ack", 30 + n % 9, 336 + n % 7));
        let text = format!("handshake\n +0 C 317\n +0.4 S 128\n +0 C ack\n {media}");
        let seen = log(text).rtt(ms(0.2)).without_timestamps().seen_at(End::Server);
        let surest = seen.lines(Cause::SenderThink, Side::Server).iter().map(|line| line.confidence).max();
        assert_eq!(surest, Some(most), "{pieces}: {seen}");
    }
}
