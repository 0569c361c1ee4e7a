//! What do the first bytes of an application's messages say about who asks whom?
//!
//! A [`Conversation`] is fed with what a capture has of the payload of one connection, in the order of the stream. It
//! finds out by the bytes, never by a port, which protocol is spoken, and tells each [`Head`]: where a message begins
//! and ends, whether it asks or answers, and the number by which the protocol pairs the two. Bodies are stepped over by
//! their length, and nothing is kept of what was read but the part of a head that goes on in the next segment.
//!
//! What cannot be told is not told: a protocol that only might be spoken is none, and behind bytes that the capture does not
//! have a direction stays silent until a message begins that cannot be mistaken.
#![forbid(unsafe_code)]

mod amqp;
mod bgp;
mod bolt;
mod conversation;
mod cql;
mod diameter;
mod dnp3;
mod dns;
mod dubbo;
mod ethernet_ip;
mod giop;
mod head;
mod http1;
mod http2;
mod iec104;
mod imap;
mod irc;
mod iscsi;
mod kafka;
mod ldap;
mod memcached;
mod modbus;
mod mongodb;
mod mqtt;
mod mysql;
mod nats;
mod nbd;
mod onc_rpc;
mod opc_ua;
mod openflow;
mod pop3;
mod postgresql;
mod protocol;
mod redis;
mod rfb;
mod rtsp;
mod s7;
mod smb2;
mod smpp;
mod smtp;
mod socks;
mod ssh;
mod syslog;
mod talk;
mod tds;
mod thrift;
mod tls;
mod websocket;
mod words;
mod zookeeper;

pub use conversation::Conversation;
pub use head::{Credit, Head, Role, Span};
pub use protocol::{Protocol, Recognised, recognise};
pub use talk::First;
