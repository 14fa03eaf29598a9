//! Days as dates, for drivers whose servers send numbers of days.

/// Year, month and day of this day, counted from 1970-01-01, in the Gregorian calendar of any year. Source: H. Hinnant,
/// "chrono-Compatible Low-Level Date Algorithms", civil_from_days.
pub fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dates() {
        for (days, date) in [
            (0, (1970, 1, 1)),
            (-1, (1969, 12, 31)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (-25_509, (1900, 2, 28)),
            (-25_508, (1900, 3, 1)),
            (2_932_896, (9999, 12, 31)),
        ] {
            assert_eq!(date_of(days), date);
        }
    }
}
