//! Makes text from other sources harmless, and limits its length.

/// The medium of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// Lines are no longer than this, if their words allow it. `View::WIDTHS`
    pub width: usize,
    /// With color.
    pub color: bool,
    /// With everything: all options, zero values, details of the load generator.
    pub verbose: bool,
    /// With the agents of a fleet apart.
    pub agents: bool,
}

impl View {
    /// Narrower lines have no room for a table, longer ones are hard to read.
    pub const WIDTHS: std::ops::RangeInclusive<usize> = 60..=120;
}

impl Default for View {
    /// For a pipe.
    fn default() -> View {
        View { width: 80, color: false, verbose: false, agents: false }
    }
}

/// Text from a server, a script or a file, made harmless for a terminal and at most `width` characters long: it cannot
/// move the cursor, change colors, reorder the line or start a new one.
pub(crate) fn clean(text: &str, width: usize) -> String {
    let mut clean = String::new();
    for c in text.trim().chars() {
        match c {
            '\n' | '\r' | '\t' => clean.push(' '),
            c if c.is_control() || is_invisible(c) => clean.extend(c.escape_default()),
            c => clean.push(c),
        }
        if clean.len() > width * 4 {
            break;
        }
    }
    cut(clean, width)
}

/// At most `width` characters of `text`, ending with a mark if there were more.
pub(crate) fn cut(text: String, width: usize) -> String {
    match text.chars().count() > width {
        true => text.chars().take(width.saturating_sub(1)).collect::<String>() + "…",
        false => text,
    }
}

/// Characters that change how others are shown: direction marks, joiners, line separators, byte order marks.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{61c}')
}

/// `pieces` joined by `separator`, in lines of at most `width` characters, if the pieces allow it. The first line
/// starts with `label`, the others with as many blanks.
pub(crate) fn wrap_to<S: AsRef<str>>(
    width: usize,
    label: &str,
    pieces: impl IntoIterator<Item = S>,
    separator: &str,
) -> String {
    let indent = label.chars().count();
    let (mut text, mut column, mut first) = (label.to_owned(), indent, true);
    for piece in pieces {
        let length = piece.as_ref().chars().count();
        if !first {
            if column + separator.chars().count() + length <= width {
                text.push_str(separator);
                column += separator.chars().count();
            } else {
                text.push('\n');
                text.push_str(&" ".repeat(indent));
                column = indent;
            }
        }
        text.push_str(piece.as_ref());
        (column, first) = (column + length, false);
    }
    text.push('\n');
    text
}

/// Between facts on one line.
pub(crate) const DOT: &str = " · ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_elsewhere_cannot_command_the_terminal() {
        assert_eq!(
            clean("\x1b[31mred\x1b[0m\nnext\u{9b}2J\u{202e}x\0", 80),
            "\\u{1b}[31mred\\u{1b}[0m next\\u{9b}2J\\u{202e}x\\u{0}"
        );
        assert_eq!(clean("a long message", 6), "a lon…");
        assert_eq!(clean(&"ü".repeat(1_000_000), 3), "üü…");
    }
}
