//! Which interfaces are captured, and what if one goes and comes back? It then has a new index,
//! which the ring must be told.
//!
//! A single interface is bound to, so that no other packets run through the filter. For several,
//! one ring takes packets of all interfaces, and the filter keeps theirs: so packets stay in the
//! order in which they passed.

use super::filter::Instruction;
use super::link::Link;
use super::ring::{PacketSocket, Ring, interface_names};
use super::{CallError, Error, Filter, Options};

/// The interfaces by name, and their indexes at the last check.
pub(super) struct Interfaces {
    /// Empty if all are meant.
    names: Vec<String>,
    indexes: Vec<i32>,
    filter: Filter,
    snaplen: u32,
}

impl Interfaces {
    /// The interfaces that the options name, and their link type.
    pub(super) fn find(
        options: &Options,
        socket: impl FnOnce() -> Result<PacketSocket, Error>,
    ) -> Result<(Self, Link), Error> {
        let (filter, snaplen) = (options.filter.clone(), options.snaplen);
        let names: Vec<String> = options.interface.split(',').map(str::to_owned).collect();
        let mut found = Self { names, indexes: Vec::new(), filter, snaplen };
        if found.names.iter().any(|name| name == "any") {
            found.names.clear();
            return Ok((found, Link::LinuxSll2));
        }
        let socket = socket()?;
        let mut link = Link::LinuxSll2;
        for name in &found.names {
            let interface = socket
                .interface(name)?
                .ok_or_else(|| Error::NoInterface { interface: name.clone(), have: interface_names() })?;
            if !interface.up {
                return Err(Error::Down { interface: name.clone() });
            }
            found.indexes.push(interface.index);
            link = Link::of_hardware(interface.hardware);
        }
        let link = if found.names.len() == 1 { link } else { Link::LinuxSll2 };
        Ok((found, link))
    }

    /// What the ring is bound to: an index, or 0 for any.
    pub(super) fn bound(&self) -> i32 {
        match self.indexes[..] {
            [index] => index,
            _ => 0,
        }
    }

    /// The filter in the kernel.
    pub(super) fn program(&self) -> Vec<Instruction> {
        let several = if self.names.len() > 1 { &self.indexes[..] } else { &[] };
        self.filter.assemble(self.snaplen, several)
    }

    /// Replaces the filter; packets already in the ring stay.
    pub(super) fn narrow(&mut self, filter: Filter, ring: &Ring) -> Result<(), CallError> {
        self.filter = filter;
        ring.set_filter(&self.program())
    }

    /// Tells the ring if an interface has a new index.
    pub(super) fn follow(&mut self, ring: &Ring) -> Result<(), CallError> {
        let mut changed = false;
        for (name, index) in self.names.iter().zip(&mut self.indexes) {
            if let Some(now) = ring.interface(name)?.filter(|now| now.index != *index) {
                *index = now.index;
                changed = true;
            }
        }
        match (changed, self.names.len()) {
            (false, _) => Ok(()),
            (true, 1) => ring.bind(self.bound()),
            (true, _) => ring.set_filter(&self.program()),
        }
    }
}
