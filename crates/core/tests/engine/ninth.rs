//! What a ninth reading of strangers' captures showed, as packet logs.

use tcpwhy_core::cause::{Cause, Side};
use tcpwhy_core::report::Confidence::{Likely, Possible};
use tcpwhy_core::report::Kind;

use crate::packet_log::{End, log, ms};

/// A router does not echo the keys of a password, and acknowledges each only when it comes again, 65 ms later: it had held back its
/// acknowledgement, which a client whose timer runs so short cannot know (frames 261 to 332 of a router's telnet, fifteen keys in a row).
/// Whoever had waited for as long as hosts hold it back knows more.
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

/// An FTP client asks for a listing, gives up after a minute, and resets what comes one round trip later (frames 33 to 38 of a mirror's FTP): it
/// had waited until it closed. Where nothing says that the protocol owes an answer, nobody knows what it waited for, and
/// whoever closes sooner than the answer takes has stopped waiting.
#[test]
fn who_gives_up_on_an_answer_that_is_owed_had_waited_until_then() {
    for (asks, answers, closes, waited) in
        [("asks", "answers", 30_000, true), ("", "", 30_000, false), ("asks", "answers", 100, false)]
    {
        let text = format!(
            "handshake\n +5 C 30 {asks}\n +1 S 51 {answers}\n +0 C 6 {asks} #q\n q+0 S ack\n q+{closes} C fin #close\n close+0 S ack\n close+1 S 37 {answers}\n +0 C rst"
        );
        let seen = log(text).rtt(ms(283)).seen_at(End::Client);
        assert_eq!(seen.count(Kind::Exchange), if waited { 2 } else { 1 }, "{closes}: {seen}");
        let server = seen.spent(Cause::ServerThink, Side::Server);
        assert_eq!(server >= ms(29_000), waited, "{seen}");
    }
}

/// A phone writes a request's head, and its body of two full segments and a rest: the rest leaves 2 ms behind the acknowledgement of the small head
/// (frames 13 to 17 of a phone's TLS), which had held it. Windows hold full segments as well, and a first one holds more than three. What
/// comes later was written later.
#[test]
fn the_rest_of_a_write_waits_for_the_small_one_before_it_on_a_slow_host_too() {
    for (late, nagle) in [(2, true), (12, false)] {
        let text = format!(
            "handshake\n +5 C 126\n +1 S 262\n +7 C 414 #head\n +0.3 C 1448x2 more every=1.6\n head+0.5 S ack #acked\n acked+{late} C 1287 #rest\n rest+0 S ack\n +177 S 565\n +0 C ack"
        );
        let seen = log(text).rtt(ms(22)).seen_at(End::Client);
        let held = seen.spent(Cause::Nagle, Side::Client);
        assert_eq!(held >= ms(15), nagle, "{late}: {seen}");
        assert!(!nagle || !seen.spent(Cause::SlowStart, Side::Client).is_positive(), "{seen}");
    }
}
