//! What a new connection reveals: about the server, for the record, and about its encryption, for the login.

/// What a finished TLS handshake tells the login.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFacts {
    /// Channel binding data `tls-server-end-point` (RFC 5929 §4): the hash of the server's certificate.
    pub server_end_point: Option<Vec<u8>>,
    /// For example `TLSv1.3 TLS_AES_256_GCM_SHA384`.
    pub cipher: String,
}

/// What a server read to answer a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerReads {
    /// Rows of tables.
    pub rows: u64,
    /// Their size before compression, without columns that were not needed.
    pub bytes: u64,
}

/// What a server reported about itself at login, for the record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerFacts {
    /// Product name: `PostgreSQL`, `MySQL`, `MariaDB`, `SQLite`.
    pub product: String,
    /// Its version, verbatim.
    pub version: String,
    /// Cipher if encrypted.
    pub tls: Option<String>,
    /// The number of the process that serves this connection, from servers that have one for each and report it at
    /// login. A pooler reports a number of its own.
    pub process: Option<u32>,
}
