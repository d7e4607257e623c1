//! `usage --check` against the caps of the configuration.

use serde_json::{Value, json};

use super::{line, write};
use crate::env::Env;
use crate::runs::World;
use crate::schemas::check;

fn limits(env: &Env, text: &str) {
    std::fs::create_dir_all(env.home()).unwrap();
    std::fs::write(env.home().join("config.toml"), format!("[limits]\n{text}\n")).unwrap();
}

fn checked(env: &Env, code: i32) -> Value {
    let output = env.run(&["usage", "--check", "--json"]);
    assert_eq!(output.code, code, "{output:?}");
    let json = output.json();
    check("usage-check.schema.json", &json);
    json
}

#[test]
fn a_reached_cap_has_exit_code_five() {
    let env = Env::new();
    let output = env.run(&["usage", "--check"]);
    assert!(output.succeeds().stdout.contains("no cap is set"), "{output:?}");
    // A million tokens of Opus for five dollars today; more of them years ago do not count.
    write(
        &env,
        "-p/s.jsonl",
        &[
            line("old", "2020-01-01T10:00:00.000Z", [9_000_000, 0, 0, 0]),
            line("now", &crate::env::now(), [1_000_000, 0, 0, 7_000_000]),
        ],
    );
    limits(&env, "daily_usd = 100\nweekly_tokens = 2000000");
    let json = checked(&env, 0);
    assert_eq!((&json["reached"], &json["caps"][0]["used"]), (&json!(false), &json!(8_500_000)));
    limits(&env, "daily_usd = 8.5\nweekly_tokens = 2000000");
    let json = checked(&env, 5);
    let reached: Vec<&Value> = json["caps"].as_array().unwrap().iter().map(|cap| &cap["reached"]).collect();
    assert_eq!(reached, [&json!(true), &json!(false)]);
    let output = env.run(&["usage", "--check"]);
    assert_eq!(output.code, 5);
    assert!(output.stdout.contains("cap daily_usd reached: $8.50 of $8.50"), "{output:?}");
}

#[test]
fn an_unknown_cost_is_named_as_a_lower_bound() {
    let env = Env::new();
    let mut mystery = line("m", &crate::env::now(), [5, 0, 0, 0]);
    mystery["message"]["model"] = json!("mystery-9");
    write(&env, "-p/s.jsonl", &[mystery]);
    limits(&env, "daily_usd = 1");
    let json = checked(&env, 0);
    assert_eq!(json["caps"][0]["is_lower_bound"], json!(true));
    assert!(json["caps"][0]["text"].as_str().unwrap().contains("at least $0"), "{json}");
}

/// An engine counts what agents without transcripts report.
#[test]
fn runs_count_towards_the_caps() {
    let world = World::new();
    limits(&world.env, "daily_tokens = 1000");
    world.loop_type("one", "completion: fixed-n\nmax_iterations: 1");
    let report = r#"echo '{"summary": "s", "usage": {"input_tokens": 900, "output_tokens": 200}}' > "$STEADFAST_RESULT"; echo done"#;
    let agent = world.agent(report);
    world.run(&["loop", "run", "one", "--agent", &agent]);
    let json = checked(&world.env, 5);
    assert_eq!((&json["caps"][0]["used"], &json["caps"][0]["reached"]), (&json!(1_100), &json!(true)));
}
