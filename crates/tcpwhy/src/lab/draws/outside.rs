//! What was an exchange's time spent on, by the path's records of each packet, the kernels' own counters, and the
//! applications' clocks? Nothing of the engine is asked.

use std::fmt;

use tcpwhy_core::Cause;
use tcpwhy_lab::truth::{TrueConnection, TrueExchange, TruePath};
use tcpwhy_lab::workload::{Event, Op, Sample};

/// What can be told apart from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Trip,
    Bandwidth,
    Queueing,
    Repair,
    Window,
    Receiver,
    SendBuffer,
    App,
    Held,
    Unexplained,
}

impl Class {
    pub(super) const ALL: [Self; 10] = [
        Self::Trip,
        Self::Bandwidth,
        Self::Queueing,
        Self::Repair,
        Self::Window,
        Self::Receiver,
        Self::SendBuffer,
        Self::App,
        Self::Held,
        Self::Unexplained,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Trip => "round-trip",
            Self::Bandwidth => "bandwidth",
            Self::Queueing => "queueing",
            Self::Repair => "repair",
            Self::Window => "congestion",
            Self::Receiver => "receiver",
            Self::SendBuffer => "send-buffer",
            Self::App => "application",
            Self::Held => "held",
            Self::Unexplained => "unexplained",
        }
    }

    pub(super) const fn of(cause: Cause) -> Self {
        match cause {
            Cause::RoundTrip | Cause::Handshake => Self::Trip,
            Cause::Bandwidth => Self::Bandwidth,
            Cause::Queueing => Self::Queueing,
            Cause::Loss | Cause::Rto | Cause::SynRetransmit => Self::Repair,
            Cause::SlowStart
            | Cause::SlowStartAfterIdle
            | Cause::CongestionWindow
            | Cause::DelayedAckCwnd
            | Cause::Pacing => Self::Window,
            Cause::ReceiveWindow | Cause::ReceiverThink => Self::Receiver,
            Cause::SendBuffer => Self::SendBuffer,
            Cause::ServerThink | Cause::SenderThink => Self::App,
            Cause::NagleDelayedAck | Cause::Nagle | Cause::Cork => Self::Held,
            Cause::Unexplained => Self::Unexplained,
        }
    }
}

/// Nanoseconds by class, and what may be in any.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    pub(super) by_class: [i64; Class::ALL.len()],
    /// The hosts' own time between packets, and what other programs took.
    pub(super) any: i64,
    /// In a recovery, new data held by a window that the loss had closed: repair or window.
    pub(super) recovery: i64,
    /// Everything that the send buffer and the congestion window hold was in flight: either may have been the smaller.
    pub(super) full: i64,
}

impl Spent {
    pub(super) fn add(&mut self, class: Class, ns: i64) {
        self.by_class[class as usize] += ns.max(0);
    }
}

impl fmt::Display for Spent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |ns: i64| ns as f64 / 1e6;
        for class in Class::ALL.into_iter().filter(|class| self.by_class[*class as usize] > 0) {
            writeln!(f, "    really {:10.1} ms  {}", ms(self.by_class[class as usize]), class.name())?;
        }
        let [any, recovery, full] = [self.any, self.recovery, self.full].map(ms);
        writeln!(
            f,
            "    really {any:10.1} ms  anything, {recovery:.1} ms repair or congestion, {full:.1} ms congestion or send-buffer"
        )
    }
}

/// Gaps below this are the host's own work.
const HOST_GAP_NS: i64 = 200_000;

/// What the path did to a data packet.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// When it reached the link, and when its last bit had left it; the same where there is no link.
    starts: i64,
    ends: i64,
    seq: u32,
    payload: i64,
    dropped: bool,
}

/// The truth about one exchange; `None` where the accounts are not complete.
pub(super) fn spent(path: &TruePath, connection: &TrueConnection, exchange: &TrueExchange) -> Option<Spent> {
    let (read, written) = (exchange.request_read_ns?, exchange.reply_start_ns?);
    let mut spent = Spent { any: exchange.path_late_ns, ..Spent::default() };
    let [up, down] = [
        ("forward", &connection.samples.client, &connection.events.client),
        ("backward", &connection.samples.server, &connection.events.server),
    ]
    .map(|(direction, samples, events)| Phase { path, direction, samples, writes: writes(events) });
    up.spend(exchange.start_ns, read, &mut spent)?;
    spent.add(Class::App, written - read);
    down.spend(written, exchange.end_ns, &mut spent)?;
    Some(spent)
}

/// From when to when an application was in a call that writes.
fn writes(events: &[Event]) -> Vec<(i64, i64)> {
    let writes = |event: &&Event| matches!(event.op, Op::Write | Op::WriteMore | Op::Writev | Op::Sendfile);
    events.iter().filter(writes).map(|event| (event.start_ns, event.end_ns)).collect()
}

/// One direction's part of an exchange.
struct Phase<'a> {
    path: &'a TruePath,
    direction: &'static str,
    samples: &'a [Sample],
    writes: Vec<(i64, i64)>,
}

impl Phase<'_> {
    /// From the first byte's write at `from` to the last byte's read at `until`.
    fn spend(&self, from: i64, until: i64, spent: &mut Spent) -> Option<()> {
        let elements = if self.direction == "forward" { &self.path.forward } else { &self.path.backward };
        let delay: i64 = elements
            .iter()
            .filter_map(|element| element.strip_prefix("delay "))
            .filter_map(|span| tcpwhy_twin::path::parse_duration(span).ok())
            .map(tcpwhy_wire::Duration::as_nanos)
            .sum();
        let delay = delay.min(until - from);
        spent.add(Class::Trip, delay);
        let (mut at, last) = (from, until - delay);
        let mut sent_to: Option<u32> = None;
        for row in self.rows(elements, from, last)? {
            let again = sent_to
                .is_some_and(|to| (row.seq.wrapping_add(row.payload as u32).wrapping_sub(to) as i32) <= 0);
            if !again {
                sent_to = Some(row.seq.wrapping_add(row.payload as u32));
            }
            if row.starts > at {
                self.idle(at, row.starts.min(last), again, spent);
                at = row.starts.min(last);
            }
            if !row.dropped && row.ends.min(last) > at {
                spent.add(Class::Bandwidth, row.ends.min(last) - at);
                at = row.ends.min(last);
            }
        }
        spent.any += (last - at).max(0);
        Some(())
    }

    /// The link had nothing to do from `from` to `until`: what held the sender?
    fn idle(&self, from: i64, until: i64, again: bool, spent: &mut Spent) {
        let ns = until - from;
        if ns < HOST_GAP_NS {
            spent.any += ns.max(0);
            return;
        }
        if again {
            spent.add(Class::Repair, ns);
            return;
        }
        // What stood in its way when the kernel was asked: in parts as often as that was, or as it was before.
        let first = self.samples.partition_point(|sample| sample.at_ns < from);
        let behind = self.samples.partition_point(|sample| sample.at_ns < until);
        let asked = &self.samples[if first < behind { first } else { first.saturating_sub(1) }..behind];
        for sample in asked {
            self.held(sample, ns / asked.len() as i64, spent);
        }
        if asked.is_empty() {
            spent.any += ns;
        }
    }

    /// The link had nothing to do for so long, and then got new data; meanwhile the sender's kernel said this.
    fn held(&self, sample: &Sample, ns: i64, spent: &mut Spent) {
        let info = &sample.tcp_info;
        let [unacked, cwnd, mss, unsent] = [info.unacked, info.snd_cwnd, info.snd_mss, info.notsent_bytes]
            .map(|value| i64::from(value.unwrap_or(0)));
        let writing = self.writes.iter().any(|(from, until)| (*from..*until).contains(&sample.at_ns));
        if info.ca_state.is_some_and(|state| state >= RECOVERY) {
            spent.recovery += ns;
        } else if unsent > 0 {
            let closed = info.snd_wnd.is_some_and(|window| (unacked + 1) * mss > i64::from(window));
            spent.add(if closed && unacked < cwnd { Class::Receiver } else { Class::Window }, ns);
        } else if !writing {
            spent.add(Class::App, ns);
        } else if unacked == 0 {
            spent.any += ns;
        } else if unacked >= cwnd {
            spent.full += ns;
        } else {
            spent.add(Class::SendBuffer, ns);
        }
    }

    /// The data packets of this direction that reached the path in this time, in their order.
    fn rows(&self, elements: &[String], from: i64, until: i64) -> Option<Vec<Row>> {
        let column = |name: &str| self.path.columns.iter().position(|column| column == name);
        let [direction, entered, seq, payload, dropped] =
            ["direction", "entered_ns", "seq", "payload", "dropped_by"].map(column);
        let (direction, entered, seq, payload, dropped) = (direction?, entered?, seq?, payload?, dropped?);
        let rate = elements.iter().position(|element| element.starts_with("rate "));
        let waits: Vec<usize> = rate
            .map_or(Some(Vec::new()), |rate| (0..=rate).map(|n| column(&format!("wait_{n}_ns"))).collect())?;
        let mut rows: Vec<Row> = self
            .path
            .packets
            .iter()
            .filter(|row| row[direction].as_str() == Some(self.direction))
            .filter_map(|row| {
                let number = |at: usize| row[at].as_i64();
                let payload = number(payload).filter(|payload| *payload > 0)?;
                let wait = |n: &usize| number(*n).unwrap_or(0);
                let (own, before) =
                    waits.split_last().map_or((0, &[][..]), |(own, before)| (wait(own), before));
                let starts = number(entered)? + before.iter().map(wait).sum::<i64>();
                let dropped = !row[dropped].is_null();
                Some(Row { starts, ends: starts + own, seq: number(seq)? as u32, payload, dropped })
            })
            .filter(|row| row.starts >= from - HOST_GAP_NS && row.starts <= until)
            .collect();
        rows.sort_by_key(|row| row.starts);
        Some(rows)
    }
}

/// TCP_CA_Recovery, include/uapi/linux/tcp.h.
const RECOVERY: u8 = 3;
