//! Where the programs come from.

use std::path::{Path, PathBuf};

use assay_lab::product::{Artifact, Install};
use assay_lab::version::Version;

use super::Mongo;

impl Install for Mongo {
    fn programs(&self) -> &'static [&'static str] {
        match self {
            Mongo::MongoDb => &["mongod"],
            Mongo::FerretDb => &["ferretdb"],
        }
    }

    fn places(&self, root: &Path) -> Vec<PathBuf> {
        ["usr/bin", "usr/local/bin", ""].iter().map(|place| root.join(place)).collect()
    }

    fn package(&self) -> &'static str {
        match self {
            Mongo::MongoDb => "mongodb-org-server",
            Mongo::FerretDb => "ferretdb",
        }
    }

    fn how_to_install(&self) -> String {
        match self {
            Mongo::MongoDb => "install it from MongoDB's own repository (mongodb-org-server)".to_owned(),
            Mongo::FerretDb => "build version 1 from its Go module, or download it from its project's page".to_owned(),
        }
    }

    fn catalog(&self) -> &'static [Artifact] {
        &[]
    }

    fn version_said(&self, words: &str) -> Option<Version> {
        // "db version v7.0.5", and "version: v1.24.2" with the commit.
        let start = match self {
            Mongo::MongoDb => "db version",
            Mongo::FerretDb => "version:",
        };
        let line = words.lines().find(|line| line.starts_with(start))?;
        (*self == Mongo::MongoDb || words.contains("commit:")).then(|| Version::find(line)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_is_known_by_its_words() {
        let (mongod, ferretdb) = ("db version v7.0.5\nBuild Info: {}\n", "version: v1.24.2\ncommit: unknown\n");
        assert_eq!(Mongo::MongoDb.version_said(mongod), "7.0.5".parse().ok());
        assert_eq!(Mongo::FerretDb.version_said(ferretdb), "1.24.2".parse().ok());
        assert!(Mongo::MongoDb.version_said(ferretdb).is_none() && Mongo::FerretDb.version_said(mongod).is_none());
    }
}
