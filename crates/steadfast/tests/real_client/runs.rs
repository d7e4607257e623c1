//! Runs with the real clients as agents: how they are started, what they return, and that user hooks are off.

use crate::client::Client;
use crate::codex::{self, LabHooks};
use crate::model::ScriptedModel;
use crate::reply::{Reply, Usage};
use crate::workspace::Workspace;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use steadfast_engine::dispatcher::{self, Engine};
use steadfast_model::clock;
use steadfast_model::host::Host;
use steadfast_model::reading::Tokens;
use steadfast_model::run::{
    AgentKind, AgentPlan, AttemptUsage, Plan, Rule, Run, RunKind, RunLimits, RunPurpose, RunStatus, StagePlan, machine,
};
use steadfast_store::{IterationRow, Store};
use steadfast_system::config::{AgentConfig, AgentsConfig, Config};

const RUN: &str = "real-run";

fn plan(kind: AgentKind, user_hooks: bool) -> Plan {
    let stage = StagePlan {
        prompt: "Do the work of ${SESSION}, please.\n".into(),
        agent: AgentPlan { user_hooks, ..AgentPlan::new(kind) },
        timeout_ms: 100_000,
        ..StagePlan::new("work", Rule::Promise("DONE".into()), 1)
    };
    let limits = RunLimits { errors: 1, ..RunLimits::default() };
    Plan {
        name: "real".into(),
        kind: RunKind::Loop,
        title: "work".into(),
        pipeline_file: None,
        stages: vec![stage],
        limits,
        purpose: RunPurpose::Definition,
    }
}

fn store(root: &Path) -> Store {
    Store::open(&root.join("goals.db")).expect("store")
}

/// Drives the plan in a process with the client's environment; returns how it ended.
fn drive(workspace: &Workspace, plan: &Plan) -> (Run, Vec<IterationRow>, AttemptUsage) {
    let root = workspace.root();
    let project = workspace.project().display().to_string();
    let now = clock::now();
    store(&root).write(|db| db.create_run(RUN, &project, plan, &machine::begin(plan, now), now)).expect("run");
    let mut engine = workspace.command(std::env::current_exe().expect("test binary"));
    engine.args(["--exact", "runs::drive_in_the_environment_of_a_client", "--ignored", "--nocapture"]);
    engine.env("STEADFAST_TEST_ROOT", &root);
    for name in ["STEADFAST_CLAUDE", "STEADFAST_CODEX"] {
        engine.env(name, std::env::var_os(name).unwrap_or_default());
    }
    // Claude Code refuses full permissions to root, except in a declared sandbox.
    engine.env("IS_SANDBOX", "1");
    let output = workspace.run_to_end(&mut engine, "the engine");
    assert!(output.status.success(), "{output:?}");
    let store = store(&root);
    let run = store.read().run(RUN).expect("store").expect("run").run;
    let rows = store.read().run_history(RUN, None, 10).expect("history");
    (run, rows, used(&root))
}

/// The usage of all attempts.
fn used(root: &Path) -> AttemptUsage {
    let db = rusqlite::Connection::open(root.join("goals.db")).expect("store");
    let sql = "SELECT sum(input_tokens), sum(output_tokens), sum(cache_creation_tokens), sum(cache_read_tokens),
        sum(cost_micros) FROM run_attempts";
    let usage = db.query_row(sql, [], |row| {
        Ok(AttemptUsage {
            tokens: Tokens {
                input: row.get(0)?,
                output: row.get(1)?,
                cache_creation: row.get(2)?,
                cache_creation_1h: 0,
                cache_read: row.get(3)?,
            },
            cost_micros: row.get(4)?,
            cost_unknown: false,
            tokens_unknown: false,
        })
    });
    usage.expect("sums")
}

#[test]
#[ignore = "other tests start it as their engine"]
fn drive_in_the_environment_of_a_client() {
    let Some(root) = std::env::var_os("STEADFAST_TEST_ROOT").map(PathBuf::from) else { return };
    let program = |name: &str| AgentConfig { program: std::env::var(name).ok(), ..AgentConfig::default() };
    let programs = [(Host::Claude, program("STEADFAST_CLAUDE")), (Host::Codex, program("STEADFAST_CODEX"))];
    let agents = AgentsConfig::from_iter(programs);
    let engine = Engine {
        home: root.join("steadfast"),
        program: env!("CARGO_BIN_EXE_steadfast").into(),
        config: Config { agents, ..Config::default() },
        grace: Duration::from_secs(2),
    };
    dispatcher::drive(&mut store(&root), &engine, RUN, &mut []).expect("driven");
}

fn hook_that_touches(file: &Path) -> serde_json::Value {
    json!({"Stop": [{"hooks": [{"type": "command", "command": format!("cat > '{}'", file.display())}]}]})
}

#[test]
fn claude_does_an_iteration_without_the_users_hooks() {
    for user_hooks in [false, true] {
        let model = ScriptedModel::start(|request| {
            if let Some(result) = request.tool_result("toolu_result") {
                assert!(result.contains("from the settings"), "{result}");
                return Reply::text("All done.\n<promise>DONE</promise>").usage(Usage::new(10, 20, 30, 40));
            }
            assert!(request.last_user_text().starts_with("Do the work of real, please.\n\n---"), "{request:?}");
            let bash = request.tool_named("Bash").expect("Bash is offered");
            let command = r#"echo "$LAB_WORD"; echo '{"summary": "did it", "plateau": true}' > "$STEADFAST_RESULT""#;
            let input = json!({"command": command, "description": "Leave the result"});
            Reply::text("Writing.").and_tool_with_id("toolu_result", bash, input).usage(Usage::new(1, 2, 3, 4))
        });
        let client = Client::new(&model);
        let (users, projects) = (client.root().join("user-hook"), client.root().join("project-hook"));
        client.write_user_settings(
            &json!({"env": {"LAB_WORD": "from the settings"}, "hooks": hook_that_touches(&users)}),
        );
        fs::create_dir_all(client.project().join(".claude")).expect("directory");
        let settings = json!({"hooks": hook_that_touches(&projects)});
        fs::write(client.project().join(".claude/settings.json"), settings.to_string()).expect("settings");

        let (run, rows, usage) = drive(&client, &plan(AgentKind::Host(Host::Claude), user_hooks));

        model.check_script();
        assert_eq!((run.status, run.reason.as_deref()), (RunStatus::Completed, Some("promise")), "{run:?}");
        assert_eq!((rows[0].summary.as_deref(), rows[0].plateau), (Some("did it"), Some(true)));
        let Tokens { input, output, cache_creation, cache_read, .. } = usage.tokens;
        let counts = (input, output, cache_creation, cache_read);
        assert_eq!(counts, (11, 22, 33, 44));
        assert_eq!((users.exists(), projects.exists()), (user_hooks, true));
    }
}

#[test]
fn codex_does_an_iteration_without_hooks() {
    for user_hooks in [false, true] {
        let model = codex::ScriptedResponses::start(|request| {
            if request.tool_result("call_result").is_some() {
                return codex::Reply::text("All done.\n<promise>DONE</promise>")
                    .usage(codex::Usage::new(1000, 200, 50, 20));
            }
            assert!(request.last_user_text().starts_with("Do the work of real, please.\n\n---"), "{request:?}");
            let command = r#"echo '{"summary": "did it", "decision": "stop"}' > "$STEADFAST_RESULT""#;
            codex::Reply::shell("call_result", command).usage(codex::Usage::new(100, 0, 5, 0))
        });
        let (client, hooks) = LabHooks::install(codex::Codex::new(&model));

        let (run, rows, usage) = drive(&client, &plan(AgentKind::Host(Host::Codex), user_hooks));

        model.check_script();
        assert_eq!((run.status, run.reason.as_deref()), (RunStatus::Completed, Some("promise")), "{run:?}");
        assert_eq!(rows[0].summary.as_deref(), Some("did it"));
        let Tokens { input, output, cache_creation, cache_read, .. } = usage.tokens;
        let counts = (input, output, cache_creation, cache_read);
        assert_eq!(counts, (900, 55, 0, 200));
        assert_eq!(!hooks.names().is_empty(), user_hooks);
    }
}
