//! Does `tcpwhy fix` bring the gain it reports, measured by the applications' own clocks, and does `tcpwhy
//! undo` restore the state before, also after a kill in the middle?

use std::path::Path;
use std::process::{Command, Output, Stdio};

use tcpwhy_lab::{Host, Pair};

use crate::lab::{App, beside, lab, skip, tcpwhy, text, thrice};
use crate::programs::{limited, live};

/// `tcpwhy fix` or `undo` with its own journal.
pub(crate) fn with(journal: &Path, words: &[&str]) -> Output {
    let place = journal.to_str().expect("a plain name");
    tcpwhy(&[&words[..1], &["--journal", place], &words[1..]].concat())
}

#[track_caller]
pub(crate) fn done(output: &Output) -> String {
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    said
}

/// The median in the line that begins with `when`, in seconds.
#[track_caller]
pub(crate) fn told_s(said: &str, when: &str) -> f64 {
    let line = said.lines().find(|line| line.starts_with(when)).unwrap_or_else(|| panic!("{when}: {said}"));
    let (_, rest) = line.split_once("median ").expect("a median");
    let mut words = rest.split(' ');
    let number: f64 = words.next().expect("a number").replace(',', "").parse().expect("a number");
    let unit = match words.next().expect("a unit") {
        "ns" => 1e-9,
        "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        unit => panic!("{unit}: {line}"),
    };
    number * unit
}

#[track_caller]
pub(crate) fn near(told: f64, clock: f64, tolerance_s: f64) {
    assert!(
        (told - clock).abs() <= 0.05 * clock + tolerance_s,
        "told {told} s, by the application's clock {clock} s"
    );
}

/// Once the path adds no delay, both clocks differ by the time of the application's read and write.
pub(crate) const CALLS_S: f64 = 300e-6;

#[test]
fn nodelay_on_a_running_client_takes_the_stall_away_and_undo_brings_it_back() {
    thrice(|| {
        let name = "nodelay_on_a_running_client_takes_the_stall_away_and_undo_brings_it_back";
        let Some(lab) = lab(name, 0) else { return };
        let journal = tempfile::tempdir().expect("a folder");
        let address = Pair::SERVER_V4.to_string();
        let java = |source: &str, words: &[&str]| {
            let mut java = Command::new("java");
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/running/");
            java.arg("-Xshare:auto").arg(format!("{folder}{source}")).args(words);
            java
        };
        let has_java = Command::new("java").arg("-version").stderr(Stdio::null()).status().is_ok();
        let (_server, client) = if has_java {
            let server = App::run(lab.pair.server(), java("Echo.java", &["8080"]));
            server.wait_for(1);
            (server, App::run(lab.pair.client(), java("Split.java", &[&address, "8080"])))
        } else {
            skip(name, "java is not installed");
            let server = App::start(lab.pair.server(), &["echo", "8080"]);
            (server, App::start(lab.pair.client(), &["split", &address, "8080"]))
        };
        client.wait_for(5);
        let pid = client.pid().to_string();
        let before_s = client.median_s(20);
        assert!((0.038..0.060).contains(&before_s), "{before_s}");
        let held = limited(&["--pid", &pid], &["nagle"]);
        assert_eq!(held["options"]["TCP_NODELAY"], false, "{held:#}");
        assert_eq!(held["words"], "Nagle: 100 B wait for the peer's acknowledgement");
        let finding = live(&pid, "nagle-delayed-ack");
        let command = if has_java { "java" } else { "python3" };
        assert_eq!(finding["socket"]["words"], format!("TCP_NODELAY is off at pid {pid} ({command})"));
        let fix = ["fix", "nodelay", "--pid", &pid, "--port", "8080", "--measure", "2s", "--yes"];
        let from = client.said();
        let said = done(&with(journal.path(), &fix));
        // By the clock of the same exchanges: some forty in two seconds.
        let (before_s, after_s) =
            (client.median_of_s(from, 40), client.median_of_s(client.said() - 200, 200));
        assert!(after_s < 0.001, "{after_s}");
        near(told_s(&said, "before"), before_s, CALLS_S);
        near(told_s(&said, "after"), after_s, CALLS_S);
        assert!(said.contains("; nagle-delayed-ack ") && said.contains("Better: "), "{said}");
        assert!(said.contains("TCP_NODELAY of descriptor"), "{said}");
        let listed = done(&with(journal.path(), &["undo"]));
        assert!(listed.contains(": 0 -> 1 (nodelay)"), "{listed}");
        assert!(listed.contains("`tcpwhy undo --all` all of them"), "{listed}");
        let undone = done(&with(journal.path(), &["undo", "--all"]));
        assert!(undone.contains("reverted"), "{undone}");
        let again_s = client.median_s(20);
        near(again_s, before_s, 0.004);
        eprintln!("split writes: {before_s:.4} s, fixed {after_s:.6} s, undone {again_s:.4} s\n{said}");
        assert_eq!(done(&with(journal.path(), &["undo"])), "Nothing is changed.\n");
        assert_eq!(done(&with(journal.path(), &["undo", "--all"])), "Nothing is changed.\n");
    });
}

#[test]
fn a_window_that_was_fixed_opens_on_the_running_connection() {
    thrice(|| {
        let Some(lab) = lab("a_window_that_was_fixed_opens_on_the_running_connection", 26) else { return };
        let journal = tempfile::tempdir().expect("a folder");
        let _server = App::start(lab.pair.server(), &["source", "8080", "3000000"]);
        let address = Pair::SERVER_V4.to_string();
        let client =
            App::start(lab.pair.client(), &["fetch", &address, "8080", "3000000", "65536", "0", "late"]);
        let before_s = client.median_s(3);
        assert!(before_s > 1.0, "{before_s}: 3 MB of 64 KB windows");
        let pid = client.pid().to_string();
        let said =
            done(&with(journal.path(), &["fix", "unlock-rcvbuf", "--pid", &pid, "--measure", "8s", "--yes"]));
        let after_s = client.median_s(9);
        assert!(after_s < 0.3, "{after_s}: {said}");
        near(told_s(&said, "before"), before_s, 0.03);
        near(told_s(&said, "after"), after_s, 0.03);
        assert!(said.contains("SO_RCVBUF of descriptor") && said.contains("locked 65536 -> free"), "{said}");
        done(&with(journal.path(), &["undo", "--all"]));
        let again_s = client.median_s(3);
        assert!(again_s > 1.0, "{again_s}");
    });
}

#[test]
fn a_connection_that_keeps_its_window_over_a_pause_is_faster_behind_it() {
    idle("a_connection_that_keeps_its_window_over_a_pause_is_faster_behind_it", "1.2", "9s");
}

#[test]
#[ignore = "two minutes; the same with shorter pauses runs always"]
fn pauses_of_three_seconds() {
    idle("pauses_of_three_seconds", "3", "40s");
}

/// 200 kB over 26 ms on one connection, with pauses: slow start after each, or not.
fn idle(test: &str, pause: &str, measure: &str) {
    thrice(|| {
        let Some(lab) = lab(test, 26) else { return };
        let journal = tempfile::tempdir().expect("a folder");
        let server = App::start(lab.pair.server(), &["source", "8080", "200000"]);
        let address = Pair::SERVER_V4.to_string();
        let client = App::start(lab.pair.client(), &["fetch", &address, "8080", "200000", "0", pause]);
        client.wait_for(4);
        let pid = server.pid().to_string();
        let words =
            ["fix", "no-restart-after-idle", "--pid", &pid, "--port", "8080", "--measure", measure, "--yes"];
        // Seven pauses fit in each measurement. On a busy machine a transfer now and then takes one round
        // trip more, so the clock is read while the tool measures, not before and after.
        let from = client.said();
        let said = done(&with(journal.path(), &words));
        let (before_s, after_s) = (client.median_of_s(from + 1, 5), client.median_of_s(client.said() - 5, 5));
        // First ten segments, then twice as many each round trip; after the fix all at once.
        assert!(before_s > after_s + 0.045, "{before_s} {after_s}");
        near(told_s(&said, "before"), before_s, 0.001);
        near(told_s(&said, "after"), after_s, 0.001);
        assert!(said.contains("Better: "), "{said}");
        done(&with(journal.path(), &["undo", "--all"]));
        let again_s = client.median_s(3);
        assert!(again_s > after_s + 0.045, "{again_s} {after_s}");
        eprintln!(
            "pauses of {pause} s: {before_s:.4} s, fixed {after_s:.4} s, undone {again_s:.4} s\n{said}"
        );
    });
}

#[test]
fn what_does_not_help_is_said_and_taken_back() {
    thrice(|| {
        let Some(lab) = lab("what_does_not_help_is_said_and_taken_back", 0) else { return };
        let journal = tempfile::tempdir().expect("a folder");
        let _server = App::start(lab.pair.server(), &["echo", "8080"]);
        let client = App::start(lab.pair.client(), &["whole", &Pair::SERVER_V4.to_string(), "8080"]);
        client.wait_for(10);
        let pid = client.pid().to_string();
        let said =
            done(&with(journal.path(), &["fix", "nodelay", "--pid", &pid, "--measure", "1s", "--yes"]));
        // If the machine is busy in one of the two seconds, that one is slower, which is no help either.
        assert!(said.contains("No difference") || said.contains("Worse"), "{said}");
        assert!(said.contains("reverted"), "{said}");
        assert_eq!(nodelay(&pid), "0");
        assert_eq!(done(&with(journal.path(), &["undo"])), "Nothing is changed.\n");
    });
}

#[test]
fn nothing_is_changed_without_yes_and_what_somebody_else_changed_is_left() {
    let Some(lab) = beside("nothing_is_changed_without_yes_and_what_somebody_else_changed_is_left") else {
        return;
    };
    let journal = tempfile::tempdir().expect("a folder");
    let server = App::start(lab.pair.server(), &["echo", "8080"]);
    let pid = server.pid().to_string();
    let fix = ["fix", "rmem=16000000", "--pid", &pid, "--no-measure"];
    let read = |key: &'static str| on(lab.pair.server(), &["sysctl", "-n", key]);
    let before = read("net.ipv4.tcp_rmem");
    let dry = done(&with(journal.path(), &fix));
    assert!(
        dry.contains("-> 4096 131072 16000000")
            && dry.ends_with("Nothing was changed; use --yes to apply it.\n"),
        "{dry}"
    );
    assert_eq!(read("net.ipv4.tcp_rmem"), before);
    done(&with(journal.path(), &[&fix[..], &["--yes"]].concat()));
    assert_eq!(read("net.ipv4.tcp_rmem").split_whitespace().nth(2), Some("16000000"));
    on(lab.pair.server(), &["sysctl", "-qw", "net.ipv4.tcp_rmem=4096 131072 9000000"]);
    let refused = with(journal.path(), &["undo", "--all"]);
    assert_eq!(refused.status.code(), Some(1));
    let why = text(&refused.stderr);
    assert!(why.contains("is 4096 131072 9000000 now, not") && why.contains("something else"), "{why}");
    assert_eq!(read("net.ipv4.tcp_rmem").split_whitespace().nth(2), Some("9000000"));
    assert!(done(&with(journal.path(), &["undo"])).contains("it is 4096 131072 9000000 now"));
    on(lab.pair.server(), &["sysctl", "-qw", "net.ipv4.tcp_rmem=4096 131072 16000000"]);
    done(&with(journal.path(), &["undo", "1"]));
    assert_eq!(read("net.ipv4.tcp_rmem"), before);
}

#[test]
fn a_route_keeps_all_else_and_comes_back_as_it_was() {
    let Some(lab) = beside("a_route_keeps_all_else_and_comes_back_as_it_was") else { return };
    let journal = tempfile::tempdir().expect("a folder");
    let server = App::start(lab.pair.server(), &["echo", "8080"]);
    let pid = server.pid().to_string();
    let host = lab.pair.server();
    let routes = [
        "10.9.0.0/16 via 10.77.0.1 proto static metric 7 mtu lock 1300 rto_min 120ms hoplimit 9 advmss 1200",
        "10.9.1.0/24 proto bird metric 3 initcwnd 12 nexthop via 10.77.0.1 weight 3 nexthop dev path0 weight 1",
    ];
    for route in routes {
        on(host, &[&["ip", "route", "add"][..], &route.split(' ').collect::<Vec<_>>()].concat());
    }
    let shown = || on(host, &["ip", "route", "show", "table", "all"]);
    let before = shown();
    for (fix, to, shows) in [
        ("initcwnd=30", "10.9.7.7", "initcwnd 30"),
        ("initrwnd=44", "10.9.7.7", "initrwnd 44"),
        ("quickack", "10.77.0.1", "quickack 1"),
        ("initcwnd=20", "10.9.1.1", "initcwnd 20"),
    ] {
        let words = ["fix", fix, "--to", to, "--pid", &pid, "--no-measure", "--yes"];
        done(&with(journal.path(), &words));
        let now = shown();
        assert!(now.contains(shows), "{now}");
        assert_eq!(now.lines().count(), before.lines().count(), "none more and none less:\n{before}\n{now}");
    }
    let said = done(&with(journal.path(), &["undo", "--all"]));
    assert_eq!(said.matches("reverted").count(), 4, "{said}");
    assert_eq!(shown(), before);

    // The output of --persist is valid input for a shell, and keeps the rest of the route as well.
    let said = done(&tcpwhy(&["fix", "initcwnd=30", "--to", "10.9.7.7", "--pid", &pid, "--persist"]));
    assert!(said.contains("routes \"10.9.0.0/16 10.77.0.1 initcwnd=30\""), "{said}");
    assert!(
        said.contains("Destination=10.9.0.0/16\n  Gateway=10.77.0.1\n  InitialCongestionWindow=30"),
        "{said}"
    );
    assert_eq!(shown(), before, "nothing is changed");
    let command = said.lines().find(|line| line.contains("ip route change")).expect("a command").trim();
    on(host, &["sh", "-c", command]);
    let now = shown();
    assert!(now.contains("initcwnd 30") && now.contains("rto_min") && now.contains("mtu lock 1300"), "{now}");
}

#[test]
fn what_makes_a_fix_last_is_told_in_the_words_of_the_program() {
    let Some(lab) = beside("what_makes_a_fix_last_is_told_in_the_words_of_the_program") else { return };
    let server = App::start(lab.pair.server(), &["echo", "8080"]);
    let pid = server.pid().to_string();
    let said = done(&tcpwhy(&["fix", "nodelay", "--pid", &pid, "--persist"]));
    assert!(
        said.contains(&format!("process {pid} runs on Python")) && said.contains("TCP_NODELAY"),
        "{said}"
    );
    assert!(!said.contains("Java"), "{said}");
    on(lab.pair.server(), &["sysctl", "-qw", "net.ipv4.tcp_rmem=5000 140000 9000000"]);
    let root = tempfile::tempdir().expect("a folder");
    std::fs::create_dir_all(root.path().join("etc/sysctl.d")).expect("a folder");
    let words = ["fix", "rmem=16000000", "--pid", &pid, "--persist"];
    let said = done(&tcpwhy(&words));
    assert!(said.contains("net.ipv4.tcp_rmem = 5000 140000 16000000"), "{said}");
    let file = root.path().join("etc/sysctl.d/60-tcpwhy.conf");
    assert!(!file.exists(), "printed only");
    let root = root.path().to_str().expect("a plain name");
    done(&tcpwhy(&[&words[..], &["--write", "--root", root]].concat()));
    let written = std::fs::read_to_string(file).expect("it is written");
    assert_eq!(written, "net.ipv4.tcp_rmem = 5000 140000 16000000\n");
}

#[test]
fn what_is_gone_needs_no_taking_back() {
    let Some(lab) = beside("what_is_gone_needs_no_taking_back") else { return };
    let journal = tempfile::tempdir().expect("a folder");
    let _server = App::start(lab.pair.server(), &["echo", "8080"]);
    let client = App::start(lab.pair.client(), &["whole", &Pair::SERVER_V4.to_string(), "8080"]);
    client.wait_for(3);
    let pid = client.pid().to_string();
    done(&with(journal.path(), &["fix", "nodelay", "--pid", &pid, "--no-measure", "--yes"]));
    assert_eq!(nodelay(&pid), "1");
    drop(client);
    let said = done(&with(journal.path(), &["undo", "--all"]));
    assert!(said.contains("nothing to revert") && said.contains("is gone"), "{said}");
    assert_eq!(done(&with(journal.path(), &["undo"])), "Nothing is changed.\n");
}

#[test]
fn each_option_and_ceiling_is_set_and_comes_back_as_it_was() {
    let Some(lab) = beside("each_option_and_ceiling_is_set_and_comes_back_as_it_was") else { return };
    let journal = tempfile::tempdir().expect("a folder");
    let server = App::start(lab.pair.server(), &["echo", "8080"]);
    let client = App::start(lab.pair.client(), &["fixed", &Pair::SERVER_V4.to_string(), "8080"]);
    let (client, server) = (client.pid().to_string(), server.pid().to_string());
    let seen = |pid: &str, listen: bool| {
        let words: &[&str] = if listen { &["--listen"] } else { &["--all", "--once"] };
        let output = tcpwhy(&[&["sockets", "--json", "--pid", pid], words].concat());
        let mut document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a document");
        document["sockets"][0].take()
    };
    let setting = |key: &str| on(lab.pair.server(), &["sysctl", "-n", key]);
    let state = || {
        let (open, listening) = (seen(&client, false), seen(&server, true));
        let memory = ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.core.somaxconn"].map(setting);
        let sizes = [&open["memory"]["send_max"], &listening["send_queue"]].map(ToString::to_string);
        let mut options = open["options"].clone();
        // The kernel changes it on its own.
        options["TCP_QUICKACK"].take();
        (options, sizes, memory)
    };
    let before = state();
    for (fix, pid, shows) in [
        ("unlock-sndbuf", &client, "SO_SNDBUF of descriptor"),
        ("congestion=reno", &client, ": cubic -> reno"),
        ("wmem=9000000", &server, "9000000"),
        ("backlog=5000", &server, "the backlog of descriptor"),
    ] {
        let said = done(&with(journal.path(), &["fix", fix, "--pid", pid, "--no-measure", "--yes"]));
        assert!(said.contains(shows), "{said}");
    }
    let (options, [_, backlog], [_, wmem, somaxconn]) = state();
    assert_eq!((&options["SO_SNDBUF_locked"], &options["TCP_CONGESTION"]), (&false.into(), &"reno".into()));
    assert_eq!((backlog.as_str(), somaxconn.trim()), ("5000", "5000"));
    assert_eq!(wmem.split_whitespace().nth(2), Some("9000000"));
    let said = done(&with(journal.path(), &["undo", "--all"]));
    assert_eq!(said.matches("reverted").count(), 5, "{said}");
    assert_eq!(state(), before);
}

#[test]
fn another_user_is_refused_with_what_would_help_and_nothing_changes() {
    use std::os::unix::fs::PermissionsExt as _;
    let Some(lab) = beside("another_user_is_refused_with_what_would_help_and_nothing_changes") else {
        return;
    };
    let server = App::start(lab.pair.server(), &["echo", "8080"]);
    let client = App::start(lab.pair.client(), &["whole", &Pair::SERVER_V4.to_string(), "8080"]);
    client.wait_for(3);
    let (pid, of_server) = (client.pid().to_string(), server.pid().to_string());
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).expect("its own");
    let place = folder.path().to_str().expect("a plain name");
    // Root's program, where any user may run it.
    let program = folder.path().join("program");
    std::fs::copy(env!("CARGO_BIN_EXE_tcpwhy"), &program).expect("a file");
    let nobody = |words: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&program).args(words);
        command.current_dir("/").stdin(Stdio::null()).output().expect("setpriv starts")
    };
    let journal = ["--journal", place];
    for words in [
        &["fix", "nodelay", "--pid", &pid, "--no-measure", "--yes"][..],
        &["fix", "rmem=16000000", "--pid", &of_server, "--no-measure", "--yes"],
        &["fix", "initcwnd=30", "--to", "10.77.0.1", "--pid", &of_server, "--no-measure", "--yes"],
        &["live", "--pid", &pid, "--for", "1s"],
        &["sockets", "--pid", &pid],
    ] {
        let words =
            if words[0] == "fix" { [&words[..1], &journal, &words[1..]].concat() } else { words.to_vec() };
        let refused = nobody(&words);
        assert_eq!(refused.status.code(), Some(1), "{words:?}: {}", text(&refused.stdout));
        let why = text(&refused.stderr);
        assert!(why.contains("root") && !why.contains("panicked"), "{words:?}: {why}");
    }
    assert_eq!(nodelay(&pid), "0");
    // A user cannot read a journal that root has begun, nor the other way round.
    done(&with(folder.path(), &["undo"]));
    let refused = nobody(&["undo", "--journal", place]);
    assert_eq!(refused.status.code(), Some(1), "{}", text(&refused.stdout));
    assert!(text(&refused.stderr).contains("journal"), "{}", text(&refused.stderr));
    // The settings of its own network namespace are root's.
    let refused = nobody(&["fix", "rmem=16000000", "--no-measure", "--yes"]);
    assert_eq!(refused.status.code(), Some(1), "{}", text(&refused.stdout));
}

#[test]
fn a_kernel_that_lacks_the_call_is_named_and_nothing_changes() {
    let Some(lab) = beside("a_kernel_that_lacks_the_call_is_named_and_nothing_changes") else { return };
    let _server = App::start(lab.pair.server(), &["source", "8080", "300000"]);
    let address = Pair::SERVER_V4.to_string();
    let client = App::start(lab.pair.client(), &["fetch", &address, "8080", "300000", "65536", "0", "late"]);
    client.wait_for(3);
    let pid = client.pid().to_string();
    let journal = tempfile::tempdir().expect("a folder");
    let place = journal.path().to_str().expect("a plain name");
    let older = |lacking: &str, words: &[&str]| {
        let mut command = Command::new("python3");
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/running/lacks.py")).arg(lacking);
        command.arg(env!("CARGO_BIN_EXE_tcpwhy")).args(words);
        command.stdin(Stdio::null()).output().expect("python3 starts")
    };
    for (lacking, fix, named) in [
        ("pidfd_getfd", "nodelay", "Linux 5.6"),
        ("pidfd_open", "nodelay", "Linux 5.6"),
        ("SO_BUF_LOCK", "unlock-rcvbuf", "Linux 5.15"),
    ] {
        let refused =
            older(lacking, &["fix", "--journal", place, fix, "--pid", &pid, "--no-measure", "--yes"]);
        let why = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{lacking}: {}{why}", text(&refused.stdout));
        assert!(why.contains("this kernel cannot do that") && why.contains(named), "{lacking}: {why}");
        // Commands that only read work without it.
        let told = older(lacking, &["sockets", "--json", "--all", "--once", "--pid", &pid]);
        assert!(told.status.success(), "{lacking}: {}", text(&told.stderr));
        let told: serde_json::Value = serde_json::from_slice(&told.stdout).expect("a document");
        assert_eq!(told["sockets"][0]["owner"]["pid"].to_string(), pid, "{lacking}: {told}");
    }
    assert_eq!(nodelay(&pid), "0");
    assert!(done(&with(journal.path(), &["undo"])).contains("Nothing is changed"));
}

#[test]
fn a_journal_that_others_can_write_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("tcpwhy");
    std::fs::create_dir(&folder).expect("a folder");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).expect("its own");
    let refused = with(place.path(), &["undo"]);
    assert!(text(&refused.stderr).contains("may own and access it"), "{}", text(&refused.stderr));
    std::fs::remove_dir(&folder).expect("it is empty");
    std::os::unix::fs::symlink("/etc", &folder).expect("a link");
    assert_eq!(with(place.path(), &["undo"]).status.code(), Some(1), "links are not followed");
}

/// TCP_NODELAY of a process's only connection.
pub(crate) fn nodelay(pid: &str) -> String {
    let output = tcpwhy(&["sockets", "--json", "--all", "--once", "--pid", pid]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a document");
    u8::from(document["sockets"][0]["options"]["TCP_NODELAY"] == true).to_string()
}

/// The output of a program on a host.
#[track_caller]
pub(crate) fn on(host: &Host, words: &[&str]) -> String {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdout(Stdio::piped());
    let output = host.spawn(command).expect("it starts").wait_with_output().expect("it ends");
    assert!(output.status.success(), "{words:?}");
    text(&output.stdout)
}
