//! Which MQTT packets want an answer? (MQTT 3.1.1, 2 and 3; MQTT 5.0)
//!
//! Either side publishes; with a quality of service above 0 it waits for the other's
//! acknowledgement, by packet identifier. Each of the two round trips of QoS 2 (MQTT 3.1.1, 4.3.3)
//! is a request: PUBLISH until PUBREC, PUBREL until PUBCOMP. In the middle of a connection, a
//! published message and the packet that acknowledges it by its identifier identify the protocol,
//! but not which side is the client.

use crate::head::{Head, Role};
use crate::talk::{CARRY, First, FirstBytes, Out, Side, Step, Talk, is_text, u16_at};

const CONNECT: u8 = 1;
const PUBLISH: u8 = 3;

/// No state is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Mqtt;

impl Talk for Mqtt {
    const FIRST: FirstBytes = FirstBytes::of(&[CONNECT << 4]).and_range(PUBLISH << 4 | 2, PUBLISH << 4 | 0xd);

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        connects(client, server) || acknowledges(client, server) || acknowledges(server, client)
    }

    fn step(&mut self, _: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let (kind, flags) = (bytes[0] >> 4, bytes[0] & 0xf);
        // Reserved flags have fixed values (MQTT 3.1.1, 2.2.2).
        let sound = match kind {
            0 => false,
            PUBLISH => flags & 6 != 6,
            6 | 8 | 10 => flags == 2,
            _ => flags == 0,
        };
        if !sound {
            return Step::Wrong;
        }
        let Some((begin, rest_len)) = length(bytes) else {
            let too_long = bytes.len() >= 5;
            return if too_long { Step::Wrong } else { Step::Need };
        };
        let len = begin as u64 + u64::from(rest_len);
        let needed = match kind {
            PUBLISH..=11 => begin + 2,
            _ => begin,
        };
        if bytes.len() < needed.min(len as usize) {
            return Step::Need;
        }
        let mut id = None;
        let mut name = None;
        if kind == PUBLISH && rest_len >= 2 {
            let topic_len = usize::from(u16_at(bytes, begin).unwrap_or(0));
            let topic_end = begin + 2 + topic_len;
            let is_whole = (topic_end + 2) as u64 <= len;
            // The identifier comes after the topic, if the topic is short enough.
            if flags & 6 != 0 && topic_end + 2 <= CARRY {
                if bytes.len() < (topic_end + 2).min(len as usize) {
                    return Step::Need;
                }
                // Bytes after a packet that is too short for its topic belong to the next one.
                id = u16_at(bytes, topic_end).filter(|_| is_whole).map(u64::from);
            }
            name = out.span(begin + 2, topic_end.min(bytes.len()));
        } else if (4..=11).contains(&kind) && rest_len >= 2 {
            id = u16_at(bytes, begin).map(u64::from);
        }
        let (word, role) = named(kind, flags);
        out.put(Head { id, name, ..Head::whole(role, word, len) });
        Step::Skip(len)
    }

    fn begins(&self, _: Side, first: First<'_>, _: bool) -> bool {
        // Two bytes prove nothing; a topic does.
        published(first).is_some_and(|(_, len)| len == u64::from(first.len))
    }

    fn lose(&mut self, _: Side) {}
}

/// The client sends CONNECT, and the server accepts or has not spoken.
fn connects(client: First<'_>, server: First<'_>) -> bool {
    let answers = matches!(server.bytes, [] | [0x20 | 0xf0, ..]);
    let Some((begin, _)) = length(client.bytes) else { return false };
    let rest = client.bytes.get(begin..).unwrap_or_default();
    let named = rest.starts_with(b"\0\x04MQTT") || rest.starts_with(b"\0\x06MQIsdp");
    client.bytes[0] == CONNECT << 4 && named && answers
}

/// One side has published a message with QoS above 0, and the other begins with its
/// acknowledgement.
fn acknowledges(publisher: First<'_>, other: First<'_>) -> bool {
    let Some((topic_end, len)) = published(publisher) else { return false };
    let id = u16_at(publisher.bytes, topic_end).filter(|_| topic_end as u64 + 2 <= len);
    let quality = publisher.bytes[0] >> 1 & 3;
    quality != 0
        && len <= u64::from(publisher.len)
        && other.bytes.get(..2) == Some(&[(PUBLISH + quality) << 4, 2])
        && id.is_some_and(|id| id != 0 && u16_at(other.bytes, 2) == Some(id))
}

/// A published message with a topic: where the topic ends, and the length of the packet.
fn published(first: First<'_>) -> Option<(usize, u64)> {
    let (begin, rest_len) = length(first.bytes)?;
    let topic_len = usize::from(u16_at(first.bytes, begin).unwrap_or(0));
    let topic = first.bytes.get(begin + 2..).unwrap_or_default();
    let topic = &topic[..topic.len().min(topic_len)];
    let sound = first.bytes[0] >> 4 == PUBLISH
        && first.bytes[0] & 6 != 6
        && (3..rest_len as usize).contains(&topic_len)
        && topic.len() >= 3
        && is_text(topic);
    sound.then_some((begin + 2 + topic_len, begin as u64 + u64::from(rest_len)))
}

/// Where the rest of a packet begins, and its length (MQTT 3.1.1, 2.2.3).
fn length(bytes: &[u8]) -> Option<(usize, u32)> {
    let mut len = 0;
    for (i, byte) in bytes.iter().skip(1).take(4).enumerate() {
        len |= u32::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            return Some((i + 2, len));
        }
    }
    None
}

const fn named(kind: u8, flags: u8) -> (&'static str, Role) {
    use Role::{Answers, Asks, Neither, Pushes};
    match kind {
        CONNECT => ("CONNECT", Asks),
        2 => ("CONNACK", Answers),
        PUBLISH if flags & 6 != 0 => ("PUBLISH", Asks),
        PUBLISH => ("PUBLISH", Pushes),
        4 => ("PUBACK", Answers),
        5 => ("PUBREC", Answers),
        6 => ("PUBREL", Asks),
        7 => ("PUBCOMP", Answers),
        8 => ("SUBSCRIBE", Asks),
        9 => ("SUBACK", Answers),
        10 => ("UNSUBSCRIBE", Asks),
        11 => ("UNSUBACK", Answers),
        12 => ("PINGREQ", Neither),
        13 => ("PINGRESP", Neither),
        14 => ("DISCONNECT", Neither),
        _ => ("AUTH", Neither),
    }
}
