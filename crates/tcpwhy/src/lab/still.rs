//! Did the machine hold still? Other programs can make the path late; then a recording is not what its path says, and the end
//! that cannot see the lateness cannot bill it.

use tcpwhy_lab::truth::{TruePath, Truth};
use tcpwhy_wire::{Duration, Instant, Segment};

/// A segment as the capture at its sender has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    at: Instant,
    seq: u32,
    ack: u32,
}

impl Sent {
    pub(super) fn of(segment: &Segment) -> Self {
        Self { at: segment.at, seq: segment.seq.0, ack: segment.ack.0 }
    }
}

/// By how much the path was late at the worst: from the sending kernel to the link, and from when a packet was due to when
/// the receiving kernel had it. `sent` are the segments of client and server at their own ends.
pub(super) fn lateness(truth: &Truth, sent: &[Vec<Sent>; 2]) -> Duration {
    let Some(path) = &truth.path else { return Duration::ZERO };
    let forward = Direction::of(path, "forward");
    let backward = Direction::of(path, "backward");
    let [client, server] = sent;
    forward.lateness(client).max(backward.lateness(server))
}

/// The path's records of one direction, in the order in which the link read the packets.
struct Direction {
    rows: Vec<Row>,
}

struct Row {
    n: i64,
    entered_ns: i64,
    due_ns: i64,
    delivered_ns: Option<i64>,
    seq: i64,
    ack: i64,
}

impl Direction {
    fn of(path: &TruePath, direction: &str) -> Self {
        let column = |name: &str| path.columns.iter().position(|column| column == name);
        let names = ["direction", "n", "entered_ns", "due_ns", "delivered_ns", "seq", "ack"].map(column);
        let [Some(which), Some(n), Some(entered), Some(due), Some(delivered), Some(seq), Some(ack)] = names
        else {
            return Self { rows: Vec::new() };
        };
        let mut rows: Vec<Row> = path
            .packets
            .iter()
            .filter(|row| row.get(which).and_then(|value| value.as_str()) == Some(direction))
            .filter_map(|row| {
                let number = |at: usize| row.get(at)?.as_i64();
                Some(Row {
                    n: number(n)?,
                    entered_ns: number(entered)?,
                    due_ns: number(due)?,
                    delivered_ns: number(delivered),
                    seq: number(seq)?,
                    ack: number(ack)?,
                })
            })
            .collect();
        rows.sort_by_key(|row| row.n);
        Self { rows }
    }

    fn lateness(&self, sent: &[Sent]) -> Duration {
        let delivered =
            self.rows.iter().filter_map(|row| Some(row.delivered_ns? - row.due_ns)).max().unwrap_or(0);
        let mut rows = self.rows.iter();
        let mut read = 0;
        for packet in sent {
            // Parts of a super-segment beyond its first have no packet of their own in the capture.
            let same = |row: &&Row| (row.seq, row.ack) == (i64::from(packet.seq), i64::from(packet.ack));
            match rows.clone().position(|row| same(&row)) {
                Some(skipped) if skipped < PARTS_MAX => {
                    if let Some(row) = rows.nth(skipped) {
                        read = read.max(row.entered_ns - packet.at.as_nanos());
                    }
                }
                _ => {}
            }
        }
        Duration::from_nanos(delivered.max(read))
    }
}

/// A super-segment of 64 KiB has 45 parts of 1460 bytes; with a small MTU more.
const PARTS_MAX: usize = 256;
