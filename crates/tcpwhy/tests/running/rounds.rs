//! What is left of a fix that is killed in the middle? The original state, or a journal that
//! restores it.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tcpwhy_lab::Pair;

use crate::fix::{done, nodelay, on, with};
use crate::lab::{App, beside, tcpwhy, text};

#[test]
fn a_kill_in_the_middle_leaves_all_as_it_was_or_a_journal_that_restores_it() {
    rounds("a_kill_in_the_middle_leaves_all_as_it_was_or_a_journal_that_restores_it", 12, 3);
}

#[test]
#[ignore = "minutes; the same with few rounds runs always"]
fn two_hundred_kills_and_fifty_of_two_at_once() {
    rounds("two_hundred_kills_and_fifty_of_two_at_once", 200, 50);
}

/// Kills this many fixes at random moments, and this many pairs of them on the same socket.
fn rounds(test: &str, single: u32, pairs: u32) {
    let Some(lab) = beside(test) else { return };
    let journal = tempfile::tempdir().expect("a folder");
    let server = App::start(lab.pair.server(), &["echo", "8080"]);
    let client = App::start(lab.pair.client(), &["whole", &Pair::SERVER_V4.to_string(), "8080"]);
    client.wait_for(3);
    let locked =
        App::start(lab.pair.client(), &["fetch", &Pair::SERVER_V4.to_string(), "8080", "64", "65536", "600"]);
    let (client_pid, server_pid) = (client.pid().to_string(), server.pid().to_string());
    let locked_pid = locked.pid().to_string();
    let place = journal.path().to_str().expect("a plain name");
    let start = |fix: &[&str]| -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
        command.args(["fix", "--journal", place, "--no-measure", "--yes"]).args(fix);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts")
    };
    let state = || {
        let sysctl = on(lab.pair.server(), &["sysctl", "-n", "net.ipv4.tcp_slow_start_after_idle"]);
        let routes = on(lab.pair.server(), &["ip", "route", "show", "table", "all"]);
        (nodelay(&client_pid), buffer(&locked_pid), sysctl, routes)
    };
    let fixes: [&[&str]; 4] = [
        &["nodelay", "--pid", &client_pid],
        &["no-restart-after-idle", "--pid", &server_pid],
        &["unlock-rcvbuf", "--pid", &locked_pid],
        &["initcwnd=33", "--to", "10.77.0.1", "--pid", &server_pid],
    ];
    let before = state();
    // How long one takes if it is not killed.
    let begun = std::fs::metadata(place).and_then(|of| of.modified()).expect("a time");
    let _ = start(fixes[0]).wait();
    let took = std::fs::metadata(journal.path().join("tcpwhy/journal")).and_then(|of| of.modified());
    let whole = took
        .expect("a time")
        .duration_since(begun)
        .unwrap_or_default()
        .clamp(Duration::from_millis(5), Duration::from_millis(60));
    done(&with(journal.path(), &["undo", "--all"]));
    assert_eq!(state(), before);
    // Numerical Recipes' generator: the same moments each time, as far as the machine allows.
    let mut seed = 20_261_123_u32;
    let mut random = |below: u32| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) % below
    };
    let mut changed = 0;
    for round in 0..single + pairs {
        let at_once = if round < single { 1 } else { 2 };
        let fix = if at_once == 1 { fixes[random(4) as usize] } else { fixes[0] };
        let mut killed: Vec<Child> = (0..at_once).map(|_| start(fix)).collect();
        for child in &mut killed {
            let whole_us = whole.as_micros() as u32 * 3 / 2;
            std::thread::sleep(Duration::from_micros(u64::from(random(whole_us / at_once))));
            if let Some(pid) = Pid::from_raw(child.id() as i32) {
                // It may have ended.
                let _ = kill_process(pid, Signal::KILL);
            }
            child.wait().expect("it ends");
        }
        changed += u32::from(state() != before);
        let undone = with(journal.path(), &["undo", "--all"]);
        assert!(undone.status.success(), "round {round}: {}", text(&undone.stderr));
        assert_eq!(state(), before, "round {round}");
    }
    eprintln!("{changed} of {} rounds had changed something when they were killed", single + pairs);
}

/// Whether the receive buffer of a process's only connection is locked, and its size.
fn buffer(pid: &str) -> String {
    let output = tcpwhy(&["sockets", "--json", "--all", "--once", "--pid", pid]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a document");
    let socket = &document["sockets"][0];
    format!("{} {}", socket["options"]["SO_RCVBUF_locked"], socket["memory"]["receive_max"])
}
