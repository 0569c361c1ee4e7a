//! Who waits for whom in conversations that are more than one question and then its answer? Each
//! recording of `corpus/talks` has, besides the captures of both ends, the log of the asking
//! program: a line for each wait. Each wait must be an exchange of the bill, of the length the
//! program logged, at either end; and anything else billed must take no longer than its own path.
#![cfg(target_os = "linux")]

mod bills;

use std::path::{Path, PathBuf};

use tcpwhy_core::report::{Confidence, Exchange, Kind};
use tcpwhy_core::{Cause, Report};
use tcpwhy_wire::{Duration, Instant};

use bills::bill;

/// A bill may differ from the asker's clock by this, or by a fiftieth.
const TOLERANCE: Duration = Duration::from_millis(1);

/// A wait of the asker.
#[derive(Clone, Copy, Debug)]
struct Wait {
    start: Instant,
    end: Instant,
}

impl Wait {
    fn took(self) -> Duration {
        self.end - self.start
    }

    /// How far an exchange is from being this wait.
    fn distance(self, exchange: &Exchange) -> i64 {
        let ends = exchange.start + exchange.elapsed;
        (exchange.start - self.start).as_nanos().abs() + (ends - self.end).as_nanos().abs()
    }

    fn is(self, exchange: &Exchange) -> bool {
        let tolerance = TOLERANCE.max(self.took().divided_by(50));
        (exchange.elapsed - self.took()).as_nanos().abs() <= tolerance.as_nanos()
    }
}

#[test]
fn every_wait_is_billed_and_nothing_else() {
    let mut wrong = Vec::new();
    let talks = talks();
    for talk in &talks {
        let waits = waits(&talk.join("clock.txt"));
        for end in ["client", "server"] {
            let name = format!("{} at the {end}", talk.file_name().unwrap().display());
            let report = bill(&talk.join(format!("{end}.pcapng.zst")));
            let faults = waits.as_ref().map_or_else(|| too_sure(&report), |waits| faults(waits, &report));
            wrong.extend(faults.into_iter().map(|fault| format!("{name}: {fault}")));
        }
    }
    assert!(talks.len() >= 12, "{} talks", talks.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn faults(waits: &[Wait], report: &Report) -> Vec<String> {
    let mut faults = Vec::new();
    let round =
        report.connections.iter().filter_map(|connection| connection.rtt_min).max().unwrap_or_default();
    let exchanges = report.connections.iter().flat_map(|connection| &connection.exchanges);
    // Before and after these are the program's own start and end: the setup of a session.
    let first = waits.iter().map(|wait| wait.start).min().unwrap_or(Instant::MIN);
    let last = waits.iter().map(|wait| wait.end).max().unwrap_or(Instant::MIN);
    let is_judged = |exchange: &&Exchange| {
        exchange.kind != Kind::Setup && exchange.start >= first - TOLERANCE.times(5) && exchange.start <= last
    };
    let mut billed: Vec<&Exchange> = exchanges.filter(is_judged).collect();
    for exchange in &billed {
        let sum: Duration = exchange.bill.iter().map(|line| line.ns).sum();
        if sum != exchange.elapsed {
            faults.push(format!("exchange {} sums to {sum}, not {}", exchange.n, exchange.elapsed));
        }
    }
    billed.sort_by_key(|exchange| (exchange.start, exchange.n));
    let mut waits = waits.to_vec();
    waits.sort_by_key(|wait| wait.start);
    let in_order = billed.iter().filter(|exchange| exchange.kind != Kind::OneWay).count() == waits.len();
    for wait in waits {
        let next = billed.iter().position(|exchange| exchange.kind != Kind::OneWay).filter(|_| in_order);
        let nearest = || (0..billed.len()).min_by_key(|at| wait.distance(billed[*at]));
        let Some(exchange) = next.or_else(nearest).map(|at| billed.remove(at)) else {
            faults.push(format!("a wait of {} is in no bill", wait.took()));
            continue;
        };
        if !wait.is(exchange) {
            faults.push(format!("exchange {}: {} billed for {}", exchange.n, exchange.elapsed, wait.took()));
        }
    }
    for exchange in billed {
        if exchange.elapsed > round + TOLERANCE.times(2) {
            faults.push(format!("exchange {}: nobody waited for {}", exchange.n, exchange.elapsed));
        }
    }
    faults
}

/// Where messages are frames of either side, no silence between two of them is certainly a pause.
fn too_sure(report: &Report) -> Vec<String> {
    let exchanges = report.connections.iter().flat_map(|connection| &connection.exchanges);
    let lines = exchanges.flat_map(|exchange| exchange.bill.iter().map(move |line| (exchange.n, line)));
    let pauses = lines.filter(|(_, line)| line.cause == Cause::SenderThink);
    let sure = pauses.filter(|(_, line)| line.confidence == Confidence::Certain && line.ns > TOLERANCE);
    sure.map(|(n, line)| format!("exchange {n}: {} of {} is certain", line.ns, line.cause)).collect()
}

/// Lines `ask START END`, nanoseconds since the epoch; none if no packet shows who waited for whom.
fn waits(path: &Path) -> Option<Vec<Wait>> {
    let text = std::fs::read_to_string(path).unwrap();
    if text == "unsettled\n" {
        return None;
    }
    let wait = |line: &str| {
        let mut times =
            line.split_whitespace().skip(1).map(|time| Instant::from_nanos(time.parse().unwrap()));
        Wait { start: times.next().unwrap(), end: times.next().unwrap() }
    };
    Some(text.lines().map(wait).collect())
}

fn talks() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/talks");
    let mut dirs: Vec<PathBuf> =
        std::fs::read_dir(root).unwrap().flatten().map(|entry| entry.path()).collect();
    dirs.retain(|dir| dir.is_dir());
    dirs.sort();
    dirs
}
