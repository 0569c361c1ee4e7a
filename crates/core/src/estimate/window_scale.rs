//! By how much are the advertised windows scaled, if no handshake tells?
//!
//! A receiver does not take back what it has offered (RFC 9293, 3.8.6; tcp_select_window,
//! net/ipv4/tcp_output.c), so a window field that falls while few bytes are acknowledged bounds the scale
//! from above. A sender does not send what does not fit, so the bytes in flight bound it from below.

use tcpwhy_wire::Seq;

/// RFC 7323, 2.3.
const MOST: u8 = 14;
/// Flights that just fit the window at one scale, before that scale is believed.
const SNUG_ENOUGH: u8 = 4;

/// Bounds of the scale of the windows that one end advertises.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ScaleBounds {
    least: u8,
    most: u8,
    last: Option<(Seq, u16)>,
    /// Flights that filled the window at the least scale.
    snug: u8,
}

impl ScaleBounds {
    pub(crate) const NONE: Self = Self { least: 0, most: MOST, last: None, snug: 0 };

    /// Whether the scale is what use of the windows has shown, not what a handshake said.
    pub(crate) fn is_in_use(self) -> bool {
        self.last.is_some()
    }

    /// The scale to use: as large as it may be, so that no window looks smaller than it is.
    pub(crate) fn scale(self) -> u8 {
        match self.least <= self.most {
            true if self.snug >= SNUG_ENOUGH => self.least,
            true => self.most,
            false => MOST, // the receiver did take something back
        }
    }

    /// Takes an ACK with its window field. `outstanding` is what had been sent beyond the ACK before it,
    /// `mss` the size of a full segment, both in bytes.
    pub(crate) fn on_ack(&mut self, ack: Seq, field: u16, outstanding: u32, mss: u32) {
        if let Some((last_ack, last_field)) = self.last {
            if ack.before(last_ack) {
                return;
            }
            self.fill(last_field, outstanding, mss);
            let moved = (ack - last_ack).max(0) as u64;
            // The field is rounded down, by less than one unit.
            let fell = u64::from(last_field.saturating_sub(field).saturating_sub(1));
            while self.most > 0 && fell << self.most > moved {
                self.most -= 1;
            }
        }
        self.last = Some((ack, field));
    }

    /// A window of `field` had room for `outstanding` bytes.
    fn fill(&mut self, field: u16, outstanding: u32, mss: u32) {
        let window = |scale: u8| (u64::from(field) + 1) << scale;
        let sent = u64::from(outstanding);
        while self.least < MOST && sent > window(self.least) {
            self.least += 1;
            self.snug = 0;
        }
        // By chance a flight comes within one segment of the window in at most one case in sixteen: above
        // half of it, if that is the window of a smaller scale.
        let segments = if self.least > 0 { 32 } else { 16 };
        let wide = window(self.least) >= segments * u64::from(mss);
        if wide && sent + u64::from(mss) > window(self.least) {
            self.snug = self.snug.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seq(n: u32) -> Seq {
        Seq(n)
    }

    #[test]
    fn flights_that_fill_an_unscaled_window_show_that_it_is() {
        let mut bounds = ScaleBounds::NONE;
        for n in 0..=4_u32 {
            bounds.on_ack(seq(n * 40_000), 40_000, if n == 0 { 0 } else { 39_500 }, 1448);
        }
        assert_eq!(bounds.scale(), 0);
    }

    #[test]
    fn a_window_that_closes_shows_its_scale() {
        let mut bounds = ScaleBounds::NONE;
        for n in 0..=32_u32 {
            bounds.on_ack(seq(n * 2048), (512 - n * 16) as u16, 0, 1448);
        }
        assert_eq!(bounds.scale(), 7);
    }

    #[test]
    fn a_flight_that_fills_the_window_shows_its_scale() {
        let mut bounds = ScaleBounds::NONE;
        for n in 0..6_u32 {
            bounds.on_ack(seq(n * 65_000), 512, 65_160, 1448);
        }
        assert_eq!(bounds.scale(), 7);
    }

    #[test]
    fn a_window_that_nothing_tests_is_as_large_as_it_may_be() {
        let mut bounds = ScaleBounds::NONE;
        for n in 0..100_u32 {
            bounds.on_ack(seq(n * 1448), 512, 2 * 1448, 1448);
        }
        assert_eq!(bounds.scale(), 14);
    }

    #[test]
    fn a_receiver_that_takes_back_its_offer_shows_nothing() {
        let mut bounds = ScaleBounds::NONE;
        bounds.on_ack(seq(0), 60_000, 0, 1448);
        bounds.on_ack(seq(0), 10, 100_000, 1448);
        assert_eq!(bounds.scale(), 14);
    }
}
