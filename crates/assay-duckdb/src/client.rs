//! DuckDB's handles as values: a database, its clients, their statements and results, and a loader.
//!
//! All unsafe calls are here and in `values`. Handles are valid from the call that makes them until `drop`; a result
//! ends before the client that made it, which ends before its database.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use assay_seam::{Cell, Class, Interrupter, StatementError, Value};

use crate::failure::from_duckdb;
use crate::library::{Functions, Handle, RawResult, functions};
use crate::settings::{DOWNLOADS, FileSettings};
use crate::values::Column;

/// An open database file. All clients of this process share it: DuckDB may open a file only once.
#[derive(Debug)]
pub(crate) struct Instance {
    functions: &'static Functions,
    handle: Handle,
    path: String,
    configuration: Vec<(&'static str, String)>,
}

// SAFETY: DuckDB's database handle may be used by several threads at once.
unsafe impl Send for Instance {}
// SAFETY: the same.
unsafe impl Sync for Instance {}

/// What is open, by its file.
static OPEN: Mutex<Option<HashMap<PathBuf, Weak<Instance>>>> = Mutex::new(None);

impl Instance {
    fn shared(settings: &FileSettings) -> Result<Arc<Instance>, StatementError> {
        // A name like `md:x` would mean something else.
        let file = Path::new(".").join(&settings.path);
        let folder = file.parent().and_then(|folder| folder.canonicalize().ok());
        let made = || folder.zip(file.file_name()).map_or_else(|| file.clone(), |(folder, name)| folder.join(name));
        let key = file.canonicalize().unwrap_or_else(|_| made());
        // Held while the file is opened, so that nobody opens it, too.
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let open = open.get_or_insert_with(HashMap::new);
        if let Some(instance) = open.get(&key).and_then(Weak::upgrade) {
            if instance.configuration != settings.configuration {
                return Err(StatementError {
                    hint: Some("use the same parameters in all URLs of a file".to_owned()),
                    ..StatementError::client(
                        Class::Connection,
                        format!("{} is open with other parameters", settings.path),
                    )
                });
            }
            return Ok(instance);
        }
        let instance = Arc::new(Instance::open(settings, &file)?);
        open.retain(|_, instance| instance.strong_count() > 0);
        open.insert(key, Arc::downgrade(&instance));
        Ok(instance)
    }

    fn open(settings: &FileSettings, file: &Path) -> Result<Instance, StatementError> {
        let functions = functions(settings.library.as_deref())?;
        let path = text(file.to_string_lossy().as_bytes())?;
        let (mut configuration, mut handle, mut error) = (null_mut(), null_mut(), null_mut());
        let failed = |message: &str| from_duckdb(message, &settings.path);
        // SAFETY: see the head; `error` is freed, and the configuration destroyed, on every way out.
        unsafe {
            if (functions.create_config)(&mut configuration) != 0 {
                return Err(failed("the configuration cannot be made"));
            }
            let mut refused = None;
            if settings.configuration.iter().all(|(name, _)| *name != DOWNLOADS) {
                // A library without this setting downloads nothing by itself.
                let (name, value) = (text(DOWNLOADS.as_bytes())?, text(b"false")?);
                (functions.set_config)(configuration, name.as_ptr(), value.as_ptr());
            }
            for (name, value) in &settings.configuration {
                let (name_text, value_text) = (text(name.as_bytes())?, text(value.as_bytes())?);
                if (functions.set_config)(configuration, name_text.as_ptr(), value_text.as_ptr()) != 0 {
                    refused = Some(failed(&format!("{name} cannot be {value:?}")));
                }
            }
            let state = match refused {
                Some(_) => 1,
                None => (functions.open_ext)(path.as_ptr(), &mut handle, configuration, &mut error),
            };
            (functions.destroy_config)(&mut configuration);
            let message = taken(functions, error);
            if state != 0 {
                return Err(refused.unwrap_or_else(|| failed(&message)));
            }
        }
        let (path, configuration) = (settings.path.clone(), settings.configuration.clone());
        Ok(Instance { functions, handle, path, configuration })
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // SAFETY: nobody else has the handle.
        unsafe { (self.functions.close)(&mut self.handle) }
    }
}

/// The text of an error that DuckDB allocated.
unsafe fn taken(functions: &Functions, error: *mut c_char) -> String {
    if error.is_null() {
        return "no reason was given".to_owned();
    }
    // SAFETY: the caller's; it is a text that ends with NUL.
    unsafe {
        let message = CStr::from_ptr(error).to_string_lossy().into_owned();
        (functions.free)(error.cast());
        message
    }
}

/// A text that DuckDB keeps.
unsafe fn shown(text: *const c_char) -> String {
    if text.is_null() {
        return "no reason was given".to_owned();
    }
    // SAFETY: the caller's; it is a text that ends with NUL.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

fn text(bytes: &[u8]) -> Result<CString, StatementError> {
    let refused = |message: &str| StatementError::client(Class::Syntax, message.to_owned());
    if std::str::from_utf8(bytes).is_err() {
        return Err(refused("the statement is not valid UTF-8; pass binary data as parameters"));
    }
    CString::new(bytes).map_err(|_| refused("the statement contains a NUL byte; pass binary data as parameters"))
}

/// One session of a database.
#[derive(Debug)]
pub(crate) struct Client {
    handle: Handle,
    instance: Arc<Instance>,
    /// The handle for other threads; `None`: it is closed.
    shared: Arc<Mutex<Option<SharedHandle>>>,
}

/// A client's handle, as far as it may be used by another thread: to interrupt it.
#[derive(Clone, Copy, Debug)]
struct SharedHandle(Handle);

// SAFETY: DuckDB lets any thread interrupt a connection that is open.
unsafe impl Send for SharedHandle {}

impl Client {
    /// Opens the file, unless this process has done so.
    pub(crate) fn new(settings: &FileSettings) -> Result<Client, StatementError> {
        let instance = Instance::shared(settings)?;
        let mut handle = null_mut();
        // SAFETY: see the head.
        if unsafe { (instance.functions.connect)(instance.handle, &mut handle) } != 0 {
            return Err(from_duckdb("a new session was refused", &instance.path));
        }
        Ok(Client { handle, instance, shared: Arc::new(Mutex::new(Some(SharedHandle(handle)))) })
    }

    /// Ends the statement in progress, if there is one.
    pub(crate) fn interrupter(&self) -> Interrupter {
        let (shared, functions) = (Arc::clone(&self.shared), self.functions());
        Arc::new(move || {
            if let Some(handle) = *shared.lock().unwrap_or_else(PoisonError::into_inner) {
                // SAFETY: see the head; it is open as long as the lock is held.
                unsafe { (functions.interrupt)(handle.0) }
            }
        })
    }

    /// DuckDB's version: `1.5.6`.
    pub(crate) fn version(&self) -> String {
        // SAFETY: it returns a constant.
        let version = unsafe { shown((self.functions().library_version)()) };
        version.strip_prefix('v').map_or(version.clone(), str::to_owned)
    }

    fn functions(&self) -> &'static Functions {
        self.instance.functions
    }

    fn failed(&self, message: &str) -> StatementError {
        from_duckdb(message, &self.instance.path)
    }

    /// The statements of a text, each to be prepared when those before it have been executed.
    pub(crate) fn statements(&self, sql: &[u8]) -> Result<Statements<'_>, StatementError> {
        let sql = text(sql)?;
        let mut handle = null_mut();
        // SAFETY: see the head.
        let count = unsafe { (self.functions().extract_statements)(self.handle, sql.as_ptr(), &mut handle) };
        let statements = Statements { handle, count, client: self };
        if count == 0 {
            // SAFETY: the text belongs to the handle.
            let message = unsafe { (self.functions().extract_statements_error)(handle) };
            // A text without a statement, such as a comment, has no error.
            if !message.is_null() {
                // SAFETY: the same.
                return Err(self.failed(&unsafe { shown(message) }));
            }
        }
        Ok(statements)
    }

    /// A loader of rows into some columns of a table; empty: all of them.
    pub(crate) fn loader(&self, table: &str, columns: &str) -> Result<Loader<'_>, StatementError> {
        let (schema, table) = table.split_once('.').map_or((None, table), |(schema, table)| (Some(schema), table));
        let schema = schema.map(|schema| text(unquoted(schema).as_bytes())).transpose()?;
        let name = text(unquoted(table).as_bytes())?;
        let schema = schema.as_ref().map_or(std::ptr::null(), |schema| schema.as_ptr());
        let mut loader = Loader { handle: null_mut(), client: self };
        // SAFETY: see the head. DuckDB makes a handle for the error, too.
        let state =
            unsafe { (self.functions().appender_create)(self.handle, schema, name.as_ptr(), &mut loader.handle) };
        loader.checked(state)?;
        for column in columns.split(',').map(str::trim).filter(|column| !column.is_empty()) {
            let column = text(unquoted(column).as_bytes())?;
            // SAFETY: see the head.
            let state = unsafe { (self.functions().appender_add_column)(loader.handle, column.as_ptr()) };
            loader.checked(state)?;
        }
        Ok(loader)
    }
}

fn unquoted(name: &str) -> String {
    let name = name.trim();
    let inner = name.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
    inner.map_or_else(|| name.to_owned(), |inner| inner.replace("\"\"", "\""))
}

impl Drop for Client {
    fn drop(&mut self) {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).take();
        // SAFETY: its statements and results are gone.
        unsafe { (self.functions().disconnect)(&mut self.handle) }
    }
}

/// The statements of a text.
pub(crate) struct Statements<'c> {
    handle: Handle,
    count: u64,
    client: &'c Client,
}

impl Statements<'_> {
    pub(crate) fn len(&self) -> u64 {
        self.count
    }

    /// Prepares one. `index < len()`.
    pub(crate) fn prepare(&self, index: u64) -> Result<Prepared, StatementError> {
        let functions = self.client.functions();
        let mut prepared = Prepared { handle: null_mut(), functions, instance: Arc::clone(&self.client.instance) };
        // SAFETY: see the head. DuckDB makes a handle for the error, too.
        let state = unsafe {
            (functions.prepare_extracted_statement)(self.client.handle, self.handle, index, &mut prepared.handle)
        };
        if state != 0 {
            // SAFETY: the text belongs to the handle.
            return Err(self.client.failed(&unsafe { shown((functions.prepare_error)(prepared.handle)) }));
        }
        Ok(prepared)
    }
}

impl Drop for Statements<'_> {
    fn drop(&mut self) {
        // SAFETY: it is used nowhere else.
        unsafe { (self.client.functions().destroy_extracted)(&mut self.handle) }
    }
}

/// A prepared statement. It keeps its database open; DuckDB lets it outlive its client.
#[derive(Debug)]
pub(crate) struct Prepared {
    handle: Handle,
    functions: &'static Functions,
    instance: Arc<Instance>,
}

/// `duckdb_statement_type`: BEGIN, COMMIT and ROLLBACK.
const TRANSACTION: i32 = 10;

impl Prepared {
    /// Whether it begins or ends a transaction.
    pub(crate) fn is_of_transaction(&self) -> bool {
        // SAFETY: see the head.
        unsafe { (self.functions.prepared_statement_type)(self.handle) == TRANSACTION }
    }

    /// Executes it to its end: DuckDB keeps the result until it was read.
    pub(crate) fn execute<'v>(
        &self,
        parameters: impl ExactSizeIterator<Item = Value<'v>>,
    ) -> Result<Outcome, StatementError> {
        let (functions, handle) = (self.functions, self.handle);
        // SAFETY: see the head; texts are copied when they are bound.
        unsafe {
            let gaps = (functions.nparams)(handle);
            if gaps != parameters.len() as u64 {
                let message = format!("the statement has {gaps} placeholders, {} values were given", parameters.len());
                return Err(StatementError::client(Class::Syntax, message));
            }
            for (index, value) in (1..).zip(parameters) {
                let state = match value {
                    Value::Null => (functions.bind_null)(handle, index),
                    Value::Int(value) => (functions.bind_int64)(handle, index, value),
                    Value::Double(value) => (functions.bind_double)(handle, index, value),
                    Value::Text(text) => {
                        (functions.bind_varchar_length)(handle, index, text.as_ptr().cast(), text.len() as u64)
                    }
                    Value::Bytes(bytes) => {
                        (functions.bind_blob)(handle, index, bytes.as_ptr().cast(), bytes.len() as u64)
                    }
                };
                if state != 0 {
                    let message = shown((functions.prepare_error)(handle));
                    return Err(from_duckdb(&format!("parameter {index}: {message}"), &self.instance.path));
                }
            }
            let mut outcome = Outcome { raw: RawResult::empty(), functions };
            if (functions.execute_prepared)(handle, &mut outcome.raw) != 0 {
                let message = shown((functions.result_error)(&mut outcome.raw));
                return Err(from_duckdb(&message, &self.instance.path));
            }
            (functions.clear_bindings)(handle);
            Ok(outcome)
        }
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        // SAFETY: it is used nowhere else.
        unsafe { (self.functions.destroy_prepare)(&mut self.handle) }
    }
}

/// What a statement returned.
pub(crate) struct Outcome {
    raw: RawResult,
    functions: &'static Functions,
}

/// `duckdb_result_type`.
const CHANGED_ROWS: i32 = 1;
const QUERY_RESULT: i32 = 3;

impl Outcome {
    /// Rows that were changed.
    pub(crate) fn changed(&mut self) -> u64 {
        // SAFETY: see the head.
        unsafe {
            match (self.functions.result_return_type)(self.raw) {
                CHANGED_ROWS => (self.functions.rows_changed)(&mut self.raw),
                _ => 0,
            }
        }
    }

    /// Columns of its rows; `None`: it returns none.
    pub(crate) fn columns(&mut self) -> Result<Option<Vec<Column>>, StatementError> {
        // SAFETY: see the head; types are destroyed by `Column::new`.
        unsafe {
            if (self.functions.result_return_type)(self.raw) != QUERY_RESULT {
                return Ok(None);
            }
            let columns = (0..(self.functions.column_count)(&mut self.raw)).map(|index| {
                let name = shown((self.functions.column_name)(&mut self.raw, index));
                Column::new(self.functions, (self.functions.column_logical_type)(&mut self.raw, index), name)
            });
            columns.collect::<Result<_, _>>().map(Some)
        }
    }

    /// The next rows; `None`: there are no more.
    pub(crate) fn chunk(&mut self) -> Option<Chunk> {
        // SAFETY: see the head.
        let handle = unsafe { (self.functions.fetch_chunk)(self.raw) };
        (!handle.is_null()).then_some(Chunk { handle, functions: self.functions })
    }
}

impl Drop for Outcome {
    fn drop(&mut self) {
        // SAFETY: it is used nowhere else; chunks own their rows.
        unsafe { (self.functions.destroy_result)(&mut self.raw) }
    }
}

/// Some rows of a result.
pub(crate) struct Chunk {
    handle: Handle,
    functions: &'static Functions,
}

impl Chunk {
    pub(crate) fn rows(&self) -> usize {
        // SAFETY: see the head.
        unsafe { (self.functions.data_chunk_get_size)(self.handle) as usize }
    }

    /// Values and validity of a column. Both pointers live as long as the chunk; without validity, no value is NULL.
    pub(crate) fn vector(&self, column: usize) -> (*const u8, *const u64) {
        // SAFETY: see the head.
        unsafe {
            let vector = (self.functions.data_chunk_get_vector)(self.handle, column as u64);
            let data = (self.functions.vector_get_data)(vector);
            (data.cast_const().cast(), (self.functions.vector_get_validity)(vector).cast_const())
        }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: it is used nowhere else.
        unsafe { (self.functions.destroy_data_chunk)(&mut self.handle) }
    }
}

/// An appender.
pub(crate) struct Loader<'c> {
    handle: Handle,
    client: &'c Client,
}

impl Loader<'_> {
    /// Adds a row.
    pub(crate) fn row<'v>(&mut self, cells: impl Iterator<Item = Cell<'v>>) -> Result<(), StatementError> {
        let functions = self.client.functions();
        for cell in cells {
            // SAFETY: see the head; texts are copied.
            let state = unsafe {
                match cell {
                    Cell::Null => (functions.append_null)(self.handle),
                    Cell::Int(value) => (functions.append_int64)(self.handle, value),
                    Cell::Double(value) => (functions.append_double)(self.handle, value),
                    Cell::Text(text) => {
                        (functions.append_varchar_length)(self.handle, text.as_ptr().cast(), text.len() as u64)
                    }
                }
            };
            self.checked(state)?;
        }
        // SAFETY: see the head.
        let state = unsafe { (functions.appender_end_row)(self.handle) };
        self.checked(state)
    }

    /// Writes what was added.
    pub(crate) fn done(self) -> Result<(), StatementError> {
        // SAFETY: see the head.
        let state = unsafe { (self.client.functions().appender_close)(self.handle) };
        self.checked(state)
    }

    fn checked(&self, state: i32) -> Result<(), StatementError> {
        if state == 0 {
            return Ok(());
        }
        // SAFETY: the text belongs to the appender, which exists even when it could not be made.
        Err(self.client.failed(&unsafe { shown((self.client.functions().appender_error)(self.handle)) }))
    }
}

impl Drop for Loader<'_> {
    fn drop(&mut self) {
        // SAFETY: it is used nowhere else.
        unsafe { (self.client.functions().appender_destroy)(&mut self.handle) };
    }
}
