//! What can be done about the network between the two?

use super::{Fix, Stack, client, how, server};

/// Losses have a place; counters name it.
pub const FIND_DROPS: Fix = Fix {
    id: "find-drops",
    what: "Find where the packets are dropped: interface, queue, policer, or a full receive ring",
    caveat: None,
    how: &[
        how(
            Stack::Linux,
            "ethtool -S IF | grep -iE 'drop|miss|err'; tc -s qdisc show dev IF; nstat -az | grep -i retrans",
        ),
        how(
            Stack::Linux,
            "a policer drops bursts: shape below its rate (tc qdisc ... tbf or cake bandwidth)",
        ),
    ],
};

/// A host that is gone drops nothing on the way.
pub const FIND_SILENT: Fix = Fix {
    id: "find-silent-end",
    what: "Find out whether the other end is still there, and whether its acknowledgements find their way back",
    caveat: Some("Copies that pass a capture beside the receiver were not lost on the path."),
    how: &[
        how(Stack::Linux, "ping HOST; tracepath HOST; ip neigh: is its neighbour entry FAILED or STALE?"),
        how(Stack::Linux, "capture at the other end: do the copies arrive, and does it answer them?"),
    ],
};

/// Large packets are lost if a router's "too large" message does not get through.
pub const PATH_MTU: Fix = Fix {
    id: "path-mtu",
    what: "Let ICMP \"fragmentation needed\" (ICMPv6 \"packet too big\") through, or clamp the MSS at the start of the link with \
           the smaller MTU",
    caveat: Some("Usually a tunnel or VPN, whose headers leave less room for the packet."),
    how: &[
        how(Stack::Linux, "tracepath -n HOST shows the size that passes, and where a larger one is lost"),
        how(
            Stack::Linux,
            "on the router: nft add rule inet filter forward tcp flags syn tcp option maxseg size set rt mtu",
        ),
        how(
            Stack::Linux,
            "sysctl -w net.ipv4.tcp_mtu_probing=1 on the sender: it tries less after some timeouts",
        ),
        how(Stack::Linux, "ip route change PREFIX via GATEWAY dev IF mtu 1400 on the sender"),
    ],
};

/// Turns a 200 ms timeout into a repair within two round trips.
pub const KEEP_REPAIR: Fix = Fix {
    id: "fast-repair-on",
    what: "Make sure that SACK, RACK and tail loss probes are enabled at the sender (SACK at both ends)",
    caveat: Some("With a single segment in flight nothing is faster than the timeout."),
    how: &[how(
        Stack::Linux,
        "sysctl net.ipv4.tcp_sack net.ipv4.tcp_recovery net.ipv4.tcp_early_retrans (1, 1, 3)",
    )],
};

/// The minimum of the timer, per route.
pub const RTO_MIN: Fix = Fix {
    id: "rto-min",
    what: "Within a data centre: lower the minimum retransmission timeout on the sender's route",
    caveat: Some(
        "Keep it above the peer's longest acknowledgement delay (40 ms on Linux, 200 ms on old Windows) plus the round \
         trip, or it retransmits what was only acknowledged late.",
    ),
    how: &[how(Stack::Linux, "ip route change PREFIX via GATEWAY dev IF rto_min 60ms")],
};

/// SYNs die in firewalls and connection tables.
pub const SYN_DROPS: Fix = Fix {
    id: "find-syn-drops",
    what: "Find who drops the SYN or its answer: a firewall, a full connection-tracking table, a rate limit",
    caveat: None,
    how: &[
        how(
            Stack::Linux,
            "dmesg | grep 'nf_conntrack: table full'; conntrack -S; nft list ruleset; nstat -az TcpExtTCPReqQFullDrop",
        ),
        how(Stack::Linux, "capture at both ends: a SYN seen at one only was lost between them"),
    ],
};

/// Only having fewer of them helps.
pub const FEWER_ROUND_TRIPS: Fix = Fix {
    id: "fewer-round-trips",
    what: "Use fewer round trips: batch or pipeline requests, or run them in parallel",
    caveat: None,
    how: &[
        client(
            Stack::C,
            "send several requests before reading the first reply, where the protocol allows it",
        ),
        client(Stack::Java, "JDBC: addBatch; HTTP/2 with HttpClient.sendAsync; Lettuce pipelines by itself"),
        client(Stack::Go, "HTTP/2 (net/http over TLS does so) and goroutines; pgx.Batch; go-redis Pipeline"),
        client(Stack::Python, "asyncio.gather; executemany; redis-py pipeline()"),
        client(Stack::Node, "await Promise.all([...]) instead of one await after the other"),
        client(Stack::Rust, "futures::future::join_all; redis::pipe()"),
        client(Stack::Redis, "MGET, or a pipeline"),
        client(Stack::Postgres, "one statement for many rows; libpq's pipeline mode (14 and later)"),
        server(Stack::Nginx, "http2 on, so that clients ask for everything at once"),
    ],
};

/// Distance.
pub const CLOSER: Fix = Fix {
    id: "closer",
    what: "Move the two ends closer: a replica, cache or proxy near the client",
    caveat: None,
    how: &[server(Stack::Nginx, "proxy_cache on a host near the clients")],
};

/// Bytes that are not sent take no time.
pub const FEWER_BYTES: Fix = Fix {
    id: "fewer-bytes",
    what: "Send fewer bytes (compression, fewer fields, caching), or get a faster link",
    caveat: None,
    how: &[
        server(Stack::Nginx, "gzip on; gzip_types application/json text/css application/javascript;"),
        server(Stack::Apache, "mod_deflate: AddOutputFilterByType DEFLATE application/json text/html"),
        server(Stack::Haproxy, "compression algo gzip"),
    ],
};

/// A queue filled by other traffic.
pub const AQM: Fix = Fix {
    id: "aqm",
    what: "Find what fills the queue, and give the bottleneck fair queueing (fq_codel, cake)",
    caveat: Some(
        "It works only where the queue is: on the bottleneck's own interface, or by shaping just below its rate.",
    ),
    how: &[how(
        Stack::Linux,
        "tc -s qdisc show dev IF (backlog); tc qdisc replace dev IF root cake bandwidth 95mbit",
    )],
};
