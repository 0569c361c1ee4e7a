"""The cases of real servers and clients: what they serve, how they are started, what their own clocks say."""

import json
import os

import cases
from cases import BULK, VIEWS, case
from peer import FAR

NGINX = """
user root; master_process off; daemon off; pid nginx.pid; error_log stderr crit;
events {}
http {
  access_log off; client_max_body_size 100m; client_body_buffer_size 16m; HTTP_OPTIONS
  client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;
  server { listen 7000 LISTEN_OPTIONS; root .; keepalive_timeout 60; SERVER_OPTIONS
    location /slow { proxy_pass http://127.0.0.1:7001; }
    location /paced { alias .; limit_rate 400k; }
  }
}
"""
BACKEND = """
import http.server, time, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        time.sleep(0.08)
        body = b"x" * 500
        self.wfile.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body)
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer(("127.0.0.1", 7001), Handler).serve_forever()
"""
# What curl's own clock says of each transfer, in a line.
CURL = ("curl -s -o /dev/null -w '%{json}\\n' ")


def nginx(listen="", http="", server=""):
    def files(directory):
        text = NGINX.replace("LISTEN_OPTIONS", listen).replace("HTTP_OPTIONS", http).replace("SERVER_OPTIONS", server)
        write(directory, "nginx.conf", text)
        write(directory, "backend.py", BACKEND)
        write(directory, "small.txt", "x" * 700)
        write(directory, "big.bin", "x" * BULK)
        if "ssl" in listen:
            os.system(f"cd {directory} && openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem"
                      " -days 2 -subj /CN=far-end 2>openssl.err")

    return files


def write(directory, name, text):
    with open(f"{directory}/{name}", "w") as file:
        file.write(text)


def curls(t, name="near.out"):
    """A transfer a line; milliseconds."""
    times = []
    for line in t.text(name).splitlines():
        if line.startswith("{"):
            times.append({k[5:]: 1e3 * v for k, v in json.loads(line).items() if k.startswith("time_")})
    return times


def total(t):
    return sum(c["total"] for c in curls(t))


SERVE = "nginx -p . -c nginx.conf"
URL = f"http://{FAR}:7000"

case("nginx-keep-alive", " ".join([CURL] + [f"{URL}/small.txt"] * 8).replace("-o /dev/null", "-o /dev/null " * 8), SERVE,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 8 * rtt}, files=nginx(), views=VIEWS)
case("nginx-new-connections", "for i in 1 2 3 4 5; do " + CURL + f"{URL}/small.txt; done", SERVE,
     lambda t, rtt: {"handshake@": 5 * rtt, "round-trip@": 5 * rtt}, files=nginx())
case("nginx-slow-backend", "sleep 2; for i in 1 2 3; do " + CURL + f"{URL}/slow; done", "python3 backend.py & sleep 1; " + SERVE,
     lambda t, rtt: {"handshake@": 3 * rtt, "round-trip@": 3 * rtt, "server-think@server": total(t) - 6 * rtt}, files=nginx())
case("nginx-big", CURL + f"{URL}/big.bin", SERVE,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "bandwidth@": (1000, 1300), "slow-start|receive-window@": (0, 5 * rtt)},
     files=nginx(), path="--delay 10ms --rate 20mbit --queue 100k")
case("nginx-limit-rate", CURL + f"{URL}/paced/big.bin -r 0-799999", SERVE,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "sender-think@server": (1200, 2100), "slow-start|receive-window@": (0, 5 * rtt)},
     files=nginx())
case("curl-limit-rate", CURL + f"--limit-rate 1500k {URL}/big.bin", SERVE,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "receiver-think|receive-window@client": (1400, 2000), "slow-start|congestion-window@": (0, 8 * rtt), "bandwidth@": (0, 60)},
     files=nginx(), near_sysctl=["net.ipv4.tcp_rmem=4096 131072 262144"])
case("nginx-tls", CURL + f"-k https://{FAR}:7000/small.txt", SERVE,
     lambda t, rtt: {"handshake@": rtt, "round-trip|tls-handshake@": (2 * rtt, 4 * rtt), "server-think|sender-think@": (0, 30)},
     files=nginx("ssl", "ssl_certificate cert.pem; ssl_certificate_key key.pem;"), path="--delay 25ms")
case("nginx-tls-big", CURL + f"-k https://{FAR}:7000/big.bin", SERVE,
     lambda t, rtt: {"handshake@": rtt, "round-trip|tls-handshake@": (2 * rtt, 4 * rtt), "bandwidth@": (1000, 1300), "slow-start|receive-window@": (0, 5 * rtt),
                     "server-think|sender-think@": (0, 40)},
     files=nginx("ssl", "ssl_certificate cert.pem; ssl_certificate_key key.pem;"), path="--delay 10ms --rate 20mbit --queue 100k")
case("nginx-http2-parallel", CURL + "--http2-prior-knowledge -Z " + " ".join(f"{URL}/small.txt?{n}" for n in range(6)).replace(" ", " -o /dev/null "),
     SERVE, lambda t, rtt: {"handshake@": rtt, "round-trip@": (rtt, 4 * rtt)}, files=nginx("http2"))
case("nginx-upload", "sleep 2; " + CURL + f"-T big.bin {URL}/slow", "python3 backend.py & sleep 1; " + SERVE,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": (rtt, 2 * rtt), "bandwidth@": (1000, 1300), "slow-start|receive-window@": (0, 5 * rtt),
                     "server-think@server": (0, 120)}, files=nginx(), path="--delay 10ms --rate 20mbit --queue 100k")
case("curl-waits-for-continue", CURL + "-H 'Expect: 100-continue' --expect100-timeout 1 -d @small.txt " + URL,
     lambda p: deaf_to_expect(p), lambda t, rtt: {"handshake@": rtt, "round-trip@": (rtt, 2 * rtt), "sender-think@client": (950, 1100)}, files=nginx())


def deaf_to_expect(p):
    p.listen()
    p.accept()
    data = b""
    while not data.endswith(b"x" * 700):
        data += p.sock.recv(65536)
    p.sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    p.sock.recv(1)


case("redis-pipeline", "redis-benchmark -h 10.77.0.2 -p 7000 -c 1 -n 40 -t get -q", "redis-server --port 7000 --save '' --protected-mode no",
     lambda t, rtt: {"handshake@": None, "round-trip@": None, "server-think|sender-think@": (0, 5)})
case("redis-sleeps", "for i in 1 2 3; do redis-cli -h 10.77.0.2 -p 7000 debug sleep 0.12; done",
     "redis-server --port 7000 --save '' --protected-mode no --enable-debug-command yes",
     lambda t, rtt: {"handshake@": 3 * rtt, "round-trip@": (3 * rtt, 6 * rtt), "server-think@server": 360})
case("redis-keys", "redis-cli -h 10.77.0.2 -p 7000 -r 10 -i 0.03 set key value", "redis-server --port 7000 --save '' --protected-mode no",
     lambda t, rtt: {"handshake@": rtt, "round-trip@": (10 * rtt, 11 * rtt)})
case("memcached-gets", "python3 -c \"import socket,time\ns=socket.create_connection(('10.77.0.2',7000))\nfor i in range(10):\n s.sendall(b'get a\\r\\n');s.recv(99)\"",
     "memcached -u root -p 7000", lambda t, rtt: {"handshake@": rtt, "round-trip@": 10 * rtt})
MARIA = ("mariadb-install-db --no-defaults --user=root --datadir=$PWD/db --auth-root-authentication-method=normal >/dev/null 2>&1;"
         " mariadbd --no-defaults --user=root --datadir=$PWD/db --port 7000 --socket=$PWD/db/s --skip-grant-tables --bind-address=0.0.0.0")
case("mariadb-sleep", "mariadb -h 10.77.0.2 -P 7000 --skip-ssl -e 'select sleep(0.1); select sleep(0.15); select 1'", MARIA,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": (4 * rtt, 8 * rtt), "server-think@server": (250, 285)})
case("mariadb-rows", "mariadb -h 10.77.0.2 -P 7000 --skip-ssl --quick -e 'select repeat(seq, 50) from information_schema.tables, seq_1_to_200' mysql >/dev/null"
     .replace("information_schema.tables, seq_1_to_200", "seq_1_to_4000"), MARIA,
     # 765 kB from ten segments on: 14, 29, 58 kB, and then at most the window, which grows from 110 kB. Some clients ask once more first.
     lambda t, rtt: {"handshake@": rtt, "round-trip@": (3 * rtt, 8 * rtt), "slow-start|receive-window|congestion-window@": (0, 7 * rtt),
                     "server-think@server": (0, 60), "bandwidth@": (0, 30)})
HAPROXY = """
global
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend f
  bind :7000
  default_backend b
backend b
  server s 127.0.0.1:7001
"""


def haproxy(directory):
    write(directory, "haproxy.cfg", HAPROXY)
    write(directory, "backend.py", BACKEND)


case("haproxy-slow-backend", "sleep 2; " + " ".join([CURL] + [URL] * 4).replace("-o /dev/null", "-o /dev/null " * 4),
     "python3 backend.py & sleep 1; haproxy -f haproxy.cfg -db",
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 4 * rtt, "server-think@server": total(t) - 5 * rtt}, files=haproxy,
     tap="tcp and host 10.77.0.1")
case("iperf3-bulk", "iperf3 -c 10.77.0.2 -p 7000 -n 3M -R --json > iperf.json", "iperf3 -s -p 7000",
     lambda t, rtt: {"handshake@": 2 * rtt, "round-trip@": None, "server-think|sender-think@": None, "bandwidth@": (950, 1400),
                     "slow-start|receive-window@": (0, 5 * rtt)}, path="--delay 10ms --rate 20mbit --queue 100k", settle=1.0)
case("iperf3-paced", "iperf3 -c 10.77.0.2 -p 7000 -n 1M --fq-rate 8M -C cubic --json > iperf.json", "iperf3 -s -p 7000",
     lambda t, rtt: {"handshake@": 2 * rtt, "round-trip@": None, "server-think|sender-think@": None, "pacing|slow-start@client": (650, 1200)}, settle=1.0)
JAVA = """
import java.io.*; import java.net.*;
public class Echo { public static void main(String[] a) throws Exception {
  ServerSocket s = new ServerSocket(7000); Socket c = s.accept();
  BufferedReader in = new BufferedReader(new InputStreamReader(c.getInputStream()));
  OutputStream out = c.getOutputStream();
  for (String l; (l = in.readLine()) != null; ) { out.write("HTTP/1.1 200 OK\\r\\n".getBytes()); out.write("Content-Length: 5\\r\\n\\r\\n".getBytes());
    out.write("hello\\n".getBytes()); } } }
"""


def asks_lines(p):
    p.connect()
    p.set(TCP_NODELAY=1)
    for _ in range(6):
        start = cases.p_now()
        p.sock.sendall(b"x" * 99 + b"\n")
        p.read(17 + 21 + 6)
        p.note("exchange", start)
    p.close()


case("java-three-writes", asks_lines, "java Echo.java",
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 6 * rtt, "nagle|nagle-delayed-ack@server": t.sum("near", "exchange") - 6 * rtt - warm(t, rtt),
                     "server-think|sender-think@server": warm(t, rtt)},
     files=lambda d: write(d, "Echo.java", JAVA))


def warm(t, rtt):
    """What the first exchange took more than the median one: classes that are loaded."""
    spans = t.spans("near", "exchange")
    return max(0.0, spans[0] - 2 * rtt)


NODE = "require('http').createServer((q,r)=>setTimeout(()=>{r.end('x'.repeat(400))},45)).listen(7000)"
case("node-thinks-45", " ".join([CURL] + [URL] * 5).replace("-o /dev/null", "-o /dev/null " * 5), f'node -e "{NODE}"',
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 5 * rtt, "server-think@server": total(t) - 6 * rtt})
SSH = ("mkdir -p /run/sshd; [ -f key ] || ssh-keygen -q -t ed25519 -N '' -f key; cp key.pub authorized; chmod 600 authorized key;"
       " /usr/sbin/sshd -D -p 7000 -h $PWD/key -o AuthorizedKeysFile=$PWD/authorized -o StrictModes=no -o UsePAM=no -o PermitRootLogin=yes")
case("ssh-sleep", "ssh -p 7000 -i key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null 10.77.0.2 'sleep 0.4; echo done'", SSH,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": (6 * rtt, 14 * rtt), "server-think|sender-think@": (400, 1400),
                     "nagle|nagle-delayed-ack@": None}, path="--delay 15ms")
VSFTPD = "mkdir -p ftp /var/run/vsftpd/empty; head -c 2000000 /dev/zero > ftp/f; chmod 555 ftp; vsftpd vsftpd.conf"


def vsftpd(directory):
    write(directory, "vsftpd.conf", "listen=YES\nlisten_port=7000\nbackground=NO\nanonymous_enable=YES\nanon_root=%s/ftp\nseccomp_sandbox=NO\n" % directory)


case("ftp-download", CURL + f"ftp://{FAR}:7000/f", VSFTPD,
     lambda t, rtt: {"handshake@": 2 * rtt, "round-trip@": None, "bandwidth@": (600, 1100), "slow-start|receive-window@": (0, 6 * rtt),
                     "server-think@server": None, "sender-think@server": (0, 1200)}, files=vsftpd, path="--delay 10ms --rate 20mbit --queue 100k")


def beside_bulk(p):
    """A transfer fills the queue; a second connection asks through it."""
    import socket
    import threading

    from peer import FAR as far

    bulk = socket.create_connection((far, 7000))
    bulk.sendall(b"b" * 200)

    def drain():
        while bulk.recv(1 << 18):
            pass

    threading.Thread(target=drain, daemon=True).start()
    p.think(700)
    p.connect()
    p.set(TCP_NODELAY=1)
    p.ask(5, 200, 300, 20)
    p.close()


def serves_bulk(p):
    import threading

    p.listen()
    bulk = p.listener.accept()[0]
    bulk.recv(200)
    threading.Thread(target=lambda: bulk.sendall(b"x" * 8_000_000), daemon=True).start()
    p.serve(200, 300)


case("rpc-into-full-queue", beside_bulk, serves_bulk,
     lambda t, rtt: {"handshake|queueing@": None, "round-trip@": 6 * rtt, "bandwidth|slow-start|receive-window|congestion-window|loss@": None},
     path="--delay 10ms --rate 20mbit --queue 100k")
