//! What is measured, and with which effort of the link?

use tcpwhy_lab::path::parse_duration;
use tcpwhy_lab::{HostSpec, LinkOptions, Pair, PairOptions, PathSpec};

use crate::Failure;

/// What the command line asks for: `seconds=20 only=rate rtt=20ms spin=100us linger=250us realtime`.
pub(crate) struct Plan {
    pub(crate) seconds: u32,
    pub(crate) rtts: Vec<String>,
    only: Option<String>,
    link: LinkOptions,
}

impl Plan {
    pub(crate) fn read() -> Result<Self, Failure> {
        let rtts = ["0", "2ms", "20ms", "100ms"].map(str::to_owned).to_vec();
        let mut plan = Self { seconds: 20, only: None, rtts, link: LinkOptions::default() };
        for arg in std::env::args().skip(1).filter(|arg| arg != "--bench") {
            match arg.split_once('=') {
                Some(("seconds", value)) => plan.seconds = value.parse()?,
                Some(("only", value)) => plan.only = Some(value.to_owned()),
                Some(("rtt", value)) => plan.rtts = vec![value.to_owned()],
                Some(("spin", value)) => plan.link.spin = parse_duration(value)?,
                Some(("linger", value)) => plan.link.linger = parse_duration(value)?,
                None if arg == "realtime" => plan.link.realtime = true,
                _ => return Err(format!("`{arg}` is not known").into()),
            }
        }
        Ok(plan)
    }

    pub(crate) fn runs(&self, part: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == part)
    }

    pub(crate) fn pair(&self, path: PathSpec, tso: bool) -> Result<Pair, Failure> {
        let host = HostSpec { tso, ..HostSpec::default() };
        Ok(Pair::build(&PairOptions { path, client: host.clone(), server: host, link: self.link })?)
    }
}
