//! Which TCP sockets does this network namespace have? One dump of sock_diag(7), parsed as it
//! comes.

use std::io;
use std::net::SocketAddr;
use std::ops::BitOr;

use netlink_packet_core::{
    Emitable as _, NLM_F_DUMP, NLM_F_MULTIPART, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR, NetlinkBuffer,
    NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, SocketId, StateFlags};
use netlink_sys::{Socket as Netlink, SocketAddr as Kernel, protocols::NETLINK_SOCK_DIAG};

use crate::seen::Seen;
use crate::socket::{Socket, State};

/// The kernel fills the room it is given, up to this (netlink_recvmsg, af_netlink.c).
const ROOM_BYTES: usize = 32 << 10;

/// A set of states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct States(u32);

impl States {
    /// States with a peer, data or both, and a socket: not TIME-WAIT, SYN-RECEIVED or closed.
    pub const CONNECTED: Self = Self(
        1 << State::Established as u32
            | 1 << State::SynSent as u32
            | 1 << State::FinWait1 as u32
            | 1 << State::FinWait2 as u32
            | 1 << State::CloseWait as u32
            | 1 << State::LastAck as u32
            | 1 << State::Closing as u32,
    );
    /// Waiting for connections.
    pub const LISTENING: Self = Self(1 << State::Listen as u32);
    /// All states.
    pub const ALL: Self = Self(0xfff);

    /// One state.
    pub const fn only(state: State) -> Self {
        Self(1 << state as u32)
    }
}

impl BitOr for States {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A connection to the kernel's sock_diag in the network namespace of the thread that opened it,
/// wherever that thread goes later.
pub struct Diag {
    netlink: Netlink,
    room: Vec<u8>,
    sequence: u32,
}

impl std::fmt::Debug for Diag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Diag").field("sequence", &self.sequence).finish_non_exhaustive()
    }
}

impl Diag {
    /// Opens it in the calling thread's network namespace.
    ///
    /// # Errors
    /// The kernel has no sock_diag (CONFIG_INET_DIAG).
    pub fn open() -> io::Result<Self> {
        let mut netlink = Netlink::new(NETLINK_SOCK_DIAG)?;
        netlink.bind_auto()?;
        netlink.connect(&Kernel::new(0, 0))?;
        Ok(Self { netlink, room: vec![0; ROOM_BYTES], sequence: 0 })
    }

    /// Visits each TCP socket in one of `states`. The kernel walks its table meanwhile: sockets
    /// that open or close during the walk may be missing.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn each(&mut self, states: States, on_socket: &mut dyn FnMut(&Socket)) -> io::Result<()> {
        self.each_seen(states, &mut |seen| {
            if let Some(socket) = seen.socket() {
                on_socket(&socket);
            }
        })
    }

    /// The same, before each answer is fully parsed.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn each_seen(&mut self, states: States, on_seen: &mut dyn FnMut(&Seen<'_>)) -> io::Result<()> {
        self.ask_for_all(states)?;
        self.answers(on_seen)
    }

    /// The socket with these ends, if there is one.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn one(&mut self, local: SocketAddr, remote: SocketAddr) -> io::Result<Option<Socket>> {
        self.ask_for_one(local, remote)?;
        let mut found = None;
        match self.answers(&mut |seen| found = seen.socket()) {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            result => result.map(|()| found),
        }
    }

    /// Reads answers up to the last one.
    fn answers(&mut self, on_seen: &mut dyn FnMut(&Seen<'_>)) -> io::Result<()> {
        loop {
            let mut room = &mut self.room[..];
            let received = self.netlink.recv(&mut room, 0)?;
            let mut rest = self.room.get(..received).unwrap_or_default();
            while !rest.is_empty() {
                let message = NetlinkBuffer::new_checked(rest).map_err(io::Error::other)?;
                let payload = message.payload();
                if message.sequence_number() == self.sequence {
                    match message.message_type() {
                        NLMSG_DONE => return Ok(()),
                        NLMSG_ERROR => return Err(errno(payload)),
                        _ => {
                            if let Some(seen) = Seen::of(payload) {
                                on_seen(&seen);
                            }
                            if message.flags() & NLM_F_MULTIPART == 0 {
                                return Ok(());
                            }
                        }
                    }
                }
                let length = (message.length() as usize).next_multiple_of(ALIGNMENT);
                rest = rest.get(length..).unwrap_or_default();
            }
        }
    }

    /// The older of the two requests: it covers both address families in one walk of the table,
    /// where the newer one needs two (inet_diag_dump_compat, net/ipv4/inet_diag.c). The answers are
    /// the same.
    fn ask_for_all(&mut self, states: States) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.message_type = TCPDIAG_GETSOCK;
        header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        header.sequence_number = self.sequence;
        header.length = (header.buffer_len() + REQUEST_BYTES) as u32;
        let mut bytes = vec![0; header.length as usize];
        header.emit(&mut bytes);
        // struct inet_diag_req: family, two prefix lengths, extensions, an identity of 48 bytes,
        // states, a cursor.
        let request = &mut bytes[header.buffer_len()..];
        request[0] = libc::AF_INET as u8;
        request[3] = wanted().bits();
        request[52..56].copy_from_slice(&states.0.to_ne_bytes());
        self.netlink.send(&bytes, 0).map(drop)
    }

    fn ask_for_one(&mut self, local: SocketAddr, remote: SocketAddr) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let request = InetRequest {
            family: if local.is_ipv4() { libc::AF_INET as u8 } else { libc::AF_INET6 as u8 },
            protocol: libc::IPPROTO_TCP as u8,
            extensions: wanted(),
            states: StateFlags::all(),
            socket_id: SocketId {
                source_port: local.port(),
                destination_port: remote.port(),
                source_address: local.ip(),
                destination_address: remote.ip(),
                interface_id: 0,
                // INET_DIAG_NOCOOKIE.
                cookie: [0xff; 8],
            },
        };
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST;
        header.sequence_number = self.sequence;
        let payload = NetlinkPayload::from(SockDiagMessage::InetRequest(request));
        let mut message = NetlinkMessage::new(header, payload);
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.netlink.send(&bytes, 0).map(drop)
    }
}

fn wanted() -> ExtensionFlags {
    ExtensionFlags::INFO | ExtensionFlags::SKMEMINFO | ExtensionFlags::CONG
}

/// include/uapi/linux/inet_diag.h.
const TCPDIAG_GETSOCK: u16 = 18;
/// `struct inet_diag_req`.
const REQUEST_BYTES: usize = 60;

/// NLMSG_ALIGNTO.
const ALIGNMENT: usize = 4;

/// `struct nlmsgerr` begins with the negative error.
fn errno(payload: &[u8]) -> io::Error {
    let code = payload.first_chunk().map_or(-libc::EPROTO, |bytes| i32::from_ne_bytes(*bytes));
    io::Error::from_raw_os_error(-code)
}
