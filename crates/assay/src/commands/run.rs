//! `assay run --print-spec`; everything else is executed by assay-run.

use assay_process::diagnostics::{Exit, Trouble};
use assay_process::terminal;
use assay_run::assignment::Assignment;

/// Prints what would be run.
pub fn print_spec(assignment: &Assignment) -> Result<Exit, Trouble> {
    let text = serde_json::to_string_pretty(&assignment.spec.to_value()).expect("it is plain data");
    terminal::result(&format!("{text}\n"))?;
    Ok(Exit::Success)
}

#[cfg(test)]
mod tests {
    use assay_process::url_text;
    use assay_run::next::command;

    use crate::command_line::{self, Invocation};

    /// What is suggested after this command line. It must be a valid command line itself.
    #[track_caller]
    fn suggested(line: &str) -> String {
        let parse = |line: &str| {
            let words = url_text::shell_words(line).unwrap();
            let parsed = command_line::parse(words.into_iter().map(Into::into));
            parsed.unwrap_or_else(|trouble| panic!("{line}: {}", trouble.text(false))).expect("it asks for no help")
        };
        let Invocation { assignment, .. } = parse(line);
        let assignment = assignment.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("my run.json");
        let mut record = assay_record::Record { format: assay_record::FORMAT, ..Default::default() };
        record.manifest.spec = Some(assignment.spec.to_value());
        record.create(&path, assay_record::Existing::Keep).unwrap();
        let next = command(&assignment, &path);
        parse(&next);
        next.replace(&format!("{}/", folder.path().display()), "")
    }

    #[test]
    fn what_is_suggested_after_a_run_is_a_command_that_can_be_given() {
        let db = "--db sqlite:a.db";
        let show = "assay show 'my run.json'";
        let again = "assay run --again 'my run.json'";
        let of_run = |line: &str| suggested(&format!("assay run {line}"));
        assert_eq!(
            of_run("oltp_read_only --tables 4 --time=5s --record a.json"),
            format!("{again} --prepare --db postgres://USER@HOST/DATABASE")
        );
        assert_eq!(of_run("oltp_read_only --prepare"), format!("{again} --db postgres://USER@HOST/DATABASE"));
        assert_eq!(of_run(&format!("tpcc {db}")), format!("{again} --sessions 1,2,4,8,16"));
        assert_eq!(of_run(&format!("tpcc --sessions 16 {db}")), format!("{again} --sessions 16,32,64"));
        for told_otherwise in [
            "--sessions 64",
            "--sessions 1,2",
            "--rate 100",
            "--find-rate 'p99 < 1s'",
            "--sessions auto",
            "--terminals 10",
            "--terminals 10 --connections 4",
            "--time 0",
            "--time 5s --kill-check true",
        ] {
            assert_eq!(of_run(&format!("tpcc {db} {told_otherwise}")), show, "{told_otherwise}");
        }
        // Its tables are created for this many sessions.
        assert_eq!(of_run(&format!("bulk_insert {db}")), show);
    }
}
