//! What do the first bytes of an application's messages say about requests and answers?
//!
//! A [`Conversation`] takes the captured payload of one connection, in the order of the stream. It
//! detects the protocol by the bytes, never by a port, and reports each [`Head`]: where a message
//! begins and ends, whether it asks or answers, and the identifier by which the protocol pairs the
//! two. Bodies are skipped by their length, and of what was read only the part of a head is kept
//! that continues in the next segment.
//!
//! It reports only what is certain: a protocol that is merely possible counts as none, and after
//! bytes missing from the capture nothing is reported for a direction until a message begins
//! unmistakably.
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
mod mms;
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
pub use tls::is_alert;
