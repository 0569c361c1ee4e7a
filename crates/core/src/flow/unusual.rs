//! Which state do only a few directions have?
//!
//! Flights, losses, readers that pause and a handshake missing from the capture have memory of their own: a
//! direction of requests and replies in one segment each spends a single word on all of it.

use std::ops::Deref;

use tcpwhy_wire::{Duration, Instant, Seq};

use crate::estimate::beat::Cadence;
use crate::estimate::bottleneck::Link;
use crate::estimate::bursts::Bursts;
use crate::estimate::stamp_pacing::Pace;
use crate::estimate::window_scale::ScaleBounds;
use crate::flow::holes::Holes;

/// The state of a direction that has any of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shown {
    /// The bottleneck beyond the capture.
    pub link: Link,
    /// Whether its rate agrees with what left together.
    pub bursts: Bursts,
    pub pace: Pace,
    pub cadence: Cadence,
    pub holes: Holes,
    /// The scale of the peer's windows, where no handshake gives it.
    pub scale_bounds: ScaleBounds,
    /// When the last SACK or duplicate ACK passed.
    pub sack_or_dupack_at: Instant,
    /// Where the last segment that filled a hole ended, and its packet.
    pub filled: Option<(Seq, u64)>,
    /// Where the packet begins and ends of which the last retransmission has only the first bytes, as no other has.
    pub front_again: Option<[Seq; 2]>,
    /// Where the only block that it reported as arrived begins, beyond the only hole.
    pub hole_until: Option<Seq>,
    /// When this direction's peer last showed that its application pauses in reading: a window update, or an
    /// ACK of several segments, passed some time after these.
    pub reader_paused_at: Instant,
    /// When its peer last acknowledged bytes of a hole.
    pub unseen_acked_at: Instant,
    /// When it was last known that the capture had missed a stretch of this direction's packets.
    pub stretch_missed_at: Instant,
    /// When it last acknowledged what had been retransmitted unnecessarily.
    pub spare_acked_at: Instant,
    /// When it sent a keep-alive that nothing has answered yet.
    pub probed_at: Instant,
    /// Nothing sent before this byte can be timed: the capture's clock stepped.
    pub untimed_until: Option<Seq>,
    /// Its peer has repeated an acknowledgement though nothing had been sent twice: the path, or the peer, does that by itself.
    pub repeated_unasked: bool,
}

/// So many segments are hardly acknowledged by a single packet: with so many bytes, the capture has missed
/// acknowledgements as well. Source: one for every second segment, RFC 9293, 3.8.6.3.
const STRETCH_SEGMENTS: u32 = 4;

impl Shown {
    /// It is known by `at` that the capture has missed so many bytes, which did arrive.
    pub(crate) fn miss(&mut self, bytes: u32, at: Instant, mss: u32) {
        if bytes > STRETCH_SEGMENTS.saturating_mul(mss) {
            self.stretch_missed_at = at;
        }
    }
}

/// None of it has been seen.
static NONE: Shown = Shown {
    link: Link::NONE,
    bursts: Bursts::NONE,
    pace: Pace::NONE,
    cadence: Cadence::NONE,
    holes: Holes::NONE,
    scale_bounds: ScaleBounds::NONE,
    sack_or_dupack_at: Instant::MIN,
    filled: None,
    front_again: None,
    hole_until: None,
    reader_paused_at: Instant::MIN,
    unseen_acked_at: Instant::MIN,
    stretch_missed_at: Instant::MIN,
    spare_acked_at: Instant::MIN,
    probed_at: Instant::MIN,
    untimed_until: None,
    repeated_unasked: false,
};

/// That state, or one word if there is none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unusual(Option<Box<Shown>>);

impl Deref for Unusual {
    type Target = Shown;

    #[inline]
    fn deref(&self) -> &Shown {
        self.0.as_deref().unwrap_or(&NONE)
    }
}

/// Compared by content: a box that holds nothing equals no box.
impl PartialEq for Unusual {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Unusual {
    /// For writing: allocates if there is none.
    #[inline]
    pub(crate) fn shown(&mut self) -> &mut Shown {
        self.0.get_or_insert_with(begun)
    }

    /// For taking something out, if there is any.
    #[inline]
    pub(crate) fn known(&mut self) -> Option<&mut Shown> {
        self.0.as_deref_mut()
    }

    /// Whether there is none.
    #[inline]
    pub(crate) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// For how long from `at` on the bottleneck is busy.
    #[inline]
    pub(crate) fn busy_from(&self, at: Instant) -> Duration {
        self.0.as_ref().map_or(Duration::ZERO, |shown| shown.link.busy_from(at))
    }

    /// Whether nothing is missing, untimed or retransmitted.
    #[inline]
    pub(crate) fn is_whole(&self) -> bool {
        self.0.as_ref().is_none_or(|shown| {
            shown.holes.is_empty() && shown.untimed_until.is_none() && !shown.link.has_resent()
        })
    }

    /// When it sent a keep-alive, if nothing has answered it until now.
    #[inline]
    pub(crate) fn take_probe(&mut self) -> Option<Instant> {
        let probed_at = &mut self.known()?.probed_at;
        Some(std::mem::replace(probed_at, Instant::MIN)).filter(|at| *at > Instant::MIN)
    }

    /// Heap memory in bytes.
    #[inline]
    pub(crate) fn heap(&self) -> usize {
        self.0.as_ref().map_or(0, |shown| size_of::<Shown>() + shown.holes.heap())
    }
}

#[cold]
#[inline(never)]
fn begun() -> Box<Shown> {
    Box::new(NONE.clone())
}
