//! Is a scenario parsed as written, and an invalid one rejected with the place of the error?

use super::*;
use crate::workload::{Setting, Step};
use tcpwhy_wire::Duration;

const SPLIT: &str = r#"
shows = "write-write-read"
case = "cases B"

[set]
rtt = "0"
n = 4

[client.sysctl]
tcp_slow_start_after_idle = 0

[path]
rtt = "$rtt"

[server]
congestion = "reno"

[workload]
client = """
connect
repeat $n
  write 20
  write 100
  read 64
end
"""
server = """
accept
repeat
  read 120
  write 64
end
"""

[expect]
exchange = "40ms..50ms"
causes = ["nagle-delayed-ack client 95%.."]

[[variant]]
name = "rtt-26"
set.rtt = "26ms"
expect.exchange = "90ms..105ms"

[[fix]]
name = "nodelay"
what = "TCP_NODELAY at the client"
client.socket = ["nodelay on"]
expect.exchange = "..2ms"
"#;

fn parse(name: &str, fix: Option<&str>, overrides: &[&str]) -> Result<Scenario, String> {
    let overrides: Vec<Override> = overrides.iter().map(|text| text.parse().unwrap()).collect();
    Scenario::parse(name, SPLIT, fix, &overrides).map_err(|error| error.what)
}

fn delays(scenario: &Scenario) -> Vec<String> {
    scenario.pair.path.forward.iter().map(ToString::to_string).collect()
}

#[test]
fn a_file_becomes_hosts_path_and_scripts() {
    let split = parse("split", None, &[]).unwrap();
    assert_eq!(split.pair.client.sysctl, [("net.ipv4.tcp_slow_start_after_idle".to_owned(), "0".to_owned())]);
    assert_eq!(split.pair.client.congestion.as_deref(), Some("cubic"));
    assert_eq!(split.pair.server.congestion.as_deref(), Some("reno"));
    assert_eq!(delays(&split), [""; 0]);
    let Step::Repeat { times, .. } = &split.workload.client.0[1] else { panic!() };
    assert_eq!(*times, Some(4));
    assert!(split.expect.exchange.unwrap().contains(Duration::from_millis(44)));
    assert_eq!(split.expect.causes[0].cause, "nagle-delayed-ack");
}

#[test]
fn variant_fix_and_overrides_lie_over_one_another() {
    let far = parse("split@rtt-26", None, &[]).unwrap();
    assert_eq!(delays(&far), ["delay 13ms"]);
    assert!(far.expect.exchange.unwrap().contains(Duration::from_millis(96)));
    assert_eq!(far.expect.causes.len(), 1, "what a variant does not say stays");

    let fixed =
        parse("split@rtt-26", Some("nodelay"), &["n=7", "rate=10mbit", "queue=50p", "client.rcvbuf=64k"])
            .unwrap();
    assert_eq!(delays(&fixed), ["rate 10000000bit queue 50p", "delay 13ms"]);
    assert_eq!(fixed.workload.client.0[0], Step::Set(Setting::NoDelay(true)));
    assert_eq!(fixed.workload.client.0[1], Step::Set(Setting::ReceiveBuffer(65536)));
    assert_eq!(fixed.workload.server.0[0], Step::Accept);
    assert!(fixed.expect.causes.is_empty(), "what was expected is fixed");

    let delayed = parse("split", None, &["delay=20ms"]).unwrap();
    assert_eq!(delays(&delayed), ["delay 20ms"]);
}

#[test]
fn a_row_of_the_table_belongs_to_one_form() {
    let text = SPLIT.replace("case = \"cases B\"", "row = \"B1 split\"\nreported = \"40 ms\"").replace(
        "what = \"TCP_NODELAY at the client\"",
        "what = \"TCP_NODELAY at the client\"\nrow = \"B2 split, TCP_NODELAY\"",
    );
    let rows = load::entry("split", &text).unwrap().rows;
    let labels: Vec<&str> = rows.iter().map(|row| row.label.as_str()).collect();
    assert_eq!(labels, ["B1 split", "B2 split, TCP_NODELAY"]);
    assert_eq!((rows[1].form.as_str(), rows[1].fix.as_deref()), ("split", Some("nodelay")));
    let parse = |name, fix| Scenario::parse(name, &text, fix, &[]).unwrap();
    assert_eq!(parse("split", None).row.as_deref(), Some("B1 split"));
    let far = parse("split@rtt-26", None);
    assert_eq!((far.row, far.reported.as_deref()), (None, Some("40 ms")));
    let fixed = parse("split", Some("nodelay"));
    assert_eq!((fixed.row.as_deref(), fixed.reported), (Some("B2 split, TCP_NODELAY"), None));
}

#[test]
fn a_definition_runs_again_as_it_is() {
    let far = parse("split@rtt-26", Some("nodelay"), &["seed=9"]).unwrap();
    let again = Scenario::parse("split", &far.definition, None, &[]).unwrap();
    assert_eq!((again.pair, again.workload, again.expect), (far.pair, far.workload, far.expect));
}

#[test]
fn a_mistake_is_told_with_what_would_be_right() {
    let told = |name: &str, fix: Option<&str>, overrides: &[&str], what: &str| {
        let error = parse(name, fix, overrides).unwrap_err();
        assert!(error.contains(what), "{error}");
    };
    told("split@rtt-27", None, &[], "there is no variant \"rtt-27\"; there are: rtt-26");
    told("split", Some("prayer"), &[], "there is no fix \"prayer\"; there are: nodelay");
    told("split", None, &["mss=9000"], "`mss` cannot be set here. What can: n, rtt; everywhere: rtt, delay");
    told("split", None, &["rtt=soon"], "`soon` is not a duration");
    let error = Scenario::load("nonsense", None, &[]).unwrap_err();
    assert!(error.what.contains("available: "), "{error}");
}

#[test]
fn every_scenario_of_the_repository_can_be_read_in_every_form() {
    for entry in catalogue().unwrap() {
        assert!(!entry.shows.is_empty(), "{} says what it shows", entry.name);
        let variants = entry.variants.iter().map(|variant| format!("{}@{variant}", entry.name));
        for name in std::iter::once(entry.name.clone()).chain(variants) {
            for fix in std::iter::once(None).chain(entry.fixes.iter().map(|(fix, _)| Some(fix.as_str()))) {
                let scenario = Scenario::load(&name, fix, &[]).unwrap_or_else(|error| panic!("{error}"));
                scenario.pair.path.build().unwrap_or_else(|error| panic!("{name}: {error}"));
                for expected in &scenario.expect.causes {
                    assert!(
                        expected.cause.parse::<tcpwhy_core::Cause>().is_ok(),
                        "{name}: there is no cause {}",
                        expected.cause
                    );
                }
                if fix.is_none() {
                    assert!(!scenario.expect.causes.is_empty(), "{name} says which causes must be found");
                }
            }
        }
        assert!(
            entry.fixes.iter().all(|(_, what)| !what.is_empty()),
            "{}: fixes say what they do",
            entry.name
        );
    }
}

/// The segments of a capture, in order.
fn segments(file: &Path) -> Vec<tcpwhy_wire::Segment> {
    use tcpwhy_wire::capture::{Event, Reader};
    let bytes = std::fs::read(file).unwrap();
    let (mut reader, mut rest, mut segments) = (Reader::new(), bytes.as_slice(), Vec::new());
    loop {
        let step = reader.next(rest, true);
        rest = &rest[step.consumed..];
        match step.event {
            Event::Packet(packet) => segments.push(tcpwhy_wire::decode(&packet).unwrap()),
            Event::Skipped => {}
            Event::End => return segments,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_scenario_is_recorded_at_both_ends_with_the_truth_beside() {
    let scenario = parse("split@rtt-26", None, &["n=6"]).unwrap();
    let private = crate::Private::make("tcpwhy-test-scenario-").unwrap();
    let recorded = match record(&scenario, &private.path().join("recording")) {
        Ok(recorded) => recorded,
        Err(error @ crate::Error::NotPermitted { .. }) => {
            let name = "a_scenario_is_recorded_at_both_ends_with_the_truth_beside";
            return crate::test_support::skip(name, &error);
        }
        Err(error) => panic!("{error}"),
    };
    let truth = &recorded.truth;
    assert_eq!(truth.failure, None);
    let [connection] = truth.connections.as_slice() else { panic!("one connection") };
    assert!((26_000_000..40_000_000).contains(&connection.setup.elapsed_ns), "{:?}", connection.setup);
    assert_eq!(connection.exchanges.len(), 6);
    for exchange in &connection.exchanges {
        // Two round trips, and from the second on the delayed ACK's 40 ms.
        let least = if exchange.n == 1 { 52_000_000 } else { 92_000_000 };
        assert!((least..150_000_000).contains(&exchange.elapsed_ns), "{exchange:?}");
        assert_eq!((exchange.request_bytes, exchange.reply_bytes), (120, 64));
    }

    // The same packets at both ends, 13 ms apart.
    let (client, server) = (segments(&recorded.client_capture), segments(&recorded.server_capture));
    assert_eq!(client.len(), server.len());
    assert!(client[0].flags.syn() && client[1].flags.syn());
    let crossed = server[0].at - client[0].at;
    assert!((13_000_000..20_000_000).contains(&crossed.as_nanos()), "{crossed:?}");
    let bytes =
        |segments: &[tcpwhy_wire::Segment]| segments.iter().map(|s| u64::from(s.payload_len)).sum::<u64>();
    assert_eq!((bytes(&client), bytes(&server)), (6 * 184, 6 * 184));
    assert!(recorded.stats.iter().all(|stats| stats.dropped + stats.unread == 0));

    // The application's measurements surround those of the capture next to it.
    let first_data = client.iter().find(|segment| segment.payload_len > 0).unwrap();
    let start_ns = connection.exchanges[0].start_ns;
    assert!((0..5_000_000).contains(&(first_data.at.as_nanos() - start_ns)), "one clock for both");

    // The path has a row for each packet.
    let path = truth.path.as_ref().unwrap();
    assert_eq!((path.packets.len(), path.omitted, path.overruns), (client.len(), 0, 0));
    assert!(path.packets.iter().all(|row| row.len() == path.columns.len()));
    assert!(truth.counters.server["TcpExt.DelayedACKs"] >= 4, "{:?}", truth.counters.server);

    let written: crate::truth::Truth =
        serde_json::from_slice(&std::fs::read(&recorded.truth_file).unwrap()).unwrap();
    assert_eq!(&written, truth);
}
