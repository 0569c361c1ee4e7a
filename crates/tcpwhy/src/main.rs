//! Where did every millisecond of a TCP exchange go, whose is it, and what should be changed?
//!
//! The flow, once, in order: inputs are opened (`input`), their segments pass the filter into the analysis, the
//! analysis draws up the bills, and the report is printed. Everything else here is options, words and exit codes.

mod annotate;
mod baseline;
mod cli;
mod compare;
mod confine;
mod demo;
mod ends;
mod examples;
#[cfg(target_os = "linux")]
mod feed;
mod fix;
mod gate;
mod interim;
mod lab;
mod live;
mod manual;
mod out;
mod output;
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
mod which;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser as _;
use tcpwhy::input::{InputSummary, Inputs, Span, WindowError, stop};
use tcpwhy::threads::Engine;
use tcpwhy_core::{Listing, Report};
use tcpwhy_page::chosen;
use tcpwhy_report::json::Gated;
use tcpwhy_wire::Segment;

use baseline::Baselines;
use cli::{Cli, Command, Format, InputArgs, ListArgs, ReadArgs};
use ends::Ends;
use interim::Interim;
use out::OutFile;
use output::Output;
use page::Drawn;
use progress::Progress;
use which::Which;

/// The input was analysed.
const ANALYSED: u8 = 0;
/// The input could not be analysed at all.
const NOT_ANALYSED: u8 = 1;
/// The command line asks for something that is not there.
const WRONG_USAGE: u8 = 2;
/// `--fail-on` found its cause.
const GATE_CLOSED: u8 = 3;
/// The inputs were read, and there was nothing in them to analyse.
const NOTHING_ANALYSED: u8 = 5;
/// Of several inputs one could not be read at all; the others were analysed.
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
        // Whoever reads us has read enough: `tcpwhy read ... | head`.
        Err(error) if output::is_broken_pipe(&error) => ExitCode::from(ANALYSED),
        Err(error) => {
            output::complain(&format!("{error:#}"));
            ExitCode::from(NOT_ANALYSED)
        }
    }
}

/// Inputs as they are read: opened, and nothing else can be any more.
struct Opened {
    inputs: Inputs,
    /// For further passes; none where they can be read only once.
    again: Vec<Inputs>,
    threads: usize,
    #[cfg(unix)]
    pager: Option<pager::Pager>,
    /// Connections that several of the inputs saw.
    ends: Option<Ends>,
}

/// Opens the inputs, so many times more, and gives up the rest. `None` where nothing may be read.
fn open(
    args: &InputArgs,
    more: usize,
    is_paged: bool,
    written: &[confine::Kept<'_>],
    serves: Option<usize>,
) -> Result<Option<Opened>, WindowError> {
    #[cfg(target_os = "linux")]
    tcpwhy_sandbox::allow_many_files();
    let inputs = Inputs::open(&args.files);
    let again: Vec<Inputs> = (0..more).map_while(|_| inputs.open_again()).collect();
    let opened: Vec<&Inputs> = std::iter::once(&inputs).chain(&again).collect();
    #[cfg(unix)]
    let pager = pager::Pager::start(is_paged && !args.no_pager);
    #[cfg(unix)]
    let keep: Vec<_> =
        written.iter().copied().chain(pager.iter().flat_map(pager::Pager::descriptors)).collect();
    #[cfg(not(unix))]
    let (keep, _) = ([], (is_paged, written));
    let Some(threads) = confined(args, &opened, &keep, serves) else { return Ok(None) };
    let ends = Ends::find(args, &inputs)?;
    Ok(Some(Opened {
        inputs,
        again,
        threads,
        #[cfg(unix)]
        pager,
        ends,
    }))
}

/// With all that will be read and written open, gives up the rest but for threads that serve. The threads to use; `None` where nothing
/// may be read.
fn confined(
    args: &InputArgs,
    opened: &[&Inputs],
    keep: &[confine::Kept<'_>],
    serves: Option<usize>,
) -> Option<usize> {
    #[cfg(unix)]
    if let Err(error) = stop::on_signals() {
        output::complain(&format!("warning: a signal will end the program without an answer: {error}"));
    }
    // What the system would be asked for later, while it still answers.
    let threads = args.threads();
    args.zone();
    if let Err(error) = args.anonymizer() {
        output::complain(&format!("cannot read the --key file: {error}"));
        return None;
    }
    let all = threads + serves.unwrap_or(0);
    confine::confine(args, opened, keep, all, serves.is_some()).then_some(threads)
}

/// `tcpwhy list`: captures in, connections out.
fn list(args: &ListArgs) -> anyhow::Result<u8> {
    let is_text = args.format == Format::Text;
    let opened = match open(&args.input, 0, is_text, &[], None) {
        Ok(Some(opened)) => opened,
        Ok(None) => return Ok(NOT_ANALYSED),
        Err(error) => return Ok(wrong(&error)),
    };
    let Opened { inputs, threads, ends, .. } = opened;
    let (summary, report, span) = match analyse(&args.input, inputs, ends.as_ref(), args.analysis(), threads)
    {
        Ok(analysed) => analysed,
        Err(error) => return Ok(wrong(&error)),
    };
    output::troubles(&summary);
    if summary.is_failure() {
        return Ok(NOT_ANALYSED);
    }
    let mut output = Output::new(&args.input, &summary, span, ends.as_ref());
    if let Some(why) = output.nothing(&report) {
        output::complain(&why);
        return Ok(NOTHING_ANALYSED);
    }
    #[cfg(unix)]
    output.page(opened.pager);
    output.list(&report, args)?;
    output.finish();
    Ok(if summary.is_partial() { PARTLY_ANALYSED } else { ANALYSED })
}

/// `tcpwhy read`: captures in, bill out.
fn read(args: &ReadArgs) -> anyhow::Result<u8> {
    let out = |path: &Option<PathBuf>, option| {
        path.as_deref().map(|path| OutFile::create(path, option, &args.input.files)).transpose()
    };
    let (page, annotated) = match (out(&args.html, "--html"), out(&args.annotate, "--annotate")) {
        (Ok(page), Ok(annotated)) => (page, annotated),
        (Err(error), _) | (_, Err(error)) => {
            output::complain(&format!("{error:#}"));
            return Ok(WRONG_USAGE);
        }
    };
    let baselines = match Baselines::open(args) {
        Ok(baselines) => baselines,
        Err(error) => {
            output::complain(&format!("{error:#}"));
            return Ok(WRONG_USAGE);
        }
    };
    #[cfg(unix)]
    let door = match args.serve.map(serve::Door::open).transpose() {
        Ok(door) => door,
        Err(error) => {
            output::complain(&format!("--serve cannot listen there: {error}"));
            return Ok(WRONG_USAGE);
        }
    };
    let files = page.iter().chain(&annotated).map(OutFile::file).chain(baselines.file());
    #[cfg(unix)]
    let (written, serves) = {
        let files = files.map(std::os::fd::AsFd::as_fd);
        (files.chain(door.iter().map(serve::Door::descriptor)).collect(), door.as_ref())
    };
    #[cfg(unix)]
    let serves = serves.map(|_| serve::THREADS);
    #[cfg(not(unix))]
    let (written, serves) = (files.map(|_| &()).collect(), None);
    let written: Vec<confine::Kept<'_>> = written;
    let opened = match open(&args.input, args.more_passes(), args.is_paged(), &written, serves) {
        Ok(Some(opened)) => opened,
        Ok(None) => return Ok(NOT_ANALYSED),
        Err(error) => return Ok(wrong(&error)),
    };
    let Opened { inputs, mut again, threads, ends, .. } = opened;
    let ends = ends.as_ref();
    let (mut summary, mut report, span) = match analyse(&args.input, inputs, ends, args.analysis(), threads) {
        Ok(analysed) => analysed,
        Err(error) => return Ok(wrong(&error)),
    };
    output::troubles(&summary);
    if summary.is_failure() {
        return Ok(NOT_ANALYSED);
    }
    let output = Output::new(&args.input, &summary, span, ends);
    if let Some(why) = output.nothing(&report) {
        output::complain(&why);
        let gates = gate::nothing_to_judge(&args.fail_on);
        gate::say(&gates);
        if args.format() == Format::Json {
            output.json(&report, &gates)?;
        }
        return Ok(NOTHING_ANALYSED);
    }
    let wanted = match args.connection {
        None => None,
        Some(Which::Number(number)) => Some(number),
        Some(which) => {
            let Some(number) = output::found(&report, which) else { return Ok(WRONG_USAGE) };
            let Some(inputs) = again.pop() else {
                output::complain(&format!(
                    "this needs a second pass, which a pipe does not allow: use --connection {number}"
                ));
                return Ok(WRONG_USAGE);
            };
            // With what only the one connection's listing keeps.
            let options = args.input.listing(Listing::Connection(number));
            (summary, report, _) = analyse(&args.input, inputs, ends, options, threads)?;
            Some(number)
        }
    };
    let mut output = Output::new(&args.input, &summary, span, ends);
    if wanted.is_some_and(|number| !output::lists(&report, number, args.exchange)) {
        return Ok(WRONG_USAGE);
    }
    let mut gates = gate::judge(&args.fail_on, &report);
    gates.extend(baselines.judge(&report));
    baselines.save(&report)?;
    let files = [page.as_ref(), annotated.as_ref()];
    let drawn = draw(args, (&mut again, ends, threads), &report)?;
    write_files(args, &mut again, &output, (&report, &drawn), files)?;
    #[cfg(unix)]
    let kept = door.as_ref().and_then(|_| again.pop());
    // What is written for others has nothing of it.
    if args.show_requests {
        match again.pop() {
            Some(inputs) => requests::name(&args.input, inputs, ends, &mut report)?,
            None => output::complain(
                "--show-requests reads the input twice, which a pipe does not allow: save the capture to a file",
            ),
        }
    }
    #[cfg(unix)]
    output.page(opened.pager);
    let last = again.pop().map(|again| (again, ends));
    let shown = show(args, last, &mut output, &report, wanted, &gates);
    output.finish();
    gate::say(&gates);
    #[cfg(unix)]
    if let (Some(door), Ok(())) = (&door, &shown) {
        let around = page::Around::of(&output, true);
        let library = serve::Library::new((&args.input, ends, threads), kept, &report, &drawn, around)?;
        door.serve(&library)?;
    }
    match shown {
        Err(error) if !output::is_broken_pipe(&error) => Err(error),
        // Whoever reads us has read enough; a pipeline that waits for the exit code wants to know all the same.
        _ if gates.iter().any(|gate| gate.failed) => Ok(GATE_CLOSED),
        _ if summary.is_partial() => Ok(PARTLY_ANALYSED),
        _ => Ok(ANALYSED),
    }
}

/// The packets that a page shows and an annotated capture explains, where either was asked for.
fn draw(
    args: &ReadArgs,
    (again, ends, threads): (&mut Vec<Inputs>, Option<&Ends>, usize),
    report: &Report,
) -> anyhow::Result<Drawn> {
    if !args.draws() {
        return Ok(Drawn::default());
    }
    let Some(inputs) = again.pop() else {
        output::complain(
            "packets are drawn and annotated in a second pass, which a pipe does not allow: save the capture to a file",
        );
        return Ok(Drawn::default());
    };
    page::second_pass(&args.input, inputs, ends, (report, &chosen(report)), threads)
}

/// The page and the annotated capture, as far as they were asked for.
fn write_files(
    args: &ReadArgs,
    again: &mut Vec<Inputs>,
    output: &Output<'_>,
    (report, drawn): (&Report, &Drawn),
    [page, annotated]: [Option<&OutFile>; 2],
) -> anyhow::Result<()> {
    if let Some(page) = page {
        page::write(page, output, report, drawn)?;
    }
    match annotated.and_then(|out| Some((out, again.pop()?))) {
        Some((out, inputs)) => annotate::write(out, &args.input, inputs, report, &drawn.report),
        None => Ok(()),
    }
}

/// Prints what was asked for.
fn show(
    args: &ReadArgs,
    again: Option<(Inputs, Option<&Ends>)>,
    output: &mut Output<'_>,
    report: &Report,
    connection: Option<u64>,
    gates: &[Gated],
) -> anyhow::Result<()> {
    match connection {
        _ if args.format() == Format::Json => output.json(report, gates),
        _ if args.format() == Format::Csv => Output::csv(report, args.show_requests),
        Some(number) => output.drill_down(report, number, args),
        None => {
            output.overview(report, args)?;
            if args.verbose { ladder_of_the_worst(args, again, output, report) } else { Ok(()) }
        }
    }
}

fn wrong(error: &WindowError) -> u8 {
    output::complain(&error.to_string());
    WRONG_USAGE
}

/// One pass over the inputs: every segment that the filter lets through goes into the analysis; of connections that several inputs saw,
/// those of one.
fn analyse(
    args: &InputArgs,
    mut inputs: Inputs,
    ends: Option<&Ends>,
    mut options: tcpwhy_core::Options,
    threads: usize,
) -> Result<(InputSummary, Report, Option<Span>), WindowError> {
    // What has been read before is at its end.
    inputs.rewind();
    options.memory -= inputs.set_memory(options.memory);
    let mut chosen = ends.map(Ends::choice);
    let span = args.window().map(|window| inputs.limit(&window)).transpose()?;
    let mut engine = Engine::new(options, if args.every.is_some() { 1 } else { threads });
    let mut names = args.anonymizer().ok().flatten();
    let mut progress = Progress::start(args.is_live());
    let interim = Interim::of(args);
    let style = args.style();
    let mut passes = |input, segment: &Segment| {
        args.filter.as_ref().is_none_or(|filter| filter.matches_connection(segment.src, segment.dst))
            && chosen.as_mut().is_none_or(|chosen| chosen.has(input, segment))
    };
    let all = args.filter.is_none() && ends.is_none();
    let summary = inputs.for_each_decoded(
        &args.options(),
        |so_far| {
            progress.show(so_far);
            interim.on_progress();
        },
        |input, decoded, captured| {
            if all || passes(input, &decoded.segment()) {
                if interim.is_due() {
                    interim.show(&engine, decoded.segment().packet - 1, style);
                }
                match &mut names {
                    None => engine.on_decoded(decoded, captured),
                    Some(names) => engine.on_segment(&names.segment(&decoded.segment()), captured),
                }
            }
        },
    );
    progress.finish();
    Ok((summary, engine.finish(), span))
}

/// `-v` without a connection: the packets of the most expensive exchange, which only a second pass can keep.
fn ladder_of_the_worst(
    args: &ReadArgs,
    again: Option<(Inputs, Option<&Ends>)>,
    output: &mut Output<'_>,
    report: &Report,
) -> anyhow::Result<()> {
    let Some(finding) = report.findings.first() else { return Ok(()) };
    let Some((again, ends)) = again else {
        output::complain("-v reads its input twice, which a pipe does not allow: use --connection N");
        return Ok(());
    };
    let (connection, exchange) = finding.worst;
    let (_, second, _) =
        analyse(&args.input, again, ends, args.input.listing(Listing::Connection(connection)), 1)?;
    if second.segments != report.segments {
        output::complain("the input changed between the two passes of -v: use --connection N");
        return Ok(());
    }
    output.exchange(&second, connection, exchange)
}
