//! Where did every millisecond of a TCP exchange go, whose is it, and what should be changed?
//!
//! The whole flow, in order, is [`read`]: inputs are opened, their segments pass the filter into
//! the analysis (`opened`), the analysis draws up the bills, files are written (`targets`), and the
//! report is printed. Everything else here is options, words and exit codes.

mod annotate;
mod baseline;
mod cli;
mod compare;
mod confine;
mod demo;
#[cfg(target_os = "linux")]
mod document;
mod ends;
mod examples;
#[cfg(target_os = "linux")]
mod feed;
mod fix;
mod gate;
mod interim;
mod key;
mod lab;
mod live;
mod manual;
mod opened;
mod out;
mod output;
mod packing;
mod page;
#[cfg(unix)]
mod pager;
mod passes;
mod profile;
mod progress;
mod requests;
#[cfg(unix)]
mod serve;
mod size;
mod sockets;
mod targets;
mod which;

use std::mem::ManuallyDrop;
use std::process::ExitCode;

use clap::Parser as _;
use tcpwhy_core::{Listing, Report};
use tcpwhy_report::json::Gated;

use cli::{Cli, Command, Format, ListArgs, ReadArgs};
use opened::{Analysed, Opened};
use output::Output;
use targets::Targets;
use which::Which;

/// The input was analysed.
const ANALYSED: u8 = 0;
/// The input could not be analysed at all.
const NOT_ANALYSED: u8 = 1;
/// The command line asks for something that does not exist.
const WRONG_USAGE: u8 = 2;
/// A `--fail-on` condition was exceeded.
const GATE_CLOSED: u8 = 3;
/// The inputs were read, but they contained nothing to analyse.
const NOTHING_ANALYSED: u8 = 5;
/// One of several inputs could not be read at all; the others were analysed.
const PARTLY_ANALYSED: u8 = 4;

fn main() -> ExitCode {
    #[cfg(unix)]
    if std::env::args_os().nth(1).is_some_and(|word| word == pager::COMMAND) {
        return ExitCode::from(u8::from(pager::show().is_err()));
    }
    let cli = match Cli::try_parse_from(cli::words()) {
        Ok(cli) => cli,
        Err(error) => return output::usage(error),
    };
    let result = match cli.command {
        Command::Read(args) => read(&args),
        Command::List(args) => list(&args),
        Command::Live(args) => live::run(&args),
        Command::Sockets(args) => sockets::run(&args),
        Command::Fix(args) => fix::run(&args),
        Command::Undo(args) => fix::undo(&args),
        Command::Compare(args) => compare::run(&args),
        Command::WiresharkProfile(args) => profile::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Lab(args) => lab::run(&args),
        Command::Explain(args) => output::explanation(args.cause, args.color),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { command } => manual::page(command.as_deref()),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        // The reader of our output has read enough: `tcpwhy read ... | head`.
        Err(error) if output::is_broken_pipe(&error) => ExitCode::from(ANALYSED),
        Err(error) => {
            if let Some(Exit(code)) = error.downcast_ref() {
                return ExitCode::from(*code);
            }
            output::complain(&output::told(&error));
            ExitCode::from(NOT_ANALYSED)
        }
    }
}

/// A command ends early with this status; the error has already been reported.
#[derive(Debug)]
struct Exit(u8);

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "status {}", self.0)
    }
}

impl std::error::Error for Exit {}

impl Exit {
    /// The command line asks for something impossible.
    fn usage(why: impl std::fmt::Display) -> anyhow::Error {
        output::complain(&why.to_string());
        Self(WRONG_USAGE).into()
    }
}

/// `tcpwhy read`: captures in, bill out.
fn read(args: &ReadArgs) -> anyhow::Result<u8> {
    // Open everything that will be read or written first, then give up the right to open anything.
    let targets = Targets::open(args)?;
    let mut opened =
        Opened::open(&args.input, args.more_passes(), args.is_paged(), &targets.kept(), targets.serving())?;
    let mut analysis = args.analysis();
    if args.draws() {
        analysis.memory -= opened.prepare_to_draw(&mut analysis, args.is_page_alone());
    }
    // Segments in, bills out. The program ends after the answer: freeing a million list entries one
    // by one is wasted time.
    let mut analysed = ManuallyDrop::new(opened.analyse(analysis)?);
    let output = opened.output(&analysed);
    if let Some(why) = output.nothing(&analysed.report) {
        let code = nothing(args, &output, &analysed.report, &why);
        targets.say_what_is_left();
        return code;
    }
    // Now the requested connection can be found, and its cost judged.
    let connection = chosen(args, &mut opened, &mut analysed)?;
    let mut output = opened.output(&analysed);
    let gates = targets.judge(&analysed.report)?;
    // The packets of the expensive exchanges, for files and pages: further passes.
    let drawn = ManuallyDrop::new(targets.draw(&mut opened, &mut analysed)?);
    targets.write(&mut opened, &output, (&analysed.report, &drawn))?;
    let to_serve = targets.inputs_to_serve(&mut opened);
    // Files written for others contain no requests, so this comes after them.
    if args.show_requests {
        targets.say_what_is_missing();
        requests::name(&mut opened, &mut analysed.report)?;
    }
    // The answer.
    #[cfg(unix)]
    output.page(opened.pager());
    let shown = show(args, &mut opened, &mut output, &analysed.report, connection, &gates);
    output.finish();
    gate::say(&gates);
    #[cfg(unix)]
    if shown.is_ok() {
        targets.serve(&opened, to_serve, &output, (&analysed.report, &drawn))?;
    }
    match shown {
        Err(error) if !output::is_broken_pipe(&error) => Err(error),
        // The reader has read enough; a pipeline that waits for the exit code still wants it.
        _ if gates.iter().any(|gate| gate.failed) => Ok(GATE_CLOSED),
        _ => Ok(analysed_code(&analysed)),
    }
}

/// `tcpwhy list`: captures in, connections out.
fn list(args: &ListArgs) -> anyhow::Result<u8> {
    let mut opened = Opened::open(&args.input, 0, args.format == Format::Text, &[], None)?;
    let mut options = args.analysis();
    options.memory -= opened.count_streams(options.memory);
    let analysed = opened.analyse(options)?;
    let mut output = opened.output(&analysed);
    if let Some(why) = output.nothing(&analysed.report) {
        output::complain(&why);
        return Ok(NOTHING_ANALYSED);
    }
    #[cfg(unix)]
    output.page(opened.pager());
    output.list(&analysed.report, &analysed.summary.aside.streams, args)?;
    output.finish();
    Ok(analysed_code(&analysed))
}

fn analysed_code(analysed: &Analysed) -> u8 {
    if analysed.summary.is_partial() { PARTLY_ANALYSED } else { ANALYSED }
}

/// An empty input is no success, and no condition holds.
fn nothing(args: &ReadArgs, output: &Output<'_>, report: &Report, why: &str) -> anyhow::Result<u8> {
    output::complain(why);
    let gates = gate::nothing_to_judge(&args.fail_on);
    gate::say(&gates);
    if args.format() == Format::Json {
        output.json(report, &gates)?;
    }
    Ok(NOTHING_ANALYSED)
}

/// The number of the requested connection, if any. If it was given by its ends, its number is known
/// only now, and another pass lists it.
fn chosen(args: &ReadArgs, opened: &mut Opened<'_>, analysed: &mut Analysed) -> anyhow::Result<Option<u64>> {
    let number = match args.connection {
        None => return Ok(None),
        Some(Which::Number(number)) => number,
        Some(which) => {
            let number = output::found(&analysed.report, which).ok_or(Exit(WRONG_USAGE))?;
            let inputs = opened.again().ok_or_else(|| {
                Exit::usage(format!(
                    "this needs a second pass, which a pipe does not allow: use --connection {number}"
                ))
            })?;
            // With the details that only a listing of one connection keeps.
            let mut options = args.input.listing(Listing::Connection(number));
            options.memory -= passes::bytes(&analysed.report).min(options.memory / 4);
            let again = opened.pass(inputs, options, opened.threads)?;
            (analysed.summary, analysed.report) = (again.summary, again.report);
            number
        }
    };
    if !output::lists(&analysed.report, number, args.exchange) {
        return Err(Exit(WRONG_USAGE).into());
    }
    Ok(Some(number))
}

/// Prints what was asked for.
fn show(
    args: &ReadArgs,
    opened: &mut Opened<'_>,
    output: &mut Output<'_>,
    report: &Report,
    connection: Option<u64>,
    gates: &[Gated],
) -> anyhow::Result<()> {
    if args.format() == Format::Csv || connection.is_some() && args.format() != Format::Json {
        requests::complain_of_missing(report);
    }
    match connection {
        _ if args.format() == Format::Json => output.json(report, gates),
        _ if args.format() == Format::Csv => Output::csv(report, args.show_requests),
        Some(number) => output.drill_down(report, number, args),
        None => {
            output.overview(report, args)?;
            if args.verbose { ladder_of_the_worst(opened, output, report) } else { Ok(()) }
        }
    }
}

/// `-v` without a connection: the packets of the most expensive exchange, which only a second pass
/// can keep.
fn ladder_of_the_worst(
    opened: &mut Opened<'_>,
    output: &mut Output<'_>,
    report: &Report,
) -> anyhow::Result<()> {
    let Some(finding) = report.findings.first() else { return Ok(()) };
    let Some(inputs) = opened.again() else {
        output::complain("-v reads its input twice, which a pipe does not allow: use --connection N");
        return Ok(());
    };
    let (connection, exchange) = finding.worst;
    let options = opened.args.listing(Listing::Connection(connection));
    let second = opened.pass(inputs, options, 1)?.report;
    if second.segments != report.segments {
        output::complain("the input changed between the two passes of -v: use --connection N");
        return Ok(());
    }
    output.exchange(&second, connection, exchange)
}
