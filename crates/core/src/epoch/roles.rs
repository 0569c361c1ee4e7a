//! Which end of a connection is the client, where the capture may start later than the connection?

use tcpwhy_wire::{Endpoint, Segment};

/// Where the ephemeral ports of Linux begin (ip_local_port_range); those of IANA do at 49152 (RFC 6335, 6).
const EPHEMERAL_MIN: u16 = 32_768;
/// Services that listen above that, by their registration or their default: MySQL X, EtherNet/IP, Db2, gRPC, Hadoop,
/// STOMP and ActiveMQ. In order.
const SERVICES: &[u16] =
    &[33_060, 33_061, 44_818, 50_000, 50_010, 50_020, 50_051, 50_070, 50_075, 50_090, 61_613, 61_614, 61_616];

/// Client and server: who sent the SYN; else who is known to accept connections, then who has a service's port is the server; then who
/// is heard second, and where nothing was said yet, who has the lower port.
pub(super) fn roles(first: &Segment, accepts: impl Fn(Endpoint, Endpoint) -> bool) -> [Endpoint; 2] {
    let ends = [first.src, first.dst];
    let turned = [first.dst, first.src];
    match (first.flags.syn(), first.flags.ack()) {
        (true, false) => return ends,
        (true, true) => return turned,
        _ => {}
    }
    let accept = [accepts(first.dst, first.src), accepts(first.src, first.dst)];
    let serve = [first.src.port, first.dst.port].map(serves);
    let from_client = match (accept, serve) {
        ([from, to], _) if from != to => to,
        (_, [from, to]) if from != to => to,
        // Neither port says anything: who is heard first hardly ever answers.
        (_, [false, false]) if first.payload_len > 0 => true,
        _ if first.src.port == first.dst.port => first.payload_len > 0,
        _ => first.src.port > first.dst.port,
    };
    if from_client { ends } else { turned }
}

fn serves(port: u16) -> bool {
    port < EPHEMERAL_MIN || SERVICES.binary_search(&port).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_in_order() {
        assert!(SERVICES.is_sorted() && SERVICES.iter().all(|&port| port >= EPHEMERAL_MIN));
    }
}
