//! What does a path look like in writing? A list of elements, a line each, in the order from the client to the server:
//! `rate 100mbit queue 100p`, `delay 10ms`.

use std::fmt;
use std::str::FromStr;

use tcpwhy_wire::Duration;

use super::{Delay, Element, MAX_ELEMENTS, Pipe};

/// The elements of both directions and the seed of their random streams.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathSpec {
    /// From the client to the server.
    pub forward: Vec<ElementSpec>,
    /// From the server to the client.
    pub backward: Vec<ElementSpec>,
    /// Every random stream is derived from it.
    pub seed: u64,
}

impl PathSpec {
    /// A path that delays each direction by half of `rtt`.
    pub fn delay(rtt: Duration) -> Self {
        let one_way = rtt.divided_by(2);
        let elements = if one_way.is_positive() { vec![ElementSpec::Delay(one_way)] } else { Vec::new() };
        Self { forward: elements.clone(), backward: elements, seed: 0 }
    }

    /// The pipes of both directions: client to server, server to client.
    ///
    /// # Errors
    /// A direction has too many elements.
    pub fn build(&self) -> Result<[Pipe; 2], SpecError> {
        let pipe = |elements: &[ElementSpec], direction: &str| {
            if elements.len() > MAX_ELEMENTS {
                return Err(SpecError(format!("{} elements; at most {MAX_ELEMENTS} fit", elements.len())));
            }
            let name = |n: usize, spec: &ElementSpec| format!("{direction}/{n}/{}", spec.name());
            let build = |(n, spec): (usize, &ElementSpec)| spec.build(self.seed, &name(n, spec));
            Ok(Pipe::new(elements.iter().enumerate().map(build).collect()))
        };
        Ok([pipe(&self.forward, "forward")?, pipe(&self.backward, "backward")?])
    }

    /// Whether some element must see every packet of its own: super-segments have to be split before it.
    pub fn needs_single_packets(&self) -> bool {
        self.forward.iter().chain(&self.backward).any(ElementSpec::needs_single_packets)
    }
}

/// One element in writing.
#[derive(Clone, Debug, PartialEq)]
pub enum ElementSpec {
    /// `delay 10ms`
    Delay(Duration),
}

impl ElementSpec {
    /// The word that a line starts with.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Delay(_) => "delay",
        }
    }

    /// Whether it must see single packets instead of super-segments.
    pub const fn needs_single_packets(&self) -> bool {
        match self {
            Self::Delay(_) => false,
        }
    }

    fn build(&self, _seed: u64, _name: &str) -> Element {
        match self {
            Self::Delay(delay) => Element::Delay(Delay::new(*delay)),
        }
    }
}

impl FromStr for ElementSpec {
    type Err = SpecError;

    fn from_str(line: &str) -> Result<Self, SpecError> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["delay", span] => parse_duration(span).map(Self::Delay),
            _ => Err(SpecError(format!("`{line}` is no path element"))),
        }
    }
}

impl fmt::Display for ElementSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delay(span) => write!(f, "delay {}", Span(*span)),
        }
    }
}

/// A line that cannot be read, and why.
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
/// The text is no number with a unit.
pub fn parse_duration(text: &str) -> Result<Duration, SpecError> {
    let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("", 0.0)];
    scaled(text, &units)
        .map(|ns| Duration::from_nanos(ns as i64))
        .ok_or_else(|| SpecError(format!("`{text}` is no duration; write 10ms, 250us or 1.5s")))
}

/// Bits per second from `100mbit`, `1.5gbit`, `64kbit`, `9600bit`.
///
/// # Errors
/// The text is no number with a unit.
pub fn parse_rate(text: &str) -> Result<u64, SpecError> {
    scaled(text, &[("kbit", 1e3), ("mbit", 1e6), ("gbit", 1e9), ("bit", 1.0)])
        .filter(|rate| *rate >= 1.0)
        .map(|rate| rate as u64)
        .ok_or_else(|| SpecError(format!("`{text}` is no rate; write 100mbit, 1.5gbit or 64kbit")))
}

/// Bytes from `65536`, `64k` (KiB), `4m` (MiB).
///
/// # Errors
/// The text is no number with a unit.
pub fn parse_bytes(text: &str) -> Result<u64, SpecError> {
    scaled(text, &[("k", 1024.0), ("m", 1_048_576.0), ("", 1.0)])
        .map(|bytes| bytes as u64)
        .ok_or_else(|| SpecError(format!("`{text}` is no size; write 65536, 64k or 4m")))
}

/// A number followed by one of the units; a unit of 0 takes nothing but zero.
fn scaled(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: f64 = number.parse().ok()?;
    let (_, scale) = units.iter().find(|(name, _)| *name == unit)?;
    (*scale > 0.0 || number == 0.0).then_some((number * scale).round())
}

/// Writes a duration so that [`parse_duration`] reads back exactly the same.
struct Span(Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_nanos() {
            ns if ns % 1_000_000 == 0 => write!(f, "{}ms", ns / 1_000_000),
            ns if ns % 1_000 == 0 => write!(f, "{}us", ns / 1_000),
            ns => write!(f, "{ns}ns"),
        }
    }
}
