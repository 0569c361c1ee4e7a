//! Was the machine idle enough? Other programs can make the path late; then a recording does not
//! match its path, and the end that cannot see the lateness cannot bill it.

use tcpwhy_lab::truth::{TruePath, Truth};
use tcpwhy_wire::{Duration, Instant, Segment};

/// A segment in the capture at its sender.
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

/// By how much the path was late, packet by packet: from the sending kernel to the link, and from a
/// packet's due time to its arrival in the receiving kernel.
pub(super) struct Lateness {
    /// When a packet left, and how late it was, in nanoseconds; for both directions.
    directions: [Vec<(i64, i64)>; 2],
}

impl Lateness {
    /// `sent` are the segments of client and server at their own ends.
    pub(super) fn of(truth: &Truth, sent: &[Vec<Sent>; 2]) -> Self {
        let Some(path) = &truth.path else { return Self { directions: Default::default() } };
        let [client, server] = sent;
        let directions =
            [Direction::of(path, "forward").late(client), Direction::of(path, "backward").late(server)];
        Self { directions }
    }

    /// The worst of all.
    pub(super) fn worst(&self) -> Duration {
        self.within(i64::MIN, i64::MAX)
    }

    /// The sum of the worst of both directions, for packets that left in this time.
    fn within(&self, start_ns: i64, end_ns: i64) -> Duration {
        let worst = |packets: &Vec<(i64, i64)>| {
            let within = packets.iter().filter(|(at_ns, _)| (start_ns..=end_ns).contains(at_ns));
            within.map(|(_, late_ns)| *late_ns).max().unwrap_or(0)
        };
        Duration::from_nanos(self.directions.iter().map(worst).sum())
    }

    /// Notes in the truth which lateness the end that cannot see it is excused for.
    pub(super) fn note_in(&self, truth: &mut Truth) {
        if self.directions.iter().all(Vec::is_empty) {
            // The corpus keeps these notes, but not the packets.
            return;
        }
        for connection in &mut truth.connections {
            let setup = &mut connection.setup;
            setup.path_late_ns = self.within(setup.start_ns, setup.end_ns).as_nanos();
            for exchange in &mut connection.exchanges {
                exchange.path_late_ns = self.within(exchange.start_ns, exchange.end_ns).as_nanos();
            }
        }
    }
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

    /// When each packet left, and how late it was: the time until the link had read it, plus the
    /// time from its due time to its delivery.
    fn late(&self, sent: &[Sent]) -> Vec<(i64, i64)> {
        let delivered = |row: &Row| row.delivered_ns.map_or(0, |at_ns| at_ns - row.due_ns);
        let mut late: Vec<(i64, i64)> =
            self.rows.iter().map(|row| (row.entered_ns, delivered(row))).collect();
        let mut next = 0;
        for packet in sent {
            // Parts of a super-segment after the first have no packet of their own in the capture.
            let rows = self.rows.iter().enumerate().skip(next).take(PARTS_MAX);
            let same = |row: &Row| (row.seq, row.ack) == (i64::from(packet.seq), i64::from(packet.ack));
            if let Some((at, row)) = rows.into_iter().find(|(_, row)| same(row)) {
                let at_ns = packet.at.as_nanos();
                late[at] = (at_ns, row.entered_ns - at_ns + delivered(row));
                next = at + 1;
            }
        }
        late
    }
}

/// A super-segment of 64 KiB has 45 parts of 1460 bytes; more with a small MTU.
const PARTS_MAX: usize = 256;
