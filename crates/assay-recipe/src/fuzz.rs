//! Arbitrary bytes read as the texts of an experiment.

use crate::cases::CaseFile;
use crate::journal::TrialProgress;
use crate::recipe::Recipe;

/// Parses `data` as a recipe, a file of cases and a journal: nothing may panic, and a valid recipe can be shown.
pub fn fuzz_recipe(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(recipe) = Recipe::read(&text, None, &[]) {
        recipe.public_text();
    }
    let _ = CaseFile::read(&text).map(|file| file.text());
    TrialProgress::of_text(&text);
}
