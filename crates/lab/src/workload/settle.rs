//! When is a conversation over on the wire? When neither kernel has anything left to send or to
//! wait for.

use std::time::Duration;

use super::Stage;

/// Waits until no connection of `port` is in a state that still sends, at most for `limit`. Returns
/// whether that was reached.
pub fn settle<S: Stage>(stages: &[&S], port: u16, limit: Duration) -> bool {
    let steps = (limit.as_millis() / STEP.as_millis()).max(1);
    for _ in 0..steps {
        let busy = |stage: &&S| {
            stage
                .proc_file("net/tcp")
                .is_ok_and(|table| table.lines().skip(1).any(|line| is_open(line, port)))
        };
        if !stages.iter().any(busy) {
            return true;
        }
        std::thread::sleep(STEP);
    }
    false
}

const STEP: Duration = Duration::from_millis(10);

/// A line of /proc/net/tcp: number, local and remote address in hexadecimal, state.
fn is_open(line: &str, port: u16) -> bool {
    let mut words = line.split_whitespace().skip(1);
    let port_of = |address: &str| u16::from_str_radix(address.split(':').nth(1)?, 16).ok();
    let (Some(local), Some(remote), Some(state)) = (words.next(), words.next(), words.next()) else {
        return false;
    };
    let ours = [local, remote].into_iter().any(|address| port_of(address) == Some(port));
    ours && !matches!(state, TIME_WAIT | CLOSE | LISTEN)
}

// include/net/tcp_states.h
const TIME_WAIT: &str = "06";
const CLOSE: &str = "07";
const LISTEN: &str = "0A";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_means_that_packets_may_still_come() {
        let line =
            |state: &str| format!("   1: 0100007F:1F90 0100007F:C350 {state} 00000000:00000000 00:00000000");
        for (state, open) in
            [("01", true), ("04", true), ("08", true), ("09", true), ("06", false), ("0A", false)]
        {
            assert_eq!(is_open(&line(state), 8080), open, "{state}");
            assert_eq!(is_open(&line(state), 50000), open, "the client's port is as good: {state}");
            assert!(!is_open(&line(state), 80));
        }
    }
}
