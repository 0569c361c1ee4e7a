//! How is the report written for an issue, a merge request or a page?

use std::fmt::Write as _;

use tcpwhy_core::report::Report;

use super::bill::possible;
use super::findings::{All, Told, all};
use super::overview::{answer_of, limits, what_was_read};
use super::{Style, requests};
use crate::capture::CaptureInfo;
use crate::quantity::{count, percent, time};

/// The overview in GitHub's Markdown: the answer, the bill as a table, the findings as sections.
pub fn markdown(report: &Report, files: &[CaptureInfo], again: &str, style: Style) -> String {
    let mut out = format!("**{}**\n\n", plain(&answer_of(report, files)));
    let _ = writeln!(out, "{}", plain(&what_was_read(report, files, style)));
    if !report.bill.is_empty() {
        out.push_str(&table(report));
    }
    out.push_str(&requests::markdown(report));
    if !style.brief {
        let All { told, rest } = all(report, files, again, style);
        for told in &told {
            section(&mut out, told);
        }
        if let Some(rest) = rest {
            let _ = writeln!(out, "\n{}", plain(&rest));
        }
    }
    for limit in limits(report, files) {
        let _ = write!(out, "\n> {}\n", plain(&limit));
    }
    out
}

/// The bill, with a column for what is only possible if something is.
fn table(report: &Report) -> String {
    let is_shown = report.bill.iter().any(|line| line.possible.is_positive());
    let mut out = if is_shown {
        "\n| cause | side | time | share | possible | times |\n|---|---|--:|--:|--:|--:|\n".to_owned()
    } else {
        "\n| cause | side | time | share | times |\n|---|---|--:|--:|--:|\n".to_owned()
    };
    for line in &report.bill {
        let (cause, side) = (line.cause, line.side);
        let _ =
            write!(out, "| {cause} | {side} | {} | {} |", time(line.ns), percent(line.ns, report.elapsed));
        if is_shown {
            let _ = write!(out, " {} |", possible(line.possible));
        }
        let _ = writeln!(out, " {} |", count(line.hits));
    }
    out
}

fn section(out: &mut String, told: &Told) {
    let _ = writeln!(out, "\n### {}\n", plain(&told.head));
    for (name, text) in &told.fields {
        let text = if matches!(*name, "packets" | "details") { code(text) } else { plain(text) };
        let _ = writeln!(out, "- **{name}**: {text}");
    }
    for fix in &told.fixes {
        let _ = writeln!(out, "- **{}**: {}", fix.name, plain(&fix.text));
        for how in &fix.how {
            let _ = writeln!(out, "  - {}: {}", how.stack, plain(how.text));
        }
    }
    if !told.fixes.is_empty() {
        let _ = writeln!(out, "- more: `tcpwhy explain {}`", told.cause);
    }
}

/// Code between more back quotes than any run inside it.
fn code(text: &str) -> String {
    let mut runs = text.split(|c| c != '`').map(str::len);
    let longest = runs.by_ref().max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

/// Text that is not taken for markup. A file's name may contain anything.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(
            c,
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' | '$' | '&' | '@' | '!'
        ) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
