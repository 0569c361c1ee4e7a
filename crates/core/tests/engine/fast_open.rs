//! A request that leaves with the SYN (TCP Fast Open, RFC 7413).

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server};
use tcpwhy_core::report::Kind;

use crate::packet_log::{log, ms};

/// The server accepts it: one round trip and the server's own time, and nothing for the handshake.
#[test]
fn a_request_that_the_syn_carries_needs_no_handshake() {
    let rtt = ms(20);
    let text = "@0 C syn data=100 #open
         +0 S syn #answer
         answer+0 C ack
         open+30 S 200
         +0 C ack
         +5 C 100
         +2 S 200
         +0 C ack";
    log(text).rtt(rtt).both_ends(|seen| {
        assert_eq!(seen.count(Kind::Setup), 0, "{seen}");
        let own = |think| [(Cause::RoundTrip, Path, rtt), (Cause::ServerThink, Server, think)];
        let first = seen.exchange(1);
        first.is_within(ms(1), &own(ms(30)));
        assert_eq!((first.exchange.request_bytes, first.exchange.reply_bytes), (100, 200), "{seen}");
        seen.exchange(2).is_within(ms(1), &own(ms(2)));
    });
}

/// The server ignores it (no cookie, or one of another key), and the client retransmits it after
/// the handshake.
#[test]
fn a_request_that_the_server_did_not_take_waits_for_the_handshake() {
    let rtt = ms(20);
    let text = "@0 C syn data=100 refused
         +0 S syn #answer
         answer+0 C 0..100 #request
         request+30 S 200
         +0 C ack";
    log(text).rtt(rtt).both_ends(|seen| {
        seen.setup().is_within(ms(1), &[(Cause::Handshake, Client, rtt)]);
        let first = seen.exchange(1);
        first.is_within(ms(1), &[(Cause::RoundTrip, Path, rtt), (Cause::ServerThink, Server, ms(30))]);
        assert_eq!((first.exchange.request_bytes, first.exchange.reply_bytes), (100, 200), "{seen}");
        assert_eq!(first.exchange.client_idle, ms(0), "{seen}");
    });
}

/// The first SYN is lost: the client waited for its timer, and if the server accepts data of the
/// second, no request is needed.
#[test]
fn a_syn_with_data_that_is_lost_waits_for_its_timer() {
    let rtt = ms(20);
    let second = [
        "@1000 C syn\n +0 S syn #answer\n answer+0 C 0..100 #request\n request+30 S 200\n +0 C ack",
        "@1000 C syn data=100 #again\n +0 S syn #answer\n answer+0 C ack\n again+30 S 200\n +0 C ack",
    ];
    for second in second {
        let text = format!("@0 C syn data=100 lost\n {second}");
        let near = log(text).rtt(rtt).seen_at(crate::packet_log::End::Client);
        near.setup()
            .is_within(ms(1), &[(Cause::SynRetransmit, Path, ms(1000)), (Cause::Handshake, Client, rtt)]);
        near.exchange(1).never(Cause::Unexplained).never(Cause::Rto);
    }
}

/// The client sends more after the SYN before it is answered, or the server's reply overtakes its
/// SYN-ACK: the message that this begins is not moved back to the SYN.
#[test]
fn data_between_a_syn_and_its_answer_keeps_its_place() {
    let texts = [
        "@0 C syn data=100\n @1 C 100 #more\n more+0 S syn #answer\n answer+0 C ack",
        "@0 C syn data=100 #open\n +0 S syn late=5 #answer\n open+1 S 200\n answer+0 C ack",
    ];
    for text in texts {
        log(text).rtt(ms(20)).both_ends(|seen| {
            assert_eq!(seen.count(Kind::Exchange) + seen.count(Kind::OneWay), 1, "{text}: {seen}");
        });
    }
}
