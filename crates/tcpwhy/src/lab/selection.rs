//! Which rows of the table are requested? `all`, or one case: `case-a` to `case-e`.

use tcpwhy_lab::scenario::{self, Row};

/// Whether a name on the command line means the table or a part of it.
pub(super) fn is_of_the_table(name: &str) -> bool {
    name == "all" || letter(name).is_some()
}

/// The rows in order; with `every`, followed by the scenarios that are not among the reference
/// cases.
pub(super) fn rows(names: &[String], every: bool) -> anyhow::Result<Vec<Row>> {
    let catalogue = scenario::catalogue()?;
    let mut rows: Vec<Row> = catalogue.iter().flat_map(|entry| entry.rows.clone()).collect();
    rows.sort_by_key(|row| place(&row.label));
    if every {
        let others = catalogue.into_iter().filter(|entry| entry.rows.is_empty());
        rows.extend(others.map(|entry| Row { label: entry.name.clone(), form: entry.name, fix: None }));
    }
    let asked = |row: &Row| {
        names.iter().any(|name| name == "all" || letter(name).is_some_and(|case| place(&row.label).0 == case))
    };
    Ok(rows.into_iter().filter(asked).collect())
}

/// `case-b` is B.
fn letter(name: &str) -> Option<char> {
    let mut letters = name.strip_prefix("case-")?.chars();
    let letter = letters.next().filter(|letter| ('a'..='e').contains(letter))?;
    letters.next().is_none().then(|| letter.to_ascii_uppercase())
}

/// `B12 one write` sorts as (B, 12).
fn place(label: &str) -> (char, u32) {
    let mut letters = label.chars();
    let case = letters.next().unwrap_or_default();
    let number: String = letters.take_while(char::is_ascii_digit).collect();
    (case, number.parse().unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_its_rows_in_order_and_no_place_is_taken_twice() {
        let all = rows(&["all".to_owned()], false).unwrap();
        let places: Vec<(char, u32)> = all.iter().map(|row| place(&row.label)).collect();
        assert!(places.is_sorted(), "{places:?}");
        for (case, n) in [('A', 7), ('B', 8), ('C', 9), ('D', 7), ('E', 20)] {
            let of_case: Vec<u32> =
                places.iter().filter(|place| place.0 == case).map(|place| place.1).collect();
            let counted: Vec<u32> = (1..).take(of_case.len()).collect();
            assert_eq!(of_case, counted, "case {case}");
            assert!(of_case.len() >= n, "case {case} has only {} rows", of_case.len());
        }
        let one: Vec<Row> = rows(&["case-b".to_owned()], false).unwrap();
        assert!(one.iter().all(|row| row.label.starts_with('B')) && !one.is_empty());
        assert!(rows(&["all".to_owned()], true).unwrap().len() > all.len());
        assert!(is_of_the_table("case-e") && !is_of_the_table("case-f") && !is_of_the_table("split"));
    }
}
