"""Records what real programs say to each other, a line for each piece as it passes: who speaks, and the bytes.

record.py NAME runs one of the conversations below through a relay on loopback and writes NAME.txt. Without a name: all of
them. Debian 12: redis nginx curl openssl postgresql mariadb-server memcached mosquitto nats-server slapd ldap-utils ngircd;
PyPI: pymysql pymemcache paho-mqtt nats-py aiosmtpd pyftpdlib thrift.
"""

import os
import selectors
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).parent
RELAY, SERVER = 18000, 18001


class Relay:
    """Passes bytes on between one client and the server, and notes them."""

    def __init__(self, server=SERVER, connections=1):
        self.listener = socket.create_server(("127.0.0.1", RELAY), reuse_port=True)
        self.server, self.connections, self.pieces = server, connections, []
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        for _ in range(self.connections):
            client, _ = self.listener.accept()
            self.pieces.clear()
            server = socket.create_connection(("127.0.0.1", self.server))
            other = {client: (server, ">"), server: (client, "<")}
            wait = selectors.DefaultSelector()
            for end in other:
                wait.register(end, selectors.EVENT_READ)
            open_ends = 2
            while open_ends:
                for key, _ in wait.select():
                    try:
                        data = key.fileobj.recv(65536)
                    except ConnectionResetError:
                        data = b""
                    peer, mark = other[key.fileobj]
                    if data:
                        self.pieces.append((mark, data))
                        peer.sendall(data)
                    else:
                        wait.unregister(key.fileobj)
                        open_ends -= 1
                        try:
                            peer.shutdown(socket.SHUT_WR)
                        except OSError:
                            pass
        self.listener.close()

    def write(self, name):
        self.thread.join(20)
        with open(HERE / f"{name}.txt", "w") as file:
            for mark, data in self.pieces:
                file.write(f"{mark} {escape(data)}\n")


def escape(data):
    return "".join(chr(b) if 32 <= b < 127 and b != 92 else {10: "\\n", 13: "\\r", 92: "\\\\"}.get(b, f"\\x{b:02x}") for b in data)


def start(*command, wait=1.0, **more):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)
    time.sleep(wait)
    return process


def run(*command, give=None):
    subprocess.run(command, input=give, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=20)


def record(name, server, client, port=SERVER, connections=1, wait=1.0):
    process = start(*server, wait=wait) if server else None
    relay = Relay(port, connections)
    try:
        client()
    finally:
        relay.write(name)
        if process:
            process.terminate()
            process.wait()


def http1():
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "a.txt").write_text("hello\n")
        url = f"http://127.0.0.1:{RELAY}"
        server = ("python3", "-c", "import http.server as h\n"
                  f"import os; os.chdir({folder!r})\nh.test(h.SimpleHTTPRequestHandler, h.ThreadingHTTPServer, 'HTTP/1.1', {SERVER}, bind='127.0.0.1')")
        curl = lambda: run("curl", "-s", f"{url}/a.txt", "--next", "-s", "-I", f"{url}/a.txt", "--next", "-s", f"{url}/none")
        record("http1", server, curl)


NGINX = """daemon off; pid FOLDER/pid; error_log FOLDER/log; events {}
http { access_log off; client_body_temp_path FOLDER; proxy_temp_path FOLDER; fastcgi_temp_path FOLDER; uwsgi_temp_path FOLDER; scgi_temp_path FOLDER;
server { listen 127.0.0.1:PORT HTTP2; root FOLDER; ssi on; location /post { proxy_pass http://127.0.0.1:PORT/a.html; proxy_method GET; } } }
"""


def nginx(name, http2, *curl):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        Path(folder, "a.html").write_text("<p><!--# echo var='uri' --></p>\n")
        config = Path(folder, "conf")
        config.write_text(NGINX.replace("FOLDER", folder).replace("PORT", str(SERVER)).replace("HTTP2", http2))
        record(name, ("nginx", "-c", str(config)), lambda: run("curl", *curl))


def http1_chunked():
    url = f"http://127.0.0.1:{RELAY}"
    nginx("http1_chunked", "", "-s", f"{url}/a.html", "--next", "-s", "-H", "Expect: 100-continue", "-d", "x=1", f"{url}/post",
          "--next", "-s", f"{url}/a.html")


def http2():
    url = f"http://127.0.0.1:{RELAY}"
    nginx("http2", "http2", "-s", "--http2-prior-knowledge", f"{url}/a.html", f"{url}/none")


def redis(name, commands):
    """redis-cli asks for the documentation of all commands first: that is 200 KB, so the commands are sent without it."""
    def client():
        with socket.create_connection(("127.0.0.1", RELAY)) as a:
            for command in commands:
                a.sendall(command)
                a.recv(1000)
    record(name, ("redis-server", "--port", str(SERVER), "--save", "", "--bind", "127.0.0.1"), client)


def command(text):
    words = text.encode().split()
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def redis2():
    several = command("GET a") + command("INCR a") + command("LRANGE l 0 -1") + b"PING\r\n"
    redis("redis2", [command(text) for text in ["SET a 1", "GET none", "RPUSH l x y z", "NOPE"]] + [several])


def redis3():
    redis("redis3", [command(text) for text in ["HELLO 3", "HSET h f v", "HGETALL h", "GET none", "SUBSCRIBE c"]])


def redis_push():
    def client():
        a = socket.create_connection(("127.0.0.1", RELAY))
        b = socket.create_connection(("127.0.0.1", SERVER))
        a.sendall(b"*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nc\r\n")
        a.recv(1000)
        b.sendall(b"PUBLISH c hello\r\n")
        b.recv(1000)
        time.sleep(0.2)
        a.close()
        b.close()
    record("redis_push", ("redis-server", "--port", str(SERVER), "--save", "", "--bind", "127.0.0.1"), client)


def tls(name, version):
    with tempfile.TemporaryDirectory() as folder:
        key, cert = f"{folder}/key", f"{folder}/cert"
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", cert, "-subj", "/CN=a", "-days", "1")
        server = ("openssl", "s_server", "-accept", str(SERVER), "-key", key, "-cert", cert, version, "-rev", "-naccept", "1")
        client = lambda: run("bash", "-c", f"(sleep 0.3; echo hello; sleep 0.3; echo Q) | openssl s_client -connect 127.0.0.1:{RELAY} {version}")
        record(name, server, client)


def tls12():
    tls("tls12", "-tls1_2")


def tls13():
    tls("tls13", "-tls1_3")


def postgresql():
    binaries = str(next(Path("/usr/lib/postgresql").iterdir()) / "bin")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        as_postgres = ("runuser", "-u", "postgres", "--")
        run(*as_postgres, f"{binaries}/initdb", "-D", f"{folder}/db", "-A", "trust", "--no-sync")
        server = (*as_postgres, f"{binaries}/postgres", "-D", f"{folder}/db", "-p", str(SERVER), "-k", folder, "-h", "127.0.0.1")
        commands = b"select 1;\ncreate table t (a int);\ncopy t from stdin;\n1\n2\n\\.\nlisten c;\nnotify c;\ncopy t to stdout;\nselect nope;\n"
        record("postgresql", server, lambda: run("psql", "-X", "-h", "127.0.0.1", "-p", str(RELAY), "-U", "postgres", give=commands), wait=3)


def mysql(name, commands, **more):
    import pymysql

    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        run("mariadb-install-db", "--no-defaults", "--user=mysql", f"--datadir={folder}/db", "--auth-root-authentication-method=normal")
        server = ("mariadbd", "--no-defaults", "--user=mysql", f"--datadir={folder}/db", f"--port={SERVER}", f"--socket={folder}/s",
                  "--bind-address=127.0.0.1", f"--pid-file={folder}/pid")

        def client():
            connection = pymysql.connect(host="127.0.0.1", port=RELAY, user="root", ssl_disabled=True, **more)
            cursor = connection.cursor()
            for text in commands:
                try:
                    cursor.execute(text)
                    while cursor.nextset():
                        pass
                except pymysql.Error:
                    pass
            connection.ping()
            connection.close()
        record(name, server, client, wait=6)


def mysql_text():
    from pymysql.constants import CLIENT

    commands = ["select 1", "create database d", "create table d.t (a int, b text)", "insert into d.t values (1, 'x'), (2, null)",
                "select * from d.t", "select 1; select 2", "select nope", "do 1"]
    mysql("mysql_text", commands, client_flag=CLIENT.MULTI_STATEMENTS)


def memcached(name, client):
    record(name, ("memcached", "-u", "nobody", "-l", "127.0.0.1", "-p", str(SERVER)), client)


def memcached_text():
    def client():
        from pymemcache.client.base import Client

        c = Client(("127.0.0.1", RELAY))
        c.set("a", "hello", noreply=False)
        c.get("a")
        c.get_many(["a", "none", "b"])
        c.set("b", "1", noreply=True)
        c.incr("b", 2)
        c.delete("none", noreply=False)
        c.version()
        with socket.create_connection(("127.0.0.1", SERVER)) as warm:
            warm.sendall(b"get b\r\n")
            warm.recv(100)
        c.sock.sendall(b"ms m 2 T60\r\nhi\r\nmg m v\r\nmg none v\r\nmn\r\n")
        time.sleep(0.2)
        c.sock.sendall(b"stats items\r\nget a b\r\n")
        time.sleep(0.2)
        c.quit()
    memcached("memcached_text", client)


def memcached_binary():
    def packet(opcode, key=b"", extras=b"", value=b"", opaque=0):
        return struct.pack(">BBHBBHIIQ", 0x80, opcode, len(key), len(extras), 0, 0, len(key) + len(extras) + len(value), opaque, 0) + extras + key + value

    def client():
        with socket.create_connection(("127.0.0.1", RELAY)) as c:
            c.sendall(packet(1, b"k", bytes(8), b"value", 7))
            c.recv(1000)
            c.sendall(packet(9, b"k", opaque=8) + packet(9, b"none", opaque=9) + packet(10, opaque=10))
            time.sleep(0.2)
            c.recv(1000)
    memcached("memcached_binary", client)


def mqtt():
    def client():
        import paho.mqtt.client as paho

        c = paho.Client(paho.CallbackAPIVersion.VERSION2, client_id="c")
        c.connect("127.0.0.1", RELAY)
        c.loop_start()
        time.sleep(0.3)
        c.subscribe("a/#", 1)
        time.sleep(0.3)
        for qos in 0, 1, 2:
            c.publish("a/b", f"hello {qos}", qos)
            time.sleep(0.3)
        c.disconnect()
        c.loop_stop()
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as config:
        config.write(f"listener {SERVER} 127.0.0.1\nallow_anonymous true\n")
        config.flush()
        os.chmod(config.name, 0o644)
        record("mqtt", ("mosquitto", "-c", config.name), client)


def nats():
    def client():
        import asyncio

        import nats as library

        async def talk():
            c = await library.connect(f"nats://127.0.0.1:{RELAY}")
            async def answer(message):
                await message.respond(b"pong")
            await c.subscribe("ping", cb=answer)
            await c.request("ping", b"ping")
            await c.publish("nobody", b"")
            await c.flush()
            await c.close()
        asyncio.run(talk())
    record("nats", ("nats-server", "-a", "127.0.0.1", "-p", str(SERVER)), client)


def ldap():
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "slapd.conf")
        config.write_text(f"include /etc/ldap/schema/core.schema\nmodulepath /usr/lib/ldap\nmoduleload back_mdb\npidfile {folder}/pid\n"
                          f"database mdb\nmaxsize 1048576\nsuffix dc=x\nrootdn cn=r,dc=x\nrootpw r\ndirectory {folder}\n")
        server = ("slapd", "-d", "0", "-f", str(config), "-h", f"ldap://127.0.0.1:{SERVER}")

        def client():
            to = ["-x", "-D", "cn=r,dc=x", "-w", "r", "-H"]
            run("ldapadd", *to, f"ldap://127.0.0.1:{SERVER}", give=b"dn: dc=x\nobjectClass: dcObject\nobjectClass: organization\no: x\ndc: x\n\n"
                b"dn: cn=a,dc=x\nobjectClass: person\ncn: a\nsn: a\n")
            run("ldapsearch", *to, f"ldap://127.0.0.1:{RELAY}", "-b", "dc=x", "-LLL", "cn=*")
            run("ldapsearch", *to, f"ldap://127.0.0.1:{RELAY}", "-b", "dc=x", "-LLL")
        record("ldap", server, client, connections=2)


def smtp():
    def client():
        import smtplib

        with smtplib.SMTP("127.0.0.1", RELAY, local_hostname="x") as c:
            c.sendmail("a@x", ["b@x", "c@x"], "Subject: hello\n\nhello\n.dot\n")
    handler = "from aiosmtpd.controller import Controller; from aiosmtpd.handlers import Sink; import time; "
    record("smtp", ("python3", "-c", handler + f"Controller(Sink(), hostname='127.0.0.1', port={SERVER}, server_hostname='x').start(); time.sleep(60)"), client, wait=4)


def ftp():
    def client():
        import ftplib

        c = ftplib.FTP()
        c.connect("127.0.0.1", RELAY)
        c.login("u", "p")
        c.sendcmd("FEAT")
        c.pwd()
        c.set_pasv(True)
        c.retrlines("LIST", lambda line: None)
        c.quit()
    with tempfile.TemporaryDirectory() as folder:
        record("ftp", ("python3", "-m", "pyftpdlib", "-i", "127.0.0.1", "-p", str(SERVER), "-d", folder, "-u", "u", "-P", "p"), client, wait=4)


NGIRCD = """[Global]
Name = far.example
Info = x
Ports = PORT
Listen = 127.0.0.1
MotdPhrase = hello
ServerGID = 0
ServerUID = 0
[Options]
DNS = no
Ident = no
PAM = no
"""


def irc():
    def client():
        with socket.create_connection(("127.0.0.1", RELAY)) as a:
            def say(*lines, until):
                a.sendall("".join(line + "\r\n" for line in lines).encode())
                data = b""
                while until not in data:
                    data += a.recv(4096)
            say("CAP LS", "NICK me", "USER me 0 * :me", until=b" LS ")
            say("CAP END", until=b" 376 ")
            say("JOIN #c", until=b" 366 ")
            say("WHO #c", "PRIVMSG #c :hello there", "NICK myself", until=b"NICK")
            say("PING x", until=b"PONG")
            say("WHOIS nobody", until=b" 318 ")
            say("QUIT", until=b"ERROR")
    with tempfile.NamedTemporaryFile("w") as config:
        config.write(NGIRCD.replace("PORT", str(SERVER)))
        config.flush()
        record("irc", ("ngircd", "-n", "-f", config.name), client, wait=2)


def thrift():
    """What the library writes; there is no service to call without its compiler."""
    from thrift.protocol import TBinaryProtocol, TCompactProtocol
    from thrift.Thrift import TMessageType
    from thrift.transport import TTransport

    with open(HERE / "thrift.txt", "w") as file:
        for protocol in TBinaryProtocol.TBinaryProtocol, TCompactProtocol.TCompactProtocol:
            for mark, kind, id in (">", TMessageType.CALL, 1), ("<", TMessageType.REPLY, 1), (">", TMessageType.ONEWAY, 300), ("<", TMessageType.EXCEPTION, 70000):
                buffer = TTransport.TMemoryBuffer()
                framed = TTransport.TFramedTransport(buffer)
                out = protocol(framed)
                out.writeMessageBegin("getUser", kind, id)
                out.writeStructBegin("args")
                out.writeFieldStop()
                out.writeStructEnd()
                out.writeMessageEnd()
                framed.flush()
                file.write(f"{mark} {escape(buffer.getvalue())}\n")


ALL = [http1, http1_chunked, http2, redis2, redis3, redis_push, tls12, tls13, postgresql, mysql_text, memcached_text, memcached_binary, mqtt,
       nats, ldap, smtp, ftp, irc, thrift]

if __name__ == "__main__":
    for recipe in ALL:
        if len(sys.argv) == 1 or recipe.__name__ in sys.argv[1:]:
            recipe()
            print(recipe.__name__, (HERE / f"{recipe.__name__}.txt").stat().st_size)
