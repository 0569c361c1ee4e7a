//! Is a scenario read as it is written, and a wrong one refused with its place?

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

[[mend]]
name = "nodelay"
what = "TCP_NODELAY at the client"
client.socket = ["nodelay on"]
expect.exchange = "..2ms"
"#;

fn parse(name: &str, mend: Option<&str>, overrides: &[&str]) -> Result<Scenario, String> {
    let overrides: Vec<Override> = overrides.iter().map(|text| text.parse().unwrap()).collect();
    Scenario::parse(name, SPLIT, mend, &overrides).map_err(|error| error.what)
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
fn variant_mend_and_overrides_lie_over_one_another() {
    let far = parse("split@rtt-26", None, &[]).unwrap();
    assert_eq!(delays(&far), ["delay 13ms"]);
    assert!(far.expect.exchange.unwrap().contains(Duration::from_millis(96)));
    assert_eq!(far.expect.causes.len(), 1, "what a variant does not say stays");

    let mended =
        parse("split@rtt-26", Some("nodelay"), &["n=7", "rate=10mbit", "queue=50p", "client.rcvbuf=64k"])
            .unwrap();
    assert_eq!(delays(&mended), ["rate 10000000bit queue 50p", "delay 13ms"]);
    assert_eq!(mended.workload.client.0[0], Step::Set(Setting::NoDelay(true)));
    assert_eq!(mended.workload.client.0[1], Step::Set(Setting::ReceiveBuffer(65536)));
    assert_eq!(mended.workload.server.0[0], Step::Accept);
    assert!(mended.expect.causes.is_empty(), "what was expected is mended");

    let delayed = parse("split", None, &["delay=20ms"]).unwrap();
    assert_eq!(delays(&delayed), ["delay 20ms"]);
}

#[test]
fn a_definition_runs_again_as_it_is() {
    let far = parse("split@rtt-26", Some("nodelay"), &["seed=9"]).unwrap();
    let again = Scenario::parse("split", &far.definition, None, &[]).unwrap();
    assert_eq!((again.pair, again.workload, again.expect), (far.pair, far.workload, far.expect));
}

#[test]
fn a_mistake_is_told_with_what_would_be_right() {
    let told = |name: &str, mend: Option<&str>, overrides: &[&str], what: &str| {
        let error = parse(name, mend, overrides).unwrap_err();
        assert!(error.contains(what), "{error}");
    };
    told("split@rtt-27", None, &[], "there is no variant \"rtt-27\"; there are: rtt-26");
    told("split", Some("prayer"), &[], "there is no mend \"prayer\"; there are: nodelay");
    told("split", None, &["mss=9000"], "`mss` cannot be set here. What can: n, rtt; everywhere: rtt, delay");
    told("split", None, &["rtt=soon"], "`soon` is no duration");
    let error = Scenario::load("nonsense", None, &[]).unwrap_err();
    assert!(error.what.contains("there are: "), "{error}");
}

#[test]
fn every_scenario_of_the_repository_can_be_read_in_every_form() {
    for entry in catalogue().unwrap() {
        assert!(!entry.shows.is_empty(), "{} says what it shows", entry.name);
        let variants = entry.variants.iter().map(|variant| format!("{}@{variant}", entry.name));
        for name in std::iter::once(entry.name.clone()).chain(variants) {
            for mend in std::iter::once(None).chain(entry.mends.iter().map(|(mend, _)| Some(mend.as_str()))) {
                let scenario = Scenario::load(&name, mend, &[]).unwrap_or_else(|error| panic!("{error}"));
                scenario.pair.path.build().unwrap_or_else(|error| panic!("{name}: {error}"));
                for expected in &scenario.expect.causes {
                    assert!(
                        expected.cause.parse::<tcpwhy_core::Cause>().is_ok(),
                        "{name}: there is no cause {}",
                        expected.cause
                    );
                }
                if mend.is_none() {
                    assert!(!scenario.expect.causes.is_empty(), "{name} says which causes must be found");
                }
            }
        }
        assert!(
            entry.mends.iter().all(|(_, what)| !what.is_empty()),
            "{}: mends say what they do",
            entry.name
        );
    }
}
