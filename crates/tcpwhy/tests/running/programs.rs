//! Do `sockets`, `live`, `fix` and `undo` agree about real programs: nginx, PostgreSQL, Node? Each
//! with its own fault, judged by the clock of the waiting side.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tcpwhy_lab::{Host, Pair};

use crate::fix::{CALLS_S, done, near, told_s, with};
use crate::lab::{App, beside, lab, live_until, skip, tcpwhy, text, thrice};

/// Whether the program is installed; prints a message if not.
fn has(test: &str, program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program} >/dev/null")]).status();
    let found = found.is_ok_and(|status| status.success());
    if !found {
        skip(test, &format!("{program} is not installed"));
    }
    found
}

/// The worst socket of a process, by `tcpwhy sockets`.
#[track_caller]
pub(crate) fn limited(words: &[&str], limits: &[&str]) -> Value {
    // A brief state is not seen by every look.
    for _ in 0..10 {
        let output = tcpwhy(&[&["sockets", "--json", "--every", "300ms"], words].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let document: Value = serde_json::from_slice(&output.stdout).expect("one document");
        let sockets = document["sockets"].as_array().expect("sockets");
        let is_it = |socket: &&Value| limits.iter().any(|limit| socket["limit"] == *limit);
        if let Some(found) = sockets.iter().find(is_it) {
            return found.clone();
        }
    }
    panic!("{words:?}: none is limited by {limits:?}");
}

/// A finding of `tcpwhy live` about a process, with the state of its socket.
#[track_caller]
pub(crate) fn live(pid: &str, cause: &str) -> Value {
    let mut wanted = Value::Null;
    live_until(&["--pid", pid, "--snaplen", "96"], |answer| {
        let findings = answer["findings"].as_array().cloned().unwrap_or_default();
        let is_it = |finding: &Value| finding["cause"] == cause && finding["socket"].is_object();
        findings.into_iter().find(is_it).map(|found| wanted = found).is_some()
    });
    wanted
}

/// nginx in the foreground, one process, with a file of this many bytes.
fn nginx(host: &Host, folder: &Path, bytes: usize) -> App {
    std::fs::write(folder.join("big"), vec![b'x'; bytes]).expect("a file");
    let folder = folder.to_str().expect("a plain name");
    let conf = format!(
        "daemon off; master_process off; pid {folder}/pid; error_log stderr; events {{}}\n\
         http {{ access_log off; sendfile on; keepalive_requests 100000; server {{ listen 8080; root {folder}; }} }}"
    );
    let path = format!("{folder}/conf");
    std::fs::write(&path, conf).expect("a file");
    let mut command = Command::new("nginx");
    command.args(["-p", folder, "-c", &path]).stderr(Stdio::null());
    App::run(host, command)
}

#[test]
fn nginx_to_a_client_with_a_fixed_buffer() {
    let name = "nginx_to_a_client_with_a_fixed_buffer";
    if !has(name, "nginx") {
        return;
    }
    thrice(|| {
        let Some(lab) = lab(name, 26) else { return };
        let folder = tempfile::tempdir().expect("a folder");
        let journal = tempfile::tempdir().expect("a folder");
        let server = nginx(lab.pair.server(), folder.path(), 4_000_000);
        let address = Pair::SERVER_V4.to_string();
        std::thread::sleep(std::time::Duration::from_millis(700));
        let client = App::start(lab.pair.client(), &["get", &address, "8080", "/big", "98304"]);
        let before_s = client.median_s(3);
        assert!(before_s > 1.0, "{before_s}: 4 MB of small windows over 26 ms");
        let (pid, of_nginx) = (client.pid().to_string(), server.pid().to_string());

        let socket = limited(&["--all-netns", "--pid", &of_nginx], &["receive-window"]);
        assert_eq!(socket["peer"]["receive_buffer_locked"], true, "{socket:#}");
        assert_eq!(socket["peer"]["owner"]["pid"], client.pid());
        // At the sender: in the middle of a connection, only full flights show the scale of its
        // receiver's windows.
        let finding = live(&of_nginx, "receive-window");
        let words = finding["socket"]["words"].as_str().expect("a fact");
        assert!(
            words.starts_with("locked to 98,304 B (SO_RCVBUF) by pid ") && words.contains("(python3)"),
            "{words}"
        );
        let fix = finding["socket"]["fix"].as_str().expect("a fix");
        assert_eq!(fix, format!("tcpwhy fix unlock-rcvbuf --pid {pid} --port 8080"));

        let fix = ["fix", "unlock-rcvbuf", "--pid", &pid, "--port", "8080", "--measure", "8s", "--yes"];
        let from = client.said();
        let said = done(&with(journal.path(), &fix));
        // By the clock of the same transfers.
        let (before_s, after_s) = (client.median_of_s(from + 1, 3), client.median_of_s(client.said() - 9, 9));
        assert!(after_s < 0.3, "{after_s}: {said}");
        near(told_s(&said, "before"), before_s, 0.03);
        near(told_s(&said, "after"), after_s, 0.03);
        done(&with(journal.path(), &["undo", "--all"]));
        let again_s = client.median_s(3);
        assert!(again_s > 1.0, "{again_s}");
        eprintln!(
            "nginx, 4 MB over 26 ms: {before_s:.3} s, fixed {after_s:.3} s, undone {again_s:.3} s\n{said}"
        );
    });
}

#[test]
fn node_with_a_cork_that_it_inherits() {
    let name = "node_with_a_cork_that_it_inherits";
    if !has(name, "node") {
        return;
    }
    thrice(|| {
        let Some(lab) = lab(name, 0) else { return };
        let journal = tempfile::tempdir().expect("a folder");
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/running/corked.js");
        let server = App::start(lab.pair.server(), &["node", "8080", script]);
        let client = App::start(lab.pair.client(), &["whole", &Pair::SERVER_V4.to_string(), "8080"]);
        let before_s = client.median_s(5);
        assert!((0.19..0.24).contains(&before_s), "{before_s}: the cork's timer is 200 ms");
        let pid = server.pid().to_string();

        let socket = limited(&["--pid", &pid], &["cork"]);
        assert_eq!(socket["options"]["TCP_CORK"], true, "{socket:#}");
        let finding = live(&pid, "cork");
        assert_eq!(finding["socket"]["words"], format!("TCP_CORK is set by pid {pid} (node)"), "{finding:#}");

        let fix = ["fix", "uncork", "--pid", &pid, "--port", "8080", "--measure", "3s", "--yes"];
        let from = client.said();
        let said = done(&with(journal.path(), &fix));
        let before_s = client.median_of_s(from + 1, 7);
        let after_s = client.median_of_s(client.said() - 200, 200);
        assert!(after_s < 0.002, "{after_s}: {said}");
        near(told_s(&said, "before"), before_s, 0.002);
        near(told_s(&said, "after"), after_s, CALLS_S);
        done(&with(journal.path(), &["undo", "--all"]));
        let again_s = client.median_s(5);
        assert!((0.19..0.24).contains(&again_s), "{again_s}");
        eprintln!("Node, corked: {before_s:.4} s, fixed {after_s:.6} s, undone {again_s:.4} s\n{said}");
    });
}

#[test]
fn postgresql_to_a_reader_that_sips() {
    let name = "postgresql_to_a_reader_that_sips";
    let Some(binaries) = postgresql() else {
        skip(name, "PostgreSQL is not installed");
        return;
    };
    thrice(|| {
        let Some(lab) = beside(name) else { return };
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().to_str().expect("a plain name");
        let made = format!(
            "chown postgres {place} && chmod 700 {place} && runuser -u postgres -- {binaries}/initdb -D {place}/db -A trust -N \
             --no-locale && echo 'host all all 0.0.0.0/0 trust' >> {place}/db/pg_hba.conf"
        );
        let made = Command::new("sh").args(["-c", &made]).output().expect("a shell");
        assert!(made.status.success(), "{}", text(&made.stderr));
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "postgres", "--regid", "postgres", "--clear-groups"]);
        command.args([
            &format!("{binaries}/postgres"),
            "-D",
            &format!("{place}/db"),
            "-p",
            "5432",
            "-k",
            place,
        ]);
        command.args(["-h", "*", "-c", "fsync=off"]).stderr(Stdio::null());
        let _server = App::run(lab.pair.server(), command);
        let address = Pair::SERVER_V4.to_string();
        let up = || {
            let mut command = Command::new("python3");
            command.args([
                "-c",
                "import socket,sys; socket.create_connection((sys.argv[1], 5432), 1)",
                &address,
            ]);
            command.stderr(Stdio::null());
            let mut child = lab.pair.client().spawn(command).expect("it starts");
            child.wait().is_ok_and(|status| status.success())
        };
        assert!((0..50).any(|_| up() || {
            std::thread::sleep(std::time::Duration::from_millis(200));
            false
        }));
        let client = App::start(lab.pair.client(), &["sip", &address, "5432"]);
        std::thread::sleep(std::time::Duration::from_millis(1_500));
        let pid = client.pid().to_string();
        let reader = limited(&["--pid", &pid], &["reader"]);
        assert_eq!(reader["owner"]["command"], "python3", "{reader:#}");
        let sender = limited(&["--all-netns", "--process", "postgres"], &["receive-window", "zero-window"]);
        assert_eq!(sender["peer"]["owner"]["pid"], client.pid(), "{sender:#}");
        assert_eq!(sender["peer"]["receive_buffer_locked"], false, "{sender:#}");
        let finding = live(&pid, "receiver-think");
        assert_eq!(finding["side"], "client", "{finding:#}");
        assert_eq!(finding["socket"]["pid"], client.pid(), "{finding:#}");
    });
}

/// Where its programs are.
fn postgresql() -> Option<String> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let mut found: Vec<String> =
        versions.map(|entry| entry.path().join("bin").display().to_string()).collect();
    found.retain(|path| Path::new(path).join("initdb").is_file());
    found.sort();
    found.pop()
}
