//! What the URL says about concerns and preference, for the commands that take it.

use crate::protocol::json::Node;

/// What the URL adds to commands.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Additions {
    /// Where commands are executed.
    pub(super) database: String,
    /// Of commands that write.
    pub(super) write_concern: Option<Node>,
    /// Of commands that read.
    pub(super) read_concern: Option<Node>,
    /// Of commands that read.
    pub(super) read_preference: Option<Node>,
}

impl Additions {
    pub(super) fn reads_secondaries(&self) -> bool {
        let mode = self.read_preference.as_ref().and_then(|preference| preference.field("mode"));
        matches!(mode, Some(Node::Text(mode)) if mode == "secondary")
    }

    /// Within a transaction only its first command and its commit have concerns, and the primary executes all.
    pub(super) fn within_a_transaction(&self) -> Additions {
        Additions { database: self.database.clone(), ..Additions::default() }
    }
}

/// Adds what the command takes and does not have.
pub(super) fn add(command: &mut Node, name: &str, additions: &Additions) {
    let reads = matches!(name, "find" | "aggregate" | "count" | "distinct");
    let writes = matches!(
        name,
        "insert"
            | "update"
            | "delete"
            | "findandmodify"
            | "create"
            | "createindexes"
            | "drop"
            | "dropindexes"
            | "dropdatabase"
            | "collmod"
            | "renamecollection"
    );
    let mut adds = |field: &str, value: Option<&Node>| {
        if let Some(value) = value {
            add_field(command, field, value);
        }
    };
    if reads {
        adds("readConcern", additions.read_concern.as_ref());
        adds("$readPreference", additions.read_preference.as_ref());
    }
    if writes {
        adds("writeConcern", additions.write_concern.as_ref());
    }
    if name == "aggregate" {
        adds("cursor", Some(&Node::Document(Vec::new())));
    }
    adds("$db", Some(&Node::Text(additions.database.clone())));
}

/// Adds a field, unless there is one of this name.
pub(super) fn add_field(command: &mut Node, field: &str, value: &Node) {
    let Node::Document(fields) = command else { return };
    if fields.iter().all(|(known, _)| known != field) {
        fields.push((field.to_owned(), value.clone()));
    }
}
