//! `tcpwhy lab all`: every case on one page. What theory and the report say, what it takes here, and after the fix.

use std::fmt::Write as _;

use tcpwhy_lab::scenario::Scenario;
use tcpwhy_report::quantity::time;
use tcpwhy_report::text;
use tcpwhy_wire::Duration;

use super::RunArgs;
use super::felt::{Headline, Spread};
use super::form::{Form, Place};
use super::json;
use super::show::{over_runs, range, style};
use crate::output::{self, print};
use crate::{ANALYSED, WRONG_USAGE};

/// A scenario and its best mend.
struct Row {
    scenario: Scenario,
    headline: Headline,
    measured: Option<Spread>,
    /// What it takes after the mend that helps most, and that mend's name.
    mended: Option<(Duration, String)>,
    warnings: Vec<String>,
}

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
    let mut row: Option<Row> = None;
    if args.markdown {
        print(
            "| scenario | reported | theory or expectation | here | after the fix |\n|---|---|---|---|---|\n",
        )?;
    }
    let mut surprises = 0_u64;
    for form in &forms {
        let runs = form.run(args.repeat, &place)?;
        let Some(scenario) = runs.first().map(|run| run.scenario.clone()) else { continue };
        if form.mend.is_none() {
            surprises += finish(row.take(), args)?;
            let headline = Headline::of(&scenario.expect);
            row = Some(Row {
                measured: over_runs(&runs, headline),
                warnings: runs.iter().flat_map(|run| run.warnings.clone()).collect(),
                mended: None,
                scenario,
                headline,
            });
        }
        let Some(row) = &mut row else { continue };
        if args.json {
            document.add(form, row.headline, &runs, place.is_kept());
        }
        if let (Some((mend, _)), Some(after)) = (&form.mend, over_runs(&runs, row.headline))
            && row.mended.as_ref().is_none_or(|(best, _)| after.median < *best)
        {
            row.mended = Some((after.median, mend.clone()));
        }
    }
    surprises += finish(row, args)?;
    if args.json {
        print(&document.finish()?)?;
    } else if !args.markdown {
        print(&match surprises {
            0 => "Everything as expected.\n".to_owned(),
            n => {
                format!("{n} not as expected: see them one by one, or what is different about this kernel.\n")
            }
        })?;
    }
    Ok(ANALYSED)
}

/// Prints a row once all its mends are known; says how many surprises it holds.
fn finish(row: Option<Row>, args: &RunArgs) -> anyhow::Result<u64> {
    let Some(row) = row else { return Ok(0) };
    let expected = row.headline.expected(&row.scenario.expect);
    let surprising =
        expected.zip(row.measured).is_some_and(|(expected, measured)| !expected.contains(measured.median));
    if args.markdown {
        print(&markdown(&row))?;
    } else if !args.json {
        print(&plain(&row, surprising, args))?;
    }
    Ok(u64::from(surprising))
}

fn measured(row: &Row) -> String {
    match row.measured {
        None => "nothing".to_owned(),
        Some(Spread { median, min, max }) if min == max => time(median),
        Some(Spread { median, min, max }) => format!("{} ({} to {})", time(median), time(min), time(max)),
    }
}

fn theory(row: &Row) -> String {
    let expected = row.headline.expected(&row.scenario.expect).map(range);
    match (&row.scenario.theory, expected) {
        (Some(theory), _) => theory.clone(),
        (None, Some(expected)) => expected,
        (None, None) => "-".to_owned(),
    }
}

fn mended(row: &Row) -> String {
    row.mended.as_ref().map_or_else(|| "-".to_owned(), |(after, mend)| format!("{} ({mend})", time(*after)))
}

fn markdown(row: &Row) -> String {
    let cell = |text: &str| text.replace('|', "\\|");
    format!(
        "| {}{} | {} | {} | {} | {} |\n",
        row.scenario.name,
        match row.headline.name() {
            "exchange" => String::new(),
            other => format!(", {other}"),
        },
        cell(row.scenario.reported.as_deref().unwrap_or("-")),
        cell(&theory(row)),
        cell(&measured(row)),
        cell(&mended(row)),
    )
}

fn plain(row: &Row, surprising: bool, args: &RunArgs) -> String {
    let style = style(args);
    let mut out = format!(
        "{}  {} {}",
        text::strong(&format!("{:20}", row.scenario.name), style),
        row.headline.name(),
        measured(row)
    );
    if row.mended.is_some() {
        let _ = write!(out, "; after the fix {}", mended(row));
    }
    out.push_str(if surprising { "  NOT AS EXPECTED\n" } else { "\n" });
    let mut beside = Vec::new();
    if let Some(reported) = &row.scenario.reported {
        beside.push(format!("reported: {reported}"));
    }
    beside.push(format!("theory: {}", theory(row)));
    for fact in beside {
        let _ = writeln!(out, "{:22}{}", "", text::faint(&fact, style));
    }
    for warning in &row.warnings {
        let _ = writeln!(out, "{:22}warning: {warning}", "");
    }
    out
}
