//! Servers that the lab can start: MongoDB itself, and FerretDB over SQLite.
//!
//! Both are set up by the options of their program, and have no users. MongoDB is a single server, or a replica set
//! (`set`) if the option `replSet` or replicas are wanted.

use assay_lab::product::{Product, Replicate};
use assay_seam::Driver;

mod configure;
mod install;
mod lifecycle;
mod set;

/// The name of a replica set, unless the option `replSet` says another.
const SET_NAME: &str = "assay";

/// One of the products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mongo {
    /// `mongod`
    MongoDb,
    /// `ferretdb`, version 1 with its SQLite inside.
    FerretDb,
}

impl Product for Mongo {
    fn name(&self) -> &'static str {
        match self {
            Mongo::MongoDb => "mongodb",
            Mongo::FerretDb => "ferretdb",
        }
    }

    fn other_names(&self) -> &'static [&'static str] {
        match self {
            Mongo::MongoDb => &["mongo", "mongod"],
            Mongo::FerretDb => &["ferret"],
        }
    }

    fn title(&self) -> &'static str {
        match self {
            Mongo::MongoDb => "MongoDB",
            Mongo::FerretDb => "FerretDB",
        }
    }

    fn driver(&self) -> Driver {
        crate::DRIVER
    }

    fn scheme(&self) -> &'static str {
        "mongodb"
    }

    /// Without a user: the servers have none.
    fn url(&self, port: u16, only_there: bool, database: &str) -> String {
        let options = if only_there { "?directConnection=true" } else { "" };
        format!("mongodb://127.0.0.1:{port}/{database}{options}")
    }

    fn image(&self) -> &'static str {
        match self {
            Mongo::MongoDb => "mongo",
            Mongo::FerretDb => "ferretdb",
        }
    }

    fn replication(&self) -> Option<&dyn Replicate> {
        (*self == Mongo::MongoDb).then_some(self)
    }
}
