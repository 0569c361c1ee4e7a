//! What is to be kept of a capture, and how much at most?

use crate::tally::ledger::Listing;

/// What to keep, and how much.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Which exchanges are listed one by one.
    pub listing: Listing,
    /// Open connections at most, or up to a quarter more for a moment; one with much under way counts for several. Beyond it
    /// the ones that spoke longest ago are closed where they stand, and counted.
    pub max_connections: usize,
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
        Self { listing: Listing::None, max_connections: 1_000_000, seed: 0, plain: false, checked: false }
    }
}
