//! Which packets are those of a process, a container or a control group? Those of the ports it listens on and of the ends it is connected to.

use std::collections::BTreeSet;

use anyhow::{Context as _, ensure};
use tcpwhy_sockets::namespace::Namespace;
use tcpwhy_sockets::{Diag, State, States, owner};

use super::args::LiveArgs;

/// The processes that are meant; none where all are.
pub(super) fn pids(args: &LiveArgs) -> anyhow::Result<Vec<u32>> {
    if let Some(pid) = args.pid {
        ensure!(owner::processes().contains(&pid), "there is no process {pid}");
        return Ok(vec![pid]);
    }
    let (is_in, what): (Box<dyn Fn(u32) -> bool>, String) = match (&args.container, &args.cgroup) {
        (Some(name), _) => {
            let name = name.clone();
            let what = format!("container {name}");
            (Box::new(move |pid| owner::container_of(pid).is_some_and(|of| of.starts_with(&name))), what)
        }
        (None, Some(name)) => {
            let name = name.trim_matches('/').to_owned();
            let what = format!("control group {name}");
            (Box::new(move |pid| groups(pid).iter().any(|path| is_below(path, &name))), what)
        }
        (None, None) => return Ok(Vec::new()),
    };
    let pids: Vec<u32> = owner::processes().into_iter().filter(|pid| is_in(*pid)).collect();
    ensure!(!pids.is_empty(), "no process runs in {what}");
    Ok(pids)
}

/// The paths of a process's control groups: one with version 2, one for each hierarchy with version 1 (cgroups(7)).
fn groups(pid: u32) -> Vec<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    text.lines().filter_map(|line| line.splitn(3, ':').nth(2)).map(str::to_owned).collect()
}

/// Whether parts of the path that follow each other are those of the name.
fn is_below(path: &str, name: &str) -> bool {
    let (parts, wanted): (Vec<&str>, Vec<&str>) = (path.split('/').collect(), name.split('/').collect());
    !name.is_empty() && parts.windows(wanted.len()).any(|window| window == wanted)
}

/// The sockets of these processes as a filter: the ports they listen on, and the ends they are connected to.
pub(super) fn filter(pids: &[u32], namespace: &Namespace) -> anyhow::Result<String> {
    let mut inodes = BTreeSet::new();
    for pid in pids {
        let seen = owner::each_socket(*pid, |_, inode| {
            inodes.insert(inode);
        });
        ensure!(seen.is_some(), "the sockets of process {pid} may not be seen by this user: run it as root");
    }
    let (mut ports, mut peers) = (BTreeSet::new(), BTreeSet::new());
    let mut diag = namespace.enter(Diag::open).context("cannot enter its network namespace (root can)")??;
    diag.each(States::CONNECTED | States::LISTENING, &mut |socket| {
        if inodes.contains(&socket.inode) {
            if socket.state == State::Listen {
                ports.insert(socket.local.port());
            } else {
                peers.insert((socket.local.port(), socket.remote));
            }
        }
    })?;
    let mut parts: Vec<String> = ports.iter().map(|port| format!("port {port}")).collect();
    let ends: BTreeSet<String> = peers
        .iter()
        .filter(|(local, _)| !ports.contains(local))
        .map(|(_, remote)| format!("(host {} and port {})", remote.ip(), remote.port()))
        .collect();
    parts.extend(ends);
    ensure!(!parts.is_empty(), "it has no TCP socket");
    Ok(parts.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::is_below;

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
}
