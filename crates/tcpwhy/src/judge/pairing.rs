//! Which entry of the application's record is which exchange of the bill, and do their lengths
//! agree?

use std::fmt;
use std::ops::Range;

use tcpwhy_core::report::{Connection, Exchange, Kind};
use tcpwhy_core::{Report, Side};
use tcpwhy_lab::truth::{self, TrueConnection, TrueExchange, Truth};
use tcpwhy_wire::Duration;

use super::{End, TOLERANCE, TOLERANCE_PER_CENT};

/// A setup, exchange or one-way message present in both truth and bill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    /// Number of the connection in the bill.
    pub connection: u64,
    /// Number of the exchange in the bill.
    pub n: u64,
    /// Which of the three.
    pub kind: Kind,
    /// What the application measured.
    pub clocked: Duration,
    /// What was billed.
    pub billed: Duration,
    /// By how much the bill may be shorter for reasons outside of it: the client was still reading
    /// data that had arrived long before.
    less: Duration,
    /// By how much it may be longer: a one-way message is billed until its ACK has come back.
    more: Duration,
    /// By how much other programs on the machine made the path late, which a capture at the server
    /// cannot see.
    late: Duration,
}

impl Compared {
    /// Billed time minus clocked time.
    pub fn error(&self) -> Duration {
        self.billed - self.clocked
    }

    /// Whether bill and clock agree.
    pub fn is_right(&self) -> bool {
        !self.beyond().is_positive()
    }

    /// By how much the difference exceeds the tolerance.
    pub fn beyond(&self) -> Duration {
        let part = self.clocked.times(TOLERANCE_PER_CENT).divided_by(100);
        let tolerance = part.max(TOLERANCE);
        let error = self.error();
        let tolerance = tolerance + self.late;
        (error - self.more - tolerance).max(Duration::ZERO - error - self.less - tolerance)
    }
}

impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { connection, n, kind, clocked, billed, .. } = self;
        write!(f, "connection {connection}, {} {n}: took {clocked}, billed {billed}", kind.name())
    }
}

/// Pairs the exchanges of truth and bill, and names those without a partner.
pub fn pair(end: End, truth: &Truth, report: &Report) -> (Vec<Compared>, Vec<String>) {
    let (mut compared, mut unpaired) = (Vec::new(), Vec::new());
    // The client's address occurs more than once if a port is reused: both lists are in order of
    // time.
    let mut billed: Vec<&Connection> = report.connections.iter().collect();
    for clocked in &truth.connections {
        match billed.iter().position(|billed| billed.client.to_string() == clocked.client) {
            Some(at) => pair_connection(clocked, billed.remove(at), &mut compared, &mut unpaired),
            None => unpaired.push(format!("connection {} of the client is in no bill", clocked.client)),
        }
    }
    for connection in billed {
        unpaired.push(format!("the bill has a connection from {} that was not made", connection.client));
    }
    // How late the path was is in no packet of the server's capture; the client's has all of it.
    if end == End::Client {
        for pair in &mut compared {
            pair.late = Duration::ZERO;
        }
    }
    (compared, unpaired)
}

fn pair_connection(
    clocked: &TrueConnection,
    billed: &Connection,
    compared: &mut Vec<Compared>,
    unpaired: &mut Vec<String>,
) {
    let ns = Duration::from_nanos;
    let rtt = billed.rtt_min.unwrap_or_default();
    if let Some(setup) = billed.exchanges.first().filter(|bill| bill.kind == Kind::Setup) {
        compared.push(Compared {
            connection: billed.id,
            n: setup.n,
            kind: Kind::Setup,
            clocked: ns(clocked.setup.elapsed_ns),
            billed: setup.elapsed,
            less: Duration::ZERO,
            more: Duration::ZERO,
            late: ns(clocked.setup.path_late_ns),
        });
    } else if clocked.setup.error.is_none() {
        unpaired.push(format!("connection {}: no setup in the bill", billed.id));
    }
    for Stretch { clocked, bills, moved } in stretches(clocked, billed) {
        let (said, read) = (Sum::of_clocked(clocked), Sum::of_bills(bills));
        if moved[0] != moved[1] {
            let n = bills.first().map_or(0, |bill| bill.n);
            let [here, there] = moved;
            unpaired.push(format!(
                "connection {}, from {n} on: {} and {} B in the application's account, {} and {} B in the bill",
                billed.id, here[0], here[1], there[0], there[1]
            ));
        }
        if !clocked.is_empty() && !bills.is_empty() {
            compared.push(said.compare(billed.id, rtt, &read));
        }
    }
}

/// Consecutive exchanges that move the same bytes in both records. One may cut finer than the
/// other: a burst of requests, each answered separately, is one exchange for a client that writes
/// them all before it reads.
#[derive(Clone, Copy, Debug)]
pub struct Stretch<'a> {
    /// In the application's record.
    pub clocked: &'a [TrueExchange],
    /// In the bill.
    pub bills: &'a [Exchange],
    /// Request and reply bytes of each; they differ only at the end of a connection, where one
    /// record has more.
    pub moved: [[u64; 2]; 2],
}

/// Cuts both records of a connection, without its setup, where both have moved the same bytes.
pub fn stretches<'a>(clocked: &'a TrueConnection, billed: &'a Connection) -> Vec<Stretch<'a>> {
    let bills = match &billed.exchanges[..] {
        [setup, rest @ ..] if setup.kind == Kind::Setup => rest,
        all => all,
    };
    let (said, read): (Vec<_>, Vec<_>) =
        (clocked.exchanges.iter().map(moved_by_clocked).collect(), bills.iter().map(moved_by_bill).collect());
    let stretch = |(said, read, moved): (Range<usize>, Range<usize>, _)| Stretch {
        clocked: &clocked.exchanges[said],
        bills: &bills[read],
        moved,
    };
    cut(&said, &read).into_iter().map(stretch).collect()
}

/// Cuts the bills of both ends of a connection where both have moved the same bytes: one end may cut finer than the other.
pub(super) fn same_bytes<'a>(here: &'a [Exchange], there: &'a [Exchange]) -> Vec<[&'a [Exchange]; 2]> {
    let moved = |bills: &[Exchange]| bills.iter().map(moved_by_bill).collect::<Vec<_>>();
    let pairs = cut(&moved(here), &moved(there)).into_iter();
    pairs.map(|(here_at, there_at, _)| [&here[here_at], &there[there_at]]).collect()
}

/// Request and reply bytes.
type Moved = [u64; 2];
/// A range of each of two records, and the bytes that they move.
type Cut = (Range<usize>, Range<usize>, [Moved; 2]);

/// Cuts two records of moved bytes, request and reply, where their sums are equal; only the last
/// cut may differ.
fn cut(said: &[Moved], read: &[Moved]) -> Vec<Cut> {
    let accounts = [said, read];
    let mut cuts = Vec::new();
    let (mut from, mut to, mut moved) = ([0, 0], [0, 0], [[0, 0], [0, 0]]);
    let is_over = |to: [usize; 2], account: usize| to[account] == accounts[account].len();
    while !is_over(to, 0) || !is_over(to, 1) {
        let [said, read] = moved.map(|bytes: [u64; 2]| bytes.iter().sum::<u64>());
        let first_behind = said < read || (said == read && !is_over(to, 0));
        let account = usize::from(is_over(to, 0) || (!first_behind && !is_over(to, 1)));
        let more = accounts[account][to[account]];
        moved[account] = [moved[account][0] + more[0], moved[account][1] + more[1]];
        to[account] += 1;
        let is_last = is_over(to, 0) && is_over(to, 1);
        if is_last || (moved[0] == moved[1] && to[0] > from[0] && to[1] > from[1]) {
            cuts.push((from[0]..to[0], from[1]..to[1], moved));
            (from, moved) = (to, Default::default());
        }
    }
    cuts
}

/// The sum of one record's part of a stretch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    /// Number of the first exchange.
    n: u64,
    start_ns: i64,
    end_ns: i64,
    one_way: bool,
    /// How long the applications went on reading data that had arrived.
    reading_ns: i64,
    late_ns: i64,
}

impl Sum {
    fn of_clocked(clocked: &[TrueExchange]) -> Self {
        let (Some(first), Some(last)) = (clocked.first(), clocked.last()) else { return Self::default() };
        let one_way = last.kind == truth::Kind::OneWay;
        Self {
            n: first.n,
            start_ns: first.start_ns,
            end_ns: last.end_ns,
            one_way,
            reading_ns: last.think.client_reading_ns + if one_way { last.think.server_reading_ns } else { 0 },
            late_ns: clocked.iter().map(|clocked| clocked.path_late_ns).sum(),
        }
    }

    fn of_bills(bills: &[Exchange]) -> Self {
        let (Some(first), Some(last)) = (bills.first(), bills.last()) else { return Self::default() };
        Self {
            n: first.n,
            start_ns: first.start.as_nanos(),
            end_ns: last.start.as_nanos() + last.elapsed.as_nanos(),
            one_way: last.kind == Kind::OneWay,
            ..Self::default()
        }
    }

    fn compare(&self, connection: u64, rtt: Duration, read: &Self) -> Compared {
        let ns = Duration::from_nanos;
        let one_way = self.one_way || read.one_way;
        Compared {
            connection,
            n: read.n,
            kind: if one_way { Kind::OneWay } else { Kind::Exchange },
            clocked: ns(self.end_ns - self.start_ns),
            billed: ns(read.end_ns - read.start_ns),
            less: ns(self.reading_ns),
            more: if one_way { rtt + ACKNOWLEDGED_WITHIN } else { Duration::ZERO },
            late: ns(self.late_ns),
        }
    }
}

const fn moved_by_clocked(clocked: &TrueExchange) -> [u64; 2] {
    [clocked.request_bytes, clocked.reply_bytes]
}

/// A one-way message of the server moves reply bytes only, whatever the bill calls them.
const fn moved_by_bill(bill: &Exchange) -> [u64; 2] {
    match (bill.kind, bill.initiator) {
        (Kind::OneWay, Side::Server) => [0, bill.request_bytes + bill.reply_bytes],
        _ => [bill.request_bytes, bill.reply_bytes],
    }
}

/// How long a receiver may delay the ACK of a message's last byte: 200 ms on Windows.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use tcpwhy_lab::truth::{PerSide, Setup, Think};
    use tcpwhy_wire::{Endpoint, Instant};

    use super::*;

    /// `start elapsed request reply`, in ms and bytes.
    fn clocked(exchanges: &[[i64; 4]]) -> TrueConnection {
        let exchanges =
            exchanges.iter().zip(1..).map(|(&[start, elapsed, request, reply], n)| TrueExchange {
                n,
                kind: truth::Kind::Exchange,
                initiator: "client".to_owned(),
                start_ns: start * 1_000_000,
                end_ns: (start + elapsed) * 1_000_000,
                elapsed_ns: elapsed * 1_000_000,
                path_late_ns: 0,
                client_idle_ns: 0,
                request_bytes: request as u64,
                reply_bytes: reply as u64,
                request_writes: 1,
                reply_writes: 1,
                request_read_ns: None,
                reply_start_ns: None,
                reply_written_ns: None,
                reply_first_ns: None,
                think: Think::default(),
            });
        TrueConnection {
            client: "10.77.0.1:4000".to_owned(),
            server: "10.77.0.2:80".to_owned(),
            setup: Setup { error: Some("not looked at".to_owned()), ..Setup::default() },
            exchanges: exchanges.collect(),
            events: PerSide::default(),
            samples: PerSide::default(),
        }
    }

    fn billed(exchanges: &[[i64; 4]]) -> Connection {
        let exchanges = exchanges.iter().zip(1..).map(|(&[start, elapsed, request, reply], n)| Exchange {
            n,
            kind: Kind::Exchange,
            initiator: Side::Client,
            by: None,
            start: Instant::from_nanos(start * 1_000_000),
            elapsed: Duration::from_millis(elapsed),
            awaited: Duration::ZERO,
            client_idle: Duration::ZERO,
            request_bytes: request as u64,
            reply_bytes: reply as u64,
            packets: [1, 2],
            request: None,
            bill: Vec::new(),
        });
        Connection {
            id: 1,
            client: Endpoint::v4([10, 77, 0, 1], 4000),
            server: Endpoint::v4([10, 77, 0, 2], 80),
            assumed: false,
            vantage: tcpwhy_core::report::Vantage::Client,
            rtt_min: None,
            mss: [None, None],
            packets: 0,
            bytes: [0, 0],
            span: [Instant::from_nanos(0); 2],
            by_clock: Duration::ZERO,
            billed: 0,
            packet_range: [0, 0],
            bill: Vec::new(),
            exchanges: exchanges.collect(),
            ladder: Vec::new(),
            steps: None,
            ladder_omitted: 0,
            opening: tcpwhy_core::Opening::default(),
        }
    }

    fn paired(clocked_ms: &[[i64; 4]], billed_ms: &[[i64; 4]]) -> (Vec<(i64, i64, bool)>, Vec<String>) {
        let (mut compared, mut unpaired) = (Vec::new(), Vec::new());
        pair_connection(&clocked(clocked_ms), &billed(billed_ms), &mut compared, &mut unpaired);
        let ms = |span: Duration| span.as_nanos() / 1_000_000;
        (compared.iter().map(|c| (ms(c.clocked), ms(c.billed), c.is_right())).collect(), unpaired)
    }

    #[test]
    fn exchanges_are_compared_one_by_one() {
        let (compared, unpaired) =
            paired(&[[0, 40, 100, 64], [50, 40, 100, 64]], &[[0, 40, 100, 64], [50, 44, 100, 64]]);
        assert_eq!(compared, [(40, 40, true), (40, 44, false)]);
        assert!(unpaired.is_empty(), "{unpaired:?}");
    }

    #[test]
    fn a_burst_whose_replies_come_one_by_one_is_one_exchange_for_its_client() {
        let (compared, unpaired) = paired(
            &[[0, 80, 200, 200], [90, 10, 100, 100]],
            &[[0, 2, 100, 100], [3, 77, 100, 100], [90, 10, 100, 100]],
        );
        assert_eq!(compared, [(80, 80, true), (10, 10, true)]);
        assert!(unpaired.is_empty(), "{unpaired:?}");
    }

    #[test]
    fn bytes_that_only_one_account_has_are_named() {
        let (compared, unpaired) = paired(&[[0, 40, 100, 64]], &[[0, 40, 100, 60]]);
        assert_eq!(compared, [(40, 40, true)]);
        assert_eq!(
            unpaired,
            ["connection 1, from 1 on: 100 and 64 B in the application's account, 100 and 60 B in the bill"]
        );
    }
}
