//! A database file to load, for the engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use assay_seam::{Connection, Database, Dialect, Endpoint, TlsSettings};

use crate::connection::SqliteConnection;
use crate::settings::FileSettings;

/// A database file with the settings of every connection to it.
pub(crate) struct SqliteDatabase {
    settings: Arc<FileSettings>,
    /// How many connections were created: each gets its own number, hence its own back-off.
    made: AtomicU64,
}

impl SqliteDatabase {
    pub(crate) fn new(settings: FileSettings) -> SqliteDatabase {
        SqliteDatabase { settings: Arc::new(settings), made: AtomicU64::new(0) }
    }
}

impl Database for SqliteDatabase {
    fn dialect(&self) -> Dialect {
        Dialect::plain("sqlite")
    }

    fn display(&self) -> String {
        self.settings.url()
    }

    fn endpoints(&self) -> Vec<Endpoint> {
        vec![Endpoint::Embedded]
    }

    fn tls(&self) -> TlsSettings {
        TlsSettings::default()
    }

    fn connection(&self) -> Box<dyn Connection> {
        Box::new(SqliteConnection::new(Arc::clone(&self.settings), self.made.fetch_add(1, Ordering::Relaxed)))
    }
}
