//! Why is there no capture, and what would allow it?

use std::io;

use super::ring::CallError;

/// Why a capture could not start or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel forbids packet sockets to this process.
    #[error(
        "capturing on {interface} needs CAP_NET_RAW, which this process does not have ({source}). Any of these allows it: \
         run it as root; give the program the capability once (`sudo setcap cap_net_raw+ep \"$(command -v tcpwhy)\"`); \
         or run program and traffic in a network namespace of your own (`unshare --user --map-root-user --net`)"
    )]
    NotPermitted {
        /// The interface asked for.
        interface: String,
        /// The refused call.
        source: CallError,
    },
    /// The kernel has no packet sockets at all.
    #[error("this kernel has no packet sockets ({source}): it needs CONFIG_PACKET (`modprobe af_packet`)")]
    NoPacketSockets {
        /// The failed call.
        source: CallError,
    },
    /// No interface of that name in this network namespace.
    #[error("there is no interface {interface:?} here; there are: {}", have.join(", "))]
    NoInterface {
        /// The interface asked for.
        interface: String,
        /// Those that exist.
        have: Vec<String>,
    },
    /// The interface exists but is down.
    #[error("the interface {interface} is down: `ip link set {interface} up`")]
    Down {
        /// The interface asked for.
        interface: String,
    },
    /// Not even the smallest ring could be allocated.
    #[error("no memory for a ring of {bytes} bytes ({source})")]
    NoMemory {
        /// The size of the last attempt.
        bytes: usize,
        /// The failed call.
        source: CallError,
    },
    /// Another system call failed.
    #[error("capture failed: {0}")]
    Kernel(#[from] CallError),
    /// The sink refused a packet: a full disk, a closed pipe.
    #[error("writing the capture failed: {0}")]
    Write(io::Error),
}

impl Error {
    /// What a failed `socket(AF_PACKET)` means.
    pub(super) fn from_socket(interface: &str, source: CallError) -> Self {
        match source.source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => {
                Self::NotPermitted { interface: interface.to_owned(), source }
            }
            Some(libc::EAFNOSUPPORT | libc::EPROTONOSUPPORT) => Self::NoPacketSockets { source },
            _ => Self::Kernel(source),
        }
    }

    /// Whether the machine or the user's rights rule out capturing altogether, as opposed to a
    /// mistake in the request.
    pub const fn is_impossible_here(&self) -> bool {
        matches!(self, Self::NotPermitted { .. } | Self::NoPacketSockets { .. })
    }
}
