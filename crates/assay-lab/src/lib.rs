//! The lab: starts any server with any settings, from a clean image, outside the measured path.
//!
//! `Topology::start` turns a `Description` into running servers. Everything about a product is in its crate, which
//! implements the traits of `product`; `binaries` finds programs, `placement` assigns CPUs and memory, `image` copies
//! data directories, `server` manages one server. The lab never touches a server that it did not start, prints nothing,
//! and knows nothing about workloads.

#![forbid(unsafe_code)]

pub mod account;
pub mod binaries;
pub mod container;
pub mod fault;
pub mod filesystem;
pub mod front;
pub mod helpers;
pub mod home;
mod identity;
pub mod image;
mod inspect;
pub mod placement;
pub mod process;
pub mod product;
pub mod products;
pub mod server;
mod settings;
pub mod topology;
pub mod version;
pub mod wait;

pub use account::Account;
pub use assay_secret::Concealed;
pub use fault::{Blame, Fault, Result};
pub use home::Home;
pub use inspect::SettingsCheck;
pub use placement::Placement;
pub use product::ServerSetting;
pub use products::Products;
pub use server::{Server, Status};
pub use settings::check_form;
pub use topology::{Behind, Description, FrontDescription, Timing, Topology};
pub use version::Wanted;
