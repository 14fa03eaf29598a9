//! The expressions of `\set` and `\if`, compiled to Lua, and to words for plain programs where those compute them.
//!
//! Operators, in order of increasing precedence: OR, AND, NOT, IS, comparisons (which do not chain), bitwise operators
//! (all alike), + -, * / %, the minus sign. `lua/runtime.lua` implements them. Source: the manual's page on pgbench,
//! "Built-in Operators" and "Built-In Functions"; what it leaves open (precedence of the bitwise operators, positions
//! of errors) was found by running pgbench 15.

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

/// An expression as Lua, and the variables that it uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression {
    /// A Lua expression over the variables `v` and the functions of the runtime, `R`.
    pub lua: String,
    /// In the order of their first use.
    pub variables: Vec<String>,
    /// The same with each operator behind its operands; `None` where it is not of integers alone.
    pub plain: Option<Vec<Word>>,
}

/// A word of an expression of integers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
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
    let tokens = tokens(line, start);
    let mut parser = Parser { tokens: tokens.into_iter().peekable(), line_end: line.len(), variables: Vec::new() };
    let Code { lua, plain } = parser.either()?;
    match parser.next()? {
        (Token::End, _) => Ok(Expression { lua, variables: parser.variables, plain }),
        (_, at) => Err(syntax(at)),
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

struct Parser {
    tokens: Peekable<IntoIter<Result<Placed, Mistake>>>,
    line_end: usize,
    variables: Vec<String>,
}

/// A part of an expression: as Lua, and as words where it has integers alone.
struct Code {
    lua: String,
    plain: Option<Vec<Word>>,
}

impl Code {
    /// What only Lua computes.
    fn of(lua: String) -> Code {
        Code { lua, plain: None }
    }

    fn word(lua: String, word: Word) -> Code {
        Code { lua, plain: Some(vec![word]) }
    }

    /// A call of the runtime.
    fn call(name: &str, arguments: Vec<Code>) -> Code {
        let operator = match name {
            "add" => Some("+"),
            "subtract" => Some("-"),
            "multiply" => Some("*"),
            "divide" => Some("/"),
            "remainder" => Some("%"),
            "random" => Some("random"),
            _ => None,
        };
        let (lua, plain): (Vec<String>, Vec<_>) = arguments.into_iter().map(|code| (code.lua, code.plain)).unzip();
        let plain = plain
            .into_iter()
            .collect::<Option<Vec<_>>>()
            .zip(operator)
            .map(|(operands, operator)| operands.into_iter().flatten().chain([Word::Operator(operator)]).collect());
        Code { lua: format!("R.{name}({})", lua.join(", ")), plain }
    }

    /// With these texts around it.
    fn within(self, before: &str, after: &str) -> Code {
        Code { lua: format!("{before}{}{after}", self.lua), ..self }
    }
}

type Compiled = Result<Code, Mistake>;

impl Parser {
    fn next(&mut self) -> Result<Placed, Mistake> {
        self.tokens.next().unwrap_or(Ok((Token::End, self.line_end)))
    }

    /// Takes one of these operators, if it comes next.
    fn sign(&mut self, signs: &[&'static str]) -> Option<&'static str> {
        match self.tokens.peek() {
            Some(Ok((Token::Sign(sign), _))) if signs.contains(sign) => {
                let sign = *sign;
                self.tokens.next();
                Some(sign)
            }
            _ => None,
        }
    }

    /// Takes this word, if it comes next.
    fn word(&mut self, word: &str) -> bool {
        let is = matches!(self.tokens.peek(), Some(Ok((Token::Word(next), _))) if next == word);
        if is {
            self.tokens.next();
        }
        is
    }

    fn expect_sign(&mut self, sign: &'static str) -> Result<usize, Mistake> {
        match self.next()? {
            (Token::Sign(next), at) if next == sign => Ok(at),
            (_, at) => Err(syntax(at)),
        }
    }

    fn either(&mut self) -> Compiled {
        let mut left = self.both()?;
        while self.word("or") {
            left = Code::of(format!("R.either({}, function() return {} end)", left.lua, self.both()?.lua));
        }
        Ok(left)
    }

    fn both(&mut self) -> Compiled {
        let mut left = self.negation()?;
        while self.word("and") {
            left = Code::of(format!("R.both({}, function() return {} end)", left.lua, self.negation()?.lua));
        }
        Ok(left)
    }

    fn negation(&mut self) -> Compiled {
        if self.word("not") {
            return Ok(Code::call("negate", vec![self.negation()?]));
        }
        self.test()
    }

    fn test(&mut self) -> Compiled {
        let left = self.comparison()?;
        if self.word("isnull") {
            return Ok(Code::call("is_null", vec![left]));
        }
        if self.word("notnull") {
            return Ok(Code::call("is_null", vec![left]).within("not ", ""));
        }
        if !self.word("is") {
            return Ok(left);
        }
        let not = if self.word("not") { "not " } else { "" };
        match self.next()? {
            (Token::Word(word), _) if word == "null" => {
                Ok(Code::call("is_null", vec![left]).within(&format!("({not}"), ")"))
            }
            (Token::Word(word), _) if word == "true" || word == "false" => {
                Ok(Code::of(format!("({not}({} == {word}))", left.lua)))
            }
            (_, at) => Err(syntax(at)),
        }
    }

    fn comparison(&mut self) -> Compiled {
        let left = self.bits()?;
        let Some(sign) = self.sign(&["<>", "!=", "<=", ">=", "<", ">", "="]) else { return Ok(left) };
        let right = self.bits()?;
        Ok(match sign {
            "<" => Code::call("less", vec![left, right]),
            ">" => Code::call("less", vec![right, left]),
            "<=" => Code::call("at_most", vec![left, right]),
            ">=" => Code::call("at_most", vec![right, left]),
            "=" => Code::call("equal", vec![left, right]),
            _ => Code::call("unequal", vec![left, right]),
        })
    }

    fn bits(&mut self) -> Compiled {
        let mut left =
            if self.sign(&["~"]).is_some() { Code::call("bit_not", vec![self.bits_operand()?]) } else { self.sum()? };
        while let Some(sign) = self.sign(&["|", "#", "&", "<<", ">>"]) {
            let name = match sign {
                "|" => "bit_or",
                "#" => "bit_xor",
                "&" => "bit_and",
                "<<" => "shift_left",
                _ => "shift_right",
            };
            left = Code::call(name, vec![left, self.bits_operand()?]);
        }
        Ok(left)
    }

    fn bits_operand(&mut self) -> Compiled {
        match self.sign(&["~"]) {
            Some(_) => Ok(Code::call("bit_not", vec![self.bits_operand()?])),
            None => self.sum(),
        }
    }

    fn sum(&mut self) -> Compiled {
        let mut left = self.product()?;
        while let Some(sign) = self.sign(&["+", "-"]) {
            let name = if sign == "+" { "add" } else { "subtract" };
            left = Code::call(name, vec![left, self.product()?]);
        }
        Ok(left)
    }

    fn product(&mut self) -> Compiled {
        let mut left = self.signed()?;
        while let Some(sign) = self.sign(&["*", "/", "%"]) {
            let name = match sign {
                "*" => "multiply",
                "/" => "divide",
                _ => "remainder",
            };
            left = Code::call(name, vec![left, self.signed()?]);
        }
        Ok(left)
    }

    fn signed(&mut self) -> Compiled {
        if self.sign(&["+"]).is_some() {
            return self.signed();
        }
        if self.sign(&["-"]).is_some() {
            // The smallest 64-bit number has no positive counterpart.
            if let Some(Ok((Token::Int(number), _))) = self.tokens.peek()
                && *number == 1 << 63
            {
                self.tokens.next();
                return Ok(Code::word("R.LEAST".to_owned(), Word::Integer(i64::MIN)));
            }
            let zero = Code::word("0".to_owned(), Word::Integer(0));
            return Ok(Code::call("subtract", vec![zero, self.signed()?]));
        }
        // `~` binds less tightly than what may precede it.
        if self.sign(&["~"]).is_some() {
            return Ok(Code::call("bit_not", vec![self.sum()?]));
        }
        self.operand()
    }

    fn operand(&mut self) -> Compiled {
        match self.next()? {
            (Token::Int(number), at) => {
                let integer = i64::try_from(number).map_err(|_| syntax(at))?;
                // What a double represents exactly is a Lua number.
                let suffix = if integer < 1 << 53 { "" } else { "LL" };
                Ok(Code::word(format!("{integer}{suffix}"), Word::Integer(integer)))
            }
            (Token::Double(number), _) => Ok(Code::of(format!("R.double_of({number:?})"))),
            (Token::Variable(name), _) => {
                let code = Code::word(format!("R.value(v, {})", quoted(&name)), Word::Variable(name.clone()));
                if !self.variables.contains(&name) {
                    self.variables.push(name);
                }
                Ok(code)
            }
            (Token::Sign("("), _) => {
                let inner = self.either()?;
                self.expect_sign(")")?;
                Ok(inner.within("(", ")"))
            }
            (Token::Word(word), at) => match word.as_str() {
                "true" | "false" => Ok(Code::of(word)),
                "null" => Ok(Code::of("R.NULL".to_owned())),
                "case" => self.case(),
                word if KEYWORDS.contains(&word) => Err(syntax(at)),
                word => self.call(word, at),
            },
            (_, at) => Err(syntax(at)),
        }
    }

    /// After CASE.
    fn case(&mut self) -> Compiled {
        let mut lua = "(function() ".to_owned();
        let mut branches = 0;
        while self.word("when") {
            let condition = self.either()?.lua;
            match self.next()? {
                (Token::Word(word), _) if word == "then" => {}
                (_, at) => return Err(syntax(at)),
            }
            lua.push_str(&format!("if R.holds({condition}) then return {} end ", self.either()?.lua));
            branches += 1;
        }
        if branches == 0 {
            let (_, at) = self.next()?;
            return Err(syntax(at));
        }
        let otherwise = if self.word("else") { self.either()?.lua } else { "R.NULL".to_owned() };
        match self.next()? {
            (Token::Word(word), _) if word == "end" => Ok(Code::of(format!("{lua}return {otherwise} end)()"))),
            (_, at) => Err(syntax(at)),
        }
    }

    /// After the name of a function, whose last letter is at `named`.
    fn call(&mut self, name: &str, named: usize) -> Compiled {
        let known = FUNCTIONS.iter().find(|(known, _, _)| *known == name);
        let Some((_, least, most)) = known else {
            let what = "unexpected function name".to_owned();
            return Err(Mistake { what, more: Some(name.to_owned()), at: named });
        };
        self.expect_sign("(")?;
        let mut arguments = Vec::new();
        let mut end = None;
        if let Some(Ok((Token::Sign(")"), at))) = self.tokens.peek() {
            end = Some(*at);
            self.tokens.next();
        }
        while end.is_none() {
            arguments.push(self.either()?);
            match self.next()? {
                (Token::Sign(")"), at) => end = Some(at),
                (Token::Sign(","), _) => {}
                (_, at) => return Err(syntax(at)),
            }
        }
        if arguments.len() < *least || arguments.len() > *most {
            let what =
                if *most == usize::MAX { "at least one argument expected" } else { "unexpected number of arguments" };
            let at = end.expect("the loop ended");
            return Err(Mistake { what: what.to_owned(), more: Some(name.to_owned()), at });
        }
        let name = match name {
            "mod" => "remainder",
            "pow" => "power",
            "hash" => "hash_murmur2",
            name => name,
        };
        let seeded = matches!(name, "hash_fnv1a" | "hash_murmur2" | "permute");
        if seeded && arguments.len() < *most {
            arguments.push(Code::of("R.value(v, \"default_seed\")".to_owned()));
        }
        if name == "debug" {
            arguments.push(Code::of("self".to_owned()));
        }
        Ok(Code::call(name, arguments))
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
        assert_eq!(parse(text, 0).unwrap().lua, lua, "{text}");
    }

    #[test]
    fn operators_bind_as_in_pgbench() {
        check("1 + 2 * 3", "R.add(1, R.multiply(2, 3))");
        check("1 | 2 & 4", "R.bit_and(R.bit_or(1, 2), 4)");
        check("~1 + 1", "R.bit_not(R.add(1, 1))");
        check("1 << 1 + 1", "R.shift_left(1, R.add(1, 1))");
        check("not 1 = 2", "R.negate(R.equal(1, 2))");
        check("1 = 1 is true", "((R.equal(1, 1) == true))");
        check("1 - 2 - 3", "R.subtract(R.subtract(1, 2), 3)");
        check(
            ":a > 3 and not :b isnull",
            "R.both(R.less(3, R.value(v, \"a\")), function() return R.negate(R.is_null(R.value(v, \"b\"))) end)",
        );
        check("-9223372036854775808", "R.LEAST");
        check("9223372036854775807", "9223372036854775807LL");
        check("Random(1, 5)", "R.random(1, 5)");
        check(
            "case when 1 > 2 then 3 end",
            "(function() if R.holds(R.less(2, 1)) then return 3 end return R.NULL end)()",
        );
    }

    #[test]
    fn what_has_integers_alone_is_plain() {
        let plain = |text| {
            let word = |word| match word {
                Word::Integer(integer) => integer.to_string(),
                Word::Variable(name) => format!(":{name}"),
                Word::Operator(operator) => operator.to_owned(),
            };
            parse(text, 0).unwrap().plain.map(|words| words.into_iter().map(word).collect::<Vec<_>>().join(" "))
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
