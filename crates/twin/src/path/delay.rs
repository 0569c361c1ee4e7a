//! How long does propagation take? A constant delay, the same for every packet.

use std::collections::VecDeque;

use tcpwhy_wire::{Duration, Instant};

use super::{Output, Packet};

/// Holds each packet for the same time; the order stays.
#[derive(Debug)]
pub struct Delay {
    delay: Duration,
    held: VecDeque<Packet>,
}

impl Delay {
    /// Each packet leaves `delay` after it arrived.
    pub fn new(delay: Duration) -> Self {
        Self { delay, held: VecDeque::new() }
    }

    /// See [`super::Element::process`].
    pub fn process(&mut self, packet: Option<Packet>, now: Instant) -> Output {
        if let Some(mut packet) = packet {
            packet.at = packet.at + self.delay;
            self.held.push_back(packet);
        }
        match self.held.front() {
            None => Output::Nothing,
            Some(first) if first.at > now => Output::Wait(first.at),
            Some(_) => self.held.pop_front().map_or(Output::Nothing, Output::Packet),
        }
    }

    /// Packets inside.
    pub fn queued(&self) -> usize {
        self.held.len()
    }
}
