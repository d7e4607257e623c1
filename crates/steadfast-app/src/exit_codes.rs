//! Exit codes of all programs, with their names in JSON.

pub const USAGE: u8 = 1;
pub const NOT_FOUND: u8 = 2;
pub const WRONG_STATE: u8 = 3;
pub const ENVIRONMENT: u8 = 4;
pub const LIMIT: u8 = 5;
pub const VERIFICATION: u8 = 6;
pub const INTERRUPTED: u8 = 130;

/// Each code with its `kind` in JSON and its meaning, for the reference.
pub const ALL: [(u8, &str, &str); 7] = [
    (USAGE, "usage", "usage error, or a failure with no code of its own"),
    (NOT_FOUND, "not_found", "not found: no goal, no session, no run"),
    (WRONG_STATE, "wrong_state", "wrong state for that verb, or not allowed for an agent"),
    (ENVIRONMENT, "environment", "a problem of the store or the environment"),
    (LIMIT, "limit_reached", "a limit was reached: budget, cap or usage limit"),
    (VERIFICATION, "verification_failed", "verification failed"),
    (INTERRUPTED, "interrupted", "interrupted"),
];

/// The `kind` of an error in JSON.
pub fn kind_of(code: u8) -> &'static str {
    ALL.iter().find(|(known, ..)| *known == code).map_or("failed", |(_, kind, _)| kind)
}
