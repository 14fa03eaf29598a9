//! Generates Lua from pgbench scripts.
//!
//! Each command becomes a function of the client `self`, its variables `v`, its connection `c` and its prepared
//! statements `S`, on its line of the script, so that messages name the right line. `R.run` calls one after the other;
//! a function returns the number of the next one if that is not the following one: so `\if` neither nests nor grows a
//! function, both of which Lua limits. An expression becomes calls of the runtime `R`, SQL becomes a query with the
//! values in its text (simple mode) or a prepared statement with parameters. A script of integers and SQL alone also
//! becomes a plain program, which runs without Lua.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::arguments::Mode;
use crate::builtin::{BUILTINS, Builtin};
use crate::expression::{Expression, ExpressionWord, Lua, quoted};
use crate::script::{Command, Doing, Keep, Script, SqlPart};

/// How clients of `assay pgbench` run scripts.
#[derive(Clone, Copy, Debug)]
pub struct PgbenchFront<'a> {
    /// How SQL is sent.
    pub mode: Mode,
    /// Whether commands are timed (`-r`).
    pub timed: bool,
    /// Whether to print what clients do (`-d`).
    pub debug: bool,
    /// Variables and their values, as text.
    pub variables: &'a [(String, String)],
    /// Weight of each script.
    pub weights: &'a [u64],
}

/// The program of `assay pgbench`: clients with their own loop.
pub fn compile(scripts: &[Script], front: &PgbenchFront<'_>) -> String {
    let mut lua = "local R, C = assay.share(\"pgbench_runtime\"), assay.share(\"pgbench_client\")\n".to_owned();
    lua.push_str("local scripts = assay.constant(\"pgbench scripts\", function() return {\n");
    for (script, weight) in scripts.iter().zip(front.weights) {
        let begins = script.commands.iter().any(may_begin);
        let mut plain = if front.timed || front.debug { None } else { plain(script, front.mode) };
        if let Some(plain) = &mut plain
            && begins
        {
            plain.text.insert_str(0, &format!("begins{SEPARATOR}"));
        }
        let _ = writeln!(
            lua,
            "{{ name = {}, weight = {weight}, names = {{ {} }}, count = {}, begins = {begins}, timed = {}, debug = {},",
            quoted(&script.name),
            names(script),
            script.commands.len(),
            front.timed,
            front.debug
        );
        if let Some(PlainScript { text, variables }) = &plain {
            let _ = writeln!(lua, "plain = {{ text = {}, variables = {{ {} }} }},", quoted(text), all(variables));
        }
        if front.mode == Mode::Extended {
            let _ = writeln!(lua, "texts = {{ {} }},", numbered_texts(script));
        }
        let mut place = TranslationPlace::new(script, front.mode, PIPELINE_OF_CLIENTS);
        place.debug = front.debug;
        let _ = writeln!(lua, "commands = {} }},", commands(&mut place));
    }
    lua.push_str("} end)\nlocal given = {\n");
    for (name, value) in front.variables {
        let _ = writeln!(lua, "[{}] = {},", quoted(name), quoted(value));
    }
    lua.push_str(
        "}\nfunction thread_init(tid) C.init(tid, scripts, given) end\nfunction thread_run(tid) C.run(tid) end\n",
    );
    lua
}

/// Parameters of a statement that pgbench accepts.
const PARAMETERS_MAX: usize = 255;

/// Refuses statements that have too many parameters for this mode, in pgbench's words.
pub fn check_parameters(script: &Script, mode: Mode) -> Result<(), String> {
    for command in &script.commands {
        let Doing::Sql { parts, .. } = &command.doing else { continue };
        let count = parts.iter().filter(|part| matches!(part, SqlPart::Variable { .. })).count();
        if mode != Mode::Simple && count > PARAMETERS_MAX {
            let text: String = parts
                .iter()
                .map(|part| match part {
                    SqlPart::Text(text) => text.clone(),
                    SqlPart::Variable { name, .. } => format!(":{name}"),
                })
                .collect();
            return Err(format!("statement has too many arguments (maximum is {PARAMETERS_MAX}): {text}"));
        }
    }
    Ok(())
}

/// A script that needs no Lua: the text of a plain program (`plain` in assay-script says how it is read), and the names
/// of its variables in the order of their numbers.
struct PlainScript {
    text: String,
    variables: Vec<String>,
}

/// Texts as the items of a table.
fn all(names: &[String]) -> String {
    names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ")
}

/// Stands behind each word of a plain program.
const SEPARATOR: char = '\u{1f}';

/// `None` where a command is neither SQL whose rows nobody keeps nor an integer that is computed.
fn plain(script: &Script, mode: Mode) -> Option<PlainScript> {
    let mut variables: Vec<String> = Vec::new();
    let mut number = |name: &String| {
        let known = variables.iter().position(|variable| variable == name);
        let number = known.unwrap_or_else(|| {
            variables.push(name.clone());
            variables.len() - 1
        });
        format!("${number}")
    };
    let mut words = Vec::new();
    for command in &script.commands {
        match &command.doing {
            Doing::Set { variable, value } if is_name(variable) => {
                words.extend(["set".to_owned(), number(variable)]);
                words.extend(value.plain()?.iter().map(|word| match word {
                    ExpressionWord::Integer(integer) => integer.to_string(),
                    ExpressionWord::Variable(name) => number(name),
                    ExpressionWord::Operator(operator) => (*operator).to_owned(),
                }));
            }
            Doing::Sql { parts, keep: keep @ Keep::Nothing } => {
                let is_text = parameterized(parts, keep, mode).is_none();
                words.push(if is_text { "query" } else { "execute" }.to_owned());
                words.extend(parts.iter().filter_map(|part| match part {
                    SqlPart::Text(text) => is_text.then(|| format!("'{text}")),
                    SqlPart::Variable { name, .. } => Some(number(name)),
                }));
            }
            _ => return None,
        }
    }
    let has_separator = words.iter().any(|word| word.contains(SEPARATOR));
    let text = words.into_iter().flat_map(|word| [word, SEPARATOR.to_string()]).collect();
    (!has_separator).then_some(PlainScript { text, variables })
}

/// Whether a variable's name is plain enough to stand in Lua as it is.
fn is_name(variable: &str) -> bool {
    let begins_well = variable.chars().next().is_some_and(|c| !c.is_ascii_digit());
    begins_well && variable.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Whether a command may start a transaction. A command inside a variable is not recognized.
fn may_begin(command: &Command) -> bool {
    let Doing::Sql { parts, .. } = &command.doing else { return false };
    parts.iter().any(|part| match part {
        SqlPart::Text(text) => {
            let text = text.to_ascii_lowercase();
            text.contains("begin") || text.contains("start")
        }
        SqlPart::Variable { .. } => false,
    })
}

/// The output of `-d` before a command, as Lua.
fn told(command: &Command, number: usize, mode: Mode) -> String {
    let text = match &command.doing {
        Doing::Sql { parts, keep } => match parameterized(parts, keep, mode) {
            Some(_) if mode == Mode::Prepared => {
                let tell = |what: &str| format!("C.tell(self, \"{what} P_{number}\") ");
                return format!("if not S[{number}] then {}end {}", tell("preparing"), tell("sending"));
            }
            Some(_) => quoted(&format!("sending {}", numbered_text(parts))),
            None => format!("\"sending \" .. {}", text_of(parts)),
        },
        Doing::Set { variable, .. } => quoted(&format!("executing \\set {variable}")),
        Doing::Shell { variable: Some(variable), words } => {
            quoted(&format!("executing \\setshell {variable} {}", words.join(" ")))
        }
        Doing::Shell { words, .. } => quoted(&format!("executing \\shell {}", words.join(" "))),
        Doing::Sleep { amount, .. } => quoted(&format!("executing \\sleep {amount}")),
        Doing::If(_) => quoted("executing \\if"),
        Doing::Elif(_) => quoted("executing \\elif"),
        Doing::Else => quoted("executing \\else"),
        Doing::EndIf => quoted("executing \\endif"),
        Doing::StartPipeline => quoted("executing \\startpipeline"),
        Doing::SyncPipeline => quoted("executing \\syncpipeline"),
        Doing::EndPipeline => quoted("executing \\endpipeline"),
    };
    format!("C.tell(self, {text}) ")
}

/// Names of commands in messages.
fn names(script: &Script) -> String {
    let name = |command: &Command| match &command.doing {
        Doing::Sql { .. } => "SQL",
        Doing::Set { .. } => "set",
        Doing::Shell { variable: Some(_), .. } => "setshell",
        Doing::Shell { .. } => "shell",
        Doing::Sleep { .. } => "sleep",
        Doing::If(_) => "if",
        Doing::Elif(_) => "elif",
        Doing::Else => "else",
        Doing::EndIf => "endif",
        Doing::StartPipeline => "startpipeline",
        Doing::SyncPipeline => "syncpipeline",
        Doing::EndPipeline => "endpipeline",
    };
    script.commands.iter().map(|command| format!("\"{}\"", name(command))).collect::<Vec<_>>().join(", ")
}

/// A workload of `assay run`: errors and retries as for any workload. Variables that the script uses before setting
/// them are options.
pub fn workload(script: &Script) -> String {
    translated(script, "")
}

/// The built-in scripts as workloads of `assay run`, for every database: Lua modules that set up a session and define
/// its transaction, by name. `COMMIT` is understood everywhere, `END` is not.
pub fn builtin_workloads() -> Vec<(String, String)> {
    let module = |builtin: &Builtin| {
        let text = builtin.text.replace("END;", "COMMIT;");
        let script = Script::parse(&builtin.shown(), &text).expect("a test translates them all");
        (format!("pgbench_{}", builtin.name.replace('-', "_")), builtin_workload(&script))
    };
    BUILTINS.iter().map(module).collect()
}

/// One of the built-in scripts, whose tables say what `:scale` is: a function of its workload asks them.
fn builtin_workload(script: &Script) -> String {
    translated(script, "given.scale = scale_of_tables(c) ")
}

/// `connected`: Lua that runs once a session is connected.
fn translated(script: &Script, connected: &str) -> String {
    let mut lua = "local R = assay.share(\"pgbench_runtime\") local v, c, S local self = { from = 0 } \
                   sysbench.cmdline.options = { "
        .to_owned();
    let uses = VariableUses::of(script);
    let plain = if uses.carries { None } else { plain(script, Mode::Prepared) };
    for OpenVariable { name, line } in &uses.open {
        let default = if name == "scale" { "1" } else { "\"\"" };
        let needed = line.filter(|_| name != "scale").map(|line| format!("{}:{line}", script.name));
        let needed = needed.map(|place| format!(", needed = {}", quoted(&place))).unwrap_or_default();
        let _ = write!(lua, "[{}] = {{ \"Value of :{name}\", {default}{needed} }}, ", quoted(name));
    }
    lua.push_str("} function thread_init(tid) c, S = sysbench.sql.driver():connect(), {} local given = {} ");
    for OpenVariable { name, line } in &uses.open {
        let option = quoted(name);
        // What may stand in a text for something else is replaced only if it is given.
        let condition = if line.is_some() { "nil" } else { "\"\"" };
        let _ =
            write!(lua, "if sysbench.opt[{option}] ~= {condition} then given[{option}] = sysbench.opt[{option}] end ");
    }
    lua.push_str(connected);
    lua.push_str(
        "given.random_seed = sysbench.opt.rand_seed given.default_seed = sysbench.opt.rand_seed \
         v = R.variables(tid, given) ",
    );
    if let Some(PlainScript { text, variables }) = &plain {
        let _ = write!(lua, "assay.run_plain(R.plain({}, {{ {} }}, self, v, c, S)) ", quoted(text), all(variables));
    }
    let mut place = TranslationPlace::new(script, Mode::Prepared, PIPELINE_OF_SESSIONS);
    place.keeps_lines = true;
    let _ = writeln!(
        lua,
        "end local commands = assay.constant(\"pgbench commands\", function() return {} end) \
         function event(_, attempt) local from = R.attempt(self, v, attempt, {}) \
         R.run(commands, {}, from, self, v, c, S) end",
        commands(&mut place),
        uses.carries,
        script.commands.len()
    );
    lua
}

/// How a script uses its variables.
struct VariableUses {
    /// Those that it may use before it has set them, except those that every session has, in the order of their uses.
    open: Vec<OpenVariable>,
    /// Whether a transaction may find values of the one before: a retry has to find them, too.
    carries: bool,
}

struct OpenVariable {
    name: String,
    /// Where it is first used in such a way that it has to have a value; `None`: only inside quotes.
    line: Option<usize>,
}

impl VariableUses {
    fn of(script: &Script) -> VariableUses {
        let mut set = BTreeSet::from(["client_id", "random_seed", "default_seed"].map(str::to_owned));
        let mut open: Vec<OpenVariable> = Vec::new();
        // Variables set from rows are not known.
        let mut prefixes: Vec<&str> = Vec::new();
        let mut carries = false;
        for command in &script.commands {
            for (name, line) in used(command) {
                let from_rows = prefixes.iter().any(|prefix| name.starts_with(prefix));
                match open.iter_mut().find(|one| one.name == name) {
                    Some(known) => known.line = known.line.or(line),
                    None if set.contains(name) || from_rows => {}
                    None => open.push(OpenVariable { name: name.to_owned(), line }),
                }
            }
            match &command.doing {
                Doing::Set { variable, .. } | Doing::Shell { variable: Some(variable), .. } => {
                    set.insert(variable.clone());
                }
                Doing::Sql { keep: Keep::One(prefix) | Keep::All(prefix), .. } => prefixes.push(prefix),
                _ => {}
            }
            // What sets them may be left out, or is not known.
            carries |= matches!(command.doing, Doing::If(_)) || !prefixes.is_empty();
        }
        carries |= open.iter().any(|one| set.contains(&one.name));
        VariableUses { open, carries }
    }
}

/// The variables that a command uses, with the line of each; no line: inside quotes, where a colon may stand for
/// itself.
fn used(command: &Command) -> Vec<(&str, Option<usize>)> {
    let here = |name| (name, Some(command.line));
    match &command.doing {
        Doing::Sql { parts, .. } => {
            let (mut line, mut found) = (command.line, Vec::new());
            for part in parts {
                match part {
                    SqlPart::Text(text) => line += text.matches('\n').count(),
                    SqlPart::Variable { name, quoted } => found.push((name.as_str(), (!quoted).then_some(line))),
                }
            }
            found
        }
        Doing::Set { value, .. } | Doing::If(value) | Doing::Elif(value) => {
            value.variables.iter().map(|name| here(name.as_str())).collect()
        }
        Doing::Sleep { amount, .. } => amount.strip_prefix(':').map(here).into_iter().collect(),
        Doing::Shell { words, .. } => {
            let names = words.iter().filter_map(|word| word.strip_prefix(':'));
            names.filter(|name| !name.starts_with(':')).map(here).collect()
        }
        _ => Vec::new(),
    }
}

/// How the commands of a script are translated, and where that is.
struct TranslationPlace<'a> {
    commands: &'a [Command],
    mode: Mode,
    /// Whether it is between the start and the end of a pipeline.
    is_piped: bool,
    /// The functions that start a pipeline, synchronize and end it.
    pipeline: [&'static str; 3],
    debug: bool,
    /// Whether commands stand on their lines.
    keeps_lines: bool,
    /// By number, for `\if`, `\elif` and `\else`: the next command of these if the condition does not hold, and the
    /// `\endif`.
    branches: BTreeMap<usize, (usize, usize)>,
}

impl TranslationPlace<'_> {
    fn new<'a>(script: &'a Script, mode: Mode, pipeline: [&'static str; 3]) -> TranslationPlace<'a> {
        let mut branches = BTreeMap::new();
        // The branches of each open `\if`.
        let mut open: Vec<Vec<usize>> = Vec::new();
        for (number, command) in script.commands.iter().enumerate() {
            match &command.doing {
                Doing::If(_) => open.push(vec![number]),
                Doing::Elif(_) | Doing::Else => open.last_mut().expect("the parser checked it").push(number),
                Doing::EndIf => {
                    let mut parts = open.pop().expect("the parser checked it");
                    parts.push(number);
                    for pair in parts.windows(2) {
                        branches.insert(pair[0], (pair[1], number));
                    }
                }
                _ => {}
            }
        }
        let commands = &script.commands;
        TranslationPlace { commands, mode, is_piped: false, pipeline, debug: false, keeps_lines: false, branches }
    }
}

const PIPELINE_OF_CLIENTS: [&str; 3] = ["C.begin_pipeline(self)", "C.synchronize(self)", "C.end_pipeline(self)"];
/// If the driver does not know pipelines, nothing waits.
const PIPELINE_OF_SESSIONS: [&str; 3] = ["", "c:synchronize()", "c:flush()"];

/// Functions that one function of Lua creates: each is one of its constants.
const PART: usize = 1000;

/// The functions of all commands, as a Lua expression: a table by number. A negative number is that of an `\elif` whose
/// condition decides; the positive one ends the branch before it.
fn commands(place: &mut TranslationPlace<'_>) -> String {
    let mut lua = "(function() local B = {} ".to_owned();
    let mut line = 1;
    for (number, command) in place.commands.iter().enumerate() {
        if number % PART == 0 {
            lua.push_str(if number == 0 {
                "do local function part() "
            } else {
                "end part() end do local function part() "
            });
        }
        while place.keeps_lines && line < command.line {
            lua.push('\n');
            line += 1;
        }
        let mut function = |number: i64, code: &str| {
            let _ = write!(lua, "B[{number}] = function(self, v, c, S) {code} end ");
        };
        let told = if place.debug { told(command, number, place.mode) } else { String::new() };
        let at = number as i64;
        match &command.doing {
            Doing::If(condition) => function(at, &format!("{told}{}", branch(condition, number, place))),
            Doing::Elif(condition) => {
                function(-at, &format!("{told}{}", branch(condition, number, place)));
                function(at, &format!("{told}return {}", place.branches[&number].1 + 1));
            }
            Doing::Else => function(at, &format!("{told}return {}", place.branches[&number].1 + 1)),
            Doing::Sql { .. } if place.debug => {
                function(at, &format!("{told}{} C.tell(self, \"receiving\")", of_command(number, place)));
            }
            _ => function(at, &format!("{told}{}", of_command(number, place))),
        }
    }
    lua.push_str("end part() end return B end)()");
    lua
}

/// `\if` or `\elif`: goes on with the next branch unless the condition holds.
fn branch(condition: &Expression, number: usize, place: &TranslationPlace<'_>) -> String {
    let Lua { before, value } = condition.lua();
    let (next, _) = place.branches[&number];
    let next = match &place.commands[next].doing {
        Doing::Elif(_) => format!("-{next}"),
        _ => (next + 1).to_string(),
    };
    format!("{before}if R.holds({value}) then return {} end return {next}", number + 1)
}

/// Command `number`, from 0, of a script.
fn of_command(number: usize, place: &mut TranslationPlace<'_>) -> String {
    match &place.commands[number].doing {
        Doing::Sql { parts, keep } => of_sql(parts, keep, number, place),
        Doing::Set { variable, value } => {
            let Lua { before, value } = value.lua();
            if is_name(variable) {
                format!("{before}v[{}] = {value}", quoted(variable))
            } else {
                format!("{before}R.set(v, {}, {value})", quoted(variable))
            }
        }
        Doing::Shell { variable, words } => {
            let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
            let variable = variable.as_ref().map(|name| format!(", {}", quoted(name))).unwrap_or_default();
            format!("R.shell(v, {{ {} }}{variable})", words.join(", "))
        }
        Doing::Sleep { amount, seconds } => format!("R.sleep(v, {}, {seconds})", quoted(amount)),
        Doing::If(_) | Doing::Elif(_) | Doing::Else | Doing::EndIf => String::new(),
        Doing::StartPipeline => {
            place.is_piped = true;
            place.pipeline[0].to_owned() + &preparations(place.commands, number, place.mode)
        }
        Doing::SyncPipeline => place.pipeline[1].to_owned(),
        Doing::EndPipeline => {
            place.is_piped = false;
            place.pipeline[2].to_owned()
        }
    }
}

/// SQL as a prepared statement: its text with a question mark for each value, and the values. `None`: it is sent as
/// text.
fn parameterized(parts: &[SqlPart], keep: &Keep, mode: Mode) -> Option<(String, Vec<String>)> {
    // Variables inside quotes are text, and so is a statement with question marks of its own, which would be our
    // placeholders.
    let fits = |part: &SqlPart| match part {
        SqlPart::Text(text) => !text.contains('?'),
        SqlPart::Variable { quoted, .. } => !quoted,
    };
    // Drivers report column names for statements sent as text.
    if mode == Mode::Simple || *keep != Keep::Nothing || !parts.iter().all(fits) {
        return None;
    }
    let (mut text, mut values) = (String::new(), Vec::new());
    for part in parts {
        match part {
            SqlPart::Text(piece) => text.push_str(piece),
            SqlPart::Variable { name, .. } => {
                text.push('?');
                values.push(format!("R.parameter(v, {})", quoted(name)));
            }
        }
    }
    Some((text, values))
}

/// The texts of parameterized statements: errors point into them.
fn numbered_texts(script: &Script) -> String {
    let mut texts = String::new();
    for (number, command) in script.commands.iter().enumerate() {
        let Doing::Sql { parts, keep } = &command.doing else { continue };
        if parameterized(parts, keep, Mode::Extended).is_some() {
            let _ = write!(texts, "[{number}] = {}, ", quoted(&numbered_text(parts)));
        }
    }
    texts
}

/// SQL as the server reads it, with `$1` for the first value.
fn numbered_text(parts: &[SqlPart]) -> String {
    let mut values = 0;
    parts
        .iter()
        .map(|part| match part {
            SqlPart::Text(text) => text.clone(),
            SqlPart::Variable { .. } => {
                values += 1;
                format!("${values}")
            }
        })
        .collect()
}

/// SQL with the values in it.
fn text_of(parts: &[SqlPart]) -> String {
    let piece = |part: &SqlPart| match part {
        SqlPart::Text(text) => quoted(text),
        SqlPart::Variable { name, .. } => format!("R.text(v, {})", quoted(name)),
    };
    joined(parts.iter().map(piece).collect())
}

/// Pieces that one Lua expression joins.
const PIECES_MAX: usize = 32;

/// A Lua expression that joins texts, as a tree: each piece takes a register.
fn joined(mut pieces: Vec<String>) -> String {
    while pieces.len() > PIECES_MAX {
        pieces = pieces.chunks(PIECES_MAX).map(|some| format!("({})", some.join(" .. "))).collect();
    }
    pieces.join(" .. ")
}

/// Values that a Lua call takes as they are: each takes a register.
const VALUES_MAX: usize = 50;

/// Prepares statement `number`.
fn preparation(number: usize, text: &str, values: &[String]) -> String {
    format!("R.statement(c, S, {number}, {}, \"{}\")", quoted(text), "a".repeat(values.len()))
}

/// Prepares the statements of the pipeline that starts with command `begin`: preparing one in the middle would split
/// it.
fn preparations(commands: &[Command], begin: usize, mode: Mode) -> String {
    let mut lua = String::new();
    let within = commands.iter().enumerate().skip(begin);
    for (number, command) in within.take_while(|(_, command)| !matches!(command.doing, Doing::EndPipeline)) {
        let Doing::Sql { parts, keep } = &command.doing else { continue };
        if let Some((text, values)) = parameterized(parts, keep, mode) {
            let _ = write!(lua, " if not S[{number}] then {} end", preparation(number, &text, &values));
        }
    }
    lua
}

fn of_sql(parts: &[SqlPart], keep: &Keep, number: usize, place: &TranslationPlace<'_>) -> String {
    if let Some((text, values)) = parameterized(parts, keep, place.mode) {
        let how = if place.is_piped { "pipe" } else { "perform" };
        let prepared = format!("S[{number}] or {}", preparation(number, &text, &values));
        let mut arguments = values.join(", ");
        if values.len() > VALUES_MAX {
            arguments = format!("R.unpack({{ {arguments} }}, 1, {})", values.len());
        }
        return format!("local s = {prepared} s:{how}({arguments})");
    }
    let refused = |name: &str| format!("R.fail(\"\", \"\\\\{name} is not allowed in pipeline mode\", \"{name}\")");
    match keep {
        Keep::One(_) if place.is_piped => return refused("gset"),
        Keep::All(_) if place.is_piped => return refused("aset"),
        _ => {}
    }
    let call = format!("c:query({})", text_of(parts));
    match keep {
        Keep::Nothing => call,
        Keep::One(prefix) => format!("R.keep(v, c, {call}, {}, true)", quoted(prefix)),
        Keep::All(prefix) => format!("R.keep(v, c, {call}, {}, false)", quoted(prefix)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_keep_their_lines_and_open_variables_are_options() {
        let text =
            "\\set aid random(1, 100 * :scale)\nBEGIN;\nUPDATE t SET a = a +\n  :delta WHERE aid = :aid;\nEND;\n";
        let lua = workload(&Script::parse("x.sql", text).unwrap());
        let lines: Vec<&str> = lua.lines().collect();
        assert!(lines[0].contains("[\"scale\"] = { \"Value of :scale\", 1 }, [\"delta\"] = { \"Value of :delta\", \"\", needed = \"x.sql:4\" }"), "{lua}");
        assert!(!lines[0].contains("Value of :aid"), "{lua}");
        assert!(lines[0].ends_with("v[\"aid\"] = R.random(1, R.multiply(100, R.value(v, \"scale\"))) end "), "{lua}");
        assert!(lines[1].contains("\"BEGIN;\"") && lines[2].contains("UPDATE t") && lines[4].contains("END;"), "{lua}");
        assert!(lines[2].contains(":perform(R.parameter(v, \"delta\"), R.parameter(v, \"aid\"))"), "{lua}");
    }

    #[test]
    fn built_in_scripts_are_modules_of_workloads_that_run_without_lua() {
        let modules = crate::builtin_workloads();
        let names: Vec<&str> = modules.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["pgbench_tpcb_like", "pgbench_simple_update", "pgbench_select_only"]);
        for (name, text) in &modules {
            assert!(text.contains("assay.run_plain(") && !text.contains("END;"), "{name}: {text}");
        }
    }

    #[test]
    fn branches_are_jumps() {
        let script = Script::parse("x", "\\if 1\n\\set a 1\n\\elif 2\n\\set a 2\n\\else\n\\set a 3\n\\endif").unwrap();
        let lua = commands(&mut TranslationPlace::new(&script, Mode::Simple, PIPELINE_OF_SESSIONS));
        for code in [
            "B[0] = function(self, v, c, S) if R.holds(1) then return 1 end return -2 end",
            "B[-2] = function(self, v, c, S) if R.holds(2) then return 3 end return 5 end",
            "B[2] = function(self, v, c, S) return 7 end",
            "B[4] = function(self, v, c, S) return 7 end",
            "B[6] = function(self, v, c, S)  end",
        ] {
            assert!(lua.contains(code), "{code}: {lua}");
        }
    }

    #[track_caller]
    fn check_plain(text: &str, mode: Mode, words: Option<&str>) {
        let plain = plain(&Script::parse("x", text).unwrap(), mode);
        let shown = plain.map(|plain| format!("{:?} {}", plain.variables, plain.text.replace(SEPARATOR, " ")));
        assert_eq!(shown.as_deref(), words, "{text}");
    }

    #[test]
    fn scripts_of_integers_and_sql_run_without_lua() {
        let select = BUILTINS[2].text;
        let set = "[\"aid\", \"scale\"] set $0 1 100000 $1 * random";
        check_plain(select, Mode::Prepared, Some(&format!("{set} execute $0 ")));
        let query = "query 'SELECT abalance FROM pgbench_accounts WHERE aid =  $0 '; ";
        check_plain(select, Mode::Simple, Some(&format!("{set} {query}")));
        check_plain("BEGIN;", Mode::Extended, Some("[] execute "));
        check_plain("SELECT ':a';", Mode::Prepared, Some("[\"a\"] query 'SELECT ' $0 ''; "));
        for text in ["SELECT 1 AS a \\gset", "\\set a 1.5\nSELECT :a;", "\\sleep 1 s", "\\set a-b 1\nSELECT 1;"] {
            check_plain(text, Mode::Prepared, None);
        }
        assert!(
            BUILTINS.iter().all(|builtin| plain(&Script::parse("x", builtin.text).unwrap(), Mode::Simple).is_some())
        );
    }

    #[test]
    fn what_cannot_be_a_parameter_goes_as_text() {
        let lua = |text: &str| {
            let script = Script::parse("x", text).unwrap();
            of_command(0, &mut TranslationPlace::new(&script, Mode::Prepared, PIPELINE_OF_SESSIONS))
        };
        assert_eq!(lua("SELECT ':a';"), "c:query(\"SELECT '\" .. R.text(v, \"a\") .. \"';\")");
        assert_eq!(lua("SELECT a ? 'b' FROM t;"), "c:query(\"SELECT a ? 'b' FROM t;\")");
        assert_eq!(
            lua("SELECT 1 AS a, :b \\gset x"),
            "R.keep(v, c, c:query(\"SELECT 1 AS a, \" .. R.text(v, \"b\")), \"x\", true)"
        );
    }
}
