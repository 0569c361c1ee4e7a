//! How many of this sender's packets did the capture miss?

/// Counts packets that the capture missed, if the sender numbers its packets one by one.
///
/// Linux numbers the packets of a connection from a random start, and a super-segment takes one number per
/// packet (`ip_select_ident_segs`). Windows counts the packets of the whole host: while a connection has the
/// host to itself that looks the same, and packets sent elsewhere look like missing ones. A counter that
/// jumps often is such a one, or the capture does not have all packets anyway. So is one whose packets have
/// a TTL above 64, with which Linux begins (IPDEFTTL, include/uapi/linux/ip.h; Windows with 128), and one
/// that numbers its SYN-ACK. A host that begins with 255 and leaves its SYN-ACK without a number is a Linux
/// whose TTL was set (ip_default_ttl).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct IpIdCounter {
    expected: Option<u16>,
    hits: u8,
    jumps: u8,
    /// Packets that the last jump skipped.
    jumped: u16,
    /// IP ID of the packet that it ended with.
    jumped_to: u16,
    /// The last packet was the first that did not follow, too early in the connection to say more.
    suspect: bool,
    owner: Owner,
}

/// Whose packets it counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Owner {
    /// The connection's, as far as is known.
    #[default]
    Unknown,
    /// The connection's, whatever the TTL: its SYN-ACK has no number.
    Connection,
    /// All of the host's.
    Host,
}

impl IpIdCounter {
    const LINUX_TTL: u8 = 64;
    const WINDOWS_TTL: u8 = 128;
    const TRUSTED: u8 = 2;
    const PLAUSIBLE_GAP: u16 = 256;
    /// With a proven counter, a packet may come again this far back: a large window of packets.
    const FAR_BACK: u16 = 1 << 14;
    /// Packets in sequence needed for each jump.
    const STEADY: u8 = 3;
    const PROVEN: u8 = 24;

    /// Whether so many packets were in sequence that a jump is this connection's own, whenever it comes.
    pub(crate) fn is_proven(self) -> bool {
        !self.is_of_host() && self.hits >= Self::PROVEN && self.hits / Self::PROVEN >= self.jumps
    }

    /// Whether a jump says how many packets are missing, and the lack of one that none is.
    pub(crate) fn tells(self) -> bool {
        !self.is_of_host() && self.hits >= Self::TRUSTED && self.hits / Self::STEADY >= self.jumps
    }

    /// Whether a packet may be missing before the last one: it was the first not to follow, after one or two
    /// that did.
    pub(crate) fn suspects(self) -> bool {
        self.suspect && !self.is_of_host()
    }

    fn is_of_host(self) -> bool {
        self.owner == Owner::Host
    }

    /// A packet of this sender has this TTL and `id`.
    #[inline]
    pub(crate) fn on_ttl(&mut self, ttl: u8, id: Option<u16>) {
        if ttl > Self::LINUX_TTL && !self.is_of_host() {
            let unnumbered = ttl > Self::WINDOWS_TTL && id == Some(0) && self.expected.is_none();
            self.owner = match self.owner {
                _ if unnumbered => Owner::Connection,
                Owner::Connection if ttl > Self::WINDOWS_TTL => Owner::Connection,
                _ => Owner::Host,
            };
        }
    }

    /// This sender's SYN-ACK has an IP ID: such a counter includes what the host sends to others, as those
    /// of Windows and of a virtual machine's address translation do.
    #[cold]
    pub(crate) fn on_numbered_syn_ack(&mut self) {
        self.owner = Owner::Host;
    }

    /// Nothing is missing before the last packet.
    pub(crate) fn acquit(&mut self) {
        self.suspect = false;
    }

    /// How many packets are missing before this one, the last, by its IP ID, whether that is proven to be
    /// the connection's own or not.
    pub(crate) fn jumped(self, id: u16) -> u16 {
        let own = !self.is_of_host() && self.jumps > 0 && self.jumped <= Self::PLAUSIBLE_GAP;
        if own && self.jumped_to == id { self.jumped } else { 0 }
    }

    /// Whether the packet with this IP ID is one of those that the last jump skipped.
    pub(crate) fn lacked(self, id: u16) -> bool {
        let own = !self.is_of_host() && self.jumps > 0 && self.jumped <= Self::PLAUSIBLE_GAP;
        own && (1..=self.jumped).contains(&self.jumped_to.wrapping_sub(id))
    }

    /// How many numbers lie between the last packet and the one before it, if more than this connection can
    /// have used.
    pub(crate) fn apart(self) -> Option<u16> {
        let last = self.expected == Some(self.jumped_to.wrapping_add(1));
        (last && self.jumped > Self::PLAUSIBLE_GAP).then_some(self.jumped)
    }

    /// The sequence space lacks this many packets before the last one: if its IP ID does too, it is the
    /// connection's own.
    #[cold]
    pub(crate) fn on_hole(&mut self, packets: u32) {
        if self.jumped > Self::PLAUSIBLE_GAP {
            return;
        }
        if packets == u32::from(self.jumped) && self.jumps > 0 {
            (self.hits, self.jumps) = (self.hits.saturating_add(1), self.jumps - 1);
            (self.jumped, self.suspect) = (0, false);
        }
    }

    /// Whether a packet with this IP ID is one of the last ones and not a later one, if IP IDs tell.
    pub(crate) fn is_old(self, id: u16) -> Option<bool> {
        let back = self.expected?.wrapping_sub(id);
        let furthest = if self.is_proven() { Self::FAR_BACK } else { Self::PLAUSIBLE_GAP };
        let near = back <= furthest || back > u16::MAX - Self::PLAUSIBLE_GAP;
        (self.hits > 0 && id != 0 && near).then_some((1..=furthest).contains(&back))
    }

    /// Whether a packet with this IP ID was numbered after all others, if they were numbered in any order.
    pub(crate) fn is_behind_others(self, id: u16) -> bool {
        self.expected.is_some_and(|expected| id != 0 && expected.wrapping_sub(id).wrapping_sub(1) >= 1 << 15)
    }

    /// Whether the last packet, which stands for `packets` on the wire, was numbered before others that
    /// passed sooner.
    pub(crate) fn is_before_others(self, id: u16, packets: u16) -> bool {
        let back = self.expected.map_or(0, |expected| expected.wrapping_sub(id));
        self.hits > 0 && id != 0 && back > packets && back <= Self::PLAUSIBLE_GAP
    }

    /// Whether the last packet, which stands for `packets` on the wire, was numbered after all others.
    pub(crate) fn is_newest(self, id: u16, packets: u16) -> bool {
        self.hits >= Self::TRUSTED && id != 0 && self.expected == Some(id.wrapping_add(packets))
    }

    /// Whether at least half as many packets were in sequence as were not.
    pub(crate) fn often_follows(self) -> bool {
        self.hits >= self.jumps / 2
    }

    /// Whether the last packet, which stands for `packets` on the wire, followed the one before it.
    pub(crate) fn has_followed(self, id: u16, packets: u16) -> bool {
        let jumped = self.jumped > 0 && self.jumped_to == id;
        self.hits > 0 && id != 0 && !jumped && self.expected == Some(id.wrapping_add(packets))
    }

    /// Whether the last packet had this IP ID, where they rise.
    pub(crate) fn was(self, id: u16) -> bool {
        self.hits > 0 && id != 0 && self.expected == Some(id.wrapping_add(1))
    }

    /// Whether a packet with this IP ID is the next one.
    #[inline]
    pub(crate) fn expects(self, id: Option<u16>) -> bool {
        id.is_none() || self.expected == id
    }

    /// Takes the next packet in sequence, as `on_packet` does.
    #[inline]
    pub(crate) fn on_next(&mut self, id: Option<u16>, packets: u16) {
        let Some(id) = id else { return };
        self.expected = Some(id.wrapping_add(packets));
        self.suspect = false;
        if self.hits == u8::MAX {
            (self.hits, self.jumps) = (self.hits / 2, self.jumps / 2);
        }
        self.hits += 1;
    }

    /// A packet of this sender with `id`, which stands for `packets` on the wire. Returns how many before it are missing.
    pub(crate) fn on_packet(&mut self, id: u16, packets: u16) -> u16 {
        let next = id.wrapping_add(packets);
        let Some(expected) = self.expected else {
            // A SYN-ACK carries 0, and the connection's own counter starts after it.
            self.expected = (id != 0).then_some(next);
            return 0;
        };
        let missed = id.wrapping_sub(expected);
        if missed > u16::MAX - Self::PLAUSIBLE_GAP {
            return 0; // overtaken on the way
        }
        self.expected = Some(next);
        self.suspect = false;
        if missed == 0 {
            if self.hits == u8::MAX {
                (self.hits, self.jumps) = (self.hits / 2, self.jumps / 2);
            }
            self.hits += 1;
            return 0;
        }
        if missed > Self::PLAUSIBLE_GAP {
            self.hits = 0; // not this connection's counter
            (self.jumped, self.jumped_to) = (missed, id);
            return 0;
        }
        let tells = self.tells();
        self.suspect = self.hits == 1 && self.jumps == 0;
        self.jumps = self.jumps.saturating_add(1);
        (self.jumped, self.jumped_to) = (missed, id);
        if tells { missed } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_sends_elsewhere_too_loses_its_credit() {
        let mut counter = IpIdCounter::default();
        let ids = [100_u16, 101, 102, 103, 108, 110, 114, 115, 119];
        let missed: Vec<u16> = ids.into_iter().map(|id| counter.on_packet(id, 1)).collect();
        assert_eq!(missed, [0, 0, 0, 0, 4, 1, 0, 0, 0]);
    }

    #[test]
    fn a_host_of_another_kind_has_none() {
        let mut counter = IpIdCounter::default();
        counter.on_ttl(128, Some(99));
        let ids = [100_u16, 101, 102, 103, 108];
        assert_eq!(ids.map(|id| counter.on_packet(id, 1)), [0; 5]);
        assert!(!counter.suspects());
    }

    #[test]
    fn a_linux_with_another_ttl_numbers_its_connections() {
        for (syn_ack, missed) in [(0, 4), (99, 0)] {
            let mut counter = IpIdCounter::default();
            let ids = [syn_ack, 100_u16, 101, 102, 103, 108];
            let last = ids.map(|id| {
                counter.on_ttl(217, Some(id));
                counter.on_packet(id, 1)
            });
            assert_eq!(last, [0, 0, 0, 0, 0, missed]);
        }
    }

    #[test]
    fn one_lost_packet_in_thirty_is_noticed_every_time() {
        let mut counter = IpIdCounter::default();
        let noticed =
            (100_u16..1000).filter(|id| id % 30 != 0).map(|id| counter.on_packet(id, 1)).sum::<u16>();
        assert_eq!(noticed, 30);
    }
}
