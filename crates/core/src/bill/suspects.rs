//! Which waits may turn out to have been for a timer that ran all the while?

use tcpwhy_wire::{Duration, Instant};

use crate::bill::charge::Charge;
use crate::bill::held::HOLDS;
use crate::bill::split::Split;
use crate::words::cause::{Cause, Side};
use crate::words::form::Form;

/// Waits that are remembered.
const SUSPECTS_MAX: usize = 8;
/// The shortest of them.
const SUSPECT_MIN: Duration = Duration::from_millis(1);

/// What a sender sends while its timer runs (a probe with new data, a segment for a late
/// acknowledgement) does not make the timer expire sooner. The link's own time would have passed
/// anyway.
const SUSPECTS: u32 = HOLDS | Cause::Loss.bit() | Cause::Unexplained.bit();

/// A wait of a sender with data missing, as it would be without the loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Suspect {
    pub ended: Instant,
    pub cause: Cause,
    pub sender: Side,
    pub ns: Duration,
    /// A tail loss probe ended it.
    is_probe: bool,
}

/// The last suspects.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Suspects(Vec<Suspect>);

impl Suspect {
    #[cfg(test)]
    pub(crate) fn of(ended: Instant, cause: Cause, sender: Side, ns: Duration) -> Self {
        Self { ended, cause, sender, ns, is_probe: false }
    }
}

impl Suspects {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn heap(&self) -> usize {
        self.0.capacity() * size_of::<Suspect>()
    }

    /// Remembers what the sender waited for until `ended`.
    pub(crate) fn push(&mut self, split: &Split, ended: Instant) {
        if !split.has(SUSPECTS) {
            return;
        }
        let waits =
            split.charges().filter(|charge| charge.ns >= SUSPECT_MIN && SUSPECTS & charge.cause.bit() != 0);
        for charge in waits {
            if self.0.len() == SUSPECTS_MAX {
                self.0.remove(0);
            }
            let Charge { cause, sender, ns, .. } = *charge;
            let form = charge.detail.as_ref().and_then(|detail| detail.form);
            let is_probe = matches!(form, Some(Form::TailProbe | Form::NewDataProbe));
            self.0.push(Suspect { ended, cause, sender, ns, is_probe });
        }
    }

    /// Forgets all, and returns those that ended between two times.
    pub(crate) fn drain(&mut self, from: Instant, until: Instant) -> impl Iterator<Item = Suspect> {
        self.0.drain(..).filter(move |suspect| suspect.ended > from && suspect.ended <= until)
    }

    /// When the last wait ended, if a tail loss probe ended it.
    pub(crate) fn last_probe(&self) -> Option<Instant> {
        self.0.last().filter(|last| last.is_probe).map(|last| last.ended)
    }
}
