//! How is a scenario recorded? Hosts, path and captures first, then the applications; captures end
//! when the kernels have nothing more to send.

use std::path::{Path, PathBuf};
use std::time::Duration as StdDuration;

use serde_json::{Value, json};
use tcpwhy_host::capture::{self, Capture, Filter, Options};

use super::Scenario;
use crate::truth::{TruePath, Truth};
use crate::workload::{self, Prepared};
use crate::{Error, Folder, Host, Pair, PathSpec, sys};

/// The results of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// The capture next to the client: `client.pcapng`.
    pub client_capture: PathBuf,
    /// The capture next to the server: `server.pcapng`.
    pub server_capture: PathBuf,
    /// `truth.json`.
    pub truth_file: PathBuf,
    /// The captures' counts, client's and server's.
    pub stats: [capture::Stats; 2],
    /// What really happened.
    pub truth: Truth,
}

const CAPTURES: [&str; 2] = ["client.pcapng", "server.pcapng"];
const TRUTH: &str = "truth.json";
/// Bytes kept of each packet: enough for IPv4 and TCP with all options.
const SNAPLEN_BYTES: u32 = 96;
/// After the applications have ended, the kernels get this long to end the connections.
const SETTLE_LIMIT: StdDuration = StdDuration::from_secs(5);

/// Builds the scenario, runs it, and writes its captures and its truth into `dir`, which is created.
///
/// # Errors
/// The machine does not allow it; the error says what would. Failures of the connections themselves
/// are in the truth.
pub fn record(scenario: &Scenario, dir: &Path) -> Result<Recorded, Error> {
    // On a separate thread, whose precedence every thread of the laboratory inherits: other
    // programs on this machine must not become part of the path.
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("scenario".to_owned())
            .spawn_scoped(scope, || {
                let real_time = sys::take_precedence();
                record_here(scenario, dir, real_time)
            })
            .map_err(Error::step("start a thread"))?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn record_here(scenario: &Scenario, dir: &Path, real_time: bool) -> Result<Recorded, Error> {
    let folder = Folder::make(dir).map_err(Error::step(format!("create {}", dir.display())))?;
    // Written last: if it exists, the recording is complete.
    folder.remove(TRUTH).map_err(Error::step(format!("remove {}", folder.join(TRUTH).display())))?;

    let pair = Pair::build(&scenario.pair)?;
    let prepared: Prepared<'_, Host, Host> =
        workload::prepare(&scenario.workload, pair.client(), pair.server(), 0)?;
    let port = prepared.server_address().port();
    let captures = [
        start_capture(scenario, pair.client(), port, &folder, CAPTURES[0])?,
        start_capture(scenario, pair.server(), port, &folder, CAPTURES[1])?,
    ];
    let run = prepared.run()?;
    workload::settle(&[pair.client(), pair.server()], port, SETTLE_LIMIT);
    let mut stats = Vec::new();
    for capture in captures {
        stats.push(capture.stop()?);
    }
    let stats: [capture::Stats; 2] =
        stats.try_into().map_err(|_| Error::Spec("one capture at each end".to_owned()))?;

    let mut truth = Truth::of(&run);
    let fix = scenario.fix.as_ref().map(|fix| format!(" + {fix}")).unwrap_or_default();
    truth.scenario = Some(format!("{}{fix}", scenario.name));
    truth.definition = Some(scenario.definition.clone());
    truth.path = Some(path_truth(&scenario.pair.path, &pair, real_time)?);
    let json = serde_json::to_vec(&truth).map_err(|error| Error::Spec(error.to_string()))?;
    let [client_capture, server_capture] = CAPTURES.map(|name| folder.join(name));
    let truth_file = folder.join(TRUTH);
    folder.write_whole(TRUTH, &json).map_err(Error::step(format!("write {}", truth_file.display())))?;
    Ok(Recorded { client_capture, server_capture, truth_file, stats, truth })
}

fn start_capture(
    scenario: &Scenario,
    host: &Host,
    port: u16,
    folder: &Folder,
    name: &str,
) -> Result<Capture, Error> {
    let out = folder.create(name).map_err(Error::step(format!("write {}", folder.join(name).display())))?;
    let options = Options {
        snaplen: SNAPLEN_BYTES,
        filter: Filter { port: Some(port), ..Filter::default() },
        comment: format!("tcpwhy lab {}, at the {}\n{}", scenario.name, host.name(), scenario.definition),
        ..Options::new(host.interface())
    };
    // The socket belongs to the namespace of the thread that opens it.
    let started = host
        .enter(move || Capture::start(options, out))
        .map_err(Error::step("enter the host's namespace"))?
        .join();
    match started {
        Ok(capture) => Ok(capture?),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// The path's log, a row for each packet.
///
/// # Errors
/// The interfaces' counters cannot be read.
pub fn path_truth(path: &PathSpec, pair: &Pair, real_time: bool) -> Result<TruePath, Error> {
    let overruns = |host: &Host| host.overruns().map_err(Error::step("read the interface's counters"));
    let log = pair.log();
    let elements = |direction: &[crate::ElementSpec]| direction.iter().map(ToString::to_string).collect();
    let longest = path.forward.len().max(path.backward.len());
    let fixed = [
        "direction",
        "n",
        "copy_of",
        "entered_ns",
        "due_ns",
        "delivered_ns",
        "len",
        "src_port",
        "seq",
        "ack",
        "flags",
        "payload",
        "dropped_by",
        "dropped_why",
    ];
    let waits = (0..longest).map(|n| format!("wait_{n}_ns"));
    let columns: Vec<String> = fixed.map(str::to_owned).into_iter().chain(waits).collect();
    let packets = log
        .records
        .iter()
        .map(|record| {
            let (of, tcp) = (&record.path, record.path.tcp);
            let (dropped_by, why) = of.dropped.map_or((Value::Null, Value::Null), |(element, reason)| {
                (json!(element), json!(reason.name()))
            });
            let mut row = vec![
                json!(record.direction.name()),
                json!(of.id),
                json!(of.copy_of),
                json!(of.entered.as_nanos()),
                json!(of.left.as_nanos()),
                json!(record.delivered.map(tcpwhy_wire::Instant::as_nanos)),
                json!(of.len),
                json!(tcp.map(|tcp| tcp.src.port)),
                json!(tcp.map(|tcp| tcp.seq.0)),
                json!(tcp.map(|tcp| tcp.ack.0)),
                json!(tcp.map(|tcp| format!("{:?}", tcp.flags))),
                json!(tcp.map(|tcp| tcp.payload_len)),
                dropped_by,
                why,
            ];
            row.extend((0..longest).map(|n| json!(of.waits.in_element(n).as_nanos())));
            row
        })
        .collect();
    Ok(TruePath {
        forward: elements(&path.forward),
        backward: elements(&path.backward),
        seed: path.seed,
        real_time,
        omitted: log.omitted,
        overruns: log.refused + overruns(pair.client())? + overruns(pair.server())?,
        columns,
        packets,
    })
}
