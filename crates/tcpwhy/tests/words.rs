//! Are the words those of the field? The texts for readers (documents, help, explanations,
//! scenarios) contain none of the project's own words for things that have a name, no JSON names,
//! which are for programs, and µs for microseconds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A word, and its replacement.
const WORDS: [(&str, &str); 16] = [
    ("mend", "fix"),
    ("mends", "fixes"),
    ("mended", "fixed"),
    ("mending", "fixing"),
    ("felt", "measured"),
    ("foretold", "predicted"),
    ("foretells", "predicts"),
    ("let go by", "released by"),
    ("lone", "single"),
    ("hits", "times"),
    ("or-cork", "a cork's timer would look the same"),
    ("or-lost", "a lost first copy would look the same"),
    ("whole-reply", "the whole reply was held"),
    ("surer", "more certain"),
    ("surest", "most certain"),
    ("surely", "certainly"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The forbidden words, with their lines.
fn found(name: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let bare: String = line
            .chars()
            .map(|c| if c.is_alphanumeric() || c == '-' { c.to_ascii_lowercase() } else { ' ' })
            .collect();
        let bare = format!(" {} ", bare.split_whitespace().collect::<Vec<_>>().join(" "));
        for (word, instead) in WORDS {
            if bare.contains(&format!(" {word} ")) {
                found.push(format!("{name}:{}: {word}: say {instead}", at + 1));
            }
        }
        // As in English: "make sure that".
        if bare.replace(" make sure ", " ").contains(" sure ") {
            found.push(format!("{name}:{}: sure: say certain", at + 1));
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_number = |word: &str| word.chars().all(|c| c.is_ascii_digit() || ".,".contains(c));
        if words
            .windows(2)
            .any(|two| is_number(two[0]) && two[1].trim_end_matches(['.', ',', ';', ')']) == "us")
        {
            found.push(format!("{name}:{}: us: say µs", at + 1));
        }
    }
    found
}

#[test]
fn what_people_read_has_the_words_of_the_field() {
    let mut wrong = Vec::new();
    let mut read = 0;
    for folder in ["", "docs", "corpus", "scenarios", "crates/remedy/causes"] {
        for entry in fs::read_dir(root().join(folder)).expect("a folder").flatten() {
            let path = entry.path();
            let is_text = path.extension().is_some_and(|end| end == "md" || end == "toml");
            // The list of changes uses the names of JSON.
            if is_text && path.file_name().is_some_and(|name| name != "CHANGELOG.md") {
                wrong.extend(found(&path.display().to_string(), &fs::read_to_string(&path).expect("a text")));
                read += 1;
            }
        }
    }
    assert!(read > 50, "{read} texts");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The text between quotation marks, outside `${}`, in a line of TypeScript.
fn shown_by_the_page(line: &str) -> String {
    let mut shown = String::new();
    for (at, part) in line.split(['"', '`']).enumerate() {
        if at % 2 == 1 {
            // What is inserted is code; its end may be on the other side of a quotation mark.
            let plain = part.split("${").map(|part| part.split('}').next_back().unwrap_or(part));
            shown += &plain.collect::<Vec<_>>().join(" ");
            shown.push('\n');
        }
    }
    shown
}

#[test]
fn the_page_has_the_words_of_the_field() {
    let mut wrong = Vec::new();
    let mut read = 0;
    for entry in fs::read_dir(root().join("page/src")).expect("a folder").flatten() {
        let path = entry.path();
        let text = fs::read_to_string(&path).expect("a text");
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            wrong.extend(found(&path.display().to_string(), &shown_by_the_page(line)));
        }
        read += 1;
    }
    assert!(read > 15, "{read} files");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(shown_by_the_page("h(\"p\", `it ${felt} was`)"), "p\nit   was\n");
}

#[test]
fn help_and_explanations_have_the_words_of_the_field() {
    let printed = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_tcpwhy")).args(args).output().expect("it runs");
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let help = printed(&["help"]);
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.take_while(|line| !line.is_empty()).filter_map(|line| line.strip_prefix("  "));
    let names: Vec<&str> =
        commands.filter_map(|line| line.split(' ').next()).filter(|name| !name.is_empty()).collect();
    assert!(names.len() >= 8, "{help}");
    let mut wrong = found("help", &help);
    for name in names {
        wrong.extend(found(name, &printed(&["help", name])));
    }
    for cause in printed(&["explain"]).lines().filter_map(|line| line.split(' ').next()) {
        if cause.contains(|c: char| c.is_ascii_lowercase())
            && cause.chars().all(|c| c.is_ascii_lowercase() || c == '-')
        {
            wrong.extend(found(cause, &printed(&["explain", cause])));
        }
    }
    wrong.extend(found("lab", &printed(&["lab"])));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The answer for every recording, with its list, its connection, and the packets of an exchange.
#[test]
fn answers_have_the_words_of_the_field() {
    let mut wrong = Vec::new();
    let mut read = 0;
    for entry in fs::read_dir(root().join("corpus/lab")).expect("a folder").flatten() {
        let capture = entry.path().join("client.pcapng.zst");
        if !capture.exists() {
            continue;
        }
        for args in
            [&["read", "--all-stacks"][..], &["list"], &["read", "-c", "1"], &["read", "-c", "1", "-e", "1"]]
        {
            let output = Command::new(env!("CARGO_BIN_EXE_tcpwhy")).args(args).arg(&capture).output();
            let output = output.expect("it runs");
            let name = format!("{} {args:?}", entry.file_name().display());
            // A recording's name is that of its scenario.
            let said =
                [output.stdout, output.stderr].map(|said| String::from_utf8(said).expect("UTF-8")).concat();
            wrong.extend(found(&name, &said.replace(&*capture.to_string_lossy(), "FILE")));
            read += 1;
        }
    }
    assert!(read > 600, "{read} answers");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_rule_finds_what_it_is_for() {
    assert_eq!(found("x", "it was let go by it\n5 us. of us").len(), 2);
    assert_eq!(found("x", "make sure that it is; it is sure\nSure.").len(), 2);
    assert!(found("x", "none of us; 5 µs; alone; nagle-delayed-ack").is_empty());
}
