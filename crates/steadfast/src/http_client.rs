//! The HTTP client of webhooks and of the collector. It follows no redirect, so that what is sent reaches only the address
//! that the user wrote.

use std::sync::Arc;
use std::time::Duration;

use ureq::Agent;
use ureq::tls::{RootCerts, TlsConfig};

/// `limit` is for a whole request.
pub(crate) fn new(limit: Duration) -> Agent {
    let tls = TlsConfig::builder()
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        // Companies have certificates of their own, which only the system knows.
        .root_certs(RootCerts::PlatformVerifier);
    Agent::config_builder()
        .timeout_global(Some(limit))
        .max_redirects(0)
        .http_status_as_error(false)
        .tls_config(tls.build())
        .user_agent(concat!("steadfast/", env!("CARGO_PKG_VERSION")))
        .build()
        .into()
}
