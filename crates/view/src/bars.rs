//! How has a value developed lately? One bar per interval, relative to the highest.

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// One character per value, oldest first; zero is a blank.
pub(crate) fn bars<'a>(values: impl Iterator<Item = &'a i64> + Clone) -> String {
    let most = values.clone().copied().max().unwrap_or(0).max(1);
    let bar = |value: &i64| match *value {
        ..=0 => ' ',
        value => BARS[((value as i128 * 8 - 1) / i128::from(most)).clamp(0, 7) as usize],
    };
    values.map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::bars;

    #[test]
    fn bars_are_as_high_as_their_part_of_the_highest() {
        assert_eq!(bars([0, 1, 4, 8, 8].iter()), " ▁▄██");
        assert_eq!(bars([i64::MAX, -5, 1].iter()), "█ ▁");
        assert_eq!(bars([].iter()), "");
    }
}
