//! What is a host? A network namespace with an interface towards the path, a PID namespace that
//! ends every program of the host with it, and a thread that lives in both and starts programs
//! there.

use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use netlink_packet_route::route::RouteMetric;
use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, MountPropagationFlags};
use rustix::pipe::PipeFlags;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use crate::netlink::Netlink;
use crate::tun::{Leave, Tun};
use crate::{Error, names, sys};

/// Settings of a host that differ from the kernel's defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSpec {
    /// Settings below `net.`, as `sysctl` names them: `("net.ipv4.tcp_slow_start_after_idle", "0")`.
    pub sysctl: Vec<(String, String)>,
    /// Congestion control of connections over the path, as an attribute of the route: unlike the
    /// sysctl, it accepts any that the kernel has, without rights on the whole machine. It takes
    /// precedence over what a socket sets *before* it connects. `None` leaves the machine's
    /// default.
    pub congestion: Option<String>,
    /// Initial congestion window in segments.
    pub initcwnd: Option<u32>,
    /// Initial receive window in segments.
    pub initrwnd: Option<u32>,
    /// Acknowledge every segment at once.
    pub quickack: bool,
    /// Smallest retransmission timeout, ms.
    pub rto_min_ms: Option<u32>,
    /// MTU of the interface in bytes.
    pub mtu: u32,
    /// The interface takes super-segments, like a network card with TSO; captures on the host then show them. They
    /// pass the path whole if its elements allow it (none, or only delays), otherwise the link splits them first.
    pub tso: bool,
    /// Names that programs on the host can resolve, besides those of the machine.
    pub names: Vec<(String, IpAddr)>,
}

impl Default for HostSpec {
    fn default() -> Self {
        Self {
            sysctl: Vec::new(),
            congestion: Some("cubic".to_owned()),
            initcwnd: None,
            initrwnd: None,
            quickack: false,
            rto_min_ms: None,
            mtu: 1500,
            tso: true,
            names: Vec::new(),
        }
    }
}

/// A running host. Dropping it ends every program on it.
#[derive(Debug)]
pub struct Host {
    name: &'static str,
    address: Addresses,
    namespace: Arc<OwnedFd>,
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    keeper: Keeper,
}

/// The addresses of one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub(crate) v4: Ipv4Addr,
    pub(crate) v6: Ipv6Addr,
}

/// The name of a host's interface towards the path.
pub(crate) const INTERFACE: &str = "path0";

type Job = Box<dyn FnOnce() + Send>;

impl Host {
    /// Builds the host including its interface.
    pub(crate) fn build(
        name: &'static str,
        spec: &HostSpec,
        own: Addresses,
        peer: Addresses,
    ) -> Result<(Self, Tun), Error> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let (report, built) = mpsc::channel();
        let spec = spec.clone();
        let thread = thread::Builder::new()
            .name(format!("{name} host"))
            .spawn(move || {
                let result = Self::set_up(&spec, own, peer);
                let go_on = result.is_ok();
                if report.send(result).is_ok() && go_on {
                    for job in queue {
                        job();
                    }
                }
            })
            .map_err(Error::step("start a thread"))?;
        let (keeper, namespace, tun) = built
            .recv()
            .unwrap_or_else(|_| Err(Error::Spec(format!("the thread of the {name} host ended early"))))?;
        let host = Self {
            name,
            address: own,
            namespace: Arc::new(namespace),
            jobs: Some(jobs),
            thread: Some(thread),
            keeper,
        };
        Ok((host, tun))
    }

    /// Runs on the host's thread, which stays in the namespaces that it creates here.
    fn set_up(spec: &HostSpec, own: Addresses, peer: Addresses) -> Result<(Keeper, OwnedFd, Tun), Error> {
        let remedy =
            "Run it as root, or call it where user namespaces are allowed (sysctl user.max_user_namespaces)";
        sys::unshare(UnshareFlags::NEWNET | UnshareFlags::NEWPID | UnshareFlags::NEWNS)
            .map_err(Error::permitted("create namespaces", remedy))?;
        let namespace =
            rustix::fs::open("/proc/thread-self/ns/net", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
                .map_err(Error::step("open the network namespace"))?;
        // Mounts made for this host must not reach the machine's.
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        rustix::mount::mount_change("/", private).map_err(Error::step("make the host's mounts private"))?;
        // /sys shows the interfaces of the namespace in which it was mounted. Some containers
        // refuse this; programs that look there then see the machine's.
        let _ = rustix::mount::mount("sysfs", "/sys", "sysfs", MountFlags::RDONLY, None);

        names::add(&spec.names).map_err(Error::step("give the host its names"))?;

        // IPv6 must not send anything on its own: no link-local address, no solicitation.
        let quiet = [
            ("net.ipv6.conf.all.addr_gen_mode", "1"),
            ("net.ipv6.conf.default.addr_gen_mode", "1"),
            ("net.ipv6.conf.default.accept_ra", "0"),
            ("net.ipv6.conf.default.router_solicitations", "0"),
            // Any user of the host may ping and may bind low ports.
            ("net.ipv4.ping_group_range", "0 2147483647"),
            ("net.ipv4.ip_unprivileged_port_start", "0"),
        ];
        for (key, value) in quiet {
            // A kernel without IPv6 has no such file, and sends nothing anyway.
            let _ = std::fs::write(sysctl_file(key)?, value);
        }
        for (key, value) in &spec.sysctl {
            std::fs::write(sysctl_file(key)?, value)
                .map_err(Error::step(format!("set sysctl {key} to {value}")))?;
        }

        let leave = if spec.tso { Leave::Segmentation } else { Leave::Checksums };
        let tun = Tun::create(INTERFACE, leave)?;
        Self::connect(spec, own, peer)?;
        let keeper = Keeper::start().map_err(Error::step("start the process that keeps the host"))?;
        Ok((keeper, namespace, tun))
    }

    fn connect(spec: &HostSpec, own: Addresses, peer: Addresses) -> Result<(), Error> {
        let netlink = Netlink::open().map_err(Error::step("open rtnetlink"))?;
        netlink.link_up("lo", None, None).map_err(Error::step("bring up the loopback interface"))?;
        netlink
            .link_up(INTERFACE, Some(spec.mtu), Some(QUEUE_PACKETS))
            .map_err(Error::step(format!("bring up {INTERFACE} with MTU {}", spec.mtu)))?;
        let index = rustix::net::netdevice::name_to_index(
            rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)
                .map_err(Error::step("open a socket"))?,
            INTERFACE,
        )
        .map_err(Error::step("find the interface"))?;
        let metrics: Vec<RouteMetric> = [
            spec.congestion.clone().map(RouteMetric::CcAlgo),
            spec.initcwnd.map(RouteMetric::InitCwnd),
            spec.initrwnd.map(RouteMetric::InitRwnd),
            spec.quickack.then_some(RouteMetric::QuickAck(1)),
            spec.rto_min_ms.map(RouteMetric::RtoMin),
        ]
        .into_iter()
        .flatten()
        .collect();
        let route = |to: IpAddr| {
            netlink.add_route(index, to, metrics.clone()).map_err(Error::step(format!(
                "add the route to {to} (congestion control {})",
                spec.congestion.as_deref().unwrap_or("left alone")
            )))
        };
        netlink.add_address(index, own.v4.into()).map_err(Error::step("add the IPv4 address"))?;
        route(peer.v4.into())?;
        // An MTU below 1280 leaves no IPv6 (RFC 8200, 5), and a kernel may have none.
        if spec.mtu >= 1280 && netlink.add_address(index, own.v6.into()).is_ok() {
            route(peer.v6.into())?;
        }
        Ok(())
    }

    /// `client` or `server`.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The IPv4 address of the host's interface towards the path.
    pub const fn ipv4(&self) -> Ipv4Addr {
        self.address.v4
    }

    /// The IPv6 address of the host's interface towards the path.
    pub const fn ipv6(&self) -> Ipv6Addr {
        self.address.v6
    }

    /// The name of the host's interface towards the path, for captures.
    pub const fn interface(&self) -> &'static str {
        INTERFACE
    }

    /// Starts a program on the host. It ends with the host at the latest, and so do its child
    /// processes.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn spawn(&self, mut command: Command) -> io::Result<Child> {
        self.on_thread(move || command.spawn())?
    }

    /// Runs `work` on a new thread inside the host's network namespace: its sockets belong to the
    /// host, and so do the threads that it starts. (Files and processes stay the machine's.)
    ///
    /// # Errors
    /// The system gives no thread, or does not let it into the namespace.
    pub fn enter<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        let namespace = Arc::clone(&self.namespace);
        let (report, moved) = mpsc::channel();
        let thread = thread::Builder::new().name(format!("on {}", self.name)).spawn(move || {
            let result = move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network));
            let failed = result.is_err();
            // The receiver waits below.
            let _ = report.send(result);
            // The caller has the error, and there is no value to return: sleep as long as the
            // program runs.
            if failed {
                loop {
                    thread::park();
                }
            }
            work()
        })?;
        moved.recv().map_err(io::Error::other)??;
        Ok(thread)
    }

    /// A file below /proc from the host's network namespace: `net/tcp`, `net/snmp`, `net/netstat`,
    /// `net/dev`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn proc_file(&self, file: &str) -> io::Result<String> {
        // /proc/net is the view of the process's first thread; thread-self is this thread's.
        let path = format!("/proc/thread-self/{file}");
        self.enter(move || std::fs::read_to_string(path))?.join().map_err(|_| thread_ended())?
    }

    /// Whether a program on the host listens on this TCP port.
    ///
    /// # Errors
    /// The table of sockets cannot be read.
    pub fn listens(&self, port: u16) -> io::Result<bool> {
        Ok(self.listening()?.contains(&port))
    }

    /// The TCP ports on which programs of the host listen.
    ///
    /// # Errors
    /// The table of sockets cannot be read.
    pub fn listening(&self) -> io::Result<Vec<u16>> {
        let mut ports = Vec::new();
        for file in ["net/tcp", "net/tcp6"] {
            // A kernel without IPv6 has no tcp6.
            let table = self.proc_file(file).unwrap_or_default();
            ports.extend(table.lines().skip(1).filter_map(listening_port));
        }
        Ok(ports)
    }

    /// Packets that the kernel could not hand to the path because the link read too slowly. If not
    /// zero, the machine was overloaded and the run does not match its path.
    ///
    /// # Errors
    /// The interface's counters cannot be read.
    pub fn overruns(&self) -> io::Result<u64> {
        let table = self.proc_file("net/dev")?;
        let line =
            table.lines().find_map(|line| line.trim_start().strip_prefix(INTERFACE)?.strip_prefix(':'));
        // Eight columns for receiving, then bytes, packets, errors and drops for sending.
        let dropped = line.and_then(|line| line.split_whitespace().nth(11)?.parse().ok());
        dropped.ok_or_else(|| io::Error::other(format!("no counters of {INTERFACE} in net/dev")))
    }

    fn on_thread<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
        let (send, receive) = mpsc::channel();
        let job: Job = Box::new(move || drop(send.send(work())));
        self.jobs.as_ref().ok_or_else(thread_ended)?.send(job).map_err(|_| thread_ended())?;
        receive.recv().map_err(|_| thread_ended())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.keeper.end();
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            // A job that panicked was reported to its caller.
            let _ = thread.join();
        }
    }
}

/// The first process of a host's PID namespace.
#[derive(Debug)]
struct Keeper {
    process: Mutex<sys::Keeper>,
    /// Closing it ends the keeper, and with it every process of the host.
    lifeline: Mutex<Option<OwnedFd>>,
}

impl Keeper {
    fn start() -> io::Result<Self> {
        let (lifeline, held) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let (ready, set_up) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let process = sys::Keeper::start(&lifeline, &set_up)?;
        drop(set_up);
        std::fs::File::from(ready).read_exact(&mut [0])?;
        Ok(Self { process: Mutex::new(process), lifeline: Mutex::new(Some(held)) })
    }

    /// Ends every process of the host and waits a moment for them. A program that has not been
    /// waited for keeps the keeper from being reaped; then it is reaped when this process ends.
    fn end(&self) {
        drop(self.lifeline.lock().unwrap_or_else(PoisonError::into_inner).take());
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..100 {
            if process.has_ended() {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The file of a sysctl; only those of the network, which belong to the namespace.
fn sysctl_file(key: &str) -> Result<PathBuf, Error> {
    let path = key.replace('.', "/");
    if !path.starts_with("net/") || path.contains("//") {
        return Err(Error::Spec(format!("`{key}` is not a setting of a host: only net.* is")));
    }
    Ok(PathBuf::from("/proc/sys").join(path))
}

/// The local port of a line of /proc/net/tcp whose state is LISTEN (0A).
fn listening_port(line: &str) -> Option<u16> {
    let mut fields = line.split_whitespace().skip(1);
    let (local, _remote, state) = (fields.next()?, fields.next()?, fields.next()?);
    let (_, port) = local.rsplit_once(':')?;
    (state == "0A").then(|| u16::from_str_radix(port, 16).ok())?
}

fn thread_ended() -> io::Error {
    io::Error::other("the host has ended")
}

/// Packets held by the interface before the link reads them. The kernel drops more; the link must
/// never be the bottleneck.
const QUEUE_PACKETS: u32 = 100_000;
