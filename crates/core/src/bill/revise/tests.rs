//! Do revisions take from a bill what they say, and return all of it?

use super::*;

const CLIENT: Side = Side::Client;
const SERVER: Side = Side::Server;

fn ms(n: i64) -> Duration {
    Duration::from_millis(n)
}

fn account(of: &[(Cause, Side, i64, Confidence)]) -> Account {
    let mut account = Account::default();
    for &(cause, sender, n, confidence) in of {
        account.charge(&Charge::new(cause, sender, ms(n), confidence));
    }
    account
}

/// Each line as `cause side ms confidence`, in alphabetical order.
fn lines(account: &Account) -> Vec<String> {
    let line = |line: LineView<'_>| {
        let ms = line.ns().as_nanos() / 1_000_000;
        format!("{} {} {ms} {:?}", line.cause(), line.side(), line.confidence())
    };
    let mut lines: Vec<String> = account.clone().bill().summary().map(line).collect();
    lines.sort();
    lines
}

/// Applies it to a path with these accounts. Returns how much was moved, and what is then pending,
/// blocked and settled.
fn revised(
    revision: Revision<'_>,
    [pending, blocked, settled]: [&[(Cause, Side, i64, Confidence)]; 3],
) -> (i64, [Vec<String>; 3]) {
    let [mut pending, mut blocked, mut settled] = [pending, blocked, settled].map(account);
    let before = pending.total() + blocked.total() + settled.total();
    let all = Accounts { pending: Some(&mut pending), blocked: Some(&mut blocked), settled: &mut settled };
    let moved = revision.apply(all);
    let after = pending.total() + blocked.total() + settled.total();
    let nobody_waited = matches!(revision, Revision::News { .. } | Revision::RateShown { .. });
    let gone = if nobody_waited { moved } else { Duration::ZERO };
    if !matches!(revision, Revision::RepairUnneeded) {
        assert_eq!(after + gone, before, "{revision:?}");
    }
    for account in [&mut pending, &mut blocked, &mut settled] {
        assert_eq!(account.total(), account.bill().summary().map(LineView::ns).sum(), "{revision:?}");
    }
    (moved.as_nanos() / 1_000_000, [&pending, &blocked, &settled].map(lines))
}

use Cause::{
    Loss, Nagle, NagleDelayedAck, Pacing, Queueing, RoundTrip, Rto, SendBuffer, SenderThink, ServerThink,
    SlowStart, TlsHandshake,
};
use Confidence::{Certain, Likely, Possible};

#[test]
fn a_path_that_proves_shorter_leaves_the_rest_to_a_queue_and_nothing_to_a_server_far_away() {
    for (own, then) in [((5, Likely), "Possible"), ((50, Likely), "Likely"), ((5, Certain), "Certain")] {
        let settled = [(TlsHandshake, CLIENT, 100, Certain), (ServerThink, SERVER, own.0, own.1)];
        let (moved, [_, _, settled]) =
            revised(Revision::WayShorter { least: ms(70), asker: CLIENT }, [&[], &[], &settled]);
        assert_eq!(moved, 30);
        let own = format!("server-think server {} {then}", own.0);
        assert_eq!(settled, ["queueing path 30 Possible", &own, "tls-handshake client 70 Likely"]);
    }
}

#[test]
fn a_repair_counts_once_it_is_known_to_have_been_needed() {
    let accounts: [&[_]; 3] = [&[(Rto, SERVER, 210, Certain)], &[(SlowStart, SERVER, 5, Likely)], &[]];
    let [pending, blocked, settled] = revised(Revision::RepairNeeded, accounts).1;
    assert!(pending.is_empty() && blocked.is_empty());
    assert_eq!(settled, ["rto path 210 Certain", "slow-start server 5 Likely"]);
    let [pending, blocked, settled] = revised(Revision::RepairUnneeded, accounts).1;
    assert!(pending.is_empty() && settled.is_empty());
    assert_eq!(blocked, ["slow-start server 5 Likely"]);
}

#[test]
fn what_is_shorter_than_the_pause_behind_it_may_have_delayed_nothing() {
    for (late, of_settled) in [(12, "Possible"), (8, "Likely")] {
        let blocked: &[_] = &[(Queueing, SERVER, 8, Likely), (Pacing, SERVER, 3, Likely)];
        let paused = Revision::PausedBehind { sender: SERVER, ns: ms(late) };
        let [_, blocked, settled] = revised(paused, [&[], blocked, &[(Queueing, SERVER, 4, Likely)]]).1;
        assert_eq!(blocked, ["pacing server 3 Likely", "queueing path 8 Possible"]);
        assert_eq!(settled, [format!("queueing path 4 {of_settled}")]);
    }
}

#[test]
fn what_a_copy_was_charged_is_the_paths_delay() {
    let accounts: [&[_]; 3] = [&[(Rto, SERVER, 210, Certain)], &[], &[(Rto, SERVER, 400, Certain)]];
    let (beside, unsure) = (false, false);
    let spare =
        Spare { sender: SERVER, ns: ms(310), probe: Duration::ZERO, packets: [7, 8, 0], beside, unsure };
    let [pending, _, settled] = revised(Revision::CopySpare(spare), accounts).1;
    assert_eq!(pending, ["queueing path 210 Likely"]);
    assert_eq!(settled, ["queueing path 100 Likely", "rto path 300 Certain"]);
}

/// Of a wait that began before the timer, only the time after its start was the timer's.
#[test]
fn a_timer_takes_what_was_waited_for_while_it_ran() {
    let at = |n: i64| Instant::from_nanos(n * 1_000_000);
    let wait = |ended, cause, n| Suspect::of(at(ended), cause, SERVER, ms(n));
    let waits = [wait(110, SlowStart, 30), wait(200, Loss, 80)];
    let revision = Revision::TimerRan { waits: &waits, from: at(100), sender: SERVER };
    let (moved, [pending, blocked, settled]) = revised(
        revision,
        [&[(Loss, SERVER, 60, Likely)], &[(SlowStart, SERVER, 30, Likely)], &[(Loss, SERVER, 50, Likely)]],
    );
    assert_eq!(moved, 90); // 10 of the first, all of the second
    assert!(pending.is_empty());
    assert_eq!(blocked, ["slow-start server 20 Likely"]);
    assert_eq!(settled, ["loss path 30 Likely", "rto path 90 Likely"]);
}

#[test]
fn acknowledgements_that_were_held_back_are_the_receivers_too() {
    let revision = Revision::AcknowledgementsHeldBack { sender: CLIENT };
    let held: &[_] = &[(Nagle, CLIENT, 40, Likely)];
    let (_, [pending, blocked, settled]) = revised(revision, [&[], held, held]);
    assert!(pending.is_empty());
    assert_eq!((blocked, settled.clone()), (settled, vec!["nagle-delayed-ack client 40 Likely".to_owned()]));
}

#[test]
fn who_leaves_small_segments_behind_small_ones_need_not_have_been_held() {
    let revision = Revision::NoDelay { sender: CLIENT };
    let held: &[_] = &[(Nagle, CLIENT, 40, Likely), (SlowStart, CLIENT, 30, Likely)];
    let (_, [pending, blocked, settled]) =
        revised(revision, [&[], held, &[(NagleDelayedAck, CLIENT, 40, Certain)]]);
    assert!(pending.is_empty());
    assert_eq!(blocked, ["nagle client 40 Possible", "slow-start client 30 Likely"]);
    assert_eq!(settled, ["nagle-delayed-ack client 40 Possible"]);
}

#[test]
fn a_tail_that_left_whole_had_delayed_nothing() {
    let revision = Revision::TailLeftWhole { packet: 9, sender: CLIENT };
    let blocked: &[_] = &[(Nagle, CLIENT, 10, Likely), (NagleDelayedAck, CLIENT, 40, Certain)];
    let (moved, [_, blocked, settled]) = revised(revision, [&[], blocked, &[(Nagle, CLIENT, 7, Likely)]]);
    assert_eq!((moved, blocked), (50, vec!["sender-think client 50 Likely".to_owned()]));
    assert_eq!(settled, ["nagle client 7 Likely"]); // what was settled before remains
}

#[test]
fn a_writer_that_slept_was_not_held_by_nagle() {
    let tail = Tail { packet: 8, cause: NagleDelayedAck, ns: ms(40), flight: 20_000 };
    let revision = Revision::WriterSlept { tail, packet: 9, sender: SERVER };
    let (moved, [_, blocked, settled]) = revised(
        revision,
        [&[], &[(NagleDelayedAck, SERVER, 30, Likely)], &[(NagleDelayedAck, SERVER, 25, Likely)]],
    );
    assert_eq!((moved, blocked), (40, vec!["send-buffer server 40 Possible".to_owned()]));
    assert_eq!(settled, ["nagle-delayed-ack server 15 Likely"]);
}

#[test]
fn what_an_application_wrote_at_its_own_pace_nothing_had_held() {
    let revision = Revision::OwnPace { packet: 9, sender: SERVER };
    let (_, [_, blocked, settled]) =
        revised(revision, [&[], &[(SlowStart, SERVER, 30, Likely), (Nagle, SERVER, 4, Likely)], &[]]);
    assert!(blocked.is_empty());
    assert_eq!(settled, ["sender-think server 34 Likely"]);
}

#[test]
fn a_beat_was_kept_before_it_showed() {
    let pacing = Charge::new(Pacing, SERVER, ms(3), Possible);
    let revision = Revision::BeatShown { pacing: &pacing, unsure: ms(12), sender: SERVER };
    let (moved, [_, _, settled]) = revised(revision, [&[], &[], &[(SenderThink, SERVER, 20, Possible)]]);
    assert_eq!(
        (moved, settled),
        (12, vec!["pacing server 12 Possible".to_owned(), "sender-think server 8 Possible".to_owned()])
    );
}

#[test]
fn a_rate_that_shows_takes_back_what_was_not_its() {
    let revision = Revision::RateShown { cause: SlowStart, ns: ms(25), sender: SERVER };
    let (moved, [_, blocked, settled]) =
        revised(revision, [&[], &[(SlowStart, SERVER, 20, Likely)], &[(SlowStart, SERVER, 20, Likely)]]);
    assert!(blocked.is_empty());
    assert_eq!((moved, settled), (25, vec!["slow-start server 15 Likely".to_owned()]));
}

#[test]
fn flights_that_no_window_explains_are_the_send_buffers() {
    let revision = Revision::NoWindow { cause: SlowStart, ns: ms(50), packets: [1, 2, 0], sender: SERVER };
    let accounts: [&[_]; 3] = [&[], &[(SlowStart, SERVER, 20, Likely)], &[(SlowStart, SERVER, 20, Likely)]];
    let (moved, [_, blocked, settled]) = revised(revision, accounts);
    assert!(blocked.is_empty());
    assert_eq!((moved, settled), (40, vec!["send-buffer server 40 Possible".to_owned()])); // no more than there is
    let possible: &[_] = &[(SendBuffer, SERVER, 20, Possible)];
    let (_, [_, blocked, settled]) =
        revised(Revision::BufferShown { sender: SERVER }, [&[], possible, possible]);
    assert_eq!((&blocked, &settled), (&vec!["send-buffer server 20 Likely".to_owned()], &blocked));
}

#[test]
fn what_had_arrived_and_was_repaired_the_host_dropped() {
    let settled: &[_] = &[(Rto, CLIENT, 1_000, Certain), (Loss, CLIENT, 30, Certain)];
    let (_, [_, _, dropped]) =
        revised(Revision::Dropped { by: SERVER, form: Form::AcceptQueue }, [&[], &[], settled]);
    assert_eq!(dropped, ["loss server 30 Likely", "rto server 1000 Likely"]);
    let (_, [_, _, doubted]) = revised(Revision::MayBeDropped, [&[], &[], settled]);
    assert_eq!(doubted, ["loss path 30 Likely", "rto path 1000 Likely"]);
}

#[test]
fn what_is_never_acknowledged_says_so_after_three_timeouts() {
    for (timeouts, form) in [(2, Form::Timeout), (3, Form::Ignored)] {
        let mut account = Account::default();
        for packet in 0..timeouts {
            let detail = Detail { form: Some(Form::Timeout), ..Detail::default() };
            let timer = Charge::new(Rto, CLIENT, Duration::from_millis(300), Likely);
            account.charge(&timer.evidence(packet, packet + 1).detail(detail));
        }
        account.revise(Revision::Ignored { first: false });
        let forms: Vec<_> = account.clone().bill().summary().map(|line| line.detail().form).collect();
        assert_eq!(forms, [Some(form)]);
        assert_eq!(account.total(), Duration::from_millis(300 * timeouts as i64));
    }
}

#[test]
fn a_wait_for_news_is_nobodys() {
    let settled: &[_] = &[(ServerThink, SERVER, 30_000, Likely), (RoundTrip, SERVER, 10, Certain)];
    let (_, [_, _, doubted]) =
        revised(Revision::MayBeOther { server: SERVER, form: Form::OrNews }, [&[], &[], settled]);
    assert_eq!(doubted, ["round-trip path 10 Certain", "server-think server 30000 Possible"]);
    let (moved, [_, _, left]) = revised(Revision::News { server: SERVER }, [&[], &[], settled]);
    assert_eq!((moved, left), (30_000, vec!["round-trip path 10 Certain".to_owned()]));
    let many = Revision::MayBeMany { sender: SERVER, form: Form::OrPushes };
    let (_, [_, _, pushes]) = revised(many, [&[], &[], &[(SenderThink, SERVER, 500, Certain)]]);
    assert_eq!(pushes, ["sender-think server 500 Possible"]);
}

#[test]
fn a_reply_that_a_cork_held_was_not_its_server_s() {
    let settled: &[_] = &[(RoundTrip, SERVER, 4, Certain), (ServerThink, SERVER, 206, Likely)];
    let detail = Detail { form: Some(Form::WholeReply), ..Detail::default() };
    let corked = |confidence| Revision::Corked { server: SERVER, detail, confidence };
    let (_, [_, _, likely]) = revised(corked(Likely), [&[], &[], settled]);
    assert_eq!(likely, ["cork server 206 Likely", "round-trip path 4 Certain"]);
    let (_, [_, _, possible]) = revised(corked(Possible), [&[], &[], settled]);
    assert_eq!(possible, ["cork server 206 Possible", "round-trip path 4 Certain"]);
    let (_, [_, _, maybe]) =
        revised(Revision::MayBeOther { server: SERVER, form: Form::OrCork }, [&[], &[], settled]);
    assert_eq!(maybe, ["round-trip path 4 Certain", "server-think server 206 Possible"]);
}

#[test]
fn what_is_left_of_an_answer_that_stood_is_no_more_than_possibly_its_server_s() {
    let settled: &[_] = &[(RoundTrip, SERVER, 19, Certain), (ServerThink, SERVER, 273, Likely)];
    let stood = |ns| Revision::AnswerStood { server: SERVER, ns: ms(ns), packets: [1, 2] };
    let (moved, [_, _, some]) = revised(stood(200), [&[], &[], settled]);
    let left = ["queueing path 200 Likely", "round-trip path 19 Certain", "server-think server 73 Possible"];
    assert_eq!((moved, some), (200, left.map(str::to_owned).to_vec()));
    let (moved, [_, _, all]) = revised(stood(400), [&[], &[], settled]);
    assert_eq!((moved, all.len()), (273, 2));
    // Frames 46 to 60 of a small site's capture: by its time stamps it was 489 ms late, its
    // retransmission, which came with it, 200 ms.
    let settled: &[_] = &[(Queueing, SERVER, 489, Likely), (ServerThink, SERVER, 395, Likely)];
    let (moved, [_, _, told]) = revised(stood(200), [&[], &[], settled]);
    let told: Vec<_> = told.iter().map(String::as_str).collect();
    assert_eq!((moved, told), (0, vec!["queueing path 489 Likely", "server-think server 395 Likely"]));
}

#[test]
fn what_comes_together_with_what_left_before_it_is_no_more_than_possibly_its_server_s() {
    let settled: &[_] = &[(RoundTrip, SERVER, 321, Likely), (ServerThink, SERVER, 20, Likely)];
    let (_, [_, _, told]) = revised(Revision::CameTogether { server: SERVER }, [&[], &[], settled]);
    assert_eq!(told, ["round-trip path 321 Likely", "server-think server 20 Possible"]);
}

#[test]
fn round_trips_of_messages_that_set_up_tls_are_that_handshakes() {
    let (_, [_, _, settled]) =
        revised(Revision::SetUpTls { asker: CLIENT }, [&[], &[], &[(RoundTrip, CLIENT, 20, Certain)]]);
    assert_eq!(settled, ["tls-handshake client 20 Certain"]);
}

/// A stream that Nagle holds is charged and forgiven again and again.
#[test]
fn what_is_taken_back_leaves_nothing_behind() {
    let mut account = Account::default();
    let hold = |bytes, cause| {
        let detail = Detail { held_bytes: Some(bytes), ..Detail::default() };
        Charge::new(cause, Side::Client, ms(40), Likely).detail(detail)
    };
    account.charge(&hold(1, Nagle));
    for bytes in 2..1_000 {
        account.charge(&hold(bytes, NagleDelayedAck));
        account.charge(&hold(7, Cause::Cork));
        let taken = account.take_back(NagleDelayedAck, Side::Client, Duration::MAX);
        assert_eq!((taken, account.open().details.len()), (ms(40), 2));
        account.rename(Nagle, NagleDelayedAck, Side::Client);
        account.rename(NagleDelayedAck, Nagle, Side::Client);
    }
    let mut held = |cause| account.bill().summary().find(|line| line.cause() == cause)?.detail().held_bytes;
    assert_eq!([held(Nagle), held(Cause::Cork)], [Some(1), Some(7)]);
}
