//! `compare`: what appeared and disappeared between two captures, and is it more than chance? A
//! pipeline stops if something got slower.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use tcpwhy::input::Inputs;
use tcpwhy_core::{Options, Report};
use tcpwhy_page::{Compared, file};
use tcpwhy_report::compare::Comparison;
use tcpwhy_report::escape::visible;
use tcpwhy_report::{json, text};

use crate::cli::InputArgs;
use crate::opened::{analyse, confined};
use crate::out::OutFile;
use crate::output::{self, anonymous, complain, troubles};
#[cfg(unix)]
use crate::pager::Pager;
use crate::{ANALYSED, Exit, GATE_CLOSED, NOT_ANALYSED, NOTHING_ANALYSED};

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = "tcpwhy compare [OPTIONS] BEFORE AFTER")]
pub(crate) struct CompareArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    /// Print JSON (schema tcpwhy.compare/1)
    #[arg(long)]
    pub(crate) json: bool,

    /// Also write the comparison as one page that opens in any browser, offline
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Compares the exchanges of each service (address and port) in two captures, and the time that each cause takes of them. A difference \
counts if it is significant (permutation test, p < 0.05) and at least 5 % and 0.1 ms.

Examples:
  tcpwhy compare before.pcap after.pcap
  tcpwhy compare before.pcap after.pcap --html gain.html
  tcpwhy compare main.pcap branch.pcap --filter 'port 8080' --json || echo slower

Exit status:
  0  nothing got significantly slower
  1  a capture could not be read
  2  invalid usage
  3  something got significantly slower
  5  nothing to compare";

/// `tcpwhy compare BEFORE AFTER`.
pub(crate) fn run(args: &CompareArgs) -> anyhow::Result<u8> {
    let [before, after] = args.input.files.as_slice() else {
        return Err(Exit::usage("expected two captures: tcpwhy compare BEFORE AFTER"));
    };
    let page = args.html.as_deref().map(|path| OutFile::create(path, "--html", &args.input.files));
    let page = page.transpose().map_err(|error| Exit::usage(format!("{error:#}")))?;
    #[cfg(target_os = "linux")]
    tcpwhy_sandbox::allow_many_files();
    #[cfg(target_os = "linux")]
    tcpwhy_sandbox::give_memory_back();
    let inputs = [before, after].map(|path| Inputs::open(&[path]));
    #[cfg(unix)]
    let pager = Pager::start(!args.json && !args.input.no_pager);
    #[cfg(unix)]
    let keep: Vec<_> = page.iter().map(|page| std::os::fd::AsFd::as_fd(page.file())).collect();
    #[cfg(unix)]
    let keep: Vec<_> = keep.into_iter().chain(pager.iter().flat_map(Pager::descriptors)).collect();
    #[cfg(not(unix))]
    let keep = [];
    let Some(threads) = confined(&args.input, &inputs.iter().collect::<Vec<_>>(), &keep, None) else {
        return Ok(NOT_ANALYSED);
    };
    let mut reports = Vec::new();
    for inputs in inputs {
        reports.push(one(&args.input, inputs, threads)?);
    }
    let [before_report, after_report] = reports.as_slice() else { unreachable!("two captures were read") };
    let comparison = Comparison::of(before_report, after_report);
    let named = |path: &PathBuf, i| {
        if args.input.anonymize { anonymous(i) } else { path.to_string_lossy().into_owned() }
    };
    let (names, version) = ([named(before, 0), named(after, 1)], env!("CARGO_PKG_VERSION"));
    if let Some(page) = &page {
        let shown = names.each_ref().map(|name| visible(name));
        let data = Compared::new(&comparison, shown.each_ref().map(|name| &**name), version);
        page.emptied()
            .and_then(|file| file::write_compared(&data, file))
            .with_context(|| format!("{} cannot be written", page.path().display()))?;
    }
    if args.json {
        let mut out = std::io::stdout().lock();
        json::comparison(&comparison, names.each_ref().map(String::as_str), version, &mut out)?;
        out.flush()?;
    } else {
        let shown = text::comparison(&comparison, args.input.style());
        #[cfg(unix)]
        output::by(pager, &shown)?;
        #[cfg(not(unix))]
        output::print(&shown)?;
    }
    Ok(match () {
        () if comparison.rows.is_empty() => NOTHING_ANALYSED,
        () if comparison.is_slower() => GATE_CLOSED,
        () => ANALYSED,
    })
}

/// The report of one capture.
fn one(args: &InputArgs, inputs: Inputs, threads: usize) -> anyhow::Result<Report> {
    // The first report's lists, at most three eighths of that, are kept while the second capture is
    // read.
    let options = Options { memory: args.memory / 3 * 2, ..args.listing_all() };
    let analysed = analyse(args, inputs, None, options, threads).map_err(Exit::usage)?;
    let summary = &analysed.summary;
    troubles(summary);
    if summary.is_failure() {
        return Err(Exit(NOT_ANALYSED).into());
    }
    if let Some(why) = analysed.output(args).nothing(&analysed.report) {
        let path =
            summary.files.first().map_or_else(String::new, |file| file.path.to_string_lossy().into_owned());
        complain(&format!("{}: {why}", visible(&path)));
        return Err(Exit(NOTHING_ANALYSED).into());
    }
    Ok(analysed.report)
}
