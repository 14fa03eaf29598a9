//! How far the members of a MongoDB replica set are apart, in the reply to `replSetGetStatus`.

use std::collections::BTreeMap;

use assay_seam::{Cell, Rows};

/// How far the last secondary is behind the primary, in microseconds; the server counts whole seconds. `None` without a
/// primary, or without secondaries. `rows`: names such as `members.1.stateStr`, and values.
pub(crate) fn lag_us(rows: &Rows) -> Option<u64> {
    let mut members: BTreeMap<&str, (&str, u64)> = BTreeMap::new();
    for row in 0..rows.len(0) {
        let [name, value] = [0, 1].map(|column| match rows.cell(0, row, column) {
            Some(Cell::Text(text)) => std::str::from_utf8(text).unwrap_or_default(),
            _ => "",
        });
        let Some((number, field)) = name.strip_prefix("members.").and_then(|rest| rest.split_once('.')) else {
            continue;
        };
        match field {
            "stateStr" => members.entry(number).or_default().0 = value,
            "optime.ts" => members.entry(number).or_default().1 = seconds(value).unwrap_or_default(),
            _ => {}
        }
    }
    let of = |state: &'static str| members.values().filter(move |member| member.0 == state && member.1 > 0);
    let (primary, last) = (of("PRIMARY").next()?.1, of("SECONDARY").map(|member| member.1).min()?);
    Some(primary.saturating_sub(last) * 1_000_000)
}

/// The seconds of `{"$timestamp":{"t":1700000000,"i":3}}`.
fn seconds(timestamp: &str) -> Option<u64> {
    let (_, rest) = timestamp.split_once("\"t\":")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// States and the seconds of their last writes.
    fn lag(members: &[(&str, u64)]) -> Option<u64> {
        let mut rows = Rows::default();
        rows.begin_set(2);
        for (number, (state, seconds)) in members.iter().enumerate() {
            for (field, value) in [
                ("_id", "7".to_owned()),
                ("stateStr", (*state).to_owned()),
                ("optime.ts", format!("{{\"$timestamp\":{{\"t\":{seconds},\"i\":5}}}}")),
                ("optime.t", "1".to_owned()),
            ] {
                rows.push_text(format!("members.{number}.{field}").as_bytes()).unwrap();
                rows.push_text(value.as_bytes()).unwrap();
            }
        }
        lag_us(&rows)
    }

    #[test]
    fn the_secondary_that_is_furthest_behind_counts() {
        assert_eq!(lag(&[("SECONDARY", 98), ("PRIMARY", 100), ("SECONDARY", 95), ("ARBITER", 0)]), Some(5_000_000));
        assert_eq!(lag(&[("PRIMARY", 100), ("SECONDARY", 101)]), Some(0));
        assert_eq!(lag(&[("PRIMARY", 100)]), None);
        assert_eq!(lag(&[("SECONDARY", 100)]), None);
        assert_eq!(lag(&[("PRIMARY", 100), ("RECOVERING", 5)]), None);
    }
}
