//! The script of the agent: what the model answers, and with how many tokens. Only the model is made up; files,
//! checks, hooks and the tool server are real, and the script goes on only as far as Steadfast drives it.

use super::client::{Answer, Client, Tool};
use super::stage::Stage;
use super::story::{StoryEvent, Voice, say, tell};
use super::transcript::Usage;

pub(super) const OBJECTIVE: &str = "slugify.sh turns any title into a clean slug";
const SCRIPT: &str = "slugify.sh";
const RIGHT: &str = include_str!("project/slugify-right.sh");
/// What the compaction leaves of the conversation; the goal is not in it.
const SUMMARY: &str = "The user has a small shell project. A first script exists; its check fails.";

/// Plays a new session up to the moment it is killed, or the rest of one that was.
pub(super) fn play(stage: Stage) -> anyhow::Result<()> {
    let mut client = Client::open(stage)?;
    let wants_more = if client.is_resumed() { after_the_kill(&mut client)? } else { before_the_kill(&mut client)? };
    if wants_more {
        say(Voice::Agent, "(the script ends here, although the goal goes on)")?;
    }
    client.end_session()
}

/// Each `false` is a turn that Steadfast let end: then the agent has nothing more to do.
fn before_the_kill(client: &mut Client) -> anyhow::Result<bool> {
    scene("The user sets a goal")?;
    client.start_session("startup")?;
    client.command("goal-start", &format!("\"{OBJECTIVE}\" --budget 40k --verify \"sh check.sh\""))?;
    client.answer(&Answer {
        thought: Some("I know nothing of this project yet."),
        text: "First a look at the project.",
        tools: vec![Tool::Shell("ls"), Tool::Shell("head -2 check.sh")],
        usage: usage(1_850, 11_240, 0, 412),
    })?;
    client.answer(&Answer {
        thought: Some("Lower case, and dashes for spaces."),
        text: "I write a first slugify.sh.",
        tools: vec![Tool::Write(SCRIPT, include_str!("project/slugify-first.sh"))],
        usage: usage(12, 1_930, 13_090, 1_268),
    })?;
    if !client.stop(&answer_without_tools("slugify.sh is there.", usage(8, 1_402, 15_032, 233)))? {
        return Ok(false);
    }

    scene("The budget runs low")?;
    client.answer(&Answer {
        thought: Some("What does the user's own check say?"),
        text: "I run the check.",
        tools: vec![Tool::Shell("sh check.sh")],
        usage: usage(2_105, 10_877, 16_442, 981),
    })?;

    scene("The conversation is compacted")?;
    say(Voice::Client, "context full: the conversation becomes a summary without the goal")?;
    let told = client.compact(SUMMARY, 29_400, 900)?;
    reminded(told.as_deref())?;
    client.answer(&Answer {
        thought: Some("Everything that is no letter or digit must become one dash."),
        text: "I replace all other characters by dashes.",
        tools: vec![Tool::Write(SCRIPT, include_str!("project/slugify-almost.sh"))],
        usage: usage(640, 1_120, 9_800, 702),
    })?;

    scene("The agent says \"done\" too early")?;
    client.answer(&Answer {
        thought: None,
        text: "That must be it: I mark the goal complete.",
        tools: vec![Tool::CompleteGoal],
        usage: usage(6, 318, 11_560, 145),
    })?;
    let admission = answer_without_tools("One title still ends in a dash.", usage(5, 290, 11_884, 96));
    if !client.stop(&admission)? {
        return Ok(false);
    }

    scene("kill -9 in the middle of a turn")?;
    client.begin_answer(&Answer {
        thought: Some("A dash at the start or the end has to go."),
        text: "I cut the dashes off at both ends ...",
        tools: vec![Tool::Write(SCRIPT, RIGHT)],
        usage: usage(9, 512, 12_180, 803),
    })?;
    let half: String = RIGHT.chars().take(RIGHT.len() / 2).collect();
    fs_err::write(client.project().join(SCRIPT), half)?;
    tell(&StoryEvent::InMidTurn)?;
    anyhow::bail!("the agent was to be killed here")
}

fn after_the_kill(client: &mut Client) -> anyhow::Result<bool> {
    scene("The session is resumed")?;
    let told = client.start_session("resume")?;
    reminded(told.as_deref())?;
    client.prompt("go on")?;
    client.answer(&Answer {
        thought: Some("The working tree counts, not what I remember."),
        text: "slugify.sh breaks off in the middle; I write it again.",
        tools: vec![Tool::Write(SCRIPT, RIGHT), Tool::Shell("sh check.sh")],
        usage: usage(720, 410, 9_010, 388),
    })?;
    client.answer(&Answer {
        thought: None,
        text: "Now every title is right: I mark the goal complete.",
        tools: vec![Tool::CompleteGoal],
        usage: usage(6, 120, 10_140, 140),
    })?;
    client.stop(&answer_without_tools("Done.", usage(5, 96, 10_266, 88)))
}

fn usage(input: i64, cache_creation: i64, cache_read: i64, output: i64) -> Usage {
    Usage { input, cache_creation, cache_read, output }
}

fn answer_without_tools(text: &'static str, usage: Usage) -> Answer {
    Answer { thought: Some("Nothing more comes to my mind."), text, tools: Vec::new(), usage }
}

fn scene(title: &str) -> anyhow::Result<()> {
    tell(&StoryEvent::Scene(title.to_owned()))
}

/// Shows what Steadfast told a model that had forgotten or never known its goal.
fn reminded(told: Option<&str>) -> anyhow::Result<()> {
    let told = told.unwrap_or_default();
    let verbatim = told.lines().any(|line| line == OBJECTIVE);
    let quoted = if verbatim { OBJECTIVE } else { "(not a word of the objective)" };
    let first = told.lines().next().unwrap_or_default();
    say(Voice::Steadfast, format!("{first}\nObjective: {quoted}"))?;
    tell(&StoryEvent::Reminded { verbatim })
}
