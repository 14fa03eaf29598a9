//! Server versions, and what a user can request: `postgres:15`, `mysql:8.0.31`, `mariadb`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::fault::Fault;

/// A version number, such as 15.14 or 8.0.31, in numerical order: 9.6 < 10.2.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Version(Vec<u32>);

impl Version {
    /// The first version number in a text: `15.14` in `postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)`.
    /// A number without a dot counts only if the text is nothing else.
    pub fn find(text: &str) -> Option<Version> {
        let is_part = |c: char| c.is_ascii_digit() || c == '.';
        let dotted = |word: &&str| word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit());
        let words = text.split(|c: char| !is_part(c)).map(|word| word.trim_matches('.'));
        words.filter(|word| dotted(word) || *word == text.trim()).find_map(|word| word.parse().ok())
    }

    /// The part at `index`, 0 if there is none.
    pub fn part(&self, index: usize) -> u32 {
        self.0.get(index).copied().unwrap_or(0)
    }

    /// Whether it is at least `major.minor`.
    pub fn at_least(&self, major: u32, minor: u32) -> bool {
        (self.part(0), self.part(1)) >= (major, minor)
    }

    /// Whether `prefix` matches this version: 15 and 15.14 match 15.14, but 15.1 does not.
    pub fn is_a(&self, prefix: &Version) -> bool {
        self.0.starts_with(&prefix.0)
    }
}

impl FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Version, String> {
        let parts: Result<Vec<u32>, _> = text.split('.').map(str::parse).collect();
        parts.map(Version).map_err(|_| format!("{text:?} is not a version such as 15 or 8.0.31"))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(u32::to_string).collect();
        f.write_str(&parts.join("."))
    }
}

/// A product, and optionally a version or its beginning: the newest matching version is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The product's name as written.
    pub product: String,
    /// `None`: any.
    pub version: Option<Version>,
}

impl Wanted {
    /// Whether a version matches.
    pub fn fits(&self, version: &Version) -> bool {
        self.version.as_ref().is_none_or(|prefix| version.is_a(prefix))
    }
}

impl FromStr for Wanted {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Wanted, Fault> {
        let (product, version) = text.split_once(':').map_or((text, None), |(product, rest)| (product, Some(rest)));
        let version = version.map(|version| version.parse::<Version>().map_err(Fault::usage)).transpose()?;
        if product.is_empty() {
            return Err(Fault::usage("no server given").hint("such as postgres:15, mysql:8.0 or mariadb"));
        }
        Ok(Wanted { product: product.to_ascii_lowercase(), version })
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.version {
            Some(version) => write!(f, "{}:{version}", self.product),
            None => f.write_str(&self.product),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_say_and_ordered_as_numbers() {
        let check = |said: &str, expected: &str| assert_eq!(Version::find(said).unwrap().to_string(), expected);
        check("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", "15.18");
        check("mysqld  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)", "10.11.19");
        check("/x/mysql-5.7/bin/mysqld  Ver 5.7.22 for linux-glibc2.12 on x86_64", "5.7");
        check("PgBouncer 1.18.0\nlibevent 2.1.12-stable", "1.18.0");
        check("postgres (PostgreSQL) 19beta1.2", "1.2");
        assert_eq!(Version::find("no number 7 here"), None);
        let version = |text: &str| text.parse::<Version>().unwrap();
        assert!(version("9.6.24") < version("10.2") && version("8.0") < version("8.0.31"));
        assert!(version("15.14").is_a(&version("15")) && !version("15.14").is_a(&version("15.1")));
        assert!(version("10.2.11").at_least(10, 2) && !version("9.6").at_least(10, 0));
    }
}
