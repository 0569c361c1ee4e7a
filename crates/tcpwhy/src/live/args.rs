//! What can be asked of what passes now, by the command line?

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::cli::{Color, memory, parse_every};

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "live capture needs Linux"))]
pub(crate) struct LiveArgs {
    /// Only these, as tcpdump writes it: `port 8080 and not host 10.0.0.9`. A port, a host or both are left to the kernel, the rest to the
    /// reader
    #[arg(value_name = "FILTER", trailing_var_arg = true)]
    pub(crate) filter: Vec<String>,

    /// The interface
    #[arg(short, long, value_name = "NAME", default_value = "any")]
    pub(crate) interface: String,

    /// In the network namespace of this process, and only what it listens on and whom it is connected to when this starts
    #[arg(short, long, value_name = "PID")]
    pub(crate) pid: Option<u32>,

    /// The same of the processes in this container, by the beginning of its identifier, or in a control group of this name
    #[arg(long, visible_alias = "cgroup", value_name = "NAME", conflicts_with = "pid")]
    pub(crate) container: Option<String>,

    /// In the network namespace that `ip netns` gave this name
    #[arg(long, value_name = "NAME", conflicts_with_all = ["pid", "container"])]
    pub(crate) netns: Option<String>,

    /// Tell so often what is found
    #[arg(long, value_name = "TIME", value_parser = parse_every, default_value = "1s")]
    pub(crate) every: Duration,

    /// End after so long [default: at Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_every)]
    pub(crate) lasting: Option<Duration>,

    /// Write what is captured to this pcapng file as well
    #[arg(short, long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,

    /// A JSON line each time, and the JSON document at the end
    #[arg(long)]
    pub(crate) json: bool,

    /// Bytes kept of each packet: enough for the heads of messages
    #[arg(long, value_name = "BYTES", default_value = "256", value_parser = clap::value_parser!(u32).range(96..=262_144))]
    pub(crate) snaplen: u32,

    /// Memory for packets that have not been read yet
    #[arg(long, value_name = "SIZE", value_parser = memory, default_value = "64MB")]
    pub(crate) ring: usize,

    /// Colours
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    pub(crate) color: Color,
}

const EXAMPLES: &str = "\
It needs CAP_NET_RAW (setcap cap_net_raw+ep) or root, gives it up once the interface is open, and reads packets in the sandbox of
`tcpwhy read`. Ctrl-C ends it with the whole answer.

Examples:
  tcpwhy live port 8080
  tcpwhy live -i eth0 --for 30s --write slow.pcapng port 5432
  tcpwhy live --pid 4242                           what this process waits for
  tcpwhy live --json --for 1m port 8080 | jq -c .findings";
