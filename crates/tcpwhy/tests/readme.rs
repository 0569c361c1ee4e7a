//! Does tcpwhy still print what the documents quote?

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

/// The indented commands of a page that write a completion script or a man page, in a temporary
/// home.
#[cfg(unix)]
#[test]
fn completions_and_man_pages_are_found_where_the_documents_put_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = Path::new(env!("CARGO_BIN_EXE_tcpwhy")).parent().expect("a folder");
    let in_a_home = |home: &Path, script: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path =
            std::env::join_paths(std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path)));
        let mut shell = Command::new("sh");
        shell.args(["-ec", script]).env("HOME", home).env("PATH", path.expect("a path"));
        let output = shell.output().expect("a shell");
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for page in ["README.md", "docs/manual.md"] {
        let text = std::fs::read_to_string(root.join(page)).expect("the page");
        let commands = text.lines().filter_map(|line| line.strip_prefix("    "));
        let commands: Vec<&str> = commands.filter(|line| line.contains("~/.local/share/")).collect();
        assert!(commands.len() >= 3, "{page}: {commands:?}");
        let home = tempfile::tempdir().expect("a folder");
        in_a_home(home.path(), &commands.join("\n"));
        let share = home.path().join(".local/share");
        let manual = std::fs::read_to_string(share.join("man/man1/tcpwhy.1")).expect("the man page");
        assert!(manual.contains(".TH tcpwhy 1"), "{page}: {manual}");
        let load = ". ~/.local/share/bash-completion/completions/tcpwhy; complete -p tcpwhy";
        let loaded = in_a_home(home.path(), &format!("bash -c '{load}'"));
        assert!(loaded.contains("_tcpwhy") && loaded.trim_end().ends_with(" tcpwhy"), "{page}: {loaded}");
        if page != "README.md" {
            let listed = std::fs::read_dir(share.join("man/man1")).expect("man pages");
            let pages: Vec<_> = listed.map(|entry| entry.expect("an entry").file_name()).collect();
            // Every command except those that print these, and `help`.
            let help = in_a_home(home.path(), "tcpwhy help");
            let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
            let commands = commands.take_while(|line| !line.is_empty());
            let names = commands.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
            for name in names.filter(|name| !["", "completions", "man", "help"].contains(name)) {
                let file = format!("tcpwhy-{name}.1");
                assert!(pages.iter().any(|page| *page == *file), "{file}: {pages:?}");
            }
        }
    }
}
