//! Whose are repairs of what the path may not have lost?

use super::Path;
use crate::words::cause::{Cause, Side};

impl Path {
    /// What repairs have cost so far was likely this end's, of this form.
    pub(crate) fn blame(&mut self, side: Side, form: &'static str) {
        self.commit();
        for cause in [Cause::Rto, Cause::Loss] {
            self.account.blame(cause, side, form);
        }
    }

    /// What repairs have cost so far is no more than likely the path's.
    pub(crate) fn temper_repairs(&mut self) {
        self.commit();
        for cause in [Cause::Rto, Cause::Loss] {
            self.account.temper(cause);
        }
    }
}
