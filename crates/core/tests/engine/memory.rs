//! What does a connection teach about its ends? The same exchange, after others that show something
//! or do not.

use tcpwhy_core::Form;
use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server};
use tcpwhy_core::report::Confidence::{Likely, Possible};

use crate::packet_log::{log, ms};

/// A request in two pieces, this many ms apart, the first acknowledged at once.
fn pausing(pause_ms: i32) -> String {
    format!("+5 C 20 #head\n head+0 S ack\n head+{pause_ms} C 100\n +0 S 64\n +0 C ack\n")
}

/// The same, its second piece held until the server's timer acknowledges a first piece of this many
/// bytes.
fn held(first: u32) -> String {
    format!("+5 C {first}\n +40 S ack\n +0 C 100\n +0 S 64\n +0 C ack\n")
}

/// Of a hold, the program's part is its usual pause: the lower of the two middle ones of its last
/// five pauses.
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
            // The first time, a program may have been starting up.
            let sure = if pauses.len() > 1 { Likely } else { Possible };
            assert_eq!(bill.of(Cause::SenderThink).confidence, sure, "{seen}");
        });
    }
}

/// A first piece of about the same size is the same write with a slightly different length; another
/// size is another write.
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

/// Small replies as late as a cork's timer, 204 to 212 ms after their requests: a server that takes
/// that long, unless each leaves on a tick of its kernel, 4 ms apart, whenever its request came. A
/// much sooner reply shows that no cork is set, and so does a second small segment after one of
/// them.
#[test]
fn replies_as_late_as_a_cork_s_timer_are_its_server_s_unless_they_keep_its_tick() {
    let rtt = ms(4);
    let reply = |after: f64, pause: f64| format!("+{pause} C 100\n +{after} S 200\n +0 C ack\n");
    // Each leaves a multiple of 4 ms after the others: request, path, reply, path.
    let on_tick = [(208.0, 5.0), (209.3, 2.7), (207.1, 4.9), (210.6, 5.4), (208.5, 3.5)];
    let by_itself = [(208.0, 5.0), (209.3, 3.9), (207.1, 5.8), (210.6, 8.1), (208.5, 4.2)];
    let quick = [(208.0, 5.0), (209.3, 2.7), (207.1, 4.9), (2.0, 6.0), (210.6, 5.4), (208.5, 3.5)];
    let cases: [(&[(f64, f64)], Cause); 3] =
        [(&on_tick, Cause::Cork), (&by_itself, Cause::ServerThink), (&quick, Cause::ServerThink)];
    for (replies, cause) in cases {
        let text: String = replies.iter().map(|&(after, pause)| reply(after, pause)).collect();
        log(format!("handshake\n {text}")).rtt(rtt).both_ends(|seen| {
            let (last, _) = replies[replies.len() - 1];
            let took = [(Cause::RoundTrip, Path, rtt), (cause, Server, ms(last))];
            // A program that sleeps by its kernel's tick looks the same.
            let sure = |cause| if cause == Cause::Cork { Possible } else { Likely };
            assert_eq!(seen.exchange(replies.len()).is(&took).of(cause).confidence, sure(cause), "{seen}");
            // The proof also covers the first one, which taken singly is its server's.
            let first = if replies.len() == 5 { cause } else { Cause::ServerThink };
            let form = if first == Cause::Cork { Form::WholeReply } else { Form::OrCork };
            let exchange = seen.exchange(1).is(&[(Cause::RoundTrip, Path, rtt), (first, Server, ms(208))]);
            let seen_first = exchange.of(first);
            assert_eq!((seen_first.confidence, seen_first.detail.form), (sure(first), Some(form)), "{seen}");
        });
    }
}

/// The verdict on the first replies once others have shown the tick, and what only two of them
/// leave open.
#[test]
fn replies_before_the_proof_of_a_cork_are_judged_by_it() {
    let rtt = ms(4);
    let reply = |(after, pause): (f64, f64)| format!("+{pause} C 100\n +{after} S 200\n +0 C ack\n");
    // The second leaves 0.4 ms after the tick, as happens on a busy host.
    let late = [(208.0, 5.0), (209.7, 2.7), (207.1, 4.5), (210.6, 5.4), (208.5, 3.5), (207.7, 4.3)];
    let text: String = late.into_iter().map(reply).collect();
    log(format!("handshake\n {text}")).rtt(rtt).both_ends(|seen| {
        for (n, &(after, _)) in (1..).zip(&late) {
            let took = [(Cause::RoundTrip, Path, rtt), (Cause::Cork, Server, ms(after))];
            let exchange = seen.exchange(n).is(&took);
            let cork = exchange.of(Cause::Cork);
            assert_eq!((cork.confidence, cork.detail.held_bytes), (Possible, Some(200)), "{n}{seen}");
        }
    });
    // Two on one tick: chance, one time in ten.
    let text: String = late[2..4].iter().copied().map(reply).collect();
    log(format!("handshake\n {text}")).rtt(rtt).both_ends(|seen| {
        for n in [1, 2] {
            let exchange = seen.exchange(n).never(Cause::Cork);
            let think = exchange.of(Cause::ServerThink);
            assert_eq!((think.confidence, think.detail.form), (Possible, Some(Form::OrCork)), "{n}{seen}");
        }
    });
}

/// A busy host sends up to 0.75 ms after the tick what its timer releases (replies of uWebSockets
/// under other load, near their server): hardly two of them are on one tick, yet all of them are
/// the timer's. With fewer of them it is only possible.
#[test]
fn replies_a_little_behind_a_busy_host_s_ticks_are_its_timer_s() {
    let behind_us = [0, 200, 310, 120, 400, 560, 750, 480, 300, 620];
    let corked = |replies: usize, rtt: f64| {
        let timer = if rtt > 5.0 { 200.0 + rtt } else { 204.0 };
        let mut at = 0.0;
        let turn = |(n, &behind_us): (usize, &i64)| {
            let pause = if n % 2 == 0 { 5.3 } else { 3.1 };
            let asked = at + pause + rtt / 2.0;
            let left = ((asked + timer + 3.0) / 4.0).ceil() * 4.0 + behind_us as f64 / 1e3;
            at = left + rtt / 2.0;
            format!("+{pause:.3} C 100\n +{:.3} S 200\n +0 C ack\n", left - asked)
        };
        let text: String = behind_us[..replies].iter().enumerate().map(turn).collect();
        log(format!("handshake\n {text}")).rtt(ms(rtt))
    };
    for rtt in [0.2, 4.0, 20.0] {
        corked(10, rtt).both_ends(|seen| {
            for n in 1..=10 {
                let exchange = seen.exchange(n).never(Cause::ServerThink);
                let cork = exchange.of(Cause::Cork);
                assert_eq!((cork.confidence, cork.detail.held_bytes), (Possible, Some(200)), "{n}{seen}");
            }
        });
        corked(6, rtt).both_ends(|seen| {
            let exchange = seen.exchange(6).never(Cause::Cork);
            let think = exchange.of(Cause::ServerThink);
            assert_eq!((think.confidence, think.detail.form), (Possible, Some(Form::OrCork)), "{seen}");
        });
    }
}

/// A server of 202 to 212 ms, constant or not, near and far, answering in one write or two, without
/// a tick or with one that programs have as well: its late replies do not show a cork.
#[test]
fn a_server_that_takes_as_long_as_a_timer_is_never_a_cork() {
    let hashed = |n: i64, salt: i64| (n * 7_919 + salt * 104_729) % 1_009;
    let one = " +0 C ack\n";
    let two = " +0 C ack\n +0 S 90\n +0 C ack\n";
    for rtt in [0.2, 4.0, 40.0, 100.0] {
        let timer = if rtt > 5.0 { 200.0 + rtt } else { 204.0 };
        for (spread, rest) in [(0.0, one), (3.0, one), (8.0, one), (8.0, two)] {
            let turn = |n: i64| {
                let after = timer + 3.0 + spread * hashed(n, 1) as f64 / 1_009.0 + hashed(n, 2) as f64 / 2e4;
                let pause = 5.1 + hashed(n, 3) as f64 / 1e4;
                format!("+{pause:.3} C 100\n +{after:.3} S 200\n{rest}")
            };
            let text: String = (0..40).map(turn).collect();
            log(format!("handshake\n {text}")).rtt(ms(rtt)).both_ends(|seen| {
                for n in 1..=40 {
                    seen.exchange(n).never(Cause::Cork);
                }
            });
        }
        // On steps of 10 ms, whenever the request came, as far as its work allows.
        let mut at = 0.0;
        let stepped = |n: i64| {
            let pause = 5.1 + hashed(n, 4) as f64 / 20.0;
            let asked = at + pause + rtt / 2.0;
            let left = ((asked + timer) / 10.0).ceil() * 10.0;
            at = left + rtt / 2.0;
            format!("+{pause:.3} C 100\n +{:.3} S 200\n{one}", left - asked)
        };
        let text: String = (0..40).map(stepped).collect();
        log(format!("handshake\n {text}")).rtt(ms(rtt)).both_ends(|seen| {
            for n in 1..=40 {
                seen.exchange(n).never(Cause::Cork);
            }
        });
    }
}

/// A server that works for 195 to 230 ms and sleeps by its kernel's ticks, 4 ms each: replies leave
/// on them like a timer's, but differ by more than one timer's can.
#[test]
fn replies_on_a_tick_that_differ_by_more_than_its_step_are_no_timer_s() {
    let hashed = |n: i64, salt: i64| ((n * 7_919 + salt * 104_729) % 1_009) as f64 / 1_009.0;
    for (salt, rtt) in [(1, 0.2), (2, 4.0), (3, 20.0), (4, 40.0)] {
        let mut at = 0.0;
        let turn = |n: i64| {
            let pause = 1.1 + 9.0 * hashed(n, salt);
            let asked = at + pause + rtt / 2.0;
            let left: f64 = ((asked + 200.0 + rtt + 25.0 * hashed(n, salt + 9)) / 4.0).ceil() * 4.0;
            at = left + rtt / 2.0;
            format!("+{pause:.6} C 100\n +{:.6} S 200\n +0 C ack\n", left - asked)
        };
        let text: String = (0..40).map(turn).collect();
        log(format!("handshake\n {text}")).rtt(ms(rtt)).both_ends(|seen| {
            assert_eq!(seen.spent(Cause::Cork, Server), ms(0), "{rtt}: {seen}");
        });
    }
}
