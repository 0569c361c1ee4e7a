"""Programs and habits that the other files lack, each over a path drawn by the name of its case.

Delays of 0.1 to 150 ms, rates of 1 to 100 Mbit/s with a queue, chosen or random losses, overtaking, jitter. What each side took
comes from the programs' clocks: `ask START END`, `think MS`, `pause MS`.
"""

import random

from cases import case
from programs import BACKEND, total, write
from protocols import both
from services import logged, repeated
from software import TIMED
from waits import ASK, PLAIN

HERE = "tcp and host 10.77.0.1"
# What a path without a named rate and a small transfer may still take.
GROWTH = "slow-start|slow-start-after-idle|congestion-window|receive-window|bandwidth|delayed-ack-cwnd@"
LOST = "rto|loss|slow-start|congestion-window@"


def way(name, kind="", low=0.1, high=150.0):
    """Options of `lab shell`, always the same for a name."""
    draw = random.Random(f"way of {name}")
    delay = low * (high / low) ** draw.random()
    rate, packet = round(100 ** draw.random()), draw.randint(2, 6)
    options = f"--delay {delay:.1f}ms --seed {draw.randint(1, 99)}"
    if "rate" in kind:
        options += f" --rate {rate}mbit --queue {draw.choice((50, 100, 200))}ms"
    if "lost request" in kind:
        options += f" --forward 'loss data {packet}'"
    if "lost reply" in kind:
        options += f" --backward 'loss data {packet}'"
    if "lossy" in kind:
        options += f" --backward 'loss {draw.choice((0.5, 1, 2))}%'"
    if "overtaken" in kind:
        options += f" --backward 'reorder data {packet},{packet + 7},{packet + 15} by {draw.randint(2, 20)}ms'"
    if "jitter" in kind:
        options += f" --jitter {draw.uniform(0.5, 8):.1f}ms"
    return options


def spent(trips, setups=1, extra=20.0, left="", asked_setups=0, think="server-think@server", **more):
    """A round trip each, what the far end logged, and in `left` what the asker waited for beyond these."""

    def expect(t, rtt):
        low, high = trips if isinstance(trips, tuple) else (trips, trips)
        logs = logged(t, "far.out", "think")
        terms = {"handshake@": setups * rtt, "round-trip@": (low * rtt, high * rtt), think: (logs, logs + extra)}
        pauses = logged(t, "far.out", "pause")
        if pauses:
            terms["sender-think@server"] = pauses
        if left:
            rest = t.waited() - asked_setups * rtt - logs - pauses
            terms[left] = (max(0.0, rest - high * rtt - extra), rest - low * rtt)
        return terms | more

    return expect


def shaky(trips, extra=20.0, **more):
    """Where the path's delay varies: what was not the program's is the path's."""

    def expect(t, rtt):
        logs = logged(t, "far.out", "think")
        return {"handshake@": None, "round-trip|queueing@": (trips * rtt, t.waited() - logs + rtt), "server-think@server": (logs, t.waited() - trips * rtt), **more}

    return expect


def waited(trips, setups=1, cause="server-think@server", slack=0.0, asked_setups=0, **more):
    """A round trip each, and all that the asker waited for beyond these."""
    def expect(t, rtt):
        low, high = trips if isinstance(trips, tuple) else (trips, trips)
        rest = t.waited() - asked_setups * rtt
        return {"handshake@": setups * rtt, "round-trip@": (low * rtt, high * rtt), cause: (rest - high * rtt - slack, rest - low * rtt), **more}

    return expect


def near_and_far(name, near, far, expect, files=None, kind="", low=0.1, high=150.0, **options):
    """A client of its own kind, with all it needs in files."""
    options.setdefault("path", way(name, kind, low, high))
    case(name, near, far, expect, files=both(files or {}), **options)


def asks(name, far, client, expect, files=None, kind="", wait=2.0, low=0.1, high=150.0, **options):
    """A client in Python."""
    options.setdefault("each", lambda t: t.asked())
    case(name, f"sleep {wait}; python3 client.py", far, expect, files=both(files or {}, client=ASK + client), path=way(name, kind, low, high), **options)


# Stores and databases.

asks("pymemcache-values", "exec memcached -u root -p 7000", """
from pymemcache.client.base import Client
c = Client(("10.77.0.2", 7000)); c.version(); time.sleep(0.1)
for n in range(5): start = now(); c.set(f"k{n}", b"v" * 600, noreply=False); asked(start); time.sleep(0.06)
for n in range(5): start = now(); c.get_many([f"k{i}" for i in range(5)]); asked(start); time.sleep(0.06)
""", spent(11, extra=5, left=LOST), kind="lost reply")
TARANTOOL = """
local fiber, clock = require('fiber'), require('clock')
io.stdout:setvbuf('line')
box.cfg{listen = '0.0.0.0:7000', memtx_dir = '.', wal_mode = 'none', log = 'log'}
box.schema.user.grant('guest', 'read,write,execute,create', 'universe', nil, {if_not_exists = true})
function work(ms) local t = clock.time64(); fiber.sleep(ms / 1000); print('think', tonumber(clock.time64() - t) / 1e6); return string.rep('x', 400) end
"""
asks("tarantool-calls", "exec tarantool t.lua", """
import tarantool
c = tarantool.connect("10.77.0.2", 7000); time.sleep(0.2)
for n in range(8): start = now(); c.call("work", (15 + 40 * (n % 3),)); asked(start); time.sleep(0.05)
""", spent((8, 11), left=LOST), files={"t.lua": TARANTOOL}, kind="lost request")
CLICKHOUSE = ("<yandex><logger><level>error</level><log>HERE/l</log><errorlog>HERE/e</errorlog></logger><http_port>7000</http_port><tcp_port>7001</tcp_port><listen_host>0.0.0.0</listen_host>"
              "<path>HERE/d/</path><tmp_path>HERE/t/</tmp_path><mark_cache_size>5368709</mark_cache_size><users_config>users.xml</users_config><default_profile>default</default_profile>"
              "<default_database>default</default_database></yandex>\n")
USERS = ("<yandex><profiles><default></default></profiles><users><default><password></password><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota></default></users>"
         "<quotas><default></default></quotas></yandex>\n")
CLICK = {"config.xml": CLICKHOUSE, "users.xml": USERS}
asks("clickhouse-http", "exec clickhouse-server --config-file=config.xml", """
import http.client
c = http.client.HTTPConnection("10.77.0.2", 7000); c.connect(); time.sleep(0.1)
for n in range(6):
    start = now(); c.request("POST", "/", "select sleepEachRow(%.2f), number from numbers(3)" % (0.03 + 0.02 * (n % 3))); c.getresponse().read(); asked(start); time.sleep(0.1)
""", waited(6, slack=30), files=CLICK, wait=4.0)
near_and_far("clickhouse-native", "sleep 4; " + TIMED.format("clickhouse-client --host 10.77.0.2 --port 7001 --query 'select number, sleepEachRow(0.08) from numbers(7) settings max_block_size=1' > rows"),
             "exec clickhouse-server --config-file=config.xml",
             lambda t, rtt: {"handshake@": rtt, "round-trip@": (2 * rtt, 4 * rtt), "server-think|sender-think@server": (560, 700)}, files=CLICK)
INFLUX = 'reporting-disabled = true\nbind-address = "127.0.0.1:7002"\n[meta]\n dir = "HERE/m"\n[data]\n dir = "HERE/d"\n wal-dir = "HERE/w"\n[http]\n bind-address = ":7000"\n log-enabled = false\n'
asks("influx-batches", "exec influxd run -config i.conf", """
from influxdb import InfluxDBClient
c = InfluxDBClient("10.77.0.2", 7000, database="d", gzip=False); start = now(); c.create_database("d"); asked(start); time.sleep(0.1)
for n in range(5):
    lines = [f"m,host=h{i % 50} v={i},w={i * 7}i {1700000000000000000 + n * 10**9 + i}" for i in range(2500)]
    start = now(); c.write_points(lines, protocol="line"); asked(start); time.sleep(0.15)
start = now(); c.query("select count(v) from m"); asked(start)
""", lambda t, rtt: {"handshake@": rtt, "round-trip@": 7 * rtt, "sender-think@": (0, 15),
              "bandwidth|queueing|slow-start|slow-start-after-idle|congestion-window|receive-window|server-think@": (t.waited() - 8 * rtt - 50, t.waited() - 8 * rtt)}, files={"i.conf": INFLUX}, kind="rate", wait=3.0, each=None)

# Calls between programs.

asks("pyro-calls", "exec python3 serve.py", """
import Pyro5.api
p = Pyro5.api.Proxy("PYRO:w@10.77.0.2:7000"); p._pyroBind(); time.sleep(0.15)
for n in range(6): start = now(); p.work("q" * 300); asked(start); time.sleep(0.08)
b = Pyro5.api.BatchProxy(p); [b.work("b") for _ in range(3)]; start = now(); list(b()); asked(start)
""", spent((8, 9), left=LOST), files={"serve.py": ASK + """
import Pyro5.api, Pyro5.server
@Pyro5.api.expose
class W:
    def work(self, text): start = now(); time.sleep(0.05); took("think", start); return text
d = Pyro5.server.Daemon(host="0.0.0.0", port=7000); d.register(W(), "w"); d.requestLoop()
"""}, kind="lost request")
asks("capnp-calls", "exec python3 serve.py", """
import capnp
a = capnp.load("a.capnp")
async def main():
    stream = await capnp.AsyncIoStream.create_connection(host="10.77.0.2", port=7000); c = capnp.TwoPartyClient(stream).bootstrap().cast_as(a.Work)
    await c.work("first"); await asyncio.sleep(0.1)
    for n in range(6): start = now(); await c.work("q" * 250); asked(start); await asyncio.sleep(0.07)
    starts = now(); await asyncio.gather(*[c.work("z" * 100) for _ in range(4)]); print("at once", starts)
asyncio.run(capnp.run(main()))
""", lambda t, rtt: {"handshake@": rtt, "round-trip@": (8 * rtt, 12 * rtt), "server-think@server": (8 / 11 * logged(t, "far.out", "think"), logged(t, "far.out", "think") + 25)}, files={"a.capnp": "@0xb2c5d14ab9a3a1c7;\ninterface Work { work @0 (text :Text) -> (text :Text); }\n", "serve.py": ASK + """
import capnp
a = capnp.load("a.capnp")
class W(a.Work.Server):
    async def work(self, text, **k): start = now(); await asyncio.sleep(0.045); took("think", start); return text
async def one(stream): await capnp.TwoPartyServer(stream, bootstrap=W()).on_disconnect()
async def main():
    s = await capnp.AsyncIoStream.create_server(one, "0.0.0.0", 7000)
    async with s: await s.serve_forever()
asyncio.run(capnp.run(main()))
"""}, each=None)
asks("nng-req-rep", "exec python3 serve.py", """
import pynng
with pynng.Req0(dial="tcp://10.77.0.2:7000") as s:
    time.sleep(0.5)
    for n in range(9): start = now(); s.send(b"q" * 180); s.recv(); asked(start); time.sleep(0.04)
""", shaky(9), each_at=("near",), files={"serve.py": ASK + """
import pynng
with pynng.Rep0(listen="tcp://0.0.0.0:7000") as s:
    while True: s.recv(); start = now(); time.sleep(0.022); took("think", start); s.send(b"a" * 900)
"""}, kind="jitter")
asks("dask-tasks", "python3 -m distributed.cli.dask_scheduler --host 10.77.0.2 --port 7000 --no-dashboard > s.log 2>&1 & sleep 3; exec python3 -m distributed.cli.dask_worker tcp://10.77.0.2:7000 --nthreads 1 --no-dashboard --no-nanny > w.log 2>&1", """
from distributed import Client
def work(n):
    import time
    time.sleep(0.12); return b"r" * 500
c = Client("tcp://10.77.0.2:7000"); time.sleep(0.3)
for n in range(5): start = now(); c.submit(work, n, pure=False).result(); asked(start); time.sleep(0.2)
c.close()
""", lambda t, rtt: {"handshake@": None, "round-trip@": None, "server-think@server": (0, 5 * 125 + 900), "sender-think@": (0, 5 * 125 + 400)}, tap=HERE, guess=True, wait=7.0, each=None)
CELERY = """
import time, celery
app = celery.Celery("jobs", broker="redis://WHERE:7000/0", backend="redis://WHERE:7000/0")
@app.task
def work(text):
    start = time.time_ns(); time.sleep(0.09); open("think.txt", "a").write("think %f\\n" % ((time.time_ns() - start) / 1e6)); return text
"""
asks("celery-jobs", "redis-server --port 7000 --save '' --protected-mode no > log & sleep 1; exec python3 -m celery -A far_jobs:app worker -c 1 -l error --without-gossip --without-mingle", """
import importlib, sys
sys.path.insert(0, ".")
from near_jobs import app
from far_jobs import work
near = app.signature("far_jobs.work")
r = app.send_task("far_jobs.work", ("warm",)); r.get(timeout=20); time.sleep(0.2)
for n in range(5): start = now(); app.send_task("far_jobs.work", ("t" * 200,)).get(timeout=20); asked(start); time.sleep(0.15)
""", lambda t, rtt: {"handshake@": (2 * rtt, 5 * rtt), "round-trip@": None, "server-think|sender-think@": (0, 6 * 90 + 300)}, tap=HERE, guess=True, wait=6.0, each=None,
     files={"far_jobs.py": CELERY.replace("WHERE", "127.0.0.1"), "near_jobs.py": CELERY.replace("WHERE", "10.77.0.2")})
RMI = """
import java.rmi.*; import java.rmi.registry.*; import java.rmi.server.*;
public class Rmi {
  public interface Work extends Remote { byte[] work(String text) throws RemoteException; }
  public static class Does extends UnicastRemoteObject implements Work {
    Does() throws RemoteException { super(7001); }
    public byte[] work(String text) { long t = System.nanoTime(); try { Thread.sleep(35); } catch (InterruptedException e) {} System.out.println("think " + (System.nanoTime() - t) / 1e6); return new byte[700]; } }
  static long now() { java.time.Instant i = java.time.Instant.now(); return i.getEpochSecond() * 1000000000L + i.getNano(); }
  public static void main(String[] a) throws Exception {
    if (a[0].equals("serve")) { System.setProperty("java.rmi.server.hostname", "10.77.0.2"); LocateRegistry.createRegistry(7000).rebind("w", new Does()); Thread.sleep(99999); }
    Work w = (Work) LocateRegistry.getRegistry("10.77.0.2", 7000).lookup("w"); w.work("first"); Thread.sleep(100);
    for (int n = 0; n < 7; n++) { long s = now(); w.work("q".repeat(150)); System.out.println("ask " + s + " " + now()); Thread.sleep(60); }
    System.exit(0); } }
"""


def rmi(directory):
    import subprocess

    write(directory, "Rmi.java", RMI)
    subprocess.run(["javac", "Rmi.java"], cwd=directory, check=True)


case("java-rmi", "sleep 2; java Rmi near", "exec java Rmi serve", spent((10, 18), setups=2, extra=60, **{"sender-think@client": (0, 60), "server-think@client": (0, 60)}), files=rmi, path=way("java-rmi"), each=lambda t: t.asked())

# Programs in other languages.

near_and_far("lua-http-in-pieces", "sleep 1.5; lua5.4 c.lua", "exec python3 server.py", lambda t, rtt: {
    "handshake@": 4 * rtt, "round-trip@": 4 * rtt, "server-think@server": (logged(t, "far.out", "think"), logged(t, "far.out", "think") + 15),
    "nagle|nagle-delayed-ack@client": (t.waited() - 8 * rtt - logged(t, "far.out", "think") - 15, t.waited() - 8 * rtt - logged(t, "far.out", "think"))},
    files={"c.lua": """
local http, socket, ltn12 = require("socket.http"), require("socket"), require("ltn12")
local function ns(t) return string.format("%d", math.floor(t * 1e6) * 1000) end
for n = 1, 4 do
  local s = socket.gettime(); local got = {}
  http.request{url = "http://10.77.0.2:7000/" .. n, sink = ltn12.sink.table(got)}
  io.write("ask ", ns(s), " ", ns(socket.gettime()), "\\n"); socket.sleep(0.07)
end
""", "server.py": ASK + """
import socket
l = socket.create_server(("", 7000))
while True:
    c = l.accept()[0]; data = b""
    while b"\\r\\n\\r\\n" not in data: data += c.recv(4096)
    start = now(); time.sleep(0.03); took("think", start); c.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 500\\r\\nConnection: close\\r\\n\\r\\n" + b"x" * 500); c.close()
"""}, each=None)
RUBY_SERVES = """
require "socket"
$stdout.sync = true
s = TCPServer.new(7000)
loop { Thread.new(s.accept) { |c|
  while (line = c.gets)
    nil until c.gets == "\\r\\n"
    c.write "HTTP/1.1 200 OK\\r\\n"; c.write "Content-Length: 300\\r\\n\\r\\n"; c.write "x" * 300
  end } }
"""
RUBY_ASKS = """
require "net/http"
def now = Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond)
Net::HTTP.start("10.77.0.2", 7000) { |h|
  6.times { |n| s = now; h.get("/#{n}"); puts "ask #{s} #{now}"; sleep 0.05 } }
"""
near_and_far("ruby-in-pieces", "sleep 1.5; ruby c.rb", "exec ruby s.rb", waited(6, cause="nagle|nagle-delayed-ack@server", slack=8), files={"s.rb": RUBY_SERVES, "c.rb": RUBY_ASKS}, each=lambda t: t.asked(), low=1.0)
PERL_SERVES = """
use IO::Socket::INET; use Time::HiRes qw(sleep time); $| = 1;
my $l = IO::Socket::INET->new(LocalPort => 7000, Listen => 5, ReuseAddr => 1);
while (my $c = $l->accept) { $c->autoflush(1);
  while (my $q = <$c>) { my $t = time; sleep 0.04; printf "think %f\\n", 1e3 * (time - $t); print $c '{"result":"' . ("r" x 200) . "\\"}\\n"; } }
"""
PERL_ASKS = """
use IO::Socket::INET; use Socket; use Time::HiRes qw(sleep time); $| = 1;
my $c = IO::Socket::INET->new(PeerAddr => "10.77.0.2:7000"); $c->autoflush(1);
setsockopt($c, SOL_SOCKET, SO_KEEPALIVE, 1); setsockopt($c, IPPROTO_TCP, 4, 1); setsockopt($c, IPPROTO_TCP, 5, 1);
for my $n (1 .. 5) { my $s = time; print $c '{"method":"work","id":' . $n . "}\\n"; <$c>; printf "ask %.0f %.0f\\n", $s * 1e9, time * 1e9; sleep($n == 2 ? 3.4 : 0.1); }
"""
near_and_far("perl-json-keep-alive", "sleep 1; perl c.pl", "exec perl s.pl", shaky(5), files={"s.pl": PERL_SERVES, "c.pl": PERL_ASKS}, each=lambda t: t.asked(), each_at=("near",), kind="jitter")
PHP = '<?php $t = hrtime(true); usleep(70000); fprintf(fopen("HERE/think.txt", "a"), "think %f\\n", (hrtime(true) - $t) / 1e6); echo str_repeat("x", 2000);\n'
near_and_far("php-new-connections", "sleep 1.5; php c.php", "exec php -S 0.0.0.0:7000 p.php > o 2>&1", lambda t, rtt: {
    "handshake@": 5 * rtt, "round-trip@": 5 * rtt, "server-think@server": t.waited() - 10 * rtt},
    files={"p.php": PHP, "c.php": '<?php for ($n = 0; $n < 5; $n++) { $s = microtime(true); file_get_contents("http://10.77.0.2:7000/$n"); printf("ask %d %d\\n", $s * 1e9, microtime(true) * 1e9); usleep(50000); }\n'}, each=None)
TCL_SERVES = """
proc got {c} { if {[gets $c line] < 0} { if {[eof $c]} { close $c }; return }
  set t [clock microseconds]; after 25; puts "think [expr ([clock microseconds] - $t) / 1000.0]"
  puts -nonewline $c "head of [string length $line]\\n"; flush $c; puts -nonewline $c "[string repeat b 400]\\n"; flush $c }
proc came {c a p} { fconfigure $c -blocking 0 -buffering full -translation lf; fileevent $c readable [list got $c] }
fconfigure stdout -buffering line
socket -server came 7000; vwait forever
"""
TCL_ASKS = """
set c [socket 10.77.0.2 7000]; fconfigure $c -translation lf -buffering line
proc now {} { return "[clock microseconds]000" }
for {set n 0} {$n < 6} {incr n} { set s [now]; puts $c "question $n"; gets $c; gets $c; puts "ask $s [now]"; after 60 }
"""
near_and_far("tcl-two-flushes", "sleep 1; tclsh c.tcl", "exec tclsh s.tcl", spent(6, extra=15, left="nagle|nagle-delayed-ack@server"), files={"s.tcl": TCL_SERVES, "c.tcl": TCL_ASKS}, each=lambda t: t.asked(), low=1.0)
R_MASTER = """
library(parallel)
l <- serverSocket(7000); w <- socketAccept(l, blocking = TRUE, open = "a+b", timeout = 60)
now <- function() format(as.numeric(Sys.time()) * 1e9, scientific = FALSE, digits = 20)
for (n in 1:6) { s <- now(); serialize(list(n = n, data = rnorm(20)), w, xdr = FALSE); r <- unserialize(w); cat("ask", s, now(), "\\n"); Sys.sleep(0.1) }
close(w)
"""
R_WORKER = """
Sys.sleep(2); w <- socketConnection("10.77.0.2", 7000, blocking = TRUE, open = "a+b", timeout = 60)
repeat { q <- tryCatch(unserialize(w), error = function(e) quit()); t <- Sys.time(); Sys.sleep(0.06); cat("think", 1e3 * as.numeric(Sys.time() - t), "\\n"); serialize(list(r = rnorm(60)), w, xdr = FALSE) }
"""
near_and_far("r-worker-is-asked", "Rscript near.R", "exec Rscript far.R", lambda t, rtt: {
    "handshake@": rtt, "round-trip@": 6 * rtt, "server-think@client": (logged(t, "near.out", "think"), logged(t, "near.out", "think") + 25)},
    files={"near.R": R_WORKER, "far.R": R_MASTER}, guess=True)
SBCL = """
(require :sb-bsd-sockets)
(defvar *s* (make-instance 'sb-bsd-sockets:inet-socket :type :stream :protocol :tcp))
(defun now () (multiple-value-bind (s u) (sb-ext:get-time-of-day) (+ (* s 1000000000) (* u 1000))))
"""
near_and_far("lisp-lines", "sleep 2; sbcl --script c.lisp", "exec sbcl --script s.lisp", spent(6, extra=15, left=LOST), files={
    "s.lisp": SBCL + """
(setf (sb-bsd-sockets:sockopt-reuse-address *s*) t)
(sb-bsd-sockets:socket-bind *s* #(0 0 0 0) 7000) (sb-bsd-sockets:socket-listen *s* 5)
(let ((f (sb-bsd-sockets:socket-make-stream (sb-bsd-sockets:socket-accept *s*) :input t :output t :buffering :full)))
  (loop for line = (read-line f nil) while line do
    (let ((a (now))) (sleep 0.018) (format t "think ~f~%" (/ (- (now) a) 1d6)) (finish-output)
      (write-line (make-string 900 :initial-element #\\x) f) (finish-output f))))
""", "c.lisp": SBCL + """
(sb-bsd-sockets:socket-connect *s* #(10 77 0 2) 7000)
(let ((f (sb-bsd-sockets:socket-make-stream *s* :input t :output t :buffering :full)))
  (dotimes (n 6) (let ((a (now))) (format f "question ~d~%" n) (finish-output f) (read-line f) (format t "ask ~d ~d~%" a (now))) (sleep 0.05)))
"""}, each=lambda t: t.asked(), kind="lost reply")

# Files, by download managers and others.

near_and_far("aria2-four-parts", "sleep 1.5; " + TIMED.format("aria2c -q -x4 -s4 -k1M --allow-overwrite=true -o got http://10.77.0.2:7000/big.bin"), "head -c 4200000 /dev/urandom > big.bin; exec h2o -c h2o.conf",
             lambda t, rtt: {"handshake@": (2 * rtt, 8 * rtt), "round-trip@": (2 * rtt, 10 * rtt), "bandwidth|queueing|slow-start|slow-start-after-idle|congestion-window|receive-window|delayed-ack-cwnd|loss|rto@": lambda elapsed: (0.98 * elapsed - 10 * rtt, elapsed)},
             files={"h2o.conf": "listen: 7000\nuser: root\nhosts:\n  default:\n    paths:\n      /:\n        file.dir: HERE\n"}, kind="rate")
near_and_far("wget-limits-its-rate", "sleep 1; " + TIMED.format("wget -q --limit-rate=400k -O /dev/null http://10.77.0.2:7000/big.bin"), "head -c 1500000 /dev/urandom > big.bin; exec mini_httpd -D -p 7000 -d $PWD -u root",
             lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "receiver-think|receive-window@client": lambda elapsed: (0.6 * elapsed, elapsed), "slow-start|congestion-window|sender-think|bandwidth|send-buffer@": lambda elapsed: (0, 0.25 * elapsed), "server-think@server": (0, 30)},
             near_sysctl=["net.ipv4.tcp_rmem=4096 131072 262144"])
near_and_far("lftp-active", "sleep 1.5; " + TIMED.format("lftp -c 'set ftp:passive-mode off; set net:timeout 5; open -u u,p 10.77.0.2:7000; get f -o got'"), "head -c 1200000 /dev/urandom > f; exec python3 serve.py",
             lambda t, rtt: {"handshake@": 2 * rtt, "round-trip@": None, "server-think@": (0, 150), "bandwidth|slow-start|congestion-window|queueing|receive-window@": (1850, 2100)},
             files={"serve.py": "from pyftpdlib.authorizers import DummyAuthorizer\nfrom pyftpdlib.handlers import FTPHandler\nfrom pyftpdlib.servers import FTPServer\na = DummyAuthorizer(); a.add_user('u', 'p', '.', perm='elradfmw'); FTPHandler.authorizer = a\nFTPServer(('0.0.0.0', 7000), FTPHandler).serve_forever()\n"}, kind="rate")
asks("telnet-keystrokes", "exec socat TCP-LISTEN:7000,reuseaddr EXEC:'/usr/sbin/telnetd -h -E ./sh'", PLAIN + """
import re
def until(n):
    data = b""
    while n not in data:
        got = s.recv(4096)
        for c in re.findall(b"\\xff[\\xfb-\\xfe].", got): s.sendall(bytes([255, 253 if c[1] == 251 and c[2] in (1, 3) else 252 if c[1] == 253 else 254, c[2]])) if c[1] in (251, 253) else 0
        data += got
until(b"ready"); time.sleep(0.5)
for c in "hello there": start = now(); s.sendall(c.encode()); until(c.encode()); asked(start); time.sleep(0.13)
""", lambda t, rtt: {"handshake@": None, "round-trip|queueing@": (12 * rtt, t.waited() + 10 * rtt), "server-think@server": (0, 200), "sender-think@": (0, 60)}, files={"sh": "#!/bin/sh\necho ready\nexec cat\n"}, kind="jitter", host_setup={"far": ["chmod +x sh"]})
asks("distcc-compiles", "chmod 777 . ; mkdir -p bin; for n in gcc x86_64-linux-gnu-gcc; do cp wrap bin/$n; chmod +x bin/$n; done; export PATH=$PWD/bin:$PATH; exec distccd --no-detach --daemon -p 7000 -a 0.0.0.0/0 -j 1 --enable-tcp-insecure --log-file $PWD/dlog --user nobody", """
import os, subprocess
os.makedirs("dd")
env = dict(os.environ, DISTCC_HOSTS="10.77.0.2:7000/1", DISTCC_FALLBACK="0", DISTCC_DIR=os.getcwd() + "/dd")
for n in range(3):
    open(f"x{n}.c", "w").write("".join(f"int f{i}_{n}(int a) {{ return a * {i}; }}\\n" for i in range(900)))
    subprocess.run(["distcc", "gcc", "-c", f"x{n}.c", "-o", f"x{n}.o"], env=env); time.sleep(0.1)
""", lambda t, rtt: {"handshake@": 3 * rtt, "round-trip@": (3 * rtt, 6 * rtt), "server-think@server": (logged(t, "think.txt", "think"), logged(t, "think.txt", "think") + 60), GROWTH: None, "sender-think@client": (0, 20)},
     files={"wrap": "#!/bin/sh\nS=$(date +%s%N)\n/usr/bin/gcc \"$@\"\nR=$?\nsleep 0.15\nE=$(date +%s%N)\necho think $(( (E - S) / 1000 )) | awk '{print $1, $2 / 1000}' >> HERE/think.txt\nexit $R\n"}, each=None, kind="lost request")
near_and_far("tinyproxy-forwards", "sleep 3; " + repeated("http://127.0.0.1:7001/a", 4).replace("curl ", "curl --noproxy '' -x http://10.77.0.2:7000 ", 1), "python3 backend.py & exec tinyproxy -d -c t.conf",
             lambda t, rtt: {"handshake@": (rtt, 4 * rtt), "round-trip@": 4 * rtt, "server-think@server": (4 * 80, 4 * 80 + 60)},
             files={"t.conf": "Port 7000\nListen 0.0.0.0\nTimeout 60\nMaxClients 20\nAllow 10.77.0.0/24\nLogLevel Error\n", "backend.py": BACKEND}, tap=HERE, kind="overtaken")
near_and_far("ssh-socks", "sleep 1.5; ssh -p 7000 -i near_key -o UserKnownHostsFile=/dev/null -o StrictHostKeyChecking=no -N -D 127.0.0.1:1080 root@10.77.0.2 2> sshlog & sleep 5; " + repeated("http://127.0.0.1:7001/a", 4).replace("curl ", "curl --noproxy '' --socks5 127.0.0.1:1080 ", 1) + "; sleep 0.3",
             "ssh-keygen -q -t ed25519 -N '' -f host_key; ssh-keygen -q -t ed25519 -N '' -f near_key; cp near_key.pub auth; chmod 600 auth; mkdir -p /run/sshd; python3 backend.py & exec /usr/sbin/sshd -D -f /dev/null -p 7000 -h $PWD/host_key -o AuthorizedKeysFile=$PWD/auth -o StrictModes=no -o PidFile=none",
             lambda t, rtt: {"handshake@": rtt, "round-trip@": None, "server-think@server": (320, 700), "sender-think@": (0, 120), "server-think@client": (0, 60), "tls-handshake@": None,
                             # OpenSSH sets TCP_NODELAY after it has logged in: its first request follows NEWKEYS.
                             "nagle|nagle-delayed-ack@client": (rtt, rtt + 60)}, files={"backend.py": BACKEND}, tap=HERE, guess=False)

# TLS in front, mail, news, queues, and what else is asked in an odd way.

HITCH = 'frontend = "[*]:7000"\nbackend = "[127.0.0.1]:7001"\npem-file = "HERE/c.pem"\nuser = "nobody"\ndaemon = off\nquiet = on\n'
near_and_far("hitch-tls", "sleep 3; " + repeated("https://10.77.0.2:7000/a", 4).replace("curl ", "curl -k ", 1),
             "openssl req -x509 -newkey rsa:2048 -nodes -keyout k -out c -days 2 -subj /CN=x; cat k c > c.pem; chmod 644 c.pem; python3 backend.py & exec hitch --config=h.conf",
             lambda t, rtt: {"handshake@": rtt, "round-trip@": 4 * rtt, "tls-handshake@": (rtt, 2 * rtt), "server-think@server": (320, 400), "server-think@client": (0, 30), LOST: (total(t) - 6 * rtt - 420, total(t) - 6 * rtt - 320)},
             files={"h.conf": HITCH, "backend.py": BACKEND}, tap=HERE, kind="lost reply")
DAV = """
import http.client
c = http.client.HTTPConnection("10.77.0.2", 7000); c.connect(); time.sleep(0.1)
def call(*a, **k):
    start = now(); c.request(*a, **k); c.getresponse().read(); asked(start); time.sleep(0.08)
call("OPTIONS", "/"); call("MKCOL", "/d/")
for n in range(3): call("PUT", f"/d/{n}", body=b"p" * 120000)
call("PROPFIND", "/d/", headers={"Depth": "1"}); call("GET", "/d/1"); call("DELETE", "/d/2")
"""
asks("webdav-session", "mkdir dav; exec python3 -m wsgidav.server.server_cli --host 0.0.0.0 --port 7000 --root dav --auth anonymous -q > o 2>&1", DAV,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": (8 * rtt, 10 * rtt), "server-think|sender-think@server": (0, 200), "sender-think@client": (0, 20), "nagle|nagle-delayed-ack@server": None,
                     "bandwidth|queueing|loss|rto|slow-start|slow-start-after-idle|congestion-window|receive-window@": lambda elapsed: (0, max(0.0, t.waited() - 8 * rtt))},
     kind="rate", wait=4.0)
asks("stomp-receipts", "exec coilmq -b 0.0.0.0 -p 7000 > o 2>&1", PLAIN + """
def frame():
    data = b""
    while not data.endswith(b"\\0"): data += s.recv(4096)
def send(text): s.sendall(text.encode() + b"\\0")
send("CONNECT\\naccept-version:1.0\\nhost:x\\n\\n"); frame(); time.sleep(0.1)
for n in range(8): start = now(); send(f"SEND\\ndestination:/queue/a\\nreceipt:r{n}\\n\\n" + "m" * 400); frame(); asked(start); time.sleep(0.07)
""", lambda t, rtt: {"handshake@": rtt, "round-trip@": 9 * rtt, "server-think|bandwidth|queueing@": t.waited() - 8 * rtt}, kind="rate", wait=3.0, each_at=("near",))
asks("websocketd-script", "exec websocketd --port=7000 --address=0.0.0.0 ./w.sh", PLAIN + """
import os
s.sendall(b"GET / HTTP/1.1\\r\\nHost: far-end\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\nSec-WebSocket-Version: 13\\r\\n\\r\\n")
data = b""
while b"\\r\\n\\r\\n" not in data: data += s.recv(4096)
time.sleep(0.3)
for n in range(6): start = now(); s.sendall(bytes([0x81, 0x80 + 20, 0, 0, 0, 0]) + b"q" * 20); read(122); asked(start); time.sleep(0.11)
""", lambda t, rtt: {"handshake@": rtt, "round-trip@": 7 * rtt, "server-think@server": (t.waited() - 6 * rtt, t.waited() - 6 * rtt + 60)},
     files={"w.sh": "#!/usr/bin/env python3\nimport sys, time\nfor line in sys.stdin:\n    time.sleep(0.035)\n    print('a' * 120, flush=True)\n"}, kind="overtaken", each_at=("near",), host_setup={"far": ["chmod +x w.sh"]})
asks("nntp-articles", "exec socat TCP-LISTEN:7000,reuseaddr,fork EXEC:'python3 news.py'", """
import nntplib
c = nntplib.NNTP("10.77.0.2", 7000)
def timed(f, *a):
    start = now(); f(*a); asked(start)
timed(c.group, "x.y"); time.sleep(0.1)
for n in range(1, 7): timed(c.article, str(n)); time.sleep(0.05)
timed(c.over, (1, 40)); c.quit()
""", lambda t, rtt: {"handshake@": rtt, "round-trip@": (9 * rtt, 14 * rtt), "server-think@server": (t.waited() - 12 * rtt, t.waited() - 8 * rtt + 120), GROWTH: (0, 6 * rtt), "nagle|nagle-delayed-ack@server": (0, 8 * rtt), "sender-think@server": (0, 20)},
     files={"news.py": """import sys, time
def out(*lines): sys.stdout.write("".join(l + "\\r\\n" for l in lines)); sys.stdout.flush()
out("200 hello")
for line in sys.stdin:
    word = line.split()[0].upper()
    if word == "GROUP": out("211 40 1 40 x.y")
    elif word == "ARTICLE": time.sleep(0.02); out("220 1 <a@b>", "From: a", "Subject: b", "", *["text of a line" for _ in range(300)], ".")
    elif word in ("OVER", "XOVER"): time.sleep(0.06); out("224 follows", *[f"{n}\\ts\\tf\\td\\t<{n}@b>\\t\\t10\\t2" for n in range(1, 41)], ".")
    elif word == "QUIT": out("205 bye"); break
    elif word in ("CAPABILITIES", "HELP"): out("101 list", "VERSION 2", "READER", "OVER", ".")
    else: out("500 what")
"""}, kind="", each=None)
asks("pymysql-statements", __import__("programs").MARIA, """
import pymysql
c = pymysql.connect(host="10.77.0.2", port=7000, user="root", database="mysql"); k = c.cursor(); time.sleep(0.1)
def timed(q):
    start = now(); k.execute(q); k.fetchall(); asked(start); time.sleep(0.05)
for n in range(5): timed("select sleep(%.2f)" % (0.02 + 0.05 * (n % 2)))
for n in range(3): timed("select seq from seq_1_to_2000")
""", lambda t, rtt: {"handshake@": rtt, "round-trip@": (8 * rtt, 13 * rtt), "server-think@server": (160, 300), LOST.replace("@", "|receive-window|bandwidth@"): (0, t.waited() - 8 * rtt - 160), "sender-think@server": (0, 20)}, kind="lost reply", each=None)
asks("s3-puts-and-ranges", "exec python3 -m moto.server -H 0.0.0.0 -p 7000 > o 2>&1", """
import boto3
from botocore.config import Config
c = boto3.client("s3", endpoint_url="http://10.77.0.2:7000", aws_access_key_id="a", aws_secret_access_key="b", region_name="us-east-1", config=Config(retries={"max_attempts": 1}))
def timed(f, **k):
    start = now(); r = f(**k); r["Body"].read() if "Body" in r else 0; asked(start); time.sleep(0.1)
timed(c.create_bucket, Bucket="bucket"); timed(c.put_object, Bucket="bucket", Key="k", Body=b"s" * 400000)
for n in range(3): timed(c.get_object, Bucket="bucket", Key="k", Range="bytes=%d-%d" % (n * 50000, n * 50000 + 49999))
timed(c.list_objects_v2, Bucket="bucket")
""", lambda t, rtt: {"handshake@": (rtt, 6 * rtt), "round-trip@": (6 * rtt, 9 * rtt), "server-think|sender-think|nagle|nagle-delayed-ack@": (0, 900), GROWTH.replace("@", "|queueing@"): None}, kind="rate", wait=5.0, each=None)
asks("socat-chain", "socat TCP-LISTEN:7001,reuseaddr,fork EXEC:'python3 echo.py' & exec socat TCP-LISTEN:7000,reuseaddr,fork TCP:127.0.0.1:7001", """
import socket, subprocess
p = subprocess.Popen(["socat", "TCP-LISTEN:7009,reuseaddr", "TCP:10.77.0.2:7000"]); time.sleep(0.4)
s = socket.create_connection(("127.0.0.1", 7009)); time.sleep(0.8)
for n in range(7): start = now(); s.sendall(b"q" * 199 + b"\\n"); s.recv(4096); asked(start); time.sleep(0.05)
s.close(); p.wait(3)
""", lambda t, rtt: {"handshake@": rtt, "round-trip@": 7 * rtt, "server-think@server": (t.waited() - 7 * rtt - 10, t.waited() - 7 * rtt)}, tap=HERE, kind="", each=None,
     files={"echo.py": "import sys, time\nfor line in sys.stdin: time.sleep(0.028); sys.stdout.write(line); sys.stdout.flush()\n"})
# What SFTP asks for at once is a window of its own: two requests of 32 KB.
near_and_far("sftp-two-requests", "sleep 1.5; " + TIMED.format("sftp -q -P 7000 -i near_key -R 2 -B 32768 -o UserKnownHostsFile=/dev/null -o StrictHostKeyChecking=no root@10.77.0.2:$PWD/f got 2> sshlog"),
             "head -c 700000 /dev/urandom > f; ssh-keygen -q -t ed25519 -N '' -f host_key; ssh-keygen -q -t ed25519 -N '' -f near_key; cp near_key.pub auth; chmod 600 auth; mkdir -p /run/sshd; exec /usr/sbin/sshd -D -f /dev/null -p 7000 -h $PWD/host_key -o AuthorizedKeysFile=$PWD/auth -o StrictModes=no -o PidFile=none -o Subsystem='sftp internal-sftp'",
             lambda t, rtt: {"handshake@": rtt, "round-trip@": None, "application-window|slow-start|congestion-window|receive-window|bandwidth@": None, "server-think@server": (0, 450), "sender-think@": (0, 100), "server-think@client": (0, 60), "tls-handshake@": None,
                             "nagle|nagle-delayed-ack@client": (rtt, rtt + 60), "nagle|nagle-delayed-ack@server": (0, rtt + 60)}, low=5.0)
SANIC = """
import sys
sys.argv[0] = "serve.py"
from sanic import Sanic
from sanic.response import ResponseStream
app = Sanic("far")
@app.get("/rows")
async def rows(request):
    async def body(response):
        for n in range(6):
            if n: start = now(); await asyncio.sleep(0.11); took("pause", start)
            await response.write("r" * 700)
    return ResponseStream(body, content_type="text/plain")
@app.get("/works")
async def works(request):
    from sanic.response import text
    start = now(); await asyncio.sleep(0.05); took("think", start); return text("w" * 900)
if __name__ == "__main__": app.run("0.0.0.0", 7000, single_process=True, access_log=False, motd=False)
"""
asks("sanic-rows-for-aiohttp", "exec python3 serve.py", """
import aiohttp
async def main():
    async with aiohttp.ClientSession() as c:
        for n in range(4):
            for path in ("works", "rows"):
                start = now()
                async with c.get(f"http://10.77.0.2:7000/{path}") as r: await r.read()
                asked(start) ; await asyncio.sleep(0.06 if n != 2 else 1.4)
asyncio.run(main())
""", spent(8, extra=40), files={"serve.py": ASK + SANIC}, wait=4.0, each=None, kind="overtaken")
GEVENT = """
from gevent import monkey; monkey.patch_all()
from gevent.pywsgi import WSGIServer
def app(environ, begin):
    size = int(environ.get("CONTENT_LENGTH") or 0)
    environ["wsgi.input"].read(size); start = now(); time.sleep(0.033); took("think", start)
    begin("200 OK", [("Content-Type", "text/plain")]); return [b"x" * 300, b"y" * 300]
WSGIServer(("0.0.0.0", 7000), app, log=None).serve_forever()
"""
asks("gevent-posts-small-buffer", "exec python3 serve.py", """
import http.client, socket
c = http.client.HTTPConnection("10.77.0.2", 7000); c.connect(); c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16384); time.sleep(0.1)
for n in range(4): start = now(); c.request("POST", "/", b"p" * 150000); c.getresponse().read(); asked(start); time.sleep(0.1)
""", lambda t, rtt: {"handshake@": rtt, "round-trip@": 4 * rtt, "server-think@server": (logged(t, "far.out", "think"), logged(t, "far.out", "think") + 25), "sender-think@server": (0, 15), "nagle|nagle-delayed-ack@server": None,
                     "send-buffer|slow-start|slow-start-after-idle|congestion-window@client": (t.waited() - 4 * rtt - logged(t, "far.out", "think") - 6 * rtt - 40, t.waited() - 4 * rtt - logged(t, "far.out", "think"))},
     files={"serve.py": ASK + GEVENT}, low=4.0, each=lambda t: t.asked(), wait=3.0)
near_and_far("mojo-asks-cheroot", "sleep 2; perl c.pl", "exec python3 serve.py", spent(6, extra=40, asked_setups=1, left=LOST), kind="lost request", files={"c.pl": """
use Mojo::UserAgent; use Time::HiRes qw(time sleep); $| = 1;
my $ua = Mojo::UserAgent->new;
for my $n (1 .. 6) { my $s = time; $ua->get("http://10.77.0.2:7000/$n")->result->body; printf "ask %.0f %.0f\\n", $s * 1e9, time * 1e9; sleep 0.07 }
""", "serve.py": ASK + """
from cheroot.wsgi import Server
def app(environ, begin):
    start = now(); time.sleep(0.04); took("think", start)
    begin("200 OK", [("Content-Length", "800")]); return [b"c" * 800]
Server(("0.0.0.0", 7000), app).start()
"""})
ERLANG = """-module(w). -export([far/0, near/0, work/1]).
work(Ms) -> T = erlang:monotonic_time(), timer:sleep(Ms), io:format("think ~f~n", [erlang:convert_time_unit(erlang:monotonic_time() - T, native, microsecond) / 1000]), lists:duplicate(200, $x).
far() -> register(waits, self()), receive stop -> ok end.
near() -> pong = net_adm:ping('far@10.77.0.2'), timer:sleep(300), lists:foreach(fun(N) ->
  S = os:system_time(nanosecond), rpc:call('far@10.77.0.2', w, work, [20 + 30 * (N rem 2)], 9000), io:format("ask ~B ~B~n", [S, os:system_time(nanosecond)]), timer:sleep(80) end, lists:seq(1, 7)), timer:sleep(200), halt().
"""
near_and_far("erlang-nodes", "sleep 3; erl -noshell -name near@10.77.0.1 -setcookie c -s w near", "erlc w.erl; epmd -daemon; exec erl -noshell -name far@10.77.0.2 -setcookie c -s w far",
             lambda t, rtt: {"handshake@": (2 * rtt, 3 * rtt), "round-trip@": None, "server-think|sender-think@server": (logged(t, "near.out", "think"), logged(t, "near.out", "think") + 120), "sender-think@client": (0, 40), "server-think@client": (0, 30)}, files={"w.erl": ERLANG}, tap=HERE)
near_and_far("nim-asks-busybox", "nim c --hints:off --verbosity:0 -o:c c.nim > nim.log 2>&1; ./c", "mkdir -p cgi-bin; cp h.sh cgi-bin/h; chmod +x cgi-bin/h; exec busybox httpd -f -p 7000 -h $PWD -u root",
             lambda t, rtt: {"handshake@": 5 * rtt, "round-trip@": 5 * rtt, "server-think|sender-think@server": (t.waited() - 10 * rtt - 40, t.waited() - 10 * rtt)}, kind="lost reply", files={"c.nim": """
import std/[httpclient, os, times]
proc now(): int64 = (epochTime() * 1e9).int64
for n in 1 .. 5:
  let c = newHttpClient()
  let s = now(); discard c.getContent("http://10.77.0.2:7000/cgi-bin/h"); echo "ask ", s, " ", now(); c.close(); sleep(60)
""", "h.sh": "#!/bin/sh\nsleep 0.08\nprintf 'Content-Type: text/plain\\r\\n\\r\\nhello there\\n'\n"}, each=None)
near_and_far("axel-three-connections", "sleep 1; " + TIMED.format("axel -q -n 3 -o got http://10.77.0.2:7000/big.bin"), "head -c 1800000 /dev/urandom > big.bin; exec lighttpd -D -f l.conf",
             lambda t, rtt: {"handshake@": (2 * rtt, 5 * rtt), "round-trip@": (2 * rtt, 5 * rtt), "bandwidth|queueing|slow-start|congestion-window|receive-window|loss|rto|delayed-ack-cwnd@": lambda elapsed: (elapsed - 6 * rtt, elapsed - 4 * rtt)},
             files={"l.conf": 'server.document-root = "HERE"\nserver.port = 7000\n'}, kind="lossy rate")
near_and_far("carbon-lines", "sleep 4; python3 c.py", "exec python3 sink.py", lambda t, rtt: {"handshake@": None, "round-trip@": None, "sender-think@client": (0, 20), "server-think@": (0, 5), "queueing@": None, "nagle|nagle-delayed-ack@client": None}, files={"c.py": """
import socket, time
s = socket.create_connection(("10.77.0.2", 7000))
for n in range(12):
    for i in range(5): s.sendall(b"host%d.cpu.user %d %d\\n" % (i, n * i, time.time()))
    time.sleep(0.31)
s.close()
""", "sink.py": "import socket\nc = socket.create_server(('', 7000)).accept()[0]\nwhile c.recv(65536): pass\n"}, kind="jitter", guess=True)

# Habits: slow readers, bursts after idle times, pauses as long as timers, banners, a queue that others fill.

UPLOAD = "head -c 1200000 /dev/urandom > up.bin; sleep 1; " + TIMED.format("curl -s -o /dev/null -H 'Expect:' -T up.bin http://10.77.0.2:7000/up")
near_and_far("perl-reads-slowly", UPLOAD, "exec perl s.pl", lambda t, rtt: {
    "handshake@": rtt, "round-trip@": rtt, "receiver-think|receive-window|server-think@server": lambda elapsed: (0.55 * elapsed, elapsed),
    "slow-start|congestion-window|bandwidth@": lambda elapsed: (0, 0.3 * elapsed), "sender-think@client": (0, 20)},
    files={"s.pl": """
use IO::Socket::INET; use Time::HiRes qw(sleep);
my $l = IO::Socket::INET->new(LocalPort => 7000, Listen => 5, ReuseAddr => 1); my $c = $l->accept; my ($head, $got, $part) = ("", 0);
while ($head !~ /\\r\\n\\r\\n/) { sysread($c, $part, 1) or last; $head .= $part }
while ($got < 1200000) { my $n = sysread($c, $part, 32768) or last; $got += $n; sleep 0.03 }
print $c "HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok"; $c->flush; sleep 1;
"""}, far_sysctl=["net.ipv4.tcp_rmem=4096 131072 262144"])
near_and_far("ruby-streams-bbr", "sleep 1; ruby c.rb", "exec ruby s.rb", spent(1, extra=30, **{"slow-start|congestion-window|bandwidth|queueing|receive-window@": (0, 200)}), files={"s.rb": """
require "socket"
$stdout.sync = true
def ms = Process.clock_gettime(Process::CLOCK_MONOTONIC, :float_millisecond)
c = TCPServer.new(7000).accept; c.gets
8.times { |n| (t = ms; sleep 0.25; puts "pause #{ms - t}") if n > 0; c.write "x" * 48000 }
c.close
""", "c.rb": """
require "socket"
def now = Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond)
c = TCPSocket.new("10.77.0.2", 7000); s = now; c.puts "all"; c.read; puts "ask #{s} #{now}"
"""}, congestion="bbr", kind="", high=40.0)
near_and_far("php-burst-after-idle", "sleep 1; php c.php", "exec php s.php", lambda t, rtt: {
    "handshake@": rtt, "round-trip@": 3 * rtt, "slow-start-after-idle|slow-start|congestion-window|receive-window|bandwidth@": (t.waited() - 3 * rtt - 25, t.waited() - 3 * rtt), "server-think@server": (0, 10)},
    files={"s.php": '<?php $l = stream_socket_server("tcp://0.0.0.0:7000"); $c = stream_socket_accept($l, 60); while (fgets($c) !== false) { $b = str_repeat("x", 149999) . "\\n"; for ($at = 0; $at < strlen($b); $at += fwrite($c, substr($b, $at, 65536))); }\n',
           "c.php": '<?php $c = stream_socket_client("tcp://10.77.0.2:7000"); for ($n = 0; $n < 3; $n++) { $s = microtime(true); fwrite($c, "go\\n"); stream_get_line($c, 1 << 20, "\\n"); printf("ask %d %d\\n", $s * 1e9, microtime(true) * 1e9); usleep($n == 1 ? 2600000 : 90000); }\n'}, each=lambda t: t.asked(), low=8.0)
asks("banner-late-and-closes", "exec python3 s.py", """
import socket
for n in range(4):
    s = socket.create_connection(("10.77.0.2", 7000)); start = now()
    while s.recv(4096): pass
    asked(start); s.close(); time.sleep(0.1)
""", lambda t, rtt: {"handshake@": 4 * rtt, "round-trip@": (0, 4 * rtt), "server-think@server": (logged(t, "far.out", "think") - 5, logged(t, "far.out", "think") + 15)},
     files={"s.py": ASK + "import socket\nl = socket.create_server(('', 7000))\nwhile True: c = l.accept()[0]; start = now(); time.sleep(0.15); took('think', start); c.sendall(b'12:00:00\\r\\n'); c.close()\n"}, each=None, kind="")
# Pauses of 40 ms and 200 ms: a delayed acknowledgement's and a retransmission's.
TRAPS = """
import socket
c = socket.create_server(("", 7000)).accept()[0]; c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
n = 0
while (q := c.recv(4096)):
    start = now(); time.sleep(0.2 if n % 2 else 0.04); took("think", start); c.sendall(b"h" * 90)
    start = now(); time.sleep(0.04 if n % 2 else 0.2); took("pause", start); c.sendall(b"b" * 410); n += 1
"""
for name, kind, more in (("sleeps-like-timers", "", {}), ("sleeps-like-timers-no-stamps", "", {"far_sysctl": ["net.ipv4.tcp_timestamps=0"]}),
                         ("sleeps-like-timers-lossy", "lost reply", {})):
    asks(name, "exec python3 serve.py", PLAIN + "for n in range(6): start = now(); s.sendall(b'q' * 130); read(500); asked(start); time.sleep(0.08)\n",
         spent(6, extra=12, **({"left": LOST} if kind else {})), files={"serve.py": ASK + TRAPS}, kind=kind, **more)
near_and_far("keys-beside-upload", "sleep 1; ruby c.rb & sleep 1; head -c 2500000 /dev/zero | timeout 12 socat -u STDIN TCP:10.77.0.2:7001; wait", "socat -u TCP-LISTEN:7001,reuseaddr OPEN:/dev/null,wronly & exec ruby s.rb",
             lambda t, rtt: {"handshake@": 2 * rtt, "round-trip@": None, "queueing|bandwidth|slow-start|congestion-window|receive-window|loss|rto|send-buffer@": None, "server-think@server": (0, 30), "sender-think@client": (0, 80), "nagle|nagle-delayed-ack@client": None},
             files={"c.rb": """
require "socket"
def now = Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond)
c = TCPSocket.new("10.77.0.2", 7000); c.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
14.times { s = now; c.write "k"; c.read 1; puts "ask #{s} #{now}"; sleep 0.17 }
""", "s.rb": """
require "socket"
c = TCPServer.new(7000).accept; c.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
while (k = c.read 1) do c.write k end
"""}, path="--delay 17.0ms --seed 5 --rate 10mbit --queue 150ms", tap="tcp", each=None)
near_and_far("privoxy-forwards", "sleep 3; " + repeated("http://127.0.0.1:7001/a", 4).replace("curl ", "curl --noproxy '' -x http://10.77.0.2:7000 ", 1), "python3 backend.py & exec privoxy --no-daemon p.conf",
             lambda t, rtt: {"handshake@": None, "round-trip|queueing@": (4 * rtt, 5 * rtt + 120), "server-think@server": (320, 440)},
             files={"p.conf": "listen-address 0.0.0.0:7000\ntoggle 0\nkeep-alive-timeout 30\ndebug 0\n", "backend.py": BACKEND}, tap=HERE, kind="jitter")
near_and_far("lua-lines-at-once", "sleep 1; lua5.4 c.lua", "exec lua5.4 s.lua", lambda t, rtt: {"handshake@": rtt, "round-trip@": (4 * rtt, 12 * rtt), "server-think@server": (0, t.waited() - 12 * rtt), "nagle|nagle-delayed-ack@": None, LOST: (200, 900), "sender-think@server": (0, 200)},
             files={"c.lua": """
local socket = require("socket")
local function ns(t) return string.format("%d", math.floor(t * 1e6) * 1000) end
local c = socket.connect("10.77.0.2", 7000)
for n = 1, 4 do
  local s = socket.gettime()
  c:send(("one " .. n .. "\\ntwo " .. n .. "\\nthree " .. n .. "\\n"))
  for i = 1, 3 do c:receive("*l"); io.write("ask ", ns(s), " ", ns(socket.gettime()), "\\n") end
  socket.sleep(0.15)
end
""", "s.lua": """
local socket = require("socket")
local l = socket.bind("*", 7000); local c = l:accept(); c:setoption("tcp-nodelay", true)
while true do local line = c:receive("*l"); if not line then break end; socket.sleep(0.015); c:send(string.rep("r", 200) .. "\\n") end
"""}, kind="lost request", each=None)
near_and_far("wget-new-connections-lossy", "sleep 1; for i in 1 2 3 4 5 6; do " + TIMED.format("wget -q -O /dev/null http://10.77.0.2:7000/page") + "; done", "head -c 24000 /dev/urandom > page; exec mini_httpd -D -p 7000 -d $PWD -u root",
             lambda t, rtt: {"handshake@": 6 * rtt, "round-trip@": 6 * rtt, "server-think@server": (0, 40), "sender-think@server": (0, 30), "loss|rto|slow-start|congestion-window|delayed-ack-cwnd|syn-retransmit|queueing@": (max(0.0, t.waited() - 12 * rtt - 120), t.waited() - 12 * rtt + 5), "send-buffer|nagle|nagle-delayed-ack@": (0, 60)}, kind="lossy", low=40.0)
near_and_far("guile-asks-small-mtu", "sleep 2; guile --no-auto-compile c.scm", "head -c 90000 /dev/zero | tr '\\0' z > f; echo >> f; exec python3 s.py", lambda t, rtt: {"handshake@": rtt, "round-trip@": 3 * rtt,
             "slow-start|congestion-window|receive-window|bandwidth|queueing|delayed-ack-cwnd@": lambda elapsed: (0, t.waited() - 3 * rtt - logged(t, "far.out", "think")), "server-think@server": (logged(t, "far.out", "think"), logged(t, "far.out", "think") + 15), "nagle|nagle-delayed-ack@client": (0, 3 * (rtt + 50))},
             files={"c.scm": """
(use-modules (ice-9 rdelim))
(define (now) (let ((t (gettimeofday))) (+ (* 1000000000 (car t)) (* 1000 (cdr t)))))
(define s (socket PF_INET SOCK_STREAM 0)) (connect s AF_INET (inet-pton AF_INET "10.77.0.2") 7000)
(do ((n 0 (+ n 1))) ((= n 3))
  (let ((a (now))) (display "get f\\n" s) (force-output s) (read-line s) (format #t "ask ~a ~a\\n" a (now))) (usleep 70000))
""", "s.py": ASK + "import socket\nc = socket.create_server(('', 7000)).accept()[0]\nwhile c.recv(100): start = now(); time.sleep(0.025); took('think', start); c.sendall(open('f', 'rb').read())\n"},
             kind="rate", host_setup={"near": ["ip link set DEV mtu 576"]}, each=None)
