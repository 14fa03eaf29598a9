//! A script's text and name.

use std::path::PathBuf;
use std::sync::Arc;

use crate::library::{Library, ScriptSource};

/// What a state needs to run a script.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) library: Arc<Library>,
    pub(crate) source: ScriptSource,
    /// As the user named it: `sysbench.cmdline.script_path`.
    pub(crate) given: String,
    pub(crate) name: String,
}

impl Script {
    /// The folder of the script's file.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        self.source.path.as_ref()?.parent().map(PathBuf::from)
    }

    /// Its name as a module, if it is built in.
    pub(crate) fn built_in(&self) -> Option<&str> {
        let name = self.source.display.strip_suffix(".lua")?;
        self.library.module(name).filter(|text| text.as_bytes() == self.source.text).map(|_| name)
    }
}
