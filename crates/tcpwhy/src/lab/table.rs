//! `tcpwhy lab all`: what do all reference cases take? Theory and report, the time here, and the
//! time after the fix, on one page.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::rc::Rc;

use anyhow::Context as _;
use tcpwhy_lab::scenario::Span;
use tcpwhy_lab::scenario::{self, Scenario};
use tcpwhy_report::quantity::{bytes, counted, time};
use tcpwhy_report::text;
use tcpwhy_wire::Duration;

use super::RunArgs;
use super::accuracy::is_late;
use super::arithmetic::{Predicted, predict};
use super::clocked::{Headline, Spread};
use super::form::{Form, Place, Run};
use super::json;
use super::page;
use super::selection;
use super::show::{over_runs, range, style};
use crate::output::{print, without_numbers};
use crate::{ANALYSED, WRONG_USAGE, output};

/// A row of the table: a form, and its time after each fix that has no row of its own.
struct Row {
    label: String,
    scenario: Scenario,
    headline: Headline,
    measured: Option<Spread>,
    window_bytes: Option<u64>,
    connect: Option<Duration>,
    fixed: Vec<(Duration, String)>,
    warnings: Vec<String>,
}

/// Measurements disturbed by other programs are repeated.
const TRIES: u32 = 4;

pub(super) fn run(args: &RunArgs) -> anyhow::Result<u8> {
    if let Some(name) = args.names.iter().find(|name| !selection::is_of_the_table(name)) {
        output::complain(&format!("`{name}`: expected `all`, or `case-a` to `case-e`"));
        return Ok(WRONG_USAGE);
    }
    let rows = selection::rows(&args.names, args.every)?;
    let catalogue = scenario::catalogue()?;
    tcpwhy_lab::enter_user_namespace()?;
    let place = Place::new(args.keep.as_ref())?;
    let mut document = json::Document::new();
    let (mut surprises, mut count, mut judged) = (Vec::new(), 0, false);
    let mut measurements = Measurements { args, place: &place, known: BTreeMap::new() };
    if args.markdown {
        print(HEADING)?;
    }
    for of_table in rows {
        let (form, runs) = measurements.of(&of_table.form, of_table.fix.as_deref())?;
        let Some(mut row) = Row::of(of_table.label, &runs) else { continue };
        if args.json {
            document.add(&form, row.headline, &runs, place.is_kept());
        }
        let entry = catalogue.iter().find(|entry| entry.name == of_table.form);
        for (fix, _) in entry.filter(|_| of_table.fix.is_none()).map_or(&[][..], |entry| &entry.fixes) {
            let (form, runs) = measurements.of(&of_table.form, Some(fix))?;
            if args.json {
                document.add(&form, row.headline, &runs, place.is_kept());
            }
            if let Some(after) = over_runs(&runs, row.headline) {
                row.fixed.push((after.median, fix.clone()));
            }
        }
        count += 1;
        judged |= row.headline.expected(&row.scenario.expect).is_some();
        surprises.extend(row.surprise().map(|surprise| format!("  {}: {surprise}\n", row.label)));
        if args.markdown {
            print(&row.markdown())?;
        } else if !args.json {
            print(&row.plain(args))?;
        }
        // Written at once: rows measured so far are kept if this ends early.
        if let Some(file) = &args.write {
            put(file, &row)?;
        }
    }
    if args.json {
        print(&document.finish()?)?;
    } else if !args.markdown {
        print(&ending(&surprises, count, judged))?;
    }
    Ok(ANALYSED)
}

/// The text below the rows: which of them were not as expected, and by how much.
fn ending(surprises: &[String], count: u64, judged: bool) -> String {
    match surprises {
        [] if judged => "Everything as expected.\n".to_owned(),
        [] => "The scenarios state no figures for these settings.\n".to_owned(),
        some => format!(
            "{} of {} not as expected on this kernel and machine:\n{}",
            some.len(),
            counted(count, "row"),
            some.concat()
        ),
    }
}

/// Puts a row into its place on a page.
fn put(file: &Path, row: &Row) -> anyhow::Result<()> {
    let page = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let order = selection::rows(&["all".to_owned()], false)?;
    let labels: Vec<&str> = order.iter().map(|row| row.label.as_str()).collect();
    let written = page::with_rows(&page, HEADING, &labels, &[row.markdown()])
        .with_context(|| format!("{} has no marker for the table: {}", file.display(), page::BEGIN))?;
    std::fs::write(file, written).with_context(|| format!("cannot write {}", file.display()))
}

/// Earlier measurements: a fix can have a row of its own, after the row of what it fixes.
struct Measurements<'a> {
    args: &'a RunArgs,
    place: &'a Place,
    known: BTreeMap<String, Rc<Vec<Run>>>,
}

impl Measurements<'_> {
    /// Runs a form, again if other programs disturbed it; never because of its result.
    fn of(&mut self, name: &str, fix: Option<&str>) -> anyhow::Result<(Form, Rc<Vec<Run>>)> {
        let form = Form::of(name, fix, self.args)?;
        if let Some(runs) = self.known.get(&form.full_name()) {
            return Ok((form, Rc::clone(runs)));
        }
        let mut tried = 1;
        let runs = loop {
            let runs = form.run(self.args.repeat, self.place)?;
            if tried >= TRIES || runs.iter().all(|run| !is_late(run) && run.warnings.is_empty()) {
                break Rc::new(runs);
            }
            tried += 1;
        };
        self.known.insert(form.full_name(), Rc::clone(&runs));
        Ok((form, runs))
    }
}

const HEADING: &str =
    "| case | reported | theory or expectation | measured here | after the fix |\n|---|---|---|---|---|\n";

impl Row {
    fn of(label: String, runs: &[Run]) -> Option<Self> {
        let scenario = runs.first()?.scenario.clone();
        let headline = Headline::of(&scenario.expect);
        let late = runs.iter().filter(|run| is_late(run));
        let warnings =
            late.map(|run| format!("other programs made the path late, by up to {}", time(run.late)));
        let busy = load().map(|(load, processors)| {
            format!("the machine is busy: a load of {load:.1} on {}", counted(processors, "processor"))
        });
        Some(Self {
            label,
            headline,
            measured: over_runs(runs, headline),
            window_bytes: runs.iter().filter_map(|run| run.trace.window_bytes()).max(),
            connect: Headline::connect(runs),
            fixed: Vec::new(),
            warnings: warnings
                .chain(runs.iter().flat_map(|run| run.warnings.iter().map(|said| without_numbers(said))))
                .chain(busy)
                .collect(),
            scenario,
        })
    }

    /// The time it took and how far that is from the expected range, if it is outside.
    fn surprise(&self) -> Option<String> {
        let expected = self.headline.expected(&self.scenario.expect)?;
        let Some(Spread { median, .. }) = self.measured else {
            return Some(format!("nothing was measured, {} expected", range(expected)));
        };
        Some(format!("{}, {}", time(median), beyond(expected, median)?))
    }

    fn predicted(&self) -> Option<Predicted> {
        predict(&self.scenario, self.window_bytes)
    }

    fn measured(&self) -> String {
        let mut said = match self.measured {
            None => "not measured".to_owned(),
            Some(Spread { median, min, max }) if min == max => time(median),
            Some(Spread { median, min, max }) => {
                format!("{} ({} to {})", time(median), time(min), time(max))
            }
        };
        if let Some((predicted, measured)) = self.predicted().zip(self.measured) {
            let _ = write!(said, ", {}", predicted.deviation(measured.median, self.connect));
        }
        if self.scenario.transfer.is_some_and(|transfer| transfer.flight_bytes.is_none())
            && let Some(window) = self.window_bytes
        {
            let _ = write!(said, "; window {}", bytes(window));
        }
        if let Some(note) = &self.scenario.note {
            let _ = write!(said, "; {note}");
        }
        said
    }

    fn theory(&self) -> String {
        let expected = self.headline.expected(&self.scenario.expect).map(range);
        let theory = self.scenario.theory.clone().or(expected);
        match (self.predicted(), &self.scenario.theory) {
            (Some(predicted), None) => predicted.said(),
            (Some(predicted), Some(theory)) => format!("{theory}; {}", predicted.said()),
            (None, _) => theory.unwrap_or_else(|| "-".to_owned()),
        }
    }

    fn fixed(&self) -> String {
        let fixed: Vec<String> =
            self.fixed.iter().map(|(after, fix)| format!("{} ({fix})", time(*after))).collect();
        if fixed.is_empty() { "-".to_owned() } else { fixed.join(", ") }
    }

    fn markdown(&self) -> String {
        let cell = |text: &str| text.replace('|', "\\|");
        format!(
            "| {} | {} | {} | {} | {} |\n",
            cell(&self.label),
            cell(self.scenario.reported.as_deref().unwrap_or("-")),
            cell(&self.theory()),
            cell(&self.measured()),
            cell(&self.fixed()),
        )
    }

    fn plain(&self, args: &RunArgs) -> String {
        let style = style(args);
        let mut out = format!("{}\n", text::strong(&self.label, style));
        let mut measured = format!("{} {}", self.headline.name(), self.measured());
        if self.surprise().is_some() {
            measured.push_str("  NOT AS EXPECTED");
        }
        let reported = self.scenario.reported.clone().unwrap_or_else(|| "-".to_owned());
        let fixed = (!self.fixed.is_empty()).then(|| self.fixed());
        let facts = [
            ("reported", Some(&reported)),
            ("theory", Some(&self.theory())),
            ("here", Some(&measured)),
            ("fixed", fixed.as_ref()),
        ];
        let facts = facts.into_iter().filter_map(|(what, fact)| Some((what, fact?)));
        for (what, fact) in facts.chain(self.warnings.iter().map(|warning| ("warning", warning))) {
            for line in text::hanging(&format!("  {what:9} "), fact, style) {
                let is_known = matches!(what, "reported" | "theory");
                let line = if is_known { text::faint(&line, style) } else { line };
                let _ = writeln!(out, "{line}");
            }
        }
        out
    }
}

/// By how much a time is outside the expected range.
fn beyond(expected: Span, measured: Duration) -> Option<String> {
    let said = |by: Duration, than: &str| format!("{} {than} than expected ({})", time(by), range(expected));
    if measured > expected.max {
        Some(said(measured - expected.max, "more"))
    } else if measured < expected.min {
        Some(said(expected.min - measured, "less"))
    } else {
        None
    }
}

/// The load of the last minute and the number of processors, if the load is more than the
/// laboratory's own: then the figures are less reliable.
fn load() -> Option<(f64, u64)> {
    let processors = std::thread::available_parallelism().ok()?.get() as u64;
    too_much(&std::fs::read_to_string("/proc/loadavg").ok()?, processors)
}

/// The same from the kernel's text (proc_loadavg(5)).
fn too_much(loadavg: &str, processors: u64) -> Option<(f64, u64)> {
    let load: f64 = loadavg.split(' ').next()?.parse().ok()?;
    (load > 1.5 * processors as f64).then_some((load, processors))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_said_where_the_laboratory_does_not_make_it() {
        assert_eq!(too_much("2.90 1.00 0.50 1/200 4242", 2), None);
        assert_eq!(too_much("3.10 1.00 0.50 1/200 4242", 2), Some((3.1, 2)));
        assert_eq!(too_much("", 2), None);
    }

    #[test]
    fn the_table_ends_with_the_rows_that_were_not_as_expected() {
        let some = ["  split: 62.0 ms, 12.0 ms more than expected (40.0 ms to 50.0 ms)\n".to_owned()];
        let said = ending(&some, 41, true);
        assert_eq!(said, format!("1 of 41 rows not as expected on this kernel and machine:\n{}", some[0]));
        assert_eq!(ending(&[], 41, true), "Everything as expected.\n");
    }

    #[test]
    fn what_is_not_as_expected_says_by_how_much() {
        let ms = Duration::from_millis;
        let expected = Span { min: ms(40), max: ms(50) };
        assert_eq!(beyond(expected, ms(45)), None);
        let more = beyond(expected, ms(62));
        assert_eq!(more.as_deref(), Some("12.0 ms more than expected (40.0 ms to 50.0 ms)"));
        let less = beyond(expected, ms(17));
        assert_eq!(less.as_deref(), Some("23.0 ms less than expected (40.0 ms to 50.0 ms)"));
    }
}
