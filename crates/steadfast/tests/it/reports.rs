//! Reports as one HTML file: what is in them, that nothing in them runs or loads anything, how they are written, and who
//! may have them.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::env::{Env, Output, finish};
use crate::runs::World;

const HOSTILE: &str =
    "Ship </title></style><script>alert(1)</script><img src=x onerror=alert(2)> & \"that\" {{ goal }}";
const ESCAPED: &str =
    "&lt;script&gt;alert(1)&lt;&#x2f;script&gt;&lt;img src=x onerror=alert(2)&gt; &amp; &quot;that&quot; {{ goal }}";

/// Fails unless the file is whole, has no scripts, no handlers, and nothing that a browser would load.
fn check_inert(html: &str) {
    assert!(html.starts_with("<!doctype html>") && html.trim_end().ends_with("</html>"), "{html}");
    assert!(html.contains("default-src 'none'"), "{html}");
    for (tag, inside) in tags(html) {
        assert!(
            !["script", "img", "link", "iframe", "object", "embed", "base", "form", "a", "b"].contains(&tag),
            "<{tag}>"
        );
        for attribute in [" src=", " href=", " style=", " on", " action=", " srcset="] {
            assert!(!inside.contains(attribute), "{attribute} in <{inside}>");
        }
    }
    let style = html.split_once("<style>").unwrap().1.split_once("</style>").unwrap().0;
    assert!(!style.contains("url(") && !style.contains("@import"), "{style}");
}

/// The names of all start tags, each with what is between its brackets.
fn tags(html: &str) -> impl Iterator<Item = (&str, &str)> {
    let inside = html.split('<').skip(1).filter_map(|part| part.split('>').next());
    inside.filter(|tag| !tag.starts_with(['/', '!'])).map(|tag| (tag.split([' ', '\n', '/']).next().unwrap(), tag))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// A number as the report shows it.
fn long(number: &Value) -> String {
    let digits = number.as_i64().unwrap().to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap()).collect();
    groups.join(",")
}

fn started() -> Env {
    let env = Env::new();
    let checks = ["--verify", "echo all '<i>fine</i>'", "--verify", "echo broken; false"];
    let items = ["--item", "a <b>bold</b> item", "--item", "another"];
    env.start(&[&[HOSTILE, "--budget", "1234567", "--usd", "5"][..], &checks, &items].concat());
    env.says("s1", "m1", "working", 4_321);
    env.stop("s1", "not yet", false);
    env.goal(&["verify"]);
    env.goal(&["pause"]).succeeds();
    env
}

#[test]
fn a_report_of_a_goal_is_one_file_that_runs_and_loads_nothing() {
    let env = started();
    let file = env.project().join("report.html");
    let written = env.goal(&["report", "--html", "report.html", "--json"]);
    assert!(written.succeeds().stderr.contains(&format!("wrote {}", std::fs::canonicalize(&file).unwrap().display())));
    let html = read(&file);
    check_inert(&html);
    assert!(html.contains(ESCAPED), "{html}");
    assert!(html.contains("a &lt;b&gt;bold&lt;&#x2f;b&gt; item"), "{html}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);

    // The same numbers as in JSON.
    let report = written.json();
    assert_eq!(report["goal"]["total_tokens"], env.goal(&["report", "--json"]).json()["goal"]["total_tokens"]);
    assert!(report["goal"]["total_tokens"].as_i64().unwrap() > 0, "{report}");
    for number in ["total_tokens", "token_budget", "tokens_used", "cache_read_tokens"] {
        assert!(html.contains(&long(&report["goal"][number])), "{number}: {}", report["goal"][number]);
    }
    for check in report["checks"].as_array().unwrap() {
        let hash = check["result"]["output_sha256"].as_str().unwrap();
        assert!(html.contains(&format!("<code>{hash}</code>")), "{hash}");
    }
    for part in [
        "Paused",
        "passed, exit code 0",
        "failed, exit code 1",
        "all &lt;i&gt;fine&lt;&#x2f;i&gt;",
        "2 of 2 items have no proof.",
        "failed when it last ran.",
        "of 1,234,567",
        "class=\"chart chart-burn\"",
        "budget $5.00",
        "by user",
    ] {
        assert!(html.contains(part), "{part:?} is missing in\n{html}");
    }
}

#[test]
fn a_report_without_a_file_is_printed() {
    let env = started();
    for arguments in [&["report", "--html"][..], &["report", "--html", "-"]] {
        let printed = env.goal(arguments);
        check_inert(&printed.succeeds().stdout);
        assert_eq!(printed.stderr, "");
    }
    let both = env.goal(&["report", "--html", "--json"]);
    assert_eq!((both.code, &both.json()["error"]["kind"]), (1, &json!("usage")), "{both:?}");
    env.goal(&["report", "--html", "x.html", "--md"]).fails_with(1, "--md");
    assert!(!env.project().join("-").exists() && !env.project().join("x.html").exists());
    let id = env.status()["goal_id"].as_str().unwrap().to_owned();
    check_inert(&env.run(&["goal", "report", &id[..8], "--html"]).succeeds().stdout);
}

#[test]
fn a_report_is_written_whole_or_not_at_all() {
    let env = started();
    let folder = env.project().join("folder");
    std::fs::create_dir(&folder).unwrap();
    env.goal(&["report", "--html", "folder"]).fails_with(1, "is a directory");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    env.goal(&["report", "--html", "nowhere/report.html"]).fails_with(4, "cannot write the report");
    assert!(!env.project().join("nowhere").exists());
    let pipe = env.project().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    env.goal(&["report", "--html", "pipe"]).fails_with(1, "not a regular file");

    // A link stays, and what it leads to is replaced.
    let (file, link) = (folder.join("report.html"), env.project().join("link.html"));
    std::fs::write(&file, "an older and open one").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    env.goal(&["report", "--html", "link.html"]).succeeds();
    check_inert(&read(&file));
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn an_agent_gets_reports_of_its_own_session_only() {
    let env = started();
    env.run(&["goal", "start", "secret plan", "--session", "s2"]).succeeds();
    let other = env.run(&["goal", "status", "--session", "s2", "--json"]).json()["goal"]["goal_id"].clone();
    let in_agent = |arguments: &[&str]| -> Output {
        finish(env.command(arguments).env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", "s1"), b"")
    };
    in_agent(&["goal", "report", other.as_str().unwrap(), "--html", "other.html"]).fails_with(3, "another session");
    in_agent(&["goal", "report", "--session", "s2", "--html", "other.html"]).fails_with(3, "another session");
    assert!(!env.project().join("other.html").exists());
    check_inert(&in_agent(&["goal", "report", "--session", "s1", "--html"]).succeeds().stdout);
}

#[test]
fn the_slash_command_makes_no_files() {
    let env = started();
    let slash = |arguments: &str| {
        let event = json!({"hook_event_name": "UserPromptExpansion", "expansion_type": "slash_command",
            "command_name": "goal-report", "command_args": arguments, "prompt": format!("/goal-report {arguments}")});
        let reply = env.hook_in_terminal("s1", &event);
        reply["reason"].as_str().or(reply["systemMessage"].as_str()).unwrap_or_default().to_owned()
    };
    let refused = slash("--html report.html");
    assert!(refused.contains("a report as HTML is for a terminal"), "{refused}");
    assert!(!env.project().join("report.html").exists());
    assert!(slash("").starts_with("◎ Goal: Ship "), "the text stays as it is");
    assert!(slash("--md").starts_with("## Goal: Ship "));
}

#[test]
fn secrets_in_an_objective_do_not_leave_in_a_report() {
    let env = Env::new();
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    env.start(&[&format!("Deploy with {secret}")]);
    let html = env.goal(&["report", "--html"]).succeeds().stdout.clone();
    assert!(html.contains("Deploy with") && !html.contains(secret), "{html}");
}

fn pipeline() -> World {
    let world = World::new();
    let yaml = "name: ship\nstages:\n  - {name: plan, prompt: a}\n  - {name: build, prompt: b, needs: []}\n  \
                - {name: check, prompt: c, needs: [plan, build], completion: {promise: DONE}, runs: 2}\n";
    world.write(&world.in_project("p.yaml"), yaml);
    let result = r#"{"summary":"did <script>alert(1)</script> it","usage":{"input_tokens":1200,"output_tokens":34,"cost_usd":0.25}}"#;
    let agent = world.agent(&format!("cat > /dev/null; echo '{result}' > $STEADFAST_RESULT; date +%N"));
    let run = world.run(&["pipeline", "run", "p.yaml", "r", "--agent", &agent, "--usd", "7"]);
    assert_eq!(run.code, 5, "{run:?}");
    world
}

#[test]
fn a_report_of_a_run_has_its_stages_and_iterations() {
    let world = pipeline();
    let file = world.in_project("r.html");
    let written = world.run(&["pipeline", "report", "r", "--html", "r.html", "--json"]);
    let html = read(&file);
    check_inert(&html);
    let detail = written.succeeds().json();
    assert_eq!(detail["stages"], world.status("pipeline", "r")["stages"]);
    assert_eq!(html.matches("class=\"chart-box\"").count(), 3, "{html}");
    let iterations = detail["history"].as_array().unwrap().len();
    assert_eq!((iterations, &detail["tokens"], &detail["cost_usd"]), (4, &json!(4_936), &json!(1.0)));
    let table = html.split_once("class=\"iterations\"").unwrap().1.split_once("</table>").unwrap().0;
    assert_eq!(table.matches("<tr>").count(), iterations + 1, "{table}");
    for part in [
        "Stopped after its last iteration",
        "did &lt;script&gt;alert(1)&lt;&#x2f;script&gt; it",
        "<dt>Tokens</dt><dd>4,936</dd>",
        "$1.00",
        "<dt>Iterations</dt><dd>4</dd>",
        "of $7.00",
        detail["run_id"].as_str().unwrap(),
    ] {
        assert!(html.contains(part), "{part:?} is missing in\n{html}");
    }
    // Without --html: the page of `status`, and its JSON.
    let text = world.run(&["pipeline", "report", "r"]);
    assert!(text.succeeds().stdout.starts_with("pipeline r (ship): "), "{text:?}");
    assert_eq!(world.run(&["pipeline", "report", "r", "--json"]).succeeds().json(), world.status("pipeline", "r"));
    world.run(&["loop", "report", "r"]).fails_with(2, "no loop named r");
    world.run(&["pipeline", "report", "none", "--html", "none.html"]).fails_with(2, "no pipeline named none");
    assert!(!world.in_project("none.html").exists());
}

#[test]
fn run_report_shows_runs_of_both_kinds_with_their_goal() {
    let world = pipeline();
    check_inert(&world.run(&["run", "report", "r", "--html"]).succeeds().stdout);
    let agent = world.agent("cat > /dev/null; echo fine");
    let run = world.run(&["run", HOSTILE, "--agent", &agent, "--verify", "echo proof of it", "--json"]);
    let name = run.succeeds().json()["name"].as_str().unwrap().to_owned();
    let html = world.run(&["run", "report", &name, "--html"]).succeeds().stdout.clone();
    check_inert(&html);
    for part in [ESCAPED, "Complete, verified", "Every check passed", "<pre>proof of it", "passed, exit code 0"] {
        assert!(html.contains(part), "{part:?} is missing in\n{html}");
    }
    assert_eq!(world.run(&["run", "report", &name, "--json"]).succeeds().json(), world.status("loop", &name));
    // The agent of another session sees the run, as in `loop status`, and not the goal.
    let mut command = world.env.command(&["run", "report", &name, "--html"]);
    let seen = finish(command.env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", "s9"), b"");
    assert!(seen.succeeds().stdout.contains(&name) && !seen.stdout.contains("proof of it"), "{seen:?}");
}

#[test]
fn an_objective_that_begins_with_report_is_still_an_objective() {
    let world = World::new();
    let agent = world.agent("cat > /dev/null; echo fine");
    let run =
        |words: &[&str]| world.run(&[&["run"], words, &["--agent", &agent, "--verify", "true", "--json"]].concat());
    for objective in ["report the failing tests", "help", "Report", "reports"] {
        let name = run(&[objective]).succeeds().json()["name"].as_str().unwrap().to_owned();
        let goal = world.run(&["goal", "status", "--session", &name, "--json"]).json()["goal"].clone();
        assert_eq!(goal["objective"], json!(objective));
    }
    let runs = world.env.sql("SELECT count(*) FROM runs");
    // The bare word is the command, which starts nothing.
    world.run(&["run", "report"]).fails_with(1, "<NAME>");
    world.run(&["run", "report", "nothing"]).fails_with(2, "no loop named nothing");
    let hint = world.run(&["run", "report", "nothing"]).stderr;
    assert!(hint.contains("has to be quoted"), "{hint}");
    world.run(&["run", "report", "the", "tests"]).fails_with(1, "unexpected argument");
    world.run(&["run"]).fails_with(1, "<OBJECTIVE>");
    assert_eq!(world.env.sql("SELECT count(*) FROM runs"), runs);
}
