//! How does a fix outlive its process and the next start of the machine? The files, the commands, the code.

use std::fmt::Write as _;
use std::path::Path;

use tcpwhy_remedy::Stack;
use tcpwhy_remedy::catalogue::{self, connection, windows, writes};

use super::args::{Fix, FixArgs};

/// What to write where.
pub(super) fn told(args: &FixArgs) -> String {
    match &args.fix {
        Fix::NoDelay => code(args, &writes::NODELAY),
        Fix::Uncork => code(args, &writes::UNCORK),
        Fix::UnlockReceiveBuffer => code(args, &windows::NO_RCVBUF),
        Fix::UnlockSendBuffer => code(args, &windows::NO_SNDBUF),
        Fix::Congestion(name) => sysctl(&format!("net.ipv4.tcp_congestion_control = {name}")),
        Fix::Backlog(most) => {
            sysctl(&format!("net.core.somaxconn = {most}")) + &code(args, &connection::BACKLOG)
        }
        Fix::NoRestartAfterIdle => sysctl("net.ipv4.tcp_slow_start_after_idle = 0"),
        Fix::ReceiveMemory(most) => sysctl(&format!("net.ipv4.tcp_rmem = 4096 131072 {most}")),
        Fix::SendMemory(most) => sysctl(&format!("net.ipv4.tcp_wmem = 4096 16384 {most}")),
        Fix::InitCwnd(segments) => route(args, "initcwnd", "InitialCongestionWindow", &segments.to_string()),
        Fix::InitRwnd(segments) => {
            route(args, "initrwnd", "InitialAdvertisedReceiveWindow", &segments.to_string())
        }
        Fix::QuickAck => route(args, "quickack", "QuickAck", "1"),
    }
}

fn sysctl(line: &str) -> String {
    format!("/etc/sysctl.d/60-tcpwhy.conf, read at the next start, or by `sysctl --system`:\n  {line}\n")
}

/// Three ways to keep a property of a route.
fn route(args: &FixArgs, metric: &str, unit: &str, value: &str) -> String {
    let to = args.to.map_or_else(|| "DESTINATION".to_owned(), |to| to.to_string());
    let systemd = if metric == "quickack" { "yes" } else { value };
    format!(
        "until the next start (with all else that `ip route get {to}` shows of the route):\n  \
         ip route change ROUTE {metric} {value}\n\
         NetworkManager, of the connection that has the route:\n  \
         nmcli connection modify CONNECTION +ipv4.routes \"{to}/32 GATEWAY {metric}={value}\"\n\
         systemd-networkd, in the .network file of the interface:\n  \
         [Route]\n  Destination={to}\n  Gateway=GATEWAY\n  {unit}={systemd}\n"
    )
}

/// In the words of what the process is written in; of all, where that is not known.
fn code(args: &FixArgs, fix: &catalogue::Fix) -> String {
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
    out
}

/// What a process is written in, told from its executable.
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
    by_name.into_iter().find(|(start, _)| name.starts_with(start)).map(|(_, stack)| stack).or_else(|| {
        // A Go program carries what it was built from.
        has_go_build_information(&Path::new("/proc").join(pid.to_string()).join("exe")).then_some(Stack::Go)
    })
}

/// `.go.buildinfo` is a section's name; section names stand near the end of a file.
fn has_go_build_information(exe: &Path) -> bool {
    use std::io::{Read as _, Seek as _, SeekFrom};
    const TAIL_BYTES: u64 = 64 << 10;
    const NAME: &[u8] = b".go.buildinfo";
    let read = || {
        let mut file = std::fs::File::open(exe)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut tail = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut tail)?;
        std::io::Result::Ok(tail)
    };
    read().is_ok_and(|tail| tail.windows(NAME.len()).any(|window| window == NAME))
}
