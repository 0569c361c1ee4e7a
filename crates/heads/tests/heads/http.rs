//! Which heads do HTTP/1, HTTP/2 and WebSocket conversations have?

use tcpwhy_heads::Protocol;

use crate::log::{tells, tells_cut};

pub(crate) const LOGS: &[(&str, Protocol, &str)] = &[
    ("http1", Protocol::Http1, HTTP1),
    ("http1_chunked", Protocol::Http1, CHUNKED),
    ("http2", Protocol::Http2, HTTP2),
    ("pipelined", Protocol::Http1, PIPELINED),
    ("upgraded", Protocol::Http1, UPGRADED),
    ("grpc", Protocol::Http2, GRPC),
];

const HTTP1: &str = include_str!("../recorded/http1.txt");
const CHUNKED: &str = include_str!("../recorded/http1_chunked.txt");
const HTTP2: &str = include_str!("../recorded/http2.txt");

#[test]
fn http1() {
    tells(
        HTTP1,
        "
        > 0 GET [GET /a.txt] asks first
        > 82 end asks len 2 last
        = HTTP/1
        < 0 2xx [200 OK] answers first
        < 183 body answers len 8 last
        > 84 HEAD [HEAD /a.txt] asks first
        > 167 end asks len 2 last
        < 191 2xx [200 OK] answers first
        < 374 end answers len 2 last
        > 169 GET [GET /none] asks first
        > 250 end asks len 2 last
        < 376 4xx [404 File not found] answers first
        < 559 body answers len 337 last
        ",
    );
}

#[test]
fn chunked() {
    tells(
        CHUNKED,
        "
        > 0 GET [GET /a.html] asks first
        > 83 end asks len 2 last
        = HTTP/1
        < 0 2xx [200 OK] answers first
        < 153 chunked answers
        < 178 end answers len 2 last
        > 85 POST [POST /post] asks first
        > 257 body asks len 5 last
        < 180 1xx [100 Continue] interim first
        < 203 end interim len 2 last
        < 205 2xx [200 OK] answers first
        < 358 chunked answers
        < 383 end answers len 2 last
        > 262 GET [GET /a.html] asks first
        > 345 end asks len 2 last
        < 385 2xx [200 OK] answers first
        < 538 chunked answers
        < 563 end answers len 2 last
        ",
    );
}

#[test]
fn http2() {
    tells(
        HTTP2,
        "
        > 0 preface neither len 24 first last
        > 24 SETTINGS neither #0 len 27 initial 33554432
        > 51 WINDOW_UPDATE neither #0 len 13 grants 33488897
        > 64 HEADERS asks #1 len 46 first last
        = HTTP/2
        < 0 SETTINGS neither #0 len 27 initial 65536
        < 27 WINDOW_UPDATE neither #0 len 13 grants 2147418112
        < 40 SETTINGS neither #0 len 9
        < 49 HEADERS answers #1 len 54 first
        < 103 DATA answers #1 len 24 last uses 15
        > 110 SETTINGS neither #0 len 9
        ",
    );
}

/// RFC 9112, 9.3.2: answers come in the order of the requests; line breaks before a request are
/// skipped.
const PIPELINED: &str = r"
    > GET /a HTTP/1.1\r\nHost: x\r\n\r\nHEAD /b HTTP/1.1\r\nHost: x\r\n\r\n\r\nPUT /c HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc
    < HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n
    < HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\ntransfer-encoding: gzip, Chunked\r\n\r\n1a;x=y\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\nX: y\r\n\r\n
    > GET /until-the-end HTTP/1.0\r\n\r\n
    < HTTP/1.0 200 OK\r\nServer: a-name-that-is-longer-than-what-is-kept-of-a-line\r\n\r\nhello
";

/// What follows a body that ends with the connection belongs to the body.
#[test]
fn until_the_end() {
    let shown = crate::log::shown(&[PIPELINED, r"< HTTP/1.1 200 OK\r\n\r\n"].concat(), usize::MAX);
    assert_eq!(shown, crate::log::shown(PIPELINED, usize::MAX));
}

#[test]
fn pipelined() {
    tells(
        PIPELINED,
        "
        > 0 GET [GET /a] asks first
        > 26 end asks len 2 last
        > 28 HEAD [HEAD /b] asks first
        > 55 end asks len 2 last
        > 59 PUT [PUT /c] asks first
        > 95 body asks len 5 last
        = HTTP/1
        < 0 3xx [304 Not Modified] answers first
        < 46 end answers len 2 last
        < 48 2xx [200 OK] answers first
        < 84 end answers len 2 last
        < 86 1xx [100 Continue] interim first
        < 109 end interim len 2 last
        < 111 2xx [201 Created] answers first
        < 167 chunked answers
        < 214 end answers len 2 last
        > 100 GET [GET /until-the-end] asks first
        > 129 end asks len 2 last
        < 216 2xx [200 OK] answers first
        < 292 body answers
        ",
    );
}

/// RFC 6455, 1.3 and 5.7: a masked and an unmasked text message, fragments, pings.
const UPGRADED: &str = r"
    > GET /chat HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n
    < HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x81\x05Hello
    > \x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58
    < \x01\x03Hel\x80\x02lo
    < \x89\x05Hello
    > \x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58
    < \x82\x7e\x00\x80aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
    > \x88\x82\x00\x00\x00\x00\x03\xe8
    < \x88\x02\x03\xe8
";

#[test]
fn upgraded() {
    tells(
        UPGRADED,
        "
        > 0 GET [GET /chat] asks first
        > 70 end asks len 2 last
        = HTTP/1
        < 0 1xx [101 Switching Protocols] answers first
        < 75 end answers len 2 last
        < 77 text unknown len 7 first last
        = WebSocket
        > 72 text unknown len 11 first last
        < 84 text unknown len 5 first
        < 89 continuation unknown len 4 last
        < 93 ping neither len 7 first last
        > 83 pong neither len 11 first last
        < 100 binary unknown len 132 first last
        > 94 close neither len 8 first last
        < 232 close neither len 4 first last
        ",
    );
}

/// Only the first line of the answer was captured: it says that another protocol follows.
#[test]
fn upgraded_behind_a_snap_length() {
    tells_cut(
        &UPGRADED.replace("\\x81\\x05Hello\n    > ", "\n    < \\x81\\x05Hello\n    > "),
        36,
        "
        > 0 GET [GET /chat] asks first
        = HTTP/1
        < 0 1xx [101 Switching Protocols] answers first
        < 36 cut answers len 41 last
        ?
        < 77 text unknown len 7 first last
        > 72 text unknown len 11 first last
        = WebSocket
        < 84 text unknown len 5 first
        < 89 continuation unknown len 4 last
        < 93 ping neither len 7 first last
        > 83 pong neither len 11 first last
        < 100 binary unknown len 132 first last
        > 94 close neither len 8 first last
        < 232 close neither len 4 first last
        ",
    );
}

/// WHATWG HTML, 9.2: the client has its answer with the head, and each event is reported when it
/// occurs.
#[test]
fn events() {
    tells(
        r"
        > GET /events HTTP/1.1\r\nAccept: text/event-stream\r\n\r\n
        < HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n
        < 9\r\ndata: x\n\n\r\n
        < a\r\ndata: yz\n\n\r\n0\r\n\r\n
        > GET / HTTP/1.1\r\n\r\n
        ",
        "
        > 0 GET [GET /events] asks first
        > 49 end asks len 2 last
        = HTTP/1
        < 0 2xx [200 OK] answers first
        < 93 end answers len 2 last
        < 95 event pushes len 14 first last
        < 109 event pushes len 15 first last
        < 127 end pushes len 2 last
        > 51 GET [GET /] asks first
        > 67 end asks len 2 last
        ",
    );
}

/// The capture begins after the upgrade: a ping after ten seconds and its pong are enough; half a
/// frame, or an unmasked one, is not.
#[test]
fn upgraded_before_the_capture() {
    tells(
        r"
        < \x89\x00
        > \x8a\x80\x37\xfa\x21\x3d
        < \x81\x05Hello
        ",
        "
        < 0 ping neither len 2 first last
        > 0 pong neither len 6 first last
        = WebSocket
        < 2 text unknown len 7 first last
        ",
    );
    for strange in [
        r"< \x89\x01
        > \x8a\x80\x37\xfa\x21\x3d",
        r"< \x89\x00
        > \x8a\x00",
        r"< \x8b\x00
        > \x8a\x80\x37\xfa\x21\x3d",
    ] {
        tells(strange, "");
    }
}

/// RFC 9113 and gRPC over HTTP/2: two calls at once, answered out of order, trailers, an interim answer, a reset, window updates.
const GRPC: &str = r"
    > PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00
    > \x00\x00\x02\x01\x04\x00\x00\x00\x01\x83\x86\x00\x00\x02\x01\x04\x00\x00\x00\x03\x83\xbe\x00\x00\x05\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x05\x00\x01\x00\x00\x00\x03\x00\x00\x00\x00\x00
    < \x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x04\x00\x00\x40\x00\x00\x00\x00\x04\x01\x00\x00\x00\x00
    < \x00\x00\x05\x01\x04\x00\x00\x00\x03\x48\x03103\x00\x00\x02\x01\x04\x00\x00\x00\x03\x88\xc0\x00\x00\x05\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x03\x01\x05\x00\x00\x00\x03\x40\x0bg
    > \x00\x00\x04\x08\x00\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678
    < \x00\x00\x02\x01\x05\x00\x00\x00\x01\x88\xbf\x00\x00\x04\x05\x04\x00\x00\x00\x01\x00\x00\x00\x02
    > \x00\x00\x01\x01\x00\x00\x00\x00\x05\x83\x00\x00\x01\x09\x04\x00\x00\x00\x05\x86\x00\x00\x04\x03\x00\x00\x00\x00\x05\x00\x00\x00\x08
    < \x00\x00\x08\x07\x00\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00
";

/// 30 bytes of each segment were captured, which contain the first frame or two: calls are found
/// again where segments begin with a frame, and a part that was cut belongs to the stream in which
/// it was cut, unless that stream had ended.
#[test]
fn grpc_behind_a_snap_length() {
    tells_cut(
        GRPC,
        30,
        "
        > 0 preface neither len 24 first last
        > 30 cut cut
        = HTTP/2
        > 33 HEADERS asks #1 len 11 first
        > 44 HEADERS asks #3 len 11 first
        > 63 cut cut #3
        < 0 SETTINGS neither #0 len 15 initial 16384
        < 15 SETTINGS neither #0 len 9
        < 24 HEADERS interim #3 len 14 first last
        < 38 HEADERS answers #3 len 11 first
        < 54 cut cut #3
        > 83 WINDOW_UPDATE neither #0 len 13 grants 5
        > 96 PING neither #0 len 17
        < 75 HEADERS answers #1 len 11 first last
        < 86 PUSH_PROMISE pushes #2 len 13 first
        > 113 HEADERS asks #5 len 10 first
        > 123 CONTINUATION asks #5 len 10
        > 133 RST_STREAM neither #5 len 13 last
        < 99 GOAWAY neither #0 len 17
        ",
    );
}

#[test]
fn grpc() {
    tells(
        GRPC,
        "
        > 0 preface neither len 24 first last
        > 24 SETTINGS neither #0 len 9
        = HTTP/2
        > 33 HEADERS asks #1 len 11 first
        > 44 HEADERS asks #3 len 11 first
        > 55 DATA asks #1 len 14 last uses 5
        > 69 DATA asks #3 len 14 last uses 5
        < 0 SETTINGS neither #0 len 15 initial 16384
        < 15 SETTINGS neither #0 len 9
        < 24 HEADERS interim #3 len 14 first last
        < 38 HEADERS answers #3 len 11 first
        < 49 DATA answers #3 len 14 uses 5
        < 63 HEADERS answers #3 len 12 last
        > 83 WINDOW_UPDATE neither #0 len 13 grants 5
        > 96 PING neither #0 len 17
        < 75 HEADERS answers #1 len 11 first last
        < 86 PUSH_PROMISE pushes #2 len 13 first
        > 113 HEADERS asks #5 len 10 first
        > 123 CONTINUATION asks #5 len 10
        > 133 RST_STREAM neither #5 len 13 last
        < 99 GOAWAY neither #0 len 17
        ",
    );
}

/// A server that has waited for the rest of a request says so, and answers nothing (RFC 9110,
/// 15.5.9).
#[test]
fn a_request_that_never_becomes_whole_is_not_answered() {
    tells(
        "> POST /772879 HTTP/1.1\\r\\nHost: a\\r\\nContent-Length: 42\\r\\n
         > X-a: b\\r\\n
         < HTTP/1.1 408 Request Timeout\\r\\nContent-Length: 2\\r\\nConnection: close\\r\\n\\r\\nno",
        "
        > 0 POST [POST /772879] asks first
        = HTTP/1
        < 0 4xx [408 Request Timeout] neither first
        < 68 body neither len 4 last
        ",
    );
}
