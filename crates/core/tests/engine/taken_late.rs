//! Handshakes whose SYN-ACK is retransmitted after the one that the client accepted, seen at the
//! server.

use tcpwhy_core::cause::{Cause, Side};
use tcpwhy_core::report::Confidence::{Certain, Likely, Possible};
use tcpwhy_wire::Duration;

use crate::packet_log::{End, log, ms};
use crate::seen::Seen;

/// The difference between the two.
pub(crate) fn off(one: Duration, other: Duration) -> Duration {
    (one - other).max(other - one)
}

/// RTTs of 10 s, seen at a server that retransmits its SYN-ACK after 1, 3, 7 and 15: nothing was
/// lost (frames 222 to 228 of a mail server's capture). If nothing else shows the RTT, that is at
/// most possible. An ACK 7 s later than the RTT answers the retransmission sent then, or was held
/// up; one 5 s later was held up.
#[test]
fn copies_of_a_syn_ack_that_had_arrived_repaired_nothing() {
    let next = "+20 S 44 #hello\n hello+0 C ack\n +5 C 19\n +1 S 100\n +0 C ack";
    for (late, next, way, sure, cause) in [
        (0, next, 10_000, Likely, None),
        (0, "", 10_000, Possible, None),
        (7_100, next, 10_000, Likely, Some(Cause::SynRetransmit)),
        (5_000, next, 10_000, Likely, Some(Cause::Queueing)),
    ] {
        let last = if late > 5_300 { "first+15300 S syn\n" } else { "" };
        let text = format!(
            "@0 C syn #syn
             syn+0 S syn #first
             first+1010 S syn
             first+3030 S syn
             first+7100 S syn
             {last}first+0 C ack late={late}
             {next}"
        );
        let seen = log(text).rtt(ms(10_000)).seen_at(End::Server);
        let setup = seen.setup();
        let handshake = setup.of(Cause::Handshake);
        assert!(off(handshake.ns, ms(way)) <= ms(1) && handshake.confidence == sure, "{seen}");
        let above = setup.exchange.bill.iter().find(|line| line.cause != Cause::Handshake);
        assert_eq!(
            above.map(|line| (line.cause, line.confidence)),
            cause.map(|cause| (cause, Possible)),
            "{seen}"
        );
        assert!(above.is_none_or(|line| off(line.ns, ms(late)) <= ms(1)), "{seen}");
    }
}

/// The stamp of the third SYN-ACK is echoed: the two before it had been lost, and the later ones
/// repaired nothing.
#[test]
fn the_copy_that_was_taken_repaired_what_was_lost_before_it() {
    let text = "@0 C syn #syn
         syn+0 S syn lost #first
         first+1010 S syn lost
         first+3030 S syn #third
         first+7100 S syn
         third+0 C ack
         +20 S 44 #hello
         hello+0 C ack
         +5 C 19
         +1 S 100
         +0 C ack";
    let seen = log(text).rtt(ms(5_000)).seen_at(End::Server);
    let bill = seen.setup();
    let copies = bill.of(Cause::SynRetransmit);
    assert!(off(copies.ns, ms(3_030)) <= ms(1) && copies.confidence == Certain, "{seen}");
    assert!(off(seen.setup().of(Cause::Handshake).ns, ms(5_000)) <= ms(1), "{seen}");
}

/// A path to the client that stands for 1.5 s, seen at the server (frames 3 to 50 of a blog's capture): the client repeats its
/// SYN, and the server its SYN-ACK, but the ACK echoes the stamp of the first one. Nothing was lost.
#[test]
fn a_syn_that_was_repeated_while_the_syn_ack_stood_repaired_nothing() {
    let text = "@0 C syn #syn
         syn+0 S syn late=1500 #first
         syn+1100 C syn #again
         again+0 S syn late=500
         again+97 S syn late=500
         first+0 C ack
         +20 C 44 #hello
         hello+0 S ack
         +5 S 100
         +0 C ack";
    let seen = log(text).rtt(ms(9)).seen_at(End::Server);
    seen.setup().elapsed(ms(1_509), ms(1)).never(Cause::SynRetransmit);
}

/// A mail server greets 12 ms after the ACK of its first SYN-ACK, which took 10 s (frames 84 to 102
/// of that capture): before, it knew of no connection, and the client's retransmitted SYNs do not
/// show how far away it is. If nothing ever times the path to the client, the round trip at the
/// server's end is possible at most.
#[test]
fn a_server_greets_no_sooner_than_its_syn_ack_is_acknowledged() {
    let rest = "greeting+0 C ack\n +5 C 19\n +1 S 100\n +0 C ack";
    for (rest, at, path) in [
        (rest, End::Server, Some((ms(10_000), Likely))),
        (rest, End::Client, Some((ms(10_000), Likely))),
        ("", End::Server, None),
    ] {
        let text = format!(
            "@0 C syn #syn
             syn+0.2 S syn #first
             first+1010 S syn
             first+3030 S syn
             first+7100 S syn
             first+0 C ack #taken
             taken+12 S 44 #greeting
             {rest}"
        );
        let seen = log(text).rtt(ms(10_000)).seen_at(at);
        let greeting = seen.exchange(1);
        let think = greeting.of(Cause::ServerThink).ns;
        assert!(off(think, ms(12)) <= ms(1), "{seen}");
        let way = greeting.of(Cause::RoundTrip);
        assert!(path.is_none_or(|(ns, _)| off(way.ns, ns) <= ms(1)), "{seen}");
        assert_eq!(way.confidence, path.map_or(Possible, |(_, sure)| sure), "{seen}");
    }
}

/// The ACKs of three SYN-ACKs are lost before the server gets one and greets, 11 ms later (frames
/// 147 to 157 of a laboratory capture): it retransmitted each SYN-ACK because it had no ACK of it.
#[test]
fn a_server_that_repeats_its_syn_ack_has_had_no_acknowledgement() {
    let rest = "greeting+0 C ack\n +5 C 19\n +1 S 100\n +0 C ack";
    for rtt in [0, 30].map(ms) {
        let text = format!(
            "@0 C syn
             +0 S syn #first
             first+0 C ack lost
             first+1020 S syn #second
             second+0 C ack lost
             first+3036 S syn #third
             third+0 C ack
             +11 S 44 #greeting
             {rest}"
        );
        log(text).rtt(rtt).seen_at(End::Client).exchange(1).is(&[
            (Cause::SynRetransmit, Side::Path, ms(3_036)),
            (Cause::ServerThink, Side::Server, ms(11)),
            (Cause::RoundTrip, Side::Path, rtt),
        ]);
    }
    for copy in [100, 2_990] {
        let text = format!(
            "@0 C syn
             +0 S syn #first
             first+0 C ack
             first+{copy} S syn #second
             second+0 C ack
             first+3000 S 44 #greeting
             {rest}"
        );
        let seen = log(text).rtt(ms(60)).seen_at(End::Client);
        assert_eq!(seen.exchange(1).of(Cause::ServerThink).ns, ms(2_940), "{seen}");
    }
}

/// A SYN-ACK is retransmitted after a second, and its ACK comes a round trip later: the first one was lost, or
/// the ACK of it, if no time stamp tells (a copy seen in the middle of a path, 1,045 ms, certain). The copy's
/// stamp, echoed, does; a client that had the first one goes on echoing that (RFC 7323, 5.3, R3).
#[test]
fn a_repeated_syn_ack_is_no_certain_loss_unless_its_stamp_is_echoed() {
    let rest = "+5 C 100\n +0 S ack\n +1 S 100\n +0 C ack";
    let lost = format!("@0 C syn\n +0 S syn lost #first\n first+1000 S syn\n +0 C ack\n {rest}");
    let taken =
        format!("@0 C syn\n +0 S syn #first\n first+0 C ack lost\n first+1000 S syn\n +0 C ack\n {rest}");
    for (text, stamps, sure) in [(&lost, true, Certain), (&lost, false, Likely), (&taken, false, Likely)] {
        for sixteenths in [8, 16] {
            let log = log(text.as_str()).rtt(ms(45));
            let log = if stamps { log } else { log.without_timestamps() };
            let seen = Seen::of(log.capture_at(sixteenths), &format!("{sixteenths}, {stamps}"));
            let setup = seen.setup();
            let line = setup.of(Cause::SynRetransmit);
            assert!(off(line.ns, ms(1_000)) <= ms(12) && line.confidence == sure, "{seen}");
        }
    }
}

/// A telephone answers five SYN-ACKs with three ACKs, the first 907 ms after the last of them, and all else at once
/// (frames 1370 to 1553 of an access point's capture): the way to it stood, and nothing shows that any was lost.
#[test]
fn an_acknowledgement_long_behind_the_last_copy_shows_no_loss() {
    for (late, most) in [(907, Possible), (40, Likely)] {
        let text = format!(
            "@0 C syn
             +36 S syn lost #first
             first+102 S syn lost
             first+210 S syn lost
             first+320 S syn lost
             first+1327 S syn late={late}
             +0 C ack
             +3 C 1460
             +0 S ack
             +800 C 362
             +0.5 S ack
             +20 S 1460
             +0.2 C ack"
        );
        let seen = log(text).rtt(ms(0.3)).without_timestamps().seen_at(End::Server);
        let setup = seen.setup();
        assert_eq!(setup.of(Cause::SynRetransmit).confidence, most, "{seen}");
    }
}

/// A phone's radio holds a SYN-ACK for 266 ms, seen at the server (frames 43 to 47 of an FTP server's capture): by the time stamps of the client the
/// ACK left 270 ms after the SYN. An ACK that left at once was late itself, and kept nobody waiting. What is late by less than a timer may be a timer's.
#[test]
fn a_syn_ack_that_its_client_took_late_by_its_own_clock_stood() {
    for (rtt, there, back, stood) in [(4, 266, 0, 266), (4, 0, 266, 0), (180, 100, 0, 0)] {
        let text = format!(
            "@0 C syn
             +0 S syn late={there}
             +0 C ack late={back} #open
             open+0.2 S 442
             +0 C ack
             +5 C 100
             +1 S 200
             +0 C ack"
        );
        let seen = log(text).rtt(ms(rtt)).seen_at(End::Server);
        let setup = seen.setup().elapsed(ms(rtt + stood), ms(1));
        let queues = setup.exchange.bill.iter().filter(|line| line.cause == Cause::Queueing);
        let queues: Vec<_> = queues.map(|line| (line.ns, line.confidence)).collect();
        assert_eq!(queues, if stood > 0 { vec![(ms(stood), Possible)] } else { Vec::new() }, "{seen}");
    }
}
