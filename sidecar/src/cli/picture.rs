//! Bars of characters: sizes beside each other, and the phases of a stop over its time.

use std::io::IsTerminal;

/// The characters of a bar: those of Unicode where the terminal has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Characters {
    /// Blocks of eighths.
    Blocks,
    /// A sign for each cell.
    Signs,
}

/// Eighths of a block, from one to eight.
const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

impl Characters {
    /// Those of standard output. What is no terminal may be read anywhere, and is given signs.
    pub(super) fn of_output() -> Characters {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .into_iter()
            .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
        let is_utf8 = locale.is_some_and(|locale| {
            let locale = locale.to_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        });
        match is_utf8 && std::io::stdout().is_terminal() {
            true => Characters::Blocks,
            false => Characters::Signs,
        }
    }

    /// A bar that is as long, of so many cells, as `value` is of `most`. What is more than nothing is seen.
    pub(super) fn bar(self, value: u64, most: u64, cells: usize) -> String {
        let eighths = (value as f64 / most.max(1) as f64 * 8.0 * cells as f64).round() as usize;
        let eighths = eighths.clamp(usize::from(value > 0), 8 * cells);
        let mut bar = match self {
            Characters::Blocks => "█".repeat(eighths / 8),
            Characters::Signs => "#".repeat(eighths.div_ceil(8)),
        };
        if self == Characters::Blocks
            && let Some(last) = (eighths % 8).checked_sub(1)
        {
            bar.extend(EIGHTHS.get(last));
        }
        let width = bar.chars().count();
        bar.extend(std::iter::repeat_n(' ', cells - width.min(cells)));
        bar
    }

    /// A stretch of a time of `whole`, in as many cells: at least one is filled.
    pub(super) fn stretch(self, begins: f64, ends: f64, whole: f64, cells: usize) -> String {
        let cell = |at: f64| (at / whole.max(f64::MIN_POSITIVE) * cells as f64).round() as usize;
        let from = cell(begins).min(cells.saturating_sub(1));
        let to = cell(ends).clamp(from + 1, cells.max(from + 1));
        let sign = match self {
            Characters::Blocks => '█',
            Characters::Signs => '#',
        };
        let signs = (0..cells).map(|at| match (from..to).contains(&at) {
            true => sign,
            false => ' ',
        });
        signs.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_what_they_show() {
        let blocks = |value, most| Characters::Blocks.bar(value, most, 4);
        assert_eq!(blocks(4, 4), "████");
        assert_eq!(blocks(3, 8), "█▌  ");
        assert_eq!(blocks(1, 1 << 40), "▏   ");
        assert_eq!(blocks(0, 4), "    ");
        assert_eq!(blocks(0, 0), "    ");
        assert_eq!(blocks(9, 4), "████");
        let signs = |value, most| Characters::Signs.bar(value, most, 4);
        assert_eq!(signs(4, 4), "####");
        assert_eq!(signs(1, 8), "#   ");
        assert_eq!(signs(0, 8), "    ");
    }

    #[test]
    fn stretches_lie_where_they_begin_and_are_seen() {
        let stretch = |begins, ends| Characters::Signs.stretch(begins, ends, 10.0, 10);
        assert_eq!(stretch(0.0, 10.0), "##########");
        assert_eq!(stretch(2.0, 4.0), "  ##      ");
        assert_eq!(stretch(9.99, 10.0), "         #");
        assert_eq!(stretch(3.0, 3.0), "   #      ");
        // Longer than it was said to be.
        assert_eq!(stretch(8.0, 15.0), "        ##");
        assert_eq!(Characters::Signs.stretch(0.0, 0.0, 0.0, 3), "#  ");
    }
}
