//! Elements on the virtual clock, judged by formulas.

use super::*;
use tcpwhy_wire::Duration;

fn at(us: i64) -> Instant {
    Instant::from_nanos(us * 1_000)
}

/// Sends packets of these lengths at these microseconds through the elements, asking exactly when told to. Answers the
/// packets that came out, in order, drops included.
fn run(elements: &[&str], seed: u64, sent: &[(i64, u32)]) -> Vec<Packet> {
    let spec = PathSpec {
        forward: elements.iter().map(|line| line.parse().expect("an element")).collect(),
        seed,
        ..PathSpec::default()
    };
    let [mut pipe, _] = spec.build().expect("a path");
    let packets = sent.iter().map(|&(us, len)| Packet::model(len, None, at(us)));
    drive(&mut pipe, packets)
}

fn drive(pipe: &mut Pipe, packets: impl IntoIterator<Item = Packet>) -> Vec<Packet> {
    let mut out = Vec::new();
    let mut due = Instant::MAX;
    for packet in packets {
        while due < packet.at {
            due = drain(pipe, None, due, &mut out);
        }
        let now = packet.at;
        due = drain(pipe, Some(packet), now, &mut out);
    }
    while due < Instant::MAX {
        due = drain(pipe, None, due, &mut out);
    }
    assert_eq!(pipe.queued(), 0, "nothing stays inside for ever");
    out
}

fn drain(pipe: &mut Pipe, mut packet: Option<Packet>, now: Instant, out: &mut Vec<Packet>) -> Instant {
    loop {
        match pipe.process(packet.take(), now) {
            Output::Packet(packet) | Output::Dropped(packet, _) => {
                assert!(packet.at <= now, "never early");
                out.push(packet);
            }
            Output::Wait(until) => {
                assert!(until > now, "a wait lies ahead");
                return until;
            }
            Output::Nothing => return Instant::MAX,
        }
    }
}

#[test]
fn a_delay_is_exact_and_keeps_order() {
    let out = run(&["delay 10ms", "delay 500us"], 0, &[(0, 100), (0, 100), (7, 1500), (20_000, 40)]);
    let left: Vec<_> = out.iter().map(|packet| (packet.id, packet.at)).collect();
    assert_eq!(left, [(1, at(10_500)), (2, at(10_500)), (3, at(10_507)), (4, at(30_500))]);
    assert_eq!(out[2].waits.in_element(0), Duration::from_millis(10));
    assert_eq!(out[2].waits.in_element(1), Duration::from_micros(500));
}

#[test]
fn no_elements_make_no_delay() {
    let out = run(&[], 0, &[(5, 100)]);
    assert_eq!(out[0].at, at(5));
}

#[test]
fn units_are_read_and_written_alike() {
    for line in ["delay 10ms", "delay 250us", "delay 17ns"] {
        assert_eq!(line.parse::<ElementSpec>().expect("an element").to_string(), line);
    }
    assert_eq!(parse_rate("1.5gbit"), Ok(1_500_000_000));
    assert_eq!(parse_bytes("64k"), Ok(65_536));
    for wrong in ["10", "ms", "10 ms", "-1ms", "1e3ms"] {
        assert!(parse_duration(wrong).is_err(), "{wrong}");
    }
}
