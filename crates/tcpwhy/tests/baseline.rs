//! Does a pipeline notice that something has become slower than it was? `--save-baseline` and `--against`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn recording(scenario: &str) -> PathBuf {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/lab");
    corpus.join(scenario).join("client.pcapng.zst")
}

fn read(scenario: &str, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    command.arg("read").arg(recording(scenario)).args(args).output().expect("tcpwhy starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn what_has_become_slower_stops_the_pipeline_and_is_named() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("good.json");
    let good = path.to_str().expect("a path");
    assert_eq!(read("split+one-write", &["--save-baseline", good]).status.code(), Some(0));
    // The same capture again: as it was, and written inside the sandbox.
    let again = read("split+one-write", &["--against", good, "--sandbox=auto"]);
    assert_eq!((again.status.code(), stderr(&again).as_str()), (Some(0), ""));
    let slower = read("split", &["--against", good, "--tolerance", "10%", "--json"]);
    assert_eq!(slower.status.code(), Some(3), "{}", stderr(&slower));
    let named = format!("--against {good}: nagle-delayed-ack (client) at port 8080 takes ");
    assert!(stderr(&slower).contains(&named), "{}", stderr(&slower));
    assert!(stderr(&slower).contains("on average, nothing before"), "{}", stderr(&slower));
    let document: serde_json::Value = serde_json::from_slice(&slower.stdout).expect("JSON");
    assert_eq!(document["gate"][0]["failed"], true);
    // The other way round: an improvement is no failure.
    assert_eq!(read("split", &["--save-baseline", good]).status.code(), Some(0));
    assert_eq!(read("split+one-write", &["--against", good]).status.code(), Some(0));
}

#[test]
fn what_is_no_baseline_or_has_no_service_in_common_is_said() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("x.json");
    let name = path.to_str().expect("a path");
    let against = |bytes: &str| {
        std::fs::write(&path, bytes).expect("a file");
        let output = read("split", &["--against", name]);
        (output.status.code(), stderr(&output))
    };
    assert_eq!(against("{}").0, Some(2));
    assert!(against("[]").1.contains("`tcpwhy read FILE --save-baseline "));
    assert_eq!(against(r#"{"schema":"tcpwhy.baseline/9","services":[]}"#).0, Some(2));
    let other = r#"{"schema":"tcpwhy.baseline/1","services":[{"service":"port 1","causes":[]}]}"#;
    let (code, said) = against(other);
    assert_eq!(code, Some(3));
    assert!(said.contains("no service in common: now port 8080, before port 1"), "{said}");
    // If nothing was analysed, the saved file stays as it is.
    let nothing = Command::new(env!("CARGO_BIN_EXE_tcpwhy"))
        .args(["read", "/dev/null", "--save-baseline", name])
        .output()
        .expect("tcpwhy starts");
    assert_ne!(nothing.status.code(), Some(0));
    assert_eq!(std::fs::read_to_string(&path).expect("a file"), other);
    // A capture is not overwritten.
    std::fs::copy(recording("split"), &path).expect("a copy");
    let over = Command::new(env!("CARGO_BIN_EXE_tcpwhy"))
        .args(["read", name, "--save-baseline", name])
        .output()
        .expect("tcpwhy starts");
    assert_eq!(over.status.code(), Some(2));
    assert_eq!(std::fs::read(&path).ok(), std::fs::read(recording("split")).ok());
}
