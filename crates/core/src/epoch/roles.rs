//! Which end of a connection is the client, if the capture may start later than the connection?

use tcpwhy_wire::{Endpoint, Segment};

use crate::flow::ports::rank;

/// Client and server. The client sent the SYN; without one, the server is the end known to accept
/// connections, or else the one with a service's port, or else the end that sends data second, or the
/// lower port if there is no data yet.
pub(super) fn roles(first: &Segment, accepts: impl Fn(Endpoint, Endpoint) -> bool) -> [Endpoint; 2] {
    let ends = [first.src, first.dst];
    let turned = [first.dst, first.src];
    match (first.flags.syn(), first.flags.ack()) {
        (true, false) => return ends,
        (true, true) => return turned,
        _ => {}
    }
    let accept = [accepts(first.dst, first.src), accepts(first.src, first.dst)];
    let serve = [first.src.port, first.dst.port].map(rank);
    let from_client = match (accept, serve) {
        ([from, to], _) if from != to => to,
        (_, [from, to]) if from != to => to > from,
        // Neither port says anything: the first data heard is hardly ever a reply.
        (_, [0 | 1, _]) if first.payload_len > 0 => true,
        _ if first.src.port == first.dst.port => first.payload_len > 0,
        _ => first.src.port > first.dst.port,
    };
    if from_client { ends } else { turned }
}
