//! The products that the lab can start, as it is given them.

use crate::fault::{Fault, Result, nearest};
use crate::front::Front;
use crate::product::Product;

/// Database servers, and programs in front of them.
#[derive(Debug)]
pub struct Products {
    /// Every product with data.
    pub databases: Vec<&'static dyn Product>,
    /// Every front.
    pub fronts: Vec<&'static dyn Front>,
}

impl Products {
    /// The product with this name; the fault names the nearest one.
    pub fn product(&self, name: &str) -> Result<&'static dyn Product> {
        let found = self.databases.iter().find(|product| product.name() == name);
        found.copied().ok_or_else(|| {
            let names = || self.databases.iter().map(|product| product.name());
            let known = names().collect::<Vec<_>>().join(", ");
            let fault = Fault::usage(format!("unknown server {name}")).detail(format!("known: {known}"));
            let meant = self.databases.iter().find(|product| product.other_names().contains(&name));
            match meant.map(|product| product.name()).or_else(|| nearest(name, names())) {
                Some(near) => fault.hint(format!("did you mean {near}?")),
                None => fault,
            }
        })
    }

    /// The front with this name.
    pub fn front(&self, name: &str) -> Result<&'static dyn Front> {
        let found = self.fronts.iter().find(|front| front.name() == name);
        found.copied().ok_or_else(|| {
            let known: Vec<&str> = self.fronts.iter().map(|front| front.name()).collect();
            let fault = Fault::usage(format!("unknown front {name}")).detail(format!("known: {}", known.join(", ")));
            // The first letters are rarely wrong.
            match known.iter().find(|known| !name.is_empty() && known.get(..2) == name.get(..2)) {
                Some(near) => fault.hint(format!("did you mean {near}?")),
                None => fault,
            }
        })
    }
}
