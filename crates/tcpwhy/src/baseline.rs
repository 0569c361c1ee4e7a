//! Is it slower than before? The cost of each cause for each service is saved and compared.
//!
//! The mean is compared: the time of a cause divided by all exchanges of its service (or by setups,
//! for causes found in setups). A service is a port, because addresses change from run to run.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use tcpwhy_core::Report;
use tcpwhy_core::report::Servers;
use tcpwhy_report::json::Gated;
use tcpwhy_report::quantity::{percent, time};
use tcpwhy_wire::Duration;

use crate::cli::ReadArgs;
use crate::out::is_same;

const SCHEMA: &str = "tcpwhy.baseline/1";
/// A thousand services with all causes take a tenth of this.
const LEN_MAX: u64 = 4 << 20;
/// An increase below this share of the time of the service's exchanges, or below this time, is
/// noise.
const NOISE: f64 = 0.01;
const NOISE_NS: f64 = 100_000.0;

/// The cost of a run.
#[derive(Debug, Serialize, Deserialize)]
struct Baseline {
    schema: String,
    services: Vec<Service>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Service {
    /// `port 8080`; the services that take little time share one entry.
    service: String,
    causes: Vec<Spent>,
}

/// One cause at one side.
#[derive(Debug, Serialize, Deserialize)]
struct Spent {
    cause: String,
    side: String,
    /// Total, in nanoseconds.
    ns: i64,
    /// Exchanges (or setups) of the service.
    of: u64,
}

/// Total time and number of exchanges, by cause and side.
type Causes<'a> = BTreeMap<(&'a str, &'a str), (i64, u64)>;

/// How much longer a cause may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tolerance(f64);

impl FromStr for Tolerance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix('%').map(|number| number.trim_end().parse::<f64>());
        match number {
            Some(Ok(value)) if (0.0..=10_000.0).contains(&value) => Ok(Self(value / 100.0)),
            _ => Err(format!("{text}: expected a percentage such as 10%")),
        }
    }
}

/// The baselines to compare with and to write, opened while files can still be opened.
pub(crate) struct Baselines {
    against: Option<(PathBuf, Baseline)>,
    save: Option<(PathBuf, File)>,
    tolerance: Tolerance,
}

impl Baselines {
    pub(crate) fn open(args: &ReadArgs) -> anyhow::Result<Self> {
        let against = args.against.as_ref().map(|path| Ok::<_, anyhow::Error>((path.clone(), read(path)?)));
        let against = against.transpose()?;
        if let Some(path) = &args.save_baseline {
            anyhow::ensure!(
                !args.input.files.iter().any(|input| is_same(path, input)),
                "{}: this is a capture; choose another name for the baseline",
                path.display()
            );
        }
        // The old content stays until the new one is known.
        let open = |path: &PathBuf| File::options().write(true).create(true).truncate(false).open(path);
        let save = args.save_baseline.as_ref().map(|path| {
            let cannot = || format!("cannot write {} for --save-baseline", path.display());
            Ok::<_, anyhow::Error>((path.clone(), open(path).with_context(cannot)?))
        });
        Ok(Self { against, save: save.transpose()?, tolerance: args.tolerance })
    }

    /// The file that has to stay open.
    pub(crate) fn file(&self) -> Option<&File> {
        self.save.as_ref().map(|(_, file)| file)
    }

    pub(crate) fn save(&self, report: &Report) -> anyhow::Result<()> {
        let Some((path, mut file)) = self.save.as_ref().map(|(path, file)| (path, file)) else {
            return Ok(());
        };
        let mut text = serde_json::to_string_pretty(&Baseline::of(report))?;
        text.push('\n');
        let written = file
            .rewind()
            .and_then(|()| file.set_len(0))
            .and_then(|()| file.write_all(text.as_bytes()))
            .and_then(|()| file.flush());
        written.with_context(|| format!("cannot write {} for --save-baseline", path.display()))
    }

    /// The causes that became slower: one entry each, or a single entry that says there are none.
    pub(crate) fn judge(&self, report: &Report) -> Vec<Gated> {
        let Some((path, before)) = &self.against else { return Vec::new() };
        let name = format!("--against {}", path.display());
        let gated = |failed, reason| Gated { gate: name.clone(), failed, reason };
        let now = Baseline::of(report);
        let services = |of: &Baseline| of.services.iter().map(|s| s.service.clone()).collect::<Vec<_>>();
        let both = |service: &&Service| before.services.iter().any(|old| old.service == service.service);
        let compared: Vec<&Service> = now.services.iter().filter(both).collect();
        if compared.is_empty() {
            let (now, before) = (services(&now).join(", "), services(before).join(", "));
            return vec![gated(true, format!("no service in common: now {now}, before {before}"))];
        }
        let mut worse: Vec<(f64, String)> = Vec::new();
        for service in &compared {
            let old = before.services.iter().find(|old| old.service == service.service);
            worse.extend(old.into_iter().flat_map(|old| service.slower_than(old, self.tolerance)));
        }
        worse.sort_by(|a, b| b.0.total_cmp(&a.0));
        if worse.is_empty() {
            let names: Vec<&str> = compared.iter().map(|service| service.service.as_str()).collect();
            let allowed = self.tolerance.0 * 100.0;
            let reason =
                format!("no cause takes over {allowed} % longer than before at {}", names.join(", "));
            return vec![gated(false, reason)];
        }
        worse.into_iter().map(|(_, reason)| gated(true, reason)).collect()
    }
}

/// Reads a baseline. It may come from a stranger: its size is bounded, and its content is only
/// compared.
fn read(path: &Path) -> anyhow::Result<Baseline> {
    let name = || path.display().to_string();
    let advice =
        |why| format!("--against {}: {why}; create one with `tcpwhy read FILE --save-baseline {0}`", name());
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LEN_MAX).read_to_end(&mut text));
    if read.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        anyhow::bail!(advice("there is no such file"));
    }
    read.with_context(|| format!("cannot read {} for --against", name()))?;
    let baseline: Baseline = serde_json::from_slice(&text).ok().with_context(|| advice("not a baseline"))?;
    anyhow::ensure!(baseline.schema == SCHEMA, "{}: its schema is {}, not {SCHEMA}", name(), baseline.schema);
    Ok(baseline)
}

impl Baseline {
    fn of(report: &Report) -> Self {
        let mut services: BTreeMap<String, Causes<'_>> = BTreeMap::new();
        for finding in &report.findings {
            let service = match finding.servers {
                Servers::One(endpoint) => format!("port {}", endpoint.port),
                Servers::Several(_) => "the other services".to_owned(),
            };
            let causes = services.entry(service).or_default();
            let spent = causes.entry((finding.cause.name(), finding.side.name())).or_default();
            // Several servers on one port add up.
            *spent = (spent.0 + finding.ns.as_nanos(), spent.1 + finding.of);
        }
        let spent = |((cause, side), (ns, of)): ((&str, &str), (i64, u64))| Spent {
            cause: cause.to_owned(),
            side: side.to_owned(),
            ns,
            of,
        };
        let services = services
            .into_iter()
            .map(|(service, causes)| Service { service, causes: causes.into_iter().map(spent).collect() });
        Self { schema: SCHEMA.to_owned(), services: services.collect() }
    }
}

impl Spent {
    /// Per exchange, in nanoseconds.
    fn mean(&self) -> f64 {
        self.ns as f64 / self.of.max(1) as f64
    }
}

impl Service {
    /// Each cause that grew by more than the tolerance: by how much, and the words for it.
    fn slower_than(&self, old: &Self, tolerance: Tolerance) -> Vec<(f64, String)> {
        let whole: f64 = old.causes.iter().map(Spent::mean).sum();
        let told = |now: &Spent| {
            let before = old.causes.iter().find(|old| (&old.cause, &old.side) == (&now.cause, &now.side));
            let was = before.map_or(0.0, Spent::mean);
            let more = now.mean() - was;
            let ns = |value: f64| Duration::from_nanos(value as i64);
            let grown = match before {
                Some(_) => format!("{} before (+{})", time(ns(was)), percent(ns(more), ns(was))),
                None => "nothing before".to_owned(),
            };
            (more > tolerance.0 * was && more > (NOISE * whole).max(NOISE_NS)).then(|| {
                let Self { service, .. } = self;
                let now_ns = time(ns(now.mean()));
                (
                    more,
                    format!("{} ({}) at {service} takes {now_ns} on average, {grown}", now.cause, now.side),
                )
            })
        };
        self.causes.iter().filter_map(told).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(causes: &[(&str, i64, u64)]) -> Service {
        let spent = |&(cause, ns, of): &(&str, i64, u64)| Spent {
            cause: cause.to_owned(),
            side: "server".to_owned(),
            ns,
            of,
        };
        Service { service: "port 80".to_owned(), causes: causes.iter().map(spent).collect() }
    }

    #[test]
    fn a_cause_is_slower_by_what_an_exchange_takes_of_it() {
        let before = service(&[("server-think", 100_000_000, 10), ("rto", 100_000, 10)]);
        let slower = |now: &[(&str, i64, u64)]| service(now).slower_than(&before, Tolerance(0.1)).len();
        // Ten times the exchanges, and ten times the time.
        assert_eq!(slower(&[("server-think", 1_000_000_000, 100)]), 0);
        assert_eq!(slower(&[("server-think", 110_000_000, 10)]), 0);
        assert_eq!(slower(&[("server-think", 111_000_000, 10)]), 1);
        // Nine times a negligible time is still negligible; more than a hundredth of the whole is
        // not.
        assert_eq!(slower(&[("rto", 900_000, 10)]), 0);
        assert_eq!(slower(&[("rto", 1_200_000, 10), ("nagle", 1_200_000, 10)]), 2);
    }

    #[test]
    fn tolerances_are_per_cent() {
        assert_eq!("10%".parse(), Ok(Tolerance(0.1)));
        for text in ["10", "%", "-1%", "NaN%", "1e9%"] {
            assert!(text.parse::<Tolerance>().is_err(), "{text}");
        }
    }
}
