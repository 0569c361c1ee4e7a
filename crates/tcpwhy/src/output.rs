//! What is printed where? Results go to standard output, problems to standard error.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anstyle::Style as Ansi;
use clap::Parser as _;
use tcpwhy::input::{FileSummary, InputSummary, MAX_TROUBLES, Span};
use tcpwhy_core::report::Connection;
use tcpwhy_core::{Cause, Report};
use tcpwhy_remedy::explain;
use tcpwhy_report::escape::visible;
use tcpwhy_report::json::Gated;
use tcpwhy_report::text::{Stacks, Streams};
use tcpwhy_report::{CaptureInfo, Style, answer, csv, json, text};
use tcpwhy_wire::Duration;

use crate::ANALYSED;
use crate::cli::{
    self, Cli, Color, Format, InputArgs, ListArgs, ReadArgs, Sort, is_terminal, terminal_width,
};
use crate::ends::Ends;
#[cfg(unix)]
use crate::pager::Pager;
use crate::which::Which;

/// Prints reports in the requested form.
pub(crate) struct Output<'a> {
    files: Vec<CaptureInfo>,
    args: &'a InputArgs,
    style: Style,
    #[cfg(unix)]
    pager: Option<Pager>,
}

impl<'a> Output<'a> {
    pub(crate) fn new(
        args: &'a InputArgs,
        summary: &InputSummary,
        span: Option<Span>,
        ends: Option<&Ends>,
    ) -> Self {
        let mut files = captures(summary);
        for (i, file) in files.iter_mut().enumerate() {
            file.other_end = ends.and_then(|ends| ends.told(i)).cloned();
        }
        let first = files.iter().filter_map(|file| file.first).min();
        let style = Style {
            color: args.color.is_on(),
            ascii: args.ascii,
            width: args.width(),
            offset_s: first.map_or(0, |first| args.zone().offset_s(first)),
            ..Style::default()
        };
        for (i, file) in files.iter_mut().enumerate() {
            if let Some(live) = args.live() {
                live.clone_into(&mut file.path);
            }
            if args.anonymize {
                file.path = anonymous(i);
                file.is_anonymized = true;
            }
            file.window = span.map(|span| (span.from, span.to));
        }
        Self {
            files,
            args,
            style,
            #[cfg(unix)]
            pager: None,
        }
    }

    /// Sends all further output to the pager, if there is one.
    #[cfg(unix)]
    pub(crate) fn page(&mut self, pager: Option<Pager>) {
        self.pager = pager;
    }

    /// Waits until the user has closed the pager.
    pub(crate) fn finish(&mut self) {
        #[cfg(unix)]
        if let Some(pager) = self.pager.take() {
            pager.finish();
        }
    }

    fn print(&mut self, text: &str) -> anyhow::Result<()> {
        #[cfg(unix)]
        if let Some(pager) = &mut self.pager {
            return Ok(pager.write(text)?);
        }
        print(text)
    }

    /// Why nothing was analysed, if nothing was.
    pub(crate) fn nothing(&self, report: &Report) -> Option<String> {
        answer::nothing(report, &self.files)
    }

    pub(crate) fn overview(&mut self, report: &Report, args: &ReadArgs) -> anyhow::Result<()> {
        let chosen = args.stack.iter().fold(Stacks::default(), |stacks, stack| stacks.with(*stack));
        let stacks = if args.all_stacks { Stacks::ALL } else { chosen };
        let style = Style { brief: args.brief, stacks, ..self.style };
        let again = self.again();
        let shown = match args.format() {
            Format::Markdown => text::markdown(report, &self.files, &again, style),
            _ => text::overview(report, &self.files, &again, style),
        };
        self.print(&shown)
    }

    /// The bills as CSV rows.
    pub(crate) fn csv(report: &Report, has_requests: bool) -> anyhow::Result<()> {
        let mut stdout = std::io::BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
        csv::bills(report, has_requests, &mut stdout)?;
        stdout.flush()?;
        let omitted = report.omitted;
        if omitted.exchanges > 0 && !matches!(report.connections.as_slice(), [_]) {
            complain(&format!(
                "{} exchanges are not listed; narrow the input with --filter, --from or --to",
                omitted.exchanges
            ));
        }
        Ok(())
    }

    pub(crate) fn json(&self, report: &Report, gates: &[Gated]) -> anyhow::Result<()> {
        let mut stdout = std::io::BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
        json::write(report, &self.files, env!("CARGO_PKG_VERSION"), gates, &mut stdout)?;
        Ok(stdout.flush()?)
    }

    /// One connection, its packets, or one of its exchanges.
    pub(crate) fn drill_down(&mut self, report: &Report, number: u64, args: &ReadArgs) -> anyhow::Result<()> {
        let shown = match args.exchange {
            Some(_) => text::ladder(report, &self.files, number, args.exchange, self.style),
            None if args.verbose => text::ladder(report, &self.files, number, None, self.style),
            None => text::connection(report, &self.files, number, args.slowest, self.style),
        };
        self.print(&shown.unwrap_or_default())
    }

    /// The packets of one exchange.
    pub(crate) fn exchange(&mut self, report: &Report, connection: u64, exchange: u64) -> anyhow::Result<()> {
        let shown = text::ladder(report, &self.files, connection, Some(exchange), self.style);
        self.print(&shown.unwrap_or_default())
    }

    /// The connections, a line each.
    pub(crate) fn list(
        &mut self,
        report: &Report,
        counted: &tcpwhy::input::Streams,
        args: &ListArgs,
    ) -> anyhow::Result<()> {
        let order = match args.sort {
            Sort::Cost => text::Order::Cost,
            Sort::Start => text::Order::Start,
            Sort::Slowest => text::Order::Slowest,
        };
        // Without a terminal, there is no width to fit.
        let style = if self.args.fits() { self.style } else { Style { width: usize::MAX, ..self.style } };
        let of = |connection: &Connection| counted.of(connection, self.args.anonymize);
        let streams = match self.files.len() {
            _ if counted.is_counted() => Streams::Of(&of),
            1 => Streams::NotCounted,
            _ => Streams::SeveralFiles,
        };
        let shown = match args.format {
            Format::Csv => {
                let mut rows = Vec::new();
                csv::connections(&text::ordered(report, order), streams, &mut rows)?;
                String::from_utf8(rows)?
            }
            Format::Markdown => text::list_as_markdown(report, order, args.top.get(), self.style),
            _ => text::list(report, order, args.top.get(), streams, style),
        };
        self.print(&shown)
    }

    /// The inputs.
    pub(crate) fn files(&self) -> &[CaptureInfo] {
        &self.files
    }

    /// How far the reader's time zone is ahead of UTC, in seconds.
    pub(crate) fn offset_s(&self) -> i32 {
        self.style.offset_s
    }

    /// The shell command that reads the same input again; empty if nothing keeps it.
    pub(crate) fn again(&self) -> String {
        if self.args.kept().is_empty() {
            return String::new();
        }
        let mut words = vec!["tcpwhy read".to_owned()];
        let named = |(i, file): (usize, &PathBuf)| {
            if self.args.anonymize { anonymous(i) } else { shell_word(&file.to_string_lossy()) }
        };
        words.extend(self.args.kept().iter().enumerate().map(named));
        if words.len() > 4 {
            words.truncate(3);
            words.push("...".to_owned());
        }
        if let Some(filter) = self.args.filter.as_ref().filter(|_| !self.args.anonymize) {
            words.push(format!("--filter {}", shell_word(&filter.to_string())));
        }
        for (option, moment) in [("--from", &self.args.from), ("--to", &self.args.to)] {
            if let Some(moment) = moment {
                words.push(format!("{option} {}", shell_word(&moment.to_string())));
            }
        }
        if self.args.utc {
            words.push("--utc".to_owned());
        }
        words.join(" ")
    }
}

/// A file's name where names are replaced.
pub(crate) fn anonymous(i: usize) -> String {
    format!("anonymized-{}.pcapng", i + 1)
}

/// Whether the report has the requested connection and exchange; complains if not.
pub(crate) fn lists(report: &Report, connection: u64, exchange: Option<u64>) -> bool {
    let Some(listed) = report.connection(connection) else {
        let there = report.omitted.connections;
        complain(&format!("no connection {connection}: the capture has {there}, counted from 1"));
        return false;
    };
    match exchange {
        Some(n) if listed.exchanges.iter().all(|exchange| exchange.n != n) => {
            let last = listed.exchanges.last().map_or(0, |exchange| exchange.n);
            complain(&format!("connection {connection} has no exchange {n}; the last is {last}"));
            false
        }
        _ => true,
    }
}

/// The number of the connection that `which` names; the most expensive one if several match. Complains if
/// there is none, and says which others there are.
pub(crate) fn found(report: &Report, which: Which) -> Option<u64> {
    let mut found: Vec<_> = report.connections.iter().filter(|connection| which.is(connection)).collect();
    let cost = |connection: &Connection| connection.bill.iter().map(|line| line.ns).sum::<Duration>();
    found.sort_by_key(|connection| std::cmp::Reverse(cost(connection)));
    let Some(first) = found.first() else {
        let all = report.connections.len() as u64 + report.omitted.connections;
        complain(&format!("no connection matches {which} ({all} in the capture; see `tcpwhy list`)"));
        return None;
    };
    if found.len() > 1 {
        let others: Vec<String> = found[1..].iter().take(8).map(|other| other.id.to_string()).collect();
        let more = if found.len() > 9 { ", ..." } else { "" };
        complain(&format!(
            "{} connections match {which}: showing {}, the most expensive; the others are {}{more}",
            found.len(),
            first.id,
            others.join(", ")
        ));
    }
    Some(first.id)
}

/// One word of a shell command.
fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,+=@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// What the report says about the inputs.
pub(crate) fn captures(summary: &InputSummary) -> Vec<CaptureInfo> {
    summary.files.iter().map(capture_info).collect()
}

fn capture_info(file: &FileSummary) -> CaptureInfo {
    let format = file.format.map_or_else(|| "unknown".to_owned(), |format| format.name().to_owned());
    CaptureInfo {
        path: file.path.to_string_lossy().into_owned(),
        format: match file.compression {
            "" => format,
            compression => format!("{format}+{compression}"),
        },
        packets: file.packets,
        segments: file.segments,
        first: file.first,
        last: file.last,
        truncated: file.truncated,
        skipped: file.skipped.iter().map(|(reason, n)| ((*reason).to_owned(), *n)).collect(),
        drops: file.drops,
        window: None,
        unread_bytes: file.unread_bytes,
        stopped: file.stopped,
        interrupted: file.interrupted,
        is_renumbered: file.is_renumbered,
        is_anonymized: false,
        other_end: None,
        turns: file.turns.iter().map(|turn| (turn.first, turn.frame)).collect(),
        failure: file.failure.as_ref().map(ToString::to_string),
    }
}

/// Reports on standard error what could not be read, and where.
pub(crate) fn troubles(summary: &InputSummary) {
    for file in &summary.files {
        let path = file.path.to_string_lossy();
        if let Some(failure) = &file.failure {
            complain(&format!("{path}: {failure}"));
        }
        for trouble in &file.troubles {
            complain(&format!("{path}: {trouble}"));
        }
        let all = file.skipped.get("damaged").copied().unwrap_or(0);
        if all > MAX_TROUBLES as u64 {
            complain(&format!("{path}: and {} more such errors", all - MAX_TROUBLES as u64));
        }
    }
}

/// `tcpwhy explain`: one cause, or the list of them.
pub(crate) fn explanation(cause: Option<Cause>, color: Color) -> anyhow::Result<u8> {
    let heading = |text: &str| {
        let bold = Ansi::new().bold();
        if color.is_on() { format!("{bold}{text}{bold:#}") } else { text.to_owned() }
    };
    let width = if is_terminal() { terminal_width() } else { usize::MAX };
    let style = Style { width, ..Style::default() };
    let Some(cause) = cause else {
        let widest = Cause::ALL.iter().map(|cause| cause.name().len()).max().unwrap_or(0);
        let mut list = String::new();
        for cause in Cause::ALL {
            let name = format!("{cause:<widest$}");
            for line in text::hanging(&format!("{name}  "), explain(cause).title, style) {
                let _ = writeln!(list, "{}", line.replacen(&name, &heading(&name), 1));
            }
        }
        print_by_page(&list, true)?;
        return Ok(ANALYSED);
    };
    let mut shown = String::new();
    for line in text::prose(&explain(cause).markdown(), style.width) {
        let _ = writeln!(
            shown,
            "{}",
            if line.starts_with("# ") || line.starts_with("## ") { heading(&line) } else { line }
        );
    }
    print_by_page(&shown, true)?;
    Ok(ANALYSED)
}

/// Prints what the parser has to say: help, the version, or an error. An error may quote a file's name whose
/// line breaks would look like our own lines: if any word has characters that act on a terminal, the words
/// are made visible and parsed again, which gives the same complaint.
pub(crate) fn usage(error: clap::Error) -> ExitCode {
    let words: Vec<OsString> = cli::words();
    let shown: Vec<OsString> =
        words.iter().map(|word| visible(&word.to_string_lossy()).into_owned().into()).collect();
    let again = if error.use_stderr() && shown != words { Cli::try_parse_from(&shown).err() } else { None };
    let error = again.unwrap_or(error);
    let said = error.render().to_string();
    if error.use_stderr() && said.lines().any(|line| matches!(visible(line), Cow::Owned(_))) {
        for line in said.lines() {
            let _ = writeln!(std::io::stderr(), "{}", visible(line));
        }
    } else {
        let _ = error.print();
    }
    ExitCode::from(error.exit_code() as u8)
}

/// Prints one line on standard error, with nothing in it that acts on a terminal.
pub(crate) fn complain(message: &str) {
    // If standard error is closed, there is nobody left to tell.
    let _ = writeln!(std::io::stderr(), "tcpwhy: {}", visible(&without_numbers(message)));
}

/// The same for a message with line breaks of our own.
pub(crate) fn complain_in_lines(message: &str) {
    let mut lines = message.lines();
    complain(lines.next().unwrap_or_default());
    for line in lines {
        let _ = writeln!(std::io::stderr(), "{}", visible(line));
    }
}

/// An error and its causes, each once: some errors include their source themselves.
pub(crate) fn told(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |told, cause| {
        let cause = cause.to_string();
        match told.as_str() {
            "" => cause,
            _ if told.ends_with(&cause) => told,
            _ => format!("{told}: {cause}"),
        }
    })
}

/// The system's words for an error, without the number that the standard library appends.
pub(crate) fn without_numbers(message: &str) -> String {
    let mut pieces = message.split(" (os error ");
    let mut said = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.split_once(')') {
            Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => said.push_str(rest),
            _ => said.extend([" (os error ", piece]),
        }
    }
    said
}

/// The same through a pager, if `wanted` and the text is longer than the screen; only before rights are given
/// up.
pub(crate) fn print_by_page(text: &str, wanted: bool) -> anyhow::Result<()> {
    #[cfg(unix)]
    return by(Pager::start(wanted), text);
    #[cfg(not(unix))]
    {
        let _ = wanted;
        print(text)
    }
}

/// Prints through a pager if one was started before.
#[cfg(unix)]
pub(crate) fn by(pager: Option<Pager>, text: &str) -> anyhow::Result<()> {
    let Some(mut pager) = pager else { return print(text) };
    let written = pager.write(text);
    pager.finish();
    Ok(written?)
}

pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()?;
    Ok(())
}

/// Whether the reader of standard output has gone away.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_told_once_and_without_numbers() {
        use anyhow::Context as _;
        let gone = || std::io::Error::from_raw_os_error(2);
        let twice = Err::<(), _>(gone()).context(format!("cannot write x: {}", gone()));
        let told = twice.map_err(|error| told(&error)).unwrap_err();
        assert_eq!(without_numbers(&told), "cannot write x: No such file or directory");
        assert_eq!(without_numbers("a (os error x) b (os error 17): c"), "a (os error x) b: c");
    }
}
