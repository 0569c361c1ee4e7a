//! What was the time before a reply's first byte spent on: the way, the server, or what it did not say?
//!
//! Proof: nothing else is left of the wait from the request's last byte, less one round trip.
//! Refuted by: packets that are missing, a repair, a queue on either way, or replies that were corked as a whole and left
//! with the timer, each on its tick. A reply that only comes as late as a timer is the server's: that is what replies are
//! late for.
//! Source: arithmetic; what it excludes has its source in the file of that rule.
//! Seen from: both ends; certain near the server, near the client no more than likely where the path varies.

use std::ops::Range;

use tcpwhy_wire::{Duration, Instant, Segment};

use super::pair::Pair;
use super::verdict::Verdict;
use super::{black_hole, cork, late_answer, not_captured, on_its_way, repair, round_trip};
use crate::bill::charge::Charge;
use crate::bill::exchange::Open;
use crate::bill::split::Split;
use crate::estimate::rate::Rate;
use crate::estimate::timer_hits::is_of_timer;
use crate::flow::direction::Flow;
use crate::flow::ends::{CLIENT, SERVER, side};
use crate::flow::segment_class::{LastData, SegmentClass};
use crate::words::cause::Cause;
use crate::words::form::Form;
use crate::words::limits::{
    BESIDE, DELAYED_ACK_MAX, DELAYED_ACK_MIN, HELD_BACK_MIN, HOST_VARIATION, NEAR_MAX, NEWS_MIN, QUEUED_MIN,
    ROUND_TRIP_PLAY, RTO_MIN,
};
use crate::words::report::{Confidence, Detail, Trigger};

/// From here on it is no more than likely that somebody waited, and no timer of a cork's runs for so long. Source: none written down.
const TIMEOUT_MIN: Duration = Duration::from_secs(10);
/// Whoever reacts takes a tenth of the time that the other end takes to ask again, or less.
const REACTS: i64 = 10;
/// Who takes longer than this to ask again may have answered first. Source: none written down.
const ASKS_AGAIN_MIN: Duration = Duration::from_secs(1);
/// A server that speaks first and takes longer may have nothing to say to somebody who waits.
const GREETS_MAX: Duration = Duration::from_millis(200);
/// A timer of acknowledgements runs for longer than its least by this at most (4 ms to a tick). Source: HZ, arch/x86/Kconfig, Linux 6.12.
const DELAYED_ACK_PLAY: Duration = Duration::from_millis(4);
/// What hosts hold acknowledgements back for: Linux and Windows of today, the BSDs, older ones (TCP_DELACK_MIN and TCP_DELACK_MAX, include/net/tcp.h, Linux 6.12;
/// net.inet.tcp.delacktime, FreeBSD). Source of the play: none written down.
const TIMERS: [Range<Duration>; 3] = [
    Duration::from_millis(36)..Duration::from_millis(60),
    Duration::from_millis(95)..Duration::from_millis(112),
    Duration::from_millis(185)..Duration::MAX,
];
/// What comes together had waited together ...
pub(crate) const TOGETHER: Duration = Duration::from_millis(1);
/// ... or with no more than one part in so many of the wait between, behind which there is no timer of acknowledgements ...
const TOGETHER_SHARE: i64 = 4;
/// ... or may be one. Source: none written down.
const TOGETHER_SHARE_TIMED: i64 = 64;
/// What answers a part of a question of so many segments at most had waited for that. Source: none written down.
const PART_SEGMENTS: u64 = 4;
/// Two ways one after the other take twice as long as one, but for one part in so many of it. Source: none written down.
const TWICE_SHARE: i64 = 16;
/// A path whose packets were late by this much varies.
pub(crate) const VARIED_MIN: Duration = Duration::from_millis(1);

/// The interval from the last request byte to the first reply byte: a round trip and the server's own time.
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
    // A retransmission that the reply cannot have answered had repaired nothing.
    let spurious = is_spurious(rtt_to_server, open, segment);
    let from = if spurious { request.last.as_ref() } else { request.frontier() };
    let Some(from) = from else {
        return Verdict { split: Split::of(Duration::ZERO), trigger: Trigger::Write };
    };
    let flow = &pair.flows[server];
    let client = &pair.flows[open.initiator];
    let since = if from_beginning { open.start } else { from.at };
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
        // What is left is the server's anyway where it is much longer than that.
        let long = split.left() >= way.ns.times(3);
        behind = behind.min(if long { Confidence::Likely } else { way.confidence });
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

/// The way of a question and its answer, which took `wait`, and what stood on it.
fn way(pair: &Pair<'_>, open: &Open, segment: &Segment, wait: Duration) -> (Charge, Option<Charge>) {
    let server = 1 - open.initiator;
    let (mut path, stood) = round_trip::of_path(pair, server, pair.flows[server].side);
    if stood.is_none() && !pair.shown[server] && wait - path.ns >= HELD_BACK_MIN {
        late_answer::bound_path(pair, open, segment, wait, &mut path);
    }
    (path, stood)
}

/// What a client's answer to what the server had asked took: the way, and the client's own time.
pub(crate) fn of_client(pair: &Pair<'_>, wait: Duration, [asked, answer]: [u64; 2]) -> Split {
    let mut split = Split::of(wait);
    let (path, stood) = round_trip::of_path(pair, CLIENT, side(CLIENT));
    for charge in [Some(path), stood].into_iter().flatten() {
        split.take(charge.evidence(asked, answer));
    }
    let own = Charge::new(Cause::ServerThink, side(CLIENT), Duration::ZERO, Confidence::Likely);
    split.rest(own.evidence(asked, answer))
}

/// What of the wait behind the request was lost, late on its way, or the link's. `from` is the packet that the reply answers.
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
        || repair::came_too_soon(segment, class, rtt_to_server) && !flow.left_behind(segment, mss);
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
        if let Some(lost) = answered_unseen(open, client, class, from) {
            split.take(lost.evidence(from.packet, segment.packet));
        }
    }
    // Near the client, the request's last flight had to pass the bottleneck behind the capture.
    let busy = client.unusual.busy_from(from.at);
    if rtt_to_server > pair.tap_rtt[open.initiator] && busy.is_positive() {
        let detail = Detail { rate_bps: client.rate(true).map(Rate::bits_per_second), ..Detail::default() };
        split.take(
            Charge::new(Cause::Bandwidth, client.side, busy, Confidence::Likely)
                .evidence(from.packet, segment.packet)
                .detail(detail),
        );
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

/// What passed until its server was heard behind an answer that had not come, while the question was sent again: the path lost what was asked, answered
/// or acknowledged meanwhile.
#[cold]
#[inline(never)]
fn answered_unseen(open: &Open, asked: &Flow, class: SegmentClass, from: &LastData) -> Option<Charge> {
    let SegmentClass::OutOfOrderOrRepair { noticed_at } = class else { return None };
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

/// What of the wait acknowledgements show to have been the path's. Returns how sure what is left can be at most.
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
    let mut behind = Confidence::Certain;
    if let Some(late) = late {
        split.take(late.evidence(from.packet, segment.packet));
        split.temper(); // nor is it certain how long the way was then
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

/// The server's own time, `left` of the wait, and how sure that is: `behind` at most.
fn own_time(pair: &Pair<'_>, open: &Open, segment: &Segment, left: Duration, behind: Confidence) -> Charge {
    let server = 1 - open.initiator;
    let flow = &pair.flows[server];
    let rtt_to_server = pair.tap_rtt[server];
    let rtt = rtt_to_server + pair.tap_rtt[open.initiator];
    // Of a request of several segments a slow link behind the capture may have taken a part.
    let short = open.request_bytes <= u64::from(pair.sizes[open.initiator]) || pair.flows[server].on_one_host;
    // A clock of milliseconds shows no distance below one of them.
    let shown = pair.fine || rtt.is_positive();
    let near = shown && (rtt_to_server.times(BESIDE) <= rtt || (rtt_to_server < NEAR_MAX && short));
    let model = &pair.models[server];
    let small = segment.payload_len < pair.sizes[server];
    let slow = left >= RTO_MIN;
    // What the server's kernel measured before the capture began is not known, and how long its timer runs.
    let unknown = slow && pair.midway && model.quick_replies == 0;
    let or_cork = small && (unknown || is_of_timer(left, flow.rto.rto(), true));
    // A packet that is missing before it may be the first copy, or an acknowledgement that held it.
    let missed = flow.missed_since_data > 0 && slow;
    // Where a path has lost a SYN-ACK, a wait as long as the timer that follows from that may be for a copy.
    let repeated = flow.rto.is_untimed() && is_of_timer(left, flow.rto.rto(), true);
    // Near the client, a request that was late on its way looks like a server that took longer.
    let varied = rtt_to_server > pair.tap_rtt[open.initiator]
        && pair.flows.iter().any(|flow| flow.queued_peak >= left.max(VARIED_MIN));
    let surest = if pair.dialogue { Confidence::Possible } else { surest(pair, open, left) };
    let lately = answers_late(pair, open, segment);
    // Whose acknowledgement never came before its answer was hardly ever so late: the way may be, unless it is within one host.
    let far = (pair.bound[server] || pair.is_ambiguous(server)) && !flow.on_one_host;
    let late = far && left >= DELAYED_ACK_MIN && !had_arrived_before(pair, open, segment, left);
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
    let confidence = match (missed || repeated || late, near && !or_cork) {
        (true, _) => Confidence::Possible,
        // Without the handshake nothing tells whether whoever acknowledges is as far away as whoever answers (`proxy`).
        (false, true) if !pair.shown[server] => Confidence::Likely,
        (false, true) => Confidence::Certain,
        (false, false) => Confidence::Likely,
    };
    // The same tick twice is chance in one case of ten, and a reply that is corked as a whole is rare.
    let by_timer = or_cork && cork::may_be_on_tick(pair, server, cork::late_reply(pair, open, segment, left));
    let most = if by_timer { Confidence::Possible } else { most };
    let confidence = confidence.min(most).min(behind);
    let mut think = Charge::new(Cause::ServerThink, flow.side, Duration::ZERO, confidence);
    // A cork's timer is never doubled (tcp_check_probe_timer, include/net/tcp.h), as one behind a packet that was lost is.
    let held = or_cork && left < TIMEOUT_MIN;
    if held || missed && left < NEWS_MIN {
        think = think.detail(Detail { form: Some(Form::OrCork), ..Detail::default() });
    } else if surest == Confidence::Possible {
        think = think.detail(Detail { form: Some(Form::OrNews), ..Detail::default() });
    }
    think
}

/// Whether an answer that came too soon behind the last part of its question for the way behind whoever acknowledges may answer the first one.
fn answers_first_part(pair: &Pair<'_>, open: &Open, segment: &Segment) -> bool {
    open.request.index > 0 && pair.way_beyond(1 - open.initiator, segment.at - open.passed).is_some()
}

/// Whether the `wait` for the answer to a question of several segments was just twice the way behind whoever acknowledges: what carries the question there may have
/// held a part of it back for a round, or lost it.
fn goes_twice(pair: &Pair<'_>, open: &Open, wait: Duration) -> bool {
    let long = open.request_bytes > u64::from(pair.sizes[open.initiator]);
    pair.beyond.filter(|_| long).is_some_and(|way| {
        let apart = wait - way.opened().times(2);
        apart.max(-apart) <= way.opened().divided_by(TWICE_SHARE)
    })
}

/// Whether the question's acknowledgement came by itself and, `left` of the wait being over, shortly before the answer: it had not waited for
/// that. The question had just arrived, or both stood on the way back.
fn had_just_arrived(pair: &Pair<'_>, open: &Open, segment: &Segment, left: Duration) -> bool {
    let [to_server, to_client] = [pair.tap_rtt[1 - open.initiator], pair.tap_rtt[open.initiator]];
    if to_server <= TOGETHER.max(to_client) || left < HELD_BACK_MIN {
        return false;
    }
    let timer = DELAYED_ACK_MIN - DELAYED_ACK_PLAY..DELAYED_ACK_MIN + DELAYED_ACK_PLAY;
    let together = if left >= timer.end {
        TOGETHER.max(left.divided_by(TOGETHER_SHARE_TIMED))
    } else if left < timer.start && open.request_bytes <= u64::from(pair.sizes[open.initiator]) {
        left.divided_by(TOGETHER_SHARE)
    } else {
        return false;
    };
    // Of what is longer, something is acknowledged all the time.
    let asked = &pair.flows[open.initiator];
    let few = open.request_bytes <= PART_SEGMENTS * u64::from(pair.sizes[open.initiator]);
    (few || asked.snd_nxt == Some(segment.ack)) && asked.was_acked_together(segment, together)
}

/// Whether the question was acknowledged later than any host that has it holds that back: it or the acknowledgement was late on its way.
#[cold]
#[inline(never)]
fn was_acked_too_late(pair: &Pair<'_>, open: &Open, segment: &Segment) -> bool {
    let Some(last) = open.request.last else { return false };
    pair.acked_by_itself(open, segment)
        .is_some_and(|acked| is_acked_late(pair, acked - last.at - HELD_BACK_MIN))
}

/// What of `left` a question spent on its way that was acknowledged later than any host that has it holds that back, or its acknowledgement did. One
/// that came by itself leaves the server what passed behind it, one that came with the answer to a question that was sent again what a timer of
/// acknowledgements runs. Where that was sent once, a timer may run for longer than those known.
#[cold]
#[inline(never)]
fn acknowledged_late(
    pair: &Pair<'_>,
    open: &Open,
    segment: &Segment,
    from: &LastData,
    left: Duration,
) -> Option<Charge> {
    let server = 1 - open.initiator;
    let asked = &pair.flows[open.initiator];
    let far = pair.is_far(server);
    // What a copy has caused may be the second one; so may be what comes behind a packet that is missing.
    if !far || open.request.was_acked_late() || !on_its_way::is_whole(&pair.flows[server]) {
        return None;
    }
    // One that counts by now was sent again all the same.
    let copied = asked.acked_just_now() && open.request.is_copy(from.packet);
    let (acked, own) = match pair.acked_by_itself(open, segment) {
        Some(acked) => (acked - HELD_BACK_MIN, segment.at - acked),
        None if open.request.repaired_at().is_some() || copied => (segment.at, DELAYED_ACK_MAX),
        None => return None,
    };
    let detail = Detail { form: Some(Form::Unacknowledged), ..Detail::default() };
    let late = Charge::new(Cause::Queueing, asked.side, left - own, Confidence::Possible).detail(detail);
    (left > own && is_acked_late(pair, acked - from.at)).then_some(late)
}

/// The same where it came by itself, later than the quickest ones and when no host's timer runs out: the host that sent it had not waited, so that it
/// or the question had, and the server took no more than what passed behind it. A host's timer that runs all the time may end at any moment.
#[cold]
#[inline(never)]
fn acknowledged_before_any_timer(
    pair: &Pair<'_>,
    open: &Open,
    segment: &Segment,
    from: &LastData,
    left: Duration,
) -> Option<Charge> {
    let server = 1 - open.initiator;
    let asked = &pair.flows[open.initiator];
    let far = pair.is_far(server);
    // Of a second write a program that reads late lets the acknowledgement go (ICSK_ACK_PUSHED2, tcp_cleanup_rbuf, net/ipv4/tcp.c, Linux 6.12). What is
    // longer than a segment is acknowledged as it comes (__tcp_ack_snd_check, net/ipv4/tcp_input.c).
    let long = open.request_bytes > u64::from(pair.sizes[open.initiator]);
    let one_write = open.request.index == 0 || long;
    // What is shorter is not asked for where packets are usual.
    if left < HELD_BACK_MIN || !far || !one_write || pair.bound[server] || pair.beyond.is_some() {
        return None;
    }
    // A word behind the question, which HTTP/2 has, is acknowledged for itself.
    let is_last = asked.last_data.is_some_and(|last| last.packet == from.packet);
    let whole = is_last && on_its_way::is_whole(&pair.flows[server]) && open.request.repaired_at().is_none();
    let acked = pair.acked_by_itself(open, segment).filter(|_| whole)?;
    let held = acked - from.at - pair.tap_rtt[server];
    let by_timer = TIMERS.iter().any(|timer| timer.contains(&held));
    // One that came with what the server said is that program's; and by its stamps the server may have taken longer than what passed here behind the
    // acknowledgement, which was late itself.
    let with_data = pair.flows[server].last_data.is_some_and(|last| last.at == acked);
    let own = late_answer::own_time(pair, open, segment).unwrap_or_default().max(segment.at - acked);
    let late = left - own;
    let detail = Detail { form: Some(Form::Unacknowledged), ..Detail::default() };
    (!by_timer && !with_data && late >= QUEUED_MIN)
        .then(|| Charge::new(Cause::Queueing, asked.side, late, Confidence::Possible).detail(detail))
}

/// What of `left` a question stood on its way of which copies left meanwhile: none of these had arrived when an acknowledgement passed that ends
/// within them, or one of them had stood as well by that which says that it had arrived.
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

/// Whether the question's acknowledgement came by itself, and not together with the answer: how long that was on its way, or held back, says nothing
/// of what followed.
#[cold]
#[inline(never)]
fn had_arrived_before(pair: &Pair<'_>, open: &Open, segment: &Segment, left: Duration) -> bool {
    pair.acked_by_itself(open, segment).is_some_and(|acked| (segment.at - acked).times(TOGETHER_SHARE) > left)
}

/// Whether the answer echoes a stamp that nothing of its asker's in the capture has: the question, or its copy, left later than is known.
#[cold]
#[inline(never)]
fn answers_unseen(pair: &Pair<'_>, open: &Open, segment: &Segment) -> bool {
    let clock = &pair.flows[open.initiator].clock;
    segment.options.timestamps.is_some_and(|stamps| clock.is_unseen(stamps.ecr))
}

/// How sure it can be that somebody waited all that time for an answer: it may have been news, or the initiator's message an
/// answer to what its peer had asked, which took its time to ask again.
fn surest(pair: &Pair<'_>, open: &Open, wait: Duration) -> Confidence {
    let reacted = open.client_idle.times(REACTS) <= wait && open.n > 1;
    let greets = open.request_bytes == 0 && wait >= GREETS_MAX;
    // It may be the other end that asks, and takes its time.
    let turned = pair.heard_first && reacted && wait >= HELD_BACK_MIN;
    if wait >= NEWS_MIN || turned {
        Confidence::Possible
    } else if greets || wait >= TIMEOUT_MIN || (wait >= ASKS_AGAIN_MIN && reacted) {
        Confidence::Likely
    } else {
        Confidence::Certain
    }
}

/// Whether a request that went out again was acknowledged much later than the copy that arrived can have reached a host: that acknowledges
/// within its timer, whatever its program does. The path held what was sent or the acknowledgement (a spurious timeout, RFC 3522), or lost
/// another copy (Karn's ambiguity).
pub(crate) fn answers_late(pair: &Pair<'_>, open: &Open, segment: &Segment) -> bool {
    if open.request.was_acked_late() {
        return true;
    }
    let Some(repaired) = open.request.repaired_at() else { return false };
    let asked = &pair.flows[open.initiator];
    let known = asked.view.clocking_ack().map(|ack| ack.earliest_departure).filter(|&at| at > repaired);
    let acked = asked.acked_in_transit(repaired).or(known).unwrap_or(segment.at);
    let echoed = segment.options.timestamps.map(|stamps| stamps.ecr);
    let first = echoed.is_some_and(|echoed| open.request.answered_before_repair(echoed));
    let from = open.request.last.filter(|_| first).map_or(repaired, |last| last.at);
    is_acked_late(pair, acked - from)
}

/// Whether an acknowledgement `since` what it acknowledges is later than a host sends one, whatever its program does.
pub(crate) fn is_acked_late(pair: &Pair<'_>, since: Duration) -> bool {
    since > pair.tap_rtt[CLIENT] + pair.tap_rtt[SERVER] + DELAYED_ACK_MAX
}

/// Whether the last of a request that went out again cannot be what the peer reacted to with `segment`: it came sooner
/// than that can have reached the peer, as far as the way there is known, and does not echo its time stamp.
pub(crate) fn is_spurious(rtt_to_server: Duration, open: &Open, segment: &Segment) -> bool {
    let echoed = segment.options.timestamps.is_some_and(|stamps| open.request.answers_repair(stamps.ecr));
    let too_late = |at| segment.at - at < rtt_to_server - rtt_to_server.divided_by(ROUND_TRIP_PLAY);
    !echoed && open.request.repaired_at().is_some_and(too_late)
}
