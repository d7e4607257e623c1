//! Our commands as users of the hosts type them.

/// One command, the same in every host. Adapters render it as the host wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlashCommand {
    /// Without the host's prefix: `start` for `/goal-start`.
    pub name: &'static str,
    /// What may follow the name, as help shows it.
    pub arguments: &'static str,
    pub description: &'static str,
    pub answered_by: AnsweredBy,
}

/// What answers a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnsweredBy {
    /// The hook, without a call of the model.
    Hook,
    /// The model, which the hook gives something to do.
    Model,
}
