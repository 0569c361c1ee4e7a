#!/usr/bin/env python3
"""Writes the capture beside it: connections that Wireshark counts otherwise than by their first packets. A reset that belongs to
nothing, a SYN that is refused and comes back with the same sequence number, an ICMP error that quotes another SYN of a connection
that goes on, and one connection as it should be. And `streams-many.pcap`: all that experiments with Wireshark have shown to matter, one
pair of ports each."""

import struct
from pathlib import Path

CLIENT, SERVER, ROUTER = "10.0.0.1", "10.0.0.2", "10.0.0.9"
FLAGS = {"F": 1, "S": 2, "R": 4, "P": 8, "A": 16}


def tcp(port, seq, ack, flags, data=b"", back=False):
    ports = (80, port) if back else (port, 80)
    bits = sum(FLAGS[flag] for flag in flags)
    return struct.pack("!HHIIBBHHH", *ports, seq, ack, 0x50, bits, 1000, 0, 0) + data


def ip(src, dst, payload, protocol=6):
    address = lambda text: bytes(map(int, text.split(".")))
    return struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 1, 0, 64, protocol, 0) + address(src) + address(dst) + payload


def out(port, seq, ack, flags, data=b""):
    return ip(CLIENT, SERVER, tcp(port, seq, ack, flags, data))


def back(port, seq, ack, flags, data=b""):
    return ip(SERVER, CLIENT, tcp(port, seq, ack, flags, data, True))


def talk(port, seq):
    return [
        out(port, seq, 0, "S"),
        back(port, 500, seq + 1, "SA"),
        out(port, seq + 1, 501, "A"),
        out(port, seq + 1, 501, "PA", b"x" * 10),
        back(port, 501, seq + 11, "PA", b"y" * 20),
    ]


quote = struct.pack("!BBHI", 3, 4, 0, 0) + out(2002, 777, 0, "S")
packets = [out(1999, 7, 0, "R"), *talk(2001, 100), *talk(2002, 200)]
packets += [ip(ROUTER, CLIENT, quote, 1), out(2002, 211, 521, "PA", b"x" * 10), back(2002, 521, 221, "PA", b"y" * 20)]
packets += [out(2003, 300, 0, "S"), back(2003, 0, 301, "RA"), out(2003, 300, 0, "S"), back(2003, 600, 301, "SA")]
packets += [out(2003, 301, 601, "PA", b"x" * 10), back(2003, 601, 311, "PA", b"y" * 20), *talk(2004, 400)]


def write(name, link, packets):
    with open(Path(__file__).parent / name, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link))
        for i, packet in enumerate(packets):
            file.write(struct.pack("<IIII", 1_700_000_000, 10_000 * i, len(packet), len(packet)) + packet)


def ethernet(packet, vlan=None, kind=0x0800):
    tag = b"" if vlan is None else struct.pack("!HH", 0x8100, vlan)
    return b"\2\0\0\0\0\1\2\0\0\0\0\2" + tag + struct.pack("!H", kind) + packet


def v6(payload, protocol=6, back=False):
    ends = [bytes.fromhex("20010db8000000000000000000000001"), bytes.fromhex("20010db8000000000000000000000002")]
    return struct.pack("!IHBB", 0x60000000, len(payload), protocol, 64) + b"".join(ends[::-1] if back else ends) + payload


def error(inner, kind=3):
    return ip(ROUTER, CLIENT, struct.pack("!BBHI", kind, 4, 0, 0) + inner, 1)


def vxlan(frame, network):
    return ip("10.1.1.1", "10.1.1.2", struct.pack("!HHHHBBHI", 999, 4789, 16 + len(frame), 0, 8, 0, 0, network << 8) + frame, 17)


def pieces(packet):
    """In two fragments of an IP packet."""
    first, rest = packet[20:68], packet[68:]
    head = lambda length, place: packet[:2] + struct.pack("!HHH", 20 + length, 7, place) + packet[8:20]
    return [head(len(first), 0x2000) + first, head(len(rest), len(first) // 8) + rest]


def many():
    port = 3000
    for part in (
        # Ports that are used again: another number, the same one, behind FINs, behind a reset, half closed, in the middle.
        lambda p: talk(p, 100) + [out(p, 111, 521, "FA"), back(p, 521, 112, "FA"), out(p, 112, 522, "A")] + talk(p, 9000),
        lambda p: talk(p, 100) + [out(p, 111, 521, "FA"), back(p, 521, 112, "FA"), out(p, 112, 522, "A")] + talk(p, 100),
        lambda p: talk(p, 100) + [out(p, 111, 521, "RA")] + talk(p, 100),
        lambda p: talk(p, 100) + [out(p, 111, 521, "FA")] + talk(p, 7000),
        lambda p: talk(p, 100) + talk(p, 8000) + [back(p, 521, 111, "A"), out(p, 112, 0, "R")],
        lambda p: talk(p, 100)[2:] + talk(p, 100),
        lambda p: talk(p, 100)[2:] + talk(p, 5000),
        # Resets: of nothing, in front of a connection, behind it, an answer to a SYN.
        lambda p: [back(p, 7, 0, "R")],
        lambda p: [out(p, 7, 0, "R")] + talk(p, 100),
        lambda p: [back(p, 7, 0, "R")] + talk(p, 100),
        lambda p: talk(p, 100) + [back(p, 0, 40, "RA"), out(p, 7777, 0, "R")],
        lambda p: [out(p, 100, 0, "S"), back(p, 0, 101, "RA"), out(p, 100, 0, "S"), back(p, 0, 101, "RA")] + talk(p, 100),
        lambda p: [out(p, 100, 0, "S"), back(p, 0, 101, "RA")] + talk(p, 200),
        # SYNs again, and SYN/ACKs.
        lambda p: [out(p, 100, 0, "S")] + talk(p, 100),
        lambda p: [out(p, 100, 0, "S")] + talk(p, 200),
        lambda p: [out(p, 100, 0, "S"), out(p, 200, 0, "S")] + talk(p, 100),
        lambda p: [out(p, 100, 0, "S"), back(p, 700, 101, "SA")] + talk(p, 100)[1:],
        lambda p: talk(p, 100)[1:],
        lambda p: [out(p, 100, 0, "S"), back(p, 500, 0, "S"), out(p, 100, 501, "SA"), back(p, 500, 101, "SA")] + talk(p, 100)[3:],
    ):
        yield from map(ethernet, part(port))
        port += 1
    for packet, vlan in zip(talk(port, 100), (None, 5, 7, 5, None)):
        yield ethernet(packet, vlan)
    # The same ports in IPv6, and an error that quotes others.
    for i, packet in enumerate(talk(port, 100)):
        yield ethernet(v6(packet[20:], back=i in (1, 4)), kind=0x86DD)
    quoted = struct.pack("!BBHI", 2, 0, 0, 1280) + v6(out(port + 1, 9, 0, "S")[20:])
    yield ethernet(v6(quoted, 58, True), kind=0x86DD)
    # Errors: of nothing that is known, of a connection, with eight bytes of the header, of an error, and no errors at all.
    yield from map(ethernet, talk(port + 2, 100)[:3])
    for quoted in (out(port + 3, 5, 0, "S"), out(port + 2, 111, 521, "A"), out(port + 4, 5, 0, "S")[:28], error(out(port + 5, 5, 0, "S"))):
        yield ethernet(error(quoted))
    yield ethernet(error(out(port + 6, 5, 0, "S"), 5))
    yield ethernet(error(out(port + 6, 5, 0, "S"), 8))
    yield from map(ethernet, talk(port + 2, 100)[3:])
    # Fragments: both, one of them.
    for packet in pieces(out(port + 7, 100, 0, "PA", b"q" * 80)):
        yield ethernet(packet)
    yield ethernet(pieces(out(port + 8, 100, 0, "PA", b"q" * 80))[0])
    # Headers that contradict themselves, or are not all there.
    bad = bytearray(out(port + 9, 100, 0, "S"))
    bad[32] = 0x40
    yield ethernet(bytes(bad))
    yield ethernet(out(port + 10, 100, 0, "S")[:32])
    # Tunnels: networks' numbers do not tell connections apart.
    for i, packet in enumerate(talk(port + 11, 100)):
        yield ethernet(vxlan(ethernet(packet), i % 2))
    yield ethernet(vxlan(ethernet(error(out(port + 12, 5, 0, "S"))), 1))
    for packet in talk(port + 13, 100):
        yield ethernet(ip("10.1.1.1", "10.1.1.2", struct.pack("!HH", 0, 0x800) + packet, 47))
    # Whatever was counted in between shows here.
    yield from map(ethernet, talk(port + 14, 100))


write("streams.pcap", 101, packets)
write("streams-many.pcap", 1, list(many()))
