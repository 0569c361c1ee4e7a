"""Transfers and faults in cipher, and how sessions begin, go on and end: small buffers, slow readers, losses, pauses, alerts, new keys.

Faults are recorded again without them, and what they cost by the program's own clock is what the bill must say.
"""

import subprocess

from cases import case
from ciphers import BEHIND, GO, JAVA_SERVER, NGINX, RUN_JAVA, TLS_URL, files
from hellos import ONLY_1_2, ONLY_1_3
from more import NEAR_ONLY, SLOW_WAY, warm
from peer import FAR
from programs import BACKEND, CURL, write
from services import logged, repeated
from waits import ASK
from whispers import SOCKET

BIG = 5_000_000


def conf(options="", listen=""):
    text = NGINX.replace("HTTP2", listen).replace("OPTIONS", options)
    return text.replace("keepalive_timeout 60;", "") if "keepalive_timeout" in options else text


def serves(options=ONLY_1_3, listen="", size=BIG, **texts):
    return files(nginx__conf=conf(options, listen), backend__py=BACKEND, big__bin="x" * size, **texts)


SERVES = "exec nginx -p . -c nginx.conf"
FETCH = CURL + f"-k --http1.1 {TLS_URL}/big.bin"


def more(t):
    """What the fault cost, by the asker's clock."""
    return t.waited() - t.fixed.waited()


def transfer(where, trips=1, start=12, **others):
    """Most of what a transfer took beyond its repaired run is one thing; a window that a reader's system limits is there in that run as well."""
    return lambda t, rtt: {"handshake@": rtt, "round-trip|tls-handshake@": ((1 + trips) * rtt, (2 + trips) * rtt), where: (0.8 * more(t) - 10, t.waited() if "receive-window" in where else more(t) + start * rtt), "slow-start|congestion-window|receive-window@": (0, start * rtt),
                           "server-think|sender-think@": (0, 40), "bandwidth@": (0, 60), **others}


def fault(name, near, far, expect, fix, changed, make, path=SLOW_WAY, **options):
    case(name, near, far, expect, path=path, tap=NEAR_ONLY, fix=fix, changed=changed, files=make, **options)


# A reader that is slow, one whose buffer is set small, a server whose buffer is, a small window after each pause, a segment that is lost.

fault("tls-slow-reader", "sleep 1; " + FETCH.replace("-k", "-k --limit-rate 1500k"), SERVES, transfer("receiver-think|receive-window@client"), "read-promptly", {"near": "sleep 1; " + FETCH}, serves(), path="--delay 10ms",
      near_sysctl=["net.ipv4.tcp_rmem=4096 131072 262144"])
READS = """
import socket, ssl
raw = socket.socket(); OPTION; raw.connect(("10.77.0.2", 7000)); s = ssl._create_unverified_context().wrap_socket(raw); f = s.makefile("rb", buffering=65536)
start = now(); s.sendall(b"GET /big.bin HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n"); size = 0
while (line := f.readline()) != b"\\r\\n": size = int(line.split()[1]) if line.startswith(b"Content-Length") else size
f.read(size); asked(start)
"""
fault("tls-receive-buffer", "sleep 1; python3 client.py", SERVES, transfer("receive-window@client"), "no-rcvbuf", {"files": serves(size=900_000, client__py=ASK + READS.replace("OPTION", ""))},
      serves(size=900_000, client__py=ASK + READS.replace("OPTION", "raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32768)")))
fault("tls-send-buffer", "sleep 1; " + FETCH, SERVES, transfer("send-buffer@server"), "no-sndbuf", {"files": serves(size=900_000)}, serves(size=900_000, listen="sndbuf=24k"))
IDLES = ASK + """
import http.client, ssl
h = http.client.HTTPSConnection("10.77.0.2", 7000, context=ssl._create_unverified_context()); h.connect()
for n in range(4):
    if n: time.sleep(1.8)
    start = now(); h.request("GET", "/big.bin"); h.getresponse().read(); asked(start)
"""


def restarts(t, rtt):
    waits, others = ([end - start for start, end in each.asked()] for each in (t, t.fixed))
    cost = sum(waits[1:]) - sum(others[1:])
    return {"handshake@": rtt, "round-trip|tls-handshake@": (5 * rtt, 6 * rtt), "slow-start-after-idle@server": (0.8 * cost, sum(waits[1:]) - 3 * rtt),
            "slow-start|congestion-window|receive-window@": (0, waits[0] - rtt + sum(others[1:]) - 3 * rtt), "server-think|sender-think@": (0, 30)}


fault("tls-idle-restart", "sleep 1; python3 client.py", SERVES, restarts, "slow-start-after-idle-off", {"far_sysctl": ["net.ipv4.tcp_slow_start_after_idle=0"]}, serves(size=200_000, client__py=IDLES))
SINK = ASK.replace("print(\"ask\"", "print(\"no\"") + """
import socket, ssl
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); context.load_cert_chain("cert.pem", "key.pem"); l = socket.create_server(("", 7000)); raw, _ = l.accept(); raw.setsockopt(6, 1, 1); s = context.wrap_socket(raw, server_side=True); left = SIZE
while left: left -= len(s.recv(65536))
s.sendall(b"a" * 50); s.recv(1)
"""
SENDS = ASK + SOCKET + "start = now(); s.sendall(b'u' * SIZE); s.recv(50); asked(start)\n"
UPLOAD = files(server__py=SINK.replace("SIZE", "2000000"), client__py=SENDS.replace("SIZE", "2000000"))
fault("tls-upload-lossy", "sleep 1; python3 client.py", "exec python3 -u server.py", lambda t, rtt: {"handshake@": rtt, "round-trip|tls-handshake@": (2 * rtt, 3 * rtt), "loss|rto@": (0.5 * rtt, 4 * rtt),
      "congestion-window|slow-start@client": (more(t) - 4 * rtt, t.waited() - 2 * rtt), "receive-window@server": (0, 3 * rtt), "server-think|sender-think@": (0, 30)}, "find-drops", {"path": SLOW_WAY}, UPLOAD, path=SLOW_WAY + " --forward 'loss data 40'")
fault("tls-download-lossy", "sleep 1; " + FETCH, SERVES, lambda t, rtt: {"handshake@": rtt, "round-trip|tls-handshake@": (2 * rtt, 3 * rtt), "loss|rto@": (0.5 * rtt, 4 * rtt), "congestion-window|slow-start@server": (more(t) - 4 * rtt, t.waited() - 2 * rtt),
      "receive-window@client": (0, 4 * rtt), "server-think|sender-think@": (0, 30)}, "find-drops", {"path": SLOW_WAY}, serves(size=2_000_000), path=SLOW_WAY + " --backward 'loss data 60'")

# Two records to a question, and no TCP_NODELAY: Java, Node, Python.

ECHO = ASK.replace("print(\"ask\"", "print(\"no\"") + """
import socket, ssl
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); context.load_cert_chain("cert.pem", "key.pem"); l = socket.create_server(("", 7000)); raw, _ = l.accept(); raw.setsockopt(6, 1, 1); s = context.wrap_socket(raw, server_side=True)
while True:
    left = 350
    while left:
        got = len(s.recv(left)); left -= got
        if not got: sys.exit()
    s.sendall(b"a" * 300)
"""
JAVA_FIELDS = """
import java.io.*; import java.net.*; import javax.net.ssl.*; import java.security.cert.X509Certificate; import java.time.*;
public class F {
  static long now() { Instant i = Instant.now(); return i.getEpochSecond() * 1000000000L + i.getNano(); }
  public static void main(String[] a) throws Exception {
    SSLContext x = SSLContext.getInstance("TLS"); x.init(null, new TrustManager[] { new X509TrustManager() { public void checkClientTrusted(X509Certificate[] c, String s) {} public void checkServerTrusted(X509Certificate[] c, String s) {} public X509Certificate[] getAcceptedIssuers() { return new X509Certificate[0]; } } }, null);
    SSLSocket s = (SSLSocket) x.getSocketFactory().createSocket("10.77.0.2", 7000); OPTION s.startHandshake(); OutputStream out = s.getOutputStream(); InputStream in = s.getInputStream(); StringBuilder said = new StringBuilder();
    for (int n = 0; n < 20; n++) { long start = now(); out.write(new byte[100]); out.write(new byte[250]); in.readNBytes(300); said.append("ask " + start + " " + now() + "\\n"); Thread.sleep(30); }
    System.out.print(said); System.out.flush(); s.close(); } }
"""
NODE_FIELDS = """
const tls = require('tls'), off = BigInt(Date.now()) * 1000000n - process.hrtime.bigint(), now = () => process.hrtime.bigint() + off, waits = []; let start, n = 0, size = 0;
const ask = () => { start = now(); s.write('x'.repeat(100)); setImmediate(() => s.write('y'.repeat(250))); };
const s = tls.connect({ host: '10.77.0.2', port: 7000, rejectUnauthorized: false }, () => { s.setNoDelay(OPTION); ask(); });
s.on('data', d => { size += d.length; if (size < 300) return; size = 0; waits.push('ask ' + start + ' ' + now()); if (++n < 20) setTimeout(ask, 30); else { s.end(); console.log(waits.join('\\n')); } });
"""
PYTHON_FIELDS = ASK + SOCKET.replace("setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)", "setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, OPTION)") + """
for n in range(20):
    start = now(); s.sendall(b"x" * 100); s.sendall(b"y" * 250); size = 300
    while size: size -= len(s.recv(size))
    asked(start); time.sleep(0.03)
"""


def held(t, rtt):
    """The repaired run warms as slowly as this one; between them is what Nagle held."""
    return {"handshake@": rtt, "round-trip|tls-handshake@": (21 * rtt, 22 * rtt), "nagle|nagle-delayed-ack@client": (0.9 * more(t) - 20, more(t) + 40), "server-think|sender-think@server": (0, 40), "sender-think|server-think@client": (0, 250)}


for language, name, text, off, on in (("java", "F__java", JAVA_FIELDS, "", "s.setTcpNoDelay(true);"), ("node", "f__js", NODE_FIELDS, "false", "true"), ("python", "f__py", PYTHON_FIELDS, "0", "1")):
    run = {"java": "java F.java", "node": "node f.js", "python": "python3 f.py"}[language]
    fault(f"tls-{language}-two-records", f"sleep 1; {run}", "exec python3 -u server.py", held, "nodelay", {"files": files(server__py=ECHO, **{name: text.replace("OPTION", on)})}, files(server__py=ECHO, **{name: text.replace("OPTION", off)}), path="--delay 15ms")

# One thread for all that ask, and rows with pauses between them.

ONE = JAVA_SERVER.replace('Integer.parseInt(e.getRequestURI().getPath().substring(1))', "60").replace("s.start();", "POOL s.start();")
FOUR = f"for i in 1 2 3 4; do {repeated(TLS_URL + '/60', 4).replace('curl ', 'curl -k --http1.1 ', 1)} > c$i & done; wait; cat c?"
WARMS = f"sleep 4; for i in 1 2 3; do S=$(date +%s%N); curl -k -s -o /dev/null {TLS_URL}/60; echo warm $S $(date +%s%N); done; sleep 0.3; "
# Handshakes are that thread's as well, and so is what TLS computes.
fault("tls-java-one-thread", WARMS + FOUR, RUN_JAVA.replace("java S.java", "java -Dsun.net.httpserver.nodelay=true S.java"),
      lambda t, rtt: {"handshake@": 7 * rtt, "round-trip|tls-handshake@": (26 * rtt, 33 * rtt), "server-think|sender-think@server": (t.waited() - 24 * rtt - 60, t.waited() - 24 * rtt + warm(t)), "sender-think|server-think@client": (0, 60)}, "profile-server",
      {"files": files(S__java=ONE.replace("POOL", "s.setExecutor(java.util.concurrent.Executors.newFixedThreadPool(8));"))}, files(S__java=ONE.replace("POOL", "")), path="--delay 10ms")
GO_ROWS = GO.replace('ms, _ := strconv', 'if strings.HasPrefix(r.URL.Path, "/rows") { w.Write(make([]byte, 600)); w.(http.Flusher).Flush(); ms, _ := strconv.Atoi(r.URL.Path[5:]); for n := 0; n < 6; n++ { start := time.Now(); time.Sleep(time.Duration(ms) * time.Millisecond); '
                     'fmt.Println("pause", float64(time.Since(start).Microseconds()) / 1000); w.Write(make([]byte, 600)); w.(http.Flusher).Flush() }; return }; ms, _ := strconv')


def go_rows(directory):
    files()(directory)
    write(directory, "s.go", GO_ROWS)
    subprocess.run("GO111MODULE=off go build -o s s.go", shell=True, cwd=directory, check=True)


for version, flag in (("h1", "--http1.1"), ("h2", "--http2")):
    for ms in (30, 300):
        case(f"tls-go-rows-{version}-{ms}", "sleep 1; " + repeated(f"{TLS_URL}/rows{ms}", 3).replace("curl ", f"curl -k {flag} ", 1), "exec ./s",
             lambda t, rtt: {"handshake@": rtt, "round-trip|tls-handshake@": (4 * rtt, 6 * rtt), "sender-think@server": (logged(t, "far.out", "pause"), logged(t, "far.out", "pause") + 20), "server-think@server": (0, 25), "sender-think|server-think@client": (0, 20)},
             files=go_rows, path=SLOW_WAY, tap=NEAR_ONLY)

# A server that closes what is idle, and a client that opens again; sessions that go on in TLS 1.2.

REOPENS = """
import httpx
with httpx.Client(verify=False, http2=False, trust_env=False) as c:
    for n in range(5): start = now(); c.get("https://10.77.0.2:7000/slow"); asked(start); time.sleep((0.2, 1.7)[n % 2])
"""
case("tls-idle-closed", "sleep 2; python3 client.py", BEHIND + SERVES, lambda t, rtt: {"handshake@": 3 * rtt, "round-trip|tls-handshake@": (8 * rtt, 11 * rtt), "server-think@server": (400, 450), "sender-think|server-think@client": (0, 60), "sender-think@server": (0, 15)},
     files=serves(ONLY_1_3 + " keepalive_timeout 1;", size=9, client__py=ASK + REOPENS), path=SLOW_WAY, tap=NEAR_ONLY)
GO_RESUMES = """package main
import ("crypto/tls"; "fmt"; "io"; "net/http"; "time")
func main() {
  c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12, ClientSessionCache: tls.NewLRUClientSessionCache(9)}}}
  for n := 0; n < 5; n++ { start := time.Now().UnixNano(); r, err := c.Get("https://10.77.0.2:7000/slow"); if err != nil { panic(err) }
    io.Copy(io.Discard, r.Body); r.Body.Close(); fmt.Println("ask", start, time.Now().UnixNano()); time.Sleep(50 * time.Millisecond) } }
"""


def go_resumes(directory):
    serves("ssl_protocols TLSv1.2; ssl_session_cache shared:s:1m;", size=9)(directory)
    write(directory, "c.go", GO_RESUMES)
    subprocess.run("GO111MODULE=off go build -o c c.go", shell=True, cwd=directory, check=True)


# A session that is not known takes two round trips, and one that is takes one (RFC 5246, 7.3).
case("tls-1.2-goes-on", "sleep 2; ./c", BEHIND + SERVES, lambda t, rtt: {"handshake@": 5 * rtt, "round-trip|tls-handshake@": (11 * rtt, 16 * rtt), "server-think@server": (400, 450), "sender-think|server-think@client": (0, 30), "sender-think@server": (0, 15)},
     files=go_resumes, path=SLOW_WAY, tap=NEAR_ONLY)

# New keys, and new negotiations, on a session under way (RFC 8446, 4.6.3; RFC 5746).

SPEAKS = ASK + """
import subprocess, sys
c = subprocess.Popen("openssl s_client -connect 10.77.0.2:7000 " + sys.argv[1], shell=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=open("c.err", "w"))
def say(text): c.stdin.write(text); c.stdin.flush()
time.sleep(1.0)
for word in (b"alpha", b"beta", COMMAND, b"gamma", b"delta", COMMAND, b"epsilon"):
    if len(word) == 1: say(word + b"\\n"); time.sleep(0.7); continue
    start = now(); say(word + b"\\n")
    while word[::-1] not in c.stdout.readline(): pass
    asked(start); time.sleep(0.2)
say(b"Q\\n"); c.wait()
"""
REVERSES = "exec openssl s_server -accept 7000 -cert cert.pem -key key.pem -rev -quiet OPTIONS > s.out 2>&1"


def reversed_words(trips):
    """What s_server takes: behind a message of TLS's own it finds nothing to read and sleeps for a second (rev_body, apps/s_server.c, OpenSSL 3.0)."""
    return lambda t, rtt: {"handshake@": rtt, "round-trip|tls-handshake@": (trips * rtt, (trips + 3) * rtt), "server-think@server": (t.waited() - 5 * rtt - 20, t.waited() - 5 * rtt + 20), "sender-think@server": (0, 10),
                           "sender-think|server-think@client": (0, 20)}


# New keys are a record that nobody answers, and the next word 700 ms behind it may be a part of the same message: possible.
case("tls-new-keys", "sleep 1; python3 client.py -tls1_3", REVERSES.replace("OPTIONS", "-tls1_3"), reversed_words(6), files=files(client__py=SPEAKS.replace("COMMAND", 'b"K"')), path=SLOW_WAY, guess=True)
case("tls-negotiates-again", "sleep 1; python3 client.py -tls1_2", REVERSES.replace("OPTIONS", "-tls1_2 -client_renegotiation"), reversed_words(11), files=files(client__py=SPEAKS.replace("COMMAND", 'b"R"')), path=SLOW_WAY)

# Beginnings that fail: no protocol in common, a certificate that is not trusted, a version that is not spoken. Nobody thinks.

ONLY_NEW = GO.replace('panic(http.ListenAndServeTLS(":7000", ', 's := &http.Server{Addr: ":7000", TLSConfig: &tls.Config{MinVersion: tls.VersionTLS13}}; panic(s.ListenAndServeTLS(').replace(", nil))", "))").replace("import (", 'import ("crypto/tls"; ')


def go_of_1_3(directory):
    files()(directory)
    write(directory, "s.go", ONLY_NEW)
    subprocess.run("GO111MODULE=off go build -o s s.go", shell=True, cwd=directory, check=True)


FAILS = f"curl -s {TLS_URL}/; curl -k -s --tls-max 1.2 {TLS_URL}/; openssl s_client -connect {FAR}:7000 -alpn other < /dev/null > s.out 2>&1; curl -k -s -o /dev/null {TLS_URL}/; true"
case("tls-begins-in-vain", "sleep 1; " + FAILS, "exec ./s", lambda t, rtt: {"handshake@": 4 * rtt, "round-trip|tls-handshake@": (5 * rtt, 8 * rtt), "server-think|sender-think@": (0, 60)},
     files=go_of_1_3, path=SLOW_WAY)
