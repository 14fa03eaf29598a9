//! What to ask servers and machines during a run, and how to read the answers.
//!
//! Pure: a product's crate has its questions in the forms of `question` and `statement`, `procfs` parses the kernel's
//! text files, and `metric` names the results of both. When to ask, and over which connection, is decided elsewhere:
//! nothing here opens a file or a socket.

#![forbid(unsafe_code)]

pub mod facts;
pub mod identity;
mod innodb;
mod literals;
pub mod live;
pub mod metric;
pub mod node_exporter;
pub mod pgbouncer;
pub mod procfs;
mod product;
pub mod question;
mod replica_set;
pub mod settings;
pub mod statement;

pub use identity::{Identity, identity_sql};
pub use literals::{has_plan, parameters, without_literals};
pub use live::{LiveQuestions, StatementLog};
pub use metric::{METRICS, Metric, Reading, Unit, metric};
pub use product::{Checkup, Questions, Right};
pub use question::{Asked, OwnPart, Question, Running, ServerQuestions, Shape, Switched, buffers_read};
pub use settings::{Defaults, Harmless, SettingFacts};
pub use statement::{PlanRead, StatementQuestions, is_pushed_down, read_plan};
