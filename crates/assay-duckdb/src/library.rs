//! DuckDB's shared library, found at run time, and what is called in it.
//!
//! Source: DuckDB's C API, `duckdb.h` of version 1.2 and later (https://duckdb.org/docs/stable/clients/c/api). Names
//! and types are as there; handles are pointers to what only the library knows.

use std::ffi::{c_char, c_void};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
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
    interrupt: fn(Handle);
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
    if let Some(why) = found(Path::new(&name)).and_then(|path| damage(&path)) {
        return Err(refused(format!("DuckDB's library {shown} cannot be loaded: {why}"), HINT));
    }
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

/// The file that the system loads under this name, as far as its usual folders tell.
fn found(name: &Path) -> Option<PathBuf> {
    const FOLDERS: [&str; 6] =
        ["/usr/local/lib", "/lib64", "/usr/lib64", "/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/usr/lib"];
    if name.components().count() > 1 {
        return Some(name.to_owned());
    }
    let given = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let folders = std::env::split_paths(&given).chain(FOLDERS.map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|path| path.exists())
}

/// Why this is not a whole library. The system maps one that is cut off without a word, and the process dies of SIGBUS
/// when it comes to what is missing.
fn damage(path: &Path) -> Option<String> {
    let is_file = std::fs::metadata(path).is_ok_and(|found| found.is_file());
    if !is_file {
        // A file that is not there is the system's to report, in its words.
        return path.exists().then(|| "it is not a file".to_owned());
    }
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    match length_needed(&mut file) {
        None => Some("it is not a library of this kind of machine, or is damaged".to_owned()),
        Some(needed) if needed > length => Some(format!("it is cut off: {length} of {needed} bytes are there")),
        Some(_) => None,
    }
}

/// Where the last part of a library of 64 bits ends, by its headers. Source: elf(5).
fn length_needed(file: &mut (impl Read + Seek)) -> Option<u64> {
    const HEADER: usize = 64;
    const SEGMENT: usize = 56;
    let mut header = [0; HEADER];
    file.read_exact(&mut header).ok()?;
    // 64 bits, little-endian.
    if header[..6] != *b"\x7fELF\x02\x01" {
        return None;
    }
    let short = |bytes: &[u8], at: usize| u64::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    let long = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    let (segments, sections) = (long(&header, 32), long(&header, 40));
    let (segment_size, segment_count) = (short(&header, 54), short(&header, 56));
    if segment_size != SEGMENT as u64 {
        return None;
    }
    let mut needed = sections.checked_add(short(&header, 58) * short(&header, 60))?;
    file.seek(SeekFrom::Start(segments)).ok()?;
    for _ in 0..segment_count {
        let mut segment = [0; SEGMENT];
        if file.read_exact(&mut segment).is_err() {
            return Some(segments.saturating_add(segment_size * segment_count).max(needed));
        }
        // Its place in the file, and its length there.
        needed = needed.max(long(&segment, 8).checked_add(long(&segment, 32))?);
    }
    Some(needed)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_cut_off_or_none_at_all_is_refused_before_it_is_loaded() {
        let folder = std::env::temp_dir().join(format!("assay-duckdb-library-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("libduckdb.so");
        let reason = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            damage(&path)
        };
        // This program has the same form as a library.
        let whole = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(reason(&whole), None);
        for length in [100, 4096, whole.len() / 2, whole.len() - 1] {
            let wanted = format!("it is cut off: {length} of ");
            assert!(reason(&whole[..length]).is_some_and(|why| why.starts_with(&wanted)), "{length}");
        }
        for bytes in [&b""[..], b"\x7fELF", b"#!/bin/sh\nexit 0\n", &whole[1..]] {
            assert_eq!(reason(bytes).as_deref(), Some("it is not a library of this kind of machine, or is damaged"));
        }
        assert_eq!(damage(&folder).as_deref(), Some("it is not a file"));
        assert_eq!(damage(&folder.join("none")), None);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
