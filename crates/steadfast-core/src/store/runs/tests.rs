//! Runs as rows.
