//! Which packets arrive twice?

use tcpwhy_wire::Instant;

use super::{Output, Packet, Picker};

/// Sends a copy right behind each packet that is picked.
#[derive(Debug)]
pub struct Duplicate {
    picker: Picker,
    copy: Option<Packet>,
}

impl Duplicate {
    /// Copies what `picker` picks.
    pub const fn new(picker: Picker) -> Self {
        Self { picker, copy: None }
    }

    /// See [`super::Element::process`].
    pub fn process(&mut self, packet: Option<Packet>, _now: Instant) -> Output {
        match packet {
            None => self.copy.take().map_or(Output::Nothing, Output::Packet),
            Some(packet) => {
                debug_assert!(self.copy.is_none(), "the caller has not fetched everything");
                // The pipe gives the copy a number of its own.
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
