//! What does an `ss` filter mean? Its words for states, ports and addresses are translated to those
//! of tcpdump, which all commands here take.

/// The states that it names, and the rest in tcpdump's words. Other words stay as they are.
pub(super) fn translated(text: &str) -> (Vec<String>, String) {
    let spaced = text.replace('(', " ( ").replace(')', " ) ").replace("!=", " != ").replace("==", " = ");
    let mut words = spaced.split_whitespace().peekable();
    let (mut states, mut out) = (Vec::new(), Vec::<String>::new());
    while let Some(word) = words.next() {
        let side = match word {
            "sport" | "src" => "src",
            "dport" | "dst" => "dst",
            "state" => {
                states.extend(words.next().map(str::to_owned));
                continue;
            }
            _ => {
                out.push(word.to_owned());
                continue;
            }
        };
        let is_port = word.ends_with("port");
        let mut is_not = false;
        if let Some(operator) = words.next_if(|next| ["=", "eq", "!=", "ne", "neq"].contains(next)) {
            is_not = !["=", "eq"].contains(&operator);
        }
        // tcpdump's own syntax: `src port 80`, `dst net 10/8`.
        let is_theirs =
            !is_port && words.peek().is_some_and(|next| ["port", "host", "net", "portrange"].contains(next));
        let Some(value) = words.next_if(|_| !is_theirs) else {
            out.push(word.to_owned());
            continue;
        };
        if is_not {
            out.push("not".to_owned());
        }
        out.push(if is_port {
            format!("{side} port {}", value.rsplit(':').next().unwrap_or(value))
        } else {
            address(side, value)
        });
    }
    (states, out.join(" "))
}

/// `10.0.0.5`, `10.0.0.5:80`, `:80`, `10.0.0.0/8`, `[::1]:80`, with `*` for anything.
fn address(side: &str, value: &str) -> String {
    let (host, port) = match value.rsplit_once(':') {
        Some((host, port)) if host.starts_with('[') || !host.contains(':') => {
            (host.trim_matches(['[', ']']), port)
        }
        _ => (value.trim_matches(['[', ']']), ""),
    };
    let is_any = |part: &str| part.is_empty() || part == "*";
    let kind = if host.contains('/') { "net" } else { "host" };
    match (is_any(host), is_any(port)) {
        (false, true) => format!("{side} {kind} {host}"),
        (true, false) => format!("{side} port {port}"),
        _ => format!("({side} {kind} {host} and {side} port {port})"),
    }
}

#[cfg(test)]
mod tests {
    use super::translated;

    #[test]
    fn filters_of_ss_are_read_and_those_of_tcpdump_stay() {
        for (text, states, filter) in [
            ("sport = :8080", "", "src port 8080"),
            ("sport :8080 or dport eq 443", "", "src port 8080 or dst port 443"),
            ("dport != :22", "", "not dst port 22"),
            (
                "state established ( dport = :443 or dport = :80 )",
                "established",
                "( dst port 443 or dst port 80 )",
            ),
            ("state established state close-wait", "established close-wait", ""),
            ("dst 10.0.0.5:5432", "", "(dst host 10.0.0.5 and dst port 5432)"),
            ("dst 10.0.0.0/8", "", "dst net 10.0.0.0/8"),
            ("src [::1]:80", "", "(src host ::1 and src port 80)"),
            ("dst fe80::1", "", "dst host fe80::1"),
            ("dst :443", "", "dst port 443"),
            ("src port 8080 and host 10.0.0.5", "", "src port 8080 and host 10.0.0.5"),
            ("dst net 10.0.0.0/8 and not port 22", "", "dst net 10.0.0.0/8 and not port 22"),
        ] {
            let (found, rest) = translated(text);
            assert_eq!((found.join(" ").as_str(), rest.as_str()), (states, filter), "{text}");
        }
    }

    #[test]
    fn what_comes_out_is_a_filter() {
        for text in [
            "sport = :8080",
            "dst 10.0.0.0/8",
            "dport != :22",
            "src [::1]:80",
            "( dport = :443 or dst 10.0.0.5:80 )",
        ] {
            let (_, filter) = translated(text);
            assert!(filter.parse::<tcpwhy_wire::Filter>().is_ok(), "{filter}");
        }
    }
}
