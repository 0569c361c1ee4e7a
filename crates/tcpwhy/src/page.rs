//! `--html`: which packets does the page show, and what is known besides the report?
//!
//! What is drawn packet by packet is known only after the first pass; a second one
//! looks at these connections, and at others between the same hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use anyhow::Context as _;
use tcpwhy::input::Inputs;
use tcpwhy::threads::Engine;
use tcpwhy_core::{LADDERS_MAX, Listing, Report};
use tcpwhy_page::packets::note_sacks;
use tcpwhy_page::{Choice, Context, Page, Sacks, chosen, file};
use tcpwhy_report::CaptureInfo;
use tcpwhy_report::escape::visible;
use tcpwhy_wire::Endpoint;

use crate::cli::InputArgs;
use crate::ends::Ends;
use crate::out::OutFile;
use crate::output::Output;

/// Connections of a report with their packets, and what no ladder has of these.
#[derive(Default)]
pub(crate) struct Drawn {
    pub(crate) report: Report,
    sacks: BTreeMap<u64, Sacks>,
}

/// Writes the page.
pub(crate) fn write(
    out: &OutFile,
    output: &Output<'_>,
    report: &Report,
    drawn: &Drawn,
) -> anyhow::Result<()> {
    let harmless =
        |info: &CaptureInfo| CaptureInfo { path: visible(&info.path).into_owned(), ..info.clone() };
    let files: Vec<CaptureInfo> = output.files().iter().map(harmless).collect();
    let command = output.again();
    let context = Context {
        files: &files,
        version: env!("CARGO_PKG_VERSION"),
        again: &visible(&command),
        offset_s: output.offset_s(),
        is_anonymized: files.iter().any(|file| file.is_anonymized),
    };
    let page = Page::new(report, &drawn.report, &drawn.sacks, context);
    file::write(&page, out.file()).with_context(|| format!("{} cannot be written", out.path().display()))
}

/// The connections that findings are about, and the most expensive ones, with their packets.
pub(crate) fn second_pass(
    args: &InputArgs,
    mut inputs: Inputs,
    ends: Option<&Ends>,
    report: &Report,
    threads: usize,
) -> anyhow::Result<Drawn> {
    let choices: Vec<Choice> = chosen(report);
    let mut first_packets = [0; LADDERS_MAX];
    first_packets.iter_mut().zip(&choices).for_each(|(packet, choice)| *packet = choice.first_packet);
    if let Some(window) = args.window() {
        inputs.limit(&window)?;
    }
    let mut engine = Engine::new(args.listing(Listing::Beginning(first_packets)), threads);
    let mut names = args.anonymizer()?;
    let mut sacks: BTreeMap<u64, Sacks> = BTreeMap::new();
    // Pairs of hosts know nothing of each other, but for who is the client where no handshake says it.
    let hosts: BTreeSet<[IpAddr; 2]> =
        choices.iter().map(|choice| ordered(choice.ends.map(Endpoint::ip))).collect();
    let all = choices.iter().any(|choice| choice.assumed);
    let mut billed = ends.map(Ends::choice);
    inputs.for_each_of_inputs(
        &args.options(),
        |_| {},
        |input, segment, captured| {
            let passes =
                args.filter.as_ref().is_none_or(|filter| filter.matches_connection(segment.src, segment.dst))
                    && billed.as_mut().is_none_or(|billed| billed.has(input, segment));
            let other = names.as_mut().map(|names| names.segment(segment));
            let segment = other.as_ref().unwrap_or(segment);
            if !passes || !(all || hosts.contains(&ordered([segment.src.ip(), segment.dst.ip()]))) {
                return;
            }
            if !segment.options.sack().is_empty() {
                let ends = [segment.src, segment.dst];
                let between = |choice: &&Choice| choice.ends == ends || choice.ends == [ends[1], ends[0]];
                for choice in choices.iter().filter(between) {
                    note_sacks(sacks.entry(choice.first_packet).or_default(), segment);
                }
            }
            engine.on_segment(segment, captured);
        },
    );
    Ok(Drawn { report: engine.finish(), sacks })
}

fn ordered(hosts: [IpAddr; 2]) -> [IpAddr; 2] {
    if hosts[0] <= hosts[1] { hosts } else { [hosts[1], hosts[0]] }
}
