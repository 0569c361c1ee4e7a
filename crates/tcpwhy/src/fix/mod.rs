//! `tcpwhy fix` and `tcpwhy undo`: does a change of the running system help, and how is it
//! reverted?

mod args;
#[cfg(target_os = "linux")]
mod compare;
#[cfg(target_os = "linux")]
mod measure;
#[cfg(target_os = "linux")]
mod persist;
#[cfg(target_os = "linux")]
mod plan;

pub(crate) use args::{FixArgs, UndoArgs};

#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_args: &FixArgs) -> anyhow::Result<u8> {
    anyhow::bail!(
        "running systems are changed on Linux: `tcpwhy explain CAUSE` says what to change elsewhere"
    )
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn undo(_args: &UndoArgs) -> anyhow::Result<u8> {
    anyhow::bail!("running systems are changed on Linux: there is nothing to undo")
}

#[cfg(target_os = "linux")]
pub(crate) use linux::{run, undo};

#[cfg(target_os = "linux")]
mod linux {
    use std::fmt::Write as _;
    use std::io::{BufRead as _, IsTerminal as _};
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use anyhow::Context as _;
    use tcpwhy_fix::{Applied, Entry, Journal};
    use tcpwhy_report::Style;
    use tcpwhy_report::escape::visible;
    use tcpwhy_report::quantity::counted;
    use tcpwhy_report::text::strong;

    use super::args::{FixArgs, UndoArgs};
    use super::compare::{Verdict, compare};
    use super::measure::{Measured, measure, nanos};
    use super::persist;
    use super::plan::Plan;
    use crate::output::{complain, print};
    use crate::{ANALYSED, NOT_ANALYSED, WRONG_USAGE};

    /// Plan, before, change, after, verdict.
    pub(crate) fn run(args: &FixArgs) -> anyhow::Result<u8> {
        let style = Style { color: args.color.is_on(), ..Style::default() };
        if args.persist {
            let lasting = persist::of(args)?;
            print(&lasting.told)?;
            if args.write {
                print(&lasting.write(args.root.as_deref().unwrap_or(Path::new("/")))?)?;
            }
            return Ok(ANALYSED);
        }
        let plan = Plan::of(args)?;
        print(&told(&plan))?;
        if plan.changes.is_empty() {
            print("Nothing to change.\n")?;
            return Ok(ANALYSED);
        }
        if !(args.yes || agreed()?) {
            print("Nothing was changed; use --yes to apply it.\n")?;
            return Ok(ANALYSED);
        }
        let journal = journal(args.journal.as_deref())?;
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))?;
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
        }
        let before =
            if args.no_measure { None } else { Some(measured(args, &plan, &stop, "before", style)?) };
        if before.as_ref().is_some_and(Option::is_none) {
            print("Stopped: nothing was changed.\n")?;
            return Ok(ANALYSED);
        }
        let made = apply(&journal, &plan)?;
        let Some(before) = before.flatten() else {
            print(&stays(&made))?;
            return Ok(ANALYSED);
        };
        let after = match measured(args, &plan, &stop, "after", style) {
            Ok(Some(after)) => after,
            Ok(None) => {
                print("Stopped while measuring: reverted.\n")?;
                return take_back(&journal, &made);
            }
            Err(error) => {
                take_back(&journal, &made)?;
                return Err(error.context("reverted: its effect could not be measured"));
            }
        };
        let verdict = compare(&before, &after);
        print(&(strong(&verdict_told(verdict, &before, &after), style) + "\n"))?;
        if verdict == Verdict::Better || args.keep {
            print(&stays(&made))?;
            return Ok(ANALYSED);
        }
        take_back(&journal, &made)
    }

    /// The user's own journal, unless another place is given.
    fn journal(place: Option<&Path>) -> Result<Journal, tcpwhy_fix::Error> {
        place.map_or_else(Journal::open, Journal::open_in)
    }

    fn told(plan: &Plan) -> String {
        let mut out = String::new();
        for change in &plan.changes {
            let _ = writeln!(out, "  {}: {} -> {}", visible(&change.target.shown()), change.from, change.to);
        }
        if plan.already > 0 {
            let _ = writeln!(
                out,
                "  {} already set",
                if plan.already == 1 { "one is".to_owned() } else { format!("{} are", plan.already) }
            );
        }
        for note in &plan.notes {
            let _ = writeln!(out, "  note: {note}");
        }
        out
    }

    /// Asks the user if there is a terminal.
    fn agreed() -> anyhow::Result<bool> {
        if !std::io::stdin().is_terminal() {
            return Ok(false);
        }
        print("Change this? [y/N] ")?;
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer)?;
        Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
    }

    fn measured(
        args: &FixArgs,
        plan: &Plan,
        stop: &AtomicBool,
        when: &str,
        style: Style,
    ) -> anyhow::Result<Option<Measured>> {
        let measured = measure(args, plan, stop)?;
        if let Some(measured) = &measured {
            print(&format!(
                "{}  {}\n",
                strong(&format!("{when:<6}"), style),
                measured.words(args.fix.addresses())
            ))?;
        }
        Ok(measured)
    }

    /// Makes all changes; if one fails, those before it are reverted.
    fn apply(journal: &Journal, plan: &Plan) -> anyhow::Result<Vec<Entry>> {
        let mut made = Vec::new();
        for change in &plan.changes {
            match journal.apply(change) {
                Ok(Applied::Made(entry)) => made.push(entry),
                Ok(Applied::AlreadySo) => {}
                // Closed since the plan was made.
                Err(tcpwhy_fix::Error::Gone(_)) if plan.changes.len() > 1 => {}
                Err(error) => {
                    take_back(journal, &made)?;
                    return Err(error).context("nothing stays changed");
                }
            }
        }
        Ok(made)
    }

    fn verdict_told(verdict: Verdict, before: &Measured, after: &Measured) -> String {
        let (old, new) = (before.quantile_ns(500), after.quantile_ns(500));
        match verdict {
            Verdict::Better => format!(
                "Better: {} less an exchange, {} instead of {}.",
                nanos(old - new),
                nanos(new),
                nanos(old)
            ),
            Verdict::Worse => format!(
                "Worse: {} more an exchange, {} instead of {}.",
                nanos(new - old),
                nanos(new),
                nanos(old)
            ),
            Verdict::NoDifference => "No difference: within the spread of the measurements.".to_owned(),
            Verdict::TooFew => {
                format!(
                    "Too few to tell: {} before, {} after; measure longer (--measure).",
                    counted(before.exchanges_ns.len() as u64, "exchange"),
                    counted(after.exchanges_ns.len() as u64, "exchange")
                )
            }
        }
    }

    fn stays(made: &[Entry]) -> String {
        if made.is_empty() {
            return "Already set; nothing to change.\n".to_owned();
        }
        let numbers: Vec<String> = made.iter().map(|entry| entry.id.to_string()).collect();
        format!(
            "The change lasts until it is reverted (tcpwhy undo {}), its process ends or the machine restarts; --persist shows how to make it permanent.\n",
            numbers.join(" ")
        )
    }

    /// Reverts the last one first.
    fn take_back(journal: &Journal, made: &[Entry]) -> anyhow::Result<u8> {
        let mut code = ANALYSED;
        for entry in made.iter().rev() {
            code = code.max(undo_one(journal, entry)?);
        }
        Ok(code)
    }

    fn undo_one(journal: &Journal, entry: &Entry) -> anyhow::Result<u8> {
        let what = visible(&entry.change.target.shown()).into_owned();
        match journal.undo(entry) {
            Ok(undone) => {
                print(&format!("  {}  {what}: {undone}\n", entry.id))?;
                Ok(ANALYSED)
            }
            Err(error) => {
                complain(&format!("{} {what}: {error}", entry.id));
                Ok(NOT_ANALYSED)
            }
        }
    }

    /// Lists the changes, or reverts them.
    pub(crate) fn undo(args: &UndoArgs) -> anyhow::Result<u8> {
        let journal = journal(args.journal.as_deref())?;
        let entries = journal.entries()?;
        let numbered = |number: u64| entries.iter().find(|entry| entry.id == number);
        if let Some(number) =
            args.numbers.iter().chain(&args.forget).find(|number| numbered(**number).is_none())
        {
            complain(&format!("there is no change {number} to take back: `tcpwhy undo` lists them"));
            return Ok(WRONG_USAGE);
        }
        if let Some(entry) = args.forget.and_then(numbered) {
            journal.forget(entry)?;
            return Ok(ANALYSED);
        }
        if entries.is_empty() {
            print("Nothing is changed.\n")?;
            return Ok(ANALYSED);
        }
        if args.all || !args.numbers.is_empty() {
            let mut code = ANALYSED;
            for entry in entries.iter().filter(|entry| args.all || args.numbers.contains(&entry.id)) {
                code = code.max(undo_one(&journal, entry)?);
            }
            return Ok(code);
        }
        for entry in &entries {
            let change = &entry.change;
            let now = match change.target.read() {
                Ok(now) if now == change.to => String::new(),
                Ok(now) => format!("; it is {now} now"),
                Err(error) => format!("; {error}"),
            };
            let what = format!("{}: {} -> {}{now}", change.target.shown(), change.from, change.to);
            print(&format!("  {}  {} ({})\n", entry.id, visible(&what), change.fix))?;
        }
        print("Listed only: `tcpwhy undo N` takes one back, `tcpwhy undo --all` all of them.\n")?;
        Ok(ANALYSED)
    }
}
