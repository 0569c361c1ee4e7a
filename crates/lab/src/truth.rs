//! What really happened? The applications' own clocks and the kernel's own counters, in one
//! document per run: `truth.json`, described in docs/truth.md. Bills are compared with it.

use serde::{Deserialize, Serialize};
use tcpwhy_wire::Duration;

use crate::workload::{AgentLog, ConnectionLog, Counters, Event, Op, Run, Sample};

/// The document's version.
pub const SCHEMA: &str = "tcpwhy.truth/1";

/// What really happened in one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Truth {
    /// [`SCHEMA`].
    pub schema: String,
    /// The kernel: system, release, machine.
    pub kernel: String,
    /// The scenario's name, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// Everything that defines the run, as given: TOML of the scenario with its overrides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// Why a script ended early, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// In the order in which the client opened them.
    pub connections: Vec<TrueConnection>,
    /// The kernels' counters, as changes over the run.
    pub counters: PerSide<Counters>,
    /// The path's log of each packet, if there was a path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<TruePath>,
}

/// One value per side.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PerSide<T> {
    /// The side that connected.
    pub client: T,
    /// The side that accepted.
    pub server: T,
}

/// One connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrueConnection {
    /// Address and port.
    pub client: String,
    /// Address and port.
    pub server: String,
    /// The client's connect call.
    pub setup: Setup,
    /// As the client measured them, in order.
    pub exchanges: Vec<TrueExchange>,
    /// Every call of both applications.
    pub events: PerSide<Vec<Event>>,
    /// The kernels' view: when the connection was established, before each exchange, and before it
    /// was closed.
    pub samples: PerSide<Vec<Sample>>,
}

/// The client's connect call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// Before the call, ns since the epoch.
    pub start_ns: i64,
    /// After it.
    pub end_ns: i64,
    /// Its length.
    pub elapsed_ns: i64,
    /// When the server's accept returned; the application may have asked late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_ns: Option<i64>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How late other programs on the machine made the path meanwhile, if that was measured.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub path_late_ns: i64,
}

/// The kind of an exchange, as in reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Request and reply.
    Exchange,
    /// A message without a reply.
    OneWay,
}

/// One exchange, by the client's clock: it writes, then reads, until it writes again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrueExchange {
    /// From 1, within the connection.
    pub n: u64,
    /// With or without a reply.
    pub kind: Kind,
    /// The initiator: `client`, or `server` for a one-way message of the server.
    pub initiator: String,
    /// The first write call begins, ns since the epoch.
    pub start_ns: i64,
    /// The read that returns the last byte ends.
    pub end_ns: i64,
    /// From start to end.
    pub elapsed_ns: i64,
    /// From the end of the previous exchange or setup to the start.
    pub client_idle_ns: i64,
    /// Bytes written by the client.
    pub request_bytes: u64,
    /// Bytes read by the client.
    pub reply_bytes: u64,
    /// Write calls of the request.
    pub request_writes: u64,
    /// Write calls of the reply, as far as the server's log has them.
    pub reply_writes: u64,
    /// The server's read that returned the last byte of the request ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_read_ns: Option<i64>,
    /// The server's first write of the reply began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_start_ns: Option<i64>,
    /// The server's last write of the reply returned: the bytes were in its send buffer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_written_ns: Option<i64>,
    /// The client's read that returned the first byte of the reply ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_first_ns: Option<i64>,
    /// Where the applications spent their own time.
    pub think: Think,
    /// How late other programs on the machine made the path meanwhile, if that was measured: the
    /// sum of the worst packet of each direction. A capture at the server cannot see it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub path_late_ns: i64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_zero(n: &i64) -> bool {
    *n == 0
}

/// Time that applications spent in the middle of an exchange, ns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Think {
    /// The server, between reading the request and writing the reply. Zero if it answered before
    /// the end.
    pub server_answering_ns: i64,
    /// The client, between two writes of the request.
    pub client_writing_ns: i64,
    /// The server, between two writes of the reply.
    pub server_writing_ns: i64,
    /// The client, between two reads of the reply.
    pub client_reading_ns: i64,
    /// The server, between two reads of the request.
    pub server_reading_ns: i64,
}

/// The path's log of each packet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TruePath {
    /// The elements from the client to the server, and back, as text.
    pub forward: Vec<String>,
    /// See `forward`.
    pub backward: Vec<String>,
    /// Seed of the path's random streams.
    pub seed: u64,
    /// Whether the machine gave the laboratory precedence over other programs. Without it, a busy
    /// machine adds delays.
    #[serde(default)]
    pub real_time: bool,
    /// Packets without a row because there were too many.
    pub omitted: u64,
    /// Packets that a host could not hand over or refused: if there are any, the machine was too
    /// slow for the path.
    pub overruns: u64,
    /// The columns of `packets`.
    pub columns: Vec<String>,
    /// One row per packet, in the order in which they left the path.
    pub packets: Vec<Vec<serde_json::Value>>,
}

impl Truth {
    /// Only the kernel's name: to be filled with what a program measured itself.
    pub fn empty() -> Self {
        let system = rustix::system::uname();
        let kernel = [system.sysname(), system.release(), system.version(), system.machine()]
            .map(|part| part.to_string_lossy().into_owned())
            .join(" ");
        Self {
            schema: SCHEMA.to_owned(),
            kernel,
            scenario: None,
            definition: None,
            failure: None,
            connections: Vec::new(),
            counters: PerSide::default(),
            path: None,
        }
    }

    /// The truth of a run.
    pub fn of(run: &Run) -> Self {
        let [client, server] = run.counters.clone();
        Self {
            failure: run.failure().map(str::to_owned),
            connections: run
                .client
                .connections
                .iter()
                .map(|client| TrueConnection::of(client, &run.server))
                .collect(),
            counters: PerSide { client, server },
            ..Self::empty()
        }
    }

    /// All exchanges of all connections.
    pub fn exchanges(&self) -> impl Iterator<Item = &TrueExchange> {
        self.connections.iter().flat_map(|connection| &connection.exchanges)
    }

    /// The client's measurements, exchange by exchange.
    pub fn elapsed(&self) -> Vec<Duration> {
        self.exchanges().map(|exchange| Duration::from_nanos(exchange.elapsed_ns)).collect()
    }
}

impl TrueConnection {
    fn of(client: &ConnectionLog, servers: &AgentLog) -> Self {
        // The newest match: a port can be reused.
        let server =
            servers.connections.iter().rev().find(|s| (s.local, s.peer) == (client.peer, client.local));
        let setup = client.events.iter().find(|event| event.op == Op::Connect).map_or_else(
            Setup::default,
            |connect| Setup {
                start_ns: connect.start_ns,
                end_ns: connect.end_ns,
                elapsed_ns: connect.end_ns - connect.start_ns,
                accepted_ns: server.and_then(|s| {
                    s.events.iter().find(|event| event.op == Op::Accept).map(|event| event.end_ns)
                }),
                error: connect.note.clone(),
                path_late_ns: 0,
            },
        );
        let (server_events, server_samples) =
            server.map_or_else(Default::default, |s| (s.events.clone(), s.samples.clone()));
        Self {
            client: client.local.to_string(),
            server: client.peer.to_string(),
            exchanges: exchanges(&client.events, &server_events, setup.end_ns),
            setup,
            events: PerSide { client: client.events.clone(), server: server_events },
            samples: PerSide { client: client.samples.clone(), server: server_samples },
        }
    }
}

/// A turn of the client's calls: writes, then reads.
#[derive(Default)]
struct Turns<'a> {
    writes: Vec<&'a Event>,
    reads: Vec<&'a Event>,
}

/// Cuts a conversation into exchanges: the client's calls show where each ends, byte offsets show
/// which of the server's calls belong to it.
fn exchanges(client: &[Event], server: &[Event], mut idle_since_ns: i64) -> Vec<TrueExchange> {
    let mut turns: Vec<Turns<'_>> = Vec::new();
    for event in client.iter().filter(|event| event.bytes.is_some_and(|bytes| bytes > 0)) {
        if event.op.writes() {
            if turns.last().is_none_or(|turn| !turn.reads.is_empty()) {
                turns.push(Turns::default());
            }
            turns.last_mut().expect("one was pushed if there was none").writes.push(event);
        } else if event.op == Op::Read {
            if turns.is_empty() {
                turns.push(Turns::default());
            }
            turns.last_mut().expect("one was pushed if there was none").reads.push(event);
        }
    }
    let mut exchanges = Vec::new();
    for (n, turn) in turns.iter().enumerate() {
        let request = Span::of(&turn.writes);
        let reply = Span::of(&turn.reads);
        let reads: Vec<&Event> = request.calls(server, |op| op == Op::Read);
        let writes: Vec<&Event> = reply.calls(server, Op::writes);
        let first = |events: &[&Event]| events.first().map(|event| event.start_ns);
        let last = |events: &[&Event]| events.last().map(|event| event.end_ns);
        let start_ns = first(&turn.writes).or(first(&writes)).unwrap_or_default();
        let end_ns = last(&turn.reads).or(last(&reads)).or(last(&turn.writes)).unwrap_or(start_ns);
        let request_read_ns = (request.bytes() > 0).then(|| last(&reads)).flatten();
        let reply_start_ns = first(&writes);
        let answering = request_read_ns.zip(reply_start_ns).map_or(0, |(read, write)| (write - read).max(0));
        exchanges.push(TrueExchange {
            n: n as u64 + 1,
            kind: if request.bytes() > 0 && reply.bytes() > 0 { Kind::Exchange } else { Kind::OneWay },
            initiator: if request.bytes() > 0 { "client" } else { "server" }.to_owned(),
            start_ns,
            end_ns,
            elapsed_ns: end_ns - start_ns,
            client_idle_ns: start_ns - idle_since_ns,
            request_bytes: request.bytes(),
            reply_bytes: reply.bytes(),
            request_writes: turn.writes.len() as u64,
            reply_writes: writes.len() as u64,
            request_read_ns,
            reply_start_ns,
            reply_written_ns: last(&writes),
            reply_first_ns: turn.reads.first().map(|event| event.end_ns),
            think: Think {
                server_answering_ns: answering,
                client_writing_ns: thinking_between(client, &turn.writes),
                server_writing_ns: thinking_between(server, &writes),
                client_reading_ns: thinking_between(client, &turn.reads),
                server_reading_ns: thinking_between(server, &reads),
            },
            path_late_ns: 0,
        });
        idle_since_ns = end_ns;
    }
    exchanges
}

/// A range of one direction's bytes.
#[derive(Clone, Copy)]
struct Span {
    start: u64,
    end: u64,
}

impl Span {
    fn of(events: &[&Event]) -> Self {
        let start = events.first().and_then(|event| event.offset).unwrap_or_default();
        Self { start, end: start + events.iter().filter_map(|event| event.bytes).sum::<u64>() }
    }

    const fn bytes(self) -> u64 {
        self.end - self.start
    }

    /// The peer's calls that moved some of these bytes.
    fn calls(self, events: &[Event], is: impl Fn(Op) -> bool) -> Vec<&Event> {
        let touches = |event: &&Event| {
            event
                .offset
                .zip(event.bytes)
                .is_some_and(|(offset, bytes)| bytes > 0 && offset < self.end && offset + bytes > self.start)
        };
        events.iter().filter(|event| is(event.op)).filter(touches).collect()
    }
}

/// How long the application thought between the first and the last of these calls.
fn thinking_between(events: &[Event], calls: &[&Event]) -> i64 {
    let (Some(first), Some(last)) = (calls.first(), calls.last()) else { return 0 };
    events
        .iter()
        .filter(|event| event.op == Op::Think)
        .filter(|event| event.start_ns >= first.end_ns && event.end_ns <= last.start_ns.max(last.end_ns))
        .map(|event| event.end_ns - event.start_ns)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log in the form `op start end offset bytes`, times in ms.
    fn account(text: &str) -> Vec<Event> {
        let line = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let op = match words[0] {
                "write" => Op::Write,
                "read" => Op::Read,
                "think" => Op::Think,
                other => panic!("{other}"),
            };
            let number = |n: usize| words.get(n).map(|word| word.parse::<i64>().unwrap());
            Event {
                op,
                start_ns: number(1).unwrap() * 1_000_000,
                end_ns: number(2).unwrap() * 1_000_000,
                offset: number(3).map(|n| n as u64),
                bytes: number(4).map(|n| n as u64),
                note: None,
            }
        };
        text.split(';').map(line).collect()
    }

    #[test]
    fn write_write_read_with_pauses_on_both_sides() {
        let client = account(
            "write 10 10 0 20;think 10 35;write 35 36 20 100;read 36 130 0 64;\
             write 200 201 120 120;read 201 260 64 64",
        );
        let server = account(
            "read 0 12 0 20;read 12 80 20 100;think 80 120;write 120 121 0 64;\
             read 121 210 120 120;write 210 211 64 64",
        );
        let exchanges = exchanges(&client, &server, 4_000_000);
        let ms: Vec<_> = exchanges
            .iter()
            .map(|e| [e.start_ns, e.elapsed_ns, e.client_idle_ns].map(|n| n / 1_000_000))
            .collect();
        assert_eq!(ms, [[10, 120, 6], [200, 60, 70]]);
        assert_eq!(
            exchanges[0].think,
            Think { server_answering_ns: 40_000_000, client_writing_ns: 25_000_000, ..Think::default() }
        );
        assert_eq!((exchanges[0].request_bytes, exchanges[0].reply_bytes), (120, 64));
        assert_eq!((exchanges[0].request_writes, exchanges[0].reply_writes), (2, 1));
        assert_eq!(exchanges[0].request_read_ns, Some(80_000_000));
        assert_eq!(exchanges[1].think, Think::default());
    }

    #[test]
    fn replies_to_each_message_of_a_burst_are_one_exchange() {
        let client = account("write 10 10 0 132;write 10 11 132 132;read 11 20 0 132;read 20 60 132 132");
        let server = account("read 0 12 0 132;write 12 13 0 132;read 13 50 132 132;write 50 51 132 132");
        let exchanges = exchanges(&client, &server, 10_000_000);
        assert_eq!(exchanges.len(), 1);
        assert_eq!((exchanges[0].request_bytes, exchanges[0].reply_writes), (264, 2));
        assert_eq!(exchanges[0].think.server_answering_ns, 0, "it answered before the request was complete");
    }

    #[test]
    fn messages_without_an_answer_are_one_way() {
        let greeting = exchanges(
            &account("read 5 9 0 30;write 20 21 0 10"),
            &account("write 1 2 0 30;read 2 30 0 10"),
            4_000_000,
        );
        let told: Vec<_> = greeting
            .iter()
            .map(|e| (e.kind, e.initiator.as_str(), e.start_ns / 1_000_000, e.end_ns / 1_000_000))
            .collect();
        assert_eq!(told, [(Kind::OneWay, "server", 1, 9), (Kind::OneWay, "client", 20, 30)]);
    }
}
