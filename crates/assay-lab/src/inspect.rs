//! What can be found out about a server before starting it.

use std::os::unix::fs::PermissionsExt;

use crate::account::Account;
use crate::fault::{Fault, Result};
use crate::product::{Binaries, Configuration, Role, Site};
use crate::products::Products;
use crate::settings;
use crate::topology::Description;

impl Description {
    /// Refuses settings that these programs do not know, with the nearest name. Only the program that lists its
    /// settings is run.
    pub fn check_settings(&self, products: &Products, binaries: &Binaries) -> Result<()> {
        let account = Account::choose(self.run_as.as_deref())?;
        let folder =
            tempfile::tempdir().map_err(|error| Fault::environment(format!("cannot make a folder: {error}")))?;
        let data = folder.path().join("data");
        let product = products.product(&self.wanted.product)?;
        // It is run as any user.
        let made = std::fs::create_dir(&data)
            .and_then(|()| product.pretend_data(&data))
            .and_then(|()| std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)));
        made.map_err(|error| Fault::environment(format!("cannot write {}: {error}", data.display())))?;
        let site = Site { binaries, account: &account, folder: folder.path(), data: &data, port: 1, second_port: 0 };
        let (_, settings) = settings::divide(product, &self.settings);
        let role = Role::Alone;
        settings::check(
            product,
            &site,
            &Configuration {
                file: self.file.as_deref(),
                settings: &settings,
                all: &settings::all(product, self.file.as_deref(), &settings),
                access: &self.access,
                role: &role,
            },
        )
    }
}
