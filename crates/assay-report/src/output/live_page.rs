//! The page around a report that grows: it shows the newest one.

use maud::html;

use crate::output::document::Document;

const CSS: &str = "html,body{height:100%;margin:0}body{display:flex;flex-direction:column;\
                   font:14px system-ui,sans-serif;color-scheme:light dark}\
                   #bar{padding:4px 12px;display:flex;gap:16px;align-items:center}\
                   #frames{flex:1;position:relative}\
                   iframe{position:absolute;inset:0;width:100%;height:100%;border:0}\
                   iframe.next{visibility:hidden}";
const SCRIPT: &str = include_str!("../../page/live.js");

/// The page, which loads `report` whenever `events` names a new version of it. Both are relative to it.
pub fn live_html() -> String {
    let document = Document {
        title: "assay: a run in progress",
        preview: ["assay: a run in progress", ""],
        picture: None,
        style: CSS,
        scripts: &[SCRIPT],
        loads: true,
        data: (),
        body: html! {
            div id="bar" {
                span id="state" { "connecting" }
                label { input type="checkbox" id="follow" checked; " show new measurements" }
            }
            div id="frames" {}
            noscript { p { "A page that moves needs JavaScript; " a href="report" { "the report so far" } " does not." } }
        },
    };
    document.html()
}
