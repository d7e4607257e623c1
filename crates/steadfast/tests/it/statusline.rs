//! The segments of the status line: what the user picks, from the client's real input, beside a line of the user's own.

use std::path::Path;

use serde_json::{Value, json};

use crate::env::{Env, Output, finish};

/// What the client sends, for session `s1`.
fn input(change: &Value) -> String {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../steadfast-hosts/samples/claude/statusline");
    let captured = std::fs::read(samples.join("stdin-after-turns.json")).unwrap();
    let mut input: Value = serde_json::from_slice(&captured).unwrap();
    input["session_id"] = json!("s1");
    for (name, value) in change.as_object().unwrap() {
        input[name] = value.clone();
    }
    input.to_string()
}

fn line(env: &Env, arguments: &[&str], input: &str) -> Output {
    let output = finish(&mut env.command(&[&["statusline"], arguments].concat()), input.as_bytes());
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{arguments:?}: {output:?}");
    output
}

fn configure(env: &Env, text: &str) {
    std::fs::create_dir_all(env.home()).unwrap();
    std::fs::write(env.home().join("config.toml"), text).unwrap();
}

fn quotas() -> Value {
    json!({"rate_limits": {
        "five_hour": {"used_percentage": 83.5, "resets_at": 4_000_000_000_i64},
        "seven_day": {"used_percentage": 41, "resets_at": 4_000_000_000_i64},
    }})
}

#[test]
fn segments_are_printed_in_the_order_that_the_user_picks() {
    let env = Env::new();
    env.start(&["x", "--budget", "1000"]);
    env.says("s1", "m1", "one", 420);
    env.stop("s1", "one", false);
    let goal = "◎ goal active 420/1k · 1 turn · 0:00";
    let all = line(&env, &["--segments", "goal,bar,plan,context,today"], &input(&quotas())).stdout;
    assert_eq!(all, format!("{goal} · ▓▓▓░░░░ 42 % · plan 5h 83 % week 41 % · context 0 % · today $0.00\n"));
    assert_eq!(
        line(&env, &["--segments", "bar, goal", "--segment"], &input(&json!({}))).stdout.matches('\n').count(),
        0
    );
    // What the client said is kept: the goal's own line shows the plan, unless a segment does.
    let bare = r#"{"session_id": "s1"}"#;
    assert_eq!(line(&env, &["--segments", "goal"], bare).stdout, format!("{goal} · plan 83 %\n"));
    assert_eq!(line(&env, &[], bare).stdout, format!("{goal} · plan 83 %\n"));
    assert_eq!(line(&env, &["--segments", "plan,context"], bare).stdout, "plan 5h 83 % week 41 %\n");
}

#[test]
fn without_a_goal_only_the_other_segments_show() {
    let env = Env::new();
    let everything = ["--segments", "goal,bar,plan,context,today"];
    assert_eq!(line(&env, &everything, &input(&quotas())).stdout, "plan 5h 83 % week 41 % · context 0 %\n", "no store");
    env.hook("s1", &json!({"hook_event_name": "SessionStart", "source": "startup"}));
    configure(&env, "[limits]\ndaily_usd = 20\n");
    assert_eq!(line(&env, &everything, &input(&json!({}))).stdout, "context 0 % · today $0.00 of $20.00\n");
    assert_eq!(line(&env, &["--segments", "goal,bar"], &input(&quotas())).stdout, "");
    assert_eq!(line(&env, &[], &input(&quotas())).stdout, "");
}

#[test]
fn the_configuration_picks_segments_and_a_flag_wins() {
    let env = Env::new();
    env.start(&["x", "--budget", "1000"]);
    configure(&env, "[statusline]\nsegments = [\"bar\", \"context\"]\n");
    assert_eq!(line(&env, &[], &input(&json!({}))).stdout, "░░░░░░░ 0 % · context 0 %\n");
    assert_eq!(line(&env, &["--segments", "context"], &input(&json!({}))).stdout, "context 0 %\n");
    configure(&env, "[statusline]\nsegments = [\"brr\"]\n");
    assert_eq!(line(&env, &[], &input(&json!({}))).stdout, "", "a status line never fails");
    let doctor = env.run(&["doctor"]);
    assert!(doctor.stdout.contains("line 2: unknown segment `brr`; did you mean `bar`?"), "{doctor:?}");
    let typed = env.run(&["statusline", "--segments", "goal,contxt"]);
    assert_eq!(typed.code, 1);
    assert!(typed.stderr.contains("unknown segment `contxt`; did you mean `context`?"), "{typed:?}");
}

#[test]
fn any_input_leaves_the_status_line_quiet() {
    let env = Env::new();
    env.start(&["x", "--budget", "1000"]);
    let huge = format!(r#"{{"session_id": "s1", "x": "{}"}}"#, "y".repeat(2 * 1024 * 1024));
    let deep = "[".repeat(200_000);
    let odd = [
        "",
        "not json",
        "[]",
        "null",
        "7",
        r#"{"session_id": 7, "rate_limits": []}"#,
        r#"{"session_id": null, "context_window": 7}"#,
        r#"{"context_window": {"used_percentage": 1e308}, "rate_limits": {"five_hour": {"used_percentage": -5}}}"#,
        &huge,
        &deep,
    ];
    for input in odd {
        for arguments in [[].as_slice(), &["--segments", "goal,bar,plan,context"], &["--segment"]] {
            let output = line(&env, arguments, input);
            assert_eq!(output.stdout, "", "{arguments:?}: {}", input.chars().take(80).collect::<String>());
        }
    }
    let hostile = r#"{"session_id": "s1\u001b[31m'; DROP TABLE goals", "context_window": {"used_percentage": 99.9}}"#;
    assert_eq!(line(&env, &["--segments", "goal,context"], hostile).stdout, "context 99 %\n");
}

#[test]
fn a_line_of_the_users_own_comes_first_untouched() {
    let env = Env::new();
    env.start(&["x", "--budget", "1000"]);
    let own = r#"printf '\033[31m%s\033[0m\n' "$(grep -o 'Opus 4.8' | head -1)""#;
    let ours = "◎ goal active 0/1k · 0 turns · 0:00";
    let wrapped = line(&env, &["--wrap", own], &input(&json!({})));
    assert_eq!(wrapped.stdout, format!("\u{1b}[31mOpus 4.8\u{1b}[0m · {ours}\n"));
    // Without a goal it is byte for byte theirs.
    let other = input(&json!({"session_id": "other"}));
    assert_eq!(line(&env, &["--wrap", own], &other).stdout, "\u{1b}[31mOpus 4.8\u{1b}[0m\n");
    // It may read nothing of a long input, and may fail.
    let long = input(&json!({"x": "y".repeat(900 * 1024)}));
    assert_eq!(line(&env, &["--wrap", "echo mine"], &long).stdout, format!("mine · {ours}\n"));
    let failing = line(&env, &["--wrap", "exit 3", "--segments", "bar"], &long);
    assert_eq!(failing.stdout, "░░░░░░░ 0 %\n");
    assert_eq!(line(&env, &["--wrap", "echo mine"], "not json").stdout, "mine\n");
}
