"""Databases, web frameworks, mail, remote calls: what they serve and what their own clocks say.

Scripts print what they did as lines `what milliseconds`; `logged` adds them up.
"""

from cases import BULK, case
from peer import FAR
from programs import CURL, URL, curls, nginx, total, write


def logged(t, file, what):
    """Milliseconds that a script printed behind `what`, all together."""
    return sum(float(line.split()[1]) for line in t.text(file).splitlines() if line.split()[:1] == [what])


def scripts(**files):
    """Writes each as NAME.py."""

    def put(directory):
        for name, text in files.items():
            write(directory, f"{name}.py", text)

    return put


# PostgreSQL: psql's own \timing, pgbench's own latency.

PG_BIN = "/usr/lib/postgresql/15/bin"
PG = ("D=$(mktemp -d); chown postgres $D; cd $D; exec su postgres -s /bin/sh -c \"{BIN}/initdb -D $D/db -A trust -N --no-locale"
      " > init.log 2>&1; echo 'host all all 10.77.0.0/24 trust' >> $D/db/pg_hba.conf; exec {BIN}/postgres -D $D/db -p 7000"
      " -c listen_addresses='*' -c unix_socket_directories=$D -c fsync=off\"").replace("{BIN}", PG_BIN)
PSQL = "psql -q -X 'host=10.77.0.2 port=7000 user=postgres dbname=postgres sslmode=disable gssencmode=disable'"


def timings(t):
    """What psql's clock says of each query."""
    return [float(line.split()[1]) for line in t.text("near.out").splitlines() if line.startswith("Time:")]


def pg(sql):
    return lambda directory: write(directory, "q.sql", "\\timing on\n" + sql)


# The last message is a Terminate that nobody answers: a round trip of its own. Forking a backend and authenticating takes the server a few milliseconds that no clock of the client's tells apart.
PG_START = 30.0
case("pg-sleeps", PSQL + " -f q.sql", PG,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 6 * rtt,
                     "server-think@server": (sum(timings(t)) - 4 * rtt, sum(timings(t)) - 4 * rtt + PG_START)},
     files=pg("select pg_sleep(0.1);\nselect pg_sleep(0.2);\nselect 1;\nselect pg_sleep(0.05);\n"))
case("pg-cursor-40ms", PSQL + " -f q.sql", PG,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": (15 * rtt, 17 * rtt), "server-think@server": (0, PG_START + 15)},
     files=pg("\\set FETCH_COUNT 100\nselect n from generate_series(1, 1000) n;\n"), path="--delay 20ms")
case("pg-big-result", PSQL + " -f q.sql", PG,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 3 * rtt, "bandwidth@": (1000, 1400), "slow-start|receive-window@": (0, 5 * rtt),
                     "server-think@server": (0, PG_START + 20)},
     files=pg("select repeat('x', 1000) from generate_series(1, 3000);\n"), path="--delay 10ms --rate 20mbit --queue 100k")
case("pg-copy-to-slow-consumer", PSQL + f" -c \"copy (select repeat('x', 1000) from generate_series(1, 2000)) to stdout\""
     " | python3 -c 'import sys, time\nwhile sys.stdin.buffer.read(65536): time.sleep(0.04)'", PG,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 3 * rtt, "receiver-think|receive-window@client": (700, 1400),
                     "slow-start|congestion-window@": (0, 6 * rtt), "bandwidth@": (0, 60), "server-think@server": (0, PG_START + 20)},
     near_sysctl=["net.ipv4.tcp_rmem=4096 131072 262144"])
case("pg-copy-in", "seq 1 400000 | head -c 2500000 > rows; echo >> rows; " + PSQL + " -c 'create table n (v text)' -c '\\copy n from rows'", PG,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": (4 * rtt, 6 * rtt), "bandwidth@": (950, 1300), "slow-start|receive-window@": (0, 6 * rtt),
                     "server-think@server": (0, 250), "sender-think@client": (0, 80)}, path="--delay 10ms --rate 20mbit --queue 100k")
case("pg-waits-for-lock", f"({PSQL} -c 'create table l (v int)' -c 'begin; lock table l; select pg_sleep(0.7); commit' > first.out) &"
     f" sleep 0.6; {PSQL} -f q.sql; wait", PG,
     lambda t, rtt: {"handshake@": 2 * rtt, "round-trip@": (6 * rtt, 9 * rtt),
                     "server-think@server": (sum(timings(t)) - rtt + 700, sum(timings(t)) - rtt + 700 + 3 * PG_START)},
     files=pg("select count(*) from l;\n"))
PGBENCH = "echo 'select 1;' > one.sql; " + PG_BIN + "/pgbench -h 10.77.0.2 -p 7000 -U postgres -n -f one.sql -c 1 -t 20 {} 'sslmode=disable gssencmode=disable'"
for mode, trips in (("simple", 20), ("extended", 20), ("prepared", 21)):
    case(f"pgbench-{mode}", PGBENCH.format(f"-M {mode}"), PG,
         lambda t, rtt, trips=trips: {"handshake@": (rtt, 2 * rtt), "round-trip@": ((trips + 2) * rtt, (trips + 4) * rtt),
                                      "server-think@server": (0, 2 * PG_START + 15)}, path="--delay 20ms")
case("pg-lost-query", PSQL + " -f q.sql", PG,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": (7 * rtt, 8 * rtt), "rto@": sum(timings(t)) - 6 * rtt, "server-think@server": (0, PG_START)},
     files=pg("select 1;\n" * 6), path="--delay 20ms --forward 'loss data 4'")

# Apache httpd: CGI programs that sleep, static files.

HTTPD = """
ServerRoot .
ServerName far-end
PidFile httpd.pid
Listen 7000
User www-data
Group www-data
LoadModule mpm_prefork_module /usr/lib/apache2/modules/mod_mpm_prefork.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule cgi_module /usr/lib/apache2/modules/mod_cgi.so
LoadModule alias_module /usr/lib/apache2/modules/mod_alias.so
StartServers 2
ErrorLog error.log
DocumentRoot WHERE
KeepAlive On
KeepAliveTimeout 30
ScriptAlias /cgi/ WHERE/cgi/
<Directory "WHERE">
  Require all granted
  Options +ExecCGI
</Directory>
"""
CGI_SLEEPS = "#!/bin/sh\nsleep 0.12\nprintf 'Content-Type: text/plain\\r\\nContent-Length: 6\\r\\n\\r\\nhello\\n'\n"
CGI_DRIBBLES = ("#!/usr/bin/env python3\nimport sys, time\nw = sys.stdout.buffer\nw.write(b'Content-Type: text/plain\\r\\n\\r\\n')\n"
                "for n in range(4):\n  w.write(b'x' * 600); w.flush()\n  time.sleep(0.15 if n < 3 else 0)\n")


def httpd(directory):
    """In a place that its unprivileged processes can read."""
    import os
    import tempfile

    where = tempfile.mkdtemp(prefix="exam-")
    os.chmod(where, 0o755)
    os.mkdir(f"{where}/cgi")
    for name, text in (("sleeps", CGI_SLEEPS), ("dribbles", CGI_DRIBBLES)):
        write(where, f"cgi/{name}", text)
        os.chmod(f"{where}/cgi/{name}", 0o755)
    write(where, "small.txt", "x" * 700)
    write(where, "big.bin", "x" * BULK)
    write(directory, "httpd.conf", HTTPD.replace("WHERE", where))


APACHE = "exec /usr/sbin/apache2 -d $PWD -f $PWD/httpd.conf -X"


def repeated(url, times):
    return CURL.replace("-o /dev/null", "-o /dev/null " * times) + " ".join([url] * times)


case("apache-keep-alive", repeated(f"{URL}/small.txt", 8), APACHE,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 8 * rtt, "server-think@server": (0, 15)}, files=httpd)
case("apache-cgi-sleeps", repeated(f"{URL}/cgi/sleeps", 4), APACHE,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 4 * rtt, "server-think@server": total(t) - 5 * rtt}, files=httpd)
case("apache-cgi-dribbles", repeated(f"{URL}/cgi/dribbles", 2), APACHE,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 2 * rtt, "sender-think@server": 900, "server-think@server": total(t) - 900 - 3 * rtt},
     files=httpd)
case("apache-big", CURL + f"{URL}/big.bin", APACHE,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "bandwidth@": (1000, 1300), "slow-start|receive-window@": (0, 5 * rtt),
                     "server-think@server": (0, 15)},
     files=httpd, path="--delay 10ms --rate 20mbit --queue 100k")
case("apache-slow-reader", CURL + f"--limit-rate 1500k {URL}/big.bin", APACHE,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "receiver-think|receive-window@client": (1400, 2000),
                     "slow-start|congestion-window@": (0, 8 * rtt), "bandwidth@": (0, 60)},
     files=httpd, near_sysctl=["net.ipv4.tcp_rmem=4096 131072 262144"])

# Go's net/http and plain sockets.


def built(directory):
    import subprocess

    write(directory, "main.go", GO)
    subprocess.run(["go", "build", "-o", "main", "main.go"], cwd=directory, check=True)


GO = """
package main
import ("fmt"; "io"; "net"; "net/http"; "os"; "time")
func ms(d time.Duration) float64 { return float64(d) / 1e6 }
func check(err error) { if err != nil { panic(err) } }
func serve() {
  http.HandleFunc("/sleep", func(w http.ResponseWriter, r *http.Request) {
    t := time.Now(); time.Sleep(45 * time.Millisecond); fmt.Println("think", ms(time.Since(t))); w.Write(make([]byte, 400)) })
  http.HandleFunc("/flush", func(w http.ResponseWriter, r *http.Request) {
    for n := 0; n < 6; n++ { if n > 0 { t := time.Now(); time.Sleep(70 * time.Millisecond); fmt.Println("pause", ms(time.Since(t))) }
      w.Write(make([]byte, 300)); w.(http.Flusher).Flush() } })
  http.HandleFunc("/post", func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body); w.Write([]byte("ok")) })
  check(http.ListenAndServe(":7000", nil)) }
type slow struct { left int }
func (s *slow) Read(p []byte) (int, error) {
  if s.left == 0 { return 0, io.EOF }
  t := time.Now(); time.Sleep(60 * time.Millisecond); fmt.Println("pause", ms(time.Since(t)))
  s.left--; for i := range p[:500] { p[i] = 'x' }; return 500, nil }
func ask(path string, times int) {
  for n := 0; n < times; n++ {
    t := time.Now(); r, err := http.Get("http://10.77.0.2:7000/" + path); check(err); io.Copy(io.Discard, r.Body); r.Body.Close()
    fmt.Println("exchange", ms(time.Since(t))) } }
func post() { r, err := http.Post("http://10.77.0.2:7000/post", "text/plain", &slow{5}); check(err); io.Copy(io.Discard, r.Body) }
func echo() {
  l, err := net.Listen("tcp", ":7000"); check(err); c, err := l.Accept(); check(err)
  b := make([]byte, 250); for { if _, err := io.ReadFull(c, b); err != nil { return }; c.Write(b) } }
func split() {
  c, err := net.Dial("tcp", "10.77.0.2:7000"); check(err); c.(*net.TCPConn).SetNoDelay(false); b := make([]byte, 250)
  for n := 0; n < 6; n++ { t := time.Now(); c.Write(b[:100]); c.Write(b[:150]); io.ReadFull(c, b); fmt.Println("exchange", ms(time.Since(t))) } }
func main() { switch os.Args[1] { case "serve": serve(); case "post": post(); case "echo": echo(); case "split": split(); default: ask(os.Args[1], 5) } }
"""
GO_SERVES = "./main serve"
case("go-sleeps-45", "./main sleep", GO_SERVES,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 5 * rtt, "server-think@server": logged(t, "far.out", "think")}, files=built)
case("go-flushes", "./main flush", GO_SERVES,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 5 * rtt, "sender-think@server": logged(t, "far.out", "pause")}, files=built)
case("go-posts-slowly", "./main post", GO_SERVES,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "sender-think@client": logged(t, "near.out", "pause")}, files=built)
case("go-split-request", "./main split", "./main echo",
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 6 * rtt, "nagle|nagle-delayed-ack@client": logged(t, "near.out", "exchange") - 6 * rtt},
     files=built)

# Python: http.server writes head and body apart, asyncio sets TCP_NODELAY, requests keeps its connection.

HEAD_AND_BODY = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Length", "500"); self.end_headers()
        self.wfile.write(b"x" * 500)
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"])); self.do_GET()
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer(("", 7000), Handler).serve_forever()
"""
REQUESTS = """
import requests, sys, time
s = requests.Session(); s.trust_env = False
for n in range(6):
    start = time.time(); s.get("http://10.77.0.2:7000/"); print("exchange", 1e3 * (time.time() - start), flush=True)
    time.sleep(0.03)
"""
case("python-head-and-body", "python3 client.py", "python3 server.py",
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 6 * rtt, "nagle|nagle-delayed-ack@server": (logged(t, "near.out", "exchange") - 7 * rtt - 25, logged(t, "near.out", "exchange") - 7 * rtt)},
     files=scripts(client=REQUESTS, server=HEAD_AND_BODY))
POSTS = REQUESTS.replace('s.get("http://10.77.0.2:7000/")', 's.post("http://10.77.0.2:7000/", data=open("client.py", "rb"))')
case("python-posts-file", "python3 client.py", "python3 server.py",
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 6 * rtt, "nagle|nagle-delayed-ack@server": (logged(t, "near.out", "exchange") - 7 * rtt - 25, logged(t, "near.out", "exchange") - 7 * rtt)},
     files=scripts(client=POSTS, server=HEAD_AND_BODY))
ASYNCIO = """
import asyncio, time
async def handle(reader, writer):
    while await reader.readexactly(100):
        for n in range(4):
            if n:
                start = time.time(); await asyncio.sleep(0.03); print("pause", 1e3 * (time.time() - start), flush=True)
            writer.write(b"x" * 200); await writer.drain()
async def main():
    await (await asyncio.start_server(handle, "", 7000)).serve_forever()
asyncio.run(main())
"""


def asks_800(p):
    p.connect()
    p.set(TCP_NODELAY=1)
    p.ask(5, 100, 800, 20)
    p.close()


case("asyncio-pieces", asks_800, "python3 server.py",
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 5 * rtt, "sender-think@server": logged(t, "far.out", "pause")}, files=scripts(server=ASYNCIO))
WEBSOCKETS = """
import asyncio, time, websockets
async def handle(ws):
    async for message in ws:
        start = time.time(); await asyncio.sleep(0.025); print("think", 1e3 * (time.time() - start), flush=True)
        await ws.send("x" * 300)
async def main():
    async with websockets.serve(handle, "", 7000, compression=None): await asyncio.Future()
asyncio.run(main())
"""
WEBSOCKET = """
import asyncio, time, websockets
async def main():
    async with websockets.connect("ws://10.77.0.2:7000/", compression=None, proxy=None) as ws:
        for n in range(8):
            await ws.send("y" * 150); await ws.recv()
asyncio.run(main())
"""
case("websocket-echo", "python3 client.py", "python3 server.py",
     lambda t, rtt: {"handshake@": rtt, "round-trip@": (9 * rtt, 10 * rtt), "server-think@server": (logged(t, "far.out", "think"), logged(t, "far.out", "think") + 20)},
     files=scripts(client=WEBSOCKET, server=WEBSOCKETS))
GRPC_SERVER = """
import grpc, time
from concurrent import futures
same = lambda b: b
def unary(request, context):
    start = time.time(); time.sleep(0.06); print("think", 1e3 * (time.time() - start), flush=True); return request
def stream(request, context):
    for n in range(8):
        if n: start = time.time(); time.sleep(0.05); print("pause", 1e3 * (time.time() - start), flush=True)
        yield b"z" * 500
class Handler(grpc.GenericRpcHandler):
    def service(self, details):
        make = grpc.unary_unary_rpc_method_handler if details.method == "/x/unary" else grpc.unary_stream_rpc_method_handler
        return make(unary if details.method == "/x/unary" else stream, same, same)
server = grpc.server(futures.ThreadPoolExecutor(4)); server.add_generic_rpc_handlers((Handler(),))
server.add_insecure_port("0.0.0.0:7000"); server.start(); server.wait_for_termination()
"""
GRPC_CLIENT = """
import grpc, time
same = lambda b: b
with grpc.insecure_channel("10.77.0.2:7000", [("grpc.enable_http_proxy", 0)]) as channel:
    grpc.channel_ready_future(channel).result()
    CALLS
"""
# Between calls and answers run frames of HTTP/2 itself (PING, WINDOW_UPDATE). The preface is a round trip of its own.
case("grpc-calls", "python3 client.py", "python3 server.py",
     lambda t, rtt: {"handshake@": rtt, "round-trip@": (7 * rtt, 8 * rtt), "server-think@server": (logged(t, "far.out", "think"), logged(t, "far.out", "think") + 30)},
     files=scripts(server=GRPC_SERVER, client=GRPC_CLIENT.replace("CALLS", """call = channel.unary_unary("/x/unary", same, same)
    for n in range(6): call(b"q" * 200)""")))
case("grpc-stream", "python3 client.py", "python3 server.py",
     lambda t, rtt: {"handshake@": rtt, "round-trip@": (2 * rtt, 6 * rtt), "server-think|sender-think@": (logged(t, "far.out", "pause") - 4 * rtt, logged(t, "far.out", "pause") + 30)},
     files=scripts(server=GRPC_SERVER, client=GRPC_CLIENT.replace("CALLS", """list(channel.unary_stream("/x/stream", same, same)(b"q"))""")))

# Mail: the server speaks first, each command is a round trip.

AIOSMTPD = """
import asyncio, time
from aiosmtpd.controller import Controller
class Handler:
    async def handle_RCPT(self, server, session, envelope, address, options):
        start = time.time(); await asyncio.sleep(0.1); print("think", 1e3 * (time.time() - start), flush=True)
        envelope.rcpt_tos.append(address); return "250 OK"
    async def handle_DATA(self, server, session, envelope):
        start = time.time(); await asyncio.sleep(0.2); print("think", 1e3 * (time.time() - start), flush=True); return "250 OK"
Controller(Handler(), hostname="0.0.0.0", port=7000).start(); time.sleep(999)
"""
SMTP = """
import smtplib
with smtplib.SMTP("10.77.0.2", 7000, local_hostname="near-end") as s:
    s.sendmail("a@example.org", ["b@example.org"], "Subject: x\\r\\n\\r\\n" + "text\\r\\n" * 100)
"""
case("smtp-mail", "python3 client.py", "python3 server.py",
     lambda t, rtt: {"handshake@": rtt, "round-trip@": (6 * rtt, 8 * rtt), "server-think@server": (logged(t, "far.out", "think"), logged(t, "far.out", "think") + 20)},
     files=scripts(client=SMTP, server=AIOSMTPD), path="--delay 15ms")

# Key-value stores: pipelines, big values, blocking reads.

REDIS = "redis-server --port 7000 --save '' --protected-mode no"
case("redis-pipe-of-500", "for i in $(seq 500); do echo \"SET key$i $i\"; done > in; redis-cli -h 10.77.0.2 -p 7000 --pipe < in", REDIS,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": (rtt, 2 * rtt), "slow-start|receive-window@": (0, 2 * rtt), "server-think|sender-think@": (0, 10)})
case("redis-big-value", "head -c 2500000 /dev/zero | tr '\\0' x | redis-cli -h 10.77.0.2 -p 7000 -x set big; redis-cli -h 10.77.0.2 -p 7000 get big | wc -c", REDIS,
     lambda t, rtt: {"handshake@": 2 * rtt, "round-trip@": (2 * rtt, 4 * rtt), "bandwidth@": (1900, 2500), "slow-start|receive-window@": (0, 10 * rtt),
                     "server-think@server": (0, 30)}, path="--delay 10ms --rate 20mbit --queue 100k")
case("redis-blpop", "(sleep 0.8; redis-cli -h 10.77.0.2 -p 7000 lpush l v) & redis-cli -h 10.77.0.2 -p 7000 blpop l 5; wait", REDIS,
     # What it waits for is another client's, and news.
     lambda t, rtt: {"handshake@": 2 * rtt, "round-trip@": (2 * rtt, 4 * rtt), "server-think@server": (0, 20)})
MULTIGET = """
import socket, time
s = socket.create_connection(("10.77.0.2", 7000))
def read(end):
    data = b""
    while not data.endswith(end): data += s.recv(1 << 16)
for n in range(100):
    s.sendall(b"set k%d 0 0 300\\r\\n" % n + b"v" * 300 + b"\\r\\n"); read(b"STORED\\r\\n")
    if n == 4: break
for n in range(5):
    s.sendall(b"get " + b" ".join(b"k%d" % (n % 5) for n in range(100)) + b"\\r\\n"); read(b"END\\r\\n")
    time.sleep(0.05)
"""
case("memcached-multi-get", "python3 client.py", "memcached -u root -p 7000",
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 10 * rtt, "slow-start|receive-window@": (0, 3 * rtt)}, files=scripts(client=MULTIGET))

# Java: a client that writes its fields one by one.

FIELDS = """
import java.io.*; import java.net.*;
public class Fields { public static void main(String[] a) throws Exception {
  Socket s = new Socket("10.77.0.2", 7000); DataOutputStream out = new DataOutputStream(s.getOutputStream()); InputStream in = s.getInputStream();
  for (int n = 0; n < 6; n++) { long t = System.nanoTime(); out.writeInt(7); out.writeInt(n); out.write(new byte[100]); in.readNBytes(300);
    System.out.println("exchange " + (System.nanoTime() - t) / 1e6); } } }
"""


def answers_108(p):
    p.listen()
    p.serve(108, 300)


case("java-fields", "java Fields.java", answers_108,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 6 * rtt, "sender-think@client": (0, 15),
                     "nagle|nagle-delayed-ack@client": (logged(t, "near.out", "exchange") - 6 * rtt - 15, logged(t, "near.out", "exchange") - 6 * rtt)},
     files=lambda d: write(d, "Fields.java", FIELDS))

# HTTP/2, and what paths and windows do to these programs.

case("h2load-streams", "h2load -n 40 -c 1 -m 4 http://10.77.0.2:7000/small.txt > /dev/null", "nginx -p . -c nginx.conf",
     # Ten rounds of four at once, and each of the four waits: all of them where their heads are within the snap length.
     lambda t, rtt: {"handshake@": rtt, "round-trip@": (9 * rtt, 40 * rtt)}, files=nginx("http2"))
case("nginx-window-limited", CURL + f"{URL}/big.bin", "nginx -p . -c nginx.conf",
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "receive-window|slow-start@": total(t) - 2 * rtt}, files=nginx(),
     path="--delay 20ms", near_sysctl=["net.ipv4.tcp_rmem=4096 131072 131072"])
case("nginx-initial-window-2", repeated(f"{URL}/60k.bin", 1), "nginx -p . -c nginx.conf",
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "slow-start|delayed-ack-cwnd@": total(t) - 2 * rtt},
     files=lambda d: (nginx()(d), write(d, "60k.bin", "x" * 60_000)), path="--delay 25ms",
     host_setup={"far": ["ip route change 10.77.0.1 dev DEV proto static scope link congctl cubic initcwnd 2"]})
IDLES = """
import requests, time
s = requests.Session(); s.trust_env = False
for n in range(3):
    start = time.time(); s.get("http://10.77.0.2:7000/150k.bin"); print("exchange%d" % n, 1e3 * (time.time() - start), flush=True)
    time.sleep((0.02, 2.5, 0)[n])
"""
case("nginx-idle-restart", "python3 client.py", "nginx -p . -c nginx.conf",
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 3 * rtt, "slow-start-after-idle@": logged(t, "near.out", "exchange2") - rtt,
                     "slow-start|receive-window|congestion-window|send-buffer@": logged(t, "near.out", "exchange0") + logged(t, "near.out", "exchange1") - 3 * rtt},
     files=lambda d: (nginx()(d), write(d, "150k.bin", "x" * 150_000), write(d, "client.py", IDLES)), path="--delay 30ms")
case("mariadb-slow-client", "mariadb -h 10.77.0.2 -P 7000 --skip-ssl --quick -N -e 'select repeat(seq, 200) from seq_1_to_2000' mysql"
     " | python3 -c 'import sys, time\nwhile sys.stdin.buffer.read(65536): time.sleep(0.04)'",
     __import__("programs").MARIA,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": (3 * rtt, 6 * rtt), "receiver-think|receive-window@client": (300, 1200), "slow-start|congestion-window@": (0, 6 * rtt),
                     "server-think@server": (0, 60), "bandwidth@": (0, 60)}, near_sysctl=["net.ipv4.tcp_rmem=4096 65536 131072"])
case("nginx-http2-big", CURL + f"--http2-prior-knowledge {URL}/big.bin", "nginx -p . -c nginx.conf",
     lambda t, rtt: {"handshake@": rtt, "round-trip@": (rtt, 2 * rtt), "bandwidth@": (1000, 1350), "slow-start|receive-window|application-window@": (0, 5 * rtt)},
     files=nginx("http2"), path="--delay 10ms --rate 20mbit --queue 100k")
