//! What did a host's kernel count meanwhile? `DelayedACKs`, `TCPTimeouts`, `TCPLossProbes`, `TCPAutoCorking` and the
//! rest of /proc/net/netstat and /proc/net/snmp.

use std::collections::BTreeMap;

/// Counters by group and name: `TcpExt.DelayedACKs`.
pub type Counters = BTreeMap<String, i64>;

/// The files with counters, below `/proc/thread-self`.
pub(super) const FILES: [&str; 2] = ["net/netstat", "net/snmp"];

/// Parses one of the files: pairs of lines, names above values.
pub(super) fn parse(text: &str, into: &mut Counters) {
    let lines: Vec<&str> = text.lines().collect();
    for [names, values] in lines.as_chunks::<2>().0 {
        let Some((group, names)) = names.split_once(": ") else { continue };
        let Some((_, values)) = values.split_once(": ") else { continue };
        for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
            if let Ok(value) = value.parse() {
                into.insert(format!("{group}.{name}"), value);
            }
        }
    }
}

/// The changes.
pub(super) fn since(before: &Counters, after: &Counters) -> Counters {
    after
        .iter()
        .map(|(name, value)| (name.clone(), value - before.get(name).copied().unwrap_or_default()))
        .filter(|(_, change)| *change != 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_counted_by_name() {
        let (mut before, mut after) = (Counters::new(), Counters::new());
        parse("TcpExt: SyncookiesSent DelayedACKs\nTcpExt: 0 3\nIpExt: InNoRoutes\nIpExt: 1\n", &mut before);
        parse("TcpExt: SyncookiesSent DelayedACKs\nTcpExt: 0 41\nIpExt: InNoRoutes\nIpExt: 1\n", &mut after);
        assert_eq!(since(&before, &after), Counters::from([("TcpExt.DelayedACKs".to_owned(), 38)]));
    }
}
