//! What can be asked about running sockets on the command line?

use std::num::NonZeroUsize;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tcpwhy_wire::Filter;

use crate::cli::{Color, parse_every};

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "sock_diag needs Linux"))]
#[expect(clippy::struct_excessive_bools, reason = "switches of a command line")]
pub(crate) struct SocketsArgs {
    /// Only matching sockets, in pcap-filter syntax: `port 8080 and host 10.0.0.5`; `src` is the local end, `dst` the remote one. Or as ss does:
    /// `state established dport = :443`
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,

    /// Only sockets in this state; repeatable [default: connected ones]
    #[arg(long, value_enum, value_name = "STATE", conflicts_with = "listen")]
    pub(crate) state: Vec<StateName>,

    /// Only sockets of this process
    #[arg(short, long, value_name = "PID")]
    pub(crate) pid: Option<u32>,

    /// Only sockets of processes with this name, or in this container
    #[arg(long, value_name = "NAME", conflicts_with = "pid")]
    pub(crate) process: Option<String>,

    /// Show listening sockets: accept queues, overflows, SYN cookies
    #[arg(short, long)]
    pub(crate) listen: bool,

    /// Look in this network namespace: that of a process, or one named by `ip netns`
    #[arg(long, value_name = "PID|NAME", conflicts_with = "all_netns")]
    pub(crate) netns: Option<String>,

    /// Look in all network namespaces that can be entered
    #[arg(long)]
    pub(crate) all_netns: bool,

    /// Sampling interval; the report covers what happened within it
    #[arg(long, value_name = "TIME", value_parser = parse_every, default_value = "1s")]
    pub(crate) every: Duration,

    /// Keep sampling for this long, reporting after each interval
    #[arg(long = "for", value_name = "TIME", value_parser = parse_every)]
    pub(crate) lasting: Option<Duration>,

    /// Sample once; the report covers each connection's whole lifetime
    #[arg(long, conflicts_with_all = ["lasting", "every"])]
    pub(crate) once: bool,

    /// Also show idle sockets
    #[arg(short, long)]
    pub(crate) all: bool,

    /// Show at most N sockets, the worst first
    #[arg(long, value_name = "N", default_value = "50")]
    pub(crate) top: NonZeroUsize,

    /// Show the evidence and the options of each socket
    #[arg(short, long)]
    pub(crate) verbose: bool,

    /// Print one line of JSON per sample
    #[arg(long)]
    pub(crate) json: bool,

    /// Answer `tcpwhy live`, which captures in this network namespace and gives addresses on standard input
    #[arg(long, hide = true, value_name = "NUMBER")]
    pub(crate) facts: Option<u64>,

    /// Tell it as well which ends these processes have, when they get others
    #[arg(long, hide = true, value_name = "WHOSE", requires = "facts")]
    pub(crate) facts_of: Option<String>,

    /// When to use colours
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    pub(crate) color: Color,
}

const EXAMPLES: &str = "\
Reads socket state from the kernel (netlink sock_diag) and socket options through duplicated descriptors, as far as permitted: root \
sees everything, other users their own sockets. Nothing is changed.

Examples:
  tcpwhy sockets                                   what limits each connection now?
  tcpwhy sockets -v dst port 5432                  connections to PostgreSQL, with the evidence
  tcpwhy sockets state established dport = :443    a filter as for ss
  tcpwhy sockets --pid 4242 --every 200ms --for 5s
  tcpwhy sockets --process java --all              including idle connections
  tcpwhy sockets --listen                          which server does not accept fast enough?
  tcpwhy sockets --all-netns --json                all containers, as JSON";

/// A state as `ss` writes it in its filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "kebab-case")]
pub(crate) enum StateName {
    /// Open at both ends
    Established,
    /// The SYN has not been answered
    SynSent,
    /// The SYN-ACK has not been acknowledged
    SynRecv,
    /// Closed here, the FIN not acknowledged
    #[value(name = "fin-wait-1")]
    FinWait1,
    /// Closed here
    #[value(name = "fin-wait-2")]
    FinWait2,
    /// Closed on both sides
    TimeWait,
    /// Closed by the peer, not yet here
    CloseWait,
    /// Closed by the peer, then here
    LastAck,
    /// Closed on both sides at once
    Closing,
    /// Waiting for connections
    Listening,
}

impl SocketsArgs {
    /// The filter, if there is one, and the states that it names.
    pub(crate) fn filter(&self) -> Result<(Option<Filter>, Vec<StateName>), String> {
        let (states, text) = super::ss::translated(&self.filter.join(" "));
        // `ss` has names for groups of states; `connected` is the default here.
        let states = states.iter().filter(|name| !["all", "connected"].contains(&name.as_str()));
        let states = states
            .map(|name| StateName::from_str(name, true).map_err(|_| format!("there is no state {name}")));
        let states = states.collect::<Result<_, _>>()?;
        if text.trim().is_empty() {
            return Ok((None, states));
        }
        let filter = text.parse().map_err(|error| format!("the filter cannot be read:\n{error}"))?;
        Ok((Some(filter), states))
    }
}
