//! How long did packets take between two points, in each direction separately?
//!
//! The offset between two clocks is unknown, and so is the delay of the fastest packet in a
//! direction, but how much longer another packet took is known: it waited in a queue of that
//! direction. If one clock runs faster, both directions show it with opposite signs; a longer route
//! shows in one direction only. Of long connections a sample is compared, the packets whose hash is
//! smallest, which is the same at both points.

use std::collections::BTreeMap;

use tcpwhy_report::capture::OneWay;
use tcpwhy_wire::{Duration, Instant, Segment};

use super::sketch::hash;

/// Packets kept of a connection at one point, at most.
const KEPT_MAX: usize = 4_096;
/// Memory for one packet, in nodes that are two thirds full.
const KEPT_BYTES: usize = (size_of::<u64>() + size_of::<Passage>()) * 3 / 2;
/// The largest payload of a single packet (1,500 bytes with IPv4 and TCP headers). A larger one was
/// merged by a host's offload, and in what pieces the other point saw it is unknown.
const ONE_PACKET_MAX: u32 = 1_460;
/// Clocks are compared over at least ten seconds: over that time, a millisecond of jitter is 100
/// ppm.
const DRIFT_SPAN_MIN: Duration = Duration::from_secs(10);
/// Both directions have to show the same drift to within a tenth, or 0.2 ppm.
const DRIFT_AGREES: f64 = 0.1;
const DRIFT_AGREES_PPB: f64 = 200.0;
/// Below 0.1 ppm it counts as none, and no host's clock is off by more than 1,000 ppm.
const DRIFT_PPB: std::ops::Range<f64> = 100.0..1e6;

/// A packet at one point.
#[derive(Clone, Copy, Debug)]
struct Passage {
    at: Instant,
    is_first: bool,
    /// Another packet has the same hash, so which of the two was seen at the other point is
    /// unknown.
    is_repeated: bool,
}

/// The packets of a connection at one point.
#[derive(Debug)]
pub(super) struct Passages {
    kept: BTreeMap<u64, Passage>,
    room: usize,
    largest: u32,
}

impl Passages {
    pub(super) fn within(bytes: usize) -> Self {
        let room = (bytes / KEPT_BYTES).clamp(1, KEPT_MAX);
        Self { kept: BTreeMap::new(), room, largest: 0 }
    }

    /// `is_first`: the first of the two ends sent it.
    pub(super) fn add(&mut self, segment: &Segment, is_first: bool) {
        self.largest = self.largest.max(segment.payload_len);
        let passage = Passage { at: segment.at, is_first, is_repeated: false };
        self.kept.entry(hash(segment)).and_modify(|kept| kept.is_repeated = true).or_insert(passage);
        if self.kept.len() > self.room {
            self.kept.pop_last();
        }
    }

    /// Below this hash the packets are complete; from it on they are a sample.
    fn whole_below(&self) -> u64 {
        match self.kept.last_key_value() {
            Some((last, _)) if self.kept.len() == self.room => *last,
            _ => u64::MAX,
        }
    }
}

/// One packet at two points: when it passed the first, and how much later it passed the other.
type Point = (i64, i64);

/// One direction of a connection between the two points.
#[derive(Debug, Default)]
struct Direction {
    points: Vec<Point>,
    /// Its packets pass the other point later than this one.
    towards_other: bool,
}

impl Direction {
    fn least(&self) -> Option<i64> {
        self.points.iter().map(|(_, later)| *later).min()
    }

    /// By how many nanoseconds per second the fastest packets become slower, and over what time.
    fn slope_ppb(&self) -> Option<(f64, Duration)> {
        let (from, to) = (self.points.first()?.0, self.points.last()?.0);
        let hull = lower_hull(&self.points);
        let middle = from.midpoint(to);
        // The line below all points that is closest to them passes through this edge (Moon, Skelly
        // and Towsley, 1999).
        let edge = hull.windows(2).find(|edge| edge[1].0 >= middle)?;
        let (dx, dy) = (edge[1].0 - edge[0].0, edge[1].1 - edge[0].1);
        (dx > 0).then(|| (dy as f64 / dx as f64 * 1e9, Duration::from_nanos(to - from)))
    }

    /// By how much each packet was later than the fastest one, without the clocks' drift;
    /// nanoseconds.
    fn late(&self, drift_ppb: f64) -> impl Iterator<Item = i64> + '_ {
        let from = self.points.first().map_or(0, |(at, _)| *at);
        let straight =
            move |&(at, later): &Point| later - ((at - from) as f64 * drift_ppb / 1e9).round() as i64;
        let least = self.points.iter().map(straight).min().unwrap_or(0);
        self.points.iter().map(move |point| straight(point) - least)
    }
}

/// The lower convex hull of points, which are sorted.
fn lower_hull(points: &[Point]) -> Vec<Point> {
    let mut hull: Vec<Point> = Vec::new();
    for &point in points {
        while let [.., a, b] = hull[..]
            && i128::from(b.0 - a.0) * i128::from(point.1 - a.1)
                <= i128::from(b.1 - a.1) * i128::from(point.0 - a.0)
        {
            hull.pop();
        }
        hull.push(point);
    }
    hull
}

/// What is known of the path between two capture points, over all connections that both saw.
#[derive(Debug, Default)]
pub(super) struct Transit {
    /// By how much each packet was later than the fastest one: the client's packets, and the
    /// server's; nanoseconds.
    late: [Vec<i64>; 2],
    /// Packets seen at the point that they pass first but not at the other; `None` if that cannot
    /// be known.
    missing: [Option<u64>; 2],
    is_used: bool,
    /// The drift of the clocks, and over what time it was seen.
    drift: Option<(f64, Duration)>,
}

impl Transit {
    /// Compares one connection. `client_is_first`: the first of the two ends is its client.
    pub(super) fn add(&mut self, here: &Passages, there: &Passages, client_is_first: bool) {
        let mut ways = [Direction::default(), Direction::default()];
        for (hash, passage) in &here.kept {
            if let Some(other) = there.kept.get(hash)
                && !passage.is_repeated
                && !other.is_repeated
            {
                let of_server = usize::from(passage.is_first != client_is_first);
                let later = (other.at - passage.at).as_nanos();
                ways[of_server].points.push((passage.at.as_nanos(), later));
            }
        }
        let [Some(client), Some(server)] = [ways[0].least(), ways[1].least()] else { return };
        // Packets that travel towards the other point are later there than those that come from it.
        let here_is_near_client = client >= server;
        for (of_server, way) in ways.iter_mut().enumerate() {
            way.towards_other = here_is_near_client == (of_server == 0);
            if !way.towards_other {
                way.points.iter_mut().for_each(|point| point.1 = -point.1);
            }
            way.points.sort_unstable();
        }
        let drift = agreed_drift(&ways);
        let drift_ppb = drift.map_or(0.0, |(ppb, _)| ppb);
        if drift.is_some_and(|(_, span)| self.drift.is_none_or(|(_, longest)| span > longest)) {
            self.drift = drift;
        }
        for (of_server, way) in ways.iter().enumerate() {
            let sign = if way.towards_other { 1.0 } else { -1.0 };
            self.late[of_server].extend(way.late(sign * drift_ppb));
            let missing = missing(way, here, there, (of_server == 0) == client_is_first);
            let so_far = if self.is_used { self.missing[of_server] } else { Some(0) };
            self.missing[of_server] = so_far.zip(missing).map(|(a, b)| a + b);
        }
        self.is_used = true;
    }

    /// By how many parts in 10^9 the other point's clock runs faster.
    pub(super) fn drift_ppb(&self) -> Option<i64> {
        self.drift.map(|(ppb, _)| ppb.round() as i64)
    }

    /// For the client's packets, and the server's.
    pub(super) fn told(mut self) -> Option<[OneWay; 2]> {
        if !self.is_used {
            return None;
        }
        let missing = self.missing;
        let mut told = [OneWay::default(); 2];
        for ((told, late), missing) in told.iter_mut().zip(&mut self.late).zip(missing) {
            late.sort_unstable();
            let quantile = |per_cent: usize| late[(late.len() - 1) * per_cent / 100];
            let [median, p99, max] = [50, 99, 100].map(|per_cent| Duration::from_nanos(quantile(per_cent)));
            *told = OneWay { packets: late.len() as u64, missing, median, p99, max };
        }
        Some(told)
    }
}

/// The drift that both directions show, in parts in 10^9 by which the other point's clock runs
/// faster.
fn agreed_drift(ways: &[Direction; 2]) -> Option<(f64, Duration)> {
    let [a, b] = [ways[0].slope_ppb()?, ways[1].slope_ppb()?];
    let signed = |way: &Direction, slope: f64| if way.towards_other { slope } else { -slope };
    let (a_ppb, b_ppb) = (signed(&ways[0], a.0), signed(&ways[1], b.0));
    let drift = f64::midpoint(a_ppb, b_ppb);
    let span = a.1.min(b.1);
    let agree = (a_ppb - b_ppb).abs() <= (DRIFT_AGREES * drift.abs()).max(DRIFT_AGREES_PPB);
    (span >= DRIFT_SPAN_MIN && agree && DRIFT_PPB.contains(&drift.abs())).then_some((drift, span))
}

/// Packets of a direction that its first point has and the second has not, between the first and
/// the last packet that both have.
fn missing(way: &Direction, here: &Passages, there: &Passages, is_first: bool) -> Option<u64> {
    if here.largest.max(there.largest) > ONE_PACKET_MAX {
        return None;
    }
    let (upstream, downstream) = if way.towards_other { (here, there) } else { (there, here) };
    let whole = upstream.whole_below().min(downstream.whole_below());
    let matched = |(hash, passage): &(&u64, &Passage)| {
        passage.is_first == is_first && **hash <= whole && downstream.kept.contains_key(hash)
    };
    let times = || upstream.kept.iter().filter(matched).map(|(_, passage)| passage.at);
    let (from, to) = (times().min()?, times().max()?);
    let lacks = upstream.kept.range(..=whole).filter(|(hash, passage)| {
        passage.is_first == is_first
            && (from..=to).contains(&passage.at)
            && !downstream.kept.contains_key(hash)
    });
    Some(lacks.count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets every 100 ms for 20 s that take 10 ms and, every tenth one, 4 ms more; the other
    /// clock gains this much.
    fn direction(towards_other: bool, gains_ppb: i64) -> Direction {
        let sign = if towards_other { 1 } else { -1 };
        let point = |i: i64| {
            let at = i * 100_000_000;
            let queue = if i % 10 == 0 { 4_000_000 } else { 0 };
            (at, 10_000_000 + queue + sign * (at / 1_000_000 * gains_ppb / 1_000))
        };
        Direction { points: (0..200).map(point).collect(), towards_other }
    }

    #[test]
    fn a_clock_that_gains_is_seen_in_both_directions_and_taken_off() {
        let ways = [direction(true, 50_000), direction(false, 50_000)];
        let (drift, _) = agreed_drift(&ways).expect("both show it");
        assert!((drift - 50_000.0).abs() < 500.0, "{drift} ppb");
        for (way, sign) in ways.iter().zip([1.0, -1.0]) {
            let late: Vec<i64> = way.late(sign * drift).collect();
            assert_eq!(late.iter().filter(|late| **late > 3_900_000).count(), 20);
            assert!(late.iter().all(|late| *late < 4_100_000), "4 ms is the longest queue");
        }
    }

    #[test]
    fn a_longer_route_in_one_direction_is_no_drift() {
        let mut ways = [direction(true, 0), direction(false, 0)];
        for (at, later) in &mut ways[0].points {
            *later += if *at > 10_000_000_000 { 30_000_000 } else { 0 };
        }
        assert_eq!(agreed_drift(&ways), None);
        assert_eq!(ways[0].late(0.0).max(), Some(34_000_000));
    }
}
