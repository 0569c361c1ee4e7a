//! What will a fix change? The sockets, settings or routes, with their values before and after.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anyhow::{Context as _, bail, ensure};
use tcpwhy_fix::{Change, Error, Knob, Metric, Target};
use tcpwhy_sockets::namespace::Namespace;
use tcpwhy_sockets::{Diag, Socket, State, States, owner};

use super::args::{Fix, FixArgs};

/// The planned changes.
pub(super) struct Plan {
    pub(super) changes: Vec<Change>,
    /// Targets that already have the value.
    pub(super) already: usize,
    /// Remarks for the user to read first.
    pub(super) notes: Vec<String>,
    /// Where it is measured.
    pub(super) namespace: Namespace,
    /// The ends of the changed connections; if empty, all connections are measured.
    pub(super) ends: Vec<[SocketAddr; 2]>,
}

impl Plan {
    pub(super) fn of(args: &FixArgs) -> anyhow::Result<Self> {
        let namespace = namespace_of(args)?;
        let mut plan =
            Self { changes: Vec::new(), already: 0, notes: Vec::new(), namespace, ends: Vec::new() };
        let sysctl = |plan: &mut Self, key: &str, to: &dyn Fn(&str) -> anyhow::Result<String>| {
            let target = Target::sysctl(&plan.namespace, key);
            let from = target.read()?;
            let to = to(&from)?;
            plan.add(args, target, from, to);
            anyhow::Ok(())
        };
        match &args.fix {
            Fix::NoDelay => plan.sockets(args, Knob::NoDelay, "1")?,
            Fix::Uncork => plan.sockets(args, Knob::Cork, "0")?,
            Fix::UnlockReceiveBuffer => plan.sockets(args, Knob::ReceiveBuffer, "free")?,
            Fix::UnlockSendBuffer => plan.sockets(args, Knob::SendBuffer, "free")?,
            Fix::Congestion(name) => plan.sockets(args, Knob::Congestion, name)?,
            Fix::Backlog(most) => {
                // The ceiling first: listen(2) is capped by it.
                let raised = |from: &str| {
                    let now: u32 = from.parse().context("net.core.somaxconn is no number")?;
                    Ok(now.max(*most).to_string())
                };
                sysctl(&mut plan, "net.core.somaxconn", &raised)?;
                plan.already = 0;
                plan.sockets(args, Knob::Backlog, &most.to_string())?;
            }
            Fix::NoRestartAfterIdle => {
                sysctl(&mut plan, "net.ipv4.tcp_slow_start_after_idle", &|_| Ok("0".to_owned()))?;
            }
            Fix::ReceiveMemory(most) => sysctl(&mut plan, "net.ipv4.tcp_rmem", &|from| ceiling(from, *most))?,
            Fix::SendMemory(most) => sysctl(&mut plan, "net.ipv4.tcp_wmem", &|from| ceiling(from, *most))?,
            Fix::InitCwnd(segments) => plan.route(args, Metric::InitCwnd, *segments)?,
            Fix::InitRwnd(segments) => plan.route(args, Metric::InitRwnd, *segments)?,
            Fix::QuickAck => plan.route(args, Metric::QuickAck, 1)?,
        }
        Ok(plan)
    }

    fn add(&mut self, args: &FixArgs, target: Target, from: String, to: String) {
        if from == to {
            self.already += 1;
        } else {
            let fix = name(&args.fix).to_owned();
            self.changes.push(Change { fix, target, from, to, memo: None });
        }
    }

    fn route(&mut self, args: &FixArgs, metric: Metric, value: u32) -> anyhow::Result<()> {
        let to = args.to.context("which route? --to ADDRESS")?;
        let target = Target::route(&self.namespace, to, metric)?;
        let from = target.read()?;
        self.add(args, target, from, value.to_string());
        self.notes.push(
            "open connections keep their value; new ones to any address of the route get the new one"
                .to_owned(),
        );
        Ok(())
    }

    fn sockets(&mut self, args: &FixArgs, knob: Knob, to: &str) -> anyhow::Result<()> {
        let pid = args.pid.context("whose sockets? --pid PID")?;
        let mut held = BTreeMap::new();
        let seen = owner::each_socket(pid, |descriptor, inode| {
            held.entry(inode).or_insert(descriptor);
        });
        ensure!(seen.is_some(), "the descriptors of process {pid} are hidden from this user: run it as root");
        let mut found: Vec<(Socket, i32)> = Vec::new();
        let mut diag =
            self.namespace.enter(Diag::open).context("cannot enter its network namespace (root can)")??;
        diag.each(States::CONNECTED | States::LISTENING, &mut |socket| {
            let is_wanted =
                args.port.is_none_or(|port| [socket.local.port(), socket.remote.port()].contains(&port));
            if let Some(descriptor) = held.get(&socket.inode).filter(|_| is_wanted) {
                found.push((socket.clone(), *descriptor));
            }
        })?;
        let of_port = args.port.map_or_else(String::new, |port| format!(" with port {port}"));
        ensure!(!found.is_empty(), "process {pid} has no TCP socket{of_port}");
        let mut listens = false;
        for (socket, descriptor) in found {
            let is_listening = socket.state == State::Listen;
            // Only listening sockets have a backlog, and they have no cork.
            if (knob == Knob::Backlog && !is_listening) || (knob == Knob::Cork && is_listening) {
                continue;
            }
            let target = match Target::socket(pid, descriptor, knob) {
                Ok(target @ Target::Socket { cookie, .. }) if cookie == socket.cookie => target,
                // Closed since, or its descriptor now belongs to another socket.
                Ok(_) | Err(Error::Gone(_)) => continue,
                Err(error) => return Err(error.into()),
            };
            let from = target.read()?;
            listens |= is_listening && from != to;
            if knob == Knob::ReceiveBuffer && !is_listening && from != to {
                self.note_scale(&socket);
            }
            if !is_listening {
                self.ends.push([socket.local, socket.remote]);
            }
            self.add(args, target, from, to.to_owned());
        }
        if listens && knob != Knob::Backlog {
            self.notes.push("one is a listening socket: connections that it accepts from now on inherit the change and keep it".to_owned());
            // Accepted connections are to be measured too, and are not known yet.
            self.ends.clear();
        }
        Ok(())
    }

    /// The window scale was fixed when the connection was made (RFC 7323, 2.2).
    fn note_scale(&mut self, socket: &Socket) {
        let Some(scale) = socket.info.rcv_wscale().filter(|scale| *scale < 5) else { return };
        let most = 65_535_u64 << scale;
        self.notes.push(format!(
            "the connection to {} announced a window scale of {scale}: its window stays below {} B whatever its buffer; only a new \
             connection can have more",
            socket.remote,
            tcpwhy_report::quantity::count(most)
        ));
    }
}

/// The network namespace that is meant.
pub(super) fn namespace_of(args: &FixArgs) -> anyhow::Result<Namespace> {
    Ok(match (args.pid, &args.netns) {
        (Some(pid), _) => Namespace::of_process(pid).map_err(|error| gone_or_forbidden(pid, &error))?,
        (None, Some(name)) => {
            Namespace::named(name).with_context(|| format!("`ip netns` knows no namespace {name}"))?
        }
        (None, None) => Namespace::own()?,
    })
}

/// Replaces the third of three values.
pub(super) fn ceiling(from: &str, most: u64) -> anyhow::Result<String> {
    match from.split(' ').collect::<Vec<_>>()[..] {
        [least, usual, _] => Ok(format!("{least} {usual} {most}")),
        _ => bail!("expected three values, found {from}"),
    }
}

fn gone_or_forbidden(pid: u32, error: &std::io::Error) -> anyhow::Error {
    if error.kind() == std::io::ErrorKind::NotFound {
        anyhow::anyhow!("there is no process {pid}")
    } else {
        anyhow::anyhow!("process {pid} belongs to another user ({error}): run it as root")
    }
}

/// Its name on the command line, without its value.
pub(super) fn name(fix: &Fix) -> &'static str {
    match fix {
        Fix::NoDelay => "nodelay",
        Fix::Uncork => "uncork",
        Fix::UnlockReceiveBuffer => "unlock-rcvbuf",
        Fix::UnlockSendBuffer => "unlock-sndbuf",
        Fix::Congestion(_) => "congestion",
        Fix::Backlog(_) => "backlog",
        Fix::NoRestartAfterIdle => "no-restart-after-idle",
        Fix::ReceiveMemory(_) => "rmem",
        Fix::SendMemory(_) => "wmem",
        Fix::InitCwnd(_) => "initcwnd",
        Fix::InitRwnd(_) => "initrwnd",
        Fix::QuickAck => "quickack",
    }
}
