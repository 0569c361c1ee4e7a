//! Have all hits of a finding the same form, so that the most expensive one speaks for them?

use crate::words::cause::Cause;
use crate::words::form::Form;

/// Whether all hits have one form.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Alike {
    #[default]
    Unknown,
    One(Option<Form>),
    No,
}

impl Alike {
    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown, known) | (known, Self::Unknown) => known,
            (one, same) if one == same => one,
            _ => Self::No,
        }
    }
}

/// Causes whose forms say so different things that one hit does not speak for another.
pub(super) const FORMED: u32 = Cause::SynRetransmit.bit() | Cause::Rto.bit() | Cause::Loss.bit();
