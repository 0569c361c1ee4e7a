//! How does one interval divide into charges that sum to it?

use tcpwhy_wire::Duration;

use crate::bill::charge::Charge;
use crate::words::cause::{Cause, Side};
use crate::words::form::Form;
use crate::words::report::{Confidence, Detail};

/// An application that writes again within this after a wait may have been waiting too.
pub(super) const OWN_PACE_MIN: Duration = Duration::from_millis(1);

/// Splits one interval into charges that sum to it, whatever amounts are asked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Split {
    rest: Duration,
    /// Nearly always one or two charges: splits are passed around for every packet, so they are
    /// kept small. The first `count` are in use.
    near: [Charge; 2],
    count: u8,
    /// Its sender's own pace shows in it, whether or not anybody waited for that.
    own_pace: bool,
    /// The causes in it, one bit each: they are queried several times per packet.
    causes: u32,
    /// All of them, once there are more.
    #[expect(clippy::box_collection, reason = "a word instead of three in every split")]
    far: Option<Box<Vec<Charge>>>,
}

const NO_CHARGE: Charge =
    Charge::new(Cause::Unexplained, Side::Unknown, Duration::ZERO, Confidence::Possible);

impl Split {
    #[inline]
    pub(crate) fn of(interval: Duration) -> Self {
        let near = [NO_CHARGE, NO_CHARGE];
        Self { rest: interval.at_least_zero(), near, count: 0, own_pace: false, causes: 0, far: None }
    }

    /// Takes the charge from what is left, as far as that suffices.
    #[inline]
    pub(crate) fn take(&mut self, mut charge: Charge) {
        charge.ns = charge.ns.at_least_zero().min(self.rest);
        if !charge.ns.is_positive() {
            return;
        }
        self.rest -= charge.ns;
        self.causes |= charge.cause.bit();
        match self.near.get_mut(usize::from(self.count)) {
            Some(free) => {
                *free = charge;
                self.count += 1;
            }
            None => self.take_more(charge),
        }
    }

    #[cold]
    fn take_more(&mut self, charge: Charge) {
        let near = &self.near;
        self.far.get_or_insert_with(|| Box::new(near.to_vec())).push(charge);
    }

    /// Charges all that is left.
    #[inline]
    pub(crate) fn rest(mut self, mut charge: Charge) -> Self {
        charge.ns = self.rest;
        self.take(charge);
        self
    }

    /// Lowers all charges to possible.
    #[cold]
    pub(crate) fn doubt(&mut self) {
        let far = self.far.iter_mut().flat_map(|far| far.iter_mut());
        self.near.iter_mut().chain(far).for_each(|charge| charge.confidence = Confidence::Possible);
    }

    /// Whether its sender wrote at its own pace: by a charge that was made as likely, even if nobody need have waited then.
    pub(crate) fn shows_own_pace(&self) -> bool {
        let shown = |charge: &Charge| charge.ns >= OWN_PACE_MIN && charge.confidence > Confidence::Possible;
        self.own_pace || self.charges().any(shown)
    }

    /// Whether that was doubted, and for no other reason.
    pub(crate) fn is_own_pace(&self) -> bool {
        self.own_pace
    }

    /// Lowers all charges to possible, since nobody need have waited: a pause may lie between two messages.
    #[cold]
    pub(crate) fn doubt_waiting(&mut self) {
        self.own_pace = self.shows_own_pace();
        self.doubt();
        let form = Form::OrMessages;
        let far = self.far.iter_mut().flat_map(|far| far.iter_mut());
        let own = |charge: &&mut Charge| charge.cause == Cause::SenderThink && charge.detail.is_none();
        for charge in self.near.iter_mut().chain(far).filter(own) {
            *charge = charge.clone().detail(Detail { form: Some(form), ..Detail::default() });
        }
    }

    /// Lowers charges of no more than this to possible.
    #[cold]
    pub(crate) fn doubt_up_to(&mut self, ns: Duration) {
        let far = self.far.iter_mut().flat_map(|far| far.iter_mut());
        let short = self.near.iter_mut().chain(far).filter(|charge| charge.ns <= ns);
        short.for_each(|charge| charge.confidence = Confidence::Possible);
    }

    /// The pause is in the middle of a message and does not begin another.
    #[cold]
    pub(crate) fn settle_message(&mut self) {
        let far = self.far.iter_mut().flat_map(|far| far.iter_mut());
        for charge in self.near.iter_mut().chain(far) {
            let doubted = charge.detail.as_ref().is_some_and(|detail| detail.form == Some(Form::OrMessages));
            if doubted {
                (charge.confidence, charge.detail) = (Confidence::Likely, None);
            }
        }
    }

    /// What Nagle held may be a message of its own. Any other form says more.
    #[cold]
    pub(crate) fn holds_message(&mut self) {
        let far = self.far.iter_mut().flat_map(|far| far.iter_mut());
        let held = |charge: &&mut Charge| matches!(charge.cause, Cause::Nagle | Cause::NagleDelayedAck);
        for detail in self.near.iter_mut().chain(far).filter(held).filter_map(|held| held.detail.as_mut()) {
            if matches!(detail.form, None | Some(Form::Rfc896)) {
                detail.form = Some(Form::OwnMessage);
            }
        }
    }

    /// What seemed to be a program's `own` time was a hold, and is charged like `held`.
    #[cold]
    pub(crate) fn hold(&mut self, own: Cause, held: &Charge) {
        let far = self.far.iter_mut().flat_map(|far| far.iter_mut());
        for charge in self.near.iter_mut().chain(far).filter(|charge| charge.cause == own) {
            *charge = Charge { ns: charge.ns, ..held.clone() };
            self.causes |= held.cause.bit();
        }
    }

    /// Lowers all charges to likely at most.
    #[cold]
    pub(crate) fn temper(&mut self) {
        let far = self.far.iter_mut().flat_map(|far| far.iter_mut());
        let all = self.near.iter_mut().chain(far);
        all.for_each(|charge| charge.confidence = charge.confidence.min(Confidence::Likely));
    }

    pub(crate) fn left(&self) -> Duration {
        self.rest
    }

    #[inline]
    pub(crate) fn charges(&self) -> std::slice::Iter<'_, Charge> {
        match &self.far {
            Some(far) => far.iter(),
            None => self.near[..usize::from(self.count)].iter(),
        }
    }

    /// Whether anything in it was spent on one of these causes.
    #[inline]
    pub(crate) fn has(&self, causes: u32) -> bool {
        self.causes & causes != 0
    }

    /// Whether nothing in it was spent on any other cause.
    #[inline]
    pub(crate) fn has_only(&self, causes: u32) -> bool {
        self.causes & !causes == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: i64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn a_split_sums_to_its_interval_whatever_is_asked() {
        let mut split = Split::of(ms(44));
        split.take(Charge::new(Cause::SenderThink, Side::Client, ms(25), Confidence::Likely));
        split.take(Charge::new(Cause::Bandwidth, Side::Client, ms(100), Confidence::Likely));
        let split = split.rest(Charge::new(Cause::Nagle, Side::Client, Duration::ZERO, Confidence::Certain));
        let billed: Duration = split.charges().map(|charge| charge.ns).sum();
        assert_eq!(billed, ms(44));
        assert_eq!(split.charges().count(), 2);
    }

    #[test]
    fn a_split_has_room_for_every_charge_that_it_can_get() {
        let mut split = Split::of(ms(6));
        for cause in Cause::ALL.into_iter().take(5) {
            split.take(Charge::new(cause, Side::Client, ms(1), Confidence::Likely));
        }
        let split = split.rest(Charge::new(Cause::ServerThink, Side::Server, ms(0), Confidence::Likely));
        assert_eq!(split.charges().map(|charge| charge.ns).sum::<Duration>(), ms(6));
        assert!(!split.left().is_positive());
    }
}
