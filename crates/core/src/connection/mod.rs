//! Who said what to whom, and which exchange does it belong to?
//!
//! A connection takes its segments, keeps the state of both directions, bills the exchange under way, and hands each finished one to the ledger.

mod accepting;
mod acknowledging;
mod asking;
mod behind;
mod beside;
mod billing;
mod clock;
mod closing;
mod concurrent;
mod copied;
mod cut;
mod damaged;
mod fast_open;
mod frame_sizes;
mod frames;
mod general;
mod giving_up;
mod going_on;
mod handing_over;
mod headless;
mod held_back;
mod holds;
mod joined;
mod keeping_alive;
pub(crate) mod ladder;
mod memory;
mod numbered;
mod opened_late;
mod opening;
mod parting;
mod parts;
mod pausing;
mod roles;
mod room;
mod row;
mod rungs;
mod seen_again;
mod seldom;
mod streaming;
mod subscription;
mod talk;
mod ticks;
mod turn;
mod turns;
mod unacceptable;
mod unread;
mod usual;
mod usual_message;
mod varying;

use tcpwhy_wire::{Duration, Endpoint, Instant, Segment};

use crate::bill::asked::Ask;
use crate::bill::exchange::Open;
use crate::connection::ladder::Ladder;
use crate::estimate::maybe::Maybe;
use crate::estimate::rounds::Rounds;
use crate::estimate::tsecr_rtt::EchoProbe;
use crate::flow::both_ends::BothEnds;
use crate::flow::direction::Flow;
use crate::flow::duplicate_filter::DuplicateFilter;
use crate::flow::ends::{CLIENT, SERVER};
use crate::flow::handshake::Setup;
use crate::flow::path_memory::PathMemory;
use crate::rules::proxy::Answers;
use crate::rules::round_trip::Shortened;
use crate::rules::sender_model::SenderModel;
use crate::tally::closed::ServiceKey;
use crate::tally::ledger::Ledger;
use crate::words::cause::Side;
use crate::words::limits::BESIDE;
use crate::words::mark::Mark;
use crate::words::report::Vantage;
use frames::Frames;
use held_back::HeldBack;
use roles::Roles;
use talk::Talk;
use turn::Paired;

/// The note about a connection that the server reset instead of accepting it.
pub(crate) const REFUSED: &str = "refused-connections";

/// What a request under way takes in memory, with room for as many again.
pub(crate) const QUESTION: usize = 2 * size_of::<Ask>();

/// Ends closer than this count as one host, which no vantage can tell apart. Source: none written down.
const ONE_HOST_MAX: Duration = Duration::from_micros(100);

/// One connection while it is open.
///
/// Its methods are of four kinds: `on_*` take an event and change the state, `learn_*` measure from it, those named for
/// a question (`is_*`, `starts_message`, `silence`) decide and change nothing but memory of their own, and `close*` hand
/// finished exchanges to the ledger. Segments come in by `on_usual` or `on_segment`, and `close` ends the connection.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each says something of its own")]
pub(crate) struct Connection {
    pub id: u64,
    /// The server's place in the ledger, once something has been billed.
    service: Option<ServiceKey>,
    /// Client, server.
    pub ends: BothEnds,
    /// It is a guess which end is the client.
    pub assumed: bool,
    /// The connection's first packet is not in the capture.
    midway: bool,
    /// The server spoke first.
    greeted: bool,
    /// The handshake has shown each end's distance, because that end answered at once.
    pub shown: [bool; 2],
    /// The capture's clock is finer than milliseconds.
    fine: bool,
    pub flows: [Flow; 2],
    models: [SenderModel; 2],
    /// Each end's largest payload in one packet.
    sizes: [u32; 2],
    /// Smallest round trip seen between the capture and each end.
    pub tap_rtt: [Maybe<Duration>; 2],
    /// When `tap_rtt` became known, if not from the beginning.
    tap_rtt_since: [Instant; 2],
    /// How it became shorter than the handshake's.
    shortened: [Shortened; 2],
    /// What is known from all connections between these hosts.
    pub path_memory: PathMemory,
    frames: Frames,
    /// How its messages relate to each other, if their protocol is read.
    talk: Option<Box<Talk>>,
    paired: Paired,
    /// Parts of requests that may have been requests of their own.
    others: u8,
    /// Replies that came between the writes of their requests.
    between: u8,
    roles: Roles,
    setup: Option<Setup>,
    setup_billed: bool,
    answers: Answers,
    open: Option<Box<Open>>,
    spare: Option<Box<Open>>,
    /// Finished exchanges that later segments may still change.
    held_back: Option<Box<HeldBack>>,
    next_n: u64,
    last_wait_end: Maybe<Instant>,
    pub now: Instant,
    pub duplicates: Option<DuplicateFilter>,
    /// Packets have been captured twice.
    doubled: bool,
    /// Segments from each end have been seen with a wrong checksum.
    pub damaged: [bool; 2],
    /// The TTL of each end's first packet.
    ttl: [u8; 2],
    /// When each end's last packet passed.
    last_packet: [Maybe<Instant>; 2],
    /// The two quickest reactions of each end.
    reactions: [[Duration; 2]; 2],
    /// The quickest pure ACK of each end whose distance no handshake has shown.
    bare: [Duration; 2],
    /// Time stamps of each end that the other is to echo.
    echoes: [EchoProbe; 2],
    /// The last packet's time as captured.
    last_at: Instant,
    /// How often the capture's clock stepped back by more than reordering explains.
    steps: u8,
    /// The tick of a clock that counts milliseconds: the number that divides all gaps, and how many gaps.
    gaps: (u16, u8),
    /// By how much the capture's clock was set back in one step, as the ends' own clocks show.
    set_back: Duration,
    /// When the capture's clock was last set forward, and by how much.
    set: Option<Box<(Instant, Duration)>>,
    pub packets: u64,
    pub packet_range: [u64; 2],
    pub first_at: Instant,
    pub closed: bool,
    /// Heap bytes it took when they were last counted.
    pub heap: usize,
    pub ladder: Option<Box<Ladder>>,
    /// Usual segments may take the fast path (`usual.rs`).
    calm: bool,
    /// The window scales of both ends while `calm`.
    scales: [u8; 2],
}

impl Connection {
    pub(crate) fn new(id: u64, ends: [Endpoint; 2], first: &Segment, ladder: bool) -> Self {
        let mut connection = Self {
            id,
            service: None,
            ends: BothEnds::of(ends),
            assumed: !first.flags.syn(),
            midway: !first.flags.syn() || first.flags.ack(),
            greeted: false,
            shown: [false; 2],
            fine: false,
            ttl: [0; 2],
            flows: [Flow::new(Side::Client), Flow::new(Side::Server)],
            models: [SenderModel::default(), SenderModel::default()],
            sizes: [0; 2],
            tap_rtt: [Maybe::NONE; 2],
            tap_rtt_since: [Instant::MIN; 2],
            shortened: [Shortened::No; 2],
            path_memory: PathMemory::default(),
            frames: Frames::default(),
            talk: None,
            paired: Paired::Known,
            others: 0,
            between: 0,
            roles: Roles::default(),
            setup: None,
            setup_billed: false,
            answers: Answers::default(),
            open: None,
            spare: None,
            held_back: None,
            next_n: 0,
            last_wait_end: Maybe::NONE,
            now: first.at,
            duplicates: None,
            doubled: false,
            damaged: [false; 2],
            last_packet: [Maybe::NONE; 2],
            reactions: [[Duration::MAX; 2]; 2],
            bare: [Duration::MAX; 2],
            echoes: [EchoProbe::default(); 2],
            last_at: first.at,
            steps: 0,
            gaps: (0, 0),
            set_back: Duration::ZERO,
            set: None,
            packets: 0,
            packet_range: [first.packet; 2],
            first_at: first.at,
            closed: false,
            heap: 0,
            ladder: ladder.then(Box::default),
            calm: false,
            scales: [0; 2],
        };
        let on_one_host = connection.is_on_one_host();
        connection.flows.iter_mut().for_each(|flow| flow.on_one_host = on_one_host);
        connection.learn_sizes();
        connection
    }

    /// [`Self::new`] in the place of a finished connection, which saves moving the large struct.
    pub(crate) fn begin_again(&mut self, id: u64, ends: [Endpoint; 2], first: &Segment, ladder: bool) {
        self.id = id;
        self.ends = BothEnds::of(ends);
        self.assumed = !first.flags.syn();
        self.midway = !first.flags.syn() || first.flags.ack();
        (self.now, self.last_at, self.first_at) = (first.at, first.at, first.at);
        (self.packets, self.packet_range) = (0, [first.packet; 2]);
        self.ladder = ladder.then(Box::default);
        self.forget();
        let on_one_host = self.is_on_one_host();
        self.flows.iter_mut().for_each(|flow| flow.on_one_host = on_one_host);
        self.learn_sizes();
        debug_assert_eq!(
            self,
            &Self::new(id, ends, first, ladder),
            "something is left of another connection"
        );
    }

    /// Forgets everything about the previous connection.
    fn forget(&mut self) {
        (self.service, self.talk, self.setup, self.open, self.spare) = (None, None, None, None, None);
        for (flow, side) in self.flows.iter_mut().zip([Side::Client, Side::Server]) {
            flow.begin_again(side);
        }
        self.models.iter_mut().for_each(|model| *model = SenderModel::default());
        self.frames = Frames::default();
        self.roles = Roles::default();
        self.answers = Answers::default();
        self.path_memory = PathMemory::default();
        (self.fine, self.setup_billed, self.shown, self.greeted) = (false, false, [false; 2], false);
        self.paired = Paired::Known;
        (self.others, self.between) = (0, 0);
        (self.doubled, self.damaged, self.closed, self.calm) = (false, [false; 2], false, false);
        (self.ttl, self.scales) = ([0; 2], [0; 2]);
        self.tap_rtt = [Maybe::NONE; 2];
        (self.tap_rtt_since, self.shortened) = ([Instant::MIN; 2], [Shortened::No; 2]);
        self.last_packet = [Maybe::NONE; 2];
        (self.reactions, self.bare) = ([[Duration::MAX; 2]; 2], [Duration::MAX; 2]);
        self.echoes = [EchoProbe::default(); 2];
        (self.next_n, self.heap, self.steps, self.gaps) = (0, 0, 0, (0, 0));
        (self.set_back, self.set, self.last_wait_end) = (Duration::ZERO, None, Maybe::NONE);
        (self.duplicates, self.held_back) = (None, None);
    }

    /// Prefetches the exchange under way, or the place for the next one.
    #[inline]
    pub(crate) fn fetch_exchange(&self) {
        if let Some(open) = self.open.as_deref().or(self.spare.as_deref()) {
            tcpwhy_ahead::fetch(open);
        }
    }

    /// When it last spoke, and its first packet: what connections are ordered by in age.
    pub(crate) fn age(&self) -> (Instant, u64) {
        (self.now, self.packet_range[0])
    }

    /// The round trip between the capture and one end; zero while nothing has shown it.
    fn tap_rtt(&self, end: usize) -> Duration {
        self.tap_rtt[end].get().unwrap_or(Duration::ZERO)
    }

    /// The same on a calm connection, where both are known.
    #[inline]
    fn known_rtt(&self, end: usize) -> Duration {
        self.tap_rtt[end].known()
    }

    fn set_tap_rtt(&mut self, end: usize, rtt: Duration) {
        if !self.shown[end] && self.tap_rtt[end].is_none() {
            // Until now this end was taken to see at once whatever passed the capture.
            self.tap_rtt_since[end] = self.now;
            self.models[end].rounds = Rounds::default();
        }
        let rtt = Maybe::of(rtt.min(self.distance_max(end)));
        self.path_memory.news |= self.tap_rtt[end] != rtt;
        self.path_memory.on_shorter(end, self.now, self.tap_rtt[end].get(), rtt.known());
        self.tap_rtt[end] = rtt;
    }

    /// Whether what has reached an end by now passed the capture before anything had shown its
    /// distance.
    fn far_unknown(&self, end: usize) -> bool {
        self.tap_rtt[end]
            .get()
            .is_none_or(|rtt| !self.shown[end] && self.now - rtt <= self.tap_rtt_since[end])
    }

    pub(crate) fn rtt_min(&self) -> Option<Duration> {
        Some(self.tap_rtt[CLIENT].get()? + self.tap_rtt[SERVER].get()?)
    }

    fn mss(&self, sender: usize) -> u32 {
        self.sizes[sender]
    }

    /// Learns the largest payloads from the handshake, from the options and, without a handshake, from
    /// the segments sent.
    fn learn_sizes(&mut self) {
        let [client, server] = &self.flows;
        self.sizes = [client.mss(server.mss_announced), server.mss(client.mss_announced)];
    }

    /// A segment is full if it falls short of the MSS by no more than its options take (RFC 6691;
    /// tcp_current_mss, net/ipv4/tcp_output.c).
    #[cold]
    fn on_other_options(&mut self, segment: &Segment, from: usize) {
        let flow = &mut self.flows[from];
        let others = segment.options.beside_stamps;
        let known = std::mem::replace(&mut flow.other_options, others);
        let full = self.flows[from].mss(self.flows[1 - from].mss_announced);
        if self.flows[from].mss_announced.is_some() && segment.payload_len == full {
            self.learn_sizes();
        } else {
            self.flows[from].other_options = known;
        }
    }

    /// The options of a SYN were cut off, but not those of a later segment: one without time stamps shows
    /// that the SYN offered none (RFC 7323, 3.2).
    #[cold]
    fn on_whole_options(&mut self, segment: &Segment, from: usize) {
        let flow = &mut self.flows[from];
        let told = !flow.unstamped && !segment.flags.syn() && !segment.flags.rst();
        if told && segment.options.timestamps.is_none() {
            flow.unstamped = true;
            self.learn_sizes();
        }
    }

    fn is_on_one_host(&self) -> bool {
        let [client, server] = self.ends.get();
        client.addr == server.addr || client.is_loopback() && server.is_loopback()
    }

    pub(crate) fn vantage(&self) -> Vantage {
        let [Some(client), Some(server)] = self.tap_rtt.map(Maybe::get) else { return Vantage::Unknown };
        if self.is_on_one_host() || client + server < ONE_HOST_MAX {
            Vantage::Unknown
        } else if client.times(BESIDE) <= server {
            Vantage::Client
        } else if server.times(BESIDE) <= client {
            Vantage::Server
        } else {
            Vantage::Middle
        }
    }

    /// Whether this segment starts a new connection between the same ends: a SYN with another sequence
    /// number.
    pub(crate) fn is_other_incarnation(&self, segment: &Segment, from: usize) -> bool {
        if !segment.flags.syn() || segment.flags.ack() {
            return false;
        }
        let flow = &self.flows[from];
        match flow.first {
            Some(first) => segment.seq + 1 != first || self.begins_anew(segment.at),
            None => flow.snd_nxt.is_some() || (self.packets > 0 && !self.only_syns_of(1 - from)),
        }
    }

    /// Whether only SYNs of one end have been seen, so that a SYN from the other end is a simultaneous
    /// open (RFC 9293, 3.5).
    fn only_syns_of(&self, end: usize) -> bool {
        let (flow, other) = (&self.flows[end], &self.flows[1 - end]);
        let syn_only = flow.first.is_some_and(|first| flow.snd_nxt == Some(first));
        syn_only && flow.highest_ack.is_none() && other.highest_ack.is_none() && other.snd_nxt.is_none()
    }

    /// Takes the next segment in capture order. Returns whether packets before it are missing from the
    /// capture.
    pub(crate) fn on_segment(
        &mut self,
        segment: &Segment,
        marks: &[Mark],
        from: usize,
        ledger: &mut Ledger,
    ) -> bool {
        let not_captured = self.on_general(segment, marks, from, ledger);
        self.ask_whether_calm();
        not_captured
    }

    /// A SYN-ACK with another sequence number after the handshake: the client answers it with an ACK,
    /// and it has no effect (RFC 9293, 3.10.7.4). A load balancer may answer each copy of a SYN.
    fn is_stray(&self, segment: &Segment, from: usize) -> bool {
        let is_done = self.setup.as_ref().is_some_and(|setup| setup.done);
        let others = self.flows[from].first.is_some_and(|first| first != segment.seq + 1);
        segment.flags.syn() && segment.flags.ack() && from == SERVER && is_done && others
    }

    fn on_syn(&mut self, segment: &Segment, from: usize) {
        self.flows[from].on_syn(segment);
        match (&mut self.setup, segment.flags.ack()) {
            // A SYN with FIN probes how the host reacts, and opens nothing.
            (None, false) if from == CLIENT && !segment.flags.fin() => self.setup = Some(Setup::new(segment)),
            (Some(setup), false) if from == CLIENT => self.path_memory.news |= setup.on_syn(segment),
            (Some(setup), true) if from == SERVER => setup.on_syn_ack(segment),
            _ => {}
        }
        if segment.flags.ack() {
            let unscaled = self.flows.iter().any(|flow| flow.window_scale.is_none() && !flow.options_cut);
            self.flows.iter_mut().for_each(|flow| flow.peer_unscaled = unscaled);
            self.flows[1 - from].on_timestamps_answered(segment);
        }
        self.learn_sizes();
    }

    /// The window scale of `from`; `None` if the handshake is not in the capture.
    fn window_scale(&self, from: usize) -> Option<u8> {
        let [client, server] = &self.flows;
        match (client.window_scale, server.window_scale) {
            (Some(_), Some(_)) => self.flows[from].window_scale.map(|scale| scale.min(14)),
            _ if client.options_cut || server.options_cut => None,
            _ if client.mss_announced.is_some() && server.mss_announced.is_some() => Some(0),
            _ => None,
        }
    }

    /// The window in bytes that a segment from `from` advertises.
    fn window(&self, segment: &Segment, from: usize) -> u32 {
        let scale = match self.window_scale(from) {
            _ if segment.flags.syn() => 0,
            Some(scale) => scale,
            None => self.flows[1 - from].unusual.scale_bounds.scale(),
        };
        u32::from(segment.window) << scale
    }

    /// Whether the capture has only one direction, with data in it.
    pub(crate) fn is_one_sided(&self) -> bool {
        self.last_packet.iter().any(Maybe::is_none) && self.flows.iter().any(|flow| flow.bytes > 0)
    }

    /// A note about a connection that was never established.
    pub(crate) fn failure(&self) -> Option<&'static str> {
        let setup = self.setup.as_ref().filter(|setup| setup.is_unanswered())?;
        if self.closed {
            self.last_packet[SERVER].get().map(|_| REFUSED)
        } else {
            setup.is_repeated().then_some("unanswered-connections")
        }
    }

    /// Whether both directions have ended and nothing more is expected.
    #[inline]
    pub(crate) fn is_finished(&self) -> bool {
        self.closed
            || self.flows.iter().all(|flow| {
                flow.fin.is_some_and(|fin| flow.highest_ack.is_some_and(|acked| acked.at_or_after(fin)))
            })
    }
}
