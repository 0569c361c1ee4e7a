//! Who said what to whom, and which exchange does it belong to?
//!
//! A connection takes its segments in order of capture, keeps the state of both directions, draws up the bill of the
//! exchange under way, and hands each finished one to the ledger.

use tcpwhy_wire::{Duration, Endpoint, Instant, Segment, Seq};

use crate::account::{Account, Charge, Split};
use crate::cause::{Cause, Side};
use crate::exchange::{Open, last_data};
use crate::half::{Half, LastData, Order, Queue};
use crate::ledger::{Closed, Ledger};
use crate::mechanism::{self, BURST_GAP, HELD_BACK_MIN, Habits, Verdict, Wait, nagle, repair};
use crate::report::{Confidence, Detail, Kind, Rung, Trigger, Vantage};
use crate::setup::Setup;

pub(crate) const CLIENT: usize = 0;
pub(crate) const SERVER: usize = 1;

/// Silence in the middle of a message, with everything acknowledged and pushed, after which the next bytes are a
/// message of their own (a push, the next item of a stream).
const NEW_MESSAGE_AFTER: Duration = Duration::from_secs(1);
/// A sender that paused this often and never got a word back is streaming messages.
const STREAM_AFTER_PAUSES: u8 = 32;
const STREAM_PAUSE_MIN: Duration = Duration::from_millis(20);

/// One connection while it is open.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub id: u64,
    /// Index of the server's service in the ledger.
    pub service: usize,
    /// Client, server.
    pub ends: [Endpoint; 2],
    pub assumed: bool,
    pub halves: [Half; 2],
    habits: [Habits; 2],
    /// Smallest round trip seen between the capture and each end.
    pub delay: [Option<Duration>; 2],
    setup: Option<Setup>,
    setup_billed: bool,
    open: Option<Box<Open>>,
    spare: Option<Box<Open>>,
    next_n: u64,
    last_felt_end: Option<Instant>,
    pauses: u8,
    pub now: Instant,
    pub packets: u64,
    pub packet_range: [u64; 2],
    pub closed: bool,
    pub ladder: Option<Vec<Rung>>,
}

impl Connection {
    pub(crate) fn new(id: u64, service: usize, ends: [Endpoint; 2], first: &Segment, ladder: bool) -> Self {
        Self {
            id,
            service,
            ends,
            assumed: !first.flags.syn(),
            halves: [Half::new(Side::Client), Half::new(Side::Server)],
            habits: [Habits::default(), Habits::default()],
            delay: [None; 2],
            setup: None,
            setup_billed: false,
            open: None,
            spare: None,
            next_n: 0,
            last_felt_end: None,
            pauses: 0,
            now: first.at,
            packets: 0,
            packet_range: [first.packet; 2],
            closed: false,
            ladder: ladder.then(Vec::new),
        }
    }

    /// The round trip between the capture and one end; nothing where nothing shows it yet.
    fn delay(&self, end: usize) -> Duration {
        self.delay[end].unwrap_or(Duration::ZERO)
    }

    pub(crate) fn rtt_min(&self) -> Option<Duration> {
        Some(self.delay[CLIENT]? + self.delay[SERVER]?)
    }

    fn mss(&self, sender: usize) -> u32 {
        self.halves[sender].mss(self.halves[1 - sender].mss_announced)
    }

    pub(crate) fn vantage(&self) -> Vantage {
        let (client, server) = match self.delay {
            [Some(client), Some(server)] => (client, server),
            _ => return Vantage::Unknown,
        };
        let on_one_host = self.ends[CLIENT].addr == self.ends[SERVER].addr;
        if on_one_host || client + server < Duration::from_micros(100) {
            Vantage::Unknown
        } else if client.times(9) <= server {
            Vantage::Client
        } else if server.times(9) <= client {
            Vantage::Server
        } else {
            Vantage::Middle
        }
    }

    /// Whether this segment starts another connection between the same ends: a SYN with another sequence number.
    pub(crate) fn is_other_incarnation(&self, segment: &Segment, from: usize) -> bool {
        if !segment.flags.syn() || segment.flags.ack() {
            return false;
        }
        let half = &self.halves[from];
        match half.first {
            Some(first) => segment.seq + 1 != first,
            None => half.snd_nxt.is_some() || self.packets > 0,
        }
    }

    /// Takes the next segment, in order of capture.
    pub(crate) fn on_segment(&mut self, segment: &Segment, from: usize, ledger: &mut Ledger) {
        // Time does not run backwards inside a connection, whatever the capture's clock did.
        self.now = self.now.max(segment.at);
        let segment = &Segment { at: self.now, ..*segment };
        self.packets += 1;
        self.packet_range[1] = segment.packet;
        let mss = self.mss(from);
        self.halves[from].on_packet(segment, mss);
        if segment.flags.rst() {
            self.rung(segment, from, Trigger::Control, None);
            self.close(None, ledger);
            self.closed = true;
            return;
        }
        if segment.flags.syn() {
            self.on_syn(segment, from);
        }
        if segment.flags.ack() {
            self.on_ack(segment, from);
        }
        if segment.payload_len > 0 {
            self.on_data(segment, from, ledger);
        } else {
            if !segment.flags.syn() {
                self.halves[from].on_pure(segment);
            }
            self.rung(segment, from, Trigger::Control, None);
        }
        if segment.flags.fin() {
            self.halves[from].on_control(segment);
        }
    }

    fn on_syn(&mut self, segment: &Segment, from: usize) {
        let half = &mut self.halves[from];
        half.mss_announced = segment.options.mss.or(Some(536)); // RFC 9293, 3.7.1: the default without the option
        half.window_scale = segment.options.window_scale;
        half.timestamps = segment.options.timestamps.is_some();
        half.first = Some(segment.seq + 1);
        half.on_control(segment);
        match (&mut self.setup, segment.flags.ack()) {
            (None, false) if from == CLIENT => self.setup = Some(Setup::new(segment)),
            (Some(setup), false) if from == CLIENT => setup.on_syn(segment),
            (Some(setup), true) if from == SERVER => setup.on_syn_ack(segment),
            _ => {}
        }
        let unscaled = self.halves.each_ref().map(|half| half.window_scale.is_none());
        if segment.flags.ack() {
            self.halves[CLIENT].peer_unscaled = unscaled[CLIENT] || unscaled[SERVER];
            self.halves[SERVER].peer_unscaled = unscaled[CLIENT] || unscaled[SERVER];
        }
    }

    /// The window in bytes that a segment from `from` advertises.
    fn window(&self, segment: &Segment, from: usize) -> u32 {
        let scale = match (self.halves[CLIENT].window_scale, self.halves[SERVER].window_scale) {
            _ if segment.flags.syn() => 0,
            (Some(_), Some(_)) => self.halves[from].window_scale.unwrap_or(0).min(14),
            _ if self.halves.iter().all(|half| half.mss_announced.is_some()) => 0,
            // Without the handshake the scale is unknown: only a closed window means what it says.
            _ if segment.window == 0 => 0,
            _ => 14,
        };
        u32::from(segment.window) << scale
    }

    fn on_ack(&mut self, segment: &Segment, from: usize) {
        let to = 1 - from;
        let window = self.window(segment, from);
        let mss = self.mss(to);
        let spurious =
            segment.options.sack().first().is_some_and(|block| block.end.at_or_before(segment.ack));
        if !segment.flags.syn()
            && let Some(setup) =
                self.setup.as_mut().filter(|setup| from == CLIENT && setup.last_syn_ack.is_some())
        {
            setup.done = true;
        }
        let rtt = self.halves[to].on_ack(segment, window, mss);
        if let Some(rtt) = rtt {
            // An end that is seen to answer within `rtt` is at most that far away.
            let known = &mut self.delay[from];
            *known = Some(known.map_or(rtt, |known| known.min(rtt)));
            let own = self.delay(to);
            self.halves[to].rto.on_sample(rtt + own);
        }
        let all_acked = self.halves[to].outstanding() == 0;
        if let Some(open) = &mut self.open {
            if spurious {
                // D-SACK (RFC 2883): what was sent again had arrived before.
                if to == open.initiator { &mut open.request } else { &mut open.reply }.discard();
            }
            if all_acked && open.last_speaker() == to && open.acked_at.is_none() {
                open.acked_at = Some(segment.at);
            }
        }
    }

    fn on_data(&mut self, segment: &Segment, from: usize, ledger: &mut Ledger) {
        let mss = self.mss(from);
        let own = self.delay(from);
        self.halves[from].learn(segment.at, own, mss);
        let order = self.halves[from].order(segment);
        if matches!(order, Order::Duplicate | Order::Probe) {
            self.halves[from].on_data(segment, order, mss);
            self.rung(segment, from, Trigger::Timer, None);
            return;
        }
        if matches!(order, Order::Retransmission { .. } | Order::HoleFill { .. }) {
            self.habits[from].rounds.on_loss();
        }
        if self.starts_message(segment, from, order) {
            self.close(Some(segment), ledger);
            self.begin(segment, from, order);
        }
        let verdict = self.bill(segment, from, order, mss);
        let new_bytes = u64::from(self.halves[from].on_data(segment, order, mss));
        let last = last_data(&self.halves[from], segment);
        if let Some(open) = &mut self.open {
            open.packets[1] = segment.packet;
            open.acked_at = None;
            if from == open.initiator {
                open.request_end = Some(segment.seq + segment.payload_len);
                open.request_bytes += new_bytes;
            } else {
                open.reply_bytes += new_bytes;
            }
        }
        self.extend(segment, from, order, last, &verdict);
        self.rung(segment, from, verdict.trigger, Some(&verdict.split));
    }

    /// Whether new bytes begin something of their own instead of continuing what is under way.
    fn starts_message(&mut self, segment: &Segment, from: usize, order: Order) -> bool {
        let Some(open) = &self.open else { return order == Order::New };
        match order {
            Order::New => {}
            // Beyond all that this message has sent: the first copy was lost before the capture saw it.
            Order::HoleFill { .. }
                if from == open.initiator
                    && open.request_end.is_none_or(|end| segment.seq.at_or_after(end)) => {}
            _ => return false,
        }
        if from != open.initiator {
            // The peer of a message answers it; a client that speaks after the server's push starts its own.
            return open.reply_first.is_none() && open.initiator == SERVER;
        }
        if let Some(reply_first) = open.reply_first {
            // It had seen some of the reply. Bytes sent before that belong to the request turn.
            return segment.flags.ack() && segment.ack.after(reply_first);
        }
        self.is_next_of_stream(segment, from)
    }

    /// Whether the sender of a message without an answer is streaming, and this is the stream's next item.
    fn is_next_of_stream(&mut self, segment: &Segment, from: usize) -> bool {
        let half = &self.halves[from];
        let Some(last) = half.last_data else { return false };
        let quiet = segment.at - last.at;
        let emptied = last.queue != Queue::More && half.flight() == 0 && half.missed_since_data == 0;
        if !emptied || quiet < STREAM_PAUSE_MIN.max(self.delay(CLIENT) + self.delay(SERVER)) {
            return false;
        }
        if self.halves[1 - from].bytes == 0 {
            self.pauses = self.pauses.saturating_add(1);
        }
        self.pauses >= STREAM_AFTER_PAUSES || quiet >= NEW_MESSAGE_AFTER
    }

    fn begin(&mut self, segment: &Segment, from: usize, order: Order) {
        let mut open = self.spare.take().unwrap_or_else(|| Box::new(Open::new()));
        let at = self.now;
        if self.next_n == 0 && self.setup.is_some() {
            self.next_n = 1; // 0 is the setup
        }
        let greeting = from == SERVER && self.halves[CLIENT].bytes == 0 && self.halves[SERVER].bytes == 0;
        let (start, idle_since) = match self.setup.as_ref().and_then(|setup| setup.last_syn_ack) {
            // The server speaks first: the client waits from the handshake's end.
            Some((syn_ack, _)) if greeting => (syn_ack + self.delay(CLIENT), None),
            felt => (at, self.last_felt_end.or(felt.map(|(syn_ack, _)| syn_ack + self.delay(CLIENT)))),
        };
        open.n = self.next_n;
        self.next_n += 1;
        open.initiator = if greeting && start < at { CLIENT } else { from };
        open.start = start.min(at);
        open.client_idle = idle_since.map_or(Duration::ZERO, |since| (at - since).at_least_zero());
        open.request.clear();
        open.reply.clear();
        open.reply_first = None;
        open.request_bytes = 0;
        open.reply_bytes = 0;
        open.packets = [segment.packet; 2];
        open.acked_at = None;
        open.request_end = None;
        if open.initiator == from
            && let Some(lost) = self.first_copy_lost(segment, from, order, idle_since)
        {
            open.start = at - lost.ns;
            open.client_idle = (open.client_idle - lost.ns).at_least_zero();
            open.request.account.charge(&lost);
        }
        if open.initiator != from {
            open.request.begin(LastData {
                at: open.start,
                packet: segment.packet,
                queue: Queue::Emptied,
                len: 0,
                flight: 0,
                una: None,
            });
        }
        let half = &self.halves[from];
        if half.last_data.is_some_and(|last| at - last.at > half.rto.rto()) {
            self.habits[from].rounds.on_idle();
        }
        self.open = Some(open);
    }

    /// A message's first segment that is a second copy, the first one lost before the capture saw it: the sender's
    /// timer had run in between. Near the receiver only that timer's length can be said, and it is an estimate.
    fn first_copy_lost(
        &self,
        segment: &Segment,
        from: usize,
        order: Order,
        idle_since: Option<Instant>,
    ) -> Option<Charge> {
        let half = &self.halves[from];
        let peer = &self.halves[1 - from];
        let lost = match order {
            Order::HoleFill { .. } => true,
            // With nothing to acknowledge, the packets that are missing by their identification carried data.
            _ => half.missed_since_data > 0 && peer.newly_acked() == 0,
        };
        let since = idle_since?;
        if !lost || self.delay(from) < self.delay(1 - from) {
            return None;
        }
        let timer = half.rto.rto() + crate::rto::TICK;
        let ns = timer.min(segment.at - since);
        let detail = Detail {
            retransmits: Some(1),
            timer: Some(timer),
            form: Some("unseen-first-copy"),
            ..Detail::default()
        };
        Some(
            Charge::new(Cause::Rto, half.side, ns, Confidence::Possible)
                .evidence(segment.packet, 0)
                .detail(detail),
        )
    }

    /// Decides what the interval before this segment was spent on.
    fn bill(&mut self, segment: &Segment, from: usize, order: Order, mss: u32) -> Verdict {
        let nothing = Verdict { split: Split::of(Duration::ZERO), trigger: Trigger::Write };
        let Some(open) = self.open.as_deref() else { return nothing };
        let path = if from == open.initiator { &open.request } else { &open.reply };
        if self.answers(open, segment, from, order) {
            return self.think(open, segment, order);
        }
        let Some(last) = path.frontier() else { return nothing };
        let wait = Wait {
            half: &self.halves[from],
            segment,
            order,
            last,
            gap: (segment.at - last.at).at_least_zero(),
            mss,
            own: self.delay(from),
            peer: self.delay(1 - from),
            habits: &self.habits[from],
            index: path.index,
        };
        let verdict = mechanism::judge(&wait);
        let mut habits = self.habits[from].clone();
        nagle::learn(&wait, &verdict, &mut habits);
        if let Some(round) = round_ended(&wait, &verdict) {
            habits.rounds.on_round(round);
        }
        self.habits[from] = habits;
        verdict
    }

    /// Whether a segment of the responder answers request bytes that came since its last one.
    fn answers(&self, open: &Open, segment: &Segment, from: usize, order: Order) -> bool {
        let Some(request) = open.request.last else { return false };
        let server = self.delay(1 - open.initiator);
        match open.reply.frontier() {
            _ if from == open.initiator => false,
            None => matches!(order, Order::New | Order::HoleFill { .. }),
            Some(reply) => {
                if order != Order::New {
                    return false;
                }
                let reached = request.at + (server - server.divided_by(8));
                reached <= segment.at && reached > reply.at && request.at > reply.at - server
            }
        }
    }

    /// The interval from the last request byte to the first reply byte: a round trip and the server's own time.
    fn think(&self, open: &Open, segment: &Segment, order: Order) -> Verdict {
        let server = 1 - open.initiator;
        let request = &open.request;
        let own = self.delay(server);
        // A retransmission that the reply cannot have answered had repaired nothing.
        let spurious = request.repaired_at().is_some_and(|at| segment.at - at < own - own.divided_by(8));
        let from = if spurious { request.last } else { request.frontier() };
        let Some(from) = from else {
            return Verdict { split: Split::of(Duration::ZERO), trigger: Trigger::Write };
        };
        let half = &self.halves[server];
        let mut split = Split::of(segment.at - from.at);
        let round_trip = Charge::new(Cause::RoundTrip, half.side, own, Confidence::Certain)
            .evidence(from.packet, segment.packet);
        split.take(round_trip);
        let rtt = own + self.delay(open.initiator);
        if let Some(charge) = repair::first_reply(half, order, split.left(), rtt) {
            split.take(charge.evidence(from.packet, segment.packet));
        }
        let client = &self.halves[open.initiator];
        if own > self.delay(open.initiator) && from.flight > 2 * self.mss(open.initiator) {
            if let Some(rate) = client.rate(true) {
                let detail = Detail { rate_bps: Some(rate.bits_per_second()), ..Detail::default() };
                split.take(
                    Charge::new(
                        Cause::Bandwidth,
                        client.side,
                        rate.time_for(from.flight),
                        Confidence::Likely,
                    )
                    .evidence(from.packet, segment.packet)
                    .detail(detail),
                );
            }
        }
        let near = own.times(9) <= rtt || own < Duration::from_millis(1);
        let confidence = if near { Confidence::Certain } else { Confidence::Likely };
        let (cause, sender) = (Cause::ServerThink, half.side);
        let think =
            Charge::new(cause, sender, Duration::ZERO, confidence).evidence(from.packet, segment.packet);
        Verdict { split: split.rest(think), trigger: Trigger::Packet(from.packet) }
    }

    /// Takes the billed segment into its path.
    fn extend(&mut self, segment: &Segment, from: usize, order: Order, last: LastData, verdict: &Verdict) {
        let answers = match self.open.as_deref() {
            Some(open) => self.answers(open, segment, from, order),
            None => return,
        };
        let responder_delay =
            self.open.as_deref().map_or(Duration::ZERO, |open| self.delay(1 - open.initiator));
        let Some(open) = self.open.as_deref_mut() else { return };
        if answers {
            let repaired = open.request.repaired_at();
            if repaired.is_some_and(|at| segment.at - at < responder_delay - responder_delay.divided_by(8)) {
                open.request.discard();
            }
            open.request.commit();
            open.reply_first.get_or_insert(segment.seq);
            let Open { request, reply, .. } = open;
            reply.branch(request, &verdict.split, last);
            return;
        }
        let path = if from == open.initiator { &mut open.request } else { &mut open.reply };
        if from != open.initiator {
            open.reply_first.get_or_insert(segment.seq);
        }
        match order {
            Order::Retransmission { .. } => path.repair(&verdict.split, last),
            _ if path.last.is_none() => path.begin(last),
            _ => {
                path.commit();
                path.advance(&verdict.split, last);
            }
        }
    }

    /// Ends what is under way and hands it to the ledger. `next` is the segment that starts something else.
    pub(crate) fn close(&mut self, next: Option<&Segment>, ledger: &mut Ledger) {
        if next.is_none() || self.open.is_some() {
            self.close_setup(ledger); // not before the first exchange has shown the round trip
        }
        let Some(mut open) = self.open.take() else { return };
        let client = self.delay(CLIENT);
        let speaker = open.last_speaker();
        let listener = 1 - speaker;
        let rate = self.halves[speaker].rate(true);
        let listener_delay = self.delay(listener);
        let kind = open.kind();
        let acked_at = open.acked_at;
        let path = open.last_path();
        if let (Some(next), Some(repaired)) = (next, path.repaired_at())
            && next.at - repaired < listener_delay - listener_delay.divided_by(8)
        {
            path.discard(); // the peer went on before the retransmission can have reached it
        }
        path.commit();
        let last = path.last;
        // The way from the capture to the client (to the receiver and back for a one-way message).
        let end = match kind {
            Kind::Exchange => client,
            Kind::OneWay | Kind::Setup => listener_delay + self.delay(speaker),
        };
        let side = if speaker == CLIENT { Side::Client } else { Side::Server };
        let packet = last.map_or(0, |last| last.packet);
        if let (Some(last), Some(acked_at), Some(rate)) = (last, acked_at, rate)
            && last.flight > 2 * self.halves[speaker].mss(self.halves[listener].mss_announced)
            && listener_delay > self.delay(speaker)
        {
            // Behind the capture the last flight still has to pass the bottleneck.
            let late = (acked_at - last.at - listener_delay).at_least_zero().min(rate.time_for(last.flight));
            let detail = Detail { rate_bps: Some(rate.bits_per_second()), ..Detail::default() };
            let drain = Charge::new(Cause::Bandwidth, side, late, Confidence::Likely)
                .evidence(packet, packet)
                .detail(detail);
            open.last_path().account.charge(&drain);
        }
        let round_trip = Charge::new(Cause::RoundTrip, side, end, Confidence::Certain).evidence(packet, 0);
        let path = open.last_path();
        path.account.charge(&round_trip);
        let elapsed = path.account.total();
        self.last_felt_end =
            Some(open.start + elapsed - if kind == Kind::Exchange { Duration::ZERO } else { end });
        let initiator = if open.initiator == CLIENT { Side::Client } else { Side::Server };
        let meta = Closed {
            connection: self.id,
            service: self.service,
            n: open.n,
            kind,
            initiator,
            start: open.start,
            client_idle: open.client_idle,
            request_bytes: open.request_bytes,
            reply_bytes: open.reply_bytes,
            packets: open.packets,
        };
        ledger.close(&meta, &open.last_path().account);
        self.spare = Some(open);
    }

    fn close_setup(&mut self, ledger: &mut Ledger) {
        let Some(setup) = self.setup.as_ref().filter(|_| !self.setup_billed) else { return };
        self.setup_billed = true;
        self.next_n = self.next_n.max(1);
        let mut account = Account::default();
        setup.bill(self.delay(CLIENT), self.delay(SERVER), &mut account);
        let Some((_, syn_ack)) = setup.last_syn_ack else { return };
        let meta = Closed {
            connection: self.id,
            service: self.service,
            n: 0,
            kind: Kind::Setup,
            initiator: Side::Client,
            start: setup.first_syn.0,
            client_idle: Duration::ZERO,
            request_bytes: 0,
            reply_bytes: 0,
            packets: [setup.first_syn.1, syn_ack],
        };
        ledger.close(&meta, &account);
    }

    /// Whether both directions ended and nothing is expected any more.
    pub(crate) fn is_finished(&self) -> bool {
        self.closed
            || self
                .halves
                .iter()
                .all(|half| half.fin.is_some_and(|fin| half.una.is_some_and(|una| una.at_or_after(fin))))
    }

    fn rung(&mut self, segment: &Segment, from: usize, trigger: Trigger, split: Option<&Split>) {
        if self.ladder.is_none() {
            return;
        }
        let offset = |base: Option<Seq>, seq: Seq| base.map_or(0, |base| i64::from(seq - base).max(0) as u64);
        let rung = Rung {
            packet: segment.packet,
            at: segment.at,
            exchange: self.open.as_ref().map(|open| open.n).or((segment.flags.syn()).then_some(0)),
            from: self.halves[from].side,
            offset: offset(self.halves[from].first, segment.seq),
            len: segment.payload_len,
            ack_offset: segment.flags.ack().then(|| offset(self.halves[1 - from].first, segment.ack)),
            window: u64::from(self.window(segment, from)),
            flags: segment.flags,
            trigger,
            billed: split.map_or(Vec::new(), |split| {
                split.charges().map(|charge| (charge.cause, charge.ns)).collect()
            }),
        };
        if let Some(ladder) = &mut self.ladder {
            ladder.push(rung);
        }
    }
}

/// The flight that a window had allowed, where a window ended a round here.
fn round_ended(wait: &Wait<'_>, verdict: &Verdict) -> Option<u32> {
    let window = |cause| {
        matches!(
            cause,
            Cause::SlowStart
                | Cause::SlowStartAfterIdle
                | Cause::CongestionWindow
                | Cause::SendBuffer
                | Cause::DelayedAckCwnd
                | Cause::ReceiveWindow
        )
    };
    let by_window = verdict.split.charges().any(|charge| window(charge.cause));
    let long = wait.gap >= wait.rtt().divided_by(4).max(BURST_GAP) || wait.gap >= HELD_BACK_MIN;
    (by_window && long).then(|| wait.half.view.advanced.map_or(0, |release| release.flight))
}
