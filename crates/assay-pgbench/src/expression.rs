//! The expressions of `\set` and `\if`: parsed to steps in postfix order, from which come Lua, and words for plain
//! programs.
//!
//! Operators, in order of increasing precedence: OR, AND, NOT, IS, comparisons (which do not chain), bitwise operators
//! (all alike), + -, * / %, the minus sign. `lua/runtime.lua` implements them. Source: the manual's page on pgbench,
//! "Built-in Operators" and "Built-In Functions"; what it leaves open (precedence of the bitwise operators, positions
//! of errors) was found by running pgbench 15.
//!
//! Neither parsing nor the Lua nests with the expression: thousands of brackets are allowed, and Lua allows few levels.

use std::fmt::Write;
use std::iter::Peekable;
use std::vec::IntoIter;

/// What is wrong with an expression, and where: bytes from the start of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// In pgbench's words.
    pub what: String,
    /// More about it, in brackets.
    pub more: Option<String>,
    /// Position of the last character that was read.
    pub at: usize,
}

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    /// Each step comes behind its operands.
    steps: Vec<StackStep>,
    /// In the order of their first use.
    pub variables: Vec<String>,
}

/// What a step does with a stack of values.
#[derive(Clone, Debug, PartialEq)]
enum StackStep {
    Integer(i64),
    Double(f64),
    /// TRUE, FALSE or NULL, as Lua.
    Constant(&'static str),
    Variable(String),
    /// A function of the runtime takes this many values and puts its own.
    Call(&'static str, usize),
    /// Between the operands of AND and OR: the first decides, or gives way to the second.
    And,
    Or,
    /// Behind the second.
    Joined,
    /// More values than a function takes.
    TooMany(usize),
    /// CASE begins.
    Case,
    /// Behind WHEN's condition, THEN's result, ELSE's.
    When,
    Then,
    End,
}

/// A word of an expression of integers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpressionWord {
    /// A number.
    Integer(i64),
    /// A variable's value.
    Variable(String),
    /// What is done with the two values in front of it: `+ - * / %` or `random`.
    Operator(&'static str),
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Int(u64),
    Double(f64),
    Variable(String),
    Word(String),
    Sign(&'static str),
    End,
}

/// End of a token: the position of its last byte.
type Placed = (Token, usize);

/// Longest first.
const SIGNS: [&str; 21] =
    ["<>", "!=", "<=", ">=", "<<", ">>", "<", ">", "=", "+", "-", "*", "/", "%", "(", ")", ",", "|", "#", "&", "~"];

/// Functions: name, minimum and maximum number of arguments.
const FUNCTIONS: [(&str, usize, usize); 21] = [
    ("abs", 1, 1),
    ("debug", 1, 1),
    ("double", 1, 1),
    ("exp", 1, 1),
    ("greatest", 1, usize::MAX),
    ("hash", 1, 2),
    ("hash_fnv1a", 1, 2),
    ("hash_murmur2", 1, 2),
    ("int", 1, 1),
    ("least", 1, usize::MAX),
    ("ln", 1, 1),
    ("mod", 2, 2),
    ("permute", 2, 3),
    ("pi", 0, 0),
    ("pow", 2, 2),
    ("power", 2, 2),
    ("random", 2, 2),
    ("random_exponential", 3, 3),
    ("random_gaussian", 3, 3),
    ("random_zipfian", 3, 3),
    ("sqrt", 1, 1),
];

/// Words that are not names of functions.
const KEYWORDS: [&str; 14] =
    ["and", "case", "else", "end", "false", "is", "isnull", "not", "notnull", "null", "or", "then", "true", "when"];

/// Parses the expression that starts at `start` of `line`.
pub fn parse(line: &str, start: usize) -> Result<Expression, Mistake> {
    let tokens = tokens(line, start).into_iter().peekable();
    let mut parser = Parser { tokens, line_end: line.len(), steps: Vec::new(), open: Vec::new(), room: ROOM };
    loop {
        parser.operand()?;
        if parser.operators()? {
            let mut variables = Vec::new();
            for step in &parser.steps {
                if let StackStep::Variable(name) = step
                    && !variables.contains(name)
                {
                    variables.push(name.clone());
                }
            }
            return Ok(Expression { steps: parser.steps, variables });
        }
    }
}

fn syntax(at: usize) -> Mistake {
    Mistake { what: "syntax error".to_owned(), more: None, at }
}

/// The tokens; an error in one of them ends them, and matters when the parser gets there.
fn tokens(line: &str, start: usize) -> Vec<Result<Placed, Mistake>> {
    let bytes = line.as_bytes();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
    let run =
        |from: usize, test: &dyn Fn(u8) -> bool| from + bytes[from..].iter().take_while(|byte| test(**byte)).count();
    let mut tokens = Vec::new();
    let mut at = start;
    while at < bytes.len() {
        let byte = bytes[at];
        // A backslash at the end of a line joins it with the next.
        if byte.is_ascii_whitespace() || (byte == b'\\' && bytes.get(at + 1) == Some(&b'\n')) {
            at += 1;
            continue;
        }
        let digit = |byte: u8| byte.is_ascii_digit();
        let (token, end) = if digit(byte) || (byte == b'.' && bytes.get(at + 1).is_some_and(|next| digit(*next))) {
            let mut end = run(at, &digit);
            if bytes.get(end) == Some(&b'.') {
                end = run(end + 1, &digit);
            }
            if matches!(bytes.get(end), Some(b'e' | b'E')) {
                let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
                let exponent = run(end + 1 + sign, &digit);
                if exponent > end + 1 + sign {
                    end = exponent;
                }
            }
            let text = &line[at..end];
            let overflow = |what: &str| Mistake {
                what: format!("{what} constant overflow"),
                more: Some(text.to_owned()),
                at: end - 1,
            };
            if text.bytes().all(digit) {
                match text.parse::<u64>() {
                    Ok(number) if number <= 1 << 63 => (Token::Int(number), end),
                    _ => {
                        tokens.push(Err(overflow("bigint")));
                        return tokens;
                    }
                }
            } else {
                match text.parse::<f64>() {
                    Ok(number) if number.is_finite() => (Token::Double(number), end),
                    _ => {
                        tokens.push(Err(overflow("double")));
                        return tokens;
                    }
                }
            }
        } else if byte == b':' && bytes.get(at + 1).is_some_and(|next| is_name(*next)) {
            let end = run(at + 1, &is_name);
            (Token::Variable(line[at + 1..end].to_owned()), end)
        } else if byte.is_ascii_alphabetic() || byte == b'_' {
            let end = run(at, &is_name);
            (Token::Word(line[at..end].to_ascii_lowercase()), end)
        } else if let Some(sign) = SIGNS.iter().find(|sign| line[at..].starts_with(**sign)) {
            (Token::Sign(sign), at + sign.len())
        } else {
            let letter = line[at..].chars().next().expect("there is a byte");
            let mistake = Mistake { what: "unexpected character".to_owned(), more: Some(letter.to_string()), at };
            tokens.push(Err(mistake));
            return tokens;
        };
        tokens.push(Ok((token, end - 1)));
        at = end;
    }
    tokens
}

/// An operator waits for its right operand, or something for its end.
enum OpenOperator {
    Prefix(Binding, &'static str),
    /// `+` in front of a value does nothing.
    Plus,
    Binary(Binding, StackStep),
    Bracket,
    /// A function, and its complete arguments.
    Call(&'static str, usize),
    /// The branch of a CASE that is being read.
    Case(Branch),
}

#[derive(Clone, Copy, PartialEq)]
enum Branch {
    When,
    Then,
    Else,
}

/// How tightly operators bind.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Binding {
    Or,
    And,
    Not,
    Is,
    Comparison,
    Bits,
    Sum,
    Product,
    Sign,
}

/// Unfinished symbols that pgbench's parser holds.
const ROOM: usize = 9_998;
/// Arguments that pgbench passes to a function.
const ARGUMENTS_MAX: usize = 16;

impl OpenOperator {
    /// Symbols that pgbench's parser holds for it.
    const fn weight(&self) -> usize {
        match self {
            OpenOperator::Prefix(..) | OpenOperator::Plus | OpenOperator::Bracket => 1,
            OpenOperator::Binary(..) | OpenOperator::Call(_, 0) => 2,
            OpenOperator::Call(..) | OpenOperator::Case(_) => 4,
        }
    }
}

struct Parser {
    tokens: Peekable<IntoIter<Result<Placed, Mistake>>>,
    line_end: usize,
    steps: Vec<StackStep>,
    /// Innermost last.
    open: Vec<OpenOperator>,
    /// For further symbols.
    room: usize,
}

impl Parser {
    fn next(&mut self) -> Result<Placed, Mistake> {
        self.tokens.next().unwrap_or(Ok((Token::End, self.line_end)))
    }

    fn peek(&mut self) -> Result<Placed, Mistake> {
        self.tokens.peek().cloned().unwrap_or(Ok((Token::End, self.line_end)))
    }

    fn push(&mut self, open: OpenOperator, at: usize) -> Result<(), Mistake> {
        let full = || Mistake { what: "memory exhausted".to_owned(), more: None, at };
        self.room = self.room.checked_sub(open.weight()).ok_or_else(full)?;
        self.open.push(open);
        Ok(())
    }

    fn pop(&mut self) -> Option<OpenOperator> {
        let open = self.open.pop()?;
        self.room += open.weight();
        Some(open)
    }

    fn call(&mut self, name: &'static str, operands: usize) {
        self.steps.push(StackStep::Call(name, operands));
    }

    /// Finishes the operators that bind at least as tightly as this.
    fn finish(&mut self, binding: Binding) {
        while let Some(OpenOperator::Plus | OpenOperator::Prefix(..) | OpenOperator::Binary(..)) = self.open.last() {
            if let Some(OpenOperator::Prefix(other, _) | OpenOperator::Binary(other, _)) = self.open.last()
                && *other < binding
            {
                return;
            }
            match self.pop() {
                Some(OpenOperator::Prefix(_, name)) => self.call(name, if name == "subtract" { 2 } else { 1 }),
                Some(OpenOperator::Binary(_, step)) => self.steps.push(step),
                _ => {}
            }
        }
    }

    /// Everything up to and including a value.
    fn operand(&mut self) -> Result<(), Mistake> {
        loop {
            let (token, at) = self.next()?;
            match token {
                Token::Int(number) => {
                    self.steps.push(StackStep::Integer(i64::try_from(number).map_err(|_| syntax(at))?));
                    return Ok(());
                }
                Token::Double(number) => {
                    self.steps.push(StackStep::Double(number));
                    return Ok(());
                }
                Token::Variable(name) => {
                    self.steps.push(StackStep::Variable(name));
                    return Ok(());
                }
                Token::Sign("+") => self.push(OpenOperator::Plus, at)?,
                Token::Sign("-") => {
                    // The smallest 64-bit number has no positive counterpart.
                    if let (Token::Int(number), _) = self.peek()?
                        && number == 1 << 63
                    {
                        self.next()?;
                        self.steps.push(StackStep::Integer(i64::MIN));
                        return Ok(());
                    }
                    self.steps.push(StackStep::Integer(0));
                    self.push(OpenOperator::Prefix(Binding::Sign, "subtract"), at)?;
                }
                Token::Sign("~") => self.push(OpenOperator::Prefix(Binding::Bits, "bit_not"), at)?,
                Token::Sign("(") => self.push(OpenOperator::Bracket, at)?,
                Token::Word(word) => match word.as_str() {
                    "true" => return self.constant("true"),
                    "false" => return self.constant("false"),
                    "null" => return self.constant("R.NULL"),
                    "not" => self.push(OpenOperator::Prefix(Binding::Not, "negate"), at)?,
                    "case" => {
                        self.expect(|token| matches!(token, Token::Word(word) if word == "when"))?;
                        self.push(OpenOperator::Case(Branch::When), at)?;
                        self.steps.push(StackStep::Case);
                    }
                    word if KEYWORDS.contains(&word) => return Err(syntax(at)),
                    word => {
                        if self.begin_call(word, at)? {
                            return Ok(());
                        }
                    }
                },
                _ => return Err(syntax(at)),
            }
        }
    }

    fn constant(&mut self, lua: &'static str) -> Result<(), Mistake> {
        self.steps.push(StackStep::Constant(lua));
        Ok(())
    }

    /// Takes the next token, which must be this one. Returns its place.
    fn expect(&mut self, is: impl Fn(&Token) -> bool) -> Result<usize, Mistake> {
        let (token, at) = self.next()?;
        if is(&token) { Ok(at) } else { Err(syntax(at)) }
    }

    /// After the name of a function, whose last letter is at `named`. Whether the call is complete: it has no
    /// arguments.
    fn begin_call(&mut self, name: &str, named: usize) -> Result<bool, Mistake> {
        let Some((name, ..)) = FUNCTIONS.iter().find(|(known, ..)| *known == name) else {
            let what = "unexpected function name".to_owned();
            return Err(Mistake { what, more: Some(name.to_owned()), at: named });
        };
        let at = self.expect(|token| *token == Token::Sign("("))?;
        if let (Token::Sign(")"), at) = self.peek()? {
            self.next()?;
            self.end_call(name, 0, at)?;
            return Ok(true);
        }
        // pgbench's list of arguments may start with a comma.
        if let (Token::Sign(","), _) = self.peek()? {
            self.next()?;
        }
        self.push(OpenOperator::Call(name, 0), at)?;
        Ok(false)
    }

    /// The bracket at `at` ends a call.
    fn end_call(&mut self, name: &'static str, arguments: usize, at: usize) -> Result<(), Mistake> {
        let (_, least, most) = FUNCTIONS.iter().find(|(known, ..)| *known == name).expect("it was found before");
        if arguments < *least || arguments > *most {
            let what =
                if *most == usize::MAX { "at least one argument expected" } else { "unexpected number of arguments" };
            return Err(Mistake { what: what.to_owned(), more: Some(name.to_owned()), at });
        }
        let function = match name {
            "mod" => "remainder",
            "pow" => "power",
            "hash" => "hash_murmur2",
            name => name,
        };
        let mut operands = arguments;
        if matches!(function, "hash_fnv1a" | "hash_murmur2" | "permute") && arguments < *most {
            self.steps.push(StackStep::Variable("default_seed".to_owned()));
            operands += 1;
        }
        if operands > ARGUMENTS_MAX {
            self.steps.push(StackStep::TooMany(operands));
        } else {
            self.steps.push(StackStep::Call(function, operands));
        }
        Ok(())
    }

    /// Reads what follows a value, up to and including an operator that needs another. True: the expression has ended.
    fn operators(&mut self) -> Result<bool, Mistake> {
        loop {
            let (token, at) = self.next()?;
            match token {
                Token::Sign(sign) => {
                    if let Some((binding, name)) = operator(sign) {
                        self.finish(binding);
                        return self.push(OpenOperator::Binary(binding, StackStep::Call(name, 2)), at).map(|()| false);
                    }
                    if let Some(name) = comparison(sign) {
                        self.finish(Binding::Bits);
                        if let Some(OpenOperator::Binary(Binding::Comparison, _)) = self.open.last() {
                            return Err(syntax(at));
                        }
                        return self
                            .push(OpenOperator::Binary(Binding::Comparison, StackStep::Call(name, 2)), at)
                            .map(|()| false);
                    }
                    self.finish(Binding::Or);
                    match (sign, self.pop()) {
                        (")", Some(OpenOperator::Bracket)) => {}
                        (")", Some(OpenOperator::Call(name, before))) => self.end_call(name, before + 1, at)?,
                        (",", Some(OpenOperator::Call(name, before))) => {
                            return self.push(OpenOperator::Call(name, before + 1), at).map(|()| false);
                        }
                        _ => return Err(syntax(at)),
                    }
                }
                Token::Word(word) => match word.as_str() {
                    "or" | "and" => {
                        let (binding, step) =
                            if word == "or" { (Binding::Or, StackStep::Or) } else { (Binding::And, StackStep::And) };
                        self.finish(binding);
                        self.steps.push(step);
                        return self.push(OpenOperator::Binary(binding, StackStep::Joined), at).map(|()| false);
                    }
                    "is" | "isnull" | "notnull" => {
                        self.finish(Binding::Is);
                        self.test(&word)?;
                    }
                    word => {
                        self.finish(Binding::Or);
                        let Some(OpenOperator::Case(branch)) = self.pop() else { return Err(syntax(at)) };
                        let next = match (branch, word) {
                            (Branch::When, "then") => Branch::Then,
                            (Branch::Then, "when") => Branch::When,
                            (Branch::Then, "else") => Branch::Else,
                            (Branch::Then | Branch::Else, "end") => {
                                if branch == Branch::Then {
                                    self.steps.extend([StackStep::Then, StackStep::Constant("R.NULL")]);
                                }
                                self.steps.push(StackStep::End);
                                continue;
                            }
                            _ => return Err(syntax(at)),
                        };
                        self.steps.push(if branch == Branch::When { StackStep::When } else { StackStep::Then });
                        return self.push(OpenOperator::Case(next), at).map(|()| false);
                    }
                },
                Token::End => {
                    self.finish(Binding::Or);
                    return if self.open.is_empty() { Ok(true) } else { Err(syntax(at)) };
                }
                _ => return Err(syntax(at)),
            }
        }
    }

    /// After IS, ISNULL or NOTNULL.
    fn test(&mut self, word: &str) -> Result<(), Mistake> {
        let mut not = word == "notnull";
        let mut name = "is_null";
        if word == "is" {
            let (mut token, mut at) = self.next()?;
            if token == Token::Word("not".to_owned()) {
                not = true;
                (token, at) = self.next()?;
            }
            name = match token {
                Token::Word(word) if word == "null" => "is_null",
                Token::Word(word) if word == "true" => "is_true",
                Token::Word(word) if word == "false" => "is_false",
                _ => return Err(syntax(at)),
            };
        }
        self.call(name, 1);
        if not {
            self.call("negate", 1);
        }
        Ok(())
    }
}

/// An operator of two values, other than a comparison.
fn operator(sign: &str) -> Option<(Binding, &'static str)> {
    Some(match sign {
        "|" => (Binding::Bits, "bit_or"),
        "#" => (Binding::Bits, "bit_xor"),
        "&" => (Binding::Bits, "bit_and"),
        "<<" => (Binding::Bits, "shift_left"),
        ">>" => (Binding::Bits, "shift_right"),
        "+" => (Binding::Sum, "add"),
        "-" => (Binding::Sum, "subtract"),
        "*" => (Binding::Product, "multiply"),
        "/" => (Binding::Product, "divide"),
        "%" => (Binding::Product, "remainder"),
        _ => return None,
    })
}

fn comparison(sign: &str) -> Option<&'static str> {
    Some(match sign {
        "<" => "less",
        ">" => "more",
        "<=" => "at_most",
        ">=" => "at_least",
        "=" => "equal",
        "<>" | "!=" => "unequal",
        _ => return None,
    })
}

/// Lua for an expression: statements that come first, and then its value.
#[derive(Debug, PartialEq, Eq)]
pub struct Lua {
    /// Empty for most expressions.
    pub before: String,
    /// A Lua expression.
    pub value: String,
}

/// Registers that one Lua expression may need: it has 250.
const REGISTERS_MAX: usize = 60;

/// Values that were computed or can be. The first ones may have been stored by `before`, each at its own place in a
/// table of the runtime, `t`.
#[derive(Default)]
struct Stack {
    /// Lua of each, and the registers that it needs: none if it can be computed at any time.
    values: Vec<(String, usize)>,
    before: String,
    labels: usize,
}

impl Stack {
    fn push(&mut self, lua: String, registers: usize) {
        self.values.push((lua, registers));
    }

    fn pop(&mut self) -> String {
        self.values.pop().expect("the parser puts steps behind their operands").0
    }

    /// Stores all values in the order of their evaluation.
    fn store(&mut self) {
        for (at, (lua, registers)) in self.values.iter_mut().enumerate() {
            if *registers > 0 {
                let place = format!("t[{}]", at + 1);
                let _ = write!(self.before, "{place} = {lua} ");
                (*lua, *registers) = (place, 0);
            }
        }
    }

    /// Stores all values, the last one even if it is a constant: other branches lead to the same place.
    fn store_last(&mut self) {
        if let Some((_, registers)) = self.values.last_mut() {
            *registers = 1;
        }
        self.store();
    }

    fn label(&mut self) -> usize {
        self.labels += 1;
        self.labels
    }

    fn line(&mut self, lua: std::fmt::Arguments<'_>) {
        let _ = self.before.write_fmt(lua);
    }
}

impl Expression {
    /// The expression as Lua over the variables `v` and the functions of the runtime, `R`.
    pub fn lua(&self) -> Lua {
        let mut stack = Stack::default();
        // The labels at which the open ANDs, ORs and CASEs end, and the next branch of a CASE begins.
        let mut ends: Vec<(usize, usize)> = Vec::new();
        for step in &self.steps {
            match step {
                StackStep::Integer(i64::MIN) => stack.push("R.LEAST".to_owned(), 0),
                // What a double represents exactly is a Lua number.
                StackStep::Integer(number) if *number < 1 << 53 => stack.push(number.to_string(), 0),
                StackStep::Integer(number) => stack.push(format!("{number}LL"), 0),
                StackStep::Double(number) => stack.push(format!("R.double_of({number:?})"), 2),
                StackStep::Constant(lua) => stack.push((*lua).to_owned(), 0),
                StackStep::Variable(name) => stack.push(format!("R.value(v, {})", quoted(name)), 3),
                StackStep::Call(name, operands) => {
                    let first = stack.values.len() - operands;
                    let needed = |stack: &Stack| stack.values[first..].iter().map(|(_, registers)| *registers).max();
                    if needed(&stack).unwrap_or(0) + operands >= REGISTERS_MAX {
                        stack.store();
                    }
                    let registers = needed(&stack).unwrap_or(0) + operands + 1;
                    let mut arguments: Vec<String> = stack.values.drain(first..).map(|(lua, _)| lua).collect();
                    if *name == "debug" {
                        arguments.push("self".to_owned());
                    }
                    stack.push(format!("R.{name}({})", arguments.join(", ")), registers);
                }
                StackStep::TooMany(operands) => {
                    stack.values.truncate(stack.values.len() - operands);
                    stack.push("R.too_many_arguments()".to_owned(), 1);
                }
                StackStep::And | StackStep::Or => {
                    let left = stack.pop();
                    stack.push(format!("R.truth({left})"), 1);
                    stack.store();
                    let (left, end) = (stack.pop(), stack.label());
                    stack.line(format_args!("if {left} ~= {} then goto l{end} end ", *step == StackStep::And));
                    ends.push((end, 0));
                }
                StackStep::Joined => {
                    let right = stack.pop();
                    stack.push(format!("R.truth({right})"), 1);
                    stack.store();
                    let (end, _) = ends.pop().expect("AND and OR begin before they end");
                    stack.line(format_args!("::l{end}:: "));
                }
                StackStep::Case => ends.push((stack.label(), 0)),
                StackStep::When => {
                    let condition = stack.pop();
                    stack.store();
                    let next = stack.label();
                    ends.last_mut().expect("CASE comes first").1 = next;
                    stack.line(format_args!("if not R.holds({condition}) then goto l{next} end "));
                }
                StackStep::Then => {
                    stack.store_last();
                    stack.pop();
                    let (end, next) = *ends.last().expect("CASE comes first");
                    stack.line(format_args!("goto l{end} ::l{next}:: "));
                }
                StackStep::End => {
                    stack.store_last();
                    let (end, _) = ends.pop().expect("CASE comes first");
                    stack.line(format_args!("::l{end}:: "));
                }
            }
        }
        let before =
            if stack.before.is_empty() { String::new() } else { format!("local t = R.stored {}", stack.before) };
        Lua { before, value: stack.pop() }
    }

    /// The expression as words for a plain program; `None` unless all values are integers.
    pub fn plain(&self) -> Option<Vec<ExpressionWord>> {
        let word = |step: &StackStep| {
            Some(match step {
                StackStep::Integer(number) => ExpressionWord::Integer(*number),
                StackStep::Variable(name) => ExpressionWord::Variable(name.clone()),
                StackStep::Call(name, _) => ExpressionWord::Operator(match *name {
                    "add" => "+",
                    "subtract" => "-",
                    "multiply" => "*",
                    "divide" => "/",
                    "remainder" => "%",
                    "random" => "random",
                    _ => return None,
                }),
                _ => return None,
            })
        };
        self.steps.iter().map(word).collect()
    }
}

/// A Lua string literal of this text.
pub(crate) fn quoted(text: &str) -> String {
    let mut lua = String::with_capacity(text.len() + 2);
    lua.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => lua.extend(['\\', letter]),
            '\n' => lua.push_str("\\n"),
            '\r' => lua.push_str("\\r"),
            '\0' => lua.push_str("\\0"),
            letter => lua.push(letter),
        }
    }
    lua.push('"');
    lua
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, lua: &str) {
        let Lua { before, value } = parse(text, 0).unwrap().lua();
        assert_eq!(format!("{before}{value}"), lua, "{text}");
    }

    #[test]
    fn operators_bind_as_in_pgbench() {
        check("1 + 2 * 3", "R.add(1, R.multiply(2, 3))");
        check("1 | 2 & 4", "R.bit_and(R.bit_or(1, 2), 4)");
        check("~1 + 1", "R.bit_not(R.add(1, 1))");
        check("- ~ 1 + 1", "R.subtract(0, R.bit_not(R.add(1, 1)))");
        check("1 << 1 + 1", "R.shift_left(1, R.add(1, 1))");
        check("not 1 = 2", "R.negate(R.equal(1, 2))");
        check("1 + not 2 = 3", "R.add(1, R.negate(R.equal(2, 3)))");
        check("1 = 1 is true", "R.is_true(R.equal(1, 1))");
        check("1 isnull notnull", "R.negate(R.is_null(R.is_null(1)))");
        check("1 - 2 - 3", "R.subtract(R.subtract(1, 2), 3)");
        check("-9223372036854775808", "R.LEAST");
        check("9223372036854775807", "9223372036854775807LL");
        check("Random(1, 5)", "R.random(1, 5)");
        check("abs(, -1)", "R.abs(R.subtract(0, 1))");
    }

    #[test]
    fn what_decides_between_operands_comes_first() {
        check(
            ":a > 3 and not :b isnull",
            "local t = R.stored t[1] = R.truth(R.more(R.value(v, \"a\"), 3)) if t[1] ~= true then goto l1 end \
             t[1] = R.truth(R.negate(R.is_null(R.value(v, \"b\")))) ::l1:: t[1]",
        );
        check(
            "1 + case when 1 > 2 then 3 end",
            "local t = R.stored if not R.holds(R.more(1, 2)) then goto l2 end t[2] = 3 goto l1 ::l2:: t[2] = R.NULL \
             ::l1:: R.add(1, t[2])",
        );
    }

    /// Lua has 250 registers and 200 levels.
    #[test]
    fn lua_nests_little_however_deep_the_expression_is() {
        let deep = |before: &str, after: &str| format!("{}1{}", before.repeat(2_000), after.repeat(2_000));
        for text in [
            deep("(", ")"),
            deep("- ", ""),
            deep("abs(", ")"),
            deep("1+(", ")"),
            deep("", " + 1"),
            deep("case when 1 then ", " end"),
            deep("true and ", ""),
        ] {
            let Lua { before, value } = parse(&text, 0).unwrap().lua();
            let nests = |lua: &str| {
                lua.bytes().fold((0, 0), |(depth, most): (usize, usize), byte| match byte {
                    b'(' => (depth + 1, most.max(depth + 1)),
                    b')' => (depth - 1, most),
                    _ => (depth, most),
                })
            };
            assert!(nests(&before).1 < 60 && nests(&value).1 < 60, "{}", &text[..30]);
        }
        let too_deep = parse(&"(".repeat(10_000), 0).unwrap_err();
        assert_eq!(too_deep.what, "memory exhausted");
    }

    #[test]
    fn what_has_integers_alone_is_plain() {
        let plain = |text| {
            let word = |word| match word {
                ExpressionWord::Integer(integer) => integer.to_string(),
                ExpressionWord::Variable(name) => format!(":{name}"),
                ExpressionWord::Operator(operator) => operator.to_owned(),
            };
            parse(text, 0).unwrap().plain().map(|words| words.into_iter().map(word).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(plain("random(1, 10 * :scale) - -3").unwrap(), "1 10 :scale * random 0 3 - -");
        assert_eq!(plain("mod(:a, (7 + 1))").unwrap(), ":a 7 1 + %");
        for text in ["1.5 + 1", "random_zipfian(1, 5, 1.1)", "abs(:a)", "1 > 0", "case when true then 1 end", "null"] {
            assert_eq!(plain(text), None, "{text}");
        }
    }

    #[track_caller]
    fn mistake(text: &str, what: &str, at: usize) {
        let found = parse(text, 7).unwrap_err();
        let more = found.more.map(|more| format!(" ({more})")).unwrap_or_default();
        assert_eq!((format!("{}{more}", found.what), found.at), (what.to_owned(), at), "{text}");
    }

    /// Positions as in pgbench 15.
    #[test]
    fn mistakes_have_their_place() {
        mistake("\\set x foo(1)", "unexpected function name (foo)", 9);
        mistake("\\set x random(1)", "unexpected number of arguments (random)", 15);
        mistake("\\set x 1 +", "syntax error", 10);
        mistake("\\set x 1 1", "syntax error", 9);
        mistake("\\set x ", "syntax error", 7);
        mistake("\\set x 99999999999999999999", "bigint constant overflow (99999999999999999999)", 26);
        mistake("\\set x greatest()", "at least one argument expected (greatest)", 16);
        mistake("\\set x 1 > 2 > 3", "syntax error", 13);
    }
}
