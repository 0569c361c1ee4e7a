//! What was the time before a reply's first byte spent on: the path, the server, or something uncaptured?
//!
//! Proof: nothing else explains the wait from the request's last byte, less one round trip.
//! Refuted by: missing packets, a retransmission, a queue in either direction, or replies corked as a whole
//! that left on the timer, each on its tick. A single reply as late as a timer is billed to the server, the
//! usual reason for late replies.
//! Source: arithmetic; the sources of what it excludes are in the files of those rules.
//! Seen from: both ends; certain near the server, at most likely near the client if the path varies.

use tcpwhy_wire::{Duration, Instant, Segment};

use super::late_request::{
    acknowledged_before_any_timer, acknowledged_late, answers_late, had_arrived_before, had_just_arrived,
    was_acked_too_late,
};
use super::pair::Pair;
use super::verdict::Verdict;
use super::{
    black_hole, cork, late_answer, link_share, not_captured, on_its_way, repair, round_trip, unseen_copy,
};
use crate::bill::charge::Charge;
use crate::bill::exchange::Open;
use crate::bill::split::Split;
use crate::estimate::own_time::is_round;
use crate::estimate::rate::Rate;
use crate::estimate::timer_hits::is_of_timer;
use crate::flow::direction::Flow;
use crate::flow::ends::{CLIENT, side};
use crate::flow::segment_class::{LastData, SegmentClass};
use crate::words::cause::Cause;
use crate::words::form::Form;
use crate::words::limits::{
    BESIDE, DELAYED_ACK_MAX, DELAYED_ACK_MIN, HELD_BACK_MIN, HOST_VARIATION, NEAR_MAX, NEWS_MIN, QUEUED_MIN,
    ROUND_TRIP_PLAY, RTO_MIN,
};
use crate::words::report::{Confidence, Detail, Trigger};

/// From here on it is at most likely that somebody waited, and no cork's timer runs this long. Source:
/// none written down.
const TIMEOUT_MIN: Duration = Duration::from_secs(10);
/// An end that reacts takes at most a tenth of the other end's time to ask again.
const REACTS: i64 = 10;
/// A client that takes longer than this to ask again may have answered first. Source: none written down.
const ASKS_AGAIN_MIN: Duration = Duration::from_secs(1);
/// A server that speaks first and takes longer may have had nothing to say to somebody who waits.
const GREETS_MAX: Duration = Duration::from_millis(200);
/// Two round trips take twice as long as one, within one part in this many of it. Source: none written
/// down.
const TWICE_SHARE: i64 = 16;
/// A path whose packets were late by this much varies.
pub(crate) const VARIED_MIN: Duration = Duration::from_millis(1);

/// A path that has held packets up for this part of it may have held them up for all of it. Source: none written down.
const VARIED_SHARE: i64 = 2;

/// What comes within one part in this many of what a path varies by from when all does is as late as that. Source: none written down.
const USUAL_SHARE: i64 = 8;

/// How late packets of a path have been that may have been late by so much.
#[inline]
pub(crate) fn varies_from(late: Duration) -> Duration {
    late.divided_by(VARIED_SHARE).max(VARIED_MIN)
}

/// By then Linux has acknowledged what it does not answer: its shortest timer, the half of it by which segments that come
/// more slowly prolong it (tcp_event_data_recv, net/ipv4/tcp_input.c), and a tick of 100 Hz.
const ACKNOWLEDGED_BY: Duration = Duration::from_millis(70);
/// By then Windows has, whose timer is 200 ms, and a tick late; and any host (RFC 1122, 4.2.3.2), whether it has been seen to acknowledge or not.
const WINDOWS_ACKNOWLEDGED_BY: Duration = Duration::from_millis(220);
const ALL_ACKNOWLEDGED_BY: Duration = Duration::from_millis(500);
/// What Linux, BSD and macOS begin with; Windows, which may wait for 200 ms, begins with twice as much.
const UNIX_TTL: u8 = 64;

/// Splits the interval from the last request byte to the first reply byte: a round trip and the server's
/// own time.
pub(crate) fn judge(
    pair: &Pair<'_>,
    open: &Open,
    segment: &Segment,
    class: SegmentClass,
    from_beginning: bool,
) -> Verdict {
    let server = 1 - open.initiator;
    let request = &open.request;
    let rtt_to_server = pair.tap_rtt[server];
    // A retransmission that the reply cannot have answered repaired nothing.
    let spurious = is_spurious(rtt_to_server, open, segment);
    let from = if spurious { request.last.as_ref() } else { request.frontier() };
    let Some(from) = from else {
        return Verdict { split: Split::of(Duration::ZERO), trigger: Trigger::Write };
    };
    let flow = &pair.flows[server];
    let client = &pair.flows[open.initiator];
    let since = if from_beginning { open.start } else { from.at };
    // What was answered is cited, and not what was sent meanwhile.
    let from = &LastData { packet: if from_beginning { open.packets[0] } else { from.packet }, ..*from };
    let mut split = Split::of(segment.at - since);
    let (path, stood) = way(pair, open, segment, split.left());
    split.take(path.evidence(from.packet, segment.packet));
    if let Some(stood) = stood {
        split.take(stood.evidence(from.packet, segment.packet));
    }
    if client.acked_unseen() || flow.not_captured(segment) {
        // The request ended, or the reply began, with packets that are missing from the capture.
        let charge = not_captured::charge(flow.side).evidence(from.packet, segment.packet);
        return Verdict { split: split.rest(charge), trigger: Trigger::Packet(from.packet) };
    }
    take_what_was_late(pair, open, segment, class, from, &mut split);
    let mut behind = take_what_was_acknowledged_late(pair, open, segment, from, &mut split);
    if let Some(way) = pair.way_beyond(server, split.left()) {
        // What is much longer is mostly the server's anyway. Otherwise it may hold another such round trip, unseen from here.
        let long = split.left() >= way.ns.times(3);
        let again = split.left() >= way.ns.times(2) - way.ns.divided_by(TWICE_SHARE);
        let known = if again { Confidence::Possible } else { way.confidence };
        behind = behind.min(if long { Confidence::Likely } else { known });
        split.take(way.evidence(from.packet, segment.packet));
        if goes_twice(pair, open, segment.at - from.at) {
            behind = Confidence::Possible;
        }
    } else if answers_first_part(pair, open, segment) {
        behind = Confidence::Possible;
    }
    if segment.payload_len < pair.sizes[server]
        && cork::on_tick(pair, server, cork::late_reply(pair, open, segment, split.left()))
    {
        let charge = cork::alone(flow, segment.payload_len);
        return Verdict {
            split: split.rest(charge.evidence(from.packet, segment.packet)),
            trigger: Trigger::Timer,
        };
    }
    let think = own_time(pair, open, segment, split.left(), behind).evidence(from.packet, segment.packet);
    Verdict { split: split.rest(think), trigger: Trigger::Packet(from.packet) }
}

/// The round trip of a request and its answer, which took `wait`, and the queueing in it.
fn way(pair: &Pair<'_>, open: &Open, segment: &Segment, wait: Duration) -> (Charge, Option<Charge>) {
    let server = 1 - open.initiator;
    let (mut path, stood) = round_trip::of_path(pair, server, pair.flows[server].side);
    if stood.is_none() && wait - path.ns >= HELD_BACK_MIN {
        late_answer::bound_path(pair, open, segment, wait, &mut path);
    }
    (path, stood)
}

/// The time of a client's answer to a server's request: the round trip, and the client's own time.
pub(crate) fn of_client(pair: &Pair<'_>, wait: Duration, [asked, answer]: [u64; 2]) -> Split {
    let mut split = Split::of(wait);
    let (path, stood) = round_trip::of_path(pair, CLIENT, side(CLIENT));
    for charge in [Some(path), stood].into_iter().flatten() {
        split.take(charge.evidence(asked, answer));
    }
    let own = Charge::new(Cause::ServerThink, side(CLIENT), Duration::ZERO, Confidence::Likely);
    split.rest(own.evidence(asked, answer))
}

/// Takes off the part of the wait that went into losses, delays on the path or the link. `from` is the
/// packet that the reply answers.
fn take_what_was_late(
    pair: &Pair<'_>,
    open: &Open,
    segment: &Segment,
    class: SegmentClass,
    from: &LastData,
    split: &mut Split,
) {
    let server = 1 - open.initiator;
    let (flow, client) = (&pair.flows[server], &pair.flows[open.initiator]);
    let rtt_to_server = pair.tap_rtt[server];
    let rtt = rtt_to_server + pair.tap_rtt[open.initiator];
    let mss = pair.sizes[server];
    let left_before = flow.left_before(segment, mss);
    let overtaken = left_before
        || repair::came_too_soon(segment, class, rtt_to_server)
            && !flow.left_behind(segment, mss)
            && !flow.is_next(segment, mss);
    let usual = if left_before { Duration::MAX } else { rtt_to_server.divided_by(4) };
    if overtaken && let Some(late) = behind_its_gap(flow, segment, class, split.left(), usual) {
        split.take(late.evidence(from.packet, segment.packet));
    }
    let class = if overtaken { SegmentClass::New } else { class };
    if let Some(mut charge) =
        repair::first_reply(flow, client, (class, segment, mss), split.left(), rtt_to_server, rtt)
    {
        if charge.cause == Cause::Rto
            && !pair.midway
            && black_hole::is_first_small(flow, segment, pair.sizes[server])
            && let Some(detail) = &mut charge.detail
        {
            detail.form = Some(black_hole::FORM);
        }
        split.take(charge.evidence(from.packet, segment.packet));
        if let Some(lost) = answered_unseen(open, [client, flow], class, from) {
            split.take(lost.evidence(from.packet, segment.packet));
        }
    }
    if HELD_BACK_MIN <= split.left()
        && let Some(lost) = unseen_copy::of_answer(pair, open, segment, split.left())
    {
        split.take(lost.evidence(from.packet, segment.packet));
    }
    if let Some(drains) = of_the_link(pair, open, from) {
        split.take(drains.evidence(from.packet, segment.packet));
    }
    if let Some(late) = late_answer::judge(pair, open, segment, split.left()) {
        split.take(late.evidence(from.packet, segment.packet));
    }
    if let Some(late) = on_its_way::judge(pair, open, split.left()) {
        split.take(late.evidence(from.packet, segment.packet));
    }
    if split.left() >= HELD_BACK_MIN
        && let Some(late) = on_its_way::left_together(pair, open, segment, split.left())
    {
        split.take(late.evidence(from.packet, segment.packet));
    }
}

/// Near the client, the request's last flight still had to pass the bottleneck after the capture. The clock of an answer tells what that
/// waited; a queue of its own would be billed twice.
#[inline]
fn of_the_link(pair: &Pair<'_>, open: &Open, from: &LastData) -> Option<Charge> {
    let (server, asker) = (1 - open.initiator, open.initiator);
    let busy = pair.flows[asker].unusual.busy_from(from.at);
    if pair.tap_rtt[server] <= pair.tap_rtt[asker] || !busy.is_positive() {
        return None;
    }
    let drains = drains(&pair.flows[asker], from, busy, pair.sizes[asker]);
    (drains.cause == Cause::Bandwidth || pair.flows[server].queued_on_way.get().is_none()).then_some(drains)
}

/// The time for which the link was busy with the end of a request, as long as it needs that for what was under way, at a rate that has shown.
/// Acknowledgements that come later, and all at once, waited on their way, or what they acknowledge did.
fn drains(client: &Flow, from: &LastData, busy: Duration, mss: u32) -> Charge {
    let rate = client.rate(true);
    let flight = client.on_wire(from.flight, from.flight_segments.into(), mss);
    let shown = !link_share::has_a_guessed_rate(client);
    let needed = rate.is_some_and(|rate| !link_share::exceeds(busy, rate, flight));
    if !needed && busy > QUEUED_MIN {
        return Charge::new(Cause::Queueing, client.side, busy, Confidence::Possible);
    }
    let detail = Detail { rate_bps: rate.map(Rate::bits_per_second), ..Detail::default() };
    let sure = if shown { Confidence::Likely } else { Confidence::Possible };
    Charge::new(Cause::Bandwidth, client.side, busy, sure).detail(detail)
}

/// The time until a packet from beyond an unseen answer shows that the server had answered, while the
/// request was retransmitted: the path lost the request, the answer or an acknowledgement meanwhile.
#[cold]
#[inline(never)]
fn answered_unseen(
    open: &Open,
    [asked, answers]: [&Flow; 2],
    class: SegmentClass,
    from: &LastData,
) -> Option<Charge> {
    let noticed_at = match class {
        SegmentClass::OutOfOrderOrRepair { noticed_at } => noticed_at,
        // What comes first lies behind the answer, which is still missing.
        _ => answers.unheard_since()?,
    };
    let copied = open.request.has_copies() || open.request.was_acked_late();
    let detail = Detail { form: Some(Form::Timeout), ..Detail::default() };
    let lost = Charge::new(Cause::Rto, asked.side, noticed_at - from.at, Confidence::Possible);
    copied.then(|| lost.detail(detail))
}

/// What of `left` an answer was on its way that others overtook: it had left when the first of these passed, whose number is beyond it. Where an
/// acknowledgement by itself is all that is beyond it, no signal of the receiver's was needed: what comes later than packets `usual`ly overtake one
/// another (a quarter of a round trip: RFC 8985, 6.2) may be the copy of a timer that had begun before.
#[cold]
#[inline(never)]
fn behind_its_gap(
    flow: &Flow,
    segment: &Segment,
    class: SegmentClass,
    left: Duration,
    usual: Duration,
) -> Option<Charge> {
    let SegmentClass::OutOfOrderOrRepair { noticed_at } = class else { return None };
    let late = (segment.at - noticed_at).min(left);
    let is_last = flow.snd_nxt == Some(segment.seq + segment.payload_len);
    let (cause, form, confidence) = if is_last && late > usual {
        (Cause::Rto, Form::Timeout, Confidence::Possible)
    } else {
        (Cause::Queueing, Form::Reordered, Confidence::Likely)
    };
    let detail = Detail { form: Some(form), ..Detail::default() };
    (late > HOST_VARIATION).then(|| Charge::new(cause, flow.side, late, confidence).detail(detail))
}

/// Takes off the part of the wait that acknowledgements show to be the path's. Returns the highest
/// confidence that the rest can have.
fn take_what_was_acknowledged_late(
    pair: &Pair<'_>,
    open: &Open,
    segment: &Segment,
    from: &LastData,
    split: &mut Split,
) -> Confidence {
    let stood = open.request.on_its_way_until().filter(|(until, _)| *until > from.at);
    let late = if let Some((until, sure)) = stood {
        stood_until(&pair.flows[open.initiator], segment, (until, sure), split.left())
    } else if split.left() > DELAYED_ACK_MAX {
        acknowledged_late(pair, open, segment, from, split.left())
    } else {
        None
    };
    let mut behind = late_answer::surest_of_rest(&pair.flows[1 - open.initiator], split);
    if let Some(late) = late {
        split.take(late.evidence(from.packet, segment.packet));
        split.temper(); // nor is it certain how long the path was then
        let told = late_answer::is_told(pair, open, segment, split.left());
        behind = if told { Confidence::Likely } else { Confidence::Possible };
    }
    if let Some(until) = open.request.passed_again(from.at) {
        let asked = &pair.flows[open.initiator];
        if let Some(late) = stood_until(asked, segment, (until, Confidence::Likely), split.left()) {
            split.take(late.evidence(from.packet, segment.packet));
            behind = behind.min(Confidence::Likely);
        }
    }
    if let Some(late) = acknowledged_before_any_timer(pair, open, segment, from, split.left()) {
        split.take(late.evidence(from.packet, segment.packet));
    }
    behind
}

/// The server's own time, `left` of the wait, with a confidence of at most `behind`.
fn own_time(pair: &Pair<'_>, open: &Open, segment: &Segment, left: Duration, behind: Confidence) -> Charge {
    let server = 1 - open.initiator;
    let flow = &pair.flows[server];
    let rtt_to_server = pair.tap_rtt[server];
    let rtt = rtt_to_server + pair.tap_rtt[open.initiator];
    // A slow link after the capture may have taken part of a request of several segments.
    let short = open.request_bytes <= u64::from(pair.sizes[open.initiator]) || pair.flows[server].on_one_host;
    // A clock of milliseconds shows no distance below one of them.
    let shown = pair.fine || rtt.is_positive();
    let near = shown && (rtt_to_server.times(BESIDE) <= rtt || (rtt_to_server < NEAR_MAX && short));
    let model = &pair.models[server];
    let small = segment.payload_len < pair.sizes[server];
    let slow = left >= RTO_MIN;
    // What the server's kernel measured before the capture began, and so its timer, is unknown.
    let unknown = slow && pair.midway && model.quick_replies == 0;
    let or_cork = small && (unknown || is_of_timer(left, flow.rto.rto(), true));
    // A packet missing before the reply may be its first transmission, or an acknowledgement.
    let missed = slow && (flow.missed_since_data > 0 || pair.is_far(server) && flow.skipped_numbers(segment));
    // If a SYN-ACK was lost, a wait as long as the timer set by that loss may be for a retransmission.
    let repeated = flow.rto.is_untimed() && is_of_timer(left, flow.rto.rto(), true);
    // Near the client, a request delayed on its way looks like a slow server.
    let varied = rtt_to_server > pair.tap_rtt[open.initiator]
        && (pair.flows.iter().any(|flow| flow.queued_peak >= varies_from(left))
            || has_varied(pair, open, segment, left));
    let surest = if pair.dialogue { Confidence::Possible } else { surest(pair, open, segment, left) };
    let lately = answers_late(pair, open, segment);
    // An end that never acknowledged before answering was hardly ever that late: the delay may be the
    // path's, unless it is within one host.
    let far = (pair.bound[server] || pair.is_ambiguous(server)) && !flow.on_one_host;
    let late = far && left >= DELAYED_ACK_MIN
        || left >= ACKNOWLEDGED_BY && had_acknowledged(pair, open, segment, left);
    let late = late && !had_arrived_before(pair, open, segment, left);
    let late = late || had_just_arrived(pair, open, segment, left);
    let late = late || on_its_way::came_first(pair, open, left);
    let late = late || slow && was_acked_too_late(pair, open, segment);
    let told = (varied || late || lately) && late_answer::is_told(pair, open, segment, left);
    let most = if lately && !told { Confidence::Possible } else { surest };
    let (late, behind) =
        if told { (false, behind.min(Confidence::Likely)) } else { (varied || late, behind) };
    let late = late || slow && answers_unseen(pair, open, segment);
    let late = late
        || flow.seems_late(segment.at).is_some_and(|queued| queued >= left.divided_by(2).max(VARIED_MIN));
    // What an answer took that left with its request's acknowledgement is at most a tick, of unknown length.
    let timeless = segment.options.timestamps.is_some() && flow.queued_on_way.get().is_none();
    let late = late || timeless && late_answer::apart_with_one_stamp(pair, open, segment).is_some();
    let confidence = match (missed || repeated || late, near && !or_cork) {
        (true, _) => Confidence::Possible,
        // Without the handshake, nothing tells whether the host that acknowledges is as far away as the
        // one that answers (`proxy`).
        (false, true) if !pair.shown[server] => Confidence::Likely,
        (false, true) => Confidence::Certain,
        (false, false) => Confidence::Likely,
    };
    // The same tick twice is chance once in ten cases, and a reply corked as a whole is rare.
    let by_timer = or_cork && cork::may_be_on_tick(pair, server, cork::late_reply(pair, open, segment, left));
    let most = if by_timer { Confidence::Possible } else { most };
    let confidence = confidence.min(most).min(behind);
    let mut think = Charge::new(Cause::ServerThink, flow.side, Duration::ZERO, confidence);
    // A cork's timer is never doubled (tcp_check_probe_timer, include/net/tcp.h); one after a lost
    // packet is.
    let held = or_cork && left < TIMEOUT_MIN;
    if held || missed && left < NEWS_MIN {
        let form = if missed && left < NEWS_MIN { Form::OrLost } else { Form::OrCork };
        think = think.detail(Detail { form: Some(form), ..Detail::default() });
    } else if surest == Confidence::Possible {
        think = think.detail(Detail { form: Some(Form::OrNews), ..Detail::default() });
    }
    think
}

/// Whether acknowledgements, which no program delays, have lately been as late as an answer that came `left` late, or half of it. One of its request
/// that came by itself, well before the answer, shows that the path was not so long then. What comes as late as all does keeps a host's time, not that
/// of a path that varies.
fn has_varied(pair: &Pair<'_>, open: &Open, segment: &Segment, left: Duration) -> bool {
    let (server, asker) = (1 - open.initiator, open.initiator);
    let varied = pair.path_memory.varied_lately(server, pair.now, pair.tap_rtt[server]);
    let took = open.request.last.map(|asked| segment.at - asked.at + pair.tap_rtt[asker]).unwrap_or_default();
    let usual = |smoothed: Duration| (smoothed - took).max(took - smoothed) <= varied.divided_by(USUAL_SHARE);
    let in_time = |acked| segment.at - acked > left.divided_by(VARIED_SHARE);
    left >= VARIED_MIN
        && varied >= varies_from(left)
        && !pair.acked_by_itself(open, segment).is_some_and(in_time)
        && !pair.flows[asker].rto.settled().is_some_and(usual)
}

/// Whether a server beyond a LAN would have acknowledged by itself what it takes `left` to answer.
fn had_acknowledged(pair: &Pair<'_>, open: &Open, segment: &Segment, left: Duration) -> bool {
    // The SYN-ACK is one.
    let seen = pair.flows[open.initiator].acked_bare > 1;
    let by_any = left >= WINDOWS_ACKNOWLEDGED_BY;
    let soon = seen && (segment.ttl <= UNIX_TTL || by_any);
    (soon || left >= ALL_ACKNOWLEDGED_BY) && pair.is_beyond_lan(1 - open.initiator)
}

/// Whether an answer too soon after the last piece of its request, given the path beyond the host that
/// acknowledges, may answer the first piece.
fn answers_first_part(pair: &Pair<'_>, open: &Open, segment: &Segment) -> bool {
    open.request.index > 0 && pair.way_beyond(1 - open.initiator, segment.at - open.passed).is_some()
}

/// Whether the `wait` for the answer to a request of several segments was just two round trips of the
/// path beyond the host that acknowledges: that host may have sent a part of it one round later.
fn goes_twice(pair: &Pair<'_>, open: &Open, wait: Duration) -> bool {
    let long = open.request_bytes > u64::from(pair.sizes[open.initiator]);
    pair.beyond.filter(|_| long).is_some_and(|way| {
        let apart = wait - way.opened().times(2);
        apart.max(-apart) <= way.opened().divided_by(TWICE_SHARE)
    })
}

/// The part of `left` for which a request was delayed on its way while retransmissions left: none of
/// these had arrived when an acknowledgement passed that ends within them, or one of them was delayed as
/// well, by whatever says that it had arrived.
#[cold]
#[inline(never)]
fn stood_until(
    asked: &Flow,
    segment: &Segment,
    (until, sure): (Instant, Confidence),
    left: Duration,
) -> Option<Charge> {
    let ns = left - (segment.at - until);
    ns.is_positive().then(|| Charge::new(Cause::Queueing, asked.side, ns, sure))
}

/// Whether the answer echoes a time stamp that no captured packet of the requester carries: the request,
/// or its retransmission, left later than is known.
#[cold]
#[inline(never)]
fn answers_unseen(pair: &Pair<'_>, open: &Open, segment: &Segment) -> bool {
    let clock = &pair.flows[open.initiator].clock;
    segment.options.timestamps.is_some_and(|stamps| clock.is_unseen(stamps.ecr))
}

/// How certain it can be that somebody waited all that time for an answer: it may have been news, or the
/// initiator's message may have answered its peer, which then took its time to ask again.
fn surest(pair: &Pair<'_>, open: &Open, segment: &Segment, wait: Duration) -> Confidence {
    let reacted = open.client_idle.times(REACTS) <= wait && open.n > 1;
    let greets = open.request_bytes == 0 && wait >= GREETS_MAX;
    // The other end may be the one that asks, and takes its time.
    let turned = pair.heard_first && reacted && wait >= HELD_BACK_MIN;
    // So may a server that spoke first, of a client that does more than react.
    let either = pair.greeted && !reacted && open.n > 1 && wait >= HELD_BACK_MIN;
    let beats = || open.request.index > 0 && wait >= HELD_BACK_MIN && may_be_beat(pair, open, segment, wait);
    if wait >= NEWS_MIN || turned || pair.released || beats() {
        Confidence::Possible
    } else if greets || either || wait >= TIMEOUT_MIN || (wait >= ASKS_AGAIN_MIN && reacted) {
        Confidence::Likely
    } else {
        Confidence::Certain
    }
}

/// Whether an answer may be its server's next word on a timer: as long as the last one, and a round time after it. The earlier pieces of the request,
/// which were acknowledged by then, need no answer either.
#[cold]
#[inline(never)]
fn may_be_beat(pair: &Pair<'_>, open: &Open, segment: &Segment, wait: Duration) -> bool {
    let alone = open.request.last.as_ref().is_some_and(|asked| asked.flight <= asked.len);
    let last = pair.flows[1 - open.initiator].last_data.as_ref();
    let beats = |last: &LastData| last.len == segment.payload_len && is_round(segment.at - last.at, wait);
    alone && last.is_some_and(beats)
}

/// Whether the last retransmission of a request cannot be what the peer reacted to with `segment`: that
/// came before the retransmission can have reached the peer, as far as the path is known, and does not
/// echo its time stamp.
pub(crate) fn is_spurious(rtt_to_server: Duration, open: &Open, segment: &Segment) -> bool {
    let echoed = segment.options.timestamps.is_some_and(|stamps| open.request.answers_repair(stamps.ecr));
    let too_late = |at| segment.at - at < rtt_to_server - rtt_to_server.divided_by(ROUND_TRIP_PLAY);
    !echoed && open.request.repaired_at().is_some_and(too_late)
}
