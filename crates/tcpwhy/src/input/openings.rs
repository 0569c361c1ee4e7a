//! How did connections begin that are read only from the middle on?
//!
//! With `--from`, a ladder still shows the sequence numbers and windows that Wireshark shows for
//! the whole file: they count from the SYN, and windows are scaled by its option, and both are in
//! packets before the window. Those packets are read for that purpose only. A limited number of
//! connections is remembered, those seen most recently.

use std::collections::HashMap;

use tcpwhy_core::{Opening, Report};
use tcpwhy_wire::capture::RawPacket;
use tcpwhy_wire::{Anonymizer, Decoded, Endpoint, Segment, decode, decode_usual};

/// Connections remembered: between this many and twice as many...
const REMEMBERED: usize = 1 << 14;
/// ...each of this many bytes, in a table that is never more than seven eighths full, and at times
/// half of that...
const ENTRY: usize = (size_of::<([Endpoint; 2], Begun)>() + 1) * 16 / 7;
/// ...but at most this share of the memory.
const PART: usize = 32;

/// What packets before the window say of each connection. Empty unless requested.
#[derive(Debug, Default)]
pub struct Openings {
    /// Maximum number of connections in each table; 0 if not requested.
    most: usize,
    /// Connections seen since the table was last full, and those seen before.
    recent: HashMap<[Endpoint; 2], Begun>,
    older: HashMap<[Endpoint; 2], Begun>,
    /// Some have been forgotten: an apparent first packet of a connection may be a later one.
    has_forgotten: bool,
}

/// The last connection on these ports before the window. The lower endpoint comes first.
#[derive(Clone, Copy, Debug)]
struct Begun {
    opening: Opening,
    /// The window scale option of each end's SYN.
    scales: [Option<Scale>; 2],
    /// The packet with which the next connection began on these ports.
    replaced_at: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    By(u8),
    /// The SYN has no such option.
    Not,
    /// The capture does not have all of its options.
    Cut,
}

/// A larger shift is an error of the sender (RFC 7323, 2.3).
const SCALE_MAX: u8 = 14;

impl Openings {
    pub(super) fn begin(&mut self, memory: usize) -> usize {
        self.most = (memory / PART / (2 * ENTRY)).clamp(1, REMEMBERED);
        self.most * 2 * ENTRY
    }

    /// A packet before the window.
    #[inline]
    pub(super) fn on_earlier(&mut self, packet: &RawPacket<'_>) {
        if self.most > 0
            && let Ok(segment) = decode(packet)
        {
            self.learn(&segment, false);
        }
    }

    /// A packet of the window: its SYN may belong to a connection that began before it, or begin
    /// the next one on these ports.
    #[inline]
    pub(super) fn on_wanted(&mut self, packet: &RawPacket<'_>) {
        if self.most > 0
            && let Ok(Decoded::Other(segment)) = decode_usual(packet)
            && segment.flags.syn()
        {
            self.learn(&segment, true);
        }
    }

    fn learn(&mut self, segment: &Segment, is_wanted: bool) {
        let from = usize::from(segment.src > segment.dst);
        let ends = if from == 0 { [segment.src, segment.dst] } else { [segment.dst, segment.src] };
        if !self.recent.contains_key(&ends) {
            let known = self.older.remove(&ends);
            // A connection that begins in the window needs no help.
            if is_wanted && known.is_none() {
                return;
            }
            if self.recent.len() >= self.most {
                self.has_forgotten |= !self.older.is_empty();
                self.older = std::mem::take(&mut self.recent);
            }
            self.recent.insert(ends, known.unwrap_or(Begun::NEW));
        }
        let Some(begun) = self.recent.get_mut(&ends) else { return };
        let is_next = segment.flags.syn()
            && !segment.flags.ack()
            && begun.opening.counts_from[from].is_some_and(|seq| seq != segment.seq);
        if is_next && is_wanted {
            begun.replaced_at = begun.replaced_at.min(segment.packet);
        }
        if begun.replaced_at < u64::MAX {
            return;
        }
        if is_next {
            *begun = Begun::NEW;
        }
        begun.on_segment(segment, from);
    }

    /// Makes the report's ladders count from there. `names` has replaced the report's addresses, if
    /// given.
    pub fn open(&self, report: &mut Report, mut names: Option<&mut Anonymizer>) {
        for connection in report.connections.iter_mut().filter(|connection| !connection.ladder.is_empty()) {
            let ends = [connection.client, connection.server];
            if let Some(opening) = self.of(ends, connection.packet_range[0], names.as_deref_mut()) {
                connection.open_with(&opening);
            }
        }
    }

    /// What is known of a connection between client and server whose first packet in the window is
    /// this one.
    fn of(&self, ends: [Endpoint; 2], packet: u64, names: Option<&mut Anonymizer>) -> Option<Opening> {
        let turned = [ends[1], ends[0]];
        let (client, begun) = match names {
            None => {
                let client = usize::from(ends[0] > ends[1]);
                let ends = if client == 0 { ends } else { turned };
                (client, self.recent.get(&ends).or_else(|| self.older.get(&ends))?)
            }
            Some(names) => self.recent.iter().chain(&self.older).find_map(|(known, begun)| {
                let named = known.map(|end| names.endpoint(end));
                (named == ends || named == turned).then_some((usize::from(named != ends), begun))
            })?,
        };
        let is_first = begun.opening.has_syn || !self.has_forgotten;
        (is_first && packet < begun.replaced_at).then(|| begun.opening(client))
    }
}

impl Begun {
    const NEW: Self = Self {
        opening: Opening { counts_from: [None; 2], has_syn: false, scales: [None; 2] },
        scales: [None; 2],
        replaced_at: u64::MAX,
    };

    fn on_segment(&mut self, segment: &Segment, from: usize) {
        self.opening.on_segment(segment, from);
        if segment.flags.syn() {
            self.scales[from] = Some(match segment.options.window_scale {
                Some(scale) => Scale::By(scale.min(SCALE_MAX)),
                None if segment.options.cut => Scale::Cut,
                None => Scale::Not,
            });
        }
    }

    /// With the client's half first. Windows are scaled if both ends offer it (RFC 7323, 2.2).
    fn opening(&self, client: usize) -> Opening {
        let scales = match self.scales {
            [Some(Scale::By(first)), Some(Scale::By(second))] => [Some(first), Some(second)],
            [None | Some(Scale::Cut), _] | [_, None | Some(Scale::Cut)] => [None; 2],
            _ => [Some(0); 2],
        };

        let from = self.opening.counts_from;
        Opening {
            counts_from: [from[client], from[1 - client]],
            has_syn: self.opening.has_syn,
            scales: [scales[client], scales[1 - client]],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpwhy_wire::{Flags, Instant, Seq, TcpOptions};

    const PORT: u16 = 80;

    /// A segment from a client's port, or to it.
    fn segment(packet: u64, port: u16, is_back: bool, flags: u8, [seq, ack]: [u32; 2]) -> Segment {
        let (client, server) = (Endpoint::v4([10, 0, 0, 1], port), Endpoint::v4([10, 0, 0, 2], PORT));
        let [src, dst] = if is_back { [server, client] } else { [client, server] };
        Segment {
            packet,
            at: Instant::from_nanos(0),
            src,
            dst,
            seq: Seq(seq),
            ack: Seq(ack),
            window: 0,
            flags: Flags(flags),
            payload_len: 0,
            options: TcpOptions::default(),
            ip_id: None,
            ttl: 64,
            damaged: false,
        }
    }

    /// What is known of the client's connection that begins with a packet in the window: what it
    /// counts from, and whether from a SYN.
    fn known(openings: &Openings, port: u16, packet: u64) -> Option<([Option<u32>; 2], bool)> {
        let [client, server] = [false, true].map(|is_back| segment(1, port, is_back, 0, [0; 2]).src);
        let opening = openings.of([client, server], packet, None)?;
        Some((opening.counts_from.map(|seq| seq.map(|seq| seq.0)), opening.has_syn))
    }

    #[test]
    fn the_last_connection_before_the_window_counts_until_the_next_one() {
        let mut openings = Openings { most: REMEMBERED, ..Openings::default() };
        for (packet, seq) in [(1, 100), (4, 5_000)] {
            openings.learn(&segment(packet, 4_000, false, Flags::SYN, [seq, 0]), false);
            openings.learn(&segment(packet + 1, 4_000, true, Flags::SYN | Flags::ACK, [900, seq + 1]), false);
            openings.learn(&segment(packet + 2, 4_000, false, Flags::ACK, [seq + 1, 901]), false);
        }
        assert_eq!(known(&openings, 4_000, 10), Some(([Some(5_000), Some(900)], true)));
        // A late duplicate of its SYN begins no new connection.
        openings.learn(&segment(11, 4_000, false, Flags::SYN, [5_000, 0]), true);
        assert_eq!(known(&openings, 4_000, 12), Some(([Some(5_000), Some(900)], true)));
        openings.learn(&segment(20, 4_000, false, Flags::SYN, [70_000, 0]), true);
        assert_eq!(known(&openings, 4_000, 10), Some(([Some(5_000), Some(900)], true)));
        assert_eq!(known(&openings, 4_000, 20), None);
        assert_eq!(known(&openings, 4_000, 30), None);
        // Nothing is known of connections that begin in the window, nor of others.
        openings.learn(&segment(21, 4_001, false, Flags::SYN, [3, 0]), true);
        assert_eq!(known(&openings, 4_001, 21), None);
    }

    #[test]
    fn without_a_syn_the_first_packet_counts_until_any_is_forgotten() {
        let mut openings = Openings { most: REMEMBERED, ..Openings::default() };
        openings.learn(&segment(1, 1, false, Flags::SYN, [7, 0]), false);
        openings.learn(&segment(2, 2, true, Flags::ACK, [501, 41]), false);
        assert_eq!(known(&openings, 1, 9), Some(([Some(7), None], true)));
        assert_eq!(known(&openings, 2, 9), Some(([Some(40), Some(500)], false)));
        let most = 2 * REMEMBERED as u16 - 2;
        for port in 3..=most {
            openings.learn(&segment(3, port, true, Flags::ACK, [1; 2]), false);
            // These are seen all the while.
            openings.learn(&segment(4, 1, false, Flags::ACK, [8, 1]), false);
            openings.learn(&segment(5, 2, true, Flags::ACK, [600, 41]), false);
        }
        assert_eq!(known(&openings, 1, 9), Some(([Some(7), Some(0)], true)));
        assert_eq!(known(&openings, 2, 9), Some(([Some(40), Some(500)], false)), "all are remembered");
        for port in most + 1..=u16::MAX {
            openings.learn(&segment(6, port, true, Flags::ACK, [1; 2]), false);
            openings.learn(&segment(7, 1, false, Flags::ACK, [9, 1]), false);
        }
        assert!(openings.recent.len() + openings.older.len() <= 2 * REMEMBERED);
        assert_eq!(known(&openings, 1, 9), Some(([Some(7), Some(0)], true)));
        assert_eq!(known(&openings, u16::MAX, 9), None, "nobody knows whether that was its first packet");
    }

    #[test]
    fn windows_are_scaled_where_both_want_it() {
        let syn = |is_back, window_scale, cut| {
            let flags = if is_back { Flags::SYN | Flags::ACK } else { Flags::SYN };
            let mut segment = segment(1, 9, is_back, flags, [0, 1]);
            (segment.options.window_scale, segment.options.cut) = (window_scale, cut);
            segment
        };
        let scales = |first: Segment, second: Option<Segment>| {
            let mut begun = Begun::NEW;
            begun.on_segment(&first, 1);
            if let Some(second) = second {
                begun.on_segment(&second, 0);
            }
            begun.opening(1).scales
        };
        assert_eq!(scales(syn(false, Some(7), false), Some(syn(true, Some(15), false))), [Some(7), Some(14)]);
        assert_eq!(scales(syn(false, Some(7), false), Some(syn(true, None, false))), [Some(0); 2]);
        assert_eq!(scales(syn(false, Some(7), false), Some(syn(true, None, true))), [None; 2]);
        assert_eq!(scales(syn(false, Some(7), false), None), [None; 2]);
    }
}
