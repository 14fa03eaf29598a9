//! Generates Lua that does what pgbench scripts do.
//!
//! A script becomes one function of its variables `v`, its connection `c` and its prepared statements `S`; each command
//! stands on the line that it has in the script, so that messages name it. `\if` becomes Lua's `if`, an expression
//! becomes calls of the runtime `R`, SQL becomes a query with the values in its text (simple mode) or a prepared
//! statement with parameters.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::arguments::Mode;
use crate::expression::quoted;
use crate::script::{Command, Doing, Keep, Part, Script};

/// How clients of the pgbench front run scripts.
#[derive(Clone, Copy, Debug)]
pub struct Front<'a> {
    /// How SQL is sent.
    pub mode: Mode,
    /// Commands are timed (`-r`).
    pub timed: bool,
    /// Variables and their values, as text.
    pub variables: &'a [(String, String)],
    /// Of each script.
    pub weights: &'a [u64],
}

/// The program of `assay pgbench`: clients with their own loop.
pub fn compile(scripts: &[Script], front: &Front<'_>) -> String {
    let mut lua = "local R, C = assay.share(\"pgbench_runtime\"), assay.share(\"pgbench_client\")\n".to_owned();
    lua.push_str("local scripts = {\n");
    for (script, weight) in scripts.iter().zip(front.weights) {
        let _ = writeln!(lua, "{{ weight = {weight}, names = {{ {} }}, body = function(self, v, c, S)", names(script));
        let mut is_piped = false;
        for (number, command) in script.commands.iter().enumerate() {
            if front.timed {
                let _ = writeln!(lua, "C.step(self, {number})");
            } else {
                let _ = writeln!(lua, "self.at = {number}");
            }
            is_piped = match command.doing {
                Doing::StartPipeline => true,
                Doing::EndPipeline => false,
                _ => is_piped,
            };
            lua.push_str(&of_command(command, number, front.mode, is_piped));
            lua.push('\n');
        }
        lua.push_str("C.finish(self)\nend },\n");
    }
    lua.push_str("}\nlocal given = {\n");
    for (name, value) in front.variables {
        let _ = writeln!(lua, "[{}] = {},", quoted(name), quoted(value));
    }
    lua.push_str(
        "}\nfunction thread_init(tid) C.init(tid, scripts, given) end\nfunction thread_run(tid) C.run(tid) end\n",
    );
    lua
}

/// The words for commands in messages.
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

/// A workload of `assay run`: one session after the other, errors and retries as for any workload. Variables that the
/// script uses before it sets them are options.
pub fn workload(script: &Script) -> String {
    let mut lua = "local R = assay.share(\"pgbench_runtime\") local v, c, S local self = {} local C = { pipeline = function() end } \
                   sysbench.cmdline.options = { "
        .to_owned();
    let open = open_variables(script);
    for name in &open {
        let default = if name == "scale" { "1" } else { "\"\"" };
        let _ = write!(lua, "[{}] = {{ \"Value of :{name}\", {default} }}, ", quoted(name));
    }
    lua.push_str("} function thread_init(tid) c, S = sysbench.sql.driver():connect(), {} local given = {} ");
    for name in &open {
        let option = quoted(name);
        let _ = write!(lua, "if sysbench.opt[{option}] ~= \"\" then given[{option}] = sysbench.opt[{option}] end ");
    }
    lua.push_str(
        "given.random_seed = sysbench.opt.rand_seed given.default_seed = sysbench.opt.rand_seed v = R.variables(tid, given) end \
         function event() ",
    );
    let mut line = 1;
    for (number, command) in script.commands.iter().enumerate() {
        while line < command.line {
            lua.push('\n');
            line += 1;
        }
        lua.push_str(&of_command(command, number, Mode::Prepared, false));
        lua.push(' ');
    }
    lua.push_str("end\n");
    lua
}

/// Variables that a script may look at before it has set them, but for those that every session has.
fn open_variables(script: &Script) -> Vec<String> {
    let mut set = BTreeSet::from(["client_id", "random_seed", "default_seed"].map(str::to_owned));
    let mut open = Vec::new();
    // What comes out of rows cannot be known.
    let mut prefixes: Vec<&str> = Vec::new();
    for command in &script.commands {
        let uses: Vec<&String> = match &command.doing {
            Doing::Sql { parts, .. } => parts
                .iter()
                .filter_map(|part| match part {
                    Part::Variable { name, .. } => Some(name),
                    Part::Text(_) => None,
                })
                .collect(),
            Doing::Set { value, .. } | Doing::If(value) | Doing::Elif(value) => value.variables.iter().collect(),
            _ => Vec::new(),
        };
        for name in uses {
            let from_rows = prefixes.iter().any(|prefix| name.starts_with(prefix));
            if !set.contains(name) && !open.contains(name) && !from_rows {
                open.push(name.clone());
            }
        }
        match &command.doing {
            Doing::Set { variable, .. } | Doing::Shell { variable: Some(variable), .. } => {
                let _ = set.insert(variable.clone());
            }
            Doing::Sql { keep: Keep::One(prefix) | Keep::All(prefix), .. } => prefixes.push(prefix),
            _ => {}
        }
    }
    open
}

/// `is_piped`: between the beginning and the end of a pipeline.
fn of_command(command: &Command, number: usize, mode: Mode, is_piped: bool) -> String {
    match &command.doing {
        Doing::Sql { parts, keep } => of_sql(parts, keep, number, mode, is_piped),
        Doing::Set { variable, value } => {
            let begins_well = variable.chars().next().is_some_and(|c| !c.is_ascii_digit());
            let is_name = begins_well && variable.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if is_name {
                format!("v[{}] = {}", quoted(variable), value.lua)
            } else {
                format!("R.set(v, {}, {})", quoted(variable), value.lua)
            }
        }
        Doing::Shell { variable, words } => {
            let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
            let variable = variable.as_ref().map(|name| format!(", {}", quoted(name))).unwrap_or_default();
            format!("R.shell(v, {{ {} }}{variable})", words.join(", "))
        }
        Doing::Sleep { amount, seconds } => format!("R.sleep(v, {}, {seconds})", quoted(amount)),
        Doing::If(condition) => format!("if R.holds({}) then", condition.lua),
        Doing::Elif(condition) => format!("elseif R.holds({}) then", condition.lua),
        Doing::Else => "else".to_owned(),
        Doing::EndIf => "end".to_owned(),
        Doing::StartPipeline => "C.pipeline(self, true)".to_owned(),
        Doing::SyncPipeline => "C.pipeline(self, self.pipeline)".to_owned(),
        Doing::EndPipeline => "C.pipeline(self, nil)".to_owned(),
    }
}

fn of_sql(parts: &[Part], keep: &Keep, number: usize, mode: Mode, is_piped: bool) -> String {
    // What stands in quotes is text, and so is a text with question marks of its own, which stand for parameters in
    // ours.
    let fits = |part: &Part| match part {
        Part::Text(text) => !text.contains('?'),
        Part::Variable { quoted, .. } => !quoted,
    };
    // Drivers tell the names of columns of what is sent as text.
    let as_parameters = mode != Mode::Simple && *keep == Keep::Nothing && parts.iter().all(fits);
    let kept = |call: String| match keep {
        Keep::Nothing => call,
        Keep::One(prefix) => format!("R.keep(v, c, {call}, {}, true)", quoted(prefix)),
        Keep::All(prefix) => format!("R.keep(v, c, {call}, {}, false)", quoted(prefix)),
    };
    if !as_parameters {
        let pieces: Vec<String> = parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => quoted(text),
                Part::Variable { name, .. } => format!("R.text(v, {})", quoted(name)),
            })
            .collect();
        return kept(format!("c:query({})", pieces.join(" .. ")));
    }
    let (mut text, mut values) = (String::new(), Vec::new());
    for part in parts {
        match part {
            Part::Text(piece) => text.push_str(piece),
            Part::Variable { name, .. } => {
                text.push('?');
                values.push(format!("R.parameter(v[{}])", quoted(name)));
            }
        }
    }
    let statement = format!("R.statement(c, S, {number}, {}, \"{}\")", quoted(&text), "a".repeat(values.len()));
    let how = if is_piped { "defer" } else { "perform" };
    format!("{statement}:{how}({})", values.join(", "))
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
        assert!(lines[0].contains("[\"scale\"] = { \"Value of :scale\", 1 }, [\"delta\"] ="), "{lua}");
        assert!(!lines[0].contains("Value of :aid"), "{lua}");
        assert!(lines[0].ends_with("v[\"aid\"] = R.random(1, R.multiply(100, R.value(v, \"scale\"))) "), "{lua}");
        assert!(lines[1].contains("\"BEGIN;\"") && lines[2].contains("UPDATE t") && lines[4].contains("END;"), "{lua}");
        assert!(lines[2].contains(":perform(R.parameter(v[\"delta\"]), R.parameter(v[\"aid\"]))"), "{lua}");
    }

    #[test]
    fn what_cannot_be_a_parameter_goes_as_text() {
        let lua = |text: &str| {
            let script = Script::parse("x", text).unwrap();
            of_command(&script.commands[0], 0, Mode::Prepared, false)
        };
        assert_eq!(lua("SELECT ':a';"), "c:query(\"SELECT '\" .. R.text(v, \"a\") .. \"';\")");
        assert_eq!(lua("SELECT a ? 'b' FROM t;"), "c:query(\"SELECT a ? 'b' FROM t;\")");
        assert_eq!(
            lua("SELECT 1 AS a, :b \\gset x"),
            "R.keep(v, c, c:query(\"SELECT 1 AS a, \" .. R.text(v, \"b\")), \"x\", true)"
        );
    }
}
