//! Connection services: named sets of parameters in a file.
//!
//! Source: PostgreSQL manual, 34.17.

use std::path::{Path, PathBuf};

use assay_seam::Surroundings;

/// The path of Debian's libpq for the system-wide file.
const SYSTEM_FOLDER: &str = "/etc/postgresql-common";
const SYSTEM_FILE: &str = "pg_service.conf";

/// The parameters of the service with this name, in the order of the file; or, in libpq's words, why there are none.
pub(super) fn parameters(name: &str, surroundings: &dyn Surroundings) -> Result<Vec<(String, String)>, String> {
    let variable = |name: &str| surroundings.variable(name).filter(|value| !value.is_empty());
    let named = variable("PGSERVICEFILE").map(PathBuf::from);
    if let Some(path) = named.as_ref().filter(|path| surroundings.mode(path).is_none()) {
        return Err(format!("service file \"{}\" not found", path.display()));
    }
    let own = named.or_else(|| Some(surroundings.home()?.join(".pg_service.conf")));
    let folder = variable("PGSYSCONFDIR").unwrap_or_else(|| SYSTEM_FOLDER.to_owned());
    for path in own.into_iter().chain([Path::new(&folder).join(SYSTEM_FILE)]) {
        let content = surroundings.read(&path).unwrap_or_default();
        if let Some(found) = find(&String::from_utf8_lossy(&content), name) {
            return found.map_err(|line| format!("syntax error in service file \"{}\", line {line}", path.display()));
        }
    }
    Err(format!("definition of service \"{name}\" not found"))
}

/// The section with this name; `Err`: the number of an invalid line in it.
fn find(content: &str, name: &str) -> Option<Result<Vec<(String, String)>, usize>> {
    let mut found = None;
    for (number, line) in (1..).zip(content.lines().map(str::trim)) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(section) = line.strip_prefix('[') {
            if found.is_some() {
                break;
            }
            found = (section.strip_suffix(']') == Some(name)).then(Vec::new);
        } else if let Some(parameters) = &mut found {
            let Some((key, value)) = line.split_once('=') else { return Some(Err(number)) };
            parameters.push((key.to_owned(), value.to_owned()));
        }
    }
    found.map(Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_found_by_its_name() {
        let content = "# of ours\n[one]\nhost=a\n\n[two]\n host=b b \nsslmode=require\n[three]\nhost\n";
        let own =
            |pairs: &[(&str, &str)]| pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        assert_eq!(find(content, "one"), Some(Ok(own(&[("host", "a")]))));
        assert_eq!(find(content, "two"), Some(Ok(own(&[("host", "b b"), ("sslmode", "require")]))));
        assert_eq!(find(content, "three"), Some(Err(9)));
        assert_eq!(find(content, "four"), None);
        assert_eq!(find("[empty]", "empty"), Some(Ok(Vec::new())));
    }
}
