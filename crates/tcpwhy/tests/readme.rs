//! Does tcpwhy still say what the documents quote?

use std::path::Path;
use std::process::Command;

#[test]
fn the_corpus_is_answered_as_quoted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/laboratory.md")).expect("the page");
    let rows = page.lines().skip_while(|line| *line != "| recording | answer |").skip(2);
    let mut quoted = 0;
    for row in rows.take_while(|line| line.starts_with('|')) {
        let (name, answer) = row.trim_matches(['|', ' ']).split_once(" | ").expect("two columns");
        let capture = root.join("corpus/lab").join(name.trim_matches('`')).join("client.pcapng.zst");
        let out = Command::new(env!("CARGO_BIN_EXE_tcpwhy"))
            .arg("read")
            .arg(&capture)
            .output()
            .expect("tcpwhy read");
        let text = String::from_utf8(out.stdout).expect("UTF-8");
        let said: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).collect();
        assert_eq!(said.join(" "), answer, "{name}");
        quoted += 1;
    }
    assert!(quoted >= 5, "{quoted} rows found");
}

#[test]
fn the_ends_and_the_rounds_are_told_as_quoted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/read.md")).expect("the page");
    let quoted = |from: &str| -> Vec<String> {
        let lines = page.lines().map(str::trim).skip_while(move |line| !line.starts_with(from));
        lines.take_while(|line| !line.is_empty()).map(str::to_owned).collect()
    };
    for (recording, drill, from) in [
        ("split@rtt-26", &["-c", "1"][..], "client  acknowledges"),
        ("d-sndbuf", &["-c", "1", "-e", "1"], "round    at ms"),
    ] {
        let capture = root.join("corpus/lab").join(recording).join("server.pcapng.zst");
        let out = Command::new(env!("CARGO_BIN_EXE_tcpwhy")).arg("read").arg(&capture).args(drill).output();
        let text = String::from_utf8(out.expect("tcpwhy read").stdout).expect("UTF-8");
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let quoted = quoted(from);
        assert!(quoted.len() > 3, "{recording}: not quoted");
        for line in quoted {
            assert!(lines.contains(&line.as_str()), "{recording}: {line}");
        }
    }
}
