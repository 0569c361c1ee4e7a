//! Clients that give up: what had come until then is the answer that they waited for.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Path, Server};
use tcpwhy_core::report::Confidence;

use crate::packet_log::{End, log, ms, settled};

/// A server of 743 ms sends a part of its answer, pauses, and sends another part; then its client has waited for long enough and closes. What
/// comes behind the acknowledgement of that FIN does not make the first part one that was said too early.
#[test]
fn an_answer_that_its_client_gives_up_had_begun() {
    let rtt = ms(0.4);
    let text = "handshake
         +0.1 C 93 #asked
         +0 S ack
         asked+743 S 1448x6
         +0 C ack
         +231 S 1448x4
         +0 C ack #read
         read+24 C fin #gone
         gone+53 S ack
         gone+224 S 1448x2
         +0 C rst";
    log(text).rtt(rtt).both_ends(|seen| {
        let bill = seen.exchange(1);
        let thought = bill.of(Cause::ServerThink);
        assert!(thought.ns >= ms(742.5) && thought.ns <= ms(743.5), "{seen}");
        assert_eq!(thought.confidence, Confidence::Certain, "{seen}");
        // What came behind its FIN met a reset: nobody waited for that.
        let paused = bill.ns(Cause::SenderThink, Server);
        assert!(paused >= ms(229) && paused <= ms(232), "{seen}");
        assert_eq!(bill.exchange.reply_bytes, 10 * 1448, "{seen}");
        assert_eq!(bill.ns(Cause::Rto, Path), ms(0), "{seen}");
    });
}

/// A server that nobody has asked for anything gives up, says so, and closes at once: whether that had been lost before or its other
/// connections had taken the numbers that are missing, no timer is anybody's wait (frames 6842 to 6870 of a web interface). Without a FIN the timer may
/// have been waited for.
#[test]
fn nobody_waits_for_a_timer_before_last_words() {
    let ends = [("w+220 S 12000..12037\n +0.2 S fin", false), ("w+220 S 12000..12037\n +500 C ack", true)];
    for (end, waited) in ends {
        let text = settled(60) + "+14000 S 37 lost #w\n " + end;
        let seen = log(text).rtt(ms(20)).seen_at(End::Client);
        assert_eq!(!seen.lines(Cause::Rto, Path).is_empty(), waited, "{end}: {seen}");
    }
}

/// A server's alert and its FIN, which it repeats for a minute and a half to a client that is gone (frames 2730 to 2748 of a game's shop): nobody
/// waits for them. Who goes on has been waited for.
#[test]
fn nobody_waits_for_copies_of_last_words() {
    for (end, waited) in [("w+0.02 S fin lost\n", false), ("", true)] {
        let copies = "w+600 S 12000..12037 lost\n w+1800 S 12000..12037 lost\n w+4200 S 12000..12037 lost";
        let text = settled(60) + "+14000 S 37 lost #w\n " + end + copies;
        let seen = log(text).rtt(ms(20)).seen_at(End::Server);
        assert_eq!(!seen.lines(Cause::Rto, Path).is_empty(), waited, "{end}: {seen}");
    }
}
