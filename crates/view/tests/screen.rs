//! What is on the screen, and what do keys change? The state and its screen without a terminal.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Modifier;
use tcpwhy_view::answer::{Lately, SCHEMA};
use tcpwhy_view::socket::Fact;
use tcpwhy_view::{Answer, Connection, Finding, Key, State, Wish};

/// The screen as text, without trailing blanks.
fn screen(state: &State) -> Vec<String> {
    let buffer = drawn(state, state.columns(), 24);
    rows(&buffer)
}

fn drawn(state: &State, columns: u16, lines: u16) -> Buffer {
    let area = Rect::new(0, 0, columns, lines);
    let mut buffer = Buffer::empty(area);
    state.draw(area, &mut buffer);
    buffer
}

fn rows(buffer: &Buffer) -> Vec<String> {
    let width = usize::from(buffer.area().width);
    let lines = buffer.content().chunks(width);
    lines
        .map(|line| {
            line.iter().map(ratatui_core::buffer::Cell::symbol).collect::<String>().trim_end().to_owned()
        })
        .collect()
}

/// The selected line.
fn selected(state: &State) -> String {
    let buffer = drawn(state, state.columns(), 24);
    let width = usize::from(buffer.area().width);
    let marked =
        buffer.content().chunks(width).position(|line| line[0].modifier.contains(Modifier::REVERSED));
    marked.map_or_else(String::new, |at| rows(&buffer)[at].clone())
}

fn finding(cause: &str, endpoint: &str, ms: i64, lately_ms: i64) -> Finding {
    Finding {
        cause: cause.to_owned(),
        side: "client".to_owned(),
        endpoint: endpoint.to_owned(),
        hits: 10,
        of: 20,
        ns: ms * 1_000_000,
        p50_ns: ms * 100_000,
        p99_ns: ms * 100_000,
        max_ns: ms * 100_000,
        confidence: "certain".to_owned(),
        trend: "steady".to_owned(),
        lately: Lately { hits: 3, ns: lately_ms * 1_000_000 },
        socket: None,
    }
}

fn answer(after_s: u64) -> Answer {
    Answer {
        schema: SCHEMA.to_owned(),
        after_us: after_s * 1_000_000,
        span_us: 1_000_000,
        packets: after_s * 500,
        exchanges: after_s * 100,
        exchanges_lately: 100,
        elapsed_ns: 1_000_000_000,
        findings: vec![
            finding("nagle-delayed-ack", "10.0.0.5:8080", 600, 5),
            finding("server-think", "10.0.0.6:5432", 300, 80),
            finding("rto", "10.0.0.7:6379", 50, 0),
        ],
        ..Answer::default()
    }
}

fn state() -> State {
    let mut state = State::new("eth0, port 8080".to_owned(), true);
    state.on_size(110, 24);
    state.on_answer(answer(1));
    state.on_answer(answer(2));
    state
}

fn keys(state: &mut State, text: &str) {
    for c in text.chars() {
        assert_eq!(state.on_key(Key::Char(c)), None, "{c}");
    }
}

#[test]
fn the_worst_comes_first_with_its_cost_and_what_the_socket_says() {
    let mut state = state();
    let mut now = answer(3);
    now.findings[0].socket = Some(Fact {
        words: "TCP_NODELAY is off at pid 4242 (java)".to_owned(),
        pid: 4242,
        fix: Some("tcpwhy fix nodelay --pid 4242 --port 8080".to_owned()),
    });
    state.on_answer(now);
    let seen = screen(&state);
    assert!(
        seen[0].starts_with("tcpwhy live  eth0, port 8080") && seen[0].ends_with("after 3.00 s"),
        "{seen:#?}"
    );
    assert_eq!(seen[1], "1,500 packets (500/s), 300 exchanges (100/s); none dropped");
    assert_eq!(seen[2], "3 findings, by time in all");
    assert!(seen[4].starts_with("nagle-delayed-ack  client of 10.0.0.5:8080  60.0 %  60.0 ms"), "{seen:#?}");
    assert!(seen[4].contains("steady   ███"), "{seen:#?}");
    assert!(seen[5].starts_with("server-think"));
    let more = seen.join("\n");
    assert!(more.contains("TCP_NODELAY is off at pid 4242 (java)"), "{more}");
    assert!(more.contains("try: tcpwhy fix nodelay --pid 4242 --port 8080"), "{more}");
    assert!(seen[23].starts_with("enter connections  e explain"), "{seen:#?}");
}

#[test]
fn packets_that_the_kernel_dropped_are_said() {
    let mut state = state();
    state.on_answer(Answer { dropped: 1_234, ..answer(3) });
    assert!(screen(&state)[1].ends_with("1,234 dropped: use a larger --ring"));
}

#[test]
fn the_order_changes_and_the_selected_one_stays_selected() {
    let mut state = state();
    state.on_key(Key::Down);
    assert!(selected(&state).starts_with("server-think"));
    keys(&mut state, "o");
    let seen = screen(&state);
    assert_eq!(seen[2], "3 findings, by time lately");
    assert!(seen[4].starts_with("server-think"), "{seen:#?}");
    assert!(selected(&state).starts_with("server-think"));
    keys(&mut state, "r");
    assert!(screen(&state)[4].starts_with("rto"));
    assert!(selected(&state).starts_with("server-think"));
    keys(&mut state, "rooo");
    assert!(screen(&state)[2].ends_with("by endpoint"));
    state.on_key(Key::End);
    assert!(selected(&state).starts_with("rto"));
    state.on_key(Key::Home);
    state.on_key(Key::Up);
    assert!(selected(&state).starts_with("nagle"));
}

#[test]
fn a_filter_leaves_what_has_the_letters() {
    let mut state = state();
    keys(&mut state, "f5432");
    assert_eq!(screen(&state)[23], "only with: 5432_");
    state.on_key(Key::Enter);
    let seen = screen(&state);
    assert_eq!(seen[2], "1 of 3 findings with \"5432\", by time in all");
    assert!(seen[4].starts_with("server-think") && seen[5].is_empty(), "{seen:#?}");
    // Keys that are commands elsewhere are letters here.
    keys(&mut state, "fqs");
    state.on_key(Key::Enter);
    assert!(screen(&state)[4].starts_with("nothing matches the filter"), "{:#?}", screen(&state));
    state.on_key(Key::Escape);
    assert_eq!(screen(&state)[2], "3 findings, by time in all");
}

#[test]
fn a_search_goes_round_and_says_where_there_is_nothing() {
    let mut state = state();
    keys(&mut state, "/10.0");
    state.on_key(Key::Backspace);
    state.on_key(Key::Enter);
    assert!(selected(&state).starts_with("nagle"), "the first one has it");
    keys(&mut state, "n");
    assert!(selected(&state).starts_with("server-think"));
    keys(&mut state, "nn");
    assert!(selected(&state).starts_with("nagle"));
    keys(&mut state, "N");
    assert!(selected(&state).starts_with("rto"));
    keys(&mut state, "/cork");
    state.on_key(Key::Enter);
    assert_eq!(screen(&state)[23], "nothing here has \"cork\"");
    assert!(selected(&state).starts_with("rto"));
}

#[test]
fn a_pause_keeps_what_is_seen_and_ends_with_what_is_now() {
    let mut state = state();
    keys(&mut state, "p");
    let before = screen(&state);
    state.on_answer(answer(9));
    let seen = screen(&state);
    assert_eq!(seen, before, "trends as well");
    assert!(seen[0].ends_with("paused") && seen[1].starts_with("1,000 packets"), "{seen:#?}");
    keys(&mut state, " ");
    let seen = screen(&state);
    assert!(seen[0].ends_with("after 9.00 s") && seen[1].starts_with("4,500 packets (500/s)"), "{seen:#?}");
}

#[test]
fn a_connection_and_its_packets_open_one_above_the_other() {
    let mut state = state();
    let wish = state.on_key(Key::Enter);
    assert_eq!(wish, Some(Wish::Connections { endpoint: "10.0.0.5:8080".to_owned() }));
    let one = |id, ms: i64| Connection {
        id,
        client: format!("10.0.0.9:{}", 51_000 + id),
        server: "10.0.0.5:8080".to_owned(),
        packets: 100,
        exchanges: 20,
        elapsed_ns: ms * 1_000_000,
        slowest_ns: 44_000_000,
        most: Some(("nagle-delayed-ack".to_owned(), ms * 900_000)),
    };
    state.show_connections("connections to 10.0.0.5:8080".to_owned(), vec![one(1, 10), one(2, 500)]);
    let seen = screen(&state);
    assert_eq!(seen[0], "connections to 10.0.0.5:8080");
    assert!(
        seen[2].starts_with("10.0.0.9:51002") && seen[2].ends_with("nagle-delayed-ack 90.0 %"),
        "{seen:#?}"
    );
    state.on_key(Key::Down);
    assert_eq!(state.on_key(Key::Enter), Some(Wish::Packets { connection: 1 }));
    let lines: Vec<String> = (0..100).map(|i| format!("packet {i}")).collect();
    state.show_packets("packets".to_owned(), lines);
    let seen = screen(&state);
    assert!(seen[0].starts_with("packets") && seen[0].ends_with("80-100 of 100"), "the latest: {seen:#?}");
    keys(&mut state, "/packet 42");
    state.on_key(Key::Enter);
    assert_eq!(screen(&state)[1], "packet 42");
    state.on_key(Key::Home);
    assert_eq!(screen(&state)[1], "packet 0");
    state.on_key(Key::Escape);
    assert_eq!(screen(&state)[0], "connections to 10.0.0.5:8080");
    state.on_key(Key::Escape);
    assert!(screen(&state)[0].starts_with("tcpwhy live"));
}

#[test]
fn a_cause_is_explained_at_any_width() {
    let mut state = state();
    keys(&mut state, "e");
    for columns in [110, 40] {
        state.on_size(columns, 24);
        let seen = screen(&state);
        assert!(seen[0].starts_with("nagle-delayed-ack: "), "{seen:#?}");
        assert!(seen.iter().any(|line| line.starts_with("## Mechanism")), "{seen:#?}");
    }
    state.on_key(Key::Escape);
    keys(&mut state, "?");
    assert!(screen(&state)[0].starts_with("Keys"));
}

#[test]
fn what_ends_and_what_saves_is_wished_for() {
    let mut state = state();
    assert_eq!(state.on_key(Key::Char('q')), Some(Wish::Quit));
    assert_eq!(state.on_key(Key::Char('s')), Some(Wish::Save));
    keys(&mut state, "/x");
    assert_eq!(state.on_key(Key::Interrupt), Some(Wish::Quit), "also while something is typed");
    state.on_key(Key::Escape);
    state.say("saved".to_owned());
    assert_eq!(screen(&state)[23], "saved");
}

#[test]
fn findings_of_several_servers_are_not_opened() {
    let mut state = state();
    let mut now = answer(3);
    now.findings[0].endpoint = "12 servers".to_owned();
    state.on_answer(now);
    assert_eq!(state.on_key(Key::Enter), None);
    assert!(screen(&state)[23].starts_with("this finding covers several servers"));
}

#[test]
fn any_size_is_drawn_and_columns_go_the_least_important_first() {
    let mut state = state();
    keys(&mut state, "e");
    state.show_connections("none".to_owned(), Vec::new());
    for columns in 0..130 {
        for lines in 0..30 {
            state.on_size(columns, lines);
            drawn(&state, columns, lines);
        }
    }
    state.on_key(Key::Escape);
    state.on_key(Key::Escape);
    for columns in 0..130 {
        for lines in 0..30 {
            state.on_size(columns, lines);
            drawn(&state, columns, lines);
        }
    }
    let heads = |columns: u16| rows(&drawn(&state, columns, 24))[3].clone();
    assert!(heads(120).contains("p99") && heads(120).ends_with("confidence"));
    assert!(!heads(80).contains("confidence") && heads(80).contains("median"));
    assert!(heads(50).contains("share"));
}

#[test]
fn nothing_that_comes_from_elsewhere_acts_on_the_terminal() {
    let mut state = state();
    let mut now = answer(3);
    now.findings[0].endpoint = "1.2.3.4:5\u{1b}[2J\u{202e}".to_owned();
    state.on_answer(now);
    state.show_packets("title\u{1b}".to_owned(), vec!["a\u{7}b\u{1b}[31m".to_owned()]);
    let seen = screen(&state).join("\n");
    assert!(!seen.contains('\u{1b}') && !seen.contains('\u{7}'), "{seen}");
    state.on_key(Key::Escape);
    let seen = screen(&state).join("\n");
    assert!(seen.contains("1.2.3.4:5\\u{1b}[2J\\u{202e}"), "{seen}");
}

#[test]
fn lines_tell_the_same() {
    let mut now = answer(2);
    now.findings[1].socket = Some(Fact { words: "pid 77 (postgres)".to_owned(), pid: 77, fix: None });
    let told = tcpwhy_view::lines(&now, tcpwhy_report::Style::default());
    let expected = "\
== after 2.00 s: 1,000 packets, 200 exchanges, 100 of them in the last 1.00 s
  nagle-delayed-ack    client of 10.0.0.5:8080  10 of 20, median 60.0 ms, 60.0 % of the time; steady; certain
  server-think         client of 10.0.0.6:5432  10 of 20, median 30.0 ms, 30.0 % of the time; steady; certain
                       pid 77 (postgres)
  rto                  client of 10.0.0.7:6379  10 of 20, median 5.00 ms, 5.0 % of the time; steady; certain
";
    assert_eq!(told, expected);
    let line = serde_json::to_string(&now).expect("it is plain");
    assert_eq!(Answer::parse(line.as_bytes()), Some(now));
}
