//! What got slower, what faster, and what is chance? One paragraph per service, then its causes.

use tcpwhy_core::report::Kind;
use tcpwhy_wire::Duration;

use super::Style;
use super::layout::{columns, left, right, wrap};
use crate::answer::noun;
use crate::compare::{Change, Comparison, Row, Verdict};
use crate::quantity::{count, counted, per_mille, percent, time};

/// Causes that change less than this share of the whole are left out of the text.
const TOLD_PER_MILLE: i64 = 10;

/// The whole comparison.
pub fn comparison(comparison: &Comparison, style: Style) -> String {
    let mut out = wrap(&answer(comparison), style.width, "", "");
    for row in &comparison.rows {
        out.push(String::new());
        out.extend(service(row, style));
    }
    if !comparison.unmatched.is_empty() {
        out.push(String::new());
    }
    for (service, before, after) in &comparison.unmatched {
        let when = if *before > 0 { "before" } else { "after" };
        let text = format!(
            "{service}: {} only {when}; nothing to compare with",
            counted(before + after, "exchange")
        );
        out.extend(wrap(&text, style.width, "", "  "));
    }
    if comparison.omitted > 0 {
        let text =
            format!("{} billed but not compared, beyond the limit", counted(comparison.omitted, "exchange"));
        out.extend(wrap(&text, style.width, "", "  "));
    }
    out.push(String::new());
    style.finish(out).join("\n")
}

/// The answer: what matters most.
pub(crate) fn answer(comparison: &Comparison) -> String {
    let Some(first) =
        comparison.rows.iter().find(|row| changed(row.elapsed.verdict)).or(comparison.rows.first())
    else {
        return "Nothing to compare: no service is in both captures.".to_owned();
    };
    let what = format!("{} of {}", plural(first), first.service);
    let [before, after] = first.elapsed.means.map(time);
    let mean = |word: &str| format!("The {what} {word}: {before} before, {after} after, on average.");
    match first.elapsed.verdict {
        Verdict::Slower => mean("got slower"),
        Verdict::Faster => mean("got faster"),
        Verdict::Same => format!(
            "No significant difference: the {what} took {before} before and {after} after, on average."
        ),
        Verdict::TooFew => format!(
            "Too few samples: {} of {} before and {} after.",
            counted(first.elapsed.counts[0], name(first.kind)),
            first.service,
            count(first.elapsed.counts[1])
        ),
    }
}

fn plural(row: &Row) -> String {
    format!("{}s", name(row.kind))
}

fn name(kind: Kind) -> &'static str {
    if kind == Kind::Setup { "setup" } else { noun(kind) }
}

fn changed(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Slower | Verdict::Faster)
}

fn service(row: &Row, style: Style) -> Vec<String> {
    let [before, after] = row.elapsed.counts;
    let title =
        format!("{}: {} before, {} after", row.service, counted(before, name(row.kind)), count(after));
    let mut out = vec![style.strong(&title)];
    out.extend(wrap(&sentence(&row.elapsed), style.width, "  ", "  "));
    let whole = row.elapsed.means[0].max(row.elapsed.means[1]);
    let told: Vec<_> = row
        .causes
        .iter()
        .filter(|(_, change)| {
            (change.means[1] - change.means[0]).as_nanos().abs() * 1_000 >= whole.as_nanos() * TOLD_PER_MILLE
        })
        .collect();
    let head = ["", "before", "after", "change", ""].map(str::to_owned);
    let line = |name: &str, change: &Change| {
        [name.to_owned(), time(change.means[0]), time(change.means[1]), difference(change), words(change)]
    };
    let mut rows = vec![
        head,
        line("mean", &row.elapsed),
        spread("median", row.elapsed.p50),
        spread("p99", row.elapsed.p99),
    ];
    rows.extend(told.iter().map(|(cause, change)| line(cause.name(), change)));
    let widths: Vec<usize> =
        (0..5).map(|at| rows.iter().map(|row| columns(&row[at])).max().unwrap_or(0)).collect();
    out.push(String::new());
    for row in rows {
        let cells: Vec<String> =
            (0..5)
                .map(|at| {
                    if at == 0 || at == 4 { left(&row[at], widths[at]) } else { right(&row[at], widths[at]) }
                })
                .collect();
        out.push(format!("  {}", cells.join("  ").trim_end()));
    }
    out
}

fn spread(name: &str, [before, after]: [Duration; 2]) -> [String; 5] {
    [name.to_owned(), time(before), time(after), signed(after - before), String::new()]
}

/// The conclusion about the whole, with the range.
fn sentence(change: &Change) -> String {
    let difference = change.means[1] - change.means[0];
    let size = Duration::from_nanos(difference.as_nanos().abs());
    let Some(chance) = change.chance else {
        return "Fewer than five on one side; significance cannot be tested.".to_owned();
    };
    let range = format!(
        "95 % interval from {} to {}, p {:.4}",
        signed(Duration::from_nanos(chance.low as i64)),
        signed(Duration::from_nanos(chance.high as i64)),
        chance.p
    );
    match change.verdict {
        Verdict::Slower | Verdict::Faster => {
            let word = if change.verdict == Verdict::Slower { "slower" } else { "faster" };
            let share = match per_mille(size, change.means[0]) / 1_000 {
                times @ 10.. => format!("{} times the original time", count(times)),
                _ => format!("{} of the original time", percent(size, change.means[0])),
            };
            format!("{word} by {}, {share} ({range})", time(size))
        }
        Verdict::Same | Verdict::TooFew => {
            format!("no significant difference ({range})")
        }
    }
}

fn words(change: &Change) -> String {
    match change.verdict {
        Verdict::Slower => "more".to_owned(),
        Verdict::Faster if change.means[1] == Duration::ZERO => "gone".to_owned(),
        Verdict::Faster => "less".to_owned(),
        Verdict::Same => "no difference".to_owned(),
        Verdict::TooFew => "too few samples".to_owned(),
    }
}

fn difference(change: &Change) -> String {
    signed(change.means[1] - change.means[0])
}

fn signed(span: Duration) -> String {
    if span.is_positive() { format!("+{}", time(span)) } else { time(span) }
}
