"""More of what nobody waits for in cipher, and of windows within it: TLS 1.2, streams beside calls, replicas, a browser's events, HTTP/2's own flow control."""

import subprocess

from brokers import rabbit
from cases import case
from ciphers import ASK, BROWSED, CHROMIUM, GO, GRPC_CLIENT, GRPC_SERVER, HYPERCORN, MOSQUITTO, MQTT, PG, files
from more import NEAR_ONLY, SLOW_WAY
from programs import write
from services import PG_BIN, logged
from whispers import DELIVERS, OPEN, RESP, news, thought, whispers

# The same in TLS 1.2, whose records add 7 bytes more.
whispers("tls-1.2-mqtt-qos-1", MQTT.replace('"10.77.0.2", 7000', '"10.77.0.2", 7000, keepalive=2') + 'c.subscribe("news/1", 1); time.sleep(7.5)\n', MOSQUITTO.replace("certfile", "tls_version tlsv1.2\\ncertfile") + DELIVERS.replace("QOS", "1"),
         news((2, 36), **{"nagle|nagle-delayed-ack@server": (0, 130)}), wait=1, guess=True)
TOLD = """
ch.queue_declare("q"); left = [15]
def one(ch, method, properties, body): ch.basic_ack(method.delivery_tag); left[0] -= 1; left[0] or ch.stop_consuming()
ch.basic_consume("q", one); ch.start_consuming()
ch.close(); c.close()
"""
TELLS = """
c = connected(LOCAL); ch = c.channel(); ch.queue_declare("q"); time.sleep(6); random.seed(5)
for n in range(60): c.sleep(random.uniform(0.3, 1.2)); ch.basic_publish("", "q", b"m" * 300)
"""
# Acknowledgements of what had waited for the consumer come together, as a question does, and the next event 400 ms later.
rabbit("tls-1.2-rabbit-news", TOLD, lambda t, rtt: {"handshake@": rtt, "round-trip|tls-handshake@": (2 * rtt, 30 * rtt), "server-think@server": (0, 700), "sender-think|server-think@client": (0, 60), "sender-think@server": (0, 30)}, TELLS, tls=True,
       listen="ssl_options.versions.1 = tlsv1.2\n", guess=True)

# NATS says in clear who it is; messages need no confirmation, and both ends' pings are 6 bytes.
NATS = """
import nats, ssl
async def main():
    nc = await nats.connect("tls://10.77.0.2:7000", tls=ssl._create_unverified_context(), ping_interval=1); got = []
    async def told(m): got.append(m)
    await nc.subscribe("news", cb=told)
    for n in range(5): start = now(); await nc.request("ask", b"q" * 100, timeout=5); asked(start); await asyncio.sleep(0.83)
    await nc.close()
asyncio.run(main())
"""
NATS_BESIDE = """
import nats, ssl
async def main():
    for _ in range(50):
        try: nc = await nats.connect("tls://127.0.0.1:7000", tls=ssl._create_unverified_context()); break
        except Exception: await asyncio.sleep(0.1)
    async def one(m): start = now(); await asyncio.sleep(0.06); took("think", start); await m.respond(b"r" * 150)
    await nc.subscribe("ask", cb=one); random.seed(2)
    while True: await asyncio.sleep(random.uniform(0.1, 0.7)); await nc.publish("news", b"n" * random.choice((40, 200))); await nc.flush()
asyncio.run(main())
"""
whispers("tls-nats-news-and-asks", NATS, "(exec python3 -u beside.py) & exec nats-server -p 7000 --tls --tlscert cert.pem --tlskey key.pem > nats.log 2>&1", news((2, 60), think=thought), wait=3, guess=True,
         files={"beside__py": ASK.replace("print(\"ask\"", "print(\"no\"") + NATS_BESIDE})

# gRPC: a stream of news and calls on one channel, and etcd's watch.
whispers("tls-grpc-news-and-calls", GRPC_CLIENT + """
import threading
def reads():
    for n in channel.unary_stream("/s/News")(b""): pass
t = threading.Thread(target=reads); t.start(); time.sleep(0.4); f = channel.unary_unary("/s/Call")
for ms in (60, 10, 120, 30, 0, 90): start = now(); f(b"%d" % ms); asked(start); time.sleep(0.47)
t.join()
""", "exec python3 -u server.py", news((2, 60), think=thought, computes=90.0), guess=True, files={"server__py": GRPC_SERVER})
ETCD = "etcd --data-dir d --listen-client-urls https://0.0.0.0:7000 --advertise-client-urls https://10.77.0.2:7000 --listen-peer-urls http://127.0.0.1:7002 --cert-file cert.pem --key-file key.pem > etcd.log 2>&1"
CTL = "ETCDCTL_API=3 etcdctl --insecure-skip-tls-verify --insecure-transport=false --endpoints https://{}:7000 "
case("tls-etcd-watch", "sleep 4; timeout 7 " + CTL.format("10.77.0.2").replace("ETCDCTL_API=3 ", "env ETCDCTL_API=3 ") + "watch news; true",
     f"(sleep 5; for i in 3 11 6 14 9 4 8; do sleep $(echo $i | awk '{{print $1 / 10}}'); {CTL.format('127.0.0.1')} put news happened-$i; done) & exec {ETCD}", news((2, 30), computes=90.0, **{"sender-think|server-think@client": (0, 60)}), files=files(), path=SLOW_WAY,
     tap=NEAR_ONLY, guess=True)

# A browser's page with a stream of events, and questions beside it.
PAGE_OF_EVENTS = BROWSED.replace("    while (await", """    if "events" in scope["path"]:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]}); random.seed(6)
        for n in range(9): await asyncio.sleep(random.uniform(0.25, 1.1)); await send({"type": "http.response.body", "body": b"data: something has happened\\n\\n", "more_body": True})
        return await send({"type": "http.response.body", "body": b""})
    while (await""", 1).replace('if not scope["path"][1:].isdigit()', 'if not scope["path"][1:].isdigit() and scope["path"] != "/events"')
case("tls-chromium-events", "sleep 3; " + CHROMIUM, HYPERCORN, news((2, 40), think=thought, computes=120.0, **{"handshake@": None, "sender-think|server-think@client": (0, 250)}), path=SLOW_WAY, tap="tcp and port 7000", guess=True,
     files=files(app__py=PAGE_OF_EVENTS.replace("CALLS", "new EventSource('/events'); await wait(400); for (const ms of [60, 5, 120, 30, 0, 90]) { await get(ms); await wait(530); }")))

# A replica of PostgreSQL: the server sends what was written, and both ends say each second how far they are.
REPLICA = PG.replace("hostssl all all 10.77.0.0/24 trust", "hostssl all all 10.77.0.0/24 trust\\nhostssl replication all 10.77.0.0/24 trust").replace("-c ssl=on", "-c ssl=on -c wal_level=replica -c max_wal_senders=4")
WRITES = "(sleep 6; for i in 3 9 5 11 7 4 6 8; do sleep $(echo $i | awk '{print $1 / 10}'); psql -q -h $D -p 7000 -U postgres -c \\\"create table t$i (v int)\\\"; done) & "
case("tls-postgres-replica", "sleep 6; mkdir -p wal; timeout -s INT 6 " + PG_BIN + "/pg_receivewal -D wal -s 1 --no-loop -d 'host=10.77.0.2 port=7000 user=postgres sslmode=require gssencmode=disable'; true", REPLICA.replace("exec su", WRITES.replace('\\"', '"') + "exec su"),
     news((2, 60), computes=90.0, **{"slow-start|congestion-window|receive-window@": None, "bandwidth@": (0, 60), "receiver-think@client": (0, 60)}), files=files(), path=SLOW_WAY, tap=NEAR_ONLY, guess=True)

# Redis pings both ways: a client that watches its connection, beside a blocking worker of another.
whispers("tls-redis-pings", RESP + """
put(b"subscribe", b"news"); get(); s.settimeout(1.0)
for n in range(9):
    try: get()
    except TimeoutError: pass
    f = s.makefile("rb"); put(b"ping"); got = get()
    while got[0] != b"pong": got = get()
""", f"(sleep 4; for i in 3 11 6 14 9 15 12 7; do sleep $(echo $i | awk '{{print $1 / 10}}'); redis-cli -p 7001 publish news something-that-happened-$i; done) & exec {OPEN}", news((2, 40)), guess=True)

# The client opens its session 200 ms before it asks: in cipher that may be the server's time. HTTP/2's own window: Node's is 64 KB for a stream (RFC 9113, 6.9.2), and each takes a round trip.
BODY = 1_500_000
SERVES_BODY = GO.replace("w.Write(make([]byte, 400))", f"w.Write(make([]byte, {BODY}))")
FETCHES = """
const h2 = require('http2'), off = BigInt(Date.now()) * 1000000n - process.hrtime.bigint(), now = () => process.hrtime.bigint() + off;
const c = h2.connect('https://10.77.0.2:7000', {rejectUnauthorized: false, OPTIONS});
c.on('connect', () => { WIDER; setTimeout(() => { const start = now(), r = c.request({':path': '/0'}); r.on('data', () => {}); r.on('end', () => { console.log('ask ' + start + ' ' + now()); c.close(); }); r.end(); }, 200); });
"""


def go_and_node(text, server=SERVES_BODY):
    def put(directory):
        files(c__js=text)(directory)
        write(directory, "s.go", server)
        subprocess.run("GO111MODULE=off go build -o s s.go", shell=True, cwd=directory, check=True)

    return put


WIDE = FETCHES.replace("OPTIONS", "settings: {initialWindowSize: 8000000}").replace("WIDER", "c.setLocalWindowSize(9000000)")
case("tls-node-window", "sleep 1; node c.js", "exec ./s", lambda t, rtt: {"handshake@": rtt, "round-trip|tls-handshake@": (2 * rtt, 4 * rtt), "application-window|receive-window@client": (0.8 * (t.waited() - t.fixed.waited()) - 20, t.waited()),
                                                                        "slow-start|congestion-window@": (0, 8 * rtt), "server-think|sender-think@server": (0, 40), "sender-think|server-think@client": (0, 60), "bandwidth@": (0, 60)},
     files=go_and_node(FETCHES.replace("OPTIONS", "").replace("WIDER", "")), path=SLOW_WAY, fix="application-window", changed={"files": go_and_node(WIDE)}, guess=True)
# An upload of three bodies, each answered after 50 ms; the server opens windows meanwhile.
POSTS = """
const h2 = require('http2'), off = BigInt(Date.now()) * 1000000n - process.hrtime.bigint(), now = () => process.hrtime.bigint() + off, waits = [];
const c = h2.connect('https://10.77.0.2:7000', {rejectUnauthorized: false});
const post = () => new Promise(done => { const start = now(), r = c.request({':path': '/50', ':method': 'POST'}); r.on('data', () => {}); r.on('end', () => { waits.push('ask ' + start + ' ' + now()); done(); }); r.end(Buffer.alloc(100000)); });
c.on('connect', async () => { await new Promise(done => setTimeout(done, 200)); for (let n = 0; n < 4; n++) { await post(); await new Promise(done => setTimeout(done, 100)); } c.close(); console.log(waits.join('\\n')); });
"""
READS_ALL = GO.replace('import ("fmt"', 'import ("fmt"; "io"').replace('ms, _ := strconv', 'io.Copy(io.Discard, r.Body); ms, _ := strconv')
case("tls-node-uploads", "sleep 1; node c.js", "exec ./s", lambda t, rtt: {"handshake@": rtt, "round-trip|tls-handshake@": (6 * rtt, 8 * rtt), "server-think@server": (thought(t), thought(t) + 40), "slow-start|slow-start-after-idle|congestion-window|receive-window|application-window@": (0, t.waited() - 4 * rtt - thought(t) + 20),
                                                                         "sender-think|server-think@client": (0, 60), "sender-think@server": (0, 20), "bandwidth@": (0, 40)}, files=go_and_node(POSTS, READS_ALL), path=SLOW_WAY)
