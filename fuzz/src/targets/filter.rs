//! Does a filter that can be parsed mean the same when it is printed and parsed again?

use tcpwhy_wire::{Endpoint, Filter};

pub(super) fn text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match text.parse::<Filter>() {
        Ok(filter) => {
            let shown = filter.to_string();
            let again: Filter = shown.parse().unwrap_or_else(|error| panic!("`{shown}`: {error}"));
            for (one, other) in [
                (Endpoint::v4([10, 0, 0, 5], 80), Endpoint::v4([192, 168, 1, 1], 40_000)),
                (Endpoint::v6([0x20; 16], 443), Endpoint::v4([10, 0, 0, 5], 8080)),
                (Endpoint::v6([0; 16], 0), Endpoint::v6([0xff; 16], u16::MAX)),
            ] {
                assert_eq!(filter.matches(one, other), again.matches(one, other), "`{shown}`");
                assert_eq!(
                    filter.matches_connection(one, other),
                    filter.matches_connection(other, one),
                    "a connection has no direction"
                );
            }
        }
        Err(error) => {
            let shown = error.to_string();
            assert!(shown.chars().all(|c| c == '\n' || !c.is_control()), "{shown:?}");
        }
    }
}
