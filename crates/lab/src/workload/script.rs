//! How is one side of a conversation written down? One step per line; blocks end with `end`:
//!
//! ```text
//! nodelay on
//! connect
//! repeat 40 every 100ms
//!   write 20
//!   write 100
//!   read 64
//! end
//! ```

use std::fmt;

use tcpwhy_twin::path::{parse_bytes, parse_duration, parse_rate};
use tcpwhy_wire::Duration;

/// The steps of one side, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script(pub Vec<Step>);

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// `connect`: opens a connection; an open one is closed first.
    Connect,
    /// `accept`: takes the next connection; an open one is closed first.
    Accept,
    /// A socket option. Before `connect` or `accept` it is set before the handshake (on the
    /// listening socket, which passes it on), otherwise at once.
    Set(Setting),
    /// `write 4m in 32k every 1ms`: `bytes` in calls of at most `piece`, `pause` between the calls.
    Write {
        /// Total bytes.
        bytes: u64,
        /// Maximum per call.
        piece: u64,
        /// Pause between calls.
        pause: Option<Duration>,
        /// The call used.
        how: WriteCall,
    },
    /// `writev 20 100`: one call that gathers parts.
    Writev(Vec<u64>),
    /// `read 64`, `read 4m by 16k every 1ms`, `read some`, `read all`.
    Read {
        /// How much to wait for.
        amount: Amount,
        /// Maximum per call.
        piece: u64,
        /// Pause between calls.
        pause: Option<Duration>,
    },
    /// `think 40ms`: the application is busy elsewhere.
    Think(Duration),
    /// `repeat`, `repeat 40`, `repeat 40 every 1s` ... `end`. Without a count: until the peer has closed.
    Repeat {
        /// Number of iterations.
        times: Option<u64>,
        /// Iterations begin on a grid of this interval; one that takes longer delays the next.
        every: Option<Duration>,
        /// The steps to repeat.
        steps: Vec<Step>,
    },
    /// `shutdown`: nothing more will be written.
    Shutdown,
    /// `close`.
    Close,
    /// `reset`: closes with RST.
    Reset,
}

/// An option of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setting {
    /// `nodelay on`, `nodelay off`.
    NoDelay(bool),
    /// `cork on`, `cork off`.
    Cork(bool),
    /// `quickack once`, `quickack always` (again after each read), `quickack off`.
    QuickAck(QuickAck),
    /// `rcvbuf 64k`.
    ReceiveBuffer(u64),
    /// `sndbuf 64k`.
    SendBuffer(u64),
    /// `congestion reno`.
    Congestion(String),
    /// `pacing 20mbit`: SO_MAX_PACING_RATE, bytes per second.
    PacingRate(u64),
}

/// How quick acknowledgements are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuickAck {
    /// Now.
    Once,
    /// Now and after each read.
    Always,
    /// Off.
    Off,
}

/// The call that writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteCall {
    /// `write 20`: send.
    Plain,
    /// `write 20 more`: send with MSG_MORE.
    More,
    /// `sendfile 1m`: sendfile, from a file in memory.
    SendFile,
}

/// How much a read waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// That many bytes.
    Bytes(u64),
    /// Whatever one call returns.
    Some,
    /// Everything until the peer has closed.
    All,
}

/// A line that cannot be parsed, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// From 1.
    pub line: usize,
    /// The error.
    pub what: String,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for ScriptError {}

/// Bytes per call unless the script says otherwise.
const PIECE_BYTES: u64 = 64 << 10;

impl std::str::FromStr for Script {
    type Err = ScriptError;

    fn from_str(text: &str) -> Result<Self, ScriptError> {
        // The innermost open block is the last; the first is the script itself.
        let mut open: Vec<Block> = vec![Block::default()];
        for (n, line) in text.lines().enumerate() {
            let line_error = |what: String| ScriptError { line: n + 1, what };
            let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
            match words.as_slice() {
                [] => {}
                ["repeat", rest @ ..] => open.push(Block::begin(n + 1, rest).map_err(line_error)?),
                ["end"] => {
                    let block = open.pop().unwrap_or_default();
                    let Some(outer) = open.last_mut() else {
                        return Err(line_error("`end` without `repeat`".to_owned()));
                    };
                    let Block { times, every, steps, .. } = block;
                    outer.steps.push(Step::Repeat { times, every, steps });
                }
                words => {
                    let step = Step::parse(words).map_err(line_error)?;
                    if let Some(block) = open.last_mut() {
                        block.steps.push(step);
                    }
                }
            }
        }
        match open.as_mut_slice() {
            [script] => Ok(Self(std::mem::take(&mut script.steps))),
            [.., block] => Err(ScriptError { line: block.line, what: "`repeat` without `end`".to_owned() }),
            [] => Err(ScriptError { line: 0, what: "no script".to_owned() }),
        }
    }
}

/// A block that is being parsed.
#[derive(Default)]
struct Block {
    line: usize,
    times: Option<u64>,
    every: Option<Duration>,
    steps: Vec<Step>,
}

impl Block {
    fn begin(line: usize, words: &[&str]) -> Result<Self, String> {
        let (times, words) = match words {
            [] | ["every", ..] => (None, words),
            [times, rest @ ..] => {
                (Some(times.parse().map_err(|_| format!("`{times}` is not a number of times"))?), rest)
            }
        };
        let every = match words {
            [] => None,
            ["every", span] => Some(duration(span)?),
            other => return Err(format!("`{}` after `repeat`; write `repeat 40 every 1s`", other.join(" "))),
        };
        Ok(Self { line, times, every, steps: Vec::new() })
    }
}

impl Step {
    fn parse(words: &[&str]) -> Result<Self, String> {
        Ok(match words {
            ["connect"] => Self::Connect,
            ["accept"] => Self::Accept,
            ["shutdown"] => Self::Shutdown,
            ["close"] => Self::Close,
            ["reset"] => Self::Reset,
            ["think", span] => Self::Think(duration(span)?),
            ["writev", parts @ ..] if !parts.is_empty() => {
                Self::Writev(parts.iter().map(|part| bytes(part)).collect::<Result<_, _>>()?)
            }
            ["write", amount, "more"] => Self::write(amount, &[], WriteCall::More)?,
            ["write", amount, rest @ ..] => Self::write(amount, rest, WriteCall::Plain)?,
            ["sendfile", amount, rest @ ..] => Self::write(amount, rest, WriteCall::SendFile)?,
            ["read", amount, rest @ ..] => {
                let amount = match *amount {
                    "some" => Amount::Some,
                    "all" => Amount::All,
                    number => Amount::Bytes(bytes(number)?),
                };
                let (piece, pause) = pace(rest, "by")?;
                Self::Read { amount, piece: piece.unwrap_or(PIECE_BYTES), pause }
            }
            other => Self::Set(Setting::parse(other)?),
        })
    }

    fn write(amount: &str, rest: &[&str], how: WriteCall) -> Result<Self, String> {
        let bytes = bytes(amount)?;
        let (piece, pause) = pace(rest, "in")?;
        // A write without `in` is one call, however long; the kernel may still take less.
        Ok(Self::Write { bytes, piece: piece.unwrap_or(bytes), pause, how })
    }
}

impl Setting {
    fn parse(words: &[&str]) -> Result<Self, String> {
        let switch = |word: &str| match word {
            "on" => Ok(true),
            "off" => Ok(false),
            other => Err(format!("`{other}` is neither `on` nor `off`")),
        };
        Ok(match words {
            ["nodelay", state] => Self::NoDelay(switch(state)?),
            ["cork", state] => Self::Cork(switch(state)?),
            ["quickack", "once"] => Self::QuickAck(QuickAck::Once),
            ["quickack", "always"] => Self::QuickAck(QuickAck::Always),
            ["quickack", "off"] => Self::QuickAck(QuickAck::Off),
            ["rcvbuf", size] => Self::ReceiveBuffer(bytes(size)?),
            ["sndbuf", size] => Self::SendBuffer(bytes(size)?),
            ["congestion", name] => Self::Congestion((*name).to_owned()),
            ["pacing", rate] => Self::PacingRate(parse_rate(rate).map_err(|error| error.to_string())? / 8),
            other => return Err(format!("`{}` is not a step", other.join(" "))),
        })
    }
}

/// `in 32k every 1ms`, both parts optional.
fn pace(words: &[&str], each: &str) -> Result<(Option<u64>, Option<Duration>), String> {
    match words {
        [] => Ok((None, None)),
        [word, size] if *word == each => Ok((Some(piece(size)?), None)),
        [word, size, "every", span] if *word == each => Ok((Some(piece(size)?), Some(duration(span)?))),
        other => Err(format!("`{}`; write `{each} 32k` or `{each} 32k every 1ms`", other.join(" "))),
    }
}

fn piece(text: &str) -> Result<u64, String> {
    match bytes(text)? {
        0 => Err("pieces of no bytes never end".to_owned()),
        size => Ok(size),
    }
}

fn bytes(text: &str) -> Result<u64, String> {
    parse_bytes(text).map_err(|error| error.to_string())
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(bytes: u64, piece: u64, pause: Option<Duration>, how: WriteCall) -> Step {
        Step::Write { bytes, piece, pause, how }
    }

    #[test]
    fn a_script_reads_as_it_is_written() {
        let script: Script = "
            nodelay on          # before the handshake
            connect
            repeat 40 every 100ms
              write 20
              write 100 more
              think 25ms
              repeat
                read some
              end
            end
            sendfile 1m in 64k
            write 4m in 1k every 2ms
            writev 20 100
            read 4m by 16k
            read all by 1k every 1ms
            quickack always
            congestion reno
            pacing 20mbit
            reset
        "
        .parse()
        .unwrap();
        let ms = Duration::from_millis;
        assert_eq!(
            script.0,
            [
                Step::Set(Setting::NoDelay(true)),
                Step::Connect,
                Step::Repeat {
                    times: Some(40),
                    every: Some(ms(100)),
                    steps: vec![
                        write(20, 20, None, WriteCall::Plain),
                        write(100, 100, None, WriteCall::More),
                        Step::Think(ms(25)),
                        Step::Repeat {
                            times: None,
                            every: None,
                            steps: vec![Step::Read { amount: Amount::Some, piece: 65536, pause: None }]
                        },
                    ]
                },
                write(1 << 20, 65536, None, WriteCall::SendFile),
                write(4 << 20, 1024, Some(ms(2)), WriteCall::Plain),
                Step::Writev(vec![20, 100]),
                Step::Read { amount: Amount::Bytes(4 << 20), piece: 16384, pause: None },
                Step::Read { amount: Amount::All, piece: 1024, pause: Some(ms(1)) },
                Step::Set(Setting::QuickAck(QuickAck::Always)),
                Step::Set(Setting::Congestion("reno".to_owned())),
                Step::Set(Setting::PacingRate(2_500_000)),
                Step::Reset,
            ]
        );
    }

    #[test]
    fn a_mistake_is_named_with_its_line() {
        for (text, line, what) in [
            ("connect\nwriet 20", 2, "`writet`"),
            ("repeat 3\nwrite 1", 1, "`repeat` without `end`"),
            ("connect\nend", 2, "`end` without `repeat`"),
            ("repeat often\nend", 1, "`often` is not a number of times"),
            ("write 20 in 0", 1, "pieces of no bytes"),
            ("cork maybe", 1, "neither `on` nor `off`"),
        ] {
            let error = text.parse::<Script>().unwrap_err();
            assert_eq!(error.line, line, "{text}");
            if what != "`writet`" {
                assert!(error.what.contains(what), "{}", error.what);
            }
        }
        assert_eq!("wriet 20".parse::<Script>().unwrap_err().to_string(), "line 1: `wriet 20` is not a step");
    }
}
