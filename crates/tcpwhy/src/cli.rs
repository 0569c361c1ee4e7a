//! What can be asked on the command line? One definition for the parser, the help, the man page and the completions.

use std::hash::{BuildHasher as _, RandomState};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, Parser, Subcommand, ValueEnum};
use tcpwhy::input::{self, Moment, Window};
use tcpwhy::threads::USEFUL_MAX;
use tcpwhy_core::{Cause, Listing, Options};
use tcpwhy_wire::Filter;

use crate::gate::Gate;
use crate::lab::LabArgs;

/// Connections and exchanges listed one by one where only the overview is printed.
const LISTED_FOR_TEXT: u64 = 1_000;
/// The same in the JSON document.
const LISTED_FOR_JSON: u64 = 50_000;

/// Says where every millisecond of a TCP exchange went, whose it is, and what one change would save.
#[derive(Debug, Parser)]
#[command(name = "tcpwhy", version, after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  tcpwhy demo                                  see it find a stall, here and now
  tcpwhy read slow.pcapng                      where did the time go?
  tcpwhy read slow.pcapng --connection 1       one connection, exchange by exchange
  tcpwhy explain nagle-delayed-ack             what is this, and how is it mended?
  tcpwhy lab split                             recreate a problem on this kernel, and mend it

Record a capture with: tcpdump -i any -s 128 -w slow.pcap port 8080";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Bill captures: where did the time go, whose is it, what should be changed?
    Read(ReadArgs),
    /// Record the classic 40 ms stall on this machine, bill it, mend it, bill it again.
    Demo(DemoArgs),
    /// Recreate a problem on this machine's own kernel, with the truth beside it, and its mends.
    Lab(LabArgs),
    /// Explain a cause: mechanism, proof, fixes, commands; without a cause, list them all.
    Explain(ExplainArgs),
    /// Print the completion script of a shell.
    #[command(hide = true)]
    Completions {
        /// bash, zsh, fish, elvish or powershell
        shell: clap_complete::Shell,
    },
    /// Print the man page of tcpwhy, or of one of its commands.
    #[command(hide = true)]
    Man {
        /// read or explain
        command: Option<String>,
    },
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[command(after_help = READ_EXAMPLES)]
pub(crate) struct ReadArgs {
    /// Captures: pcap or pcapng, plain, .gz or .zst; `-` for standard input. Several are read in order of time
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Print the JSON document (schema tcpwhy.report/1) instead of text
    #[arg(long)]
    pub(crate) json: bool,

    /// Show this connection, exchange by exchange (with -v: packet by packet)
    #[arg(short, long, value_name = "N")]
    pub(crate) connection: Option<u64>,

    /// Show this exchange of the connection, packet by packet
    #[arg(short, long, value_name = "N", requires = "connection")]
    pub(crate) exchange: Option<u64>,

    /// Show packets: of the connection, or of the most expensive exchange
    #[arg(short, long)]
    pub(crate) verbose: bool,

    /// Only these connections: `port 8080`, `host 10.0.0.5`, `net 10.0.0.0/8`, with and, or, not
    #[arg(short, long, value_name = "EXPR")]
    pub(crate) filter: Option<Filter>,

    /// Only packets of this time or later: 2026-11-21T10:00:00Z, seconds since 1970, +90s (after the first packet), -5m
    /// (before the last; plain files only). Plain files are searched for it, others read and passed over; packets are
    /// numbered from there on
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) from: Option<Moment>,

    /// Only packets before this time, written as for --from; reading stops a second behind it
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) to: Option<Moment>,

    /// Exit with 3 where a cause takes more than this share of the time (`rto`, `nagle-delayed-ack:5%`); repeatable
    #[arg(long, value_name = "CAUSE[:SHARE]")]
    pub(crate) fail_on: Vec<Gate>,

    /// Threads; the result is the same with any number [default: one for each processor, as far as they help]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: Option<u16>,

    /// Open connections kept at most, of some 2 KB each; one with much under way counts for several. Beyond it, the ones
    /// that spoke longest ago are closed, and counted
    #[arg(long, value_name = "N", default_value = "112000")]
    pub(crate) max_connections: NonZeroUsize,

    /// Once the files are open and before a byte of them is read, Landlock and seccomp (Linux) take from the process:
    /// opening, making or removing files, sockets, starting programs, touching other processes, memory as code
    #[arg(long, value_enum, value_name = "HOW", default_value_t)]
    pub(crate) sandbox: Sandbox,

    /// Keep the rights of the user who runs it; the same as --sandbox=off
    #[arg(long, conflicts_with = "sandbox")]
    pub(crate) no_sandbox: bool,

    /// Compressed captures may unpack to so many times their size (and always to 1 GiB); what goes on is taken for a bomb
    #[arg(long, value_name = "TIMES", default_value_t = input::Options::default().unpacked_ratio_max)]
    pub(crate) max_ratio: u64,

    /// Colours
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    pub(crate) color: Color,

    /// Bars and arrows from ASCII characters
    #[arg(long)]
    pub(crate) ascii: bool,
}

const READ_EXAMPLES: &str = "\
Examples:
  tcpwhy read slow.pcapng
  tcpwhy read slow.pcapng --connection 3 --exchange 7      its packets, and what each waited for
  tcpwhy read ring*.pcap.zst --filter 'port 443 and not host 10.0.0.9'
  tcpwhy read huge.pcap --from 2026-11-21T10:00:00Z --to 2026-11-21T10:05:00Z
  ssh server tcpdump -U -s 128 -c 100000 -w - port 8080 | tcpwhy read -
  tcpwhy read ci.pcap --json --fail-on nagle-delayed-ack --fail-on rto:10% > bill.json

Exit status: 0 analysed, 1 no input could be analysed, 2 wrong usage, 3 a --fail-on was met, 4 analysed but for an input
that could not be read at all. The status is the same where nobody reads the output to its end.";

impl ReadArgs {
    /// What the analysis has to keep for what was asked.
    pub(crate) fn analysis(&self) -> Options {
        let most = if self.json { LISTED_FOR_JSON } else { LISTED_FOR_TEXT };
        self.listing(self.connection.map_or(Listing::UpTo(most), Listing::Connection))
    }

    /// The same with another listing.
    pub(crate) fn listing(&self, listing: Listing) -> Options {
        // A secret of this process: whoever made the capture must not know which of its connections collide.
        let seed = RandomState::new().hash_one(0);
        Options { listing, max_connections: self.max_connections.get(), seed, ..Options::default() }
    }

    /// The part of the captures to read, where it is not all.
    pub(crate) fn window(&self) -> Option<Window> {
        let some = self.from.is_some() || self.to.is_some();
        some.then(|| Window { from: self.from.clone(), to: self.to.clone() })
    }

    /// Threads to use.
    pub(crate) fn threads(&self) -> usize {
        let useful = || std::thread::available_parallelism().map_or(1, |there| there.get().min(USEFUL_MAX));
        self.threads.map_or_else(useful, usize::from)
    }

    /// The connection to show, and the exchange of it.
    pub(crate) fn drill_down(&self) -> Option<(u64, Option<u64>)> {
        self.connection.map(|connection| (connection, self.exchange))
    }

    /// How much of the sandbox has to be there.
    pub(crate) fn sandbox(&self) -> Sandbox {
        if self.no_sandbox { Sandbox::Off } else { self.sandbox }
    }

    /// Bounds on reading.
    pub(crate) fn input(&self) -> input::Options {
        input::Options { unpacked_ratio_max: self.max_ratio, ..input::Options::default() }
    }

    /// Whether the packets of the most expensive exchange are wanted, which only a second pass knows.
    pub(crate) fn reads_twice(&self) -> bool {
        self.verbose && !self.json && self.connection.is_none()
    }
}

#[derive(Debug, Args)]
#[command(after_help = DEMO_EXAMPLES)]
pub(crate) struct DemoArgs {
    /// Where to leave the captures, the applications' clock readings and the bills
    #[arg(short, long, value_name = "DIR", default_value = "tcpwhy-demo")]
    pub(crate) out: PathBuf,

    /// Colours
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    pub(crate) color: Color,

    /// Bars and arrows from ASCII characters
    #[arg(long)]
    pub(crate) ascii: bool,
}

const DEMO_EXAMPLES: &str = "\
A client sends each request in two writes, 20 and 100 bytes, and reads a reply of 64 bytes, 40 times over this
machine's own kernel. Then the same client with one write. Both conversations are captured and billed.

Examples:
  tcpwhy demo
  tcpwhy demo --out /tmp/stall && tcpwhy read /tmp/stall/split.pcapng --connection 1 --exchange 2";

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The cause, as `tcpwhy read` names it
    #[arg(value_parser = cause_parser(), hide_possible_values = true)]
    pub(crate) cause: Option<Cause>,

    /// Colours
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    pub(crate) color: Color,
}

/// Knows all causes, so that completions offer them and a slip of the pen is answered with the nearest.
fn cause_parser() -> impl clap::builder::TypedValueParser<Value = Cause> {
    PossibleValuesParser::new(Cause::ALL.map(Cause::name)).try_map(|name| name.parse::<Cause>())
}

/// What happens where the system does not have all of the sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sandbox {
    /// Read with the part that is there, and say so; where none is there, do not read
    #[default]
    Auto,
    /// Do not read unless all of it is there
    Require,
    /// No sandbox
    Off,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Color {
    /// Whether standard output gets colours.
    pub(crate) fn is_on(self) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_cause_can_be_explained_and_no_other() {
        for cause in Cause::ALL {
            assert!(Cli::try_parse_from(["tcpwhy", "explain", cause.name()]).is_ok(), "{cause}");
        }
        assert!(Cli::try_parse_from(["tcpwhy", "explain", "jitter"]).is_err());
    }
}
