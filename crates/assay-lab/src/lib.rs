//! The lab: starts any server with any settings, from a clean image, outside the measured path.
//!
//! `Topology::start` turns a `Description` into servers that run. What is known of a product is in its file of
//! `product`; where programs come from in `binaries`, where a server may run in `placement`, copies of data directories
//! in `image`, the life of one server in `server`. It never touches a server that it did not start, prints nothing, and
//! knows nothing of workloads.

#![forbid(unsafe_code)]

pub mod account;
pub mod binaries;
pub mod container;
pub mod fault;
pub mod front;
pub mod home;
pub mod image;
mod inspect;
pub mod placement;
pub mod process;
pub mod product;
pub mod server;
mod settings;
pub mod sql;
pub mod topology;
pub mod version;
pub mod wait;

pub use account::Account;
pub use fault::{Blame, Fault, Result};
pub use home::Home;
pub use placement::Placement;
pub use product::Asked;
pub use server::{Server, Status};
pub use topology::{Behind, Description, FrontDescription, Timing, Topology};
pub use version::Wanted;
