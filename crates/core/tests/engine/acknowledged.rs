//! Who acknowledges, and when: is it the server, and since when does it have its request?

use tcpwhy_core::cause::Cause;
use tcpwhy_core::report::Confidence::{self, Certain, Likely, Possible};
use tcpwhy_core::report::Exchange;
use tcpwhy_wire::{Duration, Endpoint};

use crate::packet_log::{End, SERVER, log, ms, settled};
use crate::seen::Seen;

fn of(exchange: &Exchange, cause: Cause) -> Duration {
    exchange.bill.iter().filter(|line| line.cause == cause).map(|line| line.ns).sum()
}

fn sure_of(exchange: &Exchange, cause: Cause) -> Confidence {
    let lines = exchange.bill.iter().filter(|line| line.cause == cause);
    lines.map(|line| line.confidence).max().unwrap_or(Possible)
}

/// A box acknowledges within 16 ms for a server 97 ms away, with the SYN-ACK's time stamp (frames
/// 242 to 299 of a browser's capture, in a network that inspects its traffic): a millisecond clock
/// would have advanced. An acknowledgement with an advanced stamp, or from as far away, is the
/// server's own.
#[test]
fn an_acknowledgement_with_the_stamp_of_before_its_question_shows_no_distance() {
    let text = "@0 C syn\n @89 S syn\n +0 C ack\n +0.2 C 517 #q\n q+0 S ack\n q+147 S 1400\n +0.3 C ack\n +2 C 126\n +163 S 200\n +0 C ack";
    for (repeats, least, most) in [(true, 96, 98), (false, 15, 17)] {
        let mut segments = log(text).rtt(ms(16)).capture(End::Client);
        let stamps = segments[1].options.timestamps;
        if let Some((stamps, own)) = stamps.zip(segments[4].options.timestamps.as_mut()).filter(|_| repeats) {
            own.val = stamps.val;
        }
        let seen = Seen::of(segments, "the client, behind a box");
        for n in 1..=2 {
            let way = seen.exchange(n).of(Cause::RoundTrip).ns;
            assert!(way >= ms(least) && way <= ms(most), "{n}: {seen}");
        }
    }
}

/// Through a virtual machine's NAT the second SYN is answered after 149 ms, a request is acknowledged after 36
/// and answered after 221, and the FIN is acknowledged after 0.2 (frames 2046 to 2056 of a scan): the NAT
/// acknowledges the FIN, and only the SYN-ACK shows the RTT.
#[test]
fn who_acknowledges_a_fin_in_between_shows_no_way_that_the_last_syn_took() {
    let text = "@0 C syn lost\n @1073 C syn #second\n second+149 S syn\n +0 C ack\n +0.3 C 88 #q\n q+35.8 S ack\n q+221 S 185\n +0 C ack\n
         +0.4 C fin #over\n over+0 S ack\n over+4.8 S fin\n +0 C ack";
    let private = Endpoint::v4([10, 0, 2, 15], 45_054);
    let ends = [private, Endpoint::v4([104, 21, 11, 100], 80)];
    let seen = log(text).rtt(ms(0.2)).between(ends).without_timestamps().seen_at(End::Client);
    let (opened, bill) = (seen.setup(), seen.exchange(1));
    assert!(
        opened.of(Cause::Handshake).ns >= ms(149) && opened.of(Cause::SynRetransmit).ns <= ms(1_074),
        "{seen}"
    );
    assert!(of(bill.exchange, Cause::RoundTrip) >= ms(149), "{seen}");
    assert_eq!(sure_of(bill.exchange, Cause::ServerThink), Possible, "{seen}");
}

/// A virtual machine's NAT opens a connection by itself, and acknowledges at once (frames 9 to 14 of one): how much of 714 ms until
/// the answer is the path's beyond it, nothing shows. A private address may be its server's own.
#[test]
fn a_host_in_between_that_opens_by_itself_hides_the_whole_way() {
    let client = Endpoint::v4([172, 16, 25, 128], 49_159);
    for (address, sure) in [([5, 178, 71, 10], Likely), ([172, 16, 25, 10], Certain)] {
        let text = "@0 C syn\n +0.8 S syn\n +0 C ack\n +0.3 C 288 asks=1 #q\n q+0 S ack\n q+314 S 1420 answers=1\n +0 C ack";
        let seen = log(text).rtt(ms(0.05)).between([client, Endpoint::v4(address, 80)]).seen_at(End::Client);
        assert_eq!(sure_of(seen.exchange(1).exchange, Cause::ServerThink), sure, "{seen}");
    }
}

/// Requests get bare acknowledgements 19, 23 and 4.7 ms later than the quickest, 222, 0 and 18 ms
/// before their replies (frames 403 to 412 of a mail reader's capture, 89 to 119 and 311 to 318 of
/// browsers'): no host's delayed-ACK timer is so short, and the time before the acknowledgement was
/// not the server's. Where the host delayed its ACK by 40 ms, that time remains the server's.
#[test]
fn an_acknowledgement_sooner_than_any_timer_says_since_when_the_server_has_its_question() {
    for (late, thinks) in [(19.0, 222.0), (23.0, 0.0), (4.7, 18.2)] {
        let text = format!(
            "{}+5 C 150 late={late} #q\n q+0 S ack\n +{thinks} S 228\n +0 C ack",
            settled(2) + "+5 C 100\n +0 S ack\n +10 S 200\n +0 C ack\n"
        );
        let seen = log(text).rtt(ms(156)).without_timestamps().seen_at(End::Client);
        let bill = seen.exchange(4).exchange;
        let (think, queued) = (of(bill, Cause::ServerThink), of(bill, Cause::Queueing));
        assert!(think <= ms(thinks + 0.2) && think + ms(0.2) >= ms(thinks), "{seen}");
        assert!(queued <= ms(late + 0.2) && queued + ms(0.2) >= ms(late), "{seen}");
        assert_eq!(sure_of(bill, Cause::Queueing), Possible, "{seen}");
    }
    let seen = log(settled(2) + "+5 C 100 #q\n q+40 S ack\n +110 S 200\n +0 C ack")
        .rtt(ms(156))
        .without_timestamps()
        .seen_at(End::Client);
    assert!(of(seen.exchange(3).exchange, Cause::ServerThink) >= ms(149), "{seen}");
    // A program that reads late triggers the acknowledgement of a second write.
    let seen = log(settled(2) + "+5 C 100\n +1 C 100 #q\n q+20 S ack\n +110 S 200\n +0 C ack")
        .rtt(ms(156))
        .without_timestamps()
        .seen_at(End::Client);
    assert!(of(seen.exchange(3).exchange, Cause::ServerThink) >= ms(129), "{seen}");
}

/// A request of three segments is acknowledged in two pieces at one instant, 103 ms later than the RTT, and the
/// reply comes 139 ms after that (frames 953 to 961 of a browser over a phone): a timer would have acknowledged
/// all of it at once, so that the path held it, or both ACKs. If only the second ACK is 103 ms late, a timer of
/// 100 ms may have held that back.
#[test]
fn what_is_acknowledged_piece_by_piece_had_waited_for_no_timer() {
    for (b, c, acked, answered, stood) in [(103.0, 103.2, 0, 138.8, 103.2), (0.0, 0.0, 103, 242.0, 0.0)] {
        let text = format!(
            "handshake\n +5 C 100\n +0 S 200\n +0 C ack\n +20 C 1448x2 late={b} more #b\n +0 C 300 late={c} #c
             b+0 S ack\n c+{acked} S ack\n c+{answered} S 600\n +0 C ack"
        );
        let seen = log(text).rtt(ms(87)).without_timestamps().seen_at(End::Client);
        let exchange = seen.exchange(2).exchange;
        assert_eq!(of(exchange, Cause::ServerThink), ms(answered), "{seen}");
        assert_eq!(of(exchange, Cause::Queueing), ms(stood), "{seen}");
        assert_eq!(sure_of(exchange, Cause::Queueing), Possible, "{seen}");
    }
}

/// The SYN-ACK comes after 100 ms, the acknowledgement of the ClientHello after 107.6, and the reply 44.5 later, stamped
/// 59 ms after the acknowledgement (frames 122 to 130 of a browser's capture): the path took at most 93.2 ms of
/// these 152.1. Where the stamps agree with the handshake, all of that is the path.
#[test]
fn a_path_is_no_longer_than_the_servers_own_stamps_leave() {
    for (opens, asks, way, least) in [(14.4, 7.6, 85.6, 93.2), (0.0, 0.0, 93.2, 93.2)] {
        let text = format!(
            "@0 C syn\n +0 S syn late={opens}\n +0 C ack\n +0.3 C 517 late={asks} #q\n q+0 S ack late={opens}\n q+58.9 S 1448\n +0 C ack"
        );
        let seen = log(text).rtt(ms(way)).seen_at(End::Client);
        let bill = seen.exchange(1).exchange;
        let way = of(bill, Cause::RoundTrip) + of(bill, Cause::TlsHandshake);
        assert!(
            way <= ms(least + 1.5) && way >= ms(least - 1.5) && of(bill, Cause::ServerThink) >= ms(57),
            "{seen}"
        );
        assert_eq!(sure_of(bill, Cause::RoundTrip) == Certain, opens == 0.0, "{seen}");
    }
}

/// The SYN-ACK comes after 171.7 ms, and so does every answer; the first request is acknowledged after 17.6, by a packet whose
/// number is 9,000 beyond those of the server, a Windows that counts (frames 3070 to 3200 of a browser in a campus).
/// Numbered as the server's next one, it is the server's, and the handshake stood.
#[test]
fn whoever_acknowledges_with_another_hosts_numbers_is_not_the_server() {
    for (apart, way) in [(9_000, 171.7), (0, 17.6)] {
        let mut segments =
            log("handshake\n +2 C 214 #q\n q+0 S ack\n q+212 S 1400\n +0 C ack\n +5 C 158 #r\n r+0 S 120\n +0 C ack")
                .rtt(ms(171.7))
                .without_timestamps()
                .capture(End::Client);
        let asked = segments.iter().find(|segment| segment.payload_len == 214).map(|segment| segment.at);
        for segment in segments.iter_mut().filter(|segment| segment.src == SERVER) {
            segment.ttl = 108;
            if segment.flags.syn() {
                segment.ip_id = Some(699);
            } else if segment.payload_len == 0 {
                segment.at = asked.expect("a request") + ms(17.6);
                segment.ip_id = segment.ip_id.map(|id| id + apart);
            } else if apart > 0 {
                segment.ip_id = segment.ip_id.map(|id| id - 1);
            }
        }
        segments.sort_by_key(|segment| segment.at);
        let seen = Seen::of(segments, "the client");
        for (n, wait) in [(1, 171.7 + 212.0), (2, 171.7)] {
            let exchange = seen.exchange(n).exchange;
            assert_eq!(of(exchange, Cause::RoundTrip), ms(way), "{seen}");
            assert!(
                of(exchange, Cause::ServerThink).max(ms(wait - way) + ms(0.1)) <= ms(wait - way + 0.2),
                "{seen}"
            );
            assert_eq!(of(exchange, Cause::ServerThink).is_positive(), wait > way, "{seen}");
        }
    }
}
