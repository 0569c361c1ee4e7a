//! Does the page draw what the report says, in a real browser? And is the committed page what its sources build?
//!
//! `page/test/browser.mjs` drives Debian's Chromium through every view and compares with the JSON; axe-core looks for what keeps
//! people out. Needs node, npm (which fetches the locked dependencies once) and chromium.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use crate::common::{json, root, write_page};
use serde_json::{Value, json as value};

/// Of one `npm ci` at a time.
static NPM: Mutex<()> = Mutex::new(());

/// Says why a test does not run; in CI it must.
#[expect(clippy::disallowed_methods, reason = "CI is where a test may not be skipped")]
fn skip(test: &str, reason: &str) {
    assert!(std::env::var("CI").is_err(), "{test} was skipped in CI: {reason}");
    println!("{test} is skipped: {reason}");
}

fn starts(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

fn output_of(command: &mut Command) -> (bool, String) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = [output.stdout, output.stderr].map(|stream| String::from_utf8_lossy(&stream).into_owned());
    (output.status.success(), said.concat())
}

/// The built page, from the sources. `None` where this machine cannot build it.
fn build(test: &str, to: &Path) -> Option<()> {
    if !starts("npm") || !starts("node") {
        skip(test, "node or npm is missing; apt-get install nodejs npm");
        return None;
    }
    let _one = NPM.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let (built, said) = output_of(Command::new(root().join("page/build.sh")).arg(to));
    assert!(built, "page/build.sh: {said}");
    Some(())
}

#[test]
fn the_committed_page_is_what_its_sources_build() {
    let Ok(folder) = tempfile::tempdir() else { panic!("no folder for temporary files") };
    let again = folder.path().join("page.html");
    let types = fs::read(root().join("page/src/contract.ts")).ok();
    if build("the_committed_page_is_what_its_sources_build", &again).is_none() {
        return;
    }
    let committed = fs::read(root().join("crates/page/built/page.html")).ok();
    assert!(fs::read(&again).ok() == committed, "crates/page/built is old: run page/build.sh and commit it");
    let made = fs::read(root().join("page/src/contract.ts")).ok();
    assert!(made == types, "page/src/contract.ts was older than the schema: commit it");
}

/// A case for `browser.mjs`: the page and what it is compared with.
fn case(folder: &Path, name: &str, inputs: &[PathBuf], shots: Option<&Path>) -> Value {
    let page = folder.join(format!("{name}.html"));
    let rest: Vec<String> = inputs[1..].iter().map(|path| path.to_string_lossy().into_owned()).collect();
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    write_page(&inputs[0], &page, &rest);
    let document = json(&inputs[0], &rest);
    let worst = document["findings"][0]["worst"]["connection"].as_u64().unwrap_or(1).to_string();
    let ladder = json(&inputs[0], &[&rest[..], &["--connection", &worst]].concat());
    let written = |suffix: &str, document: &Value| {
        let path = folder.join(format!("{name}.{suffix}.json"));
        let written = fs::write(&path, document.to_string());
        assert!(written.is_ok(), "{written:?}");
        path
    };
    value!({
        "name": name,
        "page": page,
        "json": written("all", &document),
        "ladder": written("ladder", &ladder),
        "shots": shots,
    })
}

fn drive(folder: &Path, cases: &[Value]) {
    let list = folder.join("cases.json");
    let written = fs::write(&list, Value::from(cases).to_string());
    assert!(written.is_ok(), "{written:?}");
    let drive = || output_of(Command::new("node").arg(root().join("page/test/browser.mjs")).arg(&list));
    let (held, said) = drive();
    println!("{said}");
    // A browser may have been starved; what fails again was not that.
    let (held, said) = if held { (held, said) } else { drive() };
    assert!(held, "{said}");
}

fn can_drive(test: &str, folder: &Path) -> bool {
    if !starts("chromium") {
        skip(test, "chromium is missing; apt-get install chromium");
        return false;
    }
    build(test, &folder.join("built.html")).is_some()
}

#[test]
fn every_view_draws_what_the_json_says() {
    let Ok(folder) = tempfile::tempdir() else { panic!("no folder for temporary files") };
    let folder = folder.path();
    if !can_drive("every_view_draws_what_the_json_says", folder) {
        return;
    }
    let corpus = |name: &str| root().join("corpus").join(name);
    // A name that would act on a page, if a page let it.
    let hostile = folder.join("<script>document.title='run'<img src=x onerror=alert(1)>\u{202e}'\"&.pcap");
    let copied = fs::copy(root().join("crates/tcpwhy/tests/data/split.pcap"), &hostile);
    assert!(copied.is_ok(), "{copied:?}");
    let small = folder.join("small.pcap");
    let cut = Command::new("tcpdump")
        .arg("-r")
        .arg(corpus("demo/split.pcapng"))
        .args(["-c", "20", "-w"])
        .arg(&small)
        .output();
    assert!(cut.is_ok_and(|output| output.status.success()), "tcpdump cuts");
    let nagle = corpus("lab/connect-each/client.pcapng.zst");
    let ends = ["client", "server"].map(|end| corpus(&format!("lab/congestion-window/{end}.pcapng.zst")));
    let cases = [
        case(folder, "twenty-packets", &[small], None),
        case(folder, "hostile-name", &[hostile], None),
        case(folder, "connections", &[nagle], None),
        case(folder, "transfer-with-losses", &ends[1..], None),
        case(folder, "both-ends", &ends, None),
    ];
    drive(folder, &cases);
}

/// The screenshots of the docs, and pages of large captures: `make page-pictures`.
#[test]
#[ignore = "minutes, and large files: make page-pictures"]
fn pictures_of_the_docs_and_large_captures() {
    let Ok(folder) = tempfile::tempdir() else { panic!("no folder for temporary files") };
    let folder = folder.path();
    assert!(can_drive("pictures_of_the_docs_and_large_captures", folder));
    let shots = root().join("docs/pictures");
    let generated = |name: &str, words: &[&str]| {
        let path = folder.join(name);
        let made = Command::new(root().join("target/release/tcpwhy-gen")).args(words).arg(&path).output();
        assert!(made.is_ok_and(|output| output.status.success()), "tcpwhy-gen {words:?}");
        path
    };
    let demo = root().join("corpus/demo/split.pcapng");
    let loss = root().join("corpus/lab/congestion-window/server.pcapng.zst");
    let cases = [
        case(folder, "demo", &[demo], Some(&shots)),
        case(folder, "transfer", &[loss], Some(&shots)),
        case(
            folder,
            "many-connections",
            &[generated("rpc.pcap", &["rpc", "--packets", "200000", "--connections", "2000"])],
            None,
        ),
        case(folder, "bulk", &[generated("bulk.pcap", &["bulk-full", "--packets", "100000"])], None),
        case(folder, "five-million", &[generated("huge.pcap", &["rpc", "--packets", "5000000"])], None),
    ];
    drive(folder, &cases);
}
