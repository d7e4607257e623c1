//! Results of `steadfast doctor`.

use strum::IntoStaticStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum CheckStatus {
    Ok,
    Warn,
    Fail,
}

/// Whether a client runs our hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookState {
    /// Nothing of ours is installed there.
    Absent,
    Ready,
    /// Installed, but the client does not run them; the check says why and what to do.
    Silent(DoctorCheck),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoctorCheck {
    pub id: &'static str,
    pub status: CheckStatus,
    pub detail: String,
    /// How to fix it.
    pub hint: Option<String>,
}

pub fn ok(id: &'static str, detail: impl Into<String>) -> DoctorCheck {
    DoctorCheck { id, status: CheckStatus::Ok, detail: detail.into(), hint: None }
}

pub fn warn(id: &'static str, detail: impl Into<String>, hint: impl Into<String>) -> DoctorCheck {
    DoctorCheck { id, status: CheckStatus::Warn, detail: detail.into(), hint: Some(hint.into()) }
}

pub fn fail(id: &'static str, detail: impl Into<String>, hint: impl Into<String>) -> DoctorCheck {
    DoctorCheck { id, status: CheckStatus::Fail, detail: detail.into(), hint: Some(hint.into()) }
}
