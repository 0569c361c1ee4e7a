//! Does `compare` tell a fixed problem from chance? Gains by the applications' own clocks, recorded
//! by the laboratory with the captures, and captures of one kind that differ by chance only.

use std::fs;
use std::path::Path;

use crate::common::{root, tcpwhy};
use serde_json::Value;

fn compare(before: &Path, after: &Path, more: &[&str]) -> (i32, String) {
    let (before, after) = (before.to_string_lossy(), after.to_string_lossy());
    let output = tcpwhy(&[&["compare", &before, &after][..], more].concat());
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code().unwrap_or(-1), said)
}

fn document(before: &Path, after: &Path) -> (i32, Value) {
    let (code, said) = compare(before, after, &["--json"]);
    (code, serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}")))
}

/// The mean over exchanges by the client's own clock.
fn clocked_ns(scenario: &str) -> f64 {
    let text =
        fs::read_to_string(root().join("corpus/lab").join(scenario).join("truth.json")).unwrap_or_default();
    let truth: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{scenario}: {error}"));
    let connections = truth["connections"].as_array().into_iter().flatten();
    let exchanges =
        connections.flat_map(|connection| connection["exchanges"].as_array().into_iter().flatten());
    let of_kind = exchanges.filter(|exchange| exchange["kind"] == "exchange");
    let times: Vec<f64> = of_kind.filter_map(|exchange| exchange["elapsed_ns"].as_f64()).collect();
    assert!(times.len() >= 5, "{scenario}: {} exchanges", times.len());
    times.iter().sum::<f64>() / times.len() as f64
}

#[test]
fn gains_of_fixed_problems_are_those_of_the_applications_clocks() {
    for (before, after) in [
        ("split", "split+one-write"),
        ("split", "split+nodelay"),
        ("split@rtt-26", "split+one-write"),
        ("corked-tail", "corked-tail+uncork"),
        ("b-windows", "b-windows+one-write"),
        ("c-idle", "c-idle+no-restart"),
    ] {
        let capture = |scenario: &str| root().join(format!("corpus/lab/{scenario}/client.pcapng.zst"));
        let (code, said) = document(&capture(before), &capture(after));
        let row = said["rows"].as_array().into_iter().flatten().find(|row| row["kind"] == "exchange");
        let Some(row) = row else { panic!("{before}: {said}") };
        let means = ["0", "1"]
            .map(|at| row["elapsed"]["mean_ns"][at.parse::<usize>().unwrap_or(0)].as_f64().unwrap_or(0.0));
        let (gain, clocked) = (means[0] - means[1], clocked_ns(before) - clocked_ns(after));
        assert!(
            (gain - clocked).abs() <= 0.05 * clocked,
            "{before} to {after}: {gain} ns, by the clocks {clocked} ns"
        );
        assert_eq!((code, &row["elapsed"]["verdict"]), (0, &Value::from("faster")), "{before}: {row}");
        let (code, said) = compare(&capture(after), &capture(before), &[]);
        assert!(code == 3 && said.contains("got slower"), "{after}: {said}");
    }
}

#[test]
fn the_same_is_no_difference_and_what_is_missing_is_said() {
    let split = root().join("corpus/demo/split.pcapng");
    let (code, said) = compare(&split, &split, &[]);
    assert_eq!(code, 0);
    assert!(said.starts_with("No significant difference"), "{said}");
    let (code, said) = compare(&split, Path::new("no/such.pcap"), &[]);
    assert!(code == 1 && said.contains("no such file"), "{said}");
    let one = split.to_string_lossy();
    assert_eq!(tcpwhy(&["compare", &one]).status.code(), Some(2));
    // The same bytes each time.
    let fixed = root().join("corpus/demo/fixed.pcapng");
    assert_eq!(compare(&split, &fixed, &["--json"]), compare(&split, &fixed, &["--json"]));
}

#[test]
fn the_document_is_what_its_schema_says() {
    let schema =
        fs::read_to_string(root().join("docs/schema/tcpwhy.compare.1.schema.json")).unwrap_or_default();
    let Ok(schema) = serde_json::from_str::<Value>(&schema) else { panic!("the schema is JSON") };
    for (before, after) in
        [("split", "split+one-write"), ("d-sndbuf", "split"), ("connect-each", "connect-each+kept-open")]
    {
        let capture = |scenario: &str| root().join(format!("corpus/lab/{scenario}/client.pcapng.zst"));
        let (_, said) = document(&capture(before), &capture(after));
        if let Err(error) = jsonschema::draft202012::validate(&schema, &said) {
            panic!("{before}: {error} at {}", error.instance_path);
        }
    }
}

/// Recordings of one scenario, as `lab SCENARIO --keep` writes them, in folders of TCPWHY_SAME: at
/// most one pair in twenty may differ.
#[test]
#[ignore = "needs many recordings: TCPWHY_SAME=DIR"]
fn recordings_of_one_scenario_do_not_differ() {
    let Some(folder) = std::env::var_os("TCPWHY_SAME") else {
        panic!("TCPWHY_SAME names the folder of the recordings")
    };
    let mut captures: Vec<_> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    captures.sort();
    let mut differ = Vec::new();
    let mut all = 0;
    for pair in captures.chunks_exact(2) {
        let (_, said) = document(&pair[0], &pair[1]);
        let verdicts = said["rows"].as_array().into_iter().flatten().map(|row| &row["elapsed"]["verdict"]);
        all += 1;
        if verdicts.clone().any(|verdict| verdict == "slower" || verdict == "faster") {
            differ.push(format!("{}: {}", pair[0].display(), said["answer"]));
        }
    }
    println!("{} of {all} pairs differ\n{}", differ.len(), differ.join("\n"));
    assert!(all > 0 && differ.len() * 20 <= all, "{} of {all} pairs differ", differ.len());
}
