//! Does `tcpwhy sockets` name what limits a running connection, and its owner? Judged by what the
//! applications did to their sockets, and by `ss` on the same kernel.

use std::process::Command;

use serde_json::Value;
use tcpwhy_lab::Pair;

use crate::lab::{App, beside, lab, tcpwhy, text, thrice};

/// What it says about the sockets of a process.
fn sockets(words: &[&str]) -> Vec<Value> {
    let output = tcpwhy(&[&["sockets", "--json", "--every", "400ms"], words].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).expect("one document");
    document["sockets"].as_array().expect("sockets").clone()
}

/// The only socket of a process.
#[track_caller]
fn only(words: &[&str]) -> Value {
    let all = sockets(words);
    assert_eq!(all.len(), 1, "{all:#?}");
    all[0].clone()
}

#[test]
fn a_split_write_is_nagle_with_nodelay_off() {
    thrice(|| {
        let Some(lab) = lab("a_split_write_is_nagle_with_nodelay_off", 0) else { return };
        let _server = App::start(lab.pair.server(), &["echo", "8080"]);
        let client = App::start(lab.pair.client(), &["split", &Pair::SERVER_V4.to_string(), "8080"]);
        // 40 of 44 ms are a stall, so most looks catch one.
        assert!(client.median_s(5) > 0.03);
        let pid = client.pid().to_string();
        let seen: Vec<Value> = (0..5).flat_map(|_| sockets(&["--pid", &pid])).collect();
        let held = seen.iter().find(|socket| socket["limit"] == "nagle").expect("Nagle in one look of five");
        assert_eq!(held["words"], "Nagle: 100 B wait for the peer's acknowledgement");
        assert_eq!(held["options"]["TCP_NODELAY"], false);
        assert_eq!(held["owner"]["pid"], client.pid());
        assert_eq!(held["remote"], format!("{}:8080", Pair::SERVER_V4));
    });
}

#[test]
fn a_window_that_is_fixed_is_blamed_on_whoever_fixed_it() {
    thrice(|| {
        let Some(lab) = lab("a_window_that_is_fixed_is_blamed_on_whoever_fixed_it", 26) else { return };
        let server = App::start(lab.pair.server(), &["source", "8080", "3000000"]);
        let address = Pair::SERVER_V4.to_string();
        let client = App::start(lab.pair.client(), &["fetch", &address, "8080", "3000000", "65536", "0"]);
        client.wait_for(2);
        let found = sockets(&["--all-netns", "src", "port", "8080", "and", "host", &address]);
        assert_eq!(found.len(), 1, "{found:#?}");
        let socket = &found[0];
        assert_eq!(socket["limit"], "receive-window", "{socket:#}");
        let lately = &socket["lately"];
        let share = lately["peer_window_us"].as_f64().unwrap() / lately["span_us"].as_f64().unwrap();
        assert!(share > 0.8, "{share}: 3 MB of 64 KB windows are 46 round trips");
        assert_eq!(socket["peer"]["receive_buffer_locked"], true);
        assert_eq!(socket["peer"]["receive_max"], 65_536);
        assert_eq!(socket["peer"]["owner"]["pid"], client.pid());
        let said = text(&tcpwhy(&["sockets", "-v", "--all-netns", "src", "port", "8080"]).stdout);
        let blame = format!("fixed to 65,536 B of memory by pid {} (python3", client.pid());
        assert!(said.contains(&blame), "{said}");
        assert!(
            said.contains("SO_SNDBUF not set") && said.contains("tcpwhy explain receive-window"),
            "{said}"
        );
        drop(server);
    });
}

#[test]
fn a_cork_and_a_reader_that_does_not_read_are_told() {
    thrice(|| {
        let Some(lab) = beside("a_cork_and_a_reader_that_does_not_read_are_told") else { return };
        let address = Pair::SERVER_V4.to_string();
        let corked = App::start(lab.pair.server(), &["corked", "8080"]);
        let client = App::start(lab.pair.client(), &["whole", &address, "8080"]);
        client.wait_for(2);
        let pid = corked.pid().to_string();
        let seen: Vec<Value> = (0..5).flat_map(|_| sockets(&["--pid", &pid])).collect();
        let held =
            seen.iter().find(|socket| socket["limit"] == "cork").expect("200 of 205 ms are the cork's");
        assert_eq!(held["words"], "TCP_CORK: 64 B are held");
        assert_eq!(held["options"]["TCP_CORK"], true);

        let deaf = App::start(lab.pair.server(), &["deaf", "8081"]);
        let talker = App::start(lab.pair.client(), &["talk", &address, "8081"]);
        std::thread::sleep(std::time::Duration::from_millis(1_500));
        let unread = only(&["--pid", &deaf.pid().to_string()]);
        assert_eq!(unread["limit"], "reader", "{unread:#}");
        assert!(unread["receive_queue"].as_u64().unwrap() > 50_000);
        let stopped = only(&["--pid", &talker.pid().to_string()]);
        assert!(
            ["zero-window", "receive-window"].contains(&stopped["limit"].as_str().unwrap()),
            "{stopped:#}"
        );
        assert_eq!(stopped["peer"]["owner"]["pid"], deaf.pid());
    });
}

#[test]
fn a_backlog_that_overflows_is_told() {
    thrice(|| {
        let Some(lab) = beside("a_backlog_that_overflows_is_told") else { return };
        let app = App::start(lab.pair.server(), &["full", "8080"]);
        app.wait_for(2);
        let pid = app.pid().to_string();
        let listener = only(&["--listen", "--pid", &pid]);
        assert_eq!(listener["limit"], "backlog");
        // One more than the application asked for (sk_acceptq_is_full compares by greater than).
        assert_eq!((&listener["receive_queue"], &listener["send_queue"]), (&Value::from(5), &Value::from(4)));
        // Unanswered SYNs are retransmitted after a second, and overflow the backlog again.
        let said = text(&tcpwhy(&["sockets", "--listen", "--pid", &pid, "--every", "3s"]).stdout);
        assert!(said.contains("the application does not accept: 5 wait, room for 4"), "{said}");
        assert!(said.contains(" found a full backlog"), "{said}");
    });
}

#[test]
fn what_is_read_is_what_ss_reads_and_reading_changes_nothing() {
    thrice(|| {
        let Some(lab) = lab("what_is_read_is_what_ss_reads_and_reading_changes_nothing", 5) else { return };
        let _server = App::start(lab.pair.server(), &["source", "8080", "200000"]);
        let address = Pair::SERVER_V4.to_string();
        let client = App::start(lab.pair.client(), &["fetch", &address, "8080", "200000", "100000", "600"]);
        client.wait_for(2);
        std::thread::sleep(std::time::Duration::from_millis(300));
        let pid = client.pid().to_string();
        let descriptors = || std::fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs").count();
        let ss = || {
            let mut command = Command::new("ss");
            command.args(["-tinmeO", "state", "established"]);
            let mut child = command;
            child.stdout(std::process::Stdio::piped());
            text(
                &lab.pair
                    .client()
                    .spawn(child)
                    .expect("ss starts")
                    .wait_with_output()
                    .expect("ss ends")
                    .stdout,
            )
        };
        let (before, held) = (ss(), descriptors());
        let first = only(&["--all", "--pid", &pid]);
        let second = only(&["--all", "--pid", &pid]);
        assert_eq!(first["options"], second["options"]);
        assert_eq!(descriptors(), held);
        let line = before.lines().find(|line| line.contains(":8080")).expect("ss sees it");
        let field = |name: &str| {
            let (_, rest) = line.split_once(name).unwrap_or_else(|| panic!("{name}: {line}"));
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(rest.len());
            rest[..end].to_owned()
        };
        let info = &first["tcp_info"];
        for (theirs, ours) in
            [(" cwnd:", "snd_cwnd"), (" bytes_received:", "bytes_received"), (" segs_in:", "segs_in")]
        {
            assert_eq!(field(theirs), info[ours].to_string(), "{ours}");
        }
        assert_eq!(field(" ino:"), first["inode"].to_string());
        assert_eq!(format!("sk:{}", field(" sk:")), format!("sk:{:x}", first["cookie"].as_u64().unwrap()));
        assert_eq!(field(",rb"), first["memory"]["receive_max"].to_string());
        assert_eq!(first["congestion"], "cubic");
        // Everything except what changes with time.
        let steady = |text: &str| text.split(" lastsnd").next().unwrap_or_default().to_owned();
        assert_eq!(steady(&before), steady(&ss()));
    });
}

#[test]
fn what_cannot_be_had_is_said_with_what_would_help() {
    let gone = tcpwhy(&["sockets", "--pid", "4000000"]);
    assert_eq!(gone.status.code(), Some(1));
    assert_eq!(text(&gone.stderr), "tcpwhy: there is no process 4000000\n");
    let wrong = tcpwhy(&["sockets", "prot", "80"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", text(&wrong.stderr));
    let none = tcpwhy(&["sockets", "--netns", "no-such-name"]);
    assert!(text(&none.stderr).contains("knows no namespace no-such-name"));
}
