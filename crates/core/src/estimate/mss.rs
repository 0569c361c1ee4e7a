//! How large is a full segment, if no SYN tells?
//!
//! A segment without PSH has more of its sender's queue after it (RFC 9293, 3.9.1), so it is full: it has
//! the length of the MSS, or with segmentation offload of a multiple. The greatest common divisor of such
//! lengths is a multiple too.

/// Ethernet's MSS, less the time stamp option if that is in use.
const ETHERNET: u32 = 1460;
/// Every host takes segments of this size (RFC 9293, 3.7.1); smaller ones are not full.
const LEAST: u32 = 536;
/// Jumbo frames.
const MOST: u32 = 9000;
/// What Ethernet leaves for the payload after the usual headers and tunnels.
const USUAL: std::ops::RangeInclusive<u32> = 1200..=ETHERNET;

/// What most paths leave (PPPoE, tunnels, clamped SYNs): few jumbo frames are a multiple of it.
const COMMON_MIN: u32 = 1380;

/// What segment lengths show of the MSS.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct FullSize {
    /// The greatest common divisor of the lengths so far, 0 before the first.
    unit: u32,
    /// Shorter segments without PSH that waited for nothing.
    short_at_once: u8,
}

/// So many are not by chance.
const SHORT_MIN: u8 = 3;

impl FullSize {
    /// Takes a segment that had more after it.
    pub(crate) fn on_unpushed(&mut self, payload_len: u32) {
        if payload_len < LEAST || payload_len == self.unit {
            return;
        }
        let common = gcd(payload_len, self.unit);
        // A window or MSG_MORE cut this segment short, or the ones before.
        self.unit = if common < LEAST { payload_len.max(self.unit.min(MOST)) } else { common };
    }

    /// If the MSS is known: whether a shorter segment, as long as the previous one (`len`), is the second such
    /// one of its length.
    pub(crate) fn repeats(&mut self, len: Option<u32>) -> bool {
        let len = len.filter(|&len| len >= LEAST).unwrap_or(0);
        std::mem::replace(&mut self.unit, len) == len && len > 0
    }

    /// A shorter segment without PSH left right behind the one before, whose length is another.
    pub(crate) fn on_short_at_once(&mut self) {
        self.short_at_once = self.short_at_once.saturating_add(1);
    }

    /// Whether the sender leaves PSH out of shorter segments although nothing holds them: proxies do that
    /// resend what they received as it came.
    pub(crate) fn tells_nothing(self) -> bool {
        self.short_at_once >= SHORT_MIN
    }

    /// Whether it has done so at all.
    pub(crate) fn may_tell_nothing(self) -> bool {
        self.short_at_once > 0
    }

    /// The MSS in bytes: as shown, or Ethernet's. `options` is the length of the options in every segment.
    #[inline]
    pub(crate) fn mss(self, options: u32) -> u32 {
        let ethernet = ETHERNET - options;
        if self.unit == 0 || self.unit.is_multiple_of(ethernet) {
            return ethernet;
        }
        let parts = (2..=64).map(|n| (n, self.unit / n)).take_while(|(_, part)| part >= USUAL.start());
        let usual =
            parts.filter(|(n, part)| n * part == self.unit && USUAL.contains(part)).map(|(_, part)| part);
        match usual.max() {
            Some(part) if self.unit > MOST || part >= COMMON_MIN => part,
            _ if self.unit <= MOST => self.unit,
            _ => ethernet,
        }
    }
}

fn gcd(mut a: u32, mut b: u32) -> u32 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(lengths: &[u32], options: u32) -> u32 {
        let mut size = FullSize::default();
        for &length in lengths {
            size.on_unpushed(length);
        }
        size.mss(options)
    }

    #[test]
    fn what_has_more_behind_it_is_full() {
        assert_eq!(after(&[1388, 1388], 12), 1388);
        assert_eq!(after(&[8948], 12), 8948);
        assert_eq!(after(&[], 12), 1448);
        assert_eq!(after(&[], 0), 1460);
    }

    #[test]
    fn super_segments_are_multiples() {
        assert_eq!(after(&[2896, 14_480, 65_160], 12), 1448);
        assert_eq!(after(&[7 * 1388 * 2, 9 * 1388], 12), 1388);
        assert_eq!(after(&[24 * 1400], 12), 1400);
        assert_eq!(after(&[7265], 0), 1453);
        assert_eq!(after(&[8960], 0), 8960);
    }

    #[test]
    fn one_cut_short_does_not_count() {
        assert_eq!(after(&[1388, 700, 1388, 1388], 12), 1388);
        assert_eq!(after(&[100, 20], 12), 1448);
    }
}
