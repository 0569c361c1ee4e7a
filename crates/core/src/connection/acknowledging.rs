//! What does an ACK or a time stamp echo show about the peer and its distance?

use std::net::{IpAddr, Ipv4Addr};

use tcpwhy_wire::{Duration, Endpoint, Instant, Segment, Seq, Timestamps};

use super::Connection;
use crate::bill::revise::Revision;
use crate::estimate::maybe::Maybe;
use crate::flow::ends::{CLIENT, SERVER};
use crate::flow::handshake::Setup;
use crate::flow::path_memory::is_held_back;
use crate::rules::proxy::NEARER_BETWEEN;
use crate::rules::round_trip::Shortened;
use crate::rules::{handshake, late_start};
use crate::words::limits::{HELD_BACK_MIN, HOST_VARIATION, QUEUED_MIN};

/// An end that was silent for this long while its peer sent was not in the middle of a burst.
const REACTION_AFTER_SILENCE: Duration = Duration::from_millis(2);
/// No router lies between the capture and an end closer than this.
const BESIDE_MAX: Duration = Duration::from_millis(1);
/// An ACK that takes longer says nothing about its sender's distance.
const DISTANCE_MAX: Duration = Duration::from_secs(1);

impl Connection {
    /// The time stamp an end echoes bounds its distance, with or without a handshake. A segment without
    /// ACK echoes nothing (RFC 7323, 3.2): a SYN may be retransmitted after the SYN-ACK.
    #[inline]
    pub(super) fn learn_from_echo(&mut self, stamps: Timestamps, from: usize, echoes: bool) {
        self.echoes[from].on_stamp(stamps.val, self.now);
        if !echoes {
            return;
        }
        let Some(bound) = self.echoes[1 - from].on_echo(stamps.ecr, self.now, self.tap_rtt[from].is_some())
        else {
            return;
        };
        if self.tap_rtt[from].get().is_none_or(|known| bound < known) {
            self.take_bound(bound, from, stamps.val);
        }
    }

    /// Takes a closer bound for an end, unless its time stamp `stamp` shows that it had not yet
    /// received what it seems to answer.
    #[inline(never)]
    pub(super) fn take_bound(&mut self, bound: Duration, from: usize, stamp: u32) {
        let known = self.tap_rtt[from].get();
        if known.is_some_and(|known| self.is_stale(bound, known, from, stamp)) {
            self.echoes[1 - from].forget_bound();
            return;
        }
        self.on_shorter(known.filter(|_| self.shown[from]), bound, bound, from);
        self.set_tap_rtt(from, bound);
        if !self.shown[from] {
            self.models[from].forget_pauses();
        }
        if known.is_some_and(|known| is_held_back(known, bound)) {
            self.was_held_back(1 - from);
        }
    }

    /// As many of this end's packets are missing before the present one, by their numbers. If the
    /// capture has no packet without data from either end, as some filters and exports produce, the
    /// missing ones are just pure ACKs.
    #[inline]
    pub(super) fn on_missed(&mut self, missed: u16, from: usize) {
        self.models[1 - from].on_peer_packet(missed);
        if self.midway && self.flows.iter().all(|flow| !flow.sent_bare) {
            self.flows[from].forget_missed();
        }
    }

    /// Bounds an end's distance without time stamps: its first packet after a silence reacts to
    /// something it received, so the quickest such reaction bounds its distance. One may be chance; the
    /// second quickest counts. Data that the peer has already acknowledged is skipped: interface queues
    /// delivered it to the capture late, after its own ACK.
    #[inline]
    pub(super) fn learn_from_reaction(&mut self, segment: &Segment, from: usize) {
        // A handshake that took this long may have lost a SYN.
        if self.shown[from] && self.tap_rtt[from].get().is_none_or(|known| known < handshake::LOST_AFTER) {
            return;
        }
        self.learn_from_unshown_reaction(segment, from);
    }

    #[cold]
    #[inline(never)]
    fn learn_from_unshown_reaction(&mut self, segment: &Segment, from: usize) {
        let (Some(spoke), Some(peer_spoke)) =
            (self.last_packet[from].get(), self.last_packet[1 - from].get())
        else {
            return;
        };
        let acked = |acked| segment.payload_len > 0 && segment.seq_end().at_or_before(acked);
        // A segment that does not acknowledge all of the peer's data left before that data arrived;
        // without ACK it acknowledges nothing (RFC 9293, 3.1).
        let heard = self.flows[1 - from].snd_nxt.is_none_or(|next| segment.ack.at_or_after(next));
        let unheard = !segment.flags.ack() || !heard;
        let is_reaction = peer_spoke - spoke >= REACTION_AFTER_SILENCE && !unheard;
        if !is_reaction || self.flows[from].highest_ack.is_some_and(acked) {
            return;
        }
        let reaction = self.now - peer_spoke;
        let [quickest, second] = &mut self.reactions[from];
        if reaction < *quickest {
            (*quickest, *second) = (reaction, *quickest);
        } else if reaction < *second {
            *second = reaction;
        }
        let second = *second;
        if let Some(known) = self.tap_rtt[from].get().filter(|known| second < *known) {
            self.tap_rtt[from] = Maybe::of(second.min(self.distance_max(from)));
            self.path_memory.news |= self.tap_rtt[from].get() != Some(known);
            self.models[from].forget_pauses();
            if is_held_back(known, second) {
                self.was_held_back(1 - from);
            }
        }
    }

    /// Whether a packet that would put this end much closer than the `known` distance from its
    /// handshake carries a time stamp that passed the capture before the packet it answers: the
    /// sender's clock would have stood still for that whole round trip. A middlebox that acknowledges
    /// on its own has no clock of the server's, so it repeats the last time stamp it saw, the
    /// SYN-ACK's.
    #[cold]
    pub(super) fn is_stale(&self, rtt: Duration, known: Duration, from: usize, stamp: u32) -> bool {
        self.shown[from]
            && rtt.times(NEARER_BETWEEN) <= known
            && self.flows[from].clock.is_stale(stamp, self.now, rtt)
    }

    /// The round trip to this end is `rtt`, shorter than the `known` one. The reply that shows it
    /// `took` that long, or longer by a delay that its time stamp explains.
    #[cold]
    #[inline(never)]
    pub(super) fn on_shorter(&mut self, known: Option<Duration>, rtt: Duration, took: Duration, end: usize) {
        let much = known.map_or(took > rtt, |known| known - rtt >= QUEUED_MIN);
        if much || self.shortened[end] != Shortened::No {
            let seen = self.shortened[end].seen(known, rtt, self.next_exchange());
            self.shortened[end] = if took > rtt { Shortened::Reckoned } else { seen };
        }
    }

    /// The path to the peer of `sender` proves shorter by at least the shortest delay of an ACK: the
    /// longer estimate had taken delayed ACKs for prompt ones.
    pub(super) fn was_held_back(&mut self, sender: usize) {
        self.models[sender].forget_pauses();
        let side = self.flows[sender].side;
        if let Some(open) = &mut self.open {
            open.request.revise(Revision::AcknowledgementsHeldBack { sender: side });
            open.reply.revise(Revision::AcknowledgementsHeldBack { sender: side });
        }
    }

    /// Whether this end has only ever acknowledged with data of its own or on a timer, and no handshake
    /// shows its distance. Its quickest answer is then only an upper bound, for that may have waited
    /// for the next request or for a program.
    pub(super) fn is_bound(&self, end: usize) -> bool {
        let by_timer =
            || self.bare[end] < Duration::MAX && self.bare[end] - HELD_BACK_MIN > self.tap_rtt(end);
        !self.shown[end] && (self.flows[1 - end].acked_bare == 0 || by_timer())
    }

    /// [`Setup::is_ambiguous`].
    #[inline]
    pub(super) fn is_ambiguous(&self) -> bool {
        let ambiguous = |setup: &Setup| setup.is_ambiguous(self.flows[CLIENT].acked_bare);
        !self.shown[SERVER] && self.setup.as_ref().is_some_and(ambiguous)
    }

    /// [`Setup::is_unproven`].
    #[inline]
    pub(super) fn is_unproven(&self) -> bool {
        let unproven = |setup: &Setup| setup.is_unproven(self.flows[CLIENT].acked_bare, self.tap_rtt(SERVER));
        self.shown[SERVER] && self.setup.as_ref().is_some_and(unproven)
    }

    /// Whether the reply's wait is longer than this connection can explain, while other connections
    /// between the hosts may know why.
    #[inline]
    pub(crate) fn wants_news(&self, at: Instant, from: usize) -> bool {
        self.open.as_deref().is_some_and(|open| {
            let asked =
                open.request.last.as_ref().filter(|_| from != open.initiator && open.reply_first.is_none());
            asked.is_some_and(|asked| at - asked.at - self.tap_rtt(from) >= HELD_BACK_MIN)
        }) && self.path_memory.is_old(at)
    }

    /// Whether an end's distance rests on its reactions alone: what it sent after its peer may have
    /// been triggered by something earlier.
    #[inline]
    fn is_by_reaction(&self, end: usize) -> bool {
        self.tap_rtt[end].get() == Some(self.reactions[end][1]) && self.is_bound(end)
    }

    /// The ends' distances, as far as other connections between these hosts may rely on them.
    #[inline]
    pub(crate) fn told_distances(&self) -> [Option<Duration>; 2] {
        let told = |end| end == CLIENT || !self.is_ambiguous();
        [CLIENT, SERVER].map(|end| self.tap_rtt[end].get().filter(|_| told(end)))
    }

    /// The distance to the client, and the time that the handshake itself took to the server: a
    /// host in between may have acknowledged later segments.
    #[inline]
    pub(crate) fn opened_distances(&self) -> [Option<Duration>; 2] {
        let took = self.setup.as_ref().and_then(Setup::opened).filter(|_| self.shown[SERVER]);
        [self.tap_rtt[CLIENT].get().filter(|_| self.shown[CLIENT]), took]
    }

    /// Takes a better measured distance from other connections between these hosts.
    pub(crate) fn take_known_path(&mut self) {
        for end in [CLIENT, SERVER] {
            if let Some(known) = self.tap_rtt[end].get().filter(|_| !self.shown[end]) {
                self.take_known_distance(end, known);
            }
        }
        if self.shown[SERVER] && self.tap_rtt(SERVER) >= handshake::LOST_AFTER {
            self.doubt_opening();
        }
    }

    #[cold]
    #[inline(never)]
    fn take_known_distance(&mut self, end: usize, known: Duration) {
        if let Some(least) = self.path_memory.min(end).filter(|least| *least < known)
            && self.is_bound(end)
        {
            self.set_tap_rtt(end, least);
            self.models[end].forget_pauses();
        }
    }

    /// The most an end's distance can be by anything but its ACKs, if no handshake shows it.
    pub(super) fn distance_max(&self, end: usize) -> Duration {
        if self.shown[end] {
            return Duration::MAX;
        }
        if self.is_on_one_host() {
            return HOST_VARIATION;
        }
        // One end's packets have crossed routers and the other's none, so the capture is next to the
        // latter.
        let beside = is_unaged(self.ttl[end]) && self.ttl[1 - end] != 0 && !is_unaged(self.ttl[1 - end]);
        let least = self.path_memory.min(end).filter(|_| self.is_bound(end)).unwrap_or(Duration::MAX);
        if beside { least.min(BESIDE_MAX) } else { least }
    }

    /// Whether the distance of the server's apparent end is a guess. Without a handshake or a pure ACK
    /// to show it, what it sent after the client's data may have been triggered by something earlier. A
    /// host in between acknowledges for the server if no packet of either end has crossed a router
    /// although one address is private (RFC 1918) and the other public.
    pub(super) fn is_distance_doubtful(&self) -> bool {
        !self.shown[SERVER] && (self.is_by_reaction(SERVER) || self.has_host_between())
    }

    /// Whether a host sits between the ends: no packet of either has crossed a router, yet the client's
    /// address is private and the server's public.
    #[cold]
    pub(super) fn has_host_between(&self) -> bool {
        let unaged = self.ttl.into_iter().all(is_unaged);
        unaged && is_private(self.ends.end(CLIENT)) && is_public(self.ends.end(SERVER))
    }

    /// Whether this end's packets come from a host in between that has acknowledged nothing but the SYN:
    /// nothing shows how near that host is.
    pub(super) fn is_behind_host(&self, end: usize) -> bool {
        end == SERVER && self.flows[CLIENT].acked_bare <= 1 && self.has_host_between()
    }

    /// A packet of this end's comes over another number of routers than its first one, which was the SYN-ACK: whoever is nearer has taken over.
    #[cold]
    pub(super) fn on_other_hops(&mut self, segment: &Segment, from: usize) {
        if from == SERVER && self.setup.is_some() && !segment.flags.rst() {
            self.answers.taken_over |= hops(segment.ttl) < hops(self.ttl[from]);
        }
    }

    /// Gives the handshake a round trip that tells which of several SYNs was answered, where no time
    /// stamps do.
    #[inline]
    fn time_setup(&mut self, segment: &Segment, rtt: Duration, from: usize) {
        if from == SERVER
            && segment.options.timestamps.is_none()
            && let Some(setup) = &mut self.setup
        {
            setup.on_sample(rtt);
        }
    }

    pub(super) fn on_ack(&mut self, segment: &Segment, from: usize) {
        let to = 1 - from;
        let mss = self.mss(to);
        if !segment.flags.syn() && self.window_scale(from).is_none() {
            self.flows[to].learn_scale(segment, mss);
        }
        let window = self.window(segment, from);
        let first = segment.options.sack().first().filter(|block| block.end.at_or_before(segment.ack));
        let spurious = first.is_some_and(|block| !self.lies_before_message(to, block.end));
        if !segment.flags.syn()
            && let Some(setup) =
                self.setup.as_mut().filter(|setup| from == CLIENT && setup.last_syn_ack().is_some())
        {
            if let Some(stamps) = segment.options.timestamps {
                setup.on_taken(segment, stamps);
            }
            setup.end(segment.at);
        }
        let repeats = self.repeats_acknowledgement(segment, from);
        let peer = self.tap_rtt(from);
        let answers_at_once = self.answers_at_once(segment, from);
        let rtt = self.flows[to].on_ack(segment, window, mss, peer);
        let (rtt, shown) = match rtt {
            None if answers_at_once => self.answered_copy(segment, from),
            None if self.tap_rtt[from].is_none() => (self.echoed_copy(segment, to), false),
            _ => (rtt, answers_at_once && rtt.is_some()),
        };
        self.shown[from] |= shown || rtt.is_some() && self.is_timed_late(segment, from);
        if let Some(rtt) = rtt {
            if !self.shown[from] && segment.seq_len() == 0 {
                self.bare[from] = self.bare[from].min(rtt);
            }
            self.time_setup(segment, rtt, from);
            // The first of all that comes with data or FIN may have waited for these: the handshake's own may be missing.
            let waited = rtt >= DISTANCE_MAX && segment.seq_len() > 0 && !answers_at_once;
            if self.tap_rtt[from].is_some() || !waited {
                let known = self.tap_rtt[from].is_some();
                self.on_round_trip(rtt, from, answers_at_once || segment.seq_len() == 0);
                if let Some(setup) = self.setup.as_mut().filter(|_| known && from == SERVER) {
                    setup.on_round_trip(rtt, self.tap_rtt[from].known());
                }
            }
            if from == SERVER && self.beyond().is_some() {
                self.answers.one_clock |= self.was_opened_late();
            }
        }
        self.weigh_copies(segment, from, spurious, repeats);
        if segment.payload_len == 0
            && self.flows[to].highest_ack.is_some_and(|acked| segment.ack.before(acked))
        {
            self.weigh_overtaken(segment, from);
        }
        if let Some(block) = first.filter(|_| spurious) {
            self.discard_spare(to, *block);
        }
        let echoed = segment.options.timestamps.map(|stamps| stamps.ecr);
        self.discard_if_answered(to, echoed, segment.options.cut);
        if from == SERVER {
            self.accept_late(segment);
        }
    }

    /// Whether bytes of this end up to `seq` lie before its message under way, like the byte that a
    /// keep-alive probe repeats (RFC 1122, 4.2.3.6). That it arrived twice says nothing about what the
    /// message's retransmissions repaired.
    #[inline]
    fn lies_before_message(&self, end: usize, seq: Seq) -> bool {
        self.open.as_deref().is_some_and(|open| {
            let first = if end == open.initiator { open.request_first } else { open.reply_first };
            first.is_some_and(|first| seq.at_or_before(first))
        })
    }

    /// Whether this is a handshake packet that hosts send at once: a SYN-ACK, or the client's pure ACK
    /// of it. If that ACK is missing from the capture, the next packet that acknowledges the SYN-ACK
    /// may have waited for a program or a timer.
    fn answers_at_once(&self, segment: &Segment, from: usize) -> bool {
        let next = |end: usize, seq| self.flows[end].first == Some(seq);
        !self.midway
            && !self.shown[from]
            && if from == SERVER {
                segment.flags.syn()
            } else {
                segment.seq_len() == 0 && next(CLIENT, segment.seq) && next(SERVER, segment.ack)
            }
    }

    /// Whether this bare ACK is the first to time the path to a client that took a SYN-ACK after its
    /// retransmission, however long that path is.
    #[inline]
    fn is_timed_late(&self, segment: &Segment, from: usize) -> bool {
        let is_first = from == CLIENT && !self.shown[from] && segment.seq_len() == 0;
        is_first && self.setup.as_ref().is_some_and(Setup::is_taken_behind_a_timer)
    }

    /// How long ago the copy of a SYN or SYN-ACK passed that this answers, where time stamps tell (RFC 7323, 3.2), and whether that is the
    /// round trip. A SYN-ACK that is sent again echoes the first SYN still (tcp_check_req, net/ipv4/tcp_minisocks.c; so does Linux 6.18): behind a
    /// second SYN the way may be shorter.
    #[cold]
    fn answered_copy(&self, segment: &Segment, from: usize) -> (Option<Duration>, bool) {
        let Some(setup) = &self.setup else { return (None, false) };
        let by_client = || setup.answered_by(segment.options.timestamps?.ecr);
        let answered = if from == SERVER { setup.answered() } else { by_client() };
        let shown = answered.is_some_and(|at| from == CLIENT || at == setup.last_syn().0);
        (answered.map(|at| self.now - at), shown)
    }

    /// How long ago the last copy of all that `to` has sent passed, where an acknowledgement by itself echoes that copy's stamp: it answers that
    /// one (RFC 7323, 4.1), whatever was sent twice.
    #[cold]
    #[inline(never)]
    fn echoed_copy(&self, segment: &Segment, to: usize) -> Option<Duration> {
        let last = self.flows[to].last_data.as_ref()?;
        let echoed = segment.options.timestamps?.ecr;
        let whole = self.flows[to].snd_nxt == Some(segment.ack);
        (segment.seq_len() == 0 && whole && last.stamp == Some(echoed)).then(|| self.now - last.at)
    }

    /// An acknowledgement from this end shows a round trip between it and the capture.
    #[inline(never)]
    pub(super) fn on_round_trip(&mut self, rtt: Duration, from: usize, bare: bool) {
        // Time the ACK itself spent queued on its way to the capture is not part of the path's round trip.
        let shown = rtt;
        let waited = self.flows[from].queued_on_way.get().filter(|waited| *waited >= QUEUED_MIN);
        let rtt = waited.map_or(rtt, |waited| self.without_queue(rtt, waited, from));
        // Without a handshake, this may be the next request. A sender that waits longer has retransmitted (RFC 6298, 2.1).
        if !self.shown[from] && rtt >= DISTANCE_MAX && !(from == SERVER && self.is_ambiguous()) {
            return;
        }
        let to = 1 - from;
        let known = self.tap_rtt[from].get();
        let nearer = known.is_none_or(|known| rtt < known);
        if nearer
            && let Some(known) = known
            && self.is_anothers(rtt, known, from)
        {
            self.answers.stale |= from == SERVER;
            return;
        }
        if nearer && from == SERVER && known.is_some_and(|known| known >= handshake::LOST_AFTER) {
            self.opened_by_copy(rtt);
        }
        if let Some(known) = known {
            self.path_memory.on_another(from, self.now, known, rtt);
        }
        let least = if nearer { rtt } else { known.unwrap_or(rtt) };
        if nearer || !self.shown[from] {
            if nearer && self.shown[from] {
                self.on_shorter(known, rtt, shown, from);
            }
            self.set_tap_rtt(from, least);
        }
        if known.is_some() {
            self.flows[from].bound_late(shown - least);
            if let Some(open) = self.open.as_deref_mut().filter(|open| open.initiator == from) {
                late_start::refute(open, self.now, shown - least);
            }
        }
        // The first one is compared with those of other connections.
        let longer = |min: Duration| rtt - min >= QUEUED_MIN;
        if rtt - least >= QUEUED_MIN || known.is_none() && self.path_memory.min(from).is_none_or(longer) {
            self.on_long_answer([rtt, least], from, bare);
        }
        self.path_memory.on_least(from, self.now, least, QUEUED_MIN);
        if nearer && known.is_some_and(|known| is_held_back(known, rtt)) {
            self.was_held_back(to);
        }
        if let Some(rtt_to_sender) = self.tap_rtt[to].get() {
            self.flows[to].rto.on_sample(rtt + rtt_to_sender);
        }
    }

    /// Everything this end sent is acknowledged. If the echoed time stamp predates its retransmission,
    /// that may have repaired nothing.
    #[expect(clippy::inline_always, reason = "the usual path is written out for either end")]
    #[inline(always)]
    pub(super) fn discard_if_answered(&mut self, to: usize, echoed: Option<u32>, cut: bool) {
        let Some(open) = &self.open else { return };
        let path = if to == open.initiator { &open.request } else { &open.reply };
        if path.repaired_at().is_some() && self.flows[to].outstanding() == 0 {
            self.discard_if_first_answered(to, echoed, cut);
        }
    }
}

/// Whether a packet with this TTL has crossed no router: stacks start with one of these values.
fn is_unaged(ttl: u8) -> bool {
    matches!(ttl, 64 | 128 | 255)
}

/// How many routers a packet has crossed, judging by the usual initial TTLs.
fn hops(ttl: u8) -> u8 {
    let first = [64, 128, 255].into_iter().find(|first| ttl <= *first);
    first.map_or(0, |first| first - ttl)
}

/// Whether an address is private (RFC 1918).
fn is_private(end: Endpoint) -> bool {
    matches!(end.ip(), IpAddr::V4(address) if address.is_private())
}

/// Whether an address is routed on the Internet.
fn is_public(end: Endpoint) -> bool {
    let here = |address: Ipv4Addr| address.is_private() || address.is_loopback() || address.is_link_local();
    matches!(end.ip(), IpAddr::V4(address) if !here(address))
}
