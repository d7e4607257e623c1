//! Random worlds.
