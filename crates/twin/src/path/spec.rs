//! How is a path written down? As a list of elements, one per line, in the order in which packets
//! meet them:
//!
//! ```text
//! delay 10ms
//! jitter 2ms [reorder]
//! rate 100mbit [overhead 38] [queue 100p|64k|50ms] [codel 5ms 100ms]
//! trace 0,4,4,9 [queue ...] [codel ...]
//! loss 1%
//! loss burst 0.5% 30% [bad 100%] [good 0%]
//! loss data|syn|synack|ack|fin 3,7,11-30 [connection 2] [times 2]
//! loss bytes 0..1448 [connection 2] [times 2]
//! duplicate WHICH, as in loss
//! reorder WHICH by 5ms|3p
//! acks every 2 [full] after 200ms [restarting|ticking]
//! acks windows-7
//! ```

use std::fmt::{self, Display, Formatter};

use tcpwhy_wire::Duration;

use super::{
    AckPolicy, AckThinner, Bottleneck, Codel, Count, Delay, Duplicate, Element, Hold, Jitter, Kind, Limit,
    Loss, MAX_ELEMENTS, Named, Order, Pick, Picker, Pipe, Rate, Reorder, Server, SpecError, Stream, Timer,
    Trace,
};

/// The elements of both directions and the seed of their random streams.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathSpec {
    /// From the client to the server.
    pub forward: Vec<ElementSpec>,
    /// From the server to the client.
    pub backward: Vec<ElementSpec>,
    /// All random streams are derived from it.
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
    /// A direction has too many elements, or one of them is impossible.
    pub fn build(&self) -> Result<[Pipe; 2], SpecError> {
        Ok([self.pipe(&self.forward, "forward")?, self.pipe(&self.backward, "backward")?])
    }

    /// Whether some element must see every packet separately: super-segments have to be split
    /// before it.
    pub fn needs_single_packets(&self) -> bool {
        self.forward.iter().chain(&self.backward).any(|spec| !matches!(spec, ElementSpec::Delay(_)))
    }

    fn pipe(&self, specs: &[ElementSpec], direction: &str) -> Result<Pipe, SpecError> {
        if specs.len() > MAX_ELEMENTS {
            return Err(SpecError(format!(
                "{} elements {direction}; at most {MAX_ELEMENTS} fit",
                specs.len()
            )));
        }
        let mut elements = Vec::new();
        for (n, spec) in specs.iter().enumerate() {
            // Equal elements have their own streams; adding one after them does not change theirs.
            let earlier = specs[..n].iter().filter(|earlier| earlier.name() == spec.name()).count();
            let stream = Stream::new(self.seed, &format!("{direction} {} {earlier}", spec.name()));
            elements.push(spec.build(stream)?);
        }
        Ok(Pipe::new(elements))
    }
}

/// One element in text form.
#[derive(Clone, Debug, PartialEq)]
pub enum ElementSpec {
    /// Every packet has the same delay.
    Delay(Duration),
    /// Every packet is delayed by a random time from zero to `limit`.
    Jitter {
        /// The maximum.
        limit: Duration,
        /// Whether packets may overtake.
        order: Order,
    },
    /// A link with a queue.
    Rate {
        /// Bits per second.
        bits_per_s: u64,
        /// Bytes that the link adds to each packet.
        overhead_bytes: u32,
        /// The queue before it.
        queue: QueueSpec,
    },
    /// A link that delivers a full packet at each of these times, over and over.
    Trace {
        /// Delivery opportunities, in order; the last is the period.
        times: Vec<Duration>,
        /// The queue before it.
        queue: QueueSpec,
    },
    /// These packets are lost.
    Loss(Pick),
    /// These packets arrive twice.
    Duplicate(Pick),
    /// These packets are overtaken.
    Reorder {
        /// Which.
        pick: Pick,
        /// By how much.
        hold: Hold,
    },
    /// The receiver whose ACKs pass here follows this policy. Its host should run with `quickack`.
    Acks(AckPolicy),
}

/// The queue before a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSpec {
    /// Its capacity.
    pub limit: Limit,
    /// CoDel's target and interval, if enabled.
    pub codel: Option<(Duration, Duration)>,
}

impl Default for QueueSpec {
    /// A thousand packets, the default of an Ethernet interface on Linux, and no CoDel.
    fn default() -> Self {
        Self { limit: Limit::Packets(1000), codel: None }
    }
}

impl ElementSpec {
    /// The keyword of its line.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Delay(_) => "delay",
            Self::Jitter { .. } => "jitter",
            Self::Rate { .. } => "rate",
            Self::Trace { .. } => "trace",
            Self::Loss(_) => "loss",
            Self::Duplicate(_) => "duplicate",
            Self::Reorder { .. } => "reorder",
            Self::Acks(_) => "acks",
        }
    }

    fn build(&self, stream: Stream) -> Result<Element, SpecError> {
        let bottleneck = |server, queue: &QueueSpec| {
            let codel = queue.codel.map(|(target, interval)| Codel::new(target, interval));
            Element::Bottleneck(Bottleneck::new(server, queue.limit, codel))
        };
        Ok(match self {
            Self::Delay(delay) => Element::Delay(Delay::new(*delay)),
            Self::Jitter { limit, order } => Element::Jitter(Jitter::new(*limit, *order, stream)),
            Self::Rate { bits_per_s, overhead_bytes, queue } => {
                bottleneck(Server::Rate(Rate::new(*bits_per_s, *overhead_bytes)), queue)
            }
            Self::Trace { times, queue } => {
                let trace = Trace::new(times.clone()).ok_or_else(|| {
                    SpecError("the times of a trace must rise, and the last must not be 0".to_owned())
                })?;
                bottleneck(Server::Trace(trace), queue)
            }
            Self::Loss(pick) => Element::Loss(Loss::new(Picker::new(pick, stream))),
            Self::Duplicate(pick) => Element::Duplicate(Duplicate::new(Picker::new(pick, stream))),
            Self::Reorder { pick, hold } => Element::Reorder(Reorder::new(Picker::new(pick, stream), *hold)),
            Self::Acks(policy) => Element::AckPolicy(AckThinner::new(*policy)),
        })
    }
}

impl Display for ElementSpec {
    /// The line that parses to the same element.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.name())?;
        match self {
            Self::Delay(delay) => Span(*delay).fmt(f),
            Self::Jitter { limit, order: Order::Kept } => Span(*limit).fmt(f),
            Self::Jitter { limit, order: Order::Free } => write!(f, "{} reorder", Span(*limit)),
            Self::Rate { bits_per_s, overhead_bytes, queue } => {
                write!(f, "{bits_per_s}bit")?;
                if *overhead_bytes > 0 {
                    write!(f, " overhead {overhead_bytes}")?;
                }
                queue.fmt(f)
            }
            Self::Trace { times, queue } => {
                let times = times.iter().map(|time| (time.as_nanos() / 1_000_000) as u64).collect::<Vec<_>>();
                write!(f, "{}", List(&times))?;
                queue.fmt(f)
            }
            Self::Loss(pick) | Self::Duplicate(pick) => pick.fmt(f),
            Self::Reorder { pick, hold: Hold::Time(span) } => write!(f, "{pick} by {}", Span(*span)),
            Self::Reorder { pick, hold: Hold::Packets(packets) } => write!(f, "{pick} by {packets}p"),
            Self::Acks(policy) => policy.fmt(f),
        }
    }
}

impl Display for QueueSpec {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.limit {
            Limit::Bytes(bytes) => write!(f, " queue {bytes}")?,
            Limit::Packets(packets) => write!(f, " queue {packets}p")?,
        }
        match self.codel {
            None => Ok(()),
            Some((target, interval)) => write!(f, " codel {} {}", Span(target), Span(interval)),
        }
    }
}

impl Display for Pick {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Share(share) => share.fmt(f),
            Self::Burst { to_bad, to_good, in_bad, in_good } => {
                write!(f, "burst {to_bad} {to_good} bad {in_bad} good {in_good}")
            }
            Self::Larger(bytes) => write!(f, "larger {bytes}"),
            Self::Named(named) => named.fmt(f),
        }
    }
}

impl Display for Named {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Data(numbers) => write!(f, "data {}", List(numbers))?,
            Kind::Syn(numbers) => write!(f, "syn {}", List(numbers))?,
            Kind::SynAck(numbers) => write!(f, "synack {}", List(numbers))?,
            Kind::Ack(numbers) => write!(f, "ack {}", List(numbers))?,
            Kind::Fin(numbers) => write!(f, "fin {}", List(numbers))?,
            Kind::Bytes { start, end } => write!(f, "bytes {start}..{end}")?,
        }
        if let Some(connection) = self.connection {
            write!(f, " connection {connection}")?;
        }
        if self.times == 1 { Ok(()) } else { write!(f, " times {}", self.times) }
    }
}

impl Display for AckPolicy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "every {}", self.every)?;
        if self.count == Count::FullSegments {
            write!(f, " full")?;
        }
        if self.every <= 1 {
            return Ok(());
        }
        let timer = match self.timer {
            Timer::FirstSegment => "",
            Timer::EachSegment => " restarting",
            Timer::Tick => " ticking",
        };
        write!(f, " after {}{timer}", Span(self.after))
    }
}

/// Writes a duration so that it parses to exactly the same value.
struct Span(Duration);

impl Display for Span {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0.as_nanos() {
            ns if ns % 1_000_000 == 0 => write!(f, "{}ms", ns / 1_000_000),
            ns if ns % 1_000 == 0 => write!(f, "{}us", ns / 1_000),
            ns => write!(f, "{ns}ns"),
        }
    }
}

/// Numbers separated by commas.
struct List<'a>(&'a [u64]);

impl Display for List<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (n, number) in self.0.iter().enumerate() {
            write!(f, "{}{number}", if n > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}
