//! How does an exchange avoid paying for a connection of its own?

use super::{Fix, Stack, client, how, server};

/// Reuse spares the handshake and keeps the windows that the connection has grown.
pub const REUSE: Fix = Fix {
    id: "reuse-connection",
    what: "Keep connections open and reuse them instead of opening one per request",
    caveat: None,
    how: &[
        client(Stack::C, "libcurl: keep the easy handle, or share CURL_LOCK_DATA_CONNECT between handles"),
        client(Stack::Java, "one java.net.http.HttpClient for all requests; JDBC: a pool"),
        client(
            Stack::Go,
            "one http.Client; read each body to its end and Close it; raise Transport.MaxIdleConnsPerHost (2)",
        ),
        client(Stack::Python, "requests.Session() or httpx.Client() for all requests; databases: a pool"),
        client(
            Stack::Node,
            "new http.Agent({ keepAlive: true }) for all requests (the default from Node 19)",
        ),
        client(Stack::Rust, "one reqwest::Client (or hyper-util Client) for all requests"),
        client(
            Stack::Nginx,
            "upstream { keepalive 32; } with proxy_http_version 1.1 and proxy_set_header Connection \"\"",
        ),
        server(Stack::Nginx, "keepalive_timeout and keepalive_requests high enough for the client's pauses"),
        server(Stack::Apache, "KeepAlive On; KeepAliveTimeout above the client's pauses"),
        client(Stack::Haproxy, "http-reuse safe (or always) towards the servers"),
        client(Stack::Postgres, "a pool in the application, or PgBouncer in front of the server"),
        client(Stack::Redis, "a client with a connection pool; pipeline commands on one connection"),
    ],
};

/// For connections that cannot be kept open.
pub const FAST_OPEN: Fix = Fix {
    id: "fast-open",
    what: "If connections cannot be kept open: TCP Fast Open, which sends the request with the SYN",
    caveat: Some(
        "Only from the second connection on, only for requests that may arrive twice (RFC 7413, 6.1), and many \
         middleboxes drop it. Needs both sides.",
    ),
    how: &[
        how(
            Stack::C,
            "client: setsockopt(TCP_FASTOPEN_CONNECT); server: setsockopt(TCP_FASTOPEN) before listen",
        ),
        server(Stack::Nginx, "listen 80 fastopen=256;"),
        server(Stack::Haproxy, "bind :80 tfo"),
        how(Stack::Linux, "sysctl -w net.ipv4.tcp_fastopen=3 (1 client, 2 server)"),
    ],
};

/// Fewer round trips if a new connection is unavoidable.
pub const RESUME_TLS: Fix = Fix {
    id: "resume-tls",
    what: "If connections cannot be kept open: TLS 1.3 and session resumption, which each save a round trip",
    caveat: Some(
        "Behind a load balancer, all servers need the same ticket keys. 0-RTT data may arrive twice (RFC 8446, 8).",
    ),
    how: &[
        client(
            Stack::C,
            "OpenSSL: SSL_CTX_sess_set_new_cb, SSL_set_session; libcurl does so by itself in one handle",
        ),
        client(Stack::Java, "one SSLContext for all connections: it keeps the sessions"),
        client(Stack::Go, "tls.Config{ClientSessionCache: tls.NewLRUClientSessionCache(0)}"),
        client(
            Stack::Python,
            "ssl: wrap_socket(..., session=old.session); requests and httpx: keep the session",
        ),
        client(Stack::Node, "https.Agent keeps sessions (maxCachedSessions): one agent for all requests"),
        client(Stack::Rust, "rustls: one ClientConfig for all connections"),
        server(
            Stack::Nginx,
            "ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:SSL:10m; ssl_session_tickets on",
        ),
        server(Stack::Apache, "SSLProtocol +TLSv1.3; SSLSessionCache shmcb:/run/sslcache(512000)"),
        server(Stack::Haproxy, "ssl-min-ver TLSv1.2; tune.ssl.cachesize 20000"),
    ],
};

/// SYNs that the server's queue could not take look lost.
pub const BACKLOG: Fix = Fix {
    id: "listen-backlog",
    what: "If the server's nstat counts TcpExtListenDrops: accept faster and raise the listen backlog",
    caveat: Some(
        "The smaller of listen()'s argument and net.core.somaxconn (4096 by default since Linux 5.4) counts.",
    ),
    how: &[
        server(Stack::C, "listen(fd, 4096)"),
        server(Stack::Java, "new ServerSocket(port, 4096); the default is 50"),
        server(Stack::Go, "takes net.core.somaxconn"),
        server(Stack::Python, "socketserver, http.server: request_queue_size = 4096 in the server class (5)"),
        server(Stack::Node, "server.listen({ port, backlog: 4096 }); the default is 511"),
        server(Stack::Rust, "socket2::Socket::listen(4096)"),
        server(Stack::Nginx, "listen 80 backlog=4096; the default is 511"),
        server(Stack::Apache, "ListenBackLog 4096; the default is 511"),
        server(Stack::Haproxy, "backlog 4096 in the frontend"),
        server(Stack::Redis, "tcp-backlog 4096; the default is 511"),
        server(
            Stack::Linux,
            "sysctl -w net.core.somaxconn=4096; nstat -az TcpExtListenDrops TcpExtListenOverflows",
        ),
    ],
};
