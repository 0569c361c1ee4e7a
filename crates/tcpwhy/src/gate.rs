//! Should a pipeline stop? `--fail-on CAUSE[:SHARE]` says at which share of the time.

use std::str::FromStr;

use tcpwhy_core::{Cause, Report};
use tcpwhy_wire::Duration;

/// A cause, and the share of the whole that it may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Gate {
    cause: Cause,
    /// 0 to 1; a cause without a share must not take any time.
    share: f64,
}

impl FromStr for Gate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, share) = match text.split_once(':') {
            Some((name, share)) => (name, parse_share(share)?),
            None => (text, 0.0),
        };
        let cause = name.parse().map_err(|error| format!("{name}: {error}"))?;
        Ok(Self { cause, share })
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
        _ => Err(format!("{text}: a share is a number from 0 to 1, or per cent as in 5%")),
    }
}

/// Whether a cause takes more of the whole capture than one of the gates allows.
pub(crate) fn closes(gates: &[Gate], report: &Report) -> bool {
    gates.iter().any(|gate| {
        let spent: Duration =
            report.bill.iter().filter(|line| line.cause == gate.cause).map(|line| line.ns).sum();
        let allowed = gate.share * report.elapsed.as_nanos() as f64;
        spent.as_nanos() as f64 > allowed
    })
}

#[cfg(test)]
mod tests {
    use tcpwhy_core::Side;
    use tcpwhy_core::report::TotalLine;

    use super::*;

    #[test]
    fn shares_are_parts_or_per_cent() {
        for text in ["rto:0.05", "rto:5%", "rto:5 %"] {
            assert_eq!(text.parse(), Ok(Gate { cause: Cause::Rto, share: 0.05 }), "{text}");
        }
        assert_eq!("rto".parse(), Ok(Gate { cause: Cause::Rto, share: 0.0 }));
        for text in ["jitter", "rto:", "rto:1.5", "rto:-1%", "rto:NaN", "rto:101%", ""] {
            assert!(text.parse::<Gate>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_gate_closes_above_its_share_over_both_sides() {
        let line = |side, ms| TotalLine { cause: Cause::Nagle, side, ns: Duration::from_millis(ms), hits: 1 };
        let report = Report {
            elapsed: Duration::from_millis(100),
            bill: vec![line(Side::Client, 6), line(Side::Server, 4)],
            ..Report::default()
        };
        let closes = |gate: &str| gate.parse().is_ok_and(|gate| closes(&[gate], &report));
        assert!(closes("nagle") && closes("nagle:9%"));
        assert!(!closes("nagle:10%") && !closes("rto"));
    }
}
