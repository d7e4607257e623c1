//! A prompt that is about a goal and nothing else: `/goal …`, `goal: …`, `objective: …`, and the words that steer one.

/// What such a prompt asks for; `Text` is the prompt's own words, or what is kept of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Directive<Text> {
    /// This is the goal from now on: many lines, any language.
    State(Text),
    /// The goal's text changes; `None` when the client will ask for it.
    Edit(Option<Text>),
    Clear,
    Pause,
    Resume,
    Status,
    Done,
}

impl<Text> Directive<Text> {
    /// The same about another text.
    pub fn map<Other>(self, change: impl FnOnce(Text) -> Other) -> Directive<Other> {
        match self {
            Self::State(text) => Directive::State(change(text)),
            Self::Edit(text) => Directive::Edit(text.map(change)),
            Self::Clear => Directive::Clear,
            Self::Pause => Directive::Pause,
            Self::Resume => Directive::Resume,
            Self::Status => Directive::Status,
            Self::Done => Directive::Done,
        }
    }

    /// The goal that it states or changes to.
    pub fn text(&self) -> Option<&Text> {
        match self {
            Self::State(text) => Some(text),
            Self::Edit(text) => text.as_ref(),
            Self::Clear | Self::Pause | Self::Resume | Self::Status | Self::Done => None,
        }
    }
}

/// How a goal was stated: `/goal` is a command of the clients themselves, a marker is ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Slash,
    Marker,
}

/// Reads a prompt. Both colons are accepted, ASCII and full-width; words are only commands after `/goal`, and only
/// alone: `/goal pause the music` is a goal.
pub fn read(prompt: &str) -> Option<(Form, Directive<&str>)> {
    let prompt = prompt.trim();
    if let Some(rest) = strip_word(prompt, "/goal") {
        // `/goals` and `/goal-start` are other commands.
        let text = rest.strip_prefix(char::is_whitespace)?.trim();
        return (!text.is_empty()).then(|| (Form::Slash, after_slash(text)));
    }
    let rest = ["goal", "objective"].iter().find_map(|word| strip_word(prompt, word))?;
    let stated = rest.trim_start().strip_prefix([':', '：'])?.trim();
    (!stated.is_empty()).then_some((Form::Marker, Directive::State(stated)))
}

/// The goal that a marker in a prompt states.
pub fn marked_goal(prompt: &str) -> Option<&str> {
    match read(prompt)? {
        (Form::Marker, Directive::State(objective)) => Some(objective),
        _ => None,
    }
}

fn after_slash(text: &str) -> Directive<&str> {
    match text.to_ascii_lowercase().as_str() {
        // Claude Code's own command ends its goal at any of these.
        "clear" | "stop" | "off" | "reset" | "none" | "cancel" => Directive::Clear,
        "pause" => Directive::Pause,
        "resume" => Directive::Resume,
        "status" => Directive::Status,
        "done" => Directive::Done,
        "edit" => Directive::Edit(None),
        _ => match strip_word(text, "edit").and_then(|rest| rest.strip_prefix(char::is_whitespace)) {
            Some(rest) => Directive::Edit(Some(rest.trim())),
            None => Directive::State(text),
        },
    }
}

/// What follows a word at the start of a text, whatever its case.
fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(word.len())?;
    start.eq_ignore_ascii_case(word).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_stated_by_command_or_marker() {
        for (prompt, form, goal) in [
            ("/goal ship the v2 release by Friday", Form::Slash, "ship the v2 release by Friday"),
            ("/GOAL upper", Form::Slash, "upper"),
            ("/Goal\tx", Form::Slash, "x"),
            ("/goal\ntext", Form::Slash, "text"),
            ("/goal\u{3000}全角", Form::Slash, "全角"),
            ("/goal\u{a0}x", Form::Slash, "x"),
            ("/goal line1\nline2\n\nline4", Form::Slash, "line1\nline2\n\nline4"),
            ("/goal 中文目标内容", Form::Slash, "中文目标内容"),
            ("/goal pause the music", Form::Slash, "pause the music"),
            ("/goal clear the backlog", Form::Slash, "clear the backlog"),
            ("goal: all tests pass", Form::Marker, "all tests pass"),
            ("  GOAL :  x  ", Form::Marker, "x"),
            ("Goal:nospace", Form::Marker, "nospace"),
            ("goal:goal: twice", Form::Marker, "goal: twice"),
            ("goal：x", Form::Marker, "x"),
            ("Objective：日本語の目標", Form::Marker, "日本語の目標"),
            ("objective: 한국어 목표", Form::Marker, "한국어 목표"),
            ("objective:\none\n\ntwo\n", Form::Marker, "one\n\ntwo"),
            ("goal: pause", Form::Marker, "pause"),
        ] {
            assert_eq!(read(prompt), Some((form, Directive::State(goal))), "{prompt}");
        }
    }

    #[test]
    fn words_after_the_command_are_commands() {
        for (prompt, directive) in [
            ("/goal clear", Directive::Clear),
            ("/goal stop", Directive::Clear),
            ("/goal Off", Directive::Clear),
            ("/goal reset", Directive::Clear),
            ("/goal none", Directive::Clear),
            ("/goal cancel", Directive::Clear),
            ("/goal  PAUSE ", Directive::Pause),
            ("/goal resume", Directive::Resume),
            ("/goal status", Directive::Status),
            ("/goal done", Directive::Done),
            ("/goal edit", Directive::Edit(None)),
            ("/goal edit cut p95 to 80 ms", Directive::Edit(Some("cut p95 to 80 ms"))),
        ] {
            assert_eq!(read(prompt), Some((Form::Slash, directive)), "{prompt}");
        }
    }

    #[test]
    fn other_prompts_are_no_directives() {
        for prompt in [
            "",
            "/goal",
            "/goal   ",
            "goal",
            "goal:",
            "goal: \n",
            "objective:   ",
            "goals: x",
            "objectives: y",
            "my goal: x",
            "the objective: x",
            "/goals x",
            "/goal-start x",
            "/goal: x",
            "/ns:goal x",
            "> goal: x",
            "**Goal:** x",
            "first line\ngoal: x",
            "目标: 提高性能",
            "目",
            "goa",
            "what is the goal here?",
            "please refactor the parser",
        ] {
            assert_eq!(read(prompt), None, "{prompt}");
        }
    }
}
