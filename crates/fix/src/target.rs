//! What is changed? A target that another process can find again, even after a crash.

use std::net::IpAddr;
use std::os::fd::OwnedFd;

use serde::{Deserialize, Serialize};
use tcpwhy_sockets::namespace::Namespace;
use tcpwhy_sockets::{Diag, States, options, owner};

use crate::route::{Metric, Route};
use crate::socket::Knob;
use crate::{Error, sysctl};

/// A thing with a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Target {
    /// An option of a process's socket.
    Socket {
        /// The process.
        pid: u32,
        /// Its descriptor.
        descriptor: i32,
        /// Distinguishes the socket from all others since boot.
        cookie: u64,
        /// The option.
        knob: Knob,
    },
    /// A setting of a network namespace.
    Sysctl {
        /// The namespace.
        namespace: u64,
        /// Distinguishes it from a later one with the same number; 0 if unknown.
        #[serde(default)]
        cookie: u64,
        /// `net.ipv4.tcp_slow_start_after_idle`
        key: String,
    },
    /// A metric of the route to an address.
    Route {
        /// The namespace.
        namespace: u64,
        /// Distinguishes it from a later one with the same number; 0 if unknown.
        #[serde(default)]
        cookie: u64,
        /// The address.
        destination: IpAddr,
        /// The metric.
        metric: Metric,
        /// Everything else of the route.
        identity: String,
    },
}

/// A change of a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The fix that it belongs to.
    pub fix: String,
    /// What is changed.
    #[serde(flatten)]
    pub target: Target,
    /// The old value.
    pub from: String,
    /// The new value.
    pub to: String,
    /// Further state needed to restore the old value; known when the change is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memo: Option<String>,
}

impl Target {
    /// A socket option, by a process's descriptor.
    ///
    /// # Errors
    /// It may not be accessed, or is not a socket.
    pub fn socket(pid: u32, descriptor: i32, knob: Knob) -> Result<Self, Error> {
        let what = || format!("descriptor {descriptor} of process {pid}");
        let socket = options::borrow(pid, descriptor).map_err(no_getfd).map_err(|error| error(what()))?;
        let cookie = options::cookie(&socket).map_err(Error::of(what(), AS_OWNER))?;
        Ok(Self::Socket { pid, descriptor, cookie, knob })
    }

    /// A setting of a network namespace.
    pub fn sysctl(namespace: &Namespace, key: &str) -> Self {
        let cookie = namespace.cookie().unwrap_or(0);
        Self::Sysctl { namespace: namespace.inode, cookie, key: key.to_owned() }
    }

    /// A metric of the route to an address.
    ///
    /// # Errors
    /// There is no route, or none that can be changed.
    pub fn route(namespace: &Namespace, destination: IpAddr, metric: Metric) -> Result<Self, Error> {
        let identity = Route::to(namespace, destination)?.identity();
        let cookie = namespace.cookie().unwrap_or(0);
        Ok(Self::Route { namespace: namespace.inode, cookie, destination, metric, identity })
    }

    /// Its description for people.
    pub fn shown(&self) -> String {
        match self {
            Self::Socket { pid, descriptor, knob, .. } => {
                format!("{} of descriptor {descriptor} of process {pid}", knob.name())
            }
            Self::Sysctl { namespace, key, .. } => format!("{key} of network namespace {namespace}"),
            Self::Route { namespace, destination, metric, .. } => {
                let route = self.place().and_then(|place| Route::to(&place, *destination));
                let route = route.map_or_else(|_| format!("to {destination}"), |route| route.shown());
                format!("{} of the route {route} of network namespace {namespace}", metric.name())
            }
        }
    }

    /// Its current value.
    ///
    /// # Errors
    /// [`Error::Gone`] if it no longer exists.
    pub fn read(&self) -> Result<String, Error> {
        match self {
            Self::Socket { knob, .. } => knob.read(&self.descriptor()?),
            Self::Sysctl { key, .. } => sysctl::read(&self.place()?, key),
            Self::Route { metric, .. } => Ok(self.found_route(&self.place()?)?.read(*metric)),
        }
    }

    /// What has to be written with the value to restore the current state.
    pub(crate) fn memo(&self) -> Result<Option<String>, Error> {
        match self {
            Self::Socket { knob, .. } => Ok(knob.memo(&self.descriptor()?)),
            _ => Ok(None),
        }
    }

    /// Whether it is between two values: the process that changed it was killed in the middle.
    pub(crate) fn is_passing(&self, now: &str, from: &str, to: &str) -> bool {
        matches!(self, Self::Socket { knob, .. } if knob.is_passing(now, from, to))
    }

    /// Sets a value, with the memo if it is an old one.
    pub(crate) fn write(&self, value: &str, memo: Option<&str>) -> Result<(), Error> {
        match self {
            Self::Socket { knob, .. } => knob.write(&self.descriptor()?, value, memo),
            Self::Sysctl { key, .. } => sysctl::write(&self.place()?, key, value),
            Self::Route { metric, .. } => {
                let place = self.place()?;
                self.found_route(&place)?.write(&place, *metric, value)
            }
        }
    }

    /// The route, if it is the same except for its metrics.
    fn found_route(&self, place: &Namespace) -> Result<Route, Error> {
        let Self::Route { destination, identity, .. } = self else { unreachable!("asked of routes only") };
        let route = Route::to(place, *destination)?;
        if route.identity() == *identity {
            Ok(route)
        } else {
            Err(Error::Gone(format!("the route to {destination}")))
        }
    }

    /// The network namespace that it belongs to.
    fn place(&self) -> Result<Namespace, Error> {
        let (Self::Sysctl { namespace, cookie, .. } | Self::Route { namespace, cookie, .. }) = self else {
            unreachable!("sockets are found by their cookie")
        };
        let found = Namespace::all().into_iter().find(|place| place.inode == *namespace);
        let found = found.filter(|place| *cookie == 0 || place.cookie().is_none_or(|now| now == *cookie));
        found.ok_or_else(|| Error::Gone(format!("network namespace {namespace}")))
    }

    /// A duplicate of the descriptor: where it was, or where the socket is held now.
    fn descriptor(&self) -> Result<OwnedFd, Error> {
        let Self::Socket { pid, descriptor, cookie, .. } = self else {
            unreachable!("asked of sockets only")
        };
        let is_it = |socket: &OwnedFd| options::cookie(socket).is_ok_and(|found| found == *cookie);
        let what = format!("the socket of process {pid}");
        match options::borrow(*pid, *descriptor) {
            Ok(socket) if is_it(&socket) => return Ok(socket),
            Ok(_) => {}
            Err(error) => match no_getfd(error)(what.clone()) {
                Error::Gone(_) => {}
                error => return Err(error),
            },
        }
        let held =
            held_elsewhere(*cookie).and_then(|(pid, descriptor)| options::borrow(pid, descriptor).ok());
        held.filter(is_it).ok_or(Error::Gone(what))
    }
}

const AS_OWNER: &str = "its own user may, where ptrace(2) is allowed, and root";

/// The meaning of a failed pidfd_getfd.
fn no_getfd(error: std::io::Error) -> impl FnOnce(String) -> Error {
    move |what| match error.raw_os_error() {
        Some(libc::ENOSYS) => Error::NotThere { what: "pidfd_getfd came with Linux 5.6", source: error },
        _ => Error::of(what, AS_OWNER)(error),
    }
}

/// Another process that holds the socket: a child that inherited it, or a process that received it.
fn held_elsewhere(cookie: u64) -> Option<(u32, i32)> {
    let inode = Namespace::all().iter().find_map(|place| {
        let mut found = None;
        let mut diag = place.enter(Diag::open).ok()?.ok()?;
        diag.each(States::ALL, &mut |socket| {
            if socket.cookie == cookie {
                found = Some(socket.inode);
            }
        })
        .ok()?;
        found.filter(|inode| *inode != 0)
    })?;
    let (owners, _) = owner::find(&[inode].into(), None);
    owners.get(&inode).map(|owner| (owner.pid, owner.descriptor))
}
