//! Wall-clock times in records: UTC, milliseconds, RFC 3339.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970-01-01 UTC, written as `2026-03-14T15:09:26.535Z`. Never after the year 9999.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Time(u64);

const MAX_MS: u64 = 253_402_300_799_999;

impl Time {
    /// Since 1970-01-01 UTC.
    pub fn from_unix_ms(ms: u64) -> Time {
        Time(ms.min(MAX_MS))
    }

    /// Since 1970-01-01 UTC.
    pub fn unix_ms(self) -> u64 {
        self.0
    }

    /// `20260314T150926Z`: for file names.
    pub fn compact(self) -> String {
        let seconds = humantime::format_rfc3339_seconds(self.system()).to_string();
        seconds.chars().filter(|c| !matches!(c, '-' | ':')).collect()
    }

    fn system(self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.0)
    }
}

impl From<SystemTime> for Time {
    /// Times before 1970 become 1970.
    fn from(time: SystemTime) -> Time {
        let ms = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
        Time::from_unix_ms(u64::try_from(ms).unwrap_or(MAX_MS))
    }
}

impl std::fmt::Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        humantime::format_rfc3339_millis(self.system()).fmt(f)
    }
}

impl From<Time> for String {
    fn from(time: Time) -> String {
        time.to_string()
    }
}

impl TryFrom<String> for Time {
    type Error = String;

    fn try_from(text: String) -> Result<Time, String> {
        match humantime::parse_rfc3339(&text) {
            Ok(time) => Ok(Time::from(time)),
            Err(_) => Err(format!("{text:?} is not a time such as 2026-03-14T15:09:26.535Z")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_rfc_3339_and_read_back() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_773_500_966_535, "2026-03-14T15:09:26.535Z"),
            (u64::MAX, "9999-12-31T23:59:59.999Z"),
        ] {
            let time = Time::from_unix_ms(ms);
            assert_eq!(time.to_string(), text);
            assert_eq!(Time::try_from(text.to_owned()), Ok(time));
        }
        assert_eq!(Time::from_unix_ms(1_773_500_966_535).compact(), "20260314T150926Z");
        Time::try_from("yesterday".to_owned()).unwrap_err();
    }
}
