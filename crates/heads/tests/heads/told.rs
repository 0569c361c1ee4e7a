//! Which messages are sent unasked, and by which side?

use tcpwhy_heads::{Conversation, Protocol, Role};

use crate::log::{pieces, tells, tells_cut};

pub(crate) const LOGS: &[(&str, Protocol, &str)] = &[
    ("bgp", Protocol::Bgp, BGP),
    ("syslog", Protocol::Syslog, SYSLOG),
    ("syslog_counted", Protocol::Syslog, SYSLOG_COUNTED),
    ("radio", Protocol::Http1, RADIO),
    ("rtsp", Protocol::Rtsp, RTSP),
    ("redis_worker", Protocol::Redis, WORKER),
    ("rfb", Protocol::Rfb, RFB),
    ("rfb_later", Protocol::Rfb, RFB_LATER),
    ("rfb_with_password", Protocol::Rfb, RFB_WITH_PASSWORD),
];

/// Two routers of bird: RFC 4271, 4.2 to 4.4.
const BGP: &str = r"
    > \xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x25\x01\x04\xfd\xe9\x00\x06\x0a\x00\x00\x01\x08\x02\x06\x01\x04\x00\x01\x00\x01
    < \xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x25\x01\x04\xfd\xea\x00\x06\x0a\x00\x00\x02\x08\x02\x06\x01\x04\x00\x01\x00\x01
    > \xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x13\x04
    < \xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x13\x04
    > \xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x17\x02\x00\x00\x00\x00
    < \xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x13\x04
    > \xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x15\x03\x06\x02
";

#[test]
fn bgp() {
    tells(
        BGP,
        "
        > 0 OPEN greets len 37 first last
        = BGP
        < 0 OPEN greets len 37 first last
        > 37 KEEPALIVE neither len 19 first last
        < 37 KEEPALIVE neither len 19 first last
        > 56 UPDATE pushes len 23 first last
        < 56 KEEPALIVE neither len 19 first last
        > 79 NOTIFICATION pushes len 21 first last
        ",
    );
}

const SYSLOG: &str = r"
    > <13>Nov 26 10:00:00 near app: the first line\n
    > <165>1 2026-11-26T10:00:00Z near app - - - a line that is longer than what is kept of a head\n<0>short\n
";
/// RFC 6587, 3.4.1.
const SYSLOG_COUNTED: &str = r"
    > 21 <13>1 - near - - - -\x0a12 <13>1 - - - 
";

#[test]
fn syslog() {
    tells(
        SYSLOG,
        "
        > 0 message pushes first last
        = syslog
        > 45 message pushes first last
        > 138 message pushes len 9 first last
        ",
    );
    // A stack trace breaks lines, and a length has no leading zero.
    tells(
        r"
        > <11>1 - near - - - Exception\n\x09at Foo.java\n
        > <13>1 - near - - - on it goes\n
        ",
        "
        > 0 message pushes len 29 first last
        = syslog
        > 42 message pushes len 30 first last
        ",
    );
    tells(r"> 0072 <13>hello world\n", "");
    tells(
        SYSLOG_COUNTED,
        "
        > 0 message pushes len 24 first last
        > 24 message pushes len 15 first last
        = syslog
        ",
    );
}

/// Icecast: the stream comes as it is played, and the client does not wait for its end.
const RADIO: &str = r"
    > GET /a.mp3 HTTP/1.1\r\nHost: far\r\n\r\n
    < HTTP/1.0 200 OK\r\nContent-Type: audio/mpeg\r\nicy-name: r\r\n\r\nsound
    < more of it
";

#[test]
fn radio() {
    tells(
        RADIO,
        "
        > 0 GET [GET /a.mp3] asks first
        > 32 end asks len 2 last
        = HTTP/1
        < 0 2xx [200 OK] answers first
        < 56 end answers len 2 last
        < 58 stream pushes first
        ",
    );
}

/// A replica: the data set comes without a line break after it, then the commands that change it,
/// and the replica reports its offset. Without PSYNC they would be taken for unrequested answers,
/// so it is not among the logs that are cut.
const REPLICA: &str = r"
    > *1\r\n$4\r\nPING\r\n
    < +PONG\r\n
    > *3\r\n$5\r\nPSYNC\r\n$1\r\n?\r\n$2\r\n-1\r\n
    < +FULLRESYNC 89adde229623110bcd27867657d0dc811fc0a2df 0\r\n\n
    < $9\r\nREDIS0010
    < *1\r\n$4\r\nPING\r\n
    > *3\r\n$8\r\nREPLCONF\r\n$3\r\nACK\r\n$1\r\n0\r\n
    < *3\r\n$3\r\nset\r\n$2\r\nk1\r\n$1\r\n1\r\n
";

#[test]
fn redis_replica() {
    tells(
        REPLICA,
        "
        > 0 command [PING] asks first
        > 4 command asks len 10 last
        = Redis
        < 0 reply answers len 7 first last
        > 14 command [PSYNC] asks first
        > 36 command asks len 8 last
        < 7 reply answers first last
        < 64 push pushes len 13 first last
        < 77 push pushes first
        < 81 push pushes len 10 last
        > 44 command [REPLCONF] neither first
        > 71 command neither len 7 last
        < 91 push pushes first
        < 112 push pushes len 7 last
        ",
    );
}

/// ... from the middle, where the first packets are changes: they are no commands of a client's, which the reports of
/// the other side's offset would answer.
#[test]
fn redis_changes_midway() {
    tells(
        r"
        > *3\r\n$3\r\nset\r\n$2\r\nk1\r\n$1\r\n1\r\n
        > *3\r\n$3\r\nset\r\n$2\r\nk2\r\n$1\r\n1\r\n
        < *3\r\n$8\r\nREPLCONF\r\n$3\r\nACK\r\n$1\r\n0\r\n
        > *3\r\n$3\r\nset\r\n$2\r\nk3\r\n$1\r\n1\r\n
        < *3\r\n$8\r\nREPLCONF\r\n$3\r\nACK\r\n$2\r\n30\r\n
        ",
        "
        > 0 command [set] asks first
        > 21 command asks len 7 last
        = Redis
        > 28 command [set] asks first
        > 49 command asks len 7 last
        ?
        ",
    );
}

/// ... from the middle: the side that reports its offset is a replica, and the other sends changes.
#[test]
fn redis_replica_midway() {
    tells(
        r"
        > *3\r\n$8\r\nREPLCONF\r\n$3\r\nACK\r\n$1\r\n0\r\n
        < *3\r\n$3\r\nset\r\n$2\r\nk1\r\n$1\r\n1\r\n
        > *3\r\n$8\r\nREPLCONF\r\n$3\r\nACK\r\n$2\r\n30\r\n
        ",
        "
        > 0 command [REPLCONF] neither first
        > 27 command neither len 7 last
        = Redis
        < 0 push pushes first
        < 21 push pushes len 7 last
        > 34 command [REPLCONF] neither first
        > 61 command neither len 8 last
        ",
    );
}

/// The data after SYNC have no answer before them.
#[test]
fn redis_sync() {
    tells(
        r"
        > *1\r\n$4\r\nSYNC\r\n
        < $9\r\nREDIS0010
        < *1\r\n$4\r\nPING\r\n
        ",
        "
        > 0 command [SYNC] asks first
        > 4 command asks len 10 last
        = Redis
        < 0 push pushes len 13 first last
        < 13 push pushes first
        < 17 push pushes len 10 last
        ",
    );
}

/// A worker waits for the next job, however long it takes.
const WORKER: &str = r"
    > *3\r\n$5\r\nBRPOP\r\n$1\r\nq\r\n$1\r\n0\r\n
    < *2\r\n$1\r\nq\r\n$4\r\njob1\r\n
    > *2\r\n$4\r\nINCR\r\n$4\r\ndone\r\n
    < :1\r\n
";

#[test]
fn redis_worker() {
    tells(
        WORKER,
        "
        > 0 command [BRPOP] subscribes first
        > 22 command subscribes len 7 last
        = Redis
        < 0 reply answers first
        < 11 reply answers len 10 last
        > 29 command [INCR] asks first
        > 43 command asks len 10 last
        < 21 reply answers len 4 first last
        ",
    );
    tells_cut(
        WORKER,
        14,
        "
        > 0 command [BRPOP] subscribes first
        = Redis
        < 0 reply answers first
        > 29 command [INCR] asks first
        < 21 reply answers len 4 first last
        ",
    );
}

/// RFC 2326, 10: media come between the answers (10.12), and a request of the server is answered.
const RTSP: &str = r"
    > OPTIONS rtsp://far/a RTSP/1.0\r\nCSeq: 1\r\n\r\n
    < RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n
    > PLAY rtsp://far/a RTSP/1.0\r\nCSeq: 2\r\n\r\n
    < $\x00\x00\x04abcdRTSP/1.0 200 OK\r\nCSeq: 2\r\nContent-Length: 3\r\n\r\nabc$\x00\x00\x02ab
    > $\x01\x00\x02ab
    < OPTIONS rtsp://far/a RTSP/1.0\r\nCSeq: 1\r\n\r\n
    > RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n
";

#[test]
fn rtsp() {
    tells(
        RTSP,
        "
        > 0 OPTIONS asks first
        > 40 end asks len 2 last
        = RTSP
        < 0 2xx answers first
        < 26 end answers len 2 last
        > 42 PLAY asks first
        > 79 end asks len 2 last
        < 28 media pushes len 8 first last
        < 36 2xx answers first
        < 81 end answers len 5 last
        < 86 media pushes len 6 first last
        > 81 media neither len 6 first last
        < 92 OPTIONS asks first
        < 132 end asks len 2 last
        > 87 2xx answers first
        > 113 end answers len 2 last
        ",
    );
}

/// A TigerVNC viewer: fences and updates until continuous updates end; a key.
const RFB: &str = r"
    < RFB 003.008\n
    > RFB 003.008\n
    < \x01\x01
    > \x01
    < \x00\x00\x00\x00
    > \x00
    < \x02\x80\x01\xe0 \x18\x00\x01\x00\xff\x00\xff\x00\xff\x10\x08\x00\x00\x00\x00\x00\x00\x00\x03far
    > \x02\x00\x00\x02\xff\xff\xfe\xc6\x00\x00\x00\x05\x03\x01\x00\x00\x00\x00\x02\x80\x01\xe0\x96\x01\x00\x00\x00\x00\x02\x80\x01\xe0
    < \xf8\x00\x00\x00\x80\x00\x00\x00\x01\x00\x96
    > \xf8\x00\x00\x00\x00\x00\x00\x00\x01\x00
    > \x04\x01\x00\x00\x00\x00\x00a
    < \x00\x00\x00\x01\x00\x00\x00\x00\x00\x01\x00\x01\x00\x00\x00\x00\xff\xff\xff\x00
";

#[test]
fn rfb() {
    tells(
        RFB,
        "
        < 0 version answers len 12 first last
        = RFB
        > 0 version asks len 12 first last
        < 12 security answers len 2 first last
        > 12 security asks len 1 first last
        < 14 result answers len 4 first last
        > 13 share asks len 1 first last
        < 18 screen answers len 27 first last
        < 45 ServerFence neither len 10 first last
        < 55 EndOfContinuousUpdates neither len 1 first last
        > 46 ClientFence neither len 10 first last
        > 56 KeyEvent neither len 8 first last
        < 56 updates pushes first
        ",
    );
}

/// A viewer that has shown the screen for long when the capture begins, in the middle of a picture:
/// it requests the next change, and moves its pointer.
const RFB_LATER: &str = r"
    < I\\\xed\xcb\x017pw\x08\xdb
    > \x03\x01\x00\x00\x00\x00\x04\x00\x03\x00
    < \x00\x00\x00\x01\x00\x00\x00\x00\x00\x01\x00\x01\x00\x00\x00\x00\xff\xff\xff\x00
    > \x03\x01\x00\x00\x00\x00\x04\x00\x03\x00
    > \x05\x00\x02\xf1\x01\x8e
";

#[test]
fn rfb_later() {
    tells(
        RFB_LATER,
        "
        < 0 updates pushes first
        > 0 FramebufferUpdateRequest neither len 10 first last
        = RFB
        > 10 FramebufferUpdateRequest neither len 10 first last
        > 20 PointerEvent neither len 6 first last
        ",
    );
}

/// The same after bytes missing from the capture.
#[test]
fn rfb_midway() {
    let (mut conversation, mut told) = (Conversation::new(), Vec::new());
    for piece in pieces(RFB_LATER) {
        let len = piece.bytes.len() as u32;
        conversation
            .on_bytes(piece.from, piece.at + (1 << 40), &piece.bytes, len, |head, _| told.push(head.role));
    }
    assert_eq!(told, [Role::Pushes, Role::Neither, Role::Neither, Role::Neither]);
}

/// The version before, in which the server decides, and a challenge.
const RFB_WITH_PASSWORD: &str = r"
    < RFB 003.003\n
    > RFB 003.003\n
    < \x00\x00\x00\x02
    < 0123456789abcdef
    > fedcba9876543210
    < \x00\x00\x00\x00
    > \x01
    < \x02\x80\x01\xe0 \x18\x00\x01\x00\xff\x00\xff\x00\xff\x10\x08\x00\x00\x00\x00\x00\x00\x00\x03far
    > \x03\x00\x00\x00\x00\x00\x02\x80\x01\xe0
";

#[test]
fn rfb_with_password() {
    tells(
        RFB_WITH_PASSWORD,
        "
        < 0 version answers len 12 first last
        = RFB
        > 0 version asks len 12 first last
        < 12 security answers len 4 first last
        < 16 challenge answers len 16 first last
        > 12 response asks len 16 first last
        < 32 result answers len 4 first last
        > 28 share asks len 1 first last
        < 36 screen answers len 27 first last
        ",
    );
}
