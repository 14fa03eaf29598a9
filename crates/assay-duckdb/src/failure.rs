//! DuckDB's errors, mapped to those shared by all databases.
//!
//! The kind of an error is the first words of its message: `Parser Error: …`. Source: DuckDB's documentation of errors,
//! and the messages of version 1.5.

use assay_seam::{Class, Code, Origin, Retry, StatementError};

/// The meaning of this message. `path`: the database file.
pub(crate) fn from_duckdb(message: &str, path: &str) -> StatementError {
    let (kind, text) = message.split_once(" Error: ").unwrap_or(("", message));
    let has = |part: &str| text.contains(part);
    let (class, retry, hint) = match kind {
        "Parser" | "Syntax" => (Class::Syntax, Retry::Never, None),
        "Missing Extension" => (Class::Missing, Retry::Never, Some(EXTENSION.into())),
        _ if has("extension") && (has("exists in the") || has("INSTALL ")) => {
            (Class::Missing, Retry::Never, Some(EXTENSION.into()))
        }
        "Catalog" if has("already exists") => (Class::Exists, Retry::Never, None),
        "Catalog" => (Class::Missing, Retry::Never, None),
        "Binder" if has("not found") || has("does not exist") || has("does not have a column") => {
            (Class::Missing, Retry::Never, None)
        }
        "Binder" => (Class::Syntax, Retry::Never, None),
        "Constraint" => (Class::Constraint, Retry::Never, None),
        "TransactionContext" | "Transaction" if has("onflict") => (Class::Serialization, Retry::AfterBackoff, None),
        "Out of Memory" if has("No space left") || has("disk space") => (Class::Limit, Retry::Never, Some(FULL.into())),
        "Out of Memory" => (Class::Limit, Retry::Never, Some(MEMORY.into())),
        "IO" if has("Could not set lock") || has("being used by another process") => {
            let hint = format!("{path} is open in another process, and DuckDB lets only one write: end that one");
            (Class::Connection, Retry::Never, Some(hint))
        }
        "IO" if has("No space left") => (Class::Limit, Retry::Never, Some(FULL.into())),
        "IO" if has("not a valid DuckDB database file") => {
            (Class::Other, Retry::Never, Some(format!("{path} is not a DuckDB database: choose another file")))
        }
        "IO" if has("Cannot open file") || has("Cannot open database") => {
            let hint = format!("check that {path} and its folder exist, and that this user may write them");
            (Class::Connection, Retry::Never, Some(hint))
        }
        "INTERRUPT" => (Class::Cancelled, Retry::Never, None),
        "Permission" => (Class::Permission, Retry::Never, None),
        _ => (Class::Other, Retry::Never, None),
    };
    StatementError {
        origin: Origin::Server,
        class,
        code: Code::default(),
        retry,
        // The first line: the rest shows the statement with a mark below it.
        message: message.lines().next().unwrap_or_default().to_owned(),
        position: 0,
        hint,
        details: String::new(),
    }
}

const FULL: &str = "make room on the disk, or put the file and temp_directory= elsewhere";
const EXTENSION: &str = "the statement needs an extension, and assay lets DuckDB download none by itself: install it with INSTALL, or allow downloads with autoinstall_known_extensions=true in the URL";
const MEMORY: &str =
    "allow more memory (memory_limit= in the URL), or let the query use the disk (temp_directory= in the URL)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_follow_from_the_kind_of_an_error() {
        let class = |message: &str| from_duckdb(message, "x.duckdb").class;
        assert_eq!(class("Parser Error: syntax error at or near \"selec\""), Class::Syntax);
        assert_eq!(class("Catalog Error: Table with name t does not exist!"), Class::Missing);
        assert_eq!(class("Catalog Error: Table with name \"t\" already exists!"), Class::Exists);
        assert_eq!(class("Binder Error: Referenced column \"b\" not found in FROM clause!"), Class::Missing);
        assert_eq!(
            class("Constraint Error: Duplicate key \"id: 1\" violates primary key constraint."),
            Class::Constraint
        );
        assert_eq!(class("TransactionContext Error: Conflict on tuple update!"), Class::Serialization);
        assert_eq!(class("Out of Memory Error: failed to allocate data"), Class::Limit);
        assert_eq!(class("something else"), Class::Other);
        let missing = "Catalog Error: Table Function with name \"read_xlsx\" is not in the catalog, but it exists in the \
                       excel extension.\n\nPlease try installing and loading the excel extension by running:\nINSTALL excel;";
        for message in [missing, "Missing Extension Error: File s3://x requires the extension httpfs to be loaded"] {
            let error = from_duckdb(message, "x");
            assert!(error.class == Class::Missing && error.hint.unwrap().contains("autoinstall_known_extensions=true"));
        }
    }

    #[test]
    fn a_message_is_its_first_line() {
        let error = from_duckdb("Parser Error: syntax error\n\nLINE 1: selec\n        ^", "x");
        assert_eq!(error.message, "Parser Error: syntax error");
    }
}
