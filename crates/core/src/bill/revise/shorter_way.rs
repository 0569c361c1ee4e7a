//! How is a bill corrected if the path proves to be shorter than the round trip that it was charged?

use tcpwhy_wire::Duration;

use super::may_have_stood;
use crate::bill::account::Account;
use crate::bill::charge::Charge;
use crate::bill::line::LineView;
use crate::words::cause::{Cause, Side};
use crate::words::report::Confidence;

/// What a round trip is billed to.
const WAYS: [Cause; 2] = [Cause::TlsHandshake, Cause::RoundTrip];

impl Account {
    /// Moves what the round trip took above `least` to queueing. The path has varied by as much, so that the
    /// server's own time may be part of that as well if it is no longer. Returns how much was moved.
    pub(super) fn shorten_way(&mut self, least: Duration, asker: Side) -> Duration {
        let above = (self.way() - least).at_least_zero();
        let mut left = above;
        for cause in WAYS {
            let Some(place) = self.place_of(cause, cause.side(asker)) else { continue };
            let packets = self.open().lines[place].evidence[0];
            let ns = self.take_back(cause, asker, left);
            self.charge(&Charge { evidence: packets, ..may_have_stood(ns, asker) });
            left -= ns;
        }
        self.temper(|line| WAYS.contains(&line.cause)); // how long it was then, no packet of its own shows
        let own = |line: LineView<'_>| line.cause() == Cause::ServerThink && line.ns() <= above;
        // Beside its server, that is the server's for certain.
        if self.bill().summary().any(|line| own(line) && line.confidence() < Confidence::Certain) {
            self.doubt_line(Cause::ServerThink, asker.peer());
        }
        above - left
    }

    /// How long the round trip was that it has been charged.
    pub(crate) fn way(&mut self) -> Duration {
        self.bill().summary().filter(|line| WAYS.contains(&line.cause())).map(LineView::ns).sum()
    }
}
