//! Does the output fit its reader? The width of the terminal, the local time, the parts that were
//! asked for.
#![cfg(unix)]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn split_in(zone: &str, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    command.env("TZ", zone).arg("read").arg(data("split.pcap")).args(args).stdin(Stdio::null());
    command.output().unwrap_or_else(|error| panic!("tcpwhy does not start: {error}"))
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The output on a terminal of this many columns, by util-linux's script(1).
fn on_a_terminal(columns: usize, args: &str) -> Option<String> {
    shown_by(&format!("stty cols {columns} rows 40; PAGER=cat"), args)
}

/// The output of an answer on a terminal, after this piece of shell.
fn shown_by(setting: &str, args: &str) -> Option<String> {
    shown_of(setting, &format!("read {} {args}", data("split.pcap").display()))
}

/// The output of this command on a terminal, after this piece of shell.
fn shown_of(setting: &str, words: &str) -> Option<String> {
    let command = format!("{setting} {} {words}", env!("CARGO_BIN_EXE_tcpwhy"));
    let output = Command::new("script").args(["-qec", &command, "/dev/null"]).stdin(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => Some(stdout(&output).replace("\r\n", "\n")),
        _ => {
            assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "script(1) is missing");
            println!("skipped: script(1) is missing");
            None
        }
    }
}

/// The width without colour sequences.
fn columns(line: &str) -> usize {
    let (mut columns, mut escaped) = (0, false);
    for c in line.chars() {
        match (escaped, c) {
            (false, '\x1b') => escaped = true,
            (true, 'm') => escaped = false,
            (true, _) => {}
            (false, _) => columns += 1,
        }
    }
    columns
}

#[test]
fn text_is_as_wide_as_the_terminal() {
    for width in [80, 100, 132, 200] {
        for args in ["", "--connection 1", "--connection 1 --exchange 3", "--connection 1 --slowest 5"] {
            let Some(shown) = on_a_terminal(width, args) else { return };
            let widest = shown.lines().map(columns).max().unwrap_or(0);
            assert!(widest <= width, "{widest} of {width} columns with '{args}':\n{shown}");
            assert!(
                args.starts_with("--connection") || widest > width * 3 / 4,
                "{widest} of {width}:\n{shown}"
            );
        }
    }
    // Narrow ones show the answer and the bill; a file's name is as long as it is.
    for width in [40, 60] {
        let Some(shown) = on_a_terminal(width, "--brief") else { return };
        let lines = || shown.lines().filter(|line| !line.contains("split.pcap"));
        assert!(lines().map(columns).max().unwrap_or(0) <= width, "{width}:\n{shown}");
        assert!(lines().any(|line| line.contains("nagle-delayed-ack") && line.contains("99.6 %")), "{shown}");
    }
    // Without a terminal, the width is 100, or as requested.
    let wide = stdout(&split_in("UTC", &["--width", "60"]));
    assert!(wide.lines().take(4).all(|line| columns(line) <= 60), "{wide}");
}

fn recording(name: &str) -> String {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/lab");
    corpus.join(name).join("client.pcapng.zst").display().to_string()
}

/// 80 columns are always enough: for any command and any recording.
#[test]
fn nothing_is_wider_than_80_columns() {
    let recordings = ["split", "d-sndbuf", "connect-each", "lost-request", "e-histogram", "mtu-black-hole"];
    // A connection for `sockets` to list, whose receiver does not read.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap_or_else(|error| panic!("{error}"));
    let mut writer = listener.local_addr().and_then(std::net::TcpStream::connect).ok();
    let _reader = listener.accept();
    assert!(writer.as_mut().is_some_and(|writer| writer.write_all(&vec![0; 20_000]).is_ok()));
    let mut commands = vec!["lab".to_owned(), "explain".to_owned(), "sockets --all --once -v".to_owned()];
    commands.push(format!("compare {} {}", recording("split"), recording("split+one-write")));
    for cause in ["nagle-delayed-ack", "rto", "receive-window", "handshake", "send-buffer"] {
        commands.push(format!("explain {cause}"));
    }
    for name in recordings {
        let capture = recording(name);
        commands.push(format!("list {capture}"));
        commands.push(format!("list {capture} --sort slowest --top 3"));
        commands.push(format!("read {capture} --all-stacks"));
        commands.push(format!("read {capture} -c 1"));
        commands.push(format!("read {capture} -c 1 --exchange 1"));
    }
    for words in commands {
        let Some(shown) = shown_of("stty cols 80 rows 40; PAGER=cat", &words) else { return };
        // The name of a file is as long as it is; a word that is a command to copy is not broken.
        let lines: Vec<&str> = shown.lines().filter(|line| !line.contains(".pcapng")).collect();
        let widest = lines.iter().max_by_key(|line| columns(line)).copied().unwrap_or_default();
        assert!(!lines.is_empty() && columns(widest) <= 80, "{words}: {widest}");
    }
}

/// A line of a list has the columns that fit, and the list names those that do not.
#[test]
fn a_list_has_the_columns_that_fit() {
    let list = |columns: usize, args: &str| {
        shown_of(
            &format!("stty cols {columns} rows 40;"),
            &format!("list {} --color never {args}", recording("split")),
        )
    };
    let Some(wide) = list(132, "") else { return };
    assert!(wide.starts_with("n  stream  client"), "{wide}");
    assert!(wide.contains("1       0  10.77.0.1:37002"), "the number that Wireshark has for it: {wide}");
    assert!(wide.contains("`tcp.stream eq N` in Wireshark") && !wide.contains("No room"), "{wide}");
    let narrow = list(80, "").unwrap_or_default();
    for column in ["client", "server", "start", "lasts", "billed", "top cause"] {
        assert!(narrow.lines().next().is_some_and(|heading| heading.contains(column)), "{narrow}");
    }
    assert!(
        narrow.contains("No room for stream, exch., slowest") && narrow.contains("  nagle-delayed-ack\n"),
        "{narrow}"
    );
    assert!(
        narrow.replace('\n', " ").contains("The first one listed is `tcp.stream eq 0` in Wireshark."),
        "{narrow}"
    );
    // The sort column stays.
    let slowest = list(80, "--sort slowest").unwrap_or_default();
    assert!(
        slowest.contains("  slowest  ") && slowest.contains("No room for stream, lasts, exch.:"),
        "{slowest}"
    );
    let forty = list(40, "").unwrap_or_default();
    assert!(forty.lines().all(|line| columns(line) <= 40), "{forty}");
}

/// Output without a capture goes through the pager as well, and is the same without a terminal.
#[test]
fn lists_and_explanations_go_to_the_pager() {
    let setting = |rows: usize| format!("stty cols 100 rows {rows}; PAGER='sed s/^/paged:/'");
    let (split, fixed) = (recording("split"), recording("split+one-write"));
    for words in
        ["explain rto".to_owned(), "explain".into(), "lab".into(), format!("compare {split} {fixed}")]
    {
        let Some(long) = shown_of(&setting(5), &format!("{words}; true")) else { return };
        assert!(long.lines().count() > 5 && long.lines().all(|line| line.starts_with("paged:")), "{long}");
        let short = shown_of(&setting(900), &format!("{words}; true")).unwrap_or_default();
        assert_eq!(short, long.replace("paged:", ""));
    }
    // A dozen sockets that exist as long as this test runs.
    let open: Vec<_> = (0..12).filter_map(|_| std::net::TcpListener::bind("127.0.0.1:0").ok()).collect();
    let sockets = shown_of(&setting(5), "sockets --listen --all --once; true").unwrap_or_default();
    assert!(sockets.lines().count() > open.len().min(5), "{sockets}");
    assert!(sockets.lines().all(|line| line.starts_with("paged:")), "{sockets}");
    let connections =
        shown_of(&setting(5), &format!("list {}", recording("connect-each"))).unwrap_or_default();
    assert!(connections.lines().all(|line| line.starts_with("paged:")), "{connections}");
}

#[test]
fn times_of_day_are_the_readers_or_utc() {
    // The first packet's tshark frame.time_epoch is in the document; date(1) knows the clocks of
    // both places.
    let document: serde_json::Value =
        serde_json::from_slice(&split_in("UTC", &["--json"]).stdout).unwrap_or_default();
    let second = document["capture"]["first_ns"].as_i64().unwrap_or(0) / 1_000_000_000;
    for (zone, args) in [("Europe/Berlin", &[][..]), ("Asia/Kolkata", &[]), ("Europe/Berlin", &["--utc"])] {
        let of_date = if args.is_empty() { zone } else { "UTC" };
        let mut date = Command::new("date");
        date.env("TZ", of_date).args(["-d", &format!("@{second}"), "+%Y-%m-%d %H:%M:%S"]);
        let said = date.output().map(|output| stdout(&output).trim().to_owned()).unwrap_or_default();
        let shown = stdout(&split_in(zone, args));
        assert!(
            shown.replace('\n', " ").contains(&format!("from {said}.")),
            "{zone} {args:?}: {said}\n{shown}"
        );
        // Times can be passed back as shown.
        let of_day = said.split_once(' ').map_or("", |(_, of_day)| of_day);
        for given in [of_day, &said, &said.replace(' ', "T")] {
            let mut words = vec!["--json", "--from", given];
            words.extend(args);
            let part = split_in(zone, &words);
            let part: serde_json::Value = serde_json::from_slice(&part.stdout).unwrap_or_default();
            assert_eq!(part["capture"]["window"]["from_ns"], second * 1_000_000_000, "{zone} {words:?}");
            assert_eq!(part["capture"]["packets"], document["capture"]["packets"]);
        }
        // A date without a time is midnight there.
        let date = said.split_once(' ').map_or("", |(date, _)| date);
        let mut midnight = Command::new("date");
        let midnight = midnight.env("TZ", of_date).args(["-d", &format!("{date} 00:00:00"), "+%s"]).output();
        let midnight: i64 = midnight.map_or(0, |output| stdout(&output).trim().parse().unwrap_or(0));
        let mut words = vec!["--json", "--from", date];
        words.extend(args);
        let part: serde_json::Value =
            serde_json::from_slice(&split_in(zone, &words).stdout).unwrap_or_default();
        assert_eq!(part["capture"]["window"]["from_ns"], midnight * 1_000_000_000, "{zone} {words:?}");
        // Each exchange has the local time as well.
        let mut words = vec!["-c", "1"];
        words.extend(args);
        let rows = stdout(&split_in(zone, &words));
        let minute = of_day.get(..5).unwrap_or_default();
        assert!(
            rows.lines().filter(|line| line.contains(" exchange  ") && line.contains(minute)).count() > 8,
            "{rows}"
        );
    }
}

#[test]
fn brief_is_the_answer_and_the_bill_and_stacks_are_those_asked_for() {
    let brief = stdout(&split_in("UTC", &["--brief"]));
    assert!(brief.contains("delayed acknowledgement") && brief.contains("  cause "), "{brief}");
    assert!(!brief.contains("fix ") && brief.lines().count() < 16, "{brief}");
    let go = stdout(&split_in("UTC", &["--stack", "go,nginx"]));
    assert!(go.contains("bufio.Writer") && go.contains("nginx "), "{go}");
    assert!(!go.contains("BufferedOutputStream") && !go.contains("sendall"), "{go}");
    assert_eq!(split_in("UTC", &["--stack", "cobol"]).status.code(), Some(2));
}

#[test]
fn a_pipe_is_answered_every_so_often() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    command.args(["read", "-", "--every", "300ms"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{error}"));
    let Some(mut stdin) = child.stdin.take() else { panic!("a pipe") };
    let bytes = std::fs::read(data("split.pcap")).unwrap_or_else(|error| panic!("{error}"));
    let (first, rest) = bytes.split_at(bytes.len() / 2);
    let (second, third) = rest.split_at(rest.len() / 2);
    for part in [first, second, third] {
        assert!(stdin.write_all(part).is_ok());
        std::thread::sleep(Duration::from_millis(500));
    }
    drop(stdin);
    let shown = stdout(&child.wait_with_output().unwrap_or_else(|error| panic!("{error}")));
    let interim = shown.lines().filter(|line| line.starts_with("== after ")).count();
    assert_eq!(interim, 2, "{shown}");
    let answers = shown.lines().filter(|line| line.contains("for the server's delayed ack")).count();
    assert_eq!(answers, 3, "two on the way and the last: {shown}");
    let last = shown.rfind("== after ").and_then(|at| shown.get(at..)).unwrap_or_default();
    assert!(last.contains("writev"), "the whole answer is the last: {shown}");
}

/// The output on a terminal of this many rows, with this pager.
fn paged(rows: usize, pager: &str, args: &str) -> Option<String> {
    shown_by(&format!("stty cols 100 rows {rows}; PAGER=\"{pager}\""), args)
}

#[test]
fn what_is_longer_than_the_screen_goes_to_the_pager() {
    let pager = "sed s/^/paged:/";
    let Some(long) = paged(12, pager, "") else { return };
    assert!(long.lines().count() > 12 && long.lines().all(|line| line.starts_with("paged:")), "{long}");
    let shown = |rows, pager, args| paged(rows, pager, args).unwrap_or_default();
    for other in [
        shown(200, pager, ""),
        shown(12, pager, "--no-pager"),
        shown(12, "cat", ""),
        shown(12, "", ""),
        shown(12, pager, "--json"),
        // A pager that does not exist.
        shown(12, "no-such-pager", ""),
    ] {
        assert!(other.contains("nagle-delayed-ack") && !other.contains("paged:"), "{other}");
    }
    // The text is the same, and closing the pager early is no error.
    let plain = |text: &str| text.replace("paged:", "");
    assert_eq!(plain(&long), shown(200, pager, ""));
    assert_eq!(shown(12, "head -1", "").lines().count(), 1);
    // The exit code is the answer's.
    let gate = "--fail-on nagle-delayed-ack; test $? -eq 3";
    assert!(shown(12, pager, gate).contains("paged:"));
}

#[test]
fn fixes_are_told_for_three_stacks_or_for_all() {
    let stacks = ["C  ", "Java", "Go  ", "Python", "Node", "Rust", "nginx"];
    let told = |args: &[&str]| {
        let text = stdout(&split_in("UTC", args));
        stacks.into_iter().filter(|stack| text.lines().any(|line| line.trim().starts_with(stack))).count()
    };
    assert_eq!((told(&[]), told(&["--stack", "go"])), (3, 1));
    assert!(told(&["--all-stacks"]) > 5);
    assert!(stdout(&split_in("UTC", &[])).contains("more with --all-stacks"));
}

#[test]
fn the_answer_comes_as_markdown_and_as_rows() {
    let markdown = stdout(&split_in("UTC", &["--format", "markdown"]));
    let text = stdout(&split_in("UTC", &["--width", "1000"]));
    // The same words, and every line of the bill.
    let answer = text.lines().next().unwrap_or_default();
    assert!(markdown.starts_with(&format!("**{}**", answer.replace('>', "\\>"))), "{markdown}");
    assert!(markdown.contains("| nagle-delayed-ack | client | 480 ms | 99.6 % | 11 |"), "{markdown}");
    assert!(markdown.contains("### 1. nagle-delayed-ack, client of 127.0.0.1:18080"), "{markdown}");
    let document: serde_json::Value =
        serde_json::from_slice(&split_in("UTC", &["--json"]).stdout).unwrap_or_default();
    let rows = stdout(&split_in("UTC", &["--format", "csv"]));
    let mut rows = rows.lines().map(|row| row.split(',').collect::<Vec<_>>());
    let heading = rows.next().unwrap_or_default();
    let place = |name: &str| heading.iter().position(|column| *column == name).unwrap_or(usize::MAX);
    let ns: i64 = rows.map(|row| row[place("ns")].parse::<i64>().unwrap_or(0)).sum();
    assert_eq!(Some(ns), document["elapsed_ns"].as_i64());
    // Its name is neither markup nor a link.
    let dir = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let path = dir.path().join("a|b](x)`<i>.pcap");
    std::fs::copy(data("split.pcap"), &path).unwrap_or_else(|error| panic!("{error}"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    let output = command.arg("read").arg(&path).args(["--format", "markdown"]).output();
    let said = output.map(|output| stdout(&output)).unwrap_or_default();
    assert!(said.contains(r"a\|b\](x)\`\<i\>.pcap: 67 packets"), "{said}");
}

#[cfg(target_os = "linux")]
#[test]
fn the_laboratorys_list_fits_the_terminal() {
    for width in [80, 120] {
        let command = format!("stty cols {width} rows 40; PAGER=cat {} lab", env!("CARGO_BIN_EXE_tcpwhy"));
        let mut script = Command::new("script");
        let output = script.args(["-qec", &command, "/dev/null"]).stdin(Stdio::null()).output();
        let Ok(output) = output.map(|output| stdout(&output).replace("\r\n", "\n")) else {
            assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "script(1) is missing");
            println!("skipped: script(1) is missing");
            return;
        };
        let widest = output.lines().map(columns).max().unwrap_or(0);
        assert!(output.lines().count() > 50 && widest <= width, "{widest} of {width} columns:\n{output}");
    }
}

/// The name of a process is chosen by its owner. This one is renamed for the duration of the test.
#[cfg(target_os = "linux")]
#[test]
fn no_name_of_a_process_acts_on_a_terminal() {
    use std::fs;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap_or_else(|error| panic!("{error}"));
    let pid = std::process::id().to_string();
    let own = fs::read("/proc/self/comm").unwrap_or_default();
    for (name, shown, exact) in [
        (&b"\x1b]0;x\x07\xe2\x80\xaegnp"[..], r"\u{1b}]0;x\u{7}\u{202e}gnp", "\u{1b}]0;x\u{7}\u{202e}gnp"),
        (b"\xc2\x9b31m\xe2\x80\x8b", r"\u{9b}31m\u{200b}", "\u{9b}31m\u{200b}"),
        (b"no\xfftext", "no\u{fffd}text", "no\u{fffd}text"),
    ] {
        fs::write("/proc/self/comm", name).unwrap_or_else(|error| panic!("{error}"));
        let say = |more: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
            command.args(["sockets", "--listen", "--once", "--pid", &pid]).args(more).stdin(Stdio::null());
            let said = command.output().unwrap_or_else(|error| panic!("tcpwhy does not start: {error}"));
            assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
            stdout(&said)
        };
        let (text, json) = (say(&[]), say(&["--json"]));
        let acts = |c: char| c != '\n' && c.is_control() || matches!(c, '\u{202e}' | '\u{200b}');
        assert!(text.contains(shown) && !text.contains(acts), "{text:?}");
        assert!(!json.contains(acts), "{json:?}");
        let document: serde_json::Value = serde_json::from_str(&json).unwrap_or_default();
        assert_eq!(document["sockets"][0]["owner"]["command"], exact, "{json}");
    }
    let _ = fs::write("/proc/self/comm", own);
    drop(listener);
}
