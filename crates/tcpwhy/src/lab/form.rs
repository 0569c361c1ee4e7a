//! How is one form of a scenario run? It is recorded on the kernel, then billed from both ends.

use std::borrow::Cow;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration as StdDuration;

use anyhow::Context as _;
use tcpwhy::input::{self, Inputs};
use tcpwhy_core::{Analysis, Listing, Options, Report};
use tcpwhy_lab::scenario::{self, Override, Scenario};
use tcpwhy_lab::truth::Truth;
use tcpwhy_lab::{Pair, open_file, read_file};
use tcpwhy_report::escape::visible;
use tcpwhy_wire::{Duration, Segment};

use super::RunArgs;
use super::clocked::Clocked;
use super::scratch::Scratch;
use super::still::{Lateness, Sent};
use super::trace::Trace;
use crate::output;

/// Limit of a truth's bytes; the longest of the laboratory's have 10 million.
const TRUTH_MAX: u64 = 128 << 20;

/// How often the kernels' counters are read in recordings that are judged by them.
pub(super) const WATCH_EVERY: StdDuration = StdDuration::from_millis(2);

/// A scenario, unchanged or with a fix.
#[derive(Clone, Debug)]
pub(super) struct Form {
    /// `split`, `split@rtt-26`
    pub(super) name: String,
    /// The fix's name and what it does.
    pub(super) fix: Option<(String, String)>,
    overrides: Vec<Override>,
}

/// One run of a form.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) scenario: Scenario,
    pub(super) truth: Truth,
    pub(super) clocked: Clocked,
    /// From the client's and the server's capture.
    pub(super) bills: [Report; 2],
    /// Problems of the run: packets that a capture or the path lost.
    pub(super) warnings: Vec<String>,
    /// By how much the machine made the path late.
    pub(super) late: Duration,
    /// The traffic at the client.
    pub(super) trace: Trace,
    /// Where its files are.
    pub(super) dir: PathBuf,
}

impl Form {
    /// The requested forms: each scenario unchanged, then with each of its fixes.
    pub(super) fn asked(args: &RunArgs) -> Result<Vec<Self>, String> {
        let overrides = overrides(args)?;
        let mut forms = Vec::new();
        for asked in &args.names {
            let stem = asked.split('@').next().unwrap_or_default();
            // The error lists the names that exist.
            let entry = scenario::entry(stem).map_err(|error| error.to_string())?;
            let mut names = vec![asked.clone()];
            if args.every && !asked.contains('@') {
                names.extend(entry.variants.iter().map(|variant| format!("{stem}@{variant}")));
            }
            for name in names {
                Scenario::load(&name, None, &overrides).map_err(|error| error.to_string())?;
                let fixes = entry.fixes.iter().cloned().map(Some);
                for fix in std::iter::once(None).chain(fixes) {
                    forms.push(Self { name: name.clone(), fix, overrides: overrides.clone() });
                }
            }
        }
        Ok(forms)
    }

    /// One form by its name, with the overrides of the arguments.
    pub(super) fn of(name: &str, fix: Option<&str>, args: &RunArgs) -> anyhow::Result<Self> {
        let overrides = overrides(args).map_err(anyhow::Error::msg)?;
        let stem = name.split('@').next().unwrap_or_default();
        let fixes = scenario::entry(stem)?.fixes;
        let fix = fix.and_then(|fix| fixes.into_iter().find(|(name, _)| name == fix));
        Ok(Self { name: name.to_owned(), fix, overrides })
    }

    /// `split@rtt-26`, `split@rtt-26+nodelay`; for a file its own name, without its directory.
    pub(super) fn full_name(&self) -> String {
        let name = Path::new(&self.name)
            .file_name()
            .map_or(self.name.as_str().into(), |name| name.to_string_lossy());
        match &self.fix {
            Some((fix, _)) => format!("{name}+{fix}"),
            None => name.into_owned(),
        }
    }

    /// The scenario; `offset` is added to its seed.
    pub(super) fn scenario(&self, offset: u64) -> anyhow::Result<Scenario> {
        let fix = self.fix.as_ref().map(|(fix, _)| fix.as_str());
        let mut scenario = Scenario::load(&self.name, fix, &self.overrides)?;
        if offset > 0 {
            let seed = scenario.pair.path.seed.wrapping_add(offset);
            let seed = Override { key: "seed".to_owned(), value: seed.to_string() };
            let overrides = [self.overrides.as_slice(), &[seed]].concat();
            scenario = Scenario::load(&self.name, fix, &overrides)?;
        }
        Ok(scenario)
    }

    /// Runs it `times` times.
    pub(super) fn run(&self, times: u32, place: &Place) -> anyhow::Result<Vec<Run>> {
        (0..times)
            .map(|n| {
                let scenario = self.scenario(u64::from(n))?;
                let dir = place.dir(&self.full_name(), (times > 1).then_some(n + 1));
                let run = Run::record(scenario, &dir).with_context(|| self.full_name())?;
                place.done(&dir);
                Ok(run)
            })
            .collect()
    }
}

/// `--set` and `--seed`.
fn overrides(args: &RunArgs) -> Result<Vec<Override>, String> {
    let seed = args.seed.map(|seed| Override { key: "seed".to_owned(), value: seed.to_string() });
    args.set.iter().map(|text| text.parse()).chain(seed.map(Ok)).collect()
}

impl Run {
    fn record(scenario: Scenario, dir: &Path) -> anyhow::Result<Self> {
        let recorded = scenario::record(&scenario, dir)?;
        let mut warnings = Vec::new();
        let captured = ["client", "server"].into_iter().zip(&recorded.stats);
        for (end, stats) in captured.filter(|(_, stats)| stats.dropped + stats.unread > 0) {
            warnings
                .push(format!("the capture at the {end} dropped {} packets", stats.dropped + stats.unread));
        }
        let overruns = recorded.truth.path.as_ref().map_or(0, |path| path.overruns);
        if overruns > 0 {
            warnings.push(format!(
                "this machine is too slow for the path: {overruns} packets dropped outside it"
            ));
        }
        if let Some(failure) = &recorded.truth.failure {
            warnings.push(format!("the conversation ended early: {failure}"));
        }
        Self::billed(scenario, recorded.truth, warnings, dir)
    }

    /// Draws up the bills of a recording.
    pub(super) fn billed(
        scenario: Scenario,
        mut truth: Truth,
        warnings: Vec<String>,
        dir: &Path,
    ) -> anyhow::Result<Self> {
        let capture = |end: &str| {
            let plain = dir.join(format!("{end}.pcapng"));
            if plain.exists() { plain } else { dir.join(format!("{end}.pcapng.zst")) }
        };
        let mut trace = Trace::default();
        let (client, from_client) =
            bill_and_sent(&capture("client"), Pair::CLIENT_V4.into(), |segment, host| {
                trace.on_segment(segment, host);
            })?;
        let (server, from_server) = bill_and_sent(&capture("server"), Pair::SERVER_V4.into(), |_, _| {})?;
        let lateness = Lateness::of(&truth, &[from_client, from_server]);
        lateness.note_in(&mut truth);
        let (clocked, late) = (Clocked::of(&truth), lateness.worst());
        let (bills, dir) = ([client, server], dir.to_owned());
        Ok(Self { scenario, truth, clocked, bills, warnings, late, trace, dir })
    }

    /// Reads the files that an earlier run left in `dir`.
    pub(super) fn read_back(scenario: Scenario, dir: &Path) -> anyhow::Result<Self> {
        let file = dir.join("truth.json");
        let text = read_file(&file, TRUTH_MAX).with_context(|| format!("cannot read {}", file.display()))?;
        let mut truth: Truth = serde_json::from_slice(&text).with_context(|| file.display().to_string())?;
        tame(&mut truth);
        Self::billed(scenario, truth, Vec::new(), dir)
    }
}

/// Makes text from a stranger's truth safe to print.
fn tame(truth: &mut Truth) {
    let of_connections = truth.connections.iter_mut().flat_map(|connection| {
        [&mut connection.client, &mut connection.server].into_iter().chain(&mut connection.setup.error)
    });
    for text in of_connections.chain([&mut truth.kernel]).chain(&mut truth.failure) {
        if let Cow::Owned(shown) = visible(text) {
            *text = shown;
        }
    }
}

/// Whether a complete recording is there: its truth is written last, and a partial one does not
/// parse.
pub(super) fn is_whole(dir: &Path) -> bool {
    let truth = read_file(&dir.join("truth.json"), TRUTH_MAX);
    truth.is_ok_and(|text| serde_json::from_slice::<Truth>(&text).is_ok())
}

/// Draws up the bill of a capture, with every exchange listed.
pub(super) fn bill(capture: &Path) -> anyhow::Result<Report> {
    read(capture, |_| {})
}

/// The bill, and the segments that `host` sent.
fn bill_and_sent(
    capture: &Path,
    host: IpAddr,
    mut on_segment: impl FnMut(&Segment, IpAddr),
) -> anyhow::Result<(Report, Vec<Sent>)> {
    let mut sent = Vec::new();
    let report = read(capture, |segment| {
        on_segment(segment, host);
        if segment.src.ip() == host {
            sent.push(Sent::of(segment));
        }
    })?;
    Ok((report, sent))
}

fn read(capture: &Path, mut on_segment: impl FnMut(&Segment)) -> anyhow::Result<Report> {
    let mut analysis = Analysis::new(Options { listing: Listing::UpTo(u64::MAX), ..Options::default() });
    let file = open_file(capture).with_context(|| format!("cannot read {}", capture.display()))?;
    let summary = Inputs::opened(capture, file).for_each_captured(
        &input::Options::default(),
        |_| {},
        |segment, captured| {
            on_segment(segment);
            analysis.on_captured(segment, captured);
        },
    );
    output::troubles(&summary);
    anyhow::ensure!(!summary.is_failure(), "cannot read {} back", capture.display());
    Ok(analysis.finish())
}

/// Problems of a recording itself, independent of its bill. Earlier fields weigh more; the default
/// is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Flaws {
    /// Other programs disturbed it, or it is outside its scenario's range.
    pub(super) is_off: bool,
    /// Exchanges in which the path was late.
    pub(super) late: usize,
}

/// Where recordings go.
pub(super) enum Place {
    /// To a directory that the user named.
    Kept(PathBuf),
    /// To a temporary directory.
    Scratch(Scratch),
}

impl Place {
    pub(super) fn new(keep: Option<&PathBuf>) -> anyhow::Result<Self> {
        Ok(match keep {
            Some(dir) => Self::Kept(dir.clone()),
            None => Self::Scratch(Scratch::new()?),
        })
    }

    pub(super) fn scratch() -> anyhow::Result<Self> {
        Ok(Self::Scratch(Scratch::new()?))
    }

    /// Removes a run's files, unless the user wants to keep them.
    pub(super) fn forget(&self, run: &Run) {
        self.done(&run.dir);
    }

    pub(super) fn dir(&self, form: &str, n: Option<u32>) -> PathBuf {
        let root = match self {
            Self::Kept(dir) => dir,
            Self::Scratch(scratch) => scratch.path(),
        };
        let dir = root.join(form);
        n.map_or_else(|| dir.clone(), |n| dir.join(format!("run-{n}")))
    }

    /// The real path, for programs that are started there.
    pub(super) fn real_dir(&self) -> anyhow::Result<PathBuf> {
        Ok(match self {
            Self::Kept(dir) => std::path::absolute(dir)?,
            Self::Scratch(scratch) => std::fs::canonicalize(scratch.path())?,
        })
    }

    /// Whether a complete recording of this form is there.
    pub(super) fn has(&self, form: &str) -> bool {
        is_whole(&self.dir(form, None))
    }

    /// A recording has been read. One outside the scratch directory is not ours to remove.
    fn done(&self, dir: &Path) {
        if let Self::Scratch(scratch) = self
            && dir.starts_with(scratch.path())
        {
            // If this fails, the whole directory is removed later.
            let _ = std::fs::remove_dir_all(dir);
        }
    }

    /// Records one scenario under a name. A flawed recording is repeated, up to `tries` times; the
    /// least flawed is kept.
    pub(super) fn record(
        &self,
        scenario: &Scenario,
        name: &str,
        tries: u32,
        flaws: impl Fn(&Run) -> Flaws,
    ) -> anyhow::Result<(Run, u32)> {
        let (dir, again) = (self.dir(name, None), self.dir(&format!("{name}~again"), None));
        let mut best = Run::record(scenario.clone(), &dir)?;
        let (mut least, mut tried) = (flaws(&best), 1);
        while tried < tries && least != Flaws::default() {
            tried += 1;
            let run = Run::record(scenario.clone(), &again)?;
            let found = flaws(&run);
            if found < least {
                std::fs::remove_dir_all(&dir).with_context(|| format!("cannot remove {}", dir.display()))?;
                std::fs::rename(&again, &dir).with_context(|| format!("cannot write {}", dir.display()))?;
                (best, least) = (Run { dir: dir.clone(), ..run }, found);
            }
        }
        // It exists only if the last try was not the best.
        let _ = std::fs::remove_dir_all(&again);
        Ok((best, tried))
    }

    pub(super) const fn is_kept(&self) -> bool {
        matches!(self, Self::Kept(_))
    }
}
