//! How does an application hand its bytes over so that none of them waits for an acknowledgement?

use super::{Fix, Stack, client, how, server};

/// The first choice whenever Nagle holds data: then there is nothing to hold.
pub const ONE_WRITE: Fix = Fix {
    id: "one-write",
    what: "Write each message of the {side} to the socket at once: one buffer, or writev",
    caveat: None,
    how: &[
        how(Stack::C, "writev(2) or sendmsg(2) over head and body; or MSG_MORE on every send but the last"),
        how(
            Stack::Java,
            "BufferedOutputStream around the socket's stream, one flush() per message; NIO: write(ByteBuffer[])",
        ),
        how(
            Stack::Go,
            "bufio.Writer and one Flush per message, or net.Buffers (writev); look for SetNoDelay(false)",
        ),
        client(Stack::Python, "sock.sendall(head + body), or sock.sendmsg([head, body])"),
        server(
            Stack::Python,
            "sock.sendall(head + body); http.server, socketserver: wbufsize = -1 in the handler class",
        ),
        client(Stack::Node, "socket.cork(), the writes, then socket.uncork(); or one Buffer.concat"),
        server(
            Stack::Node,
            "res.end(body) instead of write() and end(); sockets: cork(), the writes, uncork()",
        ),
        how(Stack::Rust, "BufWriter and one flush() per message, or write_vectored over head and body"),
        client(Stack::Nginx, "proxy_request_buffering on (the default): header and body leave together"),
        server(Stack::Nginx, "sendfile on with tcp_nopush on: header and file leave as full segments"),
        client(Stack::Redis, "pipeline commands into one write instead of one write per command"),
    ],
};

/// The second choice: for messages that are not complete when their first byte must leave.
pub const NODELAY: Fix = Fix {
    id: "nodelay",
    what: "If the message cannot be written at once, set TCP_NODELAY on the {side}'s socket; each write then becomes a packet",
    caveat: Some(
        "An application that writes a few bytes at a time then sends many tiny packets. \
         One write per message is the better fix; NODELAY is for spaced messages that must leave at once.",
    ),
    how: &[
        how(Stack::C, "int one = 1; setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);"),
        how(Stack::Java, "socket.setTcpNoDelay(true); Netty: ChannelOption.TCP_NODELAY"),
        how(Stack::Go, "on by default; conn.(*net.TCPConn).SetNoDelay(true) where something turned it off"),
        client(Stack::Python, "sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1); asyncio does so"),
        server(
            Stack::Python,
            "socketserver, http.server: disable_nagle_algorithm = True in the handler; asyncio does so",
        ),
        how(
            Stack::Node,
            "socket.setNoDelay(true); net.createServer({ noDelay: true }); http: default from 18",
        ),
        how(Stack::Rust, "stream.set_nodelay(true); hyper-util: HttpConnector::set_nodelay(true)"),
        server(Stack::Nginx, "tcp_nodelay on (the default; acts on keep-alive connections)"),
        server(Stack::Redis, "replication: repl-disable-tcp-nodelay no (the default)"),
    ],
};

/// The peer's half of the pair: shortens the wait to a round trip and leaves the cause in place.
pub const QUICKACK: Fix = Fix {
    id: "quickack",
    what: "If only the {side} can be changed: set TCP_QUICKACK on its socket after every read",
    caveat: Some(
        "Not sticky: the next reply switches it off again. It costs a packet per message, and the other side still \
         waits a round trip for the acknowledgement.",
    ),
    how: &[
        how(Stack::C, "after every recv: setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &one, sizeof one);"),
        how(
            Stack::Java,
            "after every read: socket.setOption(jdk.net.ExtendedSocketOptions.TCP_QUICKACK, true)",
        ),
        how(Stack::Go, "after every Read: unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1)"),
        how(Stack::Python, "after every recv: sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)"),
        how(Stack::Node, "no API for it: use the route, below"),
        how(Stack::Rust, "after every read: std::os::linux::net::TcpStreamExt::set_quickack(true)"),
        how(Stack::Nginx, "no directive for it: use the route, below"),
        how(
            Stack::Linux,
            "ip route change PREFIX via GATEWAY dev IF quickack 1 (all sockets towards PREFIX)",
        ),
        how(
            Stack::Windows,
            "TcpAckFrequency=1 (REG_DWORD) under ...\\Tcpip\\Parameters\\Interfaces\\{GUID}, restart",
        ),
    ],
};

/// A cork is a promise to pull it.
pub const UNCORK: Fix = Fix {
    id: "uncork",
    what: "Uncork at the end of each message of the {side}: clear TCP_CORK, or send the last piece without MSG_MORE",
    caveat: Some("TCP_NODELAY does not help: TCP_CORK overrides it."),
    how: &[
        how(
            Stack::C,
            "int zero = 0; setsockopt(fd, IPPROTO_TCP, TCP_CORK, &zero, sizeof zero); no MSG_MORE on the last send",
        ),
        how(Stack::Java, "the JDK has no cork; Netty epoll: EpollChannelOption.TCP_CORK back to false"),
        how(Stack::Go, "unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_CORK, 0) after the last write"),
        how(Stack::Python, "sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0) after the last send"),
        how(
            Stack::Node,
            "socket.cork() is a buffer inside Node and not TCP_CORK; balance each cork() with uncork()",
        ),
        how(Stack::Rust, "rustix::net::sockopt::set_tcp_cork(&stream, false) after the last write"),
        server(
            Stack::Nginx,
            "nginx lifts tcp_nopush at the end of a reply itself; suspect a module that sends the tail late",
        ),
    ],
};
