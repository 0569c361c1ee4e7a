//! What is in a scenario's file? The sections in the order in which a packet meets them: client,
//! path, server; then what the applications do and what is expected.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tcpwhy_twin::path::{parse_bytes, parse_duration};

use super::expect::Expect;
use crate::workload::{Script, Workload};
use crate::{ElementSpec, HostSpec, LinkOptions, PairOptions, PathSpec};

/// A scenario's file after variant, fix, settings and overrides are applied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// What it shows, in a line.
    pub shows: String,
    /// The case or incident that it recreates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// What the case reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<String>,
    /// A formula's prediction, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theory: Option<String>,
    /// Its row in the table of the reference cases: `A1 initial window 1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row: Option<String>,
    /// How this differs from the report, and why: this kernel, this path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The transfer, if arithmetic can predict it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer: Option<TransferTable>,
    /// What to draw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picture: Option<Picture>,
    /// The side that connects.
    #[serde(default)]
    pub client: HostTable,
    /// The path between them.
    #[serde(default)]
    pub path: PathTable,
    /// The side that accepts.
    #[serde(default)]
    pub server: HostTable,
    /// What the applications do.
    pub workload: WorkloadTable,
    /// What is expected.
    #[serde(default)]
    pub expect: Expect,
}

/// A host's settings; the kernel's defaults for those left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HostTable {
    /// Congestion control; cubic unless given, `default` for the machine's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// Initial congestion window, segments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initcwnd: Option<u32>,
    /// Initial receive window, segments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initrwnd: Option<u32>,
    /// Acknowledge every segment at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quickack: Option<bool>,
    /// Smallest retransmission timeout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rto_min: Option<String>,
    /// MTU of the interface, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// The interface takes super-segments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tso: Option<bool>,
    /// Options of the sockets, before connect or listen: `rcvbuf 64k`, `nodelay on`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub socket: Vec<String>,
    /// Settings of the host; names without a dot are below `net.ipv4.`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sysctl: BTreeMap<String, toml::Value>,
}

/// The path: the elements of each direction, then `loss` and `rate` in both, then the delay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PathTable {
    /// The round trip; half of it each way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt: Option<String>,
    /// Rate of a link in each direction: `100mbit`, with further parameters of the element.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// Its queue: `64k`, `100p`, `50ms`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Random loss in each direction: `1%`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<String>,
    /// Elements from the client to the server, in the order in which packets meet them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forward: Vec<String>,
    /// Elements from the server to the client.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub backward: Vec<String>,
    /// Seed of all random streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

/// One transfer over one connection: `bytes` in flights limited by the window, a round trip each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransferTable {
    /// Size of the reply: `5m`.
    pub bytes: String,
    /// The sender's maximum flight, if known in advance: `128k`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flight: Option<String>,
    /// The congestion window is already open: no slow start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
    /// It needs its own connection, whose handshake counts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub connects: bool,
}

/// A transfer with its sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Size of the reply.
    pub bytes: u64,
    /// The sender's maximum flight.
    pub flight_bytes: Option<u64>,
    /// The congestion window is already open.
    pub open: bool,
    /// It needs its own connection, whose handshake counts.
    pub connects: bool,
}

/// What to draw of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Picture {
    /// Packets per second that reach the client, over time.
    Packets,
    /// The receive window that the client advertises, over time.
    Window,
    /// How long exchanges take.
    Histogram,
}

/// What the applications do: a script for each side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadTable {
    /// The side that connects.
    pub client: String,
    /// The side that accepts.
    pub server: String,
}

impl Definition {
    /// The transfer, with its sizes parsed.
    pub(super) fn transfer(&self) -> Result<Option<Transfer>, String> {
        let Some(TransferTable { bytes, flight, open, connects }) = &self.transfer else { return Ok(None) };
        let size = |text: &String| parse_bytes(text).map_err(|what| format!("[transfer] {what}"));
        let flight_bytes = flight.as_ref().map(size).transpose()?;
        Ok(Some(Transfer { bytes: size(bytes)?, flight_bytes, open: *open, connects: *connects }))
    }

    /// Hosts and path.
    pub(super) fn pair(&self) -> Result<PairOptions, String> {
        Ok(PairOptions {
            path: self.path.spec().map_err(|what| format!("[path] {what}"))?,
            client: self.client.spec().map_err(|what| format!("[client] {what}"))?,
            server: self.server.spec().map_err(|what| format!("[server] {what}"))?,
            link: LinkOptions::default(),
        })
    }

    /// The scripts, preceded by the sockets' options.
    pub(super) fn workload(&self) -> Result<Workload, String> {
        let script = |side: &str, host: &HostTable, text: &str| -> Result<Script, String> {
            let options: Script =
                host.socket.join("\n").parse().map_err(|error| format!("[{side}] socket, {error}"))?;
            let script: Script = text.parse().map_err(|error| format!("[workload] {side}, {error}"))?;
            Ok(Script([options.0, script.0].concat()))
        };
        Ok(Workload::new(
            script("client", &self.client, &self.workload.client)?,
            script("server", &self.server, &self.workload.server)?,
        ))
    }
}

impl HostTable {
    fn spec(&self) -> Result<HostSpec, String> {
        let default = HostSpec::default();
        let rto_min_ms = match &self.rto_min {
            None => None,
            Some(span) => {
                let span = parse_duration(span).map_err(|error| error.to_string())?;
                Some((span.as_nanos() / 1_000_000) as u32)
            }
        };
        let text = |value: &toml::Value| match value {
            toml::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let key = |name: &str| if name.contains('.') { name.to_owned() } else { format!("net.ipv4.{name}") };
        Ok(HostSpec {
            sysctl: self.sysctl.iter().map(|(name, value)| (key(name), text(value))).collect(),
            congestion: match self.congestion.as_deref() {
                None => default.congestion,
                Some("default") => None,
                Some(name) => Some(name.to_owned()),
            },
            initcwnd: self.initcwnd,
            initrwnd: self.initrwnd,
            quickack: self.quickack.unwrap_or(default.quickack),
            rto_min_ms,
            mtu: self.mtu.unwrap_or(default.mtu),
            tso: self.tso.unwrap_or(default.tso),
            names: default.names,
        })
    }
}

impl PathTable {
    fn spec(&self) -> Result<PathSpec, String> {
        let rtt = self.rtt.as_deref().unwrap_or("0");
        let rtt = parse_duration(rtt).map_err(|error| error.to_string())?;
        let delay = PathSpec::delay(rtt);
        let direction = |named: &[String], delay: Vec<ElementSpec>| -> Result<Vec<ElementSpec>, String> {
            let loss = self.loss.as_ref().map(|loss| format!("loss {loss}"));
            let rate = self.rate.as_ref().map(|rate| match &self.queue {
                Some(queue) => format!("rate {rate} queue {queue}"),
                None => format!("rate {rate}"),
            });
            let mut elements = named
                .iter()
                .cloned()
                .chain(loss)
                .chain(rate)
                .map(|line| line.parse().map_err(|error: tcpwhy_twin::path::SpecError| error.to_string()))
                .collect::<Result<Vec<ElementSpec>, String>>()?;
            elements.extend(delay);
            Ok(elements)
        };
        if self.queue.is_some() && self.rate.is_none() {
            return Err("`queue` without `rate`".to_owned());
        }
        Ok(PathSpec {
            forward: direction(&self.forward, delay.forward)?,
            backward: direction(&self.backward, delay.backward)?,
            seed: self.seed.unwrap_or(1),
        })
    }
}
