//! Can another user of the machine decide what the laboratory overwrites or reads? This test plants
//! what such a user could plant, in a shell that then becomes tcpwhy: it knows the process's number
//! beforehand.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, lchown, symlink};
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

/// A folder like /tmp, with something in it that must stay as it is.
fn shared() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    fs::write(dir.path().join("victim"), "precious").unwrap();
    dir
}

fn is_untouched(dir: &Path) -> bool {
    fs::read_to_string(dir.join("victim")).is_ok_and(|text| text == "precious")
}

/// Becomes tcpwhy after the shell's first commands; `None` if this machine cannot run the
/// laboratory.
fn becomes(test: &str, tmp: &Path, first: &str, args: &str) -> Option<Output> {
    let script = format!("{first}\nexec {} {args}", env!("CARGO_BIN_EXE_tcpwhy"));
    let output = Command::new("sh").args(["-c", &script]).env("TMPDIR", tmp).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("not permitted") {
        skip(test, &said);
        return None;
    }
    Some(output)
}

#[expect(clippy::disallowed_methods, reason = "CI is where a test may not be skipped")]
fn skip(test: &str, reason: &str) {
    assert!(std::env::var("CI").is_err(), "{test} was skipped in CI: {reason}");
    eprintln!("skipping {test}: {reason}");
}

#[test]
fn a_directory_planted_under_the_old_name_is_not_written_through() {
    let dir = shared();
    let plant = "d=$TMPDIR/tcpwhy-lab-$$; mkdir -p $d/split\n\
                 for f in client.pcapng server.pcapng truth.json; do ln -s $TMPDIR/victim $d/split/$f; done\n\
                 chown -Rh 65534 $d 2>/dev/null";
    let Some(output) = becomes("planted", dir.path(), plant, "lab split --json --set rtt=1ms") else {
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(is_untouched(dir.path()));
    let left: Vec<_> = fs::read_dir(dir.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left.len(), 2, "the victim and what was planted: {left:?}");
}

#[test]
fn a_run_in_another_pid_name_space_leaves_what_is_in_use() {
    let dir = shared();
    // To a sweeper it looks like a run in progress: the number belongs to no process in its own
    // name space.
    let plant = "mkdir $TMPDIR/tcpwhy-lab-4000000000 && touch $TMPDIR/tcpwhy-lab-4000000000/in-use";
    let Some(output) = becomes("pid name space", dir.path(), plant, "lab split --json --set rtt=1ms") else {
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(dir.path().join("tcpwhy-lab-4000000000/in-use").exists());
}

#[test]
fn links_in_a_folder_that_is_kept_are_replaced_and_not_followed() {
    let dir = shared();
    let kept = dir.path().join("kept");
    fs::create_dir_all(kept.join("split")).unwrap();
    for name in ["client.pcapng", "server.pcapng", "truth.json", "truth.json.part"] {
        symlink(dir.path().join("victim"), kept.join("split").join(name)).unwrap();
    }
    let args = format!("lab split --json --set rtt=1ms --keep {}", kept.display());
    let Some(output) = becomes("kept", dir.path(), "", &args) else { return };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(is_untouched(dir.path()));
    assert!(kept.join("split/truth.json").symlink_metadata().unwrap().is_file());
}

#[test]
fn a_demonstration_follows_no_link_and_enters_no_folder_of_another_user() {
    let dir = shared();
    let out = dir.path().join("stall");
    fs::create_dir(&out).unwrap();
    for form in ["split", "fixed"] {
        for end in ["pcapng", "truth.json", "json", "txt"] {
            symlink(dir.path().join("victim"), out.join(format!("{form}.{end}"))).unwrap();
        }
    }
    let demo = format!("demo --out {}", out.display());
    let Some(output) = becomes("demo", dir.path(), "", &demo) else { return };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(is_untouched(dir.path()));
    if lchown(&out, Some(65_534), None).is_err() {
        return skip("demo", "only root gives files away");
    }
    let output = becomes("demo", dir.path(), "", &demo).unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("belongs to another user (65534)"), "{said}");
}

#[test]
fn a_torn_truth_is_no_recording() {
    let dir = shared();
    let kept = dir.path().join("kept");
    fs::create_dir_all(kept.join("split")).unwrap();
    // As left by a full disk.
    fs::write(kept.join("split/truth.json"), "{\"schema\":\"tcpwhy.truth/1\",\"ker").unwrap();
    let args = format!("lab accuracy split --resume --keep {}", kept.display());
    let Some(output) = becomes("torn", dir.path(), "", &args) else { return };
    assert!(
        output.status.code().is_some_and(|code| code != 1),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let truth = fs::read(kept.join("split/truth.json")).unwrap();
    assert!(serde_json::from_slice::<serde_json::Value>(&truth).is_ok(), "it was recorded afresh");
}

/// A recording of the repository, as an earlier `lab accuracy --keep` leaves it.
fn recording(form: &str, folder: &Path) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/lab").join(form);
    fs::create_dir_all(folder).unwrap();
    for end in ["client", "server"] {
        let capture = fs::read(from.join(format!("{end}.pcapng.zst"))).unwrap();
        fs::write(folder.join(format!("{end}.pcapng")), zstd::decode_all(&capture[..]).unwrap()).unwrap();
    }
    fs::copy(from.join("truth.json"), folder.join("truth.json")).unwrap();
}

#[test]
fn recordings_of_others_lead_nowhere_else() {
    let (dir, elsewhere) = (shared(), shared());
    let from = dir.path().join("theirs");
    recording("split", &from.join("split"));
    let judge = |from: &Path| {
        let args =
            format!("lab accuracy split --from {} --write {}/out.md", from.display(), dir.path().display());
        becomes("others", dir.path(), "", &args).unwrap()
    };
    let output = judge(&from);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(fs::read_to_string(dir.path().join("out.md")).unwrap().contains("split"));
    // Each file in turn becomes a link to one that could be read.
    for name in ["truth.json", "client.pcapng", "server.pcapng"] {
        let (file, target) = (from.join("split").join(name), elsewhere.path().join(name));
        fs::rename(&file, &target).unwrap();
        symlink(&target, &file).unwrap();
        let output = judge(&from);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{name}: {said}");
        assert!(said.contains("ermi") || said.contains("may not read"), "{name}: {said}");
        fs::remove_file(&file).unwrap();
        fs::rename(&target, &file).unwrap();
    }
    let output = judge(&from);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Nothing writes into the pipe, so waiting for it would never end.
#[test]
fn a_pipe_among_recordings_of_others_is_not_waited_for() {
    let dir = shared();
    let from = dir.path().join("theirs");
    recording("split@rtt-2", &from.join("split@rtt-2"));
    for name in ["truth.json", "client.pcapng", "server.pcapng"] {
        let (file, kept) = (from.join("split@rtt-2").join(name), dir.path().join(name));
        fs::rename(&file, &kept).unwrap();
        assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
        for args in [
            format!("lab accuracy split@rtt-2 --from {}", from.display()),
            format!(
                "lab corpus --only-judge --from {} -- {} split@rtt-2",
                from.display(),
                dir.path().join("corpus").display()
            ),
        ] {
            let script = format!("exec timeout 20 {} {args}", env!("CARGO_BIN_EXE_tcpwhy"));
            let output = Command::new("sh").args(["-c", &script]).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{name}: {said}");
            assert!(said.contains(&format!("cannot read {}", file.display())), "{name}: {said}");
        }
        fs::remove_file(&file).unwrap();
        fs::rename(&kept, &file).unwrap();
    }
}

/// Addresses that its author wrote into it are quoted, where they belong to no bill.
#[test]
fn nothing_that_others_wrote_into_a_truth_acts() {
    let dir = shared();
    let from = dir.path().join("theirs");
    recording("split@rtt-2", &from.join("split@rtt-2"));
    let file = from.join("split@rtt-2/truth.json");
    let mut truth: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    truth["connections"][0]["client"] = "\u{1b}]0;x\u{7}\u{202e}\u{9b}2J\nright".into();
    fs::write(&file, truth.to_string()).unwrap();
    let out = dir.path().join("out.md");
    let args = format!("lab accuracy split@rtt-2 --from {} --write {}", from.display(), out.display());
    let output = becomes("truth", dir.path(), "", &args).unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &fs::read_to_string(out).unwrap();
    assert!(said.contains(r"\u{1b}]0;x\u{7}\u{202e}\u{9b}2J\u{a}right"), "{said}");
    assert!(!said.contains(|c: char| c != '\n' && c.is_control() || c == '\u{202e}'), "{said:?}");
}

#[test]
fn the_corpus_takes_recordings_of_others_and_what_they_link_to_it_does_not() {
    let dir = shared();
    let (from, corpus) = (dir.path().join("theirs"), dir.path().join("corpus"));
    recording("split@rtt-2", &from.join("split@rtt-2"));
    let args = format!("lab corpus --from {} {} split@rtt-2", from.display(), corpus.display());
    let Some(output) = becomes("corpus", dir.path(), "", &args) else { return };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let capture = |folder: &Path| fs::read(folder.join("split@rtt-2/client.pcapng.zst")).unwrap();
    let taken = zstd::decode_all(&capture(&corpus)[..]).unwrap();
    assert!(
        taken == fs::read(from.join("split@rtt-2/client.pcapng")).unwrap(),
        "nothing was recorded afresh: {said}"
    );
    assert!(fs::read_to_string(corpus.join("split@rtt-2/truth.json")).unwrap().starts_with("{\n"));
    let theirs = from.join("split@rtt-2/client.pcapng");
    let secret = dir.path().join("secret.pcapng");
    fs::rename(&theirs, &secret).unwrap();
    symlink(&secret, &theirs).unwrap();
    let output = becomes("corpus", dir.path(), "", &args).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let taken = zstd::decode_all(&capture(&corpus)[..]).unwrap();
    assert!(taken != fs::read(&secret).unwrap(), "it was recorded afresh");
}
