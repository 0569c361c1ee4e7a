//! When did a message begin whose head came in two segments?
//!
//! Its first bytes show nothing, and belong to no message until the rest of the head has come. A program that writes a
//! header by itself does so each time (RFC 1006, 6: four bytes), and Nagle may hold the rest.

use tcpwhy_wire::{Instant, Segment, Seq};

use crate::bill::asked::Passed;

/// No more of a head is kept than this. Source: none written down.
pub(super) const HEAD_MAX: u32 = 64;

/// Bytes of one end that belong to no message yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Headless {
    pub seq: Seq,
    pub bytes: u32,
    /// The first packet that had some of them.
    pub first: (Instant, u64),
}

impl Headless {
    /// So many bytes from `seq` on, which passed `now` with this segment, and those before them.
    pub(super) fn behind(
        before: Option<Box<Self>>,
        [seq, end]: [Seq; 2],
        now: Instant,
        segment: &Segment,
    ) -> Option<Box<Self>> {
        let bytes = u32::try_from(end - seq).ok()?;
        let known = before.filter(|before| before.seq + before.bytes == seq).map(|before| *before);
        let own = known.unwrap_or(Self { seq, bytes: 0, first: (now, segment.packet) });
        let bytes = own.bytes.saturating_add(bytes);
        (1..=HEAD_MAX).contains(&bytes).then(|| Box::new(Self { bytes, ..own }))
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
