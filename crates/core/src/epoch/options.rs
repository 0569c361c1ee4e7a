//! What is to be kept of a capture, and how much at most?

use crate::tally::ledger::Listing;

/// What an analysis may take unless set otherwise.
const MEMORY: usize = 1_000_000_000;

/// What to keep, and how much.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Which exchanges are listed one by one.
    pub listing: Listing,
    /// The most open connections, briefly up to a quarter more; one with much under way counts for
    /// several. Beyond that the ones that have been silent longest are closed as they are, and counted.
    pub max_connections: usize,
    /// The approximate total size in bytes. Beyond it the least valuable data is given up first: what
    /// is remembered of finished connections, packets and exchanges beyond the first ones of a list,
    /// the connections that have been silent longest. All of that is counted.
    pub memory: usize,
    /// Decides where connections are kept, and nothing that a report shows. Programs that read captures
    /// of strangers should set a secret value, so that no capture can be crafted to be slow.
    pub seed: u64,
    /// Take no shortcut: work on each segment as it comes, and ask each rule each time. This is the
    /// slow, obvious model that tests compare with: the report is the same.
    pub plain: bool,
    /// Work on usual segments on both code paths, and panic if they leave different states: for tests.
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
