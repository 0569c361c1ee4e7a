//! What does a connection teach about its ends? The same exchange, behind others that show something or do not.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server};
use tcpwhy_core::report::Confidence::{self, Likely, Possible};

use crate::packet_log::{log, ms};

/// A request in two pieces, so many ms apart, the first one acknowledged at once.
fn pausing(pause_ms: i32) -> String {
    format!("+5 C 20 #head\n head+0 S ack\n head+{pause_ms} C 100\n +0 S 64\n +0 C ack\n")
}

/// The same, its second piece held until the server's timer has acknowledged the first one of so many bytes.
fn held(first: u32) -> String {
    format!("+5 C {first}\n +40 S ack\n +0 C 100\n +0 S 64\n +0 C ack\n")
}

/// Of a hold, as much is the program's as it pauses otherwise: the lower of the two middle ones of its last five pauses.
#[test]
fn a_program_pauses_as_it_mostly_did_of_late() {
    let rtt = ms(2);
    let rising: Vec<i32> = (1..=12).map(|n| 10 + 2 * n).collect();
    let cases: [(&[i32], i32); 7] = [
        (&[30], 30),
        (&[35, 25], 25),
        (&[30, 20, 36], 30),
        (&[12, 12, 12, 30, 30, 30, 30, 30], 30),
        (&rising[..10], 26),
        (&rising[..11], 28),
        (&rising, 30),
    ];
    for (pauses, usual) in cases {
        let before: String = pauses.iter().map(|&pause| pausing(pause)).collect();
        log(format!("handshake\n {before}{}", held(20))).rtt(rtt).both_ends(|seen| {
            let bill = seen.exchange(pauses.len() + 1).is_within(
                ms(1.1),
                &[
                    (Cause::RoundTrip, Path, rtt),
                    (Cause::SenderThink, Client, ms(usual)),
                    (Cause::NagleDelayedAck, Client, ms(42 - usual)),
                ],
            );
            // The first time a program may have been starting.
            let sure = if pauses.len() > 1 { Likely } else { Possible };
            assert_eq!(bill.of(Cause::SenderThink).confidence, sure, "{seen}");
        });
    }
}

/// A first piece of about the same size is the same write, its length a little different; one of quite another size is another.
#[test]
fn a_pause_belongs_to_writes_of_about_its_size() {
    for (first, own) in [(22, 30), (400, 0)] {
        let text = format!("handshake\n {}{}", pausing(30).repeat(2), held(first));
        log(text).rtt(ms(2)).both_ends(|seen| {
            let paused = seen.exchange(3).ns(Cause::SenderThink, Client);
            assert!(paused >= ms(own) - ms(1) && paused <= ms(own) + ms(1), "{paused}{seen}");
        });
    }
}

/// A small reply 208 ms behind its request, at a round trip of 4: a cork's timer, or a server that takes as long. It corks again if it
/// has before, and does not if it has answered sooner; a large reply, or one that was thought about, does not show that.
#[test]
fn a_reply_as_late_as_a_cork_s_timer_is_corked_unless_others_were_not() {
    let rtt = ms(4);
    let reply = |after: u32, bytes: u32| format!("+5 C 100\n +{after} S {bytes}\n +0 C ack\n");
    let cases: [(String, Cause, Confidence); 5] = [
        (String::new(), Cause::Cork, Possible),
        (reply(208, 200), Cause::Cork, Likely),
        (reply(2, 200), Cause::ServerThink, Possible),
        (reply(2, 2896), Cause::Cork, Possible),
        (reply(150, 200), Cause::Cork, Possible),
    ];
    for (before, cause, sure) in cases {
        let n = usize::from(!before.is_empty()) + 1;
        log(format!("handshake\n {before}{}", reply(208, 200))).rtt(rtt).both_ends(|seen| {
            let bill = seen.exchange(n).is(&[(Cause::RoundTrip, Path, rtt), (cause, Server, ms(208))]);
            assert_eq!(bill.of(cause).confidence, sure, "{before}{seen}");
        });
    }
}
