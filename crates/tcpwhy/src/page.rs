//! `--html` and `--serve`: which packets does the page show, and what is known besides the report?
//!
//! The exchanges to draw packet by packet are known only after the first pass; a second one reads
//! their connections, and others between the same hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::net::IpAddr;

use anyhow::Context as _;
use tcpwhy::input::{Inputs, Places, Sums, ports_of};
use tcpwhy::threads::Engine;
use tcpwhy_core::report::Connection;
use tcpwhy_core::{LADDERS_MAX, Listing, Report};
use tcpwhy_page::packets::note_sacks;
use tcpwhy_page::{Choice, Context, Page, Sacks, file, known_as};
use tcpwhy_report::CaptureInfo;
use tcpwhy_report::escape::visible;
use tcpwhy_wire::{Decoded, Endpoint, Instant, Segment};

use crate::cli::InputArgs;
use crate::ends::{Ends, Ways};
use crate::out::OutFile;
use crate::output::Output;
use crate::packing;
use crate::passes::bytes;

/// Connections of a report with their packets, and their SACKs, which ladders lack.
#[derive(Clone, Debug, Default)]
pub(crate) struct Drawn {
    pub(crate) report: Report,
    pub(crate) sacks: BTreeMap<u64, Sacks>,
    /// One-way delays between the two captures in nanoseconds by packet, if two captures have them.
    pub(crate) ways: BTreeMap<u64, i64>,
}

impl Drawn {
    /// Packets that are kept.
    pub(crate) fn packets(&self) -> usize {
        self.report.connections.iter().map(|connection| connection.ladder.len()).sum()
    }
}

/// What the page says besides the report.
#[derive(Debug)]
pub(crate) struct Around {
    files: Vec<CaptureInfo>,
    again: String,
    offset_s: i32,
    is_served: bool,
}

impl Around {
    pub(crate) fn of(output: &Output<'_>, is_served: bool) -> Self {
        let harmless =
            |info: &CaptureInfo| CaptureInfo { path: visible(&info.path).into_owned(), ..info.clone() };
        Self {
            files: output.files().iter().map(harmless).collect(),
            again: visible(&output.again()).into_owned(),
            offset_s: output.offset_s(),
            is_served,
        }
    }

    pub(crate) fn files(&self) -> &[CaptureInfo] {
        &self.files
    }

    /// With times since `origin`, or since the beginning, drawn up by `threads` threads.
    pub(crate) fn page<'a>(
        &'a self,
        report: &'a Report,
        drawn: &'a Drawn,
        origin: Option<Instant>,
        threads: usize,
    ) -> Page<'a> {
        let context = Context {
            files: &self.files,
            version: env!("CARGO_PKG_VERSION"),
            again: &self.again,
            offset_s: self.offset_s,
            is_anonymized: self.files.iter().any(|file| file.is_anonymized),
            is_served: self.is_served,
            origin,
        };
        let each = |count, make: &(dyn Fn(usize) + Sync)| packing::each(count, make, threads);
        Page::new(report, &drawn.report, (&drawn.sacks, &drawn.ways), context, &each)
    }

    /// The whole page.
    pub(crate) fn write(&self, report: &Report, drawn: &Drawn, to: impl Write) -> std::io::Result<()> {
        file::write(&self.page(report, drawn, None, 1), to)
    }
}

/// Writes the page on this many threads.
pub(crate) fn write(
    out: &OutFile,
    output: &Output<'_>,
    (report, drawn): (&Report, &Drawn),
    threads: usize,
) -> anyhow::Result<()> {
    let around = Around::of(output, false);
    let page = around.page(report, drawn, None, threads);
    let written = out.emptied().and_then(|file| packing::write(&page, file, threads));
    written.with_context(|| format!("cannot write {}", out.path().display()))
}

/// The chosen connections with their packets, if the first pass kept them all. The packets of other
/// connections are dropped.
pub(crate) fn kept(report: &mut Report, choices: &[Choice], sacks: &Sacks) -> Option<Drawn> {
    let (mut drawn, mut others) = (Drawn::default(), Vec::new());
    // A thinned list does not have all exchanges of a connection.
    let mut is_whole = report.thinned == 0;
    for connection in &mut report.connections {
        let steps = std::mem::take(&mut connection.steps);
        let opening = std::mem::take(&mut connection.opening);
        let omitted = std::mem::take(&mut connection.ladder_omitted);
        if choices.iter().all(|choice| choice.id != connection.id) {
            others.push(steps);
            continue;
        }
        is_whole &= omitted == 0 && steps.is_some();
        let of_packet = |packet| Some((packet, sacks.get(&packet)?.clone()));
        let own = if sacks.is_empty() {
            Sacks::new()
        } else {
            steps.iter().flat_map(|steps| steps.packets()).filter_map(of_packet).collect()
        };
        drawn.sacks.insert(connection.packet_range[0], own);
        drawn.report.connections.push(Connection { steps, opening, ..connection.clone() });
    }
    if !is_whole {
        return None;
    }
    // The program is about to end: freeing a million entries one by one is wasted time.
    std::mem::forget(others);
    Some(drawn)
}

/// The chosen connections with their packets. Most are billed the same without the connections
/// around them, and this is checked; if one is not, all are read again with the connections between
/// the same hosts, which influence each other's bills.
pub(crate) fn second_pass(
    args: &InputArgs,
    mut inputs: Inputs,
    ends: Option<&Ends>,
    (report, choices, places): (&Report, &[Choice], &Places),
    threads: usize,
) -> anyhow::Result<Drawn> {
    // The first pass's report stays in memory, and writing takes about as much again.
    let beside = 2 * bytes(report);
    if let Some(mut alone) = inputs.duplicate() {
        let ranges = choices.iter().map(|choice| [choice.first_packet, choice.last_packet]);
        if inputs.count() == 1 && args.window().is_none() {
            alone.aside.want(places, ranges.collect(), &sums(choices));
        }
        // Handing packets to other threads takes as long as analysing a few.
        let are_few = choices.iter().map(|choice| choice.packets).sum::<u64>() < report.segments / 4;
        let mut drawn =
            pass(args, alone, ends, (choices, Read::Chosen, beside), if are_few { threads } else { 1 })?;
        if report.times_doubted {
            drawn.report.doubt_times(); // as the first pass's
        }
        let known: Vec<u64> =
            drawn.report.connections.iter().filter_map(|again| known_as(report, again)).collect();
        if choices.iter().all(|choice| known.contains(&choice.id)) {
            return Ok(drawn);
        }
        inputs.rewind();
    }
    // If no handshake shows who is the client, the whole capture decides.
    let is_assumed = choices.iter().any(|choice| choice.assumed);
    let read = if is_assumed { Read::All } else { Read::Hosts };
    let mut drawn = pass(args, inputs, ends, (choices, read, beside), threads)?;
    if report.times_doubted {
        drawn.report.doubt_times();
    }
    Ok(drawn)
}

/// Which connections a pass reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Read {
    Chosen,
    /// Those between the same hosts as well.
    Hosts,
    All,
}

fn pass(
    args: &InputArgs,
    mut inputs: Inputs,
    ends: Option<&Ends>,
    (choices, read, beside): (&[Choice], Read, usize),
    threads: usize,
) -> anyhow::Result<Drawn> {
    let mut first_packets = [0; LADDERS_MAX];
    first_packets.iter_mut().zip(choices).for_each(|(packet, choice)| *packet = choice.first_packet);
    let mut options = args.listing(Listing::Beginning(first_packets));
    let others = ends.map_or(0, |ends| ends.bytes) + beside;
    options.memory = options.memory.saturating_sub(others).max(options.memory / 4) / 4 * 3;
    if let Some(window) = args.window() {
        options.memory -= inputs.aside.learn_openings(options.memory);
        inputs.limit(&window)?;
    }
    // Analysing a few connections is not worth more threads; searching for them is.
    let mut engine = Engine::new(options, if read == Read::Chosen { 1 } else { threads });
    let mut names = args.anonymizer()?;
    let (mut sacks, mut ways) = (BTreeMap::<u64, Sacks>::new(), Ways::default());
    let hosts: BTreeSet<[IpAddr; 2]> =
        choices.iter().map(|choice| ordered(choice.ends.map(Endpoint::ip))).collect();
    let sums = sums(choices);
    let is_chosen = |segment: &Segment| {
        sums.may_be([segment.src.port, segment.dst.port]) && is_between(choices, segment).next().is_some()
    };
    let mut billed = ends.map(Ends::choice);
    // A segment whose ports or addresses show that it is of none of them is skipped undecoded.
    let is_passed_over = |decoded: &Decoded<'_>| {
        ends.is_none()
            && !args.anonymize
            && match read {
                Read::Chosen => !sums.may_be(ports_of(decoded)),
                Read::Hosts => !hosts.contains(&ordered(ends_of(decoded).map(Endpoint::ip))),
                Read::All => false,
            }
    };
    let aside = inputs.for_each_wanted(
        &args.options(),
        threads,
        |decoded| !is_passed_over(decoded),
        |input, decoded, captured| {
            let segment = &decoded.segment();
            if !args.filter.as_ref().is_none_or(|filter| filter.matches_connection(segment.src, segment.dst))
            {
                return;
            }
            if let Some(billed) = billed.as_mut()
                && !billed.has(input, segment)
            {
                if let Some((ends, ahead)) = billed.elsewhere(input, segment) {
                    let there = Segment { src: ends[0], dst: ends[1], ..*segment };
                    let there = names.as_mut().map_or(there, |names| names.segment(&there));
                    if is_chosen(&there) {
                        ways.there(segment, ahead);
                    }
                }
                return;
            }
            let other = names.as_mut().map(|names| names.segment(segment));
            let segment = other.as_ref().unwrap_or(segment);
            let is_chosen = is_chosen(segment);
            let is_read = match read {
                Read::Chosen => is_chosen,
                Read::Hosts => hosts.contains(&ordered([segment.src.ip(), segment.dst.ip()])),
                Read::All => true,
            };
            if !is_read {
                return;
            }
            if is_chosen && !segment.options.sack().is_empty() {
                for choice in is_between(choices, segment) {
                    note_sacks(sacks.entry(choice.first_packet).or_default(), segment);
                }
            }
            if is_chosen && ends.is_some() {
                ways.here(segment);
            }
            engine.on_segment(segment, captured);
        },
    );
    let mut report = engine.finish();
    aside.openings.open(&mut report, names.as_mut());
    Ok(Drawn { report, sacks, ways: ways.delays() })
}

/// Both ends, without decoding the rest of a usual segment.
#[inline]
fn ends_of(decoded: &Decoded<'_>) -> [Endpoint; 2] {
    match decoded {
        Decoded::Usual(usual) => usual.ends(),
        Decoded::Other(segment) => [segment.src, segment.dst],
    }
}

fn sums(choices: &[Choice]) -> Sums {
    Sums::of(choices.iter().map(|choice| choice.ends.map(|end| end.port)))
}

/// The chosen connections that a segment may belong to.
fn is_between<'a>(choices: &'a [Choice], segment: &Segment) -> impl Iterator<Item = &'a Choice> {
    let ends = [segment.src, segment.dst];
    choices.iter().filter(move |choice| choice.ends == ends || choice.ends == [ends[1], ends[0]])
}

fn ordered(hosts: [IpAddr; 2]) -> [IpAddr; 2] {
    if hosts[0] <= hosts[1] { hosts } else { [hosts[1], hosts[0]] }
}
