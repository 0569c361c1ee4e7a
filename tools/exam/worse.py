"""A capture as strangers take it: from the middle on, of one direction, thinned, doubled, cut, merged, by a coarse clock.

`WAYS` has what becomes of the packets, by the way's name; `write(IN, OUT, WAY)` makes the file.
"""

import os
import struct
from collections import namedtuple

# A packet: when it passed (ns), its length on the wire, what was captured of it.
Packet = namedtuple("Packet", "at size data")
US, MS, SECOND = 1_000, 1_000_000, 1_000_000_000
LINKS = {1: 14, 101: 0, 113: 16, 276: 20}  # bytes before the IP packet
PORT = 7000
FIN, PSH, SYN, RST, ACK = 1, 8, 2, 4, 16


def load(path):
    """The packets of a pcap file, and its kind of link."""
    with open(path, "rb") as file:
        data = file.read()
    unit = 1 if data[:4] == b"\x4d\x3c\xb2\xa1" else US
    packets, at = [], 24
    while at + 16 <= len(data):
        seconds, fraction, kept, size = struct.unpack("<IIII", data[at : at + 16])
        packets.append(Packet(seconds * SECOND + fraction * unit, size, data[at + 16 : at + 16 + kept]))
        at += 16 + kept
    return packets, struct.unpack("<I", data[20:24])[0]


def save(path, packets, link):
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, link))
        for packet in packets:
            file.write(struct.pack("<IIII", packet.at // SECOND, packet.at % SECOND, len(packet.data), packet.size) + packet.data)


def draw(n, below):
    """A number that looks drawn, the same for the same packet."""
    n = (n + 1) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
    return ((n ^ n >> 31) * 0xBF58476D1CE4E5B9 >> 20 & 0xFFFFFFFF) % below


class Tcp:
    """Where a packet has what, and what of it changes when it is cut or put together."""

    def __init__(self, packet, link):
        self.packet, self.link, data = packet, link, packet.data
        self.six = data[link] >> 4 == 6
        self.at = link + (40 if self.six else 4 * (data[link] & 15))
        self.is_tcp = data[link + (6 if self.six else 9)] == 6 and len(data) >= self.at + 20
        if not self.is_tcp:
            return
        self.source, self.target, self.seq, self.ack = struct.unpack(">HHII", data[self.at : self.at + 12])
        self.head, self.flags = self.at + 4 * (data[self.at + 12] >> 4), data[self.at + 13]
        length = struct.unpack(">H", data[link + 4 : link + 6] if self.six else data[link + 2 : link + 4])[0]
        self.payload = length + link + (40 if self.six else 0) - self.head
        self.stamps = self._stamps(data[self.at + 20 : self.head])
        self.ends = data[link + (8 if self.six else 12) : self.at] if self.six else data[link + 12 : link + 20]
        self.ends += data[self.at : self.at + 4]

    def _stamps(self, options):
        at = 0
        while at + 1 < len(options) and options[at] != 0:
            if options[at] == 1:
                at += 1
                continue
            if options[at] == 8:
                return options[at + 2 : at + 10]
            at += max(2, options[at + 1])
        return b""

    def part(self, offset, length, last, n=0):
        """A piece of its payload as a packet of its own."""
        data = bytearray(self.packet.data[: self.head] + self.packet.data[self.head + offset : self.head + offset + length])
        size = self.head - self.link + length
        if self.six:
            data[self.link + 4 : self.link + 6] = struct.pack(">H", size - 40)
        else:
            data[self.link + 2 : self.link + 4] = struct.pack(">H", size)
            number = struct.unpack(">H", data[self.link + 4 : self.link + 6])[0]
            data[self.link + 4 : self.link + 6] = struct.pack(">H", (number + n) & 0xFFFF)
        data[self.at + 4 : self.at + 8] = struct.pack(">I", (self.seq + offset) & 0xFFFFFFFF)
        if not last:
            data[self.at + 13] &= ~(PSH | FIN)
        return Packet(self.packet.at, self.head + length, bytes(data))

    def with_more(self, payload, pushed):
        """Itself with as much payload, as the host's offloading puts it together."""
        data = bytearray(self.packet.data)
        data[self.link + 2 : self.link + 6] = data[self.link + 2 : self.link + 6]
        size = self.head - self.link + payload
        at = self.link + (4 if self.six else 2)
        data[at : at + 2] = struct.pack(">H", size - (40 if self.six else 0))
        if pushed:
            data[self.at + 13] |= PSH
        return self.packet._replace(size=self.head + payload, data=bytes(data))


def tcp_of(packets, link):
    return [Tcp(packet, LINKS[link]) for packet in packets]


def most(all_tcp):
    """Payload of the largest segments that both ends take: stamps that only one SYN has are in no segment."""
    sizes = []
    for tcp in all_tcp:
        if tcp.is_tcp and tcp.flags & SYN and len(tcp.packet.data) > tcp.at + 24 and tcp.packet.data[tcp.at + 20] == 2:
            sizes.append(struct.unpack(">H", tcp.packet.data[tcp.at + 22 : tcp.at + 24])[0])
    stamps = any(tcp.is_tcp and tcp.stamps and not tcp.flags & SYN for tcp in all_tcp)
    return min(sizes, default=1460) - (12 if stamps else 0)


def in_pieces(tcp, size):
    """As many segments as the wire had, where the capture has what the host's offloading took for one."""
    if not tcp.is_tcp or tcp.payload <= size:
        return [tcp.packet]
    offsets = range(0, tcp.payload, size)
    return [tcp.part(at, min(size, tcp.payload - at), at + size >= tcp.payload, n) for n, at in enumerate(offsets)]


def split(packets, link):
    all_tcp = tcp_of(packets, link)
    size = most(all_tcp)
    return [piece for tcp in all_tcp for piece in in_pieces(tcp, size)]


def merged(packets, link):
    """What follows within 50 us is put together as the receiver's offloading does it: up to the one that is pushed, and what comes in
    between from the other side ends nothing."""
    out, open_at = [], {}
    for packet in packets:
        tcp = Tcp(packet, LINKS[link])
        plain = tcp.is_tcp and tcp.flags & ~PSH == ACK and tcp.payload > 0
        before = out[open_at[tcp.ends]] if plain and tcp.ends in open_at else None
        if before:
            last = Tcp(before, LINKS[link])
            together = last.payload + tcp.payload
            goes_on = (last.seq + last.payload) & 0xFFFFFFFF == tcp.seq and (last.ack, last.stamps) == (tcp.ack, tcp.stamps)
            if goes_on and together < 65_000 and packet.at - before.at <= 50 * US:
                out[open_at[tcp.ends]] = last.with_more(together, tcp.flags & PSH)
                if tcp.flags & PSH:
                    del open_at[tcp.ends]
                continue
        if tcp.is_tcp:
            open_at.pop(tcp.ends, None)
            if plain and not tcp.flags & PSH:
                open_at[tcp.ends] = len(out)
        out.append(packet)
    return out


def a_hop_on(packet, link, later):
    """The same packet, seen again behind a router."""
    data, at = bytearray(packet.data), LINKS[link]
    data[at + (7 if data[at] >> 4 == 6 else 8)] -= 1
    return Packet(packet.at + later, packet.size, bytes(data))


def in_order(packets):
    return sorted(packets, key=lambda packet: packet.at)


def twice(packets, link, later):
    return in_order(again for n, one in enumerate(packets) for again in (one, a_hop_on(one, link, later(n))))


def twice_cut(packets, link):
    size, out = most(tcp_of(packets, link)), []
    for n, one in enumerate(packets):
        again = Tcp(a_hop_on(one, link, draw(n, 100) * US), LINKS[link])
        out += [one, *in_pieces(again, size)]
    return in_order(out)


def direction(packets, link, of_server):
    def wanted(tcp):
        return tcp.is_tcp and (tcp.source == PORT) == of_server

    return [packet for packet in packets if wanted(Tcp(packet, LINKS[link]))]


def clock(packets, tick):
    return [packet._replace(at=packet.at // tick * tick) for packet in packets]


def stepped(packets, by):
    """A clock that is set once, in the middle of the time."""
    set_at = (packets[0].at + packets[-1].at) // 2
    return [packet._replace(at=packet.at + (by if packet.at > set_at else 0)) for packet in packets]


def bursts_missing(packets):
    """20 packets of some 300 are missing together, at least once where there are as many."""
    if len(packets) <= 40:
        return packets
    out, n = [], 20 + draw(len(packets), min(len(packets) - 40, 280))
    out += packets[:n]
    while n < len(packets):
        n += 20
        stretch = 140 + draw(n, 280)
        out += packets[n : n + stretch]
        n += stretch
    return out


def snapped(packets, link, size):
    """So much of an Ethernet frame, whatever the link is."""
    return [packet._replace(data=packet.data[: size - 14 + LINKS[link]]) for packet in packets]


def jitter(packets):
    """Stamps of an interface's own clock, which reads up to 30 us early or late; the order stays."""
    return [packet._replace(at=packet.at + (draw(n, 61) - 30) * US) for n, packet in enumerate(packets)]


def bunched(packets):
    """As an interface hands them over that interrupts no more often than each 250 us."""
    out, end = [], 0
    for packet in packets:
        if packet.at > end:
            end = packet.at + 250 * US
        out.append(packet._replace(at=end))
    return out


def random_middle(packets):
    return packets[len(packets) // 5 + draw(len(packets), 1 + 3 * len(packets) // 5) :]


WAYS = {
    "client-only": lambda p, link, other: direction(p, link, False),
    "server-only": lambda p, link, other: direction(p, link, True),
    "1-percent-missing": lambda p, link, other: [q for n, q in enumerate(p) if draw(n, 100)],
    "every-50th-missing": lambda p, link, other: [q for n, q in enumerate(p) if (n + 1) % 50],
    "bursts-of-20-missing": lambda p, link, other: bursts_missing(p),
    "without-first": lambda p, link, other: p[1:],
    "midway": lambda p, link, other: p[12:],
    "without-first-100": lambda p, link, other: p[100:],
    "random-middle": lambda p, link, other: random_middle(p),
    "cut-off": lambda p, link, other: p[: len(p) * 3 // 5],
    "without-last-quarter": lambda p, link, other: p[: len(p) * 3 // 4],
    "without-options": lambda p, link, other: snapped(p, link, 54),
    "snap-64": lambda p, link, other: snapped(p, link, 64),
    "snap-96": lambda p, link, other: snapped(p, link, 96),
    "twice-at-once": lambda p, link, other: twice(p, link, lambda n: draw(n, 5) * US),
    "twice-3ms-apart": lambda p, link, other: twice(p, link, lambda n: draw(n, 3000) * US),
    "twice-cut-differently": lambda p, link, other: twice_cut(p, link),
    "split": lambda p, link, other: split(p, link),
    "merged": lambda p, link, other: merged(p, link),
    "milliseconds": lambda p, link, other: clock(p, MS),
    "10-milliseconds": lambda p, link, other: clock(p, 10 * MS),
    "out-of-order-20us": lambda p, link, other: in_order(q._replace(at=q.at + draw(n, 20) * US) for n, q in enumerate(p)),
    "jitter-30us": lambda p, link, other: jitter(p),
    "bunches-250us": lambda p, link, other: bunched(p),
    "clock-set-on-1s": lambda p, link, other: stepped(p, SECOND),
    "clock-set-back-1s": lambda p, link, other: stepped(p, -SECOND),
    "both-ends-merged": lambda p, link, other: in_order(p + other),
    "both-ends-one-behind-the-other": lambda p, link, other: p + other,
}
# What a clock cannot show, in milliseconds: an interval is wrong by a tick at most.
TICKS = {"milliseconds": 2.0, "10-milliseconds": 20.0}


def write(source, target, way):
    """Makes the file; what the other end has seen is beside it."""
    packets, link = load(source)
    folder, name = os.path.split(source)
    beside = f"{folder}/{'far' if name == 'near.pcap' else 'near'}.pcap"
    other, other_link = load(beside) if os.path.exists(beside) else ([], link)
    worse = WAYS[way](packets, link, other if other_link == link else []) if packets else []
    if worse:
        save(target, worse, link)
    return bool(worse)


# Judging.

# What may come out of a part of a recording: less, or less certain.
FREE = {"unexplained", "handshake", "round-trip"}
WAY = {"handshake", "round-trip", "tls-handshake"}
LEVELS = ("possible", "likely", "certain")


def at_least(sure, level):
    """What a line has of a level and above."""
    return sum(sure.get(name, 0.0) for name in LEVELS[LEVELS.index(level) :])


def too_much(expected, lines, elapsed, slack, link_ms, level):
    """What a bill claims at this level and above that cannot be right, whatever is left out of it; by the terms."""
    tolerance = max(2.0, 0.05 * elapsed) + slack
    claimed, wrong = {k: at_least(sure, level) for k, sure in lines.items()}, {}
    for term, ms in [*expected.items(), *((f"{cause}@", None) for cause in FREE)]:
        causes, _, side = term.partition("@")
        billed = sum(claimed.pop(k) for k in list(claimed) if k[0] in causes.split("|") and side in ("", k[1]))
        if ms == "rest-bandwidth":
            claimed = {k: max(0.0, of - link_ms) if k[0] == "bandwidth" else of for k, of in claimed.items()}
        high = ms(elapsed) if callable(ms) else ms
        high = high[1] if isinstance(high, tuple) else high if isinstance(high, (int, float)) else elapsed
        if causes not in FREE and billed > high + tolerance:
            wrong[term] = f"{term} {billed:.1f} for {high:.1f} at most"
    wrong |= {f"{cause}@{side}": f"{cause}@{side} {ms:.1f}" for (cause, side), ms in claimed.items() if ms > tolerance}
    return wrong


def longer_way(lines, whole, elapsed, slack):
    """The way that is claimed, where it is more than in the whole recording."""
    had, has = (sum(at_least(sure, "likely") for (cause, _), sure in of.items() if cause in WAY) for of in (whole, lines))
    return {"way": f"way {has:.1f} for {had:.1f}"} if has > had + max(2.0, 0.05 * elapsed) + slack else {}


def surer(lines, whole, elapsed, slack):
    """What is claimed at a level as it is not in the whole recording."""
    tolerance, out = max(2.0, 0.05 * elapsed) + slack, []
    for level in ("certain", "likely"):
        for k, sure in lines.items():
            had = sum(at_least(of, level) for other, of in whole.items() if other[0] == k[0])
            if k[0] not in FREE and at_least(sure, level) > had + tolerance:
                out.append(f"{k[0]}@{k[1]} {level} {at_least(sure, level):.1f} for {had:.1f}")
    return out


VERDICTS = ("right", "less", "as the whole", "more certain", "wrong possible", "longer way", "wrong likely", "wrong certain")


def verdict(expected, lines, whole, elapsed, slack, link_ms, is_right):
    """One of `VERDICTS`, and what it is about."""
    found, known = "", set()
    for level in reversed(LEVELS):
        known |= set(too_much(expected, whole, elapsed, 0.0, link_ms, level))
        wrong = too_much(expected, lines, elapsed, slack, link_ms, level)
        new = [text for term, text in wrong.items() if term not in known]
        if new:
            return f"wrong {level}", new
        found = found or wrong
        if level == "likely":
            way = longer_way(lines, whole, elapsed, slack)
            if way:
                return "longer way", list(way.values())
    if found:
        return "as the whole", list(found.values())
    more = surer(lines, whole, elapsed, slack)
    if more:
        return "more certain", more
    return ("right" if is_right else "less"), []


def table(counts):
    yield "| worsened | rows | " + " | ".join(VERDICTS) + " |"
    yield "|---|" + "---|" * (1 + len(VERDICTS))
    for way in WAYS:
        if any((way, v) in counts for v in VERDICTS):
            row = [counts.get((way, v), 0) for v in VERDICTS]
            yield f"| {way} | {sum(row)} | " + " | ".join(map(str, row)) + " |"


TITLE = "## Made worse on purpose"


def write_table(page, text):
    """The table into the page, which has a section for it before the results."""
    with open(page, encoding="utf-8") as file:
        before, _, behind = file.read().partition(f"\n{TITLE}\n")
    said, _, _ = behind.partition("\n| worsened |")
    results = behind.partition("\n## ")[2]
    with open(page, "w", encoding="utf-8") as file:
        file.write(f"{before}\n{TITLE}\n{said}\n{text}\n\n## {results}")
