//! Compiled-in defaults of MySQL 5.7, which does not report which of its settings differ from them.
//!
//! Read from MySQL 5.7.22 started with `--no-defaults`. Without paths, ports, identities and what a server computes
//! from its machine or from other settings.

/// The default of a setting of MySQL 5.7; `None`: there is none that is the same everywhere.
pub(crate) fn mysql_5_7(name: &str) -> Option<&'static str> {
    TEXT.lines().find_map(|line| line.split_once('=').filter(|(known, _)| *known == name)).map(|(_, value)| value)
}

const TEXT: &str = include_str!("mysql_5_7_defaults.txt");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_found_by_name() {
        assert_eq!(mysql_5_7("innodb_buffer_pool_size"), Some("134217728"));
        assert_eq!(mysql_5_7("init_connect"), Some(""));
        assert_eq!(mysql_5_7("datadir"), None);
        assert!(TEXT.lines().all(|line| line.contains('=')));
    }
}
