//! How much of the time is right? The project's own goals, summed over many recordings: how much
//! lies in the range that its scenario states, how much is unexplained, what controls were charged,
//! and whether both ends and the kernel agree.

use std::collections::BTreeMap;
use std::fmt;

use tcpwhy_core::report::Connection;
use tcpwhy_core::{Cause, Report, Side};
use tcpwhy_lab::scenario::Expect;
use tcpwhy_lab::truth::{TrueConnection, Truth};
use tcpwhy_lab::workload::Sample;
use tcpwhy_wire::Duration;

use super::ends::Ends;
use super::{End, Verdict, elapsed, kind_of, share, spent};

/// Bill and kernel may differ by this on a connection, or by `KERNEL_PER_CENT` of the kernel's
/// count.
const KERNEL: Duration = Duration::from_millis(4);
const KERNEL_PER_CENT: i64 = 10;
/// A path that was late by half of that showed the two ends different windows, and charged controls
/// for it.
const KERNEL_LATE: Duration = Duration::from_millis(2);
/// A scenario that states at least this share of its time, and no mechanism, is a control.
const STATED_MIN: f64 = 0.85;
/// Causes that are not mechanisms: the time of a program, a path or a handshake.
const NO_MECHANISM: [Cause; 7] = [
    Cause::RoundTrip,
    Cause::Handshake,
    Cause::TlsHandshake,
    Cause::Bandwidth,
    Cause::ServerThink,
    Cause::SenderThink,
    Cause::Unexplained,
];

/// Sums over recordings.
#[derive(Clone, Debug, Default)]
pub struct Criteria {
    /// Time of the kinds of exchanges for which something is expected, and how much of it lies
    /// outside its range.
    expected: Duration,
    wrong: Duration,
    /// What was expected, and what was billed instead.
    confused: BTreeMap<(String, String), Duration>,
    billed: Duration,
    unexplained: Duration,
    controls: u64,
    /// The control with the largest share charged to a mechanism, and that share.
    worst_control: Option<(String, Cause, f64)>,
    /// The same among those whose path was punctual.
    worst_punctual: Option<(String, Cause, f64)>,
    ends: Ends,
    /// Connections for which kernel and bill both report a window or send buffer limit, and those
    /// on which they differ.
    counters: u64,
    off: Vec<String>,
    /// The same two counts for connections whose path was punctual.
    punctual: [usize; 2],
}

impl Criteria {
    /// Adds one end's bill of a recording.
    pub fn add(&mut self, name: &str, truth: &Truth, verdict: &Verdict, report: &Report, expect: &Expect) {
        if expect.visible.as_ref().is_some_and(|visible| visible != verdict.end.name()) {
            return;
        }
        self.billed += report.elapsed;
        self.unexplained += spent(report, None, Cause::Unexplained, Side::Unknown);
        let mut kinds: Vec<_> = verdict.causes.iter().map(|cause| kind_of(&cause.expected)).collect();
        kinds.sort_unstable();
        kinds.dedup();
        for kind in kinds {
            let whole = elapsed(report, kind);
            let of_share = |share: f64| Duration::from_nanos((whole.as_nanos() as f64 * share) as i64);
            let (mut missing, mut beyond) = (0.0, 0.0);
            for cause in verdict.causes.iter().filter(|cause| kind_of(&cause.expected) == kind) {
                let range = cause.expected.share;
                let short = (range.min - cause.share).max(0.0);
                missing += short;
                beyond += (cause.share - range.max).max(0.0);
                if short > 0.0
                    && let Some((instead, side, _)) = cause.instead
                {
                    let was = format!("{} ({})", cause.expected.cause, cause.expected.side);
                    *self.confused.entry((was, format!("{instead} ({side})"))).or_default() +=
                        of_share(short);
                }
            }
            self.expected += whole;
            self.wrong += of_share(f64::max(missing, beyond));
        }
        let late = truth.connections.iter().map(worst_lateness).fold(Duration::ZERO, Duration::max);
        self.add_control(name, late <= KERNEL_LATE, verdict, report);
    }

    /// A control is a scenario that states the causes of nearly all of its time, none of which is a
    /// mechanism.
    fn add_control(&mut self, name: &str, is_punctual: bool, verdict: &Verdict, report: &Report) {
        let mechanism = |cause: Cause| !NO_MECHANISM.contains(&cause);
        let expected = |name: &str| name.parse().is_ok_and(mechanism);
        let causes = &verdict.causes;
        let stated: f64 = causes.iter().map(|cause| cause.expected.share.min).sum();
        if stated < STATED_MIN || causes.iter().any(|cause| expected(&cause.expected.cause)) {
            return;
        }
        self.controls += 1;
        for cause in Cause::ALL.into_iter().filter(|cause| mechanism(*cause)) {
            let sides = [Side::Client, Side::Server, Side::Path, Side::Unknown];
            let ns = sides.map(|side| spent(report, None, cause, side)).into_iter().sum();
            let charged = share(report.elapsed, ns);
            let worst = [Some(&mut self.worst_control), is_punctual.then_some(&mut self.worst_punctual)];
            for worst in worst.into_iter().flatten() {
                if worst.as_ref().is_none_or(|(_, _, most)| charged > *most) {
                    *worst = Some((format!("{name} at the {}", verdict.end), cause, charged));
                }
            }
        }
    }

    /// Compares both ends' bills of a recording, exchange by exchange.
    pub fn add_ends(&mut self, name: &str, truth: &Truth, client: &Report, server: &Report) {
        self.ends.add(name, truth, client, server);
    }

    /// Compares a bill with the kernel's counters of each socket (tcpi_rwnd_limited and
    /// tcpi_sndbuf_limited).
    pub fn add_kernel(&mut self, name: &str, end: End, truth: &Truth, report: &Report) {
        for clocked in &truth.connections {
            let same = |bill: &&Connection| bill.client.to_string() == clocked.client;
            let Some(bill) = report.connections.iter().find(same) else { continue };
            let off_before = self.off.len();
            let counters_before = self.counters;
            for (side, peer) in [(Side::Client, Side::Server), (Side::Server, Side::Client)] {
                let window = [(Cause::ReceiveWindow, peer), (Cause::ReceiverThink, peer)];
                let counted = [
                    limited(clocked, side, |info| info.rwnd_limited),
                    limited(clocked, side, |info| info.sndbuf_limited),
                ];
                let ours = [charged(bill, &window), charged(bill, &[(Cause::SendBuffer, side)])];
                for ((what, counted), ours) in
                    ["receive window", "send buffer"].into_iter().zip(counted).zip(ours)
                {
                    let Some(counted) = counted.filter(|ns| *ns > KERNEL && ours > KERNEL) else { continue };
                    self.counters += 1;
                    if (counted - ours).max(ours - counted)
                        > KERNEL.max(counted.times(KERNEL_PER_CENT).divided_by(100))
                    {
                        self.off.push(format!(
                            "{name} at the {end}: {what} of the {side}'s data: kernel {counted}, bill {ours}"
                        ));
                    }
                }
            }
            if worst_lateness(clocked) <= KERNEL_LATE {
                let counted = (self.counters - counters_before) as usize;
                let off = self.off.len() - off_before;
                self.punctual = [self.punctual[0] + counted, self.punctual[1] + off];
            }
        }
    }

    /// What was expected, what was billed instead, and for how much time: largest first.
    pub fn confused(&self) -> Vec<(&str, &str, Duration)> {
        let mut rows: Vec<_> =
            self.confused.iter().map(|((was, instead), ns)| (was.as_str(), instead.as_str(), *ns)).collect();
        rows.sort_by_key(|(_, _, ns)| std::cmp::Reverse(*ns));
        rows
    }

    /// Where the ends differ, in words: recordings with a punctual path first, then by most time.
    pub fn apart(&self) -> Vec<String> {
        self.ends.apart()
    }

    /// Where bill and kernel differ, in words.
    pub fn off(&self) -> &[String] {
        &self.off
    }
}

impl fmt::Display for Criteria {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per_cent = |part, whole| 100.0 * share(whole, part);
        writeln!(
            f,
            "{:.2} % of {} within what the scenarios state; {:.2} % of {} unexplained",
            100.0 - per_cent(self.wrong, self.expected),
            self.expected,
            per_cent(self.unexplained, self.billed),
            self.billed
        )?;
        if let Some((name, cause, most)) = &self.worst_control {
            writeln!(
                f,
                "{} bills of controls; the most that a mechanism was charged: {cause} {:.1} %, {name}",
                self.controls,
                100.0 * most
            )?;
        }
        if let Some((name, cause, most)) = &self.worst_punctual {
            let most = 100.0 * most;
            writeln!(f, "where the path was late by {KERNEL_LATE} at most: {cause} {most:.1} %, {name}")?;
        }
        writeln!(f, "{}", self.ends)?;
        writeln!(
            f,
            "bill and kernel agree on {} of {} windows and send buffers (within 10 % or 4 ms)",
            self.counters - self.off.len() as u64,
            self.counters
        )?;
        let [counters, off] = self.punctual;
        writeln!(f, "where the path was late by {KERNEL_LATE} at most, on {} of {counters}", counters - off)
    }
}

/// The most by which the path was late in a connection.
fn worst_lateness(clocked: &TrueConnection) -> Duration {
    let exchanges = clocked.exchanges.iter().map(|clocked| clocked.path_late_ns);
    Duration::from_nanos(exchanges.fold(clocked.setup.path_late_ns, i64::max))
}

fn charged(connection: &Connection, causes: &[(Cause, Side)]) -> Duration {
    let lines = connection.exchanges.iter().flat_map(|exchange| &exchange.bill);
    lines.filter(|line| causes.contains(&(line.cause, line.side))).map(|line| line.ns).sum()
}

/// By how much a socket's counter grew over the connection; `None` if the kernel does not report
/// it.
fn limited(
    clocked: &TrueConnection,
    side: Side,
    counter: fn(&tcpwhy_host::TcpInfo) -> Option<u64>,
) -> Option<Duration> {
    let samples: &[Sample] =
        if side == Side::Client { &clocked.samples.client } else { &clocked.samples.server };
    let [first, .., last] = samples else { return None };
    let us = counter(&last.tcp_info)?.saturating_sub(counter(&first.tcp_info)?);
    Some(Duration::from_micros(i64::try_from(us).unwrap_or(i64::MAX)))
}
