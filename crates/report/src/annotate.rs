//! What does Wireshark's packet list say about the waits? A comment at each packet that the text
//! cites, and at each that waited.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use tcpwhy_core::Cause;
use tcpwhy_core::report::{Connection, Exchange, Kind, Report, Rung, Servers, Trigger};
use tcpwhy_wire::Duration;

use crate::answer::{Class, class};
use crate::quantity::{per_mille, time};
use crate::text::{FINDINGS_SHOWN, is_shown};

/// Waits below this share of their exchange get no comment, unless they are cited.
const TOLD_PER_MILLE: u64 = 10;

/// Comments by packet number. `drawn` has connections of the report with their packets.
pub fn comments(report: &Report, drawn: &Report) -> BTreeMap<u64, String> {
    let mut notes = Notes::default();
    for again in &drawn.connections {
        let first = again.packet_range[0];
        if let Some(of) = report.connection_from(first) {
            again.ladder.iter().for_each(|rung| notes.waited(rung, of));
        }
    }
    for connection in &report.connections {
        for exchange in &connection.exchanges {
            notes.billed(connection, exchange);
        }
    }
    // Findings that the text shows have a number there.
    let mut shown = 1..;
    for finding in &report.findings {
        let number = is_shown(report, finding).then(|| shown.next()).flatten();
        let number = number.filter(|number| *number <= FINDINGS_SHOWN);
        let number = number.map_or_else(String::new, |number| format!("finding {number}: "));
        let whose = match finding.servers {
            Servers::One(server) => format!("{} of {server}", finding.side),
            servers @ Servers::Several(_) => format!("{}, {servers}", finding.side),
        };
        for packet in &finding.evidence {
            notes.add(*packet, &format!("shows {number}{}, {whose}", finding.cause));
        }
    }
    notes.0
}

#[derive(Default)]
struct Notes(BTreeMap<u64, String>);

impl Notes {
    fn add(&mut self, packet: u64, text: &str) {
        let note = self.0.entry(packet).or_default();
        let _ = if note.is_empty() { write!(note, "tcpwhy: {text}") } else { write!(note, "; {text}") };
    }

    /// What a packet waited for, and what released it.
    fn waited(&mut self, rung: &Rung, connection: &Connection) {
        let exchange = connection.exchanges.iter().find(|exchange| Some(exchange.n) == rung.exchange());
        let whole = exchange.map_or(Duration::ZERO, |exchange| exchange.elapsed);
        let told: Vec<String> = rung
            .billed
            .lines()
            .filter(|(_, span)| per_mille(*span, whole) >= TOLD_PER_MILLE)
            .map(|(cause, span)| held(cause, span))
            .collect();
        if told.is_empty() {
            return;
        }
        let released = match rung.trigger() {
            Trigger::Packet(packet) => format!("; released by frame {packet}"),
            Trigger::Timer => "; a timer expired".to_owned(),
            Trigger::Write | Trigger::Burst | Trigger::Control => String::new(),
        };
        self.add(rung.packet, &format!("{}{released}", told.join(", then ")));
    }

    /// The bill at an exchange's first packet, and comments at the packets that show its lines.
    fn billed(&mut self, connection: &Connection, exchange: &Exchange) {
        let name = match exchange.kind {
            Kind::Setup => "setup",
            Kind::Exchange => "exchange",
            Kind::OneWay => "one-way message",
            Kind::Subscription => "subscription",
        };
        let lines: Vec<String> =
            exchange.bill.iter().map(|line| format!("{} {}", line.cause, time(line.ns))).collect();
        let text = format!(
            "{name} {} of connection {} takes {}: {}",
            exchange.n,
            connection.id,
            time(exchange.elapsed),
            lines.join(", ")
        );
        self.add(exchange.packets[0], &text);
        for line in exchange.bill.iter().filter(|line| class(line.cause) != Class::Path) {
            for packet in &line.evidence {
                let text = format!("shows {} {} of {name} {}", line.cause, time(line.ns), exchange.n);
                self.add(*packet, &text);
            }
        }
    }
}

/// A wait in words, with its cause's name, which filters search for.
fn held(cause: Cause, span: Duration) -> String {
    let by = match cause {
        Cause::NagleDelayedAck => "held {} by Nagle and a delayed acknowledgement",
        Cause::Nagle => "held {} by Nagle",
        Cause::Cork => "held {} by a cork",
        Cause::DelayedAckCwnd => "held {} by a small congestion window and a delayed acknowledgement",
        Cause::SlowStart | Cause::SlowStartAfterIdle => "held {} by slow start",
        Cause::CongestionWindow => "held {} by the congestion window",
        Cause::ReceiveWindow => "held {} by the peer's receive window",
        Cause::ApplicationWindow => "held {} by the application protocol's window",
        Cause::SendBuffer => "held {} by the send buffer",
        Cause::Pacing => "held {} by pacing",
        Cause::Loss => "delayed {} by a loss",
        Cause::Rto | Cause::SynRetransmit => "retransmitted after a timeout, {} late",
        Cause::Queueing => "queued for {}",
        Cause::ServerThink | Cause::SenderThink => "the application took {}",
        Cause::ReceiverThink => "waited {} for the peer's application to read",
        Cause::RoundTrip | Cause::Handshake | Cause::TlsHandshake => "in transit for {}",
        Cause::Bandwidth => "on the slowest link for {}",
        Cause::Unexplained => "unexplained delay of {}",
    };
    format!("{} ({cause})", by.replace("{}", &time(span)))
}
