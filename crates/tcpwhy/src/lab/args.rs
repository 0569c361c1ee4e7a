//! What can be asked of the laboratory on the command line?

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand};

use crate::cli::Color;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = LAB_EXAMPLES)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "the laboratory needs Linux"))]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    pub(crate) command: Option<LabCommand>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

#[derive(Debug, Subcommand)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "the laboratory needs Linux"))]
pub(crate) enum LabCommand {
    /// Run any program at the near end of a path, with the other end at 10.77.0.2 and by the name far-end.
    Shell(ShellArgs),
    /// Record every scenario afresh and judge the bills of both ends by the applications' own clocks.
    Accuracy(AccuracyArgs),
    /// Record transfers over paths drawn at random and judge their bills by what path, kernels and applications say.
    Draws(DrawsArgs),
    /// Record real programs over such a path: web servers, databases, runtimes, as far as they are installed.
    Real(RealArgs),
    /// Record the corpus of the repository.
    #[command(hide = true)]
    Corpus(CorpusArgs),
}

#[derive(Debug, Args)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "the laboratory needs Linux"))]
#[expect(clippy::struct_excessive_bools, reason = "switches of a command line")]
pub(crate) struct RunArgs {
    /// Scenarios, variants of them (NAME@VARIANT), files of your own (FILE.toml), `all` for the table of the reference
    /// cases, or `case-a` to `case-e` for a part of it; without one, lists them
    #[arg(value_name = "SCENARIO")]
    pub(crate) names: Vec<String>,

    /// Leave client.pcapng, server.pcapng and truth.json of every run below this directory
    #[arg(short, long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,

    /// Settings that differ: `delay=20ms,rate=100mbit,rcvbuf=65536`; `client.` or `server.` before one for one host
    #[arg(short, long, value_name = "NAME=VALUE", value_delimiter = ',')]
    pub(crate) set: Vec<String>,

    /// Run each form this often: median and spread over the runs
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeat: u32,

    /// Seed of the path's random elements; the second run of a form takes the next one
    #[arg(long)]
    pub(crate) seed: Option<u64>,

    /// Every variant as well; with `all`, the scenarios beyond the reference cases as well
    #[arg(long)]
    pub(crate) every: bool,

    /// Print one JSON document (tcpwhy.lab/1) instead of text
    #[arg(long)]
    pub(crate) json: bool,

    /// Print the table as Markdown
    #[arg(long, hide = true, conflicts_with = "json")]
    pub(crate) markdown: bool,

    /// With `all` or a case: put the table between the marks of this Markdown file as well
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,

    /// Colours
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    pub(crate) color: Color,

    /// Bars from ASCII characters
    #[arg(long)]
    pub(crate) ascii: bool,
}

const LAB_EXAMPLES: &str = "\
Examples:
  tcpwhy lab                                      which problems can be recreated?
  tcpwhy lab split                                recreate one on this kernel, and its fixes
  tcpwhy lab split@rtt-26 --repeat 5              a variant of it, five times
  tcpwhy lab d-rcvbuf --set delay=20ms,rcvbuf=65536 --keep out
  tcpwhy lab all                                  theory, reported, measured here, after the fix
  tcpwhy lab shell --delay 20ms --rate 100mbit --far 'nginx -g \"daemon off;\"' -- curl http://far-end/

Hosts are network namespaces, the path between them is a process: nothing is left behind, whatever ends it.";

#[derive(Debug, Args)]
#[command(after_help = SHELL_EXAMPLES)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "the laboratory needs Linux"))]
pub(crate) struct ShellArgs {
    /// Delay of each direction: 20ms makes a round trip of 40 ms
    #[arg(short, long, value_name = "TIME", default_value = "0")]
    pub(crate) delay: String,

    /// Rate of each direction: `100mbit`
    #[arg(short, long, value_name = "RATE")]
    pub(crate) rate: Option<String>,

    /// The queue before that rate: `64k`, `100p`, `50ms`
    #[arg(short, long, value_name = "SIZE", requires = "rate")]
    pub(crate) queue: Option<String>,

    /// Random loss in each direction: `1%`
    #[arg(short, long, value_name = "SHARE")]
    pub(crate) loss: Option<String>,

    /// Random delay on top, in each direction: `5ms`
    #[arg(short, long, value_name = "TIME")]
    pub(crate) jitter: Option<String>,

    /// Any other element from the near end to the far end (docs/scenarios.md); repeatable
    #[arg(long, value_name = "ELEMENT")]
    pub(crate) forward: Vec<String>,

    /// Any other element from the far end to the near end; repeatable
    #[arg(long, value_name = "ELEMENT")]
    pub(crate) backward: Vec<String>,

    /// Seed of the random elements
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,

    /// Congestion control of both ends
    #[arg(long, value_name = "NAME")]
    pub(crate) congestion: Option<String>,

    /// A setting of the near end, as sysctl names it: `net.ipv4.tcp_rmem=4096 65536 65536`; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) near_sysctl: Vec<String>,

    /// A setting of the far end; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) far_sysctl: Vec<String>,

    /// A server to start at the far end, as a shell takes it
    #[arg(short, long, value_name = "COMMAND")]
    pub(crate) far: Option<String>,

    /// Capture at both ends: near.pcapng and far.pcapng in this directory
    #[arg(short, long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,

    /// What to run at the near end; without it, your shell
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

const SHELL_EXAMPLES: &str = "\
Examples:
  tcpwhy lab shell --delay 20ms --rate 100mbit --far 'python3 -m http.server 80' -- curl -s http://far-end/
  tcpwhy lab shell --delay 13ms --near-sysctl 'net.ipv4.tcp_rmem=4096 65536 65536' --keep out \\
      --far 'nginx -p . -c files.conf' -- curl -so /dev/null http://far-end/big.bin && tcpwhy read out/near.pcapng
  tcpwhy lab shell --loss 1%                      an interactive shell at the near end

The near end is 10.77.0.1 (near-end), the far end 10.77.0.2 (far-end, also in $FAR_END). Files are the machine's own.";

#[derive(Debug, Args)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "the laboratory needs Linux"))]
pub(crate) struct AccuracyArgs {
    /// Only these scenarios, in every form; NAME@VARIANT for one form
    #[arg(value_name = "SCENARIO")]
    pub(crate) names: Vec<String>,

    /// Write the tables to this file as well, as Markdown
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,

    /// Leave the recordings below this directory
    #[arg(short, long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,

    /// Print bill and truth of every exchange that is off
    #[arg(long)]
    pub(crate) bills: bool,

    /// Only one part of the forms, for example the second of five: `2/5`; --from judges all parts together
    #[arg(long, value_name = "I/N")]
    pub(crate) part: Option<Part>,

    /// Record only what the directory of --keep does not have yet
    #[arg(long, requires = "keep")]
    pub(crate) resume: bool,

    /// Judge the recordings that an earlier run left below this directory instead of recording afresh
    #[arg(long, value_name = "DIR", conflicts_with = "keep")]
    pub(crate) from: Option<PathBuf>,
}

/// One of several parts, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    n: usize,
    of: usize,
}

impl Part {
    /// Whether the form at this place, counted from 0, belongs to it. Neighbours fall into different parts, so that the
    /// parts take about the same time.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "the laboratory needs Linux"))]
    pub(crate) const fn has(self, place: usize) -> bool {
        place % self.of == self.n - 1
    }
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(n, of)| Some((n.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((n, of)) if (1..=of).contains(&n) => Ok(Self { n, of }),
            _ => Err(format!("`{text}` is no part; write 2/5 for the second of five")),
        }
    }
}

#[derive(Debug, Args)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "the laboratory needs Linux"))]
pub(crate) struct DrawsArgs {
    /// Decides every draw
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,

    /// How many draws
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) count: u64,

    /// Leave out the draws before this one
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) first: u64,

    /// Print both bills and the truth of every exchange that is off
    #[arg(long)]
    pub(crate) bills: bool,

    /// Leave the recordings below this directory
    #[arg(short, long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,

    /// Judge what an earlier run with the same seed left below this directory instead of recording afresh
    #[arg(long, value_name = "DIR", conflicts_with = "keep")]
    pub(crate) from: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "the laboratory needs Linux"))]
pub(crate) struct CorpusArgs {
    /// Where the recordings go, a folder each
    pub(crate) dir: PathBuf,

    /// Only these scenarios, in every form; NAME@VARIANT for one form
    #[arg(value_name = "SCENARIO")]
    pub(crate) names: Vec<String>,

    /// Take what an earlier `lab accuracy --keep DIR` left, where it is good enough
    #[arg(long, value_name = "DIR")]
    pub(crate) from: Option<PathBuf>,

    /// Only what is not there yet
    #[arg(long)]
    pub(crate) missing: bool,

    /// Judge the one recording in the sandbox, and print its truth where it is good enough
    #[arg(long, hide = true, requires = "from")]
    pub(crate) only_judge: bool,
}

#[derive(Debug, Args)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "the laboratory needs Linux"))]
pub(crate) struct RealArgs {
    /// Only these; without a name, all whose programs are installed
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,

    /// List them, with the programs that each needs
    #[arg(long)]
    pub(crate) list: bool,

    /// Leave the recordings below this directory
    #[arg(short, long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,

    /// Write them small, for the repository, into this directory
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) corpus: Option<PathBuf>,
}
