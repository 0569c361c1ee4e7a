//! What must hold whatever the bytes? One function for each fuzz target; each panics where something does not hold.

mod decoder;
mod filter;
#[path = "../../../crates/core/tests/engine/invariants.rs"]
mod invariants;
mod pipeline;
mod reader;
mod tracker;

/// Every target by name.
pub const ALL: [(&str, fn(&[u8])); 6] = [
    ("pcap", pcap),
    ("pcapng", pcapng),
    ("decoder", decoder),
    ("filter", filter),
    ("tracker", tracker),
    ("pipeline", pipeline),
];

/// Any bytes behind a pcap magic number.
pub fn pcap(data: &[u8]) {
    reader::pcap(data);
}

/// Any bytes behind a pcapng section header.
pub fn pcapng(data: &[u8]) {
    reader::pcapng(data);
}

/// Any packet of any link type, whole and cut.
pub fn decoder(data: &[u8]) {
    decoder::packet(data);
}

/// Any text as a filter.
pub fn filter(data: &[u8]) {
    filter::text(data);
}

/// Operations on a few connections.
pub fn tracker(data: &[u8]) {
    tracker::operations(data);
}

/// Bytes to reports.
pub fn pipeline(data: &[u8]) {
    pipeline::capture(data);
}
