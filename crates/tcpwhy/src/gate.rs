//! Should a pipeline stop? `--fail-on` says at which share of the time or at which wait, and
//! optionally on which port.

use std::str::FromStr;

use tcpwhy_core::report::{Finding, Servers};
use tcpwhy_core::{Cause, Report};
use tcpwhy_report::json::Gated;
use tcpwhy_report::quantity::{count, counted, percent, time};
use tcpwhy_wire::Duration;

use crate::output::complain;

/// A condition: a cause that takes more than it may.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Gate {
    cause: Cause,
    limit: Limit,
    /// Only at servers on this port.
    port: Option<u16>,
    /// As it was written.
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    /// Share of the whole time, 0 to 1; a cause without a limit must not take any time.
    Share(f64),
    /// How long a wait may be at this quantile.
    Wait(Quantile, Duration),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Quantile {
    P50,
    P99,
    Max,
}

const FORM: &str =
    "expected a condition such as 'rto', 'rto>5%', 'rto p99>100ms' or 'server-think p50>20ms port 8080'";

impl FromStr for Gate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (rest, port) = match text.rsplit_once(" port ") {
            Some((rest, port)) => (
                rest,
                Some(port.trim().parse().map_err(|_| format!("{port}: expected a port number up to 65535"))?),
            ),
            None => (text, None),
        };
        let (what, limit) = match rest.split_once(['>', ':']) {
            Some((what, limit)) => (what, Some(limit.trim())),
            None => (rest, None),
        };
        let mut words = what.split_whitespace();
        let name = words.next().ok_or(FORM)?;
        let cause = name.parse().map_err(|error| format!("{name}: {error}"))?;
        let quantile = match words.next() {
            None => None,
            Some("p50" | "median") => Some(Quantile::P50),
            Some("p99") => Some(Quantile::P99),
            Some("max") => Some(Quantile::Max),
            Some(other) => return Err(format!("{other}: expected p50, p99 or max; {FORM}")),
        };
        let limit = match (quantile, limit) {
            _ if words.next().is_some() => return Err(FORM.to_owned()),
            (None, None) => Limit::Share(0.0),
            (None, Some(share)) => Limit::Share(parse_share(share)?),
            (Some(quantile), Some(wait)) => Limit::Wait(quantile, parse_wait(wait)?),
            (Some(_), None) => return Err(FORM.to_owned()),
        };
        Ok(Self { cause, limit, port, text: text.to_owned() })
    }
}

/// `0.05` or `5%`.
fn parse_share(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.strip_suffix('%') {
        Some(number) => (number.trim_end(), 100.0),
        None => (text, 1.0),
    };
    match number.parse::<f64>() {
        Ok(value) if (0.0..=unit).contains(&value) => Ok(value / unit),
        _ => Err(format!("{text}: expected a share such as 5% or 0.05")),
    }
}

/// `100ms`, `1.5 s`.
fn parse_wait(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text}: expected a time with a unit, such as 100ms (ns, us, ms, s)");
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
    let (number, unit) = text.split_at(unit_at);
    let ns = match unit.trim() {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return Err(wrong()),
    };
    match number.parse::<f64>() {
        Ok(value) if value * ns < i64::MAX as f64 => Ok(Duration::from_nanos((value * ns) as i64)),
        _ => Err(wrong()),
    }
}

impl Gate {
    fn concerns(&self, finding: &Finding) -> bool {
        let at_port = match (self.port, finding.servers) {
            (None, _) => true,
            (Some(port), Servers::One(endpoint)) => endpoint.port == port,
            (Some(_), Servers::Several(_)) => false,
        };
        finding.cause == self.cause && at_port
    }

    /// Whether its port has findings: each billed port has some, unless it is one of many that took
    /// little.
    fn is_of_any(&self, report: &Report) -> bool {
        let at =
            |finding: &Finding| matches!(finding.servers, Servers::One(at) if Some(at.port) == self.port);
        self.port.is_none() || report.findings.iter().any(at)
    }

    fn judge(&self, report: &Report) -> Gated {
        let found: Vec<&Finding> = report.findings.iter().filter(|finding| self.concerns(finding)).collect();
        let (failed, reason) = match self.limit {
            _ if !report.elapsed.is_positive() => {
                (true, "nothing was billed, so the condition cannot be checked".to_owned())
            }
            _ if !self.is_of_any(report) => {
                (true, "nothing is billed to this port, so the condition cannot be checked".to_owned())
            }
            Limit::Share(share) => self.judge_share(share, &found, report),
            Limit::Wait(quantile, limit) => judge_wait(quantile, limit, &found),
        };
        Gated { gate: self.text.clone(), failed, reason }
    }

    fn judge_share(&self, share: f64, found: &[&Finding], report: &Report) -> (bool, String) {
        let lines = report.bill.iter().filter(|line| line.cause == self.cause);
        let spent: Duration = match self.port {
            // With a port, the findings at that port count.
            Some(_) => found.iter().map(|finding| finding.ns).sum(),
            None => lines.map(|line| line.ns).sum(),
        };
        let allowed = share * report.elapsed.as_nanos() as f64;
        let reason = format!(
            "{} takes {} of {}, {} of the time",
            self.cause,
            time(spent),
            time(report.elapsed),
            percent(spent, report.elapsed)
        );
        (spent.as_nanos() as f64 > allowed, reason)
    }
}

/// Judges by the finding that is worst at this quantile.
fn judge_wait(quantile: Quantile, limit: Duration, found: &[&Finding]) -> (bool, String) {
    let (name, value): (_, fn(&Finding) -> Duration) = match quantile {
        Quantile::P50 => ("p50", |finding| finding.p50),
        Quantile::P99 => ("p99", |finding| finding.p99),
        Quantile::Max => ("max", |finding| finding.max),
    };
    let Some(worst) = found.iter().max_by_key(|finding| value(finding)) else {
        return (false, "not found in this capture".to_owned());
    };
    let reason = format!(
        "{name} is {} over {} of {} at {}",
        time(value(worst)),
        count(worst.hits),
        counted(worst.of, "exchange"),
        worst.servers
    );
    (value(worst) > limit, reason)
}

/// The result of each gate.
pub(crate) fn judge(gates: &[Gate], report: &Report) -> Vec<Gated> {
    gates.iter().map(|gate| gate.judge(report)).collect()
}

/// If nothing was analysed, no gate can be passed.
pub(crate) fn nothing_to_judge(gates: &[Gate]) -> Vec<Gated> {
    let reason = "nothing was analysed, so the condition cannot be checked";
    gates
        .iter()
        .map(|gate| Gated { gate: gate.text.clone(), failed: true, reason: reason.to_owned() })
        .collect()
}

/// Says on standard error why the pipeline is to stop.
pub(crate) fn say(gates: &[Gated]) {
    for gate in gates.iter().filter(|gate| gate.failed) {
        // A baseline's gate already has the option in its name.
        let name = if gate.gate.starts_with("--") {
            gate.gate.clone()
        } else {
            format!("--fail-on '{}'", gate.gate)
        };
        complain(&format!("{name}: {}", gate.reason));
    }
}

#[cfg(test)]
mod tests {
    use tcpwhy_core::Side;
    use tcpwhy_core::report::TotalLine;

    use super::*;

    fn limit(text: &str) -> Result<Limit, String> {
        text.parse().map(|gate: Gate| gate.limit)
    }

    #[test]
    fn shares_are_parts_or_per_cent_and_waits_have_a_unit() {
        for text in ["rto:0.05", "rto:5%", "rto:5 %", "rto>5%", "rto > 5 %"] {
            assert_eq!(limit(text), Ok(Limit::Share(0.05)), "{text}");
        }
        assert_eq!(limit("rto"), Ok(Limit::Share(0.0)));
        let ms = Duration::from_millis;
        assert_eq!(limit("rto p99>100ms"), Ok(Limit::Wait(Quantile::P99, ms(100))));
        assert_eq!(limit("rto max > 1.5 s"), Ok(Limit::Wait(Quantile::Max, ms(1_500))));
        let gate = "server-think p50>20ms port 8080".parse::<Gate>();
        assert_eq!(
            gate.map(|gate| (gate.limit, gate.port)),
            Ok((Limit::Wait(Quantile::P50, ms(20)), Some(8080)))
        );
        for text in [
            "jitter",
            "rto:",
            "rto:1.5",
            "rto:-1%",
            "rto:NaN",
            "rto:101%",
            "",
            "rto p99",
            "rto p95>1ms",
            "rto p99>100",
            "rto p99>5%",
            "rto>5% port x",
            "rto>100ms",
            "rto p50 p99>1ms",
        ] {
            assert!(text.parse::<Gate>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_gate_closes_above_its_share_over_both_sides() {
        let line = |side, ms| {
            let (ns, possible) = (Duration::from_millis(ms), Duration::ZERO);
            TotalLine { cause: Cause::Nagle, side, ns, possible, hits: 1 }
        };
        let report = Report {
            elapsed: Duration::from_millis(100),
            bill: vec![line(Side::Client, 6), line(Side::Server, 4)],
            ..Report::default()
        };
        let closes = |gate: &str| gate.parse().is_ok_and(|gate: Gate| gate.judge(&report).failed);
        assert!(closes("nagle") && closes("nagle:9%"));
        assert!(!closes("nagle:10%") && !closes("rto"));
        let nothing =
            Gate::judge(&"rto".parse().unwrap_or_else(|error| panic!("{error}")), &Report::default());
        assert!(nothing.failed, "a gate over nothing is not passed");
    }
}
