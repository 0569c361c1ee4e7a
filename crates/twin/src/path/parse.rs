//! How are units and elements parsed? `10ms`, `100mbit`, `64k`, `loss data 3,7 times 2`.

use std::fmt;
use std::str::{FromStr, SplitWhitespace};

use tcpwhy_wire::Duration;

use super::spec::{ElementSpec, QueueSpec};
use super::{AckPolicy, Count, Hold, Kind, Limit, Named, Order, Pick, Timer, Trace};

/// A text that cannot be parsed, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError(pub String);

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SpecError {}

/// `10ms`, `1.5s`, `250us`, `800ns`, `0`.
///
/// # Errors
/// The text is not a number with a unit.
pub fn parse_duration(text: &str) -> Result<Duration, SpecError> {
    scaled(text, &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("", 0.0)])
        .map(|ns| Duration::from_nanos(ns as i64))
        .ok_or_else(|| SpecError(format!("`{text}` is not a duration; write 10ms, 250us or 1.5s")))
}

/// Bits per second from `100mbit`, `1.5gbit`, `64kbit`, `9600bit`.
///
/// # Errors
/// The text is not a number with a unit.
pub fn parse_rate(text: &str) -> Result<u64, SpecError> {
    scaled(text, &[("kbit", 1e3), ("mbit", 1e6), ("gbit", 1e9), ("bit", 1.0)])
        .filter(|rate| *rate >= 1.0)
        .map(|rate| rate as u64)
        .ok_or_else(|| SpecError(format!("`{text}` is not a rate; write 100mbit, 1.5gbit or 64kbit")))
}

/// Bytes from `65536`, `64k` (KiB), `4m` (MiB).
///
/// # Errors
/// The text is not a number with a unit.
pub fn parse_bytes(text: &str) -> Result<u64, SpecError> {
    scaled(text, &[("k", 1024.0), ("m", 1_048_576.0), ("", 1.0)])
        .map(|bytes| bytes as u64)
        .ok_or_else(|| SpecError(format!("`{text}` is not a size; write 65536, 64k or 4m")))
}

/// A probability from `1%`, `0.5%` or `0.01`.
fn parse_share(text: &str) -> Result<f64, SpecError> {
    scaled_exact(text, &[("%", 0.01), ("", 1.0)])
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| SpecError(format!("`{text}` is not a share; write 1% or 0.01")))
}

fn scaled(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    scaled_exact(text, units).map(f64::round)
}

/// A number followed by one of the units; a unit of 0 accepts only zero.
fn scaled_exact(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: f64 = number.parse().ok()?;
    let (_, scale) = units.iter().find(|(name, _)| *name == unit)?;
    (*scale > 0.0 || number == 0.0).then_some(number * scale)
}

impl FromStr for ElementSpec {
    type Err = SpecError;

    fn from_str(line: &str) -> Result<Self, SpecError> {
        let mut words = Words { line, words: line.split_whitespace() };
        let spec = words.element()?;
        match words.words.next() {
            None => Ok(spec),
            Some(word) => Err(words.wrong(&format!("`{word}` is one word too many"))),
        }
    }
}

/// Longer ranges of packet numbers are typing errors.
const MAX_RANGE: u64 = 100_000;

/// The words of one line.
struct Words<'a> {
    line: &'a str,
    words: SplitWhitespace<'a>,
}

impl<'a> Words<'a> {
    fn element(&mut self) -> Result<ElementSpec, SpecError> {
        match self.next("an element")? {
            "delay" => Ok(ElementSpec::Delay(parse_duration(self.next("a duration")?)?)),
            "jitter" => {
                let limit = parse_duration(self.next("a duration")?)?;
                let order = if self.takes("reorder") { Order::Free } else { Order::Kept };
                Ok(ElementSpec::Jitter { limit, order })
            }
            "rate" => {
                let bits_per_s = parse_rate(self.next("a rate")?)?;
                let overhead_bytes =
                    if self.takes("overhead") { self.number("a number of bytes")? } else { 0 };
                Ok(ElementSpec::Rate { bits_per_s, overhead_bytes, queue: self.queue(Some(bits_per_s))? })
            }
            "trace" => {
                let times: Vec<Duration> = self
                    .numbers("times in ms, such as 0,4,4,9")?
                    .into_iter()
                    .map(|ms| Duration::from_millis(ms as i64))
                    .collect();
                if Trace::new(times.clone()).is_none() {
                    return Err(self.wrong("the times of a trace must rise, and the last must not be 0"));
                }
                Ok(ElementSpec::Trace { times, queue: self.queue(None)? })
            }
            "loss" => Ok(ElementSpec::Loss(self.pick()?)),
            "duplicate" => Ok(ElementSpec::Duplicate(self.pick()?)),
            "reorder" => {
                let pick = self.pick()?;
                if !self.takes("by") {
                    return Err(self.wrong("it lacks `by` and a duration or a number of packets (5ms, 3p)"));
                }
                let by = self.next("a duration or a number of packets (5ms, 3p)")?;
                let hold = match by.strip_suffix('p') {
                    Some(packets) => Hold::Packets(self.parsed(packets, "a number of packets")?),
                    None => Hold::Time(parse_duration(by)?),
                };
                Ok(ElementSpec::Reorder { pick, hold })
            }
            "acks" => self.ack_policy().map(ElementSpec::Acks),
            other => Err(self.wrong(&format!(
                "`{other}` is not a path element (delay, jitter, rate, trace, loss, duplicate, reorder, acks)"
            ))),
        }
    }

    fn queue(&mut self, bits_per_s: Option<u64>) -> Result<QueueSpec, SpecError> {
        let mut queue = QueueSpec::default();
        if self.takes("queue") {
            let length = self.next("a length (100p, 64k, 50ms)")?;
            queue.limit = if let Some(packets) = length.strip_suffix('p') {
                Limit::Packets(self.parsed(packets, "a number of packets")?)
            } else if let (Some(rate), true) = (bits_per_s, length.ends_with('s')) {
                let ns = parse_duration(length)?.as_nanos().unsigned_abs();
                Limit::Bytes((u128::from(rate) * u128::from(ns) / 8_000_000_000) as u64)
            } else {
                Limit::Bytes(parse_bytes(length)?)
            };
        }
        if self.takes("codel") {
            let target = parse_duration(self.next("CoDel's target")?)?;
            let interval = parse_duration(self.next("CoDel's interval")?)?;
            queue.codel = Some((target, interval));
        }
        Ok(queue)
    }

    fn pick(&mut self) -> Result<Pick, SpecError> {
        let word = self.next("which packets (1%, burst, larger, data, syn, synack, ack, fin, bytes)")?;
        let kind = match word {
            "burst" => {
                let to_bad = parse_share(self.next("the chance to turn bad")?)?;
                let to_good = parse_share(self.next("the chance to turn good")?)?;
                let in_bad = if self.takes("bad") { parse_share(self.next("a share")?)? } else { 1.0 };
                let in_good = if self.takes("good") { parse_share(self.next("a share")?)? } else { 0.0 };
                return Ok(Pick::Burst { to_bad, to_good, in_bad, in_good });
            }
            "larger" => return self.number("a number of bytes").map(Pick::Larger),
            "data" => Kind::Data(self.ordinals()?),
            "syn" => Kind::Syn(self.ordinals()?),
            "synack" => Kind::SynAck(self.ordinals()?),
            "ack" => Kind::Ack(self.ordinals()?),
            "fin" => Kind::Fin(self.ordinals()?),
            "bytes" => {
                let range = self.next("a range of bytes such as 0..1448")?;
                let ends = range
                    .split_once("..")
                    .and_then(|(start, end)| Some((parse_bytes(start).ok()?, parse_bytes(end).ok()?)));
                match ends {
                    Some((start, end)) if start < end && end < 1 << 31 => {
                        Kind::Bytes { start: start as u32, end: end as u32 }
                    }
                    _ => return Err(self.wrong(&format!("`{range}` is no range of bytes such as 0..1448"))),
                }
            }
            share => return parse_share(share).map(Pick::Share).map_err(|error| self.wrong(&error.0)),
        };
        let connection =
            if self.takes("connection") { Some(self.number("a number of a connection")?) } else { None };
        let times = if self.takes("times") { self.number("how many transmissions")? } else { 1 };
        if times == 0 || connection == Some(0) {
            return Err(self.wrong("counting starts from 1"));
        }
        Ok(Pick::Named(Named { kind, connection, times }))
    }

    fn ack_policy(&mut self) -> Result<AckPolicy, SpecError> {
        let word = self.next("a stack's name or `every`")?;
        if word != "every" {
            return AckPolicy::named(word)
                .ok_or_else(|| self.wrong(&format!("no stack's policy is known as `{word}`")));
        }
        let every = self.number("a number of segments")?;
        let count = if self.takes("full") { Count::FullSegments } else { Count::Segments };
        let mut policy = AckPolicy { every, count, after: Duration::ZERO, timer: Timer::FirstSegment };
        if every > 1 {
            if !self.takes("after") {
                return Err(self.wrong("it lacks `after` and a duration"));
            }
            policy.after = parse_duration(self.next("a duration")?)?;
            policy.timer = if self.takes("restarting") {
                Timer::EachSegment
            } else if self.takes("ticking") {
                Timer::Tick
            } else {
                Timer::FirstSegment
            };
        }
        Ok(policy)
    }

    fn next(&mut self, what: &str) -> Result<&'a str, SpecError> {
        self.words.next().ok_or_else(|| self.wrong(&format!("it lacks {what}")))
    }

    fn takes(&mut self, word: &str) -> bool {
        let found = self.words.clone().next() == Some(word);
        if found {
            self.words.next();
        }
        found
    }

    fn number<T: FromStr>(&mut self, what: &str) -> Result<T, SpecError> {
        let word = self.next(what)?;
        self.parsed(word, what)
    }

    fn parsed<T: FromStr>(&self, word: &str, what: &str) -> Result<T, SpecError> {
        word.parse().map_err(|_| self.wrong(&format!("`{word}` is not {what}")))
    }

    fn numbers(&mut self, what: &str) -> Result<Vec<u64>, SpecError> {
        let list = self.next(what)?;
        let mut numbers = Vec::new();
        for word in list.split(',') {
            match word.split_once('-') {
                None => numbers.push(self.parsed(word, what)?),
                Some((first, last)) => {
                    let (first, last): (u64, u64) = (self.parsed(first, what)?, self.parsed(last, what)?);
                    if last < first || last - first >= MAX_RANGE {
                        return Err(self.wrong(&format!("`{word}` is not {what}")));
                    }
                    numbers.extend(first..=last);
                }
            }
        }
        Ok(numbers)
    }

    fn ordinals(&mut self) -> Result<Vec<u64>, SpecError> {
        let numbers = self.numbers("which, such as 3, 3,7 or 11-30")?;
        if numbers.contains(&0) {
            return Err(self.wrong("counting starts from 1"));
        }
        Ok(numbers)
    }

    fn wrong(&self, why: &str) -> SpecError {
        SpecError(format!("path element `{}`: {why}", self.line))
    }
}
