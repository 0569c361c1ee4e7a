//! What do two routers say to each other? (RFC 4271, 4; RFC 2918 for refreshes; RFC 8654 for longer
//! messages)
//!
//! There are no requests: both open and wait for the other's OPEN, and after that each reports
//! changes, or that it is still there.

use crate::head::{Head, Role};
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk, u16_at};

/// Marker, length, type.
const HEADER_LEN: u16 = 19;
const MARKER: [u8; 16] = [0xff; 16];
/// Minimum length of an OPEN.
const OPEN_LEN_MIN: u16 = 29;
const OPEN: u8 = 1;

/// No state is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Bgp;

impl Talk for Bgp {
    const FIRST: FirstBytes = FirstBytes::of(b"\xff");

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        is_message(client) && (server.is_empty() || is_message(server))
    }

    fn step(&mut self, _: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let Some(&kind) = bytes.get(usize::from(HEADER_LEN) - 1) else { return Step::Need };
        let Some((len, role, name)) = header(bytes, kind) else { return Step::Wrong };
        out.put(Head::whole(role, name, u64::from(len)));
        Step::Skip(u64::from(len))
    }

    fn begins(&self, _: Side, first: First<'_>, _: bool) -> bool {
        is_message(first)
    }

    fn lose(&mut self, _: Side) {}
}

fn is_message(first: First<'_>) -> bool {
    first.bytes.get(usize::from(HEADER_LEN) - 1).is_some_and(|kind| header(first.bytes, *kind).is_some())
}

fn header(bytes: &[u8], kind: u8) -> Option<(u16, Role, &'static str)> {
    let len = u16_at(bytes, MARKER.len()).filter(|_| bytes.starts_with(&MARKER))?;
    let (least, role, name) = match kind {
        OPEN => (OPEN_LEN_MIN, Role::Greets, "OPEN"),
        2 => (HEADER_LEN + 4, Role::Pushes, "UPDATE"),
        3 => (HEADER_LEN + 2, Role::Pushes, "NOTIFICATION"),
        4 if len == HEADER_LEN => (HEADER_LEN, Role::Neither, "KEEPALIVE"),
        5 => (HEADER_LEN + 4, Role::Pushes, "ROUTE-REFRESH"),
        _ => return None,
    };
    (len >= least).then_some((len, role, name))
}
