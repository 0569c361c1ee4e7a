//! How does a fix survive a restart of its process or machine? In files, commands, or code.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;
use tcpwhy_fix::{RouteEnds, Target, route_to};
use tcpwhy_remedy::Stack;
use tcpwhy_remedy::catalogue::{self, connection, windows, writes};
use tcpwhy_sockets::namespace::Namespace;

use super::args::{Fix, FixArgs};
use super::plan::{ceiling, namespace_of};

/// The permanent form of a fix.
pub(super) struct Lasting {
    pub(super) told: String,
    /// A setting that belongs in [`FILE`].
    pub(super) setting: Option<String>,
}

/// Read when the machine starts; relative to the folder of `--root`.
const FILE: &str = "etc/sysctl.d/60-tcpwhy.conf";

/// What to write, and where.
pub(super) fn of(args: &FixArgs) -> anyhow::Result<Lasting> {
    let namespace = namespace_of(args)?;
    Ok(match &args.fix {
        Fix::NoDelay => code(args, &writes::NODELAY),
        Fix::Uncork => code(args, &writes::UNCORK),
        Fix::UnlockReceiveBuffer => code(args, &windows::NO_RCVBUF),
        Fix::UnlockSendBuffer => code(args, &windows::NO_SNDBUF),
        Fix::Congestion(name) => sysctl(format!("net.ipv4.tcp_congestion_control = {name}")),
        Fix::Backlog(most) => {
            let Lasting { told, setting } = sysctl(format!("net.core.somaxconn = {most}"));
            Lasting { told: told + &code(args, &connection::BACKLOG).told, setting }
        }
        Fix::NoRestartAfterIdle => sysctl("net.ipv4.tcp_slow_start_after_idle = 0".to_owned()),
        Fix::ReceiveMemory(most) => memory(&namespace, "net.ipv4.tcp_rmem", *most)?,
        Fix::SendMemory(most) => memory(&namespace, "net.ipv4.tcp_wmem", *most)?,
        Fix::InitCwnd(segments) => {
            route(args, &namespace, ["initcwnd", "InitialCongestionWindow"], &segments.to_string())?
        }
        Fix::InitRwnd(segments) => {
            route(args, &namespace, ["initrwnd", "InitialAdvertisedReceiveWindow"], &segments.to_string())?
        }
        Fix::QuickAck => route(args, &namespace, ["quickack", "QuickAck"], "1")?,
    })
}

impl Lasting {
    /// Writes the setting into its file, replacing one of the same name and keeping the rest of the
    /// file. Returns what was done.
    pub(super) fn write(&self, root: &Path) -> anyhow::Result<String> {
        let Some(setting) = &self.setting else {
            return Ok("Nothing was written: this is not a system setting.\n".to_owned());
        };
        let path = root.join(FILE);
        let there = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            there => there.with_context(|| format!("cannot read {}", path.display()))?,
        };
        let key = |line: &str| line.split('=').next().map(|key| key.trim().to_owned());
        let mut lines: Vec<&str> = there.lines().filter(|line| key(line) != key(setting)).collect();
        lines.push(setting);
        let text = lines.join("\n") + "\n";
        // Written completely or not at all.
        let new = path.with_extension("conf.new");
        let written = std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, &path));
        written.with_context(|| format!("cannot write {} (root can)", path.display()))?;
        Ok(format!("Written to {}.\n", path.display()))
    }
}

fn sysctl(line: String) -> Lasting {
    let told = format!(
        "/{FILE}, read at the next boot, or by `sysctl --system` (--write puts it there):\n  {line}\n"
    );
    Lasting { told, setting: Some(line) }
}

/// Keeps the other two values as they are.
fn memory(namespace: &Namespace, key: &str, most: u64) -> anyhow::Result<Lasting> {
    let now = Target::sysctl(namespace, key).read()?;
    Ok(sysctl(format!("{key} = {}", ceiling(&now, most)?)))
}

/// Three ways to keep an attribute of the current route.
fn route(
    args: &FixArgs,
    namespace: &Namespace,
    [metric, unit]: [&str; 2],
    value: &str,
) -> anyhow::Result<Lasting> {
    let destination = args.to.context("which route? --to ADDRESS")?;
    let RouteEnds { to, via, has_rto_min } = route_to(namespace, destination)?;
    let (ip, family, all) =
        if destination.is_ipv4() { ("ip", "ipv4", "0.0.0.0/0") } else { ("ip -6", "ipv6", "::/0") };
    let exact = to.as_deref().unwrap_or("default");
    let to = to.as_deref().unwrap_or(all);
    let (by, gateway) =
        via.map_or_else(Default::default, |via| (format!(" {via}"), format!("  Gateway={via}\n")));
    let readable = if has_rto_min { " | sed 's/rto_min lock/rto_min/'" } else { "" };
    let systemd = if metric == "quickack" { "yes" } else { value };
    let told = format!(
        "until the next reboot, keeping the route's other attributes:\n  \
         {ip} route change $({ip} route show exact {exact}{readable}) {metric} {value}\n\
         NetworkManager, for the connection with the route (`nmcli connection show`):\n  \
         nmcli connection modify CONNECTION +{family}.routes \"{to}{by} {metric}={value}\"\n\
         systemd-networkd, in the .network file of the interface:\n  \
         [Route]\n  Destination={to}\n{gateway}  {unit}={systemd}\n"
    );
    Ok(Lasting { told, setting: None })
}

/// For the language of the process; for all, if that is unknown.
fn code(args: &FixArgs, fix: &catalogue::Fix) -> Lasting {
    let stack = args.pid.and_then(stack_of);
    let mut out = String::new();
    if let (Some(stack), Some(pid)) = (stack, args.pid) {
        let _ = writeln!(out, "process {pid} runs on {}:", stack.name());
    }
    let mut said = false;
    for how in fix.how.iter().filter(|how| stack.is_none_or(|stack| stack == how.stack)) {
        let _ = writeln!(out, "  {:<10} {}", how.stack.name(), how.text);
        said = true;
    }
    if !said {
        for how in fix.how {
            let _ = writeln!(out, "  {:<10} {}", how.stack.name(), how.text);
        }
    }
    if let Some(caveat) = fix.caveat {
        let _ = writeln!(out, "{caveat}");
    }
    Lasting { told: out, setting: None }
}

/// The stack of a process, judged by its executable.
fn stack_of(pid: u32) -> Option<Stack> {
    let exe = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let name = exe.file_name()?.to_str()?;
    let by_name = [
        ("java", Stack::Java),
        ("python", Stack::Python),
        ("pypy", Stack::Python),
        ("node", Stack::Node),
        ("nginx", Stack::Nginx),
        ("apache2", Stack::Apache),
        ("httpd", Stack::Apache),
        ("haproxy", Stack::Haproxy),
        ("redis", Stack::Redis),
        ("postgres", Stack::Postgres),
        ("pgbouncer", Stack::Postgres),
    ];
    let by_name = by_name.into_iter().find(|(start, _)| name.starts_with(start)).map(|(_, stack)| stack);
    by_name.or_else(|| by_build(&Path::new("/proc").join(pid.to_string()).join("exe")))
}

/// Compilers leave their marks: Go in a section's name (`.go.buildinfo`), Rust and C in `.comment`,
/// near the end of the file. Rust is checked first, because it is linked by a C compiler, which
/// leaves its mark too.
fn by_build(exe: &Path) -> Option<Stack> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    const TAIL_BYTES: u64 = 4 << 20;
    let read = || {
        let mut file = std::fs::File::open(exe)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut tail = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut tail)?;
        std::io::Result::Ok(tail)
    };
    let tail = read().ok()?;
    let has = |name: &[u8]| tail.windows(name.len()).any(|window| window == name);
    let marks: [(&[u8], Stack); 4] = [
        (b".go.buildinfo", Stack::Go),
        (b"rustc version ", Stack::Rust),
        (b"GCC: (", Stack::C),
        (b"clang version ", Stack::C),
    ];
    marks.into_iter().find(|(mark, _)| has(mark)).map(|(_, stack)| stack)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_is_written_in_rust() {
        let exe = std::env::current_exe().expect("it runs");
        // A build with symbols has them after the mark, and they are larger than the tail that is
        // read.
        if std::fs::metadata(&exe).is_ok_and(|of| of.len() < 4 << 20) {
            assert_eq!(by_build(&exe), Some(Stack::Rust));
        }
        assert_eq!(stack_of(0), None);
    }

    #[test]
    fn a_setting_takes_the_place_of_its_own_and_of_no_other() {
        let root = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(root.path().join("etc/sysctl.d")).expect("a folder");
        let file = root.path().join(FILE);
        std::fs::write(&file, "# mine\nnet.core.somaxconn = 1\nnet.ipv4.tcp_rmem=1 2 3\n").expect("a file");
        let said = sysctl("net.ipv4.tcp_rmem = 4 5 6".to_owned()).write(root.path()).expect("it is written");
        assert!(said.starts_with("Written to "), "{said}");
        let now = std::fs::read_to_string(&file).expect("a file");
        assert_eq!(now, "# mine\nnet.core.somaxconn = 1\nnet.ipv4.tcp_rmem = 4 5 6\n");
        let nothing =
            Lasting { told: String::new(), setting: None }.write(root.path()).expect("it is nothing");
        assert!(nothing.starts_with("Nothing was written"), "{nothing}");
    }
}
