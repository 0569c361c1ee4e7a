//! How are an input's packets counted, and which receiver gets its segments?

use tcpwhy_wire::capture::{Damage, DamageKind, RawPacket};
use tcpwhy_wire::decode::{Fragments, Put, was_too_large};
use tcpwhy_wire::{Decoded, Instant, Segment, Skip, decode_usual, payload};

use super::damaged::Senders;
use super::distances::Distances;
use super::index::ports_of;
use super::trouble::{Failure, Trouble};
use super::{FileSummary, MAX_TROUBLES};

/// The reason of an input whose clock cannot be relied on.
pub(super) const WRONG_CLOCK: &str = "wrong-clock";
/// The reason of an input that counts whole seconds: nothing of what it times is shorter.
pub(super) const WHOLE_SECONDS: &str = "whole-seconds";
/// The reason of an input whose times were made up.
pub(super) const EQUAL_DISTANCES: &str = "equal-distances";
/// Fewer packets may all pass as a second begins. Source: none written down.
const WHOLE_MIN: u64 = 3;
const SECOND_NS: i64 = 1_000_000_000;

/// The receiver of segments.
pub(super) trait Take {
    /// Whether it wants this one.
    fn wants(&mut self, _: &Decoded<'_>) -> bool {
        true
    }

    /// A segment of the input with this number, with as much of its payload as was captured.
    fn take(&mut self, input: usize, decoded: &Decoded<'_>, captured: &[u8]);
}

/// Takes all.
pub(super) struct All<S>(pub(super) S);

impl<S: FnMut(usize, &Decoded<'_>, &[u8])> Take for All<S> {
    #[inline]
    fn take(&mut self, input: usize, decoded: &Decoded<'_>, captured: &[u8]) {
        (self.0)(input, decoded, captured);
    }
}

/// Takes the segments that the first one wants.
pub(super) struct Chosen<W, S>(pub(super) W, pub(super) S);

impl<W: Fn(&Decoded<'_>) -> bool, S: FnMut(usize, &Decoded<'_>, &[u8])> Take for Chosen<W, S> {
    #[inline]
    fn wants(&mut self, decoded: &Decoded<'_>) -> bool {
        (self.0)(decoded)
    }

    #[inline]
    fn take(&mut self, input: usize, decoded: &Decoded<'_>, captured: &[u8]) {
        (self.1)(input, decoded, captured);
    }
}

/// The sums of one input.
#[derive(Default)]
pub(super) struct Tally {
    packets: u64,
    segments: u64,
    /// Packets outside the window.
    pub(super) outside: u64,
    skipped: [u64; Skip::ALL.len()],
    damaged: u64,
    /// Packets whose time stamp is wrong.
    wrong_times: u64,
    /// Whether a time's fraction of a second is longer than that.
    wrong_fractions: u64,
    /// Whether a time has a fraction of a second.
    has_fractions: bool,
    distances: Distances,
    /// ICMP errors that a segment was too large for a link, and the first of them.
    too_large: Option<(u64, u64)>,
    /// Segments that their receiver drops.
    wrong_checksums: u64,
    senders: Senders,
    fragments: Fragments,
    troubles: Vec<Trouble>,
    pub(super) failure: Option<Failure>,
    first_number: u64,
    first: Instant,
    last: Instant,
}

impl Tally {
    /// Packets seen.
    pub(super) fn all(&self) -> u64 {
        self.packets + self.outside
    }

    /// Returns the packet's ports, if it is a segment.
    #[inline]
    pub(super) fn on_packet(
        &mut self,
        packet: &RawPacket<'_>,
        input: usize,
        segments: &mut impl Take,
    ) -> Option<[u16; 2]> {
        if self.packets == 0 {
            (self.first_number, self.first, self.last) = (packet.number, packet.at, packet.at);
        }
        self.packets += 1;
        if !self.has_fractions {
            self.has_fractions = packet.at.as_nanos() % SECOND_NS != 0;
        }
        self.first = self.first.min(packet.at);
        self.last = self.last.max(packet.at);
        match &mut decode_usual(packet) {
            Ok(decoded) => {
                let ports = ports_of(decoded);
                self.on_decoded(packet, decoded, input, segments);
                Some(ports)
            }
            Err(skip) => {
                self.on_skipped(packet, *skip, input, segments);
                None
            }
        }
    }

    #[inline]
    fn on_decoded(
        &mut self,
        packet: &RawPacket<'_>,
        decoded: &mut Decoded<'_>,
        input: usize,
        segments: &mut (impl Take + ?Sized),
    ) {
        self.segments += 1;
        self.distances.on_segment(packet.at, ports_of(decoded));
        if !segments.wants(decoded) {
            return;
        }
        if self.senders.is_damaged(packet, decoded) {
            *decoded = Decoded::Other(Segment { damaged: true, ..decoded.segment() });
            self.wrong_checksums += 1;
        }
        let captured = match decoded {
            Decoded::Usual(usual) => usual.payload(),
            Decoded::Other(segment) if segment.payload_len > 0 => payload(packet),
            Decoded::Other(_) => &[],
        };
        segments.take(input, decoded, captured);
    }

    /// A packet that is not a segment, or a fragment of one: the last fragment completes it.
    #[cold]
    fn on_skipped(&mut self, packet: &RawPacket<'_>, skip: Skip, input: usize, segments: &mut dyn Take) {
        self.skipped[skip as usize] += 1;
        if skip == Skip::NotTcp && was_too_large(packet) {
            let (count, first) = self.too_large.unwrap_or((0, packet.number));
            self.too_large = Some((count + 1, first));
        }
        if skip != Skip::Fragment && (skip != Skip::NotTcp || self.fragments.is_empty()) {
            return;
        }
        let mut fragments = std::mem::take(&mut self.fragments);
        match fragments.put(packet, skip) {
            Put::Refused => {}
            put => {
                self.skipped[skip as usize] -= 1;
                self.skipped[Skip::Fragment as usize] += 1;
                if let Put::Whole(whole, pieces) = put {
                    self.skipped[Skip::Fragment as usize] -= pieces;
                    match &mut decode_usual(&whole) {
                        Ok(decoded) => self.on_decoded(&whole, decoded, input, segments),
                        Err(skip) => self.skipped[*skip as usize] += pieces,
                    }
                }
            }
        }
        self.fragments = fragments;
    }

    pub(super) fn on_damage(&mut self, damage: Damage, after_error: bool) {
        match damage.what {
            // The error that ended the input is more specific.
            DamageKind::CutShort { .. } | DamageKind::Empty if after_error => {}
            DamageKind::Empty => self.failure = Some(Failure::Empty),
            DamageKind::CutShort { needs, has } if damage.offset == 0 => {
                self.failure = Some(Failure::HeaderCutShort { needs, has });
            }
            DamageKind::NotACapture(magic) => self.failure = Some(Failure::from_magic(magic)),
            DamageKind::WrongTime { .. } => {
                self.wrong_times += 1;
                self.keep(Trouble::Damage(damage));
            }
            DamageKind::BeyondItsSecond { .. } => {
                self.wrong_fractions += 1;
                self.keep(Trouble::Damage(damage));
            }
            _ => self.on_trouble(Trouble::Damage(damage)),
        }
    }

    pub(super) fn on_trouble(&mut self, trouble: Trouble) {
        self.damaged += 1;
        self.keep(trouble);
    }

    fn keep(&mut self, trouble: Trouble) {
        if self.troubles.len() < MAX_TROUBLES {
            self.troubles.push(trouble);
        }
    }

    pub(super) fn put_into(self, file: &mut FileSummary) {
        file.packets = self.packets;
        file.segments = self.segments;
        file.first_number = self.first_number;
        file.first = (self.packets > 0).then_some(self.first);
        file.last = (self.packets > 0).then_some(self.last);
        let reasons = Skip::ALL.map(Skip::name).into_iter().zip(self.skipped);
        let whole = !self.has_fractions && self.packets >= WHOLE_MIN;
        let more = [
            ("damaged", self.damaged),
            ("outside-window", self.outside),
            ("wrong-checksum", self.wrong_checksums),
            ("wrong-time", self.wrong_times),
            (WRONG_CLOCK, self.wrong_fractions),
            (WHOLE_SECONDS, if whole { self.packets } else { 0 }),
            (EQUAL_DISTANCES, if self.distances.are_equal() { self.packets } else { 0 }),
        ];
        file.skipped = reasons.chain(more).filter(|(_, count)| *count > 0).collect();
        file.truncated = self.troubles.iter().any(Trouble::is_truncation);
        file.too_large = self.too_large;
        file.troubles = self.troubles;
        file.failure = self.failure;
    }
}
