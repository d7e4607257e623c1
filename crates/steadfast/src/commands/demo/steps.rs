//! The steps of the demo as data: what the user types, what the scripted model answers, and with how many tokens.

pub(super) const OBJECTIVE: &str = "slugify.sh turns any title into a clean slug";
pub(super) const SCRIPT: &str = "slugify.sh";
const FIRST: &str = include_str!("project/slugify-first.sh");
const ALMOST: &str = include_str!("project/slugify-almost.sh");
const RIGHT: &str = include_str!("project/slugify-right.sh");
const NO_THOUGHT: &str = "";

pub(super) enum Step {
    Heading(&'static str),
    /// The client starts the session, with this source.
    Start(&'static str),
    /// The user types `/goal-start` with the objective and these flags.
    SetGoal(&'static str),
    Prompt(&'static str),
    Answer(Answer),
    /// The model ends its turn. The story ends here unless Steadfast continues it.
    EndTurn(Answer),
    /// The client replaces the conversation by this summary.
    Compact(&'static str),
    /// The client writes the answer, half of its file, and is killed before its hooks run.
    Killed(Answer),
}

/// One answer of the scripted model.
pub(super) struct Answer {
    pub(super) thought: &'static str,
    pub(super) text: &'static str,
    pub(super) tools: &'static [Tool],
    pub(super) usage: Usage,
}

pub(super) enum Tool {
    Shell(&'static str),
    /// Writes the script.
    Write(&'static str),
    CompleteGoal,
}

/// Tokens of one answer, in the order input, cache creation, cache read, output.
#[derive(Clone, Copy)]
pub(super) struct Usage(pub(super) i64, pub(super) i64, pub(super) i64, pub(super) i64);

impl Usage {
    /// The tokens that count against a budget: all except cache reads.
    pub(super) fn counted(self) -> i64 {
        self.0 + self.1 + self.3
    }
}

const fn answer(thought: &'static str, text: &'static str, tools: &'static [Tool], usage: Usage) -> Answer {
    Answer { thought, text, tools, usage }
}

const fn end(text: &'static str, usage: Usage) -> Step {
    Step::EndTurn(answer("Nothing is left to do.", text, &[], usage))
}

pub(super) const NEW_SESSION: &[Step] = &[
    Step::Heading("1. The user sets a goal"),
    Step::Start("startup"),
    Step::SetGoal("--budget 40k --verify \"sh check.sh\""),
    Step::Answer(answer(
        "I do not know this project yet.",
        "I look at the project first.",
        &[Tool::Shell("ls"), Tool::Shell("head -2 check.sh")],
        Usage(1_850, 11_240, 0, 412),
    )),
    Step::Answer(answer(
        "Lower case, and dashes for spaces.",
        "I write a first slugify.sh.",
        &[Tool::Write(FIRST)],
        Usage(12, 1_930, 13_090, 1_268),
    )),
    end("slugify.sh is written.", Usage(8, 1_402, 15_032, 233)),
    Step::Heading("2. The budget runs low"),
    Step::Answer(answer(
        "What does the user's own check report?",
        "I run the check.",
        &[Tool::Shell("sh check.sh")],
        Usage(2_105, 10_877, 16_442, 981),
    )),
    Step::Heading("3. The conversation is compacted"),
    Step::Compact("The user has a small shell project. A first script exists; its check fails."),
    Step::Answer(answer(
        "Everything except letters and digits must become one dash.",
        "I replace all other characters with dashes.",
        &[Tool::Write(ALMOST)],
        Usage(640, 1_120, 9_800, 702),
    )),
    Step::Heading("4. The agent says \"done\" too early"),
    Step::Answer(answer(
        NO_THOUGHT,
        "That should be it: I mark the goal complete.",
        &[Tool::CompleteGoal],
        Usage(6, 318, 11_560, 145),
    )),
    end("One title still ends in a dash.", Usage(5, 290, 11_884, 96)),
    Step::Heading("5. kill -9 in the middle of a turn"),
    Step::Killed(answer(
        "Dashes at the start and the end must go.",
        "I remove the dashes at both ends ...",
        &[Tool::Write(RIGHT)],
        Usage(9, 512, 12_180, 803),
    )),
];

pub(super) const RESUMED_SESSION: &[Step] = &[
    Step::Heading("6. The session is resumed"),
    Step::Start("resume"),
    Step::Prompt("continue"),
    Step::Answer(answer(
        "The files count, not what I remember.",
        "slugify.sh is only half written; I write it again.",
        &[Tool::Write(RIGHT), Tool::Shell("sh check.sh")],
        Usage(720, 410, 9_010, 388),
    )),
    Step::Answer(answer(
        NO_THOUGHT,
        "Now every title is right: I mark the goal complete.",
        &[Tool::CompleteGoal],
        Usage(6, 120, 10_140, 140),
    )),
    end("Done.", Usage(5, 96, 10_266, 88)),
];
