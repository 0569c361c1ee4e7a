//! What is a laboratory? A client and a server, and the path between them.

use std::net::{Ipv4Addr, Ipv6Addr};

use tcpwhy_twin::path::PathSpec;

use crate::awake::Awake;
use crate::host::{Addresses, Host, HostSpec};
use crate::link::{Link, LinkOptions, PathLog};
use crate::{Clock, Error};

/// The parts of a laboratory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PairOptions {
    /// The elements between the hosts.
    pub path: PathSpec,
    /// The client.
    pub client: HostSpec,
    /// The server.
    pub server: HostSpec,
    /// The link's effort.
    pub link: LinkOptions,
}

/// Two running hosts with a path between them. Dropping it takes everything down.
#[derive(Debug)]
pub struct Pair {
    // Dropped in this order: programs end before the path does.
    client: Host,
    server: Host,
    link: Link,
    clock: Clock,
    _awake: Awake,
}

impl Pair {
    /// The client's addresses; the server has the next ones.
    pub const CLIENT_V4: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
    /// See `CLIENT_V4`.
    pub const SERVER_V4: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
    /// See `CLIENT_V4`.
    pub const CLIENT_V6: Ipv6Addr = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1);
    /// See `CLIENT_V4`.
    pub const SERVER_V6: Ipv6Addr = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 2);

    /// Builds both hosts and starts the path.
    ///
    /// # Errors
    /// The machine does not allow it, or a setting is impossible; the error says which, and what
    /// would help.
    pub fn build(options: &PairOptions) -> Result<Self, Error> {
        let pipes = options.path.build().map_err(|error| Error::Spec(error.to_string()))?;
        let single = options.path.needs_single_packets();
        let client = Addresses { v4: Self::CLIENT_V4, v6: Self::CLIENT_V6 };
        let server = Addresses { v4: Self::SERVER_V4, v6: Self::SERVER_V6 };
        let (clock, awake) = (Clock::start(), Awake::keep());
        let (client_host, client_tun) = Host::build("client", &options.client, client, server)?;
        let (server_host, server_tun) = Host::build("server", &options.server, server, client)?;
        let link = Link::start([client_tun, server_tun], pipes, single, options.link, clock)?;
        Ok(Self { client: client_host, server: server_host, link, clock, _awake: awake })
    }

    /// The host that connects.
    pub const fn client(&self) -> &Host {
        &self.client
    }

    /// The host that listens.
    pub const fn server(&self) -> &Host {
        &self.server
    }

    /// The log of the path so far.
    pub fn log(&self) -> PathLog {
        self.link.log()
    }

    /// The clock of the path and its records.
    pub const fn clock(&self) -> Clock {
        self.clock
    }
}
