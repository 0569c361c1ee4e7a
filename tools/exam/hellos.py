"""How TLS begins: a second ClientHello, certificates longer than a window, certificates of the client, early data, packets that are lost;
and what is said in it later by software that the other files have in clear.

Each is an HTTP server whose answers take 80 ms (programs.BACKEND) behind one that speaks TLS, or says by itself what it took.
"""

import subprocess

from brokers import KAFKA, KAFKA_SERVES, SENDS, built
from cases import case
from ciphers import BEHIND, NGINX, PG, TLS_URL, files as with_key, known
from more import NEAR_ONLY, SLOW_WAY, jdbc, servlet, warm, warmed, works
from peer import FAR
from programs import BACKEND, write
from services import logged, repeated

SERVES = BEHIND + "exec nginx -p . -c nginx.conf"


def conf(options, listen=""):
    return NGINX.replace("HTTP2", listen).replace("OPTIONS", options)


TIMES = 5


def eighties(tls, **more):
    """Five answers of 80 ms; TLS takes so many round trips, and what both ends compute. curl says farewell (close_notify), for which nobody
    waits: that has a way of its own where it is billed."""
    return lambda t, rtt: {"handshake@": rtt, "round-trip|tls-handshake@": ((TIMES + tls) * rtt, (TIMES + tls + 1) * rtt), "server-think@server": (80 * TIMES, 84 * TIMES + 30),
                           "sender-think|server-think@client": (0, 20), "sender-think@server": (0, 15), **more}


def tls(name, options, flags, expect, listen="", put=lambda d: None, path=SLOW_WAY, **more):
    def files(directory):
        with_key(nginx__conf=conf(options, listen), backend__py=BACKEND)(directory)
        put(directory)

    case(name, "sleep 2; " + repeated(f"{TLS_URL}/slow", TIMES).replace("curl ", f"curl -k {flags} ", 1), SERVES, expect, files=files, path=path, tap=NEAR_ONLY, **more)


ONLY_1_3, ONLY_1_2 = "ssl_protocols TLSv1.3;", "ssl_protocols TLSv1.2;"
# The client offers a key that the server does not take: a second ClientHello (RFC 8446, 4.1.4).
tls("tls-hello-retry", ONLY_1_3 + " ssl_ecdh_curve secp384r1;", "--http1.1 --curves X25519:P-384", eighties(2))
tls("tls-hello-retry-h2", ONLY_1_3 + " ssl_ecdh_curve secp384r1;", "--http2 --curves X25519:P-384", eighties(2), listen="http2")
# Certificates of the client: in its second flight.
CLIENT_CERT = " ssl_verify_client optional_no_ca;"
for version, only, trips in (("1.3", ONLY_1_3, 1), ("1.2", ONLY_1_2, 2)):
    tls(f"tls-client-certificate-{version}", only + CLIENT_CERT, "--http1.1 --cert cert.pem --key key.pem", eighties(trips))


def long_chain(directory):
    """A server's certificates of 25 KB, more than ten segments: its flight takes another round trip, from the initial window on (RFC 6928)."""
    many = ",".join(f"DNS:host-{n}.of-a-name-that-is-long.far.example" for n in range(450))
    subprocess.run(f"openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=far-end -addext 'subjectAltName={many}' 2>openssl.err", shell=True, cwd=directory, check=True)


for version, only, trips in (("1.3", ONLY_1_3, 1), ("1.2", ONLY_1_2, 2)):
    tls(f"tls-long-certificate-{version}", only, "--http1.1", eighties(trips, **{"slow-start|congestion-window@server": 80.0}), put=long_chain)
# What is lost while TLS begins: the ClientHello, the server's flight, the client's second one. The intervention is a path without loss.
LOSSES = {"hello": "--forward 'loss data 1'", "flight": "--backward 'loss data 1'", "finished": "--forward 'loss data 2'"}
for what, loss in LOSSES.items():
    tls(f"tls-lost-{what}", ONLY_1_3, "--http1.1",
        lambda t, rtt: {"handshake@": rtt, "round-trip|tls-handshake@": (6 * rtt, 7 * rtt), "rto|loss@": (t.waited() - t.fixed.waited() - 30, t.waited() - t.fixed.waited() + 15), "server-think@server": (400, 450), "sender-think|server-think@client": (0, 20)},
        # Beside the client a flight that was lost is one that has not been written: no packet tells.
        path=f"{SLOW_WAY} {loss}", fix="find-drops", changed={"path": SLOW_WAY}, skip=("near",) if what == "flight" else ())
# Early data: the question is in the first flight, behind the ClientHello of a session that goes on (RFC 8446, 2.3). The server's 80 ms begin with it,
# and TLS takes its round trip meanwhile.
EARLY = """
printf 'GET /slow HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n' > ask
c() { openssl s_client -connect 10.77.0.2:7000 -tls1_3 -quiet "$@" > got 2> err; }
(sleep 0.7; cat ask; sleep 0.5) | c -sess_out ticket
sleep 0.3
for i in 1 2 3; do S=$(date +%s%N); c -sess_in ticket -early_data ask < /dev/null; echo ask $S $(date +%s%N); sleep 0.2; done
"""
case("tls-early-data", "sleep 2; bash early.sh", SERVES, lambda t, rtt: {"handshake@": 4 * rtt, "round-trip|tls-handshake@": (8 * rtt, 14 * rtt), "server-think@server": (80 + 3 * (80 - rtt), 380), "sender-think@server": (0, 15), "sender-think|server-think@client": (0, 40)},
     files=lambda d: (with_key(nginx__conf=conf(ONLY_1_3 + " ssl_early_data on; ssl_session_tickets on;"), backend__py=BACKEND)(d), write(d, "early.sh", EARLY)), path="--delay 10ms", tap=NEAR_ONLY)

# Tomcat over TLS: row by row, and by HTTP/2; the JDK's TLS writes its flight in records of its own.

HTTP2 = "c.addUpgradeProtocol(new org.apache.coyote.http2.Http2Protocol());"
for name, flag, more in (("h1", "--http1.1", ""), ("h2", "--http2", HTTP2)):
    case(f"tls-tomcat-{name}-works-60", warmed("/sleep", "https") + repeated(f"{TLS_URL}/sleep", 6).replace("curl ", f"curl -k {flag} ", 1), "exec bash run.sh", works(6, 1), files=servlet("tomcat", more, True), path=SLOW_WAY)
    case(f"tls-tomcat-{name}-rows", warmed("/rows", "https") + repeated(f"{TLS_URL}/rows", 3).replace("curl ", f"curl -k {flag} ", 1), "exec bash run.sh",
         lambda t, rtt: {"handshake@": 2 * rtt, "round-trip|tls-handshake@": (6 * rtt, 8 * rtt), "sender-think@server": (logged(t, "far.out", "pause"), logged(t, "far.out", "pause") + 80),
                         "server-think@server": (0, warm(t) - 3 * rtt - logged(t, "far.out", "pause") / 4 + 90), "sender-think|server-think@client": (0, 30)}, files=servlet("tomcat", more, True), path=SLOW_WAY)
# A send buffer set small by an option of the connector; in clear and in cipher.
SMALL = 'c.setProperty("socket.txBufSize", "16384");'
for secured in (False, True):
    scheme = "https" if secured else "http"
    case("tls-" * secured + "tomcat-send-buffer", warmed("/big", scheme) + repeated(f"{scheme}://{FAR}:7000/big", 4).replace("curl ", "curl -k ", 1), "exec bash run.sh",
         lambda t, rtt, secured=secured: {"handshake@": 2 * rtt, "round-trip|tls-handshake@": ((5 + 2 * secured) * rtt, (5 + 4 * secured) * rtt), "send-buffer@server": (t.waited() - t.fixed.waited(), t.waited() - t.fixed.waited() + warm(t)),
                                          "slow-start|congestion-window|receive-window@": (0, t.fixed.waited() + 2 * rtt), "server-think|sender-think@server": (0, warm(t)), "sender-think@client": (0, 30)},
         files=servlet("tomcat", SMALL, secured), path=SLOW_WAY, fix="no-sndbuf", changed={"files": servlet("tomcat", "", secured)})

# Brokers and databases.


def kafka_tls(client, beside=""):
    def put(directory):
        secured = ("security.protocol=SSL", "ssl.truststore.type=PEM", f"ssl.truststore.location={directory}/cert.pem", "ssl.endpoint.identification.algorithm=")
        text = client.replace('"10.77.0.2"', '"10.77.0.2", ' + ", ".join(f'"{one}"' for one in secured))
        conf_text = ("listeners=SSL://0.0.0.0:7000,PLAINTEXT://127.0.0.1:7001,CONTROLLER://127.0.0.1:7002\nadvertised.listeners=SSL://10.77.0.2:7000,PLAINTEXT://127.0.0.1:7001\n"
                     "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL\ninter.broker.listener.name=PLAINTEXT\nssl.keystore.type=PEM\nssl.keystore.location=HERE/both.pem\n")
        built(conf_text, text, beside)(directory)
        with_key()(directory)
        with open(f"{directory}/K.java") as file:
            text = file.read()
        write(directory, "K.java", text.replace('host + ":7000"', '(host.equals("10.77.0.2") ? host + ":7000" : "127.0.0.1:7001")'))
        subprocess.run("javac -cp $(cat cp) K.java", shell=True, cwd=directory, check=True)

    return put


case("tls-kafka-sends", "sleep 24; java -cp $(cat cp):. K client", KAFKA + "(sleep 9; java -cp $CP K make > beside.out 2>&1) & " + KAFKA_SERVES,
     lambda t, rtt: {"handshake@": (rtt, 2 * rtt), "round-trip|tls-handshake@": (24 * rtt, 29 * rtt), "server-think@server": (t.waited() - 8 * rtt - 20, t.waited() - 8 * rtt + 600), "sender-think|server-think@client": (0, 500),
                     "sender-think@server": (0, 100)}, files=kafka_tls(SENDS), tap=NEAR_ONLY, path=SLOW_WAY)
SLEEPS = 'Statement s = c.createStatement(); for (String n : new String[] {"0.1", "0.2", "0", "0.05"}) { long start = now(); s.execute("select pg_sleep(" + n + ")"); waited(start); Thread.sleep(70); }'
# The driver asks in clear whether the server speaks TLS, and gets a byte.
jdbc("tls-jdbc-sleeps", SLEEPS, known(100, 200, 50, computes=120, trips=(9, 12), **{"sender-think|server-think@client": (0, 400)}), far=PG, mode="require")
