//! What does a usual reply cost?
//!
//! Nearly all exchanges are a request and a reply of one segment each, and cost a round trip and
//! the server's time. Kept as just that, in a cache line, a bill goes to the ledger without an
//! account of its own; anything else that happens to it writes it out first (`Account::open`).

use tcpwhy_wire::Duration;

use crate::bill::charge::Charge;
use crate::bill::line::{AccountLine, Bill};
use crate::bill::told::{Brief, Told};
use crate::words::cause::{Cause, Side};
use crate::words::report::Confidence;

/// The round trip to the server, and the server's own time. No part is negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct UsualBill {
    pub way: Duration,
    pub own: Duration,
    /// That the own time was the server's, and that the two ways are all path.
    pub confidence: Confidence,
    pub sure: [Confidence; 2],
    pub server: Side,
    /// The request's packet, and the reply's.
    pub packets: [u64; 2],
    /// The way from the capture to the requester, once the exchange is over, and its last packet.
    pub back: Duration,
    pub last: u64,
}

impl UsualBill {
    /// For the reply as far as it has come.
    pub(crate) fn new(way: Duration, own: Duration, confidence: Confidence, server: Side) -> Self {
        Self {
            way,
            own,
            confidence,
            sure: [Confidence::Certain; 2],
            server,
            packets: [0; 2],
            back: Duration::ZERO,
            last: 0,
        }
    }

    pub(super) fn total(&self) -> Duration {
        self.way + self.own + self.back
    }

    /// [`LineView::confidence`](crate::bill::line::LineView::confidence) of both ways.
    #[inline]
    fn path_confidence(&self) -> Confidence {
        let [way, back] = self.sure;
        if way == back || !self.back.is_positive() { way } else { self.mixed_confidence() }
    }

    #[cold]
    #[inline(never)]
    fn mixed_confidence(&self) -> Confidence {
        let [way, own, back] = self.charges();
        let mut line = AccountLine::of(&way);
        line.add(&back);
        let lines = [line, AccountLine::of(&own)];
        Bill { lines: &lines, details: &[], total: self.total() }.line(0).confidence()
    }

    /// The charges to an account, in this order.
    pub(super) fn charges(&self) -> [Charge; 3] {
        let [asked, replied] = self.packets;
        let of = |cause, ns, confidence| Charge::new(cause, self.server, ns, confidence);
        [
            of(Cause::RoundTrip, self.way, self.sure[0]).evidence(asked, replied),
            of(Cause::ServerThink, self.own, self.confidence).evidence(asked, replied),
            of(Cause::RoundTrip, self.back, self.sure[1]).evidence(self.last, 0),
        ]
    }

    /// The lines of an account with these charges, in brief.
    #[inline]
    pub(crate) fn told(&self) -> UsualTold<'_> {
        let of =
            |cause: Cause, ns, confidence| Brief { cause, side: cause.side(self.server), ns, confidence };
        let way = of(Cause::RoundTrip, self.way + self.back, self.path_confidence());
        let own = of(Cause::ServerThink, self.own, self.confidence);
        let count = usize::from(way.ns.is_positive()) + usize::from(own.ns.is_positive());
        // If the round trip to the server took no time, its line comes after the server's, if there
        // is one.
        let behind = own.ns.is_positive() && !self.way.is_positive();
        let lines = if behind { [own, way] } else { [way, own] };
        UsualTold { whole: Whole::Reply(self), total: way.ns + own.ns, lines, count }
    }

    /// The lines of an account with these charges.
    #[cold]
    #[inline(never)]
    pub(crate) fn lines(&self) -> UsualLines {
        let [way, own, back] = self.charges();
        let mut usual = UsualLines {
            lines: [AccountLine::of(&way), AccountLine::of(&own)],
            count: if own.ns.is_positive() { 2 } else { 1 },
            total: self.total(),
        };
        if !way.ns.is_positive() {
            usual.begin_with(&own, &back);
        } else if back.ns.is_positive() {
            usual.lines[0].add(&back);
        }
        usual
    }
}

/// A bill of one line without details; of no line, if that took no time.
pub(crate) struct OneLine(Charge);

impl OneLine {
    pub(crate) fn new(charge: Charge) -> Self {
        Self(Charge { ns: charge.ns.at_least_zero(), ..charge })
    }

    pub(crate) fn told(&self) -> UsualTold<'_> {
        let Charge { cause, sender, ns, confidence, .. } = self.0;
        let line = Brief { cause, side: cause.side(sender), ns, confidence };
        let count = usize::from(ns.is_positive());
        UsualTold { whole: Whole::OneLine(&self.0), total: ns, lines: [line; 2], count }
    }
}

/// What the bill is about.
#[derive(Clone, Copy)]
enum Whole<'a> {
    Reply(&'a UsualBill),
    OneLine(&'a Charge),
}

/// The bill as it is handed over: one type for both kinds, so that the code that adds them up
/// exists once.
#[derive(Clone, Copy)]
pub(crate) struct UsualTold<'a> {
    whole: Whole<'a>,
    total: Duration,
    lines: [Brief; 2],
    count: usize,
}

impl Told for &UsualTold<'_> {
    #[inline]
    fn total(self) -> Duration {
        self.total
    }

    #[inline]
    fn count(self) -> usize {
        self.count
    }

    #[inline]
    fn brief(self, n: usize) -> Brief {
        self.lines[n & 1] // masked: saves the bounds check
    }

    fn in_full<T>(self, read: impl FnOnce(Bill<'_>) -> T) -> T {
        match self.whole {
            Whole::Reply(usual) => read(usual.lines().bill()),
            Whole::OneLine(charge) => {
                let lines = [AccountLine::of(charge)];
                read(Bill { lines: &lines[..self.count], details: &[], total: self.total })
            }
        }
    }
}

/// The lines, drawn up.
pub(crate) struct UsualLines {
    lines: [AccountLine; 2],
    count: usize,
    total: Duration,
}

impl UsualLines {
    /// The round trip to the server took no time: its line comes after the server's, if there is
    /// one.
    #[cold]
    #[inline(never)]
    fn begin_with(&mut self, own: &Charge, back: &Charge) {
        self.lines = [AccountLine::of(own), AccountLine::of(back)];
        if self.count == 1 {
            self.lines.swap(0, 1);
        }
        self.count -= usize::from(!back.ns.is_positive());
    }

    #[inline]
    pub(crate) fn bill(&self) -> Bill<'_> {
        Bill { lines: &self.lines[..self.count], details: &[], total: self.total }
    }
}
