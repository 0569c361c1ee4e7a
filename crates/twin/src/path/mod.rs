//! What happens to packets between two hosts?
//!
//! A path is a list of elements for each direction, in the order in which packets meet them. Every
//! element has the same interface, [`Element::process`], and so has the list of them,
//! [`Pipe::process`]. Nothing here reads a clock: the simulator passes a virtual time, the
//! laboratory the real one, and the same elements serve both.

mod ack_policy;
mod bottleneck;
mod codel;
mod delay;
mod duplicate;
mod jitter;
mod loss;
mod packet;
mod parse;
mod pick;
mod random;
mod record;
mod release;
mod reorder;
mod spec;

use std::collections::VecDeque;

use tcpwhy_wire::Instant;

pub use ack_policy::{AckPolicy, AckThinner, Count, Timer};
pub use bottleneck::{Bottleneck, Limit, Rate, Server, Trace};
pub use codel::Codel;
pub use delay::Delay;
pub use duplicate::Duplicate;
pub use jitter::{Jitter, Order};
pub use loss::Loss;
pub use packet::{Offload, Packet, TcpHead};
pub use parse::{SpecError, parse_bytes, parse_duration, parse_rate};
pub use pick::{Kind, Named, Pick, Picker};
pub use random::{Chance, Stream};
pub use record::{DropReason, Record, Waits, WaitsKept};
pub use reorder::{Hold, Reorder};
pub use spec::{ElementSpec, PathSpec, QueueSpec};

/// The longest list of elements in one direction. A packet carries its wait in each, so the list is
/// bounded.
pub const MAX_ELEMENTS: usize = 16;

/// The result of asking an element, or a whole pipe.
#[derive(Debug)]
pub enum Output {
    /// This packet goes on now. Ask again: there may be more.
    Packet(Packet),
    /// This packet goes no further. Ask again: there may be more.
    Dropped(Packet, DropReason),
    /// Nothing until then. A packet that arrives earlier may change that.
    Wait(Instant),
    /// Nothing until a packet arrives.
    Nothing,
}

/// One effect on packets. An enum, because every packet passes through the dispatch.
#[derive(Debug)]
pub enum Element {
    /// A constant delay.
    Delay(Delay),
    /// A random delay.
    Jitter(Jitter),
    /// A queue before a link.
    Bottleneck(Bottleneck),
    /// Packets that get lost.
    Loss(Loss),
    /// Packets that arrive twice.
    Duplicate(Duplicate),
    /// Packets that are overtaken.
    Reorder(Reorder),
    /// ACKs that another stack would have delayed.
    AckPolicy(AckThinner),
}

impl Element {
    /// Takes a packet, if there is one, and returns what comes out.
    ///
    /// The contract: time never goes back, and a packet is given at the time in its `at`. At most
    /// one packet comes out of a call, so the caller continues with `None` until the result is
    /// [`Output::Wait`] or [`Output::Nothing`], and asks again at the end of the wait, or before it
    /// gives a packet that arrives later. A packet that comes out has its due time in `at`, not
    /// after `now`. [`Pipe`] keeps the contract for its elements however late it is called itself,
    /// so that lateness changes only the time of delivery.
    pub fn process(&mut self, packet: Option<Packet>, now: Instant) -> Output {
        match self {
            Self::Delay(element) => element.process(packet, now),
            Self::Jitter(element) => element.process(packet, now),
            Self::Bottleneck(element) => element.process(packet, now),
            Self::Loss(element) => element.process(packet, now),
            Self::Duplicate(element) => element.process(packet, now),
            Self::Reorder(element) => element.process(packet, now),
            Self::AckPolicy(element) => element.process(packet, now),
        }
    }

    /// Packets inside.
    pub fn queued(&self) -> usize {
        match self {
            Self::Delay(element) => element.queued(),
            Self::Jitter(element) => element.queued(),
            Self::Bottleneck(element) => element.queued(),
            Self::Loss(_) => 0,
            Self::Duplicate(element) => element.queued(),
            Self::Reorder(element) => element.queued(),
            Self::AckPolicy(element) => element.queued(),
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
    /// A pipe of these elements, at most [`MAX_ELEMENTS`]; without any, it passes everything at
    /// once.
    pub fn new(elements: Vec<Element>) -> Self {
        assert!(elements.len() <= MAX_ELEMENTS, "at most {MAX_ELEMENTS} elements in one direction");
        Self { due: vec![None; elements.len()], elements, ..Self::default() }
    }

    /// Takes a packet, if there is one, and returns what comes out, by the contract of
    /// [`Element::process`], except that it may be called late. Dropped packets say which element
    /// dropped them.
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

    /// Packets inside, including those ready to be fetched.
    pub fn queued(&self) -> usize {
        self.ready.len() + self.elements.iter().map(Element::queued).sum::<usize>()
    }

    fn next_due(&self) -> Option<Instant> {
        self.due.iter().flatten().min().copied()
    }

    /// One pass along the path is enough: the output of an element only affects those after it.
    fn advance(&mut self, now: Instant) {
        for n in 0..self.elements.len() {
            if self.inbox.is_empty() && self.due[n].is_none_or(|due| due > now) {
                continue;
            }
            let mut arriving = std::mem::take(&mut self.inbox);
            for mut packet in arriving.drain(..) {
                let at = packet.at;
                packet.arrived = at;
                if self.due[n].is_some_and(|due| due <= at) {
                    self.drain(n, None, at);
                }
                self.drain(n, Some(packet), at);
            }
            if self.due[n].is_some_and(|due| due <= now) {
                self.drain(n, None, now);
            }
            // The output becomes the next element's input; the emptied list takes its output.
            self.inbox = std::mem::replace(&mut self.outbox, arriving);
        }
        self.ready.extend(self.inbox.drain(..));
    }

    /// Fetches everything that element `n` has at `now`.
    fn drain(&mut self, n: usize, mut packet: Option<Packet>, now: Instant) {
        loop {
            match self.elements[n].process(packet.take(), now) {
                Output::Packet(mut packet) => {
                    packet.waits.add(n, packet.at - packet.arrived);
                    if packet.id == 0 {
                        // A duplicate made by the element: it gets its own number.
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
                Output::Wait(at) => return self.due[n] = Some(at),
                Output::Nothing => return self.due[n] = None,
            }
        }
    }
}

#[cfg(test)]
mod tests;
