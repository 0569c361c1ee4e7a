//! How does a host get its interface, addresses and routes? Through rtnetlink, in the calling thread's namespace.

use std::io;
use std::net::IpAddr;

use netlink_packet_core::{
    DecodeError, Emitable, NLM_F_ACK, NLM_F_CREATE, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkDeserializable,
    NetlinkHeader, NetlinkMessage, NetlinkPayload, NetlinkSerializable,
};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage, AddressScope};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope,
    RouteType,
};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

// rtnetlink(7): the types of messages.
const RTM_SETLINK: u16 = 19;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;

/// What the kernel is asked for, and nothing else: the crate's own enum would bring readers of all messages that a kernel can
/// send, which are larger than the laboratory.
#[derive(Debug)]
enum Request {
    SetLink(LinkMessage),
    NewAddress(AddressMessage),
    NewRoute(RouteMessage),
}

impl Request {
    fn message(&self) -> (u16, &dyn Emitable) {
        match self {
            Self::SetLink(message) => (RTM_SETLINK, message),
            Self::NewAddress(message) => (RTM_NEWADDR, message),
            Self::NewRoute(message) => (RTM_NEWROUTE, message),
        }
    }
}

impl NetlinkSerializable for Request {
    fn message_type(&self) -> u16 {
        self.message().0
    }

    fn buffer_len(&self) -> usize {
        self.message().1.buffer_len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        self.message().1.emit(buffer);
    }
}

/// The answer is an acknowledgement or an error.
impl NetlinkDeserializable for Request {
    type Error = DecodeError;

    fn deserialize(header: &NetlinkHeader, _: &[u8]) -> Result<Self, DecodeError> {
        Err(DecodeError::from(format!("message of type {}", header.message_type)))
    }
}

/// A connection to the kernel's routing of one network namespace.
pub(crate) struct Netlink {
    socket: Socket,
}

impl Netlink {
    /// Opens the connection in the calling thread's network namespace.
    pub(crate) fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket })
    }

    /// Brings an interface up, after setting MTU and queue length. Multicast is switched off, so
    /// that IPv6 sends nothing on its own.
    pub(crate) fn link_up(&self, name: &str, mtu: Option<u32>, queue_packets: Option<u32>) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up | LinkFlags::Multicast;
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        message.attributes.extend(mtu.map(LinkAttribute::Mtu));
        message.attributes.extend(queue_packets.map(LinkAttribute::TxQueueLen));
        self.ask(Request::SetLink(message), 0)
    }

    /// Adds an address; its prefix is the whole address, so the peer needs a route of its own.
    pub(crate) fn add_address(&self, index: u32, address: IpAddr) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        message.header.prefix_len = whole(address);
        message.header.index = index;
        message.header.scope = AddressScope::Universe;
        // The address is the only one of its network: duplicate detection is not needed.
        message.header.flags = AddressHeaderFlags::Nodad;
        message.attributes = vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
        self.ask(Request::NewAddress(message), NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Routes `to` (a single address) through an interface.
    pub(crate) fn add_route(&self, index: u32, to: IpAddr, metrics: Vec<RouteMetric>) -> io::Result<()> {
        let mut message = RouteMessage::default();
        message.header = RouteHeader {
            address_family: family(to),
            destination_prefix_length: whole(to),
            table: RouteHeader::RT_TABLE_MAIN,
            protocol: RouteProtocol::Static,
            scope: RouteScope::Link,
            kind: RouteType::Unicast,
            ..RouteHeader::default()
        };
        message.attributes =
            vec![RouteAttribute::Destination(RouteAddress::from(to)), RouteAttribute::Oif(index)];
        if !metrics.is_empty() {
            message.attributes.push(RouteAttribute::Metrics(metrics));
        }
        self.ask(Request::NewRoute(message), NLM_F_CREATE | NLM_F_REPLACE)
    }

    fn ask(&self, message: Request, flags: u16) -> io::Result<()> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(message));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let (reply, _) = self.socket.recv_from_full()?;
        match NetlinkMessage::<Request>::deserialize(&reply).map(|reply| reply.payload) {
            Ok(NetlinkPayload::Error(error)) if error.code.is_none() => Ok(()),
            Ok(NetlinkPayload::Error(error)) => Err(error.to_io()),
            other => Err(io::Error::other(format!("unexpected answer from rtnetlink: {other:?}"))),
        }
    }
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

fn whole(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}
