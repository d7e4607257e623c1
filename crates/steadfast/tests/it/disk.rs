//! Disks and permissions: what is wrong is named with its path and what to do, `doctor` says the same, what can be read is
//! read, and home and store are for their user alone.

mod config_keys;
mod full_disk;
mod half_setup;
#[cfg(target_os = "linux")]
mod injected;
mod permissions;
mod process_limits;
mod saved_changes;
