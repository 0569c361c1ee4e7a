//! Which AMQP methods ask, and where does a message's content end? (AMQP 0-9-1, 2.3 and 4.2;
//! RabbitMQ's extensions)
//!
//! The identifier is the channel: one request is open on each channel at a time. Published and
//! delivered messages are pushes, with two exceptions for which the sender waits. A client that has
//! asked for confirmations (`confirm.select`) and publishes while none is outstanding waits for the
//! broker's acknowledgement; a client that goes on without it does not. And a client that publishes
//! with a `reply-to`, on a channel on which it consumes, waits for the delivery there: a call,
//! answered by another client. Whether a message has a `reply-to` is in the frame after its method.

use crate::head::{Head, Role};
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk, u16_at, u32_at};

const PREFACE: &[u8; 8] = b"AMQP\0\0\x09\x01";
const HEAD_LEN: usize = 7;
/// The byte after each frame.
const END_LEN: u64 = 1;
const FRAME_LEN_MAX: u32 = 1 << 24;

const METHOD: u8 = 1;
const HEADER: u8 = 2;
const BODY: u8 = 3;
const HEARTBEAT: u8 = 8;

/// A content's property flags, in its header after class, weight and size.
const FLAGS_AT: usize = HEAD_LEN + 12;
const REPLY_TO: u16 = 1 << 9;

/// What both sides have said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Amqp {
    sides: [Content; 2],
    confirms: Confirms,
    calls: Calls,
}

/// The content under way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Content {
    of: Of,
    channel: u16,
    /// Length of a client's method whose role is only shown by the header after it.
    published: u32,
    left: u64,
}

/// What a content is for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Of {
    #[default]
    News,
    /// The answer to `basic.get`.
    Got,
    /// Asks for a confirmation.
    Confirmed,
    /// Asks for a reply.
    Call,
    Reply,
}

impl Of {
    const fn role(self) -> Role {
        match self {
            Self::News => Role::Pushes,
            Self::Got | Self::Reply => Role::Answers,
            Self::Confirmed | Self::Call => Role::Asks,
        }
    }

    /// Identifier; different kinds of requests on one channel are answered separately.
    fn id(self, channel: u16) -> u64 {
        let kind = match self {
            Self::News | Self::Got => 0,
            Self::Confirmed => CONFIRMED,
            Self::Call | Self::Reply => CALL,
        };
        kind | u64::from(channel)
    }
}

const CONFIRMED: u64 = 1 << 16;
const CALL: u64 = 2 << 16;

/// The last channel that was told to confirm, and the numbers published and acknowledged there,
/// from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Confirms {
    channel: u16,
    published: u32,
    acknowledged: u32,
    /// The one that the client waits for.
    open: u32,
}

impl Confirms {
    /// A message is published. Returns whether it is the only one without an acknowledgement.
    fn on_publish(&mut self, channel: u16) -> bool {
        if channel != self.channel || channel == 0 {
            return false;
        }
        self.published = self.published.saturating_add(1);
        self.published - 1 == self.acknowledged
    }

    /// The broker acknowledges up to a number, or that number. Returns whether the client waits for
    /// it.
    fn on_acknowledged(&mut self, channel: u16, number: u64) -> bool {
        let Ok(number) = u32::try_from(number) else { return false };
        if channel != self.channel || number > self.published {
            return false;
        }
        self.acknowledged = self.acknowledged.max(number);
        let answers = self.open > 0 && number >= self.open;
        if answers {
            self.open = 0;
        }
        answers
    }
}

/// The first 63 channels, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Calls {
    /// The client consumes there, and nothing but replies has been delivered.
    replies: u64,
    /// It waits for a reply.
    open: u64,
}

const fn bit(channel: u16) -> u64 {
    if channel < 64 { 1 << channel } else { 0 }
}

impl Talk for Amqp {
    const FIRST: FirstBytes = FirstBytes::of(&[PREFACE[0], METHOD]);

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        // A server that wants another version answers with its own header.
        if client.bytes.starts_with(PREFACE) {
            return server.is_empty() || is_method(server);
        }
        // In the middle of a connection, methods of either side identify the protocol.
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
        let u64_at = |at: usize| bytes.get(at..)?.first_chunk().map(|word| u64::from_be_bytes(*word));
        let head = match bytes[0] {
            METHOD if size >= 4 => {
                let (Some(class), Some(method)) = (u16_at(bytes, HEAD_LEN), u16_at(bytes, HEAD_LEN + 2))
                else {
                    return Step::Need;
                };
                let number = u64_at(HEAD_LEN + 4);
                if is_confirmation((class, method)) && number.is_none() {
                    return Step::Need;
                }
                self.tell_published(side, None, out);
                self.on_method(side, channel, (class, method), number, len)
            }
            HEADER if size >= 14 => {
                let (Some(left), Some(flags)) = (u64_at(HEAD_LEN + 4), u16_at(bytes, FLAGS_AT)) else {
                    return Step::Need;
                };
                self.tell_published(side, Some((channel, flags)), out);
                let content = &mut self.sides[side as usize];
                (content.channel, content.left) = (channel, left);
                Some(Head { last: left == 0, ..content.piece("header") })
            }
            BODY => {
                self.tell_published(side, None, out);
                let content = &mut self.sides[side as usize];
                let known = content.channel == channel && content.left > 0;
                content.left = content.left.saturating_sub(u64::from(size));
                let piece = Content { channel, ..*content }.piece("body");
                Some(Head { last: known && content.left == 0, ..piece })
            }
            HEARTBEAT => {
                self.tell_published(side, None, out);
                Some(Head { id: Some(u64::from(channel)), ..Head::whole(Role::Neither, "heartbeat", len) })
            }
            _ => return Step::Wrong,
        };
        if let Some(head) = head {
            out.put(Head { len: Some(len), ..head });
        }
        Step::Skip(len)
    }

    fn begins(&self, _: Side, first: First<'_>, _: bool) -> bool {
        is_method(first)
    }

    fn lose(&mut self, side: Side) {
        self.sides[side as usize] = Content::default();
        // What was published or acknowledged meanwhile is unknown.
        self.confirms = Confirms::default();
        self.calls.open = 0;
    }
}

impl Amqp {
    /// A method; reported later if the header after it decides its role.
    fn on_method(
        &mut self,
        side: Side,
        channel: u16,
        method: (u16, u16),
        number: Option<u64>,
        len: u64,
    ) -> Option<Head> {
        let (kind, role) = named(method.0, method.1);
        let mut of = Of::News;
        match (side, method) {
            (Side::Client, CONFIRM_SELECT) => self.confirms = Confirms { channel, ..Confirms::default() },
            (Side::Client, CONSUME) => self.calls.replies |= bit(channel),
            (Side::Client, CANCEL) => self.calls.replies &= !bit(channel),
            (_, CHANNEL_CLOSE) => {
                self.calls.replies &= !bit(channel);
                self.calls.open &= !bit(channel);
                if self.confirms.channel == channel {
                    self.confirms = Confirms::default();
                }
            }
            (Side::Server, ACK | NACK) if self.confirms.on_acknowledged(channel, number?) => {
                let id = Some(Of::Confirmed.id(channel));
                return Some(Head { id, first: true, last: true, ..Head::piece(Role::Answers, kind) });
            }
            (Side::Client, PUBLISH) => {
                let published = u32::try_from(len).unwrap_or_default();
                self.sides[side as usize] = Content { of, channel, published, left: 0 };
                return None;
            }
            (Side::Server, DELIVER) if self.calls.on_delivery(channel) => of = Of::Reply,
            (_, GET_OK) => of = Of::Got,
            _ => {}
        }
        let last = ![PUBLISH, RETURN, DELIVER, GET_OK].contains(&method);
        if last {
            return Some(Head { id: Some(u64::from(channel)), first: true, last, ..Head::piece(role, kind) });
        }
        let content = Content { of, channel, published: 0, left: 0 };
        self.sides[side as usize] = content;
        Some(Head { first: true, ..content.piece(kind) })
    }

    /// Reports a client's `basic.publish`, once the header after it is known or something else
    /// follows.
    fn tell_published(&mut self, side: Side, header: Option<(u16, u16)>, out: &mut Out<'_>) {
        let content = &mut self.sides[side as usize];
        let len = u64::from(std::mem::take(&mut content.published));
        if len == 0 {
            return;
        }
        let channel = content.channel;
        let awaited = self.confirms.on_publish(channel);
        let flags = header.map_or(0, |(of, flags)| if of == channel { flags } else { 0 });
        if flags & REPLY_TO != 0 && self.calls.on_call(channel) {
            content.of = Of::Call;
        } else if awaited {
            content.of = Of::Confirmed;
            self.confirms.open = self.confirms.published;
        }
        out.put_at(out.at - len, Head { len: Some(len), first: true, ..content.piece("basic.publish") });
    }
}

impl Content {
    /// A piece of the content.
    fn piece(self, kind: &'static str) -> Head {
        Head { id: Some(self.of.id(self.channel)), ..Head::piece(self.of.role(), kind) }
    }
}

impl Calls {
    /// The client calls. Returns whether the reply comes on this channel, and no other is awaited
    /// there.
    fn on_call(&mut self, channel: u16) -> bool {
        let is_awaited = self.replies & bit(channel) & !self.open != 0;
        self.open |= if is_awaited { bit(channel) } else { 0 };
        is_awaited
    }

    /// A message is delivered. Returns whether it is a reply; a delivery that nobody called for
    /// shows that the channel carries other messages too.
    fn on_delivery(&mut self, channel: u16) -> bool {
        let is_reply = self.open & bit(channel) != 0;
        self.open &= !bit(channel);
        self.replies &= if is_reply { u64::MAX } else { !bit(channel) };
        is_reply
    }
}

const PUBLISH: (u16, u16) = (60, 40);
const RETURN: (u16, u16) = (60, 50);
const DELIVER: (u16, u16) = (60, 60);
const GET_OK: (u16, u16) = (60, 71);
const ACK: (u16, u16) = (60, 80);
const NACK: (u16, u16) = (60, 120);
const CONSUME: (u16, u16) = (60, 20);
const CANCEL: (u16, u16) = (60, 30);
const CHANNEL_CLOSE: (u16, u16) = (20, 40);
const CONFIRM_SELECT: (u16, u16) = (85, 10);

/// Whether the method carries the number of what was published (or delivered).
const fn is_confirmation(method: (u16, u16)) -> bool {
    matches!(method, ACK | NACK)
}

/// A known method, of a length that fits into a segment.
fn is_method(first: First<'_>) -> bool {
    let word = |at| u16_at(first.bytes, at);
    let (Some(class), Some(method)) = (word(HEAD_LEN), word(HEAD_LEN + 2)) else { return false };
    let sound = u32_at(first.bytes, 3).is_some_and(|size| (4..1 << 17).contains(&size));
    first.bytes[0] == METHOD && sound && named(class, method).0 != "method"
}

/// Classes and methods (AMQP 0-9-1, 1.3): a method ending in 1 answers the one ending in 0.
const fn named(class: u16, method: u16) -> (&'static str, Role) {
    use Role::{Answers, Asks, Neither, Pushes};
    match (class, method) {
        (10, 10) => ("connection.start", Answers),
        (10, 11) => ("connection.start-ok", Asks),
        (10, 20) => ("connection.secure", Answers),
        (10, 21) => ("connection.secure-ok", Asks),
        // The client agrees with this, and asks with its next method.
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
