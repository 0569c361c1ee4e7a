//! How is a bill corrected if the capture's clock was set meanwhile?

use tcpwhy_wire::Duration;

use crate::bill::account::Account;
use crate::words::cause::{Cause, Side};

impl Account {
    /// Takes this much off the longest waits, as it was the capture clock's. The rest was judged by
    /// wrong durations. Returns how much could be taken.
    pub(super) fn take_set(&mut self, ns: Duration) -> Duration {
        let mut left = ns;
        while let Some(line) = self.open().lines.iter_mut().max_by_key(|line| line.longest.min(line.ns))
            && left.is_positive()
        {
            let (cause, side, most) = (line.cause, line.side, line.longest.min(line.ns).min(left));
            line.longest -= most;
            let taken = self.take_back_at(cause, side, most);
            if !taken.is_positive() {
                break;
            }
            left -= taken;
        }
        for line in &mut self.open().lines {
            line.by_confidence = [line.ns, Duration::ZERO, Duration::ZERO];
        }
        ns - left
    }

    /// Takes back up to `ns` of the charges to a cause at a side. Returns how much.
    pub(super) fn take_back_at(&mut self, cause: Cause, side: Side, ns: Duration) -> Duration {
        let Some(place) = self.place_of(cause, side) else { return Duration::ZERO };
        let line = &mut self.open().lines[place];
        let taken = ns.min(line.ns);
        line.ns -= taken;
        line.waits = line.waits.saturating_sub(1).max(1);
        let mut left = taken;
        for of in &mut line.by_confidence {
            let part = left.min(*of);
            *of -= part;
            left -= part;
        }
        if !line.ns.is_positive() {
            self.remove_line(place);
        }
        self.total -= taken;
        taken
    }
}
