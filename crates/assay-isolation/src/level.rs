//! Isolation levels, and what each of them forbids.

use serde::{Deserialize, Serialize};

use crate::phenomenon::{Form, Phenomenon};

/// An isolation level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IsolationLevel {
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

impl IsolationLevel {
    /// From the weakest to the strongest. Repeatable read and snapshot isolation do not imply each other.
    pub const ALL: [IsolationLevel; 7] = [
        IsolationLevel::ReadUncommitted,
        IsolationLevel::ReadCommitted,
        IsolationLevel::RepeatableRead,
        IsolationLevel::SnapshotIsolation,
        IsolationLevel::Serializable,
        IsolationLevel::StrongSessionSerializable,
        IsolationLevel::StrictSerializable,
    ];

    /// Its name in options.
    pub fn name(self) -> &'static str {
        match self {
            IsolationLevel::ReadUncommitted => "read-uncommitted",
            IsolationLevel::ReadCommitted => "read-committed",
            IsolationLevel::RepeatableRead => "repeatable-read",
            IsolationLevel::SnapshotIsolation => "snapshot-isolation",
            IsolationLevel::Serializable => "serializable",
            IsolationLevel::StrongSessionSerializable => "strong-session-serializable",
            IsolationLevel::StrictSerializable => "strict-serializable",
        }
    }

    /// The level with this name; spaces and underscores are as good as hyphens.
    pub fn of_name(name: &str) -> Option<IsolationLevel> {
        let name = name.trim().to_lowercase().replace([' ', '_'], "-");
        IsolationLevel::ALL.into_iter().find(|level| level.name() == name)
    }

    /// Whether a history with this phenomenon does not have the level.
    pub fn forbids(self, phenomenon: Phenomenon, form: Form) -> bool {
        use Phenomenon as P;
        let of_form = match form {
            Form::Plain => true,
            Form::Session => {
                matches!(self, IsolationLevel::StrongSessionSerializable | IsolationLevel::StrictSerializable)
            }
            Form::RealTime => self == IsolationLevel::StrictSerializable,
        };
        of_form
            && match phenomenon {
                P::GarbageRead | P::DuplicateElement | P::Internal | P::LostWrite | P::DirtyWrite => true,
                P::AbortedRead | P::IntermediateRead | P::IncompatibleOrder | P::CircularInformation => {
                    self != IsolationLevel::ReadUncommitted
                }
                P::LostUpdate | P::ReadSkew | P::LongFork | P::WrongTotal => {
                    !matches!(self, IsolationLevel::ReadUncommitted | IsolationLevel::ReadCommitted)
                }
                P::WriteSkew => !matches!(
                    self,
                    IsolationLevel::ReadUncommitted | IsolationLevel::ReadCommitted | IsolationLevel::SnapshotIsolation
                ),
                P::NonMonotonicRead | P::UnreadOwnWrite | P::NonMonotonicWrite | P::WriteBeforeRead => {
                    matches!(self, IsolationLevel::StrongSessionSerializable | IsolationLevel::StrictSerializable)
                }
                P::StaleRead => self == IsolationLevel::StrictSerializable,
            }
    }
}
