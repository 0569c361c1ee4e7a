//! How does the table get into a hand-written page? Between two markers; rows that were not
//! measured this time stay.

/// The marker before the table ...
pub(super) const BEGIN: &str = "<!-- tcpwhy lab all: begin -->\n";
/// ... and the one after it.
const END: &str = "<!-- tcpwhy lab all: end -->";

/// The page with `measured` in place of the rows with the same labels, in the order of `labels`.
/// Rows with other labels are removed.
pub(super) fn with_rows(page: &str, heading: &str, labels: &[&str], measured: &[String]) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (old, after) = rest.split_once(END)?;
    let old: Vec<String> = old.lines().map(|line| format!("{line}\n")).collect();
    let mut out = format!("{before}{BEGIN}{heading}");
    for label in labels {
        let of_label = |line: &&String| line.starts_with(&format!("| {} |", label.replace('|', "\\|")));
        if let Some(line) = measured.iter().find(of_label).or_else(|| old.iter().find(of_label)) {
            out.push_str(line);
        }
    }
    Some(format!("{out}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_replaces_its_row_and_the_others_stay() {
        let page = format!(
            "# Page\n{BEGIN}| x |\n|---|\n| A1 a | 1 |\n| A2 b | 2 |\n| A9 gone | 9 |\n{END}\nrest\n"
        );
        let measured = ["| A2 b | 22 |\n".to_owned(), "| A3 c | 3 |\n".to_owned()];
        let written =
            with_rows(&page, "| x |\n|---|\n", &["A1 a", "A2 b", "A3 c", "A4 d"], &measured).unwrap();
        let table = "| x |\n|---|\n| A1 a | 1 |\n| A2 b | 22 |\n| A3 c | 3 |\n";
        assert_eq!(written, format!("# Page\n{BEGIN}{table}{END}\nrest\n"));
        assert_eq!(with_rows("# Page\n", "", &[], &[]), None);
    }
}
