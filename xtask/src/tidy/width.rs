//! Limits the width of prose and comments: rustfmt enforces `max_width` of rustfmt.toml for code but not for comments.
//!
//! Lines without a place to break are allowed: tables, fenced blocks, headings, and a single long word such as an
//! address. `wrap` refills only the paragraphs with a line that is too long.

use std::fs;

use anyhow::{Context, Result, ensure};
use clap::Args;

use super::file::{self, File};
use xtask::steps::root;

/// A file with prose: the prefix of each of its lines, and the text.
struct Line<'a> {
    prefix: &'a str,
    text: &'a str,
}

fn of_file(file: &File, width: usize) -> Vec<String> {
    let wrapped = wrapped(file, width);
    if wrapped == file.text {
        return Vec::new();
    }
    let same = file.text.lines().zip(wrapped.lines()).take_while(|(one, other)| one == other).count();
    vec![format!("{}:{}: prose wider than {width} characters; `cargo xtask wrap` refills it", file.path, same + 1)]
}

#[derive(Args)]
pub(crate) struct Options {
    /// Change nothing, and fail if something would change
    #[arg(long)]
    check: bool,
}

/// The first line of prose in each file that is too wide.
pub(super) fn complaints(files: &[File]) -> Result<Vec<String>> {
    let width = width()?;
    Ok(files.iter().flat_map(|file| of_file(file, width)).collect())
}

/// Refills all prose that is too wide, or complains about it.
pub(crate) fn wrap(options: &Options) -> Result<()> {
    let width = width()?;
    let mut complaints = 0;
    for file in file::all(&root())? {
        for complaint in of_file(&file, width) {
            complaints += 1;
            println!("{complaint}");
            if !options.check {
                fs::write(root().join(&file.path), wrapped(&file, width))?;
            }
        }
    }
    ensure!(!options.check || complaints == 0, "{complaints} files have prose that is too wide");
    Ok(())
}

fn width() -> Result<usize> {
    let text = fs::read_to_string(root().join("rustfmt.toml"))?;
    let width = text.lines().find_map(|line| line.strip_prefix("max_width = ")?.trim().parse().ok());
    width.context("rustfmt.toml has no max_width")
}

/// The file's text with all prose wrapped at `width` where it can be broken.
fn wrapped(file: &File, width: usize) -> String {
    let ending = file.path.rsplit('.').next().unwrap_or_default();
    if !["md", "rs", "lua"].contains(&ending) || file.path.contains("/vendor/") {
        return file.text.clone();
    }
    let mut out = String::with_capacity(file.text.len());
    let mut paragraph: Vec<Line> = Vec::new();
    let mut fenced = false;
    for line in file.text.split_inclusive('\n') {
        let line = line.strip_suffix('\n').unwrap_or(line);
        let found = prose(line, ending);
        if found.as_ref().is_some_and(|line| line.text.trim_start().starts_with("```")) {
            fenced = !fenced;
        }
        let found = found.filter(|line| !fenced && !stands_alone(line.text));
        let goes_on = found.as_ref().is_some_and(|line| {
            let before = paragraph.last();
            before.is_some_and(|before| continues(before.prefix, line.prefix)) && !begins_item(line.text)
        });
        if !goes_on {
            flush(&mut out, &mut paragraph, width);
        }
        match found {
            Some(line) => paragraph.push(line),
            None => {
                out += line;
                out.push('\n');
            }
        }
    }
    flush(&mut out, &mut paragraph, width);
    if !file.text.ends_with('\n') {
        out.pop();
    }
    out
}

/// A line of Markdown, or of a comment that has a line to itself.
fn prose<'a>(line: &'a str, ending: &str) -> Option<Line<'a>> {
    let (marks, indent): (&[&str], usize) = match ending {
        "md" => return Some(Line { prefix: "", text: line }),
        "rs" => (&["//! ", "/// ", "// "], line.len() - line.trim_start().len()),
        _ => (&["--- ", "-- "], line.len() - line.trim_start().len()),
    };
    let mark = marks.iter().find(|mark| line[indent..].starts_with(**mark))?;
    let (prefix, text) = line.split_at(indent + mark.len());
    Some(Line { prefix, text })
}

/// Lines that are never merged with their neighbors.
fn stands_alone(text: &str) -> bool {
    let beginnings = ["|", "#", "```", "<"];
    let is_code = text.starts_with("    ");
    is_code || text.trim().is_empty() || beginnings.iter().any(|beginning| text.trim().starts_with(beginning))
}

/// A comment of Lua begins with three dashes and continues with two.
fn continues(before: &str, prefix: &str) -> bool {
    before == prefix || before.replace("--- ", "-- ") == prefix
}

/// The length of a list item's mark, with the blank after it.
fn item(text: &str) -> usize {
    let indent = text.len() - text.trim_start().len();
    let rest = &text[indent..];
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    match rest {
        _ if rest.starts_with("* ") || rest.starts_with("- ") => indent + 2,
        _ if digits > 0 && rest[digits..].starts_with(". ") => indent + digits + 2,
        _ => 0,
    }
}

fn begins_item(text: &str) -> bool {
    item(text) > 0
}

/// Outputs the paragraph: unchanged, or refilled if one of its lines is too wide.
fn flush(out: &mut String, paragraph: &mut Vec<Line>, width: usize) {
    let Some(first) = paragraph.first() else { return };
    let length = |line: &Line| line.prefix.chars().count() + line.text.chars().count();
    let breakable = |line: &&Line| line.text.trim().contains(' ');
    if !paragraph.iter().filter(breakable).any(|line| length(line) > width) {
        for line in paragraph.drain(..) {
            *out += line.prefix;
            *out += line.text;
            out.push('\n');
        }
        return;
    }
    let next = match paragraph.get(1) {
        Some(line) => line.prefix.to_owned(),
        None => first.prefix.replace("--- ", "-- "),
    };
    let indent_of = |line: &Line| line.text.len() - line.text.trim_start().len();
    let begins = indent_of(first);
    let indent = match item(first.text) {
        0 => paragraph.get(1).map_or(begins, indent_of),
        item => item,
    };
    let mut line = format!("{}{}", first.prefix, " ".repeat(begins));
    let mut is_empty = true;
    for word in paragraph.iter().flat_map(|line| line.text.split_whitespace()) {
        let needed = line.chars().count() + usize::from(!is_empty) + word.chars().count();
        // Such a line would look like an item or a heading.
        if !is_empty && needed > width && !begins_item(&format!("{word} ")) && !word.starts_with('#') {
            *out += line.trim_end();
            out.push('\n');
            line = format!("{next}{}", " ".repeat(indent));
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line += word;
        is_empty = false;
    }
    *out += line.trim_end();
    out.push('\n');
    paragraph.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, text: &str, expected: &str) {
        let file = File { path: path.to_owned(), text: text.to_owned() };
        let wrapped = wrapped(&file, 20);
        assert_eq!(wrapped, expected);
        assert_eq!(of_file(&file, 20).is_empty(), text == expected);
        assert!(of_file(&File { text: wrapped, ..file }, 20).is_empty(), "filling it again changes it");
    }

    #[test]
    fn prose_that_is_too_wide_is_filled_anew_and_nothing_else_is() {
        check("x.md", "short\nlines stay\n", "short\nlines stay\n");
        check(
            "x.md",
            "one line that is too wide\nand another\n\nnext\n",
            "one line that is too\nwide and another\n\nnext\n",
        );
        check(
            "x.md",
            "* an item that is too wide\n  goes on\n* next\n",
            "* an item that is\n  too wide goes on\n* next\n",
        );
        check("x.md", "| a table | that is wide |\n", "| a table | that is wide |\n");
        check("x.md", "```sh\na command that is too wide\n```\n", "```sh\na command that is too wide\n```\n");
        check("x.md", "https://a.very.long.word.example\n", "https://a.very.long.word.example\n");
        check(
            "x.rs",
            "    /// A comment that is wide\n    fn f() {}\n",
            "    /// A comment\n    /// that is wide\n    fn f() {}\n",
        );
        check(
            "x.lua",
            "--- What it is for is this\n-- and that\nlocal x\n",
            "--- What it is for\n-- is this and that\nlocal x\n",
        );
        check("x.rs", "let text = \"a string that is wide\";\n", "let text = \"a string that is wide\";\n");
    }
}
