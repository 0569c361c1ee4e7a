"""A capture of which the capturing host dropped one packet in a hundred: `missing.py IN OUT`, pcap."""

import random
import struct
import sys

random.seed(7)
with open(sys.argv[1], "rb") as file:
    data = file.read()
kept, at = bytearray(data[:24]), 24
while at + 16 <= len(data):
    size = 16 + struct.unpack("<I", data[at + 8 : at + 12])[0]
    if random.random() > 0.01:
        kept += data[at : at + size]
    at += size
with open(sys.argv[2], "wb") as file:
    file.write(kept)
