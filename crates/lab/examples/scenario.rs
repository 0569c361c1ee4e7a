//! Records scenarios and prints what the applications measured next to what was expected:
//!
//! `scenario NAME... [--fix NAME] [--set rtt=40ms,n=3] [--keep DIR]`, `scenario --list`, `scenario all`
//!
//! With `--every`, a name also stands for its variants and fixes.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use tcpwhy_lab::scenario::{self, Override, Recorded, Scenario, Span};
use tcpwhy_lab::truth::Kind;
use tcpwhy_wire::Duration;

#[derive(Parser)]
struct Options {
    /// Scenarios: NAME, NAME@VARIANT, or all.
    names: Vec<String>,
    /// Apply this fix.
    #[arg(long)]
    fix: Option<String>,
    /// Every variant and every fix as well.
    #[arg(long)]
    every: bool,
    /// Overrides.
    #[arg(long, value_delimiter = ',')]
    set: Vec<Override>,
    /// Keep captures and truth below this directory.
    #[arg(long)]
    keep: Option<PathBuf>,
    /// List the scenarios.
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("scenario: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<ExitCode, Box<dyn std::error::Error>> {
    tcpwhy_lab::enter_user_namespace()?;
    let catalogue = scenario::catalogue()?;
    if options.list {
        for entry in &catalogue {
            println!("{:24} {}", entry.name, entry.shows);
            let fixes = entry.fixes.iter().map(|(name, _)| format!("+{name}"));
            let forms: Vec<String> = entry.variants.iter().map(|v| format!("@{v}")).chain(fixes).collect();
            if !forms.is_empty() {
                println!("{:24} {}", "", forms.join(" "));
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    let private = tcpwhy_lab::Private::make("tcpwhy-scenario-")?;
    let scratch = private.path().join("recording");
    let mut wrong = 0;
    for entry in &catalogue {
        let asked = |name: &str| {
            name == "all"
                || name == entry.name
                || name.strip_prefix(&entry.name).is_some_and(|rest| rest.starts_with('@'))
        };
        for name in options.names.iter().filter(|name| asked(name)) {
            let mut forms =
                vec![(if name == "all" { &entry.name } else { name }.clone(), options.fix.clone())];
            if options.every {
                forms
                    .extend(entry.variants.iter().map(|variant| (format!("{}@{variant}", entry.name), None)));
                forms.extend(entry.fixes.iter().map(|(fix, _)| (entry.name.clone(), Some(fix.clone()))));
            }
            for (name, fix) in forms {
                let scenario = Scenario::load(&name, fix.as_deref(), &options.set)?;
                let form = fix.map(|fix| format!("{name}+{fix}")).unwrap_or(name);
                let dir = options.keep.as_ref().map_or_else(|| scratch.clone(), |keep| keep.join(&form));
                let recorded = scenario::record(&scenario, &dir)?;
                wrong += u32::from(!print(&form, &scenario, &recorded));
                clean(&scratch)?;
            }
        }
    }
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::from(3) })
}

fn clean(scratch: &Path) -> std::io::Result<()> {
    if scratch.exists() { std::fs::remove_dir_all(scratch) } else { Ok(()) }
}

/// Prints one line; returns whether everything was as expected.
fn print(form: &str, scenario: &Scenario, recorded: &Recorded) -> bool {
    let truth = &recorded.truth;
    let of =
        |kind| truth.exchanges().filter(move |e| e.kind == kind).map(|e| e.elapsed_ns).collect::<Vec<_>>();
    let setups: Vec<i64> = truth.connections.iter().map(|c| c.setup.elapsed_ns).collect();
    let expect = &scenario.expect;
    let mut right = true;
    let mut parts = Vec::new();
    for (what, mut ns, span) in [
        ("setup", setups, expect.setup),
        ("exchange", of(Kind::Exchange), expect.exchange),
        ("one-way", of(Kind::OneWay), expect.one_way),
    ] {
        ns.sort_unstable();
        let Some(median) = ns.get(ns.len() / 2).map(|ns| Duration::from_nanos(*ns)) else {
            if span.is_some() {
                parts.push(format!("NO {what}"));
                right = false;
            }
            continue;
        };
        let ok = span.is_none_or(|span: Span| span.contains(median));
        let longest = Duration::from_nanos(ns[ns.len() - 1]);
        let slow = expect.slowest.filter(|span| what == "exchange" && !span.contains(longest));
        if let Some(slow) = slow {
            parts.push(format!("NOT slowest {slow}"));
            right = false;
        }
        right &= ok;
        let range = format!("{}..{}", Duration::from_nanos(ns[0]), longest);
        let verdict = match (span, ok) {
            (None, _) => String::new(),
            (Some(_), true) => " ok".to_owned(),
            (Some(span), false) => format!(" NOT {span}"),
        };
        parts.push(format!("{}x {what} {median} ({range}){verdict}", ns.len()));
    }
    if let Some(failure) = &truth.failure {
        parts.push(format!("FAILED {failure}"));
        right = false;
    }
    let lost = recorded.stats.iter().map(|stats| stats.dropped + stats.unread).sum::<u64>();
    let overruns = truth.path.as_ref().map_or(0, |path| path.overruns);
    if lost + overruns > 0 {
        parts.push(format!("CAPTURE LOST {lost}, OVERRUNS {overruns}"));
        right = false;
    }
    println!("{form:32} {}", parts.join("; "));
    right
}
