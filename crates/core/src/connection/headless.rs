//! When did a message begin whose head came in two segments?
//!
//! Its first bytes show nothing, and belong to no message until the rest of the head has come. A program that writes a
//! header by itself does so each time (RFC 1006, 6: four bytes), and Nagle may hold the rest.

use tcpwhy_wire::{Duration, Instant, Segment, Seq};

use super::Connection;
use crate::bill::asked::Passed;
use crate::words::mark::Mark;

/// No more of a head is kept than this. Source: none written down.
pub(super) const HEAD_MAX: u32 = 64;

/// Bytes of one end that belong to no message yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Headless {
    seq: Seq,
    bytes: u32,
    /// The first packet that had some of them.
    first: (Instant, u64),
}

impl Headless {
    /// So many bytes from `seq` on, which passed `now` with this segment, and those before them.
    pub(super) fn behind(
        before: Option<Self>,
        [seq, end]: [Seq; 2],
        now: Instant,
        segment: &Segment,
    ) -> Option<Self> {
        let bytes = u32::try_from(end - seq).ok()?;
        let known = before.filter(|before| before.seq + before.bytes == seq);
        let own = known.unwrap_or(Self { seq, bytes: 0, first: (now, segment.packet) });
        let bytes = own.bytes.saturating_add(bytes);
        (1..=HEAD_MAX).contains(&bytes).then_some(Self { bytes, ..own })
    }
}

impl Connection {
    /// Gives a message that a mark begins the bytes of its head that had passed before.
    pub(super) fn join_head(&mut self, mark: &Mark, of: Option<(u64, bool)>, from: usize) {
        let Some(talk) = self.talk.as_deref_mut() else { return };
        let Some(head) = talk.unread[from].headless.take().filter(|head| head.seq == mark.seq) else {
            return;
        };
        let Some((ask, is_answer)) = of.and_then(|(n, is_answer)| Some((talk.find(n)?, is_answer))) else {
            return;
        };
        let (bytes, end) = (u64::from(head.bytes), head.seq + head.bytes);
        let passed = Passed { first: head.first, last: head.first, bytes, end };
        if is_answer {
            ask.answer.get_or_insert(passed);
        } else if ask.question.bytes == 0 {
            let sooner = (ask.question.first.0 - head.first.0).max(Duration::ZERO);
            (ask.start, ask.idle) = (ask.start - sooner, (ask.idle - sooner).at_least_zero());
            ask.question = passed;
        }
    }
}

/// Takes off what lies behind the end of a message, which its head tells: the beginning of the next head.
pub(super) fn clip(passed: Option<&mut Passed>, end: Option<Seq>) {
    let Some((passed, end)) = passed.zip(end) else { return };
    let behind = u32::try_from(passed.end - end).unwrap_or(0);
    if (1..=HEAD_MAX).contains(&behind) {
        (passed.bytes, passed.end) = (passed.bytes.saturating_sub(behind.into()), end);
    }
}
