//! DuckDB's shared library, found at run time, and what is called in it.
//!
//! Source: DuckDB's C API, `duckdb.h` of version 1.2 and later (https://duckdb.org/docs/stable/clients/c/api). Names
//! and types are as there; handles are pointers to what only the library knows.

use std::ffi::{c_char, c_void};
use std::sync::{Mutex, PoisonError};

use assay_seam::{Class, StatementError};
use libloading::{Library, library_filename};

/// A database, a connection, a prepared statement, an appender, …: all are pointers.
pub(crate) type Handle = *mut c_void;
/// 0: it was done.
pub(crate) type State = i32;

/// `duckdb_result`, as large as there.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawResult {
    numbers: [u64; 3],
    pointers: [Handle; 3],
}

impl RawResult {
    pub(crate) const fn empty() -> RawResult {
        RawResult { numbers: [0; 3], pointers: [std::ptr::null_mut(); 3] }
    }
}

macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions, each with its name in the library without `duckdb_`.
        #[derive(Debug)]
        pub(crate) struct Functions {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            fn of(library: &Library) -> Result<Functions, libloading::Error> {
                Ok(Functions {
                    // SAFETY: the types are those of duckdb.h, and the library is never unloaded.
                    $($name: unsafe { *library.get(concat!("duckdb_", stringify!($name), "\0").as_bytes())? },)*
                })
            }
        }
    };
}

functions! {
    library_version: fn() -> *const c_char;
    create_config: fn(*mut Handle) -> State;
    set_config: fn(Handle, *const c_char, *const c_char) -> State;
    destroy_config: fn(*mut Handle);
    open_ext: fn(*const c_char, *mut Handle, Handle, *mut *mut c_char) -> State;
    close: fn(*mut Handle);
    connect: fn(Handle, *mut Handle) -> State;
    disconnect: fn(*mut Handle);
    free: fn(*mut c_void);
    extract_statements: fn(Handle, *const c_char, *mut Handle) -> u64;
    extract_statements_error: fn(Handle) -> *const c_char;
    prepare_extracted_statement: fn(Handle, Handle, u64, *mut Handle) -> State;
    destroy_extracted: fn(*mut Handle);
    prepare_error: fn(Handle) -> *const c_char;
    destroy_prepare: fn(*mut Handle);
    nparams: fn(Handle) -> u64;
    prepared_statement_type: fn(Handle) -> i32;
    clear_bindings: fn(Handle) -> State;
    bind_null: fn(Handle, u64) -> State;
    bind_int64: fn(Handle, u64, i64) -> State;
    bind_double: fn(Handle, u64, f64) -> State;
    bind_varchar_length: fn(Handle, u64, *const c_char, u64) -> State;
    bind_blob: fn(Handle, u64, *const c_void, u64) -> State;
    execute_prepared: fn(Handle, *mut RawResult) -> State;
    destroy_result: fn(*mut RawResult);
    result_error: fn(*mut RawResult) -> *const c_char;
    result_return_type: fn(RawResult) -> i32;
    rows_changed: fn(*mut RawResult) -> u64;
    column_count: fn(*mut RawResult) -> u64;
    column_name: fn(*mut RawResult, u64) -> *const c_char;
    column_logical_type: fn(*mut RawResult, u64) -> Handle;
    get_type_id: fn(Handle) -> i32;
    decimal_scale: fn(Handle) -> u8;
    decimal_internal_type: fn(Handle) -> i32;
    destroy_logical_type: fn(*mut Handle);
    fetch_chunk: fn(RawResult) -> Handle;
    data_chunk_get_size: fn(Handle) -> u64;
    data_chunk_get_vector: fn(Handle, u64) -> Handle;
    vector_get_data: fn(Handle) -> *mut c_void;
    vector_get_validity: fn(Handle) -> *mut u64;
    destroy_data_chunk: fn(*mut Handle);
    appender_create: fn(Handle, *const c_char, *const c_char, *mut Handle) -> State;
    appender_add_column: fn(Handle, *const c_char) -> State;
    appender_error: fn(Handle) -> *const c_char;
    append_null: fn(Handle) -> State;
    append_int64: fn(Handle, i64) -> State;
    append_double: fn(Handle, f64) -> State;
    append_varchar_length: fn(Handle, *const c_char, u64) -> State;
    appender_end_row: fn(Handle) -> State;
    appender_close: fn(Handle) -> State;
    appender_destroy: fn(*mut Handle) -> State;
}

/// The library that this process has loaded, with the name that it was asked for. It is never unloaded: its threads may
/// still run.
static LOADED: Mutex<Option<(Option<String>, &'static Functions)>> = Mutex::new(None);

/// The functions of the library with this path; `None`: of the one that the system finds.
pub(crate) fn functions(path: Option<&str>) -> Result<&'static Functions, StatementError> {
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((known, functions)) = &*loaded {
        if known.as_deref() == path {
            return Ok(functions);
        }
        let message = "one process can have one DuckDB library, and another one was loaded before".to_owned();
        return Err(refused(message, "use the same `library=` in all URLs"));
    }
    let name = path.map_or_else(|| library_filename("duckdb"), Into::into);
    let shown = name.to_string_lossy().into_owned();
    // SAFETY: DuckDB's library has no demands on who loads it; that the user names another library is up to the user.
    let library = unsafe { Library::new(&name) }.map_err(|error| {
        let mut message = format!("DuckDB's library {shown} cannot be loaded: {}", cause(&error));
        if cfg!(target_env = "musl") {
            message += "; this program is linked statically, and such programs load none";
        }
        refused(message, HINT)
    })?;
    let functions = Functions::of(&library).map_err(|error| {
        refused(format!("{shown} is not a DuckDB library of version 1.2 or later: {}", cause(&error)), HINT)
    })?;
    std::mem::forget(library);
    let functions: &'static Functions = Box::leak(Box::new(functions));
    *loaded = Some((path.map(str::to_owned), functions));
    Ok(functions)
}

/// Names where the library is given. Also in docs/duckdb.md.
pub(crate) const VARIABLE: &str = "ASSAY_DUCKDB_LIBRARY";

const HINT: &str = "get libduckdb.so of your platform from DuckDB's releases, and name it in the URL (duckdb:bench.duckdb?library=/path/libduckdb.so) or in ASSAY_DUCKDB_LIBRARY";

fn cause(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

fn refused(message: String, hint: &str) -> StatementError {
    StatementError { hint: Some(hint.to_owned()), ..StatementError::client(Class::Connection, message) }
}
