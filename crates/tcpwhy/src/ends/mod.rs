//! Are these inputs both ends of the same connections, and which end is more reliable?
//!
//! Merged packets of one connection from two points of its path would look like losses and
//! duplicates. So a first pass finds the connections that several inputs saw (`sketch.rs`), a
//! second one bills each of them from every capture point separately, and one point is chosen: the
//! one nearer to the client, where the wait is experienced, unless more of its bill is only
//! possible, or refuted by the other point. (How long a program took is seen at its own host, and
//! only inferred at the other.) The third pass reads each connection once; the other points' view
//! is compared with it, and so are the packets between both points (`transit.rs`).

mod sketch;
mod transit;
mod ways;

use std::collections::{BTreeMap, HashMap, HashSet};

use tcpwhy::input::{Inputs, WindowError};
use tcpwhy::threads::Engine;
use tcpwhy_core::report::{Confidence, Connection};
use tcpwhy_core::{Cause, Listing, Options, Report, Side};
use tcpwhy_report::capture::OtherEnd;
use tcpwhy_wire::{Duration, Endpoint, Segment};

use crate::cli::InputArgs;
use sketch::{Roll, Sighting, Sketches};
use transit::{Passages, Transit};
pub(crate) use ways::Ways;

/// Exchanges and connections compared, from each point.
const COMPARED: u64 = 50_000;
/// How much smaller the doubtful part of a bill has to be at the farther point for the connection
/// to be billed from there.
const CLEARLY: f64 = 0.02;

/// Divisors of `--memory`: for sketches, while nothing else is in memory; and for the packets that
/// are compared.
const SKETCHES: usize = 2;
const PASSAGES: usize = 8;

/// The packets of each connection that passed at two points.
type Places = HashMap<Sighting, Passages>;

/// The connections that several inputs saw.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    /// Sightings that are not billed, with the ends of the connection as it is billed.
    passed_over: HashMap<Sighting, [Endpoint; 2]>,
    /// What is said about an input, by its index in the summary.
    told: BTreeMap<usize, OtherEnd>,
    /// Bytes that this takes, with what tells sightings apart during a pass.
    pub(crate) bytes: usize,
}

/// Says whether each segment of a pass is billed.
#[derive(Debug, Default)]
pub(crate) struct Chosen<'a> {
    ends: Option<&'a Ends>,
    roll: Roll,
}

impl Chosen<'_> {
    #[inline]
    pub(crate) fn has(&mut self, input: usize, segment: &Segment) -> bool {
        self.ends.is_none_or(|ends| !ends.passed_over.contains_key(&self.roll.sighting(input, segment)))
    }

    /// For a segment that is not billed, if the clock of its capture is known: the connection's
    /// ends as it is billed, and how far this clock is ahead of the billed one's. To be called
    /// after `has`.
    pub(crate) fn elsewhere(&mut self, input: usize, segment: &Segment) -> Option<([Endpoint; 2], Duration)> {
        let ends = self.ends?;
        let billed = ends.passed_over.get(&self.roll.sighting(input, segment))?;
        let [ahead, _] = ends.told(input)?.clock?;
        Some((*billed, ahead))
    }
}

impl Ends {
    /// `None` if no connection is in several inputs, or if they can be read only once.
    pub(crate) fn find(args: &InputArgs, inputs: &Inputs) -> Result<Option<Self>, WindowError> {
        if inputs.count() < 2 || args.every.is_some() {
            return Ok(None);
        }
        let Some(mut again) = inputs.duplicate() else { return Ok(None) };
        let unpacking = again.set_memory(args.memory);
        let mut sketches = Sketches::within((args.memory - unpacking) / SKETCHES);
        pass(args, again, |input, segment, _| sketches.add(input, segment))?;
        if sketches.is_over {
            crate::output::complain("warning: too many connections to detect those captured at both ends");
        }
        let mut groups = sketches.groups();
        if groups.is_empty() {
            return Ok(None);
        }
        // Nearest to the client first; if equally near, the input given first.
        for group in &mut groups {
            group.sort_by_key(|sighting| (-sketches.all[sighting].nearer_to_client(), *sighting));
        }
        let mut ends = Self { passed_over: passed_over(&groups), ..Self::default() };
        ends.bytes = sketches.all.len() * sketch::SIGHTING_BYTES;
        // Only two points are compared: a third one is ignored.
        let second = groups.iter().filter_map(|group| group.get(1).copied()).collect();
        let compared = groups.iter().flat_map(|group| group.iter().take(2)).copied();
        let of_each = args.memory / PASSAGES / (2 * groups.len());
        let mut passages: Places = compared.map(|sighting| (sighting, Passages::within(of_each))).collect();
        let kept = unpacking + sketches.bytes() + args.memory / PASSAGES;
        let options =
            Options { memory: args.memory.saturating_sub(kept) / 2, ..args.listing(Listing::UpTo(COMPARED)) };
        let Some(again) = inputs.duplicate() else { return Ok(None) };
        let reports = ends.reports(args, again, options, &second, &mut passages)?;
        ends.choose(&mut groups, &sketches, reports, &passages);
        Ok(Some(ends))
    }

    /// The report that is billed, and the report of the points that are passed over.
    fn reports(
        &self,
        args: &InputArgs,
        inputs: Inputs,
        options: Options,
        second: &HashSet<Sighting>,
        passages: &mut Places,
    ) -> Result<[Report; 2], WindowError> {
        let mut engines = [0, 1].map(|_| Engine::new(options, 1));
        let mut roll = Roll::default();
        pass(args, inputs, |input, segment, captured| {
            let sighting = roll.sighting(input, segment);
            if let Some(passages) = passages.get_mut(&sighting) {
                passages.add(segment, segment.src == sighting.ends[0]);
            }
            if !self.passed_over.contains_key(&sighting) {
                engines[0].on_segment(segment, captured);
            } else if second.contains(&sighting) {
                engines[1].on_segment(segment, captured);
            }
        })?;
        Ok(engines.map(Engine::finish))
    }

    /// The choice for one pass.
    pub(crate) fn choice(&self) -> Chosen<'_> {
        Chosen { ends: Some(self), roll: Roll::default() }
    }

    /// What is said about the input with this index in the summary.
    pub(crate) fn told(&self, input: usize) -> Option<&OtherEnd> {
        self.told.get(&input)
    }

    /// Sorts the point first from which each connection is to be billed, and notes what the other
    /// points show.
    fn choose(
        &mut self,
        groups: &mut [Vec<Sighting>],
        sketches: &Sketches,
        reports: [Report; 2],
        passages: &Places,
    ) {
        let mut transits: BTreeMap<usize, Transit> = BTreeMap::new();
        let by_packet = |report: Report| -> HashMap<u64, Connection> {
            report.connections.into_iter().map(|c| (c.packet_range[0], c)).collect()
        };
        let [mut here, mut there] = reports.map(by_packet);
        for group in groups.iter_mut() {
            let [first, second, ..] = group.as_slice() else { continue };
            let of = |sighting: &Sighting, bills: &mut HashMap<u64, Connection>| {
                bills.remove(&sketches.all[sighting].first)
            };
            let (Some(mut billed), Some(mut other)) = (of(first, &mut here), of(second, &mut there)) else {
                continue;
            };
            let mut wrong = [doubtful(&billed), doubtful(&other)];
            // If both captures were taken at the same point, neither sees more of a program.
            if sketches.all[first].nearer_to_client() > sketches.all[second].nearer_to_client() {
                wrong[0] += refuted(&billed, &other, Side::Server);
                wrong[1] += refuted(&other, &billed, Side::Client);
            }
            if wrong[1] + CLEARLY < wrong[0] {
                group.swap(0, 1);
                std::mem::swap(&mut billed, &mut other);
            }
            let (first, second) = (group[0], group[1]);
            let told = self
                .told
                .entry(second.input)
                .or_insert_with(|| OtherEnd { of: first.input, ..OtherEnd::default() });
            told.connections += 1;
            if told.clock.is_none() {
                let clock = sketches.all[&first].clock(&sketches.all[&second]);
                told.clock = clock.map(|(ahead, rtt)| [ahead, rtt].map(Duration::from_nanos));
            }
            transits.entry(second.input).or_default().add(
                &passages[&first],
                &passages[&second],
                billed.client == first.ends[0],
            );
            for line in &billed.bill {
                told.line(line.cause, line.side).here += line.ns;
            }
            for line in &other.bill {
                told.line(line.cause, line.side).there += line.ns;
            }
        }
        for (input, transit) in transits {
            if let Some(told) = self.told.get_mut(&input) {
                told.drift_ppb = transit.drift_ppb();
                told.ways = transit.told();
            }
        }
        self.passed_over = passed_over(groups);
        for told in self.told.values_mut() {
            told.bill.sort_by_key(|line| {
                let apart = (line.here - line.there).as_nanos().abs();
                (std::cmp::Reverse(apart), line.cause, line.side)
            });
        }
    }
}

/// All sightings but the first of each connection.
fn passed_over(groups: &[Vec<Sighting>]) -> HashMap<Sighting, [Endpoint; 2]> {
    groups.iter().flat_map(|group| group[1..].iter().map(|sighting| (*sighting, group[0].ends))).collect()
}

/// The share of a bill that is only possible, or unexplained.
fn doubtful(connection: &Connection) -> f64 {
    let (mut all, mut doubtful) = (0, 0);
    for line in connection.exchanges.iter().flat_map(|exchange| &exchange.bill) {
        all += line.ns.as_nanos();
        if line.confidence == Confidence::Possible || line.cause == Cause::Unexplained {
            doubtful += line.ns.as_nanos();
        }
    }
    doubtful as f64 / all.max(1) as f64
}

/// The share of a bill that the point next to this side contradicts, about the program there.
fn refuted(far: &Connection, near: &Connection, side: Side) -> f64 {
    let program_ns = |connection: &Connection| -> i64 {
        let is_program =
            |cause| matches!(cause, Cause::ServerThink | Cause::SenderThink | Cause::ReceiverThink);
        let lines = connection.bill.iter().filter(|line| line.side == side && is_program(line.cause));
        lines.map(|line| line.ns.as_nanos()).sum()
    };
    let all: i64 = far.bill.iter().map(|line| line.ns.as_nanos()).sum();
    program_ns(far).abs_diff(program_ns(near)) as f64 / all.max(1) as f64
}

/// Reads everything that was asked for.
fn pass(
    args: &InputArgs,
    mut inputs: Inputs,
    mut on_segment: impl FnMut(usize, &Segment, &[u8]),
) -> Result<(), WindowError> {
    if let Some(window) = args.window() {
        inputs.limit(&window)?;
    }
    inputs.for_each_of_inputs(
        &args.options(),
        |_| {},
        |input, segment, captured| {
            if args.filter.as_ref().is_none_or(|filter| filter.matches_connection(segment.src, segment.dst)) {
                on_segment(input, segment, captured);
            }
        },
    );
    Ok(())
}
