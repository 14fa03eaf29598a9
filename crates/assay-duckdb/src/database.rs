//! A database file to load, for the engine.

use std::sync::Arc;

use assay_seam::{Connection, Database, Dialect, Endpoint, TlsSettings};

use crate::connection::DuckConnection;
use crate::settings::FileSettings;

/// A database file with the settings of this process's use of it.
pub(crate) struct DuckDatabase {
    settings: Arc<FileSettings>,
}

impl DuckDatabase {
    pub(crate) fn new(settings: FileSettings) -> DuckDatabase {
        DuckDatabase { settings: Arc::new(settings) }
    }
}

impl Database for DuckDatabase {
    fn dialect(&self) -> Dialect {
        Dialect::plain("duckdb")
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
        Box::new(DuckConnection::new(Arc::clone(&self.settings)))
    }
}
