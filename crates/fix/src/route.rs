//! How is one attribute of a route changed while all others stay? The route is read, and written
//! back with one metric changed.

use std::fmt::Write as _;
use std::io;
use std::net::IpAddr;

use netlink_packet_core::{
    DecodeError, Emitable as _, NLM_F_ACK, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkDeserializable,
    NetlinkHeader, NetlinkMessage, NetlinkPayload, NetlinkSerializable, Parseable as _,
};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteMetric, RouteType,
};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use serde::{Deserialize, Serialize};
use tcpwhy_sockets::namespace::Namespace;

use crate::Error;

/// A metric of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Initial congestion window of new connections, in segments.
    InitCwnd,
    /// Initial receive window of new connections, in segments.
    InitRwnd,
    /// Every segment is acknowledged at once.
    QuickAck,
}

/// The value of a metric that a route does not have.
const NONE: &str = "none";
const REMEDY: &str = "root changes routes";

impl Metric {
    /// Its name in `ip route`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InitCwnd => "initcwnd",
            Self::InitRwnd => "initrwnd",
            Self::QuickAck => "quickack",
        }
    }

    fn of(self, value: u32) -> RouteMetric {
        match self {
            Self::InitCwnd => RouteMetric::InitCwnd(value),
            Self::InitRwnd => RouteMetric::InitRwnd(value),
            Self::QuickAck => RouteMetric::QuickAck(value),
        }
    }

    fn value(self, metric: &RouteMetric) -> Option<u32> {
        match (self, metric) {
            (Self::InitCwnd, RouteMetric::InitCwnd(value))
            | (Self::InitRwnd, RouteMetric::InitRwnd(value))
            | (Self::QuickAck, RouteMetric::QuickAck(value)) => Some(*value),
            _ => None,
        }
    }
}

/// The route to an address.
pub(crate) struct Route {
    message: RouteMessage,
}

impl Route {
    /// Reads the route.
    pub(crate) fn to(namespace: &Namespace, destination: IpAddr) -> Result<Self, Error> {
        let what = format!("the route to {destination}");
        let found = namespace.enter(|| ask_for(destination)).and_then(|result| result);
        let mut message = found.map_err(Error::of(what, REMEDY))?;
        if message.header.kind != RouteType::Unicast {
            let kind = format!("{:?}", message.header.kind).to_lowercase();
            return Err(Error::Wrong(format!(
                "{destination} is reached by a {kind} route, which cannot be changed"
            )));
        }
        // Drop what the kernel reports about a route but does not accept as part of it.
        message.attributes.retain(|attribute| !matches!(attribute, RouteAttribute::CacheInfo(_)));
        message.header.flags &= RouteFlags::Onlink;
        let is_multipath = message.attributes.iter().any(|a| matches!(a, RouteAttribute::MultiPath(_)));
        if is_multipath && destination.is_ipv6() {
            // Replacing one of several next hops replaces them all (ip6_route_multipath_add).
            return Err(Error::Wrong(format!(
                "the route to {destination} has several next hops: `ip -6 route change` it"
            )));
        }
        Ok(Self { message })
    }

    pub(crate) fn read(&self, metric: Metric) -> String {
        let value = self.metrics().iter().find_map(|one| metric.value(one));
        value.map_or_else(|| NONE.to_owned(), |value| value.to_string())
    }

    fn metrics(&self) -> &[RouteMetric] {
        let metrics = |attribute: &'_ RouteAttribute| matches!(attribute, RouteAttribute::Metrics(_));
        match self.message.attributes.iter().find(|attribute| metrics(attribute)) {
            Some(RouteAttribute::Metrics(metrics)) => metrics,
            _ => &[],
        }
    }

    /// Everything of the route but its metrics, to recognize it later.
    pub(crate) fn identity(&self) -> String {
        let mut rest = self.message.clone();
        rest.attributes.retain(|attribute| !matches!(attribute, RouteAttribute::Metrics(_)));
        let mut message = NetlinkMessage::new(
            NetlinkHeader::default(),
            NetlinkPayload::InnerMessage(Routing { kind: RTM_NEWROUTE, route: rest }),
        );
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            // Writing to a String never fails.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    /// In the form of `ip route`: `default via 10.0.0.1`, `10.0.0.0/24`.
    pub(crate) fn shown(&self) -> String {
        let RouteEnds { to, via, .. } = self.ends();
        let to = to.unwrap_or_else(|| "default".to_owned());
        via.map_or_else(|| to.clone(), |via| format!("{to} via {via}"))
    }

    fn ends(&self) -> RouteEnds {
        let attribute = |wanted: fn(&RouteAttribute) -> Option<&RouteAddress>| {
            self.message.attributes.iter().find_map(wanted).and_then(|address| match address {
                RouteAddress::Inet(v4) => Some(IpAddr::V4(*v4)),
                RouteAddress::Inet6(v6) => Some(IpAddr::V6(*v6)),
                _ => None,
            })
        };
        let to = attribute(|one| match one {
            RouteAttribute::Destination(address) => Some(address),
            _ => None,
        });
        let via = attribute(|one| match one {
            RouteAttribute::Gateway(address) => Some(address),
            _ => None,
        });
        let length = self.message.header.destination_prefix_length;
        let has_rto_min = self.metrics().iter().any(|metric| matches!(metric, RouteMetric::RtoMin(_)));
        RouteEnds { to: to.map(|to| format!("{to}/{length}")), via, has_rto_min }
    }

    /// Writes it back with this metric, otherwise unchanged.
    pub(crate) fn write(mut self, namespace: &Namespace, metric: Metric, value: &str) -> Result<(), Error> {
        let number = match value {
            NONE => None,
            _ => Some(
                value
                    .parse()
                    .map_err(|_| Error::Wrong(format!("{} is a number, not {value}", metric.name())))?,
            ),
        };
        let mut metrics: Vec<RouteMetric> = self.metrics().to_vec();
        match metrics.iter_mut().find(|one| metric.value(one).is_some()) {
            Some(there) => match number {
                Some(number) => *there = metric.of(number),
                None => metrics.retain(|one| metric.value(one).is_none()),
            },
            None => metrics.extend(number.map(|number| metric.of(number))),
        }
        let attributes = &mut self.message.attributes;
        attributes.retain(|attribute| !matches!(attribute, RouteAttribute::Metrics(_)));
        if !metrics.is_empty() {
            attributes.push(RouteAttribute::Metrics(metrics));
        }
        let what = format!("the route {}", self.shown());
        let message = Routing { kind: RTM_NEWROUTE, route: self.message };
        let answer =
            namespace.enter(|| exchange(message, NLM_F_REPLACE | NLM_F_ACK)).and_then(|result| result);
        answer.map(drop).map_err(Error::of(what, REMEDY))
    }
}

/// Destination and gateway of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteEnds {
    /// `10.0.0.0/24`; none for the default route.
    pub to: Option<String>,
    /// The gateway, if it has one.
    pub via: Option<IpAddr>,
    /// It has an `rto_min`, which `ip route show` prints in a form (with `lock`) that `ip route
    /// change` does not accept.
    pub has_rto_min: bool,
}

/// The ends of the route to an address.
///
/// # Errors
/// There is no route, or none that can be changed.
pub fn route_to(namespace: &Namespace, destination: IpAddr) -> Result<RouteEnds, Error> {
    Ok(Route::to(namespace, destination)?.ends())
}

// rtnetlink(7): the types of messages.
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;

/// A message about a route, and no other: the crate's own enum would bring readers of all messages that a kernel can send, which
/// are larger than all that changes a host.
#[derive(Debug)]
struct Routing {
    kind: u16,
    route: RouteMessage,
}

impl NetlinkSerializable for Routing {
    fn message_type(&self) -> u16 {
        self.kind
    }

    fn buffer_len(&self) -> usize {
        self.route.buffer_len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        self.route.emit(buffer);
    }
}

impl NetlinkDeserializable for Routing {
    type Error = DecodeError;

    fn deserialize(header: &NetlinkHeader, payload: &[u8]) -> Result<Self, DecodeError> {
        match header.message_type {
            kind @ (RTM_NEWROUTE | RTM_GETROUTE) => Ok(Self { kind, route: RouteMessage::parse(payload)? }),
            other => Err(DecodeError::from(format!("message of type {other}"))),
        }
    }
}

/// Reads the entry of the routing table, not the result for one packet.
fn ask_for(destination: IpAddr) -> io::Result<RouteMessage> {
    let mut message = RouteMessage::default();
    let (family, length) = match destination {
        IpAddr::V4(_) => (AddressFamily::Inet, 32),
        IpAddr::V6(_) => (AddressFamily::Inet6, 128),
    };
    message.header = RouteHeader {
        address_family: family,
        destination_prefix_length: length,
        flags: RouteFlags::FibMatch,
        ..RouteHeader::default()
    };
    message.attributes.push(RouteAttribute::Destination(RouteAddress::from(destination)));
    match exchange(Routing { kind: RTM_GETROUTE, route: message }, 0)? {
        Some(Routing { kind: RTM_NEWROUTE, route }) => Ok(route),
        other => Err(io::Error::other(format!("unexpected answer from rtnetlink: {other:?}"))),
    }
}

/// One request and its answer, in the calling thread's namespace.
fn exchange(message: Routing, flags: u16) -> io::Result<Option<Routing>> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | flags;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(message));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    socket.send(&bytes, 0)?;
    let (reply, _) = socket.recv_from_full()?;
    match NetlinkMessage::<Routing>::deserialize(&reply).map(|reply| reply.payload) {
        Ok(NetlinkPayload::InnerMessage(inner)) => Ok(Some(inner)),
        Ok(NetlinkPayload::Error(error)) if error.code.is_none() => Ok(None),
        Ok(NetlinkPayload::Error(error)) => Err(error.to_io()),
        other => Err(io::Error::other(format!("unexpected answer from rtnetlink: {other:?}"))),
    }
}
