//! Which line of the application's account is which exchange of the bill, and do their lengths agree?

use std::fmt;

use tcpwhy_core::Report;
use tcpwhy_core::report::{Connection, Exchange, Kind};
use tcpwhy_lab::truth::{self, TrueConnection, TrueExchange, Truth};
use tcpwhy_wire::Duration;

use super::{TOLERANCE, TOLERANCE_PER_CENT};

/// A setup, exchange or one-way message that truth and bill both have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    /// Number of the connection in the bill.
    pub connection: u64,
    /// Number of the exchange in the bill.
    pub n: u64,
    /// Which of the three.
    pub kind: Kind,
    /// What the application felt.
    pub felt: Duration,
    /// What was billed.
    pub billed: Duration,
    /// By how much the bill may be shorter for reasons that are not its own: the client went on reading what had long
    /// arrived.
    less: Duration,
    /// By how much it may be longer: a one-way message is billed until its acknowledgement has come back.
    more: Duration,
}

impl Compared {
    /// Billed less felt.
    pub fn error(&self) -> Duration {
        self.billed - self.felt
    }

    /// Whether bill and clock agree.
    pub fn is_right(&self) -> bool {
        !self.beyond().is_positive()
    }

    /// By how much the difference exceeds what is allowed.
    pub fn beyond(&self) -> Duration {
        let part = self.felt.times(TOLERANCE_PER_CENT).divided_by(100);
        let tolerance = part.max(TOLERANCE);
        let error = self.error();
        (error - self.more - tolerance).max(Duration::ZERO - error - self.less - tolerance)
    }
}

impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { connection, n, kind, felt, billed, .. } = self;
        write!(f, "connection {connection}, {} {n}: felt {felt}, billed {billed}", kind.name())
    }
}

/// Pairs the exchanges of truth and bill, and names those that have no partner.
pub fn pair(truth: &Truth, report: &Report) -> (Vec<Compared>, Vec<String>) {
    let (mut compared, mut unpaired) = (Vec::new(), Vec::new());
    // The client's address comes back where a port is used again: both sides are in order of time.
    let mut billed: Vec<&Connection> = report.connections.iter().collect();
    for felt in &truth.connections {
        match billed.iter().position(|billed| billed.client.to_string() == felt.client) {
            Some(at) => pair_connection(felt, billed.remove(at), &mut compared, &mut unpaired),
            None => unpaired.push(format!("connection {} of the client is in no bill", felt.client)),
        }
    }
    for connection in billed {
        unpaired.push(format!("the bill has a connection from {} that was not made", connection.client));
    }
    (compared, unpaired)
}

fn pair_connection(
    felt: &TrueConnection,
    billed: &Connection,
    compared: &mut Vec<Compared>,
    unpaired: &mut Vec<String>,
) {
    let ns = Duration::from_nanos;
    let rtt = billed.rtt_min.unwrap_or_default();
    let mut bills = billed.exchanges.iter().peekable();
    if let Some(setup) = bills.next_if(|bill| bill.kind == Kind::Setup) {
        compared.push(Compared {
            connection: billed.id,
            n: setup.n,
            kind: Kind::Setup,
            felt: ns(felt.setup.elapsed_ns),
            billed: setup.elapsed,
            less: Duration::ZERO,
            more: Duration::ZERO,
        });
    } else if felt.setup.error.is_none() {
        unpaired.push(format!("connection {}: no setup in the bill", billed.id));
    }
    let bills: Vec<&Exchange> = bills.collect();
    if bills.len() != felt.exchanges.len() {
        unpaired.push(format!(
            "connection {}: {} in the application's account, {} in the bill",
            billed.id,
            kinds(felt.exchanges.iter().map(|felt| kind(felt.kind))),
            kinds(bills.iter().map(|bill| bill.kind))
        ));
        return;
    }
    for (felt, bill) in felt.exchanges.iter().zip(bills) {
        let described = |kind: Kind, request, reply| format!("{} of {request} and {reply} B", kind.name());
        let (said, read) = (
            described(kind(felt.kind), felt.request_bytes, felt.reply_bytes),
            described(bill.kind, bill.request_bytes, bill.reply_bytes),
        );
        if said != read {
            unpaired.push(format!("connection {}, {}: {said} in truth, {read} in the bill", billed.id, bill.n));
        }
        compared.push(compare(billed.id, rtt, felt, bill));
    }
}

fn compare(connection: u64, rtt: Duration, felt: &TrueExchange, bill: &Exchange) -> Compared {
    let ns = Duration::from_nanos;
    let one_way = bill.kind == Kind::OneWay;
    Compared {
        connection,
        n: bill.n,
        kind: bill.kind,
        felt: ns(felt.elapsed_ns),
        billed: bill.elapsed,
        less: ns(felt.think.client_reading_ns + if one_way { felt.think.server_reading_ns } else { 0 }),
        more: if one_way { rtt + ACKNOWLEDGED_WITHIN } else { Duration::ZERO },
    }
}

/// How long a receiver may hold back the acknowledgement of a message's last byte: Windows' 200 ms.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_millis(200);

const fn kind(kind: truth::Kind) -> Kind {
    match kind {
        truth::Kind::Exchange => Kind::Exchange,
        truth::Kind::OneWay => Kind::OneWay,
    }
}

/// `40 exchanges, 1 one-way`
fn kinds(kinds: impl Iterator<Item = Kind>) -> String {
    let (mut exchanges, mut one_way) = (0_u64, 0_u64);
    kinds.for_each(|kind| *(if kind == Kind::OneWay { &mut one_way } else { &mut exchanges }) += 1);
    format!("{exchanges} exchanges and {one_way} one-way messages")
}
