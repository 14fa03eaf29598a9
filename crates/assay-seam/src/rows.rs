//! Rows in a protocol-independent form: results on their way to a script, and batches to load.
//!
//! Cells are stored in two flat buffers, so that a reused `Rows` allocates nothing once it has grown. A pool keeps a
//! worker's spare ones: only sessions that are receiving hold one.

/// Result sets, one after the other. Bounded: at most 2³² − 1 bytes of cell data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    sets: Vec<Set>,
    cells: Vec<Slot>,
    bytes: Vec<u8>,
    /// Names of columns if the driver reports them, each followed by a NUL.
    labels: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Set {
    columns: u32,
    /// Rows, if it has no columns.
    bare_rows: u32,
    /// Index into `cells` of the set's first cell. 0 <= first_cell <= cells.len()
    first_cell: usize,
    /// Index into `labels` of its first column's label. 0 <= first_label <= labels.len()
    first_label: usize,
}

/// Where a cell's content is. `start + len <= bytes.len()` for text; `number` bits otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Slot {
    Null,
    Text { start: u32, len: u32 },
    Int(i64),
    Double(f64),
}

/// One cell as its reader sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// SQL NULL.
    Null,
    /// Text as the server wrote it, or raw bytes of a binary column.
    Text(&'a [u8]),
    /// An integer that arrived in binary form.
    Int(i64),
    /// A floating-point number that arrived in binary form.
    Double(f64),
}

/// The cell data of one `Rows` would exceed 2³² − 1 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

impl Rows {
    /// Number of result sets.
    pub fn sets(&self) -> usize {
        self.sets.len()
    }

    /// Columns of set `set`; 0 if there is no such set.
    pub fn columns(&self, set: usize) -> usize {
        self.sets.get(set).map_or(0, |set| set.columns as usize)
    }

    /// Rows of set `set`; 0 if there is no such set.
    pub fn len(&self, set: usize) -> usize {
        let Some(this) = self.sets.get(set) else { return 0 };
        if this.columns == 0 {
            return this.bare_rows as usize;
        }
        let end = self.sets.get(set + 1).map_or(self.cells.len(), |next| next.first_cell);
        (end - this.first_cell) / this.columns as usize
    }

    /// True if no set has a row.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty() && self.sets.iter().all(|set| set.bare_rows == 0)
    }

    /// The cell at `row`, `column` of set `set`, counted from 0; `None` outside it.
    pub fn cell(&self, set: usize, row: usize, column: usize) -> Option<Cell<'_>> {
        let this = self.sets.get(set)?;
        if column >= this.columns as usize || row >= self.len(set) {
            return None;
        }
        self.cells.get(this.first_cell + row * this.columns as usize + column).map(|slot| self.read(slot))
    }

    /// The cells of set `set` from row `row` on, row by row; empty if there is no such row. Cheaper than `cell` for
    /// each.
    pub fn cells_from(&self, set: usize, row: usize) -> impl Iterator<Item = Cell<'_>> {
        let range = self.sets.get(set).map_or(0..0, |this| {
            let [first, end] = [row, self.len(set)].map(|row| this.first_cell + row * this.columns as usize);
            first.min(end)..end
        });
        self.cells[range].iter().map(|slot| self.read(slot))
    }

    fn read(&self, slot: &Slot) -> Cell<'_> {
        match *slot {
            Slot::Null => Cell::Null,
            Slot::Int(value) => Cell::Int(value),
            Slot::Double(value) => Cell::Double(value),
            Slot::Text { start, len } => Cell::Text(&self.bytes[start as usize..start as usize + len as usize]),
        }
    }

    /// Bytes of text, to decide when a batch is large enough.
    pub fn size(&self) -> usize {
        self.bytes.len() + self.cells.len() * 4
    }

    /// Whether all text is ASCII. Fast: text is contiguous.
    pub fn is_ascii(&self) -> bool {
        self.bytes.is_ascii()
    }

    /// The floating-point numbers, in the order of their cells. Cheaper than looking at all cells.
    pub fn doubles(&self) -> impl Iterator<Item = f64> {
        self.cells.iter().filter_map(|slot| match slot {
            Slot::Double(value) => Some(*value),
            _ => None,
        })
    }

    /// Bytes of memory held, used or spare.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
            + self.labels.capacity()
            + self.cells.capacity() * size_of::<Slot>()
            + self.sets.capacity() * size_of::<Set>()
    }

    /// Starts a result set of `columns` columns; the cells pushed next belong to it, row by row.
    pub fn begin_set(&mut self, columns: usize) {
        let (first_cell, first_label) = (self.cells.len(), self.labels.len());
        self.sets.push(Set { columns: columns as u32, bare_rows: 0, first_cell, first_label });
    }

    /// Appends the name of the next column of the last set. Drivers report names for statements sent as text.
    pub fn push_label(&mut self, label: &[u8]) {
        self.labels.extend_from_slice(label);
        self.labels.push(0);
    }

    /// The name of a column, counted from 0; `None` if unknown.
    pub fn label(&self, set: usize, column: usize) -> Option<&[u8]> {
        let end = self.sets.get(set + 1).map_or(self.labels.len(), |next| next.first_label);
        let labels = &self.labels[self.sets.get(set)?.first_label..end];
        labels.split_inclusive(|byte| *byte == 0).nth(column).map(|label| &label[..label.len() - 1])
    }

    /// Counts a row of the last set, which has no columns: PostgreSQL's `SELECT` returns one, and a driver that only
    /// counts rows begins such a set.
    pub fn push_bare_row(&mut self) {
        if let Some(set) = self.sets.last_mut() {
            set.bare_rows = set.bare_rows.saturating_add(1);
        }
    }

    /// Appends a NULL.
    pub fn push_null(&mut self) {
        self.cells.push(Slot::Null);
    }

    /// Appends an integer.
    pub fn push_int(&mut self, value: i64) {
        self.cells.push(Slot::Int(value));
    }

    /// Appends a floating-point number.
    pub fn push_double(&mut self, value: f64) {
        self.cells.push(Slot::Double(value));
    }

    /// Appends text.
    pub fn push_text(&mut self, text: &[u8]) -> Result<(), TooLarge> {
        self.room_for(text.len())?;
        let start = self.bytes.len();
        self.bytes.extend_from_slice(text);
        self.end_text(start);
        Ok(())
    }

    /// Appends text that is created in place: `make` gets `most` zeros and returns how many of them it overwrote.
    pub fn push_made(&mut self, most: usize, make: impl FnOnce(&mut [u8]) -> usize) -> Result<(), TooLarge> {
        self.room_for(most)?;
        let start = self.bytes.len();
        self.bytes.resize(start + most, 0);
        let made = make(&mut self.bytes[start..]);
        self.bytes.truncate(start + made);
        self.end_text(start);
        Ok(())
    }

    /// Checks that this many more bytes are not too many.
    fn room_for(&self, bytes: usize) -> Result<(), TooLarge> {
        u32::try_from(self.bytes.len() + bytes).map_or(Err(TooLarge), |_| Ok(()))
    }

    /// The bytes from `start` on are a cell's.
    fn end_text(&mut self, start: usize) {
        self.cells.push(Slot::Text { start: start as u32, len: (self.bytes.len() - start) as u32 });
    }

    /// Forgets the rows; sets, their columns and the memory stay.
    pub fn clear_rows(&mut self) {
        for set in &mut self.sets {
            (set.first_cell, set.bare_rows) = (0, 0);
        }
        self.cells.clear();
        self.bytes.clear();
    }

    /// Forgets the content, keeps the memory.
    pub fn clear(&mut self) {
        self.sets.clear();
        self.cells.clear();
        self.bytes.clear();
        self.labels.clear();
    }
}

/// The spare `Rows` of one worker. Keeps at most `SPARE_MAX` of at most `SPARE_BYTES_MAX` each.
#[derive(Debug, Default)]
pub struct RowsPool {
    #[expect(clippy::vec_box, reason = "boxes travel inside `Reply`; taking one must not allocate")]
    spare: Vec<Box<Rows>>,
    outlet: Option<Outlet>,
}

/// Takes the rows of large results while they arrive.
pub struct Outlet {
    /// Bytes of rows that are kept for the answer.
    pub bytes_max: usize,
    /// Is given all rows so far, which are then forgotten. Their set is the last one.
    pub take: Box<dyn FnMut(&Rows) + Send>,
}

impl std::fmt::Debug for Outlet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outlet").field("bytes_max", &self.bytes_max).finish_non_exhaustive()
    }
}

const SPARE_MAX: usize = 64;
const SPARE_BYTES_MAX: usize = 256 * 1024;

impl RowsPool {
    /// An empty `Rows`, a spare one if there is any.
    pub fn take(&mut self) -> Box<Rows> {
        self.spare.pop().unwrap_or_default()
    }

    /// Results with more rows than fit into memory: from now on, connections hand rows to the outlet as they arrive.
    pub fn set_outlet(&mut self, outlet: Option<Outlet>) {
        self.outlet = outlet;
    }

    /// For connections, between two rows of an answer: if there is an outlet and the rows are too large, it gets them.
    pub fn relieve(&mut self, rows: &mut Rows) {
        let Some(outlet) = &mut self.outlet else { return };
        if rows.bytes.len() + rows.cells.len() * size_of::<Slot>() > outlet.bytes_max {
            (outlet.take)(rows);
            rows.clear_rows();
        }
    }

    /// Returns one to the pool.
    pub fn put(&mut self, mut rows: Box<Rows>) {
        if self.spare.len() < SPARE_MAX && rows.capacity() <= SPARE_BYTES_MAX {
            rows.clear();
            self.spare.push(rows);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_found_in_their_set_row_and_column() {
        let mut rows = Rows::default();
        rows.begin_set(2);
        rows.push_text(b"a").unwrap();
        rows.push_null();
        rows.push_int(-3);
        rows.push_double(0.5);
        rows.begin_set(1);
        rows.begin_set(1);
        rows.push_text(b"").unwrap();
        assert_eq!((rows.sets(), rows.len(0), rows.len(1), rows.len(2), rows.len(3)), (3, 2, 0, 1, 0));
        assert_eq!(rows.cell(0, 0, 0), Some(Cell::Text(b"a")));
        assert_eq!(rows.cell(0, 0, 1), Some(Cell::Null));
        assert_eq!(rows.cell(0, 1, 0), Some(Cell::Int(-3)));
        assert_eq!(rows.cell(0, 1, 1), Some(Cell::Double(0.5)));
        assert_eq!(rows.cell(0, 2, 0), None);
        assert_eq!(rows.cell(1, 0, 0), None);
        assert_eq!(rows.cell(2, 0, 0), Some(Cell::Text(b"")));
        assert_eq!(rows.cells_from(0, 1).collect::<Vec<_>>(), [Cell::Int(-3), Cell::Double(0.5)]);
        assert_eq!([0, 1, 2, 3].map(|set| rows.cells_from(set, 0).count()), [4, 0, 1, 0]);
        assert_eq!(rows.cells_from(0, 3).count(), 0);
        rows.begin_set(0);
        rows.push_bare_row();
        assert_eq!((rows.len(3), rows.cell(3, 0, 0), rows.cells_from(3, 0).count()), (1, None, 0));
    }

    #[test]
    fn an_outlet_takes_rows_that_are_too_large_and_nothing_else() {
        let mut pool = RowsPool::default();
        let mut rows = pool.take();
        rows.begin_set(2);
        rows.push_label(b"n");
        rows.push_label(b"t");
        let row = |rows: &mut Rows, number| {
            rows.push_int(number);
            rows.push_text(&[b'x'; 100]).unwrap();
        };
        (0..9).for_each(|number| row(&mut rows, number));
        pool.relieve(&mut rows);
        assert_eq!(rows.len(0), 9, "no outlet is set");
        let (sender, taken) = std::sync::mpsc::channel();
        let take = Box::new(move |rows: &Rows| {
            sender.send((rows.len(0), rows.cell(0, 0, 0).map(|cell| format!("{cell:?}")))).unwrap()
        });
        pool.set_outlet(Some(Outlet { bytes_max: 1000, take }));
        pool.relieve(&mut rows);
        assert_eq!((rows.len(0), rows.columns(0), rows.label(0, 1)), (0, 2, Some(&b"t"[..])));
        row(&mut rows, 9);
        pool.relieve(&mut rows);
        assert_eq!((rows.len(0), rows.cell(0, 0, 0)), (1, Some(Cell::Int(9))));
        assert_eq!(taken.try_iter().collect::<Vec<_>>(), [(9, Some("Int(0)".to_owned()))]);
    }
}
