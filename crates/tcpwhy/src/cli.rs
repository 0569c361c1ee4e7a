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

/// How many connections and exchanges the JSON document lists, and how many are kept where all are compared
/// or annotated, at about 1 kB of memory each.
pub(crate) const LISTED_FOR_JSON: u64 = 50_000;
pub(crate) const LISTED_FOR_ALL: u64 = 200_000;

/// Find out where every millisecond of a TCP exchange went, who is responsible, and what to change.
#[derive(Debug, Parser)]
#[command(name = "tcpwhy", version, after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  tcpwhy slow.pcapng                           where did the time go? (short for `tcpwhy read`)
  tcpwhy list slow.pcapng                      which connections are in the capture?
  tcpwhy read slow.pcapng --connection 1       one connection, exchange by exchange
  tcpwhy explain nagle-delayed-ack             what is this, and how do I fix it?
  tcpwhy demo                                  see it find and fix a 40 ms stall on this machine
  tcpwhy lab split                             reproduce a known problem on this kernel

Record a capture with: tcpdump -i any -s 128 -w slow.pcap port 8080";

/// The words of the command line: `tcpwhy FILE` is `tcpwhy read FILE`.
pub(crate) fn words() -> Vec<OsString> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    let is_input = |word: &OsString| {
        let text = word.to_str().unwrap_or_default();
        let is_command = text == "help" || Cli::command().find_subcommand(text).is_some();
        // A word that looks like a file name is taken for one, so that a missing file is reported as such.
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
    /// Analyse captures: where did the time go, who is responsible, what should change?
    Read(ReadArgs),
    /// List the connections in a capture: endpoints, times, cost, top cause.
    List(ListArgs),
    /// Analyse live traffic on an interface.
    Live(LiveArgs),
    /// Show what limits each TCP socket on this machine right now, and who owns it.
    Sockets(SocketsArgs),
    /// Apply a fix to a running system, measure the effect, and revert it if it does not help.
    Fix(FixArgs),
    /// List what `fix` has changed, and revert it.
    Undo(UndoArgs),
    /// Compare two captures, before and after: what got slower or faster, and is it significant?
    Compare(CompareArgs),
    /// Write a Wireshark profile with columns, colours and buttons for `read --annotate`.
    WiresharkProfile(ProfileArgs),
    /// Record the classic 40 ms stall on this machine, diagnose it, fix it, and measure again.
    Demo(DemoArgs),
    /// Reproduce known TCP problems and their fixes on this machine's kernel.
    Lab(LabArgs),
    /// Explain a cause: mechanism, evidence, fixes, sources; without a cause, list them all.
    Explain(ExplainArgs),
    /// Print a shell completion script.
    Completions {
        /// bash, zsh, fish, elvish or powershell
        shell: clap_complete::Shell,
    },
    /// Print the man page of tcpwhy, or of one command.
    Man {
        /// read, list, explain, ...
        command: Option<String>,
    },
}

/// What is read, and how: the same for all commands that read captures.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct InputArgs {
    /// Capture files: pcap or pcapng, optionally compressed (gzip, zstd, xz, lz4); `-` for standard input. Several files are merged by time
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Only matching connections, in pcap-filter syntax: `tcp port 8080`, `host 10.0.0.5`, `net 10/8`, with and, or, not
    #[arg(short, long, value_name = "EXPR", value_parser = parse_filter)]
    pub(crate) filter: Option<Filter>,

    /// Skip packets before this time: 10:00:00, 2026-11-21 10:00 (local time), 2026-11-21T10:00:00Z, seconds since 1970,
    /// +90s (after the first packet) or -5m (before the last; uncompressed files only). Uncompressed files are searched, not
    /// read through
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) from: Option<Moment>,

    /// Skip packets from this time on, in the same formats as --from
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) to: Option<Moment>,

    /// Show times, and read those of --from and --to, in UTC instead of local time
    #[arg(long)]
    pub(crate) utc: bool,

    /// Width of the output in columns [default: the terminal's, between 40 and 200; 100 without a terminal]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(40..=1000))]
    pub(crate) width: Option<u16>,

    /// Print an interim answer at this interval while reading: 10s, 1m
    #[arg(long, value_name = "TIME", value_parser = parse_every)]
    pub(crate) every: Option<std::time::Duration>,

    /// The answers on the way are lines of `tcpwhy live --json`; what is captured is called so
    #[cfg(target_os = "linux")]
    #[arg(long, hide = true, requires = "every", value_name = "NAME")]
    pub(crate) live: Option<String>,

    /// The file that has the same packets as standard input
    #[cfg(target_os = "linux")]
    #[arg(long, hide = true, requires = "live", value_name = "FILE")]
    pub(crate) kept: Option<PathBuf>,

    /// Number of threads; the result does not depend on it [default: one per processor, if that helps]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: Option<u16>,

    /// Memory limit, as in 512MB or 4GB. When it is reached, the least valuable details are dropped first, and counted:
    /// finished connections, the ends of lists, then the connections idle for longest
    #[arg(long, value_name = "SIZE", value_parser = memory, default_value = "1GB")]
    pub(crate) memory: usize,

    /// Maximum number of open connections to track, within --memory
    #[arg(long, value_name = "N")]
    pub(crate) max_connections: Option<NonZeroUsize>,

    /// After opening its files and before reading a byte of them, tcpwhy drops the rights to open, create or remove files,
    /// use sockets, start programs, touch other processes or map executable memory (Linux: Landlock and seccomp)
    #[arg(long, value_enum, value_name = "HOW", default_value_t)]
    pub(crate) sandbox: Sandbox,

    /// Keep all rights; same as --sandbox=off
    #[arg(long, conflicts_with = "sandbox")]
    pub(crate) no_sandbox: bool,

    /// Refuse to decompress beyond this many times the compressed size (1 GiB is always allowed)
    #[arg(long, value_name = "TIMES", default_value_t = input::Options::default().unpacked_ratio_max)]
    pub(crate) max_ratio: u64,

    /// Replace addresses and file names in all output. Prefixes are preserved, and an address maps to the same one everywhere;
    /// times, sizes and ports stay. Packets written by --annotate keep only the headers needed for timing
    #[arg(long)]
    pub(crate) anonymize: bool,

    /// Derive the replacement from this file, so that it is the same in every run [default: a random key]
    #[arg(long, value_name = "FILE", requires = "anonymize")]
    pub(crate) key: Option<PathBuf>,

    /// Also replace ports
    #[arg(long, requires = "anonymize")]
    pub(crate) anonymize_ports: bool,

    /// When to use colours
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    pub(crate) color: Color,

    /// Draw bars and arrows with ASCII characters
    #[arg(long)]
    pub(crate) ascii: bool,

    /// Do not use a pager; the pager is $PAGER, or `less -FRX`
    #[arg(long)]
    pub(crate) no_pager: bool,
}

#[derive(Debug, Args)]
#[command(after_help = READ_EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct ReadArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    /// Print JSON (schema tcpwhy.report/1); same as --format json
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,

    /// Also write the report as a self-contained HTML page that works offline: the answer, the bill, each finding drawn packet
    /// by packet, all exchanges over time. It contains sizes, times and addresses, never payload
    #[arg(long, value_name = "FILE", conflicts_with = "connection")]
    pub(crate) html: Option<PathBuf>,

    /// Also serve the page over HTTP until Ctrl-C; for long captures, it loads the exchanges of the selected time and the packets of
    /// any connection on demand. The URL contains a secret token; the address is on loopback unless another one is given [example:
    /// 127.0.0.1:0]
    #[cfg(unix)]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = crate::serve::address,
        conflicts_with_all = ["connection", "html", "annotate", "json", "every", "show_requests"])]
    pub(crate) serve: Option<std::net::SocketAddr>,

    /// Output format; CSV has one row per exchange and cause
    #[arg(long, value_enum, value_name = "FORM", default_value_t)]
    format: Format,

    /// Also write the packets as pcapng with comments for Wireshark at those that waited or are cited as evidence (see
    /// `tcpwhy wireshark-profile`)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["connection", "from", "to"])]
    pub(crate) annotate: Option<PathBuf>,

    /// Show one connection, exchange by exchange (with -v, packet by packet): its number, `host:port` or `host:port-host:port`;
    /// the most expensive one if several match
    #[arg(short, long, value_name = "WHICH")]
    pub(crate) connection: Option<Which>,

    /// Show one exchange of the connection, packet by packet
    #[arg(short, long, value_name = "N", requires = "connection")]
    pub(crate) exchange: Option<u64>,

    /// Show the N slowest exchanges of the connection, slowest first
    #[arg(long, value_name = "N", requires = "connection", conflicts_with = "exchange")]
    pub(crate) slowest: Option<usize>,

    /// Show what each request asked for (method and path, SQL statement, command), where the protocol is known and the payload was
    /// captured. Reads the input twice. Without this option no payload is shown
    #[arg(long, conflicts_with = "anonymize")]
    pub(crate) show_requests: bool,

    /// Show packets: those of the connection, or of the most expensive exchange
    #[arg(short, long)]
    pub(crate) verbose: bool,

    /// Print only the answer and the bill
    #[arg(long, conflicts_with_all = ["connection", "verbose"])]
    pub(crate) brief: bool,

    /// Show fixes only for these: c, java, go, python, node, rust, nginx, apache, haproxy, redis, postgresql, linux, windows
    #[arg(long, value_name = "STACK", value_delimiter = ',', value_parser = parse_stack)]
    pub(crate) stack: Vec<Stack>,

    /// Show fixes for all stacks [default: the three that fit the server best]
    #[arg(long, conflicts_with = "stack")]
    pub(crate) all_stacks: bool,

    /// Exit with status 3 if a cause exceeds this limit: `rto` (occurs at all), `nagle-delayed-ack>5%` (of the time),
    /// `rto p99>100ms`, `server-think p50>20ms port 8080`; repeatable
    #[arg(long, value_name = "CONDITION")]
    pub(crate) fail_on: Vec<Gate>,

    /// Save the average time per exchange of each service and cause, for --against
    #[arg(long, value_name = "FILE")]
    pub(crate) save_baseline: Option<PathBuf>,

    /// Exit with status 3 if a cause takes longer per exchange of a service (port) than in this baseline
    #[arg(long, value_name = "FILE")]
    pub(crate) against: Option<PathBuf>,

    /// How much longer a cause may take before --against fails
    #[arg(long, value_name = "PERCENT", default_value = "10%", requires = "against")]
    pub(crate) tolerance: Tolerance,
}

/// The output format.
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

    /// Sort order
    #[arg(long, value_enum, value_name = "BY", default_value_t)]
    pub(crate) sort: Sort,

    /// Show at most N connections
    #[arg(long, value_name = "N", default_value = "50")]
    pub(crate) top: NonZeroUsize,

    /// Output format; CSV lists all connections
    #[arg(long, value_name = "FORM", default_value = "text", value_parser = list_format())]
    pub(crate) format: Format,
}

/// No JSON here: the document of `read --json` lists the connections too.
fn list_format() -> impl clap::builder::TypedValueParser<Value = Format> {
    PossibleValuesParser::new(["text", "markdown", "csv"])
        .try_map(|name| <Format as ValueEnum>::from_str(&name, false))
}

/// The order of a list of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sort {
    /// Most time billed first
    #[default]
    Cost,
    /// Earliest first packet first
    Start,
    /// Slowest exchange first
    Slowest,
}

impl InputArgs {
    /// Options of the analysis for this listing.
    pub(crate) fn listing(&self, listing: Listing) -> Options {
        // A secret of this process: the author of a capture must not be able to make connections collide.
        let seed = RandomState::new().hash_one(0);
        let max_connections = self.max_connections.map_or(usize::MAX, NonZeroUsize::get);
        Options { listing, max_connections, memory: self.memory, seed, ..Options::default() }
    }

    /// The part of the captures to read, if not all of it.
    pub(crate) fn window(&self) -> Option<Window> {
        let some = self.from.is_some() || self.to.is_some();
        some.then(|| Window { from: self.from.clone(), to: self.to.clone(), zone: self.zone() })
    }

    /// Threads to use.
    pub(crate) fn threads(&self) -> usize {
        let useful = || std::thread::available_parallelism().map_or(1, |there| there.get().min(USEFUL_MAX));
        self.threads.map_or_else(useful, usize::from)
    }

    /// The time zone for times of day. The system's own is read on the first call, which must come before
    /// rights are given up.
    pub(crate) fn zone(&self) -> Zone {
        static LOCAL: OnceLock<Zone> = OnceLock::new();
        if self.utc { Zone::utc() } else { LOCAL.get_or_init(Zone::local).clone() }
    }

    /// Options of the analysis that keep every exchange.
    pub(crate) fn listing_all(&self) -> Options {
        self.listing(Listing::UpTo(LISTED_FOR_ALL))
    }

    /// How text looks.
    pub(crate) fn style(&self) -> Style {
        Style { color: self.color.is_on(), ascii: self.ascii, width: self.width(), ..Style::default() }
    }

    /// Whether `tcpwhy live` shows the result.
    pub(crate) fn is_live(&self) -> bool {
        self.live().is_some()
    }

    /// What `tcpwhy live` captures.
    pub(crate) fn live(&self) -> Option<&str> {
        #[cfg(target_os = "linux")]
        return self.live.as_deref();
        #[cfg(not(target_os = "linux"))]
        None
    }

    /// The files from which the same packets can be read again; none if standard input was not kept.
    pub(crate) fn kept(&self) -> &[PathBuf] {
        #[cfg(target_os = "linux")]
        if self.live.is_some() {
            return self.kept.as_slice();
        }
        &self.files
    }

    /// Replaces addresses, with `--anonymize`. The first call reads the key and must come before rights are
    /// given up; nothing is replaced if the key cannot be read.
    pub(crate) fn anonymizer(&self) -> std::io::Result<Option<Anonymizer>> {
        static KEY: OnceLock<[u8; 16]> = OnceLock::new();
        if !self.anonymize {
            return Ok(None);
        }
        let key = match (KEY.get(), &self.key) {
            (Some(key), _) => *key,
            (None, Some(file)) => crate::key::of(file)?,
            (None, None) => {
                let chance = RandomState::new();
                anonymize::key_of(&[0, 1].map(|half: u8| chance.hash_one(half).to_le_bytes()).concat())
            }
        };
        Ok(Some(Anonymizer::new(*KEY.get_or_init(|| key), self.anonymize_ports)))
    }

    /// Columns to fill.
    pub(crate) fn width(&self) -> usize {
        self.width.map_or_else(terminal_width, usize::from)
    }

    /// Whether output has a width to fit.
    pub(crate) fn fits(&self) -> bool {
        self.width.is_some() || is_terminal()
    }

    /// How much of the sandbox is required.
    pub(crate) fn sandbox(&self) -> Sandbox {
        if self.no_sandbox { Sandbox::Off } else { self.sandbox }
    }

    /// Limits on reading.
    pub(crate) fn options(&self) -> input::Options {
        input::Options { unpacked_ratio_max: self.max_ratio, ..input::Options::default() }
    }
}

impl ReadArgs {
    /// The output format.
    pub(crate) fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format }
    }

    /// Whether a pager may show it.
    pub(crate) fn is_paged(&self) -> bool {
        self.format() == Format::Text && self.input.every.is_none() && !self.serves()
    }
}

impl ListArgs {
    /// Options of the analysis.
    pub(crate) fn analysis(&self) -> Options {
        self.input.listing(Listing::UpTo(LISTED_FOR_JSON))
    }
}

#[derive(Debug, Args)]
#[command(after_help = DEMO_EXAMPLES)]
pub(crate) struct DemoArgs {
    /// Directory for the captures, the clock readings of the applications and the bills
    #[arg(short, long, value_name = "DIR", default_value = "tcpwhy-demo")]
    pub(crate) out: PathBuf,

    /// When to use colours
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    pub(crate) color: Color,

    /// Draw bars and arrows with ASCII characters
    #[arg(long)]
    pub(crate) ascii: bool,
}

const DEMO_EXAMPLES: &str = "\
A client sends 40 requests over this machine's kernel, each in two writes (20 and 100 bytes), and reads a 64-byte reply. \
Then it does the same with one write per request. Both conversations are captured and analysed.

Examples:
  tcpwhy demo
  tcpwhy demo --out /tmp/stall && tcpwhy read /tmp/stall/split.pcapng --connection 1 --exchange 2";

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// A cause, as named by `tcpwhy read`
    #[arg(value_parser = cause_parser(), hide_possible_values = true)]
    pub(crate) cause: Option<Cause>,

    /// When to use colours
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    pub(crate) color: Color,
}

/// Whether standard output is a terminal with a known size.
pub(crate) fn is_terminal() -> bool {
    terminal_size::terminal_size_of(std::io::stdout()).is_some()
}

/// Columns of the terminal, or 100 without one.
pub(crate) fn terminal_width() -> usize {
    let terminal = terminal_size::terminal_size_of(std::io::stdout());
    terminal.map_or(100, |(width, _)| usize::from(width.0.clamp(40, 200)))
}

/// `10s`, `500ms`, `1m`.
pub(crate) fn parse_every(text: &str) -> Result<std::time::Duration, String> {
    let wrong = || format!("{text}: expected a number with a unit, such as 10s (ms, s, m, h)");
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

/// A stack by its displayed name.
fn parse_stack(text: &str) -> Result<Stack, String> {
    let names = || Stack::ALL.map(|stack| stack.name().to_lowercase()).join(", ");
    let found = Stack::ALL.into_iter().find(|stack| stack.name().eq_ignore_ascii_case(text));
    found.ok_or_else(|| format!("expected one of {}", names()))
}

/// A filter; an error starts on a line of its own, so that the caret is in the right column.
fn parse_filter(text: &str) -> Result<Filter, String> {
    text.parse().map_err(|error| format!("\n{error}"))
}

/// Knows all causes, so that completions offer them and a typo is answered with the nearest one.
fn cause_parser() -> impl clap::builder::TypedValueParser<Value = Cause> {
    PossibleValuesParser::new(Cause::ALL.map(Cause::name)).try_map(|name| name.parse::<Cause>())
}

/// What happens where the system does not have all of the sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sandbox {
    /// Use whatever the kernel supports, and say what is missing; refuse to read without any
    #[default]
    Auto,
    /// Refuse to read unless all of it is available
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
