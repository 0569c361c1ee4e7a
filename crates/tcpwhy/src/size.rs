//! Which size does a user mean by `512MB`?

/// The program itself needs this much.
const MEMORY_LEAST: usize = 64_000_000;

/// A size that is enough for an analysis.
pub(crate) fn memory(text: &str) -> Result<usize, String> {
    match size(text)? {
        size if size >= MEMORY_LEAST => Ok(size),
        _ => Err("at least 64MB is needed".to_owned()),
    }
}

/// A size in decimal units.
pub(crate) fn size(text: &str) -> Result<usize, String> {
    let upper = text.trim().to_ascii_uppercase();
    let units = [
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("K", 1_000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
    ];
    let unit = units.into_iter().find_map(|(unit, bytes)| Some((upper.strip_suffix(unit)?, bytes)));
    let (number, bytes) = unit.unwrap_or((&upper, 1));
    let size = number.trim().parse::<usize>().ok().and_then(|number| number.checked_mul(bytes));
    size.ok_or_else(|| "expected a number and a unit (KB, MB, GB), such as 512MB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [("512MB", 512_000_000), ("4 gb", 4_000_000_000), ("64M", 64_000_000)] {
            assert_eq!(memory(text), Ok(bytes), "{text}");
        }
        for text in ["", "MB", "63MB", "-1GB", "1TB", "99999999999999GB"] {
            assert!(memory(text).is_err(), "{text}");
        }
    }
}
