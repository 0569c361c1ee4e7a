//! What can be done if TCP waits for a program?

use super::{Fix, Stack, how, server};

/// TCP has nothing to fix here.
pub const PROFILE_SERVER: Fix = Fix {
    id: "profile-server",
    what: "Profile the server: it had the request and had not yet written the reply. No TCP setting changes this",
    caveat: None,
    how: &[
        server(Stack::C, "perf record -g -p PID; strace -f -tt -p PID shows the recv and the late send"),
        server(Stack::Java, "a profile with Java Flight Recorder or async-profiler (wall clock); GC logs"),
        server(Stack::Go, "net/http/pprof and runtime/trace"),
        server(Stack::Python, "py-spy record --pid PID; is another request holding the worker?"),
        server(Stack::Node, "node --cpu-prof; perf_hooks.monitorEventLoopDelay()"),
        server(Stack::Rust, "perf record -g; tokio-console for tasks that wait"),
        server(
            Stack::Nginx,
            "log $request_time against $upstream_response_time: nginx itself or its upstream?",
        ),
        server(Stack::Postgres, "log_min_duration_statement, pg_stat_statements, EXPLAIN (ANALYZE, BUFFERS)"),
        server(Stack::Redis, "SLOWLOG GET; LATENCY DOCTOR"),
    ],
};

/// The message was begun but not finished.
pub const PROFILE_SENDER: Fix = Fix {
    id: "write-without-pause",
    what: "Find out what the {side}'s application does between two writes of one message, and prepare all of it first",
    caveat: None,
    how: &[
        how(Stack::C, "strace -f -tt -e trace=network,read -p PID: what happens between the two sends?"),
        how(Stack::Java, "a wall-clock profile (async-profiler -e wall); serialise fully, then write"),
        how(Stack::Go, "runtime/trace; marshal into a buffer, then write"),
        how(Stack::Python, "py-spy dump --pid PID; build the body before sending the header"),
        how(Stack::Node, "stream.pipeline waits for its source: is the source slow?"),
        how(Stack::Rust, "perf record -g; serialise into a Vec, then write"),
        server(Stack::Nginx, "proxy_buffering on; limit_rate and limit_rate_after pause on purpose"),
    ],
};

/// A full receive buffer is a reader that does not read.
pub const READ_PROMPTLY: Fix = Fix {
    id: "read-promptly",
    what: "Make the {side}'s application read as data arrives: a dedicated thread, larger reads, less work in between",
    caveat: Some("A larger receive buffer only postpones the wait."),
    how: &[
        how(Stack::C, "recv into 64 KB and more; do the work in another thread; ss -tm shows rmem full"),
        how(Stack::Java, "read on one thread, work on another; Netty: never block in a handler"),
        how(Stack::Go, "a goroutine that reads into a channel; io.CopyBuffer with a large buffer"),
        how(Stack::Python, "recv(1 << 18); no work between the reads; py-spy dump --pid PID"),
        how(Stack::Node, "no synchronous work in 'data' handlers; is a paused stream ever resumed?"),
        how(Stack::Rust, "a task that only reads; no blocking call on an async runtime"),
        server(Stack::Nginx, "client_body_buffer_size large enough that bodies do not go to a slow disk"),
    ],
};

/// The protocol's default window is smaller than many paths.
pub const RAISE_STREAM_WINDOW: Fix = Fix {
    id: "raise-stream-window",
    what: "Raise the {side}'s HTTP/2 windows (stream and connection) above rate times round trip",
    caveat: Some("Each stream may then use that much memory; an application that does not read stays slow."),
    how: &[
        how(Stack::C, "nghttp2: SETTINGS_INITIAL_WINDOW_SIZE and nghttp2_session_set_local_window_size"),
        how(
            Stack::Java,
            "gRPC: NettyChannelBuilder.flowControlWindow(8 << 20), the same in NettyServerBuilder",
        ),
        how(
            Stack::Go,
            "gRPC: WithInitialWindowSize and WithInitialConnWindowSize (server: grpc.InitialWindowSize)",
        ),
        how(Stack::Python, "gRPC: options=[('grpc.http2.bdp_probe', 1)]; httpx: h2 takes 16 MB"),
        how(
            Stack::Node,
            "http2: settings: { initialWindowSize: 8 << 20 }, session.setLocalWindowSize(8 << 20)",
        ),
        how(Stack::Rust, "hyper, tonic: initial_stream_window_size, initial_connection_window_size"),
        server(Stack::Nginx, "http2_body_preread_size 1m (what clients may send)"),
        server(Stack::Haproxy, "tune.h2.initial-window-size 1048576"),
    ],
};

/// The available packets are not enough.
pub const OTHER_END: Fix = Fix {
    id: "capture-both-ends",
    what: "Also capture at the other end, without drops: it often shows what one end cannot",
    caveat: None,
    how: &[how(
        Stack::Linux,
        "tcpdump -i IF -s 128 -B 65536 -w end.pcapng tcp port PORT (watch 'dropped by kernel')",
    )],
};
