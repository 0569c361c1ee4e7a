//! Which sockets have these ends, who owns them, and which options are set? Asked by `tcpwhy live`,
//! which has given up the rights for it.
//!
//! A line of addresses in, a line of JSON out; and one more line whenever the processes whose
//! packets are captured have new sockets. Only addresses come in, and they come from packets:
//! anything that is not an address is skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, Read as _};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::thread::{CapabilitySet, CapabilitySets};
use tcpwhy_sockets::namespace::Namespace;
use tcpwhy_sockets::{Diag, Options, Socket, States, owner};

use crate::live::facts::Line;
use crate::live::owned::{Owned, Whose};
use crate::output;

/// Maximum length of a line.
const LINE_BYTES_MAX: u64 = 8 << 10;
/// Sockets in one answer.
const SOCKETS_MAX: usize = 256;
/// Network namespaces come and go: they are searched for again after this many answers.
const AGAIN: u32 = 8;

/// How often the processes are looked at, and at most how much of the time that may take (as a
/// divisor).
const FOLLOW_EVERY: Duration = Duration::from_millis(250);
const FOLLOW_SHARE: u32 = 20;

/// Keeps only the rights that it needs, and answers until its input ends. Packets are captured in
/// the network namespace with the inode `own`.
pub(super) fn run(own: u64, whose: Option<&str>) -> anyhow::Result<()> {
    keep_rights()?;
    if let Some(whose) = whose {
        let whose: Whose = whose.parse().map_err(anyhow::Error::msg)?;
        // The thread ends with this process.
        std::thread::Builder::new().name("tcpwhy-follow".to_owned()).spawn(move || follow(&whose))?;
    }
    let mut input = std::io::stdin().lock();
    let mut diags = Vec::new();
    for round in 0_u32.. {
        let mut line = Vec::new();
        if input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let line = String::from_utf8_lossy(&line);
        let wanted: BTreeSet<SocketAddr> =
            line.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
        if round % AGAIN == 0 {
            diags = open_all();
        }
        let told = serde_json::to_string(&Line::Sockets(facts(&mut diags, own, &wanted)))?;
        output::print(&(told + "\n"))?;
    }
    Ok(())
}

/// The rights to read other processes' descriptors (CAP_SYS_PTRACE), to reach them
/// (CAP_DAC_READ_SEARCH), and to enter network namespaces (CAP_SYS_ADMIN).
fn keep_rights() -> std::io::Result<()> {
    let needed = CapabilitySet::SYS_PTRACE | CapabilitySet::DAC_READ_SEARCH | CapabilitySet::SYS_ADMIN;
    let kept = rustix::thread::capabilities(None)?.permitted.intersection(needed);
    rustix::thread::set_no_new_privs(true)?;
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    Ok(rustix::thread::set_capabilities(None, sets)?)
}

/// Reports new ends until the output is closed.
fn follow(whose: &Whose) -> anyhow::Result<()> {
    let first = *whose.pids().first().context("nobody is there")?;
    let mut owned = Owned::open(&Namespace::of_process(first)?)?;
    loop {
        let begun = now();
        // Processes that have ended have no sockets.
        if owned.look(&whose.pids()).unwrap_or(false) {
            let ends = owned.ends().into_iter().map(|end| (end.host, end.port)).collect();
            output::print(&(serde_json::to_string(&Line::Ends { ends })? + "\n"))?;
        }
        std::thread::sleep(FOLLOW_EVERY.max(begun.elapsed() * FOLLOW_SHARE));
    }
}

#[expect(clippy::disallowed_methods, reason = "how much time is spent on looking is a matter of the clock")]
fn now() -> Instant {
    Instant::now()
}

/// A connection to the sockets of each network namespace that can be entered, with the namespace's
/// inode.
fn open_all() -> Vec<(u64, Diag)> {
    let open = |namespace: Namespace| Some((namespace.inode, namespace.enter(Diag::open).ok()?.ok()?));
    Namespace::all().into_iter().filter_map(open).collect()
}

/// Both ends of a socket, the local one first.
type Ends = [SocketAddr; 2];

/// Which sockets of other network namespaces are on connections captured in this one? Many
/// namespaces use the same addresses: each container has a 127.0.0.1, and often the same
/// 172.17.0.2.
#[derive(Default)]
struct Places {
    /// Sockets of the namespace that is captured in.
    own: BTreeSet<Ends>,
    /// How many other sockets have the same ends.
    others: BTreeMap<Ends, u32>,
}

impl Places {
    /// A socket is met if it is the other end of an own socket; or if no own socket has either
    /// address, and it is the only one with these ends: its packets are forwarded here.
    fn is_met(&self, ends: Ends) -> bool {
        let [local, remote] = ends;
        let is_known = |end: SocketAddr| self.own.iter().any(|own| own.contains(&end));
        let is_one = self.others.get(&ends) == Some(&1);
        is_one
            && !local.ip().is_loopback()
            && (self.own.contains(&[remote, local]) || !(is_known(local) || is_known(remote)))
    }
}

fn facts(diags: &mut [(u64, Diag)], own: u64, wanted: &BTreeSet<SocketAddr>) -> Vec<tcpwhy_view::Socket> {
    let (mut found, mut elsewhere): (Vec<Socket>, Vec<Socket>) = Default::default();
    let mut places = Places::default();
    for (inode, diag) in diags {
        // A namespace that is gone has no sockets.
        let _ = diag.each(States::CONNECTED, &mut |socket| {
            let ends = [socket.local, socket.remote];
            if socket.inode == 0 || !ends.iter().any(|end| wanted.contains(end)) {
                return;
            }
            if *inode == own {
                places.own.insert(ends);
                found.push(socket.clone());
            } else {
                *places.others.entry(ends).or_default() += 1;
                elsewhere.push(socket.clone());
            }
        });
    }
    found.extend(elsewhere.into_iter().filter(|socket| places.is_met([socket.local, socket.remote])));
    found.truncate(SOCKETS_MAX);
    let inodes = found.iter().map(|socket| socket.inode).collect();
    let (owners, _) = owner::find(&inodes, None);
    let told = |socket: Socket| {
        let owner = owners.get(&socket.inode);
        let options = owner
            .and_then(|owner| Options::of_foreign(owner.pid, owner.descriptor, socket.cookie).ok())
            .unwrap_or_default();
        tcpwhy_view::Socket {
            local: socket.local.to_string(),
            remote: socket.remote.to_string(),
            pid: owner.map(|owner| owner.pid),
            command: owner.map(|owner| owner.command.clone()),
            nodelay: options.nodelay,
            cork: options.cork,
            receive_locked: options.receive_buffer_locked,
            send_locked: options.send_buffer_locked,
            receive_max: socket.memory.receive_max,
            send_max: socket.memory.send_max,
        }
    };
    found.into_iter().map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_of_other_namespaces_are_met_where_packets_show_it() {
        let ends = |local: &str, remote: &str| [local, remote].map(|end| end.parse().expect("an address"));
        let client = ends("10.77.0.1:5000", "10.77.0.2:80");
        let server = ends("10.77.0.2:80", "10.77.0.1:5000");
        let stranger = ends("10.77.0.1:6000", "10.77.0.2:80");
        let loopback = ends("127.0.0.1:5000", "127.0.0.1:80");
        let mut places = Places::default();
        for other in [client, server, stranger, loopback] {
            places.others.insert(other, 1);
        }
        // Captured between two containers.
        assert!(places.is_met(client) && places.is_met(server));
        assert!(!places.is_met(loopback), "what passes another loopback passes nowhere else");
        // Captured at the client: another container with its address is not on any of its
        // connections.
        places.own.insert(client);
        assert!(places.is_met(server) && !places.is_met(stranger));
        // Two have the same ends: which one it is cannot be known.
        places.others.insert(server, 2);
        assert!(!places.is_met(server));
    }
}
