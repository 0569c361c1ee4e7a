//! Does the output of `--anonymize` name nobody, and is everything else unchanged?

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::{json, root, tcpwhy, write_page};

const CAPTURES: [&str; 3] = [
    "corpus/demo/split.pcapng",
    "corpus/lab/congestion-window/server.pcapng.zst",
    "corpus/lab/connect-each/client.pcapng.zst",
];
const REAL: [&str; 3] = ["127.0.0.1", "10.77.0.1", "10.77.0.2"];

/// Removes the fields that name somebody.
fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for name in ["client", "server", "endpoint", "answer", "path", "anonymized"] {
                if fields.get(name).is_some_and(|field| !field.is_object()) {
                    fields.remove(name);
                }
            }
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// A document without the fields that name somebody.
fn nameless(document: &Value) -> Value {
    let mut document = document.clone();
    strip(&mut document);
    document
}

fn key(folder: &Path) -> String {
    let key = folder.join("key");
    assert!(fs::write(&key, "a secret").is_ok());
    key.to_string_lossy().into_owned()
}

#[test]
fn addresses_and_names_are_gone_and_the_bills_are_the_same() {
    let Ok(folder) = tempfile::tempdir() else { panic!("no folder for temporary files") };
    let key = key(folder.path());
    for capture in CAPTURES {
        let path = root().join(capture);
        let page = folder.path().join("report.html");
        let annotated = folder.path().join("annotated.pcapng");
        let words =
            ["--anonymize", "--key", &key, "--annotate", &annotated.to_string_lossy()].map(str::to_owned);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        write_page(&path, &page, &words);
        let other = json(&path, &words[..3]);
        assert_eq!(nameless(&other), nameless(&json(&path, &[])), "{capture}");
        assert_eq!(other["capture"]["anonymized"], true);
        let text = tcpwhy(&[&["read", &path.to_string_lossy(), "-v"][..], &words[..3]].concat());
        let outputs = [
            ("JSON", other.to_string()),
            ("page", super::data::data_of(&fs::read_to_string(&page).unwrap_or_default()).to_string()),
            ("text", String::from_utf8_lossy(&text.stdout).into_owned()),
            ("annotated", String::from_utf8_lossy(&fs::read(&annotated).unwrap_or_default()).into_owned()),
        ];
        for (what, output) in outputs {
            for real in
                REAL.iter().chain(&["split.pcapng", "corpus", "server.pcapng.zst", "client.pcapng.zst"])
            {
                assert!(!output.contains(real), "{capture}: {what} says {real}");
            }
            assert!(
                output.to_lowercase().contains("anonymized"),
                "{capture}: {what} does not say that it is anonymized"
            );
        }
        // The capture that is passed on gives the same bill.
        let again = json(&annotated, &[]);
        assert_eq!(again["bill"], other["bill"], "{capture}");
        assert_eq!(again["capture"]["packets"], other["capture"]["packets"]);
        let servers = |document: &Value| document["connections"][0]["server"].clone();
        assert_eq!(servers(&again), servers(&other));
    }
}

/// Both ends in one run: recognised as without the option, and nobody is named in any form of the
/// answer.
#[test]
fn both_ends_together_are_recognised_and_not_named() {
    let Ok(folder) = tempfile::tempdir() else { panic!("no folder for temporary files") };
    let key = key(folder.path());
    for scenario in ["split@rtt-26", "d-sndbuf"] {
        let ends =
            ["client", "server"].map(|end| root().join(format!("corpus/lab/{scenario}/{end}.pcapng.zst")));
        let [one, other] = ends.each_ref().map(|end| end.to_string_lossy());
        let annotated = folder.path().join(format!("{scenario}.pcapng"));
        let annotated_to = annotated.to_string_lossy();
        let run = |more: &[&str]| {
            let output = tcpwhy(&[&["read", &one, &other][..], more].concat());
            assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let anonymize = ["--anonymize", "--key", &key];
        let document = |text: String| serde_json::from_str::<Value>(&text).expect("a document");
        let open = document(run(&["--json"]));
        let hidden = document(run(&[&anonymize[..], &["--json"]].concat()));
        assert_eq!(hidden["bill"], open["bill"], "{scenario}");
        assert_eq!(hidden["elapsed_ns"], open["elapsed_ns"], "{scenario}");
        let text = run(&[&anonymize[..], &["-v"]].concat());
        let told = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains("captured at different points of the path"), "{scenario}: {text}");
        let outputs = [
            hidden.to_string(),
            text,
            run(&[&anonymize[..], &["--format", "markdown"]].concat()),
            run(&[&anonymize[..], &["--format", "csv"]].concat()),
            run(&[&anonymize[..], &["--annotate", &annotated_to, "--brief"]].concat()),
            String::from_utf8_lossy(&fs::read(&annotated).unwrap_or_default()).into_owned(),
        ];
        for output in outputs {
            for real in REAL.iter().chain(&["corpus", "server.pcapng.zst", "client.pcapng.zst"]) {
                assert!(!output.contains(real), "{scenario}: {real} is in {output:.2000}");
            }
        }
    }
}

#[test]
fn one_key_names_alike_in_every_capture_and_another_otherwise() {
    let Ok(folder) = tempfile::tempdir() else { panic!("no folder for temporary files") };
    let key = key(folder.path());
    let ends = ["client", "server"].map(|end| root().join(format!("corpus/lab/split/{end}.pcapng.zst")));
    let words = ["--anonymize", "--key", &key];
    let client = |document: &Value| document["connections"][0]["client"].clone();
    let told = ends.each_ref().map(|end| client(&json(end, &words)));
    assert_eq!(told[0], told[1]);
    assert_ne!(client(&json(&ends[0], &["--anonymize"])), told[0]);
    let port = |name: &Value| name.as_str().and_then(|name| name.rsplit(':').next().map(str::to_owned));
    assert_eq!(port(&told[0]), port(&client(&json(&ends[0], &[]))));
    let hidden = client(&json(&ends[0], &["--anonymize", "--key", &key, "--anonymize-ports"]));
    assert_ne!(port(&hidden), port(&told[0]));
    let [one, other] = ends.each_ref().map(|end| end.to_string_lossy());
    for more in [&["--json"][..], &[]] {
        let compared = tcpwhy(&[&["compare", &one, &other][..], &words, more].concat());
        let said = String::from_utf8_lossy(&compared.stdout).into_owned();
        assert!(!said.contains("corpus") && REAL.iter().all(|real| !said.contains(real)), "{said}");
    }
    let missing = tcpwhy(&["read", &ends[0].to_string_lossy(), "--anonymize", "--key", "no/such/key"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(missing.stdout.is_empty());
}

/// An endless key file and a pipe without a writer do not block the reader: it ends with a message,
/// or when it is told to.
#[test]
#[cfg(target_os = "linux")]
fn a_key_that_does_not_end_or_does_not_come_is_left() {
    let Ok(folder) = tempfile::tempdir() else { panic!("no folder for temporary files") };
    let capture = root().join(CAPTURES[0]);
    let endless = tcpwhy(&["read", &capture.to_string_lossy(), "--anonymize", "--key", "/dev/zero"]);
    assert_eq!(endless.status.code(), Some(1));
    let said = String::from_utf8_lossy(&endless.stderr).into_owned();
    assert!(said.contains("longer than 1 MiB"), "{said}");
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().is_ok_and(|status| status.success()));
    let mut reader = Command::new(env!("CARGO_BIN_EXE_tcpwhy"))
        .arg("read")
        .arg(&capture)
        .args(["--anonymize", "--key"])
        .arg(&pipe)
        .spawn()
        .expect("tcpwhy starts");
    let wait = || std::thread::sleep(std::time::Duration::from_millis(50));
    (0..10).for_each(|_| wait());
    assert!(reader.try_wait().is_ok_and(|ended| ended.is_none()), "it waits for the key");
    assert!(Command::new("kill").arg(reader.id().to_string()).status().is_ok_and(|status| status.success()));
    let ended = (0..100).any(|_| {
        wait();
        reader.try_wait().is_ok_and(|ended| ended.is_some())
    });
    let _ = reader.kill();
    assert!(ended, "the signal did not end it");
}

/// No packet contains addresses, names or payload, and tshark finds as many packets as before.
#[test]
fn the_annotated_capture_has_headers_only() {
    let Ok(folder) = tempfile::tempdir() else { panic!("no folder for temporary files") };
    if !Command::new("tshark").arg("-v").output().is_ok_and(|output| output.status.success()) {
        assert!(std::env::var_os("CI").is_none(), "in CI: tshark is missing");
        println!("skipped: tshark is missing");
        return;
    }
    let out = folder.path().join("annotated.pcapng");
    let words = [
        "read",
        &root().join(CAPTURES[0]).to_string_lossy(),
        "--anonymize",
        "--annotate",
        &out.to_string_lossy(),
    ]
    .map(str::to_owned);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    assert_eq!(tcpwhy(&words).status.code(), Some(0));
    let ask = |path: &Path, fields: &[&str]| {
        let asked: Vec<&str> = fields.iter().flat_map(|field| ["-e", field]).collect();
        let output = Command::new("tshark").arg("-r").arg(path).args(["-T", "fields"]).args(asked).output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
    };
    let kept = [
        "frame.number",
        "frame.time_epoch",
        "tcp.seq_raw",
        "tcp.ack_raw",
        "tcp.len",
        "tcp.window_size",
        "tcp.options.timestamp.tsval",
        "tcp.flags",
        "ip.ttl",
        "ip.id",
    ];
    let original = root().join(CAPTURES[0]);
    assert_eq!(ask(&out, &kept), ask(&original, &kept));
    assert!(
        ask(&out, &["tcp.payload", "ip.checksum.status"])
            .lines()
            .all(|line| line.trim().is_empty() || line.trim() == "2")
    );
    let sources = ask(&out, &["ip.src", "ip.dst"]);
    assert!(sources.lines().count() > 100 && REAL.iter().all(|real| !sources.contains(real)), "{sources}");
}
