"""Servers that speak when they have something to say: screens, streams, positions, routes, prices, workers, monitors, devices.

Nobody waits for the next push. What a program waited for it prints as `ask START END`; what else is billed for longer than the
way is wrong.
"""

from cases import case
from protocols import any_amount, asks, both
from services import logged
from waits import ASK, PLAIN

# Between what is told by itself nobody waits.
NEWS = "server-think|sender-think@server"


def worked(trips, end="far", extra=30.0, setups=1, **more):
    """Each answer took a round trip, and together what the server logged as `think`."""

    def expect(t, rtt):
        think = logged(t, f"{end}.out", "think")
        return {"handshake@": setups * rtt, "round-trip@": (trips * rtt, (trips + 2) * rtt), "server-think@server": (think, think + extra), **more}

    return expect


LINES = PLAIN + """
def line(end=b"\\n"):
    data = b""
    while not data.endswith(end): data += s.recv(1) or sys.exit()
    return data
"""


# Screens: a viewer asks for what changes, and is told when something does (RFC 6143, 7.5.3).

VIEWER = PLAIN + """
import struct, threading
def whole(size):
    data = b""
    while len(data) < size: data += s.recv(size - len(data)) or sys.exit()
    return data
whole(12); s.sendall(b"RFB 003.008\\n"); whole(whole(1)[0]); s.sendall(b"\\1"); whole(4); s.sendall(b"\\1"); width, height = struct.unpack(">HH", whole(4)); whole(16)
whole(struct.unpack(">I", whole(4))[0]); s.sendall(struct.pack(">BxHi", 2, 1, 0))
def update():
    kind = whole(1)[0]
    if kind == 2: return update()
    whole(1)
    for _ in range(struct.unpack(">H", whole(2))[0]):
        x, y, w, h, _ = struct.unpack(">HHHHi", whole(12)); whole(w * h * 4)
def request(more): s.sendall(struct.pack(">BBHHHH", 3, more, 0, 0, width, height))
start = now(); request(0); update(); asked(start)
end = time.time() + 6
while time.time() < end: request(1); update()
"""
asks("vnc-clock", "unset DISPLAY; Xvfb :77 -screen 0 160x120x24 -nolisten tcp & sleep 1; DISPLAY=:77 xclock -update 1 -geometry 100x100 & sleep 1; exec x11vnc -display :77 -rfbport 7000 -forever -quiet -nopw -noxdamage -wait 50",
     VIEWER, any_amount(**{NEWS: (0, 200), "slow-start|congestion-window|receive-window@": None}), wait=5.0)
# X clients ask in long rows and wait for some of them.
case("x11-xdpyinfo", "sleep 2; for i in 1 2 3; do DISPLAY=10.77.0.2:1000 xdpyinfo > o; DISPLAY=10.77.0.2:1000 xwininfo -root -tree > o2; done", "exec Xvfb :1000 -screen 0 320x240x16 -listen tcp -ac",
     any_amount(setups=6, **{"sender-think@client": (0, 60)}))

# Streams: as fast as they are played.

case("icecast-listen", "sleep 4; timeout 6 curl -s -o got http://10.77.0.2:7000/a.mp3; true", "exec ffmpeg -loglevel error -re -f lavfi -i sine=frequency=300 -b:a 96k -content_type audio/mpeg -f mp3 icecast://source:h@127.0.0.1:7000/a.mp3 & useradd -M ice 2>/dev/null; chmod 777 . ; exec icecast2 -c ice.xml",
     any_amount(**{NEWS: (0, 400)}), guess=True, snap=600, tap="tcp and host 10.77.0.1",
     files=both({"ice.xml": "<icecast><limits><sources>2</sources><burst-size>20000</burst-size></limits><authentication><source-password>h</source-password><admin-user>a</admin-user><admin-password>h</admin-password></authentication><hostname>far</hostname><listen-socket><port>7000</port></listen-socket><paths><logdir>HERE</logdir><webroot>/usr/share/icecast2/web</webroot><adminroot>/usr/share/icecast2/admin</adminroot></paths><logging><errorlog>e.log</errorlog><loglevel>2</loglevel></logging><security><changeowner><user>ice</user><group>nogroup</group></changeowner></security></icecast>\n"}))
MOVIE = "-re -f lavfi -i testsrc=size=160x120:rate=12 -t 7"
case("mpegts-pull", "sleep 2; timeout 8 python3 -c \"import socket; s = socket.create_connection(('10.77.0.2', 7000))\nwhile s.recv(65536): pass\"; true",
     f"exec ffmpeg -loglevel error {MOVIE} -c:v mpeg2video -b:v 300k -f mpegts 'tcp://0.0.0.0:7000?listen'", any_amount(**{NEWS: (0, 300)}), guess=True)
case("rtmp-play", "sleep 2; timeout 9 ffmpeg -loglevel error -i rtmp://10.77.0.2:7000/live/x -f null - ; true", f"exec ffmpeg -loglevel error {MOVIE} -c:v flv1 -f flv -listen 1 rtmp://0.0.0.0:7000/live/x",
     any_amount(**{NEWS: (0, 500), "sender-think@client": (0, 300), "nagle|nagle-delayed-ack@": None}), guess=True)
case("rtmp-publish", f"sleep 2; timeout 9 ffmpeg -loglevel error {MOVIE} -c:v flv1 -f flv rtmp://10.77.0.2:7000/live/x; true", "exec ffmpeg -loglevel error -listen 1 -i rtmp://0.0.0.0:7000/live/x -f null -",
     any_amount(**{"sender-think@client": (0, 500), "sender-think@server": (0, 100), "nagle|nagle-delayed-ack@": None}), guess=True)
case("snapcast", "sleep 3; timeout 7 snapclient -h 10.77.0.2 -p 7000 --player file:filename=/dev/null; true", "mkfifo f; (while :; do head -c 17640 /dev/zero; sleep 0.1; done) > f & exec snapserver --stream.source \"pipe://$PWD/f?name=x&mode=read\" --stream.port 7000 --tcp.enabled false --http.enabled false --server.datadir $PWD",
     any_amount(**{NEWS: (0, 300)}))

# Positions, events, routes.

asks("gpsd-watch", "python3 gps.py & sleep 1; exec gpsd -N -G -S 7000 -b tcp://127.0.0.1:7001", LINES + """
line(); s.sendall(b'?WATCH={"enable":true,"json":true};\\n')
end = time.time() + 7
while time.time() < end: line()
""", any_amount(**{NEWS: (0, 100), "nagle|nagle-delayed-ack@server": (0, 100)}), files={"gps.py": """import socket, time
l = socket.create_server(("", 7001))
def nmea(text):
    total = 0
    for c in text: total ^= ord(c)
    return f"${text}*{total:02X}\\r\\n".encode()
while True:
    c = l.accept()[0]
    try:
        while True:
            t = time.strftime("%H%M%S", time.gmtime()); d = time.strftime("%d%m%y", time.gmtime())
            c.sendall(nmea(f"GPRMC,{t}.00,A,4807.038,N,01131.000,E,022.4,084.4,{d},003.1,W") + nmea(f"GPGGA,{t}.00,4807.038,N,01131.000,E,1,08,0.9,545.4,M,46.9,M,,")); time.sleep(1)
    except OSError: pass
"""}, each=None, guess=True, tap="tcp and host 10.77.0.1", wait=4.0)
BIRD = "router id 10.0.0.ME;\nlog stderr all;\nprotocol device {}\nprotocol static { ipv4; ROUTES }\nprotocol bgp b { local 10.77.0.ME port PORT as 6500ME; neighbor 10.77.0.YOU port 7000 as 6500YOU; multihop; PASSIVE hold time 6; keepalive time 2; connect delay time 1; ipv4 { import all; export all; }; }\n"
ROUTES = "".join(f"route 10.{100 + n // 250}.{n % 250}.0/24 blackhole; " for n in range(600))
case("bgp-session", "sleep 2; timeout 11 bird -f -c near.conf -s near.ctl; true", "exec bird -f -c far.conf -s far.ctl", any_amount(**{"sender-think@": (0, 60), "server-think@": (0, 100), "nagle|nagle-delayed-ack@": None}),
     files=both({"near.conf": BIRD.replace("ME", "1").replace("YOU", "2").replace("PORT", "7009").replace("ROUTES", "").replace("PASSIVE", ""),
                 "far.conf": BIRD.replace("ME", "2").replace("YOU", "1").replace("PORT", "7000").replace("ROUTES", ROUTES).replace("PASSIVE", "passive;")}))
asks("ovsdb-monitor", "ovsdb-tool create db /usr/share/openvswitch/vswitch.ovsschema; (sleep 6; for i in 1 2 3 4; do sleep 1.3; ovs-vsctl --db=unix:$PWD/s --no-wait add-br b$i; done) & exec ovsdb-server db --remote=ptcp:7000 --remote=punix:$PWD/s --unixctl=$PWD/c --pidfile=$PWD/p", """
import json, socket
s = socket.create_connection(("10.77.0.2", 7000)); decoder = json.JSONDecoder(); left = ""
def message():
    global left
    while True:
        try: got, end = decoder.raw_decode(left); left = left[end:]; return got
        except ValueError: left += s.recv(65536).decode() or sys.exit()
def call(method, params):
    start = now(); s.sendall(json.dumps({"id": method, "method": method, "params": params}).encode())
    while message().get("id") != method: pass
    asked(start)
call("list_dbs", []); call("get_schema", ["Open_vSwitch"]); call("monitor", ["Open_vSwitch", None, {"Bridge": {"columns": ["name"]}}])
s.settimeout(1); end = time.time() + 9
while time.time() < end:
    try:
        got = message()
        if got.get("method") == "echo": s.sendall(json.dumps({"id": "echo", "result": got["params"], "error": None}).encode())
    except TimeoutError: pass
""", any_amount(**{"slow-start@": None}), wait=3.0)
case("redis-replica", "redis-server --port 7009 --replicaof 10.77.0.2 7000 --save '' --daemonize yes --dir $PWD > log; sleep 9; redis-cli -p 7009 shutdown nosave", "redis-server --port 7000 --save '' --protected-mode no --repl-diskless-sync-delay 0 --dir $PWD > log & sleep 1; for i in $(seq 40); do sleep 0.3; redis-cli -p 7000 set k$i $i > o; done; wait",
     any_amount(**{NEWS: (0, 400), "sender-think@client": (0, 100)}), tap="tcp and host 10.77.0.1")
asks("redis-worker", "redis-server --port 7000 --save '' --protected-mode no > log & sleep 6; for i in 1 2 3 4 5; do sleep 0.9; redis-cli -p 7000 lpush q job$i > o; done; wait", LINES + """
for n in range(5):
    s.sendall(b"*3\\r\\n$5\\r\\nBRPOP\\r\\n$1\\r\\nq\\r\\n$1\\r\\n0\\r\\n")
    for _ in range(5): line()
    time.sleep(0.05); start = now(); s.sendall(b"*2\\r\\n$4\\r\\nINCR\\r\\n$4\\r\\ndone\\r\\n"); line(); asked(start)
""", any_amount(**{NEWS: None}), each=None, tap="tcp and host 10.77.0.1", wait=3.0)
asks("redis-subscriber", "redis-server --port 7000 --save '' --protected-mode no > log & sleep 5; for i in 1 2 3 4 5 6; do sleep 0.7; redis-cli -p 7000 publish c news$i > o; done; wait", LINES + """
start = now(); s.sendall(b"*2\\r\\n$9\\r\\nSUBSCRIBE\\r\\n$1\\r\\nc\\r\\n"); [line() for _ in range(6)]; asked(start)
for n in range(6): [line() for _ in range(7)]
""", any_amount(**{NEWS: (0, 20)}), tap="tcp and host 10.77.0.1", wait=3.0)
asks("pg-listen", __import__("services").PG.replace("exec su", "(sleep 7; for i in 1 2 3 4; do sleep 0.8; " + "psql -q -X 'host=127.0.0.1 port=7000 user=postgres dbname=postgres' -c 'notify n'" + "; done) & exec su"), """
import psycopg
c = psycopg.connect("host=10.77.0.2 port=7000 user=postgres dbname=postgres sslmode=disable gssencmode=disable", autocommit=True)
start = now(); c.execute("listen n"); asked(start)
for n, _ in zip(range(4), c.notifies()): pass
""", any_amount(**{NEWS: (0, 60)}), each=None, tap="tcp and host 10.77.0.1", wait=5.0)

# Messages between programs.

asks("zmq-asks", "exec python3 rep.py", """
import zmq
s = zmq.Context().socket(zmq.REQ); s.connect("tcp://10.77.0.2:7000"); s.send(b"hello"); s.recv()
for n in range(6): time.sleep(0.06); start = now(); s.send(b"q" * 300); s.recv(); asked(start)
""", worked(7, extra=40), files={"rep.py": ASK + "import zmq\ns = zmq.Context().socket(zmq.REP); s.bind('tcp://*:7000')\nwhile True: s.recv(); start = now(); time.sleep(0.07); took('think', start); s.send(b'a' * 500)\n"}, each=None)
asks("zmq-prices", "exec python3 pub.py", """
import zmq
s = zmq.Context().socket(zmq.SUB); s.connect("tcp://10.77.0.2:7000"); s.subscribe(b"")
for n in range(60): s.recv()
""", any_amount(**{NEWS: (0, 30)}), files={"pub.py": "import zmq, time\ns = zmq.Context().socket(zmq.PUB); s.bind('tcp://*:7000')\nwhile True: time.sleep(0.1); s.send(b'p' * 120)\n"}, each=None, guess=True)
asks("zmq-work", "exec python3 pull.py", """
import zmq
s = zmq.Context().socket(zmq.PUSH); s.connect("tcp://10.77.0.2:7000")
for n in range(12): s.send(b"w" * 2000); time.sleep(0.25)
s.close(); time.sleep(0.3)
""", any_amount(**{"sender-think@client": (0, 30)}), files={"pull.py": "import zmq\ns = zmq.Context().socket(zmq.PULL); s.bind('tcp://*:7000')\nwhile True: s.recv()\n"}, each=None, guess=True)
asks("rpyc-calls-back", "exec python3 serve.py", """
import rpyc
c = rpyc.connect("10.77.0.2", 7000)
for n in range(5): start = now(); c.root.work(n); asked(start); time.sleep(0.1)
start = now(); c.root.each(lambda n: n + 1); asked(start)
c.close()
""", any_amount(), files={"serve.py": ASK + "import rpyc\nfrom rpyc.utils.server import ThreadedServer\nclass S(rpyc.Service):\n    def exposed_work(self, n): start = now(); time.sleep(0.09); took('think', start); return n\n    def exposed_each(self, f): return [f(n) for n in range(4)]\nThreadedServer(S, port=7000, protocol_config={'allow_public_attrs': True}).start()\n"}, each=None)
asks("thrift-calls", "exec python3 serve.py", """
import thriftpy2
from thriftpy2.rpc import make_client
a = thriftpy2.load("a.thrift", module_name="a_thrift"); c = make_client(a.A, "10.77.0.2", 7000, timeout=9000)
for n in range(6): start = now(); c.work("x" * 200); asked(start); time.sleep(0.07)
c.close()
""", worked(6), files={"a.thrift": "service A { string work(1: string t) }\n", "serve.py": ASK + "import thriftpy2\nfrom thriftpy2.rpc import make_server\na = thriftpy2.load('a.thrift', module_name='a_thrift')\nclass S:\n    def work(self, t): start = now(); time.sleep(0.055); took('think', start); return t\nmake_server(a.A, S(), '0.0.0.0', 7000).serve()\n"})
case("sip-calls", "sleep 2; sipp -sn uac 10.77.0.2:7000 -t t1 -m 4 -r 1 -d 700 -nostdin > o 2>&1; true", "exec sipp -sn uas -p 7000 -t t1 -nostdin > o 2>&1", any_amount(**{"sender-think@": (0, 100)}))

# Monitors and devices.

asks("modbus-polls", "exec python3 serve.py", PLAIN + """
import struct
for n in range(14):
    start = now(); s.sendall(struct.pack(">HHHBBHH", n, 0, 6, 1, 3, 0, 20)); read(9 + 40); asked(start); time.sleep(0.3)
""", worked(14), files={"serve.py": ASK + "import socket, struct\nc = socket.create_server(('', 7000)).accept()[0]; c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)\nwhile (q := c.recv(12)): start = now(); time.sleep(0.025); took('think', start); c.sendall(q[:4] + struct.pack('>HBBB', 43, 1, 3, 40) + bytes(40))\n"})
asks("iec104-station", "exec python3 station.py", """
import c104
c = c104.Client(tick_rate_ms=100, command_timeout_ms=3000); k = c.add_connection(ip="10.77.0.2", port=7000, init=c104.Init.ALL); t = k.add_station(common_address=7)
p = t.add_point(io_address=11, type=c104.Type.M_ME_NC_1); c.start(); time.sleep(5)
for n in range(3): k.interrogation(common_address=7); time.sleep(0.7)
c.stop()
""", any_amount(**{NEWS: (0, 200)}), files={"station.py": "import c104, time\ns = c104.Server(ip='0.0.0.0', port=7000, tick_rate_ms=100); t = s.add_station(common_address=7); p = t.add_point(io_address=11, type=c104.Type.M_ME_NC_1, report_ms=1000); s.start()\nn = 0.0\nwhile True: time.sleep(0.7); n += 1; p.value = n; p.transmit(cause=c104.Cot.SPONTANEOUS)\n"}, each=None)
asks("opcua-subscription", "exec python3 serve.py", """
import asyncio
from asyncua import Client
class Seen:
    def datachange_notification(self, *a): pass
async def main():
    async with Client("opc.tcp://10.77.0.2:7000/x") as c:
        n = c.get_node("ns=2;i=9"); start = now(); await n.read_value(); asked(start); sub = await c.create_subscription(500, Seen()); await sub.subscribe_data_change(n)
        for _ in range(5): await asyncio.sleep(0.8); await n.read_value()
asyncio.run(main())
""", any_amount(**{NEWS: None}), files={"serve.py": "import asyncio, logging\nfrom asyncua import Server, ua\nasync def main():\n    s = Server(); await s.init(); s.set_endpoint('opc.tcp://0.0.0.0:7000/x'); v = await s.nodes.objects.add_variable(ua.NodeId(9, 2), 'v', 0.0)\n    async with s:\n        n = 0.0\n        while True: await asyncio.sleep(1.1); n += 1; await v.write_value(n)\nasyncio.run(main())\n"}, each=None, wait=5.0)
asks("munin-fetch", "exec python3 node.py", LINES + """
line()
for n in range(4):
    start = now(); s.sendall(b"fetch cpu\\n")
    while line() != b".\\n": pass
    asked(start); time.sleep(0.4)
""", worked(4, **{"nagle|nagle-delayed-ack@server": None}), files={"node.py": ASK + "import socket\nc = socket.create_server(('', 7000)).accept()[0]; c.sendall(b'# munin node at far\\n')\nf = c.makefile()\nfor q in f:\n    start = now(); time.sleep(0.12); took('think', start)\n    for n in range(9): c.sendall(b'v%d.value 12345\\n' % n)\n    c.sendall(b'.\\n')\n"}, each=None)
asks("zabbix-items", "exec zabbix_agentd -f -c z.conf", """
import socket, struct
for key in (b"agent.ping", b"system.run[sleep 0.2;echo 1]", b"vfs.fs.size[/,free]", b"system.run[sleep 0.1;echo 1]"):
    s = socket.create_connection(("10.77.0.2", 7000)); start = now(); s.sendall(b"ZBXD\\1" + struct.pack("<Q", len(key)) + key)
    while s.recv(4096): pass
    asked(start); s.close(); time.sleep(0.1)
""", any_amount(setups=4, **{"server-think@server": (290, 420)}), files={"z.conf": "Server=0.0.0.0/0\nListenPort=7000\nLogFile=HERE/log\nPidFile=HERE/pid\nAllowRoot=1\nAllowKey=system.run[*]\nStartAgents=2\n"})
case("nrpe-check", "sleep 2; for i in 1 2 3; do /usr/lib/nagios/plugins/check_nrpe -H 10.77.0.2 -p 7000 -2 -n -c slow; done", "exec nrpe -f -n -c n.cfg",
     any_amount(setups=3, **{"server-think@server": (740, 860)}), files=both({"n.cfg": "server_port=7000\nnrpe_user=nobody\nnrpe_group=nogroup\npid_file=HERE/pid\nallowed_hosts=10.77.0.1\ncommand[slow]=/bin/sh -c 'sleep 0.25; echo fine'\n"}))
PROMETHEUS = "global:\n  scrape_interval: 1s\nscrape_configs:\n- job_name: x\n  static_configs:\n  - targets: ['10.77.0.2:7000']\n"
case("prometheus-scrapes", "timeout 9 prometheus --config.file=p.yml --storage.tsdb.path=d --web.listen-address=127.0.0.1:7009 > log 2>&1; true", "exec python3 exporter.py",
     lambda t, rtt: {"handshake@": rtt, "round-trip@": None, "server-think@server": (logged(t, "far.out", "think") - 160, logged(t, "far.out", "think") + 40), "slow-start@": None},
     files=both({"p.yml": PROMETHEUS, "exporter.py": ASK + "from http.server import *\nclass H(BaseHTTPRequestHandler):\n    protocol_version = 'HTTP/1.1'\n    def log_message(self, *a): pass\n    def do_GET(self):\n        start = now(); time.sleep(0.13); took('think', start); b = b''.join(b'm%d 1\\n' % n for n in range(300))\n        self.wfile.write(b'HTTP/1.1 200 OK\\r\\nContent-Type: text/plain\\r\\nContent-Length: %d\\r\\n\\r\\n' % len(b) + b)\nThreadingHTTPServer(('', 7000), H).serve_forever()\n"}), tap="tcp and port 7000")
asks("syslog-lines", "exec rsyslogd -n -f r.conf -i $PWD/pid", PLAIN + """
for n in range(25): s.sendall(b"<13>Nov 26 10:00:00 near app: line of text %d\\n" % n); time.sleep(0.12)
""", any_amount(**{"sender-think@client": (0, 20)}), files={"r.conf": 'module(load="imtcp")\ninput(type="imtcp" port="7000")\naction(type="omfile" file="HERE/all")\n'})
asks("dict-words", "exec dictd -s --port 7000 --pid-file $PWD/pid -d nodetach -c d.conf --listen-to 0.0.0.0", LINES + """
line()
for w in (b"TCP", b"ACK", b"FTP", b"IRC", b"nosuchword"):
    start = now(); s.sendall(b"DEFINE * " + w + b"\\r\\n")
    while line()[:3] not in (b"250", b"552"): pass
    asked(start); time.sleep(0.1)
s.sendall(b"QUIT\\r\\n"); line()
""", any_amount(**{"sender-think@": None, "nagle|nagle-delayed-ack@server": None}), files={"d.conf": "access { allow * }\ndatabase vera { data /usr/share/dictd/vera.dict.dz\n index /usr/share/dictd/vera.index }\n"}, each=None)
asks("pgbouncer-queue", __import__("services").PG.replace("-p 7000", "-p 7001").replace("exec su", "(sleep 4; chmod 644 $OLDPWD/b.ini; su nobody -s /bin/sh -c \"exec pgbouncer $OLDPWD/b.ini\") & exec su"), """
import psycopg, threading
def one():
    c = psycopg.connect("host=10.77.0.2 port=7000 user=postgres dbname=postgres sslmode=disable gssencmode=disable", autocommit=True)
    for n in range(2): start = now(); c.execute("select pg_sleep(0.2)", prepare=False); asked(start); time.sleep(0.05)
    c.close()
all = [threading.Thread(target=one) for _ in range(3)]; [t.start() for t in all]; [t.join() for t in all]
""", any_amount(setups=3), files={"b.ini": "[databases]\npostgres = host=127.0.0.1 port=7001\n[pgbouncer]\nlisten_addr = *\nlisten_port = 7000\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 1\n"}, each=None, tap="tcp and host 10.77.0.1", wait=8.0)
