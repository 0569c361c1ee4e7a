//! Who owns a socket? The processes that hold a descriptor of it, found in /proc.

use std::collections::{BTreeSet, HashMap};
use std::ffi::CStr;
use std::fs;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{Dir, Mode, OFlags, open, readlinkat_raw};

/// A process that holds a descriptor of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its pid in this process's PID namespace.
    pub pid: u32,
    /// Its descriptor.
    pub descriptor: i32,
    /// Its command's name.
    pub command: String,
    /// The container that it runs in, by the name of its control group.
    pub container: Option<String>,
}

/// Finds the owners of sockets, by inode; if there are several, the one with the smallest pid.
/// `pids` narrows the search. Processes that may not be accessed are not searched, but counted.
pub fn find(inodes: &BTreeSet<u32>, pids: Option<&[u32]>) -> (HashMap<u32, Owner>, Hidden) {
    let (mut found, mut hidden) = (HashMap::new(), Hidden::default());
    let mut all = Vec::new();
    let pids = pids.unwrap_or_else(|| {
        all = processes();
        &all
    });
    for &pid in pids {
        if found.len() == inodes.len() {
            break;
        }
        let mut command = None;
        let looked = each_socket(pid, |descriptor, inode| {
            if inodes.contains(&inode) {
                let (name, container) = command.get_or_insert_with(|| (name_of(pid), container_of(pid)));
                found.entry(inode).or_insert_with(|| Owner {
                    pid,
                    descriptor,
                    command: name.clone(),
                    container: container.clone(),
                });
            }
        });
        hidden.processes += u32::from(looked.is_none());
    }
    (found, hidden)
}

/// What could not be accessed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hidden {
    /// Processes whose descriptors this process may not see.
    pub processes: u32,
}

/// All processes, smallest pid first.
pub fn processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut pids: Vec<u32> =
        entries.filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok())).collect();
    pids.sort_unstable();
    pids
}

/// Visits each descriptor of a process that is a socket, with its inode. `None` if they may not be
/// seen.
pub fn each_socket(pid: u32, mut visit: impl FnMut(i32, u32)) -> Option<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder: OwnedFd = match open(format!("/proc/{pid}/fd"), flags, Mode::empty()) {
        Ok(folder) => folder,
        // Gone meanwhile: nothing is hidden.
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::SRCH) => return Some(()),
        Err(_) => return None,
    };
    let entries = Dir::read_from(folder.as_fd()).ok()?;
    let mut room = [const { std::mem::MaybeUninit::uninit() }; 64];
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(descriptor) = number(name) else { continue };
        if let Ok((target, _)) = readlinkat_raw(&folder, name, &mut room[..])
            && let Some(inode) = inode_of(target)
        {
            visit(descriptor, inode);
        }
    }
    Some(())
}

fn number(name: &CStr) -> Option<i32> {
    name.to_str().ok()?.parse().ok()
}

/// The number in `socket:[4711]`.
fn inode_of(target: &[u8]) -> Option<u32> {
    let digits = target.strip_prefix(b"socket:[")?.strip_suffix(b"]")?;
    str::from_utf8(digits).ok()?.parse().ok()
}

/// The command's name, as the process sets it.
pub fn name_of(pid: u32) -> String {
    let name = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    // It may be any bytes: a name that is not valid text is still a name.
    String::from_utf8_lossy(&name).trim_end().to_owned()
}

/// The container whose control group the process is in: twelve digits of its identifier, as in
/// container tools.
pub fn container_of(pid: u32) -> Option<String> {
    container_in(&String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/cgroup")).ok()?))
}

/// Docker, containerd, CRI-O and podman name control groups by the container's identifier, 64 hexadecimal digits, bare or as in
/// `docker-<id>.scope`, `cri-containerd-<id>.scope`; LXC has `lxc.payload.<name>`, systemd-nspawn `machine-<name>.scope`.
fn container_in(cgroups: &str) -> Option<String> {
    let parts = || cgroups.lines().flat_map(|line| line.rsplit('/'));
    for part in parts() {
        let name = part.strip_suffix(".scope").unwrap_or(part);
        let id = name.rsplit(['-', ':']).next().unwrap_or(name);
        if id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return id.get(..12).map(str::to_owned);
        }
    }
    parts().find_map(|part| {
        let name = part.strip_prefix("lxc.payload.").or_else(|| part.strip_prefix("machine-"))?;
        Some(name.strip_suffix(".scope").unwrap_or(name).to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_are_told_by_their_control_groups() {
        let id = "0123456789abcdef".repeat(4);
        for (line, container) in [
            (format!("0::/system.slice/docker-{id}.scope"), Some("0123456789ab")),
            (format!("12:memory:/docker/{id}\n0::/"), Some("0123456789ab")),
            (
                format!("0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{id}.scope"),
                Some("0123456789ab"),
            ),
            (format!("0::/kubepods/besteffort/pod1/crio-{id}/nested"), Some("0123456789ab")),
            ("0::/lxc.payload.web/system.slice/nginx.service".to_owned(), Some("web")),
            ("0::/machine.slice/machine-db.scope".to_owned(), Some("db")),
            ("0::/user.slice/user-1000.slice/session-3.scope".to_owned(), None),
        ] {
            assert_eq!(container_in(&line).as_deref(), container, "{line}");
        }
    }

    #[test]
    fn links_of_sockets_and_of_nothing_else_have_inodes() {
        assert_eq!(inode_of(b"socket:[4711]"), Some(4711));
        for other in [&b"pipe:[4711]"[..], b"socket:[]", b"/tmp/socket:[1]", b"socket:[1"] {
            assert_eq!(inode_of(other), None);
        }
    }
}
