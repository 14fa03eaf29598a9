//! `assay sysbench --install-link DIR`: a link by the name of `sysbench`, for scripts with a shebang and old wrappers.

use std::io::ErrorKind;
use std::path::Path;

use crate::diagnostics::Trouble;
use crate::terminal;

/// Makes the link in the folder. One that is there already is left alone when it is ours.
pub fn install(folder: &Path) -> Result<(), Trouble> {
    let trouble = |what: String| Trouble::environment(what);
    let program = std::env::current_exe()
        .and_then(|path| path.canonicalize())
        .map_err(|error| trouble(format!("cannot find this program's own file: {error}")))?;
    let link = folder.join("sysbench");
    match std::os::unix::fs::symlink(&program, &link) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            if link.canonicalize().ok().as_ref() != Some(&program) {
                return Err(trouble(format!("{} is there already, and is another program", link.display()))
                    .hint("choose another folder, one that comes before it in PATH"));
            }
        }
        Err(error) => {
            return Err(trouble(format!("cannot make the link {}: {error}", link.display()))
                .hint("choose a folder that exists and that you may write"));
        }
    }
    terminal::result(&format!("{} -> {}\n", link.display(), program.display()))
}
