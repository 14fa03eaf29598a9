//! The documents as a website: static files with navigation and search, which also work without a server.
//!
//! Every page that can be reached from README.md by links is in it, and every other file of the tree that a page links
//! to. A link or an anchor that leads nowhere is an error.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use pulldown_cmark::{CowStr, Event, LinkType, Options as Syntax, Parser, Tag, TagEnd};
use serde_json::json;

use xtask::steps::root;

#[derive(Args)]
pub(crate) struct Options {
    /// The folder to write to; it must not exist or be an earlier site
    #[arg(long, default_value = "target/site")]
    to: PathBuf,
}

const START: &str = "README.md";
/// Its table gives the order of the pages.
const CONTENTS: &str = "docs/README.md";
/// Also says that a folder is a site, which may be replaced.
const INDEX: &str = "search-index.js";
const STYLE: &str = include_str!("site/style.css");
const SCRIPT: &str = include_str!("site/search.js");

/// One document.
struct Page {
    /// In the tree, such as `docs/lab.md`.
    path: String,
    title: String,
    body: String,
    sections: Vec<Section>,
    /// Pages, files and anchors that it links to: path in the tree, anchor or nothing.
    links: Vec<(String, String)>,
}

/// What stands below one heading.
struct Section {
    heading: String,
    /// Of the heading, from 1.
    level: u8,
    anchor: String,
    text: String,
}

/// Writes the site.
pub(crate) fn run(options: &Options) -> Result<()> {
    let to = root().join(&options.to);
    if to.exists() {
        ensure!(to.join(INDEX).is_file(), "{} exists and is no site: name another folder", to.display());
        fs::remove_dir_all(&to)?;
    }
    let pages = write(&to)?;
    println!("{} pages: {}", pages, to.join("index.html").display());
    Ok(())
}

/// Writes the site into a new folder; returns the number of pages.
fn write(to: &Path) -> Result<usize> {
    let (pages, files) = read()?;
    check(&pages, &files)?;
    let order = order(&pages);
    for page in pages.values() {
        let target = to.join(address(&page.path));
        fs::create_dir_all(target.parent().context("a page is in a folder")?)?;
        fs::write(target, document(page, &pages, &order).into_string())?;
    }
    for file in &files {
        let target = to.join(file);
        fs::create_dir_all(target.parent().context("a file is in a folder")?)?;
        fs::copy(root().join(file), target)?;
    }
    let index: Vec<_> = order
        .iter()
        .flat_map(|path| {
            let page = &pages[path];
            page.sections.iter().map(|section| {
                let to = match section.anchor.as_str() {
                    "" => address(&page.path),
                    anchor => format!("{}#{anchor}", address(&page.path)),
                };
                json!({ "page": page.title, "heading": section.heading, "to": to, "text": section.text })
            })
        })
        .collect();
    fs::write(to.join(INDEX), format!("const SECTIONS = {};\n", serde_json::to_string(&index)?))?;
    fs::write(to.join("search.js"), SCRIPT)?;
    fs::write(to.join("style.css"), STYLE)?;
    Ok(pages.len())
}

/// All pages by path, and the other files that they link to.
fn read() -> Result<(BTreeMap<String, Page>, BTreeSet<String>)> {
    let (mut pages, mut files) = (BTreeMap::new(), BTreeSet::new());
    let mut waiting = VecDeque::from([START.to_owned()]);
    while let Some(path) = waiting.pop_front() {
        if pages.contains_key(&path) {
            continue;
        }
        let text = fs::read_to_string(root().join(&path)).with_context(|| path.clone())?;
        let page = render(&path, &text);
        for (target, _) in &page.links {
            let place = root().join(target);
            ensure!(place.exists(), "{path} links to {target}, which does not exist");
            ensure!(!place.is_dir(), "{path} links to the folder {target}: link to a file in it");
            match target.ends_with(".md") {
                true => waiting.push_back(target.clone()),
                false => drop(files.insert(target.clone())),
            }
        }
        pages.insert(path, page);
    }
    Ok((pages, files))
}

/// Every anchor exists.
fn check(pages: &BTreeMap<String, Page>, files: &BTreeSet<String>) -> Result<()> {
    for page in pages.values() {
        for (target, anchor) in
            page.links.iter().filter(|(target, anchor)| !anchor.is_empty() && !files.contains(target))
        {
            let found = pages[target].sections.iter().any(|section| section.anchor == *anchor);
            ensure!(found, "{}: no heading of {target} has the anchor #{anchor}", page.path);
        }
    }
    Ok(())
}

/// The start page, then the pages of the table of contents as they stand there, then the others by path.
fn order(pages: &BTreeMap<String, Page>) -> Vec<String> {
    let listed = pages.get(CONTENTS).into_iter().flat_map(|page| page.links.iter().map(|(path, _)| path.clone()));
    let mut order: Vec<String> = Vec::new();
    for path in [START.to_owned()].into_iter().chain(listed).chain(pages.keys().cloned()) {
        if pages.contains_key(&path) && path != CONTENTS && !order.contains(&path) {
            order.push(path);
        }
    }
    order
}

/// Where a page of the tree stands on the site.
fn address(path: &str) -> String {
    match path.strip_suffix(START) {
        Some(folder) => format!("{folder}index.html"),
        None => format!("{}html", path.strip_suffix("md").unwrap_or(path)),
    }
}

/// The path in the tree of what `link` of the page `from` means, and its anchor; `None`: not in the tree.
fn target(from: &str, link: &str) -> Option<(String, String)> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    if path.is_empty() {
        return Some((from.to_owned(), anchor.to_owned()));
    }
    let mut parts: Vec<String> = Vec::new();
    for part in Path::new(from).parent().unwrap_or(Path::new("")).join(path).components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            Component::Normal(name) => parts.push(name.to_string_lossy().into_owned()),
            _ => {}
        }
    }
    Some((parts.join("/"), anchor.to_owned()))
}

/// `link` as the page at `from` has to write it: relative, so that the site works in any folder.
fn rewritten(from: &str, link: &str) -> String {
    let Some((path, anchor)) = target(from, link) else { return link.to_owned() };
    let place = if path.ends_with(".md") { address(&path) } else { path };
    let anchor = if anchor.is_empty() { String::new() } else { format!("#{anchor}") };
    format!("{}{place}{anchor}", up(from))
}

/// From a page to the top of the site.
fn up(path: &str) -> String {
    "../".repeat(path.matches('/').count())
}

/// The anchor of a heading, as code hosts make it.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// Reads one document.
fn render(path: &str, text: &str) -> Page {
    let mut page = Page {
        path: path.to_owned(),
        title: String::new(),
        body: String::new(),
        sections: Vec::new(),
        links: Vec::new(),
    };
    let syntax = Syntax::ENABLE_TABLES | Syntax::ENABLE_STRIKETHROUGH;
    let mut events: Vec<Event> = Parser::new_ext(text, syntax).collect();
    // The number of its event, its level, and its words so far.
    let mut heading: Option<(usize, u8, String)> = None;
    let mut anchors: BTreeMap<String, usize> = BTreeMap::new();
    for at in 0..events.len() {
        let mut words = None;
        match &mut events[at] {
            Event::Start(Tag::Link { link_type, dest_url, .. }) if *link_type != LinkType::Email => {
                page.links.extend(target(path, dest_url));
                *dest_url = CowStr::from(rewritten(path, dest_url));
            }
            Event::Start(Tag::Image { dest_url, .. }) => {
                page.links.extend(target(path, dest_url));
                *dest_url = CowStr::from(rewritten(path, dest_url));
            }
            Event::Html(html) | Event::InlineHtml(html) => {
                let mut written = String::new();
                let mut rest = &**html;
                // The pictures of README.md: one for each theme.
                while let Some((before, attribute, link, after)) = next_picture(rest) {
                    page.links.extend(target(path, link));
                    written += &format!("{before}{attribute}\"{}\"", rewritten(path, link));
                    rest = after;
                }
                *html = CowStr::from(written + rest);
            }
            Event::Start(Tag::Heading { level, .. }) => heading = Some((at, *level as u8, String::new())),
            Event::End(TagEnd::Heading(_)) => words = heading.take(),
            Event::Text(text) | Event::Code(text) => match (&mut heading, page.sections.last_mut()) {
                (Some((_, _, words)), _) => words.push_str(text),
                (None, Some(section)) => {
                    section.text.push_str(text);
                }
                (None, None) => {}
            },
            Event::SoftBreak | Event::HardBreak | Event::End(TagEnd::Paragraph | TagEnd::TableCell | TagEnd::Item) => {
                if let Some(section) = page.sections.last_mut() {
                    section.text.push(' ');
                }
            }
            _ => {}
        }
        if let Some((start, level, words)) = words {
            let plain = slug(&words);
            let times = anchors.entry(plain.clone()).or_default();
            let anchor = if *times == 0 { plain } else { format!("{plain}-{times}") };
            *times += 1;
            if let Event::Start(Tag::Heading { id, .. }) = &mut events[start] {
                *id = Some(CowStr::from(anchor.clone()));
            }
            if page.title.is_empty() {
                page.title.clone_from(&words);
            }
            page.sections.push(Section { heading: words, level, anchor, text: String::new() });
        }
    }
    pulldown_cmark::html::push_html(&mut page.body, events.into_iter());
    page
}

/// The next `src` or `srcset` of raw HTML: the text before it, the attribute's name with `=`, its value, the rest.
fn next_picture(html: &str) -> Option<(&str, &'static str, &str, &str)> {
    let found =
        ["srcset=", "src="].into_iter().filter_map(|name| Some((html.find(&format!("{name}\""))?, name))).min()?;
    let (at, name) = found;
    let value = &html[at + name.len() + 1..];
    let end = value.find('"')?;
    Some((&html[..at], name, &value[..end], &value[end + 1..]))
}

/// The page with its navigation.
fn document(page: &Page, pages: &BTreeMap<String, Page>, order: &[String]) -> Markup {
    let up = up(&page.path);
    let name = |path: &str| if path == START { "assay".to_owned() } else { pages[path].title.clone() };
    let title = if page.path == START { "assay".to_owned() } else { format!("{} – assay", page.title) };
    let sections: Vec<&Section> = page.sections.iter().filter(|section| (2..=3).contains(&section.level)).collect();
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                link rel="stylesheet" href={ (up) "style.css" };
                script defer src={ (up) (INDEX) } {}
                script defer src={ (up) "search.js" } data-top=(up) {}
            }
            body {
                a.skip href="#content" { "to the text" }
                nav aria-label="Pages" {
                    input #search type="search" placeholder="Search (press /)" aria-label="Search" autocomplete="off";
                    ul #found hidden aria-live="polite" {}
                    ul #pages {
                        @for path in order {
                            li {
                                @if *path == page.path {
                                    a aria-current="page" href="#" { (name(path)) }
                                    @if sections.len() > 1 && path != START {
                                        ul { @for section in &sections { li { a href={ "#" (section.anchor) } { (section.heading) } } } }
                                    }
                                } @else {
                                    a href={ (up) (address(path)) } { (name(path)) }
                                }
                            }
                        }
                    }
                }
                main #content { (PreEscaped(&page.body)) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use testkit::{Browser, BrowserView};

    use super::*;

    #[test]
    fn links_are_those_of_the_site_from_every_folder() {
        for (from, link, expected) in [
            ("README.md", "docs/lab.md", "docs/lab.html"),
            ("docs/lab.md", "../README.md", "../index.html"),
            ("docs/lab.md", "capacity.md#promises", "../docs/capacity.html#promises"),
            ("docs/examples/README.md", "../record.schema.json", "../../docs/record.schema.json"),
            ("docs/lab.md", "#here", "../docs/lab.html#here"),
            ("docs/lab.md", "https://example.org/x.md", "https://example.org/x.md"),
        ] {
            assert_eq!(rewritten(from, link), expected, "{link} of {from}");
        }
    }

    #[test]
    fn headings_get_the_anchors_of_code_hosts() {
        let page = render("a.md", "# One `two`: three\n\ntext\n\n## Same\n\n## Same\n\n[x](#same-1)\n");
        let anchors: Vec<&str> = page.sections.iter().map(|section| section.anchor.as_str()).collect();
        assert_eq!((page.title.as_str(), anchors), ("One two: three", vec!["one-two-three", "same", "same-1"]));
        assert!(page.body.contains("<h2 id=\"same-1\">Same</h2>"), "{}", page.body);
        let pages = BTreeMap::from([("a.md".to_owned(), page)]);
        check(&pages, &BTreeSet::new()).unwrap();
        let broken = BTreeMap::from([("a.md".to_owned(), render("a.md", "# A\n\n[x](#nowhere)\n"))]);
        assert!(check(&broken, &BTreeSet::new()).unwrap_err().to_string().contains("#nowhere"));
    }

    /// Every document of the tree is on the site, and a browser finds what is looked for.
    #[test]
    fn the_site_is_whole_and_can_be_searched() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path()).unwrap();
        let (pages, _) = read().unwrap();
        for entry in fs::read_dir(root().join("docs")).unwrap() {
            let path = format!("docs/{}", entry.unwrap().file_name().to_str().unwrap());
            assert!(!path.ends_with(".md") || pages.contains_key(&path), "no page links to {path}");
        }
        if !Browser::present() {
            return;
        }
        let mut browser = Browser::start().unwrap();
        let view = BrowserView { width: 390, height: 800, dark: false };
        browser.open(&folder.path().join("docs/lab.html"), view).unwrap();
        let is_wider = "document.documentElement.scrollWidth > innerWidth";
        assert_eq!(browser.evaluate(is_wider).unwrap(), false);
        let ask = "document.querySelector('#search').value = 'SKIP LOCKED queue'; \
                   document.querySelector('#search').dispatchEvent(new Event('input')); \
                   [...document.querySelectorAll('#found a')].map(a => a.getAttribute('href'))";
        let found = browser.evaluate(ask).unwrap();
        let found: Vec<&str> = found.as_array().unwrap().iter().filter_map(|link| link.as_str()).collect();
        assert!(found.iter().any(|link| link.starts_with("../docs/examples/index.html")), "{found:?}");
        browser.open(&folder.path().join("index.html"), BrowserView { width: 1200, ..view }).unwrap();
        let pictures = "[...document.images].every(image => image.complete && image.naturalWidth > 0) && document.images.length > 0";
        assert_eq!(browser.evaluate(pictures).unwrap(), true);
        assert_eq!(browser.complaints(), [""; 0]);
    }
}
