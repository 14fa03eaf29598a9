//! Factors, their levels, and the resulting cells.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::document::{place_of, segments, set, shown};
use crate::error::RecipeError;
use crate::setup::{Data, Generator, RecipeServer, Run, Setup};
use crate::word::Word;

/// A factor: what is varied.
#[derive(Clone, Debug, PartialEq)]
pub struct Factor {
    /// Its name in results.
    pub name: String,
    /// In the order written; at least one.
    pub levels: Vec<Level>,
}

/// One of a factor's values.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// Its name in results.
    pub name: String,
    /// Paths, and the values that this level sets.
    pub sets: Vec<(String, Value)>,
    /// Price per hour with this level, in any currency.
    pub price_per_hour: Option<f64>,
}

/// One level of each factor.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// For each factor, the index of its level.
    pub levels: Vec<usize>,
    /// `sync_binlog=0 memory=1G`; `all` without factors.
    pub name: String,
    /// Servers, data and load.
    pub setup: Setup,
    /// The sum of its levels' prices.
    pub price_per_hour: Option<f64>,
}

/// More cells than this must be a mistake.
const CELLS_MAX: usize = 10_000;
/// The parts of a recipe that make up a cell.
pub(crate) const SETUP: [&str; 4] = ["server", "data", "run", "generator"];

/// The factors of `[grid]`. `text`: for positions in errors.
pub(crate) fn factors(grid: &Table, text: &str) -> Result<Vec<Factor>, RecipeError> {
    grid.iter()
        .map(|(name, value)| {
            factor(name, value)
                .map_err(|error| error.within(&format!("factor {name}")).at(place_of(text, &["grid", name.as_str()])))
        })
        .collect()
}

fn factor(name: &str, value: &Value) -> Result<Factor, RecipeError> {
    let (name, levels) = match value {
        // "server.db.settings.work_mem" = ["4MB", "64MB"]
        Value::Array(_) => {
            let last = segments(name)?.pop().unwrap_or_default();
            let by_path = Table::from_iter([(name.to_owned(), value.clone())]);
            (last, together(&by_path)?)
        }
        Value::Table(table) => match table.get("levels") {
            Some(Value::Table(levels)) if table.len() == 1 => (name.to_owned(), named(levels)?),
            Some(_) => return Err(RecipeError::new("`levels` must be a table and the only key")),
            None => (name.to_owned(), together(table)?),
        },
        _ => {
            return Err(RecipeError::new(
                "a factor is { \"PATH\" = [levels] } or { levels = { NAME = { \"PATH\" = value } } }",
            ));
        }
    };
    if levels.is_empty() {
        return Err(RecipeError::new("has no levels"));
    }
    for (number, level) in levels.iter().enumerate() {
        if levels[..number].iter().any(|other| other.name == level.name) {
            return Err(RecipeError::new(format!("has two levels named {}", level.name)));
        }
    }
    Ok(Factor { name, levels })
}

/// `{ "path" = [levels], "path" = [levels] }`: the n-th values of all paths are level n.
fn together(table: &Table) -> Result<Vec<Level>, RecipeError> {
    let mut levels: Vec<Level> = Vec::new();
    for (path, values) in table {
        let values = values.as_array().ok_or_else(|| RecipeError::new(format!("`{path}` is not a list of levels")))?;
        if levels.is_empty() {
            let level = |value| Level { name: shown(value), sets: Vec::new(), price_per_hour: None };
            levels = values.iter().map(level).collect();
        }
        if levels.len() != values.len() {
            return Err(RecipeError::new(format!(
                "`{path}` has {} levels, but the path before it has {}",
                values.len(),
                levels.len()
            )));
        }
        levels.iter_mut().zip(values).for_each(|(level, value)| level.sets.push((path.clone(), value.clone())));
    }
    Ok(levels)
}

/// `{ off = { "path" = value }, on = { "path" = value, price = { per_hour = 0.4 } } }`
fn named(levels: &Table) -> Result<Vec<Level>, RecipeError> {
    let level = |(name, value): (&String, &Value)| {
        let table =
            value.as_table().ok_or_else(|| RecipeError::new(format!("level {name} is not a table of paths")))?;
        let price = table.get("price").map(|price| {
            let amount =
                price.get("per_hour").and_then(|amount| amount.as_float().or(amount.as_integer().map(|n| n as f64)));
            amount
                .filter(|amount| *amount > 0.0 && amount.is_finite())
                .ok_or_else(|| RecipeError::new(format!("level {name}: a price is {{ per_hour = NUMBER }}, above 0")))
        });
        let sets = table.iter().filter(|(path, _)| *path != "price");
        Ok(Level {
            name: name.clone(),
            sets: sets.map(|(path, value)| (path.clone(), value.clone())).collect(),
            price_per_hour: price.transpose()?,
        })
    };
    levels.iter().map(level).collect()
}

/// Every combination of levels that no exception omits, the last factor changing fastest. `has_phases`: steps are
/// measured instead of the load of `[run]`.
pub(crate) fn cells(
    document: &Table,
    factors: &[Factor],
    except: &[Table],
    text: &str,
    has_phases: bool,
) -> Result<Vec<Cell>, RecipeError> {
    let base: Table =
        document.iter().filter(|(key, _)| SETUP.contains(&key.as_str())).map(|(k, v)| (k.clone(), v.clone())).collect();
    let exception = |(one, number): (&Table, usize)| {
        exception(one, factors).map_err(|error| error.at(place_of(text, &["except", &number.to_string()])))
    };
    let exceptions = except.iter().zip(1..).map(exception).collect::<Result<Vec<_>, _>>()?;
    let count = factors.iter().try_fold(1usize, |count, factor| count.checked_mul(factor.levels.len()));
    if count.is_none_or(|count| count > CELLS_MAX) {
        return Err(RecipeError::new(format!("the grid has more than {CELLS_MAX} cells")));
    }
    let mut setups = Setups::new(&base, factors, text)?;
    let mut cells = Vec::new();
    for number in 0..count.unwrap_or(0) {
        let mut rest = number;
        let mut levels: Vec<usize> = factors
            .iter()
            .rev()
            .map(|factor| {
                let level = rest % factor.levels.len();
                rest /= factor.levels.len();
                level
            })
            .collect();
        levels.reverse();
        let left_out = |one: &Vec<Option<Vec<usize>>>| {
            one.iter().zip(&levels).all(|(excluded, level)| excluded.as_ref().is_none_or(|all| all.contains(level)))
        };
        if exceptions.iter().any(left_out) {
            continue;
        }
        let chosen: Vec<&Level> = factors.iter().zip(&levels).map(|(factor, level)| &factor.levels[*level]).collect();
        let names: Vec<String> =
            factors.iter().zip(&chosen).map(|(factor, level)| format!("{}={}", factor.name, level.name)).collect();
        let name = if names.is_empty() { "all".to_owned() } else { names.join(" ") };
        let setup = setups.of(&levels).and_then(|setup| setup.check(has_phases).map(|()| setup));
        let setup =
            setup.map_err(|error| if factors.is_empty() { error } else { error.within(&format!("cell {name}")) })?;
        let prices: Vec<f64> = chosen.iter().filter_map(|level| level.price_per_hour).collect();
        let price_per_hour = (!prices.is_empty()).then(|| prices.iter().sum());
        cells.push(Cell { levels, name, setup, price_per_hour });
    }
    if cells.is_empty() {
        return Err(RecipeError::new("no cells are left: the exceptions exclude all of them"));
    }
    Ok(cells)
}

/// The setups of cells. Most cells differ in a few settings only, and parsing each of thousands of them as a document
/// would take seconds. So a part of a recipe is parsed once for every combination of the levels that set it, and single
/// settings and options are put into what was parsed.
struct Setups<'a> {
    base: &'a Table,
    /// By factor and level.
    sets: Vec<Vec<Vec<Set>>>,
    /// The factors that set each part.
    setters: HashMap<String, Vec<usize>>,
    server: Parsed<BTreeMap<String, RecipeServer>>,
    data: Parsed<Data>,
    run: Parsed<Run>,
    generator: Parsed<Generator>,
}

/// A part of a recipe, by the levels of the factors that set it.
type Parsed<T> = HashMap<Vec<usize>, T>;

/// What a level sets.
enum Set {
    /// A setting of a server that the recipe describes.
    Setting { server: String, name: String, value: Word },
    /// An option of the run.
    Option { name: String, value: Word },
    /// Anything else, by its path.
    Path(Vec<String>, Value),
}

impl Set {
    fn of(base: &Table, path: Vec<String>, value: &Value) -> Set {
        let is_described = |server: &str| base.get("server").and_then(|all| all.get(server)).is_some();
        let word = Word::deserialize(value.clone()).ok();
        match (&path.iter().map(String::as_str).collect::<Vec<_>>()[..], word) {
            (["server", server, "settings", name], Some(value)) if is_described(server) => {
                Set::Setting { server: (*server).to_owned(), name: (*name).to_owned(), value }
            }
            (["run", "options", name], Some(value)) => Set::Option { name: (*name).to_owned(), value },
            _ => Set::Path(path, value.clone()),
        }
    }

    /// The part of the recipe that must be parsed with it.
    fn part(&self) -> Option<&str> {
        match self {
            Set::Path(path, _) => path.first().map(String::as_str),
            Set::Setting { .. } | Set::Option { .. } => None,
        }
    }
}

impl<'a> Setups<'a> {
    /// Checks each level by itself: an error then names the wrong one. `text`: for positions in errors.
    fn new(base: &'a Table, factors: &[Factor], text: &str) -> Result<Setups<'a>, RecipeError> {
        // A level that sets a whole table may remove what another one has put into it.
        let paths = factors.iter().flat_map(|factor| &factor.levels).flat_map(|level| &level.sets);
        let paths: BTreeSet<Vec<String>> = paths.filter_map(|(path, _)| segments(path).ok()).collect();
        let is_removed = |path: &[String]| (1..path.len()).any(|length| paths.contains(&path[..length]));
        let mut sets: Vec<Vec<Vec<Set>>> = Vec::new();
        for factor in factors {
            let mut of_factor = Vec::new();
            for level in &factor.levels {
                let mut of_level = Vec::new();
                for (path, value) in &level.sets {
                    let checked = of_part_of_a_cell(path).and_then(|path| {
                        of_level.push(match is_removed(&path) {
                            true => Set::Path(path, value.clone()),
                            false => Set::of(base, path, value),
                        });
                        check_last(base, &of_level)
                    });
                    let checked = checked.and_then(|()| meant_server(base, level, path));
                    checked.map_err(|error| {
                        let what = format!("factor {}, level {}, `{path}`", factor.name, level.name);
                        let places = [&factor.name, path].map(|name| place_of(text, &["grid", name.as_str()]));
                        error.within(&what).at(places.into_iter().flatten().next())
                    })?;
                }
                of_factor.push(of_level);
            }
            sets.push(of_factor);
        }
        let mut setters: HashMap<String, Vec<usize>> = HashMap::new();
        for (number, of_factor) in sets.iter().enumerate() {
            let parts: BTreeSet<&str> = of_factor.iter().flatten().filter_map(Set::part).collect();
            parts.into_iter().for_each(|part| setters.entry(part.to_owned()).or_default().push(number));
        }
        let (server, data, run, generator) = Default::default();
        Ok(Setups { base, sets, setters, server, data, run, generator })
    }

    /// The setup of a cell with these levels.
    fn of(&mut self, levels: &[usize]) -> Result<Setup, RecipeError> {
        let mut setup = Setup {
            server: self.part("server", levels, |setups| &mut setups.server)?,
            data: self.part("data", levels, |setups| &mut setups.data)?,
            run: self.part("run", levels, |setups| &mut setups.run)?,
            generator: self.part("generator", levels, |setups| &mut setups.generator)?,
        };
        for set in self.sets.iter().zip(levels).flat_map(|(of_factor, level)| &of_factor[*level]) {
            match set {
                Set::Setting { server, name, value } => {
                    let server = setup.server.get_mut(server).expect("the recipe describes it");
                    server.settings.insert(name.clone(), value.clone());
                }
                Set::Option { name, value } => _ = setup.run.options.insert(name.clone(), value.clone()),
                Set::Path(..) => {}
            }
        }
        Ok(setup)
    }

    /// A part of the recipe with what these levels set in it. `known`: those parsed before.
    fn part<T: DeserializeOwned + Default + Clone>(
        &mut self,
        name: &str,
        levels: &[usize],
        known: impl for<'b> Fn(&'b mut Setups<'a>) -> &'b mut Parsed<T>,
    ) -> Result<T, RecipeError> {
        let own: Vec<usize> = self.setters.get(name).into_iter().flatten().map(|factor| levels[*factor]).collect();
        if let Some(parsed) = known(self).get(&own) {
            return Ok(parsed.clone());
        }
        let chosen = self.sets.iter().zip(levels).flat_map(|(of_factor, level)| &of_factor[*level]);
        let parsed: T = parsed(name, self.base, chosen)?;
        known(self).insert(own, parsed.clone());
        Ok(parsed)
    }
}

/// A part of the recipe with these sets, as far as they are about it.
fn parsed<'a, T: DeserializeOwned + Default>(
    name: &str,
    base: &Table,
    sets: impl Iterator<Item = &'a Set>,
) -> Result<T, RecipeError> {
    let mut document: Table = base.get(name).map(|value| (name.to_owned(), value.clone())).into_iter().collect();
    for one in sets {
        if let Set::Path(path, value) = one
            && path[0] == name
        {
            set(&mut document, path, value.clone())?;
        }
    }
    match document.remove(name) {
        Some(value) => value.try_into().map_err(|error| RecipeError::of_toml(&error, "")),
        None => Ok(T::default()),
    }
}

/// Checks the last set of a level, after those before it.
fn check_last(base: &Table, sets: &[Set]) -> Result<(), RecipeError> {
    let sets_it = sets.iter();
    match sets.last().and_then(Set::part) {
        Some("server") => parsed::<BTreeMap<String, RecipeServer>>("server", base, sets_it).map(drop),
        Some("data") => parsed::<Data>("data", base, sets_it).map(drop),
        Some("run") => parsed::<Run>("run", base, sets_it).map(drop),
        Some("generator") => parsed::<Generator>("generator", base, sets_it).map(drop),
        _ => Ok(()),
    }
}

/// The segments of a path that a factor may set.
fn of_part_of_a_cell(path: &str) -> Result<Vec<String>, RecipeError> {
    let path = segments(path)?;
    match SETUP.contains(&path[0].as_str()) {
        true => Ok(path),
        false => Err(RecipeError::new(format!("a factor cannot set `{}`", path[0])).meant(&path[0], &SETUP)),
    }
}

/// A level may describe a server of its own, but then it says which.
fn meant_server(base: &Table, level: &Level, path: &str) -> Result<(), RecipeError> {
    let path = segments(path)?;
    let ["server", name, ..] = path.iter().map(String::as_str).collect::<Vec<_>>()[..] else { return Ok(()) };
    let known: Vec<&str> =
        base.get("server").and_then(Value::as_table).map_or(Vec::new(), |all| all.keys().map(String::as_str).collect());
    let describes = |set: &str| {
        segments(set).is_ok_and(|set| set.len() == 3 && set[1] == name && ["product", "url"].contains(&set[2].as_str()))
    };
    if known.contains(&name) || level.sets.iter().any(|(set, _)| describes(set)) {
        return Ok(());
    }
    Err(RecipeError::new(format!("there is no server {name}")).meant(name, &known))
}

/// For each factor, the levels that are omitted; `None`: any.
fn exception(table: &Table, factors: &[Factor]) -> Result<Vec<Option<Vec<usize>>>, RecipeError> {
    let mut excluded = vec![None; factors.len()];
    let names: Vec<&str> = factors.iter().map(|factor| factor.name.as_str()).collect();
    for (name, value) in table {
        let at = names
            .iter()
            .position(|one| one == name)
            .ok_or_else(|| RecipeError::new(format!("except: there is no factor {name}")).meant(name, &names))?;
        let one = [value.clone()];
        let values = value.as_array().map_or(&one[..], Vec::as_slice);
        let known: Vec<&str> = factors[at].levels.iter().map(|level| level.name.as_str()).collect();
        let level = |value: &Value| {
            let level = shown(value);
            known
                .iter()
                .position(|one| *one == level)
                .ok_or_else(|| RecipeError::new(format!("except: {name} has no level {level}")).meant(&level, &known))
        };
        excluded[at] = Some(values.iter().map(level).collect::<Result<Vec<_>, _>>()?);
    }
    if table.is_empty() {
        return Err(RecipeError::new("except: give a factor and its level"));
    }
    Ok(excluded)
}
