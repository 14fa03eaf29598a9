//! Replication; the statements differ between the products.

use assay_client::Client;
use assay_lab::fault::Result;
use assay_lab::product::{Replicate, Role, Site};
use assay_lab::version::Version;

use super::Member;

impl Replicate for Member {
    fn become_replica(&self, site: &Site<'_>, _: &Role) -> Result<()> {
        (self.become_replica)(site)
    }

    fn follow(
        &self,
        version: &Version,
        primary: (&mut Client, u16),
        replica: &mut Client,
    ) -> std::result::Result<(), String> {
        (self.follow)(version, primary, replica)
    }

    fn caught_up(
        &self,
        _: &Version,
        primary: &mut Client,
        replica: &mut Client,
        _: u32,
    ) -> std::result::Result<bool, String> {
        (self.caught_up)(primary, replica)
    }
}
