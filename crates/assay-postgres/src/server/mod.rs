//! PostgreSQL's servers, 9.6 and newer, for the lab.

use assay_lab::product::{Product, Replicate};
use assay_seam::Driver;

mod configure;
mod install;
mod lifecycle;
mod replicate;

/// The product.
#[derive(Debug)]
pub struct Postgres;

impl Product for Postgres {
    fn name(&self) -> &'static str {
        "postgres"
    }

    fn other_names(&self) -> &'static [&'static str] {
        &["pg", "postgresql"]
    }

    fn title(&self) -> &'static str {
        "PostgreSQL"
    }

    fn driver(&self) -> Driver {
        crate::DRIVER
    }

    fn replication(&self) -> Option<&dyn Replicate> {
        Some(self)
    }
}
