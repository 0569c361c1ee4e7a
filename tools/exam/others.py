"""Proxies at the client, chat, screens, packages: software that the other files lack."""

import os
import subprocess

from brokers import placed
from cases import case
from more import NEAR_ONLY, SLOW_WAY
from programs import CURL, URL, nginx
from software import TIMED
from waits import ASK

# A proxy at the client, whose own client reads slowly: its buffers fill, and then it does not read either.

BESIDE = "defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 60s\n  timeout server 60s\nfrontend f\n  bind 127.0.0.1:8000\n  default_backend b\nbackend b\n  server s 10.77.0.2:7000\n"
ITS_BUFFERS = "global\n  tune.rcvbuf.server 65536\n  tune.sndbuf.client 65536\n"
LIMITED = "haproxy -f h.cfg & sleep 2; " + CURL + "--noproxy '' --limit-rate 1500k http://127.0.0.1:8000/big.bin"


def beside(directory):
    nginx()(directory)
    placed(h__cfg=ITS_BUFFERS + BESIDE)(directory)


case("haproxy-slow-reader", LIMITED, "nginx -p . -c nginx.conf",
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "receiver-think|receive-window@client": (0.8 * (t.arrived() - t.fixed.arrived()), t.arrived()), "slow-start|congestion-window@": (0, 6 * rtt), "bandwidth@": (0, 60)},
     files=beside, tap="tcp port 7000", clock=lambda t: t.arrived(), fix="read-promptly", changed={"near": LIMITED.replace("--limit-rate 1500k ", "")})
# A proxy at the server that sets a small send buffer for its clients.
SMALL = "global\n  tune.sndbuf.client BYTES\n" + BESIDE.replace("127.0.0.1:8000", ":7000").replace("10.77.0.2:7000", "127.0.0.1:7001")


def behind(size):
    def put(directory):
        nginx()(directory)
        with open(f"{directory}/nginx.conf") as file:
            text = file.read()
        with open(f"{directory}/nginx.conf", "w") as file:
            file.write(text.replace("listen 7000", "listen 127.0.0.1:7001"))
        placed(h__cfg=SMALL.replace("BYTES", str(size)) if size else SMALL.replace("global\n  tune.sndbuf.client BYTES\n", ""))(directory)

    return put


case("haproxy-send-buffer", "sleep 2; " + CURL + f"-r 0-599999 {URL}/big.bin", "nginx -p . -c nginx.conf & sleep 1; exec haproxy -f h.cfg",
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "send-buffer@server": (0.8 * (t.waited() - t.fixed.waited()), t.waited() - 2 * rtt), "slow-start|congestion-window|receive-window@": (0, t.fixed.waited()), "server-think|sender-think@server": (0, 15)},
     files=behind(24_000), path="--delay 20ms", tap=NEAR_ONLY, fix="no-sndbuf", changed={"files": behind(0)})

# XMPP: a stream that both sides open, authentication, TLS; then pings as questions.

PROSODY = ('pidfile = "HERE/pid"\ndata_path = "HERE/data"\ninterfaces = { "*" }\nc2s_ports = { 7000 }\ns2s_ports = { 7010 }\nlog = "HERE/log"\nmodules_enabled = { "saslauth", "ping", "roster", "disco", "tls" }\nmodules_disabled = { "s2s" }\n'
           'authentication = "internal_plain"\nallow_unencrypted_plain_auth = true\nc2s_require_encryption = false\nrun_as_root = true\nVirtualHost "far.example"\nSSL')
XMPP = ASK + """
import slixmpp
class Client(slixmpp.ClientXMPP):
    def __init__(self):
        super().__init__("a@far.example", "secret"); self.register_plugin("xep_0199"); self.add_event_handler("session_start", self.begun)
        self["feature_mechanisms"].unencrypted_plain = True; self["feature_mechanisms"].unencrypted_scram = True; self.enable_direct_tls = False; self.enable_starttls = TLS; self.enable_plaintext = True
        import ssl; self.ssl_context.check_hostname = False; self.ssl_context.verify_mode = ssl.CERT_NONE
    async def begun(self, e):
        for n in range(8): start = now(); await self["xep_0199"].send_ping("far.example", timeout=5); asked(start); await asyncio.sleep(0.06)
        self.disconnect()
async def main():
    c = Client(); c.connect("10.77.0.2", 7000); await asyncio.wait_for(c.disconnected, 25)
asyncio.run(main())
"""
PROSODY_RUNS = "mkdir -p data/far%2eexample/accounts; echo 'return { [\"password\"] = \"secret\"; };' > data/far%2eexample/accounts/a.dat; chmod 644 *.pem; exec prosody -F --config prosody.cfg.lua"


def prosody(tls):
    def put(directory):
        placed(True, client__py=XMPP.replace("TLS", str(tls)))(directory)
        with open(f"{directory}/prosody.cfg.lua", "w") as file:
            file.write(PROSODY.replace("HERE", str(directory)).replace("SSL", f'ssl = {{ key = "{directory}/key.pem"; certificate = "{directory}/cert.pem" }}\n' if tls else ""))

    return put


# The stream's head and its features, SCRAM in two steps (RFC 7677), the stream again, a resource, a session, eight pings, the end. TLS asks in
# clear, and the stream begins once more; the library's own time around a ping is 1 to 4 ms then. Prosody sets no TCP_NODELAY: what follows TLS's
# Finished waits for its acknowledgement.
case("xmpp", "sleep 3; python3 client.py", PROSODY_RUNS, lambda t, rtt: {"handshake@": rtt, "round-trip@": (14 * rtt, 15 * rtt), "server-think|sender-think@server": (0, 60), "sender-think|server-think@client": (0, 60)},
     files=prosody(False), path=SLOW_WAY, tap=NEAR_ONLY, each=lambda t: t.asked())
case("xmpp-tls", "sleep 3; python3 client.py", PROSODY_RUNS,
     lambda t, rtt: {"handshake@": rtt, "round-trip|tls-handshake@": (16 * rtt, 19 * rtt), "nagle|nagle-delayed-ack@server": (0, rtt + 50), "server-think|sender-think@server": (0, 60), "sender-think|server-think@client": (0, 60)},
     files=prosody(True), path=SLOW_WAY, tap=NEAR_ONLY)

# apt: a list that is signed by nobody, then packages, several at once behind each other on one connection (Acquire::http::Pipeline-Depth).

APT = ("mkdir -p lists/partial archives/partial; printf 'deb [trusted=yes] http://10.77.0.2:7000/ ./\\n' > sources; touch status; O=\"-o Dir::Etc::SourceList=$PWD/sources -o Dir::Etc::SourceParts=/dev/null -o Dir::State=$PWD -o Dir::State::lists=$PWD/lists"
       " -o Dir::State::status=$PWD/status -o Dir::Cache=$PWD -o Dir::Cache::archives=$PWD/archives -o APT::Sandbox::User=root -o Acquire::Languages=none -o APT::Get::List-Cleanup=0 -o Debug::NoLocking=1\"; sleep 1; "
       + TIMED.format("apt-get $O update > update.log 2>&1") + "; " + TIMED.format("apt-get $O -y --download-only --no-install-recommends install p0 p1 p2 p3 p4 p5 p6 p7 > install.log 2>&1"))


def packages(directory):
    for n in range(8):
        os.makedirs(f"{directory}/b/DEBIAN", exist_ok=True)
        with open(f"{directory}/b/DEBIAN/control", "w") as file:
            file.write(f"Package: p{n}\nVersion: 1\nArchitecture: all\nMaintainer: a <a@example.org>\nDescription: x\n")
        with open(f"{directory}/b/f", "wb") as file:
            file.write(os.urandom(20_000))
        subprocess.run(f"dpkg-deb -b b p{n}.deb > /dev/null", shell=True, cwd=directory, check=True)
    subprocess.run("dpkg-scanpackages -m . > Packages 2>scan.err; gzip -k Packages", shell=True, cwd=directory, check=True)
    nginx()(directory)


case("apt-downloads", APT, "exec nginx -p . -c nginx.conf",
     # InRelease, Release and a list that is or is not there in some formats; then eight packages at once. apt sorts what it has in between.
     lambda t, rtt: {"handshake@": (rtt, 3 * rtt), "round-trip@": (5 * rtt, 22 * rtt), "slow-start|congestion-window|receive-window|bandwidth@": (0, 30 * rtt), "server-think|sender-think@server": (0, 20), "sender-think@client": (0, 120)},
     files=packages, path=SLOW_WAY)

# A screen: what changes is asked for again and again, and shown when there is something (RFC 6143, 7.5.3).

case("vnc-viewer", "rm -f /tmp/.X7-lock; sleep 2; Xvfb :7 -screen 0 1024x768x24 > x.log 2>&1 & sleep 4; DISPLAY=:7 timeout 9 xtigervncviewer -SecurityTypes None -ReconnectOnError=0 10.77.0.2::7000 > viewer.log 2>&1; kill %1; true",
     "rm -f /tmp/.X8-lock /tmp/.X11-unix/X8; Xtigervnc :8 -rfbport 7000 -SecurityTypes None -geometry 640x480 -localhost 0 > vnc.log 2>&1 & sleep 2; DISPLAY=:8 xclock -update 1 & sleep 40",
     lambda t, rtt: {"handshake@": rtt, "round-trip@": None, "slow-start|congestion-window|receive-window|bandwidth|pacing@": (0, 20 * rtt), "server-think|sender-think@server": (0, 150), "sender-think|server-think@client": (0, 250)},
     path=SLOW_WAY, tap=NEAR_ONLY, guess=True)
