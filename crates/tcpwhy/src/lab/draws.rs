//! `tcpwhy lab draws`: are the bills right for paths that nobody chose? Transfers over paths drawn
//! at random from a seed are billed from both ends and compared with the records of the path, the
//! kernels and the applications.

use std::fmt::Write as _;

use anyhow::Context as _;
use tcpwhy::judge::End;
use tcpwhy_core::report::{Exchange, Kind};
use tcpwhy_lab::scenario::Scenario;
use tcpwhy_twin::path::Stream;

use super::args::DrawsArgs;
use super::form::{Flaws, Place, Run, WATCH_EVERY};
use super::outside::{Bill, Outside, Score};
use crate::ANALYSED;
use crate::confine::confine_to;
use crate::output::print;

/// How long a draw's bytes may take, by a rough estimate.
const SECONDS_MAX: f64 = 2.5;
/// A draw with a larger share of its time wrong gets a line.
const WORTH_NAMING: f64 = 0.02;

pub(super) fn run(args: &DrawsArgs) -> anyhow::Result<u8> {
    let place = if let Some(from) = &args.from {
        confine_to(from, None)?;
        None
    } else {
        tcpwhy_lab::enter_user_namespace()?;
        Some(Place::new(args.keep.as_ref())?)
    };
    let mut scores = [Score::default(), Score::default()];
    print(&format!("seed {}, {} draws\n", args.seed, args.count))?;
    for n in args.first..args.first + args.count {
        let (name, text) = (format!("draw-{n}"), draw(args.seed, n));
        let mut scenario =
            Scenario::parse(&name, &text, None, &[]).with_context(|| format!("{name}:\n{text}"))?;
        scenario.workload.watch_every = Some(WATCH_EVERY);
        let run = match (&args.from, &place) {
            (Some(dir), _) => Run::read_back(scenario, &dir.join(&name))?,
            (None, Some(place)) => place.record(&scenario, &name, 1, |_| Flaws::default())?.0,
            (None, None) => unreachable!("there is a place unless recordings are read back"),
        };
        if let Some(place) = &place {
            place.forget(&run);
        }
        print(&judge(&run, &mut scores, args.bills))?;
    }
    for (end, score) in End::BOTH.into_iter().zip(&scores) {
        print(&format!("\nat the {end}\n{score}\n"))?;
    }
    Ok(ANALYSED)
}

/// A line for each exchange that is wrong at one of the ends; with `bills`, also its truth and its
/// bill.
fn judge(run: &Run, scores: &mut [Score; 2], bills_too: bool) -> String {
    let mut out = String::new();
    let (Some(path), [connection]) = (&run.truth.path, &run.truth.connections[..]) else { return out };
    let Some(outside) = Outside::of(path, connection, i64::MAX) else { return out };
    for ((end, report), score) in End::BOTH.into_iter().zip(&run.bills).zip(scores) {
        let bills: Vec<&Exchange> = report
            .connections
            .iter()
            .flat_map(|connection| &connection.exchanges)
            .filter(|exchange| exchange.kind == Kind::Exchange)
            .collect();
        if bills.len() != connection.exchanges.len() {
            let (said, made) = (bills.len(), connection.exchanges.len());
            // Writing to a String never fails.
            let _ = writeln!(out, "{} {end}: {said} exchanges billed, {made} made", run.scenario.name);
            continue;
        }
        for (bill, exchange) in bills.into_iter().zip(&connection.exchanges) {
            let Some(truth) = outside.exchange(exchange) else { continue };
            let wrong = score.add(&truth, &[bill]);
            if wrong > WORTH_NAMING {
                let _ = writeln!(
                    out,
                    "{} {end}, exchange {}: {:.0} % of {} wrong; {}",
                    run.scenario.name,
                    exchange.n,
                    100.0 * wrong,
                    bill.elapsed,
                    run.scenario.shows
                );
                if bills_too {
                    let _ = write!(out, "{truth}{}", Bill(bill));
                }
            }
        }
    }
    out
}

/// The scenario with this number, in the form of a file.
fn draw(seed: u64, n: u64) -> String {
    let mut luck = Luck(Stream::new(seed, &format!("draw {n}")));
    let rtt_ms = luck.between(0.1, 200.0);
    let rate = (!luck.one_in(4)).then(|| luck.between(1e6, 1e9));
    let queue_bdp = luck.between(0.2, 5.0);
    let loss = if luck.one_in(2) { luck.between(0.0001, 0.03) } else { 0.0 };
    let congestion = luck.of(&["cubic", "reno", "bbr"]);
    let nodelay = luck.one_in(2);
    let buffer = luck.one_in(4).then(|| luck.between(16_384.0, 1_048_576.0));
    let (receiver, upload) = (luck.one_in(2), luck.one_in(3));
    let think_ms = if luck.one_in(3) { luck.between(1.0, 60.0) } else { 0.0 };
    let (times, idle) = (luck.of(&[1, 1, 2, 3]), luck.one_in(2));
    let wanted = luck.between(1.0, 20e6);
    // The speed that a window, the link and the losses allow (1.2 segments per round trip, divided
    // by the root of the loss rate).
    let rtt = rtt_ms / 1e3;
    let windows = buffer.map_or(f64::MAX, |buffer| buffer / rtt);
    let losses = if loss > 0.0 { 1.2 * 1448.0 / rtt / loss.sqrt() } else { f64::MAX };
    let speed = rate.unwrap_or(4e9).min(8.0 * windows).min(8.0 * losses);
    let size = wanted.min(speed / 8.0 * SECONDS_MAX / f64::from(times)).max(1.0) as u64;

    let mut path = format!("rtt = \"{rtt_ms:.3}ms\"\nseed = {}\n", n + 1);
    let mut shows =
        format!("rtt {rtt_ms:.1} ms, {congestion}, {size} B {}", if upload { "up" } else { "down" });
    if let Some(rate) = rate {
        let queue = (queue_bdp * rate / 8.0 * rtt).max(6_000.0);
        let _ = writeln!(path, "rate = \"{rate:.0}bit\"\nqueue = \"{queue:.0}\"");
        let _ = write!(shows, ", {:.1} Mbit/s, queue {queue_bdp:.1} BDP", rate / 1e6);
    }
    if loss > 0.0 {
        let _ = writeln!(path, "loss = \"{:.4}%\"", 100.0 * loss);
        let _ = write!(shows, ", loss {:.2} %", 100.0 * loss);
    }
    let option = |at_server: bool| {
        let held_by_receiver = receiver != (at_server == upload);
        let mut options = vec![format!("nodelay {}", if nodelay { "on" } else { "off" })];
        if let (Some(buffer), true) = (buffer, held_by_receiver == receiver) {
            options.push(format!("{} {buffer:.0}", if receiver { "rcvbuf" } else { "sndbuf" }));
        }
        format!("congestion = \"{congestion}\"\nsocket = {options:?}\n")
    };
    if let Some(buffer) = buffer {
        let _ = write!(shows, ", {} {buffer:.0}", if receiver { "rcvbuf" } else { "sndbuf" });
    }
    let (request, reply) = if upload { (size, 50) } else { (50, size) };
    let every = if idle { " every 700ms" } else { "" };
    format!(
        "shows = \"{shows}\"\n\
         [client]\n{}[path]\n{path}[server]\n{}[workload]\n\
         client = \"\"\"\nconnect\nrepeat {times}{every}\nwrite {request}\nread {reply}\nend\n\"\"\"\n\
         server = \"\"\"\naccept\nrepeat\nread {request}\nthink {think_ms:.3}ms\nwrite {reply}\nend\n\"\"\"\n",
        option(false),
        option(true)
    )
}

/// Random numbers, reproducible by seed.
struct Luck(Stream);

impl Luck {
    /// Log-uniform.
    fn between(&mut self, least: f64, most: f64) -> f64 {
        let share = self.0.below(1 << 32) as f64 / f64::from(u32::MAX);
        least * (most / least).powf(share)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.0.below(n) == 0
    }

    fn of<T: Copy>(&mut self, choice: &[T]) -> T {
        choice[self.0.below(choice.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_draw_is_a_scenario_and_the_seed_decides_which() {
        for n in 0..200 {
            let text = draw(1, n);
            Scenario::parse("draw", &text, None, &[]).unwrap_or_else(|error| panic!("{error}:\n{text}"));
            assert_eq!(text, draw(1, n));
            assert_ne!(text, draw(2, n));
        }
    }
}
