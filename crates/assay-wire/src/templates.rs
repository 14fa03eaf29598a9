//! The texts of prepared statements, each stored once for all connections.
//!
//! Thousands of sessions prepare the same dozen texts. A lock guards the collection, which is asked when a statement is
//! prepared and never when it is executed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::placeholders::{Dialect, Template};

/// Templates in use.
#[derive(Debug, Default)]
pub struct Templates(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    templates: HashMap<(Dialect, Box<[u8]>), Weak<Template>>,
    /// Unused entries are dropped if there are more than this many.
    tidy_at: usize,
}

/// Up to this many entries are never worth cleaning up.
const FEW: usize = 64;

impl Templates {
    /// The template of `sql`, created if no connection has it.
    pub fn get(&self, sql: &[u8], dialect: Dialect) -> Arc<Template> {
        // What a panicked thread left behind is complete: entries are built before they are inserted.
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (dialect, Box::from(sql));
        if let Some(template) = held.templates.get(&key).and_then(Weak::upgrade) {
            return template;
        }
        if held.templates.len() >= held.tidy_at {
            held.templates.retain(|_, template| template.strong_count() > 0);
            held.tidy_at = FEW.max(2 * held.templates.len());
        }
        let template = Arc::new(Template::new(sql, dialect));
        held.templates.insert(key, Arc::downgrade(&template));
        template
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIALECT: Dialect = Dialect::MySql { backslash_escapes: true };

    #[test]
    fn a_text_is_held_once_per_dialect() {
        let templates = Templates::default();
        let first = templates.get(b"SELECT '\\'?'", DIALECT);
        assert!(Arc::ptr_eq(&first, &templates.get(b"SELECT '\\'?'", DIALECT)));
        let other = templates.get(b"SELECT '\\'?'", Dialect::MySql { backslash_escapes: false });
        assert_eq!((first.placeholders(), other.placeholders()), (0, 1));
    }

    #[test]
    fn texts_that_nobody_uses_are_forgotten() {
        let templates = Templates::default();
        let kept = templates.get(b"SELECT ?", DIALECT);
        for n in 0..10_000 {
            templates.get(format!("SELECT {n}").as_bytes(), DIALECT);
        }
        assert!(templates.0.lock().unwrap().templates.len() <= FEW);
        assert!(Arc::ptr_eq(&kept, &templates.get(b"SELECT ?", DIALECT)));
    }
}
