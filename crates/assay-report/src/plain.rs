//! Makes text from other sources harmless, and limits its length.

use std::borrow::Cow;

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

/// A line that keeps its indentation.
pub(crate) fn indented(line: &str, width: usize) -> String {
    let indent: String = line.chars().take_while(|c| *c == ' ').take(60).collect();
    format!("{indent}{}", clean(line, width))
}

/// Text of any length and any number of lines, in which nothing from a server, a script or a file can move the cursor,
/// change colors or reorder a line: such characters become escapes that JSON knows, too, like `\u001b`. With `color`,
/// what switches colors stays.
pub fn visible(text: &str, color: bool) -> Cow<'_, str> {
    let is_hidden = |c: char| (c.is_control() && c != '\n' && c != '\t') || is_invisible(c);
    // Pages have many megabytes, and hardly a character of them needs a closer look.
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    let others = text.bytes().enumerate().filter(|(_, byte)| !is_plain(byte)).map(|(at, _)| at);
    let mut begins = others.filter(|at| text.is_char_boundary(*at));
    let Some(first) = begins.find(|at| text[*at..].starts_with(is_hidden)) else { return Cow::Borrowed(text) };
    let (mut visible, mut rest) = (text[..first].to_owned(), &text[first..]);
    while let Some(c) = rest.chars().next() {
        let switch = if color { color_switch(rest) } else { 0 };
        if switch > 0 {
            visible.push_str(&rest[..switch]);
            rest = &rest[switch..];
            continue;
        }
        if is_hidden(c) {
            visible.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            visible.push(c);
        }
        rest = &rest[c.len_utf8()..];
    }
    Cow::Owned(visible)
}

/// The length of what switches colors at the beginning of `text`: `ESC [ 1;31 m`; 0 if there is nothing of the kind.
fn color_switch(text: &str) -> usize {
    let Some(rest) = text.strip_prefix("\u{1b}[") else { return 0 };
    let digits = rest.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(rest.len());
    if rest[digits..].starts_with('m') { text.len() - rest.len() + digits + 1 } else { 0 }
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
    if first {
        text.truncate(text.trim_end().len());
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
    fn whole_texts_keep_lines_and_colors_and_nothing_else_that_acts_on_a_terminal() {
        let text = "\x1b[1;31merror:\x1b[0m a\n\tb\r\x1b[2J\x1b]0;title\x07\u{9b}\u{202e}\0é";
        assert_eq!(
            visible(text, true),
            "\x1b[1;31merror:\x1b[0m a\n\tb\\u000d\\u001b[2J\\u001b]0;title\\u0007\\u009b\\u202e\\u0000é"
        );
        assert!(visible(text, false).starts_with("\\u001b[1;31merror:\\u001b[0m a\n\tb"));
        assert!(matches!(visible("a\n\tb é", false), Cow::Borrowed(_)));
    }

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
