//! Transactions that need no Lua: they compute integers, draw texts and send statements.
//!
//! A script of pgbench, or a transaction that always does the same (`lua/straight.lua`), registers a program and asks
//! to run it (`Ask::Plain`). From then on the session's requests come from here, and Lua waits until it is needed: the
//! loop has ended, a statement failed, or a value does not fit into an integer of 64 bits. Lua then runs that command
//! itself, so that every error is detected and worded there. For that, it finds the variables and the random numbers as
//! they were before the command, or takes back all random numbers of the transaction and runs it again.
//!
//! The text of a program is a list of words, each followed by a separator. A command begins with its name:
//!
//! * `set VARIABLE WORD…` computes a value, operands first, then the operator.
//! * `text TEXT FORMAT` draws a text as `sysbench.rand.string` does, for the next statement.
//! * `execute PARAMETER…` runs the prepared statement of this command. With `#ID…` before the parameters, it runs a
//!   statement of that list: its only one, or the one that a variable chooses from 1 on, given as `?VARIABLE`.
//! * `query PIECE…` sends a text. Several of them, with `|` in between, are a list like that of statements, and the
//!   variable that chooses comes first.
//!
//! Variables are numbers after a `$`, texts numbers after a `@`; a piece of text and a format follow a `'`. `begins`,
//! before everything else, means that a transaction may be left open.

use std::rc::Rc;

use assay_seam::{RowsPool, StatementId, Value, write_decimal};

use crate::random::{Distribution, Rng, Zipf};
use crate::request::Answer;

/// Follows each word of a program's text.
const SEPARATOR: char = '\u{1f}';

/// Maximum number of intermediate values in an expression.
const DEPTH_MAX: usize = 8;

/// Maximum number of texts of a statement.
const TEXTS_MAX: usize = 8;

/// A program, shared by all sessions that run it.
#[derive(Debug, PartialEq)]
pub(crate) struct Program {
    commands: Box<[PlainCommand]>,
    /// Number of variables.
    variables: usize,
    /// Whether a command executes the statement that its session prepared for it.
    is_bound: bool,
    may_begin: bool,
}

#[derive(Debug, PartialEq)]
enum PlainCommand {
    Set {
        variable: usize,
        value: Vec<PlainWord>,
    },
    Text {
        text: usize,
        format: Box<[u8]>,
    },
    /// Without a choice, the statement that the session prepared for this command.
    Execute {
        statement: Option<PlainChoice<StatementId>>,
        parameters: Box<[PlainParameter]>,
    },
    Query {
        text: PlainChoice<Box<[PlainPiece]>>,
    },
}

/// The only member of a list, or the one that a variable chooses, from 1 on.
#[derive(Debug, PartialEq)]
struct PlainChoice<T> {
    by: Option<usize>,
    from: Box<[T]>,
}

impl<T> PlainChoice<T> {
    /// `None`: nothing says which of several, or there is only one.
    fn new(by: Option<usize>, from: Vec<T>) -> Option<PlainChoice<T>> {
        (by.is_some() == (from.len() > 1)).then(|| PlainChoice { by, from: from.into() })
    }

    /// The chosen one; `None` if the variable holds no number in the list.
    #[inline]
    fn of(&self, slots: &[i64]) -> Option<&T> {
        let index = self.by.map_or(0, |by| slots[by].wrapping_sub(1));
        usize::try_from(index).ok().and_then(|index| self.from.get(index))
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum PlainParameter {
    Variable(usize),
    Text(usize),
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
    /// As pgbench's `random`.
    Random,
    /// As `sysbench.rand.uniform` and `sysbench.rand.default`.
    Uniform,
    Default,
}

/// What random values are drawn from and into.
pub(crate) struct PlainDraws<'a> {
    pub(crate) rng: &'a mut Rng,
    pub(crate) distribution: &'a Distribution,
    pub(crate) zipf: &'a mut Zipf,
    /// Texts of the next statement.
    pub(crate) texts: &'a mut PlainTexts,
}

/// Room for the texts of a statement, by number; used for one session after the other.
#[derive(Debug, Default)]
pub(crate) struct PlainTexts([Vec<u8>; TEXTS_MAX]);

#[derive(Debug, PartialEq)]
enum PlainPiece {
    Text(Box<[u8]>),
    Variable(usize),
    Drawn(usize),
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
    /// Its variables, then, in a program with bound statements, the statement of each command.
    slots: Box<[i64]>,
    /// The random numbers as they were before the transaction.
    before: Option<Rng>,
}

impl Program {
    /// Parses a program's text; `None`: it is not one.
    pub(crate) fn parse(text: &str) -> Option<Program> {
        let mut program = Program { commands: Box::default(), variables: 0, is_bound: false, may_begin: false };
        let mut commands = Vec::new();
        let variable = |word: &str| word.strip_prefix('$')?.parse::<u16>().ok().map(usize::from);
        let text_number = |word: &str| word.strip_prefix('@')?.parse().ok().filter(|text| *text < TEXTS_MAX);
        let mut most = 0;
        // Those drawn since the last statement: what others are is not known.
        let mut drawn = [false; TEXTS_MAX];
        let mut used = |variable: usize| {
            most = most.max(variable + 1);
            variable
        };
        let mut words = text.strip_suffix(SEPARATOR)?.split(SEPARATOR).peekable();
        while let Some(name) = words.next() {
            let mut arguments =
                std::iter::from_fn(|| words.next_if(|word| !matches!(*word, "set" | "text" | "execute" | "query")));
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
                "text" => {
                    let (text, format) = (text_number(arguments.next()?)?, arguments.next()?.strip_prefix('\'')?);
                    drawn[text] = true;
                    PlainCommand::Text { text, format: format.as_bytes().into() }
                }
                "execute" => {
                    let (mut by, mut from, mut parameters) = (None, Vec::new(), Vec::new());
                    for word in arguments {
                        if let Some(chooser) = word.strip_prefix('?') {
                            by = Some(used(variable(chooser)?));
                        } else if let Some(id) = word.strip_prefix('#') {
                            from.push(StatementId(id.parse().ok()?));
                        } else if let Some(text) = text_number(word) {
                            parameters.push(PlainParameter::Text(drawn[text].then_some(text)?));
                        } else {
                            parameters.push(PlainParameter::Variable(used(variable(word)?)));
                        }
                    }
                    let is_bound = by.is_none() && from.is_empty();
                    program.is_bound |= is_bound;
                    let statement = if is_bound { None } else { Some(PlainChoice::new(by, from)?) };
                    drawn = [false; TEXTS_MAX];
                    PlainCommand::Execute { statement, parameters: parameters.into() }
                }
                "query" => {
                    let (mut by, mut from) = (None, vec![Vec::new()]);
                    for word in arguments {
                        let piece = if let Some(text) = word.strip_prefix('\'') {
                            PlainPiece::Text(text.as_bytes().into())
                        } else if let Some(text) = text_number(word) {
                            PlainPiece::Drawn(drawn[text].then_some(text)?)
                        } else if let Some(chooser) = word.strip_prefix('?') {
                            by = Some(used(variable(chooser)?));
                            continue;
                        } else if word == "|" {
                            from.push(Vec::new());
                            continue;
                        } else {
                            PlainPiece::Variable(used(variable(word)?))
                        };
                        from.last_mut()?.push(piece);
                    }
                    drawn = [false; TEXTS_MAX];
                    PlainCommand::Query { text: PlainChoice::new(by, from.into_iter().map(Vec::into).collect())? }
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
            "uniform" => PlainWord::Uniform,
            "default" => PlainWord::Default,
            _ => PlainWord::Integer(word.parse().ok()?),
        })
    }

    /// `None`: Lua has to compute it.
    #[inline]
    fn apply(self, a: i64, b: i64, draws: &mut PlainDraws<'_>) -> Option<i64> {
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
                Some(a + (draws.rng.double() * (span + 1) as f64) as i64)
            }
            PlainWord::Uniform => Some(draws.rng.uniform(bound(a)?, bound(b)?).into()),
            PlainWord::Default => Some(draws.rng.draw(bound(a)?, bound(b)?, draws.distribution, draws.zipf).into()),
            PlainWord::Integer(_) | PlainWord::Variable(_) => None,
        }
    }
}

/// A bound of a range to draw from.
fn bound(value: i64) -> Option<u32> {
    u32::try_from(value).ok()
}

impl PlainRun {
    pub(crate) fn new(program: &Rc<Program>) -> PlainRun {
        let bound = if program.is_bound { program.commands.len() } else { 0 };
        let slots = vec![0; program.variables + bound].into();
        PlainRun { program: Rc::clone(program), connection: 0, left: 0, at: 0, slots, before: None }
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

    /// Random numbers from here on are those of the transaction that was begun last, once more.
    pub(crate) fn take_back(&self, rng: &mut Rng) {
        if let Some(before) = &self.before {
            *rng = before.clone();
        }
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
        draws: &mut PlainDraws<'_>,
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
            Answer::Begin(_) => self.before = Some(draws.rng.clone()),
            Answer::Proceed(false) if self.at == self.program.commands.len() => {
                return self.next().map_err(|leave| (leave, Answer::Done));
            }
            Answer::Proceed(true) => return Err((Leave::Open, Answer::Done)),
            _ => return Err((Leave::Over, Answer::Done)),
        }
        self.go_on(draws).map_err(|leave| (leave, Answer::Done))
    }

    fn go_on(&mut self, draws: &mut PlainDraws<'_>) -> Result<PlainStep, Leave> {
        loop {
            match self.program.commands.get(self.at) {
                Some(PlainCommand::Set { variable, value }) => {
                    let before = draws.rng.clone();
                    let Some(value) = self.compute(value, draws) else {
                        *draws.rng = before;
                        return Err(Leave::Do);
                    };
                    self.slots[*variable] = value;
                    self.at += 1;
                }
                Some(PlainCommand::Text { text, format }) => {
                    let target = &mut draws.texts.0[*text];
                    target.resize(format.len(), 0);
                    draws.rng.fill(format, target);
                    self.at += 1;
                }
                Some(PlainCommand::Execute { statement: Some(choice), .. }) if choice.of(&self.slots).is_none() => {
                    return Err(Leave::Do);
                }
                Some(PlainCommand::Execute { .. }) => return Ok(PlainStep::Execute),
                Some(PlainCommand::Query { text }) if text.of(&self.slots).is_none() => return Err(Leave::Do),
                Some(PlainCommand::Query { .. }) => return Ok(PlainStep::Query),
                None if self.program.may_begin => return Ok(PlainStep::InTransaction),
                None => return self.next(),
            }
        }
    }

    #[inline]
    fn compute(&self, value: &[PlainWord], draws: &mut PlainDraws<'_>) -> Option<i64> {
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
                    stack[depth - 1] = operator.apply(stack[depth - 1], stack[depth], draws)?;
                }
            }
        }
        Some(stack[0])
    }

    /// The prepared statement of the command that runs, and its parameters; `texts`: those that `resume` drew.
    #[inline]
    pub(crate) fn statement<'a>(&self, texts: &'a PlainTexts, parameters: &mut Vec<Value<'a>>) -> StatementId {
        parameters.clear();
        let Some(PlainCommand::Execute { statement, parameters: given }) = self.program.commands.get(self.at) else {
            return StatementId(0);
        };
        parameters.extend(given.iter().map(|parameter| match *parameter {
            PlainParameter::Variable(variable) => Value::Int(self.slots[variable]),
            PlainParameter::Text(text) => Value::Text(&texts.0[text]),
        }));
        match statement {
            Some(choice) => *choice.of(&self.slots).expect("`resume` has looked"),
            None => StatementId(self.slots[self.program.variables + self.at] as u32),
        }
    }

    /// The text of the command that runs; false where it is none. `texts`: those that `resume` drew.
    pub(crate) fn write_text(&self, texts: &PlainTexts, target: &mut Vec<u8>) -> bool {
        target.clear();
        let Some(PlainCommand::Query { text }) = self.program.commands.get(self.at) else { return false };
        let Some(pieces) = text.of(&self.slots) else { return false };
        for piece in pieces {
            match piece {
                PlainPiece::Text(piece) => target.extend_from_slice(piece),
                PlainPiece::Variable(variable) => write_decimal(self.slots[*variable], target),
                PlainPiece::Drawn(text) => target.extend_from_slice(&texts.0[*text]),
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::DistributionKind;
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
        zipf: Zipf,
        texts: PlainTexts,
        pool: RowsPool,
    }

    impl Session {
        fn new(text: &str, left: u64) -> Session {
            Session {
                run: run(text, left),
                rng: Rng::new(1, 1),
                zipf: Zipf::new(0.8),
                texts: PlainTexts::default(),
                pool: RowsPool::default(),
            }
        }

        fn resume(&mut self, answer: Answer) -> Result<PlainStep, Leave> {
            let distribution = Distribution { kind: DistributionKind::Zipfian, ..Distribution::default() };
            let mut draws = PlainDraws {
                rng: &mut self.rng,
                distribution: &distribution,
                zipf: &mut self.zipf,
                texts: &mut self.texts,
            };
            self.run.resume(answer, &mut draws, &mut self.pool).map_err(|(leave, _)| leave)
        }

        fn text(&self) -> String {
            let mut text = Vec::new();
            assert!(self.run.write_text(&self.texts, &mut text));
            String::from_utf8(text).unwrap()
        }

        fn statement(&self) -> String {
            let mut parameters = Vec::new();
            let statement = self.run.statement(&self.texts, &mut parameters);
            format!("{} {parameters:?}", statement.0)
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
        assert_eq!(session.statement(), "9 [Int(40), Int(6)]");
        assert_eq!(session.replied(), Ok(PlainStep::Query));
        assert_eq!(session.text(), "a= 40");
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
        assert_eq!(session.resume(Answer::Begin(Nanos::ZERO)), Ok(PlainStep::InTransaction));
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
    fn a_statement_may_be_one_of_a_list_and_have_texts() {
        let program = "set $0 1 2 uniform set $1 1 100 default text @0 '##-@ execute ?$0 #4 #7 @0 $1 execute #5";
        let mut session = Session::new(program, u64::MAX);
        let (mut rng, mut zipf) = (Rng::new(1, 1), Zipf::new(0.8));
        let mut seen = [false; 2];
        for _ in 0..50 {
            assert_eq!(session.resume(Answer::Begin(Nanos::ZERO)), Ok(PlainStep::Execute));
            let (chosen, id) = (rng.uniform(1, 2), rng.zipfian(1, 100, &mut zipf));
            let mut text = [0; 4];
            rng.fill(b"##-@", &mut text);
            let statement = [4, 7][chosen as usize - 1];
            seen[chosen as usize - 1] = true;
            assert_eq!(session.statement(), format!("{statement} [Text({:?}), Int({id})]", text.as_slice()));
            assert_eq!(session.replied(), Ok(PlainStep::Execute));
            assert_eq!(session.statement(), "5 []");
            assert_eq!(session.replied(), Ok(PlainStep::Next));
        }
        assert_eq!(seen, [true; 2]);
    }

    #[test]
    fn a_text_may_be_one_of_a_list_and_have_texts() {
        for (choice, text) in [(1, "a --- b 1"), (2, "2 --- c")] {
            let program = format!("set $0 {choice} text @0 '--- query ?$0 'a_ @0 '_b_ $0 | $0 '_ @0 '_c query 'd");
            let mut session = Session::new(&program, 1);
            assert_eq!(session.resume(Answer::Begin(Nanos::ZERO)), Ok(PlainStep::Query));
            assert_eq!(session.text(), text);
            assert_eq!(session.replied(), Ok(PlainStep::Query));
            assert_eq!(session.text(), "d");
        }
        let mut session = Session::new("set $0 3 query ?$0 'a | 'b", 1);
        assert_eq!(session.resume(Answer::Begin(Nanos::ZERO)), Err(Leave::Do));
    }

    #[test]
    fn random_numbers_of_a_transaction_can_be_taken_back() {
        let mut session =
            Session::new("set $0 1 1000000 uniform execute #0 $0 set $0 1 1000000 uniform execute #0 $0", 9);
        let mut statements = Vec::new();
        for _ in 0..2 {
            assert_eq!(session.resume(Answer::Begin(Nanos::ZERO)), Ok(PlainStep::Execute));
            statements.push(session.statement());
            assert_eq!(session.replied(), Ok(PlainStep::Execute));
            statements.push(session.statement());
            session.run.take_back(&mut session.rng);
            session.run.at = 0;
        }
        assert_eq!(statements[..2], statements[2..]);
        assert_ne!(statements[0], statements[1]);
    }

    #[test]
    fn a_choice_outside_of_its_list_is_left_to_lua() {
        for choice in [0, 3, -1] {
            let mut session = Session::new(&format!("set $0 {choice} execute ?$0 #4 #7"), 1);
            assert_eq!(session.resume(Answer::Begin(Nanos::ZERO)), Err(Leave::Do));
        }
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
            "execute @0",
            "text @0 '# execute #1 execute #1 @0",
            "text @8 '#",
            "text @0",
            "text $0 '#",
            "execute ?$0 $1",
            "execute #1 #2",
            "execute ?$0 #1",
            "execute #x",
            "query 'a | 'b",
            "query ?$0 'a",
            "query @0",
            "query a",
        ] {
            assert_eq!(program(text), None, "{text}");
        }
        let deep = format!("set $0 {}{}", "1 ".repeat(9), ["+"; 8].join(" "));
        assert_eq!(program(&deep), None);
    }
}
