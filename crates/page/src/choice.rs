//! Which connections are drawn packet by packet?
//!
//! Those of the exchanges that best show a finding, in the order of cost, then the most expensive
//! ones, as far as there is room.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tcpwhy_core::LADDERS_MAX;
use tcpwhy_core::report::{Connection, Report};
use tcpwhy_wire::Endpoint;

/// Packets drawn in total, approximately: a packet takes some 10 bytes of the file.
const PACKETS_MAX: u64 = 120_000;
/// Fewer for a short capture, so that drawing takes only a part of the time of reading, but not
/// fewer than this.
const PACKETS_MIN: u64 = 60_000;
const SHARE: u64 = 12;

/// A connection to be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its number.
    pub id: u64,
    /// Its first packet, by which a second pass identifies it, and its last one.
    pub first_packet: u64,
    /// See `first_packet`.
    pub last_packet: u64,
    /// Number of packets.
    pub packets: u64,
    /// Its ends.
    pub ends: [Endpoint; 2],
    /// Which end is the client was guessed from the rest of the capture: a second pass needs that
    /// too.
    pub assumed: bool,
}

impl Choice {
    /// A connection of a report.
    pub fn of(connection: &Connection) -> Self {
        Self {
            id: connection.id,
            first_packet: connection.packet_range[0],
            last_packet: connection.packet_range[1],
            packets: connection.packets,
            ends: [connection.client, connection.server],
            assumed: connection.assumed,
        }
    }
}

/// The connections to draw, most important first.
pub fn chosen(report: &Report) -> Vec<Choice> {
    // Only the first few are needed, so the others are not sorted.
    let by_cost = report.connections.iter().enumerate();
    let mut by_cost: BinaryHeap<_> =
        by_cost.map(|(at, connection)| (connection.cost(), Reverse(at))).collect();
    let by_cost = std::iter::from_fn(|| by_cost.pop()).map(|(_, Reverse(at))| &report.connections[at]);
    let of_findings = report.findings.iter().filter_map(|finding| report.connection(finding.worst.0));
    let mut out: Vec<Choice> = Vec::new();
    let most = (report.segments / SHARE).clamp(PACKETS_MIN, PACKETS_MAX);
    let mut packets = 0;
    for connection in of_findings.chain(by_cost) {
        if out.len() == LADDERS_MAX {
            break;
        }
        let is_new = out.iter().all(|choice| choice.id != connection.id);
        let has_room = out.is_empty() || packets + connection.packets <= most;
        if is_new && has_room {
            packets += connection.packets;
            out.push(Choice::of(connection));
        }
    }
    out
}
