//! `tcpwhy lab accuracy`: are the bills right? Every scenario is recorded anew, billed from both
//! ends, and compared with the applications' own clocks and the scenario's expectations. Errors are
//! listed, not hidden.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use tcpwhy::judge::{Agreement, Confusion, Criteria, End, Verdict, agreement, judge, late_exchanges};
use tcpwhy_core::report::Kind;
use tcpwhy_core::{Cause, Report};
use tcpwhy_lab::scenario::{self, Scenario};
use tcpwhy_report::quantity::{millis, percent};
use tcpwhy_wire::Duration;

use super::args::AccuracyArgs;
use super::form::{Flaws, Place, Run, WATCH_EVERY};
use super::outside::{self, Score};
use crate::confine::confine_to;
use crate::output::print;
use crate::{ANALYSED, GATE_CLOSED};

/// Ends of one run that differ by more than this share of the time get a line ...
const DISAGREEMENT: f64 = 0.05;
/// ... unless it is less than this per exchange: shares of microseconds are noise.
const DISAGREEMENT_EACH: Duration = Duration::from_millis(1);
/// A path may be late by this, or by this part of the median exchange, whichever is more. The
/// lateness is measured, and the end that cannot see it is excused for it.
const LATE: Duration = Duration::from_millis(3);
const LATE_PER_CENT: i64 = 15;
/// A recording that other programs or the machine's host disturbed, or that is outside its
/// scenario's range, is made again.
const TRIES: u32 = 12;

/// The verdict on one recording.
pub(super) struct Judged {
    name: String,
    verdicts: [Verdict; 2],
    bills: [String; 2],
    agreement: Option<Agreement>,
    /// Problems of the recording itself.
    warnings: Vec<String>,
}

pub(super) fn run(args: &AccuracyArgs) -> anyhow::Result<u8> {
    let recordings = recordings(&args.names)?;
    let out = args.write.as_ref().map(|file| Written::open(file)).transpose()?;
    let place = if let Some(from) = &args.from {
        confine_to(from, out.as_ref().map(|out| &out.to))?;
        None
    } else {
        tcpwhy_lab::enter_user_namespace()?;
        Some(Place::new(args.keep.as_ref())?)
    };
    let mut judged = Vec::new();
    let mut criteria = Criteria::default();
    let mut scores = [Score::default(), Score::default()];
    let mut off = String::new();
    print(&format!("{}\n", row_heading()))?;
    let part = |place: &usize| args.part.is_none_or(|part| part.has(*place));
    for (name, mut scenario) in
        recordings.into_iter().enumerate().filter(|(place, _)| part(place)).map(|(_, form)| form)
    {
        // A directory of recordings may be incomplete.
        if args.from.as_ref().is_some_and(|dir| !dir.join(&name).join("truth.json").exists()) {
            continue;
        }
        scenario.workload.watch_every = Some(WATCH_EVERY);
        let run = match (&args.from, &place) {
            (Some(dir), _) => Run::read_back(scenario, &dir.join(&name)).map(|run| (run, 1)),
            (None, Some(place)) if args.resume && place.has(&name) => {
                Run::read_back(scenario, &place.dir(&name, None)).map(|run| (run, 1))
            }
            (None, Some(place)) => place.record(&scenario, &name, TRIES, flaws),
            (None, None) => unreachable!("there is a place unless recordings are read back"),
        };
        let (run, tries) = run.with_context(|| name.clone())?;
        let one = Judged::of(name, &run, tries);
        one.count(&run, &mut criteria);
        let lines = outside::judge(&one.name, &run, &mut scores, args.bills);
        if let Some(place) = &place {
            place.forget(&run);
        }
        print(&one.rows())?;
        print(&lines)?;
        off.push_str(&lines);
        judged.push(one);
    }
    let mut confusion = Confusion::default();
    judged.iter().flat_map(|one| &one.verdicts).for_each(|verdict| confusion.add(verdict));
    let wrong: Vec<&Judged> = judged.iter().filter(|one| !one.is_right()).collect();
    print(&format!("\n{confusion}\n\n{}{criteria}{}", summary(&judged), not_judged()?))?;
    for apart in criteria.apart() {
        print(&format!("the ends differ: {apart}\n"))?;
    }
    for (end, score) in End::BOTH.into_iter().zip(&scores) {
        print(&format!("\nat the {end}\n{score}\n"))?;
    }
    if let Some(out) = out {
        out.write(&markdown(&judged, &confusion, &criteria, &scores, &off, &not_judged()?))?;
    }
    Ok(if wrong.is_empty() { ANALYSED } else { GATE_CLOSED })
}

/// A file that is opened while files can be, and keeps its content until all results are known.
struct Written<'a> {
    path: &'a Path,
    to: File,
}

impl<'a> Written<'a> {
    fn open(path: &'a Path) -> anyhow::Result<Self> {
        let to = File::options().write(true).create(true).truncate(false).open(path);
        Ok(Self { path, to: to.with_context(|| format!("cannot write {}", path.display()))? })
    }

    fn write(mut self, text: &str) -> anyhow::Result<()> {
        self.to
            .set_len(0)
            .and_then(|()| self.to.write_all(text.as_bytes()))
            .with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// Every form with expectations: the scenario and its variants with their causes, its fixes with
/// what they save.
pub(super) fn recordings(only: &[String]) -> anyhow::Result<Vec<(String, Scenario)>> {
    let mut forms = Vec::new();
    for entry in scenario::catalogue()? {
        let asked =
            |form: &str| only.is_empty() || only.iter().any(|name| *name == entry.name || name == form);
        let variants = entry.variants.iter().map(|variant| (format!("{}@{variant}", entry.name), None));
        let fixes = entry.fixes.iter().map(|(fix, _)| (entry.name.clone(), Some(fix.as_str())));
        for (name, fix) in std::iter::once((entry.name.clone(), None)).chain(variants).chain(fixes) {
            let form = fix.map_or_else(|| name.clone(), |fix| format!("{name}+{fix}"));
            if asked(&form) {
                forms.push((form, Scenario::load(&name, fix, &[])?));
            }
        }
    }
    anyhow::ensure!(!forms.is_empty(), "there is no such scenario; `tcpwhy lab` lists them");
    Ok(forms)
}

impl Judged {
    pub(super) fn of(name: String, run: &Run, tries: u32) -> Self {
        let [client, server] = &run.bills;
        let verdict = |end, report| judge(end, &run.truth, report, &run.scenario.expect);
        let mut warnings = run.warnings.clone();
        warnings.extend(out_of_range(run));
        if is_late(run) {
            warnings.push(format!("other programs made the path late, by up to {}", run.late));
        }
        if tries > 1 {
            warnings.push(format!("try {tries} of at most {TRIES}"));
        }
        Self {
            name,
            verdicts: [verdict(End::Client, client), verdict(End::Server, server)],
            bills: [largest(client), largest(server)],
            agreement: agreement(client, server).filter(|agreement| matters(agreement, run)),
            warnings,
        }
    }

    fn count(&self, run: &Run, criteria: &mut Criteria) {
        let [client, server] = &run.bills;
        for (verdict, report) in self.verdicts.iter().zip([client, server]) {
            criteria.add(&self.name, &run.truth, verdict, report, &run.scenario.expect);
            criteria.add_kernel(&self.name, verdict.end, &run.truth, report);
        }
        if run.scenario.expect.visible.is_none() {
            criteria.add_ends(&self.name, &run.truth, client, server);
        }
    }

    pub(super) fn is_right(&self) -> bool {
        self.verdicts.iter().all(|verdict| verdict.faults().is_empty())
    }

    /// Two lines, one for each end, followed by the faults.
    pub(super) fn rows(&self) -> String {
        let mut out = String::new();
        for (verdict, bill) in self.verdicts.iter().zip(&self.bills) {
            let faults = verdict.faults();
            let error = verdict.worst_error().map_or_else(|| "-".to_owned(), millis);
            let is = if faults.is_empty() { "right" } else { "WRONG" };
            // Writing to a String never fails.
            let _ = writeln!(out, "{:36} {:6} {is}  {error:>10}  {bill}", self.name, verdict.end);
            for fault in faults {
                let _ = writeln!(out, "{:38}{fault}", "");
            }
        }
        if let Some(agreement) = self.agreement {
            let _ = writeln!(out, "{:38}the ends differ: {agreement}", "");
        }
        for warning in &self.warnings {
            let _ = writeln!(out, "{:38}recording: {warning}", "");
        }
        out
    }
}

pub(super) fn row_heading() -> String {
    format!("{:36} {:6} {:5}  {:>10}  {}", "scenario", "end", "", "error [ms]", "billed")
}

/// The path was too late to be excused: this is not the path of the scenario.
pub(super) fn is_late(run: &Run) -> bool {
    let kinds = [Kind::Exchange, Kind::OneWay, Kind::Setup];
    let clocked =
        kinds.into_iter().find_map(|kind| super::clocked::Spread::of(run.clocked.kind(kind).iter().copied()));
    let part = clocked.map_or(Duration::ZERO, |clocked| clocked.median).times(LATE_PER_CENT).divided_by(100);
    run.late > part.max(LATE)
}

/// Whether the recording was undisturbed and is within its scenario's range.
pub(super) fn held_still(run: &Run) -> bool {
    !is_late(run) && run.warnings.is_empty() && out_of_range(run).is_empty()
}

/// The ends can be compared only if the path was the same for both.
fn flaws(run: &Run) -> Flaws {
    Flaws { is_off: !held_still(run), late: late_exchanges(&run.truth) }
}

/// Whether a disagreement of the ends is more than noise, and not due to the recording.
fn matters(agreement: &Agreement, run: &Run) -> bool {
    let report = &run.bills[0];
    let bills = (report.setups + report.exchanges + report.one_way).max(1);
    let each = report.elapsed.as_nanos() as f64 / bills as f64 * agreement.difference();
    agreement.difference() > DISAGREEMENT
        && each > DISAGREEMENT_EACH.as_nanos() as f64
        && run.scenario.expect.visible.is_none()
}

/// Measurements of the application outside the scenario's range: then the recording does not show
/// what it is for.
pub(super) fn out_of_range(run: &Run) -> Vec<String> {
    let expect = &run.scenario.expect;
    let median = |kind| super::clocked::Spread::of(run.clocked.kind(kind).iter().copied());
    let slowest = median(Kind::Exchange).map(|spread| spread.max);
    let checks = [
        ("exchange", expect.exchange, median(Kind::Exchange).map(|spread| spread.median)),
        ("slowest exchange", expect.slowest, slowest),
        ("one-way message", expect.one_way, median(Kind::OneWay).map(|spread| spread.median)),
        ("connect", expect.setup, median(Kind::Setup).map(|spread| spread.median)),
    ];
    checks
        .into_iter()
        .filter_map(|(what, expected, clocked)| match (expected?, clocked) {
            (expected, None) => Some(format!("no {what}, expected {expected}")),
            (expected, Some(clocked)) if !expected.contains(clocked) => {
                Some(format!("{what} took {clocked}, expected {expected}"))
            }
            _ => None,
        })
        .collect()
}

/// The lines that make up most of a bill.
pub(super) fn largest(report: &Report) -> String {
    let lines = report.bill.iter().take(3);
    let lines: Vec<String> = lines
        .map(|line| format!("{} ({}) {}", line.cause, line.side, percent(line.ns, report.elapsed)))
        .collect();
    lines.join(", ")
}

fn summary(judged: &[Judged]) -> String {
    let verdicts: Vec<&Verdict> = judged.iter().flat_map(|one| &one.verdicts).collect();
    let wrong = verdicts.iter().filter(|verdict| !verdict.faults().is_empty()).count();
    let mut errors: Vec<Duration> = verdicts
        .iter()
        .flat_map(|verdict| &verdict.compared)
        .filter(|pair| pair.kind != Kind::OneWay)
        .map(|pair| Duration::from_nanos(pair.error().as_nanos().abs()))
        .collect();
    errors.sort_unstable();
    let at = |per_mille: usize| errors.get(errors.len() * per_mille / 1000).copied().unwrap_or_default();
    let disagree = judged.iter().filter(|one| one.agreement.is_some()).count();
    format!(
        "{} bills of {} recordings: {wrong} wrong; {disagree} recordings whose ends differ by more than {:.0} %\n\
         elapsed against the application's clock, {} setups and exchanges: median {} off, p99 {}\n",
        verdicts.len(),
        judged.len(),
        100.0 * DISAGREEMENT,
        errors.len(),
        at(500),
        at(990)
    )
}

/// Causes that no scenario covers. They may be in a bill, and nothing here says whether that is
/// right.
fn not_judged() -> anyhow::Result<String> {
    let expected: BTreeSet<String> = recordings(&[])?
        .into_iter()
        .flat_map(|(_, scenario)| scenario.expect.causes)
        .filter(|expected| expected.share.min > 0.0)
        .map(|expected| expected.cause)
        .collect();
    let without: Vec<&str> = Cause::ALL
        .into_iter()
        .filter(|cause| *cause != Cause::Unexplained)
        .map(Cause::name)
        .filter(|cause| !expected.contains(*cause))
        .collect();
    Ok(match without.as_slice() {
        [] => "Every cause has a scenario that expects it.\n".to_owned(),
        some => format!("Not judged here, no scenario expects them yet: {}.\n", some.join(", ")),
    })
}

/// The same as a page of the documentation.
fn markdown(
    judged: &[Judged],
    confusion: &Confusion,
    criteria: &Criteria,
    scores: &[Score; 2],
    exchanges_off: &str,
    not_judged: &str,
) -> String {
    let mut out = String::from(ABOUT);
    out.push_str(
        "\n## Each scenario, each end\n\n| scenario | end | | error, ms | billed |\n|---|---|---|---:|---|\n",
    );
    for one in judged {
        for (verdict, bill) in one.verdicts.iter().zip(&one.bills) {
            let is = if verdict.faults().is_empty() { "right" } else { "**wrong**" };
            let error = verdict.worst_error().map_or_else(|| "-".to_owned(), millis);
            let _ = writeln!(out, "| {} | {} | {is} | {error} | {bill} |", one.name, verdict.end);
        }
    }
    out.push_str("\n## What is wrong\n\n");
    let before = out.len();
    for one in judged {
        for verdict in &one.verdicts {
            for fault in verdict.faults() {
                let _ = writeln!(out, "- {} at the {}: {fault}", one.name, verdict.end);
            }
        }
        if let Some(agreement) = one.agreement {
            let _ = writeln!(out, "- {}: the ends differ: {agreement}", one.name);
        }
        for warning in &one.warnings {
            let _ = writeln!(out, "- {}, the recording itself: {warning}", one.name);
        }
    }
    if out.len() == before {
        out.push_str("Nothing.\n");
    }
    out.push_str("\n## Confused causes\n\n| expected | billed as | times |\n|---|---|---:|\n");
    for (expected, billed, n) in confusion.rows() {
        let _ = writeln!(out, "| {expected} | {billed} | {n} |");
    }
    let (right, all) = confusion.right();
    let _ = write!(out, "\n{right} of {all} expectations met.\n");
    out.push_str(HOW_MUCH);
    for (end, score) in End::BOTH.into_iter().zip(scores) {
        let _ = write!(out, "\nAt the {end}:\n\n```\n{score}\n```\n");
    }
    if !exchanges_off.is_empty() {
        let _ = write!(out, "\nMore than 2 % of these are wrong:\n\n```\n{exchanges_off}```\n");
    }
    out.push_str("\n## Totals against the targets\n\n");
    let _ = writeln!(out, "{}\n{criteria}\n{not_judged}", summary(judged));
    let confused = criteria.confused();
    if !confused.is_empty() {
        out.push_str("| was | billed instead | time |\n|---|---|---:|\n");
        for (was, instead, ns) in confused {
            let _ = writeln!(out, "| {was} | {instead} | {ns} |");
        }
    }
    for off in criteria.off() {
        let _ = writeln!(out, "- {off}");
    }
    let apart = criteria.apart();
    if !apart.is_empty() {
        out.push_str("\nWhere the ends differ, and by how much in all:\n\n");
    }
    for apart in apart {
        let _ = writeln!(out, "- {apart}");
    }
    out
}

const HOW_MUCH: &str = "
## How much of the time is attributed correctly

Each setup, exchange and one-way message is compared with what it was really spent on, according to the path's log of each packet, TCP_INFO
sampled every 2 ms and the applications' clocks; docs/draws.md has the definitions. In addition, a segment smaller than the MSS that waits in an
open window is `held` (Nagle, a cork). Time in which the application had not written yet is the application's; if the hold began before, it may be
billed to either, as may time in which the application was outside any call, had not written the last byte, and something else held what it had
written. The tolerance is 2 ms or 5 % of each exchange, whichever is larger, plus delays by other programs. Not evaluated are ends that cannot see
the scenario's problem, and exchanges that only one of the two accounts contains.
";

const ABOUT: &str = "\
# Accuracy

Written by `make accuracy`, or in parts by `tcpwhy lab accuracy --keep DIR --part 1/5` and so on, then
`tcpwhy lab accuracy --from DIR --write docs/accuracy.md`. Every scenario of the laboratory is recorded in every form on the real kernel, with
captures and the applications' own clocks at both ends, and each capture is analysed. A bill is right if

- its lines add up to its elapsed time, exactly;
- every setup and exchange is as long as the client's own clock says, within 1 ms or 2 %, also from the server's capture
  (a one-way message is billed until its acknowledgement is back, so it may be longer by that);
- the causes that the scenario was built for are there, on the right side, with a share in the range stated in its file;
- at most 2 % of the time is unexplained.

The error is the largest difference of a setup or exchange from the application's clock.

A path counts as late according to its packets' times: from the capture at the sender until the link had it, and from when it was due until the
other host had it. When the machine stalls for some milliseconds, the two ends see different things. Such a recording is repeated, up to eleven
times, and the one with the fewest late exchanges is evaluated, whatever its bills say. The agreement of the ends and with the kernel's counters
is also given without late paths.
";
