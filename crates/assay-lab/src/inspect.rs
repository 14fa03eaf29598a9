//! What can be found out about servers before starting them.

use std::collections::{HashMap, HashSet};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::account::Account;
use crate::fault::{Fault, Result};
use crate::product::{Binaries, Configuration, Product, Role, ServerSetting, Site};
use crate::products::Products;
use crate::settings;
use crate::topology::Description;

/// Checks settings of many descriptions. Only programs that list or parse their settings are run, and each of them once
/// or twice, however many descriptions there are.
#[derive(Debug, Default)]
pub struct SettingsCheck {
    of_programs: HashMap<PathBuf, CheckedSettings>,
}

/// Settings of one program.
#[derive(Debug, Default)]
struct CheckedSettings {
    /// Names that it lists.
    listed: Option<Vec<String>>,
    /// Names that were checked.
    known: HashSet<String>,
    /// Values that are still to be checked, each with a description that has it.
    asked: HashMap<ServerSetting, Description>,
}

impl SettingsCheck {
    /// Refuses settings that these programs do not know, with the nearest name. Their values are checked by `refused`.
    pub fn check_names(&mut self, products: &Products, asked: &Description, binaries: &Binaries) -> Result<()> {
        let product = products.product(&asked.wanted.product)?;
        settings::check_form(product, &asked.settings)?;
        let own = self.of_programs.entry(binaries.program.clone()).or_default();
        let (_, others) = settings::divide(product, &asked.settings);
        if asked.file.is_some() || others.iter().any(|one| !own.known.contains(&one.name)) {
            let CheckedSettings { listed, .. } = own;
            at_site(product, asked, binaries, |site| {
                let names = match listed {
                    Some(names) => names,
                    None => listed.insert(product.known_settings(site)?),
                };
                let wanted = Configuration {
                    file: asked.file.as_deref(),
                    settings: &others,
                    all: &settings::all(product, asked.file.as_deref(), &others),
                    access: &asked.access,
                    role: &Role::Alone,
                };
                settings::check_names(product, site, &wanted, names)
            })?;
            own.known.extend(others.iter().map(|one| one.name.clone()));
        }
        for one in others {
            own.asked.entry(one).or_insert_with(|| asked.clone());
        }
        Ok(())
    }

    /// Settings with values that their programs refuse, and what those say. `binaries`: of all descriptions.
    pub fn refused(&self, products: &Products, binaries: &[Binaries]) -> Result<Vec<(ServerSetting, String)>> {
        let mut all = Vec::new();
        for binaries in binaries {
            let Some(own) = self.of_programs.get(&binaries.program) else { continue };
            let Some(asked) = own.asked.values().next() else { continue };
            let product = products.product(&binaries.product)?;
            let mut settings: Vec<ServerSetting> = own.asked.keys().cloned().collect();
            settings.sort_by(|a, b| (&a.name, &a.value).cmp(&(&b.name, &b.value)));
            at_site(product, asked, binaries, |site| {
                all.extend(settings::refused(product, site, &settings));
                Ok(())
            })?;
        }
        Ok(all)
    }
}

/// With a place for the programs, as if a server were to be started there.
fn at_site<T>(
    product: &dyn Product,
    asked: &Description,
    binaries: &Binaries,
    then: impl FnOnce(&Site<'_>) -> Result<T>,
) -> Result<T> {
    let account = Account::choose(asked.run_as.as_deref())?;
    let folder = tempfile::tempdir().map_err(|error| Fault::environment(format!("cannot make a folder: {error}")))?;
    let data = folder.path().join("data");
    // It is run as any user.
    let made = std::fs::create_dir(&data)
        .and_then(|()| product.pretend_data(&data))
        .and_then(|()| std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)));
    made.map_err(|error| Fault::environment(format!("cannot write {}: {error}", data.display())))?;
    then(&Site { binaries, account: &account, folder: folder.path(), data: &data, port: 1, second_port: 0 })
}
