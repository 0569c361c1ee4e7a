//! What is to be kept of a capture, and how much at most?

use crate::tally::ledger::Listing;

/// What an analysis may take unless it is told otherwise.
const MEMORY: usize = 512_000_000;

/// What to keep, and how much.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Which exchanges are listed one by one.
    pub listing: Listing,
    /// Open connections at most, or up to a quarter more for a moment; one with much under way counts for several. Beyond it
    /// the ones that spoke longest ago are closed where they stand, and counted.
    pub max_connections: usize,
    /// Bytes that all of it may take, about. Beyond that the least valuable is given up first: what is remembered of finished
    /// connections, packets and exchanges beyond the first ones of a list, the connections that spoke longest ago. All of
    /// that is counted.
    pub memory: usize,
    /// Decides where connections are kept, and nothing that a report shows. Whoever reads captures of strangers gives
    /// one that they cannot know, so that no capture can be made to be slow.
    pub seed: u64,
    /// Take no shortcut: each segment is worked on when it comes, and each mechanism asked each time. That is the slow
    /// obvious model that tests compare with: the report is the same.
    pub plain: bool,
    /// Work on usual segments on both code paths, and panic where they leave different states: for tests.
    pub checked: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listing: Listing::None,
            max_connections: 1_000_000,
            memory: MEMORY,
            seed: 0,
            plain: false,
            checked: false,
        }
    }
}
