//! Does `tcpwhy live` find problems as they happen, and does its final answer equal that of `read`
//! for a file of the same time?

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tcpwhy_lab::Pair;

use crate::lab::{App, beside, live_until, tcpwhy, text, thrice};

/// The lines of a run, as documents: the intermediate ones, then the final one.
fn documents(out: &str) -> (Vec<Value>, Value) {
    let parsed = |line: &str| serde_json::from_str::<Value>(line).ok();
    let ways: Vec<Value> =
        out.lines().filter_map(parsed).filter(|value| value["schema"] == "tcpwhy.live/1").collect();
    let rest: String = out
        .lines()
        .filter(|line| !line.contains("\"tcpwhy.live/1\""))
        .map(|line| line.to_owned() + "\n")
        .collect();
    (ways, serde_json::from_str(&rest).unwrap_or_else(|error| panic!("{error}: {rest}")))
}

#[test]
fn what_is_said_at_the_end_is_what_read_says_of_the_file() {
    thrice(|| {
        let Some(lab) = beside("what_is_said_at_the_end_is_what_read_says_of_the_file") else { return };
        let _server = App::start(lab.pair.server(), &["echo", "8080"]);
        let client = App::start(lab.pair.client(), &["split", &Pair::SERVER_V4.to_string(), "8080"]);
        client.wait_for(3);
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("live.pcapng");
        let (pid, path) = (client.pid().to_string(), file.to_str().expect("a plain name"));
        let words = ["live", "--pid", &pid, "--for", "4s", "--every", "500ms", "--json", "--write", path];
        let output = tcpwhy(&words);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let (ways, end) = documents(&text(&output.stdout));
        assert!(ways.len() >= 4, "{ways:?}");
        let worst = &ways.last().expect("lines")["findings"][0];
        assert_eq!(worst["cause"], "nagle-delayed-ack", "{ways:#?}");
        assert!((0.03..0.06).contains(&(worst["p50_ns"].as_f64().expect("a time") / 1e9)), "{worst}");
        let (words, fix) = (&worst["socket"]["words"], &worst["socket"]["fix"]);
        assert_eq!(words, &format!("TCP_NODELAY is off at pid {pid} (python3)"), "{worst}");
        assert_eq!(fix, &format!("tcpwhy fix nodelay --pid {pid} --port 8080"), "{worst}");
        let schema = include_str!("../../../../docs/schema/tcpwhy.live.1.schema.json");
        let schema = serde_json::from_str(schema).expect("a schema");
        let schema = jsonschema::validator_for(&schema).expect("a schema");
        for way in &ways {
            assert!(schema.is_valid(way), "{way:#}");
        }
        assert!(ways.iter().any(|way| way["findings"][0]["lately"]["hits"].as_i64() > Some(5)), "{ways:#?}");
        same(&file, &end);
    });
}

/// The text names the saved file, whose packets it cites; options may follow the filter.
#[test]
fn what_is_saved_can_be_read_again() {
    thrice(|| {
        let Some(lab) = beside("what_is_saved_can_be_read_again") else { return };
        let server = App::start(lab.pair.server(), &["echo", "8080"]);
        let client = App::start(lab.pair.client(), &["split", &Pair::SERVER_V4.to_string(), "8080"]);
        client.wait_for(3);
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("live.pcapng");
        let (pid, path) = (server.pid().to_string(), file.to_str().expect("a plain name"));
        let output = tcpwhy(&["live", "--pid", &pid, "port", "8080", "--for", "3s", "--write", path]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let said = text(&output.stdout);
        let (_, end) = said.rsplit_once("== after").expect("lines");
        let (end, _) = end.split_once("Sockets of this machine").unwrap_or((end, ""));
        let read = tcpwhy(&["read", path, "--filter", "port 8080"]);
        let read = text(&read.stdout);
        assert!(
            read.contains("--connection 1") && end.trim_end().ends_with(read.trim_end()),
            "{end}\n{read}"
        );
    });
}

#[track_caller]
fn same(file: &Path, end: &Value) {
    let read = tcpwhy(&["read", "--json", file.to_str().expect("a plain name")]);
    let read: Value = serde_json::from_slice(&read.stdout).expect("a document");
    for part in ["answer", "elapsed_ns", "bill", "findings", "connections", "exchanges", "notes", "omitted"] {
        assert_eq!(read[part], end[part], "{part}");
    }
    assert!(end["exchanges"].as_u64() > Some(20));
}

#[test]
fn ctrl_c_ends_it_with_the_whole_answer_and_no_rights_were_left() {
    thrice(|| {
        let Some(lab) = beside("ctrl_c_ends_it_with_the_whole_answer_and_no_rights_were_left") else {
            return;
        };
        let server = App::start(lab.pair.server(), &["echo", "8080"]);
        let client = App::start(lab.pair.client(), &["split", &Pair::SERVER_V4.to_string(), "8080"]);
        client.wait_for(3);
        let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
        command.args(["live", "--pid", &server.pid().to_string(), "--every", "300ms"]);
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        std::thread::sleep(Duration::from_millis(2_500));
        let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).expect("it runs").flatten();
        let mut threads = 0;
        for task in tasks {
            let status = std::fs::read_to_string(task.path().join("status")).expect("a thread");
            for set in ["CapEff", "CapPrm", "CapInh"] {
                assert!(status.contains(&format!("{set}:\t0000000000000000")), "{status}");
            }
            assert!(status.contains("NoNewPrivs:\t1"));
            threads += 1;
        }
        assert!(threads >= 2, "the one that waits and the one that captures");
        children(child.id());
        kill_process(Pid::from_raw(child.id() as i32).expect("a pid"), Signal::INT).expect("it runs");
        let output = child.wait_with_output().expect("it ends");
        let said = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(
            said.contains("== after ") && said.contains("  nagle-delayed-ack    client of 10.77.0.2:8080"),
            "{said}"
        );
        let (_, end) = said.rsplit_once("== after").expect("lines");
        assert!(
            end.contains("delayed acknowledgement: the client writes") && end.contains("\nany: "),
            "{end}"
        );
        // Nothing can be read again, as nothing was saved.
        assert!(end.contains("not kept; `tcpwhy live --write FILE` saves them"), "{end}");
        assert!(!end.contains("tcpwhy read"), "{end}");
    });
}

/// The process that reads packets has no capabilities and is in its sandbox; the one that queries
/// sockets has three.
#[track_caller]
fn children(parent: u32) {
    let of_parent = |status: &String| status.contains(&format!("\nPPid:\t{parent}\n"));
    let all = std::fs::read_dir("/proc").expect("it is there").flatten();
    let all = all.filter_map(|entry| std::fs::read_to_string(entry.path().join("status")).ok());
    let (mut readers, mut askers) = (0, 0);
    for status in all.filter(of_parent) {
        assert!(status.contains("NoNewPrivs:\t1"), "{status}");
        if status.contains("Seccomp:\t2") {
            assert!(status.contains("CapPrm:\t0000000000000000"), "{status}");
            readers += 1;
        } else {
            // CAP_DAC_READ_SEARCH (2), CAP_SYS_PTRACE (19), CAP_SYS_ADMIN (21).
            let kept = own_rights() & (1 << 2 | 1 << 19 | 1 << 21);
            assert!(status.contains(&format!("CapPrm:\t{kept:016x}")), "{status}");
            assert!(status.contains("CapInh:\t0000000000000000"), "{status}");
            askers += 1;
        }
    }
    assert_eq!((readers, askers), (1, 1));
}

fn own_rights() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("it is there");
    let rights = status.lines().find_map(|line| line.strip_prefix("CapPrm:\t")).expect("a line");
    u64::from_str_radix(rights, 16).expect("a number")
}

#[test]
fn what_a_process_connects_to_later_is_captured_too_and_nothing_else() {
    thrice(|| {
        let Some(lab) = beside("what_a_process_connects_to_later_is_captured_too_and_nothing_else") else {
            return;
        };
        let address = Pair::SERVER_V4.to_string();
        let ports = ["8080", "8081", "8082"];
        let _servers = ports.map(|port| App::start(lab.pair.server(), &["echo", port]));
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).to_str().expect("a plain name").to_owned();
        let (sign, file) = (path("sign"), path("live.pcapng"));
        let client = App::start(lab.pair.client(), &["later", &address, "8080", "8081", &sign]);
        let other = App::start(lab.pair.client(), &["whole", &address, "8082"]);
        other.wait_for(3);
        let pid = client.pid().to_string();
        let mut seen = [false; 2];
        let said = live_until(&["--pid", &pid, "--write", &file], |answer| {
            let findings = answer["findings"].as_array().cloned().unwrap_or_default();
            for (port, seen) in ports.iter().zip(&mut seen) {
                let end = format!("{address}:{port}");
                *seen |= findings.iter().any(|finding| finding["endpoint"] == end);
            }
            if seen[0] {
                std::fs::write(&sign, "").expect("a file");
            }
            seen[1]
        });
        let (_, end) = documents(&said);
        let servers = end["connections"].as_array().expect("connections");
        let mut servers: Vec<&str> = servers.iter().filter_map(|one| one["server"].as_str()).collect();
        servers.sort_unstable();
        assert_eq!(servers, [format!("{address}:8080"), format!("{address}:8081")]);
        // The kernel has applied the filter, so the file contains no more than was reported.
        same(Path::new(&file), &end);
    });
}

#[test]
fn several_interfaces_and_the_processes_of_a_control_group() {
    thrice(|| {
        let Some(lab) = beside("several_interfaces_and_the_processes_of_a_control_group") else { return };
        let _server = App::start(lab.pair.server(), &["echo", "8080"]);
        let client = App::start(lab.pair.client(), &["split", &Pair::SERVER_V4.to_string(), "8080"]);
        client.wait_for(3);
        let none = tcpwhy(&["live", "--cgroup", "no-such.service", "--for", "1s"]);
        assert_eq!(text(&none.stderr), "tcpwhy: no process runs in control group no-such.service\n");
        let pid = client.pid().to_string();
        let whose = ["--pid", &pid];
        let words = ["-i", "lo", "-i", lab.pair.client().interface(), "--for", "3s", "--json", "--lines"];
        let refused = tcpwhy(&[&["live"], &whose[..], &words[..]].concat());
        assert_eq!(refused.status.code(), Some(2), "JSON and lines are two things");
        let output = tcpwhy(&[&["live"], &whose[..], &words[..words.len() - 1]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let (_, end) = documents(&text(&output.stdout));
        assert_eq!(end["findings"][0]["cause"], "nagle-delayed-ack", "{end:#}");
        assert_eq!(end["connections"].as_array().map(Vec::len), Some(1), "{end:#}");
    });
}

#[test]
fn what_cannot_be_captured_is_said_with_what_would_help() {
    let none = tcpwhy(&["live", "-i", "eth77", "--for", "1s"]);
    assert_eq!(none.status.code(), Some(1));
    let why = text(&none.stderr);
    assert!(why.contains("there is no interface \"eth77\"") || why.contains("CAP_NET_RAW"), "{why}");
    assert_eq!(tcpwhy(&["live", "prot", "80"]).status.code(), Some(2));
}
