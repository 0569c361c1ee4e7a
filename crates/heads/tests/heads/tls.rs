//! Which records does a TLS connection have?

use tcpwhy_heads::{Conversation, Protocol};

use crate::log::{Piece, tells};

pub(crate) const LOGS: &[(&str, Protocol, &str)] =
    &[("tls12", Protocol::Tls, TLS12), ("tls13", Protocol::Tls, TLS13), ("socks", Protocol::Socks, REFUSED)];

const TLS12: &str = include_str!("../recorded/tls12.txt");
const TLS13: &str = include_str!("../recorded/tls13.txt");

/// A SOCKS 5 proxy that asks for a password, followed by the beginning of TLS (RFC 1928, 3 to 6;
/// RFC 1929, 2).
const SOCKS: &str = r"
    > \x05\x03\x00\x01\x02
    < \x05\x02
    > \x01\x02me\x03you
    < \x01\x00
    > \x05\x01\x00\x03\x0bexample.org\x01\xbb
    < \x05\x00\x00\x01\x7f\x00\x00\x01\xc0\x38
    > \x16\x03\x01\x00\x06\x01\x00\x00\x02\x03\x03
    < \x16\x03\x03\x00\x06\x02\x00\x00\x02\x03\x03
";

/// Without a password, to an address, and refused: no other protocol follows.
const REFUSED: &str = r"
    > \x05\x01\x00
    < \x05\x00
    > \x05\x01\x00\x01\x0a\x00\x00\x01\x00\x50
    < \x05\x05\x00\x01\x00\x00\x00\x00\x00\x00
";

#[test]
fn tls_behind_socks() {
    tells(
        SOCKS,
        "
        > 0 methods asks len 5 first last
        < 0 methods answers len 2 first last
        = SOCKS
        > 5 sign-in asks len 8 first last
        < 2 sign-in answers len 2 first last
        > 13 connect [example.org] asks len 18 first last
        < 4 connect answers len 10 first last
        ?
        > 31 ClientHello asks len 11 first
        = TLS
        < 14 ServerHello answers len 11 first
        ",
    );
}

#[test]
fn socks() {
    tells(
        REFUSED,
        "
        > 0 methods asks len 3 first last
        < 0 methods answers len 2 first last
        = SOCKS
        > 3 connect asks len 10 first last
        < 2 connect answers len 10 first last
        ",
    );
}

#[test]
fn tls12() {
    tells(
        TLS12,
        "
        > 0 ClientHello asks len 188 first
        = TLS
        < 0 ServerHello answers len 70 first
        < 70 Certificate answers len 384
        < 454 ServerKeyExchange answers len 120
        < 574 ServerHelloDone answers len 9
        > 188 ClientKeyExchange asks len 42
        > 230 ChangeCipherSpec asks len 6
        > 236 Finished asks len 45
        < 583 NewSessionTicket answers len 191
        < 774 ChangeCipherSpec answers len 6
        < 780 Finished answers len 45
        > 281 ApplicationData unknown len 35
        < 825 ApplicationData unknown len 35
        > 316 Alert neither len 31
        < 860 Alert neither len 31
        ",
    );
}

#[test]
fn tls13() {
    tells(
        TLS13,
        "
        > 0 ClientHello asks len 225 first
        = TLS
        < 0 ServerHello answers len 127 first
        < 127 ChangeCipherSpec answers len 6
        < 133 ApplicationData unknown len 28
        < 161 ApplicationData unknown len 404
        < 565 ApplicationData unknown len 101
        < 666 ApplicationData unknown len 74
        > 225 ChangeCipherSpec asks len 6
        > 231 ApplicationData unknown len 74
        < 740 ApplicationData unknown len 255
        < 995 ApplicationData unknown len 255
        > 305 ApplicationData unknown len 28
        < 1250 ApplicationData unknown len 28
        > 333 ApplicationData unknown len 24
        < 1278 ApplicationData unknown len 24
        ",
    );
}

/// A proxy is asked for a tunnel to the server; the data in it begin as on a connection of their
/// own.
#[test]
fn tls13_through_a_proxy() {
    let asked = "    > CONNECT far.example:443 HTTP/1.1\\r\\nHost: far.example:443\\r\\n\\r\\n";
    let consent = "    < HTTP/1.1 200 OK\\r\\n\\r\\n";
    let tls = TLS13.lines().filter(|line| line.starts_with(['<', '>'])).take(3);
    let log = [asked, consent].into_iter().chain(tls).collect::<Vec<_>>().join("\n");
    tells(
        &log,
        "
        > 0 CONNECT [CONNECT far.example:443] asks first
        > 57 end asks len 2 last
        = HTTP/1
        < 0 2xx [200 OK] answers first
        < 17 end answers len 2 last
        ?
        > 59 ClientHello asks len 225 first
        = TLS
        < 19 ServerHello answers len 127 first
        < 146 ChangeCipherSpec answers len 6
        < 152 ApplicationData unknown len 28
        < 180 ApplicationData unknown len 404
        < 584 ApplicationData unknown len 101
        < 685 ApplicationData unknown len 74
        > 284 ChangeCipherSpec asks len 6
        > 290 ApplicationData unknown len 74
        ",
    );
}

/// Data captured twice is reported once: the proxy's consent, before the client goes on and after
/// that.
#[test]
fn a_consent_that_is_seen_twice_begins_nothing() {
    let (asked, consent) = ("CONNECT far.example:443 HTTP/1.1\\r\\n\\r\\n", "HTTP/1.1 200 OK\\r\\n\\r\\n");
    let tls = TLS13.lines().filter(|line| line.starts_with(['<', '>'])).take(3);
    let lines = [format!("> {asked}"), format!("< {consent}")].into_iter().chain(tls.map(str::to_owned));
    let once = crate::log::pieces(&lines.collect::<Vec<_>>().join("\n"));
    let read = |pieces: &[Piece]| crate::log::read(&mut Conversation::new(), pieces);
    for behind in [2, 3] {
        let mut twice = once.clone();
        twice.insert(behind, once[1].clone());
        assert_eq!(read(&twice), read(&once), "behind {behind} pieces");
    }
}

/// A server that does not know the requested name sends a fatal alert and closes (frames 768 and
/// 830 of a browser's): that is its answer. A warning is not.
#[test]
fn a_fatal_alert_answers_a_hello() {
    let hello = "> \\x16\\x03\\x01\\x00-\\x01\\x00\\x00)\\x03\\x03".to_owned() + &"\\x00".repeat(39);
    for (level, told) in [(2, "answers len 7 first last"), (1, "neither len 7")] {
        tells(
            &format!("{hello}\n< \\x15\\x03\\x01\\x00\\x02\\x0{level}p\n"),
            &format!("> 0 ClientHello asks len 50 first\n= TLS\n< 0 Alert {told}\n"),
        );
    }
}
