//! Where did every millisecond of a TCP exchange go, whose is it, and what should be changed?
//!
//! The flow, once, in order: inputs are opened (`input`), their segments pass the filter into the analysis, the
//! analysis draws up the bills, and the report is printed. Everything else here is options, words and exit codes.

mod cli;
mod confine;
mod demo;
mod gate;
mod lab;
mod manual;
mod output;
mod progress;

use std::process::ExitCode;

use clap::Parser as _;
use tcpwhy::input::{InputSummary, Inputs, Span, WindowError};
use tcpwhy::threads::Engine;
use tcpwhy_core::{Listing, Report};

use cli::{Cli, Command, ReadArgs};
use output::Output;
use progress::Progress;

/// The input was analysed.
const ANALYSED: u8 = 0;
/// The input could not be analysed at all.
const NOT_ANALYSED: u8 = 1;
/// The command line asks for something that is not there.
const WRONG_USAGE: u8 = 2;
/// `--fail-on` found its cause.
const GATE_CLOSED: u8 = 3;
/// Of several inputs one could not be read at all; the others were analysed.
const PARTLY_ANALYSED: u8 = 4;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return output::usage(error),
    };
    let result = match cli.command {
        Command::Read(args) => read(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Lab(args) => lab::run(&args),
        Command::Explain(args) => output::explanation(args.cause, args.color),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { command } => manual::page(command.as_deref()),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        // Whoever reads us has read enough: `tcpwhy read ... | head`.
        Err(error) if output::is_broken_pipe(&error) => ExitCode::from(ANALYSED),
        Err(error) => {
            output::complain(&format!("{error:#}"));
            ExitCode::from(NOT_ANALYSED)
        }
    }
}

/// `tcpwhy read`: captures in, bill out.
fn read(args: &ReadArgs) -> anyhow::Result<u8> {
    #[cfg(target_os = "linux")]
    tcpwhy_sandbox::allow_many_files();
    let inputs = Inputs::open(&args.files);
    let again = if args.reads_twice() { inputs.open_again() } else { None };
    // What the system would be asked for later, while it still answers.
    let threads = args.threads();
    let opened: Vec<&Inputs> = std::iter::once(&inputs).chain(&again).collect();
    if !confine::confine(args, &opened, threads) {
        return Ok(NOT_ANALYSED);
    }
    let (summary, report, span) = match analyse(args, inputs, args.analysis(), threads) {
        Ok(analysed) => analysed,
        Err(error) => {
            output::complain(&error.to_string());
            return Ok(WRONG_USAGE);
        }
    };
    output::troubles(&summary);
    if summary.is_failure() {
        return Ok(NOT_ANALYSED);
    }
    if args.drill_down().is_some_and(|wanted| !output::lists(&report, wanted)) {
        return Ok(WRONG_USAGE);
    }
    let output = Output::new(args, &summary, span);
    match show(args, again, &output, &report) {
        Err(error) if !output::is_broken_pipe(&error) => Err(error),
        // Whoever reads us has read enough; a pipeline that waits for the exit code wants to know all the same.
        _ if gate::closes(&args.fail_on, &report) => Ok(GATE_CLOSED),
        _ if summary.is_partial() => Ok(PARTLY_ANALYSED),
        _ => Ok(ANALYSED),
    }
}

/// Prints what was asked for.
fn show(args: &ReadArgs, again: Option<Inputs>, output: &Output<'_>, report: &Report) -> anyhow::Result<()> {
    match args.drill_down() {
        _ if args.json => output.json(report),
        Some(wanted) => output.drill_down(report, wanted),
        None => {
            output.overview(report)?;
            if args.reads_twice() { ladder_of_the_worst(args, again, output, report) } else { Ok(()) }
        }
    }
}

/// One pass over the inputs: every segment that the filter lets through goes into the analysis.
fn analyse(
    args: &ReadArgs,
    mut inputs: Inputs,
    options: tcpwhy_core::Options,
    threads: usize,
) -> Result<(InputSummary, Report, Option<Span>), WindowError> {
    let span = args.window().map(|window| inputs.limit(&window)).transpose()?;
    let mut engine = Engine::new(options, threads);
    let mut progress = Progress::start();
    let summary = inputs.for_each_segment(
        &args.input(),
        |so_far| progress.show(so_far),
        |segment| {
            if args.filter.as_ref().is_none_or(|filter| filter.matches_connection(segment.src, segment.dst)) {
                engine.on_segment(segment);
            }
        },
    );
    progress.finish();
    Ok((summary, engine.finish(), span))
}

/// `-v` without a connection: the packets of the most expensive exchange, which only a second pass can keep.
fn ladder_of_the_worst(
    args: &ReadArgs,
    again: Option<Inputs>,
    output: &Output<'_>,
    report: &Report,
) -> anyhow::Result<()> {
    let Some(finding) = report.findings.first() else { return Ok(()) };
    let Some(again) = again else {
        output::complain("-v reads its input twice, which a pipe does not allow: use --connection N");
        return Ok(());
    };
    let (connection, exchange) = finding.worst;
    let (_, second, _) = analyse(args, again, args.listing(Listing::Connection(connection)), 1)?;
    if second.segments != report.segments {
        output::complain("the input has changed between the two passes of -v: use --connection N");
        return Ok(());
    }
    output.drill_down(&second, (connection, Some(exchange)))
}
