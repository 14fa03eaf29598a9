//! Option values: sysbench's types and how they are parsed.
//!
//! One thing is accepted that sysbench does not accept: a number with a fraction may have a size suffix
//! (`--table-size=1M`), where sysbench silently reads 1.

use assay_options::{OptionKind, OptionValue};

/// How an option's text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// A switch.
    Bool,
    /// A whole number that fits 32 bits.
    Int,
    /// Bytes, with a suffix.
    Size,
    /// Bytes, but listed as a number.
    Bytes,
    /// A number.
    Double,
    /// Anything.
    Text,
    /// A switch in one version and a text in another: values of a switch become booleans.
    SwitchOrText,
    /// Separated by commas.
    List,
    /// A configuration file, read where it occurs.
    File,
}

impl From<OptionKind> for ValueKind {
    fn from(kind: OptionKind) -> ValueKind {
        match kind {
            OptionKind::Bool => ValueKind::Bool,
            OptionKind::Int => ValueKind::Int,
            OptionKind::Double => ValueKind::Double,
            OptionKind::Size => ValueKind::Size,
            OptionKind::Text => ValueKind::Text,
            OptionKind::List => ValueKind::List,
            OptionKind::File => ValueKind::File,
        }
    }
}

/// A value that cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// "invalid option: …": the whole argument is refused.
    Option,
    /// "Invalid value for the … option": it should be a number.
    Number,
}

impl ValueKind {
    /// What follows the name in a list of options.
    pub fn mark(self) -> &'static str {
        match self {
            ValueKind::Bool => "[=on|off]",
            ValueKind::Int | ValueKind::Double | ValueKind::Bytes => "=N",
            ValueKind::Size => "=SIZE",
            ValueKind::Text | ValueKind::SwitchOrText => "=STRING",
            ValueKind::List => "=[LIST,...]",
            ValueKind::File => "=FILENAME",
        }
    }

    /// Parses the text after `=`; `None` if there is no `=`. No value clears an option, except a switch, which it turns
    /// on.
    pub fn read(self, text: Option<&str>) -> Result<OptionValue, Unreadable> {
        let given = text.unwrap_or_default();
        Ok(match self {
            ValueKind::Bool => match text {
                None | Some("on" | "true" | "1") => OptionValue::Bool(true),
                Some("off" | "false" | "0") => OptionValue::Bool(false),
                Some(_) => return Err(Unreadable::Option),
            },
            ValueKind::Int if given.is_empty() => OptionValue::Number(0.0),
            ValueKind::Int => {
                let number: i32 = given.trim_start().parse().map_err(|_| Unreadable::Number)?;
                OptionValue::Number(f64::from(number))
            }
            ValueKind::Size | ValueKind::Bytes => OptionValue::Number(size(given)),
            ValueKind::Double => OptionValue::Number(double(given)),
            ValueKind::Text => OptionValue::Text(given.to_owned()),
            ValueKind::SwitchOrText => ValueKind::Bool.read(text).or_else(|_| ValueKind::Text.read(text))?,
            ValueKind::List => {
                OptionValue::List(given.split(',').filter(|item| !item.is_empty()).map(str::to_owned).collect())
            }
            ValueKind::File => OptionValue::None,
        })
    }
}

/// Digits and at most one suffix, whose first letter counts; 0 for anything else.
fn size(text: &str) -> f64 {
    let digits = text.trim_start().bytes().take_while(u8::is_ascii_digit).count();
    let (number, suffix) = text.trim_start().split_at(digits);
    let number: f64 = number.parse().unwrap_or(0.0);
    let first = suffix.chars().next().map_or(0, char::len_utf8);
    factor(&suffix[..first]).map_or(0.0, |factor| number * factor)
}

/// Powers of 1024.
fn factor(suffix: &str) -> Option<f64> {
    let power = match suffix {
        "" => 0,
        "k" | "K" => 1,
        "m" | "M" => 2,
        "g" | "G" => 3,
        "t" | "T" => 4,
        _ => return None,
    };
    Some(1024f64.powi(power))
}

/// The longest prefix that is a number, times its suffix; 0 if there is none.
fn double(text: &str) -> f64 {
    let text = text.trim_start();
    if let Some(number) = other_double(text) {
        return number;
    }
    let ends = (1..=text.len()).rev().filter(|end| text.is_char_boundary(*end));
    let readable = |end: &usize| {
        let number = &text[..*end];
        number.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte)) && number.parse::<f64>().is_ok()
    };
    let Some(end) = ends.into_iter().find(readable) else { return 0.0 };
    let number: f64 = text[..end].parse().expect("it was just read");
    number * factor(&text[end..]).unwrap_or(1.0)
}

/// What C's `strtod` reads besides decimal numbers: infinity, "not a number", hexadecimal digits.
fn other_double(text: &str) -> Option<f64> {
    let bare = text.strip_prefix(['+', '-']).unwrap_or(text);
    let begins = |word: &str| bare.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word));
    let digit = |character: char| character.to_digit(16).map(f64::from);
    let number = if begins("inf") {
        f64::INFINITY
    } else if begins("nan") {
        f64::NAN
    } else if begins("0x") && bare.chars().nth(2).and_then(digit).is_some() {
        bare[2..].chars().map_while(digit).fold(0.0, |number, digit| number * 16.0 + digit)
    } else {
        return None;
    };
    Some(if text.starts_with('-') { -number } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(kind: ValueKind, text: &str, wanted: Result<f64, Unreadable>) {
        assert_eq!(kind.read(Some(text)), wanted.map(OptionValue::Number), "{kind:?} {text}");
    }

    #[test]
    fn numbers_are_read_as_sysbench_reads_them() {
        check(ValueKind::Int, "-7", Ok(-7.0));
        check(ValueKind::Int, "", Ok(0.0));
        check(ValueKind::Int, "7x", Err(Unreadable::Number));
        check(ValueKind::Int, "3000000000", Err(Unreadable::Number));
        check(ValueKind::Int, "1.5", Err(Unreadable::Number));
        check(ValueKind::Size, "16k", Ok(16384.0));
        check(ValueKind::Size, "2G", Ok(2147483648.0));
        check(ValueKind::Size, "2X", Ok(0.0));
        check(ValueKind::Size, "abc", Ok(0.0));
        check(ValueKind::Double, "0.8", Ok(0.8));
        check(ValueKind::Double, "abc", Ok(0.0));
        check(ValueKind::Double, "12abc", Ok(12.0));
        check(ValueKind::Double, "1e3", Ok(1000.0));
        check(ValueKind::Double, "0x1F", Ok(31.0));
        check(ValueKind::Double, "-inf", Ok(f64::NEG_INFINITY));
        check(ValueKind::Size, "1KB", Ok(1024.0));
    }

    #[test]
    fn a_table_of_a_million_rows_is_no_table_of_one() {
        check(ValueKind::Double, "1M", Ok(1048576.0));
        check(ValueKind::Double, "10k", Ok(10240.0));
    }

    #[test]
    fn switches_take_six_words() {
        let read = |text| ValueKind::Bool.read(text);
        for word in [None, Some("on"), Some("true"), Some("1")] {
            assert_eq!(read(word), Ok(OptionValue::Bool(true)));
        }
        for word in ["off", "false", "0"] {
            assert_eq!(read(Some(word)), Ok(OptionValue::Bool(false)));
        }
        for word in ["", "yes", "On"] {
            assert_eq!(read(Some(word)), Err(Unreadable::Option), "{word}");
        }
    }
}
