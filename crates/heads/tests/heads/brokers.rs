//! Which messages of brokers ask, and which are pushed?

use tcpwhy_heads::{Conversation, Protocol};

use crate::log::{Piece, tells, tells_cut};

pub(crate) const LOGS: &[(&str, Protocol, &str)] = &[
    ("mqtt", Protocol::Mqtt, MQTT),
    ("nats", Protocol::Nats, NATS),
    ("kafka", Protocol::Kafka, KAFKA),
    ("amqp", Protocol::Amqp, AMQP),
];

const MQTT: &str = include_str!("../recorded/mqtt.txt");
const NATS: &str = include_str!("../recorded/nats.txt");

#[test]
fn mqtt() {
    tells(
        MQTT,
        "
        > 0 CONNECT asks len 15 first last
        = MQTT
        < 0 CONNACK answers len 4 first last
        > 15 SUBSCRIBE asks #1 len 10 first last
        < 4 SUBACK answers #1 len 5 first last
        > 25 PUBLISH [a/b] pushes len 14 first last
        < 9 PUBLISH [a/b] pushes len 14 first last
        > 39 PUBLISH [a/b] asks #3 len 16 first last
        < 23 PUBLISH [a/b] asks #1 len 16 first last
        < 39 PUBACK answers #3 len 4 first last
        > 55 PUBACK answers #1 len 4 first last
        > 59 PUBLISH [a/b] asks #4 len 16 first last
        < 43 PUBREC answers #4 len 4 first last
        > 75 PUBREL asks #4 len 4 first last
        < 47 PUBLISH [a/b] asks #2 len 16 first last
        > 79 PUBACK answers #2 len 4 first last
        < 63 PUBCOMP answers #4 len 4 first last
        > 83 DISCONNECT neither len 2 first last
        ",
    );
}

/// In the middle of a connection, a published message and its acknowledgement identify the
/// protocol, but not which side is the client: an acknowledgement asks for nothing, and the next
/// message published does not answer it.
#[test]
fn mqtt_from_the_middle() {
    tells(
        r"
        < 2\x0e\x00\x07line/up\x22\x12on!
        > @\x02\x22\x12
        < 2\x0e\x00\x07line/up\x22\x13off
        > @\x02\x22\x13
        ",
        "
        < 0 PUBLISH [line/up] asks #8722 len 16 first last
        > 0 PUBACK answers #8722 len 4 first last
        = MQTT
        < 16 PUBLISH [line/up] asks #8723 len 16 first last
        > 4 PUBACK answers #8723 len 4 first last
        ",
    );
}

/// A NATS server sends its INFO in clear and announces TLS, which begins after it.
#[test]
fn nats_behind_tls() {
    let hello = r"\x16\x03\x01\x00-\x01\x00\x00)\x03\x03".to_owned() + &r"\x00".repeat(39);
    let answer = r"\x16\x03\x03\x00*\x02\x00\x00&\x03\x03".to_owned() + &r"\x00".repeat(36);
    let said = r#"< INFO {"server_id":"N","tls_required":true}\r\n"#;
    tells(
        &format!("\n{said}\n> {hello}\n< {answer}\n"),
        "
        < 0 INFO neither len 44 first last
        = NATS
        > 0 ClientHello asks len 50 first
        = TLS
        < 44 ServerHello answers len 47 first
        ",
    );
}

#[test]
fn nats() {
    tells(NATS, "
        < 0 INFO neither len 305 first last
        = NATS
        > 0 CONNECT neither len 156 first last
        > 156 PING neither len 6 first last
        < 305 PONG neither len 6 first last
        > 162 SUB neither len 13 first last
        > 175 SUB neither len 40 first last
        > 215 PUB [PUB ping _INBOX.gVCkfxCMuw67RIFfJ4dZJ3.gVCkfxCMuw67RIFfJ4dZLZbe6a 4] asks #1384858191 len 75 first last
        < 311 MSG [MSG ping 1 _INBOX.gVCkfxCMuw67RIFfJ4dZJ3.gVCkfxCMuw67RIFfJ4dZLZbe6a 4] asks #1384858191 len 77 first last
        > 290 PUB [PUB _INBOX.gVCkfxCMuw67RIFfJ4dZJ3.gVCkfxCMuw67RIFfJ4dZLZbe6a  4] answers #1384858191 len 71 first last
        < 388 MSG [MSG _INBOX.gVCkfxCMuw67RIFfJ4dZJ3.gVCkfxCMuw67RIFfJ4dZLZbe6a 2 4] answers #1384858191 len 72 first last
        > 361 PING neither len 6 first last
        < 460 PONG neither len 6 first last
        > 367 PUB [PUB nobody  0] pushes len 17 first last
        ");
}

/// Two requests at once; producers that want an answer (acks -1) and that do not (0).
const KAFKA: &str = r"
    > \x00\x00\x00\x0f\x00\x12\x00\x02\x00\x00\x00\x01\x00\x05app-1
    < \x00\x00\x00\x0e\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00
    > \x00\x00\x005\x00\x01\x00\x0b\x00\x00\x00\x02\x00\x05app-1\xff\xff\xff\xff\x00\x00\x01\xf4\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00
    > \x00\x00\x00\x17\x00\x03\x00\x05\x00\x00\x00\x03\x00\x05app-1\x00\x00\x00\x01\x00\x01t\x01
    < \x00\x00\x00@\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x18\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00
    > \x00\x00\x00;\x00\x00\x00\x07\x00\x00\x00\x04\x00\x05app-1\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00
    > \x00\x00\x00;\x00\x00\x00\x07\x00\x00\x00\x05\x00\x05app-1\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00
    > \x00\x00\x001\x00\x00\x00\x09\x00\x00\x00\x06\x00\x05app-1\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00
    < \x00\x00\x00\x10\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00
";

#[test]
fn kafka() {
    tells(
        KAFKA,
        "
        > 0 ApiVersions asks #1 len 19 first last
        = Kafka
        < 0 response answers #1 len 18 first last
        > 19 Fetch subscribes #2 len 57 first last
        > 76 Metadata asks #3 len 27 first last
        < 18 response answers #2 len 68 first last
        < 86 response answers #3 len 28 first last
        > 103 Produce pushes #4 len 63 first last
        > 166 Produce asks #5 len 63 first last
        > 229 Produce pushes #6 len 53 first last
        < 114 response answers #5 len 20 first last
        ",
    );
}

/// ... of which the first 24 bytes of each segment were captured: what a fetch asks for is not needed to know it.
#[test]
fn kafka_behind_a_snap_length() {
    tells_cut(
        &KAFKA[..KAFKA.find("    > \\x00\\x00\\x00;").expect("a producer")],
        24,
        "
        > 0 ApiVersions asks #1 len 19 first last
        = Kafka
        < 0 response answers #1 len 18 first last
        > 19 Fetch subscribes #2 len 57 first last
        > 76 Metadata asks #3 len 27 first last
        < 18 response answers #2 len 68 first last
        ",
    );
}

/// Two channels, a message published, delivered, fetched, heartbeats.
const AMQP: &str = r"
    > AMQP\x00\x00\x09\x01
    < \x01\x00\x00\x00\x00\x00\x1c\x00\n\x00\n\x00\x09\x00\x00\x00\x00\x00\x00\x00\x05PLAIN\x00\x00\x00\x05en_US\xce
    > \x01\x00\x00\x00\x00\x00\x18\x00\n\x00\x0b\x00\x00\x00\x00\x05PLAIN\x00\x00\x00\x00\x05en_US\xce
    < \x01\x00\x00\x00\x00\x00\x0c\x00\n\x00\x1e\x07\xff\x00\x02\x00\x00\x00<\xce
    > \x01\x00\x00\x00\x00\x00\x0c\x00\n\x00\x1f\x07\xff\x00\x02\x00\x00\x00<\xce\x01\x00\x00\x00\x00\x00\x08\x00\n\x00(\x01/\x00\x00\xce
    < \x01\x00\x00\x00\x00\x00\x05\x00\n\x00)\x00\xce
    > \x01\x00\x01\x00\x00\x00\x05\x00\x14\x00\n\x00\xce\x01\x00\x02\x00\x00\x00\x05\x00\x14\x00\n\x00\xce
    < \x01\x00\x01\x00\x00\x00\x08\x00\x14\x00\x0b\x00\x00\x00\x00\xce\x01\x00\x02\x00\x00\x00\x08\x00\x14\x00\x0b\x00\x00\x00\x00\xce
    > \x01\x00\x01\x00\x00\x00\r\x002\x00\n\x00\x00\x01q\x00\x00\x00\x00\x00\xce
    < \x01\x00\x01\x00\x00\x00\x0e\x002\x00\x0b\x01q\x00\x00\x00\x00\x00\x00\x00\x00\xce
    > \x01\x00\x01\x00\x00\x00\n\x00<\x00(\x00\x00\x00\x01q\x00\xce\x02\x00\x01\x00\x00\x00\x0e\x00<\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\xce\x03\x00\x01\x00\x00\x00\x05hello\xce
    > \x01\x00\x02\x00\x00\x00\x0e\x00<\x00\x14\x00\x00\x01q\x00\x00\x00\x00\x00\x00\xce
    < \x01\x00\x02\x00\x00\x00\x06\x00<\x00\x15\x01c\xce\x01\x00\x02\x00\x00\x00\x12\x00<\x00<\x01c\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x01q\xce\x02\x00\x02\x00\x00\x00\x0e\x00<\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\xce\x03\x00\x02\x00\x00\x00\x05hello\xce
    > \x01\x00\x02\x00\x00\x00\r\x00<\x00P\x00\x00\x00\x00\x00\x00\x00\x01\x00\xce
    > \x01\x00\x01\x00\x00\x00\x09\x00<\x00F\x00\x00\x01q\x00\xce
    < \x01\x00\x01\x00\x00\x00\x14\x00<\x00G\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x01q\x00\x00\x00\x00\xce\x02\x00\x01\x00\x00\x00\x0e\x00<\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xce
    < \x08\x00\x00\x00\x00\x00\x00\xce
";

#[test]
fn amqp() {
    tells(
        AMQP,
        "
        > 0 protocol header asks len 8 first last
        = AMQP
        < 0 connection.start answers #0 len 36 first last
        > 8 connection.start-ok asks #0 len 32 first last
        < 36 connection.tune answers #0 len 20 first last
        > 40 connection.tune-ok neither #0 len 20 first last
        > 60 connection.open asks #0 len 16 first last
        < 56 connection.open-ok answers #0 len 13 first last
        > 76 channel.open asks #1 len 13 first last
        > 89 channel.open asks #2 len 13 first last
        < 69 channel.open-ok answers #1 len 16 first last
        < 85 channel.open-ok answers #2 len 16 first last
        > 102 queue.declare asks #1 len 21 first last
        < 101 queue.ok answers #1 len 22 first last
        > 123 basic.publish pushes #1 len 18 first
        > 141 header pushes #1 len 22
        > 163 body pushes #1 len 13 last
        > 176 basic.consume asks #2 len 22 first last
        < 123 basic.ok answers #2 len 14 first last
        < 137 basic.deliver pushes #2 len 26 first
        < 163 header pushes #2 len 22
        < 185 body pushes #2 len 13 last
        > 198 basic.ack neither #2 len 21 first last
        > 219 basic.get asks #1 len 17 first last
        < 198 basic.get-ok answers #1 len 28 first
        < 226 header answers #1 len 22 last
        < 248 heartbeat neither #0 len 8 first last
        ",
    );
}

/// In the middle of a connection, methods and their frames identify the protocol, but not which
/// side is the client.
#[test]
fn amqp_without_its_beginning() {
    let log = AMQP.lines().skip(11).collect::<Vec<_>>().join("\n");
    let mut conversation = Conversation::new();
    let told = crate::log::read(&mut conversation, &crate::log::pieces(&log));
    assert_eq!((conversation.protocol(), conversation.client()), (Some(Protocol::Amqp), None));
    assert_eq!(told.first().map(|head| head.kind), Some("basic.publish"));
}

/// Confirmed messages, one of them alone and two without waiting; two calls, and a delivery without
/// one. This log is not among those that may only fall silent if something is missing: a wait is
/// reported before that is known, and a message whose role is unknown counts as a push.
const AMQP_AWAITED: &str = r"
    > AMQP\x00\x00\x09\x01
    < \x01\x00\x00\x00\x00\x00\x1c\x00\n\x00\n\x00\x09\x00\x00\x00\x00\x00\x00\x00\x05PLAIN\x00\x00\x00\x05en_US\xce
    > \x01\x00\x01\x00\x00\x00\x05\x00U\x00\n\x00\xce
    < \x01\x00\x01\x00\x00\x00\x04\x00U\x00\x0b\xce
    > \x01\x00\x01\x00\x00\x00\n\x00<\x00(\x00\x00\x00\x01q\x00\xce\x02\x00\x01\x00\x00\x00\x0f\x00<\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05\x10\x00\x02\xce\x03\x00\x01\x00\x00\x00\x05hello\xce
    < \x01\x00\x01\x00\x00\x00\r\x00<\x00P\x00\x00\x00\x00\x00\x00\x00\x01\x00\xce
    > \x01\x00\x01\x00\x00\x00\n\x00<\x00(\x00\x00\x00\x01q\x00\xce
    > \x02\x00\x01\x00\x00\x00\x0e\x00<\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xce
    > \x01\x00\x01\x00\x00\x00\n\x00<\x00(\x00\x00\x00\x01q\x00\xce\x02\x00\x01\x00\x00\x00\x0e\x00<\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xce
    < \x01\x00\x01\x00\x00\x00\r\x00<\x00P\x00\x00\x00\x00\x00\x00\x00\x03\x01\xce
    > \x01\x00\x02\x00\x00\x00\x22\x00<\x00\x14\x00\x00\x15amq.rabbitmq.reply-to\x00\x02\x00\x00\x00\x00\xce
    < \x01\x00\x02\x00\x00\x00\x06\x00<\x00\x15\x01c\xce
    > \x01\x00\x02\x00\x00\x00\n\x00<\x00(\x00\x00\x00\x01q\x00\xce\x02\x00\x02\x00\x00\x00$\x00<\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x02\x00\x15amq.rabbitmq.reply-to\xce\x03\x00\x02\x00\x00\x00\x02hi\xce
    < \x01\x00\x02\x00\x00\x00\x12\x00<\x00<\x01c\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x01r\xce\x02\x00\x02\x00\x00\x00\x0e\x00<\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\xce\x03\x00\x02\x00\x00\x00\x02ok\xce
    > \x01\x00\x02\x00\x00\x00\n\x00<\x00(\x00\x00\x00\x01q\x00\xce\x02\x00\x02\x00\x00\x00$\x00<\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x15amq.rabbitmq.reply-to\xce
    < \x01\x00\x02\x00\x00\x00\x12\x00<\x00<\x01c\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x01r\xce\x02\x00\x02\x00\x00\x00\x0e\x00<\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\xce\x03\x00\x02\x00\x00\x00\x02ok\xce\x01\x00\x02\x00\x00\x00\x12\x00<\x00<\x01c\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x01r\xce\x02\x00\x02\x00\x00\x00\x0e\x00<\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\xce\x03\x00\x02\x00\x00\x00\x02ok\xce
    > \x01\x00\x02\x00\x00\x00\n\x00<\x00(\x00\x00\x00\x01q\x00\xce\x02\x00\x02\x00\x00\x00$\x00<\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x15amq.rabbitmq.reply-to\xce
";

#[test]
fn amqp_that_is_waited_for() {
    tells(
        AMQP_AWAITED,
        "
        > 0 protocol header asks len 8 first last
        = AMQP
        < 0 connection.start answers #0 len 36 first last
        > 8 confirm.select asks #1 len 13 first last
        < 36 confirm.select-ok answers #1 len 12 first last
        > 21 basic.publish asks #65537 len 18 first
        > 39 header asks #65537 len 23
        > 62 body asks #65537 len 13 last
        < 48 basic.ack answers #65537 len 21 first last
        > 75 basic.publish asks #65537 len 18 first
        > 93 header asks #65537 len 22 last
        > 115 basic.publish pushes #1 len 18 first
        > 133 header pushes #1 len 22 last
        < 69 basic.ack answers #65537 len 21 first last
        > 155 basic.consume asks #2 len 42 first last
        < 90 basic.ok answers #2 len 14 first last
        > 197 basic.publish asks #131074 len 18 first
        > 215 header asks #131074 len 44
        > 259 body asks #131074 len 10 last
        < 104 basic.deliver answers #131074 len 26 first
        < 130 header answers #131074 len 22
        < 152 body answers #131074 len 10 last
        > 269 basic.publish asks #131074 len 18 first
        > 287 header asks #131074 len 44 last
        < 162 basic.deliver answers #131074 len 26 first
        < 188 header answers #131074 len 22
        < 210 body answers #131074 len 10 last
        < 220 basic.deliver pushes #2 len 26 first
        < 246 header pushes #2 len 22
        < 268 body pushes #2 len 10 last
        > 331 basic.publish pushes #2 len 18 first
        > 349 header pushes #2 len 44 last
        ",
    );
}

/// Segments may end anywhere.
#[test]
fn amqp_that_is_waited_for_in_pieces() {
    let read = |pieces: &[Piece]| crate::log::read(&mut Conversation::new(), pieces);
    let pieces = crate::log::pieces(AMQP_AWAITED);
    let whole = read(&pieces);
    for len in 1..80 {
        let cut = pieces.iter().flat_map(|piece| {
            let parts = piece.bytes.chunks(len).enumerate();
            parts.map(|(n, part)| Piece { at: piece.at + (n * len) as u64, bytes: part.to_vec(), ..*piece })
        });
        assert_eq!(read(&cut.collect::<Vec<_>>()), whole, "in pieces of {len}");
    }
}
