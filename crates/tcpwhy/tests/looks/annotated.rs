//! Are the packets of `--annotate` those that were read, with comments on the packets the text
//! cites? Checked with tshark, which also tries the profile's columns, colours and buttons.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{json, root, tcpwhy};

/// pcapng, compressed pcapng, pcap, and a transfer with losses.
const CAPTURES: [&str; 4] = [
    "corpus/demo/split.pcapng",
    "corpus/lab/connect-each/client.pcapng.zst",
    "crates/tcpwhy/tests/data/split.pcap",
    "corpus/lab/congestion-window/server.pcapng.zst",
];

fn tshark(args: &[&str], home: &Path) -> String {
    let output = Command::new("tshark")
        .args(args)
        .env("HOME", home)
        .env_remove("XDG_CONFIG_HOME")
        .stdin(Stdio::null())
        .output();
    let output = output.unwrap_or_else(|error| panic!("tshark: {error}"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "tshark {args:?}: {said}");
    let complaint =
        said.lines().find(|line| line.contains("olor") || line.contains("refs") || line.contains("invalid"));
    assert!(complaint.is_none(), "{said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn has_tshark() -> bool {
    let there = Command::new("tshark")
        .arg("-v")
        .stdin(Stdio::null())
        .output()
        .is_ok_and(|output| output.status.success());
    assert!(there || std::env::var_os("CI").is_none(), "in CI: tshark is missing");
    if !there {
        println!("skipped: tshark is missing");
    }
    there
}

/// An uncompressed copy, which any build of tshark reads.
fn plain(capture: &str, folder: &Path) -> PathBuf {
    let path = root().join(capture);
    if path.extension().is_none_or(|end| end != "zst") {
        return path;
    }
    let from = fs::File::open(&path).unwrap_or_else(|error| panic!("{error}"));
    let copy = folder.join("plain.pcapng");
    let bytes = zstd::decode_all(from).unwrap_or_else(|error| panic!("{error}"));
    fs::write(&copy, bytes).unwrap_or_else(|error| panic!("{error}"));
    copy
}

fn annotate(capture: &Path, to: &Path) {
    let output = tcpwhy(&["read", &capture.to_string_lossy(), "--annotate", &to.to_string_lossy()]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The comments by frame.
fn comments(path: &Path, home: &Path) -> BTreeMap<u64, String> {
    let said = tshark(
        &["-r", &path.to_string_lossy(), "-T", "fields", "-e", "frame.number", "-e", "frame.comment"],
        home,
    );
    let both = |line: &str| {
        let (frame, comment) = line.split_once('\t')?;
        (!comment.is_empty()).then(|| (frame.parse().unwrap_or(0), comment.to_owned()))
    };
    said.lines().filter_map(both).collect()
}

#[test]
fn all_packets_are_as_they_were_and_cited_ones_say_why() {
    if !has_tshark() {
        return;
    }
    let mut told = 0;
    for capture in CAPTURES {
        let Ok(folder) = tempfile::tempdir() else { panic!("no folder for temporary files") };
        let home = folder.path();
        let annotated = home.join("annotated.pcapng");
        annotate(&root().join(capture), &annotated);
        let before = plain(capture, home);
        let words = |path: &Path| {
            let path = path.to_string_lossy().into_owned();
            let fields =
                ["frame.number", "frame.time_epoch", "frame.len", "frame.cap_len", "tcp.stream", "tcp.seq"];
            let asked: Vec<&str> = fields.iter().flat_map(|field| ["-e", field]).collect();
            let told = tshark(&[&["-r", &path, "-T", "fields"][..], &asked].concat(), home);
            (told, tshark(&["-r", &path, "-x"], home))
        };
        assert!(words(&before) == words(&annotated), "{capture}: the packets are others");

        let comments = comments(&annotated, home);
        let document = json(&root().join(capture), &[]);
        let text = tcpwhy(&["read", &root().join(capture).to_string_lossy(), "--width", "200"]);
        let text = String::from_utf8_lossy(&text.stdout).into_owned();
        for finding in document["findings"].as_array().into_iter().flatten() {
            let (cause, mut cited) = (finding["cause"].as_str().unwrap_or_default(), 0);
            let [side, of] = ["side", "endpoint"].map(|of| finding[of].as_str().unwrap_or_default());
            let whose = format!("{cause}, {side} of {of}");
            // The text's heading, as in "2. server-think, server of 10.0.0.2:8080".
            let number = text.lines().find_map(|line| line.strip_suffix(&format!(". {whose}")));
            let shows = match number {
                Some(number) => format!("shows finding {number}: {whose}"),
                None => format!("shows {whose}"),
            };
            for packet in
                finding["evidence"].as_array().into_iter().flatten().filter_map(serde_json::Value::as_u64)
            {
                let comment = comments.get(&packet).map_or("", String::as_str);
                assert!(
                    comment.starts_with("tcpwhy: ") && comment.contains(&shows),
                    "{capture}: {packet}: {comment}"
                );
                cited += 1;
            }
            assert!(cited > 0, "{capture}: {cause} cites nothing");
        }
        // The wait that `--connection N --exchange M` draws between two packets is in the comment
        // of the second, in the same digits.
        let worst = &document["findings"][0]["worst"];
        let [connection, exchange] = ["connection", "exchange"].map(|name| worst[name].to_string());
        let capture_path = root().join(capture);
        let shown =
            tcpwhy(&["read", &capture_path.to_string_lossy(), "-c", &connection, "-e", &exchange, "--ascii"]);
        let ladder = String::from_utf8_lossy(&shown.stdout).into_owned();
        let cause = document["findings"][0]["cause"].as_str().unwrap_or_default();
        let longest = ladder
            .lines()
            .filter_map(|line| Some(line.trim().strip_prefix('|')?.strip_suffix('|')?.trim()))
            .map(|wait| wait.split(" since #").next().unwrap_or(wait))
            .find(|wait| wait.ends_with(cause));
        // A handshake's own round trip is no wait between two packets.
        let Some(wait) = longest.and_then(|wait| wait.strip_suffix(cause)) else { continue };
        told += 1;
        let wait = wait.trim().replace("us", "µs");
        let named = format!("({cause})");
        assert!(
            comments.values().any(|comment| comment.contains(&wait) && comment.contains(&named)),
            "{capture}: no comment says {wait} {named}"
        );
    }
    assert_eq!(told, 3);
}

#[test]
fn several_captures_become_one_with_the_numbers_of_mergecap() {
    if !has_tshark() {
        return;
    }
    let Ok(folder) = tempfile::tempdir() else { panic!("no folder for temporary files") };
    let home = folder.path();
    let ends = ["client", "server"].map(|end| root().join(format!("corpus/lab/split/{end}.pcapng.zst")));
    let out = home.join("both.pcapng");
    let words = ends.each_ref().map(|end| end.to_string_lossy());
    let output = tcpwhy(&["read", &words[0], &words[1], "--annotate", &out.to_string_lossy()]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let document = json(&ends[0], &[&words[1]]);
    let comments = comments(&out, home);
    let cited = document["findings"][0]["evidence"][0].as_u64().unwrap_or(0);
    assert!(comments.get(&cited).is_some_and(|comment| comment.contains("shows finding 1")), "{cited}");
    let packets = tshark(&["-r", &out.to_string_lossy(), "-T", "fields", "-e", "frame.number"], home);
    assert_eq!(packets.lines().count() as u64, document["capture"]["packets"].as_u64().unwrap_or(0));
}

#[test]
fn the_profile_shows_comments_in_a_column_and_its_filters_find_them() {
    if !has_tshark() {
        return;
    }
    let Ok(folder) = tempfile::tempdir() else { panic!("no folder for temporary files") };
    let home = folder.path();
    let profile = home.join(".config/wireshark/profiles/tcpwhy");
    let written = tcpwhy(&["wireshark-profile", &profile.to_string_lossy()]);
    assert_eq!(written.status.code(), Some(0), "{}", String::from_utf8_lossy(&written.stderr));
    let annotated = home.join("annotated.pcapng");
    annotate(&root().join(CAPTURES[0]), &annotated);
    let path = annotated.to_string_lossy();
    let listed = tshark(&["-C", "tcpwhy", "-r", &path, "--color"], home);
    assert!(
        listed.contains("by Nagle and a delayed acknowledgement (nagle-delayed-ack); released by frame"),
        "{listed}"
    );
    let comments = comments(&annotated, home);
    let Ok(buttons) = fs::read_to_string(profile.join("dfilter_buttons")) else { panic!("no buttons") };
    let mut found = 0;
    for line in buttons.lines().filter(|line| line.starts_with("\"TRUE\"")) {
        let filter = line.split("\",\"").nth(2).unwrap_or_default().replace("\\x22", "\"");
        let wanted = filter.split('"').nth(1).unwrap_or_default();
        let matches = tshark(&["-r", &path, "-Y", &filter, "-T", "fields", "-e", "frame.number"], home);
        let told = comments.values().filter(|comment| comment.contains(wanted)).count();
        assert_eq!(matches.lines().count(), told, "{filter}");
        found += usize::from(told > 0);
    }
    assert!(found >= 3, "{found} buttons find something");
    // A user's own files stay; ours are rewritten.
    assert_eq!(tcpwhy(&["wireshark-profile", &profile.to_string_lossy()]).status.code(), Some(0));
    let own = fs::write(profile.join("preferences"), "my own\n");
    assert!(own.is_ok());
    assert_eq!(tcpwhy(&["wireshark-profile", &profile.to_string_lossy()]).status.code(), Some(1));
    assert_eq!(fs::read_to_string(profile.join("preferences")).ok().as_deref(), Some("my own\n"));
}
