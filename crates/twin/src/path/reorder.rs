//! Which packets are overtaken, and by how much?

use std::collections::VecDeque;

use tcpwhy_wire::{Duration, Instant};

use super::{Output, Packet, Picker};

/// How long a picked packet is held while others pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// For a time.
    Time(Duration),
    /// Until this many others have passed, or for [`Hold::PATIENCE`] if fewer come.
    Packets(u32),
}

impl Hold {
    /// How long a packet waits for others to pass: longer than any reordering in real networks, so
    /// that the last packet of a conversation is late but not lost.
    pub const PATIENCE: Duration = Duration::from_millis(500);
}

/// Holds back picked packets; the others pass at once.
#[derive(Debug)]
pub struct Reorder {
    picker: Picker,
    hold: Hold,
    /// In order of arrival, in which they also become due: all are held by the same rule.
    held: VecDeque<Held>,
    /// Packets that have come out and were not fetched yet.
    out: VecDeque<Packet>,
}

#[derive(Debug)]
struct Held {
    packet: Packet,
    until: Instant,
    /// How many others have yet to pass.
    to_pass: u32,
}

impl Reorder {
    /// Holds back the packets that `picker` picks.
    pub const fn new(picker: Picker, hold: Hold) -> Self {
        Self { picker, hold, held: VecDeque::new(), out: VecDeque::new() }
    }

    /// See [`super::Element::process`].
    pub fn process(&mut self, packet: Option<Packet>, now: Instant) -> Output {
        self.release(now);
        if let Some(packet) = packet {
            if self.picker.picks(&packet).is_some() {
                let (until, to_pass) = match self.hold {
                    Hold::Time(span) => (packet.at + span, u32::MAX),
                    Hold::Packets(packets) => (packet.at + Hold::PATIENCE, packets),
                };
                self.held.push_back(Held { packet, until, to_pass });
            } else {
                self.out.push_back(packet);
                self.count_passing(now);
            }
            self.release(now);
        }
        match (self.out.pop_front(), self.held.front()) {
            (Some(packet), _) => Output::Packet(packet),
            (None, Some(first)) => Output::Wait(first.until),
            (None, None) => Output::Nothing,
        }
    }

    /// Packets inside.
    pub fn queued(&self) -> usize {
        self.held.len() + self.out.len()
    }

    /// A packet overtakes all held ones; a held packet that enough have passed follows it directly.
    fn count_passing(&mut self, now: Instant) {
        if let Hold::Packets(_) = self.hold {
            for held in &mut self.held {
                held.to_pass = held.to_pass.saturating_sub(1);
                if held.to_pass == 0 {
                    held.until = now;
                }
            }
        }
    }

    fn release(&mut self, now: Instant) {
        while let Some(held) = self.held.pop_front_if(|held| held.until <= now) {
            self.out.push_back(Packet { at: held.until, ..held.packet });
        }
    }
}
