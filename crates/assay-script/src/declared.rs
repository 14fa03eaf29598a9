//! What a script declares, read from Lua's stack: options, commands and hooks after its top level has run; rules and
//! rates while it works.

use std::collections::BTreeSet;
use std::ffi::{CStr, c_int};

use assay_luajit as lua;
use assay_luajit::lua_State;
use assay_options::{Bounds, CommandDeclaration, OptionDeclaration, OptionKind, OptionValue};
use assay_seam::Nanos;

use crate::failure::ScriptError;
use crate::rule::{Declaration, LoadedTables, Measure, NamedQuery, NamedRate, Rule};
use crate::stack::{read_option, text_at};

/// What a script's top level left behind.
#[derive(Debug, Default)]
pub(crate) struct Declared {
    /// By name.
    pub(crate) options: Vec<OptionDeclaration>,
    pub(crate) has_options: bool,
    /// Options that a run has to be given, by key, and where the script uses each.
    pub(crate) needed: Vec<(String, String)>,
    /// By name.
    pub(crate) commands: Vec<CommandDeclaration>,
    /// Global functions.
    pub(crate) globals: BTreeSet<String>,
    /// Functions in `sysbench.hooks`.
    pub(crate) hooks: BTreeSet<String>,
    /// `sysbench.cmdline.own_rows`.
    pub(crate) own_rows: bool,
    /// Where `event` ends: the file, and its line.
    pub(crate) event: Option<(String, u32)>,
    /// `sysbench.cmdline.sessions`; 0: not given.
    pub(crate) sessions: u32,
    /// Types of transactions.
    pub(crate) types: BTreeSet<String>,
}

impl Declared {
    pub(crate) const fn nothing() -> Declared {
        Declared {
            options: Vec::new(),
            has_options: false,
            needed: Vec::new(),
            commands: Vec::new(),
            globals: BTreeSet::new(),
            hooks: BTreeSet::new(),
            own_rows: false,
            event: None,
            sessions: 0,
            types: BTreeSet::new(),
        }
    }
}

/// # Safety
/// `options`, `commands`, `globals`, `has_options`, `hooks`, `own_rows`, the file and line of `event`'s end, `sessions`
/// and `types`, of `entries.declare` in session.lua are at 2 to 11.
pub(crate) unsafe fn read_declared(thread: *mut lua_State) -> Result<Declared, ScriptError> {
    let mut declared = Declared::default();
    // SAFETY: the caller's promise; every value read is pushed and popped again, and texts are copied.
    unsafe {
        let field = |name: &CStr| lua::lua_getfield_(thread, -1, name.as_ptr());
        let pop = || lua::lua_settop(thread, -2);
        let text = |name: &CStr| {
            field(name);
            let text = String::from_utf8_lossy(text_at(thread, -1)).into_owned();
            pop();
            text
        };
        declared.has_options = lua::lua_toboolean(thread, 5) != 0;
        declared.own_rows = lua::lua_toboolean(thread, 7) != 0;
        if lua::lua_type(thread, 8) == lua::LUA_TSTRING {
            let file = String::from_utf8_lossy(text_at(thread, 8)).into_owned();
            declared.event = Some((file, lua::lua_tonumber(thread, 9) as u32));
        }
        declared.sessions = lua::lua_tonumber(thread, 10) as u32;
        for i in 1..=lua::lua_objlen(thread, 2) {
            lua::lua_rawgeti_(thread, 2, i as c_int);
            field(c"kind");
            let kind = match lua::lua_tonumber(thread, -1) as i64 {
                1 => OptionKind::Bool,
                2 => OptionKind::Int,
                3 => OptionKind::Size,
                4 => OptionKind::Double,
                6 => OptionKind::List,
                7 => OptionKind::File,
                _ => OptionKind::Text,
            };
            pop();
            field(c"default");
            let default = read_option(thread);
            pop();
            field(c"choices");
            let choices = match read_option(thread) {
                OptionValue::List(choices) => choices,
                _ => Vec::new(),
            };
            pop();
            field(c"unused");
            let unused = lua::lua_toboolean(thread, -1) != 0;
            pop();
            let number = |name: &CStr| {
                field(name);
                let number = (lua::lua_type(thread, -1) == lua::LUA_TNUMBER).then(|| lua::lua_tonumber(thread, -1));
                pop();
                number
            };
            field(c"whole");
            let whole = lua::lua_toboolean(thread, -1) != 0;
            pop();
            let bounds = Bounds { whole, low: number(c"low"), high: number(c"high") };
            let (name, needed) = (text(c"name"), text(c"needed"));
            let default = match default {
                OptionValue::Text(text) if !matches!(kind, OptionKind::Text) => kind
                    .parse(Some(&text))
                    .map_err(|error| ScriptError::from_message(&format!("option {name}: its default: {error}"), ""))?,
                OptionValue::None => kind.parse(Some("")).unwrap_or_default(),
                other => other,
            };
            declared.options.push(OptionDeclaration {
                description: text(c"description"),
                name,
                kind,
                choices,
                unused,
                bounds,
                default,
            });
            if !needed.is_empty() {
                declared.needed.extend(declared.options.last().map(|option| (option.key(), needed)));
            }
            pop();
        }
        for i in 1..=lua::lua_objlen(thread, 3) {
            lua::lua_rawgeti_(thread, 3, i as c_int);
            field(c"parallel");
            let parallel = lua::lua_toboolean(thread, -1) != 0;
            pop();
            declared.commands.push(CommandDeclaration { name: text(c"name"), parallel });
            pop();
        }
        for (index, names) in [(4, &mut declared.globals), (6, &mut declared.hooks), (11, &mut declared.types)] {
            for i in 1..=lua::lua_objlen(thread, index) {
                lua::lua_rawgeti_(thread, index, i as c_int);
                names.insert(String::from_utf8_lossy(text_at(thread, -1)).into_owned());
                pop();
            }
        }
    }
    Ok(declared)
}

/// `kind, name, clause, part, whole, low, high, percentile` from index 2, made in `declare` of session.lua.
///
/// # Safety
/// The thread is suspended.
pub(crate) unsafe fn declaration(thread: *mut lua_State) -> Declaration {
    // SAFETY: the caller's promise; texts are copied.
    unsafe {
        let text = |index| String::from_utf8_lossy(text_at(thread, index)).into_owned();
        let number =
            |index| (lua::lua_type(thread, index) == lua::LUA_TNUMBER).then(|| lua::lua_tonumber(thread, index));
        let (name, clause, part, whole, last) = (text(3), text(4), text(5), text(6), number(9));
        let (low, high) = (number(7), number(8));
        let measure = match text_at(thread, 2) {
            b"found" => return Declaration::Found(name, high.map_or(OptionValue::Text(part), OptionValue::Number)),
            b"history" => return Declaration::History(name, high.unwrap_or_default()),
            b"total" => return Declaration::Total(name, high.unwrap_or_default()),
            b"query" => return Declaration::Query(NamedQuery { name, question: clause, text: part }),
            b"loaded" => {
                let question =
                    |line: &str| line.split_once('\t').map(|(name, text)| (name.to_owned(), text.to_owned()));
                let questions = clause.lines().filter_map(question).collect();
                return Declaration::Loaded(LoadedTables { table: name, questions });
            }
            b"scale" => return Declaration::Scale(high.unwrap_or_default()),
            b"journal" => return Declaration::Journal(name.split(',').map(str::to_owned).collect()),
            b"rate" => {
                return Declaration::Rate(NamedRate {
                    name,
                    of: Some(part).filter(|of| !of.is_empty()),
                    rolled_back: whole == "rolled_back",
                    per: Nanos::from_secs_f64(last.unwrap_or(1.0)),
                    nominal: high,
                });
            }
            b"mean" => Measure::Mean { of: part },
            b"mix" => Measure::Mix { of: part },
            b"rate_rule" => Measure::Rate { of: part },
            b"table_share" => Measure::TableShare { part, whole },
            b"growth" => Measure::Growth { total: part, of: whole, most: last.unwrap_or_default() as u64 },
            b"rolled_back" => Measure::RolledBack { of: part },
            b"percentile" => {
                let ppm = (last.unwrap_or(0.0) * 1e4).round().clamp(1.0, 999_999.0) as u32;
                let ns = |seconds: f64| seconds * 1e9;
                let measure = Measure::Percentile { of: part, ppm };
                return Declaration::Rule(Rule { name, clause, measure, low: low.map(ns), high: high.map(ns) });
            }
            _ => Measure::Share { part, whole },
        };
        Declaration::Rule(Rule { name, clause, measure, low, high })
    }
}
