//! Option files: one `name=value` per line.
//!
//! A name ends at `=`, including blanks, so `threads = 4` names an unknown option. In the value, `#` starts a comment;
//! blanks and commas separate the items of a list; single or double quotes hold an item together.

/// Longest line that is read; the rest of a longer one counts as a line of its own.
const LINE_MAX: usize = 255;

/// The options of a file, in order. Items of a value are joined by commas.
pub fn pairs(text: &str) -> Vec<(String, String)> {
    text.lines().flat_map(pieces).filter_map(pair).collect()
}

fn pieces(line: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = line;
    while rest.len() > LINE_MAX {
        let end = (1..=LINE_MAX).rev().find(|end| rest.is_char_boundary(*end)).unwrap_or(rest.len());
        let (piece, more) = rest.split_at(end);
        pieces.push(piece);
        rest = more;
    }
    pieces.push(rest);
    pieces
}

fn pair(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once('=')?;
    (!name.is_empty() && !name.starts_with('#')).then(|| (name.to_owned(), items(value).join(",")))
}

fn items(value: &str) -> Vec<String> {
    let mut items = Vec::new();
    let mut item = String::new();
    let mut begun = false;
    let mut quote = None;
    for character in value.chars() {
        match (character, quote) {
            (_, Some(open)) if character == open => quote = None,
            (_, Some(_)) => item.push(character),
            ('\'' | '"', None) => (quote, begun) = (Some(character), true),
            ('#', None) => break,
            (',' | ' ' | '\t' | '\r', None) => {
                if begun {
                    items.push(std::mem::take(&mut item));
                }
                begun = false;
            }
            (_, None) => {
                item.push(character);
                begun = true;
            }
        }
    }
    if begun {
        items.push(item);
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_lines_of_name_and_value() {
        let text = "# comment\nthreads=4 # four\n\nno equals sign\nmysql-host=a, b  c\nmysql-password='x, #y'\n\
                    time =3\nmysql-socket=\nlast=\"q\"\n";
        let found = pairs(text);
        let found: Vec<(&str, &str)> = found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(
            found,
            [
                ("threads", "4"),
                ("mysql-host", "a,b,c"),
                ("mysql-password", "x, #y"),
                ("time ", "3"),
                ("mysql-socket", ""),
                ("last", "q"),
            ]
        );
    }

    #[test]
    fn a_long_line_is_cut() {
        let found = pairs(&format!("a={}b=1\n", "x".repeat(253)));
        assert_eq!(found.len(), 2);
        assert_eq!(found[1], ("b".to_owned(), "1".to_owned()));
    }
}
