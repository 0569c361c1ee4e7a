//! What is expected of a scenario? Ranges for the applications' measurements, and the causes that
//! the bill must name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tcpwhy_twin::path::parse_duration;
use tcpwhy_wire::Duration;

/// The expectations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    /// The median exchange, by the client's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange: Option<Span>,
    /// The longest exchange, if only one of them meets the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowest: Option<Span>,
    /// The median one-way message, from the first write to the last read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_way: Option<Span>,
    /// The median connect call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<Span>,
    /// The only end, `client` or `server`, whose capture can show it: a packet that is lost before
    /// it reaches the other end's capture is in none of its packets, and a path element that holds
    /// back ACKs is between the two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visible: Option<String>,
    /// Causes and their share of the total elapsed time of all exchanges (or setups, or one-way
    /// messages).
    pub causes: Vec<ExpectedCause>,
}

/// `43ms..50ms`, `..1ms`, `200ms..`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Span {
    /// The minimum.
    pub min: Duration,
    /// The maximum.
    pub max: Duration,
}

impl Span {
    /// Whether a span is within the range.
    pub fn contains(self, span: Duration) -> bool {
        self.min <= span && span <= self.max
    }

    /// Whether every span is within the range.
    pub fn is_anything(self) -> bool {
        self.min == Duration::ZERO && self.max == Duration::MAX
    }
}

/// `95%..`, `40%..60%`, `..5%` of the elapsed time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// The minimum, 0 to 1.
    pub min: f64,
    /// The maximum, 0 to 1.
    pub max: f64,
}

/// `nagle-delayed-ack client 95%..`, `syn-retransmit path 90%.. of setup`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ExpectedCause {
    /// The cause's name in reports.
    pub cause: String,
    /// `client`, `server` or `path`.
    pub side: String,
    /// Its share of ...
    pub share: Share,
    /// ... `exchange`, `setup` or `one-way`.
    pub of: String,
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a range; write 43ms..50ms, ..1ms or 200ms..");
        let (min, max) = text.split_once("..").ok_or_else(wrong)?;
        let bound = |text: &str, open| match text {
            "" => Ok(open),
            bound => parse_duration(bound).map_err(|error| error.to_string()),
        };
        Ok(Self { min: bound(min, Duration::ZERO)?, max: bound(max, Duration::MAX)? })
    }
}

impl FromStr for ExpectedCause {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (cause, side, share, of) = match words.as_slice() {
            [cause, side, share] => (cause, side, share, "exchange"),
            [cause, side, share, "of", of @ ("exchange" | "setup" | "one-way")] => (cause, side, share, *of),
            _ => {
                return Err(format!(
                    "`{text}` is not an expectation; write `nagle client 40%..60% of exchange`"
                ));
            }
        };
        if !["client", "server", "path", "unknown"].contains(side) {
            return Err(format!("`{side}` is not a side: expected client, server or path"));
        }
        Ok(Self {
            cause: (*cause).to_owned(),
            side: (*side).to_owned(),
            share: share.parse()?,
            of: of.to_owned(),
        })
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a share; write 40%..60%, ..5% or 95%..");
        let (min, max) = text.split_once("..").ok_or_else(wrong)?;
        let bound = |text: &str, open| match text.strip_suffix('%') {
            None if text.is_empty() => Ok(open),
            None => Err(wrong()),
            Some(percent) => percent.parse::<f64>().map(|percent| percent / 100.0).map_err(|_| wrong()),
        };
        Ok(Self { min: bound(min, 0.0)?, max: bound(max, 1.0)? })
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.min.is_positive() {
            write!(f, "{}us", self.min.as_nanos() / 1000)?;
        }
        f.write_str("..")?;
        if self.max < Duration::MAX { write!(f, "{}us", self.max.as_nanos() / 1000) } else { Ok(()) }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.min > 0.0 {
            write!(f, "{}%", (self.min * 1e4).round() / 1e2)?;
        }
        f.write_str("..")?;
        if self.max < 1.0 { write!(f, "{}%", (self.max * 1e4).round() / 1e2) } else { Ok(()) }
    }
}

impl fmt::Display for ExpectedCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} of {}", self.cause, self.side, self.share, self.of)
    }
}

impl From<Span> for String {
    fn from(span: Span) -> Self {
        span.to_string()
    }
}

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<ExpectedCause> for String {
    fn from(cause: ExpectedCause) -> Self {
        cause.to_string()
    }
}

impl TryFrom<String> for ExpectedCause {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expectations_read_back_as_they_are_written() {
        for text in [
            "nagle-delayed-ack client 95%.. of exchange",
            "rto path 12.5%..60% of setup",
            "queueing path ..5% of one-way",
        ] {
            assert_eq!(text.parse::<ExpectedCause>().unwrap().to_string(), text);
        }
        for (text, written) in
            [("43ms..50ms", "43000us..50000us"), ("..1ms", "..1000us"), ("200ms..", "200000us..")]
        {
            let span: Span = text.parse().unwrap();
            assert_eq!(span.to_string(), written);
            assert_eq!(written.parse(), Ok(span));
        }
        assert!("43ms..50ms".parse::<Span>().unwrap().contains(Duration::from_millis(43)));
        assert!(!"43ms..50ms".parse::<Span>().unwrap().contains(Duration::from_millis(51)));
    }
}
