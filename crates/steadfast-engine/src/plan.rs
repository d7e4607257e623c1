//! plan
mod yaml;
