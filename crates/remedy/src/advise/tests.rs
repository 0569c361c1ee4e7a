//! Does each cause get the fixes that suit its form and side, and do they save no more than it
//! cost?

use tcpwhy_core::report::{Detail, Servers};
use tcpwhy_wire::Endpoint;

use super::*;
use crate::Stack;

fn finding(cause: Cause, sender: Side) -> Finding {
    Finding {
        cause,
        side: cause.side(sender),
        servers: Servers::One(Endpoint::v4([10, 0, 0, 2], 8080)),
        hits: 10,
        of: 10,
        ns: Duration::from_millis(440),
        p50: Duration::from_millis(44),
        p99: Duration::from_millis(45),
        max: Duration::from_millis(45),
        slow: None,
        without: None,
        confidence: Confidence::Certain,
        evidence: vec![],
        worst: (1, 1),
        detail: Detail { ack_delay: Some(Duration::from_millis(40)), ..Detail::default() },
    }
}

fn ids(remedies: &[Remedy]) -> Vec<(&'static str, Side)> {
    remedies.iter().map(|r| (r.id, r.side)).collect()
}

#[test]
fn one_write_comes_before_nodelay_and_both_belong_to_who_writes() {
    for sender in [Side::Client, Side::Server] {
        let remedies = remedies_for(&finding(Cause::NagleDelayedAck, sender));
        assert_eq!(ids(&remedies), [("one-write", sender), ("nodelay", sender), ("quickack", sender.peer())]);
        assert_eq!(remedies[0].saves, Saves::Estimate(Duration::from_millis(440)));
        // The peer's ACK saves its own delay; the round trip of the hold stays.
        assert_eq!(remedies[2].saves, Saves::Estimate(Duration::from_millis(400)));
        assert!(remedies[1].caveat.is_some_and(|caveat| caveat.contains("tiny packets")));
    }
}

/// A send buffer at its ceiling, possibly: raising it saved 0.7 ms of 251, because the receiver's
/// window was the next limit.
#[test]
fn the_fix_of_what_is_only_possible_saves_from_nothing_up() {
    let mut held = finding(Cause::NagleDelayedAck, Side::Server);
    assert_eq!(remedies_for(&held)[0].saves, Saves::Estimate(held.ns));
    held.confidence = Confidence::Possible;
    assert_eq!(remedies_for(&held)[0].saves, Saves::AtMost(held.ns));
}

/// A separate message cannot be joined with one that had to leave before it.
#[test]
fn what_may_be_a_message_of_its_own_is_told_to_leave_at_once_first() {
    for cause in [Cause::Nagle, Cause::NagleDelayedAck] {
        let mut held = finding(cause, Side::Server);
        held.detail.form = Some(Form::OwnMessage);
        let remedies = remedies_for(&held);
        assert_eq!(ids(&remedies)[..2], [("nodelay", Side::Server), ("one-write", Side::Server)]);
        assert!(remedies[0].what.starts_with("Set TCP_NODELAY on the server's socket"));
        assert!(remedies[..2].iter().all(|remedy| remedy.caveat.is_none()), "{remedies:?}");
        assert_eq!(remedies[1].saves, Saves::AtMost(Duration::from_millis(440)));
        // Any other form gets the usual order.
        held.detail.form = Some(Form::Rfc896);
        assert_eq!(ids(&remedies_for(&held))[0], ("one-write", Side::Server));
    }
}

#[test]
fn a_lost_syn_is_looked_for_on_the_path_unless_the_server_shows_that_its_queue_is_full() {
    let mut lost = finding(Cause::SynRetransmit, Side::Client);
    assert_eq!(ids(&remedies_for(&lost)), [("find-syn-drops", Side::Path), ("listen-backlog", Side::Server)]);
    lost.detail.form = Some(Form::AcceptQueue);
    assert_eq!(ids(&remedies_for(&lost)), [("listen-backlog", Side::Server)]);
}

#[test]
fn a_server_is_told_its_own_nginx_lines_and_a_client_is_not() {
    let nginx = |side| {
        remedies_for(&finding(Cause::NagleDelayedAck, side))[0]
            .how
            .iter()
            .find(|how| how.stack == Stack::Nginx)
            .map(|how| how.text)
    };
    assert!(nginx(Side::Server).is_some_and(|text| text.contains("tcp_nopush")));
    assert!(nginx(Side::Client).is_some_and(|text| text.contains("proxy_request_buffering")));
}

#[test]
fn a_receive_window_is_answered_by_its_form() {
    let mut finding = finding(Cause::ReceiveWindow, Side::Server);
    assert_eq!(finding.side, Side::Client);
    // Packets hardly show which of the two limits a fixed window: both are advised, neither for
    // certain.
    for form in [Form::Locked, Form::Capped] {
        finding.detail.form = Some(form);
        let remedies = remedies_for(&finding);
        assert_eq!(ids(&remedies), [("no-rcvbuf", Side::Client), ("raise-tcp-rmem", Side::Client)]);
        assert!(remedies.iter().all(|remedy| remedy.confidence < Confidence::Certain));
        assert!(remedies.iter().all(|remedy| remedy.caveat.is_some_and(|caveat| caveat.contains("ss -tm"))));
    }
    finding.detail.form = Some(Form::Growing);
    assert_eq!(ids(&remedies_for(&finding)), [("keep-connection", Side::Client)]);
    finding.detail.form = Some(Form::Timeout);
    assert_eq!(remedies_for(&finding).len(), 4);
}

/// 1.2 s with a window of 64 KB at 50 ms are 24 rounds, and 24 windows take five doubling rounds:
/// measured without SO_RCVBUF, the same transfer takes 0.9 s less.
#[test]
fn a_window_that_is_no_limit_any_more_is_still_opened() {
    let mut finding = finding(Cause::ReceiveWindow, Side::Server);
    finding.detail.form = Some(Form::Locked);
    finding.detail.round = Some(Duration::from_millis(50));
    (finding.ns, finding.max, finding.hits) = (Duration::from_millis(2_400), Duration::from_millis(1_200), 2);
    let saves = remedies_for(&finding)[0].saves;
    let [least, most] = [2 * (1_200 - 5 * 50), 2_400].map(Duration::from_millis);
    assert!(
        matches!(saves, Saves::Between(l, m) if m == most && l <= least && least - l < Duration::from_millis(3))
    );
    // A single round cannot become shorter.
    finding.max = Duration::from_millis(50);
    assert_eq!(remedies_for(&finding)[0].saves, Saves::Between(Duration::ZERO, most));
}

#[test]
fn a_reply_as_late_as_a_cork_s_timer_is_answered_with_the_other_reading_too() {
    let mut finding = finding(Cause::ServerThink, Side::Server);
    assert_eq!(ids(&remedies_for(&finding)), [("profile-server", Side::Server)]);
    finding.detail.form = Some(Form::OrCork);
    let remedies = remedies_for(&finding);
    assert_eq!(ids(&remedies), [("profile-server", Side::Server), ("uncork", Side::Server)]);
    assert_eq!(remedies[1].confidence, Confidence::Possible);
}

#[test]
fn nobody_is_told_to_set_tcp_options_where_the_time_is_the_programs_or_the_paths() {
    let tcp_knobs = ["nodelay", "quickack", "one-write", "initcwnd", "no-rcvbuf", "no-sndbuf", "bbr"];
    for cause in
        [Cause::ServerThink, Cause::SenderThink, Cause::ReceiverThink, Cause::RoundTrip, Cause::Bandwidth]
    {
        for remedy in remedies_for(&finding(cause, Side::Client)) {
            assert!(!tcp_knobs.contains(&remedy.id), "{cause}: {}", remedy.id);
        }
    }
}

#[test]
fn a_fix_is_never_surer_than_the_finding_and_never_saves_more_than_it_cost() {
    for cause in Cause::ALL {
        let mut finding = finding(cause, Side::Server);
        finding.confidence = Confidence::Possible;
        let remedies = remedies_for(&finding);
        assert!(!remedies.is_empty(), "{cause} has no remedy");
        for remedy in remedies {
            assert_eq!(remedy.confidence, Confidence::Possible);
            assert!(!remedy.what.contains('{'), "{}", remedy.what);
            match remedy.saves {
                Saves::Estimate(ns) | Saves::AtMost(ns) => {
                    assert!(ns <= finding.ns && ns >= Duration::ZERO);
                }
                Saves::Between(least, most) => {
                    assert!(Duration::ZERO <= least && least <= most && most <= finding.ns);
                }
                Saves::Unknown => {}
            }
        }
    }
}
