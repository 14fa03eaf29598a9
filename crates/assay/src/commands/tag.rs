//! `assay tag RECORD… KEY=VALUE…`: labels finished runs, without changing their measurements.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use assay_process::diagnostics::{Exit, Trouble};
use assay_process::terminal;
use assay_record::{ChangeError, Record};

use crate::command_line::TagOptions;
use crate::commands::show;

/// Sets the tags of every record.
pub fn run(options: &TagOptions) -> Result<Exit, Trouble> {
    // A path may contain a `=`, too: an existing file is a record.
    let is_record = |word: &&String| !word.contains('=') || Path::new(word).is_file();
    let records: Vec<PathBuf> = options.words.iter().filter(is_record).map(PathBuf::from).collect();
    let tags = options.words.iter().filter(|word| !is_record(word));
    let tags: BTreeMap<String, String> = tags
        .map(|word| assay_spec::tag(word).map_err(|reason| Trouble::usage(format!("{word}: {reason}"))))
        .collect::<Result<_, Trouble>>()?;
    if let Some(word) = options.words.iter().find(|word| tags.is_empty() && !Path::new(word).exists()) {
        return Err(Trouble::usage(format!("{word} is neither a record nor a tag"))
            .hint("a tag is KEY=VALUE, such as disk=nvme"));
    }
    if records.is_empty() || tags.is_empty() {
        let what = if records.is_empty() { "record" } else { "tag" };
        return Err(Trouble::usage(format!("no {what} given"))
            .hint("such as: assay tag assay-records/tpcc-20260314T150926Z.json.zst disk=nvme"));
    }
    // A record that cannot be read is found before the first is changed.
    for path in &records {
        show::read(path, Record::read)?;
    }
    for path in &records {
        assay_record::tag(path, &tags).map_err(trouble)?;
        terminal::say(&format!("tagged {}\n", path.display()));
    }
    Ok(Exit::Success)
}

fn trouble(error: ChangeError) -> Trouble {
    match error {
        ChangeError::Read(error) => error.into(),
        ChangeError::Write(error) => {
            let source = std::error::Error::source(&error).map(ToString::to_string);
            let trouble = Trouble::environment(error.to_string());
            source.into_iter().fold(trouble, Trouble::detail)
        }
        ChangeError::Busy { .. } => Trouble::environment(error.to_string()).hint("wait until it has ended"),
        ChangeError::Damaged { .. } => Trouble::environment(error.to_string()),
        ChangeError::Newer { .. } => {
            Trouble::environment(error.to_string()).hint("use the assay that wrote it, or a later one")
        }
    }
}
