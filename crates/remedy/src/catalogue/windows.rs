//! How does a window stop being the limit? Mostly by leaving it to the kernel.

use super::{Fix, Stack, client, how, server};

/// Setting the buffer turns its growth off (`SOCK_RCVBUF_LOCK`, `tcp_rcv_space_adjust`).
pub const NO_RCVBUF: Fix = Fix {
    id: "no-rcvbuf",
    what: "Do not set SO_RCVBUF on the {side}'s socket: then the kernel grows the window as far as the path needs",
    caveat: Some(
        "Only if it is set: `ss -tm` shows the buffer as rb. As large as tcp_rmem's third value, autotuning has met that; \
         smaller and not growing, it is set (getsockopt(SO_BUF_LOCK), Linux 5.15, says 2).",
    ),
    how: &[
        how(
            Stack::C,
            "remove setsockopt(SO_RCVBUF); a running socket: setsockopt(SO_BUF_LOCK, 0), Linux 5.15",
        ),
        how(Stack::Java, "no setReceiveBufferSize; Netty: no SO_RCVBUF; Kafka: receive.buffer.bytes=-1"),
        how(Stack::Go, "no SetReadBuffer on the TCPConn"),
        how(Stack::Python, "no setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, ...)"),
        how(Stack::Node, "Node sets none on TCP: look in native add-ons and in the proxy between"),
        how(Stack::Rust, "no set_recv_buffer_size (socket2, tokio::net::TcpSocket)"),
        server(Stack::Nginx, "no rcvbuf= on listen"),
        server(Stack::Apache, "ReceiveBufferSize 0 (the default)"),
        server(Stack::Haproxy, "no tune.rcvbuf.client"),
        client(Stack::Haproxy, "no tune.rcvbuf.server"),
    ],
};

/// The ceiling of autotuning.
pub const RAISE_RMEM: Fix = Fix {
    id: "raise-tcp-rmem",
    what: "Raise the {side}'s ceiling for receive windows: the third value of net.ipv4.tcp_rmem",
    caveat: Some(
        "Only if `ss -tm` shows a buffer (rb) as large as that value: about twice bandwidth x round trip, the kernel counts \
         its own overhead into it. A smaller one that does not grow was set by SO_RCVBUF.",
    ),
    how: &[how(
        Stack::Linux,
        "sysctl -w net.ipv4.tcp_rmem=\"4096 131072 33554432\" (per network namespace; new connections)",
    )],
};

/// Without the option on both SYNs a window ends at 65,535 bytes (RFC 7323, 2.2).
pub const WINDOW_SCALING: Fix = Fix {
    id: "window-scaling",
    what: "Give the connection window scaling: without it a window cannot pass 65,535 bytes",
    caveat: Some(
        "Both SYNs must carry the option. A host that has it on and a SYN that lost it mean a middlebox.",
    ),
    how: &[
        how(Stack::Linux, "sysctl -w net.ipv4.tcp_window_scaling=1 (the default) at both ends"),
        how(Stack::Windows, "netsh interface tcp set global autotuninglevel=normal"),
        how(Stack::C, "an SO_RCVBUF of 32 KB or less gives scale 0: do not set it before connect or listen"),
    ],
};

/// While a window grows, only a connection that is already open has a large one.
pub const KEEP_WINDOW: Fix = Fix {
    id: "keep-connection",
    what: "Reuse connections: a window that has opened stays open",
    caveat: None,
    how: crate::catalogue::connection::REUSE.how,
};

/// A locked send buffer limits the flight as a window does.
pub const NO_SNDBUF: Fix = Fix {
    id: "no-sndbuf",
    what: "Do not set SO_SNDBUF on the {side}'s socket: then the kernel grows it with the congestion window",
    caveat: None,
    how: &[
        how(Stack::C, "remove setsockopt(SO_SNDBUF); to bound what is queued unsent use TCP_NOTSENT_LOWAT"),
        how(Stack::Java, "no setSendBufferSize; Netty: no SO_SNDBUF; Kafka: send.buffer.bytes=-1"),
        how(Stack::Go, "no SetWriteBuffer on the TCPConn"),
        how(Stack::Python, "no setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, ...)"),
        how(Stack::Node, "Node sets none on TCP: look in native add-ons and in the proxy between"),
        how(Stack::Rust, "no set_send_buffer_size (socket2, tokio::net::TcpSocket)"),
        server(Stack::Nginx, "no sndbuf= on listen"),
        server(Stack::Apache, "SendBufferSize 0 (the default)"),
        server(Stack::Haproxy, "no tune.sndbuf.client"),
        client(Stack::Haproxy, "no tune.sndbuf.server"),
    ],
};

/// The ceiling of the send buffer's growth.
pub const RAISE_WMEM: Fix = Fix {
    id: "raise-tcp-wmem",
    what: "If nothing sets it: raise the {side}'s ceiling for send buffers, the third value of net.ipv4.tcp_wmem",
    caveat: Some(
        "Only if `ss -tm` shows a send buffer (tb) as large as that value. Allow about twice bandwidth x round trip, as the \
         kernel includes its own overhead. A smaller one that does not grow was set with SO_SNDBUF.",
    ),
    how: &[how(Stack::Linux, "sysctl -w net.ipv4.tcp_wmem=\"4096 16384 16777216\" (per network namespace)")],
};
