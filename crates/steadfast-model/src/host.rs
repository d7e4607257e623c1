//! The ids of the hosts and what is true of each, as plain data. Reading and writing their formats is in
//! `steadfast-hosts`.

mod capabilities;
mod id;

pub use capabilities::{Cap, Capabilities, VersionCheck};
pub use id::Host;
