//! Blocks: some rows of a table, stored column by column.
//!
//! A block may arrive in many pieces. What was read of it is remembered, so that every byte is read once.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use assay_seam::{Class, Reply, Rows, RowsPool, StatementError, rows::TooLarge};

use super::packet::{Read, Reader, Unread, broken};
use super::types::{self, Type};

/// A block, as far as it has arrived. All places are offsets into the packet.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// Without the fields about the block: as the format Native has it, outside the native protocol.
    is_bare: bool,
    /// What comes next.
    at: usize,
    has_head: bool,
    columns: usize,
    rows: usize,
    /// Columns that are complete. 0 <= done <= columns
    done: usize,
    /// Whether name and type of the next column were read.
    in_column: bool,
    /// One per column; more are spare ones. parts.len() >= done
    parts: Vec<Column>,
    /// A hash of the names and types of the columns of the result's first block.
    shape: u64,
}

/// How a result's rows are wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// With the names of their columns.
    pub(super) labels: bool,
    /// They are only counted.
    pub(super) counts: bool,
}

/// A column.
#[derive(Debug)]
pub(super) struct Column {
    name: Range<usize>,
    /// The text of its type.
    type_name: Range<usize>,
    kind: Type,
    nullable: bool,
    /// Where a byte for each row says whether it is NULL, if values may be.
    nulls: usize,
    /// Where the values are, if all have the same width.
    values: usize,
    /// Where each value is, if they have not.
    texts: Vec<Range<u32>>,
}

/// Columns of a table: more than any server that means well sends.
const COLUMNS_MAX: u64 = 1 << 16;
/// Rows of a block.
const ROWS_MAX: u64 = 1 << 31;
/// Bytes of a block: its places are 32 bits wide.
const BYTES_MAX: usize = 1 << 31;
/// Memory for texts that is kept from one block to the next.
const TEXTS_KEEP_MAX: usize = 1 << 12;

impl Block {
    /// For blocks of the format Native.
    pub(super) fn bare() -> Block {
        Block { is_bare: true, ..Block::default() }
    }

    /// Forgets the last block. `at`: where the next begins in its packet.
    pub(super) fn begin(&mut self, at: usize) {
        (self.at, self.has_head, self.done, self.in_column, self.columns, self.rows) = (at, false, 0, false, 0, 0);
        for column in &mut self.parts {
            column.texts.clear();
            column.texts.shrink_to(TEXTS_KEEP_MAX);
        }
    }

    /// Reads on; `Ok`: it is complete, and ends at the returned place. `packet`: everything that has arrived of it.
    pub(super) fn read(&mut self, packet: &[u8], zone: &str) -> Read<usize> {
        if packet.len() > BYTES_MAX {
            return broken("sent a block of more than 2 GiB");
        }
        let mut reader = Reader::new(packet, self.at);
        if !self.has_head {
            if !self.is_bare {
                read_head(&mut reader)?;
            }
            let (columns, rows) = (reader.number()?, reader.number()?);
            if columns > COLUMNS_MAX || rows > ROWS_MAX {
                return broken("sent a block with too many columns or rows");
            }
            (self.columns, self.rows, self.at, self.has_head) = (columns as usize, rows as usize, reader.at, true);
        }
        while self.done < self.columns {
            if !self.in_column {
                self.begin_column(&mut reader, packet, zone)?;
            }
            let column = &mut self.parts[self.done];
            match column.kind.width() {
                Some(width) => {
                    let nulls = if column.nullable { self.rows } else { 0 };
                    reader.take(nulls + width * self.rows)?;
                    column.values = self.at + nulls;
                }
                None => {
                    if column.nullable && self.at == column.nulls {
                        reader.take(self.rows)?;
                        self.at = reader.at;
                    }
                    while column.texts.len() < self.rows {
                        let length = reader.string()?.len();
                        column.texts.push((reader.at - length) as u32..reader.at as u32);
                        self.at = reader.at;
                    }
                }
            }
            (self.at, self.in_column) = (reader.at, false);
            self.done += 1;
        }
        Ok(self.at)
    }

    fn begin_column(&mut self, reader: &mut Reader<'_>, packet: &[u8], zone: &str) -> Read<()> {
        let mut range = || -> Read<Range<usize>> {
            let length = reader.string()?.len();
            Ok(reader.at - length..reader.at)
        };
        let (name, type_name) = (range()?, range()?);
        let known = types::parse(&packet[type_name.clone()], zone);
        let Some((kind, nullable)) = known else {
            return Err(Unread::Broken(types::unsupported(&packet[name], &packet[type_name], zone)));
        };
        if self.parts.len() == self.done {
            self.parts.push(Column {
                name: 0..0,
                type_name: 0..0,
                kind,
                nullable,
                nulls: 0,
                values: 0,
                texts: Vec::new(),
            });
        }
        let column = &mut self.parts[self.done];
        (column.name, column.type_name, column.kind, column.nullable) = (name, type_name, kind, nullable);
        column.nulls = reader.at;
        (self.at, self.in_column) = (reader.at, true);
        Ok(())
    }

    /// Its columns.
    pub(super) fn columns(&self) -> &[Column] {
        &self.parts[..self.done]
    }

    fn shape_of(&self, packet: &[u8]) -> u64 {
        let mut hasher = DefaultHasher::new();
        for column in self.columns() {
            (column.name(packet), column.type_name(packet)).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Appends its rows to a reply. All blocks of one have the same columns.
    pub(super) fn answer(
        &mut self,
        packet: &[u8],
        Wanted { labels, counts }: Wanted,
        reply: &mut Reply,
        pool: &mut RowsPool,
    ) -> Read<()> {
        let shape = self.shape_of(packet);
        if reply.rows.is_some() && shape != self.shape {
            return broken("changed the columns of a result between two blocks");
        }
        self.shape = shape;
        let (columns, is_first) = (self.columns(), reply.rows.is_none());
        let rows = reply.rows.get_or_insert_with(|| pool.take());
        if is_first {
            rows.begin_set(if counts { 0 } else { columns.len() });
            if labels && !counts {
                columns.iter().for_each(|column| rows.push_label(column.name(packet)));
            }
        }
        if counts {
            (0..self.rows).for_each(|_| rows.push_bare_row());
        } else if self.append(packet, rows).is_err() {
            let error = StatementError::client(Class::Limit, "the result is larger than 4 GiB");
            return Err(Unread::Broken(Box::new(error)));
        }
        pool.relieve(rows);
        Ok(())
    }

    /// Appends its rows to the last result set.
    pub(super) fn append(&self, packet: &[u8], rows: &mut Rows) -> Result<(), TooLarge> {
        for row in 0..self.rows {
            for column in self.columns() {
                column.push(row, packet, rows)?;
            }
        }
        Ok(())
    }
}

impl Column {
    /// Its name.
    pub(super) fn name<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        &packet[self.name.clone()]
    }

    /// The text of its type.
    pub(super) fn type_name<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        &packet[self.type_name.clone()]
    }

    /// Its type, and whether values may be NULL.
    pub(super) fn kind(&self) -> (Type, bool) {
        (self.kind, self.nullable)
    }

    fn push(&self, row: usize, packet: &[u8], rows: &mut Rows) -> Result<(), TooLarge> {
        if self.nullable && packet[self.nulls + row] != 0 {
            rows.push_null();
            return Ok(());
        }
        let bytes = match self.kind.width() {
            Some(width) => &packet[self.values + row * width..][..width],
            None => &packet[self.texts[row].start as usize..self.texts[row].end as usize],
        };
        self.kind.push(bytes, self.type_name(packet), rows)
    }
}

/// The name of a table, and numbered fields about the block, which only other servers need.
fn read_head(reader: &mut Reader<'_>) -> Read<()> {
    reader.string()?;
    loop {
        match reader.number()? {
            0 => return Ok(()),
            1 => drop(reader.byte()?),
            2 => drop(reader.int32()?),
            _ => return broken("described a block by an unknown field"),
        }
    }
}
