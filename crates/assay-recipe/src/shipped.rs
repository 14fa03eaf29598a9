//! The built-in recipes, and the one generated from a command line.

use toml::{Table, Value};

use crate::document::{segments, value_of};
use crate::error::RecipeError;
use crate::grid::SETUP;

macro_rules! recipe {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../recipes/", $name, ".toml")))
    };
}

/// Names and texts of all recipes in the folder `recipes/`, sorted by name.
pub fn shipped() -> &'static [(&'static str, &'static str)] {
    &[
        recipe!("analytics"),
        recipe!("backup"),
        recipe!("best-settings"),
        recipe!("binlog"),
        recipe!("cache-size"),
        recipe!("capacity"),
        recipe!("character-set"),
        recipe!("checksums"),
        recipe!("clone"),
        recipe!("connection-memory"),
        recipe!("connects"),
        recipe!("cpu-scaling"),
        recipe!("data-size"),
        recipe!("device"),
        recipe!("encryption"),
        recipe!("engines"),
        recipe!("fast-disk"),
        recipe!("file-io"),
        recipe!("filesystem"),
        recipe!("galera"),
        recipe!("hot-row"),
        recipe!("huge-pages"),
        recipe!("index-choice"),
        recipe!("insert-benchmark"),
        recipe!("instrumentation"),
        recipe!("io-bound"),
        recipe!("isolation"),
        recipe!("jsonb"),
        recipe!("keyset"),
        recipe!("load"),
        recipe!("machines"),
        recipe!("many-connections"),
        recipe!("microbenchmarks"),
        recipe!("outage"),
        recipe!("pooler"),
        recipe!("predictable"),
        recipe!("price"),
        recipe!("queueing"),
        recipe!("read-only"),
        recipe!("recovery"),
        recipe!("schema-change"),
        recipe!("several-writers"),
        recipe!("skip-locked"),
        recipe!("socket"),
        recipe!("stale-reads"),
        recipe!("stalls"),
        recipe!("statistics"),
        recipe!("stored-code"),
        recipe!("tls"),
        recipe!("tpcc-documents"),
        recipe!("triggers"),
        recipe!("tuning"),
        recipe!("two-drives"),
        recipe!("versions"),
        recipe!("wal-compression"),
        recipe!("waves"),
    ]
}

/// The text of a recipe with one server, `db`. `factors`: its settings, or paths that start with a part of a recipe,
/// each with its levels. `ladder`: whether the workload's arguments contain several numbers of sessions.
pub fn from_words(
    product: &str,
    factors: &[(String, Vec<String>)],
    workload: &str,
    prepare: Option<&str>,
    ladder: bool,
) -> Result<String, RecipeError> {
    let text = |text: &str| Value::String(text.to_owned());
    let table = |pairs: Vec<(&str, Value)>| {
        Value::Table(pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Table>())
    };
    let mut grid = Table::new();
    let mut names = Vec::new();
    for (name, levels) in factors {
        let is_path = name.split_once('.').is_some_and(|(first, _)| SETUP.contains(&first));
        let (path, name) = match name.as_str() {
            "server" => ("server.db.product".to_owned(), name.clone()),
            _ if is_path => (name.clone(), segments(name)?.pop().unwrap_or_default()),
            _ => (format!("server.db.settings.{}", Value::String(name.clone())), name.clone()),
        };
        let levels = levels.iter().map(|level| value_of(level)).collect();
        grid.insert(name.clone(), table(vec![(&path, Value::Array(levels))]));
        names.push(name);
    }
    let first = factors.first().and_then(|(_, levels)| levels.first());
    let mut shown = Vec::new();
    match (&names[..], ladder) {
        ([], _) => shown.push(("rows", text("sessions"))),
        ([one, ..], true) => shown.extend([("rows", text("sessions")), ("columns", text(one))]),
        ([one], false) => shown.push(("rows", text(one))),
        ([one, two, ..], false) => shown.extend([("rows", text(two)), ("columns", text(one))]),
    }
    shown.extend(first.map(|level| ("ratio_to", text(level))));
    shown.push(("value", text("tps")));
    let title = match names.len() {
        0 => workload.to_owned(),
        _ => format!("{workload}: {}", names.join(", ")),
    };
    let mut document = vec![
        ("title", text(&title)),
        ("server", table(vec![("db", table(vec![("product", text(product))]))])),
        ("run", table(vec![("workload", text(workload))])),
        ("grid", Value::Table(grid)),
        ("show", Value::Array(vec![table(vec![("table", table(shown))])])),
    ];
    document.extend(prepare.map(|prepare| ("data", table(vec![("prepare", text(prepare))]))));
    Ok(toml::to_string(&table(document)).expect("it is plain data"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::Recipe;

    #[test]
    fn every_recipe_that_is_shipped_can_be_read_at_every_scale() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recipes");
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        names.sort();
        let shipped_names: Vec<&str> = shipped().iter().map(|(name, _)| *name).collect();
        assert_eq!(names, shipped_names);
        for (name, text) in shipped() {
            let full = Recipe::read(text, Some("full"), &[]).unwrap_or_else(|error| panic!("{name}: {error:?}"));
            let tiny = Recipe::read(text, Some("tiny"), &[]).unwrap_or_else(|error| panic!("{name}, tiny: {error:?}"));
            assert!(!full.question.is_empty() && !full.look_at.is_empty() && !full.shows.is_empty(), "{name}");
            assert!(tiny.hash != full.hash && tiny.cells.len() * tiny.trials.count as usize <= 16, "{name}");
        }
    }

    #[test]
    fn the_schema_for_editors_accepts_every_recipe_that_is_shipped_and_refuses_what_the_reader_refuses() {
        let schema = jsonschema::validator_for(&crate::schema()).unwrap();
        let json = |text: &str| serde_json::to_value(text.parse::<Table>().unwrap()).unwrap();
        for (name, text) in shipped() {
            if let Err(error) = schema.validate(&json(text)) {
                panic!("{name}: {error} at {}", error.instance_path());
            }
        }
        let (_, text) = shipped().iter().find(|(name, _)| *name == "best-settings").unwrap();
        for (right, wrong) in
            [("[run]", "[runn]"), ("warmup =", "warm_up ="), ("count = 3", "count = 'three'"), ("title =", "titel =")]
        {
            assert!(text.contains(right), "{right}");
            assert!(!schema.is_valid(&json(&text.replace(right, wrong))), "{wrong}");
        }
    }

    #[test]
    fn the_document_names_every_key_with_the_table_it_stands_in() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let document = std::fs::read_to_string(folder.join("../../docs/recipes.md")).unwrap();
        let schema = crate::schema();
        let places = [
            ("", &schema),
            ("server.NAME.", &schema["$defs"]["RecipeServer"]),
            ("server.NAME.front.NAME.", &schema["$defs"]["RecipeFront"]),
            ("data.", &schema["$defs"]["Data"]),
            ("run.", &schema["$defs"]["Run"]),
            ("run.case.", &schema["$defs"]["StatementCase"]),
            ("generator.", &schema["$defs"]["Generator"]),
            ("trials.", &schema["$defs"]["Trials"]),
            ("step.", &schema["$defs"]["WrittenStep"]),
            ("show.", &schema["$defs"]["WrittenShow"]),
            ("show.table.", &schema["$defs"]["TableAsked"]),
            ("show.KIND.", &schema["$defs"]["ChartAsked"]),
        ];
        // Tables whose own keys have rows.
        let tables = ["server", "data", "run", "generator", "trials", "step", "show"];
        for (before, place) in places {
            let keys = place["properties"].as_object().unwrap_or_else(|| panic!("{before}: {place}"));
            for key in keys.keys().filter(|key| !(before.is_empty() && tables.contains(&key.as_str()))) {
                assert!(document.contains(&format!("`{before}{key}`")), "{before}{key}");
            }
        }
    }

    #[test]
    fn a_grid_without_a_file_is_a_recipe_too() {
        let vary =
            |name: &str, levels: &[&str]| (name.to_owned(), levels.iter().map(|level| (*level).to_owned()).collect());
        let factors = [vary("shared_buffers", &["128MB", "1GB"]), vary("pg_stat.x", &["0", "1"])];
        let text = from_words("postgres:15", &factors, "tpcc --sessions 1,4", Some("tpcc"), true).unwrap();
        let recipe = Recipe::read(&text, None, &[]).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
        assert_eq!(recipe.cells.len(), 4);
        assert_eq!(recipe.cells[3].name, "shared_buffers=1GB pg_stat.x=1");
        let server = &recipe.cells[3].setup.server["db"];
        assert_eq!(
            (server.settings["pg_stat.x"].0.as_str(), server.settings["shared_buffers"].0.as_str()),
            ("1", "1GB")
        );
        let crate::Show::Table(table) = &recipe.shows[0] else { panic!("{:?}", recipe.shows) };
        assert_eq!(table.ratio_to.as_deref(), Some("128MB"));
        let text = from_words("postgres", &[vary("run.rate", &["10"])], "w", None, false).unwrap();
        assert_eq!(Recipe::read(&text, None, &[]).unwrap().cells[0].setup.run.rate.as_ref().unwrap().0, "10");
        let text = from_words("postgres", &[vary("server", &["postgres:15"])], "w", None, false).unwrap();
        let recipe = Recipe::read(&text, None, &[]).unwrap();
        assert_eq!(recipe.cells[0].setup.server["db"].product.as_deref(), Some("postgres:15"));
    }
}
