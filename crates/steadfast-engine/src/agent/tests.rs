//! From the directory of an attempt to its outcome.

use std::path::PathBuf;

use serde_json::json;
use steadfast_model::run::AgentResult;
use steadfast_model::run::AttemptUsage;
use steadfast_system::process::ProcessIdentity;
use tempfile::TempDir;

use super::*;
use crate::attempt::{ERRORS, OUTPUT, RESULT, SUPERVISOR, SupervisorRecord};
use steadfast_model::host::Host;
use steadfast_system::config::AgentConfig;

const NOON: Millis = 1_794_744_000_000; // 2026-11-15T12:00:00Z

struct Left {
    directory: TempDir,
    attempt: Attempt,
    kind: AgentKind,
    exit: Option<AttemptExit>,
    stopping: bool,
}

impl Left {
    fn by(kind: AgentKind) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let attempt = Attempt::in_directory(directory.path().to_owned());
        Self { directory, attempt, kind, exit: Some(exit(Some(0))), stopping: false }
    }

    fn command() -> Self {
        Self::by(AgentKind::Command(vec!["agent".into()]))
    }

    fn file(self, name: &str, content: &str) -> Self {
        fs_err::write(self.directory.path().join(name), content).unwrap();
        self
    }

    fn ended(self, exit: Option<AttemptExit>) -> Self {
        Self { exit, ..self }
    }

    fn outcome(&self) -> Outcome {
        let agent = AgentPlan::new(self.kind.clone());
        let tree = ProgressTree { directory: Path::new("/nonexistent"), progress: None, before: None };
        report(&EndedAttempt {
            agent: &agent,
            votes: false,
            markers: &[],
            attempt: &self.attempt,
            exit: self.exit.as_ref(),
            stopping: self.stopping,
            overdue: false,
            tree: Some(&tree),
            since: 0,
            now: NOON,
        })
        .outcome
    }

    fn success(&self) -> Success {
        match self.outcome() {
            Outcome::Succeeded(success) => *success,
            Outcome::Failed(failure) => panic!("{failure:?}"),
        }
    }

    fn failure(&self) -> (FailureKind, String) {
        match self.outcome() {
            Outcome::Failed(failure) => (failure.kind, failure.message),
            Outcome::Succeeded(success) => panic!("{success:?}"),
        }
    }
}

fn exit(code: Option<i32>) -> AttemptExit {
    AttemptExit {
        supervisor: None,
        seal: None,
        exit_code: code,
        signal: None,
        timed_out: false,
        stopped: false,
        cannot_start: None,
        started_at_ms: NOON - 5_000,
        ended_at_ms: NOON,
    }
}

fn claude_result(fields: &serde_json::Value) -> String {
    let mut event = json!({"type": "result", "subtype": "success", "is_error": false, "result": "All done."});
    for (name, value) in fields.as_object().unwrap() {
        event[name] = value.clone();
    }
    format!("{{\"type\":\"system\",\"subtype\":\"init\"}}\n{event}\n")
}

#[test]
fn a_successful_command_has_a_result_without_output() {
    let success = Left::command().success();
    let expected = Success {
        footprint: success.footprint.clone(),
        started_at_ms: NOON - 5_000,
        ended_at_ms: NOON,
        usage: AttemptUsage::unknown(),
        ..Success::default()
    };
    assert_eq!(success, expected);
    let talking = Left::command()
        .file(OUTPUT, "work\n<promise>DONE</promise>\nPLATEAU: true\n")
        .file(RESULT, "{\"summary\": \"short\"}")
        .success();
    assert_eq!(talking.promises, ["DONE"]);
    assert_eq!((talking.result.summary.as_deref(), talking.result.plateau), (Some("short"), Some(true)));
}

#[test]
fn a_result_file_without_an_object_is_a_missing_result() {
    let with = |file: &str, output: &str| Left::command().file(RESULT, file).file(OUTPUT, output);
    for broken in ["{\"summary\": \"cut o", "done", "[]", ""] {
        for output in ["", "all fine\n"] {
            assert_eq!(with(broken, output).failure().0, FailureKind::NoResult, "{broken:?} {output:?}");
        }
    }
    for understood in ["{}", "```json\n{\"decision\": \"continue\"}\n```\n", "{\"plateau\": \"of the wrong type\"}"] {
        with(understood, "").success();
    }
    // A client's last words are its answer, too.
    let done = Left::by(AgentKind::Host(Host::Claude))
        .file(RESULT, "{\"summ")
        .file(OUTPUT, &claude_result(&json!({})))
        .success();
    assert_eq!(done.result.summary.as_deref(), Some("All done."));
}

#[test]
fn the_last_lines_of_a_failed_command_are_its_error() {
    let failed = |code: i32, errors: &str, output: &str| {
        Left::command().ended(Some(exit(Some(code)))).file(ERRORS, errors).file(OUTPUT, output).failure()
    };
    let limit = |hours: i64| FailureKind::UsageLimit { until_ms: Some(NOON + hours * 3_600_000) };
    for ((code, errors, output), kind) in [
        ((1, "boom\n", "fine\n"), FailureKind::Exit),
        ((1, "", "You've hit your limit · resets 3pm (UTC)\n"), limit(3)),
        ((1, "Claude AI usage limit reached|1794751200\n", ""), limit(2)),
        ((1, "API Error: 529 overloaded\n", ""), FailureKind::Transient),
        // A failure in a program's own work is not a problem of the agent's account.
        ((1, "Invalid API key · Please run /login\n", ""), FailureKind::Exit),
        ((1, "", "GET /me: got 401 Unauthorized\n2 tests failed\n"), FailureKind::Exit),
        ((1, "", "expected: 5-hour limit reached; resets 3am.\ncompiler crashed\nsegfault\n"), FailureKind::Exit),
        ((1, "", "5-hour limit reached; resets 3am.\ncompiler crashed\n"), FailureKind::Exit),
        ((1, "", "FAIL quota: 5-hour limit reached; resets 3am.\n"), FailureKind::Exit),
        ((1, "test quota: weekly limit reached\n1 test failed\n", ""), FailureKind::Exit),
        ((1, "You've hit your limit · resets 3pm (UTC)\nnpm error code 1\n", ""), limit(3)),
        ((1, "done\n", "5-hour limit reached ∙ resets 3pm (UTC)\n"), limit(3)),
        // Text of the work, not a final notice.
        ((1, "", &format!("usage limit reached|1794751200\n{}", "ok\n".repeat(9))), FailureKind::Exit),
        ((127, "sh: 1: no-agent: not found\n", ""), FailureKind::CannotStart),
    ] {
        assert_eq!(failed(code, errors, output).0, kind, "{errors}{output}");
    }
    assert_eq!(failed(3, "first\nboom\n", "").1, "exit code 3: boom");
}

#[test]
fn the_record_of_the_supervisor_comes_first() {
    let with = |change: fn(&mut AttemptExit), stopping: bool| {
        let mut exit = exit(None);
        change(&mut exit);
        let mut left = Left::command().ended(Some(exit));
        left.stopping = stopping;
        left.failure().0
    };
    assert_eq!(with(|exit| exit.timed_out = true, false), FailureKind::TimedOut);
    assert_eq!(with(|exit| exit.cannot_start = Some("no such program".into()), false), FailureKind::CannotStart);
    assert_eq!(with(|exit| exit.stopped = true, true), FailureKind::Stopped);
    assert_eq!(with(|exit| exit.stopped = true, false), FailureKind::Lost);
    assert_eq!(with(|exit| exit.signal = Some(9), false), FailureKind::Exit);
    let mut lost = Left::command().ended(None);
    assert_eq!(lost.failure().0, FailureKind::Lost);
    lost.stopping = true;
    assert_eq!(lost.failure().0, FailureKind::Stopped);
}

#[test]
fn a_lost_attempt_reports_its_start_time() {
    let supervisor = SupervisorRecord {
        identity: ProcessIdentity { pid: 1, started: String::new(), boot: String::new() },
        started_at_ms: NOON - 9_000,
    };
    let lost = Left::command().ended(None).file(SUPERVISOR, &crate::durable::json(&supervisor));
    let Outcome::Failed(failure) = lost.outcome() else { panic!() };
    assert_eq!((failure.started_at_ms, failure.ended_at_ms), (Some(NOON - 9_000), NOON));
}

#[test]
fn claude_is_judged_by_its_final_event() {
    let done =
        Left::by(AgentKind::Host(Host::Claude)).file(OUTPUT, &claude_result(&json!({"total_cost_usd": 0.5}))).success();
    assert_eq!(done.result, AgentResult { summary: Some("All done.".into()), ..AgentResult::default() });
    // The text of the work is not an error of the client.
    let echoed = "{\"type\":\"user\",\"message\":\"usage limit reached|1794751200\"}\n";
    let cut = Left::by(AgentKind::Host(Host::Claude)).file(OUTPUT, echoed);
    assert_eq!(cut.failure().0, FailureKind::NoResult);
    assert_eq!(cut.ended(Some(exit(Some(1)))).failure().0, FailureKind::Exit);
    let silent = Left::by(AgentKind::Host(Host::Claude)).file(OUTPUT, &claude_result(&json!({"result": ""})));
    assert_eq!(silent.failure().0, FailureKind::NoResult);
    let refused =
        json!({"is_error": true, "api_error_status": 429, "result": "5-hour limit reached ∙ resets 3pm (UTC)"});
    let limited =
        Left::by(AgentKind::Host(Host::Claude)).ended(Some(exit(Some(1)))).file(OUTPUT, &claude_result(&refused));
    assert_eq!(limited.failure().0, FailureKind::UsageLimit { until_ms: Some(NOON + 3 * 3_600_000) });
    let rejected =
        json!({"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": 1_794_751_200}});
    let cut = Left::by(AgentKind::Host(Host::Claude)).ended(Some(exit(Some(1)))).file(OUTPUT, &format!("{rejected}\n"));
    assert_eq!(cut.failure().0, FailureKind::UsageLimit { until_ms: Some(NOON + 2 * 3_600_000) });
    // The message gives the hour or minute, the event the second.
    let both = format!("{rejected}\n{}", claude_result(&refused));
    let limited = Left::by(AgentKind::Host(Host::Claude)).ended(Some(exit(Some(1)))).file(OUTPUT, &both);
    assert_eq!(limited.failure().0, FailureKind::UsageLimit { until_ms: Some(NOON + 2 * 3_600_000) });
    let root = "--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons\n";
    let refused = Left::by(AgentKind::Host(Host::Claude)).ended(Some(exit(Some(1)))).file(ERRORS, root);
    assert_eq!(refused.failure().0, FailureKind::CannotStart);
}

#[test]
fn codex_is_judged_by_its_final_event() {
    let events = |kind: &str| {
        let said = json!({"type": "item.completed", "item": {"type": "agent_message", "text": "fine\nPLATEAU: yes"}});
        format!("{{\"type\":\"thread.started\",\"thread_id\":\"t\"}}\n{said}\n{{\"type\":\"{kind}\"}}\n")
    };
    let done = Left::by(AgentKind::Host(Host::Codex)).file(OUTPUT, &events("turn.completed")).success();
    assert_eq!(done.result.plateau, Some(true));
    let cut = Left::by(AgentKind::Host(Host::Codex)).file(OUTPUT, &events("turn.started"));
    assert_eq!(cut.failure().0, FailureKind::NoResult);
    let limit =
        json!({"type": "turn.failed", "error": {"message": "You’ve hit your usage limit. Try again in 2 hours."}});
    let limited = Left::by(AgentKind::Host(Host::Codex)).ended(Some(exit(Some(1)))).file(OUTPUT, &format!("{limit}\n"));
    assert_eq!(limited.failure().0, FailureKind::UsageLimit { until_ms: Some(NOON + 2 * 3_600_000) });
}

fn call<'a>(agent: &'a AgentPlan, attempt: &'a Attempt, config: &'a AgentsConfig) -> AgentCall<'a> {
    AgentCall {
        agent,
        run: "tests",
        stage: "work",
        iteration: 3,
        prompt: "Do it.\n",
        asks_for_result: true,
        says_result: false,
        wants_vote: true,
        promises: &[],
        directory: Path::new("/project"),
        attempt,
        config,
    }
}

#[test]
fn each_agent_is_called_in_its_own_way() {
    let attempt = Attempt::in_directory(PathBuf::from("/runs/r/1-3-1"));
    let config = AgentsConfig::default();
    let plan = |kind: AgentKind| AgentPlan {
        kind,
        model: Some("m".into()),
        effort: Some("high".into()),
        user_hooks: true,
        sandbox: false,
    };
    let relative = plan(AgentKind::Command(vec!["./agent.sh".into(), "a b".into()]));
    let invoked = invocation(&call(&relative, &attempt, &config)).unwrap();
    assert_eq!((invoked.argv.join("|"), invoked.prompt.as_str()), ("/project/./agent.sh|a b".to_owned(), "Do it.\n"));
    let env: Vec<String> = invoked.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let expected = [
        "STEADFAST_RUN=tests",
        "STEADFAST_STAGE=work",
        "STEADFAST_ITERATION=3",
        "STEADFAST_RESULT=/runs/r/1-3-1/result.json",
    ];
    assert_eq!(env, expected);

    let claude = invocation(&call(&plan(AgentKind::Host(Host::Claude)), &attempt, &config)).unwrap();
    let expected = "claude -p --output-format stream-json --verbose --model m --effort high --add-dir /runs/r/1-3-1 \
                    --dangerously-skip-permissions";
    assert_eq!(claude.argv.join(" "), expected);
    assert!(claude.prompt.starts_with("Do it.\n\n---\n") && claude.prompt.contains("/runs/r/1-3-1/result.json"));
    let sealed = AgentPlan { user_hooks: false, ..plan(AgentKind::Host(Host::Claude)) };
    let claude = invocation(&call(&sealed, &attempt, &config)).unwrap();
    assert!(claude.argv.join(" ").contains("--setting-sources project,local"), "{:?}", claude.argv);

    // The sandbox takes the place of the configured permissions.
    for (host, flags) in [(Host::Claude, "--permission-mode acceptEdits"), (Host::Codex, "--sandbox workspace-write")] {
        let all = AgentConfig { permission_flags: Some(vec!["--all".into()]), ..AgentConfig::default() };
        let config = AgentsConfig::from_iter([(host, all)]);
        let sandboxed = AgentPlan { sandbox: true, ..plan(AgentKind::Host(host)) };
        let started = invocation(&call(&sandboxed, &attempt, &config)).unwrap();
        let argv = started.argv.join(" ");
        assert!(argv.contains(flags) && !argv.contains("--all") && !argv.contains("dangerously"), "{argv}");
        let settings = started.files.iter().find(|(name, _)| *name == "settings.json");
        assert_eq!(settings.is_some_and(|(_, text)| text.contains("\"enabled\":true")), host == Host::Claude);
    }

    let codex = AgentConfig {
        permission_flags: Some(vec!["--sandbox".into(), "workspace-write".into()]),
        program: Some("/opt/codex".into()),
        ..AgentConfig::default()
    };
    let config = AgentsConfig::from_iter([(Host::Codex, codex)]);
    let codex = AgentPlan { user_hooks: false, ..plan(AgentKind::Host(Host::Codex)) };
    let codex = invocation(&call(&codex, &attempt, &config)).unwrap();
    let expected = "/opt/codex exec --json --skip-git-repo-check -m m -c model_reasoning_effort=\"high\" -c \
                    features.goals=false -c check_for_update_on_startup=false -c features.hooks=false -c \
                    features.plugins=false --sandbox workspace-write --add-dir /runs/r/1-3-1 -";
    assert_eq!(codex.argv.join(" "), expected);
}

#[test]
fn no_part_of_a_secret_is_kept_where_a_message_is_cut() {
    let secret = "ghp_0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R";
    let words = "word ".repeat(4_000);
    for cut in (0..secret.len()).step_by(5) {
        let before = |most: usize| &words[..most - cut - 1];
        let left = || Left::command().file(ERRORS, &format!("{}{secret} {words}", before(488)));
        let (_, message) = left().ended(Some(exit(Some(1)))).failure();
        assert_eq!(shown(secret, &message), 0, "{cut}: {message}");
        let end = format!("x {secret} {}", &words[..usize::try_from(ERROR_BYTES).unwrap() - 1 - (secret.len() - cut)]);
        let (_, message) = Left::command().file(ERRORS, &end).ended(Some(exit(Some(1)))).failure();
        assert_eq!(shown(secret, &message), 0, "{cut}: {message}");
        let result = json!({"reasoning": format!("{}{secret} {words}", before(10_000)),
            "summary": format!("{}{secret} {words}", before(10_000)),
            "errors": [format!("{}{secret} {words}", before(1_000))]});
        let success = Left::command().file(RESULT, &result.to_string()).success();
        assert_eq!(shown(secret, &format!("{:?}", success.result)), 0, "{cut}");
        let success = Left::command().file(OUTPUT, &format!("{}{secret} {words}\n", before(600))).success();
        assert_eq!(shown(secret, &format!("{:?}", success.result)), 0, "{cut}");
    }
}

/// How many parts of ten characters of a secret a text shows.
fn shown(secret: &str, text: &str) -> usize {
    (0..=secret.len() - 10).filter(|from| text.contains(&secret[*from..from + 10])).count()
}
