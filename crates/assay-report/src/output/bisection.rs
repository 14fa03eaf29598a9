//! What a noisy bisection has found, as text.

use assay_stats::{Bisection, NextTrial};

use crate::digits::{change, percent};
use crate::plain::clean;

const NAME_WIDTH: usize = 60;
/// Candidates whose probability is listed.
const LISTED: usize = 8;

/// The answer, and the most probable candidates.
pub fn bisection_text(search: &Bisection, candidates: &[String], outcome: NextTrial) -> String {
    let name = |at: usize| clean(&candidates[at], NAME_WIDTH);
    let (good, bad) = (name(0), name(candidates.len() - 1));
    let effect = change(search.effect() - 1.0);
    let ((first, last), probability) = search.found();
    let trials = search.trials();
    let answer = match outcome {
        NextTrial::SameEnds => return format!("{good} and {bad} do not differ ({effect}): there is nothing to find\n"),
        NextTrial::Found if first == last => {
            format!("{} is the first bad one ({} probable)", name(first), percent(probability))
        }
        NextTrial::Found => format!(
            "the first bad one is among {} … {} ({} probable), which were skipped or cannot be told apart",
            name(first),
            name(last),
            percent(probability)
        ),
        _ => {
            let (first, last) = search.range();
            format!("not found yet: the first bad one is most probably among {} … {}", name(first), name(last))
        }
    };
    let plural = if trials == 1 { "trial" } else { "trials" };
    let mut text = format!("{answer}\n{bad} against {good}: {effect}, {trials} {plural} between them\n");
    let mut ranked: Vec<(usize, f64)> = search.posterior().into_iter().enumerate().filter(|it| it.1 >= 0.005).collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    ranked.truncate(LISTED);
    ranked.sort_by_key(|(at, _)| *at);
    text += "\nprobability of being the first bad one\n";
    for (at, probability) in ranked {
        let bar = "█".repeat((probability * 40.0).round() as usize);
        text += format!("  {:>4}  {:20} {bar}", percent(probability), name(at)).trim_end();
        text.push('\n');
    }
    text
}
