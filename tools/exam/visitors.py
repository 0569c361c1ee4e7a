"""Programs that the other files lack: Dovecot's POP3, git over its own protocol, CVS, Fossil, SNMP, gdb, DICOM, 9P, D-Bus, Xapian, SOAP, AMQP 1.0,
H2, Erlang's inets, Twisted, undici, Socket.IO, RELP, rclone. Each over a path drawn by its name, with a fault that its own options name.
"""

import subprocess

from cases import case
from more import NEAR_ONLY
from programs import CURL, NGINX, URL, curls, write
from protocols import DOVECOT, MAIL, both
from services import APACHE, PG, httpd, logged
from software import RSYNCD, TIMED
from strangers import GROWTH, LOST, asks, near_and_far, spent, way
from waits import ASK

SMALL_BUFFERS = ["net.ipv4.tcp_rmem=4096 131072 262144"]


def within(low, high, trips, setups=1, **more):
    """The server's time by its configuration."""
    return lambda t, rtt: {"handshake@": setups * rtt, "round-trip@": (trips[0] * rtt, trips[1] * rtt), "server-think@server": (low, high), **more}


def waits_long(asks_, trips):
    """What the asker waited for beyond a round trip each: Redis looks at who waits for replicas ten times a second, Dovecot adds a penalty to its delay."""
    return lambda t, rtt: {"handshake@": rtt, "round-trip@": (trips[0] * rtt, trips[1] * rtt), "server-think@server": (t.waited() - asks_ * rtt - 25, t.waited() - asks_ * rtt + 5)}


# Stores: a command that waits for replicas that do not exist, a wrong password that is answered late, a store of documents far away.

asks("redis-waits-for-replica", "exec redis-server --port 7000 --save '' --protected-mode no", """
import redis
r = redis.Redis("10.77.0.2", 7000); r.ping(); time.sleep(0.1)
for n in range(5):
    start = now(); r.set(f"k{n}", "v" * 300); asked(start); time.sleep(0.05)
    start = now(); r.execute_command("WAIT", 1, 250); asked(start); time.sleep(0.05)
""", waits_long(10, (11, 16)))
asks("pop3-wrong-password", MAIL, """
import poplib
m = poplib.POP3("10.77.0.2", 7000); time.sleep(0.1)
def timed(f, *a):
    start = now()
    try: f(*a)
    except poplib.error_proto: pass
    asked(start)
timed(m.user, "u"); timed(m.pass_, "wrong"); time.sleep(0.1); timed(m.user, "u"); timed(m.pass_, "p"); timed(m.stat)
for n in range(1, 7): timed(m.retr, n); time.sleep(0.04)
timed(m.quit)
""", lambda t, rtt: {"handshake@": rtt, "round-trip@": (12 * rtt, 14 * rtt), "server-think@server": (t.waited() - 15 * rtt - 25, t.waited() - 12 * rtt + 5), "slow-start|slow-start-after-idle|congestion-window|receive-window|bandwidth@": (0, 10 * rtt), "nagle|nagle-delayed-ack@server": None, "sender-think@server": (0, 30)},
     files={"dovecot.conf": DOVECOT.replace("protocols = imap", "protocols = pop3\nauth_failure_delay = 2 secs").replace("imap-login", "pop3-login").replace("inet_listener imap", "inet_listener pop3").replace("args = nopassword=y", "args = password=p")}, each=lambda t: t.asked()[:4], low=8.0)
XAPIAN_SERVES = """
import xapian
db = xapian.WritableDatabase("db", xapian.DB_CREATE_OR_OPEN)
for n in range(3000):
    d = xapian.Document(); d.set_data("document %d " % n + "d" * 300)
    for w in (n % 7, n % 11, n % 13): d.add_term("w%d" % w)
    db.add_document(d)
"""


def longest(t):
    """How much longer the longest wait is than the others: what the lost question cost."""
    waits = sorted(end - start for start, end in t.asked())
    return waits[-1] - waits[len(waits) // 2]


near_and_far("xapian-remote", "sleep 3; /usr/bin/python3 client.py", "/usr/bin/python3 make.py && exec xapian-tcpsrv --port 7000 db",
             # The server greets; a query, its statistics, its matches, and then each document by a question of its own.
             lambda t, rtt: {"handshake@": rtt, "round-trip@": None, "server-think@server": (0, 60), "sender-think@client": (0, 40), LOST: (longest(t) - 5, longest(t) + 3), "nagle|nagle-delayed-ack@": None},
             files={"make.py": XAPIAN_SERVES, "client.py": ASK + """
import xapian
db = xapian.remote_open("10.77.0.2", 7000); e = xapian.Enquire(db); time.sleep(0.1)
for n in range(4):
    start = now(); e.set_query(xapian.Query(xapian.Query.OP_OR, ["w%d" % n, "w%d" % (n + 3)])); got = [m.document.get_data() for m in e.get_mset(0, 5)]; asked(start); time.sleep(0.1)
"""}, kind="lost request")
H2_POM = """<project><modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId><version>1</version>
<dependencies><dependency><groupId>com.h2database</groupId><artifactId>h2</artifactId><version>2.2.224</version></dependency></dependencies></project>
"""
H2 = """
import java.sql.*;
public class H { public static void main(String[] a) throws Exception {
  Connection c = DriverManager.getConnection("jdbc:h2:tcp://10.77.0.2:7000/mem:d", "sa", ""); Statement s = c.createStatement();
  s.execute("create alias nap for \\"java.lang.Thread.sleep(long)\\""); s.execute("create table t (n int, v varchar(99))"); PreparedStatement p = c.prepareStatement("insert into t values (?, ?)");
  for (int n = 0; n < 40; n++) { p.setInt(1, n); p.setString(2, "v".repeat(80)); p.addBatch(); } p.executeBatch(); StringBuilder said = new StringBuilder();
  for (int n = 0; n < 8; n++) { Thread.sleep(60); long start = now(); s.execute("call nap(" + (20 + 35 * (n % 3)) + ")"); said.append("ask " + start + " " + now() + "\\n"); }
  System.out.print(said); System.out.flush(); System.exit(0); }
  static long now() { java.time.Instant i = java.time.Instant.now(); return i.getEpochSecond() * 1000000000L + i.getNano(); } }
"""


def h2(directory):
    write(directory, "pom.xml", H2_POM)
    write(directory, "H.java", H2)
    subprocess.run("mvn -q -B dependency:build-classpath -Dmdep.outputFile=cp > mvn.out 2>&1 && javac H.java", shell=True, cwd=directory, check=True)


case("h2-database-naps", "sleep 3; java -cp $(cat cp):. H", "exec java -cp $(cat cp) org.h2.tools.Server -tcp -tcpAllowOthers -tcpPort 7000 -ifNotExists",
     # 20 + 55 + 90 ms, twice, then 20 + 55: 405 ms. Each statement is prepared by a question of its own. The classes of both ends are loaded meanwhile.
     lambda t, rtt: {"handshake@": rtt, "round-trip@": (13 * rtt, 70 * rtt), "server-think@server": (405, 405 + 450), "sender-think@client": (0, 300), "nagle|nagle-delayed-ack@": (0, 90)},
     files=h2, path=way("h2-database-naps"), tap=NEAR_ONLY)
near_and_far("pg-dump-asks-much", "sleep 4; " + TIMED.format("pg_dump -s 'host=10.77.0.2 port=7000 user=postgres dbname=postgres sslmode=disable gssencmode=disable' > dump"),
             PG.replace("-c fsync=off", "-c fsync=off -c log_statement=all"),
             # A round trip for each statement that the server logs, two or three to begin, and the end.
             lambda t, rtt: {"handshake@": rtt, "round-trip@": (said(t) * rtt, (said(t) + 5) * rtt), "server-think@server": (0, max(0.0, t.waited() - said(t) * rtt)), "sender-think@client": (0, 60), "slow-start|congestion-window@": (0, 8 * rtt)}, low=5.0)


def said(t):
    return sum("statement:" in line or " execute " in line for line in t.text("far.err").splitlines())


# Code: a push that a hook delays, a commit that a script checks, a clone in rounds, a debugger that waits for its program.

GIT_FAR = ("export HOME=$PWD; git config --global safe.directory '*'; git init -q --bare r; printf '#!/bin/sh\\nsleep 0.8\\n' > r/hooks/pre-receive; chmod +x r/hooks/pre-receive;"
           " exec git daemon --reuseaddr --enable=receive-pack --export-all --base-path=$PWD --port=7000")
GIT_NEAR = "export HOME=$PWD; git config --global user.email a@example.org; git config --global user.name a; git init -q w; cd w; head -c 60000 /dev/urandom > f; git add f; git commit -qm x; sleep 1; " + TIMED.format("git push -q git://10.77.0.2:7000/r HEAD:refs/heads/x")
near_and_far("git-push-hook", GIT_NEAR, GIT_FAR,
             lambda t, rtt: {"handshake@": rtt, "round-trip@": (2 * rtt, 4 * rtt), "server-think@server": (795, 1000), "slow-start|congestion-window@client": (0, 4 * rtt), "nagle|nagle-delayed-ack@": (0, rtt + 90), "sender-think@": (0, 80)}, low=5.0)
CVS_FAR = ("export HOME=$PWD; mkdir r; cvs -d $PWD/r init; printf 'DEFAULT %s/slow\\n' $PWD > r/CVSROOT/commitinfo; printf '#!/bin/sh\\nsleep 0.6\\n' > slow; chmod +x slow; echo a::nobody > r/CVSROOT/passwd; mkdir m; cd m; for i in 1 2 3 4 5 6; do seq 400 > f$i; done;"
           " cvs -Q -d $PWD/../r import -m x m v r; cd ..; chmod -R a+rwX r slow; chmod a+rx .; exec socat TCP-LISTEN:7000,reuseaddr,fork EXEC:\"cvs -f --allow-root=$PWD/r pserver\"")
near_and_far("cvs-commit-checked", "sleep 3; export HOME=$PWD; touch .cvspass; R=:pserver:a@10.77.0.2:7000$(echo $PWD)/r; cvs -d $R -Q co -d w m; cd w && echo more >> f3; " + TIMED.format("cvs -Q ci -m more f3"), CVS_FAR,
             # The server says what it does before the script runs, and Nagle holds a part of that while the script sleeps: nobody waits for it.
             lambda t, rtt: {"handshake@": 2 * rtt, "round-trip@": None, "server-think|sender-think@server": (600, 900), "sender-think@client": (0, 60), GROWTH: (0, 6 * rtt), "nagle|nagle-delayed-ack@server": (0, 60)})
near_and_far("fossil-clone-lossy", "sleep 2; export HOME=$PWD USER=root; " + TIMED.format("fossil clone http://10.77.0.2:7000/ c.fossil > clone.log 2>&1"),
             "export HOME=$PWD USER=root; fossil init r.fossil > f.log; mkdir w; cd w; fossil open ../r.fossil >> ../f.log; for i in 1 2 3; do head -c 40000 /dev/urandom > f$i; fossil add f$i >> ../f.log; fossil commit -m c$i --no-warnings >> ../f.log; done; cd ..; exec fossil server --port 7000 r.fossil > s.log 2>&1",
             lambda t, rtt: {"handshake@": None, "round-trip@": None, "server-think|sender-think@server": (0, 250), "sender-think@client": (0, 120), "rto|loss|slow-start|congestion-window|bandwidth|receive-window|delayed-ack-cwnd|syn-retransmit|nagle|nagle-delayed-ack@": None}, kind="lossy")
GDB_STEPS = "target remote 10.77.0.2:7000", "break work", "continue", "continue", "continue", "continue", "continue"


def traced(directory):
    write(directory, "p.c", '#include <time.h>\n#include <stdio.h>\nstruct timespec nap = {0, 150000000};\nvoid work(int n) { printf("%d\\n", n); }\nint main() { for (int n = 0; n < 9; n++) { nanosleep(&nap, 0); work(n); } }\n')
    subprocess.run("gcc -g -O0 -o p p.c", shell=True, cwd=directory, check=True)


case("gdb-remote-continues", "sleep 2; gdb -nx -batch -ex 'set sysroot /' -ex 'set debuginfod enabled off' " + " ".join(f"-ex '{c}'" for c in GDB_STEPS) + " -ex kill p > gdb.out 2>&1", "exec gdbserver :7000 ./p",
     # Five waits of 150 ms, each with the program's own printf; all else is a question and its answer.
     lambda t, rtt: {"handshake@": rtt, "round-trip@": None, "server-think@server": (750, 920), "sender-think@client": None, "sender-think@server": (0, 40)}, files=traced, path=way("gdb-remote-continues", low=4.0, high=40.0))

# Files: 9P reads, a limited rsync, uploads and downloads with a limit of their own.

near_and_far("diod-9p-cat", "sleep 2; " + TIMED.format("diodcat -s 10.77.0.2:7000 -a $PWD big > got"), "head -c 500000 /dev/urandom > big; chmod 755 .; exec diod -f -n -S -l 0.0.0.0:7000 -e $PWD",
             # Version, attach, walk, open, eight or so reads of 64 KB, an empty one, clunk.
             lambda t, rtt: {"handshake@": rtt, "round-trip@": (9 * rtt, 22 * rtt), "server-think@server": (0, 40), "slow-start|congestion-window|receive-window|bandwidth@": (0, 12 * rtt), "nagle|nagle-delayed-ack@": (0, 15 * rtt + 60)}, low=3.0)
near_and_far("rsync-limits-its-rate", "sleep 1; " + TIMED.format("rsync -a --bwlimit=400 --port 7000 rsync://10.77.0.2/m/ got/"), RSYNCD,
             lambda t, rtt: {"handshake@": rtt, "round-trip@": (3 * rtt, 9 * rtt), "sender-think@server": (t.waited() - 16 * rtt - 250, t.waited() - 4 * rtt), "server-think@server": (0, 120), "slow-start|congestion-window|nagle|nagle-delayed-ack@": (0, 8 * rtt + 100)}, high=60.0)
PUTS = NGINX.replace("SERVER_OPTIONS", "dav_methods PUT;").replace("HTTP_OPTIONS", "").replace("LISTEN_OPTIONS", "")
near_and_far("curl-puts-at-a-rate", "sleep 1; head -c 700000 /dev/urandom > up.bin; " + CURL + f"--limit-rate 350k -T up.bin {URL}/put.bin", "exec nginx -p . -c nginx.conf",
             lambda t, rtt: {"handshake@": rtt, "round-trip@": (rtt, 2 * rtt), "sender-think@client": (curls(t)[0]["total"] - 10 * rtt - 100, curls(t)[0]["total"] - 2 * rtt), "slow-start|slow-start-after-idle|congestion-window|send-buffer|receive-window|server-think|nagle@": (0, 9 * rtt + 15)}, files={"nginx.conf": PUTS}, high=60.0)
near_and_far("rclone-reads-at-a-rate", "sleep 3; export HOME=$PWD; " + TIMED.format("rclone copy --config r.conf --bwlimit 500k --http-url http://10.77.0.2:7000 :http:big.bin got > r.log 2>&1"),
             "export HOME=$PWD; mkdir d; head -c 1800000 /dev/urandom > d/big.bin; exec rclone serve http --config r.conf --addr :7000 d > s.log 2>&1",
             # 512,000 bytes in a second, as its clock counts them.
             lambda t, rtt: {"handshake@": (rtt, 3 * rtt), "round-trip@": (2 * rtt, 6 * rtt), "receiver-think|receive-window|application-window@client": (1800, 3600), "slow-start|congestion-window@": (0, 9 * rtt), "server-think|sender-think@server": (0, 60), "sender-think@client": (0, 90)},
             files={"r.conf": ""}, near_sysctl=SMALL_BUFFERS, low=2.0, high=30.0)
near_and_far("iperf3-small-buffers", "sleep 1; iperf3 -c 10.77.0.2 -p 7000 -n 600K -w 32K --json > iperf.json", "exec iperf3 -s -p 7000",
             lambda t, rtt: {"handshake@": 2 * rtt, "round-trip@": None, "server-think|sender-think@": None, "receive-window|send-buffer@": (300, 3000), "slow-start@client": (0, 6 * rtt)}, low=15.0, high=50.0, settle=1.0)

# Devices and pictures: SNMP over TCP with a script behind it, a store of pictures that sleeps.

near_and_far("snmp-script-sleeps", "sleep 2; for i in 1 2 3 4; do " + TIMED.format("snmpget -v2c -c public tcp:10.77.0.2:7000 .1.3.6.1.4.1.8072.9999.$i.0") + "; done",
             "printf '#!/bin/sh\\nsleep 0.2\\necho $2; echo string; echo value\\n' > slow; chmod +x slow; printf 'rocommunity public\\npass .1.3.6.1.4.1.8072.9999 %s/slow\\n' $PWD > s.conf; exec snmpd -f -Lf log -C -c s.conf -p pid tcp:7000",
             within(800, 900, (4, 4), setups=4))
DICOM = ("import pydicom\nfrom pydicom.dataset import Dataset, FileMetaDataset\nfrom pydicom.uid import *\nfor n in range(3):\n    m = FileMetaDataset(); m.MediaStorageSOPClassUID = '1.2.840.10008.5.1.4.1.1.7'; m.MediaStorageSOPInstanceUID = f'1.2.3.4.{n + 1}'; m.TransferSyntaxUID = ImplicitVRLittleEndian\n"
         "    d = Dataset(); d.file_meta = m; d.SOPClassUID, d.SOPInstanceUID = m.MediaStorageSOPClassUID, m.MediaStorageSOPInstanceUID; d.PatientName = 'A'; d.PatientID = '1'; d.StudyInstanceUID = '1.2.3'; d.SeriesInstanceUID = '1.2.3.4'; d.Modality = 'OT'\n"
         "    d.Rows = d.Columns = 220; d.BitsAllocated = d.BitsStored = 8; d.HighBit = 7; d.SamplesPerPixel = 1; d.PhotometricInterpretation = 'MONOCHROME2'; d.PixelRepresentation = 0; d.PixelData = bytes(48400)\n"
         "    d.is_little_endian, d.is_implicit_VR = True, True; pydicom.dcmwrite(f'{n}.dcm', d, write_like_original=False)\n")
near_and_far("dicom-store-sleeps", "sleep 2; python3 make.py; " + TIMED.format("/usr/bin/storescu 10.77.0.2 7000 0.dcm 1.dcm 2.dcm"), "mkdir s; exec /usr/bin/storescp -od s --sleep-after 1 7000",
             # An association, three stores of 48 KB, and a release. The server sleeps for a second behind each of its answers: what these, in two writes
             # without TCP_NODELAY, and the next store take meanwhile is not its own.
             lambda t, rtt: {"handshake@": rtt, "round-trip@": (5 * rtt, 6 * rtt), "server-think@server": (3000 - 3 * (3 * rtt + 100), 3050), "slow-start|slow-start-after-idle|congestion-window|receive-window|bandwidth@": (0, 8 * rtt), "sender-think@client": (0, 60), "nagle|nagle-delayed-ack@server": (0, 3 * rtt + 150), "nagle|nagle-delayed-ack@client": (0, 3 * rtt + 150)}, files={"make.py": DICOM}, low=3.0)

# Calls: SOAP, Perspective Broker, AMQP 1.0, D-Bus, Erlang's own HTTP at both ends, Java's client, undici, Socket.IO.

near_and_far("php-soap-calls", "sleep 2; php c.php", "exec php -S 0.0.0.0:7000 s.php",
             lambda t, rtt: {"handshake@": 5 * rtt, "round-trip@": 5 * rtt, "server-think@server": (5 * 45, 5 * 45 + 50), "nagle|nagle-delayed-ack@server": (0, 5 * rtt + 210), "sender-think@": (0, 20)},
             files={"s.php": '<?php class W { function work($t) { usleep(45000); return str_repeat("r", 400); } } $s = new SoapServer(null, ["uri" => "urn:w"]); $s->setClass("W"); $s->handle();\n',
                    "c.php": '<?php $c = new SoapClient(null, ["location" => "http://10.77.0.2:7000/", "uri" => "urn:w"]); for ($n = 0; $n < 5; $n++) { $s = microtime(true); $c->work("t"); printf("ask %d %d\\n", $s * 1e9, microtime(true) * 1e9); usleep(70000); }\n'})
asks("twisted-pb-calls", "exec python3 -u s.py", """
from twisted.spread import pb
from twisted.internet import reactor, defer, task
@defer.inlineCallbacks
def main():
    f = pb.PBClientFactory(); reactor.connectTCP("10.77.0.2", 7000, f); root = yield f.getRootObject(); yield task.deferLater(reactor, 0.1)
    for n in range(8):
        start = now(); yield root.callRemote("work", "q" * 120, n); asked(start); yield task.deferLater(reactor, 0.06)
    reactor.stop()
main(); reactor.run()
""", spent((9, 12), left=LOST, **{"sender-think@client": (0, 20)}), files={"s.py": ASK + """
from twisted.spread import pb
from twisted.internet import reactor, task
class Root(pb.Root):
    def remote_work(self, text, n):
        start = now()
        def done(): took("think", start); return "r" * 300
        return task.deferLater(reactor, 0.02 + 0.03 * (n % 3), done)
reactor.listenTCP(7000, pb.PBServerFactory(Root())); reactor.run()
"""}, kind="lost request")
asks("amqp-1.0-requests", "exec python3 -u s.py", """
from proton import Message
from proton.utils import BlockingConnection, SyncRequestResponse
c = BlockingConnection("10.77.0.2:7000", timeout=20); s = SyncRequestResponse(c, "work"); s.call(Message(body="first")); time.sleep(0.1)
for n in range(7): start = now(); s.call(Message(body="q" * 150)); asked(start); time.sleep(0.06)
c.close()
""", lambda t, rtt: {"handshake@": rtt, "round-trip@": (9 * rtt, 24 * rtt), "server-think@server": (8 * 40, logged(t, "far.out", "think") + 30), "sender-think@": (0, 30), "nagle|nagle-delayed-ack@": None}, files={"s.py": ASK + """
from proton import Message
from proton.handlers import MessagingHandler
from proton.reactor import Container
class Serves(MessagingHandler):
    def __init__(self): super().__init__(); self.links = {}
    def on_start(self, e): e.container.listen("0.0.0.0:7000")
    def on_link_opening(self, e):
        if e.link.is_sender and e.link.remote_source and e.link.remote_source.dynamic:
            e.link.source.address = "r%d" % len(self.links); self.links[e.link.source.address] = e.link
        elif e.link.remote_target.address: e.link.target.address = e.link.remote_target.address
    def on_message(self, e):
        start = now(); time.sleep(0.04); took("think", start)
        m = e.message; self.links[m.reply_to].send(Message(address=m.reply_to, body="r" * 400, correlation_id=m.correlation_id))
Container(Serves()).run()
"""}, each=None)
DBUS = ("<!DOCTYPE busconfig PUBLIC '-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN' 'http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd'><busconfig><type>session</type><listen>tcp:host=0.0.0.0,bind=0.0.0.0,port=7000</listen><listen>unix:path=/tmp/exam-bus</listen>"
        "<auth>ANONYMOUS</auth><auth>EXTERNAL</auth><allow_anonymous/><policy context='default'><allow send_destination='*' eavesdrop='true'/><allow eavesdrop='true'/><allow own='*'/><allow user='*'/></policy></busconfig>\n")
near_and_far("dbus-calls", "sleep 3; for i in 1 2 3 4; do " + TIMED.format("dbus-send --bus=tcp:host=10.77.0.2,port=7000 --print-reply --dest=a.Work /w a.Work.Nap > got 2>&1") + "; sleep 0.1; done",
             "rm -f /tmp/exam-bus; dbus-daemon --config-file=bus.conf --nofork > bus.log 2>&1 & sleep 1; DBUS_SESSION_BUS_ADDRESS=unix:path=/tmp/exam-bus exec /usr/bin/python3 -u s.py",
             # Who one is, in words and twice (SASL), Hello, the call. The byte that carries credentials elsewhere, and BEGIN, are writes of their own: what
             # follows them waits for their acknowledgement, as dbus-send sets no TCP_NODELAY.
             lambda t, rtt: {"handshake@": 4 * rtt, "round-trip@": 16 * rtt, "server-think@server": (4 * 90, 4 * 90 + 60), "sender-think@client": (0, 20), "nagle|nagle-delayed-ack@client": (t.waited() - 20 * rtt - 4 * 90 - 60, t.waited() - 20 * rtt - 4 * 90)}, files={"bus.conf": DBUS, "s.py": """
import time
from gi.repository import Gio, GLib
xml = "<node><interface name='a.Work'><method name='Nap'><arg type='s' direction='out'/></method></interface></node>"
def call(c, sender, path, iface, method, args, inv): time.sleep(0.09); inv.return_value(GLib.Variant("(s)", ("r" * 300,)))
b = Gio.bus_get_sync(Gio.BusType.SESSION); b.register_object("/w", Gio.DBusNodeInfo.new_for_xml(xml).interfaces[0], call, None, None)
Gio.bus_own_name_on_connection(b, "a.Work", 0, None, None); GLib.MainLoop().run()
"""})


def erlang(directory):
    write(directory, "w.erl", "-module(w).\n-export([nap/3, serve/0, ask/0]).\nnap(S, _, _) -> T = erlang:monotonic_time(), timer:sleep(45), io:format(\"think ~f~n\", [(erlang:monotonic_time() - T) / 1.0e6]), mod_esi:deliver(S, [\"Content-Type: text/plain\\r\\n\\r\\n\", lists:duplicate(500, $x)]).\n"
          "serve() -> inets:start(), {ok, _} = inets:start(httpd, [{port, 7000}, {server_name, \"far\"}, {server_root, \".\"}, {document_root, \".\"}, {modules, [mod_esi]}, {erl_script_alias, {\"/esi\", [w]}}]).\n"
          "ask() -> inets:start(), [begin S = os:system_time(nanosecond), {ok, _} = httpc:request(\"http://10.77.0.2:7000/esi/w:nap\"), io:format(\"ask ~p ~p~n\", [S, os:system_time(nanosecond)]), timer:sleep(80) end || _ <- lists:seq(1, 7)], halt().\n")
    subprocess.run("erlc w.erl", shell=True, cwd=directory, check=True)


case("erlang-httpc-asks-inets", "sleep 2; erl -noshell -s w ask", "exec erl -noshell -s w serve",
     # The first answer also loads what is needed. Its chunks are writes of their own, without TCP_NODELAY.
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 7 * rtt, "server-think@server": (logged(t, "far.out", "think"), logged(t, "far.out", "think") + 90), "nagle|nagle-delayed-ack@": (0, max(0.0, t.waited() - 8 * rtt - logged(t, "far.out", "think"))), "sender-think@": (0, 25)},
     files=erlang, path=way("erlang-httpc-asks-inets"))
GO_SLEEPS = """package main
import ("fmt"; "io"; "net/http"; "time")
func nap(ms int) { t := time.Now(); time.Sleep(time.Duration(ms) * time.Millisecond); fmt.Println("think", float64(time.Since(t).Microseconds()) / 1000) }
func main() { http.ListenAndServe(":7000", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { nap(70); io.Copy(io.Discard, r.Body); nap(40); w.Write(make([]byte, 400)) })) }
"""
CONTINUES = """
import java.net.*; import java.net.http.*;
public class E { static long now() { java.time.Instant i = java.time.Instant.now(); return i.getEpochSecond() * 1000000000L + i.getNano(); }
  public static void main(String[] a) throws Exception { HttpClient c = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build(); StringBuilder said = new StringBuilder();
    for (int n = 0; n < 5; n++) { long start = now(); c.send(HttpRequest.newBuilder(URI.create("http://10.77.0.2:7000/")).expectContinue(true).POST(HttpRequest.BodyPublishers.ofByteArray(new byte[9000])).build(), HttpResponse.BodyHandlers.ofByteArray());
      said.append("ask " + start + " " + now() + "\\n"); Thread.sleep(60); } System.out.print(said); System.out.flush(); System.exit(0); } }
"""


def continues(directory):
    write(directory, "s.go", GO_SLEEPS)
    write(directory, "E.java", CONTINUES)
    subprocess.run("GO111MODULE=off go build -o s s.go && javac E.java", shell=True, cwd=directory, check=True)


case("java-expects-continue", "sleep 1; java E", "exec ./s",
     # Go says 100 Continue when the body is read first, 70 ms later; then the body, and 40 ms more. The first request loads classes before it is sent.
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 10 * rtt, "server-think@server": (logged(t, "far.out", "think"), logged(t, "far.out", "think") + 30), "sender-think|server-think@client": (0, 120), "nagle|nagle-delayed-ack@": (0, 20)},
     files=continues, path=way("java-expects-continue"))
NODE_NAPS = "require('http').createServer((q, r) => { const t = process.hrtime.bigint(), ms = +q.url.slice(1); setTimeout(() => { console.log('think', Number(process.hrtime.bigint() - t) / 1e6); r.end('x'.repeat(600)); }, ms); }).listen(7000);\n"
UNDICI = """
const { Client } = require('undici'), off = BigInt(Date.now()) * 1000000n - process.hrtime.bigint(), now = () => process.hrtime.bigint() + off, waits = [];
const c = new Client('http://10.77.0.2:7000', { pipelining: 4 }), nap = ms => new Promise(r => setTimeout(r, ms));
const ask = async ms => { const s = now(), r = await c.request({ path: '/' + ms, method: 'GET' }); await r.body.text(); waits.push(`ask ${s} ${now()}`); };
(async () => { await ask(5); for (let n = 0; n < 4; n++) { await nap(120); await Promise.all([80, 20, 60, 40].map(ask)); } await c.close(); console.log(waits.join('\\n')); })();
"""


def packages(names):
    def put(directory):
        subprocess.run(f"npm install --silent --no-audit --no-fund {names} > npm.out 2>&1", shell=True, cwd=directory, check=True)

    return put


case("undici-pipelines", "sleep 2; node c.js", "exec node s.js",
     # Four questions at once, answered in order: Node's timers run beside each other, and the first is the longest. All four wait for it.
     lambda t, rtt: {"handshake@": rtt, "round-trip@": (5 * rtt, 17 * rtt), "server-think@server": (4 * 80, sum(end - start for start, end in t.asked()) - 17 * rtt)}, path=way("undici-pipelines"),
     files=lambda d: (write(d, "s.js", NODE_NAPS), write(d, "c.js", UNDICI), packages("undici@6")(d)))
SOCKETS = ("const io = require('socket.io')(7000, { pingInterval: 700 }); io.on('connection', s => s.on('work', (text, done) => { const t = process.hrtime.bigint(); setTimeout(() => { console.log('think', Number(process.hrtime.bigint() - t) / 1e6); done('r'.repeat(200)); }, 55); }));\n",
           "const off = BigInt(Date.now()) * 1000000n - process.hrtime.bigint(), now = () => process.hrtime.bigint() + off, waits = [], nap = ms => new Promise(r => setTimeout(r, ms));\n"
           "const s = require('socket.io-client').io('http://10.77.0.2:7000'); s.once('connect', async () => { await nap(500); for (let n = 0; n < 9; n++) { const t = now(); await s.emitWithAck('work', 'q'.repeat(90)); waits.push(`ask ${t} ${now()}`); await nap(130); } s.close(); console.log(waits.join('\\n')); });\n")
case("socket-io-acknowledged", "sleep 2; node c.js", "exec node s.js",
     # Its first answers are compiled while they are asked for.
     lambda t, rtt: {"handshake@": (rtt, 4 * rtt), "round-trip@": None, "server-think@": (0, logged(t, "far.out", "think") + 200), "sender-think@": (0, 40)}, path=way("socket-io-acknowledged"), guess=True,
     files=lambda d: (write(d, "s.js", SOCKETS[0]), write(d, "c.js", SOCKETS[1]), packages("socket.io@4 socket.io-client@4")(d)))

# Logs: RELP, in which each message is confirmed, and a server that takes a while for each.

RELP_NEAR = 'module(load="imuxsock" SysSock.Use="off")\ninput(type="imuxsock" Socket="HERE/log.sock")\nmodule(load="omrelp")\nglobal(workDirectory="HERE")\naction(type="omrelp" target="10.77.0.2" port="7000")\n'
RELP_FAR = 'module(load="imrelp")\ninput(type="imrelp" port="7000")\nglobal(workDirectory="HERE")\naction(type="omfile" file="HERE/messages")\n'
near_and_far("relp-messages-lossy", "sleep 1; rsyslogd -n -f near.conf -i $PWD/near.pid 2> r.err & sleep 3; for i in 1 2 3 4 5 6 7 8; do logger -u $PWD/log.sock -t a \"message $i\"; sleep 0.4; done; sleep 1; kill $(cat near.pid)", "exec rsyslogd -n -f far.conf -i $PWD/far.pid 2> s.err",
             # At the far end a message that comes late was written late.
             lambda t, rtt: {"handshake@": rtt, "round-trip@": (8 * rtt, 12 * rtt), "server-think|sender-think@": (0, 60), "rto|loss@": (180, 900)}, files={"near.conf": RELP_NEAR, "far.conf": RELP_FAR}, kind="lost request", skip=("far",))

# A server with one process, asked by two at once: one of them waits until it has closed the other's connection.


def tickets(t):
    """What ab measured of each request, in whole milliseconds."""
    return [float(line.split("\t")[4]) for line in t.text("times.tsv").splitlines()[1:]]


case("ab-two-for-one-process", f"sleep 2; ab -q -n 8 -c 2 -g times.tsv {URL}/cgi/sleeps > ab.out", APACHE,
     lambda t, rtt: {"handshake@": 8 * rtt, "round-trip@": 8 * rtt, "server-think@server": (sum(tickets(t)) - 16 * rtt - 12, sum(tickets(t)) - 16 * rtt + 12)}, files=httpd, path=way("ab-two-for-one-process"))
