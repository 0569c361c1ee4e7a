"""Radio paths: what arrives in batches, stands still now and then, and has no steady rate, as over Wi-Fi and mobile networks.

Neither end tells how long a packet was on its way unless both ends' time stamps do; half of the cases are without. So what is
billed as possible is not judged, and what the path and its windows took may be divided in any way. What the programs did not
take must not be theirs.
"""

import random

from cases import answers, asks, case, chunks, download, sink, upload

# What the path takes, and the windows that it fills.
PATH = "round-trip|queueing|bandwidth|slow-start|slow-start-after-idle|congestion-window|delayed-ack-cwnd|receive-window|pacing@"


def trace(name, period_ms, each_ms, stands, shares=0.5):
    """Delivery opportunities of 1,504 bytes, always the same for a name: up to `each_ms` in a millisecond that has any, none while
    the path stands still for 20 to 150 ms."""
    draw, at, times = random.Random(f"trace of {name}"), 0, []
    while at < period_ms:
        at += draw.randint(20, 150) if draw.random() < stands else 1
        if draw.random() < shares:
            times += [at] * draw.randint(1, each_ms)
    return "trace " + ",".join(map(str, times))


def batches(every_ms, packets):
    """So many packets at a time."""
    return "trace " + ",".join([str(every_ms)] * packets)


PATHS = {
    "mobile": f"--delay 20ms --backward '{trace('down', 3000, 8, 0.004)}' --forward '{trace('up', 3000, 4, 0.004)}'",
    "hotspot": f"--delay 10ms --jitter 6ms --backward '{trace('hotspot', 2500, 4, 0.003)}'",
    "batches": f"--delay 20ms --backward '{batches(10, 40)}'",
    "batched-acks": f"--delay 20ms --forward '{batches(20, 8)}' --rate 50mbit --queue 4m",
}


def waits(t, rtt):
    """The path's, but for what the server took by its own clock."""
    thinks = t.sum("far", "think")
    return {"handshake@": None, PATH: None, "server-think@server": (0, 1.1 * thinks)}


SENT, REPLY = 300_000, 60_000
WORKS = {
    "rpc": (asks(25, pause_ms=100), answers()),
    "thinks": (asks(20, pause_ms=100), answers(think_ms=30)),
    "replies": (asks(12, reply=REPLY, pause_ms=100), answers(reply=REPLY)),
    "download": (download(2_000_000), chunks(1, 2_000_000, 0, True)),
    "upload": (lambda p: upload(p, SENT, (100, 100)), lambda p: sink(p, SENT)),
}
for way, path in PATHS.items():
    for work, (near, far) in WORKS.items():
        for stamps, settings in (("", []), ("-no-timestamps", ["net.ipv4.tcp_timestamps=0"])):
            case(f"radio-{way}-{work}{stamps}", near, far, waits, path=path, guess=True, near_sysctl=settings, far_sysctl=settings)
