"""Encrypted conversations: of what is said only sizes, order and times can be seen.

Servers whose answers take a time that they print themselves, behind TLS 1.2 and 1.3: HTTP/1.1 and HTTP/2, brokers, databases, mail.
What tickets, settings, pings and news are, no byte tells here.
"""

import os

from cases import case
from peer import FAR
from programs import BACKEND, CURL, write
from services import PG_BIN, logged, repeated, scripts
from waits import ASK

CERTIFICATE = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=far-end 2>openssl.err"
TLS_URL = f"https://{FAR}:7000"


def files(**texts):
    """Writes each as NAME.EXTENSION, with a key and a certificate beside them."""

    def put(directory):
        for name, text in texts.items():
            write(directory, name.replace("__", "."), text.replace("HERE", directory))
        os.system(f"cd {directory} && {CERTIFICATE} && cat key.pem cert.pem > both.pem && chmod 600 *.pem")

    return put


def thinks(setups=1, trips=(2, 30), computes=40.0, what="think", **more):
    """What the server logged is its thinking; what either end computes for the handshake is little."""

    def expect(t, rtt):
        think = logged(t, "far.out", what)
        return {"handshake@": setups * rtt, "round-trip|tls-handshake@": (trips[0] * rtt, trips[1] * rtt),
                "server-think@server": (think, think + setups * computes), "sender-think|server-think@client": (0, setups * computes),
                "sender-think@server": (0, setups * computes / 2), **more}

    return expect


def asked(t):
    return t.asked()


# HTTP/2 in TLS 1.3: tickets and settings come before the first answer.

ASGI = ASK.replace("print(\"ask\"", "print(\"no\"") + """
async def app(scope, receive, send):
    if scope["type"] != "http": return
    while (await receive()).get("more_body"): pass
    start = now(); await asyncio.sleep(int(scope["path"].split("/")[-1]) / 1e3); took("think", start)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"400")]})
    await send({"type": "http.response.body", "body": b"x" * 400})
"""
HYPERCORN = "exec python3 -u -m hypercorn -b 0.0.0.0:7000 --keyfile key.pem --certfile cert.pem app:app"
UVICORN = "exec python3 -u -m uvicorn --host 0.0.0.0 --port 7000 --ssl-keyfile key.pem --ssl-certfile cert.pem app:app"
HTTPX = """
import httpx
async def main():
    async with httpx.AsyncClient(http2=HTTP2, verify=False, timeout=20) as c:
        async def get(ms, at=0.0): await asyncio.sleep(at); start = now(); await c.get(f"https://10.77.0.2:7000/{ms}"); asked(start)
        CALLS
asyncio.run(main())
"""
ONE_BY_ONE = "for ms in (110, 35, 0, 250, 70, 1): await get(ms); await asyncio.sleep(0.06)"
AT_ONCE = "await get(20); await asyncio.gather(*(get(ms, n / 100) for n, ms in enumerate((150, 40, 90, 5, 200))))"
for server, run in (("hypercorn", HYPERCORN), ("uvicorn", UVICORN)):
    for version in ("True", "False") if server == "hypercorn" else ("False",):
        case(f"tls-{server}-{'h2' if version == 'True' else 'h1'}", "sleep 3; python3 client.py", run, thinks(),
             files=files(app__py=ASGI, client__py=ASK + HTTPX.replace("HTTP2", version).replace("CALLS", ONE_BY_ONE)), path="--delay 40ms")
# Nothing tells those apart that are under way at once: of the time in which anybody waits, what is said may be no more than possible.


def at_once(t, rtt):
    waits = sorted(t.asked())
    end, anybody = 0.0, 0.0
    for start, stop in waits:
        anybody += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return {"handshake@": rtt, "round-trip|tls-handshake@": None, "sender-think|server-think@client": (0, 40), "sender-think|server-think@server": (0, anybody)}


case("tls-hypercorn-at-once", "sleep 3; python3 client.py", HYPERCORN, at_once,
     files=files(app__py=ASGI, client__py=ASK + HTTPX.replace("HTTP2", "True").replace("CALLS", AT_ONCE)), path="--delay 40ms")

NGINX = """
user root; master_process off; daemon off; pid nginx.pid; error_log stderr crit; events {}
http { access_log off; proxy_temp_path t2; client_body_temp_path t1; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;
  server { listen 7000 ssl HTTP2; root .; keepalive_timeout 60; ssl_certificate cert.pem; ssl_certificate_key key.pem; OPTIONS
    location /slow { proxy_pass http://127.0.0.1:7001; } } }
"""
BEHIND = "python3 backend.py & sleep 1; "


def nginx(http2, options=""):
    return files(nginx__conf=NGINX.replace("HTTP2", http2).replace("OPTIONS", options), backend__py=BACKEND, small__txt="x" * 700, big__bin="x" * 3_000_000)


def eighties(times, setups=1, trips=(2, 30), **more):
    """A server behind the one that speaks TLS, with 80 ms for each answer."""
    return lambda t, rtt: {"handshake@": setups * rtt, "round-trip|tls-handshake@": (trips[0] * rtt, trips[1] * rtt),
                           "server-think@server": (80 * times, 86 * times + 30 * setups), "sender-think|server-think@client": (0, 30 * setups),
                           "sender-think@server": (0, 20 * setups), **more}


RUN_NGINX = BEHIND + "exec nginx -p . -c nginx.conf"
for version, flag in (("h2", "--http2"), ("h1", "--http1.1")):
    for tls, option in (("1.3", ""), ("1.2", "ssl_protocols TLSv1.2;")):
        case(f"tls-nginx-{version}-{tls}", "sleep 2; " + repeated(f"{TLS_URL}/slow", 5).replace("curl ", f"curl -k {flag} ", 1), RUN_NGINX, eighties(5),
             files=nginx("http2" if version == "h2" else "", option), path="--delay 40ms", tap="tcp and host 10.77.0.1")
case("tls-nginx-resumed", "sleep 2; for i in 1 2 3; do python3 client.py; done", RUN_NGINX, eighties(3, 3),
     files=lambda d: (nginx("", "ssl_protocols TLSv1.2; ssl_session_cache shared:s:1m;")(d), write(d, "client.py", ASK + """
import http.client, ssl
c = ssl._create_unverified_context(); h = http.client.HTTPSConnection("10.77.0.2", 7000, context=c); h.connect()
start = now(); h.request("GET", "/slow"); h.getresponse().read(); asked(start)
""")), path="--delay 40ms", tap="tcp and host 10.77.0.1")
# A pool that opens connections before anybody asks.
case("tls-asks-later", "sleep 2; python3 client.py", RUN_NGINX, eighties(3),
     files=lambda d: (nginx("")(d), write(d, "client.py", ASK + """
import http.client, ssl
c = ssl._create_unverified_context(); h = http.client.HTTPSConnection("10.77.0.2", 7000, context=c); h.connect(); time.sleep(0.9)
for n in range(3): start = now(); h.request("GET", "/slow"); h.getresponse().read(); asked(start); time.sleep(0.5)
""")), path="--delay 40ms", tap="tcp and host 10.77.0.1")
CADDY = '{\n admin off\n auto_https disable_redirects\n local_certs\n skip_install_trust\n http_port 7009\n}\nhttps://10.77.0.2:7000 {\n reverse_proxy 127.0.0.1:7001\n}\n'
case("tls-caddy-forwards", "sleep 4; " + repeated(f"{TLS_URL}/slow", 6).replace("curl ", "curl -k --http2 ", 1), BEHIND + "HOME=$PWD exec caddy run --config Caddyfile --adapter caddyfile",
     eighties(6), files=files(Caddyfile=CADDY, backend__py=BACKEND), path="--delay 40ms", tap="tcp and host 10.77.0.1")
HAPROXY = "defaults\n  mode http\n  timeout connect 5s\n  timeout client 30s\n  timeout server 30s\nfrontend f\n  bind :7000 ssl crt both.pem alpn h2,http/1.1\n  default_backend b\nbackend b\n  server s 127.0.0.1:7001\n"
case("tls-haproxy-forwards", "sleep 2; " + repeated(f"{TLS_URL}/slow", 6).replace("curl ", "curl -k --http2 ", 1), BEHIND + "exec haproxy -f haproxy.cfg", eighties(6),
     files=files(haproxy__cfg=HAPROXY, backend__py=BACKEND), path="--delay 40ms", tap="tcp and host 10.77.0.1")
APACHE = """
ServerRoot .
ServerName far-end
PidFile httpd.pid
Listen 7000
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule socache_shmcb_module /usr/lib/apache2/modules/mod_socache_shmcb.so
LoadModule ssl_module /usr/lib/apache2/modules/mod_ssl.so
LoadModule proxy_module /usr/lib/apache2/modules/mod_proxy.so
LoadModule proxy_http_module /usr/lib/apache2/modules/mod_proxy_http.so
LoadModule http2_module /usr/lib/apache2/modules/mod_http2.so
User www-data
Group www-data
StartServers 1
ErrorLog error.log
Protocols h2 http/1.1
SSLEngine on
SSLCertificateFile cert.pem
SSLCertificateKeyFile key.pem
ProxyPass / http://127.0.0.1:7001/
"""
case("tls-apache-forwards", "sleep 3; " + repeated(f"{TLS_URL}/slow", 5).replace("curl ", "curl -k --http2 ", 1), BEHIND + "exec /usr/sbin/apache2 -X -d . -f $PWD/httpd.conf", eighties(5),
     files=files(httpd__conf=APACHE, backend__py=BACKEND), path="--delay 40ms", tap="tcp and host 10.77.0.1")

# Go, Node and Java, at either end.

GO = """package main
import ("fmt"; "net/http"; "strconv"; "strings"; "time")
func main() {
  http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
    ms, _ := strconv.Atoi(strings.Trim(r.URL.Path, "/")); start := time.Now(); time.Sleep(time.Duration(ms) * time.Millisecond)
    fmt.Println("think", float64(time.Since(start).Microseconds()) / 1000); w.Write(make([]byte, 400)) })
  panic(http.ListenAndServeTLS(":7000", "cert.pem", "key.pem", nil))
}
"""
RUN_GO = "export HOME=$PWD GOCACHE=/tmp/exam-go GOFLAGS=-mod=mod GO111MODULE=off; exec go run s.go"
NODE_CLIENT = """
const h2 = require('http2'), waits = [], now = () => process.hrtime.bigint() + off, off = BigInt(Date.now()) * 1000000n - process.hrtime.bigint();
const c = h2.connect('https://10.77.0.2:7000', {rejectUnauthorized: false});
const wait = ms => new Promise(done => setTimeout(done, ms));
const get = ms => new Promise(done => { const start = now(), r = c.request({':path': '/' + ms}); r.on('data', () => {}); r.on('end', () => { waits.push([start, now()]); done(); }); r.end(); });
(async () => { await new Promise(done => c.on('connect', done)); CALLS; c.close(); for (const w of waits) console.log('ask ' + w[0] + ' ' + w[1]); })();
"""
NODE_ONE_BY_ONE = "for (const ms of [110, 35, 0, 250, 70, 1]) { await get(ms); await wait(60); }"
NODE_SERVER = """
const fs = require('fs'), h2 = require('http2'), s = h2.createSecureServer({key: fs.readFileSync('key.pem'), cert: fs.readFileSync('cert.pem')});
s.on('stream', (stream, head) => { const start = process.hrtime.bigint(); setTimeout(() => { console.log('think ' + Number(process.hrtime.bigint() - start) / 1e6); stream.respond({':status': 200}); stream.end('x'.repeat(400)); }, +head[':path'].slice(1)); });
s.listen(7000);
"""
JAVA_CLIENT = """
import java.net.*; import java.net.http.*; import javax.net.ssl.*; import java.security.cert.X509Certificate;
public class C { public static void main(String[] a) throws Exception {
  System.setProperty("jdk.internal.httpclient.disableHostnameVerification", "true");
  SSLContext x = SSLContext.getInstance("TLS"); x.init(null, new TrustManager[] { new X509TrustManager() { public void checkClientTrusted(X509Certificate[] c, String s) {} public void checkServerTrusted(X509Certificate[] c, String s) {} public X509Certificate[] getAcceptedIssuers() { return new X509Certificate[0]; } } }, null);
  HttpClient c = HttpClient.newBuilder().sslContext(x).build(); long off = System.currentTimeMillis() * 1000000L - System.nanoTime();
  for (int ms : new int[] {110, 35, 0, 250, 70, 1}) { long start = System.nanoTime();
    c.send(HttpRequest.newBuilder(URI.create("https://10.77.0.2:7000/" + ms)).build(), HttpResponse.BodyHandlers.ofByteArray());
    System.out.println((ms == 110 ? "first " : "ask ") + (start + off) + " " + (System.nanoTime() + off)); Thread.sleep(60); }
  System.exit(0); } }
"""
JAVA_SERVER = """
import com.sun.net.httpserver.*; import javax.net.ssl.*; import java.security.*; import java.io.*; import java.net.*;
public class S { public static void main(String[] a) throws Exception {
  KeyStore k = KeyStore.getInstance("PKCS12"); k.load(new FileInputStream("k.p12"), "secret".toCharArray());
  KeyManagerFactory f = KeyManagerFactory.getInstance("SunX509"); f.init(k, "secret".toCharArray()); SSLContext x = SSLContext.getInstance("TLS"); x.init(f.getKeyManagers(), null, null);
  HttpsServer s = HttpsServer.create(new InetSocketAddress(7000), 0); s.setHttpsConfigurator(new HttpsConfigurator(x));
  s.createContext("/", e -> { long start = System.nanoTime(); try { Thread.sleep(Integer.parseInt(e.getRequestURI().getPath().substring(1))); } catch (InterruptedException i) {}
    System.out.println("think " + (System.nanoTime() - start) / 1e6); e.sendResponseHeaders(200, 400); e.getResponseBody().write(new byte[400]); e.close(); });
  s.start(); } }
"""
RUN_NODE, RUN_JAVA = "exec node s.js", "openssl pkcs12 -export -in cert.pem -inkey key.pem -passout pass:secret -out k.p12; exec java S.java"
NODE_TO = {"s__go": GO, "c__js": NODE_CLIENT.replace("CALLS", NODE_ONE_BY_ONE)}
case("tls-node-asks-go", "sleep 9; node c.js", RUN_GO, thinks(), files=files(**NODE_TO), path="--delay 40ms", each=asked)
case("tls-node-asks-node", "sleep 2; node c.js", RUN_NODE, thinks(), files=files(s__js=NODE_SERVER, c__js=NODE_TO["c__js"]), path="--delay 40ms", each=asked)
case("tls-node-at-once", "sleep 2; node c.js", RUN_NODE, at_once,
     files=files(s__js=NODE_SERVER, c__js=NODE_CLIENT.replace("CALLS", "await get(20); await Promise.all([150, 40, 90, 5, 200].map(async (ms, n) => { await wait(10 * n); await get(ms); }))")), path="--delay 40ms")
case("tls-java-asks-go", "sleep 9; java C.java", RUN_GO, thinks(computes=400.0), files=files(s__go=GO, C__java=JAVA_CLIENT), path="--delay 40ms")
# The JDK's server writes an answer's head and body apart; Nagle holds the second write where the client acknowledges late.
case("tls-httpx-asks-java", "sleep 5; python3 client.py", RUN_JAVA, thinks(computes=250.0, **{"nagle|nagle-delayed-ack@server": None}),
     files=files(S__java=JAVA_SERVER, client__py=ASK + HTTPX.replace("HTTP2", "False").replace("CALLS", ONE_BY_ONE)), path="--delay 40ms")

# Remote calls, sockets for both ways, brokers.

GRPC_SERVER = ASK.replace("print(\"ask\"", "print(\"no\"") + """
import grpc
async def call(request, context): start = now(); await asyncio.sleep(int(request) / 1e3); took("think", start); return b"r" * 200
async def news(request, context):
    random.seed(4)
    for n in range(8): await asyncio.sleep(random.uniform(0.3, 1.2)); yield b"n" * 90
handlers = {"Call": grpc.unary_unary_rpc_method_handler(call), "News": grpc.unary_stream_rpc_method_handler(news)}
async def main():
    s = grpc.aio.server(); s.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("s", handlers),))
    s.add_secure_port("0.0.0.0:7000", grpc.ssl_server_credentials([(open("key.pem", "rb").read(), open("cert.pem", "rb").read())])); await s.start(); await s.wait_for_termination()
asyncio.run(main())
"""
GRPC_CLIENT = """
import grpc
options = [("grpc.ssl_target_name_override", "far-end")]
channel = grpc.secure_channel("10.77.0.2:7000", grpc.ssl_channel_credentials(open("cert.pem", "rb").read()), options); grpc.channel_ready_future(channel).result()
"""
case("tls-grpc-unary", "sleep 2; python3 client.py", "exec python3 -u server.py", thinks(computes=60.0), path="--delay 40ms", each=asked, files=files(server__py=GRPC_SERVER, client__py=ASK + GRPC_CLIENT + """
f = channel.unary_unary("/s/Call")
for ms in (110, 35, 0, 250, 70, 1): start = now(); f(b"%d" % ms); asked(start); time.sleep(0.06)
"""))
case("tls-grpc-news", "sleep 2; python3 client.py", "exec python3 -u server.py", thinks(computes=600.0), path="--delay 40ms", guess=True, files=files(server__py=GRPC_SERVER, client__py=ASK + GRPC_CLIENT + """
for n in channel.unary_stream("/s/News")(b""): pass
"""))
WSS_SERVER = ASK.replace("print(\"ask\"", "print(\"no\"") + """
import ssl, websockets
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); context.load_cert_chain("cert.pem", "key.pem")
async def handle(ws):
    async def news():
        random.seed(7)
        for n in range(9): await asyncio.sleep(random.uniform(0.2, 0.9)); await ws.send("n" * 120)
    task = asyncio.create_task(news()) if NEWS else None
    async for m in ws:
        if m.startswith("ask"): start = now(); await asyncio.sleep(0.06); took("think", start); await ws.send("r" * 200)
async def main():
    async with websockets.serve(handle, "", 7000, ssl=context, ping_interval=1.1): await asyncio.Event().wait()
asyncio.run(main())
"""
WSS_CLIENT = """
import ssl, websockets
context = ssl._create_unverified_context()
async def main():
    async with websockets.connect("wss://10.77.0.2:7000", ssl=context, ping_interval=0.8) as ws: CALLS
asyncio.run(main())
"""
case("tls-websocket-asks", "sleep 2; python3 client.py", "exec python3 -u server.py", thinks(), path="--delay 40ms",
     files=files(server__py=WSS_SERVER.replace("NEWS", "False"), client__py=ASK + WSS_CLIENT.replace("CALLS", """
        for n in range(6): start = now(); await ws.send("ask" + "q" * 100); await ws.recv(); asked(start); await asyncio.sleep(0.4)""")))
case("tls-websocket-news", "sleep 2; python3 client.py", "exec python3 -u server.py", thinks(), path="--delay 40ms", guess=True,
     files=files(server__py=WSS_SERVER.replace("NEWS", "True"), client__py=ASK + WSS_CLIENT.replace("CALLS", """
        for n in range(9): await ws.recv()""")))
# Without TCP_NODELAY, what comes behind the tickets is held until these are acknowledged.
HELD = {"nagle|nagle-delayed-ack@server": (0, 130)}
MQTT = """
import paho.mqtt.client as mqtt, ssl, threading
c = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2); c.tls_set(cert_reqs=ssl.CERT_NONE); c.tls_insecure_set(True); up = threading.Event(); c.on_connect = lambda *a: up.set()
c.connect("10.77.0.2", 7000); c.loop_start(); up.wait()
"""
MOSQUITTO = "printf 'listener 7000\\nallow_anonymous true\\nuser root\\ncertfile %s/cert.pem\\nkeyfile %s/key.pem\\nlistener 7001\\n' $PWD $PWD > m.conf; mosquitto -c m.conf"
case("tls-mqtt-publishes", "sleep 1; python3 client.py", MOSQUITTO, thinks(what="-", **HELD), path="--delay 40ms", files=files(client__py=ASK + MQTT + """
for n in range(8): start = now(); c.publish("a/b", b"p" * 100, qos=1).wait_for_publish(); asked(start); time.sleep(0.15)
c.disconnect()
"""))
case("tls-mqtt-news", "sleep 1; timeout 9 python3 client.py", MOSQUITTO + " & sleep 2; for i in 1 2 3 4 5 6 7; do sleep 0.9; mosquitto_pub -p 7001 -t news -m something-$i; done; sleep 9", thinks(what="-", **HELD), path="--delay 40ms", guess=True,
     tap="tcp and host 10.77.0.1", files=files(client__py=ASK + MQTT + 'c.subscribe("news"); time.sleep(8)\n'))

# Databases.

PG = ("D=$(mktemp -d); cp key.pem cert.pem $D; chown -R postgres $D; cd $D; exec su postgres -s /bin/sh -c \"{BIN}/initdb -D $D/db -A trust -N --no-locale"
      " > init.log 2>&1; echo 'hostssl all all 10.77.0.0/24 trust' >> $D/db/pg_hba.conf; exec {BIN}/postgres -D $D/db -p 7000 -c ssl=on -c ssl_cert_file=$D/cert.pem -c ssl_key_file=$D/key.pem"
      " -c listen_addresses='*' -c unix_socket_directories=$D -c fsync=off\"").replace("{BIN}", PG_BIN)


def known(*sleeps, setups=1, computes=60.0, trips=(2, 30), **more):
    """Answers that take so many milliseconds."""
    return lambda t, rtt: {"handshake@": setups * rtt, "round-trip|tls-handshake@": (trips[0] * rtt, trips[1] * rtt), "server-think@server": (sum(sleeps), sum(sleeps) + computes),
                           "sender-think|server-think@client": (0, 30 * setups), "sender-think@server": (0, 20 * setups), **more}


PG_CLIENT = """
import psycopg
c = psycopg.connect("host=10.77.0.2 port=7000 user=postgres dbname=postgres sslmode=require gssencmode=disable", autocommit=True)
def ask(sql): start = now(); c.execute(sql).fetchall(); asked(start)
"""
case("tls-postgres-sleeps", "sleep 5; python3 client.py", PG, known(100, 200, 50), path="--delay 40ms", each=None, files=files(client__py=ASK + PG_CLIENT + """
for s in (0.1, 0.2, 0, 0.05): ask(f"select pg_sleep({s})"); time.sleep(0.07)
"""))
case("tls-postgres-notified", "sleep 5; python3 client.py", PG.replace("exec su", "(sleep 7; for i in 1 2 3 4 5 6; do sleep 0.8; psql -q -h $D -p 7000 -U postgres -c \"notify news, 'x'\"; done) & exec su"), known(), path="--delay 40ms", guess=True,
     tap="tcp and host 10.77.0.1", files=files(client__py=ASK + PG_CLIENT + """
c.execute("listen news"); n = 0
for m in c.notifies():
    n += 1
    if n == 5: break
"""))
MARIA = ("mariadb-install-db --no-defaults --user=root --datadir=$PWD/db --auth-root-authentication-method=normal >/dev/null 2>&1;"
         " mariadbd --no-defaults --user=root --datadir=$PWD/db --port 7000 --socket=$PWD/db/s --skip-grant-tables --bind-address=0.0.0.0 --ssl-cert=$PWD/cert.pem --ssl-key=$PWD/key.pem")
case("tls-mariadb-sleeps", "sleep 6; mariadb -h 10.77.0.2 -P 7000 --ssl -e 'select sleep(0.1); select sleep(0.15); select 1'", MARIA, known(100, 150), path="--delay 40ms", files=files())
REDIS = "exec redis-server --port 0 --tls-port 7000 --tls-cert-file cert.pem --tls-key-file key.pem --tls-ca-cert-file cert.pem --tls-auth-clients no --save '' --protected-mode no --enable-debug-command yes"
REDIS_CLI = "redis-cli --tls --insecure -h 10.77.0.2 -p 7000 "
case("tls-redis-sleeps", "sleep 1; for i in 1 2 3; do " + REDIS_CLI + "debug sleep 0.12; done", REDIS, known(120, 120, 120, setups=3, computes=90.0), path="--delay 40ms", files=files())
case("tls-redis-waits-for-work", "sleep 1; " + REDIS_CLI + "blpop jobs 3", REDIS, known(3000), path="--delay 40ms", files=files())

# Mail: TLS from the beginning, or after some words in clear.

SMTP_SERVER = ASK.replace("print(\"ask\"", "print(\"no\"") + """
import ssl
from aiosmtpd.controller import Controller
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); context.load_cert_chain("cert.pem", "key.pem")
class Handler:
    async def handle_DATA(self, server, session, envelope): start = now(); await asyncio.sleep(0.12); took("think", start); return "250 OK"
c = Controller(Handler(), hostname="0.0.0.0", port=7000, tls_context=context); c.start(); time.sleep(1000)
"""
case("tls-smtp-starttls", "sleep 2; python3 client.py", "exec python3 -u server.py", thinks(computes=60.0), path="--delay 40ms", files=files(server__py=SMTP_SERVER, client__py=ASK + """
import smtplib, ssl
s = smtplib.SMTP("10.77.0.2", 7000); s.ehlo(); s.starttls(context=ssl._create_unverified_context())
for n in range(3): s.sendmail("a@example.org", ["b@example.org"], "Subject: x\\r\\n\\r\\n" + "y" * 300)
s.quit()
"""))

# The certificate's choice, or the check of it, takes a time: within the handshake.

SLOW_HANDSHAKE = ASK.replace("print(\"ask\"", "print(\"no\"") + """
import ssl, socket
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); context.load_cert_chain("cert.pem", "key.pem"); context.maximum_version = ssl.TLSVersion.VERSION
def chosen(s, name, c): start = now(); time.sleep(0.15); took("think", start)
context.sni_callback = chosen
l = socket.create_server(("", 7000))
while True:
    raw, _ = l.accept(); s = context.wrap_socket(raw, server_side=True)
    while s.recv(200): start = now(); time.sleep(0.03); took("think", start); s.sendall(b"a" * 300)
"""
for version in ("TLSv1_2", "TLSv1_3"):
    case(f"tls-slow-handshake-{version[-1]}", "sleep 1; python3 client.py", "exec python3 -u server.py", thinks(computes=30.0, **HELD), path="--delay 40ms", files=files(server__py=SLOW_HANDSHAKE.replace("TLSVersion.VERSION", f"TLSVersion.{version}"), client__py=ASK + """
import ssl, socket
raw = socket.create_connection(("10.77.0.2", 7000)); raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1); s = ssl._create_unverified_context().wrap_socket(raw, server_hostname="far-end")
for n in range(4):
    start = now(); s.sendall(b"q" * 200); size = 300
    while size: size -= len(s.recv(size))
    asked(start); time.sleep(0.05)
"""))
# Two writes to an answer, without TCP_NODELAY: Nagle holds the second one, in cipher as in clear.
TWO_WRITES = SLOW_HANDSHAKE.replace("context.sni_callback = chosen", "").replace("TLSVersion.VERSION", "TLSVersion.TLSv1_3").replace('time.sleep(0.03); took("think", start); s.sendall(b"a" * 300)', 'took("think", start); s.sendall(b"h" * 100); s.sendall(b"a" * 200)')
TWO_READS = """
import ssl, socket
raw = socket.create_connection(("10.77.0.2", 7000)); raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1); s = ssl._create_unverified_context().wrap_socket(raw)
for n in range(12):
    start = now(); s.sendall(b"q" * 200); size = 300
    while size: size -= len(s.recv(size))
    asked(start); time.sleep(0.05)
"""
case("tls-two-writes", "sleep 1; python3 client.py", "exec python3 -u server.py",
     lambda t, rtt: {"handshake@": rtt, "round-trip|tls-handshake@": (13 * rtt, 14 * rtt), "nagle|nagle-delayed-ack@server": t.waited() - 12 * rtt, "server-think|sender-think@": (0, 30)},
     path="--delay 40ms", each=asked, files=files(server__py=TWO_WRITES, client__py=ASK + TWO_READS), fix="nodelay",
     changed={"files": files(server__py=TWO_WRITES.replace("s = context", "raw.setsockopt(6, 1, 1); s = context"), client__py=ASK + TWO_READS)})

# A browser: its page asks one after the other, and then several at once.

BROWSED = ASGI.replace("    if scope[\"type\"] != \"http\": return\n", "    if scope[\"type\"] != \"http\": return\n    if not scope[\"path\"][1:].isdigit(): return await page(scope, receive, send)\n") + """
PAGE = b\"\"\"<!doctype html><title>waits</title><script>
const wait = ms => new Promise(done => setTimeout(done, ms)), asks = [];
const get = async ms => { const start = performance.timeOrigin + performance.now(); await (await fetch('/' + ms)).arrayBuffer(); asks.push(start + ' ' + (performance.timeOrigin + performance.now())); };
(async () => { await wait(300); CALLS; await fetch('/log', {method: 'POST', body: asks.join('\\\\n')}); })();
</script>\"\"\"
async def page(scope, receive, send):
    body = b""
    more = True
    while more: part = await receive(); body += part.get("body", b""); more = part.get("more_body", False)
    if scope["path"] == "/log":
        with open("asks.txt", "w") as file: file.writelines("ask %d %d\\n" % tuple(float(at) * 1e6 for at in line.split()) for line in body.decode().splitlines())
    kind = b"text/html" if scope["path"] == "/" else b"text/plain"
    answer = PAGE if scope["path"] == "/" else b""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind), (b"content-length", b"%d" % len(answer)), (b"cache-control", b"no-store")]})
    await send({"type": "http.response.body", "body": answer})
"""
CHROMIUM = ("chromium --headless --no-sandbox --ignore-certificate-errors --disable-background-networking --disable-component-update --user-data-dir=$PWD/u"
            f" --disable-gpu --no-first-run --disable-quic --remote-debugging-port=7008 {TLS_URL}/ & for i in $(seq 200); do [ -s asks.txt ] && break; sleep 0.1; done; sleep 0.3; kill %1; cat asks.txt")
for version, far in (("h2", HYPERCORN), ("h1", UVICORN)):
    case(f"tls-chromium-{version}", "sleep 3; " + CHROMIUM, far, thinks(setups=1, computes=250.0, **{"handshake@": None}), path="--delay 40ms", tap="tcp and port 7000",
         files=files(app__py=BROWSED.replace("CALLS", "for (const ms of [110, 35, 0, 250, 70, 1]) { await get(ms); await wait(60); }")))
