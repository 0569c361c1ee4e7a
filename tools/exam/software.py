"""Software that the other files lack: brokers, application servers, version control and files over the network; and paths that
are not the same both ways."""

from cases import BULK, answers, asks, case, chunks, download, sink, split_request, upload
from peer import FAR
from programs import CURL, URL, total, write
from services import logged, repeated, scripts
from waits import ASK, PLAIN


def curl_thinks(times, connections=1):
    """Each answer took a round trip; what curl waited longer was the server's."""
    return lambda t, rtt: {"handshake@": connections * rtt, "round-trip@": times * rtt, "server-think@server": (t.waited() - (times + connections) * rtt - 15, t.waited() - (times + connections) * rtt)}


def served(**files):
    def put(directory):
        for name, text in files.items():
            write(directory, name.replace("__", "."), text)

    return put


# Application servers with 60 ms of work; the intervention is the same without.

WSGI = "import time\ndef app(environ, start):\n    time.sleep(SECONDS)\n    start('200 OK', [('Content-Length', '400')])\n    return [b'x' * 400]\n"
ASGI = ("import asyncio\nasync def app(scope, receive, send):\n    if scope['type'] != 'http': return\n    await asyncio.sleep(SECONDS)\n"
        "    await send({'type': 'http.response.start', 'status': 200, 'headers': [(b'content-length', b'400')]})\n"
        "    await send({'type': 'http.response.body', 'body': b'x' * 400})\n")
TORNADO = ("import asyncio, tornado.web\nclass Main(tornado.web.RequestHandler):\n    async def get(self):\n        await asyncio.sleep(SECONDS)\n"
           "        self.write('x' * 400)\nasync def main():\n    tornado.web.Application([('/', Main)]).listen(7000)\n    await asyncio.Event().wait()\nasyncio.run(main())\n")
RACK = "run ->(env) { sleep SECONDS; [200, {'Content-Type' => 'text/plain', 'Content-Length' => '400'}, ['x' * 400]] }\n"
PHP = "<?php usleep(1000000 * SECONDS); header('Content-Length: 400'); echo str_repeat('x', 400);\n"
for name, file, text, far, connections in (
    ("gunicorn", "app.py", WSGI, "python3 -m gunicorn -b 0.0.0.0:7000 --keep-alive 5 -k gthread --threads 2 app:app", 1),
    ("uvicorn", "app.py", ASGI, "python3 -m uvicorn --host 0.0.0.0 --port 7000 app:app", 1),
    ("tornado", "app.py", TORNADO, "python3 app.py", 1),
    ("puma", "config.ru", RACK, "puma -b tcp://0.0.0.0:7000 -t 2:2 config.ru", 1),
    ("php", "index.php", PHP, "php -S 0.0.0.0:7000", 6),
):
    case(f"{name}-works-60", "sleep 3; " + repeated(URL + "/", 6) if connections == 1 else "sleep 1; " + f"for i in 1 2 3 4 5 6; do {CURL}{URL}/; done", far,
         curl_thinks(6, connections), files=served(**{file: text.replace("SECONDS", "0.06")}), fix="profile-server",
         changed={"files": served(**{file: text.replace("SECONDS", "0")})})
# Netty: 60 ms on a timer of its own; and a head and a body that are flushed apart, by a server that turns TCP_NODELAY off.
NETTY = """
import io.netty.bootstrap.*; import io.netty.buffer.*; import io.netty.channel.*; import io.netty.channel.nio.*; import io.netty.channel.socket.nio.*; import io.netty.util.*; import java.util.concurrent.*;
public class Served {
  public static void main(String[] a) throws Exception {
    new ServerBootstrap().group(new NioEventLoopGroup(1)).channel(NioServerSocketChannel.class).childOption(ChannelOption.TCP_NODELAY, HOW).childHandler(new ChannelInitializer<Channel>() {
      protected void initChannel(Channel c) { c.pipeline().addLast(new SimpleChannelInboundHandler<ByteBuf>() {
        ByteBuf seen = Unpooled.buffer();
        protected void channelRead0(ChannelHandlerContext x, ByteBuf b) {
          seen.writeBytes(b); if (!seen.toString(CharsetUtil.US_ASCII).endsWith("\\r\\n\\r\\n")) return;
          seen.clear(); x.executor().schedule(() -> answer(x), MS, TimeUnit.MILLISECONDS); } }); }
    }).bind(7000).sync().channel().closeFuture().sync(); }
  static void answer(ChannelHandlerContext x) {
    ByteBuf head = Unpooled.copiedBuffer("HTTP/1.1 200 OK\\r\\nContent-Length: 400\\r\\n\\r\\n", CharsetUtil.US_ASCII), body = Unpooled.buffer(400).writeZero(400);
    if (APART) { x.writeAndFlush(head); x.writeAndFlush(body); } else { x.write(head); x.writeAndFlush(body); } } }
"""


def netty(ms, apart, nodelay):
    text = NETTY.replace("MS", str(ms), 1).replace("APART", apart).replace("HOW", nodelay)
    return lambda directory: write(directory, "Served.java", text)


BOOTS = "export JARS=$(ls /usr/share/java/netty-*.jar | tr '\\n' :); exec java -cp $JARS Served.java"
case("netty-works-60", "sleep 5; " + repeated(URL + "/", 6), BOOTS, curl_thinks(6), files=netty(60, "false", "true"), fix="profile-server", changed={"files": netty(0, "false", "true")})
case("netty-flushes-apart", "sleep 5; " + repeated(URL + "/", 6), BOOTS,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 6 * rtt, "server-think@server": (0, 60),
                     "nagle|nagle-delayed-ack@server": (0.8 * (t.waited() - t.fixed.waited()), 1.2 * (t.waited() - t.fixed.waited()) + 10)},
     files=netty(0, "true", "false"), fix="nodelay", changed={"files": netty(0, "true", "true")})
# One worker, and four clients at once: each waits for those before it.
case("gunicorn-one-worker", "sleep 3; ab -q -n 16 -c 4 " + URL + "/", "python3 -m gunicorn -b 0.0.0.0:7000 -w 1 app:app",
     lambda t, rtt: {"handshake@": 16 * rtt, "round-trip@": 16 * rtt, "server-think@server": (16 * 4 * 60 - 4 * 4 * 60, 16 * 4 * 75)},
     files=served(**{"app.py": WSGI.replace("SECONDS", "0.06")}))
LIGHTTPD = 'server.document-root = env.PWD\nserver.port = 7000\nserver.modules = ()\nserver.max-keep-alive-requests = 100\nserver.errorlog = env.PWD + "/error.log"\n'


def lighttpd(directory):
    write(directory, "lighttpd.conf", LIGHTTPD.replace("env.PWD", f'"{directory}"'))
    write(directory, "small.txt", "x" * 700)
    write(directory, "big.bin", "x" * BULK)


SERVES = "lighttpd -D -f lighttpd.conf"
case("lighttpd-keep-alive", repeated(f"{URL}/small.txt", 8), SERVES, lambda t, rtt: {"handshake@": rtt, "round-trip@": 8 * rtt}, files=lighttpd)
case("lighttpd-big", CURL + f"{URL}/big.bin", SERVES,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "bandwidth@": (1000, 1300), "slow-start|receive-window@": (0, 5 * rtt)}, files=lighttpd,
     path="--delay 10ms --rate 20mbit --queue 100k")

# Brokers.

MQTT = """
import paho.mqtt.client as mqtt, threading
c = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2); up = threading.Event(); c.on_connect = lambda *a: up.set()
c.connect("10.77.0.2", 7000); c.loop_start(); up.wait()
for n in range(10): start = now(); c.publish("a/b", b"p" * 100, qos=QOS).wait_for_publish(); asked(start); time.sleep(0.05)
c.disconnect()
"""
MOSQUITTO = "printf 'listener 7000\\nallow_anonymous true\\nuser root\\n' > m.conf; mosquitto -c m.conf"
for qos, trips in ((1, 10), (2, 20)):
    case(f"mqtt-qos-{qos}", "python3 client.py", MOSQUITTO, lambda t, rtt, trips=trips: {"handshake@": rtt, "round-trip@": ((trips + 1) * rtt, (trips + 2) * rtt), "server-think|sender-think@": (0, 15)},
         files=scripts(client=ASK + MQTT.replace("QOS", str(qos))))
case("mqtt-subscription", "sleep 0.5; mosquitto_sub -h 10.77.0.2 -p 7000 -t news -C 6 -k 60", MOSQUITTO + " & sleep 1.5; for i in 1 2 3 4 5 6; do sleep 0.9; mosquitto_pub -p 7000 -t news -m something-$i; done; sleep 9",
     lambda t, rtt: {"handshake@": rtt, "round-trip@": None, "server-think|sender-think@": (0, 15)}, tap="tcp and host 10.77.0.1")
NATS_ANSWERS = """
import nats
async def main():
    for _ in range(50):
        try: nc = await nats.connect("nats://127.0.0.1:7000"); break
        except Exception: await asyncio.sleep(0.1)
    async def answer(m): start = now(); await asyncio.sleep(0.03); took("think", start); await m.respond(b"r" * 200)
    await nc.subscribe("ask", cb=answer); await asyncio.Event().wait()
asyncio.run(main())
"""
NATS_ASKS = """
import nats
async def main():
    nc = await nats.connect("nats://10.77.0.2:7000")
    for n in range(10): start = now(); await nc.request("ask", b"q" * 150, timeout=3); asked(start); await asyncio.sleep(0.04)
    await nc.close()
asyncio.run(main())
"""
case("nats-requests", "sleep 1.5; python3 client.py", "nats-server -p 7000 > nats.log 2>&1 & python3 server.py",
     lambda t, rtt: {"handshake@": rtt, "round-trip@": (10 * rtt, 14 * rtt), "server-think@server": (logged(t, "far.out", "think"), logged(t, "far.out", "think") + 25)},
     files=scripts(client=ASK + NATS_ASKS, server=ASK + NATS_ANSWERS), tap="tcp and host 10.77.0.1")
REDIS_LISTENS = PLAIN.replace("import socket", "import socket, subprocess") + """
def line():
    data = b""
    while not data.endswith(b"\\r\\n"): data += s.recv(1)
    return data
start = now(); s.sendall(b"*2\\r\\n$9\\r\\nSUBSCRIBE\\r\\n$4\\r\\nnews\\r\\n"); read(32); asked(start)
read(6 * 45)
"""
case("redis-subscription", "python3 client.py",
     "redis-server --port 7000 --save '' --protected-mode no & sleep 2; for i in 1 2 3 4 5 6; do sleep 0.7; redis-cli -p 7000 publish news something-$i; done; sleep 9",
     lambda t, rtt: {"handshake@": rtt, "round-trip@": None, "server-think|sender-think@": (0, 10)}, files=scripts(client=ASK + REDIS_LISTENS), tap="tcp and host 10.77.0.1")

# Files and versions.

RSYNCD = "printf 'use chroot = no\\nuid = root\\ngid = root\\n[m]\\npath = %s/m\\nread only = no\\n' $PWD > r.conf; mkdir -p m; head -c 2000000 /dev/urandom > m/big; for i in $(seq 60); do head -c 900 /dev/urandom > m/s$i; done; rsync --daemon --no-detach --port 7000 --config r.conf"
TIMED = "S=$(date +%s%N); {}; echo ask $S $(date +%s%N)"
# rsync does not set TCP_NODELAY by itself, and writes its small frames apart.
NODELAY = {"near": "sleep 1; " + TIMED.format("rsync --sockopts=TCP_NODELAY -a --port 7000 rsync://10.77.0.2/m/ got/"), "far": RSYNCD.replace("uid = root", "socket options = TCP_NODELAY\\nuid = root")}
case("rsync-pull", "sleep 1; " + TIMED.format("rsync -a --port 7000 rsync://10.77.0.2/m/ got/"), RSYNCD,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": (3 * rtt, 12 * rtt), "bandwidth@": (820, 1100), "slow-start|receive-window@": (0, 5 * rtt), "server-think|sender-think@": (0, 120),
                     "nagle|nagle-delayed-ack@": (0.7 * (t.waited() - t.fixed.waited()), 1.3 * (t.waited() - t.fixed.waited()) + 40)},
     path="--delay 10ms --rate 20mbit --queue 100k", fix="nodelay", changed=NODELAY)
case("rsync-push", "mkdir up; head -c 1500000 /dev/urandom > up/f; " + "sleep 1; " + TIMED.format("rsync -a --port 7000 up/ rsync://10.77.0.2/m/"), RSYNCD,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": (3 * rtt, 9 * rtt), "bandwidth@": (600, 820), "slow-start|receive-window@": (0, 5 * rtt), "server-think|sender-think@": (0, 150),
                     "nagle|nagle-delayed-ack@": (0.7 * (t.waited() - t.fixed.waited()), 1.3 * (t.waited() - t.fixed.waited()) + 40)},
     path="--delay 10ms --rate 20mbit --queue 100k", fix="nodelay", changed={**NODELAY, "near": "mkdir up; head -c 1500000 /dev/urandom > up/f; " + TIMED.format("rsync --sockopts=TCP_NODELAY -a --port 7000 up/ rsync://10.77.0.2/m/")})
GITD = ("export GIT_CONFIG_GLOBAL=$PWD/g; git config --global user.email a@example.org; git config --global user.name a; git config --global safe.directory '*';"
        " git init -q r; head -c 1500000 /dev/urandom > r/f; git -C r add f; git -C r commit -qm x; exec git daemon --port=7000 --export-all --base-path=$PWD")
case("git-clone", "sleep 5; " + TIMED.format("git clone -q git://10.77.0.2:7000/r got"), GITD,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": (2 * rtt, 5 * rtt), "bandwidth@": (600, 820), "slow-start|receive-window@": (0, 5 * rtt), "server-think|sender-think@": (0, 400),
                     # Neither git sets TCP_NODELAY.
                     "nagle|nagle-delayed-ack@": (0, 150)},
     path="--delay 10ms --rate 20mbit --queue 100k", settle=1.0)
SMBD = ("mkdir -p share p; head -c 1500000 /dev/urandom > share/f; printf '[global]\\nsmb ports = 7000\\nmap to guest = bad user\\nguest account = root\\nprivate dir = %s/p\\nlock directory = %s/p\\n"
        "state directory = %s/p\\ncache directory = %s/p\\npid directory = %s/p\\nncalrpc dir = %s/p\\nlog file = %s/log\\nserver role = standalone server\\ndisable spoolss = yes\\n[m]\\npath = %s/share\\nguest ok = yes\\n'"
        " $PWD $PWD $PWD $PWD $PWD $PWD $PWD $PWD > smb.conf; smbd --foreground --no-process-group -s smb.conf")
case("samba-get", "sleep 2; " + TIMED.format("smbclient -N -p 7000 //10.77.0.2/m -c 'get f got'"), SMBD,
     lambda t, rtt: {"handshake@": rtt, "round-trip@": (7 * rtt, 20 * rtt), "bandwidth@": (600, 850), "slow-start|receive-window|congestion-window@": (0, 6 * rtt), "server-think|sender-think@": (0, 200)},
     path="--delay 10ms --rate 20mbit --queue 100k", settle=1.0)

# Erlang, and a server that writes head and body apart; the intervention sets TCP_NODELAY.

ERLANG = """
-module(s).
-export([main/0]).
main() -> {ok, L} = gen_tcp:listen(7000, [binary, {packet, 0}, {active, false}, {reuseaddr, true}, {nodelay, NODELAY}]), {ok, S} = gen_tcp:accept(L), loop(S).
loop(S) -> case gen_tcp:recv(S, 200) of {ok, _} -> gen_tcp:send(S, binary:copy(<<"h">>, 100)), gen_tcp:send(S, binary:copy(<<"b">>, 200)), loop(S); _ -> ok end.
"""
case("erlang-two-writes", lambda p: (p.think(2500), asks(10)(p)), "erlc s.erl && erl -noshell -noinput -s s main",
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 10 * rtt, "nagle|nagle-delayed-ack@server": t.sum("near", "exchange") - 10 * rtt}, files=served(s__erl=ERLANG.replace("NODELAY", "false")),
     fix="nodelay", changed={"files": served(s__erl=ERLANG.replace("NODELAY", "true"))})

# Paths that are not the same both ways, that lose, overtake and hide what is large.

case("slow-way-up", lambda p: upload(p, 200_000), lambda p: sink(p, 200_000),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "bandwidth@": (1500, 1800), "slow-start@": (0, 3 * rtt)}, path="--delay 15ms --forward 'rate 1mbit queue 64k' --backward 'rate 50mbit queue 200k'")
case("thin-way-for-acks", download(BULK), chunks(1, BULK, 0, True),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "bandwidth|queueing|slow-start|receive-window|congestion-window@": "rest"},
     path="--delay 15ms --forward 'rate 200kbit queue 20k' --backward 'rate 50mbit queue 300k'")
case("path-hides-large", lambda p: upload(p, 6_000), lambda p: sink(p, 6_000),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "rto|loss@": t.sum("near", "exchange") - rtt},
     path="--delay 10ms --forward 'loss larger 1400'", near_sysctl=["net.ipv4.tcp_mtu_probing=1", "net.ipv4.tcp_base_mss=1200"], fix="path-mtu",
     changed={"host_setup": {"near": ["ip link set DEV mtu 1400"]}}, settle=1.0)
case("reordered-upload", lambda p: upload(p, BULK), lambda p: sink(p, BULK),
     # A window that opens by less than a segment lets a small one go, and Nagle holds the small end of the file until that one is acknowledged.
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "queueing|loss|slow-start|congestion-window|receive-window|nagle@": "rest-bandwidth"},
     path="--delay 15ms --forward 'reorder 2% by 4ms'")
for congestion in ("reno", "bbr"):
    case(f"split-request-{congestion}", split_request(0, False), answers(250),
         lambda t, rtt: {"handshake@": rtt, "round-trip@": 6 * rtt, "nagle-delayed-ack|nagle@client": "rest"}, congestion=congestion, fix="nodelay", changed={"near": split_request(0, True)})
    case(f"bulk-{congestion}-30m", download(BULK), chunks(1, BULK, 0, True),
         lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "slow-start|receive-window|loss|congestion-window@": (0, 12 * rtt), "bandwidth@": (650, 950)},
         path="--delay 10ms --rate 30mbit --queue 150k", congestion=congestion)
