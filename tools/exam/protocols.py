"""Servers and clients of protocols that the other files lack: directories, mail, names, blocks, queues, proxies, chat, version control."""

from cases import BULK, case
from programs import BACKEND, CURL, URL, write
from services import repeated, scripts
from software import TIMED
from waits import ASK, PLAIN


def thinks(times, setups=1, ms=0, extra=40.0, **more):
    """Each answer took a round trip and what its server is known to take."""
    return lambda t, rtt: {"handshake@": setups * rtt, "round-trip@": times * rtt, "server-think@server": (times * ms, times * ms + extra), **more}


def any_amount(setups=1, **more):
    """Who waited for whom, where nobody knows what each part took."""
    return lambda t, rtt: {"handshake@": setups * rtt, "round-trip@": None, "server-think@server": None, **more}


def both(files, **program):
    """Files of a server, and the client's program."""

    def put(directory):
        for name, text in files.items():
            write(directory, name, text.replace("HERE", str(directory)))
        scripts(**program)(directory)

    return put


def asks(name, far, client, expect, files=None, wait=2.0, **options):
    """A client in Python that prints each of its waits."""
    options.setdefault("each", lambda t: t.asked())
    case(name, f"sleep {wait}; python3 client.py", far, expect, files=both(files or {}, client=ASK + client), **options)


# Directories.

SLAPD = ("include /etc/ldap/schema/core.schema\ninclude /etc/ldap/schema/cosine.schema\ninclude /etc/ldap/schema/inetorgperson.schema\n"
         "modulepath /usr/lib/ldap\nmoduleload back_mdb\npidfile HERE/p\ndatabase mdb\nmaxsize 10000000\nsuffix dc=x\nrootdn cn=a,dc=x\nrootpw a\ndirectory HERE/db\n")
LDIF = "dn: dc=x\nobjectClass: dcObject\nobjectClass: organization\ndc: x\no: x\n\n" + "".join(
    f"dn: cn=u{n},dc=x\nobjectClass: inetOrgPerson\ncn: u{n}\nsn: u{n}\nmail: u{n}@x\ndescription: {'d' * 300}\n\n" for n in range(400))
asks("ldap-searches", "mkdir db; slapadd -f slapd.conf -l all.ldif; exec slapd -d 0 -h ldap://0.0.0.0:7000 -f slapd.conf", """
import ldap3
start = now(); c = ldap3.Connection(ldap3.Server("10.77.0.2", 7000, get_info=None), "cn=a,dc=x", "a"); c.open(); start = now(); c.bind(); asked(start)
for n in range(8): start = now(); c.search("dc=x", f"(cn=u{n})", attributes=["mail"]); asked(start); time.sleep(0.05)
start = now(); c.search("dc=x", "(objectClass=*)", attributes=["*"]); asked(start)
for n in range(4): start = now(); c.modify(f"cn=u{n},dc=x", {"mail": [(ldap3.MODIFY_REPLACE, ["new@x"])]}); asked(start); time.sleep(0.05)
c.unbind()
""", any_amount(**{"slow-start|congestion-window|receive-window@": None}), files={"slapd.conf": SLAPD, "all.ldif": LDIF}, each=None)

# Mail.

DOVECOT = ("base_dir = HERE/run\nlog_path = HERE/log\nprotocols = imap\nlisten = *\nssl = no\ndisable_plaintext_auth = no\nmail_location = maildir:HERE/mail\n"
           "default_internal_user = dovecot\ndefault_login_user = dovenull\nservice imap-login {\n inet_listener imap {\n  port = 7000\n }\n}\n"
           "passdb {\n driver = static\n args = nopassword=y\n}\nuserdb {\n driver = static\n args = uid=1000 gid=1000 home=HERE/mail allow_all_users=yes\n}\n")
MAIL = "mkdir -p mail/cur mail/new mail/tmp; for i in $(seq 40); do (printf 'From: a@x\\nSubject: n\\n\\n'; head -c 20000 /dev/urandom | base64) > mail/cur/$i.x:2,S; done; chmod 755 .. . ; chown -R 1000:1000 mail; exec dovecot -F -c dovecot.conf"
asks("imap-session", MAIL, """
import imaplib
m = imaplib.IMAP4("10.77.0.2", 7000)
def timed(f, *a):
    start = now(); r = f(*a); asked(start); return r
timed(m.login, "u", "p"); timed(m.select); time.sleep(0.1)
for n in range(1, 9): timed(m.fetch, str(n), "(RFC822.HEADER)"); time.sleep(0.03)
timed(m.fetch, "1:40", "(RFC822)"); timed(m.search, None, "ALL"); time.sleep(0.2); timed(m.store, "3", "+FLAGS", "\\\\Deleted"); timed(m.expunge); m.logout()
""", any_amount(**{"slow-start|congestion-window|receive-window@": None}), files={"dovecot.conf": DOVECOT}, each=None)
asks("imap-idle", MAIL.replace("exec dovecot", "(sleep 6; for i in 1 2 3; do sleep 1.5; cp mail/cur/1.x:2,S mail/new/n$i; chown 1000 mail/new/n$i; done) & exec dovecot"), """
import imaplib
m = imaplib.IMAP4("10.77.0.2", 7000); m.login("u", "p"); m.select(); m.send(b"i1 IDLE\\r\\n")
end = time.time() + 12; m.sock.settimeout(1)
while time.time() < end:
    try: m.readline()
    except Exception: m._file = m.sock.makefile("rb") if hasattr(m, "_file") else None
m.send(b"DONE\\r\\n"); time.sleep(0.3)
""", any_amount(), files={"dovecot.conf": DOVECOT}, each=None)
EXIM = ("daemon_smtp_ports = 7000\nspool_directory = HERE/spool\nlog_file_path = HERE/log-%slog\nexim_user = root\nexim_group = root\nhost_lookup =\nrfc1413_query_timeout = 0s\nprimary_hostname = far.example\n"
        "never_users =\nqueue_only\nacl_smtp_rcpt = ok\nacl_smtp_data = ok\nbegin acl\nok:\n accept\nbegin routers\nhere:\n driver = accept\n transport = null\nbegin transports\nnull:\n driver = appendfile\n file = /dev/null\n")
asks("exim-mails", "mkdir spool; exec exim4 -C $PWD/exim.conf -bdf -q1h", """
import smtplib
s = smtplib.SMTP("10.77.0.2", 7000, "near.example")
def timed(f, *a):
    start = now(); r = f(*a); asked(start); return r
timed(s.ehlo)
for n in range(4):
    timed(s.mail, "a@example.org"); timed(s.rcpt, "b@far.example"); timed(s.data, b"Subject: x\\r\\n\\r\\n" + b"line of text\\r\\n" * 900); time.sleep(0.1)
s.quit()
""", any_amount(), files={"exim.conf": EXIM}, each=None)

# Names over TCP.

NAMED = 'options { directory "HERE"; listen-on port 7000 { any; }; listen-on-v6 { none; }; recursion no; pid-file none; session-keyfile none; managed-keys-directory "HERE"; };\nzone "x" { type master; file "HERE/zone"; };\ncontrols {};\n'
ZONE = "$TTL 1\n@ SOA a.x. b.x. 1 1 1 1 1\n@ NS a.x.\na A 10.0.0.1\n" + "".join(f"h{n} A 10.0.{n // 250}.{n % 250}\nh{n} TXT \"{'t' * 200}\"\n" for n in range(3000))
DNS = PLAIN + """
import struct
def query(n, name, kind):
    body = struct.pack(">HHHHHH", n, 0, 1, 0, 0, 0) + b"".join(bytes([len(p)]) + p.encode() for p in name.split(".")) + b"\\0" + struct.pack(">HH", kind, 1)
    s.sendall(struct.pack(">H", len(body)) + body)
def whole(size):
    data = b""
    while len(data) < size: data += s.recv(size - len(data))
    return data
def reply(): return whole(struct.unpack(">H", whole(2))[0])
"""
asks("named-queries", "exec named -g -c named.conf", DNS + """
for n in range(6): start = now(); query(n, f"h{n}.x", 16); reply(); asked(start); time.sleep(0.04)
starts = []
for n in range(10): starts.append(now()); query(n, f"h{n}.x", 1)
for start in starts: reply(); asked(start)
""", any_amount(**{"nagle@server": None}), snap=2000, files={"named.conf": NAMED, "zone": ZONE})
case("named-transfer", "sleep 2; " + TIMED.format("dig -p 7000 @10.77.0.2 x AXFR > got"), "exec named -g -c named.conf",
     any_amount(**{"slow-start|congestion-window|receive-window|bandwidth@": None}), files=both({"named.conf": NAMED, "zone": ZONE}))

# Blocks and files.

case("nbd-copy", "sleep 1; " + TIMED.format("nbdcopy --connections=1 --requests=4 --request-size=65536 nbd://10.77.0.2:7000 null:"), "exec nbdkit -f -p 7000 --filter=delay pattern 4M rdelay=30ms",
     any_amount(**{"slow-start|congestion-window|receive-window@": None}))
case("nbd-copy-one", "sleep 1; " + TIMED.format("nbdcopy --connections=1 --requests=1 --request-size=65536 nbd://10.77.0.2:7000 null:"), "exec nbdkit -f -p 7000 --filter=delay pattern 2M rdelay=15ms",
     any_amount(**{"slow-start|congestion-window|receive-window@": None}))
case("nbd-write", "sleep 1; head -c 2000000 /dev/urandom > f; " + TIMED.format("nbdcopy --connections=1 --requests=8 f nbd://10.77.0.2:7000"), "exec nbdkit -f -p 7000 --filter=delay memory 2000000 wdelay=10ms",
     any_amount(**{"slow-start|congestion-window|receive-window|bandwidth@": None}), path="--delay 10ms --rate 50mbit --queue 200k")
TGT = "rm -f /tmp/exam-tgt; head -c 8000000 /dev/zero > d; tgtd -f -C 7 --iscsi portal=0.0.0.0:7000 & sleep 1; tgtadm -C 7 --lld iscsi --op new --mode target --tid 1 -T iqn.x:d; tgtadm -C 7 --lld iscsi --op new --mode logicalunit --tid 1 --lun 1 -b $PWD/d; tgtadm -C 7 --lld iscsi --op bind --mode target --tid 1 -I ALL; wait"
case("iscsi-inquiry", "sleep 3; for i in 1 2 3; do " + TIMED.format("iscsi-inq iscsi://10.77.0.2:7000/iqn.x:d/1 > o") + "; done", TGT, any_amount(setups=3, **{"sender-think@": None}))
case("iscsi-reads", "sleep 3; " + TIMED.format("iscsi-perf -m 4 -t 4 -b 16 iscsi://10.77.0.2:7000/iqn.x:d/1 > o"), TGT, any_amount(**{"slow-start|congestion-window|receive-window|bandwidth@": None}), path="--delay 10ms --rate 50mbit --queue 200k")
GANESHA = "NFS_CORE_PARAM { NFS_Port = 7000; MNT_Port = 7001; Protocols = 3; Enable_NLM = false; Enable_RQUOTA = false; Bind_addr = 0.0.0.0; }\nEXPORT { Export_Id = 1; Path = HERE/e; Pseudo = /e; Access_Type = RW; Squash = no_root_squash; Protocols = 3; Transports = TCP; SecType = sys; FSAL { Name = VFS; } }\n"
case("nfs-cat", "sleep 6; " + TIMED.format("nfs-cat \"nfs://10.77.0.2$PWD/e/f?nfsport=7000&mountport=7001\" > got"), "mkdir e; head -c 1500000 /dev/urandom > e/f; mkdir -p /run/rpcbind; rpcbind -f -w & sleep 1; exec ganesha.nfsd -F -f g.conf -L log -p pid",
     any_amount(**{"slow-start|congestion-window|receive-window|bandwidth@": None}), files=both({"g.conf": GANESHA}), path="--delay 10ms --rate 50mbit --queue 200k")
SVN = "svnadmin create r; printf '[general]\\nanon-access = write\\n' > r/conf/svnserve.conf; mkdir w; for i in $(seq 50); do head -c 3000 /dev/urandom > w/$i; done; svn import -q -m x w file://$PWD/r; exec svnserve -d --foreground --listen-port 7000 -r $PWD"
case("svn-checkout", "sleep 3; " + TIMED.format("svn checkout -q svn://10.77.0.2:7000/r got"), SVN, any_amount(**{"slow-start|congestion-window|receive-window@": None, "sender-think@": None}))
HG = "export HGRCPATH=; hg init r; cd r; for i in $(seq 40); do head -c 4000 /dev/urandom > $i; hg add -q $i; done; hg commit -q -u a -m x; exec hg serve -p 7000 -a 0.0.0.0"
# Python's server writes an answer's head and body apart; the intervention sets TCP_NODELAY.
NODELAY = "import socket\naccept = socket.socket.accept\ndef nodelay(self):\n    one = accept(self)\n    one[0].setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)\n    return one\nsocket.socket.accept = nodelay\n"
case("hg-clone", "sleep 5; " + TIMED.format("hg clone -q http://10.77.0.2:7000 got"), "export PYTHONPATH=$PWD; " + HG,
     lambda t, rtt: {
         "handshake@": rtt, "round-trip@": None, "server-think|sender-think@": None, "slow-start|congestion-window|receive-window@": None,
         "nagle|nagle-delayed-ack@server": (0.7 * (t.waited() - t.fixed.waited()), 1.3 * (t.waited() - t.fixed.waited()) + 20)},
     tap="tcp and host 10.77.0.1", files=both({"sitecustomize.py": ""}), fix="nodelay", changed={"files": both({"sitecustomize.py": NODELAY})})
# Queues and coordination.

asks("beanstalk-worker", "beanstalkd -p 7000 & sleep 2; python3 put.py; sleep 20", PLAIN + """
def line():
    data = b""
    while not data.endswith(b"\\r\\n"): data += s.recv(1)
    return data
for n in range(6):
    s.sendall(b"reserve-with-timeout 5\\r\\n"); got = line().split()
    read(int(got[2]) + 2); time.sleep(0.02); start = now(); s.sendall(b"delete " + got[1] + b"\\r\\n"); line(); asked(start)
""", any_amount(), files={"put.py": "import socket, time\ns = socket.create_connection(('127.0.0.1', 7000))\nfor n in range(6): time.sleep(0.7); s.sendall(b'put 0 0 60 100\\r\\n' + b'j' * 100 + b'\\r\\n'); s.recv(100)\n"}, each=None, tap="tcp and host 10.77.0.1")
ZOO = "tickTime=2000\ndataDir=HERE/z\nclientPort=7000\nadmin.enableServer=false\n"
asks("zookeeper-session", "mkdir z; exec java -cp '/usr/share/java/*' org.apache.zookeeper.server.quorum.QuorumPeerMain zoo.cfg", """
from kazoo.client import KazooClient
k = KazooClient("10.77.0.2:7000"); k.start()
for n in range(6): start = now(); k.create(f"/n{n}", b"v" * 100); asked(start); time.sleep(0.1)
seen = []
k.DataWatch("/n0", lambda data, stat: seen.append(data))
for n in range(6): start = now(); k.get(f"/n{n}"); asked(start); time.sleep(1.1)
k.stop()
""", any_amount(), files={"zoo.cfg": ZOO}, wait=6.0, each=None)
asks("etcd-puts", "exec etcd --listen-client-urls http://0.0.0.0:7000 --advertise-client-urls http://10.77.0.2:7000 --data-dir d", """
import subprocess
for n in range(5): start = now(); subprocess.run(["etcdctl", "--endpoints=10.77.0.2:7000", "put", f"k{n}", "v" * 50], env={"ETCDCTL_API": "3", "PATH": "/usr/bin"}); print("whole", start, now(), flush=True); time.sleep(0.1)
""", any_amount(setups=5), each=None, wait=4.0)
asks("gearman-jobs", "gearmand -p 7000 -l stderr & sleep 1; gearman -h 127.0.0.1 -p 7000 -w -f up -- sh -c 'sleep 0.05; wc -c' & sleep 20", """
import subprocess
for n in range(5): start = now(); subprocess.run(["gearman", "-h", "10.77.0.2", "-p", "7000", "-f", "up", "some text"]); print("whole", start, now(), flush=True); time.sleep(0.1)
""", any_amount(setups=5, **{"sender-think@server": (240, 300)}), each=None, tap="tcp and host 10.77.0.1", wait=4.0)

# Proxies. The server behind them takes 80 ms (programs.BACKEND).

PROXIED = repeated("http://127.0.0.1:7001/a", 5)
SQUID = "http_port 7000\nhttp_access allow all\ncache deny all\npid_filename none\naccess_log none\ncache_log /dev/null\nshutdown_lifetime 1 seconds\npinger_enable off\n"
case("squid-forwards", "sleep 5; " + repeated("http://127.0.0.1:7001/a", 5).replace("curl ", "curl --noproxy '' -x http://10.77.0.2:7000 ", 1), "rm -f /dev/shm/squid-*; python3 backend.py & exec squid -N -f squid.conf",
     thinks(5, ms=80, extra=60), files=both({"squid.conf": SQUID, "backend.py": BACKEND}), tap="tcp and host 10.77.0.1")
case("varnish-passes", "sleep 4; " + repeated(URL + "/a", 5), "python3 backend.py & exec varnishd -F -a :7000 -f $PWD/v.vcl -n $PWD/n -s malloc,20m",
     thinks(5, ms=80, extra=60), files=both({"v.vcl": 'vcl 4.0;\nbackend default { .host = "127.0.0.1"; .port = "7001"; }\nsub vcl_recv { return (pass); }\n', "backend.py": BACKEND}), tap="tcp and host 10.77.0.1")
DANTE = "logoutput: HERE/log\ninternal: 0.0.0.0 port = 7000\nexternal: lo\nclientmethod: none\nsocksmethod: none\nuser.privileged: root\nuser.unprivileged: root\nclient pass { from: 0.0.0.0/0 to: 0.0.0.0/0 }\nsocks pass { from: 0.0.0.0/0 to: 0.0.0.0/0 }\n"
case("socks-forwards", "sleep 3; " + repeated("http://127.0.0.1:7001/a", 5).replace("curl ", "curl --noproxy '' --socks5 10.77.0.2:7000 ", 1), "python3 backend.py & exec danted -f danted.conf -p p",
     any_amount(), files=both({"danted.conf": DANTE, "backend.py": BACKEND}), tap="tcp and host 10.77.0.1")
STUNNEL = "foreground = yes\npid =\nsyslog = no\n[r]\naccept = 7000\nconnect = 127.0.0.1:7001\ncert = HERE/c.pem\n"
case("stunnel-http", "sleep 4; " + repeated("https://10.77.0.2:7000/a", 5).replace("curl ", "curl -k ", 1), "openssl req -x509 -newkey rsa:2048 -nodes -keyout k -out c -days 2 -subj /CN=x; cat k c > c.pem; chmod 600 c.pem; python3 backend.py & exec stunnel4 s.conf",
     any_amount(**{"tls-handshake@": None, "sender-think@server": (0, 90)}), files=both({"s.conf": STUNNEL, "backend.py": BACKEND}), tap="tcp and host 10.77.0.1")
CADDY = '{\n admin off\n auto_https disable_redirects\n local_certs\n skip_install_trust\n http_port 7009\n}\nhttps://10.77.0.2:7000 {\n root * HERE\n file_server\n}\n'
case("caddy-http2", "sleep 3; " + repeated("https://10.77.0.2:7000/small.txt", 6).replace("curl ", "curl -k --http2 ", 1), "head -c 700 /dev/urandom > small.txt; HOME=$PWD exec caddy run --config Caddyfile --adapter caddyfile",
     any_amount(**{"tls-handshake@": None, "sender-think@client": (0, 10)}), files=both({"Caddyfile": CADDY}))

# Chat and music.

asks("irc-talk", "sleep 0.5; exec ngircd -n -f n.conf", PLAIN + """
def until(word):
    data = b""
    while word not in data:
        got = s.recv(4096); data += got
        for l in got.split(b"\\r\\n"):
            if l.startswith(b"PING"): s.sendall(b"PONG " + l[5:] + b"\\r\\n")
start = now(); s.sendall(b"NICK me\\r\\nUSER me 0 * :me\\r\\n"); until(b" 376 " if False else b"422"); asked(start)
start = now(); s.sendall(b"JOIN #c\\r\\n"); until(b"366"); asked(start)
for n in range(5): time.sleep(0.4); start = now(); s.sendall(b"NAMES #c\\r\\n"); until(b"366"); asked(start)
for n in range(4): time.sleep(0.6); s.sendall(b"PRIVMSG #c :hello there\\r\\n")
time.sleep(0.3)
""", any_amount(), files={"n.conf": "[Global]\nName = far.example\nInfo = x\nPorts = 7000\nListen = 0.0.0.0\nServerGID = 0\nServerUID = 0\nMotdFile =\n[Options]\nDNS = no\nIdent = no\nPAM = no\n[Limits]\nPingTimeout = 3\nPongTimeout = 20\n"}, each=None)
asks("mpd-idle", "mkdir m pl; exec mpd --no-daemon mpd.conf", PLAIN + """
def until(word):
    data = b""
    while not data.endswith(word): data += s.recv(4096)
until(b"\\n")
for n in range(5): start = now(); s.sendall(b"status\\n"); until(b"OK\\n"); asked(start); time.sleep(0.05)
s.sendall(b"idle\\n"); time.sleep(2.5); start = now(); s.sendall(b"noidle\\n"); until(b"OK\\n"); asked(start)
for n in range(3): start = now(); s.sendall(b"setvol 3%d\\n" % n); until(b"\\n"); asked(start); time.sleep(0.05)
""", any_amount(), files={"mpd.conf": 'music_directory "HERE/m"\nplaylist_directory "HERE/pl"\ndb_file "HERE/db"\nstate_file "HERE/st"\nbind_to_address "0.0.0.0"\nport "7000"\nlog_file "HERE/log"\naudio_output {\n type "null"\n name "n"\n mixer_type "null"\n}\n'}, each=None)
