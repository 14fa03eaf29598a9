//! Isolation levels, and what each of them forbids.

use serde::{Deserialize, Serialize};

use crate::phenomenon::{Form, Phenomenon};

/// An isolation level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Adya's PL-1.
    ReadUncommitted,
    /// Adya's PL-2.
    ReadCommitted,
    /// Adya's PL-2.99: as serializable, except for predicates.
    RepeatableRead,
    /// Snapshots may be older than necessary.
    SnapshotIsolation,
    /// Adya's PL-3.
    Serializable,
    /// Serializable in an order that agrees with that of each session.
    StrongSessionSerializable,
    /// Serializable in an order that agrees with real time.
    StrictSerializable,
}

impl Level {
    /// From the weakest to the strongest. Repeatable read and snapshot isolation do not imply each other.
    pub const ALL: [Level; 7] = [
        Level::ReadUncommitted,
        Level::ReadCommitted,
        Level::RepeatableRead,
        Level::SnapshotIsolation,
        Level::Serializable,
        Level::StrongSessionSerializable,
        Level::StrictSerializable,
    ];

    /// Its name in options.
    pub fn name(self) -> &'static str {
        match self {
            Level::ReadUncommitted => "read-uncommitted",
            Level::ReadCommitted => "read-committed",
            Level::RepeatableRead => "repeatable-read",
            Level::SnapshotIsolation => "snapshot-isolation",
            Level::Serializable => "serializable",
            Level::StrongSessionSerializable => "strong-session-serializable",
            Level::StrictSerializable => "strict-serializable",
        }
    }

    /// The level with this name; spaces and underscores are as good as hyphens.
    pub fn of_name(name: &str) -> Option<Level> {
        let name = name.trim().to_lowercase().replace([' ', '_'], "-");
        Level::ALL.into_iter().find(|level| level.name() == name)
    }

    /// Whether a history with this phenomenon does not have the level.
    pub fn forbids(self, phenomenon: Phenomenon, form: Form) -> bool {
        use Phenomenon as P;
        let of_form = match form {
            Form::Plain => true,
            Form::Session => matches!(self, Level::StrongSessionSerializable | Level::StrictSerializable),
            Form::RealTime => self == Level::StrictSerializable,
        };
        of_form
            && match phenomenon {
                P::GarbageRead | P::DuplicateElement | P::Internal | P::LostWrite | P::DirtyWrite => true,
                P::AbortedRead | P::IntermediateRead | P::IncompatibleOrder | P::CircularInformation => {
                    self != Level::ReadUncommitted
                }
                P::LostUpdate | P::ReadSkew | P::LongFork | P::WrongTotal => {
                    !matches!(self, Level::ReadUncommitted | Level::ReadCommitted)
                }
                P::WriteSkew => {
                    !matches!(self, Level::ReadUncommitted | Level::ReadCommitted | Level::SnapshotIsolation)
                }
                P::NonMonotonicRead | P::UnreadOwnWrite | P::NonMonotonicWrite | P::WriteBeforeRead => {
                    matches!(self, Level::StrongSessionSerializable | Level::StrictSerializable)
                }
                P::StaleRead => self == Level::StrictSerializable,
            }
    }
}
