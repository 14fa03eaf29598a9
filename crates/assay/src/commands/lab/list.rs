//! `assay lab list`: the built-in recipes.

use assay_process::diagnostics::{Exit, Trouble};
use assay_process::terminal;
use assay_recipe::{Recipe, shipped};

/// Name, question, factors, what to look for.
pub(super) fn run() -> Result<Exit, Trouble> {
    for (name, text) in shipped() {
        let recipe = Recipe::read(text, None, &[]).expect("a test reads every recipe");
        let factors: Vec<&str> = recipe.factors.iter().map(|factor| factor.name.as_str()).collect();
        let mut lines = format!("{name}\n  {}\n  varies: {}\n", recipe.question, factors.join(", "));
        if !recipe.look_at.is_empty() {
            lines += &format!("  what to look at: {}\n", recipe.look_at);
        }
        terminal::result(&lines)?;
    }
    terminal::say("to run one: assay lab run NAME --scale tiny\n");
    Ok(Exit::Success)
}
