//! `tcpwhy live`: where does the time of what passes now go?
//!
//! This process opens the interface, gives up its rights, and hands on packets that it does not look into; another one reads them in the
//! sandbox of `read`, of which it is the same code. So what is said at the end is what `read` says of the file.

mod args;
#[cfg(target_os = "linux")]
pub(crate) mod lines;

pub(crate) use args::LiveArgs;

#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_args: &LiveArgs) -> anyhow::Result<u8> {
    anyhow::bail!("live capture needs Linux: record with tcpdump, and `tcpwhy read` the file")
}

#[cfg(target_os = "linux")]
pub(crate) use linux::run;

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeSet;
    use std::fs::File;
    use std::path::Path;
    use std::process::Stdio;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    use anyhow::{Context as _, ensure};
    use tcpwhy_host::capture::{Filter as Kernel, Options};
    use tcpwhy_lab::Folder;
    use tcpwhy_report::quantity::counted;
    use tcpwhy_sockets::namespace::Namespace;
    use tcpwhy_sockets::{Diag, State, States, owner};
    use tcpwhy_wire::Filter;

    use super::args::LiveArgs;
    use crate::feed::{Feed, give_up_rights};
    use crate::output::complain;
    use crate::{NOT_ANALYSED, WRONG_USAGE};

    /// How long to sleep between two looks at what may end it.
    const STEP: Duration = Duration::from_millis(20);

    pub(crate) fn run(args: &LiveArgs) -> anyhow::Result<u8> {
        let text = args.filter.join(" ");
        if !text.trim().is_empty()
            && let Err(error) = text.parse::<Filter>()
        {
            complain(&format!("the filter cannot be read:\n{error}"));
            return Ok(WRONG_USAGE);
        }
        let pids = pids(args)?;
        let namespace = match (pids.first(), &args.netns) {
            (Some(pid), _) => Namespace::of_process(*pid)
                .with_context(|| format!("cannot look into process {pid} (root can)"))?,
            (None, Some(name)) => {
                Namespace::named(name).with_context(|| format!("`ip netns` knows no namespace {name}"))?
            }
            (None, None) => Namespace::own()?,
        };
        let mut filters: Vec<String> =
            Some(text).filter(|text| !text.trim().is_empty()).into_iter().collect();
        if !pids.is_empty() {
            filters.push(theirs(&pids, &namespace)?);
        }
        let filter = filters.iter().map(|one| format!("({one})")).collect::<Vec<_>>().join(" and ");
        let options = Options {
            filter: if pids.is_empty() { kernel(&args.filter) } else { Kernel::default() },
            snaplen: args.snaplen,
            ring_bytes: args.ring,
            comment: format!("tcpwhy live -i {} {}", args.interface, args.filter.join(" ")),
            ..Options::new(args.interface.as_str())
        };
        let file = args.write.as_deref().map(made_anew).transpose()?;
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))?;
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
        }
        let feed = Feed::start(options, &namespace, &words(args, &filter), file, Stdio::inherit())?;
        drop(namespace);
        give_up_rights()?;
        let begun = now();
        let over = || args.lasting.is_some_and(|lasting| begun.elapsed() >= lasting);
        while !over() && !stop.load(Ordering::Relaxed) && !feed.has_ended() {
            std::thread::sleep(STEP);
        }
        let (stats, mut reader) = feed.stop();
        let code = reader.wait()?.code();
        let stats = stats.context("the capture failed")?;
        if stats.dropped + stats.unread > 0 {
            let lost = counted(stats.dropped + stats.unread, "packet");
            complain(&format!(
                "the kernel had no room for {lost}, which are missing: --ring takes more, a filter needs less"
            ));
        }
        if let Some(why) = stats.interrupted {
            complain(&format!("{}: {why}", args.interface));
        }
        Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(NOT_ANALYSED))
    }

    /// The file of `--write`: made anew, as recordings of the laboratory are, so that nobody else decides what is overwritten. Devices and
    /// pipes are written to.
    fn made_anew(path: &Path) -> anyhow::Result<File> {
        let made = || {
            let there = path.symlink_metadata().map(|there| there.file_type());
            if there.is_ok_and(|kind| !kind.is_file() && !kind.is_symlink()) {
                return File::options().write(true).open(path);
            }
            let name =
                path.file_name().and_then(|name| name.to_str()).ok_or(std::io::ErrorKind::InvalidFilename)?;
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            Folder::make(folder.unwrap_or(Path::new(".")))?.create(name)
        };
        made().with_context(|| format!("cannot write {}", path.display()))
    }

    /// What the reader is told.
    fn words(args: &LiveArgs, filter: &str) -> Vec<String> {
        let every = format!("{}ms", args.every.as_millis().max(1));
        let form = if args.json { "json" } else { "text" };
        let mut words = ["read", "-", "--every", &every, "--live", form].map(str::to_owned).to_vec();
        if args.json {
            words.push("--json".to_owned());
        }
        if !filter.is_empty() {
            words.extend(["--filter".to_owned(), filter.to_owned()]);
        }
        if args.color.is_on() {
            words.extend(["--color", "always"].map(str::to_owned));
        }
        words
    }

    /// What of a filter the kernel takes: a port, a host, or both. It lets more through than the rest says, never less.
    fn kernel(words: &[String]) -> Kernel {
        let words: Vec<&str> = words.iter().flat_map(|word| word.split_whitespace()).collect();
        let words = words.strip_prefix(&["tcp"]).unwrap_or(&words);
        let words = words.strip_prefix(&["and"]).unwrap_or(words);
        let (port, host) = (|text: &str| text.parse().ok(), |text: &str| text.parse().ok());
        match *words {
            ["port", number] => Kernel { port: port(number), ..Kernel::default() },
            ["host", address] => Kernel { host: host(address), ..Kernel::default() },
            ["port", number, "and", "host", address] | ["host", address, "and", "port", number] => {
                Kernel { port: port(number), host: host(address) }
            }
            _ => Kernel::default(),
        }
    }

    fn pids(args: &LiveArgs) -> anyhow::Result<Vec<u32>> {
        if let Some(pid) = args.pid {
            ensure!(owner::processes().contains(&pid), "there is no process {pid}");
            return Ok(vec![pid]);
        }
        let Some(name) = &args.container else { return Ok(Vec::new()) };
        let is_in = |pid: &u32| {
            let group = || std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
            owner::container_of(*pid).is_some_and(|container| container.starts_with(name.as_str()))
                || group().lines().any(|line| line.split('/').any(|part| part == name))
        };
        let pids: Vec<u32> = owner::processes().into_iter().filter(is_in).collect();
        ensure!(!pids.is_empty(), "no process runs in a container or control group {name}");
        Ok(pids)
    }

    /// The sockets of these processes as a filter: the ports they listen on, and the ends they are connected to.
    fn theirs(pids: &[u32], namespace: &Namespace) -> anyhow::Result<String> {
        let mut inodes = BTreeSet::new();
        for pid in pids {
            let seen = owner::each_socket(*pid, |_, inode| {
                inodes.insert(inode);
            });
            ensure!(
                seen.is_some(),
                "the sockets of process {pid} may not be seen by this user: run it as root"
            );
        }
        let (mut ports, mut peers) = (BTreeSet::new(), BTreeSet::new());
        let mut diag =
            namespace.enter(Diag::open).context("cannot enter its network namespace (root can)")??;
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

    #[expect(clippy::disallowed_methods, reason = "how long to capture is a matter of the clock")]
    fn now() -> Instant {
        Instant::now()
    }
}
