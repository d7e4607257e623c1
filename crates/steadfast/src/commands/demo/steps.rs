//! The steps of the demo as data: what the user types, what the scripted model answers, and with how many tokens.

use DemoStep::{Answer, Compact, EndTurn, Heading, Killed, Prompt, SetGoal, Start};
use Tool::{CompleteGoal, Shell, Write};

pub(super) const OBJECTIVE: &str = "slugify.sh turns any title into a clean slug";
pub(super) const SCRIPT: &str = "slugify.sh";
const FIRST: &str = include_str!("project/slugify-first.sh");
const ALMOST: &str = include_str!("project/slugify-almost.sh");
const RIGHT: &str = include_str!("project/slugify-right.sh");

/// Tokens of one answer: input, cache creation, cache read, output.
pub(super) type Usage = [i64; 4];

pub(super) enum DemoStep {
    Heading(&'static str),
    /// The client starts the session, with this source.
    Start(&'static str),
    /// The user types `/goal-start` with the objective and these flags.
    SetGoal(&'static str),
    Prompt(&'static str),
    Answer(&'static str, &'static [Tool], Usage),
    /// The model ends its turn. The demo ends here unless Steadfast continues the turn.
    EndTurn(&'static str, Usage),
    /// The client replaces the conversation by this summary.
    Compact(&'static str),
    /// The client is killed with this answer on disk, half of this script written, and no hook called.
    Killed(&'static str, &'static str, Usage),
}

pub(super) enum Tool {
    Shell(&'static str),
    /// Writes the script.
    Write(&'static str),
    CompleteGoal,
}

pub(super) const NEW_SESSION: &[DemoStep] = &[
    Heading("1. The user sets a goal"),
    Start("startup"),
    SetGoal("--budget 40k --verify \"sh check.sh\""),
    Answer("I look at the project first.", &[Shell("ls"), Shell("head -2 check.sh")], [1_850, 11_240, 0, 412]),
    Answer("I write a first slugify.sh.", &[Write(FIRST)], [12, 1_930, 13_090, 1_268]),
    EndTurn("slugify.sh is written.", [8, 1_402, 15_032, 233]),
    Heading("2. The budget runs low"),
    Answer("I run the check.", &[Shell("sh check.sh")], [2_105, 10_877, 16_442, 981]),
    Heading("3. The conversation is compacted"),
    Compact("This session continues an earlier conversation. A first script exists; its check fails."),
    Answer("I replace all other characters with dashes.", &[Write(ALMOST)], [640, 1_120, 9_800, 702]),
    Heading("4. The agent says \"done\" too early"),
    Answer("That should be it: I mark the goal complete.", &[CompleteGoal], [6, 318, 11_560, 145]),
    EndTurn("One title still ends in a dash.", [5, 290, 11_884, 96]),
    Heading("5. kill -9 in the middle of a turn"),
    Killed("I remove the dashes at both ends ...", RIGHT, [9, 512, 12_180, 803]),
];

pub(super) const RESUMED_SESSION: &[DemoStep] = &[
    Heading("6. The session is resumed"),
    Start("resume"),
    Prompt("continue"),
    Answer(
        "slugify.sh is only half written; I write it again.",
        &[Write(RIGHT), Shell("sh check.sh")],
        [720, 410, 9_010, 388],
    ),
    Answer("Now every title is right: I mark the goal complete.", &[CompleteGoal], [6, 120, 10_140, 140]),
    EndTurn("Done.", [5, 96, 10_266, 88]),
];
