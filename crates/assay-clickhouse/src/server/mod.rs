//! ClickHouse's servers, for the lab.

use assay_lab::product::Product;
use assay_seam::Driver;

mod configure;
mod install;
mod lifecycle;

/// ClickHouse.
#[derive(Debug)]
pub struct ClickHouse;

impl Product for ClickHouse {
    fn name(&self) -> &'static str {
        "clickhouse"
    }

    fn title(&self) -> &'static str {
        "ClickHouse"
    }

    fn second_scheme(&self) -> Option<&'static str> {
        Some("clickhouse+http")
    }

    fn driver(&self) -> Driver {
        crate::DRIVER
    }
}
