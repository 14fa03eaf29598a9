//! The block of rows that an INSERT sends, as its table stores them.

use assay_seam::{Cell, Class, Rows, StatementError};

use super::block::Block;
use super::packet::write_string;

/// Appends the rows as a block; on an error, nothing. `sample`: the table's columns, as the server sent them in
/// `packet`. `write_head`: writes what comes before its columns, from their number and that of the rows.
pub(super) fn write_rows(
    sample: &Block,
    packet: &[u8],
    rows: &Rows,
    write_head: fn(usize, usize, &mut Vec<u8>),
    out: &mut Vec<u8>,
) -> Result<(), Box<StatementError>> {
    let (columns, start) = (sample.columns(), out.len());
    if columns.len() != rows.columns(0) {
        let message = format!("the table has {} columns here, and rows have {} values", columns.len(), rows.columns(0));
        return Err(Box::new(StatementError::client(Class::Syntax, message)));
    }
    write_head(columns.len(), rows.len(0), out);
    for (at, column) in columns.iter().enumerate() {
        let (name, type_name, (kind, nullable)) = (column.name(packet), column.type_name(packet), column.kind());
        write_string(name, out);
        write_string(type_name, out);
        let cells = || (0..rows.len(0)).map(|row| rows.cell(0, row, at).unwrap_or(Cell::Null));
        if nullable {
            out.extend(cells().map(|cell| u8::from(cell == Cell::Null)));
        }
        let wrong =
            cells().find(|cell| (*cell == Cell::Null && !nullable) || kind.write(*cell, type_name, out).is_none());
        if let Some(cell) = wrong {
            out.truncate(start);
            return Err(Box::new(refused(cell, name, type_name)));
        }
    }
    Ok(())
}

fn refused(cell: Cell<'_>, name: &[u8], type_name: &[u8]) -> StatementError {
    let value = match cell {
        Cell::Null => "NULL".to_owned(),
        Cell::Int(number) => number.to_string(),
        Cell::Double(number) => number.to_string(),
        Cell::Text(text) => format!("'{}'", String::from_utf8_lossy(text).chars().take(40).collect::<String>()),
    };
    let [name, type_name] = [name, type_name].map(String::from_utf8_lossy);
    StatementError::client(Class::Constraint, format!("column {name} of type {type_name} cannot hold {value}"))
}
