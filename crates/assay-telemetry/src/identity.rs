//! Which product a server is, by what it says of itself.
//!
//! Many servers speak the protocol of PostgreSQL or MySQL, and log in with a version of that product. Their own name is
//! in the answer to a question. A name that is not listed here is reported in the server's own words.

/// A product, and the one whose questions it may answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its name.
    pub product: String,
    /// Its version, verbatim; empty if it does not say.
    pub version: String,
    /// The product and version it logged in as: what its protocol is like.
    pub login: (String, String),
    /// Returns one more row about it: see `refine`. Empty: nothing to ask.
    pub more_sql: &'static str,
}

/// A product by a word in what it says. The version follows the word.
struct Known {
    word: &'static str,
    product: &'static str,
    /// Returns its version, if that is not in the text.
    version_sql: &'static str,
}

const fn known(word: &'static str, product: &'static str) -> Known {
    Known { word, product, version_sql: "" }
}

/// In the answer of `version()`, as PostgreSQL's.
const LIKE_POSTGRES: [Known; 14] = [
    known("CockroachDB", "CockroachDB"),
    known("-YB-", "YugabyteDB"),
    known("QuestDB", "QuestDB"),
    known("Redshift", "Amazon Redshift"),
    known("Greenplum Database", "Greenplum"),
    known("Cloudberry Database", "Cloudberry"),
    known("EnterpriseDB Advanced Server", "EDB Postgres Advanced Server"),
    known("Materialize", "Materialize"),
    known("RisingWave", "RisingWave"),
    known("CrateDB", "CrateDB"),
    known("openGauss", "openGauss"),
    known("Doltgres", "DoltgreSQL"),
    known("using H2", "H2"),
    known("DuckDB", "DuckDB"),
];

/// In the variables `version` and `version_comment`, as MySQL's.
const LIKE_MYSQL: [Known; 13] = [
    known("TiDB", "TiDB"),
    known("Vitess", "Vitess"),
    known("OceanBase", "OceanBase"),
    Known { word: "Dolt", product: "Dolt", version_sql: "SELECT dolt_version()" },
    Known { word: "SingleStore", product: "SingleStore", version_sql: "SELECT @@memsql_version" },
    Known { word: "MemSQL", product: "SingleStore", version_sql: "SELECT @@memsql_version" },
    known("StarRocks", "StarRocks"),
    known("Doris", "Apache Doris"),
    known("MatrixOne", "MatrixOne"),
    known("ClickHouse", "ClickHouse"),
    known("ProxySQL", "ProxySQL"),
    // Builds of MySQL, with its versions.
    known("Percona XtraDB Cluster", "Percona XtraDB Cluster"),
    known("Percona Server", "Percona Server"),
];
const BUILDS: [&str; 2] = ["Percona XtraDB Cluster", "Percona Server"];

/// What `version_comment` says in builds of MySQL without its name.
const OF_MYSQL: [&str; 7] = ["", "Source distribution", "Homebrew", "(Ubuntu)", "(Debian)", "(Google)", "(GPL)"];
/// No name is longer.
const NAME_MAX: usize = 60;

/// Returns one row in which a server that logged in as this product says what it is. Empty: nothing to ask.
pub fn identity_sql(product: &str) -> &'static str {
    match product {
        "PostgreSQL" => "SELECT version()",
        "MySQL" => "SELECT @@version, @@version_comment",
        _ => "",
    }
}

impl Identity {
    /// From the login alone.
    pub fn of_login(product: &str, version: &str) -> Identity {
        let (product, version) = (product.to_owned(), version.to_owned());
        Identity { login: (product.clone(), version.clone()), product, version, more_sql: "" }
    }

    /// From the answer to `identity_sql`.
    pub fn of_answer(product: &str, version: &str, answer: &[String]) -> Identity {
        let login = Identity::of_login(product, version);
        let text = answer.join(" ");
        let (all, is_own, more_sql): (&[Known], bool, &'static str) = match product {
            "PostgreSQL" => (
                &LIKE_POSTGRES,
                text.starts_with("PostgreSQL "),
                "SELECT 'Amazon Aurora PostgreSQL', NULL FROM pg_catalog.pg_proc WHERE proname = 'aurora_version' LIMIT 1",
            ),
            _ => {
                let comment = answer.get(1).map_or("", String::as_str).trim();
                let is_own = comment.contains("MySQL") || OF_MYSQL.contains(&comment);
                (&LIKE_MYSQL, is_own, "SHOW VARIABLES LIKE 'aurora_version'")
            }
        };
        let found = all.iter().find_map(|one| Some((one, text.split_once(one.word)?.1)));
        match found {
            Some((one, _)) if BUILDS.contains(&one.product) => Identity { product: one.product.to_owned(), ..login },
            Some((one, rest)) => Identity {
                product: one.product.to_owned(),
                version: version_in(rest),
                more_sql: one.version_sql,
                ..login
            },
            None if is_own => Identity { more_sql, ..login },
            None => {
                let words = if product == "PostgreSQL" { &text } else { answer.get(1).unwrap_or(&text) };
                let printable = words.trim().chars().filter(|c| !c.is_control());
                Identity { product: printable.take(NAME_MAX).collect(), version: String::new(), ..login }
            }
        }
    }

    /// From the answer to `more_sql`: a version, or a name and perhaps a version.
    pub fn refine(self, answer: &[Option<String>]) -> Identity {
        match answer {
            [Some(version)] => Identity { version: version.clone(), ..self },
            [Some(name), Some(version)] if name == "aurora_version" => {
                Identity { product: "Amazon Aurora MySQL".to_owned(), version: version.clone(), ..self }
            }
            [Some(name), None] => Identity { product: name.clone(), ..self },
            _ => self,
        }
    }

    /// The version, with the protocol if that is another product's.
    pub fn version_shown(&self) -> String {
        let (product, version) = &self.login;
        match self.version.as_str() {
            own if own == version => version.clone(),
            "" => format!("(as {product} {version})"),
            own => format!("{own} (as {product} {version})"),
        }
    }
}

/// The first of a few words that is a version.
fn version_in(rest: &str) -> String {
    let words = rest.split([' ', '(', ')', ',', ';']).map(|word| word.trim_start_matches(['-', ':']));
    let is_version = |word: &&str| word.strip_prefix('v').unwrap_or(word).starts_with(|c: char| c.is_ascii_digit());
    words.filter(|word| !word.is_empty()).take(3).find(is_version).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_what_they_say() {
        let of = |product: &str, answer: &[&str]| {
            let answer: Vec<String> = answer.iter().map(|text| (*text).to_owned()).collect();
            let login = if product == "MySQL" { answer[0].as_str() } else { "15.4" };
            let found = Identity::of_answer(product, login, &answer);
            format!("{} {}", found.product, found.version_shown())
        };
        // Answers of real servers: PostgreSQL, MySQL, Dolt. The others were not tried.
        for (answer, expected) in [
            ("PostgreSQL 15.4 (Debian 15.4-1) on x86_64-pc-linux-gnu, compiled by gcc", "PostgreSQL 15.4"),
            (
                "CockroachDB CCL v23.1.11 (x86_64-pc-linux-gnu, built 2023/09/27, go1.19.10)",
                "CockroachDB v23.1.11 (as PostgreSQL 15.4)",
            ),
            ("PostgreSQL 11.2-YB-2.20.1.0-b0 on x86_64", "YugabyteDB 2.20.1.0-b0 (as PostgreSQL 15.4)"),
            ("PostgreSQL 12.3, compiled by Visual C++ build 1914, 64-bit, QuestDB", "QuestDB (as PostgreSQL 15.4)"),
            (
                "PostgreSQL 8.0.2 on i686, compiled by GCC, Redshift 1.0.12",
                "Amazon Redshift 1.0.12 (as PostgreSQL 15.4)",
            ),
            ("PostgreSQL 9.4.26 (Greenplum Database 6.25.3 build x) on x", "Greenplum 6.25.3 (as PostgreSQL 15.4)"),
            ("Novel Store 3 engine", "Novel Store 3 engine (as PostgreSQL 15.4)"),
        ] {
            assert_eq!(of("PostgreSQL", &[answer]), expected);
        }
        for (version, comment, expected) in [
            ("8.0.31", "MySQL Community Server - GPL", "MySQL 8.0.31"),
            ("8.0.39", "Source distribution", "MySQL 8.0.39"),
            ("8.0.31", "Dolt", "Dolt (as MySQL 8.0.31)"),
            ("8.0.36-28", "Percona Server (GPL), Release 28, Revision 47601f19", "Percona Server 8.0.36-28"),
            (
                "8.0.11-TiDB-v8.5.0",
                "TiDB Server (Apache License 2.0) Community Edition, MySQL 8.0 compatible",
                "TiDB v8.5.0 (as MySQL 8.0.11-TiDB-v8.5.0)",
            ),
            ("8.0.30-Vitess", "Version: 19.0.0 (Git revision x)", "Vitess 19.0.0 (as MySQL 8.0.30-Vitess)"),
            (
                "5.7.25-OceanBase-v4.2.1.0",
                "OceanBase 4.2.1.0",
                "OceanBase v4.2.1.0 (as MySQL 5.7.25-OceanBase-v4.2.1.0)",
            ),
            ("8.0.1", "Novel Store\n", "Novel Store (as MySQL 8.0.1)"),
        ] {
            assert_eq!(of("MySQL", &[version, comment]), expected);
        }
    }

    #[test]
    fn a_second_answer_has_what_the_first_lacks() {
        let texts = |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let dolt = Identity::of_answer("MySQL", "8.0.31", &texts(&["8.0.31", "Dolt"]));
        assert_eq!(dolt.more_sql, "SELECT dolt_version()");
        let dolt = dolt.refine(&[Some("1.88.1".to_owned())]);
        assert_eq!((&*dolt.product, &*dolt.version_shown()), ("Dolt", "1.88.1 (as MySQL 8.0.31)"));
        let mysql = Identity::of_answer("MySQL", "8.0.28", &texts(&["8.0.28", "Source distribution"]));
        assert_eq!(mysql.clone().refine(&[]), mysql);
        let aurora = mysql.refine(&[Some("aurora_version".to_owned()), Some("3.04.0".to_owned())]);
        assert_eq!((&*aurora.product, &*aurora.version_shown()), ("Amazon Aurora MySQL", "3.04.0 (as MySQL 8.0.28)"));
    }
}
