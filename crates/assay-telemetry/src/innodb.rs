//! Parses the text of `SHOW ENGINE INNODB STATUS`.

/// Log bytes since the last checkpoint, in the text of `SHOW ENGINE INNODB STATUS`.
pub(crate) fn checkpoint_age(status: &str) -> Option<u64> {
    let after = |name: &str| {
        let line = status.lines().find_map(|line| line.trim().strip_prefix(name))?;
        line.trim().parse::<u64>().ok()
    };
    Some(after("Log sequence number")?.saturating_sub(after("Last checkpoint at")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_of_the_checkpoint_stands_in_the_status_of_old_servers() {
        let status = "---\nLOG\n---\nLog sequence number          19184723\nLog flushed up to   19184723\n\
                      Pages flushed up to 19184723\nLast checkpoint at  19184000\n";
        assert_eq!(checkpoint_age(status), Some(723));
        assert_eq!(checkpoint_age("Log sequence number 12"), None);
    }
}
