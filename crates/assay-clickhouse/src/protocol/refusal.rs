//! What ClickHouse's error codes mean.
//!
//! Source: src/Common/ErrorCodes.cpp.

use assay_seam::{Class, Code, Origin, Retry, StatementError};

/// The server's error. `message`: as it was sent.
pub(super) fn error(code: i32, message: &str) -> StatementError {
    let number = code.unsigned_abs();
    let (class, retry) = match number {
        62 => (Class::Syntax, Retry::Never),
        16 | 36 | 46 | 47 | 60 | 81 | 115 => (Class::Missing, Retry::Never),
        57 | 82 => (Class::Exists, Retry::Never),
        159 | 160 | 209 => (Class::Timeout, Retry::Never),
        202 | 252 => (Class::Limit, Retry::AfterBackoff),
        158 | 191 | 241 | 243 | 307 | 396 => (Class::Limit, Retry::Never),
        192 | 193 | 194 | 516 => (Class::Authentication, Retry::Never),
        164 | 291 | 497 => (Class::Permission, Retry::Never),
        349 | 469 => (Class::Constraint, Retry::Never),
        394 => (Class::Cancelled, Retry::Never),
        _ => (Class::Other, Retry::Never),
    };
    let message = message.strip_prefix("DB::Exception: ").unwrap_or(message).trim_end();
    let message = message.strip_suffix('.').unwrap_or(message);
    let hint = match number {
        62 => {
            Some("ClickHouse has its own SQL; of the built-in workloads, only flights and tpch_like are written for it")
        }
        159 => Some("the limit is max_execution_time: --session-sql 'SET max_execution_time = …', in seconds"),
        202 => Some("use fewer sessions, or raise the server's max_concurrent_queries"),
        241 => Some(
            "raise it with --session-sql 'SET max_memory_usage = …', or let GROUP BY use the server's disk: \
                     --session-sql 'SET max_bytes_before_external_group_by = …'",
        ),
        252 => Some("load with fewer sessions: each batch of rows becomes a part"),
        _ => None,
    };
    StatementError {
        origin: Origin::Server,
        class,
        code: Code { number, state: String::new() },
        retry,
        message: message.to_owned(),
        position: 0,
        hint: hint.map(str::to_owned),
        details: String::new(),
    }
}
