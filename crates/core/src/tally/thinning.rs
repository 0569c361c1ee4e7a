//! Which of too many exchanges are listed one by one, and how many does each stand for?
//!
//! The chance that an exchange is kept grows with its time and halves from level to level; slow enough
//! ones are always kept. That depends only on its packets and its time, and what a level keeps, lower
//! levels keep too: so the final list is the same however the work is spread.

use tcpwhy_wire::{Duration, Instant};

use crate::words::report::{Connection, Exchange, Omitted, Report};

/// An exchange has one lot in 2^level, and one more for each of these in its time.
const LOT: Duration = Duration::from_millis(1);
/// From this level on, nothing is thinned further.
const LEVEL_MAX: u32 = 40;

/// The last level that keeps an exchange of these packets and this time; lower levels keep it too.
pub(crate) fn level(packets: [u64; 2], elapsed: Duration) -> u32 {
    let times = ((u128::from(lots(elapsed)) << 64) - 1).checked_div(drawn(packets));
    times.map_or(LEVEL_MAX, |times| LEVEL_MAX.min(times.ilog2()))
}

impl Exchange {
    /// The last level of thinning that keeps it.
    pub(crate) fn level(&self) -> u32 {
        level(self.packets, self.elapsed)
    }
}

/// Whether this level keeps it.
pub(crate) fn keeps(level: u32, packets: [u64; 2], elapsed: Duration) -> bool {
    level == 0 || drawn(packets) < u128::from(lots(elapsed)) << (64 - level)
}

/// How many exchanges are listed, by the last level that keeps each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Kept([u64; LEVEL_MAX as usize + 1]);

impl Default for Kept {
    fn default() -> Self {
        Self([0; LEVEL_MAX as usize + 1])
    }
}

impl Kept {
    pub(crate) fn add(&mut self, level: u32) {
        self.0[level as usize] += 1;
    }

    /// Removes one that is counted elsewhere now.
    pub(crate) fn take(&mut self, level: u32) {
        self.0[level as usize] -= 1;
    }

    pub(crate) fn add_all(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum += more);
    }

    /// The first level, from this one on, that leaves no more than `most`. As long as exchanges are
    /// only added, it never has to go back.
    pub(crate) fn level(&self, from: u32, most: usize) -> u32 {
        let leaves = |level: u32| self.0[level as usize..].iter().sum::<u64>();
        (from..LEVEL_MAX).find(|level| leaves(*level) <= most as u64).unwrap_or(LEVEL_MAX)
    }
}

/// A number below 2^64, always the same for the same packets.
fn drawn(packets: [u64; 2]) -> u128 {
    let mut x = packets[0].wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ packets[1].rotate_left(32);
    for _ in 0..2 {
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^= x >> 31;
    }
    u128::from(x)
}

fn lots(elapsed: Duration) -> u64 {
    1 + (elapsed.as_nanos().max(0) / LOT.as_nanos()).unsigned_abs()
}

/// How many exchanges each listed one stands for, in the order of the report: together as many as its
/// connections had. An exchange that is always kept stands for itself alone.
pub fn stands_for(report: &Report) -> Vec<u64> {
    let listed = || report.connections.iter().flat_map(|connection| &connection.exchanges);
    let Some(of) = 1_u64.checked_shl(report.thinned).filter(|of| *of > 1) else {
        return vec![1; listed().count()];
    };
    let chance = |exchange: &Exchange| lots(exchange.elapsed).min(of);
    let sampled = || listed().filter(|exchange| chance(exchange) < of);
    let certain = (listed().count() - sampled().count()) as u64;
    // The sampled ones are scaled so that the sum is right.
    let weight = |exchange: &Exchange| of as f64 / chance(exchange) as f64;
    let (drawn, all) =
        (sampled().map(weight).sum::<f64>(), listed().count() as u64 + report.omitted.exchanges - certain);
    let scale = if drawn > 0.0 { all as f64 / drawn } else { 0.0 };
    let mut sum = 0.0;
    let each = |exchange: &Exchange| {
        if chance(exchange) == of {
            return 1;
        }
        let before = (sum * scale).round();
        sum += weight(exchange);
        ((sum * scale).round() - before) as u64
    };
    listed().map(each).collect()
}

/// The same report with at most `most` exchanges in its lists, slow ones more likely; only those that
/// began within a span, if one is given. Connections without any exchange left are not listed.
pub fn thinned(report: &Report, most: usize, within: Option<[Instant; 2]>) -> Report {
    let is_within =
        |exchange: &Exchange| within.is_none_or(|[from, to]| exchange.start >= from && exchange.start <= to);
    let listed = || report.connections.iter().flat_map(|connection| &connection.exchanges);
    let (mut kept, mut all) = (Kept::default(), 0);
    for (exchange, stands_for) in listed().zip(stands_for(report)).filter(|(exchange, _)| is_within(exchange))
    {
        kept.add(exchange.level());
        all += stands_for;
    }
    let level = kept.level(report.thinned, most);
    let connections: Vec<Connection> = report
        .connections
        .iter()
        .filter_map(|connection| {
            let keeps = |exchange: &&Exchange| is_within(exchange) && exchange.level() >= level;
            let exchanges: Vec<Exchange> = connection.exchanges.iter().filter(keeps).cloned().collect();
            let bill = connection.bill.clone();
            (!exchanges.is_empty()).then_some(Connection {
                exchanges,
                bill,
                ladder: Vec::new(),
                steps: None,
                ..*connection
            })
        })
        .collect();
    let left: u64 = connections.iter().map(|connection| connection.exchanges.len() as u64).sum();
    let omitted = Omitted { exchanges: all.saturating_sub(left), ..report.omitted };
    let (bill, findings, notes) = (report.bill.clone(), report.findings.clone(), report.notes.clone());
    let clients = report.clients.clone();
    Report { connections, omitted, thinned: level, clients, bill, findings, notes, ..*report }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::cause::Side;
    use crate::words::opening::Opening;
    use crate::words::report::{Kind, Vantage};
    use tcpwhy_wire::Endpoint;

    /// A report of exchanges of a microsecond each, one each microsecond; every tenth takes a second.
    fn report(count: u64) -> Report {
        let exchange = |n: u64| Exchange {
            n,
            kind: Kind::Exchange,
            initiator: Side::Client,
            by: None,
            start: Instant::from_nanos(1_000 * n as i64),
            elapsed: if n.is_multiple_of(10) { Duration::from_secs(1) } else { Duration::from_micros(1) },
            awaited: Duration::ZERO,
            client_idle: Duration::ZERO,
            request_bytes: 1,
            reply_bytes: 1,
            packets: [2 * n + 1, 2 * n + 2],
            request: None,
            bill: Vec::new(),
        };
        let end = Endpoint::v4([10, 0, 0, 1], 80);
        let connection = Connection {
            id: 1,
            client: end,
            server: end,
            assumed: false,
            vantage: Vantage::Client,
            rtt_min: None,
            mss: [None; 2],
            packets: 2 * count,
            bytes: [count; 2],
            packet_range: [1, 2 * count],
            span: [Instant::from_nanos(0), Instant::from_nanos(1_000 * count as i64)],
            billed: count,
            by_clock: Duration::ZERO,
            bill: Vec::new(),
            exchanges: (0..count).map(exchange).collect(),
            ladder: Vec::new(),
            steps: None,
            ladder_omitted: 0,
            opening: Opening::default(),
        };
        Report { connections: vec![connection], ..Report::default() }
    }

    #[test]
    fn what_is_left_stands_for_all_of_the_span_and_the_slow_stay() {
        let all = report(10_000);
        for (within, of, slow) in [(None, 10_000, 1_000), (Some([2_000_000, 3_999_999]), 2_000, 200)] {
            let within = within.map(|ends| ends.map(Instant::from_nanos));
            let some = thinned(&all, 500, within);
            let left = &some.connections[0].exchanges;
            let is_within =
                |exchange: &Exchange| within.is_none_or(|[from, to]| (from..=to).contains(&exchange.start));
            assert!(left.iter().all(is_within));
            let kept = |exchange: &&Exchange| exchange.elapsed == Duration::from_secs(1);
            let most = left.iter().filter(kept).count();
            assert!(left.len() <= 500 && (most == slow || left.len() > 250), "{most} of {}", left.len());
            assert_eq!(stands_for(&some).iter().sum::<u64>(), of, "{within:?}");
            // Thinning in two steps gives the same as thinning at once.
            assert_eq!(thinned(&thinned(&all, 4_000, None), 500, within).connections, some.connections);
        }
        assert_eq!(thinned(&all, 10_000, None), all);
        assert!(
            thinned(&all, 500, Some([Instant::from_nanos(-9), Instant::from_nanos(-1)]))
                .connections
                .is_empty()
        );
    }

    #[test]
    fn a_level_keeps_half_of_the_one_below_and_nothing_else() {
        let all: Vec<[u64; 2]> = (0..64_000).map(|n| [3 * n, 3 * n + 2]).collect();
        let mut before = all.clone();
        for level in 0..6_u32 {
            let kept: Vec<_> = all
                .iter()
                .copied()
                .filter(|packets| super::level(*packets, Duration::ZERO) >= level)
                .collect();
            assert!(kept.iter().all(|packets| before.contains(packets)), "level {level}");
            let wanted = all.len() >> level;
            assert!(kept.len().abs_diff(wanted) * 20 <= wanted, "level {level}: {} of {wanted}", kept.len());
            assert!(all.iter().all(|packets| super::level(*packets, LOT.times(1 << level)) >= level));
            before = kept;
        }
    }
}
