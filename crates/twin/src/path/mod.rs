//! What happens to packets between two hosts?
//!
//! A path is a list of elements for each direction, in the order in which packets meet them. Every element has one
//! shape, [`Element::process`], and so has the list of them, [`Pipe::process`]. Nothing here reads a clock: the
//! simulator passes a virtual time, the laboratory the real one, and the same elements serve both.

mod delay;
mod packet;
mod random;
mod record;
mod spec;

use std::collections::VecDeque;

use tcpwhy_wire::Instant;

pub use delay::Delay;
pub use packet::{Offload, Packet, TcpHead};
pub use random::{Chance, Stream};
pub use record::{DropReason, Record, Waits};
pub use spec::{ElementSpec, PathSpec, SpecError, parse_bytes, parse_duration, parse_rate};

/// The longest list of elements in one direction. A packet carries its wait in each, so the list is bounded.
pub const MAX_ELEMENTS: usize = 16;

/// What an element, or a whole pipe, answers.
#[derive(Debug)]
pub enum Output {
    /// This packet goes on now. Ask again: there may be more.
    Packet(Packet),
    /// This packet goes no further. Ask again: there may be more.
    Dropped(Packet, DropReason),
    /// Nothing until then. A packet that arrives meanwhile may change that.
    Wait(Instant),
    /// Nothing until a packet arrives.
    Nothing,
}

/// One thing that happens to packets on the way. An enum, because every packet passes through the dispatch.
#[derive(Debug)]
pub enum Element {
    /// A constant delay.
    Delay(Delay),
}

impl Element {
    /// Takes a packet, where there is one, and answers what comes out.
    ///
    /// The contract: packets arrive with `at` in order and not after `now`; `now` never goes back. One packet comes
    /// out of a call at the most, so the caller goes on with `None` until it is answered [`Output::Wait`] or
    /// [`Output::Nothing`]. What comes out carries in `at` the time at which it was due, in order and not after `now`.
    pub fn process(&mut self, packet: Option<Packet>, now: Instant) -> Output {
        match self {
            Self::Delay(element) => element.process(packet, now),
        }
    }

    /// Packets inside.
    pub fn queued(&self) -> usize {
        match self {
            Self::Delay(element) => element.queued(),
        }
    }
}

/// The elements of one direction, in the order in which packets meet them.
#[derive(Debug, Default)]
pub struct Pipe {
    elements: Vec<Element>,
    /// When each element wants to be asked again.
    due: Vec<Option<Instant>>,
    /// Packets and drops that have come out and were not fetched yet.
    ready: VecDeque<Packet>,
    /// Between two elements, during one call.
    inbox: Vec<Packet>,
    outbox: Vec<Packet>,
    entered: u64,
}

impl Pipe {
    /// A pipe of these elements, at most [`MAX_ELEMENTS`]; none make a pipe that hands on everything at once.
    pub fn new(elements: Vec<Element>) -> Self {
        assert!(elements.len() <= MAX_ELEMENTS, "at most {MAX_ELEMENTS} elements in one direction");
        Self { due: vec![None; elements.len()], elements, ..Self::default() }
    }

    /// Takes a packet, where there is one, and answers what comes out, by the contract of [`Element::process`].
    /// Dropped packets carry which element dropped them.
    pub fn process(&mut self, packet: Option<Packet>, now: Instant) -> Output {
        if let Some(mut packet) = packet {
            self.entered += 1;
            packet.id = self.entered;
            packet.entered = packet.at;
            self.inbox.push(packet);
            self.advance(now);
        } else if self.ready.is_empty() && self.next_due().is_some_and(|due| due <= now) {
            self.advance(now);
        }
        match (self.ready.pop_front(), self.next_due()) {
            (Some(packet), _) => match packet.dropped {
                Some((_, reason)) => Output::Dropped(packet, reason),
                None => Output::Packet(packet),
            },
            (None, Some(due)) => Output::Wait(due),
            (None, None) => Output::Nothing,
        }
    }

    /// Packets inside, those ready to be fetched included.
    pub fn queued(&self) -> usize {
        self.ready.len() + self.elements.iter().map(Element::queued).sum::<usize>()
    }

    fn next_due(&self) -> Option<Instant> {
        self.due.iter().flatten().min().copied()
    }

    /// One pass along the path is enough: what comes out of an element can only change those behind it.
    fn advance(&mut self, now: Instant) {
        for (n, (element, due)) in self.elements.iter_mut().zip(&mut self.due).enumerate() {
            if self.inbox.is_empty() && due.is_none_or(|due| due > now) {
                continue;
            }
            let mut arriving = self.inbox.drain(..);
            loop {
                let next = arriving.next().map(|mut packet| {
                    packet.arrived = packet.at;
                    packet
                });
                let more = next.is_some();
                match element.process(next, now) {
                    Output::Packet(mut packet) => {
                        packet.waits.add(n, packet.at - packet.arrived);
                        if packet.id == 0 {
                            // A copy made by the element: it gets a number of its own.
                            self.entered += 1;
                            packet.id = self.entered;
                        }
                        self.outbox.push(packet);
                    }
                    Output::Dropped(mut packet, reason) => {
                        packet.waits.add(n, packet.at - packet.arrived);
                        packet.dropped = Some((n, reason));
                        self.ready.push_back(packet);
                    }
                    Output::Wait(_) | Output::Nothing if more => {}
                    Output::Wait(at) => {
                        *due = Some(at);
                        break;
                    }
                    Output::Nothing => {
                        *due = None;
                        break;
                    }
                }
            }
            drop(arriving);
            std::mem::swap(&mut self.inbox, &mut self.outbox);
        }
        self.ready.extend(self.inbox.drain(..));
    }
}

#[cfg(test)]
mod tests;
