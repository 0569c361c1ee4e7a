//! Which packets belong to a process, a container or a control group? Those of its listening ports
//! and of its connections, now and later.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use anyhow::{Context as _, ensure};
use tcpwhy_host::capture::End;
use tcpwhy_sockets::namespace::Namespace;
use tcpwhy_sockets::{Diag, Seen, State, States, owner};

use super::args::LiveArgs;

/// Whose packets are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    Pid(u32),
    Container(String),
    Cgroup(String),
}

impl Whose {
    /// `None` if all packets are meant.
    pub(super) fn of(args: &LiveArgs) -> Option<Self> {
        let container = || args.container.clone().map(Self::Container);
        let cgroup = || args.cgroup.as_ref().map(|name| Self::Cgroup(name.trim_matches('/').to_owned()));
        args.pid.map(Self::Pid).or_else(container).or_else(cgroup)
    }

    /// The current processes.
    pub(crate) fn pids(&self) -> Vec<u32> {
        if let Self::Pid(pid) = self {
            return std::path::Path::new(&format!("/proc/{pid}"))
                .exists()
                .then_some(*pid)
                .into_iter()
                .collect();
        }
        let is_it = |pid: &u32| match self {
            Self::Pid(wanted) => pid == wanted,
            Self::Container(name) => owner::container_of(*pid).is_some_and(|of| of.starts_with(name)),
            Self::Cgroup(name) => groups(*pid).iter().any(|path| is_below(path, name)),
        };
        owner::processes().into_iter().filter(is_it).collect()
    }

    /// The same; an error if there are none.
    pub(super) fn pids_at_start(&self) -> anyhow::Result<Vec<u32>> {
        let pids = self.pids();
        match self {
            Self::Pid(pid) => ensure!(!pids.is_empty(), "there is no process {pid}"),
            Self::Container(name) => ensure!(!pids.is_empty(), "no process runs in container {name}"),
            Self::Cgroup(name) => ensure!(!pids.is_empty(), "no process runs in control group {name}"),
        }
        Ok(pids)
    }
}

/// The form in which one process of this program tells another.
impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pid(pid) => write!(f, "process {pid}"),
            Self::Container(name) => write!(f, "container {name}"),
            Self::Cgroup(name) => write!(f, "control group {name}"),
        }
    }
}

impl FromStr for Whose {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let of = |kind: &str| text.strip_prefix(kind).map(str::to_owned);
        let pid = || of("process ").and_then(|pid| pid.parse().ok()).map(Self::Pid);
        let others =
            || of("container ").map(Self::Container).or_else(|| of("control group ").map(Self::Cgroup));
        pid().or_else(others).ok_or_else(|| format!("{text} is nobody"))
    }
}

/// The paths of a process's control groups: one with version 2, one for each hierarchy with version 1 (cgroups(7)).
fn groups(pid: u32) -> Vec<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    text.lines().filter_map(|line| line.splitn(3, ':').nth(2)).map(str::to_owned).collect()
}

/// Whether consecutive parts of the path are those of the name.
fn is_below(path: &str, name: &str) -> bool {
    let (parts, wanted): (Vec<&str>, Vec<&str>) = (path.split('/').collect(), name.split('/').collect());
    !name.is_empty() && parts.windows(wanted.len()).any(|window| window == wanted)
}

/// A socket missing from this many answers of the kernel is not TCP, or not connected yet.
const LOOKS_MAX: u32 = 8;

/// The ends of the sockets of these processes, kept up to date.
pub(crate) struct Owned {
    diag: Diag,
    /// Sockets already looked up, by inode, and how often unsuccessfully.
    known: BTreeMap<u32, u32>,
    ends: BTreeSet<End>,
}

impl Owned {
    /// Nothing is known yet of the sockets in this network namespace.
    pub(crate) fn open(namespace: &Namespace) -> anyhow::Result<Self> {
        let diag = namespace.enter(Diag::open).context("cannot enter its network namespace (root can)")??;
        Ok(Self { diag, known: BTreeMap::new(), ends: BTreeSet::new() })
    }

    /// Looks again, and returns whether there are new ends. The kernel's table is walked only if
    /// these processes have sockets that it has not been asked about.
    pub(crate) fn look(&mut self, pids: &[u32]) -> anyhow::Result<bool> {
        let mut held = BTreeSet::new();
        for pid in pids {
            let seen = owner::each_socket(*pid, |_, inode| {
                held.insert(inode);
            });
            ensure!(seen.is_some(), "the sockets of process {pid} are hidden from this user: run it as root");
        }
        self.known.retain(|inode, _| held.contains(inode));
        let is_new = |inode: &u32| self.known.get(inode).is_none_or(|looks| *looks < LOOKS_MAX);
        if !held.iter().any(is_new) {
            return Ok(false);
        }
        for inode in &held {
            *self.known.entry(*inode).or_default() += 1;
        }
        let before = self.ends.len();
        let Self { diag, known, ends } = self;
        let (mut ports, mut peers) = (BTreeSet::new(), BTreeSet::new());
        diag.each_seen(States::CONNECTED | States::LISTENING, &mut |seen: &Seen<'_>| {
            if let Some(looks) = known.get_mut(&seen.inode())
                && let Some(socket) = seen.socket()
            {
                *looks = LOOKS_MAX;
                if socket.state == State::Listen {
                    ports.insert(socket.local.port());
                } else {
                    peers.insert((socket.local.port(), socket.remote));
                }
            }
        })?;
        ends.extend(ports.iter().map(|port| End { host: None, port: *port }));
        let is_served = |port: &u16| ends.contains(&End { host: None, port: *port });
        let others = peers.iter().filter(|(local, _)| !is_served(local));
        let others: Vec<End> =
            others.map(|(_, remote)| End { host: Some(remote.ip()), port: remote.port() }).collect();
        ends.extend(others);
        Ok(ends.len() > before)
    }

    /// The ends.
    pub(crate) fn ends(&self) -> Vec<End> {
        self.ends.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Whose, is_below};

    #[test]
    fn a_control_group_is_named_by_its_last_parts_or_by_its_path() {
        let path = "/system.slice/nginx.service/worker";
        for name in ["nginx.service", "system.slice/nginx.service", "system.slice", "worker"] {
            assert!(is_below(path, name), "{name}");
        }
        for name in ["nginx", "", "nginx.service/system.slice", "system.slice/worker"] {
            assert!(!is_below(path, name), "{name}");
        }
    }

    #[test]
    fn whose_they_are_is_told_and_understood() {
        for whose in [Whose::Pid(42), Whose::Container("web".to_owned()), Whose::Cgroup("a/b c".to_owned())] {
            assert_eq!(whose.to_string().parse(), Ok(whose));
        }
        assert!("process x".parse::<Whose>().is_err());
    }
}
