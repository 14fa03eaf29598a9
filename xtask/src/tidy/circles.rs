//! Finds files of a crate that depend on each other in a circle, so that there is no order in which to read them.
//!
//! The dependencies of a file are read from its tokens: `use` declarations and paths such as `crate::plan::Plan` or
//! `super::Worker`. A name that a file only re-exports (`pub use child::Name`) belongs to the child. Tests may use
//! anything.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::file::File;

/// Crates whose files form layers, the lowest first: files or folders of `src`.
const LAYERED: [(&str, &[&[&str]]); 2] = [
    (
        "crates/assay-report",
        &[&["cpus", "digits", "leb128", "plain"], &["findings"], &["words"], &["tables", "charts"], &["output"]],
    ),
    // Text in, text out; above it the program.
    (
        "crates/assay-sysbench",
        &[
            &[
                "config_file",
                "conninfo",
                "help",
                "histogram",
                "log",
                "options",
                "originals",
                "report",
                "servers",
                "settings",
                "stat",
                "value",
            ],
            &["front"],
        ],
    ),
];

pub(super) fn complaints(files: &[File]) -> Vec<String> {
    let mut crates: BTreeMap<&str, Vec<&File>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.path.ends_with(".rs") && !is_test(&file.path)) {
        if let Some((name, _)) = file.path.split_once("/src/") {
            crates.entry(name).or_default().push(file);
        }
    }
    let mut complaints = Vec::new();
    for (name, files) in crates {
        let modules = Modules::new(name, &files);
        if let Some((_, layers)) = LAYERED.iter().find(|(layered, _)| *layered == name) {
            complaints.extend(out_of_layer(&modules, layers).into_iter().map(|what| format!("{name}/src/{what}")));
        }
        let circles = circles(&modules);
        complaints.extend(circles.iter().map(|circle| format!("{name}: files in a circle: {}", circle.join(", "))));
    }
    complaints
}

fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs") || path.ends_with("/transcripts.rs")
}

/// A module's path in its crate: `["worker", "link"]`; empty for the root.
type Place = Vec<String>;

/// The modules of a crate that are files.
struct Modules(BTreeMap<Place, Module>);

struct Module {
    file: String,
    uses: Vec<Use>,
}

/// A path as written: `super`, `link`, `Link`.
struct Use {
    path: Vec<String>,
    /// Is part of a `pub use`, so that the last name of the path is also a name of this module.
    passed_on: bool,
}

impl Modules {
    fn new(name: &str, files: &[&File]) -> Modules {
        let module = |file: &&File| {
            let inside = file.path.strip_prefix(&format!("{name}/src/"))?.strip_suffix(".rs")?;
            let mut place: Place = inside.split('/').map(str::to_owned).collect();
            place.pop_if(|last| ["lib", "main", "mod"].contains(&last.as_str()));
            let mut uses = Vec::new();
            // Invalid Rust is left to the compiler.
            collect(file.text.parse().unwrap_or_default(), &mut uses);
            Some((place, Module { file: inside.to_owned(), uses }))
        };
        Modules(files.iter().filter_map(module).collect())
    }

    /// The file that defines what `path` names in the module at `place`; `None` outside the crate.
    fn target(&self, place: &[String], path: &[String]) -> Option<Place> {
        let mut at = match path.first()?.as_str() {
            "crate" => Vec::new(),
            "self" | "super" => place.to_vec(),
            child => {
                let below = [place, &[child.to_owned()]].concat();
                self.0.contains_key(&below).then(|| place.to_vec())?
            }
        };
        let mut rest = path.iter().peekable();
        while let Some(step) = rest.next_if(|step| ["crate", "self", "super"].contains(&step.as_str())) {
            if step == "super" {
                at.pop();
            }
        }
        while let Some(step) = rest.next_if(|step| self.0.contains_key(&[&at[..], &[(*step).clone()]].concat())) {
            at.push(step.clone());
        }
        let Some(name) = rest.next() else { return Some(at) };
        let passes_on = |one: &&Use| one.passed_on && one.path.last() == Some(name);
        match self.0.get(&at).and_then(|module| module.uses.iter().find(passes_on)) {
            Some(origin) if origin.path != path => self.target(&at, &origin.path),
            _ => Some(at),
        }
    }

    /// The other files that the module at `place` uses.
    fn used_by(&self, place: &Place) -> BTreeSet<Place> {
        let of = |one: &Use| {
            let target = self.target(place, &one.path)?;
            let childs = one.passed_on && target.starts_with(place);
            (target != *place && !childs && self.0.contains_key(&target)).then_some(target)
        };
        self.0[place].uses.iter().filter_map(of).collect()
    }
}

/// Files that use a layer above their own, or belong to no layer. The crate's root is above all.
fn out_of_layer(modules: &Modules, layers: &[&[&str]]) -> Vec<String> {
    let layer =
        |place: &Place| layers.iter().position(|layer| place.first().is_some_and(|top| layer.contains(&&**top)));
    let mut complaints = Vec::new();
    for (place, module) in modules.0.iter().filter(|(place, _)| !place.is_empty()) {
        if layer(place).is_none() {
            complaints.push(format!("{}.rs: is in no layer of xtask/src/tidy/circles.rs", module.file));
        }
        for above in modules.used_by(place).iter().filter(|other| !other.is_empty() && layer(other) > layer(place)) {
            complaints.push(format!("{}.rs: uses {}, which stands above it", module.file, above.join("::")));
        }
    }
    complaints
}

/// The files of each circle: those that reach themselves, grouped with those that reach each other.
fn circles(modules: &Modules) -> Vec<Vec<String>> {
    let arrows: BTreeMap<&Place, BTreeSet<Place>> =
        modules.0.keys().map(|place| (place, modules.used_by(place))).collect();
    let reached = |from: &Place| {
        let mut seen = BTreeSet::new();
        let mut next: Vec<&Place> = arrows[from].iter().collect();
        while let Some(place) = next.pop() {
            if seen.insert(place) {
                next.extend(&arrows[place]);
            }
        }
        seen
    };
    let reached: BTreeMap<&Place, BTreeSet<&Place>> = arrows.keys().map(|place| (*place, reached(place))).collect();
    let mut circles = BTreeSet::new();
    for (place, reaches) in &reached {
        let back = |other: &&&Place| reached[**other].contains(*place);
        let circle: Vec<String> = reaches.iter().filter(back).map(|other| modules.0[*other].file.clone()).collect();
        if !circle.is_empty() {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

/// Adds the paths in these tokens, except those of items under `#[cfg(test)]`.
fn collect(tokens: TokenStream, uses: &mut Vec<Use>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut rest = &tokens[..];
    let mut public = false;
    while let [first, after @ ..] = rest {
        rest = after;
        match first {
            TokenTree::Punct(mark) if mark.as_char() == '#' => {
                if let [TokenTree::Group(attribute), after @ ..] = rest
                    && attribute.stream().to_string().replace(' ', "") == "cfg(test)"
                {
                    rest = after_item(after);
                }
            }
            TokenTree::Ident(word) if word == "pub" => {
                public = true;
                // `pub(crate)`
                if let [TokenTree::Group(_), after @ ..] = rest {
                    rest = after;
                }
                continue;
            }
            TokenTree::Ident(word) if word == "use" => {
                let end = rest.iter().position(|token| is_mark(token, ';')).unwrap_or(rest.len());
                add_tree(&rest[..end], &[], public, uses);
                rest = &rest[end..];
            }
            TokenTree::Ident(_) => {
                let mut path = vec![first.to_string()];
                while let [colon, other, TokenTree::Ident(step), after @ ..] = rest
                    && is_mark(colon, ':')
                    && is_mark(other, ':')
                {
                    path.push(step.to_string());
                    rest = after;
                }
                if path.len() > 1 {
                    uses.push(Use { path, passed_on: false });
                }
            }
            TokenTree::Group(group) => collect(group.stream(), uses),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
        public = false;
    }
}

/// The rest of an item ends with a `;` or a body in braces.
fn after_item(tokens: &[TokenTree]) -> &[TokenTree] {
    let ends = |token: &TokenTree| {
        is_mark(token, ';') || matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
    };
    let end = tokens.iter().position(ends).map_or(tokens.len(), |end| end + 1);
    &tokens[end..]
}

/// The paths of a `use`: `a::{b, c::d}` after `before`.
fn add_tree(tree: &[TokenTree], before: &[String], passed_on: bool, uses: &mut Vec<Use>) {
    let mut path = before.to_vec();
    for (index, token) in tree.iter().enumerate() {
        match token {
            TokenTree::Ident(word) if word == "as" => break,
            // `a::{self}` is `a`.
            TokenTree::Ident(word) if word == "self" && !path.is_empty() => {}
            TokenTree::Ident(word) => path.push(word.to_string()),
            TokenTree::Punct(mark) if mark.as_char() == ',' => {
                add_tree(&tree[index + 1..], before, passed_on, uses);
                break;
            }
            TokenTree::Group(group) => {
                let inside: Vec<TokenTree> = group.stream().into_iter().collect();
                add_tree(&inside, &path, passed_on, uses);
                // The branches were added; then comes a comma or nothing.
                return add_tree(tree.get(index + 2..).unwrap_or_default(), before, passed_on, uses);
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
    if path.len() > before.len() || tree.iter().any(|token| token.to_string() == "self") {
        uses.push(Use { path, passed_on });
    }
}

fn is_mark(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Complaints about a crate of these files and texts.
    #[track_caller]
    fn check(name: &str, files: &[(&str, &str)], expected: &[&str]) {
        let file = |(path, text): &(&str, &str)| File { path: format!("{name}/src/{path}"), text: (*text).to_owned() };
        assert_eq!(complaints(&files.iter().map(file).collect::<Vec<_>>()), expected);
    }

    #[test]
    fn files_that_use_each_other_are_found_however_the_path_is_written() {
        let found = "crates/x: files in a circle: a, b";
        for (a, b) in [
            ("use crate::b::B;", "use crate::a::A;"),
            ("use super::b::{B, C};", "use super::{a::A, c};"),
            ("fn f() { crate::b::f() }", "fn g() -> super::a::A {}"),
            ("macro!(crate::b::f());", "use crate::{c, a};"),
            ("use crate::B;", "use crate::A;"),
        ] {
            let root = "mod a; mod b; mod c; pub use a::A; pub(crate) use self::b::{self, B};";
            check("crates/x", &[("lib.rs", root), ("a.rs", a), ("b.rs", b), ("c.rs", "")], &[found]);
        }
    }

    #[test]
    fn a_longer_circle_is_one_and_so_is_a_parent_with_its_child() {
        let three = [("lib.rs", ""), ("a.rs", "use crate::b;"), ("b.rs", "use crate::c;"), ("c.rs", "use crate::a;")];
        check("crates/x", &three, &["crates/x: files in a circle: a, b, c"]);
        let parent = [("w/mod.rs", "mod s; fn f(_: s::S) {}"), ("w/s.rs", "use super::W;")];
        check("crates/x", &parent, &["crates/x: files in a circle: w/mod, w/s"]);
        let root = [("main.rs", "mod a; fn main() { a::go() }"), ("a.rs", "use crate::Main;")];
        check("crates/x", &root, &["crates/x: files in a circle: main, a"]);
    }

    #[test]
    fn tests_names_passed_on_and_other_crates_make_no_circle() {
        let root = "mod a; mod b; pub use a::A; pub use b::B;";
        let a = "use crate::B; #[cfg(test)] mod tests { use crate::Root; }";
        let b = "#[cfg(test)] use crate::a::A; use std::a::X; // crate::a::A\nconst T: &str = \"crate::a::A\";";
        check("crates/x", &[("lib.rs", root), ("a.rs", a), ("b.rs", b), ("b/tests.rs", "use crate::a;")], &[]);
    }

    #[test]
    fn a_file_that_uses_a_layer_above_its_own_or_is_in_none_is_found() {
        let (name, _) = LAYERED[0];
        let root = ("lib.rs", "mod findings; mod output; pub use output::page;");
        let folder = ("output/mod.rs", "pub mod page; pub mod text;");
        let below = "use crate::findings::F; use super::text;";
        let right = [root, ("findings.rs", ""), folder, ("output/page.rs", below), ("output/text.rs", "")];
        check(name, &right, &[]);
        let above = "fn f() -> crate::output::page::P {}";
        let wrong = [root, ("findings.rs", above), folder, ("output/page.rs", ""), ("new.rs", "")];
        let above = format!("{name}/src/findings.rs: uses output::page, which stands above it");
        let nowhere = format!("{name}/src/new.rs: is in no layer of xtask/src/tidy/circles.rs");
        check(name, &wrong, &[&above, &nowhere]);
    }
}
