//! `--html`: where does the page go, and which packets does it show?
//!
//! The file is made before rights are given up. What is drawn packet by packet is known only after the first pass; a second one
//! looks at these connections, and at others between the same hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use tcpwhy::input::Inputs;
use tcpwhy_core::{Analysis, LADDERS_MAX, Listing, Report};
use tcpwhy_page::packets::note_sacks;
use tcpwhy_page::{Choice, Context, Page, Sacks, chosen, file};
use tcpwhy_report::CaptureInfo;
use tcpwhy_report::escape::visible;
use tcpwhy_wire::Endpoint;

use crate::cli::InputArgs;
use crate::output::{Output, complain};

/// The file of a page, open and empty.
pub(crate) struct PageFile {
    path: PathBuf,
    file: File,
}

impl PageFile {
    /// Makes the file, or empties it; none of the inputs.
    pub(crate) fn create(path: &Path, inputs: &[PathBuf]) -> anyhow::Result<Self> {
        let same = |input: &PathBuf| match (path.canonicalize(), input.canonicalize()) {
            (Ok(page), Ok(input)) => page == input,
            _ => false,
        };
        ensure!(
            !inputs.iter().any(same),
            "{}: that is the capture; give the page a name of its own",
            path.display()
        );
        let file = File::create(path)
            .with_context(|| format!("{} cannot be written; name another file for --html", path.display()))?;
        Ok(Self { path: path.to_owned(), file })
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Writes the page. Without a second pass no packet is drawn.
    pub(crate) fn write(
        self,
        args: &InputArgs,
        again: Option<Inputs>,
        output: &Output<'_>,
        report: &Report,
    ) -> anyhow::Result<()> {
        let (drawn, sacks) = if let Some(inputs) = again {
            second_pass(args, inputs, &chosen(report))?
        } else {
            complain("a pipe is read once: the page draws no packets; save the capture to see them");
            (Report::default(), BTreeMap::new())
        };
        let harmless =
            |info: &CaptureInfo| CaptureInfo { path: visible(&info.path).into_owned(), ..info.clone() };
        let files: Vec<CaptureInfo> = output.files().iter().map(harmless).collect();
        let command = output.again();
        let context = Context {
            files: &files,
            version: env!("CARGO_PKG_VERSION"),
            again: &visible(&command),
            offset_s: output.offset_s(),
            is_anonymized: false,
        };
        let page = Page::new(report, &drawn, &sacks, context);
        file::write(&page, &self.file).with_context(|| format!("{} cannot be written", self.path.display()))
    }
}

/// The chosen connections with their packets.
fn second_pass(
    args: &InputArgs,
    mut inputs: Inputs,
    choices: &[Choice],
) -> anyhow::Result<(Report, BTreeMap<u64, Sacks>)> {
    let mut first_packets = [0; LADDERS_MAX];
    first_packets.iter_mut().zip(choices).for_each(|(packet, choice)| *packet = choice.first_packet);
    if let Some(window) = args.window() {
        inputs.limit(&window)?;
    }
    let mut analysis = Analysis::new(args.listing(Listing::Beginning(first_packets)));
    let mut sacks: BTreeMap<u64, Sacks> = BTreeMap::new();
    // Pairs of hosts know nothing of each other, but for who is the client where no handshake says it.
    let hosts: BTreeSet<[IpAddr; 2]> =
        choices.iter().map(|choice| ordered(choice.ends.map(Endpoint::ip))).collect();
    let all = choices.iter().any(|choice| choice.assumed);
    inputs.for_each_captured(
        &args.options(),
        |_| {},
        |segment, captured| {
            let passes =
                args.filter.as_ref().is_none_or(|filter| filter.matches_connection(segment.src, segment.dst));
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
            analysis.on_captured(segment, captured);
        },
    );
    Ok((analysis.finish(), sacks))
}

fn ordered(hosts: [IpAddr; 2]) -> [IpAddr; 2] {
    if hosts[0] <= hosts[1] { hosts } else { [hosts[1], hosts[0]] }
}
