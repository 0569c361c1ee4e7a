//! How long did the handshake take, and was a SYN or a SYN-ACK lost?
//!
//! Proof: retransmitted SYNs or SYN-ACKs, the time stamp that the SYN-ACK echoes, or a SYN-ACK
//! later than the round trip by a SYN's timer.
//! Refuted by: later round trips as long as the handshake's: then the path is that long.
//! Source: RFC 6298, 2 (1 s) and RFC 1122, 4.2.3.1 (3 s); TCP_TIMEOUT_INIT, include/net/tcp.h,
//! Linux since 3.1; RFC 7323, 3.2 (TSecr).
//! Seen from: both ends; near the server, a SYN lost before the capture leaves no trace.

use tcpwhy_wire::{Duration, Instant};

use crate::bill::account::Account;
use crate::bill::charge::Charge;
use crate::bill::split::Split;
use crate::flow::handshake::Setup;
use crate::words::cause::{Cause, Side};
use crate::words::form::Form;
use crate::words::limits::{DELAYED_ACK_MAX, NEAR_MAX, QUEUED_MIN, ROUND_TRIP_PLAY, RTO_MIN};
use crate::words::report::{Confidence, Detail};

/// When a SYN was refused, and by which packet.
type Reset = Option<(Instant, u64)>;
/// How late the only SYN-ACK was, with a confidence.
type Late = Option<(Duration, Confidence)>;

/// A queue is at least one part in this many of the path, as elsewhere (`rules/round_trip.rs`).
/// Source: none written down.
const QUEUE_SHARE: i64 = 4;
/// A handshake longer than the path's round trip by this, and by 1/`LONGER_SHARE` of it, is not
/// certain to be all path. Source: none written down.
const LONGER_MIN: Duration = Duration::from_millis(2);
const LONGER_SHARE: i64 = 16;
/// After this long, only a timer repeats a SYN or SYN-ACK (TCP_TIMEOUT_INIT, 1 s since Linux 3.1).
pub(crate) const LOST_AFTER: Duration = Duration::from_millis(900);

/// The initial timers of SYNs: 1 s (RFC 6298), 3 s before (RFC 1122, 4.2.3.1).
const SYN_TIMERS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3)];
/// A server beside the capture answers a SYN within this. Source: none written down.
const ANSWERED_WITHIN: Duration = Duration::from_millis(10);
/// How much earlier or later SYN timers seem to fire. Source: none written down; the wheel's eighth
/// of a second (kernel/time/timer.c).
const SYN_TIMER_PLAY: Duration = Duration::from_millis(120);

/// The round trip to the server: at most its `quickest` reaction since, if the handshake of one SYN
/// took a SYN's timer longer. Then it answered a SYN that is missing from the capture.
pub(crate) fn round_trip(setup: &Setup, known: Duration, quickest: Duration) -> Duration {
    if is_of_copy(setup, quickest) { known.min(quickest) } else { known }
}

/// Whether the only SYN-ACK came a SYN's timer later than the round trip to the server: it was a
/// retransmission, or answered a SYN that is missing from the capture, and measures no round trip
/// (Karn; RFC 6298, 3).
#[inline]
pub(crate) fn is_of_copy(setup: &Setup, way: Duration) -> bool {
    let Some(took) = setup.opened() else { return false };
    let lost = |timer: Duration| (took - way - timer).max(timer + way - took) <= SYN_TIMER_PLAY;
    SYN_TIMERS.into_iter().any(lost)
}

/// Whether a SYN-ACK that answers the only SYN, or the first of several, may be the second or a
/// later one of its server: it comes one of the server's timers after that SYN, or a round trip
/// after the last SYN. Sooner, or at other times, it is the first one, and nothing was lost.
fn is_repeated(setup: &Setup, syn_ack_at: Instant, server: Duration) -> bool {
    let excess = syn_ack_at - setup.first_syn.0 - server;
    let again = setup.last_syn().0 - setup.first_syn.0;
    excess >= LOST_AFTER && (near(excess, again) || is_of_server_timer(excess))
}

fn near(excess: Duration, when: Duration) -> bool {
    (excess - when).max(when - excess) <= SYN_TIMER_PLAY
}

/// Whether a server retransmits its SYN-ACK this long after the first one.
fn is_of_server_timer(excess: Duration) -> bool {
    // Each further timer is twice as long (RFC 6298, 5.5).
    let timers = |copies: i64| SYN_TIMERS.map(|timer| timer.times((1 << copies) - 1));
    (1..=3).flat_map(timers).any(|timer| near(excess, timer))
}

/// The delay on the path of the SYN-ACK behind the last of several SYNs: the part of `excess`, its time
/// above the round trip, after that one. No timer of the server fits, and only the last SYN may have
/// triggered a retransmission; or the SYN-ACK answers the last SYN, sooner than a lost one is sent again.
#[cold]
fn stood_behind_the_last(setup: &Setup, excess: Duration) -> Duration {
    let above = excess - (setup.last_syn().0 - setup.first_syn.0);
    let first = setup.is_first_answered() && !is_of_server_timer(excess);
    let stood = first || setup.is_last_answered() && above < LOST_AFTER;
    if stood && above >= QUEUED_MIN { above } else { Duration::ZERO }
}

/// How certain it is that a host's timer sent the copies: no timer is shorter, but a path or a
/// capture may duplicate a packet sooner.
fn surest(waited: Duration) -> Confidence {
    if waited >= LOST_AFTER { Confidence::Certain } else { Confidence::Likely }
}

/// Bills a client that has no SYN-ACK: until its last SYN, or a `reset` that answers one of them.
fn bill_syns(setup: &Setup, reset: Option<(Instant, u64)>, account: &mut Account) {
    let unheard = setup.is_asked_again();
    let form = match (setup.done, unheard) {
        (true, _) => Form::Syn,
        (false, true) => Form::SynAck,
        (false, false) => Form::Unanswered,
    };
    let detail = Detail { retransmits: Some(setup.syn_count() - 1), form: Some(form), ..Detail::default() };
    // A reset as late as a timer answers none of the SYNs; an earlier one answers the last.
    let (late, soon) = match reset {
        Some((at, _)) if at - setup.last_syn().0 < LOST_AFTER => (None, reset),
        _ => (reset, None),
    };
    let (until, packet) = late.unwrap_or(setup.last_syn());
    let waited = until - setup.first_syn.0;
    // Without a SYN-ACK nothing shows whether the path lost a SYN or the host dropped it. SYNs repeated faster than
    // any timer had another reason: a refusal, or a new start of the program.
    let soon_again =
        setup.last_syn().0 - setup.first_syn.0 < LOST_AFTER.times(i64::from(setup.syn_count()) - 1);
    // A host that numbers its packets gives each copy a number of its own (RFC 6864, 4.1): a capture that was replayed, or a program that
    // sends packets as they are, waits for no answer.
    let doubtful = soon_again || unheard || setup.came_as_it_was();
    let sure = if doubtful { Confidence::Possible } else { Confidence::Likely };
    let charge = Charge::new(Cause::SynRetransmit, Side::Client, waited, sure);
    account.charge(&charge.evidence(setup.first_syn.1, packet).detail(detail));
    if let Some((at, packet)) = soon {
        let way = Charge::new(Cause::Handshake, Side::Client, at - setup.last_syn().0, Confidence::Likely);
        account.charge(&way.evidence(setup.last_syn().1, packet));
    }
}

/// What was lost of a handshake that took `excess` longer than the round trips to `client` and
/// `server`.
#[cold]
fn lost(setup: &Setup, excess: Duration, server: Duration, client: Duration) -> Charge {
    // A loss that the echoed time stamp shows is certain; so is the excess over the round trip, if
    // that is known.
    let shown = setup.answered().map_or(Duration::ZERO, |at| at - setup.first_syn.0);
    let repeats = setup.syn_count() > 1 || setup.syn_ack_count() > 1;
    let syn_ack_at = setup.awaited_syn_ack().map_or(setup.first_syn.0, |(at, _)| at);
    let repeated = setup.first_syn_ack().map_or(Duration::ZERO, |at| syn_ack_at - at);
    let lost = shown.max(repeated).max(excess);
    // The timer of a client beside the capture runs before the server's does, and its copy would have passed.
    let early = !repeats && client < NEAR_MAX;
    let sure = if early { Confidence::Possible } else { Confidence::Likely };
    let sure = if repeats { surest(lost) } else { sure };
    // With the path's length unknown, the SYN-ACK may answer the first SYN, whose timer was too
    // short.
    let between = setup.last_syn().0 - setup.first_syn.0;
    let may_answer_first = setup.syn_count() > 1
        && !shown.max(repeated).max(server).is_positive()
        && syn_ack_at - setup.last_syn().0 > client + ANSWERED_WITHIN;
    let (lost, sure) = if may_answer_first { (between, Confidence::Possible) } else { (lost, sure) };
    let form = if setup.syn_count() > 1 && shown.is_positive() { Form::Syn } else { Form::SynAck };
    // Only a capture beside the server can tell whether the path lost a SYN or the server dropped
    // it.
    let untold = setup.answered().is_none() && setup.syn_count() > 1;
    // Nor is it told whether the SYN-ACK that echoes the first one was lost, and sent again behind the second, or stood.
    let by_syn = form == Form::Syn || untold;
    let by_copy = setup.syn_ack_count() > 1 && !setup.is_copy_taken();
    let doubtful = by_syn || by_copy || setup.is_first_answered();
    let sure = if doubtful { sure.min(Confidence::Likely) } else { sure };
    // The answer to the last copy would have come a round trip after it: the path to the client, or the client
    // itself, stood, and the first SYN-ACK may have stood there.
    let stood = setup.ended_after().is_some_and(|after| after - client >= RTO_MIN.max(client));
    let sure = if by_copy && stood { Confidence::Possible } else { sure };
    // It came sooner than the second SYN can have been answered, and a timer of the server's have run, on the path that is known.
    let too_soon = syn_ack_at - setup.last_syn().0 < server && excess < SYN_TIMERS[0];
    let sure = if too_soon && setup.is_first_answered() { Confidence::Possible } else { sure };
    let detail = Detail {
        retransmits: Some(
            setup.syn_count().saturating_sub(1).max(setup.syn_ack_count().saturating_sub(1)).max(1),
        ),
        form: Some(form),
        ..Detail::default()
    };
    Charge::new(Cause::SynRetransmit, Side::Client, lost, sure)
        .evidence(setup.first_syn.1, setup.last_syn().1)
        .detail(detail)
}

/// The charge for a handshake without retransmissions, losses or delays: `ns` from the SYN until
/// the SYN-ACK reached the client.
#[inline]
pub(crate) fn usual(ns: Duration, sure: Confidence, [syn, syn_ack]: [u64; 2]) -> Charge {
    Charge::new(Cause::Handshake, Side::Client, ns, sure).evidence(syn, syn_ack)
}

/// What a handshake within one host took: a filter, a full backlog or a busy processor kept its SYN; or what
/// it took by the capture's clock alone.
pub(crate) fn within_host(ns: Duration) -> Charge {
    Charge::new(Cause::Unexplained, Side::Unknown, ns, Confidence::Possible)
}

/// Whether a handshake that `took` this long is not certain to be all path, given the known round
/// trip `way`.
#[inline]
pub(crate) fn is_longer(took: Duration, way: Duration) -> bool {
    way.is_positive() && took - way >= LONGER_MIN.max(way.divided_by(LONGER_SHARE))
}

/// The least queueing, on top of a round trip of this length, that shows in a handshake.
pub(crate) fn least_queue(way: Duration) -> Duration {
    QUEUED_MIN.max(way.divided_by(QUEUE_SHARE))
}

/// The round trip to the client, its confidence, and by how much the ACK of a retransmitted SYN-ACK came
/// later than that. The client took the SYN-ACK before a retransmission reached it: either one of the two
/// was delayed on the path, or the first ACK was lost and another one answers a retransmission. If no
/// later round trip is known, all of the time may be the path's. The same of an only SYN-ACK whose ACK left late
/// by the client's time stamps.
fn taken_late(setup: &Setup, client: Duration, sure: Confidence) -> (Duration, Confidence, Charge) {
    let late = Charge::new(Cause::Queueing, Side::Client, Duration::ZERO, Confidence::Possible);
    let Some(after) = setup.taken_after() else { return (client, sure, late) };
    let above = (after - client).at_least_zero();
    // No timer of the client's explains what is above the longest of them.
    if setup.is_left_late() && (above < DELAYED_ACK_MAX || !client.is_positive()) {
        return (client, sure, late);
    }
    let copy = setup.copy_behind(above).filter(|_| above >= LOST_AFTER);
    if let Some(retransmits) = copy {
        let detail = Detail { retransmits: Some(retransmits), form: Some(Form::SynAck), ..Detail::default() };
        let lost = Charge { cause: Cause::SynRetransmit, ns: above, ..late };
        (client, sure.min(Confidence::Likely), lost.detail(detail))
    } else if client.is_positive() && (client < after || setup.is_taken_behind_a_timer()) {
        (client, sure.min(Confidence::Likely), Charge { ns: above, ..late })
    } else {
        (after.max(client), Confidence::Possible, late)
    }
}

/// Draws up the bill: from the first SYN until the SYN-ACK reaches the client. `client` and `server` are the round
/// trips between the capture and the ends, of which queues took what `stood`, and `late` is what they kept the only SYN-ACK for; how far away the client is
/// may be no more than likely, and the server may be nearer than its answers say.
#[inline]
pub(crate) fn bill(
    (setup, reset, late): (&Setup, Reset, Late),
    (client, sure_of_client): (Duration, Confidence),
    (server, sure_of_server): (Duration, bool),
    stood: [Option<Charge>; 2],
    account: &mut Account,
) {
    account.clear();
    let answered = setup.awaited_syn_ack().filter(|_| !setup.is_asked_again());
    let Some((syn_ack_at, syn_ack)) = answered else {
        return bill_syns(setup, reset, account);
    };
    if setup.clock_stood {
        let waited = within_host(syn_ack_at - setup.first_syn.0 + client);
        return account.charge(&waited.evidence(setup.first_syn.1, syn_ack));
    }
    let (client, sure_of_client, late_behind) = taken_late(setup, client, sure_of_client);
    let waited = syn_ack_at - setup.first_syn.0 + client + late_behind.ns;
    let mut split = Split::of(waited);
    split.take(late_behind.evidence(setup.first_syn.1, syn_ack));
    let took = syn_ack_at - setup.first_syn.0;
    let server = if sure_of_server || took > server { server } else { Duration::ZERO }; // known from this answer alone
    let excess = took - server;
    let repeats = setup.syn_count() > 1 || setup.syn_ack_count() > 1;
    // Without retransmissions, only the other end's timer can show a loss.
    let no_copies = !repeats && excess >= LOST_AFTER;
    let stood_all = (setup.is_first_answered() || no_copies)
        && server.is_positive()
        && !is_repeated(setup, syn_ack_at, server);
    // The excess above the round trip to the server is billed once.
    let mut above = true;
    if stood_all && excess.is_positive() {
        let likely = sure_of_server && excess < LOST_AFTER;
        let sure = if likely { Confidence::Likely } else { Confidence::Possible };
        let late = Charge::new(Cause::Queueing, Side::Client, excess, sure);
        split.take(late.evidence(setup.first_syn.1, syn_ack));
    } else if late.is_none_or(|_| !repeats) && (repeats && !stood_all || excess >= LOST_AFTER) {
        let lost = lost(setup, excess, server, client);
        let stood = if server.is_positive() { stood_behind_the_last(setup, excess) } else { Duration::ZERO };
        split.take(Charge { ns: lost.ns - stood, ..lost });
        let late = Charge::new(Cause::Queueing, Side::Client, stood, Confidence::Possible);
        split.take(late.evidence(setup.last_syn().1, syn_ack));
    } else if let Some((late, sure)) = late {
        let late = Charge::new(Cause::Queueing, Side::Client, late, sure);
        split.take(late.evidence(setup.first_syn.1, syn_ack));
    } else {
        above = false;
    }
    let [by_client, by_server] = stood;
    let by_server = by_server.filter(|_| !above);
    // On a path that varies, the queueing is an estimate against the least known.
    let varies = by_server.is_some();
    for charge in by_client.into_iter().chain(by_server) {
        split.take(charge.evidence(setup.first_syn.1, syn_ack));
    }
    // A forwarding host may take its time for the first packet: the excess over the known path is
    // not certain to be path.
    let longer = is_longer(split.left() - client, server);
    // Nor is the time from a retransmitted SYN to its answer, the less so if nothing else shows the
    // path's length.
    let untold = repeats && !server.is_positive();
    let late = late.is_some_and(|(_, sure)| sure == Confidence::Possible);
    let sure = sure_of_client.min(surest_path(split.left(), untold, repeats || longer || varies || late));
    let handshake = Charge::new(Cause::Handshake, Side::Client, Duration::ZERO, sure)
        .evidence(setup.first_syn.1, syn_ack);
    account.charge_split(&split.rest(handshake));
}

/// How certain it can be that `left` is the path: `untold` if nothing else shows its length.
fn surest_path(left: Duration, untold: bool, doubtful: bool) -> Confidence {
    if untold && left >= LOST_AFTER {
        Confidence::Possible
    } else if doubtful {
        Confidence::Likely
    } else {
        Confidence::Certain
    }
}

/// The time from the client's first ACK of a SYN-ACK, at `since`, to its answer to the last SYN-ACK
/// that the server's timer retransmitted before the server spoke at `until`: the server had no ACK
/// before that. The path lost the ACKs, or the server's host dropped them. The round trips are
/// those to the client and to the server.
#[cold]
pub(crate) fn taken_in_vain(
    setup: &Setup,
    [client, server]: [Duration; 2],
    since: Instant,
    until: Instant,
) -> Option<Charge> {
    let ((copy, packet), retransmits) = setup.copied_when_done()?;
    let (opened, first) = setup.last_syn_ack()?;
    let taken = copy + client;
    // Nor was an ACK under way meanwhile, or the answer to an earlier one.
    let arrived = copy - opened > client + server;
    let heard = until - taken >= server - server.divided_by(ROUND_TRIP_PLAY);
    let detail = Detail { retransmits: Some(retransmits), form: Some(Form::SynAck), ..Detail::default() };
    let lost = Charge::new(Cause::SynRetransmit, Side::Client, taken - since, Confidence::Possible);
    (taken > since && arrived && heard).then(|| lost.evidence(first, packet).detail(detail))
}
