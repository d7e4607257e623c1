//! A pipeline on the fleet with both clients: Claude Code on one worker, Codex on another, each with a home of its own.
//! Needs `steadfast-fleet` beside `steadfast`, which `scripts/fleet_tests` builds, and the dev server of Temporal.

use super::lab::{Lab, eventually};
use crate::codex;
use crate::model::ScriptedModel;
use crate::reply::{Reply, Usage};
use crate::request::Kind;
use crate::with_steadfast::binary;
use serde_json::json;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const RELAY: &str = "\
name: relay
defaults: {delay: 0}
stages:
  - {name: draft, agent: claude, prompt: 'Draft a note for ${SESSION}.'}
  - {name: review, agent: codex, prompt: 'Review this draft: ${INPUTS}'}
";

/// Ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `steadfast-fleet` and Temporal's program, or why they are not there.
fn programs() -> Result<(PathBuf, PathBuf), String> {
    let fleet = binary().with_file_name("steadfast-fleet");
    if !fleet.is_file() {
        return Err(format!("{} is missing: scripts/fleet_tests builds it", fleet.display()));
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/temporal");
    let output = Command::new(script).output().expect("scripts/temporal");
    if output.status.success() {
        return Ok((fleet, PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())));
    }
    Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

#[expect(clippy::print_stderr, reason = "a test that does nothing says so")]
fn skip(why: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{why}");
    eprintln!("SKIPPED the pipeline on the fleet: {why}");
}

fn free_port() -> String {
    TcpListener::bind("127.0.0.1:0").expect("port").local_addr().expect("address").port().to_string()
}

fn git(lab: &Lab, words: &[&str]) {
    let names = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main"];
    let output = lab.client().command("git").args(names).args(words).current_dir(lab.project()).output().expect("git");
    assert!(output.status.success(), "{words:?}: {output:?}");
}

#[test]
fn claude_drafts_on_one_worker_and_codex_reviews_on_another() {
    let (fleet, temporal) = match programs() {
        Ok(found) => found,
        Err(why) => return skip(&why),
    };
    let claude = ScriptedModel::start(|request| {
        assert!(request.last_user_text().starts_with("Draft a note for baton."), "{request:?}");
        Reply::text("A draft of many words.").usage(Usage::new(1_001, 102, 13, 7))
    });
    let codex = codex::ScriptedResponses::start(|_| {
        codex::Reply::text("The draft is fine.").usage(codex::Usage::new(2_000, 500, 30, 10))
    });
    let port = free_port();
    let lab = Lab::new(&claude, &codex).env("TEMPORAL_ADDRESS", &format!("127.0.0.1:{port}"));
    let root = lab.client().root();
    let log = |name: &str| fs::File::create(root.join(name)).expect("log");
    let server = Command::new(&temporal)
        .args(["server", "start-dev", "--headless", "--port", &port, "--http-port", &free_port()])
        .args(["--metrics-port", &free_port(), "--log-level", "error"])
        .env("HOME", &root)
        .stdout(log("server.log"))
        .stderr(log("server-errors.log"))
        .spawn();
    let _server = Running(server.expect("server"));
    let address = format!("127.0.0.1:{port}");
    let describe = ["operator", "namespace", "describe", "default", "--address", &address];
    let answers = || Command::new(&temporal).args(describe).stdout(Stdio::null()).stderr(Stdio::null()).status();
    eventually("the server answers", || answers().is_ok_and(|status| status.success()));

    let bare = root.join("repo.git");
    git(&lab, &["init", "--quiet", "--bare", &bare.to_string_lossy()]);
    if !lab.project().join(".git").exists() {
        git(&lab, &["init", "--quiet"]);
    }
    let folder = lab.project().join(".claude/pipelines");
    fs::create_dir_all(&folder).expect("folder");
    fs::write(folder.join("relay.yaml"), RELAY).expect("pipeline");
    git(&lab, &["add", "-A"]);
    git(&lab, &["commit", "--quiet", "-m", "begin"]);
    git(&lab, &["remote", "add", "origin", &bare.to_string_lossy()]);

    let worker = |name: &str, flags: &[&str]| {
        let home = root.join(name);
        fs::create_dir(&home).expect("home");
        fs::write(home.join("config.toml"), "[runs]\nback_off_ms = 0\n").expect("config");
        let mut command = lab.client().command(&fleet);
        command.arg("worker").args(["--slots", "1", "--repo", &bare.to_string_lossy()]).args(flags);
        command.env("STEADFAST_HOME", &home).stdin(Stdio::null());
        let child = command.stdout(log(&format!("{name}.out"))).stderr(log(&format!("{name}.log"))).spawn();
        Running(child.expect("worker"))
    };
    let _first = worker("with-claude", &["--agents", "claude", "--drive"]);
    let _second = worker("with-codex", &["--agents", "codex"]);
    for name in ["with-claude.log", "with-codex.log"] {
        eventually("the worker is ready", || {
            fs::read_to_string(root.join(name)).is_ok_and(|text| text.contains("queues:"))
        });
    }

    lab.expect(0, &["pipeline", "run", "relay", "baton", "--fleet"]);

    claude.check_script();
    codex.check_script();
    let [asked] = &codex.requests_of(Kind::Main)[..] else { panic!("{:?}", codex.requests()) };
    let text = asked.last_user_text();
    assert!(text.starts_with("Review this draft: A draft of many words."), "{text}");
    let status = lab.json(&["fleet", "status", "baton"]);
    let rows = status["history"].as_array().expect("history").iter();
    let seen: Vec<_> = rows.map(|row| json!([row["stage_name"], row["iteration"], row["tokens"]])).collect();
    assert_eq!(json!(seen), json!([["draft", 1, 1_116], ["review", 1, 1_530]]), "{status:#}");
    assert_eq!((&status["status"], &status["tokens"]), (&json!("completed"), &json!(2_646)), "{status:#}");
    let answer = lab.expect(0, &["fleet", "logs", "baton"]).stdout;
    assert_eq!(answer.trim(), "The draft is fine.");
}
