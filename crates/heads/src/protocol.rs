//! Which protocol is it?

use crate::head::Head;
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk, Turn};
use crate::{
    amqp, bgp, bolt, cql, diameter, dnp3, dns, dubbo, ethernet_ip, giop, http1, http2, iec104, imap, irc,
    iscsi, kafka, ldap,
};
use crate::{
    memcached, mms, modbus, mongodb, mqtt, mysql, nats, nbd, onc_rpc, opc_ua, openflow, pop3, postgresql,
    redis, rfb, rtsp, s7,
};
use crate::{smb2, smpp, smtp, socks, ssh, syslog, tds, thrift, tls, websocket, zookeeper};

/// The protocols, a line each: name, implementation, displayed name.
macro_rules! protocols {
    ($($name:ident = $talk:path, $shown:literal;)*) => {
        /// A protocol whose heads are read.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Protocol {
            $(#[doc = $shown] $name,)*
        }

        impl Protocol {
            /// Every protocol.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Its usual name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $shown,)* }
            }

            /// Whether these are its beginnings, if the first is the client's, and if the second is.
            fn fits(self, &[a, b]: &[First<'_>; 2]) -> [bool; 2] {
                match self { $(Self::$name => [<$talk>::fits(a, b), <$talk>::fits(b, a)],)* }
            }
        }

        /// The first bytes possible in each, in order.
        const FIRST: &[FirstBytes] = &[$(<$talk>::FIRST,)*];

        /// The state of two sides that speak one of them.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub(crate) enum Talking {
            $($name($talk),)*
        }

        impl Talking {
            pub(crate) fn new(protocol: Protocol) -> Self {
                match protocol { $(Protocol::$name => Self::$name(Default::default()),)* }
            }

            pub(crate) fn protocol(&self) -> Protocol {
                match self { $(Self::$name(_) => Protocol::$name,)* }
            }

            pub(crate) fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
                match self { $(Self::$name(talk) => talk.step(side, bytes, out),)* }
            }

            pub(crate) fn begins(&self, side: Side, first: First<'_>, is_turn: bool) -> bool {
                match self { $(Self::$name(talk) => talk.begins(side, first, is_turn),)* }
            }

            pub(crate) fn lose(&mut self, side: Side) {
                match self { $(Self::$name(talk) => talk.lose(side),)* }
            }

            pub(crate) fn cut(&self, side: Side) -> Option<Head> {
                match self { $(Self::$name(talk) => talk.cut(side),)* }
            }

            pub(crate) fn turns(&self, side: Side) -> Option<Turn> {
                match self { $(Self::$name(talk) => talk.turns(side),)* }
            }
        }
    };
}

protocols! {
    Http1 = http1::Http1, "HTTP/1";
    Http2 = http2::Http2, "HTTP/2";
    Tls = tls::Tls, "TLS";
    WebSocket = websocket::WebSocket, "WebSocket";
    PostgreSql = postgresql::PostgreSql, "PostgreSQL";
    Redis = redis::Redis, "Redis";
    MySql = mysql::MySql, "MySQL";
    Memcached = memcached::Memcached, "Memcached";
    MongoDb = mongodb::MongoDb, "MongoDB";
    ZooKeeper = zookeeper::ZooKeeper, "ZooKeeper";
    Kafka = kafka::Kafka, "Kafka";
    Amqp = amqp::Amqp, "AMQP";
    Mqtt = mqtt::Mqtt, "MQTT";
    Nats = nats::Nats, "NATS";
    Dns = dns::Dns, "DNS";
    Smb2 = smb2::Smb2, "SMB2";
    Ldap = ldap::Ldap, "LDAP";
    Smtp = smtp::Smtp, "SMTP";
    Ftp = smtp::Ftp, "FTP";
    Imap = imap::Imap, "IMAP";
    Pop3 = pop3::Pop3, "POP3";
    Ssh = ssh::Ssh, "SSH";
    Modbus = modbus::Modbus, "Modbus/TCP";
    Dubbo = dubbo::Dubbo, "Dubbo";
    Bolt = bolt::Bolt, "SOFA Bolt";
    Thrift = thrift::Thrift, "Thrift";
    S7Comm = s7::S7Comm, "S7";
    Iec104 = iec104::Iec104, "IEC 104";
    Iscsi = iscsi::Iscsi, "iSCSI";
    OncRpc = onc_rpc::OncRpc, "ONC RPC";
    Cql = cql::Cql, "CQL";
    Tds = tds::Tds, "TDS";
    Bgp = bgp::Bgp, "BGP";
    Diameter = diameter::Diameter, "Diameter";
    Smpp = smpp::Smpp, "SMPP";
    OpcUa = opc_ua::OpcUa, "OPC UA";
    Syslog = syslog::Syslog, "syslog";
    Rtsp = rtsp::Rtsp, "RTSP";
    EthernetIp = ethernet_ip::EthernetIp, "EtherNet/IP";
    Dnp3 = dnp3::Dnp3, "DNP3";
    Nbd = nbd::Nbd, "NBD";
    OpenFlow = openflow::OpenFlow, "OpenFlow";
    Rfb = rfb::Rfb, "RFB";
    Giop = giop::Giop, "GIOP";
    Socks = socks::Socks, "SOCKS";
    Irc = irc::Irc, "IRC";
    Mms = mms::Mms, "MMS";
}

/// A set of protocols, a bit for each.
type Set = u64;

/// The protocols that may begin with a byte: most bytes rule out most protocols at once.
const MAY_BEGIN: [Set; 256] = {
    let (mut may_begin, mut byte) = ([0; 256], 0);
    while byte < 256 {
        let mut protocol = 0;
        while protocol < FIRST.len() {
            may_begin[byte] |= (FIRST[protocol].has(byte) as Set) << protocol;
            protocol += 1;
        }
        byte += 1;
    }
    may_begin
};

/// The protocol of two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recognised {
    /// Which.
    pub protocol: Protocol,
    /// The side that usually asks; unknown if the bytes do not show it.
    pub client: Option<usize>,
}

/// The protocol that begins with these bytes of the two sides, in either order; one of them may not
/// have spoken yet. Returned only if no other reading is left.
pub fn recognise(firsts: [First<'_>; 2]) -> Option<Recognised> {
    let may_begin = |first: First<'_>| first.bytes.first().map_or(0, |byte| MAY_BEGIN[usize::from(*byte)]);
    let may_be = may_begin(firsts[0]) | may_begin(firsts[1]);
    debug_assert!(
        Protocol::ALL
            .iter()
            .all(|&protocol| may_be & 1 << protocol as u64 != 0 || protocol.fits(&firsts) == [false; 2]),
        "what fits may begin so"
    );
    let (mut found, mut left) = (None, may_be);
    while left != 0 {
        let protocol = Protocol::ALL[left.trailing_zeros() as usize];
        left &= left - 1;
        let fits = protocol.fits(&firsts);
        if fits == [false, false] {
            continue;
        }
        if found.is_some() {
            return None;
        }
        let client = if fits == [true, true] { None } else { Some(usize::from(fits[1])) };
        found = Some(Recognised { protocol, client });
    }
    found
}
