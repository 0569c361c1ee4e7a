//! Does the document match its schema, and does the schema have every field?

mod common;

use common::{capture, finding, of, stall, with_limits};
use serde_json::Value;
use tcpwhy_core::report::{Exchange, Report};
use tcpwhy_core::{Cause, Side};
use tcpwhy_report::{CaptureInfo, json};
use tcpwhy_wire::Duration;

const SCHEMA: &str = include_str!("../../../docs/schema/tcpwhy.report.1.schema.json");

fn document(report: &Report, files: &[CaptureInfo]) -> Value {
    let text = match json::to_string(report, files, "0.1.0") {
        Ok(text) => text,
        Err(error) => panic!("a report is always JSON: {error}"),
    };
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text}");
    match serde_json::from_str(&text) {
        Ok(value) => value,
        Err(error) => panic!("{error} in {text}"),
    }
}

/// The published schema allows additional fields; this test does not, so that no field is
/// undocumented.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.get("type").is_some_and(|kind| kind == "object")
                && map.contains_key("properties")
                && !map.contains_key("additionalProperties")
            {
                map.insert("additionalProperties".to_owned(), Value::Bool(false));
            }
            map.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

fn validate(document: &Value) {
    let mut schema: Value = match serde_json::from_str(SCHEMA) {
        Ok(schema) => schema,
        Err(error) => panic!("the schema is no JSON: {error}"),
    };
    close(&mut schema);
    let validator = match jsonschema::draft202012::new(&schema) {
        Ok(validator) => validator,
        Err(error) => panic!("the schema is no schema: {error}"),
    };
    let errors: Vec<String> = validator
        .iter_errors(document)
        .map(|error| format!("{} at {}", error, error.instance_path))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

#[test]
fn real_documents_are_valid() {
    validate(&document(&stall(), &[capture("a.pcapng")]));
    validate(&document(&with_limits(stall()), &[capture("a.pcapng"), capture("b.pcapng")]));
    validate(&document(&Report::default(), &[]));
    for cause in Cause::ALL {
        for sender in [Side::Client, Side::Server] {
            let report = of(vec![finding(cause, sender, Duration::from_millis(5), 3, 4)]);
            validate(&document(&report, &[capture("a.pcapng")]));
        }
    }
}

#[test]
fn an_invalid_document_is_found_out() {
    let mut broken = document(&stall(), &[capture("a.pcapng")]);
    broken["bill"][0]["cause"] = Value::from("jitter");
    let mut schema: Value = serde_json::from_str(SCHEMA).unwrap_or_default();
    close(&mut schema);
    assert!(!jsonschema::draft202012::is_valid(&schema, &broken));
}

#[test]
fn the_fields_carry_the_reports_numbers() {
    let document = document(&stall(), &[capture("a.pcapng")]);
    assert_eq!(document["schema"], "tcpwhy.report/1");
    assert_eq!(document["elapsed_ns"], 1_669_300_000);
    assert_eq!(document["bill"][0]["cause"], "nagle-delayed-ack");
    assert_eq!(document["bill"][0]["share"], 0.9971);
    let finding = &document["findings"][0];
    assert_eq!(finding["endpoint"], "10.0.0.2:8080");
    assert_eq!(finding["side"], "client");
    assert_eq!(finding["p50_ns"], 43_800_000);
    assert_eq!(finding["evidence"], Value::from(vec![12, 13, 14]));
    assert_eq!(finding["detail"]["held_bytes"], 100);
    assert_eq!(finding["detail"].get("window_bytes"), None);
    assert_eq!(finding["remedies"][0]["id"], "one-write");
    assert_eq!(finding["remedies"][0]["saves_ns"], 38 * 43_800_000);
    assert_eq!(finding["remedies"][1]["id"], "nodelay");
    let rung = &document["connections"][0]["ladder"][2];
    assert_eq!((rung["trigger"].as_str(), rung["trigger_packet"].as_u64()), (Some("packet"), Some(13)));
    assert_eq!(rung["billed"][0]["ns"], 43_800_000);
}

/// Two hundred years, the total of many connections.
#[test]
fn shares_of_a_very_long_time_are_shares() {
    let mut report = stall();
    let years = Duration::from_secs(200 * 365 * 86_400);
    report.bill[0].ns = years;
    report.elapsed = years;
    assert_eq!(document(&report, &[])["bill"][0]["share"], 1.0);
}

/// Rounds are looked up for each exchange of a connection whose packets were kept: eight times as
/// many exchanges may take eight times as long, not sixty-four.
#[test]
#[expect(clippy::disallowed_methods, reason = "it is about time")]
fn a_connection_of_many_exchanges_is_written_in_time() {
    let mut report = stall();
    let mut took = |exchanges: usize| {
        let known = report.connections[0].exchanges.last().cloned();
        let last = known.unwrap_or_else(|| panic!("it has exchanges"));
        report.connections[0].exchanges =
            (0..exchanges as u64).map(|n| Exchange { n, ..last.clone() }).collect();
        let run = || {
            let begin = std::time::Instant::now();
            json::write(&report, &[], "0", &[], std::io::sink()).unwrap_or_else(|error| panic!("{error}"));
            begin.elapsed()
        };
        (0..3).map(|_| run()).min().unwrap_or_default()
    };
    let (few, many) = (took(5_000), took(40_000));
    assert!(many < few * 24, "{few:?} for 5,000 exchanges, {many:?} for 40,000");
}

#[test]
fn every_bill_in_the_document_sums_to_its_elapsed_time() {
    let document = document(&stall(), &[capture("a.pcapng")]);
    let sum = |bill: &Value| -> i64 {
        bill.as_array().into_iter().flatten().filter_map(|line| line["ns"].as_i64()).sum()
    };
    assert_eq!(sum(&document["bill"]), document["elapsed_ns"].as_i64().unwrap_or(-1));
    for exchange in document["connections"][0]["exchanges"].as_array().into_iter().flatten() {
        assert_eq!(sum(&exchange["bill"]), exchange["elapsed_ns"].as_i64().unwrap_or(-1));
    }
}

#[test]
fn several_files_are_one_capture_with_a_list() {
    let document = document(&stall(), &[capture("a.pcapng"), capture("b.pcapng")]);
    assert_eq!(document["capture"]["packets"], 330);
    assert_eq!(document["capture"]["files"][1]["path"], "b.pcapng");
    assert_eq!(document["capture"]["path"], "a.pcapng, b.pcapng");
}
