//! Which packets arrive twice?

use tcpwhy_wire::Instant;

use super::{Output, Packet, Picker};

/// Sends a duplicate right after each picked packet.
#[derive(Debug)]
pub struct Duplicate {
    picker: Picker,
    copy: Option<Packet>,
}

impl Duplicate {
    /// Duplicates the packets that `picker` picks.
    pub const fn new(picker: Picker) -> Self {
        Self { picker, copy: None }
    }

    /// See [`super::Element::process`].
    pub fn process(&mut self, packet: Option<Packet>, _now: Instant) -> Output {
        match packet {
            None => self.copy.take().map_or(Output::Nothing, Output::Packet),
            Some(packet) => {
                debug_assert!(self.copy.is_none(), "the caller has not fetched everything");
                // The pipe gives the duplicate its own number.
                self.copy = self.picker.picks(&packet).map(|_| Packet {
                    id: 0,
                    copy_of: Some(packet.id),
                    ..packet.clone()
                });
                Output::Packet(packet)
            }
        }
    }

    /// Packets inside.
    pub fn queued(&self) -> usize {
        usize::from(self.copy.is_some())
    }
}
