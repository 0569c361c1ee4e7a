//! Which AMQP methods ask, and where does a message's content end? (AMQP 0-9-1, 2.3 and 4.2; RabbitMQ's extensions)
//!
//! The identifier is the channel: on each of them one question is open at a time. What is published and delivered is a push.

use crate::head::{Head, Role};
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk, u16_at, u32_at};

const PREFACE: &[u8; 8] = b"AMQP\0\0\x09\x01";
const HEAD_LEN: usize = 7;
/// The byte behind each frame.
const END_LEN: u64 = 1;
const FRAME_LEN_MAX: u32 = 1 << 24;

const METHOD: u8 = 1;
const HEADER: u8 = 2;
const BODY: u8 = 3;
const HEARTBEAT: u8 = 8;

/// What both sides have said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Amqp {
    sides: [Content; 2],
}

/// The content under way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Content {
    answers: bool,
    channel: u16,
    left: u64,
}

impl Talk for Amqp {
    const FIRST: FirstBytes = FirstBytes::of(&[PREFACE[0], METHOD]);

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        // A server that wants another version answers with its own header.
        if client.bytes.starts_with(PREFACE) {
            return server.is_empty() || is_method(server);
        }
        // In the middle of a connection methods tell it, of whichever side.
        let speaks = |first: First<'_>| first.is_empty() || is_method(first);
        speaks(client) && speaks(server) && !(client.is_empty() && server.is_empty())
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        if bytes[0] == b'A' {
            if bytes.len() < PREFACE.len() {
                return Step::Need;
            }
            let len = PREFACE.len() as u64;
            out.put(Head::whole(Role::Asks, "protocol header", len));
            return if bytes.starts_with(PREFACE) { Step::Skip(len) } else { Step::Wrong };
        }
        let (Some(channel), Some(size)) = (u16_at(bytes, 1), u32_at(bytes, 3)) else { return Step::Need };
        if size > FRAME_LEN_MAX {
            return Step::Wrong;
        }
        let len = HEAD_LEN as u64 + u64::from(size) + END_LEN;
        let content = &mut self.sides[side as usize];
        let role = if content.answers { Role::Answers } else { Role::Pushes };
        let head = match bytes[0] {
            METHOD if size >= 4 => {
                let (Some(class), Some(method)) = (u16_at(bytes, HEAD_LEN), u16_at(bytes, HEAD_LEN + 2))
                else {
                    return Step::Need;
                };
                let (kind, role) = named(class, method);
                let has_content = class == 60 && [40, 50, 60, 71].contains(&method);
                if has_content {
                    content.answers = method == 71;
                }
                Head { first: true, last: !has_content, ..Head::piece(role, kind) }
            }
            HEADER if size >= 14 => {
                let Some(body) = bytes.get(HEAD_LEN + 4..).and_then(|rest| rest.first_chunk()) else {
                    return Step::Need;
                };
                let left = u64::from_be_bytes(*body);
                (content.channel, content.left) = (channel, left);
                Head { last: left == 0, ..Head::piece(role, "header") }
            }
            BODY => {
                let known = content.channel == channel && content.left > 0;
                content.left = content.left.saturating_sub(u64::from(size));
                Head { last: known && content.left == 0, ..Head::piece(role, "body") }
            }
            HEARTBEAT => Head::whole(Role::Neither, "heartbeat", len),
            _ => return Step::Wrong,
        };
        out.put(Head { len: Some(len), id: Some(u64::from(channel)), ..head });
        Step::Skip(len)
    }

    fn begins(&self, _: Side, first: First<'_>, _: bool) -> bool {
        is_method(first)
    }

    fn lose(&mut self, side: Side) {
        self.sides[side as usize] = Content::default();
    }
}

/// A method of a class that exists, of a length that a segment can have.
fn is_method(first: First<'_>) -> bool {
    let word = |at| u16_at(first.bytes, at);
    let (Some(class), Some(method)) = (word(HEAD_LEN), word(HEAD_LEN + 2)) else { return false };
    let sound = u32_at(first.bytes, 3).is_some_and(|size| (4..1 << 17).contains(&size));
    first.bytes[0] == METHOD && sound && named(class, method).0 != "method"
}

/// Classes and methods (AMQP 0-9-1, 1.3): what ends in 1 answers what ends in 0.
const fn named(class: u16, method: u16) -> (&'static str, Role) {
    use Role::{Answers, Asks, Neither, Pushes};
    match (class, method) {
        (10, 10) => ("connection.start", Answers),
        (10, 11) => ("connection.start-ok", Asks),
        (10, 20) => ("connection.secure", Answers),
        (10, 21) => ("connection.secure-ok", Asks),
        // The client says that it agrees, and asks with what follows.
        (10, 30) => ("connection.tune", Answers),
        (10, 31) => ("connection.tune-ok", Neither),
        (10, 40) => ("connection.open", Asks),
        (10, 41) => ("connection.open-ok", Answers),
        (10, 50) => ("connection.close", Asks),
        (10, 51) => ("connection.close-ok", Answers),
        (10, 60) => ("connection.blocked", Pushes),
        (10, 61) => ("connection.unblocked", Pushes),
        (20, 10) => ("channel.open", Asks),
        (20, 11) => ("channel.open-ok", Answers),
        (20, 20) => ("channel.flow", Asks),
        (20, 21) => ("channel.flow-ok", Answers),
        (20, 40) => ("channel.close", Asks),
        (20, 41) => ("channel.close-ok", Answers),
        (40, 10) => ("exchange.declare", Asks),
        (40, 20) => ("exchange.delete", Asks),
        (40, 30) => ("exchange.bind", Asks),
        (40, 40) => ("exchange.unbind", Asks),
        (40, 11 | 21 | 31 | 51) => ("exchange.ok", Answers),
        (50, 10) => ("queue.declare", Asks),
        (50, 20) => ("queue.bind", Asks),
        (50, 30) => ("queue.purge", Asks),
        (50, 40) => ("queue.delete", Asks),
        (50, 50) => ("queue.unbind", Asks),
        (50, 11 | 21 | 31 | 41 | 51) => ("queue.ok", Answers),
        (60, 10) => ("basic.qos", Asks),
        (60, 20) => ("basic.consume", Asks),
        (60, 30) => ("basic.cancel", Asks),
        (60, 110) => ("basic.recover", Asks),
        (60, 11 | 21 | 31 | 111) => ("basic.ok", Answers),
        (60, 40) => ("basic.publish", Pushes),
        (60, 50) => ("basic.return", Pushes),
        (60, 60) => ("basic.deliver", Pushes),
        (60, 70) => ("basic.get", Asks),
        (60, 71) => ("basic.get-ok", Answers),
        (60, 72) => ("basic.get-empty", Answers),
        (60, 80) => ("basic.ack", Neither),
        (60, 90) => ("basic.reject", Neither),
        (60, 120) => ("basic.nack", Neither),
        (85, 10) => ("confirm.select", Asks),
        (85, 11) => ("confirm.select-ok", Answers),
        (90, 10) => ("tx.select", Asks),
        (90, 20) => ("tx.commit", Asks),
        (90, 30) => ("tx.rollback", Asks),
        (90, 11 | 21 | 31) => ("tx.ok", Answers),
        _ => ("method", Neither),
    }
}
