//! What does the ladder show as the trigger of each segment?

use tcpwhy_core::report::{Rung, Trigger};
use tcpwhy_core::{Analysis, Listing, Options};

use crate::invariants::EVERYTHING;
use crate::packet_log::{End, log, ms, settled};

/// The triggers of the data segments at the end of a log, near the server.
fn triggers(text: &str, last: usize) -> Vec<Trigger> {
    let mut analysis = Analysis::new(Options { listing: Listing::Connection(1), ..EVERYTHING });
    for segment in &log(text).rtt(ms(40)).capture(End::Server) {
        analysis.on_segment(segment);
    }
    let report = analysis.finish();
    let rungs = &report.connections[0].ladder;
    let data: Vec<Trigger> = rungs.iter().filter(|rung| rung.len > 0).map(Rung::trigger).collect();
    data[data.len() - last..].to_vec()
}

#[test]
fn a_segment_leaves_in_a_burst_for_a_write_an_acknowledgement_or_a_timer() {
    let burst = triggers("handshake\n +5 C 100\n +0 S 1448 more\n +0.1 S 500\n +30 S 600", 2);
    assert_eq!(burst, [Trigger::Burst, Trigger::Write]);
    // Packet 15 is the ACK of the ten before it.
    let released = triggers("handshake\n +5 C 100\n +0 S 1448x10 more\n +0 C ack\n +0 S 1448x2", 2);
    assert_eq!(released, [Trigger::Packet(15), Trigger::Burst]);
    let lost = "+5 C 100\n +0 S 1448 #head\n +0 S 500 lost\n head+0 C ack\n";
    let timer = triggers(&format!("{}{lost}+240 S 5448..5948\n +0 C ack", settled(20)), 1);
    assert_eq!(timer, [Trigger::Timer]);
    let probe = triggers(&format!("{}{lost}+42 S 5448..5948\n +0 C ack", settled(20)), 1);
    assert_eq!(probe, [Trigger::Write]);
}
