//! Pages of `tcpwhy read --html`, and what `--json` says of the same.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn tcpwhy(args: &[&str]) -> Output {
    match Command::new(env!("CARGO_BIN_EXE_tcpwhy")).args(args).stdin(Stdio::null()).output() {
        Ok(output) => output,
        Err(error) => panic!("tcpwhy does not start: {error}"),
    }
}

/// Reads the capture and writes the page.
pub(crate) fn write_page(capture: &Path, page: &Path, more: &[&str]) {
    let (capture, page) = (capture.to_string_lossy(), page.to_string_lossy());
    let output = tcpwhy(&[&["read", &capture, "--html", &page][..], more].concat());
    assert_eq!(output.status.code(), Some(0), "{capture}: {}", String::from_utf8_lossy(&output.stderr));
}

/// What `--json` says of a capture.
pub(crate) fn json(capture: &Path, more: &[&str]) -> Value {
    let output = tcpwhy(&[&["read", &capture.to_string_lossy(), "--json"][..], more].concat());
    match serde_json::from_slice(&output.stdout) {
        Ok(document) => document,
        Err(error) => panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)),
    }
}
