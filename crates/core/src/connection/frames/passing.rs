//! Can a segment be known to hold no HTTP/2 frame before it is processed?

use super::super::frame_sizes::{FRAME_LENGTHS, is_as_long_as_ping};
use super::{Frames, SETTINGS_WITHIN};
use crate::flow::ends::CLIENT;

impl Frames {
    /// Whether a segment of `len` bytes holds no frame, as far as is known, and shows nothing about the
    /// connection. One as long as a PING must be a message of one segment, and answer one.
    #[expect(
        clippy::inline_always,
        reason = "it is asked of each segment with data, and a call costs as much as what it asks"
    )]
    #[inline(always)]
    pub(in crate::connection) fn passes(&self, len: u32, from: usize) -> bool {
        if self.record.is_some() || self.opening > 0 {
            return false;
        }
        if self.counted[from] >= SETTINGS_WITHIN {
            return !is_as_long_as_ping(len) || self.is_no_echo(len, from);
        }
        self.passes_at_first(len, from)
    }

    /// The same at the beginning of a connection.
    #[inline(never)]
    fn passes_at_first(&self, len: u32, from: usize) -> bool {
        // Once the client has sent data, it is known whether that began with a preface: only another length
        // can show more.
        let begun = from != CLIENT || self.counted[CLIENT] > 0;
        let known = begun || self.settings == [[false; 3]; 2];
        let no_frame = len >= u64::BITS || FRAME_LENGTHS >> len & 1 == 0;
        known && (no_frame || is_as_long_as_ping(len) && self.is_no_echo(len, from))
    }

    /// Whether no PING of the same length came right before it or during a request.
    fn is_no_echo(&self, len: u32, from: usize) -> bool {
        self.part == 0 && self.last != (1 - from as u8, len)
    }

    /// Processes a segment that holds no frame, as the general path does.
    #[inline]
    pub(in crate::connection) fn on_passing(&mut self, len: u32, from: usize) {
        let begun = self.counted[from] >= SETTINGS_WITHIN;
        if begun && !is_as_long_as_ping(len) {
            self.last = (from as u8, 0);
            return;
        }
        (self.answers, self.goes_on) = (false, false);
        self.last = (from as u8, len);
        if !begun {
            self.count(len, from);
        }
    }
}
