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
    /// Run your own programs over an emulated path; the other end is 10.77.0.2, also named far-end.
    Shell(ShellArgs),
    /// Record every scenario and check the bills of both ends against the applications' own clocks.
    Accuracy(AccuracyArgs),
    /// Record transfers over random paths and check their bills against path, kernel and application.
    Draws(DrawsArgs),
    /// Record real programs (web servers, databases, runtimes) over emulated paths, if installed.
    Real(RealArgs),
    /// Record the corpus of the repository.
    #[command(hide = true)]
    Corpus(CorpusArgs),
}

#[derive(Debug, Args)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "the laboratory needs Linux"))]
#[expect(clippy::struct_excessive_bools, reason = "switches of a command line")]
pub(crate) struct RunArgs {
    /// Scenarios to run: NAME, NAME@VARIANT, your own FILE.toml, `all` for the table of reference cases, or `case-a` to
    /// `case-e` for part of it; without one, lists them
    #[arg(value_name = "SCENARIO")]
    pub(crate) names: Vec<String>,

    /// Keep client.pcapng, server.pcapng and truth.json of every run in this directory
    #[arg(short, long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,

    /// Override settings: `delay=20ms,rate=100mbit,rcvbuf=65536`; prefix one with `client.` or `server.` for one host
    #[arg(short, long, value_name = "NAME=VALUE", value_delimiter = ',')]
    pub(crate) set: Vec<String>,

    /// Run each form N times and report median and spread
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeat: u32,

    /// Seed of the path's random elements; repeated runs count up from it
    #[arg(long)]
    pub(crate) seed: Option<u64>,

    /// Include all variants; with `all`, also scenarios beyond the reference cases
    #[arg(long)]
    pub(crate) every: bool,

    /// Print JSON (schema tcpwhy.lab/1)
    #[arg(long)]
    pub(crate) json: bool,

    /// Print the table as Markdown
    #[arg(long, hide = true, conflicts_with = "json")]
    pub(crate) markdown: bool,

    /// With `all` or a case: also update the table in this Markdown file
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,

    /// When to use colours
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    pub(crate) color: Color,

    /// Draw bars with ASCII characters
    #[arg(long)]
    pub(crate) ascii: bool,
}

const LAB_EXAMPLES: &str = "\
Examples:
  tcpwhy lab                                      which problems can be reproduced?
  tcpwhy lab split                                reproduce one on this kernel, with its fixes
  tcpwhy lab split@rtt-26 --repeat 5              one of its variants, five times
  tcpwhy lab d-rcvbuf --set delay=20ms,rcvbuf=65536 --keep out
  tcpwhy lab all                                  table: theory, reported, measured here, after the fix
  tcpwhy lab shell --delay 20ms --rate 100mbit --far 'nginx -g \"daemon off;\"' -- curl http://far-end/

Hosts are network namespaces and the path between them is a process, so nothing is left behind, even after kill -9.";

#[derive(Debug, Args)]
#[command(after_help = SHELL_EXAMPLES)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "the laboratory needs Linux"))]
pub(crate) struct ShellArgs {
    /// One-way delay: 20ms gives a round trip of 40 ms
    #[arg(short, long, value_name = "TIME", default_value = "0")]
    pub(crate) delay: String,

    /// Bandwidth in each direction: `100mbit`
    #[arg(short, long, value_name = "RATE")]
    pub(crate) rate: Option<String>,

    /// Queue size at the bottleneck: `64k`, `100p` (packets), `50ms`
    #[arg(short, long, value_name = "SIZE", requires = "rate")]
    pub(crate) queue: Option<String>,

    /// Random loss in each direction: `1%`
    #[arg(short, long, value_name = "SHARE")]
    pub(crate) loss: Option<String>,

    /// Additional random delay in each direction: `5ms`
    #[arg(short, long, value_name = "TIME")]
    pub(crate) jitter: Option<String>,

    /// Another path element from the near end to the far end (docs/scenarios.md); repeatable
    #[arg(long, value_name = "ELEMENT")]
    pub(crate) forward: Vec<String>,

    /// Another path element from the far end to the near end; repeatable
    #[arg(long, value_name = "ELEMENT")]
    pub(crate) backward: Vec<String>,

    /// Seed of the random elements
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,

    /// Congestion control at both ends
    #[arg(long, value_name = "NAME")]
    pub(crate) congestion: Option<String>,

    /// Sysctl at the near end: `net.ipv4.tcp_rmem=4096 65536 65536`; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) near_sysctl: Vec<String>,

    /// Sysctl at the far end; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) far_sysctl: Vec<String>,

    /// Shell command that starts a server at the far end
    #[arg(short, long, value_name = "COMMAND")]
    pub(crate) far: Option<String>,

    /// Capture at both ends, to near.pcapng and far.pcapng in this directory
    #[arg(short, long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,

    /// Command to run at the near end [default: your shell]
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

const SHELL_EXAMPLES: &str = "\
Examples:
  tcpwhy lab shell --delay 20ms --rate 100mbit --far 'python3 -m http.server 80' -- curl -s http://far-end/
  tcpwhy lab shell --delay 13ms --near-sysctl 'net.ipv4.tcp_rmem=4096 65536 65536' --keep out \\
      --far 'nginx -p . -c files.conf' -- curl -so /dev/null http://far-end/big.bin && tcpwhy read out/near.pcapng
  tcpwhy lab shell --loss 1%                      an interactive shell at the near end

The near end is 10.77.0.1 (near-end), the far end 10.77.0.2 (far-end, also in $FAR_END). The file system is shared.";

#[derive(Debug, Args)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "the laboratory needs Linux"))]
pub(crate) struct AccuracyArgs {
    /// Only these scenarios in all forms; NAME@VARIANT for one form
    #[arg(value_name = "SCENARIO")]
    pub(crate) names: Vec<String>,

    /// Also write the tables to this file, as Markdown
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,

    /// Keep the recordings in this directory
    #[arg(short, long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,

    /// Print the bill and the truth of every exchange that is wrong
    #[arg(long)]
    pub(crate) bills: bool,

    /// Only part of the forms, such as the second of five: `2/5`; --from evaluates all parts together
    #[arg(long, value_name = "I/N")]
    pub(crate) part: Option<Part>,

    /// Record only what is not yet in the directory given by --keep
    #[arg(long, requires = "keep")]
    pub(crate) resume: bool,

    /// Evaluate the recordings of an earlier run in this directory instead of recording
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
    /// Whether the form at this index, from 0, belongs to it. Neighbours fall into different parts,
    /// so that the parts take about the same time.
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
            _ => Err("expected a part such as 2/5, the second of five".to_owned()),
        }
    }
}

#[derive(Debug, Args)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "the laboratory needs Linux"))]
pub(crate) struct DrawsArgs {
    /// Seed of all draws
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,

    /// Number of draws
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) count: u64,

    /// Number of the first draw
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) first: u64,

    /// Print both bills and the truth of every exchange that is wrong
    #[arg(long)]
    pub(crate) bills: bool,

    /// Keep the recordings in this directory
    #[arg(short, long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,

    /// Evaluate the recordings of an earlier run with the same seed in this directory instead of recording
    #[arg(long, value_name = "DIR", conflicts_with = "keep")]
    pub(crate) from: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "the laboratory needs Linux"))]
pub(crate) struct CorpusArgs {
    /// Where the recordings go, a folder each; the program zstd compresses them
    pub(crate) dir: PathBuf,

    /// Only these scenarios in all forms; NAME@VARIANT for one form
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

    /// Keep the recordings in this directory
    #[arg(short, long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,

    /// Write them small, for the repository, into this directory
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) corpus: Option<PathBuf>,
}
