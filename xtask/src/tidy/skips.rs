//! Finds tests that return early without a word: a test that proves nothing must say so.
//!
//! In the body of a function with `#[test]`, a bare `return` is only allowed in a branch whose condition, or a
//! statement before it in the same block, names one of `ASKERS`: functions of testkit, or of a test's own, that report
//! what is missing or not allowed. Closures are not looked into.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::file::File;

/// They report what they miss, through `absent`, `refused` or `aloud` of testkit.
const ASKERS: [&str; 14] = [
    "Mounted",
    "ImageBuilder",
    "absent",
    "aloud",
    "has_table_readers",
    "here",
    "installed",
    "kinds",
    "matrix",
    "openssl",
    "present",
    "refused",
    "root",
    "versions",
];

pub(super) fn complaints(files: &[File]) -> Vec<String> {
    let rust = files.iter().filter(|file| file.path.ends_with(".rs"));
    rust.flat_map(|file| {
        let mut found = Vec::new();
        // Invalid Rust is left to the compiler.
        tests(file.text.parse().unwrap_or_default(), &mut found);
        let complaint = |name: String| {
            format!("{}: {name} returns early without a word; see testkit's `absent` and `refused`", file.path)
        };
        found.into_iter().map(complaint).collect::<Vec<_>>()
    })
    .collect()
}

/// Adds the names of tests that skip silently.
fn tests(tokens: TokenStream, found: &mut Vec<String>) {
    let (mut is_test, mut name, mut follows_fn) = (false, None, false);
    for token in tokens {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => {
                is_test |= group.stream().to_string() == "test";
            }
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                match name.take().filter(|_| is_test) {
                    Some(name) if is_silent(group.stream(), None) => found.push(name),
                    Some(_) => {}
                    None => tests(group.stream(), found),
                }
                is_test = false;
            }
            TokenTree::Ident(word) if follows_fn => (name, follows_fn) = (Some(word.to_string()), false),
            TokenTree::Ident(word) => follows_fn = word == "fn",
            _ => {}
        }
    }
}

/// Whether a test's body, or a block in it, returns early with nobody asked. `asked`: in the condition of a branch that
/// contains it; `None` for the body.
fn is_silent(block: TokenStream, asked: Option<bool>) -> bool {
    // Words since the last statement ended, and whether a statement of this branch asked.
    let (mut statement, mut has_asked) = (BTreeSet::new(), asked == Some(true));
    let mut follows_bar = false;
    let mut tokens = block.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let is_closure = std::mem::take(&mut follows_bar);
        match token {
            TokenTree::Ident(word) if word == "return" => {
                let is_bare = match tokens.peek() {
                    None => true,
                    Some(TokenTree::Punct(next)) => [';', ','].contains(&next.as_char()),
                    Some(_) => false,
                };
                if is_bare && !has_asked && !asks(&statement) {
                    return true;
                }
            }
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                if !is_closure && is_silent(group.stream(), Some(has_asked || asks(&statement))) {
                    return true;
                }
                if !matches!(tokens.peek(), Some(TokenTree::Ident(next)) if next == "else") {
                    statement.clear();
                }
            }
            TokenTree::Punct(mark) if mark.as_char() == ';' => {
                has_asked |= asked.is_some() && asks(&statement);
                statement.clear();
            }
            TokenTree::Punct(mark) => follows_bar = mark.as_char() == '|',
            token => words(token, &mut statement),
        }
    }
    false
}

fn asks(statement: &BTreeSet<String>) -> bool {
    ASKERS.iter().any(|asker| statement.contains(*asker))
}

fn words(token: TokenTree, all: &mut BTreeSet<String>) {
    match token {
        TokenTree::Ident(word) => drop(all.insert(word.to_string())),
        TokenTree::Group(group) => group.stream().into_iter().for_each(|token| words(token, all)),
        TokenTree::Punct(_) | TokenTree::Literal(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(body: &str, silent: bool) {
        let text = format!("mod x {{ #[test] fn it_works() {{ {body} assert!(true); }} fn other() {{ return; }} }}");
        let found = complaints(&[File { path: "crates/x/src/x.rs".to_owned(), text }]);
        let expected = "crates/x/src/x.rs: it_works returns early without a word; see testkit's `absent` and `refused`";
        assert_eq!(found, if silent { vec![expected] } else { Vec::new() }, "{body}");
    }

    #[test]
    fn a_test_that_returns_early_must_have_asked() {
        check("", false);
        check("if !is_root() { return; }", true);
        check("let Some(one) = first() else { return };", true);
        check("if true { if false { return; } }", true);
        check("match one() { Some(_) => {} None => return, }", true);
        check("let one = Kind::A.present(); if !root_user { return; }", true);
        check("if !Kind::A.present() { return; } if !is_root() { return; }", true);
        check("if !Kind::A.present() || !Kind::B.present() { return; }", false);
        check("let Some(kind) = kinds().next() else { return };", false);
        check("if x.is_err() { testkit::absent(\"x\"); return; }", false);
        check("match open() { Ok(one) => one, Err(error) => { testkit::refused(&error); return; } };", false);
        check("if testkit::root(\"x\") { run() } else { return; }", false);
    }

    #[test]
    fn values_closures_and_other_functions_are_left_alone() {
        check("let f = |x| { if x { return; } g(); };", false);
        check("drive(|io| { return; });", false);
        check("let f = || { return 1; };", false);
    }
}
