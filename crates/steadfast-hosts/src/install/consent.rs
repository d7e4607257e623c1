//! Who decides about the optional settings: the flag, then what is there already, then `--yes`, then the person at the terminal.

use std::io;

use super::Choice;

/// What the command line says about one optional setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// `--statusline`, `--block-cap N`.
    Given,
    /// `--no-statusline`, `--no-block-cap`.
    Refused,
    /// Neither, but `--yes`.
    Presumed,
    /// Neither: ask the user at the terminal, if there is one.
    Open,
}

/// Decides about `value`; `theirs` says that the user has set it themselves, which only an explicit flag may touch.
pub fn decide<T>(
    consent: Consent,
    value: T,
    theirs: bool,
    ask: Option<impl FnOnce() -> io::Result<bool>>,
) -> io::Result<Choice<T>> {
    let agreed = match (consent, ask) {
        (Consent::Given, _) => true,
        (Consent::Refused, _) => return Ok(Choice::Remove),
        _ if theirs => false,
        (Consent::Presumed, _) => true,
        (Consent::Open, Some(ask)) => ask()?,
        (Consent::Open, None) => false,
    };
    Ok(if agreed { Choice::Set(value) } else { Choice::Leave })
}
