"""Software that `software.py` lacks: application servers, the clients of Go, Java, Node and GnuTLS, tunnels and proxies with TLS inside,
rows through JDBC, mail, git over https.

Servers print what they took themselves; what a client waited for, it prints or curl's clock has.
"""

import os
import subprocess

from cases import case
from ciphers import BEHIND, CERTIFICATE, NGINX, files as with_key
from peer import FAR
from programs import BACKEND, CURL, URL, write
from services import PG, logged, repeated
from software import TIMED, curl_thinks, served
from waits import ASK

SLOW_WAY = "--delay 40ms"
NEAR_ONLY = "tcp and host 10.77.0.1"


def asked(t):
    return t.asked()


def total(t):
    """What curl waited for, or a program said that it waited for."""
    return t.waited()


# Tomcat and Jetty, embedded: a servlet that sleeps, one that flushes its head and then its body, one that writes row by row, a large one.

SERVLET = """
import PACKAGE.servlet.*; import PACKAGE.servlet.http.*; import java.io.*;
public class S extends HttpServlet {
  static void took(String what, long start) { System.out.println(what + " " + (System.nanoTime() - start) / 1e6); }
  static void sleep(String what, int ms) { long start = System.nanoTime(); try { Thread.sleep(ms); } catch (InterruptedException e) {} took(what, start); }
  protected void doGet(HttpServletRequest q, HttpServletResponse r) throws IOException {
    String path = q.getRequestURI(); OutputStream out = r.getOutputStream();
    if (path.equals("/sleep")) { sleep("think", 60); r.setContentLength(400); out.write(new byte[400]); }
    else if (path.equals("/apart")) { r.setContentLength(400); r.flushBuffer(); out.write(new byte[400]); out.flush(); }
    else if (path.equals("/rows")) { for (int n = 0; n < 9; n++) { if (n > 0) sleep("pause", 30 + 17 * (n % 3)); out.write(new byte[700]); r.flushBuffer(); } }
    else { r.setContentLength(150000); out.write(new byte[150000]); } }
  protected void doPost(HttpServletRequest q, HttpServletResponse r) throws IOException { q.getInputStream().readAllBytes(); doGet(q, r); }
  public static void main(String[] a) throws Exception { SERVES } }
"""
TOMCAT = """
    var t = new org.apache.catalina.startup.Tomcat(); t.setBaseDir("."); var c = new org.apache.catalina.connector.Connector(); c.setPort(7000); c.setProperty("maxKeepAliveRequests", "-1"); CONNECTOR
    t.setConnector(c); var x = t.addContext("", new File(".").getAbsolutePath()); t.addServlet(x, "s", new S()).setLoadOnStartup(1); x.addServletMappingDecoded("/", "s"); t.start(); t.getServer().await();
"""
TOMCAT_TLS = """
    c.setSecure(true); c.setScheme("https"); c.setProperty("SSLEnabled", "true"); var h = new org.apache.tomcat.util.net.SSLHostConfig(); var k = new org.apache.tomcat.util.net.SSLHostConfigCertificate(h, org.apache.tomcat.util.net.SSLHostConfigCertificate.Type.RSA);
    k.setCertificateKeystoreFile("k.p12"); k.setCertificateKeystorePassword("secret"); k.setCertificateKeystoreType("PKCS12"); h.addCertificate(k); c.addSslHostConfig(h);
"""
JETTY = """
    var s = new org.eclipse.jetty.server.Server(new org.eclipse.jetty.util.thread.QueuedThreadPool(20)); var c = new org.eclipse.jetty.server.ServerConnector(s); c.setPort(7000); CONNECTOR s.addConnector(c);
    var h = new org.eclipse.jetty.servlet.ServletContextHandler(); h.addServlet(new org.eclipse.jetty.servlet.ServletHolder(new S()), "/"); s.setHandler(h); s.start(); s.join();
"""
KEYSTORE = "openssl pkcs12 -export -in cert.pem -inkey key.pem -passout pass:secret -out k.p12; "
JARS = {
    "tomcat": "$(ls /usr/share/java/tomcat10-embed-core.jar /usr/share/java/tomcat10-annotations-api.jar /usr/share/java/tomcat10-{servlet-api,jaspic-api,juli,util,util-scan,jni}.jar | tr '\\n' :)",
    "jetty": "$(ls /usr/share/java/jetty9-{server,servlet,http,io,util,security}.jar /usr/share/java/tomcat9-servlet-api.jar | tr '\\n' :)",
}


def servlet(server, connector="", tls=False):
    """One program for either server; it is compiled before the recording."""

    def put(directory):
        serves = (TOMCAT if server == "tomcat" else JETTY).replace("CONNECTOR", (TOMCAT_TLS if tls else "") + connector)
        write(directory, "S.java", SERVLET.replace("PACKAGE", "jakarta" if server == "tomcat" else "javax").replace("SERVES", serves))
        if tls:
            os.system(f"cd {directory} && {CERTIFICATE} && {KEYSTORE}")
        write(directory, "run.sh", f"export JARS={JARS[server]}.\n[ -f S.class ] || javac -cp $JARS S.java || exit 1\n[ \"$1\" ] || exec java -Xshare:auto -XX:TieredStopAtLevel=1 -cp $JARS S\n")
        subprocess.run("bash run.sh build > javac.out 2>&1", shell=True, cwd=directory, check=True)

    return put


SERVES = "exec bash run.sh"


def warmed(path, scheme="http"):
    """A question on a connection of its own before the others: what is loaded then takes a time that no clock tells apart."""
    return f"sleep 5; S=$(date +%s%N); curl -k -s -o /dev/null {scheme}://{FAR}:7000{path}; echo warm $S $(date +%s%N); sleep 0.3; "


def warm(t):
    return sum((int(line.split()[2]) - int(line.split()[1])) / 1e6 for line in t.text("near.out").splitlines() if line.startswith("warm"))


def works(times, trips=0, **more):
    """Two connections: one that warms, and one with so many questions; what curl waited longer than their round trips is the server's. Through TLS,
    curl's farewell has a way of its own where it is billed."""

    def expect(t, rtt):
        rest = total(t) - (times + 1 + trips) * rtt
        return {"handshake@": 2 * rtt, "round-trip|tls-handshake@": ((times + 1 + 2 * trips) * rtt, (times + 1 + 4 * trips) * rtt), "server-think@server": (rest - 15, rest + warm(t) - (2 + trips) * rtt), **more}

    return expect


for server in ("tomcat", "jetty"):
    case(f"{server}-works-60", warmed("/sleep") + repeated(f"{URL}/sleep", 6), SERVES, works(6), files=servlet(server), path=SLOW_WAY, fix="profile-server",
         changed={"near": warmed("/sleep") + repeated(f"{URL}/none", 6).replace("/none", "/apart")})
    # Each pause is logged; what is between the others is a round trip and a few milliseconds of a program that runs for the first time.
    case(f"{server}-rows", warmed("/rows") + repeated(f"{URL}/rows", 3), SERVES,
         lambda t, rtt: {"handshake@": 2 * rtt, "round-trip@": 4 * rtt, "sender-think@server": logged(t, "far.out", "pause"), "server-think@server": (0, warm(t) - 2 * rtt - logged(t, "far.out", "pause") / 4 + 15)}, files=servlet(server), path=SLOW_WAY)
# A connector's option turns TCP_NODELAY off; the body, flushed behind the head, waits for the client's acknowledgement.
NAGLE = 'c.setProperty("tcpNoDelay", "false");'


def held(trips=0, times=12):
    def expect(t, rtt):
        more = t.waited() - t.fixed.waited()
        return {"handshake@": 2 * rtt, "round-trip|tls-handshake@": ((times + 1 + 2 * trips) * rtt, (times + 1 + 4 * trips) * rtt), "nagle|nagle-delayed-ack@server": (0.85 * more - 10, 1.15 * more + 130), "server-think|sender-think@server": (0, warm(t) + 40)}

    return expect


for tls in (False, True):
    scheme = "https" if tls else "http"
    case("tls-" * tls + "tomcat-flushes-apart", warmed("/apart", scheme) + repeated(f"{scheme}://{FAR}:7000/apart", 12).replace("curl", "curl -k", 1), SERVES, held(int(tls)), files=servlet("tomcat", NAGLE, tls), path=SLOW_WAY, fix="nodelay",
         changed={"files": servlet("tomcat", "", tls)})
# One thread for all requests (maxThreads), and four clients.
case("tomcat-one-thread", warmed("/sleep") + f"for i in 1 2 3 4; do {repeated(URL + '/sleep', 4)} > c$i & done; wait; cat c?", SERVES,
     lambda t, rtt: {"handshake@": 5 * rtt, "round-trip@": 17 * rtt, "server-think@server": (t.waited() - 20 * rtt - 20, t.waited() - 20 * rtt + warm(t) - 2 * rtt)},
     files=servlet("tomcat", 'c.setProperty("maxThreads", "1"); c.setProperty("minSpareThreads", "1");'), path="--delay 10ms", fix="profile-server", changed={"files": servlet("tomcat")})
# A request is lost on its way up; and a window that is small again after each pause.
case("jetty-lost-post", warmed("/sleep") + repeated(f"{URL}/apart", 6).replace("curl", "curl -d @run.sh", 1), SERVES,
     lambda t, rtt: {"handshake@": 2 * rtt, "round-trip@": 7 * rtt, "rto|loss@": (t.waited() - t.fixed.waited() - 30, t.waited() - t.fixed.waited() + 30), "server-think@server": (0, warm(t) + 30)}, files=servlet("jetty"),
     path="--delay 20ms --forward 'loss data 4'", fix="find-drops", changed={"path": "--delay 20ms"})
IDLES = ASK + """
import http.client
h = http.client.HTTPConnection("10.77.0.2", 7000)
for n in range(4):
    if n: time.sleep(2)
    start = now(); h.request("GET", "/big"); h.getresponse().read(); asked(start)
"""


def restarts(t, rtt):
    """The first is a start; each other one took what the same without a restart did not."""
    waits, others = ([end - start for start, end in each.asked()] for each in (t, t.fixed))
    more = sum(waits[1:]) - sum(others[1:])
    return {"handshake@": 2 * rtt, "round-trip@": 5 * rtt, "slow-start-after-idle@server": (0.8 * more, sum(waits[1:]) - 3 * rtt), "slow-start|congestion-window|receive-window@": (0, waits[0] - 2 * rtt + sum(others[1:])), "server-think@server": (0, warm(t) + 30)}


# The client opens its socket before its clock begins: curl's is not asked.
case("jetty-idle-restart", warmed("/sleep") + "python3 client.py", SERVES, restarts, files=lambda d: (servlet("jetty")(d), write(d, "client.py", IDLES)), path=SLOW_WAY, fix="slow-start-after-idle-off",
     changed={"far_sysctl": ["net.ipv4.tcp_slow_start_after_idle=0"]})

# PHP-FPM and uWSGI behind nginx: seen from the client, and between nginx and them.

BEFORE = """
user root; master_process off; daemon off; pid nginx.pid; error_log stderr crit; events {}
http { access_log off; proxy_temp_path t2; client_body_temp_path t1; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;
  upstream app { server WHERE; POOL }
  server { listen PORT; root .; keepalive_timeout 60;
    location / { PASS } } }
"""
FASTCGI = "fastcgi_pass app; fastcgi_param SCRIPT_FILENAME HERE/index.php; fastcgi_param REQUEST_METHOD $request_method; fastcgi_param QUERY_STRING $query_string;"
UWSGI = "uwsgi_pass app; uwsgi_param REQUEST_METHOD $request_method; uwsgi_param PATH_INFO $document_uri; uwsgi_param QUERY_STRING $query_string; uwsgi_param SERVER_NAME x; uwsgi_param SERVER_PORT 80; uwsgi_param SERVER_PROTOCOL $server_protocol;"
FPM_CONF = "[global]\nerror_log = HERE/fpm.log\ndaemonize = no\n[w]\nuser = root\ngroup = root\nlisten = LISTEN\npm = static\npm.max_children = CHILDREN\n"
PHP = "<?php usleep(1000000 * 0.06); header('Content-Length: 400'); echo str_repeat('x', 400);\n"
WSGI = "import time\ndef application(environ, start):\n    time.sleep(0.06)\n    start('200 OK', [('Content-Length', '400')])\n    return [b'x' * 400]\n"
RUN_FPM, RUN_UWSGI = "php-fpm8.2 -n -R -y fpm.conf", "uwsgi --master --plugin python3 --wsgi-file app.py --processes 2 --buffer-size 8192 --socket "


def before(where, port, passes, pool="", listen="127.0.0.1:7001", children=2):
    """nginx with what it passes on to, and the programs behind it."""

    def put(directory):
        here = str(directory)
        write(directory, "nginx.conf", BEFORE.replace("WHERE", where).replace("PORT", port).replace("PASS", passes).replace("POOL", pool).replace("HERE", here))
        write(directory, "fpm.conf", FPM_CONF.replace("LISTEN", listen).replace("CHILDREN", str(children)).replace("HERE", here))
        write(directory, "index.php", PHP)
        write(directory, "app.py", WSGI)

    return put


NGINX_RUNS = "nginx -p . -c nginx.conf"
case("nginx-php-fpm", "sleep 2; " + repeated(f"{URL}/a", 6), f"{RUN_FPM} & sleep 1; exec {NGINX_RUNS}", curl_thinks(6), files=before("127.0.0.1:7001", "7000", FASTCGI), path=SLOW_WAY, tap=NEAR_ONLY)
case("nginx-uwsgi", "sleep 2; " + repeated(f"{URL}/a", 6), f"{RUN_UWSGI} 127.0.0.1:7001 & sleep 1; exec {NGINX_RUNS}", curl_thinks(6), files=before("127.0.0.1:7001", "7000", UWSGI), path=SLOW_WAY, tap=NEAR_ONLY)
# One child of PHP-FPM, and four clients through nginx: each waits for those before it.
case("nginx-php-fpm-one-child", f"sleep 2; for i in 1 2 3 4; do {repeated(URL + '/a', 4)} > c$i & done; wait; cat c?", f"{RUN_FPM} & sleep 1; exec {NGINX_RUNS}", 
     lambda t, rtt: {"handshake@": 4 * rtt, "round-trip@": 16 * rtt, "server-think@server": (t.waited() - 20 * rtt - 20, t.waited() - 20 * rtt)},
     files=before("127.0.0.1:7001", "7000", FASTCGI, children=1), path="--delay 10ms", tap=NEAR_ONLY, fix="profile-server", changed={"files": before("127.0.0.1:7001", "7000", FASTCGI, children=8)})
BESIDE_CURL = f"{NGINX_RUNS} & sleep 2; " + repeated("http://127.0.0.1:7001/a", 6).replace("curl ", "curl --noproxy '' ", 1)
THERE = f"{FAR}:7000"


def passed_on(connections):
    """The asker is nginx: curl waits besides for what nginx itself does, and for each connection that it opens."""
    return lambda t, rtt: {"handshake@": connections * rtt, "round-trip@": 6 * rtt, "server-think@server": (t.waited() - (6 + connections) * rtt - 20, t.waited() - (6 + connections) * rtt)}


case("fastcgi-connections", BESIDE_CURL, RUN_FPM, passed_on(6), files=before(THERE, "7001", FASTCGI, listen="0.0.0.0:7000"), path=SLOW_WAY, tap="tcp port 7000", fix="reuse-connection|keep-connection",
     changed={"files": before(THERE, "7001", FASTCGI + " fastcgi_keep_conn on;", "keepalive 4;", "0.0.0.0:7000")})
case("fastcgi-kept", BESIDE_CURL, RUN_FPM, passed_on(1), files=before(THERE, "7001", FASTCGI + " fastcgi_keep_conn on;", "keepalive 4;", "0.0.0.0:7000"), path=SLOW_WAY, tap="tcp port 7000")
case("uwsgi-protocol", BESIDE_CURL, RUN_UWSGI + " 0.0.0.0:7000", passed_on(6), files=before(THERE, "7001", UWSGI), path=SLOW_WAY, tap="tcp port 7000")
RACK = "run ->(env) { sleep 0.06; [200, {'Content-Type' => 'text/plain', 'Content-Length' => '400'}, ['x' * 400]] }\n"
case("thin-works-60", "sleep 4; " + repeated(URL + "/", 6), "thin start -a 0.0.0.0 -p 7000 -R config.ru", curl_thinks(6), files=served(**{"config.ru": RACK}), path=SLOW_WAY)
case("unicorn-works-60", "sleep 4; " + f"for i in 1 2 3 4; do {CURL}{URL}/; done", "unicorn -l 0.0.0.0:7000 config.ru", curl_thinks(4, 4), files=served(**{"config.ru": RACK}), path=SLOW_WAY)

# Clients: Go that does not read what it got, Node with an agent of one socket, Java with either of its clients.

GO = """package main
import ("fmt"; "io"; "net/http"; "os"; "time")
func main() {
  if os.Args[1] == "serve" {
    http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body); start := time.Now(); time.Sleep(45 * time.Millisecond); fmt.Println("think", float64(time.Since(start).Microseconds()) / 1000); w.Write(make([]byte, 4000)) })
    panic(http.ListenAndServe(":7000", nil)) }
  for n := 0; n < 6; n++ { start := time.Now().UnixNano(); r, err := http.Get("http://10.77.0.2:7000/"); if err != nil { panic(err) }
    if os.Args[1] == "reads" { io.Copy(io.Discard, r.Body) }; r.Body.Close(); fmt.Println("ask", start, time.Now().UnixNano()); time.Sleep(30 * time.Millisecond) } }
"""


def go_built(directory):
    write(directory, "main.go", GO)
    subprocess.run("GO111MODULE=off go build -o main main.go", shell=True, cwd=directory, check=True)


def counted(times, connections, **more):
    """What the server slept is logged."""
    return lambda t, rtt: {"handshake@": connections * rtt, "round-trip@": times * rtt, "server-think@server": (logged(t, "far.out", "think"), logged(t, "far.out", "think") + 12), **more}


case("go-leaves-bodies", "./main leaves", "./main serve", counted(6, 6), files=go_built, path=SLOW_WAY, fix="reuse-connection|keep-connection", changed={"near": "./main reads"})
case("go-reads-bodies", "./main reads", "./main serve", counted(6, 1), files=go_built, path=SLOW_WAY)
NODE_AGENT = """
const http = require('http'), off = BigInt(Date.now()) * 1000000n - process.hrtime.bigint(), now = () => process.hrtime.bigint() + off, agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
// The wait of each begins when its socket is its own: before, it stands in the agent's line, and no packet tells.
for (let n = 0; n < 5; n++) { let start; const q = http.request({ host: '10.77.0.2', port: 7000, agent, method: 'POST', headers: { 'Content-Length': 300 } }, r => { r.resume(); r.on('end', () => console.log('ask ' + start + ' ' + now())) });
  q.on('socket', s => s.connecting ? s.once('connect', () => start = now()) : start = now()); q.end('x'.repeat(300)); }
"""
case("node-agent-asks-go", "node c.js", "./main serve", counted(5, 1), files=lambda d: (go_built(d), write(d, "c.js", NODE_AGENT)), path=SLOW_WAY, each=asked)
JAVA = """
import java.io.*; import java.net.*; import java.net.http.*; import java.time.*;
public class C {
  static long now() { Instant i = Instant.now(); return i.getEpochSecond() * 1000000000L + i.getNano(); }
  public static void main(String[] a) throws Exception {
    HttpClient c = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build(); StringBuilder said = new StringBuilder();
    for (int n = 0; n < 18; n++) { long start = now();
      if (a[0].equals("old")) { HttpURLConnection u = (HttpURLConnection) new URL("http://10.77.0.2:7000/").openConnection(); u.setDoOutput(true); if (a.length > 1) u.setFixedLengthStreamingMode(300); u.getOutputStream().write(new byte[300]); u.getInputStream().readAllBytes(); }
      else c.send(HttpRequest.newBuilder(URI.create("http://10.77.0.2:7000/")).POST(HttpRequest.BodyPublishers.ofByteArray(new byte[300])).build(), HttpResponse.BodyHandlers.ofByteArray());
      said.append(n < 12 ? "first " : "ask ").append(start).append(" ").append(now()).append("\\n"); Thread.sleep(20); }
    System.out.print(said); System.exit(0); } }
"""


def java_client(directory):
    go_built(directory)
    write(directory, "C.java", JAVA)
    subprocess.run("javac C.java", shell=True, cwd=directory, check=True)


# Classes that are loaded between a head and its body are the program's pause; what the library takes before it writes and behind what it has
# read, 1 to 3 ms, passes on no wire.
for name, how in (("java-urlconnection", "old"), ("java-urlconnection-streams", "old streams"), ("java-httpclient", "new")):
    case(name, f"java C {how}", "./main serve", counted(18, 1, **{"sender-think@client": (0, 60)}), files=java_client, path=SLOW_WAY)

# Tunnels and proxies: what is inside is in cipher, or passed on by somebody. The server behind them takes 80 ms (programs.BACKEND).

# nginx 1.22 speaks TLS 1.2 where nothing is said.
TLS_1_3 = "ssl_protocols TLSv1.3;"
HTTP_ASKS = ASK + """
import http.client, ssl
h = MAKE; h.connect()
def ask(): start = now(); h.request("GET", "/slow"); h.getresponse().read(); return start
# With the first question a tunnel opens what it needs.
ask()
for n in range(5): time.sleep(0.07); asked(ask())
"""
EIGHTY = (6 * 80, 6 * 86)


def eighties(trips, setups=1, computes=40, **more):
    """Six answers of 80 ms, and what a setup computes."""
    return lambda t, rtt: {"handshake@": setups * rtt, "round-trip|tls-handshake@": (trips[0] * rtt, trips[1] * rtt), "server-think@server": (EIGHTY[0], EIGHTY[1] + computes), "sender-think|server-think@client": (0, computes),
                           "sender-think@server": (0, computes / 2), **more}


def tunnel(name, near, far, make, expect, files=lambda d: None, **options):
    def put(directory):
        with_key(client__py=HTTP_ASKS.replace("MAKE", make), backend__py=BACKEND, nginx__conf=NGINX.replace("HTTP2", "").replace("OPTIONS", TLS_1_3).replace("7000 ssl", "7003 ssl"))(directory)
        files(directory)

    case(name, near + "python3 client.py", far, expect, files=put, path=options.pop("path", SLOW_WAY), tap="tcp port 7000 and host 10.77.0.1", each=options.pop("each", asked), **options)


PLAIN_THERE = 'http.client.HTTPConnection("10.77.0.2", 7000)'
WITH_TLS = "http.client.HTTPSConnection(\"{}\", {}, context=ssl._create_unverified_context())"
SSHD = ("mkdir -p /run/sshd; ssh-keygen -q -t ed25519 -N '' -f hostkey; chmod 600 login; python3 backend.py & exec /usr/sbin/sshd -D -p 7000 -h $PWD/hostkey -o AuthorizedKeysFile=$PWD/login.pub -o StrictModes=no -o UsePAM=no -o PermitRootLogin=yes")
SSH = "sleep 1.5; ssh -N -p 7000 -i login OPTIONS -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null 10.77.0.2 & sleep 4; "


def ssh_key(directory):
    subprocess.run("ssh-keygen -q -t ed25519 -N '' -f login", shell=True, cwd=directory, check=True)


# SSH's own start is five or six round trips and what keys cost; a channel is opened behind the first connection's first byte.
SSH_COSTS = {"computes": 900, "nagle|nagle-delayed-ack@": (0, 200)}
tunnel("ssh-forwards-http", SSH.replace("OPTIONS", "-L 8000:127.0.0.1:7001"), SSHD, 'http.client.HTTPConnection("127.0.0.1", 8000)', eighties((11, 22), **SSH_COSTS), files=ssh_key)
TCP_MODE = "defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 30s\n  timeout server 30s\nfrontend f\n  bind :7000\n  default_backend b\nbackend b\n  server s 127.0.0.1:PORT\n"
for tls in (False, True):
    tunnel("haproxy-tcp" + "-tls" * tls, "sleep 2; ", "python3 backend.py & " + "nginx -p . -c nginx.conf & " * tls + "sleep 1; exec haproxy -f haproxy.cfg", WITH_TLS.format(FAR, 7000) if tls else PLAIN_THERE, eighties((6 + tls, 6 + tls)),
           files=lambda d, tls=tls: write(d, "haproxy.cfg", TCP_MODE.replace("PORT", "7003" if tls else "7001")))
SQUID = "http_port 7000\nhttp_access allow all\ncache deny all\npid_filename none\naccess_log none\ncache_log /dev/null\nshutdown_lifetime 1 seconds\npinger_enable off\n"
THROUGH = WITH_TLS.format(FAR, 7000) + '; h.set_tunnel("127.0.0.1", 7003)'
tunnel("squid-connect-tls", "sleep 5; ", "rm -f /dev/shm/squid-*; python3 backend.py & nginx -p . -c nginx.conf & sleep 1; exec squid -N -f squid.conf", THROUGH, eighties((8, 8)), files=lambda d: write(d, "squid.conf", SQUID))
DANTE = "logoutput: HERE/log\ninternal: 0.0.0.0 port = 7000\nexternal: lo\nclientmethod: none\nsocksmethod: none\nuser.privileged: root\nuser.unprivileged: root\nclient pass { from: 0.0.0.0/0 to: 0.0.0.0/0 }\nsocks pass { from: 0.0.0.0/0 to: 0.0.0.0/0 }\n"
# SOCKS 5: methods, then the connection; then TLS.
case("socks-tls", "sleep 4; " + repeated("https://127.0.0.1:7003/slow", 6).replace("curl ", "curl -k --http1.1 --noproxy '' --socks5 10.77.0.2:7000 ", 1), "python3 backend.py & nginx -p . -c nginx.conf & sleep 1; exec danted -f danted.conf -p p",
     eighties((9, 10)), files=lambda d: (with_key(backend__py=BACKEND, nginx__conf=NGINX.replace("HTTP2", "").replace("OPTIONS", TLS_1_3).replace("7000 ssl", "7003 ssl"))(d), write(d, "danted.conf", DANTE.replace("HERE", str(d)))),
     path=SLOW_WAY, tap=NEAR_ONLY)
# OpenVPN over TCP: HTTP in an IP packet in a record. It sets no TCP_NODELAY, and the inner connection's acknowledgements are messages of their own:
# behind one of them a question or an answer stands until that is acknowledged, at the delay of an acknowledgement. What the server behind takes
# meanwhile shows in no packet. The intervention sets the option (--socket-flags).
VPN = "--dev tun --proto {} --ifconfig {} --cipher AES-256-CBC --auth SHA256 --secret static.key --verb 1"
VPN_NEAR, VPN_FAR = VPN.format("tcp-client --remote 10.77.0.2 7000", "10.99.0.1 10.99.0.2"), VPN.format("tcp-server --port 7000", "10.99.0.2 10.99.0.1")


def vpn(more):
    return {"near": f"openvpn {VPN_NEAR} {more} > vpn.near 2>&1 & sleep 8; python3 client.py",
            "far": f"sed -i s/127.0.0.1/0.0.0.0/ backend.py; python3 backend.py & exec openvpn {VPN_FAR} {more} > vpn.far 2>&1"}


def held_by_vpn(t, rtt):
    """What an answer took beyond its round trip, and the two of the first one: the server's 80 ms lie within what is held."""
    rest = t.waited() - 5 * rtt
    return {"handshake@": rtt, "round-trip@": (6 * rtt, 40 * rtt), "nagle|nagle-delayed-ack@": (t.waited() - t.fixed.waited(), rest + 3 * (80 + 45)), "server-think@server": None}


tunnel("openvpn-http", vpn("")["near"].replace("python3 client.py", ""), vpn("")["far"], 'http.client.HTTPConnection("10.99.0.2", 7001)', held_by_vpn,
       files=lambda d: subprocess.run("openvpn --genkey secret static.key", shell=True, cwd=d, check=True), each=None, fix="nodelay", changed=vpn("--socket-flags TCP_NODELAY"))

# Others: GnuTLS, git over https, rows through JDBC, mail.

# wget sets no TCP_NODELAY, and GnuTLS writes ChangeCipherSpec and Finished apart: what comes second, with the first request, waits for the
# acknowledgement of the first, which the server holds back for 40 ms (tcp_delack_min).
HELD_FINISHED = 80 + 40
WGET = "sleep 2; " + TIMED.format("wget -q --no-check-certificate -O got " + " ".join(f"https://{FAR}:7000/slow?{n}" for n in range(6)))
case("wget-https", WGET, BEHIND + "exec nginx -p . -c nginx.conf", eighties((7, 7), computes=60, **{"nagle-delayed-ack@client": (HELD_FINISHED, HELD_FINISHED + 15)}), files=with_key(nginx__conf=NGINX.replace("HTTP2", "").replace("OPTIONS", TLS_1_3), backend__py=BACKEND), path=SLOW_WAY, tap=NEAR_ONLY)
GIT_HTTP = """
server.modules = ("mod_cgi", "mod_alias", "mod_setenv", "mod_openssl")
server.document-root = "HERE"
server.port = 7000
server.errorlog = "HERE/error.log"
ssl.engine = "enable"
ssl.pemfile = "HERE/both.pem"
alias.url = ("/git" => "/usr/lib/git-core/git-http-backend")
setenv.set-environment = ("GIT_PROJECT_ROOT" => "HERE", "GIT_HTTP_EXPORT_ALL" => "1", "HOME" => "HERE")
cgi.assign = ("" => "")
$HTTP["url"] !~ "^/git" { cgi.assign = () }
"""
GIT_MADE = ("export HOME=$PWD; git config --global user.email a@example.org; git config --global user.name a; git config --global safe.directory '*';"
            " git init -q r; head -c 1500000 /dev/urandom > r/f; git -C r add f; git -C r commit -qm x; exec lighttpd -D -f lighttpd.conf")
case("git-https-clone", "sleep 4; " + TIMED.format("HOME=$PWD git -c http.sslVerify=false clone -q https://10.77.0.2:7000/git/r got"), GIT_MADE,
     # What is advertised, then the pack's negotiation and the pack (protocol version 2 asks for the references apart).
     lambda t, rtt: {"handshake@": rtt, "round-trip|tls-handshake@": (4 * rtt, 5 * rtt), "bandwidth@": (600, 820), "slow-start|receive-window@": (0, 5 * rtt), "server-think|sender-think@": (0, 400), "nagle|nagle-delayed-ack@": (0, 90)},
     files=with_key(lighttpd__conf=GIT_HTTP), path="--delay 20ms --rate 20mbit --queue 150k", settle=1.0)
JDBC = """
import java.sql.*; import java.time.*; import java.util.*;
public class J {
  static List<String> waits = new ArrayList<>();
  static long now() { Instant i = Instant.now(); return i.getEpochSecond() * 1000000000L + i.getNano(); }
  static void waited(long start) { waits.add("ask " + start + " " + now()); }
  public static void main(String[] a) throws Exception {
    Properties p = new Properties(); p.put("user", "postgres"); p.put("sslmode", "MODE"); p.put("sslfactory", "org.postgresql.ssl.NonValidatingFactory"); p.put("gssEncMode", "disable");
    Connection c = DriverManager.getConnection("jdbc:postgresql://10.77.0.2:7000/postgres", p);
    WORK
    c.close(); for (String w : waits) System.out.println(w); System.out.flush(); System.exit(0); } }
"""
# Rows in portions: each next() that finds none left asks for more.
FETCHES = "c.setAutoCommit(false); Statement s = c.createStatement(); s.setFetchSize(PORTION); long start = now(); ResultSet r = s.executeQuery(\"select n, repeat('x', 60) from generate_series(1, 1000) n\"); while (r.next()) r.getString(2); waited(start); s.close(); c.commit();"
INSERTS = ("Statement s = c.createStatement(); s.execute(\"create table t (n int, v text)\"); PreparedStatement q = c.prepareStatement(\"insert into t values (?, ?)\");"
           " for (int n = 0; n < 16; n++) { q.setInt(1, n); q.setString(2, \"value\"); long start = now(); q.executeUpdate(); if (n > 5) waited(start); }")
# A table that another transaction holds, of the far end's own, for 0.7 s and again.
LOCKED = "Statement s = c.createStatement(); s.execute(\"select pg_sleep(0.05)\"); for (int n = 0; n < 3; n++) { long start = now(); s.execute(\"select pg_sleep(0.05)\"); waited(start); } long start = now(); s.executeQuery(\"select count(*) from l\"); waited(start);"
HOLDS = PG.replace("exec su", "(sleep 4; psql -q -h $D -p 7000 -U postgres -c 'create table l (v int)'; sleep 0.5; while sleep 0.1; do psql -q -h $D -p 7000 -U postgres -c 'begin; lock table l; select pg_sleep(0.7); commit'; done) & exec su")


def jdbc(name, work, expect, far=PG, mode="disable", **options):
    def files(directory):
        write(directory, "J.java", JDBC.replace("WORK", work).replace("MODE", mode))
        subprocess.run("javac J.java", shell=True, cwd=directory, check=True)
        if mode == "require":
            subprocess.run(CERTIFICATE, shell=True, cwd=directory, check=True)

    case(name, "sleep 5; java -cp /usr/share/java/postgresql.jar:. J", far, expect, files=files, path=options.pop("path", SLOW_WAY), tap=NEAR_ONLY, **options)


def jdbc_files(work):
    def put(directory):
        write(directory, "J.java", JDBC.replace("WORK", work).replace("MODE", "disable"))
        subprocess.run("javac J.java", shell=True, cwd=directory, check=True)

    return put


# Startup (the driver asks for TLS only where it must), three settings, BEGIN with the first statement, COMMIT; ten or eleven portions.
jdbc("jdbc-fetch-size", FETCHES.replace("PORTION", "100"), lambda t, rtt: {"handshake@": rtt, "round-trip@": (13 * rtt, 17 * rtt), "server-think@server": (0, 90), "sender-think@client": (0, 90)}, fix="fewer-round-trips",
     changed={"files": jdbc_files(FETCHES.replace("PORTION", "0"))})
# What the driver takes before it writes, 1 or 2 ms, shows in no packet at the other end.
jdbc("jdbc-inserts", INSERTS, lambda t, rtt: {"handshake@": rtt, "round-trip@": (18 * rtt, 22 * rtt), "server-think@server": (0, 120), "sender-think@client": (0, 90)}, each=asked, each_at=("near",))
jdbc("jdbc-waits-for-lock", LOCKED, lambda t, rtt: {"handshake@": rtt, "round-trip@": (6 * rtt, 10 * rtt), "server-think@server": (t.waited() - 4 * rtt + 30, t.waited() - 4 * rtt + 110), "sender-think@client": (0, 90)}, far=HOLDS, each=asked)
