//! Which sentences are in a source? For the tests that check whether each is listed in the
//! documents.

/// Lines with these are for developers.
const FOR_DEVELOPERS: [&str; 4] = ["expect(", "unreachable!(", "reason = \"", "assert!("];

/// Text between quotation marks, without comments and tests, in pieces of this many words between
/// placeholders.
pub(crate) fn pieces(source: &str, words: usize) -> Vec<String> {
    let source = source.split("#[cfg(test)]").next().unwrap_or_default();
    let code: String = source
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .filter(|line| !FOR_DEVELOPERS.iter().any(|mark| line.contains(mark)))
        .collect::<Vec<_>>()
        .join("\n");
    let mut literals = Vec::new();
    let mut chars = code.chars();
    let mut before = ' ';
    while let Some(c) = chars.next() {
        let is_bytes = std::mem::replace(&mut before, c) == 'b';
        match c {
            '\'' => {
                // A character, or a lifetime, whose end does not matter here.
                let rest: String = chars.clone().take(3).collect();
                if let Some(end) = rest.find('\'').filter(|end| *end > 0) {
                    for _ in rest[..=end].chars() {
                        chars.next();
                    }
                }
            }
            '"' => {
                let mut literal = String::new();
                while let Some(c) = chars.next() {
                    match c {
                        '"' => break,
                        '\\' => match chars.next() {
                            Some('\n') | None => {}
                            Some('n') => literal.push('\n'),
                            Some('t') => literal.push('\t'),
                            Some('r') => literal.push('\r'),
                            Some(c) => literal.push(c),
                        },
                        c => literal.push(c),
                    }
                }
                if !is_bytes && !is_for_programs(&literal) {
                    literals.push(literal.replace("{{", "").replace("}}", ""));
                }
            }
            _ => {}
        }
    }
    let between = literals
        .iter()
        .flat_map(|literal| literal.split('{').map(|part| part.split('}').next_back().unwrap_or(part)));
    between
        .map(|piece| piece.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|piece| piece.split(' ').count() >= words)
        .collect()
}

/// Text that programs read: lines of HTTP (RFC 9112, 2.2), and scripts of the laboratory's workloads.
fn is_for_programs(literal: &str) -> bool {
    literal.contains('\r') || literal.lines().any(|line| matches!(line.trim(), "connect" | "accept" | "end"))
}
