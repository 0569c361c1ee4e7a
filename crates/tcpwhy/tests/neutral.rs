//! Can a name act on a terminal, or on a page? Hostile file names, everywhere they are shown.
//!
//! Of a capture itself, only numbers and addresses are shown: comments, interface names and payload
//! are not (the fuzz target `pipeline` checks every output for that). What libraries say about
//! damaged bytes is escaped like any name.

#![cfg(unix)]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Colours, titles, cursors, links; C1 controls; reversed text; a tag; bytes that are no text.
const NAMES: [&[u8]; 7] = [
    b"\x1b[31mred\x1b[2J\x1b]0;title\x07",
    b"back\x08\x08\x08\rline\nline\ttab\x7f",
    "c1\u{9b}31m\u{90}\u{9d}0;x\u{9c}".as_bytes(),
    "turned\u{202e}gpj.exe\u{2066}\u{200f}\u{feff}".as_bytes(),
    b"<script>alert(1)<!-- <img src=x onerror=alert(1)>'\"&",
    b"\xff\xfe\x80\x9b31m",
    b"--\x1b[31mno-such-option\xe2\x80\xae",
];

fn acts(c: char) -> bool {
    (c.is_control() && c != '\n')
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn run(folder: &Path, args: &[&OsStr]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    command.args(args).current_dir(folder).stdin(Stdio::null()).output().expect("tcpwhy starts")
}

#[track_caller]
fn neutral(output: &Output) -> String {
    let mut all = String::new();
    for stream in [&output.stdout, &output.stderr] {
        let text = std::str::from_utf8(stream).expect("text");
        assert!(text.chars().all(|c| !acts(c)), "{text:?}");
        all += text;
    }
    all
}

#[test]
fn no_name_acts_on_a_terminal_or_a_page() {
    let good = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/split.pcap");
    let good = fs::read(good).expect("the capture is committed");
    for name in NAMES {
        let name = OsStr::from_bytes(name);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        let word = |text: &'static str| OsStr::new(text);
        let read = |more: &[&OsStr]| run(path, &[&[word("read"), word("--"), name], more].concat());
        let with = |options: &[&'static str]| {
            let options = options.iter().map(|option| word(option));
            run(path, &[&[word("read")], &options.collect::<Vec<_>>()[..], &[word("--"), name]].concat())
        };
        // The file does not exist, is a directory, is damaged, is cut off, and is good.
        assert!(!neutral(&read(&[])).is_empty());
        fs::create_dir(path.join(name)).expect("a folder");
        assert!(!neutral(&read(&[])).is_empty());
        fs::remove_dir(path.join(name)).expect("gone");
        for bytes in
            [b"no capture\x1b[31m".as_slice(), b"", b"\x1f\x8b\x08 damaged", &good[..good.len() - 5], &good]
        {
            fs::write(path.join(name), bytes).expect("a file");
            for options in [
                &["--json"][..],
                &["-v"],
                &["-c", "1", "-v"],
                &["--from", "+1ms", "--filter", "port 18080"],
                &["--to", "-1ms", "--json"],
            ] {
                neutral(&with(options));
            }
            // Twice: several files are named in other places.
            neutral(&read(&[name]));
        }
        let json = with(&["--json"]).stdout;
        let json = String::from_utf8(json).expect("text");
        assert!(!json.contains('<'), "{json}");
        let document: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(document["capture"]["path"], name.to_string_lossy().as_ref(), "the value is exact");
    }
}

#[test]
fn a_name_that_is_taken_for_an_option_or_a_value_is_shown_escaped() {
    for hostile in NAMES {
        let folder = tempfile::tempdir().expect("a folder");
        let hostile = OsStr::from_bytes(hostile);
        let word = OsStr::new;
        for args in [
            &[word("read"), hostile][..],
            &[hostile],
            &[word("explain"), hostile],
            &[word("read"), word("x"), word("--filter"), hostile],
            &[word("read"), word("x"), word("--from"), hostile],
            &[word("read"), word("x"), word("--fail-on"), hostile],
            &[word("read"), word("x"), word("--connection"), hostile],
            &[word("man"), hostile],
        ] {
            let output = run(folder.path(), args);
            assert_ne!(output.status.code(), Some(0), "{args:?}");
            assert!(!neutral(&output).is_empty());
        }
    }
}
