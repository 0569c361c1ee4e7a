//! Programs that were not written for a test: servers, brokers, crypto libraries, as the exam
//! records them.

use tcpwhy_core::Mark;
use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Path, Server};

use crate::packet_log::{End, log, ms};
use crate::spoken::{read_marked, spent_on};

/// A server writes its flight in separate records, a tenth of a millisecond apart, and later a
/// piece that leaves as an ACK arrives (the JDK's TLS in Tomcat, which sets TCP_NODELAY). Near the
/// client each record is acknowledged before the next one comes; as these ACKs needed half an RTT
/// to the server, it shows there as well that Nagle is off.
#[test]
fn who_does_not_mind_nagle_shows_it_far_away_too() {
    let flight = "+1 S 127 #hello\n +0 C ack\n hello+0.1 S 6\n +0 C ack\n hello+0.2 S 600\n +0 C ack\n";
    let answer = "+1 S 100 #head\n +0 C ack\n head+40 S 300\n +0 C ack\n";
    log(format!("handshake\n +2 C 500\n {flight} +5 C 200\n {answer}")).rtt(ms(40)).both_ends(|seen| {
        seen.exchange(2).is(&[
            (Cause::RoundTrip, Path, ms(40)),
            (Cause::ServerThink, Server, ms(1)),
            (Cause::SenderThink, Server, ms(40)),
        ]);
    });
}

/// TLS through a proxy: a client asks for a tunnel to the server (CONNECT, or SOCKS, which is not
/// read), and sets up its session through it.
#[test]
fn what_sets_up_a_session_behind_a_proxy_s_consent_is_tls_s() {
    let text = "handshake\n +1 C 35\n +1 S 39\n +0.5 C 517 asks #hello\n hello+2 S 1333 answers\n +1 C 173\n +80 S 645\n +0 C ack";
    for end in End::BOTH {
        let log = log(text).rtt(ms(40));
        let says = log.marks();
        let report = read_marked(&log.capture(end), |segment| {
            says(segment).into_iter().map(|mark| Mark { session: true, ..mark }).collect()
        });
        let [way, hello] = [1, 2].map(|n| &report.connections[0].exchanges[n]);
        assert_eq!(spent_on(way, Cause::RoundTrip), ms(40), "{end:?}");
        assert_eq!(spent_on(hello, Cause::TlsHandshake), ms(40), "{end:?}: {hello:#?}");
    }
}

/// A mobile network's proxy sends on what it received, in pieces as they came and with PSH here and
/// there (frames 1101 to 1117 of a browser's connection): no piece was held back for another.
#[test]
fn a_proxy_that_sends_pieces_as_they_came_corks_none() {
    let text = "handshake
         +5 C 100
         +0 S 279 more
         +0 S 1448 more
         +0 S 491 more
         +0 S 1448 more
         +0 S 649 more
         +0 S 1448 more
         +0 S 18 more
         +0 C ack
         +0 S 930 more
         +0 C ack
         +0 S 300
         +0 C ack";
    log(text).rtt(ms(40)).both_ends(|seen| assert_eq!(seen.spent(Cause::Cork, Server), ms(0), "{seen}"));
}
