//! Server settings: their names come from the server's program; after the start, the values in effect are compared.

use crate::fault::{Fault, Result, nearest};
use crate::product::{Asked, Product, Site, Wishes};

/// Refuses settings that the server does not know, with the nearest name.
pub(crate) fn check(product: &dyn Product, site: &Site<'_>, wishes: &Wishes<'_>) -> Result<()> {
    if wishes.settings.is_empty() {
        return Ok(());
    }
    let known = product.known_settings(site)?;
    let plain = |name: &str| name.trim().to_ascii_lowercase().replace('-', "_");
    for asked in wishes.settings {
        let name = plain(&asked.name);
        let variants = ["", "skip_", "disable_", "enable_"];
        let is_known = variants
            .iter()
            .any(|prefix| name.strip_prefix(prefix).is_some_and(|name| known.iter().any(|known| plain(known) == name)));
        // What decides the layout was checked when the data directory was made.
        if is_known || product.may_know(site, &asked.name, wishes) {
            continue;
        }
        let version = &site.binaries.version;
        let fault = Fault::usage(format!("{} {version} has no setting {}", product.title(), asked.name));
        return Err(match nearest(&name, known.iter().map(String::as_str)) {
            Some(near) => fault.hint(format!("did you mean {near}?")),
            None => fault,
        });
    }
    Ok(())
}

/// Divides settings into those that decide the layout of the data directory and the others.
pub(crate) fn divide(product: &dyn Product, all: &[Asked]) -> (Vec<Asked>, Vec<Asked>) {
    let plain = |name: &str| name.to_ascii_lowercase().replace('-', "_");
    all.iter().cloned().partition(|asked| product.layout().contains(&&*plain(&asked.name)))
}
