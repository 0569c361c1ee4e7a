//! What must hold for any bytes? One function for each fuzz target; each panics if a property does
//! not hold.

mod decoder;
mod filter;
mod fragments;
mod heads;
#[path = "../../../crates/core/tests/engine/invariants.rs"]
mod invariants;
mod pipeline;
mod reader;
#[path = "../../../crates/core/tests/engine/spread.rs"]
mod spread;
mod tracker;

/// A name and the function that takes the bytes.
pub(crate) type Target = (&'static str, fn(&[u8]));

/// Numbers of threads to share the work.
const SHARDS: [usize; 2] = [2, 8];

/// Every target.
pub(crate) const ALL: [Target; 8] = [
    ("pcap", reader::pcap),
    ("pcapng", reader::pcapng),
    ("decoder", decoder::packet),
    ("filter", filter::text),
    ("fragments", fragments::pieces),
    ("heads", heads::conversation),
    ("tracker", tracker::operations),
    ("pipeline", pipeline::capture),
];
