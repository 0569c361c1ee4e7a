//! Which packets are lost on the path, for reasons other than a full queue?

use tcpwhy_wire::Instant;

use super::{Output, Packet, Picker};

/// Drops picked packets; the others pass at once.
#[derive(Debug)]
pub struct Loss {
    picker: Picker,
}

impl Loss {
    /// Drops the packets that `picker` picks.
    pub const fn new(picker: Picker) -> Self {
        Self { picker }
    }

    /// See [`super::Element::process`].
    pub fn process(&mut self, packet: Option<Packet>, _now: Instant) -> Output {
        let Some(packet) = packet else { return Output::Nothing };
        match self.picker.picks(&packet) {
            Some(reason) => Output::Dropped(packet, reason),
            None => Output::Packet(packet),
        }
    }
}
