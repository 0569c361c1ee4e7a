//! What does one loss cost where it needs several repairs, and the first transmissions are in no packet?

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Path, Server};
use tcpwhy_core::report::Confidence::Possible;

use crate::packet_log::{End, log, ms, settled};

/// Of a flight of six segments only the second arrives, 112 bytes; the first is repaired by a timer, and the last four one round trip
/// after another (frames 2347 to 2360 of a browser behind a VPN). The numbers of the lost ones are missing, so the server did not pause
/// when the repair had closed the only hole.
#[test]
fn what_is_lost_behind_the_segment_that_showed_a_hole_is_repaired_after_it() {
    let text = format!(
        "{} +5 C 641 #q\n q+160 S 1448 lost\n +0 S 112\n +0 S 1448x3 more lost\n q+415 S 8000..9448 #first\n +0 C ack\n \
         first+300 S 9560..11008 more #second\n +0 C ack\n second+300 S 11008..12456 more\n +0 S 12456..13904\n +0 C ack",
        settled(40)
    );
    let seen = log(text).rtt(ms(200)).without_timestamps().seen_at(End::Client);
    let bill = seen.exchange(41);
    assert!(bill.ns(Cause::SenderThink, Server) < ms(10), "{seen}");
    assert!(bill.ns(Cause::Rto, Path) + bill.ns(Cause::Loss, Path) >= ms(800), "{seen}");
}

/// Three segments of a reply are lost and repaired one and two at a time (frames 1293 to 1463 of the same capture): the second repair
/// leaves when its sender hears of the first, and waits for no timer.
#[test]
fn repairs_of_one_round_wait_for_no_timer_of_their_own() {
    let text = format!(
        "{} +5 C 641 #q\n q+10 S 1448x3 lost more\n +0 S 1448x2 more #seen\n seen+0 C ack\n q+345 S 8000..9448 more #first\n +0 C ack #heard\n \
         heard+158 S 9448..10896 more\n +2.8 S 10896..12344 more #last\n last+0 C ack\n last+201 S 1000\n +0 C ack",
        settled(40)
    );
    let seen = log(text).rtt(ms(200)).without_timestamps().seen_at(End::Client);
    let bill = seen.exchange(41);
    let rto = bill.ns(Cause::Rto, Path);
    assert!(rto < ms(400), "{rto}: {seen}");
    assert!(bill.ns(Cause::Loss, Path) >= ms(350), "{seen}");
}

/// The second of two repairs of one burst is 3 ms behind the first, which a timer had waited for: of a loss for that, it is no proof.
#[test]
fn a_repair_beside_another_one_waited_for_no_loss() {
    let text = format!(
        "{} +5 C 641 #q\n q+10 S 1448x2 lost more\n +0 S 1448x2 more #seen\n seen+0 C ack\n q+420 S 8000..9448 more\n \
         +3 S 9448..10896 more #last\n last+0 C ack\n last+201 S 1000\n +0 C ack",
        settled(40)
    );
    let seen = log(text).rtt(ms(200)).without_timestamps().seen_at(End::Client);
    assert_eq!(seen.exchange(41).of(Cause::Loss).confidence, Possible, "{seen}");
}
