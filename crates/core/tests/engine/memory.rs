//! What does a connection teach about its ends? The same exchange, behind others that show something or do not.

use tcpwhy_core::Form;
use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server};
use tcpwhy_core::report::Confidence::{Likely, Possible};

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

/// Small replies that come as late as a cork's timer, 204 to 212 ms behind their requests: a server that takes as long, unless each
/// leaves on a tick of its kernel, 4 ms apart, whenever its request came. One that came much sooner says that no cork is in.
#[test]
fn replies_as_late_as_a_cork_s_timer_are_its_server_s_unless_they_keep_its_tick() {
    let rtt = ms(4);
    let reply = |after: f64, pause: f64| format!("+{pause} C 100\n +{after} S 200\n +0 C ack\n");
    // Each leaves 4 ms or a whole number of them behind the others: request, way, reply, way.
    let on_tick = [(208.0, 5.0), (209.3, 2.7), (207.1, 4.9), (210.6, 5.4), (208.5, 3.5)];
    let by_itself = [(208.0, 5.0), (209.3, 3.9), (207.1, 5.8), (210.6, 8.1), (208.5, 4.2)];
    let quick = [(208.0, 5.0), (209.3, 2.7), (207.1, 4.9), (210.6, 5.4), (2.0, 6.0), (208.5, 3.5)];
    let cases: [(&[(f64, f64)], Cause); 3] =
        [(&on_tick, Cause::Cork), (&by_itself, Cause::ServerThink), (&quick, Cause::ServerThink)];
    for (replies, cause) in cases {
        let text: String = replies.iter().map(|&(after, pause)| reply(after, pause)).collect();
        log(format!("handshake\n {text}")).rtt(rtt).both_ends(|seen| {
            let (last, _) = replies[replies.len() - 1];
            let took = [(Cause::RoundTrip, Path, rtt), (cause, Server, ms(last))];
            assert_eq!(seen.exchange(replies.len()).is(&took).of(cause).confidence, Likely, "{seen}");
            let first =
                seen.exchange(1).is(&[(Cause::RoundTrip, Path, rtt), (Cause::ServerThink, Server, ms(208))]);
            let first = first.of(Cause::ServerThink);
            assert_eq!((first.confidence, first.detail.form), (Likely, Some(Form::OrCork)), "{seen}");
        });
    }
}
