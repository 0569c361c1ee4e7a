"""Brokers that keep messages: RabbitMQ (AMQP 0-9-1) and Kafka, in clear and in cipher.

The broker's own time is what a clock beside the client has beyond the path's delay.
"""

import os
import subprocess

from cases import case
from ciphers import CERTIFICATE
from programs import write
from services import logged
from waits import ASK


def placed(certificate=False, **texts):
    """Writes each as NAME.EXTENSION; HERE is the case's folder."""

    def put(directory):
        for name, text in texts.items():
            write(directory, name.replace("__", "."), text.replace("HERE", directory))
        if certificate:
            os.system(f"cd {directory} && {CERTIFICATE}; chmod 644 {directory}/*.pem")

    return put


# RabbitMQ. It sets TCP_NODELAY by itself, and so does pika.

RABBIT_CONF = "listeners.tcp.1 = LISTEN\nloopback_users = none\nlog.console = false\n"
RABBIT_TLS = "listeners.ssl.1 = 0.0.0.0:7000\nssl_options.certfile = HERE/cert.pem\nssl_options.keyfile = HERE/key.pem\nssl_options.verify = verify_none\nssl_options.fail_if_no_peer_cert = false\n"
RABBIT = ("export HOME=$PWD RABBITMQ_NODENAME=r@localhost RABBITMQ_MNESIA_BASE=$PWD/m RABBITMQ_LOG_BASE=$PWD/l RABBITMQ_CONFIG_FILE=$PWD/r RABBITMQ_PID_FILE=$PWD/pid"
          " RABBITMQ_ENABLED_PLUGINS_FILE=$PWD/plugins RABBITMQ_DIST_PORT=25679 ERL_EPMD_PORT=4379; mkdir -p m l; echo '[].' > plugins; ")
RABBIT_SERVES = "exec /usr/lib/rabbitmq/bin/rabbitmq-server > r.log 2>&1"
BESIDE = "python3 -u beside.py & "
PIKA = """
import pika
def connected(host, port, **more):
    for _ in range(120):
        try: return pika.BlockingConnection(pika.ConnectionParameters(host, port, **more))
        except pika.exceptions.AMQPError: time.sleep(0.25)
def waited(do, *a, **k): start = now(); got = do(*a, **k); took("waited", start); return got
"""
NEAR = PIKA + """
start = now(); c = pika.BlockingConnection(pika.ConnectionParameters("10.77.0.2", 7000, MORE)); took("waited", start); ch = waited(c.channel)
"""
TLS_MORE = 'ssl_options=pika.SSLOptions(__import__("ssl")._create_unverified_context()), MORE'
CLOSES = "waited(ch.close); waited(c.close)\n"
# What ENDS a recording: the far end's own clients are on its loopback.
NEAR_ONLY = "tcp and host 10.77.0.1"


def rabbit(name, client, expect, beside="", tls=False, listen="", **options):
    conf = RABBIT_CONF.replace("LISTEN", "127.0.0.1:7001" if tls else "0.0.0.0:7000") + (RABBIT_TLS if tls else "") + listen
    near = (NEAR.replace("MORE", TLS_MORE) if tls else NEAR).replace("MORE", options.pop("more", "heartbeat=0"))
    port = 7001 if tls else 7000
    files = placed(tls, r__conf=conf, client__py=ASK + near + client, beside__py=ASK + PIKA + beside.replace("LOCAL", f'"127.0.0.1", {port}'))
    far = RABBIT + (BESIDE if beside else "") + RABBIT_SERVES
    case(name, f"sleep {options.pop('wait', 14)}; python3 client.py", far, expect, files=files, tap=NEAR_ONLY, path=options.pop("path", "--delay 40ms"), each=options.pop("each", None), snap=options.pop("snap", 65_535), **options)


def clocked(trips, tls=0, extra=40.0, **more):
    """What the client waited for is its round trips and the broker."""

    def expect(t, rtt):
        rest = logged(t, "near.out", "waited") - (trips + tls + 1) * rtt
        return {"handshake@": rtt, "round-trip|tls-handshake@": (trips + tls) * rtt, "server-think|sender-think@server": (rest - extra, rest), "server-think|sender-think@client": (0, extra), **more}

    return expect


# Start, Tune, OpenOk; the channel; and closing both: six round trips. Who consumes cancels that as well when it closes.
OPENS = 6
PUBLISHES = """
waited(ch.confirm_delivery); waited(ch.queue_declare, "q", durable=True)
for n in range(8): start = now(); ch.basic_publish("", "q", b"m" * 300, pika.BasicProperties(delivery_mode=2), mandatory=True); took("waited", start); asked(start); time.sleep(0.05)
""" + CLOSES
for tls in (False, True):
    rabbit("tls-" * tls + "rabbit-confirms", PUBLISHES, clocked(OPENS + 2 + 8, int(tls)), tls=tls, each=lambda t: t.asked())
RPC = """
waiting = {}
def answered(ch, method, properties, body): asked(waiting.pop("start")); took("waited", began)
waited(ch.basic_consume, "amq.rabbitmq.reply-to", answered, auto_ack=True)
for n in range(8):
    waiting["start"] = began = now(); ch.basic_publish("", "rpc", b"q" * 200, pika.BasicProperties(reply_to="amq.rabbitmq.reply-to"))
    while waiting: c.process_data_events(5)
    time.sleep(0.05)
""" + CLOSES
WORKER = """
c = connected(LOCAL); ch = c.channel(); ch.queue_declare("rpc"); ch.basic_qos(prefetch_count=1)
def call(ch, method, properties, body):
    start = now(); time.sleep(WORKS); took("think", start); ch.basic_publish("", properties.reply_to, b"r" * 250); ch.basic_ack(method.delivery_tag)
ch.basic_consume("rpc", call); ch.start_consuming()
"""
for tls in (False, True):
    rabbit("tls-" * tls + "rabbit-rpc", RPC, clocked(OPENS + 2 + 8, int(tls), extra=60.0), WORKER.replace("WORKS", "0.03"), tls=tls, each=lambda t: t.asked())
# A consumer that takes one message at a time, 40 ms each: the next one comes a round trip behind its acknowledgement.
FILLS = """
c = connected(LOCAL); ch = c.channel(); ch.queue_declare("q")
for n in range(30): ch.basic_publish("", "q", b"m" * SIZE)
"""
CONSUMES = """
waited(ch.basic_qos, prefetch_count=PREFETCH); seen = []; begun = now()
def one(ch, method, properties, body):
    start = now(); time.sleep(0.04); took("works", start); seen.append(1)
    if not AUTO: ch.basic_ack(method.delivery_tag)
    if len(seen) == 30: took("consuming", begun); ch.stop_consuming()
waited(ch.basic_consume, "q", one, auto_ack=AUTO); ch.start_consuming()
""" + CLOSES


def prefetched(t, rtt):
    """What the consumer waited for between its pieces of work: thirty times a round trip, less the first that came with the answer."""
    waits = logged(t, "near.out", "consuming") - logged(t, "near.out", "works") - rtt
    return {"handshake@": rtt, "round-trip|application-window@": ((OPENS + 3) * rtt, (OPENS + 3) * rtt + waits), "server-think|sender-think@server": (0, 60)}


for tls in (False, True):
    rabbit("tls-" * tls + "rabbit-prefetch-1", CONSUMES.replace("PREFETCH", "1").replace("AUTO", "False"), prefetched if not tls else
           lambda t, rtt: {k.replace("round-trip", "round-trip|tls-handshake"): ms for k, ms in prefetched(t, rtt).items()}, FILLS.replace("SIZE", "300"), tls=tls, guess=tls, wait=16)
# No window of the broker's: TCP's own closes before a consumer that does not read while it works. Each message has its own way besides.
rabbit("rabbit-slow-consumer", CONSUMES.replace("PREFETCH", "0").replace("AUTO", "True"),
       lambda t, rtt: {"handshake@": rtt, "round-trip@": ((OPENS + 1) * rtt, (OPENS + 4 + 30) * rtt), "receiver-think|receive-window@client": (500, 30 * 40 + 100), "slow-start|congestion-window@": (0, 4 * rtt),
                       "server-think|sender-think@server": (0, 80), "bandwidth@": (0, 60)},
       FILLS.replace("SIZE", "100_000"), wait=16, path="--delay 5ms", near_sysctl=["net.ipv4.tcp_rmem=4096 65536 131072"])
# Heart-beats each second from both sides, and messages that nobody confirms: nobody waits.
rabbit("rabbit-heart-beats", """
for n in range(4):
    c.process_data_events(2.3); ch.basic_publish("", "nowhere", b"m" * 200)
""" + CLOSES, lambda t, rtt: {"handshake@": rtt, "round-trip@": (OPENS * rtt, (OPENS + 4) * rtt), "server-think|sender-think@server": (0, 60)}, more="heartbeat=2")
# One worker, and three clients at once: each waits for those before it.
rabbit("rabbit-one-worker", """
import threading
def client():
    c = pika.BlockingConnection(pika.ConnectionParameters("10.77.0.2", 7000, heartbeat=0)); ch = c.channel(); waiting = {}
    def answered(ch, method, properties, body): asked(waiting.pop("start"))
    ch.basic_consume("amq.rabbitmq.reply-to", answered, auto_ack=True)
    for n in range(6):
        waiting["start"] = now(); ch.basic_publish("", "rpc", b"q" * 200, pika.BasicProperties(reply_to="amq.rabbitmq.reply-to"))
        while waiting: c.process_data_events(5)
threads = [threading.Thread(target=client) for _ in range(3)]
for t in threads: t.start()
for t in threads: t.join()
""", lambda t, rtt: {"handshake@": 4 * rtt, "round-trip@": None, "server-think|sender-think@server": (t.waited() - 18 * rtt, t.waited() - 18 * rtt + 160)}, WORKER.replace("WORKS", "0.06"), path="--delay 20ms")

# Kafka, one broker that is its own controller, from Maven Central.

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId><version>1</version><packaging>pom</packaging>
<dependencies><dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>3.7.1</version></dependency></dependencies></project>
"""
KAFKA_CONF = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:7002
listeners=PLAINTEXT://0.0.0.0:7000,CONTROLLER://127.0.0.1:7002
advertised.listeners=PLAINTEXT://10.77.0.2:7000
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs=HERE/logs
offsets.topic.replication.factor=1
group.initial.rebalance.delay.ms=0
"""
KAFKA = ("export CP=$(cat cp):.; java -cp $CP kafka.tools.StorageTool format -t MkU3OEVBNTcwNTJENDM2Qk -c k.properties > format.log 2>&1; ")
KAFKA_SERVES = "exec java -Xmx400m -cp $CP kafka.Kafka k.properties > k.log 2>&1"
JAVA = """
import java.time.*; import java.util.*; import org.apache.kafka.clients.admin.*; import org.apache.kafka.clients.consumer.*; import org.apache.kafka.clients.producer.*; import org.apache.kafka.common.*; import org.apache.kafka.common.serialization.*;
public class K {
  static List<String> waits = new ArrayList<>();
  static long now() { Instant i = Instant.now(); return i.getEpochSecond() * 1000000000L + i.getNano(); }
  static Properties with(String host, String... more) { Properties p = new Properties(); p.put("bootstrap.servers", host + ":7000"); for (String m : more) p.put(m.split("=", 2)[0], m.split("=", 2)[1]); return p; }
  static KafkaProducer<byte[], byte[]> producer(String host, String... more) { return new KafkaProducer<>(with(host, more), new ByteArraySerializer(), new ByteArraySerializer()); }
  static KafkaConsumer<byte[], byte[]> consumer(String host, String... more) { KafkaConsumer<byte[], byte[]> c = new KafkaConsumer<>(with(host, more), new ByteArrayDeserializer(), new ByteArrayDeserializer()); c.assign(List.of(new TopicPartition("t", 0))); c.seekToBeginning(c.assignment()); return c; }
  static void make() throws Exception { try (Admin a = Admin.create(with("127.0.0.1"))) { a.createTopics(List.of(new NewTopic("t", 1, (short) 1))).all().get(); } }
  static void sends(KafkaProducer<byte[], byte[]> p, int times, int size, int pause, boolean note) throws Exception { for (int n = 0; n < times; n++) { long start = now(); p.send(new ProducerRecord<>("t", new byte[size])).get(); if (note) waits.add("ask " + start + " " + now()); Thread.sleep(pause); } }
  public static void main(String[] a) throws Exception {
    if (a[0].equals("make")) { make(); BESIDE }
    else { CLIENT }
    for (String w : waits) System.out.println(w); System.out.flush(); System.exit(0); } }
"""


def built(conf, client, beside):
    def put(directory):
        placed(k__properties=KAFKA_CONF + conf, pom__xml=POM, K__java=JAVA.replace("BESIDE", beside).replace("CLIENT", client))(directory)
        subprocess.run("(mvn -o -q -B dependency:build-classpath -Dmdep.outputFile=cp || mvn -q -B dependency:build-classpath -Dmdep.outputFile=cp) > mvn.log 2>&1;"
                       " javac -cp $(cat cp) K.java", shell=True, cwd=directory, check=True)

    return put


def kafka(name, client, expect, beside="", conf="", again=None, wait=22, **options):
    """`again` is what is different without the fault: client, configuration."""
    if again:
        options["changed"] = {"files": built(again[1], again[0], beside)}
    far = KAFKA + "(sleep 9; java -cp $CP K make > beside.out 2>&1) & " + KAFKA_SERVES
    # The program's messages are on near.err, its log framework's complaint as well.
    case(name, f"sleep {wait}; java -cp $(cat cp):. K client", far, expect, files=built(conf, client, beside), tap=NEAR_ONLY, path=options.pop("path", "--delay 40ms"), each=options.pop("each", None), **options)


# What the client's threads take between each other, 2 ms at first, passes on no wire.
SENDS = 'KafkaProducer<byte[], byte[]> p = producer("10.77.0.2", "acks=all"); sends(p, 12, 200, 5, false); sends(p, 8, 300, 60, true); p.close();'
# ApiVersions, Metadata and InitProducerId on one connection or another: a client may know its broker by two connections.
kafka("kafka-sends", SENDS, lambda t, rtt: {"handshake@": (rtt, 2 * rtt), "round-trip@": (23 * rtt, 27 * rtt), "server-think@server": (t.waited() - 8 * rtt - 20, t.waited() - 8 * rtt + 300), "sender-think@": (0, 30)})
# A consumer's fetch stands at the broker until there is something, or its time is over: nobody waits for what has not happened.
POLLS = ('KafkaConsumer<byte[], byte[]> c = consumer("10.77.0.2", "fetch.max.wait.ms=700", "enable.auto.commit=false"); long end = now() + 7000000000L; int seen = 0;'
         ' while (now() < end) seen += c.poll(Duration.ofMillis(200)).count(); System.out.println("seen " + seen);')
kafka("kafka-long-polls", POLLS, lambda t, rtt: {"handshake@": (rtt, 2 * rtt), "round-trip@": None, "server-think@server": (0, 200), "sender-think@": (0, 30)},
      'KafkaProducer<byte[], byte[]> p = producer("127.0.0.1"); sends(p, 40, 200, 1300, false);', guess=True)
# A consumer's receive buffer is 64 KB by default (receive.buffer.bytes), a broker's send buffer 100 KB: on a long path each is a window.
FETCHES = ('KafkaConsumer<byte[], byte[]> c = consumer("10.77.0.2", "enable.auto.commit=false"BUFFER); long start = now(); int seen = 0; while (seen < 60) seen += c.poll(Duration.ofMillis(500)).count();'
           ' waits.add("ask " + start + " " + now());')
FILLED = 'KafkaProducer<byte[], byte[]> p = producer("127.0.0.1"); sends(p, 60, 50000, 0, false);'


def windowed(where):
    """Three megabytes through a window: what they take beyond the same run without it."""

    def expect(t, rtt):
        more = t.waited() - t.fixed.waited()
        return {"handshake@": (rtt, 2 * rtt), "round-trip@": (5 * rtt, 12 * rtt), where: (0.7 * more, t.waited()), "slow-start|congestion-window@": (0, 10 * rtt), "server-think|sender-think@server": (0, 250), "bandwidth@": (0, 60),
                "sender-think|server-think|receiver-think@client": (0, 150)}

    return expect


kafka("kafka-receive-buffer", FETCHES.replace("BUFFER", ""), windowed("receive-window@client"), FILLED, "socket.send.buffer.bytes=-1\n", (FETCHES.replace("BUFFER", ', "receive.buffer.bytes=-1"'), "socket.send.buffer.bytes=-1\n"),
      fix="no-rcvbuf", wait=24)
OPEN = FETCHES.replace("BUFFER", ', "receive.buffer.bytes=-1"')
kafka("kafka-send-buffer", OPEN, windowed("send-buffer@server"), FILLED, "socket.send.buffer.bytes=32768\n", (OPEN, "socket.send.buffer.bytes=-1\n"), fix="no-sndbuf", wait=24)
