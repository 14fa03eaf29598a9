//! Values in a step's lines that are known later: `--rate {rows / 50}`, `--transactions {round(60 * l.i1.tps)}`.
//!
//! What stands in braces is arithmetic with `+ - * /`, parentheses and `round`, on numbers, on values of the step's
//! `each`, and on metrics of earlier phases, as `PHASE.METRIC`; a phase whose name is not one word stands in quotes.

/// Replaces what stands in braces. `find`: the value of a name, as text.
pub fn filled(text: &str, find: &dyn Fn(&str) -> Result<String, String>) -> Result<String, String> {
    let mut all = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (inside, behind) = after.split_once('}').ok_or_else(|| format!("`{text}`: a brace is not closed"))?;
        all += before;
        all += &value(inside.trim(), find).map_err(|reason| format!("`{{{inside}}}`: {reason}"))?;
        rest = behind;
    }
    Ok(all + rest)
}

/// The names in braces.
pub fn names(text: &str) -> Result<Vec<String>, String> {
    let found = std::cell::RefCell::new(Vec::new());
    filled(text, &|name| {
        found.borrow_mut().push(name.to_owned());
        Ok("1".to_owned())
    })?;
    Ok(found.into_inner())
}

/// Puts values in the place of these names; what depends on others stays in its braces.
pub(crate) fn bound(text: &str, values: &[(String, String)]) -> Result<String, String> {
    let of = |name: &str| values.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let mut all = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (inside, behind) = after.split_once('}').ok_or_else(|| format!("`{text}`: a brace is not closed"))?;
        all += before;
        rest = behind;
        let known = |name: &str| of(name).ok_or_else(String::new);
        match value(inside.trim(), &known) {
            Ok(value) => all += &value,
            Err(_) => {
                let part = |token: &Token| match token {
                    Token::Name(name) => of(name).unwrap_or_else(|| quoted(name)),
                    Token::Number(number) => number.to_string(),
                    Token::Sign(sign) => sign.to_string(),
                };
                let parts: Vec<String> = tokens(inside)?.iter().map(part).collect();
                all += &format!("{{{}}}", parts.join(" "));
            }
        }
    }
    Ok(all + rest)
}

enum Token {
    Number(f64),
    Name(String),
    Sign(char),
}

/// A name whose first part is more than one word gets its quotes back.
fn quoted(name: &str) -> String {
    let is_plain = name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.');
    match (is_plain, name.rsplit_once('.')) {
        (false, Some((phase, metric))) => format!("\"{phase}\".{metric}"),
        _ => name.to_owned(),
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, length) = match first {
            '0'..='9' => {
                let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(rest.len());
                let number = rest[..end].replace('_', "");
                (Token::Number(number.parse().map_err(|_| format!("{number} is not a number"))?), end)
            }
            '"' => {
                let end = rest[1..].find('"').ok_or("a quote is not closed")? + 1;
                let more = rest[end + 1..].find(|c: char| !is_of_name(c)).unwrap_or(rest.len() - end - 1);
                (Token::Name(format!("{}{}", &rest[1..end], &rest[end + 1..end + 1 + more])), end + 1 + more)
            }
            c if is_of_name(c) => {
                let end = rest.find(|c: char| !is_of_name(c)).unwrap_or(rest.len());
                (Token::Name(rest[..end].to_owned()), end)
            }
            '+' | '-' | '*' | '/' | '(' | ')' => (Token::Sign(first), 1),
            other => return Err(format!("unexpected {other:?}")),
        };
        tokens.push(token);
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '.'
}

/// A single name may have any value; with arithmetic, all are numbers.
fn value(inside: &str, find: &dyn Fn(&str) -> Result<String, String>) -> Result<String, String> {
    let tokens = tokens(inside)?;
    if let [Token::Name(name)] = &tokens[..] {
        return find(name);
    }
    let mut reader = Reader { tokens: &tokens, at: 0, find };
    let found = reader.sum()?;
    match reader.at == tokens.len() && found.is_finite() {
        true => Ok(found.to_string()),
        false => Err("expected a number, a name or arithmetic with them".to_owned()),
    }
}

struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
    find: &'a dyn Fn(&str) -> Result<String, String>,
}

impl Reader<'_> {
    fn sign(&mut self, wanted: &[char]) -> Option<char> {
        match self.tokens.get(self.at) {
            Some(Token::Sign(sign)) if wanted.contains(sign) => {
                self.at += 1;
                Some(*sign)
            }
            _ => None,
        }
    }

    fn sum(&mut self) -> Result<f64, String> {
        let mut sum = self.product()?;
        while let Some(sign) = self.sign(&['+', '-']) {
            let next = self.product()?;
            sum += if sign == '+' { next } else { -next };
        }
        Ok(sum)
    }

    fn product(&mut self) -> Result<f64, String> {
        let mut product = self.factor()?;
        while let Some(sign) = self.sign(&['*', '/']) {
            let next = self.factor()?;
            product = if sign == '*' { product * next } else { product / next };
        }
        Ok(product)
    }

    fn factor(&mut self) -> Result<f64, String> {
        if self.sign(&['-']).is_some() {
            return Ok(-self.factor()?);
        }
        if self.sign(&['(']).is_some() {
            return self.closed();
        }
        let token = self.tokens.get(self.at);
        self.at += 1;
        match token {
            Some(Token::Number(number)) => Ok(*number),
            Some(Token::Name(name)) if name == "round" && self.sign(&['(']).is_some() => Ok(self.closed()?.round()),
            Some(Token::Name(name)) => {
                let text = (self.find)(name)?;
                text.parse().map_err(|_| format!("{name} is {text:?}, not a number"))
            }
            _ => Err("expected a number or a name".to_owned()),
        }
    }

    fn closed(&mut self) -> Result<f64, String> {
        let inside = self.sum()?;
        self.sign(&[')']).map(|_| inside).ok_or_else(|| "a parenthesis is not closed".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_are_arithmetic_on_values_and_results() {
        let find = |name: &str| match name {
            "rows" => Ok("500".to_owned()),
            "kind" => Ok("range".to_owned()),
            "l.i1.tps" => Ok("1234.5".to_owned()),
            "first load.write.tps" => Ok("10".to_owned()),
            other => Err(format!("there is no {other}")),
        };
        let fill = |text: &str| filled(text, &find);
        assert_eq!(fill("--rate {rows / 50} --query {kind}").unwrap(), "--rate 10 --query range");
        assert_eq!(fill("{round(l.i1.tps * 2 - (1 + 1))}").unwrap(), "2467");
        assert_eq!(fill("{\"first load\".write.tps * -0.5}").unwrap(), "-5");
        assert_eq!(fill("nothing").unwrap(), "nothing");
        for (wrong, reason) in [
            ("{rows", "a brace is not closed"),
            ("{rowz}", "there is no rowz"),
            ("{kind + 1}", "kind is \"range\", not a number"),
            ("{1 +}", "expected a number or a name"),
            ("{(1}", "a parenthesis is not closed"),
            ("{1 / 0}", "expected a number"),
            ("{}", "expected a number or a name"),
            ("{1 % 2}", "unexpected '%'"),
        ] {
            let said = fill(wrong).unwrap_err();
            assert!(said.contains(reason), "{wrong}: {said}");
        }
        let values = [("rows".to_owned(), "500".to_owned())];
        let partly = bound("{rows / 50} {rows * \"first load\".tps}", &values).unwrap();
        assert_eq!(partly, "10 {500 * \"first load\".tps}");
        assert_eq!(names(&partly).unwrap(), ["first load.tps"]);
    }
}
