//! What can be asked on the command line? One definition for the parser, the help, the man page and the completions.

use std::ffi::OsString;
use std::hash::{BuildHasher as _, RandomState};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use tcpwhy::input::{self, Moment, Window, Zone};
use tcpwhy::threads::USEFUL_MAX;
use tcpwhy_core::{Cause, Listing, Options};
use tcpwhy_remedy::Stack;
use tcpwhy_report::Style;
use tcpwhy_wire::{Anonymizer, Filter, anonymize};

use crate::baseline::Tolerance;
use crate::compare::CompareArgs;
use crate::examples::{LIST_EXAMPLES, READ_EXAMPLES};
use crate::fix::{FixArgs, UndoArgs};
use crate::gate::Gate;
use crate::lab::LabArgs;
use crate::live::LiveArgs;
use crate::profile::ProfileArgs;
use crate::size::memory;
use crate::sockets::SocketsArgs;
use crate::which::Which;

/// Connections and exchanges listed one by one in the JSON document; where all are compared or annotated, some 1 kB of memory each.
pub(crate) const LISTED_FOR_JSON: u64 = 50_000;
pub(crate) const LISTED_FOR_ALL: u64 = 200_000;

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
  tcpwhy read slow.pcapng                      where did the time go? (`tcpwhy slow.pcapng` is the same)
  tcpwhy list slow.pcapng                      which connections are there?
  tcpwhy read slow.pcapng --connection 1       one connection, exchange by exchange
  tcpwhy explain nagle-delayed-ack             what is this, and how is it fixed?
  tcpwhy lab split                             recreate a problem on this kernel, and fix it

Record a capture with: tcpdump -i any -s 128 -w slow.pcap port 8080";

/// The words of the command line: `tcpwhy FILE` is `tcpwhy read FILE`.
pub(crate) fn words() -> Vec<OsString> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    let is_input = |word: &OsString| {
        let text = word.to_str().unwrap_or_default();
        let is_command = text == "help" || Cli::command().find_subcommand(text).is_some();
        // What looks like a file's name is said to be missing where it is.
        let is_named = text == "-" || (!text.starts_with('-') && text.contains(['.', '/']));
        !is_command && (is_named || Path::new(word).is_file())
    };
    if words.get(1).is_some_and(is_input) {
        words.insert(1, "read".into());
    }
    words
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Bill captures: where did the time go, whose is it, what should be changed?
    Read(ReadArgs),
    /// List connections, a line each: ends, times, what they took and what most of it was.
    List(ListArgs),
    /// Bill what passes an interface now, as it passes.
    Live(LiveArgs),
    /// Ask the running sockets of this machine: what limits each now, whose is it, which options are set?
    Sockets(SocketsArgs),
    /// Change a running system, measure whether it helps, and take it back where it does not.
    Fix(FixArgs),
    /// List what `fix` has changed, and take it back.
    Undo(UndoArgs),
    /// Compare two captures: what came, what went, and is it more than chance?
    Compare(CompareArgs),
    /// Write a profile for Wireshark: columns, colours and buttons for what `read --annotate` says.
    WiresharkProfile(ProfileArgs),
    /// Record the classic 40 ms stall on this machine, bill it, fix it, bill it again.
    Demo(DemoArgs),
    /// Recreate a problem on this machine's own kernel, with the truth beside it, and its fixes.
    Lab(LabArgs),
    /// Explain a cause: mechanism, proof, fixes, commands; without a cause, list them all.
    Explain(ExplainArgs),
    /// Print the completion script of a shell.
    Completions {
        /// bash, zsh, fish, elvish or powershell
        shell: clap_complete::Shell,
    },
    /// Print the man page of tcpwhy, or of one of its commands.
    Man {
        /// read, list, explain, ...
        command: Option<String>,
    },
}

/// What is read, and how: the same for all commands that read captures.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct InputArgs {
    /// Captures: pcap or pcapng, plain, .gz, .zst, .xz or .lz4; `-` for standard input. Several are read in order of time
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Only these connections, as tcpdump writes it: `tcp port 8080`, `host 10.0.0.5`, `net 10/8`, with and, or, not
    #[arg(short, long, value_name = "EXPR", value_parser = parse_filter)]
    pub(crate) filter: Option<Filter>,

    /// Only packets of this time or later: 10:00:00, 2026-11-21 10:00 (local), 2026-11-21T10:00:00Z, seconds since 1970, +90s
    /// (after the first packet), -5m (before the last; plain files only). Plain files are searched for it, others read and
    /// passed over
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) from: Option<Moment>,

    /// Only packets before this time, written as for --from; reading stops a second behind it
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) to: Option<Moment>,

    /// Times of day in UTC instead of this machine's zone: those that are shown, and those of --from and --to
    #[arg(long)]
    pub(crate) utc: bool,

    /// Columns of the text [default: the terminal's, from 40 to 200; 100 where there is none]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(40..=1000))]
    pub(crate) width: Option<u16>,

    /// Print an answer of what was read so far so often, as it comes in: 10s, 1m
    #[arg(long, value_name = "TIME", value_parser = parse_every)]
    pub(crate) every: Option<std::time::Duration>,

    /// The answers on the way are lines of `tcpwhy live --json`
    #[cfg(target_os = "linux")]
    #[arg(long, hide = true, requires = "every")]
    pub(crate) live: bool,

    /// Threads; the result is the same with any number [default: one for each processor, as far as they help]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: Option<u16>,

    /// Memory that all of it may take, as in 512MB or 4GB, whatever the captures. Beyond it the least valuable is given up
    /// first, and counted: finished connections, packets and exchanges at the end of a list, those that spoke longest ago
    #[arg(long, value_name = "SIZE", value_parser = memory, default_value = "512MB")]
    pub(crate) memory: usize,

    /// Open connections kept at most, where --memory has room for more
    #[arg(long, value_name = "N")]
    pub(crate) max_connections: Option<NonZeroUsize>,

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

    /// Replace addresses and names of files in all that is written: networks stay networks, and one address is the same everywhere; times,
    /// sizes and ports stay. Of packets (--annotate) only headers that timing needs are kept
    #[arg(long)]
    pub(crate) anonymize: bool,

    /// Replace them alike whenever this file's bytes are the same; without it each run has a key of its own
    #[arg(long, value_name = "FILE", requires = "anonymize")]
    pub(crate) key: Option<PathBuf>,

    /// Replace ports as well
    #[arg(long, requires = "anonymize")]
    pub(crate) anonymize_ports: bool,

    /// Colours
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    pub(crate) color: Color,

    /// Bars and arrows from ASCII characters
    #[arg(long)]
    pub(crate) ascii: bool,

    /// Do not show by pages what is longer than the screen (`PAGER=cat` says the same; without PAGER it is less -FRX)
    #[arg(long)]
    pub(crate) no_pager: bool,
}

#[derive(Debug, Args)]
#[command(after_help = READ_EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct ReadArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    /// Print the JSON document (schema tcpwhy.report/1) instead of text; the same as --format json
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,

    /// Also write the report as one page that opens in any browser, offline: the answer, the bill, each finding drawn packet by packet,
    /// all exchanges over time. Nothing of the capture but sizes, times and addresses is in it
    #[arg(long, value_name = "FILE", conflicts_with = "connection")]
    pub(crate) html: Option<PathBuf>,

    /// Also show the page by HTTP until Ctrl-C: of long captures, it asks for the exchanges of what is zoomed into, and for the packets of any
    /// connection. The address has a secret word in it; an address of loopback, unless another one is given [example: 127.0.0.1:0]
    #[cfg(unix)]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = crate::serve::address,
        conflicts_with_all = ["connection", "html", "annotate", "json", "every", "show_requests"])]
    pub(crate) serve: Option<std::net::SocketAddr>,

    /// Text for a terminal, Markdown for an issue, JSON, or CSV: a row for each line of each exchange's bill
    #[arg(long, value_enum, value_name = "FORM", default_value_t)]
    format: Format,

    /// Also write the same packets as pcapng, with comments that Wireshark shows beside those that the text cites and those that
    /// waited (`tcpwhy wireshark-profile` has columns, colours and buttons for them)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["connection", "from", "to"])]
    pub(crate) annotate: Option<PathBuf>,

    /// Show this connection, exchange by exchange (with -v: packet by packet): its number, `host:port` of an end, or
    /// `host:port-host:port`; of several, the most expensive
    #[arg(short, long, value_name = "WHICH")]
    pub(crate) connection: Option<Which>,

    /// Show this exchange of the connection, packet by packet
    #[arg(short, long, value_name = "N", requires = "connection")]
    pub(crate) exchange: Option<u64>,

    /// Of the connection, show the so many slowest exchanges, the slowest first
    #[arg(long, value_name = "N", requires = "connection", conflicts_with = "exchange")]
    pub(crate) slowest: Option<usize>,

    /// Say what was asked, as far as protocols are read and payload was captured: method and path, statement, command; in text, Markdown
    /// and JSON, by kind of question and in lists of exchanges. Reads the input twice. Without it nothing of what was said is shown
    #[arg(long, conflicts_with = "anonymize")]
    pub(crate) show_requests: bool,

    /// Show packets: of the connection, or of the most expensive exchange
    #[arg(short, long)]
    pub(crate) verbose: bool,

    /// The answer and the bill only
    #[arg(long, conflicts_with_all = ["connection", "verbose"])]
    pub(crate) brief: bool,

    /// Tell fixes in the words of these only: c, java, go, python, node, rust, nginx, apache, haproxy, redis, postgresql, linux,
    /// windows
    #[arg(long, value_name = "STACK", value_delimiter = ',', value_parser = parse_stack)]
    pub(crate) stack: Vec<Stack>,

    /// Tell the fix in the words of all of them; without this, of the three that fit the server best
    #[arg(long, conflicts_with = "stack")]
    pub(crate) all_stacks: bool,

    /// Exit with 3 where a cause takes more than this share of the time, or its waits are longer: `rto`,
    /// `nagle-delayed-ack>5%`, `rto p99>100ms`, `server-think p50>20ms port 8080`; repeatable
    #[arg(long, value_name = "CONDITION")]
    pub(crate) fail_on: Vec<Gate>,

    /// Write down what each service and cause takes of an exchange, for --against
    #[arg(long, value_name = "FILE")]
    pub(crate) save_baseline: Option<PathBuf>,

    /// Exit with 3 where a cause takes longer of an exchange of the same service (port) than it did when this was saved
    #[arg(long, value_name = "FILE")]
    pub(crate) against: Option<PathBuf>,

    /// How much longer it may take
    #[arg(long, value_name = "PERCENT", default_value = "10%", requires = "against")]
    pub(crate) tolerance: Tolerance,
}

/// What the answer is written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For a terminal
    #[default]
    Text,
    /// For an issue or a page
    Markdown,
    /// For programs
    Json,
    /// For spreadsheets
    Csv,
}

#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    /// What comes first: the connections that took most of the time, the earliest, or those with the slowest exchange
    #[arg(long, value_enum, value_name = "BY", default_value_t)]
    pub(crate) sort: Sort,

    /// Show so many
    #[arg(long, value_name = "N", default_value = "50")]
    pub(crate) top: NonZeroUsize,

    /// Text for a terminal, Markdown, or CSV with all connections
    #[arg(long, value_name = "FORM", default_value = "text", value_parser = list_format())]
    pub(crate) format: Format,
}

/// The document of `read --json` has the connections too.
fn list_format() -> impl clap::builder::TypedValueParser<Value = Format> {
    PossibleValuesParser::new(["text", "markdown", "csv"])
        .try_map(|name| <Format as ValueEnum>::from_str(&name, false))
}

/// The order of a list of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sort {
    /// By the time billed
    #[default]
    Cost,
    /// By the first packet
    Start,
    /// By the slowest exchange
    Slowest,
}

impl InputArgs {
    /// What the analysis has to keep.
    pub(crate) fn listing(&self, listing: Listing) -> Options {
        // A secret of this process: whoever made the capture must not know which of its connections collide.
        let seed = RandomState::new().hash_one(0);
        let max_connections = self.max_connections.map_or(usize::MAX, NonZeroUsize::get);
        Options { listing, max_connections, memory: self.memory, seed, ..Options::default() }
    }

    /// The part of the captures to read, where it is not all.
    pub(crate) fn window(&self) -> Option<Window> {
        let some = self.from.is_some() || self.to.is_some();
        some.then(|| Window { from: self.from.clone(), to: self.to.clone(), zone: self.zone() })
    }

    /// Threads to use.
    pub(crate) fn threads(&self) -> usize {
        let useful = || std::thread::available_parallelism().map_or(1, |there| there.get().min(USEFUL_MAX));
        self.threads.map_or_else(useful, usize::from)
    }

    /// The zone of times of day. The system is asked for its own, which it must be before rights are given up.
    pub(crate) fn zone(&self) -> Zone {
        static LOCAL: OnceLock<Zone> = OnceLock::new();
        if self.utc { Zone::utc() } else { LOCAL.get_or_init(Zone::local).clone() }
    }

    /// What the analysis has to keep of every exchange.
    pub(crate) fn listing_all(&self) -> Options {
        self.listing(Listing::UpTo(LISTED_FOR_ALL))
    }

    /// How text looks.
    pub(crate) fn style(&self) -> Style {
        Style { color: self.color.is_on(), ascii: self.ascii, width: self.width(), ..Style::default() }
    }

    /// Whether `tcpwhy live` shows what is read.
    pub(crate) fn is_live(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.live;
        #[cfg(not(target_os = "linux"))]
        false
    }

    /// What replaces addresses, where they are to be replaced. The key is read by the first call, which must be before rights are given
    /// up; nothing is replaced where it cannot be.
    pub(crate) fn anonymizer(&self) -> std::io::Result<Option<Anonymizer>> {
        static KEY: OnceLock<[u8; 16]> = OnceLock::new();
        if !self.anonymize {
            return Ok(None);
        }
        let key = match (KEY.get(), &self.key) {
            (Some(key), _) => *key,
            (None, Some(file)) => anonymize::key_of(&std::fs::read(file)?),
            (None, None) => {
                let chance = RandomState::new();
                anonymize::key_of(&[0, 1].map(|half: u8| chance.hash_one(half).to_le_bytes()).concat())
            }
        };
        Ok(Some(Anonymizer::new(*KEY.get_or_init(|| key), self.anonymize_ports)))
    }

    /// Columns to fill.
    pub(crate) fn width(&self) -> usize {
        let terminal = || {
            terminal_size::terminal_size_of(std::io::stdout())
                .map_or(100, |(width, _)| width.0.clamp(40, 200))
        };
        usize::from(self.width.unwrap_or_else(terminal))
    }

    /// How much of the sandbox has to be there.
    pub(crate) fn sandbox(&self) -> Sandbox {
        if self.no_sandbox { Sandbox::Off } else { self.sandbox }
    }

    /// Bounds on reading.
    pub(crate) fn options(&self) -> input::Options {
        input::Options { unpacked_ratio_max: self.max_ratio, ..input::Options::default() }
    }
}

impl ReadArgs {
    /// What the answer is written in.
    pub(crate) fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format }
    }

    /// Whether it may be shown by pages.
    pub(crate) fn is_paged(&self) -> bool {
        self.format() == Format::Text && self.input.every.is_none() && !self.serves()
    }
}

impl ListArgs {
    /// What the analysis has to keep.
    pub(crate) fn analysis(&self) -> Options {
        self.input.listing(Listing::UpTo(LISTED_FOR_JSON))
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

/// `10s`, `500ms`, `1m`.
pub(crate) fn parse_every(text: &str) -> Result<std::time::Duration, String> {
    let wrong = || format!("{text}: a time is a number with its unit, as in 10s (ms, s, m, h)");
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
    let (number, unit) = text.split_at(unit_at);
    let second = match unit.trim() {
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3_600.0,
        _ => return Err(wrong()),
    };
    let seconds = number.parse::<f64>().map_err(|_| wrong())? * second;
    let every = std::time::Duration::try_from_secs_f64(seconds).map_err(|_| wrong())?;
    if every.is_zero() { Err(wrong()) } else { Ok(every) }
}

/// A stack by the name that is shown.
fn parse_stack(text: &str) -> Result<Stack, String> {
    let names = || Stack::ALL.map(|stack| stack.name().to_lowercase()).join(", ");
    let found = Stack::ALL.into_iter().find(|stack| stack.name().eq_ignore_ascii_case(text));
    found.ok_or_else(|| format!("it is none of {}", names()))
}

/// A filter; what is wrong with it stands on lines of its own, so that the caret is where it belongs.
fn parse_filter(text: &str) -> Result<Filter, String> {
    text.parse().map_err(|error| format!("\n{error}"))
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
