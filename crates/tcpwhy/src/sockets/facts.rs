//! Which sockets have these ends, whose are they, and what have they set? Asked by `tcpwhy live`, which has given up the rights for it.
//!
//! A line of addresses in, a line of JSON out. Addresses are all that comes in, and they come from packets: whatever does not read as one is
//! passed over.

use std::collections::BTreeSet;
use std::io::{BufRead as _, Read as _};
use std::net::SocketAddr;

use rustix::thread::{CapabilitySet, CapabilitySets};
use tcpwhy_sockets::namespace::Namespace;
use tcpwhy_sockets::{Diag, Options, Socket, States, owner};

use crate::output;

/// A line is no longer.
const LINE_BYTES_MAX: u64 = 8 << 10;
/// Sockets told in an answer.
const SOCKETS_MAX: usize = 256;
/// Network namespaces come and go: they are looked for again after so many answers.
const AGAIN: u32 = 8;

/// Keeps of its rights those that it needs, and answers until its input ends.
pub(super) fn run() -> anyhow::Result<()> {
    keep_rights()?;
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
        let told = serde_json::to_string(&facts(&mut diags, &wanted))?;
        output::print(&(told + "\n"))?;
    }
    Ok(())
}

/// Others' descriptors (CAP_SYS_PTRACE), the way to them (CAP_DAC_READ_SEARCH), and network namespaces (CAP_SYS_ADMIN).
fn keep_rights() -> std::io::Result<()> {
    let needed = CapabilitySet::SYS_PTRACE | CapabilitySet::DAC_READ_SEARCH | CapabilitySet::SYS_ADMIN;
    let kept = rustix::thread::capabilities(None)?.permitted.intersection(needed);
    rustix::thread::set_no_new_privs(true)?;
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    Ok(rustix::thread::set_capabilities(None, sets)?)
}

fn open_all() -> Vec<Diag> {
    let open = |namespace: Namespace| namespace.enter(Diag::open).ok()?.ok();
    Namespace::all().into_iter().filter_map(open).collect()
}

fn facts(diags: &mut [Diag], wanted: &BTreeSet<SocketAddr>) -> Vec<tcpwhy_view::Socket> {
    let mut found: Vec<Socket> = Vec::new();
    for diag in diags {
        // One that has gone has no sockets.
        let _ = diag.each(States::CONNECTED, &mut |socket| {
            let is_wanted = wanted.contains(&socket.local) || wanted.contains(&socket.remote);
            if is_wanted && socket.inode != 0 && found.len() < SOCKETS_MAX {
                found.push(socket.clone());
            }
        });
    }
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
