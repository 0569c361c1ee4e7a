//! What does a port number say about who listens there?

/// Where Linux's ephemeral ports begin (ip_local_port_range); IANA's begin at 49152 (RFC 6335, 6).
const EPHEMERAL_MIN: u16 = 32_768;
/// Listening at a port up to this needs privileges, and clients do not use one.
const WELL_KNOWN_MAX: u16 = 1_023;
/// Services that listen above that, registered or by default; some hosts begin their ephemeral ports at 1025
/// (BSD, Windows before Vista). Databases and caches, brokers, remote desktops, HTTP beside 80, directories,
/// industrial protocols, and above 32,768 MySQL X, EtherNet/IP, Db2, gRPC, Hadoop, STOMP and ActiveMQ. In
/// order.
const SERVICES: &[u16] = &[
    1_080, 1_099, 1_194, 1_433, 1_521, 1_883, 2_049, 2_181, 2_375, 2_376, 2_379, 2_404, 3_000, 3_128, 3_260,
    3_268, 3_306, 3_389, 4_222, 4_369, 4_840, 5_000, 5_060, 5_222, 5_269, 5_432, 5_672, 5_900, 5_984, 5_985,
    6_379, 6_443, 6_667, 7_000, 7_687, 8_000, 8_008, 8_080, 8_081, 8_086, 8_088, 8_443, 8_883, 8_888, 9_000,
    9_042, 9_090, 9_092, 9_200, 9_300, 9_418, 10_000, 11_211, 15_672, 20_000, 25_565, 26_257, 27_017, 33_060,
    33_061, 44_818, 50_000, 50_010, 50_020, 50_051, 50_070, 50_075, 50_090, 61_613, 61_614, 61_616,
];

/// Ports of services that speak TLS from the first byte. Source: the registry of service names (IANA), and
/// what brokers and databases document.
const SECURED: [u16; 27] = [
    443, 465, 563, 636, 853, 989, 990, 992, 993, 994, 995, 2_376, 3_269, 5_061, 5_223, 5_349, 5_671, 5_986,
    6_443, 6_697, 8_443, 8_883, 9_093, 9_443, 11_207, 61_614, 61_617,
];

/// RFC 4253, 9.
pub(crate) const SSH: u16 = 22;

/// Whether a service at this port speaks TLS.
pub(crate) fn speaks_tls(port: u16) -> bool {
    SECURED.binary_search(&port).is_ok()
}

/// How likely a port is to be a server's.
pub(crate) fn rank(port: u16) -> u8 {
    match port {
        _ if port <= WELL_KNOWN_MAX || SERVICES.binary_search(&port).is_ok() => 2,
        _ if port < EPHEMERAL_MIN => 1,
        _ => 0,
    }
}

/// Whether neither of two ports is more likely to be a server's, and neither is known to be one.
pub(crate) fn says_nothing(ports: [u16; 2]) -> bool {
    let [one, other] = ports.map(rank);
    one == other && one < 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_in_order() {
        assert!(SECURED.is_sorted());
        assert!(SERVICES.is_sorted() && SERVICES.iter().all(|&port| port > WELL_KNOWN_MAX));
    }
}
