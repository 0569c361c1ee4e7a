//! What was asked, in the words of the protocols?
//!
//! Bills need no words, so none are kept for them; to show the words, the capture is read once more.

use tcpwhy_wire::Segment;

use crate::epoch::asked::Asked;
use crate::epoch::listening::Listening;
use crate::epoch::options::Options;
use crate::flow::hash::Keys;

/// Reads requests from the payload of all connections.
#[derive(Clone, Debug)]
pub struct Requests {
    keys: Keys,
    listening: Listening,
}

impl Requests {
    /// With a secret that the capture's author does not know.
    pub fn new(seed: u64) -> Self {
        Self { keys: Keys::new(seed), listening: Listening::keeping_words(Options::default().memory) }
    }

    /// The requests in a segment, from as much of its payload as was captured, and in segments that
    /// waited for it.
    pub fn on_segment(&mut self, segment: &Segment, captured: &[u8]) -> Vec<Asked> {
        let ends = self.keys.mix(segment.src, segment.dst).ends;
        self.listening.on_segment(ends, segment, captured);
        self.listening.take_words()
    }
}
