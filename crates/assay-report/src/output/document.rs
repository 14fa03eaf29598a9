//! An HTML file that needs no other: style, data and scripts are in it, and a content security policy forbids
//! everything else, so that it cannot contact any machine.

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, Render, html};
use serde::Serialize;
use serde_json::ser::Formatter;
use sha2::{Digest as _, Sha256};

use crate::plain::clean;

/// Longest title in a window and in previews of links.
const TITLE_WIDTH: usize = 300;

/// What differs between our pages.
pub(super) struct Document<'a, T> {
    pub(super) title: &'a str,
    /// What a preview of a link shows: a heading and a line below it.
    pub(super) preview: [&'a str; 2],
    /// The address of its picture.
    pub(super) picture: Option<&'a str>,
    pub(super) style: &'a str,
    /// In this order.
    pub(super) scripts: &'a [&'a str],
    /// Whether it may load more from where it came from.
    pub(super) loads: bool,
    /// For the scripts, in the element with the id `data`.
    pub(super) data: T,
    pub(super) body: Markup,
}

impl<T: Serialize> Document<'_, T> {
    pub(super) fn html(&self) -> String {
        let scripts: Vec<String> = self.scripts.iter().map(|script| hash(script)).collect();
        let loads = if self.loads { "; connect-src 'self'; frame-src 'self'" } else { "" };
        let policy = format!(
            "default-src 'none'; script-src {}; style-src {}; img-src data:; base-uri 'none'; form-action 'none'{loads}",
            scripts.join(" "),
            hash(self.style)
        );
        let [heading, line] = self.preview;
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(policy);
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="referrer" content="no-referrer";
                    meta name="description" content=(clean(self.title, TITLE_WIDTH));
                    meta property="og:type" content="article";
                    meta property="og:title" content=(clean(heading, TITLE_WIDTH));
                    meta property="og:description" content=(clean(line, TITLE_WIDTH));
                    @if let Some(picture) = self.picture {
                        meta property="og:image" content=(picture);
                        meta name="twitter:card" content="summary_large_image";
                    }
                    link rel="icon" href="data:,";
                    title { (clean(self.title, TITLE_WIDTH)) }
                    "\n"
                    style { (PreEscaped(self.style)) }
                }
                "\n"
                body {
                    (self.body)
                    "\n"
                    script type="application/json" id="data" { (Data(&self.data)) }
                    "\n"
                    @for script in self.scripts {
                        script { (PreEscaped(script)) }
                        "\n"
                    }
                }
            }
            "\n"
        };
        page.into_string()
    }
}

/// JSON without any `<`, written where it belongs: that of many records is most of a page.
struct Data<'a, T>(&'a T);

impl<T: Serialize> Render for Data<'_, T> {
    fn render_to(&self, page: &mut String) {
        let mut bytes = std::mem::take(page).into_bytes();
        let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, WithoutTags);
        self.0.serialize(&mut serializer).expect("the data is plain, with text keys");
        *page = String::from_utf8(bytes).expect("JSON is text");
    }
}

/// Compact JSON in which `<`, which is only in texts, is escaped.
struct WithoutTags;

impl Formatter for WithoutTags {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, to: &mut W, fragment: &str) -> io::Result<()> {
        let mut parts = fragment.split('<');
        to.write_all(parts.next().unwrap_or_default().as_bytes())?;
        parts.try_for_each(|part| to.write_all(b"\\u003c").and_then(|()| to.write_all(part.as_bytes())))
    }
}

/// A source expression of a content security policy: exactly this text.
fn hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}
