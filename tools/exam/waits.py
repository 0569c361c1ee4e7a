"""Who waits for whom: conversations in which the client does not simply ask and the server answer, one question at a time.

Programs print `ask START END` in nanoseconds since the epoch for each wait of the asker, `think MS` or `pause MS` for what the
other side took on its own.
"""

from cases import case
from programs import FAR, write
from services import GRPC_SERVER, logged, scripts

ASK = """
import asyncio, atexit, random, sys, time
now, waits = time.time_ns, []
def asked(start): waits.append((start, now()))
atexit.register(lambda: [print("ask", *wait) for wait in waits])
def took(what, start): print(what, (now() - start) / 1e6, flush=True)
"""


def python(server, client, **more):
    return scripts(server=ASK + server, client=ASK + client, **more)


RUN = {"near": "python3 client.py", "far": "python3 server.py"}


def talk(name, server, client, expect, **options):
    near = options.pop("near", RUN["near"])
    case(name, near, RUN["far"], expect, files=python(server, client), each=options.pop("each", lambda t: t.asked()), **options)


def answered(exchanges, setups=1, extra=20.0, side="server", **more):
    """Each question took its round trip and what the other side logged."""

    def expect(t, rtt):
        end = "far" if side == "server" else "near"
        think = logged(t, f"{end}.out", "think")
        return {"handshake@": setups * rtt, "round-trip@": exchanges * rtt, f"server-think@{side}": (think, think + extra), **more}

    return expect


# HTTP/1.1: a pipeline that is answered in order, whatever each answer takes.

HTTP_SERVER = """
async def handle(reader, writer):
    try:
        while True:
            head = (await reader.readuntil(b"\\r\\n\\r\\n")).decode()
            path = head.split()[1]
            await SERVE(path, head, reader, writer)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()
async def answer(writer, size=300, status="200 OK", more=""):
    writer.write(f"HTTP/1.1 {status}\\r\\nContent-Length: {size}\\r\\n{more}\\r\\n".encode() + b"x" * size); await writer.drain()
async def sleeps(ms):
    start = now(); await asyncio.sleep(ms / 1e3); took("think", start)
SERVE_CODE
async def main():
    async with await asyncio.start_server(handle, "", 7000) as server: await server.serve_forever()
asyncio.run(main())
"""


def http(serve):
    return HTTP_SERVER.replace("SERVE_CODE", "async def serve(path, head, reader, writer):\n" + serve).replace("await SERVE(", "await serve(")


HTTP_CLIENT = """
import socket
s = socket.create_connection(("10.77.0.2", 7000)); s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
f = s.makefile("rb")
def put(path, body=b"", more=""): s.sendall(f"GET {path} HTTP/1.1\\r\\nHost: far-end\\r\\n{more}\\r\\n".encode() + body)
def head():
    size = 0
    while (line := f.readline()) not in (b"\\r\\n", b""):
        if line.lower().startswith(b"content-length:"): size = int(line.split(b":")[1])
    return size
def get(): f.read(head())
"""
# Six questions in one go, answered one after the other: each waits for those before it.
talk("http-pipeline-fixed", http("    await sleeps(40); await answer(writer)"), HTTP_CLIENT + """
for _ in range(3):
    starts = []
    for n in range(6): starts.append(now()); put(f"/item/{n}")
    for start in starts: get(); asked(start)
    time.sleep(0.1)
""", lambda t, rtt: {"handshake@": rtt, "round-trip@": 18 * rtt, "server-think@server": t.waited() - 18 * rtt})
talk("http-pipeline-random", http("    await sleeps(int(path.split('/')[-1])); await answer(writer)"), HTTP_CLIENT + """
random.seed(5)
import threading
for _ in range(3):
    starts = []
    def puts():
        for n in range(6): starts.append(now()); put(f"/item/{random.choice((1, 5, 30, 80))}"); time.sleep(0.008)
    writer = threading.Thread(target=puts); writer.start()
    for n in range(6): get(); asked(starts[n])
    writer.join(); time.sleep(0.1)
""", lambda t, rtt: {"handshake@": rtt, "round-trip@": 18 * rtt, "server-think@server": t.waited() - 18 * rtt})
talk("http-continue", http("""    writer.write(b"HTTP/1.1 100 Continue\\r\\n\\r\\n"); await reader.readexactly(5000); await sleeps(30); await answer(writer)"""), HTTP_CLIENT + """
for _ in range(4):
    start = now(); put("/upload", more="Expect: 100-continue\\r\\nContent-Length: 5000\\r\\n"); head(); s.sendall(b"y" * 5000); get(); asked(start)
    time.sleep(0.05)
""", lambda t, rtt: {"handshake@": rtt, "round-trip@": (4 * rtt, 8 * rtt), "sender-think@client": (0, 4 * rtt), "server-think@server": logged(t, "far.out", "think")}, each=None)
# Events when they occur: the client has its answer with the first of them, and nobody waits for the next.
talk("server-sent-events", http("""    writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Type: text/event-stream\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n"); await writer.drain()
    random.seed(9)
    for n in range(14):
        await asyncio.sleep(random.uniform(0.3, 1.6)); part = b"data: something has happened\\n\\n"
        writer.write(b"%x\\r\\n" % len(part) + part + b"\\r\\n"); await writer.drain()
    writer.write(b"0\\r\\n\\r\\n"); await writer.drain()"""), HTTP_CLIENT + """
start = now(); put("/events", more="Accept: text/event-stream\\r\\n"); head(); asked(start)
while f.readline() != b"0\\r\\n": pass
""", lambda t, rtt: {"handshake@": rtt, "round-trip@": None, "server-think@server": (0, 10)}, snap=256)
talk("long-poll", http("""    start = now(); await asyncio.sleep(3.0 if "poll" in path else 0.01); took("news" if "poll" in path else "think", start); await answer(writer)"""), HTTP_CLIENT + """
for n in range(3):
    start = now(); put("/items"); get(); asked(start)
    start = now(); put("/poll?timeout=3"); get(); asked(start)
""", lambda t, rtt: {"handshake@": rtt, "round-trip@": 6 * rtt, "server-think@server": logged(t, "far.out", "think") + logged(t, "far.out", "news")})
talk("throttled-replies", http("""    size = 6000
    writer.write(f"HTTP/1.1 200 OK\\r\\nContent-Length: {size}\\r\\n\\r\\n".encode())
    for n in range(12):
        writer.write(b"x" * 500); await writer.drain()
        if n < 11: start = now(); await asyncio.sleep(0.25); took("pause", start)"""), HTTP_CLIENT + """
for n in range(2): start = now(); put("/slowly"); get(); asked(start); time.sleep(0.3)
""", lambda t, rtt: {"handshake@": rtt, "round-trip@": 2 * rtt, "sender-think@server": logged(t, "far.out", "pause")})
# The first answer does not come within half a second; the client asks again on the same connection and takes what comes.
talk("times-out-and-asks-again", http("""    await sleeps(800 if path == "/1" else 30); await answer(writer)"""), HTTP_CLIENT + """
def call(n):
    start = now(); put(f"/{n}")
    return start
for n in (0, 0): start = call(n); get(); asked(start); time.sleep(0.05)
first = call(1); time.sleep(0.5); second = call(2); get(); asked(first); get(); asked(second); time.sleep(0.05)
for n in (3, 4): start = call(n); get(); asked(start); time.sleep(0.05)
""", lambda t, rtt: {"handshake@": rtt, "round-trip@": 6 * rtt, "server-think@server": (t.waited() - 6 * rtt - 20, t.waited() - 5 * rtt)})
# The same without a protocol that anybody reads: the server ignores the first request.
ECHO = """
async def handle(reader, writer):
    try:
        while True:
            question = await reader.readexactly(200)
            WHAT
    except (asyncio.IncompleteReadError, ConnectionError): writer.close()
async def main():
    async with await asyncio.start_server(handle, "", 7000) as server: await server.serve_forever()
asyncio.run(main())
"""
PLAIN = """
import socket
s = socket.create_connection(("10.77.0.2", 7000)); s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
def read(size):
    while size: size -= len(s.recv(size))
"""
talk("request-ignored-and-repeated", ECHO.replace("WHAT", """
            if question[:1] == b"i": continue
            start = now(); await asyncio.sleep(0.03); took("think", start)
            writer.write(b"a" * 300); await writer.drain()"""), PLAIN + """
for kind in (b"q", b"q", b"i", b"q", b"q", b"i", b"q"):
    start = now(); s.sendall(kind * 200)
    if kind == b"i": time.sleep(0.7)
    else: read(300); asked(start); time.sleep(0.05)
""", lambda t, rtt: {"handshake@": rtt, "round-trip@": (5 * rtt, 7 * rtt), "server-think@server": logged(t, "far.out", "think")})
# The server asks, and the client answers: a worker that has connected to its master.
talk("server-asks", """
async def handle(reader, writer):
    await reader.readexactly(60); writer.write(b"w" * 40); await writer.drain(); random.seed(1)
    for n in range(12):
        await asyncio.sleep(random.uniform(0.25, 0.9))
        start = now(); writer.write(b"j" * 150); await writer.drain(); await reader.readexactly(220); print("ask", start, now(), flush=True)
    writer.close()
async def main():
    async with await asyncio.start_server(handle, "", 7000) as server: await server.serve_forever()
asyncio.run(main())
""", PLAIN + """
start = now(); s.sendall(b"h" * 60); read(40); asked(start)
for n in range(12): read(150); start = now(); time.sleep(0.035); took("think", start); s.sendall(b"r" * 220)
s.recv(1)
""", lambda t, rtt: {"handshake@": rtt, "round-trip@": 13 * rtt, "server-think@client": logged(t, "near.out", "think")},
     each=lambda t: t.asked() + [(int(line.split()[1]) / 1e6, int(line.split()[2]) / 1e6) for line in t.text("far.out").splitlines() if line.startswith("ask ")])
# A timer's reports that nobody asked for, and an answer is not awaited.
talk("periodic-pushes", """
async def handle(reader, writer):
    await reader.readexactly(60); writer.write(b"w" * 40); await writer.drain()
    for n in range(20): await asyncio.sleep(0.3); writer.write(b"m" * 90); await writer.drain()
    writer.close()
async def main():
    async with await asyncio.start_server(handle, "", 7000) as server: await server.serve_forever()
asyncio.run(main())
""", PLAIN + """
start = now(); s.sendall(b"h" * 60); read(40); asked(start)
read(20 * 90); s.recv(1)
""", lambda t, rtt: {"handshake@": rtt, "round-trip@": None, "sender-think|server-think@": (0, 5)})
# Reports of the client by a timer, confirmed by nobody.
talk("periodic-reports", """
async def handle(reader, writer):
    while await reader.read(65536): pass
async def main():
    async with await asyncio.start_server(handle, "", 7000) as server: await server.serve_forever()
asyncio.run(main())
""", PLAIN + """
for n in range(15): s.sendall(b"m" * (90 + n % 3)); time.sleep(0.25)
s.close()
""", lambda t, rtt: {"handshake@": rtt, "round-trip@": None, "sender-think|server-think@": (0, 5)})

# WebSocket: requests, and pings both ways. Its frames do not say who asks: what is billed to a program is possible at most.

talk("websocket-pings", """
import websockets
async def handle(ws):
    async for message in ws:
        start = now(); await asyncio.sleep(0.04); took("think", start); await ws.send("x" * 300)
async def main():
    async with websockets.serve(handle, "", 7000, compression=None, ping_interval=0.23): await asyncio.Future()
asyncio.run(main())
""", """
import websockets
async def main():
    start = now()
    async with websockets.connect("ws://10.77.0.2:7000/", compression=None, proxy=None, ping_interval=0.31) as ws:
        asked(start)
        for n in range(10):
            start = now(); await ws.send("y" * 150); await ws.recv(); asked(start); await asyncio.sleep(0.17)
asyncio.run(main())
""", lambda t, rtt: {"handshake@": rtt, "round-trip@": (11 * rtt, 45 * rtt), "server-think@": (logged(t, "far.out", "think") - 100, logged(t, "far.out", "think") + 25), "sender-think@": (0, 300)}, each=None)
talk("websocket-many-at-once", """
import websockets, json
async def handle(ws):
    async def one(message):
        n, ms = message.split(); start = now(); await asyncio.sleep(int(ms) / 1e3); took("think", start); await ws.send(n)
    async for message in ws: asyncio.create_task(one(message))
async def main():
    async with websockets.serve(handle, "", 7000, compression=None, ping_interval=None): await asyncio.Future()
asyncio.run(main())
""", """
import websockets
random.seed(4)
async def main():
    async with websockets.connect("ws://10.77.0.2:7000/", compression=None, proxy=None, ping_interval=None) as ws:
        open_ = {}
        async def reads():
            async for n in ws: asked(open_.pop(n))
        task = asyncio.create_task(reads())
        for n in range(24): open_[str(n)] = now(); await ws.send(f"{n} {random.choice((5, 20, 60))}"); await asyncio.sleep(0.012)
        while open_: await asyncio.sleep(0.01)
        task.cancel()
asyncio.run(main())
""", lambda t, rtt: {"handshake@": rtt, "round-trip@": None, "server-think@server": None, "sender-think@": None}, each=None)

# gRPC: many calls at once, streams, and windows of its own that are small.

GRPC_ASYNC = """
import grpc
same = lambda b: b
CHANNEL = [("grpc.enable_http_proxy", 0), ("grpc.http2.bdp_probe", 0)]
async def channel(*more):
    channel = grpc.aio.insecure_channel("10.77.0.2:7000", [*CHANNEL, *more]); await channel.channel_ready(); return channel
"""
GRPC_ASYNC_SERVER = GRPC_ASYNC + """
async def unary(request, context):
    ms = int(request.split()[0]); start = now(); await asyncio.sleep(ms / 1e3); took("think", start); return b"r" * 200
async def many(request, context):
    for n in range(8):
        if n: start = now(); await asyncio.sleep(0.05); took("pause", start)
        yield b"z" * 500
async def echo(requests, context):
    async for request in requests: start = now(); await asyncio.sleep(0.03); took("think", start); yield request
class Handler(grpc.GenericRpcHandler):
    def service(self, details):
        kind = details.method.split("/")[-1]
        if kind == "many": return grpc.unary_stream_rpc_method_handler(many, same, same)
        if kind == "echo": return grpc.stream_stream_rpc_method_handler(echo, same, same)
        return grpc.unary_unary_rpc_method_handler(unary, same, same)
async def main():
    server = grpc.aio.server(options=[("grpc.http2.bdp_probe", 0)]); server.add_generic_rpc_handlers((Handler(),))
    server.add_insecure_port("0.0.0.0:7000"); await server.start(); await server.wait_for_termination()
asyncio.run(main())
"""


def grpc(name, client, expect, **options):
    talk(name, GRPC_ASYNC_SERVER, GRPC_ASYNC + client, expect, **options)


def at_the_socket(t):
    """Of messages of 200 bytes that each wait for an echo: from the first system call that sends one (or its call's head) to the one
    that reads its echo."""
    waits, sent = [], None
    for call in map(str.split, t.text("calls.txt").splitlines()):
        if call[-1].isdigit() and int(call[-1]) >= 200:
            at = 1e3 * float(call[1])
            if call[2].startswith("sendmsg"):
                sent = sent or at
            elif sent:
                waits.append((sent, at))
                sent = None
    return waits


CALL = """
async def call(ch, ms, method="/x/unary"):
    start = now(); await ch.unary_unary(method, same, same)(b"%d %s" % (ms, b"q" * 150)); asked(start)
"""
grpc("grpc-many-fixed", CALL + """
async def main():
    ch = await channel(); await asyncio.gather(*(call(ch, 50) for n in range(20))); await call(ch, 50)
asyncio.run(main())
""", lambda t, rtt: {"handshake@": rtt, "round-trip@": (21 * rtt, 24 * rtt), "server-think@server": (logged(t, "far.out", "think"), logged(t, "far.out", "think") + 150)}, snap=9000, each=None)
grpc("grpc-many-random", CALL + """
random.seed(2)
async def main():
    ch = await channel(); calls = []
    for n in range(30): calls.append(asyncio.create_task(call(ch, random.choice((2, 20, 50, 120))))); await asyncio.sleep(0.009)
    await asyncio.gather(*calls)
asyncio.run(main())
""", lambda t, rtt: {"handshake@": rtt, "round-trip@": (30 * rtt, 33 * rtt), "server-think@server": (logged(t, "far.out", "think"), logged(t, "far.out", "think") + 90)}, each=None)
grpc("grpc-bidirectional", """
async def main():
    ch = await channel(); stream = ch.stream_stream("/x/echo", same, same)()
    for n in range(10): start = now(); await stream.write(b"m" * 200); await stream.read(); asked(start); await asyncio.sleep(0.06)
    await stream.done_writing()
asyncio.run(main())
""", lambda t, rtt: {"handshake@": rtt, "round-trip@": (10 * rtt, 14 * rtt), "server-think@server": (logged(t, "far.out", "think"), logged(t, "far.out", "think") + 25)},
     near=f"strace -f -ttt -qq -e trace=sendmsg,recvmsg --seccomp-bpf -o calls.txt {RUN['near']}", each=at_the_socket)
grpc("grpc-streams-news", """
async def main():
    ch = await channel(); start = now(); first = True
    async for part in ch.unary_stream("/x/many", same, same)(b"q"):
        if first: asked(start); first = False
asyncio.run(main())
""", lambda t, rtt: {"handshake@": rtt, "round-trip@": None, "server-think|sender-think@server": (0, logged(t, "far.out", "pause") + 25)}, each=None)
# HTTP/2's own window: 64 KB for each stream and the connection (RFC 9113, 6.9.2) are used up in each round trip, and TCP has no part in it.
NODE_CLOCK = """
const http2 = require('http2'), net = require('net'), { Duplex } = require('stream')
const now = () => process.hrtime.bigint() + offset, offset = BigInt(Date.now()) * 1000000n - process.hrtime.bigint()
// The asker's clock stands at its socket: a wait is from the write that has a stream's HEADERS to the read that has its END_STREAM.
// What the library takes before it writes and behind what it has read, 1 to 3 ms, passes on no wire.
const begun = {}, ended = {}
const frames = (seen, skip) => { let left = Buffer.alloc(0); return (bytes) => { const time = now(); left = Buffer.concat([left, bytes])
  if (skip && left.length >= skip) { left = left.subarray(skip); skip = 0 }
  while (!skip && left.length >= 9 && left.length >= 9 + left.readUIntBE(0, 3)) { seen(left[3], left[4], left.readUInt32BE(5), time); left = left.subarray(9 + left.readUIntBE(0, 3)) } } }
const clocked = () => { const socket = net.connect(7000, '10.77.0.2'); socket.setNoDelay()
  const wrote = frames((type, flags, id, time) => { if (type == 1) begun[id] = time }, 24)
  const read = frames((type, flags, id, time) => { if (type < 2 && flags & 1) ended[id] = time }, 0)
  const way = new Duplex({ read: () => socket.resume(), final: (then) => socket.end(then), destroy: (error, then) => { socket.destroy(); then(error) },
    write: (bytes, _, then) => { wrote(bytes); socket.write(bytes, then) }, writev: (all, then) => { const bytes = Buffer.concat(all.map((part) => part.chunk)); wrote(bytes); socket.write(bytes, then) } })
  socket.on('data', (bytes) => { read(bytes); if (!way.push(bytes)) socket.pause() }).on('end', () => way.push(null)).on('error', (error) => way.destroy(error))
  return way }
const asked = (id) => console.log('ask', String(begun[id]), String(ended[id]))
"""
NODE = NODE_CLOCK + """
const WINDOW = SIZE, session = (s) => { if (WINDOW > 65535) s.setLocalWindowSize(WINDOW) }
if (process.argv[2] == 'serve') {
  const server = http2.createServer({ settings: { initialWindowSize: WINDOW } }); server.on('session', session)
  server.on('stream', (stream, headers) => { let size = 0; stream.on('data', (d) => size += d.length)
    stream.on('end', () => { stream.respond({ ':status': 200 }); stream.end(Buffer.alloc(headers[':path'] == '/big' ? 600000 : 300)) }) }).listen(7000)
} else {
  const c = http2.connect('http://10.77.0.2:7000', { createConnection: clocked, settings: { initialWindowSize: WINDOW } }); c.on('connect', () => session(c))
  const ask = (path, size, then) => { const r = c.request({ ':path': path, ':method': 'POST' }); r.on('data', () => {}); r.end(Buffer.alloc(size))
    r.on('end', () => { asked(r.id); setTimeout(then, 60) }) }
  const many = (n) => n ? ask(process.argv[2], Number(process.argv[3]), () => many(n - 1)) : c.close()
  c.on('remoteSettings', () => setTimeout(() => many(2), 50))
}
"""


def node(size):
    return lambda directory: write(directory, "node.js", NODE.replace("SIZE", str(size)))


for what, client, holds in (("download", "/big 300", "client"), ("upload", "/small 600000", "server")):
    for way in (10, 40):
        # Nine rounds at least for 600 KB. What a transfer without these windows takes is the other run's.
        case(f"http2-window-{what}-{way}ms", f"node node.js {client}", "node node.js serve",
             lambda t, rtt, holds=holds: {"handshake@": rtt, "round-trip@": (2 * rtt, 4 * rtt), f"application-window@{holds}": (0.9 * (t.waited() - t.fixed.waited()), t.waited() - 2 * rtt),
                                          "slow-start|receive-window|server-think|sender-think|bandwidth@": (0, t.fixed.waited() + 30)},
             files=node(65_535), path=f"--delay {way // 2}ms", fix="raise-stream-window", changed={"files": node(8 << 20)}, snap=262_144, each=lambda t: t.asked())

# Many questions at once on one connection, each with its own service time: answers come in order and out of order.
MANY = NODE_CLOCK + """
if (process.argv[2] == 'serve') {
  http2.createServer().on('stream', (stream, headers) => { const start = now(); setTimeout(() => { console.log('think', Number(now() - start) / 1e6)
    stream.respond({ ':status': 200 }); stream.end(Buffer.alloc(300)) }, Number(headers[':path'].slice(1))) }).listen(7000)
} else {
  const c = http2.connect('http://10.77.0.2:7000', { createConnection: clocked }), ids = []; let open = 0
  const ask = (ms) => { open++; const r = c.request({ ':path': '/' + ms }); r.on('data', () => {}); r.end()
    r.on('end', () => { ids.push(r.id); if (--open == 0 && left == 0) { ids.forEach(asked); c.close() } }) }
  const plan = process.argv[3] == 'fixed' ? Array(24).fill(50) : Array.from({ length: 24 }, (_, n) => [2, 120, 20, 50, 5][n * 7 % 5])
  let left = plan.length
  const next = () => { left--; ask(plan[left]); if (left) setTimeout(next, process.argv[3] == 'fixed' ? 4 : 9) }
  const warm = (n) => { const r = c.request({ ':path': '/3' }); r.on('data', () => {}); r.end(); r.on('end', () => setTimeout(n ? () => warm(n - 1) : next, 30)) }
  c.on('remoteSettings', () => setTimeout(() => warm(6), 60))
}
"""
for plan in ("fixed", "random"):
    case(f"http2-many-{plan}", f"node many.js ask {plan}", "node many.js serve",
         lambda t, rtt: {"handshake@": rtt, "round-trip@": (31 * rtt, 33 * rtt), "server-think@server": (logged(t, "far.out", "think"), logged(t, "far.out", "think") + 40)},
         files=lambda directory: write(directory, "many.js", MANY), each=lambda t: t.asked())

# Databases: a pipeline of statements, one answer after the other.

PG_PIPELINE = """
import psycopg
c = psycopg.connect("host=10.77.0.2 port=7000 user=postgres dbname=postgres sslmode=disable gssencmode=disable", autocommit=True)
c.execute("select 1")
for n in range(4):
    with c.pipeline():
        cursors = [c.cursor() for _ in range(6)]
        start = now()
        for cursor in cursors: cursor.execute("select pg_sleep(0.03)", prepare=False)
        cursors[-1].fetchall(); asked(start)
    time.sleep(0.05)
"""
case("pg-pipeline", RUN["near"], __import__("services").PG,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": None, "server-think|sender-think@server": (650, 6 * 4 * 6 * 30)},
     files=python("", PG_PIPELINE), each=lambda t: t.asked())

# Farewells: an idle time-out closes, with and without last words.

talk("idle-time-out", http("""    await sleeps(10); await answer(writer)
    try: await asyncio.wait_for(reader.read(1), 1.5)
    except asyncio.TimeoutError: writer.close(); raise ConnectionError"""), HTTP_CLIENT + """
start = now(); put("/a"); get(); asked(start)
f.read()
""", lambda t, rtt: {"handshake@": rtt, "round-trip@": (rtt, 2 * rtt), "server-think@server": logged(t, "far.out", "think")})
talk("idle-farewell", """
async def handle(reader, writer):
    writer.write(b"220 far-end ESMTP ready\\r\\n"); await writer.drain()
    try:
        while True:
            line = await asyncio.wait_for(reader.readline(), 1.5)
            if not line: return
            start = now(); await asyncio.sleep(0.02); took("think", start); writer.write(b"250 OK\\r\\n"); await writer.drain()
    except asyncio.TimeoutError: writer.write(b"421 4.4.2 far-end Error: timeout exceeded\\r\\n"); await writer.drain(); writer.close()
async def main():
    async with await asyncio.start_server(handle, "", 7000) as server: await server.serve_forever()
asyncio.run(main())
""", """
import socket
start = now(); s = socket.create_connection(("10.77.0.2", 7000)); f = s.makefile("rb"); connected = now(); f.readline(); asked(connected)
for line in (b"HELO near-end\\r\\n", b"NOOP\\r\\n", b"NOOP\\r\\n"): start = now(); s.sendall(line); f.readline(); asked(start)
f.read()
""", lambda t, rtt: {"handshake@": rtt, "round-trip@": (3 * rtt, 5 * rtt), "server-think@server": (logged(t, "far.out", "think"), logged(t, "far.out", "think") + 5)})
TLS_SERVER = """
import ssl, os
os.system("[ -f key.pem ] || openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=far-end 2>openssl.err")
context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH); context.load_cert_chain("cert.pem", "key.pem")
async def handle(reader, writer):
    try:
        while True:
            await asyncio.wait_for(reader.readexactly(200), 1.2); start = now(); await asyncio.sleep(0.03); took("think", start); writer.write(b"a" * 300); await writer.drain()
    except asyncio.TimeoutError: writer.close()
    except (asyncio.IncompleteReadError, ConnectionError): writer.close()
async def main():
    async with await asyncio.start_server(handle, "", 7000, ssl=context) as server: await server.serve_forever()
asyncio.run(main())
"""
TLS_CLIENT = """
import socket, ssl, struct
context = ssl.create_default_context(); context.check_hostname = False; context.verify_mode = ssl.CERT_NONE
for n in range(1):
    raw = socket.create_connection(("10.77.0.2", 7000)); raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1); s = context.wrap_socket(raw)
    for _ in range(4):
        start = now(); s.sendall(b"q" * 200); size = 300
        while size: size -= len(s.recv(size))
        asked(start); time.sleep(0.04)
    END
"""
for name, end in (("close-notify", "s.unwrap(); s.close()"),
                  ("reset", "s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0)); s.close()"),
                  ("idle", "s.recv(1); s.close()")):
    talk(f"tls-{name}", TLS_SERVER, TLS_CLIENT.replace("END", end),
         lambda t, rtt: {"handshake@": rtt, "round-trip|tls-handshake@": (5 * rtt, 7 * rtt), "server-think|sender-think@": (logged(t, "far.out", "think"), logged(t, "far.out", "think") + 40)},
         settle=1.0)
