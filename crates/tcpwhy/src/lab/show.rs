//! What does `tcpwhy lab SCENARIO` show? The scenario and what was reported; what the application
//! measured and the bill from each end; then the same with a fix, and the gain.

use std::fmt::Write as _;

use tcpwhy::judge::{End, judge};
use tcpwhy_core::report::Kind;
use tcpwhy_lab::scenario::{self, Scenario, Span};
use tcpwhy_report::quantity::{counted, time};
use tcpwhy_report::{Style, answer, text};
use tcpwhy_wire::Duration;

use super::RunArgs;
use super::arithmetic::predict;
use super::clocked::{Headline, Spread};
use super::form::{Form, Place, Run};
use super::{json, picture};
use crate::cli::terminal_width;
use crate::output::{self, print};
use crate::{ANALYSED, WRONG_USAGE};

/// Lists every scenario.
pub(super) fn list(args: &RunArgs) -> anyhow::Result<u8> {
    let catalogue = scenario::catalogue()?;
    if args.json {
        print(&json::catalogue(&catalogue)?)?;
        return Ok(ANALYSED);
    }
    let style = style(args);
    let widest = catalogue.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    let room = Style { width: style.width.saturating_sub(widest + 2).max(20), ..style };
    let mut out = String::new();
    for entry in &catalogue {
        let name = text::strong(&format!("{:widest$}", entry.name), style);
        for (i, line) in text::wrapped(&entry.shows, room).iter().enumerate() {
            let front = if i == 0 { name.clone() } else { " ".repeat(widest) };
            // Writing to a String never fails.
            let _ = writeln!(out, "{front}  {line}");
        }
        let mut more = Vec::new();
        if !entry.variants.is_empty() {
            let variants: Vec<String> = entry.variants.iter().map(|name| format!("@{name}")).collect();
            more.push(format!("variants {}", variants.join(" ")));
        }
        if !entry.fixes.is_empty() {
            let fixes: Vec<&str> = entry.fixes.iter().map(|(name, _)| name.as_str()).collect();
            more.push(format!("fixed by {}", fixes.join(", ")));
        }
        if !more.is_empty() {
            for line in text::wrapped(&more.join("; "), room) {
                let _ = writeln!(out, "{:widest$}  {}", "", text::faint(&line, style));
            }
        }
    }
    out.push('\n');
    let next =
        "`tcpwhy lab NAME` reproduces one on this kernel, with its fixes; `tcpwhy lab all` prints the table.";
    for line in text::wrapped(next, style) {
        out.push_str(&line);
        out.push('\n');
    }
    output::print_by_page(&out, true)?;
    Ok(ANALYSED)
}

/// Runs the requested scenarios, one after the other.
pub(super) fn run(args: &RunArgs) -> anyhow::Result<u8> {
    let forms = match Form::asked(args) {
        Ok(forms) => forms,
        Err(what) => {
            output::complain(&what);
            return Ok(WRONG_USAGE);
        }
    };
    tcpwhy_lab::enter_user_namespace()?;
    let place = Place::new(args.keep.as_ref())?;
    let mut document = json::Document::new();
    let mut base: Option<(Headline, Option<Duration>)> = None;
    for form in &forms {
        let scenario = form.scenario(0)?;
        if !args.json {
            print(&heading(form, &scenario, style(args)))?;
        }
        let runs = form.run(args.repeat, &place)?;
        if form.fix.is_none() {
            let headline = Headline::of(&scenario.expect);
            base = Some((headline, over_runs(&runs, headline).map(|spread| spread.median)));
        }
        let (headline, unfixed) = base.unwrap_or((Headline::of(&scenario.expect), None));
        if args.json {
            document.add(form, headline, &runs, place.is_kept());
        } else {
            print(&told(form, headline, unfixed, &runs, style(args)))?;
        }
    }
    if args.json {
        print(&document.finish()?)?;
    } else if let Place::Kept(dir) = &place {
        print(&format!("Captures and truth.json of every run are in {}.\n", dir.display()))?;
    }
    Ok(ANALYSED)
}

pub(super) fn style(args: &RunArgs) -> Style {
    Style { color: args.color.is_on(), ascii: args.ascii, width: terminal_width(), ..Style::default() }
}

/// The headline number over several runs of a form.
pub(super) fn over_runs(runs: &[Run], headline: Headline) -> Option<Spread> {
    Spread::of(runs.iter().filter_map(|run| headline.measured(&run.clocked)))
}

fn heading(form: &Form, scenario: &Scenario, style: Style) -> String {
    let title = |title: &str| -> String {
        text::wrapped(title, style).iter().map(|line| text::strong(line, style) + "\n").collect()
    };
    if let Some((fix, what)) = &form.fix {
        return title(&format!("Fixed, {fix}: {what}"));
    }
    let mut out = title(&format!("{}: {}", scenario.name, scenario.shows));
    let path = |elements: &[tcpwhy_lab::ElementSpec]| match elements {
        [] => "no elements".to_owned(),
        some => some.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    };
    let (forward, backward) = (path(&scenario.pair.path.forward), path(&scenario.pair.path.backward));
    let both =
        if forward == backward { forward } else { format!("to the server {forward}; back {backward}") };
    let facts = [
        ("case", scenario.case.clone()),
        ("reported", scenario.reported.clone()),
        ("theory", scenario.theory.clone()),
        ("note", scenario.note.clone()),
        ("path", Some(format!("{both}; seed {}", scenario.pair.path.seed))),
    ];
    for (what, fact) in facts {
        if let Some(fact) = fact {
            out.push_str(&line(what, &fact, style));
        }
    }
    out
}

/// The result of one form.
fn told(form: &Form, headline: Headline, unfixed: Option<Duration>, runs: &[Run], style: Style) -> String {
    let mut out = String::new();
    // Of several runs, the median one is shown.
    let mut order: Vec<&Run> = runs.iter().collect();
    order.sort_by_key(|run| headline.measured(&run.clocked));
    let Some(run) = order.get(order.len() / 2) else { return out };
    out.push_str(&line("measured", &clocked(run), style));
    let measured = over_runs(runs, headline);
    if let Some(Spread { median, min, max }) = measured.filter(|_| runs.len() > 1) {
        let what = format!(
            "{}: median {} over {}, from {} to {}",
            headline.name(),
            time(median),
            counted(runs.len() as u64, "run"),
            time(min),
            time(max)
        );
        out.push_str(&line("spread", &what, style));
    }
    let expected = headline.expected(&run.scenario.expect);
    if let Some((expected, measured)) = expected.zip(measured.map(|spread| spread.median)) {
        let verdict = if expected.contains(measured) { "as expected" } else { "not as expected" };
        out.push_str(&line(
            "expected",
            &format!("{} {}: {verdict}", headline.name(), range(expected)),
            style,
        ));
    }
    if Headline::is_unstated(&run.scenario.expect) {
        out.push_str(&line("expected", "nothing: the scenario does not cover these settings", style));
    }
    let predicted = predict(&run.scenario, run.trace.window_bytes());
    if let Some((predicted, measured)) = predicted.zip(measured.map(|spread| spread.median)) {
        let what = format!(
            "{}; measured {}",
            predicted.said(),
            predicted.deviation(measured, Headline::connect(runs))
        );
        out.push_str(&line("expected", &what, style));
    }
    if form.fix.is_some()
        && let Some((before, after)) = unfixed.zip(measured.map(|spread| spread.median))
    {
        out.push_str(&line("gain", &gain(headline, before, after), style));
    }
    for warning in runs.iter().flat_map(|run| &run.warnings) {
        out.push_str(&line("warning", warning, style));
    }
    for (end, report) in End::BOTH.into_iter().zip(&run.bills) {
        let said = format!("from the {end}'s capture: {}", answer(report));
        if form.fix.is_some() {
            out.push_str(&line("bill", &said, style));
        } else {
            out.push('\n');
            for part in text::wrapped(&said, style) {
                let _ = writeln!(out, "{part}");
            }
            out.push_str(&text::bill(report, style));
            for fault in judge(end, &run.truth, report, &run.scenario.expect).faults() {
                out.push_str(&line("unexpected", &fault, style));
            }
        }
    }
    out.push_str(&picture::of(run, style));
    out.push('\n');
    out
}

/// `20 exchanges: median 43.9 ms, from 0.2 ms to 44.1 ms; 1 connect: 0.1 ms`
fn clocked(run: &Run) -> String {
    let kinds = [(Kind::Exchange, "exchange"), (Kind::OneWay, "one-way message"), (Kind::Setup, "connect")];
    let parts = kinds.into_iter().filter_map(|(kind, noun)| {
        let values = run.clocked.kind(kind);
        let Spread { median, min, max } = Spread::of(values.iter().copied())?;
        let n = values.len() as u64;
        Some(if n == 1 {
            format!("{}: {}", counted(n, noun), time(median))
        } else {
            let (median, min, max) = (time(median), time(min), time(max));
            format!("{}: median {median}, from {min} to {max}", counted(n, noun))
        })
    });
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() { "nothing".to_owned() } else { parts.join("; ") }
}

fn gain(headline: Headline, before: Duration, after: Duration) -> String {
    let (name, ratio) = (headline.name(), before.as_nanos() as f64 / after.as_nanos().max(1) as f64);
    let (was, is) = (time(before), time(after));
    if ratio >= 1.1 {
        format!("{name} {is} instead of {was}: {} less, {ratio:.1} times as fast", time(before - after))
    } else if ratio > 0.9 {
        format!("none: {name} {is}, before {was}")
    } else {
        format!("none: {name} {is} instead of {was}, {:.1} times as slow", 1.0 / ratio)
    }
}

/// `43.0 ms to 50.0 ms`, `up to 3.00 ms`, `from 200 ms`
pub(super) fn range(span: Span) -> String {
    match (span.min.is_positive(), span.max < Duration::MAX) {
        (true, true) => format!("{} to {}", time(span.min), time(span.max)),
        (false, true) => format!("up to {}", time(span.max)),
        _ => format!("from {}", time(span.min)),
    }
}

fn line(what: &str, fact: &str, style: Style) -> String {
    text::hanging(&format!("  {what:9}  "), fact, style).join("\n") + "\n"
}
