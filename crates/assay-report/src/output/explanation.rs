//! Why two results differ, as text.

use crate::findings::comparison::{Comparison, SideFindings};
use crate::findings::explanation::Explanation;
use crate::plain::{clean, wrap_to};
use crate::words::comparison::doubts_of;
use crate::words::explanation::{mechanism, not_measured, paragraph, plans, ruled_out};

const WIDTH: usize = 100;
const NAME_WIDTH: usize = 80;

/// A paragraph, doubts about the comparison, and what was ruled out.
pub fn explanation_text(found: &Explanation, of: &Comparison) -> String {
    let wrapped = |indent: &str, words: &str| wrap_to(WIDTH, indent, words.split(' '), " ");
    let mut text = wrapped("", &paragraph(found).join(" "));
    for side in [&of.baseline, &of.candidate] {
        text += &doubts_of(side).iter().map(|doubt| wrapped("! ", doubt)).collect::<String>();
    }
    text += &format!("\nbaseline:  {}\ncandidate: {}\n", trials(&of.baseline), trials(&of.candidate));
    for (heading, lines) in plans(found) {
        text += &format!("\n{heading}\n");
        text += &lines.iter().map(|line| format!("  {line}\n")).collect::<String>();
    }
    if found.differs && !found.ruled_out.is_empty() {
        text += "\nruled out\n";
        for one in &found.ruled_out {
            text += &format!("  {}: {}\n", mechanism(one.mechanism), ruled_out(one));
        }
    }
    if found.differs && !found.unknown.is_empty() {
        text += &format!("\n{}", wrapped("", &not_measured(found)));
    }
    text
}

/// The records of a side.
fn trials(side: &SideFindings) -> String {
    let first = side.records.first().map_or(String::new(), |path| clean(path, NAME_WIDTH));
    match side.records.len() {
        0 | 1 => first,
        number => format!("{number} trials: {first}, …"),
    }
}

/// The same as JSON.
pub fn explanation_json(found: &Explanation) -> String {
    serde_json::to_string_pretty(found).expect("explanations become JSON") + "\n"
}
