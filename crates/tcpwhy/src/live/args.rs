//! What can be asked about live traffic, on the command line?

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::cli::{Color, parse_every};
use crate::size::size;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "live capture needs Linux"))]
pub(crate) struct LiveArgs {
    /// Only matching connections, in pcap-filter syntax: `port 8080 and not host 10.0.0.9`. Hosts and ports are filtered in the kernel
    #[arg(value_name = "FILTER")]
    pub(crate) filter: Vec<String>,

    /// Interface; repeatable. One that disappears is captured again when it comes back
    #[arg(short, long, value_name = "NAME", default_value = "any")]
    pub(crate) interface: Vec<String>,

    /// Capture in the network namespace of this process, and only its listening ports and its connections, later ones included
    #[arg(short, long, value_name = "PID")]
    pub(crate) pid: Option<u32>,

    /// Like --pid, for the processes in this container; the beginning of its identifier is enough
    #[arg(long, value_name = "NAME", conflicts_with_all = ["pid", "cgroup"])]
    pub(crate) container: Option<String>,

    /// Like --pid, for the processes in this control group or below it: `nginx.service`, /system.slice/nginx.service
    #[arg(long, value_name = "NAME", conflicts_with = "pid")]
    pub(crate) cgroup: Option<String>,

    /// Capture in this named network namespace (`ip netns`)
    #[arg(long, value_name = "NAME", conflicts_with_all = ["pid", "container", "cgroup"])]
    pub(crate) netns: Option<String>,

    /// Interval between reports
    #[arg(long, value_name = "TIME", value_parser = parse_every, default_value = "1s")]
    pub(crate) every: Duration,

    /// Stop after this long [default: at Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_every)]
    pub(crate) lasting: Option<Duration>,

    /// Also save the packets to this pcapng file
    #[arg(short, long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,

    /// Print one line of JSON per report, and the full JSON document at the end
    #[arg(long)]
    pub(crate) json: bool,

    /// Print lines on a terminal, too, instead of using the whole screen
    #[arg(long, conflicts_with = "json")]
    pub(crate) lines: bool,

    /// How much of the latest traffic the screen keeps, to show connections and to save
    #[arg(long, value_name = "TIME", value_parser = parse_every, default_value = "30s")]
    pub(crate) keep: Duration,

    /// Do not look up the owners and options of this machine's sockets
    #[arg(long)]
    pub(crate) no_sockets: bool,

    /// Bytes to capture of each packet; enough for the headers of messages
    #[arg(long, value_name = "BYTES", default_value = "256", value_parser = clap::value_parser!(u32).range(96..=262_144))]
    pub(crate) snaplen: u32,

    /// Size of the kernel's packet buffer
    #[arg(long, value_name = "SIZE", value_parser = ring, default_value = "64MB")]
    pub(crate) ring: usize,

    /// When to use colours
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    pub(crate) color: Color,
}

/// Size of the kernel's ring.
fn ring(text: &str) -> Result<usize, String> {
    size(text).and_then(|size| {
        if (RING_LEAST..=RING_MOST).contains(&size) {
            Ok(size)
        } else {
            Err("expected a ring size from 1MB to 1GB".to_owned())
        }
    })
}

const RING_LEAST: usize = 1_000_000;
const RING_MOST: usize = 1_000_000_000;

const EXAMPLES: &str = "\
It needs CAP_NET_RAW (setcap cap_net_raw+ep) or root, gives it up once the interface is open, and reads packets in the sandbox of \
`tcpwhy read`. On a terminal it uses the whole screen (? lists the keys), otherwise it prints lines. Ctrl-C ends it with the complete answer.

Examples:
  tcpwhy live port 8080
  tcpwhy live -i eth0 --for 30s --write slow.pcapng port 5432
  tcpwhy live --pid 4242                           what this process waits for
  tcpwhy live --json --for 1m port 8080 | jq -c .findings";
