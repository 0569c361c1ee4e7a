//! How does the sender's congestion window stop being the limit?

use super::{Fix, Stack, how};

/// `tcp_slow_start_after_idle_check`: the window is halved once per RTO of silence.
pub const SSAI_OFF: Fix = Fix {
    id: "slow-start-after-idle-off",
    what: "On the {side}'s host, keep the congestion window across idle periods: net.ipv4.tcp_slow_start_after_idle=0",
    caveat: Some(
        "After a pause a whole window enters a path that may have changed: right inside a data centre and on stable \
         paths. It changes nothing for BBR, which does not restart. Applies to connections of this network namespace.",
    ),
    how: &[
        how(Stack::Linux, "sysctl -w net.ipv4.tcp_slow_start_after_idle=0; keep it in /etc/sysctl.d"),
        how(
            Stack::Linux,
            "containers have their own: docker run --sysctl net.ipv4.tcp_slow_start_after_idle=0",
        ),
        how(
            Stack::Windows,
            "CwndRestart False is the default of the Internet template since Windows 10 1709",
        ),
    ],
};

/// BBR has its own model of the path: idle does not reset it, and single losses do not halve it.
pub const BBR: Fix = Fix {
    id: "bbr",
    what: "Try BBR as the {side}'s congestion control, and measure",
    caveat: Some(
        "It shares a bottleneck differently from CUBIC, and cold transfers are not faster. Needs tcp_bbr in the kernel.",
    ),
    how: &[
        how(Stack::C, "setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, \"bbr\", 3) on one socket"),
        how(
            Stack::Python,
            "sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b\"bbr\") on one socket",
        ),
        how(
            Stack::Linux,
            "sysctl -w net.ipv4.tcp_congestion_control=bbr, or ip route change ... congctl bbr",
        ),
    ],
};

/// The initial window is counted in segments (RFC 6928: 10).
pub const INITCWND: Fix = Fix {
    id: "initcwnd",
    what: "Raise the {side}'s initial congestion window on its route towards these peers",
    caveat: Some(
        "Helps messages of a few dozen segments on new connections. Kernels before 2.6.39 start with 3: raise those \
         to 10 first. Beyond that the first flight may overrun a slow link's queue; the receiver's first window \
         (64 KB) bounds what more can help.",
    ),
    how: &[how(Stack::Linux, "ip route change default via GATEWAY dev IF initcwnd 20 (ip route show first)")],
};

/// Something spaces the segments on purpose.
pub const PACING: Fix = Fix {
    id: "pacing-rate",
    what: "Find what paces the {side}: SO_MAX_PACING_RATE, a fq or tbf qdisc with a rate, or BBR's own estimate",
    caveat: Some("Pacing protects short queues: remove an unintended limit, not pacing itself."),
    how: &[
        how(Stack::C, "look for setsockopt(SO_MAX_PACING_RATE)"),
        how(
            Stack::Nginx,
            "limit_rate and proxy_limit_rate write in slices: they show as sender-think, not as pacing",
        ),
        how(Stack::Linux, "tc -s qdisc show dev IF; ss -tin shows pacing_rate and delivery_rate"),
    ],
};
