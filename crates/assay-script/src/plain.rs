//! Transactions that need no Lua: they compute integers and send statements.
//!
//! A compiled script registers a program and asks to run it (`Ask::Plain`). From then on the session's requests come
//! from here, and Lua waits until it is needed: the loop has ended, a statement failed, or a value does not fit into an
//! integer of 64 bits. Lua then finds the variables and the random numbers as they were before that command and runs
//! the command itself, so that every error is detected and worded there.
//!
//! The text of a program is a list of words, each followed by a separator. A command begins with its name: `set
//! VARIABLE WORD…` computes a value (operands first, then the operator), `execute VARIABLE…` runs the prepared
//! statement of this command, `query PIECE…` sends a text. Variables are numbers after a `$`; a piece of text follows a
//! `'`. `begins`, before everything else, means that a transaction may be left open.

use std::rc::Rc;

use assay_seam::{RowsPool, StatementId, Value, write_decimal};

use crate::random::Rng;
use crate::request::Answer;

/// Follows each word of a program's text.
const SEPARATOR: char = '\u{1f}';

/// Maximum number of intermediate values in an expression.
const DEPTH_MAX: usize = 8;

/// A program, shared by all sessions that run it.
#[derive(Debug, PartialEq)]
pub(crate) struct Program {
    commands: Box<[PlainCommand]>,
    /// Number of variables.
    variables: usize,
    may_begin: bool,
}

#[derive(Debug, PartialEq)]
enum PlainCommand {
    Set { variable: usize, value: Vec<PlainWord> },
    Execute { parameters: Vec<usize> },
    Query { pieces: Vec<PlainPiece> },
}

/// Part of an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
enum PlainWord {
    Integer(i64),
    Variable(usize),
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Random,
}

#[derive(Debug, PartialEq)]
enum PlainPiece {
    Text(Box<[u8]>),
    Variable(usize),
}

/// A session's next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlainStep {
    /// The next transaction.
    Next,
    Execute,
    Query,
    InTransaction,
}

/// Why Lua has to continue; `lua/plain.lua` has the same numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    /// No more transactions.
    Over = 1,
    /// The transaction is at a command whose value is not an integer of 64 bits.
    Do = 2,
    /// The server refused the command.
    Failed = 3,
    /// The transaction is at its end, and one is open on the server.
    Open = 4,
}

/// A session's place in a program.
#[derive(Debug)]
pub(crate) struct PlainRun {
    program: Rc<Program>,
    pub(crate) connection: u32,
    /// Number of transactions left to start.
    pub(crate) left: u64,
    /// The current command. 0 <= at <= commands.len()
    at: usize,
    /// Its variables, then for each command the number of its prepared statement.
    slots: Box<[i64]>,
}

impl Program {
    /// Parses a program's text; `None`: it is not one.
    pub(crate) fn parse(text: &str) -> Option<Program> {
        let mut program = Program { commands: Box::default(), variables: 0, may_begin: false };
        let mut commands = Vec::new();
        let variable = |word: &str| word.strip_prefix('$')?.parse::<u16>().ok().map(usize::from);
        let mut most = 0;
        let mut used = |variable: usize| {
            most = most.max(variable + 1);
            variable
        };
        let mut words = text.strip_suffix(SEPARATOR)?.split(SEPARATOR).peekable();
        while let Some(name) = words.next() {
            let mut arguments =
                std::iter::from_fn(|| words.next_if(|word| !matches!(*word, "set" | "execute" | "query")));
            commands.push(match name {
                "begins" => {
                    program.may_begin = true;
                    continue;
                }
                "set" => {
                    let target = used(variable(arguments.next()?)?);
                    let read = |word: &str| match variable(word) {
                        Some(variable) => Some(PlainWord::Variable(used(variable))),
                        None => PlainWord::parse(word),
                    };
                    let value = arguments.map(read).collect::<Option<Vec<PlainWord>>>()?;
                    check_depth(&value)?;
                    PlainCommand::Set { variable: target, value }
                }
                "execute" => {
                    let parameters = arguments.map(|word| Some(used(variable(word)?)));
                    PlainCommand::Execute { parameters: parameters.collect::<Option<_>>()? }
                }
                "query" => {
                    let read = |word: &str| match word.strip_prefix('\'') {
                        Some(text) => Some(PlainPiece::Text(text.as_bytes().into())),
                        None => Some(PlainPiece::Variable(used(variable(word)?))),
                    };
                    PlainCommand::Query { pieces: arguments.map(read).collect::<Option<_>>()? }
                }
                _ => return None,
            });
        }
        (program.commands, program.variables) = (commands.into(), most);
        (!program.commands.is_empty()).then_some(program)
    }
}

/// Every operator has its operands, one value remains at the end, and there are never too many.
fn check_depth(value: &[PlainWord]) -> Option<()> {
    let mut depth = 0_usize;
    for word in value {
        depth = match word {
            PlainWord::Integer(_) | PlainWord::Variable(_) => depth + 1,
            _ => depth.checked_sub(1).filter(|left| *left > 0)?,
        };
        if depth > DEPTH_MAX {
            return None;
        }
    }
    (depth == 1).then_some(())
}

impl PlainWord {
    fn parse(word: &str) -> Option<PlainWord> {
        Some(match word {
            "+" => PlainWord::Add,
            "-" => PlainWord::Subtract,
            "*" => PlainWord::Multiply,
            "/" => PlainWord::Divide,
            "%" => PlainWord::Remainder,
            "random" => PlainWord::Random,
            _ => PlainWord::Integer(word.parse().ok()?),
        })
    }

    /// `None`: Lua has to compute it.
    #[inline]
    fn apply(self, a: i64, b: i64, rng: &mut Rng) -> Option<i64> {
        match self {
            PlainWord::Add => a.checked_add(b),
            PlainWord::Subtract => a.checked_sub(b),
            PlainWord::Multiply => a.checked_mul(b),
            PlainWord::Divide => a.checked_div(b),
            PlainWord::Remainder if b == -1 => Some(0),
            PlainWord::Remainder => a.checked_rem(b),
            PlainWord::Random => {
                // As `R.random` in runtime.lua draws, and from no larger range.
                let span = b.checked_sub(a).filter(|span| (0..(1 << 50) - 1).contains(span))?;
                Some(a + (rng.double() * (span + 1) as f64) as i64)
            }
            PlainWord::Integer(_) | PlainWord::Variable(_) => None,
        }
    }
}

impl PlainRun {
    pub(crate) fn new(program: &Rc<Program>) -> PlainRun {
        let slots = vec![0; program.variables + program.commands.len()].into();
        PlainRun { program: Rc::clone(program), connection: 0, left: 0, at: 0, slots }
    }

    /// A variable's value; 0 where there is no such variable.
    pub(crate) fn value(&self, variable: usize) -> i64 {
        self.slots[..self.program.variables].get(variable).copied().unwrap_or(0)
    }

    pub(crate) fn set(&mut self, variable: usize, value: i64) {
        if let Some(slot) = self.slots[..self.program.variables].get_mut(variable) {
            *slot = value;
        }
    }

    /// The prepared statement of a command.
    pub(crate) fn bind(&mut self, command: usize, statement: u32) {
        if let Some(slot) = self.slots.get_mut(self.program.variables + command) {
            *slot = statement.into();
        }
    }

    /// The current command.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Asks for the next transaction.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<PlainStep, Leave> {
        self.at = 0;
        self.left = self.left.checked_sub(1).ok_or(Leave::Over)?;
        Ok(PlainStep::Next)
    }

    /// Takes the answer to the last request and makes the next one. `Err`: Lua has to continue, with what is left of
    /// the answer.
    #[inline]
    pub(crate) fn resume(
        &mut self,
        answer: Answer,
        rng: &mut Rng,
        pool: &mut RowsPool,
    ) -> Result<PlainStep, (Leave, Answer)> {
        match answer {
            Answer::Reply(reply, verdict) => {
                if reply.error.is_some() {
                    return Err((Leave::Failed, Answer::Reply(reply, verdict)));
                }
                if let Some(rows) = reply.rows {
                    pool.put(rows);
                }
                self.at += 1;
            }
            Answer::Begin(_) => {}
            Answer::Proceed(false) if self.at == self.program.commands.len() => {
                return self.next().map_err(|leave| (leave, Answer::Done));
            }
            Answer::Proceed(true) => return Err((Leave::Open, Answer::Done)),
            _ => return Err((Leave::Over, Answer::Done)),
        }
        self.go_on(rng).map_err(|leave| (leave, Answer::Done))
    }

    fn go_on(&mut self, rng: &mut Rng) -> Result<PlainStep, Leave> {
        loop {
            match self.program.commands.get(self.at) {
                Some(PlainCommand::Set { variable, value }) => {
                    let before = rng.clone();
                    let Some(value) = self.compute(value, rng) else {
                        *rng = before;
                        return Err(Leave::Do);
                    };
                    self.slots[*variable] = value;
                    self.at += 1;
                }
                Some(PlainCommand::Execute { .. }) => return Ok(PlainStep::Execute),
                Some(PlainCommand::Query { .. }) => return Ok(PlainStep::Query),
                None if self.program.may_begin => return Ok(PlainStep::InTransaction),
                None => return self.next(),
            }
        }
    }

    #[inline]
    fn compute(&self, value: &[PlainWord], rng: &mut Rng) -> Option<i64> {
        let (mut stack, mut depth) = ([0; DEPTH_MAX], 0);
        for word in value {
            match *word {
                PlainWord::Integer(integer) => {
                    stack[depth] = integer;
                    depth += 1;
                }
                PlainWord::Variable(variable) => {
                    stack[depth] = self.slots[variable];
                    depth += 1;
                }
                operator => {
                    depth -= 1;
                    stack[depth - 1] = operator.apply(stack[depth - 1], stack[depth], rng)?;
                }
            }
        }
        Some(stack[0])
    }

    /// The prepared statement of the command that runs, and its parameters.
    #[inline]
    pub(crate) fn statement(&self, parameters: &mut Vec<Value<'static>>) -> StatementId {
        parameters.clear();
        if let Some(PlainCommand::Execute { parameters: variables }) = self.program.commands.get(self.at) {
            parameters.extend(variables.iter().map(|variable| Value::Int(self.slots[*variable])));
        }
        StatementId(self.slots[self.program.variables + self.at] as u32)
    }

    /// The text of the command that runs; false where it is none.
    pub(crate) fn write_text(&self, text: &mut Vec<u8>) -> bool {
        text.clear();
        let Some(PlainCommand::Query { pieces }) = self.program.commands.get(self.at) else { return false };
        for piece in pieces {
            match piece {
                PlainPiece::Text(piece) => text.extend_from_slice(piece),
                PlainPiece::Variable(variable) => write_decimal(self.slots[*variable], text),
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Verdict;
    use assay_seam::{Class, Nanos, Reply, StatementError};

    fn program(text: &str) -> Option<Program> {
        Program::parse(&text.split(' ').map(|word| word.replace('_', " ") + "\u{1f}").collect::<String>())
    }

    fn run(text: &str, left: u64) -> PlainRun {
        PlainRun { left, ..PlainRun::new(&Rc::new(program(text).expect("a program"))) }
    }

    struct Session {
        run: PlainRun,
        rng: Rng,
        pool: RowsPool,
    }

    impl Session {
        fn new(text: &str, left: u64) -> Session {
            Session { run: run(text, left), rng: Rng::new(1, 1), pool: RowsPool::default() }
        }

        fn resume(&mut self, answer: Answer) -> Result<PlainStep, Leave> {
            self.run.resume(answer, &mut self.rng, &mut self.pool).map_err(|(leave, _)| leave)
        }

        fn replied(&mut self) -> Result<PlainStep, Leave> {
            self.resume(Answer::Reply(Reply::default(), Verdict::Fatal))
        }
    }

    #[test]
    fn commands_run_in_turn_and_transactions_as_often_as_is_left() {
        let mut session = Session::new("set $0 7 $1 * 2 - execute $0 $1 query 'a=_ $0", 2);
        session.run.set(1, 6);
        session.run.bind(1, 9);
        assert_eq!(session.run.next(), Ok(PlainStep::Next));
        assert_eq!(session.resume(Answer::Begin(Nanos::ZERO)), Ok(PlainStep::Execute));
        let mut parameters = Vec::new();
        assert_eq!(session.run.statement(&mut parameters), StatementId(9));
        assert_eq!(parameters, [Value::Int(40), Value::Int(6)]);
        assert_eq!(session.replied(), Ok(PlainStep::Query));
        let mut text = Vec::new();
        assert!(session.run.write_text(&mut text));
        assert_eq!(String::from_utf8(text).unwrap(), "a= 40");
        assert_eq!(session.replied(), Ok(PlainStep::Next));
        assert_eq!(session.resume(Answer::Begin(Nanos::ZERO)), Ok(PlainStep::Execute));
        assert_eq!((session.replied(), session.replied()), (Ok(PlainStep::Query), Err(Leave::Over)));
    }

    #[test]
    fn what_has_to_be_decided_is_left_to_lua() {
        let mut session = Session::new("begins set $0 1 6 random execute $0 set $1 1 $0 $2 - /", u64::MAX);
        assert_eq!(session.run.next(), Ok(PlainStep::Next));
        assert_eq!(session.resume(Answer::Begin(Nanos::ZERO)), Ok(PlainStep::Execute));
        let refused = || Reply::failed(StatementError::client(Class::Other, "no"));
        assert_eq!(session.resume(Answer::Reply(refused(), Verdict::Fatal)), Err(Leave::Failed));
        assert_eq!(session.run.at(), 1);
        let drawn = session.run.value(0);
        assert!((1..=6).contains(&drawn));
        session.run.set(2, drawn);
        assert_eq!((session.replied(), session.run.at()), (Err(Leave::Do), 2), "a division by zero");
        session.run.set(2, drawn + 1);
        assert_eq!(session.run.go_on(&mut session.rng), Ok(PlainStep::InTransaction));
        assert_eq!(session.run.value(1), -1);
        assert_eq!(session.resume(Answer::Proceed(true)), Err(Leave::Open));
        assert_eq!(session.resume(Answer::Proceed(false)), Ok(PlainStep::Next));
        assert_eq!(session.resume(Answer::Proceed(false)), Err(Leave::Over));
    }

    #[test]
    fn random_numbers_are_given_back_when_a_command_is_left_undone() {
        let mut session = Session::new("set $0 1 100 random 9223372036854775807 +", 1);
        let before = format!("{:?}", session.rng);
        assert_eq!(session.resume(Answer::Begin(Nanos::ZERO)), Err(Leave::Do));
        assert_eq!(format!("{:?}", session.rng), before);
    }

    #[test]
    fn texts_that_are_no_programs_are_refused() {
        assert!(Program::parse("").is_none());
        for text in [
            "begins",
            "set",
            "set $0",
            "set $0 1 +",
            "set $0 1 2",
            "set x 1",
            "set $0 1.5",
            "run",
            "execute 5",
            "query a",
        ] {
            assert_eq!(program(text), None, "{text}");
        }
        let deep = format!("set $0 {}{}", "1 ".repeat(9), ["+"; 8].join(" "));
        assert_eq!(program(&deep), None);
    }
}
