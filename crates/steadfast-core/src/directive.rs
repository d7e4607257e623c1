//! A prompt that states a goal in its own words: `goal: …` or `objective: …`.

/// The goal a prompt states, if that is all it does: many lines, any language, ASCII or full-width colon. `/goal`
/// is the clients' own command and never a goal of ours.
pub fn stated_goal(prompt: &str) -> Option<&str> {
    let prompt = prompt.trim();
    let rest = ["goal", "objective"].iter().find_map(|word| {
        let (start, rest) = prompt.split_at_checked(word.len())?;
        start.eq_ignore_ascii_case(word).then_some(rest)
    })?;
    let stated = rest.trim_start().strip_prefix([':', '：'])?.trim();
    (!stated.is_empty()).then_some(stated)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_at_the_start_states_a_goal() {
        for (prompt, goal) in [
            ("goal: all tests pass", "all tests pass"),
            ("  GOAL :  x  ", "x"),
            ("Objective：日本語の目標", "日本語の目標"),
            ("objective:\none\n\ntwo\n", "one\n\ntwo"),
            ("goal: pause the music", "pause the music"),
        ] {
            assert_eq!(stated_goal(prompt), Some(goal), "{prompt}");
        }
    }

    #[test]
    fn other_prompts_do_not() {
        for prompt in [
            "",
            "goal",
            "goal:",
            "goal: \n",
            "goals: x",
            "my goal: x",
            "/goal x",
            "/goal clear",
            "/goal status",
            "the objective: x",
            "目",
            "goa",
            "objectives: y",
        ] {
            assert_eq!(stated_goal(prompt), None, "{prompt}");
        }
    }
}
