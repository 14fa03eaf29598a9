//! Questions to the index.

use assay_record::Time;
use assay_report::LibraryEntry;
use rusqlite::types::Value;
use rusqlite::{OptionalExtension, params_from_iter};

use crate::files::Refused;
use crate::index::{Library, LibraryError};
use crate::schema::COLUMNS;

/// What filters can ask for, besides tags and settings by their names, with the meaning for the help.
pub const KEYS: [(&str, &str); 16] = [
    ("workload", "its name"),
    ("task", "run, prepare, check or machine"),
    ("product", "PostgreSQL, MySQL, MariaDB or SQLite"),
    ("version", "of the server: 17 also finds 17.2"),
    ("machine", "host name of the load generator"),
    ("outcome", "complete, interrupted, failed, unfinished or rejected (by its experiment)"),
    ("sessions", "number of sessions, or of each stage of a ladder"),
    ("assay", "version of assay"),
    ("experiment", "its hash, or how it begins"),
    ("path", "of the record, below the folder"),
    ("since", "start of the run: 2026-03-14, 2026-03-14T15:09:26Z, or 30d ago"),
    ("until", "likewise"),
    ("tag.KEY", "a tag"),
    ("setting.NAME", "a setting of the run or its server, such as setting.shared_buffers"),
    ("KEY", "a tag or setting of that name"),
    ("METRIC", "with < or >: a figure of the run, such as tps>1000 or p95<10ms"),
];

/// One condition, such as `workload=tpcc`, `disk!=nvme`, `version=17`, `tps>1000`.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    text: String,
    key: String,
    relation: Relation,
    value: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Is,
    IsNot,
    Less,
    More,
}

/// A condition that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}: {reason}")]
pub struct BadFilter {
    text: String,
    reason: String,
    /// Names that can be asked for, if this one cannot.
    pub known: Vec<String>,
    /// The name that cannot be asked for.
    pub unknown: Option<String>,
}

impl Filter {
    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it is about.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What that is compared with.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Reads `KEY=VALUE`, `KEY!=VALUE`, `METRIC<N` or `METRIC>N`. In a value, `*` stands for any text.
    pub fn parse(text: &str) -> Result<Filter, BadFilter> {
        let bad = |reason: &str| BadFilter {
            text: text.to_owned(),
            reason: reason.to_owned(),
            known: Vec::new(),
            unknown: None,
        };
        let at = text.find(['=', '<', '>']).ok_or_else(|| bad("expected KEY=VALUE, such as workload=tpcc"))?;
        let (key, value) = (&text[..at], &text[at + 1..]);
        let (key, relation) = match (text.as_bytes()[at], key.strip_suffix('!')) {
            (b'<', _) => (key, Relation::Less),
            (b'>', _) => (key, Relation::More),
            (_, Some(key)) => (key, Relation::IsNot),
            (_, None) => (key, Relation::Is),
        };
        if key.is_empty() {
            return Err(bad("expected KEY=VALUE, such as workload=tpcc"));
        }
        let [text, key, value] = [text, key, value.trim()].map(str::to_owned);
        Ok(Filter { text, key: key.trim().to_owned(), relation, value })
    }

    fn bad(&self, reason: impl Into<String>) -> BadFilter {
        BadFilter { text: self.text.clone(), reason: reason.into(), known: Vec::new(), unknown: None }
    }
}

/// The records that match.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The latest of them, oldest first.
    pub entries: Vec<LibraryEntry>,
    /// How many match.
    pub matched: usize,
    /// Records in the library.
    pub records: usize,
    /// Files that are not readable records.
    pub problems: usize,
}

/// A part of a WHERE clause and its values.
type Clause = (String, Vec<Value>);

impl Library {
    /// The records that match all `filters`: the latest `limit` of them. `now`: for `since=30d`.
    pub fn find(&self, filters: &[Filter], limit: usize, now: Time) -> Result<Result<Found, BadFilter>, LibraryError> {
        let (condition, values) = match self.condition(filters, now).map_err(|source| self.failed(source))? {
            Ok(condition) => condition,
            Err(bad) => return Ok(Err(bad)),
        };
        self.found(&condition, &values, limit).map(Ok).map_err(|source| self.failed(source))
    }

    /// Whether there is a record at this path below the folder.
    pub fn has(&self, path: &str) -> Result<bool, LibraryError> {
        let of = "SELECT EXISTS (SELECT 1 FROM file f JOIN record r ON r.id = f.id WHERE f.path = ?)";
        self.connection.query_row(of, [path], |row| row.get(0)).map_err(|source| self.failed(source))
    }

    /// Files that are not readable records, with the reason, by path.
    pub fn problems(&self) -> Result<Vec<Refused>, LibraryError> {
        let all = || -> Result<Vec<Refused>, rusqlite::Error> {
            let of = "SELECT path, problem FROM file WHERE problem IS NOT NULL ORDER BY path";
            let mut statement = self.connection.prepare(of)?;
            statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        };
        all().map_err(|source| self.failed(source))
    }

    pub(crate) fn failed(&self, source: rusqlite::Error) -> LibraryError {
        LibraryError::Index { path: self.connection.path().map(Into::into).unwrap_or_default(), source }
    }

    /// One pass over the records finds what matches; only the entries that are asked for are read in full. Counting and
    /// sorting in SQL would evaluate the condition twice, and sort whole entries.
    fn found(&self, condition: &str, values: &[Value], limit: usize) -> Result<Found, rusqlite::Error> {
        // Beside another indexer, all of it is about the same moment.
        let _moment = self.connection.unchecked_transaction()?;
        let number = |of: &str| -> Result<usize, rusqlite::Error> {
            self.connection.query_row(of, [], |row| row.get::<_, i64>(0)).map(|n| n as usize)
        };
        let records = number("SELECT count(*) FROM record")?;
        let problems = number("SELECT count(*) FROM file WHERE problem IS NOT NULL")?;
        let of = format!("SELECT r.started_ms, r.id FROM record r WHERE {condition}");
        let mut statement = self.connection.prepare(&of)?;
        let matching = statement.query_map(params_from_iter(values), |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut matching: Vec<(i64, i64)> = matching.collect::<Result<_, _>>()?;
        let matched = matching.len();
        let left_out = matched.saturating_sub(limit);
        if left_out > 0 && left_out < matched {
            matching.select_nth_unstable(left_out);
        }
        let latest = &mut matching[left_out..];
        latest.sort_unstable();
        let entries = latest.iter().map(|(_, id)| self.entry(*id)).collect::<Result<_, _>>()?;
        Ok(Found { entries, matched, records, problems })
    }

    fn entry(&self, id: i64) -> Result<LibraryEntry, rusqlite::Error> {
        let of = "SELECT f.path, r.started_ms, r.elapsed_ns, r.outcome, r.workload, r.task, r.product, r.version, \
                  r.host, r.sessions, r.tps, r.p95_ns FROM record r JOIN file f ON f.id = r.id WHERE r.id = ?";
        let tags = "SELECT key, value FROM tag WHERE record = ? ORDER BY key";
        let mut tags = self.connection.prepare_cached(tags)?;
        let tags = tags.query_map([id], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
        self.connection.prepare_cached(of)?.query_row([id], |row| {
            let (started_ms, elapsed_ns): (i64, i64) = (row.get(1)?, row.get(2)?);
            Ok(LibraryEntry {
                path: row.get(0)?,
                started: Time::from_unix_ms(started_ms.unsigned_abs()),
                elapsed_ns: elapsed_ns.unsigned_abs(),
                outcome: row.get(3)?,
                workload: row.get(4)?,
                task: row.get(5)?,
                product: row.get(6)?,
                version: row.get(7)?,
                machine: row.get(8)?,
                sessions: row.get(9)?,
                tps: row.get(10)?,
                p95_ns: row.get(11)?,
                tags,
            })
        })
    }

    pub(crate) fn condition(
        &self,
        filters: &[Filter],
        now: Time,
    ) -> Result<Result<Clause, BadFilter>, rusqlite::Error> {
        let (mut all, mut values) = (Vec::new(), Vec::new());
        for filter in filters {
            match self.clause(filter, now)? {
                Ok((clause, of)) => {
                    all.push(if filter.relation == Relation::IsNot { format!("NOT ({clause})") } else { clause });
                    values.extend(of);
                }
                Err(bad) => return Ok(Err(bad)),
            }
        }
        let condition = if all.is_empty() { "1".to_owned() } else { all.join(" AND ") };
        Ok(Ok((condition, values)))
    }

    fn clause(&self, filter: &Filter, now: Time) -> Result<Result<Clause, BadFilter>, rusqlite::Error> {
        let Filter { key, relation, value, .. } = filter;
        if matches!(relation, Relation::Less | Relation::More) {
            return self.figure_clause(filter);
        }
        let column = |name: &str| Ok(Ok(is(&format!("r.{name}"), value)));
        match key.as_str() {
            "workload" | "task" | "outcome" | "sessions" | "assay" => column(key),
            "product" => Ok(Ok(begins("r.product", value))),
            "experiment" => Ok(Ok(begins("coalesce(r.experiment, '')", value))),
            "machine" => Ok(Ok(is("r.host", value))),
            "path" => {
                let (clause, values) = is("f.path", value);
                Ok(Ok((format!("EXISTS (SELECT 1 FROM file f WHERE f.id = r.id AND {clause})"), values)))
            }
            "version" => {
                let (is, mut values) = is("r.version", value);
                let [dot, space] = ['.', ' '].map(|after| Value::Text(format!("{value}{after}*").to_lowercase()));
                values.extend([dot, space]);
                Ok(Ok((format!("({is} OR lower(r.version) GLOB ? OR lower(r.version) GLOB ?)"), values)))
            }
            "since" | "until" => {
                let Some(time) = instant(value, now) else {
                    return Ok(Err(filter.bad("expected a time, such as 2026-03-14 or 30d")));
                };
                let ms = Value::Integer(i64::try_from(time.unix_ms()).unwrap_or(i64::MAX));
                let relation = if key == "since" { ">=" } else { "<" };
                Ok(Ok((format!("r.started_ms {relation} ?"), vec![ms])))
            }
            name => match (name.strip_prefix("tag."), name.strip_prefix("setting.")) {
                (Some(name), _) => Ok(Ok(tag_clause(name, value))),
                (_, Some(name)) if self.is_setting(name)? => Ok(Ok(setting_clause(name, value))),
                (_, Some(name)) => self.unknown(filter, name).map(Err),
                (None, None) if self.is_tag(name)? => Ok(Ok(tag_clause(name, value))),
                (None, None) if self.is_setting(name)? => Ok(Ok(setting_clause(name, value))),
                (None, None) => self.unknown(filter, name).map(Err),
            },
        }
    }

    fn figure_clause(&self, filter: &Filter) -> Result<Result<Clause, BadFilter>, rusqlite::Error> {
        let Filter { key, relation, value, .. } = filter;
        let known = "SELECT id, of FROM metric WHERE name = ?";
        let metric: Option<(i64, String)> =
            self.connection.query_row(known, [key], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let Some((id, metric)) = metric else {
            let mut statement = self.connection.prepare("SELECT name FROM metric")?;
            let known = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
            let bad = filter.bad(format!("no record has a figure {key}"));
            return Ok(Err(BadFilter { known, unknown: Some(key.clone()), ..bad }));
        };
        let scale = if metric.contains("\"ns\"") { duration_scale(value) } else { Some((value.as_str(), 1.0)) };
        let number = scale.and_then(|(number, scale)| Some(number.trim().parse::<f64>().ok()? * scale));
        let Some(number) = number else {
            return Ok(Err(filter.bad("expected a number; for times with its unit, such as 10ms")));
        };
        let sign = if *relation == Relation::Less { "<" } else { ">" };
        let number = Value::Real(number);
        Ok(Ok(match COLUMNS.iter().find(|(name, _)| name == key) {
            Some((_, column)) => (format!("{column} {sign} ?"), vec![number]),
            None => (
                format!("r.id IN (SELECT record FROM figure WHERE metric = ? AND value {sign} ?)"),
                vec![Value::Integer(id), number],
            ),
        }))
    }

    fn is_tag(&self, name: &str) -> Result<bool, rusqlite::Error> {
        self.connection.query_row("SELECT EXISTS (SELECT 1 FROM tag WHERE key = ?)", [name], |row| row.get(0))
    }

    fn is_setting(&self, name: &str) -> Result<bool, rusqlite::Error> {
        let of = "SELECT EXISTS (SELECT 1 FROM setting WHERE name = ?1 OR short = ?1)";
        self.connection.query_row(of, [name], |row| row.get(0))
    }

    /// Names that no record has get the nearest ones.
    fn unknown(&self, filter: &Filter, name: &str) -> Result<BadFilter, rusqlite::Error> {
        let of = "SELECT DISTINCT key FROM tag UNION SELECT DISTINCT short FROM setting";
        let mut statement = self.connection.prepare(of)?;
        let names: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        let keys = KEYS.iter().map(|(key, _)| (*key).to_owned()).filter(|key| !key.contains(char::is_uppercase));
        let bad = filter.bad(format!("no record has a tag or setting {name}"));
        Ok(BadFilter { known: keys.chain(names).collect(), unknown: Some(name.to_owned()), ..bad })
    }
}

/// `column` is `value`, whatever the case of its letters; `*` stands for any text.
fn is(column: &str, value: &str) -> Clause {
    let text = |value: String| vec![Value::Text(value)];
    match value.contains('*') {
        true => (format!("lower({column}) GLOB ?"), text(value.to_lowercase())),
        false => (format!("{column} = ? COLLATE NOCASE"), text(value.to_owned())),
    }
}

fn begins(column: &str, value: &str) -> Clause {
    is(column, &format!("{}*", value.trim_end_matches('*')))
}

fn tag_clause(name: &str, value: &str) -> Clause {
    let (clause, mut values) = is("t.value", value);
    values.insert(0, Value::Text(name.to_owned()));
    (format!("r.id IN (SELECT t.record FROM tag t WHERE t.key = ? AND {clause})"), values)
}

fn setting_clause(name: &str, value: &str) -> Clause {
    let (clause, of) = is("s.value", value);
    let mut values = vec![Value::Text(name.to_owned()), Value::Text(name.to_owned())];
    values.extend(of);
    let clause = format!(
        "r.identity IN (SELECT i.identity FROM setting s JOIN identity_setting i ON i.setting = s.id \
         WHERE (s.name = ? OR s.short = ?) AND {clause})"
    );
    (clause, values)
}

/// `2026-03-14`, `2026-03-14T15:09:26Z`, or `30d`, `12h` before `now`.
fn instant(text: &str, now: Time) -> Option<Time> {
    let ago = [("d", 86_400_000), ("h", 3_600_000), ("min", 60_000)].into_iter().find_map(|(unit, ms)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        Some(Time::from_unix_ms(now.unix_ms().saturating_sub(number.checked_mul(ms)?)))
    });
    let of_day = || Time::try_from(format!("{text}T00:00:00Z")).ok();
    ago.or_else(|| Time::try_from(text.to_owned()).ok()).or_else(of_day)
}

/// A time's number, and its unit in nanoseconds.
fn duration_scale(text: &str) -> Option<(&str, f64)> {
    let units = [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
    units.into_iter().find_map(|(unit, ns)| Some((text.strip_suffix(unit)?, ns)))
}
