//! A pgbench script as a list of commands: SQL and meta-commands.
//!
//! SQL ends with a semicolon outside quotes, comments and brackets, or where a backslash command starts; `\;` and `\:`
//! are the characters themselves. A backslash command extends to the end of its line; a backslash at the end of the
//! line continues it. Source: the manual's page on pgbench, "Custom Scripts"; psql's for how SQL is split.

use crate::expression::{self, Expression, Mistake};

/// A parsed script.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// As in reports: the file's name as given, or `<builtin: …>`.
    pub name: String,
    /// At least one.
    pub commands: Vec<Command>,
}

/// Errors in a script: one or more lines, in pgbench's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError(pub String);

/// One command.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// Its line in the file, from 1.
    pub line: usize,
    /// As in the report of `-r`: the first line of SQL, all of another command.
    pub shown: String,
    /// What to do.
    pub doing: Doing,
}

/// What a command does.
#[derive(Clone, Debug, PartialEq)]
pub enum Doing {
    /// Sends SQL.
    Sql {
        /// Its text and the variables in it, in order.
        parts: Vec<SqlPart>,
        /// What happens to the rows.
        keep: Keep,
    },
    /// `\set`
    Set {
        /// The variable.
        variable: String,
        /// Its value.
        value: Expression,
    },
    /// `\setshell` if it has a variable, else `\shell`: the words of the command.
    Shell {
        /// Where to store its output.
        variable: Option<String>,
        /// At least one; those that start with a colon are variables.
        words: Vec<String>,
    },
    /// `\sleep`
    Sleep {
        /// A number, or a variable with its colon.
        amount: String,
        /// Seconds per unit: 1e-6, 1e-3 or 1.
        seconds: f64,
    },
    /// `\if`
    If(Expression),
    /// `\elif`
    Elif(Expression),
    /// `\else`
    Else,
    /// `\endif`
    EndIf,
    /// `\startpipeline`
    StartPipeline,
    /// `\syncpipeline`
    SyncPipeline,
    /// `\endpipeline`
    EndPipeline,
}

/// What happens to the rows of an SQL command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keep {
    /// They are read and discarded.
    Nothing,
    /// `\gset`: the one row of the last statement becomes variables, with this prefix.
    One(String),
    /// `\aset`: the last row of each statement does.
    All(String),
}

/// A piece of SQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SqlPart {
    /// Unchanged text.
    Text(String),
    /// `:name`
    Variable {
        /// Without the colon.
        name: String,
        /// Whether it is inside quotes or a comment, where no parameter is possible.
        quoted: bool,
    },
}

impl Script {
    /// Parses `text`; `name` is its name in reports and messages.
    pub fn parse(name: &str, text: &str) -> Result<Script, ScriptError> {
        let mut reader = ScriptReader { name, text, at: 0, counted: (0, 1), commands: Vec::new() };
        reader.read()?;
        let commands = reader.commands;
        if commands.is_empty() {
            return Err(ScriptError(format!("empty command list for script \"{name}\"")));
        }
        check_conditions(name, &commands)?;
        Ok(Script { name: name.to_owned(), commands })
    }
}

/// Every `\if` must have an end, and no part of it twice.
fn check_conditions(name: &str, commands: &[Command]) -> Result<(), ScriptError> {
    let wrong = |number: usize, what: &str| {
        Err(ScriptError(format!("condition error in script \"{name}\" command {number}: {what}")))
    };
    // For each open one: whether its ELSE was seen.
    let mut open: Vec<bool> = Vec::new();
    for (i, command) in commands.iter().enumerate() {
        match (&command.doing, open.last_mut()) {
            (Doing::If(_), _) => open.push(false),
            (Doing::Elif(_), None) => return wrong(i + 1, "\\elif without matching \\if"),
            (Doing::Elif(_), Some(true)) => return wrong(i + 1, "\\elif after \\else"),
            (Doing::Else, None) => return wrong(i + 1, "\\else without matching \\if"),
            (Doing::Else, Some(true)) => return wrong(i + 1, "\\else after \\else"),
            (Doing::Else, Some(had_else)) => *had_else = true,
            (Doing::EndIf, None) => return wrong(i + 1, "\\endif without matching \\if"),
            (Doing::EndIf, Some(_)) => drop(open.pop()),
            _ => {}
        }
    }
    if open.is_empty() { Ok(()) } else { wrong(commands.len() + 1, "\\if without matching \\endif") }
}

struct ScriptReader<'a> {
    name: &'a str,
    text: &'a str,
    at: usize,
    /// A place, and its line.
    counted: (usize, usize),
    commands: Vec<Command>,
}

impl ScriptReader<'_> {
    /// The line of a place at or behind that of the last call.
    fn line(&mut self, at: usize) -> usize {
        let (from, line) = self.counted;
        let lines = self.text.as_bytes()[from..at].iter().filter(|byte| **byte == b'\n').count();
        self.counted = (at, line + lines);
        line + lines
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn read(&mut self) -> Result<(), ScriptError> {
        loop {
            self.skip_blanks();
            match self.rest().chars().next() {
                None => return Ok(()),
                Some('\\') if !self.rest().starts_with("\\;") && !self.rest().starts_with("\\:") => self.meta()?,
                Some(_) => self.sql(),
            }
        }
    }

    /// Blanks, and comments to the end of a line.
    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            let blanks = rest.len() - trimmed.len();
            let comment = if trimmed.starts_with("--") { trimmed.find('\n').unwrap_or(trimmed.len()) } else { 0 };
            self.at += blanks + comment;
            if blanks + comment == 0 {
                return;
            }
        }
    }

    /// Up to and including the semicolon, or up to a backslash command.
    fn sql(&mut self) {
        let start = self.at;
        let mut parts = Parts::default();
        let mut depth = 0_usize;
        while self.at < self.text.len() {
            let rest = &self.text[self.at..];
            if rest.starts_with("\\;") || rest.starts_with("\\:") {
                parts.text(&rest[1..2]);
                self.at += 2;
                continue;
            }
            if rest.starts_with('\\') {
                break;
            }
            if rest.starts_with("--") {
                self.at += rest.find('\n').unwrap_or(rest.len());
                continue;
            }
            let quote = quoted_length(rest, self.text[..self.at].chars().next_back());
            if quote > 0 {
                parts.substitutable(&rest[..quote], true);
                self.at += quote;
                continue;
            }
            if let Some((name, length)) = variable(rest) {
                parts.variable(name, false);
                self.at += length;
                continue;
            }
            let letter = rest.chars().next().expect("it is not at its end");
            // A cast is two colons, and no variable follows.
            let length =
                if letter == ':' { rest.bytes().take_while(|byte| *byte == b':').count() } else { letter.len_utf8() };
            parts.text(&rest[..length]);
            self.at += length;
            match letter {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                ';' if depth == 0 => break,
                _ => {}
            }
        }
        let parts = parts.trimmed();
        if parts.is_empty() {
            return;
        }
        let shown = shown(&parts);
        let doing = Doing::Sql { parts, keep: Keep::Nothing };
        let line = self.line(start);
        self.commands.push(Command { line, shown, doing });
    }

    /// A backslash command.
    fn meta(&mut self) -> Result<(), ScriptError> {
        let start = self.at;
        let mut end = start;
        loop {
            end += self.text[end..].find('\n').unwrap_or(self.text.len() - end);
            if end >= self.text.len() || !self.text[..end].ends_with('\\') {
                break;
            }
            end += 1;
        }
        self.at = end;
        let line = self.text[start..end].trim_end_matches(['\r', '\n']);
        let number = self.line(start);
        let words = words(&line[1..], 1);
        let name = words.first().map_or("", |(word, _)| word).to_owned();
        if name.is_empty() {
            return Ok(());
        }
        // Like pgbench: the error, details, whether the line is shown, and the position in it.
        let name_of_file = self.name;
        let refuse = |what: &str, more: Option<&str>, shows: bool, at: Option<usize>| {
            let more = more.map(|more| format!(" ({more})")).unwrap_or_default();
            let mut text = format!("{name_of_file}:{number}: {what}{more} in command \"{name}\"");
            if shows {
                text.push_str(&format!("\n{line}"));
            }
            if let Some(at) = at {
                text.push_str(&format!("\n{:at$}^ error found here", ""));
            }
            ScriptError(text)
        };
        let mistake = |mistake: Mistake| refuse(&mistake.what, mistake.more.as_deref(), true, Some(mistake.at));
        let behind = |word: usize| words.get(word).map_or(line.len(), |(text, at)| at + text.len());
        let without_arguments = |doing: Doing| match words.get(1) {
            Some(_) => Err(refuse("unexpected argument", None, true, None)),
            None => Ok(doing),
        };
        let command = name.to_ascii_lowercase();
        let is_expression = matches!(command.as_str(), "set" | "if" | "elif");
        if words.len() > WORDS_MAX && !is_expression {
            return Err(refuse("too many arguments", None, false, None));
        }
        let doing = match command.as_str() {
            "set" => {
                let Some((variable, _)) = words.get(1) else {
                    return Err(refuse("missing argument", None, false, None));
                };
                let value = expression::parse(line, behind(1)).map_err(mistake)?;
                Doing::Set { variable: (*variable).to_owned(), value }
            }
            "if" => Doing::If(expression::parse(line, behind(0)).map_err(mistake)?),
            "elif" => Doing::Elif(expression::parse(line, behind(0)).map_err(mistake)?),
            "else" => without_arguments(Doing::Else)?,
            "endif" => without_arguments(Doing::EndIf)?,
            "startpipeline" => without_arguments(Doing::StartPipeline)?,
            "syncpipeline" => without_arguments(Doing::SyncPipeline)?,
            "endpipeline" => without_arguments(Doing::EndPipeline)?,
            "sleep" => {
                let Some(&(mut amount, at)) = words.get(1) else {
                    return Err(refuse("missing argument", None, true, None));
                };
                if let Some((_, at)) = words.get(3) {
                    return Err(refuse("too many arguments", None, true, Some(*at)));
                }
                let mut unit = words.get(2).copied();
                // A number may be followed by its unit without a blank.
                let digits = amount.strip_prefix(['+', '-']).unwrap_or(amount);
                let behind = digits.find(|letter: char| !letter.is_ascii_digit()).filter(|end| *end > 0);
                if let (None, Some(end)) = (unit, behind) {
                    let end = amount.len() - digits.len() + end;
                    unit = Some((&amount[end..], at + end));
                    amount = &amount[..end];
                }
                if !amount.starts_with(':') && amount.parse::<i64>().is_err() {
                    let what = "invalid sleep time, must be an integer";
                    return Err(refuse(what, Some(amount), true, Some(at)));
                }
                let seconds = match unit {
                    None => 1.0,
                    Some((unit, at)) => match unit.to_ascii_lowercase().as_str() {
                        "us" => 1e-6,
                        "ms" => 1e-3,
                        "s" => 1.0,
                        _ => {
                            let what = "unrecognized time unit, must be us, ms or s";
                            return Err(refuse(what, Some(unit), true, Some(at)));
                        }
                    },
                };
                Doing::Sleep { amount: amount.to_owned(), seconds }
            }
            "shell" | "setshell" => {
                let mut given = words[1..].iter().map(|(word, _)| (*word).to_owned());
                let variable = (command == "setshell").then(|| given.next());
                let words: Vec<String> = given.collect();
                if words.is_empty() {
                    let what = if variable.is_none() { "missing command" } else { "missing argument" };
                    return Err(refuse(what, None, true, None));
                }
                Doing::Shell { variable: variable.flatten(), words }
            }
            "gset" | "aset" => {
                if words.len() > 2 {
                    return Err(refuse("too many arguments", None, true, None));
                }
                let prefix = words.get(1).map_or(String::new(), |(word, _)| (*word).to_owned());
                let wrong = |what: &str| Err(ScriptError(format!("{name_of_file}:{number}: \\gset {what}")));
                let before = self.commands.last().map(|command| format!(" ({})", command.shown)).unwrap_or_default();
                return match self.commands.last_mut().map(|command| &mut command.doing) {
                    Some(Doing::Sql { keep: keep @ Keep::Nothing, .. }) => {
                        *keep = if command == "gset" { Keep::One(prefix) } else { Keep::All(prefix) };
                        Ok(())
                    }
                    Some(Doing::Sql { .. }) => wrong("must follow an SQL command"),
                    _ => wrong(&format!("must follow an SQL command{before}")),
                };
            }
            _ => return Err(refuse("invalid command", None, true, None)),
        };
        let shown = line.trim_end().to_owned();
        self.commands.push(Command { line: number, shown, doing });
        Ok(())
    }
}

/// Words of a command that pgbench accepts, its name included.
const WORDS_MAX: usize = 256;

/// Words and the position of each, plus `offset`.
fn words(line: &str, offset: usize) -> Vec<(&str, usize)> {
    let mut words = Vec::new();
    let mut start = None;
    for (at, letter) in line.char_indices().chain([(line.len(), ' ')]) {
        let is_blank = letter.is_whitespace() || (letter == '\\' && line[at + 1..].starts_with('\n'));
        match (start, is_blank) {
            (None, false) => start = Some(at),
            (Some(from), true) => {
                words.push((&line[from..at], offset + from));
                start = None;
            }
            _ => {}
        }
    }
    words
}

/// Pieces of SQL in the order found.
#[derive(Default)]
struct Parts(Vec<SqlPart>);

impl Parts {
    fn text(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(SqlPart::Text(last)) => last.push_str(text),
            _ => self.0.push(SqlPart::Text(text.to_owned())),
        }
    }

    fn variable(&mut self, name: &str, quoted: bool) {
        self.0.push(SqlPart::Variable { name: name.to_owned(), quoted });
    }

    /// Text with variables in it.
    fn substitutable(&mut self, mut text: &str, quoted: bool) {
        while let Some(at) = text.find(':') {
            self.text(&text[..at]);
            text = &text[at..];
            match variable(text) {
                Some((name, length)) => {
                    self.variable(name, quoted);
                    text = &text[length..];
                }
                None => {
                    let length = text.bytes().take_while(|byte| *byte == b':').count();
                    self.text(&text[..length]);
                    text = &text[length..];
                }
            }
        }
        self.text(text);
    }

    /// Without surrounding blanks; empty if there is nothing else.
    fn trimmed(mut self) -> Vec<SqlPart> {
        if let Some(SqlPart::Text(first)) = self.0.first_mut() {
            *first = first.trim_start().to_owned();
        }
        if let Some(SqlPart::Text(last)) = self.0.last_mut() {
            *last = last.trim_end().to_owned();
        }
        self.0.retain(|part| !matches!(part, SqlPart::Text(text) if text.is_empty()));
        self.0
    }
}

fn shown(parts: &[SqlPart]) -> String {
    let mut text = String::new();
    for part in parts {
        match part {
            SqlPart::Text(piece) => text.push_str(piece),
            SqlPart::Variable { name, .. } => text.extend([":", name]),
        }
    }
    text.lines().next().unwrap_or_default().to_owned()
}

/// The name of the variable at the start of a text, and the length of both.
fn variable(text: &str) -> Option<(&str, usize)> {
    let name = text.strip_prefix(':')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii();
    let end = name.find(|c| !is_name(c)).unwrap_or(name.len());
    let begins_well = name.chars().next().is_some_and(|c| !c.is_ascii_digit());
    (end > 0 && begins_well).then(|| (&name[..end], end + 1))
}

/// Length of the quoted text or comment at the start of a text; 0 if there is none. `before`: the character before it.
fn quoted_length(text: &str, before: Option<char>) -> usize {
    let bytes = text.as_bytes();
    match bytes[0] {
        quote @ (b'\'' | b'"') => {
            let escapes = quote == b'\'' && matches!(before, Some('e' | 'E'));
            let mut at = 1;
            while at < bytes.len() {
                match bytes[at] {
                    b'\\' if escapes => at += 1,
                    byte if byte == quote && bytes.get(at + 1) == Some(&quote) => at += 1,
                    byte if byte == quote => return at + 1,
                    _ => {}
                }
                at += 1;
            }
            bytes.len()
        }
        b'/' if text.starts_with("/*") => {
            let (mut at, mut depth) = (2, 1);
            while at < bytes.len() && depth > 0 {
                match &bytes[at..bytes.len().min(at + 2)] {
                    b"/*" => (depth, at) = (depth + 1, at + 1),
                    b"*/" => (depth, at) = (depth - 1, at + 1),
                    _ => {}
                }
                at += 1;
            }
            at
        }
        b'$' if !before.is_some_and(|c| c.is_alphanumeric() || c == '_') => {
            let tag = text[1..].find(|c: char| !(c.is_alphanumeric() || c == '_'));
            let Some(tag) = tag.filter(|end| text[1 + end..].starts_with('$')) else { return 0 };
            if text[1..].starts_with(|c: char| c.is_ascii_digit()) {
                return 0;
            }
            let mark = &text[..tag + 2];
            text[mark.len()..].find(mark).map_or(text.len(), |at| at + 2 * mark.len())
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let script = Script::parse("x.sql", text).unwrap_or_else(|error| panic!("{}", error.0));
        script.commands.into_iter().map(|command| format!("{}: {}", command.line, command.shown)).collect()
    }

    #[test]
    fn a_script_is_cut_as_psql_cuts_it() {
        let text = "SELECT 1;  -- c1\n/* block; */ SELECT 2 ; -- foo; bar\n  SELECT $a$;$a$, (1;2), ';', \"q;\"; \\set x 1\n\
                    SELECT 3;SELECT 4; SELECT 5 \\;  SELECT 6;\n";
        assert_eq!(
            shown(text),
            [
                "1: SELECT 1;",
                "2: /* block; */ SELECT 2 ;",
                "3: SELECT $a$;$a$, (1;2), ';', \"q;\";",
                "3: \\set x 1",
                "4: SELECT 3;",
                "4: SELECT 4;",
                "4: SELECT 5 ;  SELECT 6;"
            ]
        );
    }

    #[test]
    fn variables_are_found_and_casts_are_not() {
        let script = Script::parse("x", "SELECT :a, x::int, ':b', a[1:2] \\gset p_").unwrap();
        let Doing::Sql { parts, keep } = &script.commands[0].doing else { panic!("{script:?}") };
        let names: Vec<(&str, bool)> = parts
            .iter()
            .filter_map(|part| match part {
                SqlPart::Variable { name, quoted } => Some((name.as_str(), *quoted)),
                SqlPart::Text(_) => None,
            })
            .collect();
        assert_eq!(names, [("a", false), ("b", true)]);
        assert_eq!(*keep, Keep::One("p_".to_owned()));
    }

    #[track_caller]
    fn refused(text: &str, words: &str) {
        assert_eq!(Script::parse("f.sql", text).unwrap_err().0, words, "{text}");
    }

    /// In the words of pgbench 15.
    #[test]
    fn mistakes_are_told_as_by_pgbench() {
        refused("\\foo", "f.sql:1: invalid command in command \"foo\"\n\\foo");
        refused("\\set", "f.sql:1: missing argument in command \"set\"");
        refused("\\sleep", "f.sql:1: missing argument in command \"sleep\"\n\\sleep");
        refused(
            "\\sleep 1 xx",
            "f.sql:1: unrecognized time unit, must be us, ms or s (xx) in command \"sleep\"\n\\sleep 1 xx\n         \
             ^ error found here",
        );
        refused("\\if true\nSELECT 1;", "condition error in script \"f.sql\" command 3: \\if without matching \\endif");
        refused("\\gset", "f.sql:1: \\gset must follow an SQL command");
        refused("-- nothing", "empty command list for script \"f.sql\"");
        refused("\\set x 1 +", "f.sql:1: syntax error in command \"set\"\n\\set x 1 +\n          ^ error found here");
    }
}
