//! Which programs talk to which, over what path, and what is expected? Read from `cases.toml`.

use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use tcpwhy_lab::Folder;
use tcpwhy_lab::scenario::{Expect, Scenario};

/// One pair of programs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_field_names, reason = "the field is what the file calls it")]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) shows: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) case: Option<String>,
    /// Programs that must be installed.
    pub(super) needs: Vec<String>,
    /// The server's port.
    pub(super) port: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rtt: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rate: Option<String>,
    /// What has to be prepared on the machine itself: downloads, compilation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) prepare: Option<String>,
    /// The server's command.
    pub(super) far: String,
    /// The client's command.
    pub(super) near: String,
    pub(super) expect: Expect,
}

#[derive(Deserialize)]
struct Cases {
    case: Vec<Case>,
}

pub(super) fn all() -> anyhow::Result<Vec<Case>> {
    let cases: Cases = toml::from_str(include_str!("cases.toml")).context("the list of cases")?;
    Ok(cases.case)
}

/// Files in the programs' directory.
const FILES: &[(&str, &str)] = &[
    ("client.py", include_str!("programs/client.py")),
    ("Rpc.java", include_str!("programs/Rpc.java")),
    ("pom.xml", include_str!("programs/pom.xml")),
    ("Echo.java", include_str!("programs/Echo.java")),
    ("transfer.go", include_str!("programs/transfer.go")),
    ("serve.js", include_str!("programs/serve.js")),
    ("nginx.conf", include_str!("programs/nginx.conf")),
    ("apache.conf", include_str!("programs/apache.conf")),
];

pub(super) fn write_files(dir: &Path) -> anyhow::Result<()> {
    let served = [("small.txt", "x".repeat(500)), ("big.bin", "x".repeat(100_000))];
    let files = FILES.iter().map(|(name, text)| (*name, (*text).to_owned())).chain(served);
    let folder = Folder::make(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    for (name, text) in files {
        folder
            .create(name)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .with_context(|| format!("cannot write {}", folder.join(name).display()))?;
    }
    Ok(())
}

impl Case {
    /// The case as TOML.
    pub(super) fn text(&self) -> String {
        toml::to_string(self).unwrap_or_default()
    }

    /// Path and expectations in the form of a scenario. The programs are comments where a scenario
    /// has its scripts.
    pub(super) fn scenario(&self) -> anyhow::Result<Scenario> {
        #[derive(Serialize)]
        struct Sections<'a> {
            shows: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            case: Option<&'a str>,
            path: Path<'a>,
            workload: Workload,
            expect: &'a Expect,
        }
        #[derive(Serialize)]
        struct Path<'a> {
            rtt: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            rate: Option<&'a str>,
        }
        #[derive(Serialize)]
        struct Workload {
            client: String,
            server: String,
        }
        let text = toml::to_string(&Sections {
            shows: &self.shows,
            case: self.case.as_deref(),
            path: Path { rtt: self.rtt.as_deref().unwrap_or("0"), rate: self.rate.as_deref() },
            workload: Workload {
                client: format!("# {}\nconnect\n", self.near),
                server: format!("# {}\naccept\n", self.far),
            },
            expect: &self.expect,
        })?;
        Ok(Scenario::parse(&self.name, &text, None, &[])?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_a_path_and_expectations() {
        for case in all().unwrap() {
            case.scenario().unwrap_or_else(|error| panic!("{}: {error:#}", case.name));
        }
    }
}
