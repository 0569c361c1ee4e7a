//! Which records does a TLS connection have?

use tcpwhy_heads::{Conversation, Protocol};

use crate::log::{Piece, tells};

pub(crate) const LOGS: &[(&str, Protocol, &str)] =
    &[("tls12", Protocol::Tls, TLS12), ("tls13", Protocol::Tls, TLS13)];

const TLS12: &str = include_str!("../recorded/tls12.txt");
const TLS13: &str = include_str!("../recorded/tls13.txt");

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

/// A proxy is asked for a way to the server; what is said on it begins as on a connection of its own.
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

/// What is seen twice is said once: the proxy's consent, before the client goes on and behind that.
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
