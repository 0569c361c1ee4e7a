//! Pages of `tcpwhy read --html`, and the `--json` output of the same.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn tcpwhy(args: &[&str]) -> Output {
    output(Command::new(env!("CARGO_BIN_EXE_tcpwhy")).args(args))
}

fn output(tcpwhy: &mut Command) -> Output {
    match tcpwhy.stdin(Stdio::null()).output() {
        Ok(output) => output,
        Err(error) => panic!("tcpwhy does not start: {error}"),
    }
}

/// Reads the capture and writes the page, in which the capture is named without folders.
pub(crate) fn write_page(capture: &Path, page: &Path, more: &[&str]) {
    let (Some(folder), Some(name)) = (capture.parent(), capture.file_name()) else {
        panic!("{} is no file", capture.display())
    };
    let mut tcpwhy = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    tcpwhy.current_dir(folder).arg("read").arg(name).arg("--html").arg(page).args(more);
    let output = output(&mut tcpwhy);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}: {}",
        capture.display(),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The `--json` output of a capture.
pub(crate) fn json(capture: &Path, more: &[&str]) -> Value {
    let output = tcpwhy(&[&["read", &capture.to_string_lossy(), "--json"][..], more].concat());
    match serde_json::from_slice(&output.stdout) {
        Ok(document) => document,
        Err(error) => panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)),
    }
}
