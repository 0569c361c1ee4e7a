"""Who waits for whom in cipher: servers that speak when there is news, and several questions that are under way at once.

Nobody waits for news. A program prints what it waited for (`ask START END`), a server what it took (`think MS`); what else is said to be
thinking, for certain or likely, is wrong.
"""

import os
import subprocess

from brokers import ASK, rabbit
from cases import case
from ciphers import ASGI, BEHIND, GO, GRPC_CLIENT, GRPC_SERVER, HTTPX, HYPERCORN, JAVA_CLIENT, MOSQUITTO, MQTT, NGINX, PG, PG_CLIENT, REDIS, RUN_GO, RUN_NODE, NODE_SERVER, TLS_URL, UVICORN, asked, at_once, files, known, nginx
from hellos import KAFKA, KAFKA_SERVES, kafka_tls
from more import NEAR_ONLY, SLOW_WAY
from programs import BACKEND, CURL, write
from protocols import DOVECOT
from services import logged

SOCKET = """
import socket, ssl
raw = socket.create_connection(("10.77.0.2", 7000)); raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
s = ssl._create_unverified_context().wrap_socket(raw); f = s.makefile("rb")
"""


def news(trips, computes=60.0, think=lambda t: 0.0, **more):
    """Nothing is said of what nobody waits for; of what somebody waits for, no more than it took."""
    return lambda t, rtt: {"handshake@": rtt, "round-trip|tls-handshake@": (trips[0] * rtt, trips[1] * rtt), "server-think@server": (0, think(t) + computes), "sender-think|server-think@client": (0, 30),
                           "sender-think@server": (0, 20), **more}


def thought(t):
    return logged(t, "far.out", "think")


def whispers(name, client, far, expect, wait=2, **options):
    more = options.pop("files", {})
    case(name, f"sleep {wait}; python3 client.py", far, expect, path=SLOW_WAY, tap=NEAR_ONLY, files=files(client__py=ASK + client, **more), **options)


# Redis: news of a channel, and jobs that a worker blocks for.

RESP = SOCKET + """
def put(*words): s.sendall(b"*%d\\r\\n" % len(words) + b"".join(b"$%d\\r\\n%s\\r\\n" % (len(w), w) for w in words))
def get():
    line = f.readline(); kind, rest = line[:1], line[1:-2]
    if kind == b"$": return None if rest == b"-1" else f.read(int(rest) + 2)[:-2]
    if kind == b"*": return None if rest == b"-1" else [get() for _ in range(int(rest))]
    return rest
"""
OPEN = REDIS.replace("--port 0", "--port 7001").replace("exec ", "")
PUBLISH = "for i in 3 11 6 4 9 5 12 7 3 8; do sleep $(echo $i | awk '{print $1 / 10}'); redis-cli -p 7001 COMMAND > beside.out 2>&1; done"
whispers("tls-redis-news", RESP + """
start = now(); put(b"subscribe", b"news"); get(); asked(start)
for n in range(9): get()
""", f"(sleep 4; {PUBLISH.replace('COMMAND', 'publish news something-that-happened-$i')}) & exec {OPEN}", news((2, 22)), guess=True)
# A worker: it blocks until there is a job, works for a while, says what came of it.
whispers("tls-redis-worker", RESP + """
for n in range(8):
    start = now(); put(b"blpop", b"jobs", b"0"); get(); asked(start); time.sleep(0.045)
    start = now(); put(b"rpush", b"done", b"r" * 150); get(); asked(start)
""", f"(sleep 3; {PUBLISH.replace('COMMAND', 'rpush jobs job-$i')}) & exec {OPEN}",
         lambda t, rtt: known()(t, rtt) | {"round-trip|tls-handshake@": (17 * rtt, 18 * rtt), "server-think@server": (t.waited() - 16 * rtt - 20, t.waited() - 16 * rtt + 20)}, each=asked)
whispers("tls-redis-pipelines", RESP + """
for n in range(5):
    start = now(); one = b"*3\\r\\n$3\\r\\nset\\r\\n$4\\r\\nk%03d\\r\\n$90\\r\\n" + b"v" * 90 + b"\\r\\n"; s.sendall(b"".join(one % i for i in range(150)))
    for i in range(150): get()
    asked(start); time.sleep(0.12)
""", f"exec {OPEN}", lambda t, rtt: known(computes=30)(t, rtt) | {"round-trip|tls-handshake@": (6 * rtt, 7 * rtt), "slow-start|congestion-window@client": (0, 2 * rtt)}, each=asked)

# PostgreSQL: notifications between questions, and a pipeline of them.

whispers("tls-postgres-news-and-asks", PG_CLIENT + """
c.execute("listen news")
for n in range(6):
    ask("select pg_sleep(0.03)")
    for m in c.notifies(timeout=1.1): pass
""", PG.replace("exec su", "(sleep 7; for i in 3 9 5 11 7 4 6; do sleep $(echo $i | awk '{print $1 / 10}'); psql -q -h $D -p 7000 -U postgres -c \"notify news, 'something that happened just now'\"; done) & exec su"),
         news((2, 24), think=lambda t: 180), wait=5, guess=True)
# TLS asks for another key first (psycopg offers a hybrid one): four round trips until the first question; and the pipeline's end is a question of its own.
whispers("tls-postgres-pipelines", PG_CLIENT + """
for n in range(4):
    start = now()
    with c.pipeline(): got = [c.execute("select pg_sleep(0.02)") for _ in range(8)]; [q.fetchall() for q in got]
    asked(start); time.sleep(0.1)
""", PG, known(*[20] * 32, computes=90, trips=(12, 13)), wait=5)

# IMAP: a client that is idle is told of new mail (RFC 2177).

IMAPS = DOVECOT.replace("ssl = no", "ssl = required\nssl_cert = <HERE/cert.pem\nssl_key = <HERE/key.pem").replace("inet_listener imap {\n  port = 7000\n }", "inet_listener imap {\n  port = 0\n }\n inet_listener imaps {\n  port = 7000\n  ssl = yes\n }")
ARRIVES = "(sleep 5; for i in 3 11 16 9 14; do sleep $(echo $i | awk '{print $1 / 10}'); printf 'From: a@x\\nSubject: n\\n\\ntext\\n' > mail/tmp/$i.y; chown 1000:1000 mail/tmp/$i.y; mv mail/tmp/$i.y mail/new/$i.y; done) & "
whispers("tls-imap-idle", SOCKET + """
f.readline(); n = 0; s.settimeout(30)
def command(text):
    global n; n += 1; start = now(); s.sendall(b"a%d %s\\r\\n" % (n, text))
    while not (line := f.readline()).startswith((b"a%d" % n, b"+")): pass
    asked(start); time.sleep(0.06)
command(b"LOGIN a b"); command(b"SELECT INBOX"); command(b"IDLE"); seen = 0
while seen < 4: seen += b"EXISTS" in f.readline()
start = now(); s.sendall(b"DONE\\r\\n"); f.readline(); asked(start)
for i in range(3): command(b"NOOP"); time.sleep(0.3)
command(b"LOGOUT")
""", "mkdir -p mail/cur mail/new mail/tmp; chmod 755 .. .; chown -R 1000:1000 mail; chmod 644 *.pem; " + ARRIVES + "exec dovecot -F -c dovecot.conf",
         news((2, 20), computes=250, think=lambda t: max(0.0, t.waited() - 8 * 80)), guess=True, files={"dovecot__conf": IMAPS})

# Events over HTTP: on a connection of their own, and on one on which other questions are asked meanwhile.

EVENTS = ASGI.replace("    while (await", """    if "events" in scope["path"]:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]}); random.seed(6)
        await send({"type": "http.response.body", "body": b": hello\\n\\n", "more_body": True})
        for n in range(9): await asyncio.sleep(random.uniform(0.25, 1.1)); await send({"type": "http.response.body", "body": b"data: something has happened\\n\\n", "more_body": True})
        return await send({"type": "http.response.body", "body": b""})
    while (await""")
whispers("tls-events-h1", SOCKET + """
start = now(); s.sendall(b"GET /events HTTP/1.1\\r\\nHost: far-end\\r\\nAccept: text/event-stream\\r\\n\\r\\n")
while f.readline() != b"\\r\\n": pass
asked(start)
while f.readline() != b"0\\r\\n": pass
""", UVICORN, news((2, 22)), wait=3, guess=True, files={"app__py": EVENTS})
STREAMS = """
        async def events():
            async with c.stream("GET", "https://10.77.0.2:7000/events") as r:
                async for line in r.aiter_lines(): pass
"""
whispers("tls-events-h2", HTTPX.replace("HTTP2", "True").replace("CALLS", STREAMS + "        await events()"), HYPERCORN, news((2, 26)), wait=3, guess=True, files={"app__py": EVENTS})
whispers("tls-events-h2-and-asks", HTTPX.replace("HTTP2", "True").replace("CALLS", STREAMS + """
        task = asyncio.create_task(events()); await asyncio.sleep(0.5)
        for ms in (60, 5, 120, 30, 0, 90): await get(ms); await asyncio.sleep(0.53)
        await task"""), HYPERCORN, news((2, 40), think=thought), wait=3, guess=True, files={"app__py": EVENTS})
# A long poll and calls beside it, as pages have them.
whispers("tls-long-polls-and-calls", HTTPX.replace("HTTP2", "True").replace("CALLS", """
        async def polls():
            for ms in (900, 1600, 400): await get(ms)
        task = asyncio.create_task(polls()); await asyncio.sleep(0.4)
        for ms in (20, 5, 70, 0): await get(ms); await asyncio.sleep(0.35)
        await task"""), HYPERCORN, at_once, wait=3, files={"app__py": ASGI})

# MQTT: a subscriber of QoS 2, which is four packets to a message, and the client's pings (MQTT 3.1.1, 4.3.3).

DELIVERS = " & sleep 2; for i in 4 9 3 12 6 8 5; do sleep $(echo $i | awk '{print $1 / 10}'); mosquitto_pub -p 7001 -q 2 -t news/QOS -m something-$i; done; sleep 9"
for qos in (1, 2):
    whispers(f"tls-mqtt-qos-{qos}", MQTT.replace('"10.77.0.2", 7000', '"10.77.0.2", 7000, keepalive=2') + f'c.subscribe("news/{qos}", {qos}); time.sleep(7.5)\n', MOSQUITTO + DELIVERS.replace("QOS", str(qos)),
             news((2, 36), **{"nagle|nagle-delayed-ack@server": (0, 130)}), wait=1, guess=True)

# Brokers: deliveries that a consumer acknowledges, and fetches that return when there is something.

rabbit("tls-rabbit-news", """
ch.queue_declare("q"); left = [15]
def one(ch, method, properties, body): ch.basic_ack(method.delivery_tag); left[0] -= 1; left[0] or ch.stop_consuming()
ch.basic_consume("q", one); ch.start_consuming()
""" + "ch.close(); c.close()\n", lambda t, rtt: {"handshake@": rtt, "round-trip|tls-handshake@": (8 * rtt, 30 * rtt), "server-think@server": (0, 150), "sender-think|server-think@client": (0, 60), "sender-think@server": (0, 30)}, """
c = connected(LOCAL); ch = c.channel(); ch.queue_declare("q"); time.sleep(6); random.seed(3)
for n in range(60): c.sleep(random.uniform(0.3, 1.2)); ch.basic_publish("", "q", b"m" * 300)
""", tls=True, guess=True)
POLLS = ('KafkaConsumer<byte[], byte[]> c = consumer("10.77.0.2", "fetch.max.wait.ms=700", "enable.auto.commit=false"); long end = now() + 7000000000L; int seen = 0;'
         ' while (now() < end) seen += c.poll(Duration.ofMillis(200)).count(); System.out.println("seen " + seen);')
# The broker holds a fetch until there is something, or fetch.max.wait.ms is over: in cipher that is a question as any, and its answer takes its time.
case("tls-kafka-long-polls", "sleep 26; java -cp $(cat cp):. K client", KAFKA + "(sleep 9; java -cp $CP K make > beside.out 2>&1; java -cp $CP K beside >> beside.out 2>&1) & " + KAFKA_SERVES,
     lambda t, rtt: {"handshake@": (rtt, 2 * rtt), "round-trip|tls-handshake@": None, "server-think@server": (0, 8500), "sender-think|server-think@client": (0, 600), "sender-think@server": (0, 100)},
     files=kafka_tls(POLLS, 'KafkaProducer<byte[], byte[]> p = producer("127.0.0.1"); sends(p, 40, 200, 1300, false);'), tap=NEAR_ONLY, path=SLOW_WAY, guess=True)

# Several at once: curl and a browser with nginx, gRPC, Go and Java.

MANY = 12
PARALLEL = CURL.replace("-o /dev/null ", "") + "-k --http2 -Z " + " ".join(f"-o /dev/null {TLS_URL}/slow?{n}" for n in range(MANY))
case("tls-curl-parallel", f"sleep 2; {PARALLEL}", BEHIND + "exec nginx -p . -c nginx.conf",
     lambda t, rtt: {"handshake@": rtt, "round-trip|tls-handshake@": (2 * rtt, (MANY + 3) * rtt), "server-think|sender-think@server": (80, 100 * MANY), "sender-think|server-think@client": (0, 30)},
     files=lambda d: (nginx("http2", "ssl_protocols TLSv1.3;")(d), write(d, "backend.py", BACKEND.replace("http.server.Thr", "http.server.ThreadingHTTPServer.request_queue_size = 64\nhttp.server.Thr"))), path=SLOW_WAY, tap=NEAR_ONLY)
PAGE = "<!doctype html><title>pictures</title>" + "".join(f"<img src='/a.svg?{n}'>" for n in range(20))
SVG = "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><!--" + "x" * 15_000 + "--></svg>"
BROWSES = ("chromium --headless --no-sandbox --ignore-certificate-errors --disable-background-networking --disable-component-update --user-data-dir=$PWD/u"
           f" --disable-gpu --no-first-run --disable-quic --remote-debugging-port=7008 {TLS_URL}/page.html & sleep 6; kill %1")
TYPES = "types { text/html html; image/svg+xml svg; } location = /favicon.ico { return 204; }"
case("tls-chromium-page", f"sleep 2; {BROWSES}", "exec nginx -p . -c nginx.conf",
     # A browser opens a second connection where it likes to; what it does between the page and its pictures is its own. Its questions, a segment each, use up
     # the initial window, and nginx's host holds back an acknowledgement for 40 ms.
     lambda t, rtt: {"handshake@": (rtt, 3 * rtt), "round-trip|tls-handshake@": (4 * rtt, 40 * rtt), "server-think|sender-think@server": (0, 40), "slow-start|congestion-window|receive-window@": (0, 40 * rtt), "delayed-ack-cwnd@": (0, 45), "bandwidth@": (0, 60),
                     "sender-think|server-think@client": (0, 250)},
     files=lambda d: (nginx("http2", "ssl_protocols TLSv1.3; " + TYPES)(d), write(d, "page.html", PAGE), write(d, "a.svg", SVG)), path=SLOW_WAY, tap=NEAR_ONLY)
whispers("tls-grpc-at-once", GRPC_CLIENT + """
f = channel.unary_unary("/s/Call"); f(b"20"); time.sleep(0.2)
for n in range(3):
    def call(ms): start = now(); one = f.future(b"%d" % ms); one.add_done_callback(lambda _: asked(start)); return one
    for one in [call(ms) for ms in (150, 40, 90, 5, 200, 40, 70, 1)]: one.result()
    time.sleep(0.2)
""", "exec python3 -u server.py", lambda t, rtt: at_once(t, rtt) | {"sender-think|server-think@server": (200 * 3 - 3 * rtt, logged(t, "far.out", "think") + 150)}, files={"server__py": GRPC_SERVER})
GO_MANY = """package main
import ("crypto/tls"; "fmt"; "io"; "net/http"; "os"; "sync"; "time")
func main() {
  c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}}; var m sync.Mutex; said := ""
  get := func(ms int) { start := time.Now().UnixNano(); r, err := c.Get(fmt.Sprintf("https://10.77.0.2:7000/%d", ms)); if err != nil { panic(err) }
    io.Copy(io.Discard, r.Body); r.Body.Close(); m.Lock(); said += fmt.Sprintln("ask", start, time.Now().UnixNano()); m.Unlock() }
  get(10)
  for _, many := range []int{5, 50, 20} { var w sync.WaitGroup; time.Sleep(150 * time.Millisecond)
    for n := 0; n < many; n++ { w.Add(1); go func(n int) { defer w.Done(); get(20 + n * 37 % 90) }(n) }; w.Wait() }
  fmt.Fprint(os.Stdout, said) }
"""


def go_pair(directory):
    files()(directory)
    for name, text in (("c", GO_MANY), ("s", GO)):
        write(directory, f"{name}.go", text)
        subprocess.run(f"GO111MODULE=off go build -o {name} {name}.go", shell=True, cwd=directory, check=True)


def anybody(t):
    """How long anybody waits."""
    end, total = 0.0, 0.0
    for start, stop in sorted(t.asked()):
        total += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return total


def many(t, rtt):
    """The server's share is at least that of the slowest in each lot, and at most all of what it logged. Each question is a segment of its own, and ten of them
    are the initial window (RFC 6928)."""
    return {"handshake@": rtt, "round-trip|tls-handshake@": (5 * rtt, 90 * rtt), "sender-think|server-think@server": (anybody(t) - 8 * rtt, thought(t) + 100), "sender-think|server-think@client": (0, 60),
            "slow-start|slow-start-after-idle@client": (0, 4 * rtt)}


case("tls-go-many-at-once", "sleep 1; ./c", "exec ./s", many, files=go_pair, path=SLOW_WAY)
JAVA_MANY = JAVA_CLIENT.replace("for (int ms : new int[]", "for (int k = 0; k < 3; k++) for (int ms : new int[]").replace('(ms == 110 ? "first " : "ask ")', '"first "').replace("System.exit(0);", """
  for (int k = 0; k < 3; k++) { java.util.List<java.util.concurrent.CompletableFuture<?>> all = new java.util.ArrayList<>(); Thread.sleep(150);
    for (int n = 0; n < 15; n++) { long start = System.nanoTime(); all.add(c.sendAsync(HttpRequest.newBuilder(URI.create("https://10.77.0.2:7000/" + (20 + n * 37 % 90))).build(), HttpResponse.BodyHandlers.ofByteArray())
      .thenAccept(r -> { synchronized (C.class) { System.out.println("ask " + (start + off) + " " + (System.nanoTime() + off)); } })); }
    for (var one : all) one.join(); }
  System.exit(0);""")


def java_pair(directory):
    go_pair(directory)
    write(directory, "C.java", JAVA_MANY)
    subprocess.run("javac C.java", shell=True, cwd=directory, check=True)


# The first eighteen come one after the other, while the JDK still loads its classes.
case("tls-java-many-at-once", "sleep 1; java C", "exec ./s", lambda t, rtt: {"handshake@": rtt, "round-trip|tls-handshake@": (20 * rtt, 90 * rtt), "sender-think|server-think@server": (3 * 466 + anybody(t) - 8 * rtt, thought(t) + 250),
                                                                             "sender-think|server-think@client": (0, 500), "slow-start|slow-start-after-idle@client": (0, 4 * rtt)}, files=java_pair, path=SLOW_WAY)

# A socket for both ways, with the server's pings, its events, and questions, none at the other's time.

WSS_SERVER = ASK.replace("print(\"ask\"", "print(\"no\"") + """
import ssl, websockets
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); context.load_cert_chain("cert.pem", "key.pem")
async def handle(ws):
    async def news():
        random.seed(8)
        for n in range(14): await asyncio.sleep(random.uniform(0.12, 0.6)); await ws.send("n" * random.choice((60, 300, 900)))
    task = asyncio.create_task(news())
    async for m in ws: start = now(); await asyncio.sleep(0.06); took("think", start); await ws.send("r" * 700)
async def main():
    async with websockets.serve(handle, "", 7000, ssl=context, ping_interval=0.7): await asyncio.Event().wait()
asyncio.run(main())
"""
whispers("tls-websocket-both", """
import ssl, websockets
context = ssl._create_unverified_context()
async def main():
    async with websockets.connect("wss://10.77.0.2:7000", ssl=context, ping_interval=None) as ws:
        async def reads():
            async for m in ws:
                if m[0] == "r": asked(starts.pop(0))
        starts = []; task = asyncio.create_task(reads())
        for n in range(6): await asyncio.sleep(0.9); starts.append(now()); await ws.send("ask" + "q" * 250)
        await asyncio.sleep(0.5)
asyncio.run(main())
""", "exec python3 -u server.py", news((2, 60), think=thought), guess=True, files={"server__py": WSS_SERVER})
