"""The same mechanisms elsewhere: on a host's own loopback, over IPv6, with large packets, behind queues of the sender's own, and
several requests on one connection."""

import socket
import time

from cases import BULK, after_eof, answers, asks, case, chunks, download, half_close, healthy, slow_sink, split_request, sink, upload
from peer import FAR, PORT
from programs import CURL, SERVE, URL, curls, nginx
from services import HEAD_AND_BODY, PG, PG_START, PSQL, REQUESTS, logged, pg, repeated, scripts, timings

# Loopback: round trips of microseconds, segments of 64 KB, both ends in one capture.

LO = {"path": "lo", "skip": ("far",)}


def seen_at_once(term):
    """All of what the client measured."""
    return lambda t, rtt: {"handshake@": 0, "round-trip@": 0, term: t.sum("near", "exchange")}


case("lo-thinks-12", asks(10), answers(think_ms=12), lambda t, rtt: {"server-think@server": t.sum("far", "think")}, **LO)
case("lo-split-request", split_request(0, False, 8), answers(250), seen_at_once("nagle-delayed-ack@client"), **LO)
case("lo-request-paused-70", split_request(70, True), answers(250), lambda t, rtt: {"sender-think@client": t.sum("near", "think")}, **LO)
case("lo-chunks-nagle", download(3 * 400, times=8, pause_ms=5), chunks(3, 400, 0, False), seen_at_once("nagle-delayed-ack|nagle@server"), **LO)
case("lo-cork-forgotten", download(700, times=12, pause_ms=3.3), chunks(2, 350, 0, False, cork=True), seen_at_once("cork|server-think@server"), **LO)
case("lo-slow-reader", download(8_000_000, 262_144, 30), chunks(1, 8_000_000, 0, True),
     lambda t, rtt: {"receiver-think|receive-window@client": "rest"}, **LO)
# What was read slowly had arrived long before: the rest is the server's own time.
case("lo-upload-slow-reader", lambda p: upload(p, 8_000_000), lambda p: slow_sink(p, 8_000_000, 262_144),
     lambda t, rtt: {"receiver-think|receive-window|server-think@server": "rest"}, **LO)
case("lo-half-close", half_close, lambda p: after_eof(p), lambda t, rtt: {"server-think@server": t.sum("far", "think")}, **LO)
case("lo-python-head-and-body", "python3 client.py", "python3 server.py",
     lambda t, rtt: {"server-think@server": (0, 25), "nagle|nagle-delayed-ack@server": (logged(t, "near.out", "exchange") - 40, logged(t, "near.out", "exchange"))},
     files=scripts(client=REQUESTS, server=HEAD_AND_BODY), **LO)
case("lo-pg-sleeps", PSQL + " -f q.sql", PG, lambda t, rtt: {"server-think@server": (sum(timings(t)), sum(timings(t)) + PG_START)},
     files=pg("select pg_sleep(0.1);\nselect pg_sleep(0.2);\nselect 1;\nselect pg_sleep(0.05);\n"), **LO)
case("lo-nginx-slow-backend", "sleep 2; " + repeated(f"{URL}/slow", 4), "python3 backend.py & sleep 1; " + SERVE,
     lambda t, rtt: {"server-think@server": sum(c["total"] for c in curls(t))}, files=nginx(), tap="tcp port 7000", **LO)


# IPv6: no identification that counts packets.

SIX = {"path": "veth6"}
case("six-rpc-thinks-12", asks(10), answers(think_ms=12),
     lambda t, rtt: {"handshake@": 0, "round-trip@": 0, "server-think@server": t.sum("far", "think")}, **SIX)
case("six-split-request", split_request(0, False, 8), answers(250), seen_at_once("nagle-delayed-ack@client"), **SIX)
case("six-slow-reader", download(1_500_000, 65_536, 30), chunks(1, 1_500_000, 0, True),
     lambda t, rtt: {"handshake@": 0, "round-trip@": 0, "receiver-think|receive-window@client": "rest"},
     near_sysctl=["net.ipv4.tcp_rmem=4096 131072 262144"], **SIX)
DROP = ("nft add table netdev t; nft 'add chain netdev t c { type filter hook ingress device DEV priority 0; }';"
        " nft 'add rule netdev t c tcp PORTS meta length > 250 numgen inc mod 3 == 1 drop'")
case("six-request-dropped", asks(5, request=300), answers(request=300), seen_at_once("rto@"),
     host_setup={"far": [DROP.replace("PORTS", "dport 7000")]}, **SIX)
case("six-reply-dropped", asks(5), answers(), seen_at_once("rto@"), host_setup={"near": [DROP.replace("PORTS", "sport 7000")]}, **SIX)
case("six-bulk-50m", download(BULK), chunks(1, BULK, 0, True),
     lambda t, rtt: {"handshake@": 0, "round-trip@": 0, "bandwidth@": (400, 560)}, path="veth6 rate 50mbit burst 20k limit 200k")

# Large packets, and a token bucket on the sender's own interface: its captures are taken behind that.

JUMBO = {"host_setup": {end: ["ip link set DEV mtu 9000"] for end in ("near", "far")}, "path": "veth"}
case("jumbo-split-request", split_request(0, False, 8), answers(250), seen_at_once("nagle-delayed-ack@client"), **JUMBO)
case("jumbo-slow-reader", download(3_000_000, 131_072, 30), chunks(1, 3_000_000, 0, True),
     lambda t, rtt: {"handshake@": 0, "round-trip@": 0, "receiver-think|receive-window@client": "rest"},
     near_sysctl=["net.ipv4.tcp_rmem=4096 262144 524288"], **JUMBO)
OWN = {"host_setup": {"near": ["tc qdisc add dev DEV root tbf rate 50mbit burst 20k limit 200k"]}, "path": "veth"}
OWN_LINK = lambda t, rtt: {"handshake@": 0, "round-trip@": 0, "bandwidth@": (400, 600), "pacing|slow-start@": (0, 60)}  # noqa: E731
case("own-queue-upload", lambda p: upload(p, BULK), lambda p: sink(p, BULK), OWN_LINK, **OWN)
case("own-queue-upload-no-offload", lambda p: upload(p, BULK), lambda p: sink(p, BULK), OWN_LINK, offload=False, **OWN)
case("own-queue-upload-bbr", lambda p: upload(p, BULK), lambda p: sink(p, BULK), OWN_LINK, congestion="bbr", **OWN)
case("own-queue-slow-link", lambda p: upload(p, 250_000), lambda p: sink(p, 250_000),
     lambda t, rtt: {"handshake@": 0, "round-trip@": 0, "bandwidth@": (900, 1150)}, path="veth",
     host_setup={"near": ["tc qdisc add dev DEV root tbf rate 2mbit burst 5k limit 60k"]})
case("own-queue-then-think", lambda p: upload(p, 500_000), lambda p: sink(p, 500_000, 150),
     lambda t, rtt: {"handshake@": 0, "round-trip@": 0, "bandwidth@": (370, 460), "server-think@server": t.sum("far", "think")}, path="veth",
     host_setup={"near": ["tc qdisc add dev DEV root tbf rate 10mbit burst 10k limit 100k"]})

# A server without room for connections, and other ways to share one.


def into_full_backlog(p):
    """The second connection finds no place until the server has accepted the first one."""
    first = socket.create_connection((FAR, PORT))
    p.connect()
    p.set(TCP_NODELAY=1)
    p.ask(2, 200, 300)
    p.close()
    first.close()


def full_backlog(p):
    p.listen(backlog=0)
    p.think(500)
    first = p.listener.accept()[0]
    p.serve(200, 300)
    first.close()


case("backlog-full", into_full_backlog, full_backlog,
     lambda t, rtt: {"handshake@": 2 * rtt, "round-trip@": 2 * rtt, "syn-retransmit@": t.sum("near", "connect") - rtt, "server-think@server": (0, 500)})


def behind_another(p):
    """Two handshakes at once, and room for one: what follows the second one is dropped until the server accepts."""
    first = socket.socket()
    first.setblocking(False)
    first.connect_ex((FAR, PORT))
    p.connect()
    p.set(TCP_NODELAY=1)
    p.ask(2, 200, 300)
    p.close()
    first.close()


def accepts_late(p):
    p.listen(backlog=0)
    p.think(1200)
    first = p.listener.accept()[0]
    p.serve(200, 300)
    first.close()


case("accept-queue-full", behind_another, accepts_late,
     lambda t, rtt: {"handshake@": 2 * rtt, "round-trip@": 2 * rtt, "rto@server": t.sum("near", "exchange") - 2 * rtt}, path="--delay 10ms")


def four_at_once(p):
    p.connect()
    p.set(TCP_NODELAY=1)
    for _ in range(3):
        start = time.time()
        p.write(800, piece=200)
        p.read(1200)
        p.note("exchange", start)
        p.think(50)
    p.close()


def first_is_slow(p):
    p.listen()
    p.accept()
    p.set(TCP_NODELAY=1)
    for n in range(12):
        p.read(200)
        if n % 4 == 0:
            p.think(200)
        p.write(300)
    p.read(1)


case("behind-a-slow-one", four_at_once, first_is_slow,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 3 * rtt, "server-think@server": t.sum("far", "think")})
case("keystrokes", asks(20, 1, 1, 50), answers(1, 1), healthy(20))
case("pool-of-eight", "sleep 2; ab -q -k -n 40 -c 8 " + URL + "/slow", "python3 backend.py & sleep 1; " + SERVE,
     lambda t, rtt: {"handshake@": (8 * rtt, 40 * rtt), "round-trip@": 40 * rtt, "server-think@server": (3150, 3500)}, files=nginx())
case("nginx-nopush", repeated(f"{URL}/small.txt", 6), SERVE, lambda t, rtt: {"handshake@": rtt, "round-trip@": 6 * rtt},
     files=nginx(http="sendfile on; tcp_nopush on;"))
case("nginx-sendfile-upload-size", CURL + f"{URL}/big.bin", SERVE,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "slow-start|receive-window|send-buffer|congestion-window@": sum(c["total"] for c in curls(t)) - 2 * rtt},
     files=nginx(http="sendfile on; tcp_nopush on;"), path="--delay 25ms")
