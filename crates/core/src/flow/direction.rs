//! What has one end sent, and what did it know when it sent it?
//!
//! An ACK takes effect when it reaches the sender, not when it passes the capture. `Flow` keeps ACKs in
//! transit for the time they need from the capture to the sender and back, so that every rule about a sender
//! ("was it blocked until then?") asks what that sender knew, wherever the capture was taken.

mod acks;
mod data;
mod link;
mod pace;
mod seen_again;
mod unseen;
mod usual;
mod windows;

use tcpwhy_wire::{Duration, Instant, Segment, Seq};

use crate::estimate::ip_id::IpIdCounter;
use crate::estimate::large::LargeSegments;
use crate::estimate::maybe::Maybe;
use crate::estimate::mss::FullSize;
use crate::estimate::rate::RateEstimator;
use crate::estimate::rto::RtoEstimator;
use crate::estimate::short_deque::ShortDeque;
use crate::estimate::stamp_clock::StampClock;
use crate::flow::passing::{AckSeen, Sent};
use crate::flow::segment_class::{LastData, SegmentClass};
use crate::flow::unusual::Unusual;
use crate::flow::view::View;
use crate::words::cause::Side;

/// Segments and ACKs remembered per direction. Beyond that, the oldest segment is forgotten and the newest
/// ACK replaced.
const REMEMBERED_MAX: usize = 2048;
const HOLE_BYTES_MAX: i32 = 1 << 30; // a jump larger than any window is not a hole
pub(crate) const TIMESTAMP_OPTION_LEN: u32 = 12;

/// One direction of a connection.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each says something of its own")]
pub(crate) struct Flow {
    pub side: Side,
    /// First payload byte, for offsets.
    pub first: Option<Seq>,
    pub snd_nxt: Option<Seq>, // after the highest byte seen
    /// Highest ACK of this direction's data that passed the capture.
    pub highest_ack: Option<Seq>,
    pub bytes: u64, // of payload, each once
    pub mss_announced: Option<u16>,
    pub window_scale: Option<u8>,
    pub options_cut: bool,
    /// Those of a later segment were not, and it has no time stamps.
    pub unstamped: bool,
    pub timestamps: bool,
    /// Most bytes of other options seen on full segments (SACK, RFC 6824's DSS, RFC 2385's digest, AccECN).
    pub other_options: u8,
    pub fin: Option<Seq>,
    /// End of the last segment whose last packet was below the MSS (`snd_sml`, net/ipv4/tcp_output.c).
    pub snd_sml: Option<Seq>,
    pub last_data: Option<LastData>,
    pub view: View,
    pub rto: RtoEstimator,
    pub sent: ShortDeque<Sent>,
    in_transit: ShortDeque<AckSeen>,
    /// Size of a full segment, where no handshake gives the MSS.
    pub full_size: FullSize,
    pub window_max: u32,
    pub window_first: Option<u32>,
    pub window_grew_at: Instant,
    /// The peer offered no window scaling, so that its window ends at 65,535 bytes.
    pub peer_unscaled: bool,
    pub clock: StampClock,
    /// Resolution of the capture's clock in ms, at most 255, if it is coarse; otherwise 0.
    pub grain_ms: u8,
    /// The last ACK reported bytes after a hole by SACK.
    pub sack_pending: bool,
    /// How much longer the present packet took to get here than the fastest recent one; none on one host,
    /// which has no path.
    pub queued_on_way: Maybe<Duration>,
    /// Longest delay of any packet so far beyond that of the fastest one.
    pub queued_peak: Duration,
    /// How often the peer acknowledged this direction's data with data of its own, and with a bare ACK.
    acked_with_data: u32,
    pub acked_bare: u32,
    /// The longest that the peer held back an ACK of a single segment: a lower bound of its delayed-ACK
    /// timer.
    peer_timer: Duration,
    /// Bytes since the last segment with PSH.
    pushed_run: u32,
    pub large: LargeSegments,
    pub newly_acked: u32, // bytes that the last ACK was the first to cover
    pub arrivals: RateEstimator,
    pub acknowledgements: RateEstimator,
    pub newest_acked_at: Maybe<Instant>, // when the newest acknowledged bytes were sent
    pub part_acked_at: Instant,          // when a bare ACK of a part of what was sent passed
    /// The peer's application is behind until this byte is acknowledged: ACKs come as it reads.
    unread_until: Option<Seq>,
    /// The peer acknowledged bytes that are missing from the capture.
    pub missing_from_capture: bool,
    ip_id: IpIdCounter,
    /// Packets of this direction missing from the capture since the last data segment, by IP ID.
    pub missed_since_data: u16,
    /// It has sent a packet without data since the handshake.
    pub sent_bare: bool,
    /// When the last packet without data passed whose sequence number shows that the capture has everything
    /// sent before it.
    pub nothing_out_at: Instant,
    /// State of flights, losses and pauses, which most directions do not have.
    pub unusual: Unusual,
    /// Take no shortcuts, see `Options`.
    pub plain: bool,
    /// Both ends have the same address: no link lies between them, and a packet that comes late was not read
    /// sooner.
    pub on_one_host: bool,
}

impl Flow {
    /// Resolution of the capture's clock, if it is coarse; otherwise zero.
    #[inline]
    pub(crate) fn grain(&self) -> Duration {
        Duration::from_millis(i64::from(self.grain_ms))
    }

    pub(crate) fn new(side: Side) -> Self {
        Self {
            side,
            first: None,
            snd_nxt: None,
            highest_ack: None,
            bytes: 0,
            mss_announced: None,
            window_scale: None,
            options_cut: false,
            unstamped: false,
            other_options: 0,
            timestamps: false,
            fin: None,
            snd_sml: None,
            last_data: None,
            view: View::default(),
            rto: RtoEstimator::default(),
            sent: ShortDeque::default(),
            in_transit: ShortDeque::default(),
            full_size: FullSize::default(),
            window_max: 0,
            window_first: None,
            window_grew_at: Instant::MIN,
            peer_unscaled: false,
            clock: StampClock::default(),
            grain_ms: 0,
            sack_pending: false,
            queued_on_way: Maybe::NONE,
            queued_peak: Duration::ZERO,
            acked_with_data: 0,
            acked_bare: 0,
            peer_timer: Duration::ZERO,
            pushed_run: 0,
            large: LargeSegments::default(),
            newly_acked: 0,
            arrivals: RateEstimator::blurred(),
            acknowledgements: RateEstimator::default(),
            newest_acked_at: Maybe::NONE,
            part_acked_at: Instant::MIN,
            unread_until: None,
            missing_from_capture: false,
            ip_id: IpIdCounter::default(),
            missed_since_data: 0,
            sent_bare: false,
            nothing_out_at: Instant::MIN,
            unusual: Unusual::default(),
            plain: false,
            on_one_host: false,
        }
    }

    /// [`Self::new`] in place of another connection's state, without building it elsewhere and copying it. A
    /// debug assertion compares the two (`Connection::begin_again`).
    pub(crate) fn begin_again(&mut self, side: Side) {
        self.side = side;
        (self.first, self.snd_nxt, self.highest_ack, self.bytes) = (None, None, None, 0);
        (self.mss_announced, self.window_scale, self.timestamps) = (None, None, false);
        (self.options_cut, self.unstamped, self.other_options) = (false, false, 0);
        (self.fin, self.snd_sml) = (None, None);
        self.last_data = None;
        self.view = View::default();
        self.rto = RtoEstimator::default();
        self.free();
        self.full_size = FullSize::default();
        (self.window_max, self.window_first, self.window_grew_at) = (0, None, Instant::MIN);
        (self.peer_unscaled, self.grain_ms) = (false, 0);
        self.clock = StampClock::default();
        self.sack_pending = false;
        (self.queued_on_way, self.queued_peak) = (Maybe::NONE, Duration::ZERO);
        (self.acked_with_data, self.acked_bare, self.peer_timer) = (0, 0, Duration::ZERO);
        (self.pushed_run, self.newly_acked) = (0, 0);
        self.large = LargeSegments::default();
        self.arrivals = RateEstimator::blurred();
        self.acknowledgements = RateEstimator::default();
        (self.newest_acked_at, self.part_acked_at) = (Maybe::NONE, Instant::MIN);
        self.unread_until = None;
        self.ip_id = IpIdCounter::default();
        (self.missing_from_capture, self.missed_since_data) = (false, 0);
        (self.sent_bare, self.nothing_out_at) = (false, Instant::MIN);
        (self.plain, self.on_one_host) = (false, false);
    }

    /// The largest payload of one packet, given what the peer announced.
    #[inline]
    pub(crate) fn mss(&self, peer_announced: Option<u16>) -> u32 {
        let options = self.options_len();
        match (self.mss_announced, peer_announced) {
            (Some(own), Some(peer)) => u32::from(own.min(peer)).saturating_sub(options).max(1),
            _ => self.full_size.mss(options),
        }
    }

    /// Length of the options in each segment.
    pub(crate) fn options_len(&self) -> u32 {
        // If the snap length cuts a SYN's off, assume time stamps: nearly all hosts send them. A header without
        // them says otherwise.
        let may_stamp = self.options_cut && !self.unstamped;
        let stamps = if self.timestamps || may_stamp { TIMESTAMP_OPTION_LEN } else { 0 };
        stamps + u32::from(self.other_options)
    }

    /// Whether a segment of `len` bytes is full-sized. Without the handshake: a whole number of what seems
    /// to be the MSS.
    pub(crate) fn is_full(&self, len: u32, mss: u32) -> bool {
        len >= mss && (self.mss_announced.is_some() || len.is_multiple_of(mss))
    }

    /// Heap memory in bytes, except for a few words.
    pub(crate) fn heap(&self) -> usize {
        self.sent.heap() + self.in_transit.heap() + self.unusual.heap()
    }

    /// Frees that memory.
    pub(crate) fn free(&mut self) {
        self.sent.free();
        self.in_transit.free();
        self.unusual = Unusual::default();
    }

    /// Bytes in flight as the sender knew it.
    pub(crate) fn flight(&self) -> u32 {
        match (self.snd_nxt, self.view.snd_una) {
            (Some(nxt), Some(snd_una)) => (nxt - snd_una).max(0) as u32,
            _ => 0,
        }
    }

    /// Bytes that passed the capture and were not acknowledged there.
    pub(crate) fn outstanding(&self) -> u32 {
        match (self.snd_nxt, self.highest_ack) {
            (Some(nxt), Some(acked)) => (nxt - acked).max(0) as u32,
            (Some(nxt), None) => self.first.map_or(0, |first| (nxt - first).max(0) as u32),
            _ => 0,
        }
    }

    /// Whether the sender's IP ID counts this connection's packets alone, and the capture has missed hardly
    /// any.
    pub(crate) fn numbers_its_packets(&self) -> bool {
        self.ip_id.is_proven()
    }

    /// Whether its IP IDs show which of its packets are missing from the capture.
    pub(crate) fn numbers_tell(&self) -> bool {
        self.ip_id.tells()
    }

    /// Whether a packet may be missing before the last one, early in a connection.
    pub(crate) fn suspects_missing(&self) -> bool {
        self.ip_id.suspects()
    }

    /// How far the last packet's IP ID is from the one before it, if not just a few packets.
    pub(crate) fn numbered_apart(&self) -> Option<u16> {
        self.ip_id.apart()
    }

    /// Every packet of this direction, data or not. Returns how many before it are missing from the capture.
    pub(crate) fn on_packet(&mut self, segment: &Segment, mss: u32) -> u16 {
        let one = segment.payload_len <= mss; // the usual case, without a division
        let packets = if one { 1 } else { segment.payload_len.div_ceil(mss.max(1)) as u16 };
        self.ip_id.on_ttl(segment.ttl, segment.ip_id);
        let missed = segment.ip_id.map_or(0, |id| self.ip_id.on_packet(id, packets));
        self.missed_since_data = self.missed_since_data.saturating_add(missed);
        self.queued_on_way = Maybe::NONE;
        if let Some(stamps) = segment.options.timestamps {
            self.timestamps = true;
            let overtook = self.snd_nxt.is_some_and(|nxt| segment.seq.after(nxt));
            let late = self.clock.on_packet(segment.at, stamps.val, overtook);
            let late = late.filter(|&late| !self.on_one_host && late >= self.grain().times(2));
            self.queued_on_way = late.into();
            self.learn_peak(segment.at);
        }
        missed
    }

    /// The capture's clock stepped back: no interval that spans the step can be measured.
    pub(crate) fn on_clock_step(&mut self) {
        self.unusual.shown().untimed_until = self.snd_nxt;
        self.clock.interrupt();
        self.arrivals.interrupt();
        self.acknowledgements.interrupt();
    }
}
