//! What does a program read about runs of the laboratory? The document `tcpwhy.lab/1`: integers in
//! ns, as in reports.

use serde::Serialize;
use tcpwhy::judge::{End, judge};
use tcpwhy_core::report::Kind;
use tcpwhy_lab::scenario::{Entry, Span};
use tcpwhy_wire::Duration;

use super::clocked::{Headline, Spread};
use super::form::{Form, Run};
use super::show::over_runs;

/// All forms that were run.
#[derive(Debug, Serialize)]
pub(super) struct Document {
    schema: &'static str,
    tcpwhy: &'static str,
    forms: Vec<JsonForm>,
}

#[derive(Debug, Serialize)]
struct JsonForm {
    scenario: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<JsonFix>,
    shows: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    case: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reported: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    theory: Option<String>,
    /// The number that the scenario is about: `exchange`, `slowest exchange`, `one-way message` or
    /// `connect`.
    headline: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_ns: Option<JsonRange>,
    #[serde(skip_serializing_if = "Option::is_none")]
    measured_ns: Option<JsonSpread>,
    runs: Vec<JsonRun>,
}

#[derive(Debug, Serialize)]
struct JsonFix {
    name: String,
    what: String,
}

#[derive(Debug, Serialize)]
struct JsonRange {
    min: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<i64>,
}

#[derive(Debug, Serialize)]
struct JsonSpread {
    median: i64,
    min: i64,
    max: i64,
}

#[derive(Debug, Serialize)]
struct JsonRun {
    seed: u64,
    kernel: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    dir: Option<String>,
    warnings: Vec<String>,
    setups_ns: Vec<i64>,
    exchanges_ns: Vec<i64>,
    one_way_ns: Vec<i64>,
    bills: Vec<JsonBill>,
}

#[derive(Debug, Serialize)]
struct JsonBill {
    end: &'static str,
    elapsed_ns: i64,
    bill: Vec<JsonLine>,
    faults: Vec<String>,
}

#[derive(Debug, Serialize)]
struct JsonLine {
    cause: &'static str,
    side: &'static str,
    ns: i64,
    hits: u64,
}

impl Document {
    pub(super) const fn new() -> Self {
        Self { schema: "tcpwhy.lab/1", tcpwhy: env!("CARGO_PKG_VERSION"), forms: Vec::new() }
    }

    pub(super) fn add(&mut self, form: &Form, headline: Headline, runs: &[Run], kept: bool) {
        let Some(scenario) = runs.first().map(|run| &run.scenario) else { return };
        self.forms.push(JsonForm {
            scenario: form.name.clone(),
            fix: form.fix.clone().map(|(name, what)| JsonFix { name, what }),
            shows: scenario.shows.clone(),
            case: scenario.case.clone(),
            reported: scenario.reported.clone(),
            theory: scenario.theory.clone(),
            headline: headline.name(),
            expected_ns: headline.expected(&scenario.expect).map(JsonRange::of),
            measured_ns: over_runs(runs, headline).map(JsonSpread::of),
            runs: runs.iter().map(|run| JsonRun::of(run, kept)).collect(),
        });
    }

    pub(super) fn finish(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

impl JsonRange {
    fn of(span: Span) -> Self {
        Self { min: span.min.as_nanos(), max: (span.max < Duration::MAX).then_some(span.max.as_nanos()) }
    }
}

impl JsonSpread {
    const fn of(spread: Spread) -> Self {
        Self { median: spread.median.as_nanos(), min: spread.min.as_nanos(), max: spread.max.as_nanos() }
    }
}

impl JsonRun {
    fn of(run: &Run, kept: bool) -> Self {
        let ns = |kind| run.clocked.kind(kind).iter().map(|clocked| clocked.as_nanos()).collect();
        let bills = End::BOTH.into_iter().zip(&run.bills).map(|(end, report)| JsonBill {
            end: end.name(),
            elapsed_ns: report.elapsed.as_nanos(),
            bill: report
                .bill
                .iter()
                .map(|line| JsonLine {
                    cause: line.cause.name(),
                    side: line.side.name(),
                    ns: line.ns.as_nanos(),
                    hits: line.hits,
                })
                .collect(),
            faults: judge(end, &run.truth, report, &run.scenario.expect).faults(),
        });
        Self {
            seed: run.scenario.pair.path.seed,
            kernel: run.truth.kernel.clone(),
            dir: kept.then(|| run.dir.to_string_lossy().into_owned()),
            warnings: run.warnings.clone(),
            setups_ns: ns(Kind::Setup),
            exchanges_ns: ns(Kind::Exchange),
            one_way_ns: ns(Kind::OneWay),
            bills: bills.collect(),
        }
    }
}

/// The list of scenarios.
pub(super) fn catalogue(entries: &[Entry]) -> anyhow::Result<String> {
    #[derive(Serialize)]
    struct List<'a> {
        schema: &'static str,
        scenarios: Vec<Scenario<'a>>,
    }
    #[derive(Serialize)]
    struct Scenario<'a> {
        name: &'a str,
        shows: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        case: Option<&'a str>,
        variants: &'a [String],
        fixes: Vec<JsonFix>,
        /// Its rows in the table of the reference cases.
        rows: Vec<&'a str>,
    }
    let scenarios = entries.iter().map(|entry| Scenario {
        name: &entry.name,
        shows: &entry.shows,
        case: entry.case.as_deref(),
        variants: &entry.variants,
        fixes: entry.fixes.iter().cloned().map(|(name, what)| JsonFix { name, what }).collect(),
        rows: entry.rows.iter().map(|row| row.label.as_str()).collect(),
    });
    let list = List { schema: "tcpwhy.lab-scenarios/1", scenarios: scenarios.collect() };
    Ok(serde_json::to_string_pretty(&list)? + "\n")
}
