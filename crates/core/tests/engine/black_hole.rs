//! A path that silently drops large packets, against one that loses packets of any size.

use tcpwhy_core::Form;
use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Path, Server};
use tcpwhy_core::report::Confidence::Likely;
use tcpwhy_wire::Duration;

use crate::packet_log::{End, MSS, log, ms};

/// A reply of one full segment and a small one; the full one is lost five times, then comes `then`.
fn stuck(then: &str) -> String {
    let copies: String =
        [9, 237, 693, 1621, 3445].map(|at| format!("hang+{at} S 0..{MSS} more lost\n")).concat();
    format!(
        "handshake\n +0 C 200\n +0 S ack\n +0 S {MSS} more lost #hang\n hang+0 S 600 #tail\n tail+0 C ack\n {copies} {then}"
    )
}

/// In the end the sender tries smaller segments, which pass (frames 6 to 14 of a recording at a
/// link of 1,400 bytes).
#[test]
fn what_passes_only_in_smaller_pieces_was_too_large() {
    let then = format!("hang+7093 S 0..1024 more\n +0 C ack\n +0 S 1024..{MSS} more\n +0 C ack");
    log(stuck(&then)).rtt(ms(20)).both_ends(|seen| {
        let bill = seen.exchange(1);
        assert_eq!(bill.exchange.elapsed, ms(20 + 7093 + 20), "{seen}");
        let line = bill.of(Cause::Rto);
        assert_eq!((line.side, line.detail.form), (Path, Some(Form::BlackHole)), "{seen}");
        assert!(line.ns >= ms(7000), "{seen}");
    });
}

/// Nothing ever passes, and the client gives up: it waited until then.
#[test]
fn an_asker_that_gives_up_has_waited_until_then() {
    log(stuck("hang+8000 C fin")).rtt(ms(20)).both_ends(|seen| {
        let bill = seen.exchange(1);
        let line = bill.of(Cause::Rto);
        assert_eq!((line.side, line.detail.form), (Path, Some(Form::BlackHole)), "{seen}");
        let waited = bill.exchange.elapsed - ms(8010);
        assert!(waited.max(-waited) <= ms(11), "{}: {seen}", bill.exchange.elapsed);
    });
}

/// The same losses where full segments have passed before, and of a tail that is small itself.
#[test]
fn what_has_passed_before_is_not_too_large() {
    let copies = |bytes: &str| -> String {
        [9, 237, 693].map(|at| format!("hang+{at} S {bytes} more lost\n")).concat()
            + &format!("hang+1621 S {bytes} more\n +0 C ack\n")
    };
    let passed = format!(
        "handshake\n +0 C 200\n +0 S {MSS}x3\n +0 C ack\n +5 C 200\n +0 S {MSS} more lost #hang\n hang+0 S 600\n +0 C ack\n {}",
        copies(&format!("{}..{}", 3 * MSS, 4 * MSS))
    );
    let small = format!(
        "handshake\n +0 C 200\n +0 S 300 more lost #hang\n hang+0 S 600\n +0 C ack\n {}",
        copies("0..300")
    );
    for text in [passed, small] {
        let seen = log(text).rtt(ms(20)).seen_at(End::Server);
        let forms: Vec<_> = seen.report.findings.iter().filter_map(|finding| finding.detail.form).collect();
        assert!(forms.contains(&Form::Timeout) && !forms.contains(&Form::BlackHole), "{forms:?} {seen}");
    }
}

/// A client that closes with the whole reply at hand has waited for nothing.
#[test]
fn who_closes_behind_the_answer_waits_for_nothing() {
    let text = format!("handshake\n +0 C 200\n +1 S {MSS}x3\n +0 C ack\n +5000 C fin");
    log(text).rtt(ms(20)).both_ends(|seen| {
        let expected = [(Cause::RoundTrip, Path, ms(20)), (Cause::ServerThink, Server, ms(1))];
        seen.exchange(1).is(&expected);
    });
}

/// A small tail that never came, at the client: likely, and not because of its size.
#[test]
fn a_hole_that_nobody_fills_is_waited_for() {
    let text = format!(
        "handshake\n +0 C 200\n +1 S {MSS} more\n +0 S 300 more lost\n +0 S 300\n +0 C ack\n +2000 C fin"
    );
    let seen = log(text).rtt(ms(20)).seen_at(End::Client);
    let bill = seen.exchange(1);
    let line = bill.of(Cause::Rto);
    assert_eq!((line.detail.form, line.confidence), (Some(Form::Unrepaired), Likely), "{seen}");
    assert!(line.ns - ms(2000) <= Duration::from_micros(10), "{seen}");
}

/// A farewell that is overtaken by its FIN, after the client's own FIN, is nothing the client had
/// waited for.
#[test]
fn what_is_missed_only_behind_the_closing_was_not_waited_for() {
    let text = "handshake\n +0 C 200\n +1 S 179\n +40 C ack\n +771 C fin\n +0 S ack\n +3961 S 24 late=5\n +0 S fin\n +0 C rst";
    let seen = log(text).rtt(ms(224)).seen_at(End::Client);
    let expected = [(Cause::RoundTrip, Path, ms(224)), (Cause::ServerThink, Server, ms(1))];
    seen.exchange(1).is(&expected);
}

/// A sender that begins with segments of 536 bytes, as to hosts that announce no size, loses one of them (frames 86 to 104 of a browser):
/// others of that length have arrived, so none was too large for the path.
#[test]
fn a_lost_segment_as_short_as_those_that_came_was_not_too_large() {
    let text = "handshake\n +5 C 1835 #q\n q+5 S 536 more\n +0 S 536 lost more\n +0 S 536x2 more #flight\n flight+0 C ack\n
         q+1000 S 536..1072 more\n +0 C ack\n +0 S 900\n +0 C ack";
    let seen = log(text).rtt(ms(200)).seen_at(End::Client);
    let bill = seen.exchange(1);
    let repair = bill.of(Cause::Rto);
    assert!(repair.ns >= ms(900) && repair.detail.form != Some(Form::BlackHole), "{seen}");
}

/// The same, where the end of the flight overtakes those of that length, and a second one is lost (frames 82 to 458 of the browser).
#[test]
fn what_came_into_a_hole_was_not_too_large_for_the_path() {
    let text = "handshake\n +5 C 1835 #q\n q+5 S 536 more late=4 #a\n a+0.1 S 536 lost more\n a+0.2 S 536x2 more late=4\n a+0.3 S 536 lost more\n a+0.4 S 433 #end\n
         end+5 C ack\n a+1700 S 536..1072 more #b\n b+0 C ack\n b+8600 S 2144..2680 more\n +0 C ack";
    let seen = log(text).rtt(ms(200)).seen_at(End::Client);
    let bill = seen.exchange(1);
    let repair = bill.of(Cause::Rto);
    assert!(repair.ns >= ms(9_000) && repair.detail.form == Some(Form::Timeout), "{seen}");
}

/// A router refuses three full segments, and 7 ms later their sender repeats them in pieces, on a path of 260 ms (frames 204 to 214 of a capture whose
/// ICMP messages say so): no probe, and nothing of the receiver's.
#[test]
fn what_is_sent_again_in_pieces_at_once_was_refused() {
    for (again, form) in [(7, None), (300, Some(Form::TailProbe))] {
        let text = format!(
            "handshake\n +5 C 100\n +0 S ack\n +1 S 200\n +0 C ack\n +5 C 1448x3 more lost #q\n +0 C 475 lost\n q+{again} C 100..1540 more
             +0.005 C 1540..2980 more\n +0.005 C 2980..4420 more\n +0.03 C 4420..4919\n +0 S ack\n +1 S 300\n +0 C ack"
        );
        let seen = log(text).rtt(ms(260)).seen_at(End::Client);
        let bill = seen.exchange(2);
        let line = bill.of(Cause::Loss);
        assert!(line.detail.form == form && line.ns >= ms(again) && line.ns < ms(again + 1), "{seen}");
        assert!(form.is_some() || line.confidence == Likely, "{seen}");
    }
}
