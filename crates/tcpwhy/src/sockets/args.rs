//! What can be asked of the running sockets on the command line?

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
    /// Only these, as tcpdump writes it: `port 8080 and host 10.0.0.5`; `src` is this end, `dst` the other. Or as ss does:
    /// `state established dport = :443`
    #[arg(value_name = "FILTER", trailing_var_arg = true)]
    filter: Vec<String>,

    /// Only in this state; repeatable [default: those that are connected]
    #[arg(long, value_enum, value_name = "STATE", conflicts_with = "listen")]
    pub(crate) state: Vec<StateName>,

    /// Only those of this process
    #[arg(short, long, value_name = "PID")]
    pub(crate) pid: Option<u32>,

    /// Only those of processes with this name, or in this container
    #[arg(long, value_name = "NAME", conflicts_with = "pid")]
    pub(crate) process: Option<String>,

    /// Listening sockets: how many connections wait to be accepted, what overflowed, SYN cookies
    #[arg(short, long)]
    pub(crate) listen: bool,

    /// In the network namespace of this process, or the one that `ip netns` gave this name
    #[arg(long, value_name = "PID|NAME", conflicts_with = "all_netns")]
    pub(crate) netns: Option<String>,

    /// In all network namespaces that can be entered
    #[arg(long)]
    pub(crate) all_netns: bool,

    /// Time between two looks at the sockets: what is told is what happened in it
    #[arg(long, value_name = "TIME", value_parser = parse_every, default_value = "1s")]
    pub(crate) every: Duration,

    /// Look on for so long, and tell after each look
    #[arg(long = "for", value_name = "TIME", value_parser = parse_every)]
    pub(crate) lasting: Option<Duration>,

    /// Look once: what is told is of the whole life of each connection
    #[arg(long, conflicts_with_all = ["lasting", "every"])]
    pub(crate) once: bool,

    /// Those that have nothing to do as well
    #[arg(short, long)]
    pub(crate) all: bool,

    /// Show so many, the worst first
    #[arg(long, value_name = "N", default_value = "50")]
    pub(crate) top: NonZeroUsize,

    /// The evidence, and the options of each socket
    #[arg(short, long)]
    pub(crate) verbose: bool,

    /// One JSON document a look, in a line
    #[arg(long)]
    pub(crate) json: bool,

    /// Answer `tcpwhy live`, which gives addresses on standard input
    #[arg(long, hide = true)]
    pub(crate) facts: bool,

    /// Colours
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    pub(crate) color: Color,
}

const EXAMPLES: &str = "\
The kernel is asked by netlink, and options of sockets by copies of their descriptors, where that is permitted: root sees all, others
see what is theirs. Nothing is changed.

Examples:
  tcpwhy sockets                                   what limits which connection now?
  tcpwhy sockets -v dst port 5432                  those to PostgreSQL, with the evidence
  tcpwhy sockets state established dport = :443    as ss would be asked
  tcpwhy sockets --pid 4242 --every 200ms --for 5s
  tcpwhy sockets --process java --all              also those that have nothing to do
  tcpwhy sockets --listen                          who does not accept fast enough?
  tcpwhy sockets --all-netns --json                containers too, for programs";

/// A state as `ss` writes it in its filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "kebab-case")]
pub(crate) enum StateName {
    /// Both ends may send
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
    /// The filter, where there is one, and the states that it names.
    pub(crate) fn filter(&self) -> Result<(Option<Filter>, Vec<StateName>), String> {
        let (states, text) = super::ss::translated(&self.filter.join(" "));
        // `ss` has names for groups of them; those that are shown without any are `connected`.
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
