//! What to ask MongoDB during a run: `serverStatus` and others, whose fields become names and values.
//!
//! The names are those of MongoDB 4.4 to 8.0 with WiredTiger; FerretDB counts commands only, and has no `$currentOp`
//! for what sessions wait for. What a server does not have is left out.

use assay_telemetry::question::{
    Asked, NamedAnswer, OwnPart, ProcessQuestion, Question, ServerQuestions, Shape, Waits,
};
use assay_telemetry::{Checkup, LiveQuestions, Questions, StatementQuestions};

/// The questions.
pub const QUESTIONS: Questions = Questions {
    products: &["MongoDB", "FerretDB"],
    server: |product, _| server_questions(product),
    statement: |_, _| StatementQuestions {
        no_counters: "the counters of MongoDB are not read for a single statement",
        ..StatementQuestions::default()
    },
    live: |_, _| LiveQuestions::default(),
    checkup: Checkup { ping: r#"{"ping": 1}"#, limits: &[], rights: &[], user_sql: "" },
};

/// Counters of commands, which both products have.
const COMMANDS: [(&str, &str); 6] = [
    ("find_commands", "metrics.commands.find.total"),
    ("insert_commands", "metrics.commands.insert.total"),
    ("update_commands", "metrics.commands.update.total"),
    ("delete_commands", "metrics.commands.delete.total"),
    ("getmore_commands", "metrics.commands.getMore.total"),
    ("aggregate_commands", "metrics.commands.aggregate.total"),
];

const OF_MONGODB: [(&str, &str); 13] = [
    // Every write outside of a transaction is one of WiredTiger's.
    ("commits", "wiredTiger.transaction.transactions committed"),
    ("rollbacks", "wiredTiger.transaction.transactions rolled back"),
    ("write_conflicts", "metrics.operation.writeConflicts"),
    ("buffer_reads", "wiredTiger.cache.pages requested from the cache"),
    ("buffer_misses", "wiredTiger.cache.pages read into cache"),
    ("bytes_read", "wiredTiger.cache.bytes read into cache"),
    ("pages_written", "wiredTiger.cache.pages written from cache"),
    ("dirty_pages", "wiredTiger.cache.tracked dirty pages in the cache"),
    ("log_bytes", "wiredTiger.log.log bytes of payload data"),
    ("log_written_bytes", "wiredTiger.log.log bytes written"),
    ("log_fsyncs", "wiredTiger.log.log sync operations"),
    ("connections", "connections.current"),
    ("active_sessions", "connections.active"),
];

fn server_questions(product: &str) -> ServerQuestions {
    let own = OF_MONGODB.iter().filter(|_| product == "MongoDB");
    let asked = COMMANDS.iter().chain(own).map(|(metric, source)| {
        let less = u64::from(matches!(*metric, "connections" | "active_sessions"));
        // The question about waits is one of them.
        let own = if *metric == "aggregate_commands" { OwnPart::Waits } else { OwnPart::None };
        Asked { less, ..Asked::of(metric, source) }.with(own)
    });
    let status = Question::new(SERVER_STATUS.to_owned(), Shape::Named, asked.collect());
    // Collections are locked and added up one after the other, with their indexes.
    let size = Question {
        at_ends: true,
        ..Question::new(r#"{"dbStats": 1}"#.to_owned(), Shape::Named, vec![Asked::of("data_bytes", "totalSize")])
    };
    let lag = Question {
        of_some: true,
        ..Question::new(
            r#"{"replSetGetStatus": 1, "$db": "admin"}"#.to_owned(),
            Shape::ReplicaSetStatus,
            vec![Asked::of("replica_lag_us", "optime")],
        )
    };
    ServerQuestions {
        questions: vec![status, size, lag],
        waits: Some(Waits { sql: CURRENT_OPERATIONS, condition: None }),
        process: ProcessQuestion {
            programs: &["mongod", "mongos", "ferretdb"],
            pid: NamedAnswer { sql: SERVER_STATUS, name: "pid" },
            folder: NamedAnswer { sql: COMMAND_LINE, name: "parsed.storage.dbPath" },
            ..ProcessQuestion::default()
        },
        ..ServerQuestions::default()
    }
}

/// Without sections that are large and hold nothing that is read.
const SERVER_STATUS: &str =
    r#"{"serverStatus": 1, "repl": 0, "locks": 0, "tcmalloc": 0, "mirroredReads": 0, "$db": "admin"}"#;
/// Operations of clients, by what they wait for, without those that wait for something to happen (`hello` of drivers,
/// secondaries that read the log) and without this one. The server does not count reading a file as a wait. Source:
/// MongoDB manual, `$currentOp`: `waitingForLatch` is of 4.2 to 7.0, `currentQueue` of 8.0.
const CURRENT_OPERATIONS: &str = r#"{"aggregate": 1, "pipeline": [
    {"$currentOp": {"allUsers": true, "idleConnections": false, "idleSessions": false}},
    {"$match": {"active": true, "client": {"$exists": true}, "ns": {"$ne": "local.oplog.rs"},
        "command.hello": {"$exists": false}, "command.isMaster": {"$exists": false},
        "command.comment": {"$ne": "assay: waits"}}},
    {"$group": {"_id": {"$switch": {"branches": [
        {"case": {"$eq": ["$waitingForLock", true]}, "then": "lock"},
        {"case": {"$eq": ["$waitingForFlowControl", true]}, "then": "flow control"},
        {"case": {"$gt": ["$currentQueue.name", null]}, "then": {"$concat": ["queue: ", "$currentQueue.name"]}},
        {"case": {"$gt": ["$waitingForLatch.captureName", null]},
            "then": {"$concat": ["latch: ", "$waitingForLatch.captureName"]}}
    ], "default": "CPU or I/O"}}, "sessions": {"$sum": 1}}}
], "comment": "assay: waits", "$db": "admin"}"#;
const COMMAND_LINE: &str = r#"{"getCmdLineOpts": 1, "$db": "admin"}"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_a_name() {
        for product in ["MongoDB", "FerretDB"] {
            let questions = server_questions(product).questions;
            let asked: Vec<Asked> = questions.into_iter().flat_map(|question| question.asked).collect();
            assert!(asked.len() > COMMANDS.len());
            asked.iter().for_each(|asked| assert!(assay_telemetry::metric(asked.metric).is_some(), "{}", asked.metric));
        }
    }
}
