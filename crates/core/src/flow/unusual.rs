//! What do few directions show of themselves?
//!
//! Flights, losses, readers that pause and a handshake that is not in the capture have memory of their own: a direction of questions
//! and answers in one segment each takes a word for all of it.

use std::ops::Deref;

use tcpwhy_wire::{Duration, Instant, Seq};

use crate::estimate::beat::Cadence;
use crate::estimate::bottleneck::Link;
use crate::estimate::stamp_pacing::Pace;
use crate::estimate::window_scale::ScaleBounds;
use crate::flow::holes::Holes;

/// What is kept of those that show any of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shown {
    /// What is at the bottleneck behind the capture.
    pub link: Link,
    pub pace: Pace,
    pub cadence: Cadence,
    pub holes: Holes,
    /// By how much the peer's windows are scaled, where no handshake says that.
    pub scale_bounds: ScaleBounds,
    /// When the last SACK or duplicate acknowledgement passed.
    pub sack_or_dupack_at: Instant,
    /// Where what had arrived then began, if that was one row behind one hole.
    pub hole_until: Option<Seq>,
    /// When it last showed that its peer's application reads with pauses: a window update or an acknowledgement of several segments passed
    /// some time after these.
    pub reader_paused_at: Instant,
    /// When its peer last acknowledged bytes of a hole.
    pub unseen_acked_at: Instant,
    /// Times of what was sent before this byte are not to be measured with: the capture's clock stepped.
    pub untimed_until: Option<Seq>,
}

/// Nothing of it has been seen.
static NONE: Shown = Shown {
    link: Link::NONE,
    pace: Pace::NONE,
    cadence: Cadence::NONE,
    holes: Holes::NONE,
    scale_bounds: ScaleBounds::NONE,
    sack_or_dupack_at: Instant::MIN,
    hole_until: None,
    reader_paused_at: Instant::MIN,
    unseen_acked_at: Instant::MIN,
    untimed_until: None,
};

/// That, or the little that it takes where there is none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unusual(Option<Box<Shown>>);

impl Deref for Unusual {
    type Target = Shown;

    #[inline]
    fn deref(&self) -> &Shown {
        self.0.as_deref().unwrap_or(&NONE)
    }
}

/// By what is known: a box that nothing was put into is none.
impl PartialEq for Unusual {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Unusual {
    /// To put something into it.
    #[inline]
    pub(crate) fn shown(&mut self) -> &mut Shown {
        self.0.get_or_insert_with(begun)
    }

    /// To take something out, where there is anything.
    #[inline]
    pub(crate) fn known(&mut self) -> Option<&mut Shown> {
        self.0.as_deref_mut()
    }

    /// Whether none of it was ever seen.
    #[inline]
    pub(crate) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// For how long from `at` on the bottleneck is busy.
    #[inline]
    pub(crate) fn busy_from(&self, at: Instant) -> Duration {
        self.0.as_ref().map_or(Duration::ZERO, |shown| shown.link.busy_from(at))
    }

    /// Whether nothing is missing, untimed or sent again.
    #[inline]
    pub(crate) fn is_whole(&self) -> bool {
        self.0.as_ref().is_none_or(|shown| {
            shown.holes.is_empty() && shown.untimed_until.is_none() && !shown.link.has_resent()
        })
    }

    /// Bytes that it takes besides its own.
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
