"""What is recorded, and what must come out?

A case is a path, a program at each end, and an expectation in milliseconds by `cause@side` (`a|b` for either). It comes from
the path's delay and from the programs' clocks, never from packets. "rest" is what the other terms leave of the elapsed time,
None any amount, a tuple a range. What no term names may not exceed the tolerance.
"""

import re
from dataclasses import dataclass, field, replace
from typing import Callable

ALL = {}
WHOLE_TRANSFER = "slow-start|congestion-window|bandwidth|receive-window@"


@dataclass
class Case:
    name: str
    near: object
    far: object
    expect: Callable
    path: str = "--delay 10ms"
    congestion: str = "cubic"
    near_sysctl: list = field(default_factory=list)
    far_sysctl: list = field(default_factory=list)
    tap: str = "tcp"
    snap: int = 128
    offload: object = None
    host_setup: dict = field(default_factory=dict)
    files: object = None
    skip: tuple = ()
    settle: float = 0.4
    views: dict = field(default_factory=dict)
    # The remedy of this name, and what it changes in the case: the same run without the fault.
    fix: str = ""
    changed: dict = field(default_factory=dict)
    # What the asker waited for altogether, by its own clock.
    clock: Callable = lambda t: t.waited()
    # Start and end of each wait of the asker, where each exchange of the bill is compared with one.
    each: object = None
    # The bytes do not tell who waits for whom: what is billed as possible is not judged.
    guess: bool = False
    # The ends that can see it.
    each_at: tuple = ("near", "far")

    @property
    def rtt(self):
        return 2 * float(re.search(r"--delay ([\d.]+)ms", self.path)[1]) if "--delay" in self.path else 0.0


def case(name, near, far, expect, **options):
    ALL[name] = Case(name, near, far, lambda t, c=None: expect(t, ALL[name].rtt), **options)


def repaired(case):
    """The same case without its fault; it is recorded, not judged."""
    return replace(case, name=f"{case.name}+fixed", **case.changed)


def healthy(exchanges, setups=1, **more):
    """Round trips and nothing else."""
    return lambda t, rtt: {"handshake@": setups * rtt, "round-trip@": exchanges * rtt, **more}


def asks(times, request=200, reply=300, pause_ms=0, **options):
    def program(p):
        p.connect(**options)
        p.set(TCP_NODELAY=1)
        p.ask(times, request, reply, pause_ms)
        p.close()

    return program


def answers(request=200, reply=300, think_ms=0, connections=1, **options):
    def program(p):
        p.listen(**options)
        p.serve(request, reply, think_ms, connections)

    return program


def download(size, piece=1 << 18, every_ms=0, pause_ms=0, times=1, before=None, **options):
    def program(p):
        p.connect(**options)
        p.set(TCP_NODELAY=1)
        for n in range(times):
            if n:
                p.think(pause_ms)
            start = p_now()
            p.write(100)
            p.read(size, every_ms, piece)
            p.note("exchange", start)
        p.close()

    return program


def p_now():
    import time

    return time.time()


def snap(n):
    return f"editcap -s {n} IN OUT"


def sends(expression):
    return f"tcpdump -r IN -w OUT '{expression}'"


VIEWS = {"snap68": snap(68), "pcapng": "editcap -F pcapng IN OUT"}
BULK = 3_000_000

# Requests and answers.

case("rpc-healthy", asks(10), answers(), healthy(10), views=VIEWS)
case("rpc-healthy-100ms", asks(5), answers(), healthy(5), path="--delay 50ms")
case("rpc-no-timestamps", asks(10), answers(), healthy(10), near_sysctl=["net.ipv4.tcp_timestamps=0"])
case("rpc-thinks-30", asks(8), answers(think_ms=30),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 8 * rtt, "server-think@server": t.sum("far", "think")}, views=VIEWS)
case("rpc-any-cooked", asks(8), answers(think_ms=30),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 8 * rtt, "server-think@server": t.sum("far", "think")},
     tap="-i any tcp")


def uneven(p):
    p.listen()
    p.accept()
    p.set(TCP_NODELAY=1)
    for ms in (1, 80, 3, 200, 1, 40, 2):
        p.read(200)
        p.think(ms)
        p.write(300)
    p.read(1)


case("rpc-slow-and-fast", asks(7), uneven,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 7 * rtt, "server-think@server": t.sum("far", "think")}, views=VIEWS)


def late_accept(p):
    p.listen()
    p.think(400)
    p.serve(200, 300)


case("accept-late", asks(2), late_accept,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 2 * rtt, "server-think@server": "rest"}, path="--delay 5ms")


def half_close(p):
    p.connect()
    p.write(500)
    p.shutdown()
    p.read(2000)
    p.close()


def after_eof(p):
    p.listen()
    p.accept()
    p.read(10**9)
    p.think(60)
    p.write(2000)
    p.close()


case("half-close", half_close, after_eof,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "server-think@server": t.sum("far", "think")})


def split_request(pause_ms, nodelay, times=6):
    def program(p):
        p.connect()
        p.set(TCP_NODELAY=int(nodelay))
        for _ in range(times):
            start = p_now()
            p.write(100)
            if pause_ms:
                p.think(pause_ms)
            p.write(150)
            p.read(300)
            p.note("exchange", start)
        p.close()

    return program


case("request-paused-70", split_request(70, True), answers(250),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 6 * rtt, "sender-think@client": t.sum("near", "think")})
case("split-request", split_request(0, False), answers(250),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 6 * rtt, "nagle-delayed-ack|nagle@client": "rest"}, views=VIEWS)
case("split-request-any", split_request(0, False), answers(250),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 6 * rtt, "nagle-delayed-ack|nagle@client": "rest"}, tap="-i any tcp")
case("split-request-no-timestamps", split_request(0, False), answers(250),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 6 * rtt, "nagle-delayed-ack|nagle@client": "rest"},
     near_sysctl=["net.ipv4.tcp_timestamps=0"])
case("split-request-nodelay", split_request(0, True), answers(250), healthy(6))


def quick_server(p):
    p.listen()
    p.accept()
    p.quickack = True
    p.set(TCP_NODELAY=1, TCP_QUICKACK=1)
    while p.read(250, piece=250):
        p.write(300)


case("split-request-quickack", split_request(0, False), quick_server,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 6 * rtt, "nagle@client": 6 * rtt}, path="--delay 15ms")


def pipelining(nodelay, size=120, burst=5, rounds=6):
    def program(p):
        p.connect()
        p.set(TCP_NODELAY=int(nodelay))
        for _ in range(rounds):
            start = p_now()
            for _ in range(burst):
                p.write(size)
            p.read(burst * 100)
            p.note("exchange", start)
            p.think(120)
        p.close()

    return program


case("pipelining-nagle", pipelining(False), answers(120, 100),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 6 * rtt, "nagle-delayed-ack|nagle@client": t.sum("near", "exchange") - 6 * rtt})
case("pipelining-nodelay", pipelining(True), answers(120, 100), healthy(6))


def chunks(count, size, pause_ms, nodelay, cork=False):
    def program(p):
        p.listen()
        p.accept()
        p.set(TCP_NODELAY=int(nodelay), TCP_CORK=int(cork))
        while p.read(100):
            for n in range(count):
                if n and pause_ms:
                    p.think(pause_ms)
                p.write(size)

    return program


# At equal distances: an answer in pieces, or reports by a timer that nobody waits for. No packet tells.
case("chunks-every-100ms", download(10 * 400, times=2), chunks(10, 400, 100, True),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": (2 * rtt, 20 * rtt), "sender-think@server": (0, t.sum("far", "think"))}, views=VIEWS)
case("chunks-every-40ms-nagle", download(8 * 400, times=3), chunks(8, 400, 40, False),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 3 * rtt, "sender-think@server": t.sum("far", "think")})
case("chunks-at-once-nagle", download(3 * 400, times=5, pause_ms=5), chunks(3, 400, 0, False),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 5 * rtt, "nagle-delayed-ack|nagle@server": t.sum("near", "exchange") - 5 * rtt})
case("cork-forgotten", download(700, times=12, pause_ms=3.3), chunks(2, 350, 0, False, cork=True),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 12 * rtt, "cork|server-think@server": t.sum("near", "exchange") - 12 * rtt}, path="--delay 5ms")


def more(p):
    p.listen()
    p.accept()
    while p.read(100):
        p.write(300, more=True)
        p.think(30)
        p.write(300)


case("msg-more-then-30ms", download(600, times=5), more,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 5 * rtt, "server-think|sender-think|cork@server": t.sum("far", "think")})


def linger(p):
    p.connect()
    p.set(TCP_NODELAY=1, SO_LINGER=(1, 0))
    p.ask(4, 200, 300)
    p.close()


case("linger-reset", linger, answers(), healthy(4))
case("keepalive-gaps", asks(3, pause_ms=3500, SO_KEEPALIVE=1, TCP_KEEPIDLE=1, TCP_KEEPINTVL=1), answers(), healthy(3))
case("syncookies", asks(5), answers(), healthy(5), far_sysctl=["net.ipv4.tcp_syncookies=2"])
case("ecn-negotiated", asks(5), answers(), healthy(5), near_sysctl=["net.ipv4.tcp_ecn=1"], far_sysctl=["net.ipv4.tcp_ecn=1"])
case("defer-accept", asks(5), answers(TCP_DEFER_ACCEPT=3), healthy(5))


def pushes(p):
    p.listen()
    p.accept()
    p.set(TCP_NODELAY=1)
    p.read(100)
    for _ in range(20):
        p.write(80)
        p.think(60)


def listens(p):
    p.connect()
    p.write(100)
    p.read(20 * 80)
    p.close()


# At equal distances they are a timer's, and nobody waits for the next one.
case("pushes-every-60ms", listens, pushes,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": None, "sender-think@server": (0, t.sum("far", "think"))})


def busy_server(command):
    def program(p):
        import subprocess

        p.listen()
        p.accept()
        p.set(TCP_NODELAY=1)
        while p.read(200):
            subprocess.run(command, shell=True)
            p.write(300)

    return program


def took(term, n, cause_rtts=0):
    return lambda t, rtt: {"handshake@": rtt, "round-trip@": n * rtt, term: t.sum("near", "exchange") - n * rtt}


case("server-stopped", asks(4), busy_server("kill -STOP $PPID & sleep 0.3; kill -CONT $PPID"), took("server-think@server", 4))
case("server-works", asks(4), busy_server("python3 -c 'sum(range(3000000))'"), took("server-think@server", 4))

# Loss, order, delay.

case("lost-request", asks(4), answers(), took("rto@", 4), path="--delay 10ms --forward 'loss data 2'")
case("lost-request-twice", asks(4), answers(), took("rto@", 4), path="--delay 10ms --forward 'loss data 2 times 2'", settle=1.0)
case("lost-request-thrice", asks(4), answers(), took("rto@", 4), path="--delay 10ms --forward 'loss data 3 times 3'", settle=1.0)
case("lost-reply-twice", asks(4), answers(), took("rto@", 4), path="--delay 10ms --backward 'loss data 2 times 2'", settle=1.0)
case("lost-reply-no-timestamps", asks(4), answers(), took("rto@", 4), path="--delay 10ms --backward 'loss data 2'",
     near_sysctl=["net.ipv4.tcp_timestamps=0"])
case("lost-syn-twice", asks(2), answers(),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 2 * rtt, "syn-retransmit@": t.sum("near", "connect") - rtt},
     path="--delay 10ms --forward 'loss syn 1,2'", skip=("far",))
case("lost-handshake-ack", asks(3), answers(), healthy(3), path="--delay 10ms --forward 'loss ack 1'")
case("lost-acks", download(40_000, times=3), chunks(1, 40_000, 0, True),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 3 * rtt, WHOLE_TRANSFER: t.sum("near", "exchange") - 3 * rtt},
     path="--delay 10ms --forward 'loss ack 5,9,14'")
case("lost-middle", download(14_000, times=4, pause_ms=20), chunks(1, 14_000, 0, True),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 4 * rtt, "loss|congestion-window|slow-start@": t.sum("near", "exchange") - 4 * rtt},
     path="--delay 20ms --backward 'loss data 3,14'")
case("lost-tail-probe", download(14_000, times=4, pause_ms=20), chunks(1, 14_000, 0, True),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 4 * rtt, "loss|rto|slow-start@": t.sum("near", "exchange") - 4 * rtt},
     path="--delay 20ms --backward 'loss data 10'")
case("reply-overtaken-15ms", download(7_000, times=6, pause_ms=20), chunks(1, 7_000, 0, True),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 6 * rtt, "queueing|loss@": t.sum("near", "exchange") - 6 * rtt},
     path="--delay 20ms --backward 'reorder data 3,8,12 by 15ms'", skip=("far",))
case("request-held-on-path", asks(6), answers(), took("queueing@", 6), path="--delay 20ms --forward 'reorder data 2,4 by 60ms'", skip=("near",))
case("reply-held-on-path", asks(6), answers(), took("queueing@", 6), path="--delay 20ms --backward 'reorder data 2,4 by 60ms'", skip=("far",))
# Near the client nothing tells a request that was late from a server that took longer; at the server it is not seen at all.
case("jitter-15ms", asks(15), answers(),
     lambda t, rtt: {"handshake@": None, "round-trip|queueing|server-think@": t.sum("near", "exchange")}, path="--delay 10ms --jitter 15ms", skip=("far",))
case("jitter-near-client-thinks", asks(15), answers(think_ms=25),
     lambda t, rtt: {"handshake@": None, "server-think@server": (t.sum("far", "think"), t.sum("near", "exchange") - 15 * rtt),
                     "round-trip|queueing@": (15 * rtt, t.sum("near", "exchange") - t.sum("far", "think"))},
     path="--delay 10ms --jitter 8ms", skip=("far",))
case("spurious-timeout", asks(5), answers(), took("queueing|rto@", 5), path="--delay 10ms --forward 'reorder data 3 by 400ms'", settle=1.0)
case("duplicated", asks(6), answers(), healthy(6), path="--delay 10ms --forward 'duplicate 100%' --backward 'duplicate 100%'")
case("loss-1-percent", download(BULK), chunks(1, BULK, 0, True),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "loss|rto|" + WHOLE_TRANSFER: "rest"},
     path="--delay 15ms --rate 50mbit --backward 'loss 1%'")

# Transfers.


def transfer(term):
    """What a link without a rate takes is the machine's own time for the packets."""
    return lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, term: "rest-bandwidth"}


case("bulk-cubic-20m", download(BULK), chunks(1, BULK, 0, True),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "slow-start|receive-window@": (0, 5 * rtt), "bandwidth@": (1000, 1300)},
     path="--delay 10ms --rate 20mbit --queue 100k", views=VIEWS)
case("bulk-bbr-20m", download(BULK), chunks(1, BULK, 0, True),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "slow-start|receive-window@": (0, 5 * rtt), "bandwidth@": (1000, 1300)},
     path="--delay 10ms --rate 20mbit --queue 100k", congestion="bbr")
case("bulk-no-timestamps", download(BULK), chunks(1, BULK, 0, True),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "slow-start|receive-window@": (0, 5 * rtt), "bandwidth@": (1000, 1300)},
     path="--delay 10ms --rate 20mbit --queue 100k", near_sysctl=["net.ipv4.tcp_timestamps=0"])
case("bulk-no-offload", download(BULK), chunks(1, BULK, 0, True),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "slow-start|receive-window@": (0, 5 * rtt), "bandwidth@": (1000, 1300)},
     path="--delay 10ms --rate 20mbit --queue 100k", offload=False)
case("bulk-small-queue", download(BULK), chunks(1, BULK, 0, True),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "loss|rto|" + WHOLE_TRANSFER: "rest"}, path="--delay 10ms --rate 20mbit --queue 8p")
case("bulk-thinned-acks", download(BULK), chunks(1, BULK, 0, True),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "slow-start|receive-window@": (0, 6 * rtt), "bandwidth@": (1000, 1300)},
     path="--delay 10ms --rate 20mbit --queue 100k --forward 'acks every 16 after 5ms'")
case("bulk-fast-60ms", download(BULK), chunks(1, BULK, 0, True), transfer("slow-start|receive-window@"), path="--delay 30ms")
case("bulk-notsent-lowat", download(BULK), lambda p: lowat_server(p),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "slow-start|receive-window@": (0, 5 * rtt), "bandwidth@": (1000, 1300)},
     path="--delay 10ms --rate 20mbit --queue 100k")


def lowat_server(p):
    p.listen()
    p.accept()
    p.set(TCP_NOTSENT_LOWAT=16384)
    p.read(100)
    p.write(BULK, piece=8192)
    p.read(1)


def reordered(t, rtt):
    return {"handshake@": rtt, "round-trip@": rtt, "queueing|loss|slow-start|congestion-window|receive-window@": "rest-bandwidth"}


case("bulk-reordered", download(BULK), chunks(1, BULK, 0, True), reordered, path="--delay 20ms --backward 'reorder 2% by 6ms'")
case("slow-reader-cubic", download(BULK, 65_536, 20), chunks(1, BULK, 0, True), transfer("receiver-think|receive-window|slow-start|congestion-window@"), path="--delay 10ms")
case("slow-reader-bbr", download(BULK, 65_536, 20), chunks(1, BULK, 0, True), transfer("receiver-think|receive-window|slow-start|congestion-window|pacing@"), path="--delay 10ms",
     congestion="bbr")
case("slow-reader-no-timestamps", download(BULK, 65_536, 20), chunks(1, BULK, 0, True), transfer("receiver-think|receive-window|slow-start|congestion-window@"),
     near_sysctl=["net.ipv4.tcp_timestamps=0"])
case("slow-reader-slower", download(1_500_000, 65_536, 80), chunks(1, 1_500_000, 0, True), transfer("receiver-think|receive-window|slow-start|congestion-window@"), path="--delay 10ms")
case("slow-reader-slower-bbr", download(1_500_000, 65_536, 80), chunks(1, 1_500_000, 0, True), transfer("receiver-think|receive-window|slow-start|congestion-window|pacing@"),
     path="--delay 10ms", congestion="bbr")
case("reader-sleeps-1500ms", lambda p: sleepy_reader(p), chunks(1, BULK, 0, True),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "receiver-think@client": (1300, 1600), "slow-start|slow-start-after-idle|receive-window|congestion-window@": (0, 700)})


def sleepy_reader(p):
    p.connect()
    p.write(100)
    p.read(100_000)
    p.think(1500)
    p.read(BULK - 100_000)
    p.close()


case("rcvbuf-32k", download(600_000, SO_RCVBUF=32_768), chunks(1, 600_000, 0, True), transfer("receive-window|slow-start@"), path="--delay 20ms")
case("rcvbuf-32k-upload", lambda p: upload(p, 600_000), lambda p: sink(p, 600_000, SO_RCVBUF=32_768),
     transfer("receive-window|slow-start@"), path="--delay 20ms")
case("rmem-small", download(1_000_000), chunks(1, 1_000_000, 0, True), transfer("receive-window|slow-start@"), path="--delay 20ms",
     near_sysctl=["net.ipv4.tcp_rmem=4096 60000 60000"])
case("unscaled", download(1_000_000), chunks(1, 1_000_000, 0, True), transfer("receive-window|slow-start@"), path="--delay 30ms",
     near_sysctl=["net.ipv4.tcp_window_scaling=0"])
case("sndbuf-16k", download(300_000), lambda p: tuned_server(p, 300_000, SO_SNDBUF=16384), transfer("send-buffer|slow-start|congestion-window@"),
     path="--delay 20ms")
case("sndbuf-64k-bbr", download(1_000_000), lambda p: tuned_server(p, 1_000_000, SO_SNDBUF=65536),
     transfer("send-buffer|slow-start|congestion-window|pacing@server"), path="--delay 20ms", congestion="bbr")


def tuned_server(p, size, **options):
    p.listen(**options)
    p.accept()
    p.read(100)
    p.write(size)
    p.read(1)


def upload(p, size, pauses=()):
    p.connect()
    for pause in (0, *pauses):
        if pause:
            p.think(pause)
        start = p_now()
        p.write(size)
        p.read(50)
        p.note("exchange", start)
    p.close()


def sink(p, size, think_ms=0, **options):
    p.listen(**options)
    p.accept()
    while p.read(size):
        if think_ms:
            p.think(think_ms)
        p.write(50)


def after_idle(t, rtt):
    last = t.spans("near", "exchange")[-1]
    first = sum(t.spans("near", "exchange")[:-1])
    return {"handshake@": rtt, "round-trip@": 3 * rtt, "slow-start-after-idle@": last - rtt, "slow-start|receive-window|congestion-window@": first - 2 * rtt}


def idles(p, pauses=(30, 2500), size=150_000):
    p.connect()
    for pause in (0, *pauses):
        if pause:
            p.think(pause)
        start = p_now()
        p.write(100)
        p.read(size)
        p.note("exchange", start)
    p.close()


case("idle-download", idles, chunks(1, 150_000, 0, True), after_idle, path="--delay 30ms")
# A tail behind a segment that the window had cut minds Nagle.
case("idle-upload", lambda p: upload(p, 150_000, (30, 2500)), lambda p: sink(p, 150_000),
     lambda t, rtt: {k.replace("congestion-window@", "congestion-window|nagle@"): ms for k, ms in after_idle(t, rtt).items()}, path="--delay 30ms")
case("idle-no-restart", idles, chunks(1, 150_000, 0, True),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 3 * rtt, "slow-start|receive-window|congestion-window@": t.sum("near", "exchange") - 3 * rtt},
     path="--delay 30ms", far_sysctl=["net.ipv4.tcp_slow_start_after_idle=0"])
case("upload-then-think-100", lambda p: upload(p, 1_000_000), lambda p: sink(p, 1_000_000, 100),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "server-think@server": t.sum("far", "think"),
                     "slow-start|receive-window@": (0, 5 * rtt), "bandwidth@": (300, 420)}, path="--delay 10ms --rate 20mbit --queue 100k")
case("paced-10m", download(BULK), lambda p: tuned_server(p, BULK, SO_MAX_PACING_RATE=1_250_000), transfer("pacing|slow-start@server"))


def stream_up(p):
    p.connect()
    p.set(TCP_NODELAY=1)
    p.write(50 * 2000, piece=2000, every_ms=15)
    p.read(50)
    p.close()


case("upload-in-pauses", stream_up, lambda p: sink(p, 100_000),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "sender-think@client": t.sum("near", "write")})


# Two hosts on one wire: super-segments and GRO, round trips of 50 us.

case("wire-rpc", asks(20), answers(), healthy(20), path="veth", views=VIEWS)
case("wire-rpc-thinks-12", asks(10), answers(think_ms=12),
     lambda t, rtt: {"handshake@": 0, "round-trip@": 0, "server-think@server": t.sum("far", "think")}, path="veth")
case("wire-split-request", split_request(0, False, 10), answers(250),
     lambda t, rtt: {"handshake@": 0, "round-trip@": 0, "nagle-delayed-ack@client": t.sum("near", "exchange")}, path="veth", views=VIEWS)
case("wire-split-request-any", split_request(0, False, 10), answers(250),
     lambda t, rtt: {"handshake@": 0, "round-trip@": 0, "nagle-delayed-ack@client": t.sum("near", "exchange")}, path="veth", tap="-i any tcp")
case("wire-chunks-nagle", download(3 * 400, times=8, pause_ms=5), chunks(3, 400, 0, False),
     lambda t, rtt: {"handshake@": 0, "round-trip@": 0, "nagle-delayed-ack|nagle@server": t.sum("near", "exchange")}, path="veth")
case("wire-bulk-50m", download(BULK), chunks(1, BULK, 0, True),
     lambda t, rtt: {"handshake@": 0, "round-trip@": 0, "bandwidth@": (400, 560)}, path="veth rate 50mbit burst 20k limit 200k")
case("wire-bulk-50m-bbr", download(BULK), chunks(1, BULK, 0, True),
     lambda t, rtt: {"handshake@": 0, "round-trip@": 0, "bandwidth@": (400, 600), "pacing|slow-start@": (0, 60)},
     path="veth rate 50mbit burst 20k limit 200k", congestion="bbr")
case("wire-bulk-50m-no-offload", download(BULK), chunks(1, BULK, 0, True),
     lambda t, rtt: {"handshake@": 0, "round-trip@": 0, "bandwidth@": (400, 560)}, path="veth rate 50mbit burst 20k limit 200k", offload=False)
case("wire-bulk-small-queue", download(BULK), chunks(1, BULK, 0, True),
     lambda t, rtt: {"handshake@": 0, "round-trip@": 0, "bandwidth|loss|rto|congestion-window|slow-start@": "rest"},
     path="veth rate 50mbit burst 20k limit 30k")
case("wire-slow-reader", download(1_500_000, 65_536, 30), chunks(1, 1_500_000, 0, True),
     lambda t, rtt: {"handshake@": 0, "round-trip@": 0, "receiver-think|receive-window@client": "rest"}, path="veth",
     near_sysctl=["net.ipv4.tcp_rmem=4096 131072 262144"])
case("wire-slow-reader-bbr", download(1_500_000, 65_536, 30), chunks(1, 1_500_000, 0, True),
     lambda t, rtt: {"handshake@": 0, "round-trip@": 0, "receiver-think|receive-window@client": "rest"}, path="veth",
     near_sysctl=["net.ipv4.tcp_rmem=4096 131072 262144"], congestion="bbr")
case("wire-upload-slow-reader", lambda p: upload(p, 1_500_000), lambda p: slow_sink(p, 1_500_000),
     lambda t, rtt: {"handshake@": 0, "round-trip@": 0, "receiver-think|receive-window|server-think@server": "rest"}, path="veth",
     far_sysctl=["net.ipv4.tcp_rmem=4096 131072 262144"])
case("wire-paced-20m", download(1_000_000), lambda p: tuned_server(p, 1_000_000, SO_MAX_PACING_RATE=2_500_000),
     lambda t, rtt: {"handshake@": 0, "round-trip@": 0, "pacing|slow-start@server": "rest"}, path="veth")
case("wire-cork-forgotten", download(700, times=12, pause_ms=3.3), chunks(2, 350, 0, False, cork=True),
     lambda t, rtt: {"handshake@": 0, "round-trip@": 0, "cork|server-think@server": t.sum("near", "exchange")}, path="veth")
case("wire-request-dropped", asks(4), answers(), lambda t, rtt: {"handshake@": 0, "round-trip@": 0, "rto@": t.sum("near", "exchange")},
     path="veth", host_setup={"far": ["nft add table netdev t; nft 'add chain netdev t c { type filter hook ingress device DEV priority 0; }';"
                                      " nft 'add rule netdev t c tcp dport 7000 ip length > 200"
                                      " numgen inc mod 3 == 1 drop'"]})


def slow_sink(p, size, piece=65_536):
    p.listen()
    p.accept()
    p.read(size, 30, piece)
    p.write(50)
    p.read(1)

# More of both ends' settings, and the client as the one who sends.

case("no-sack-lost", download(14_000, times=4, pause_ms=20), chunks(1, 14_000, 0, True),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 4 * rtt, "loss|rto|congestion-window|slow-start@": t.sum("near", "exchange") - 4 * rtt},
     path="--delay 20ms --backward 'loss data 3'", near_sysctl=["net.ipv4.tcp_sack=0"])
case("mtu-576", download(60_000, times=3), chunks(1, 60_000, 0, True),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 3 * rtt, "slow-start|receive-window|congestion-window@": t.sum("near", "exchange") - 3 * rtt},
     path="--delay 15ms", host_setup={"near": ["ip link set DEV mtu 576"]})
case("split-request-idle-between", lambda p: paused_split(p), answers(250),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 5 * rtt, "nagle-delayed-ack|nagle@client": t.sum("near", "exchange") - 5 * rtt})
case("long-poll-1200", asks(3), answers(think_ms=1200),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 3 * rtt, "server-think@server": t.sum("far", "think")})
case("upload-20m", lambda p: upload(p, BULK), lambda p: sink(p, BULK),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "slow-start|receive-window@": (0, 5 * rtt), "bandwidth@": (1000, 1300)},
     path="--delay 10ms --rate 20mbit --queue 100k")
case("upload-20m-bbr", lambda p: upload(p, BULK), lambda p: sink(p, BULK),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "slow-start|receive-window@": (0, 5 * rtt), "bandwidth@": (1000, 1300)},
     path="--delay 10ms --rate 20mbit --queue 100k", congestion="bbr")
case("upload-slow-sink", lambda p: upload(p, 1_500_000), lambda p: slow_sink(p, 1_500_000),
     transfer("receiver-think|receive-window|slow-start|server-think@"), path="--delay 10ms", far_sysctl=["net.ipv4.tcp_rmem=4096 131072 262144"])
case("upload-slow-sink-bbr", lambda p: upload(p, 1_500_000), lambda p: slow_sink(p, 1_500_000),
     transfer("receiver-think|receive-window|slow-start|congestion-window|pacing|server-think@"), path="--delay 10ms", congestion="bbr",
     far_sysctl=["net.ipv4.tcp_rmem=4096 131072 262144"])
# The client offers time stamps and the server does not take them up, as Windows does not by default.
case("upload-15m-bbr-no-timestamps", lambda p: upload(p, 2_000_000), lambda p: sink(p, 2_000_000),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "slow-start|receive-window@": (0, 3 * rtt), "bandwidth@": (950, 1400)},
     path="--delay 40ms --rate 15mbit --queue 150k", congestion="bbr", far_sysctl=["net.ipv4.tcp_timestamps=0"])
case("unscaled-bbr", download(1_200_000), chunks(1, 1_200_000, 0, True), transfer("receive-window|slow-start@"), path="--delay 12ms",
     congestion="bbr", near_sysctl=["net.ipv4.tcp_window_scaling=0"])
case("paced-30m-bbr", download(BULK), lambda p: tuned_server(p, BULK, SO_MAX_PACING_RATE=3_750_000), transfer("pacing|slow-start@server"),
     congestion="bbr")
case("two-slow-one-fast", lambda p: three_at_once(p), lambda p: serve_many(p, 3, 60),
     lambda t, rtt: {"handshake@": 3 * rtt, "round-trip@": 12 * rtt, "server-think@server": t.sum("far", "think")})
case("stream-of-events", download(12 * 150), chunks(12, 150, 80, True),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": (rtt, 12 * rtt), "sender-think@server": (0, t.sum("far", "think"))}, path="--delay 30ms")
case("stream-of-events-nagle", download(12 * 150), chunks(12, 150, 80, False),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": (rtt, 12 * rtt), "sender-think@server": (0, t.sum("far", "think"))}, path="--delay 20ms")
case("pieces-of-16k-every-10ms", download(20 * 16_384), chunks(20, 16_384, 10, True),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "sender-think@server": (100, 260), "slow-start|receive-window@": (0, 3 * rtt)},
     path="--delay 20ms")
case("pieces-over-slow-link", download(20 * 16_384), chunks(20, 16_384, 10, True),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "bandwidth@": (480, 620), "slow-start|sender-think@": (0, 2 * rtt)},
     path="--delay 10ms --rate 5mbit --queue 100k")
case("slow-link-1m", download(150_000), chunks(1, 150_000, 0, True),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "bandwidth@": (1150, 1350)}, path="--delay 25ms --rate 1mbit --queue 64k")
case("slow-link-1m-bbr", download(150_000), chunks(1, 150_000, 0, True),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "bandwidth@": (1100, 1400)}, path="--delay 25ms --rate 1mbit --queue 64k", congestion="bbr")
case("codel", download(BULK), chunks(1, BULK, 0, True),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "slow-start|receive-window|loss|congestion-window@": (0, 12 * rtt), "bandwidth@": (900, 1300)},
     path="--delay 10ms --backward 'rate 20mbit queue 200k codel 5ms 100ms'")
case("burst-loss", download(BULK), chunks(1, BULK, 0, True),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "loss|rto|" + WHOLE_TRANSFER: "rest"},
     path="--delay 10ms --rate 30mbit --queue 100k --backward 'loss burst 0.3% 40%'")
case("lost-fin-and-retry", asks(3), answers(), healthy(3), path="--delay 10ms --forward 'loss fin 1'")
case("delayed-ack-in-slow-start", download(30_000, times=3), chunks(1, 30_000, 0, True),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 3 * rtt, "slow-start|delayed-ack-cwnd|congestion-window@": t.sum("near", "exchange") - 3 * rtt},
     path="--delay 15ms --forward 'acks every 2 after 40ms'", host_setup={"near": ["ip route change 10.77.0.0/24 dev DEV quickack 1 || true"]})


def paused_split(p):
    p.connect()
    for n in range(5):
        if n:
            p.think(700)
        start = p_now()
        p.write(100)
        p.write(150)
        p.read(300)
        p.note("exchange", start)
    p.close()


def three_at_once(p):
    import threading

    from peer import Peer

    def one():
        q = Peer(None)
        q.connect()
        q.set(TCP_NODELAY=1)
        q.ask(4, 200, 300)
        q.close()
        p.log.extend(q.log)

    threads = [threading.Thread(target=one) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def serve_many(p, count, think_ms):
    import threading

    from peer import Peer

    p.listen()

    def one(sock):
        q = Peer(None)
        q.sock = sock
        q.set(TCP_NODELAY=1)
        while q.read(200):
            q.think(think_ms)
            q.write(300)
        p.log.extend(q.log)

    threads = [threading.Thread(target=one, args=(p.listener.accept()[0],)) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
