//! A key of `config.toml` that means nothing is named with its line and the nearest one, everywhere in the file.

use serde_json::{Value, json};

use crate::env::Env;

const KEY: &str = "config.toml: line 2: unknown key `no_progres_limit` in [goal]; did you mean `no_progress_limit`?";

fn write(env: &Env, text: &str) {
    std::fs::create_dir_all(env.home()).unwrap();
    std::fs::write(env.home().join("config.toml"), text).unwrap();
}

fn told(reply: &Value) -> bool {
    reply["systemMessage"].as_str().is_some_and(|text| text.contains(KEY))
}

#[test]
fn an_unknown_key_is_a_warning_and_doctor_fails() {
    let env = Env::new();
    env.start(&["x"]);
    write(&env, "[goal]\nno_progres_limit = 3\n");
    let status = env.goal(&["status", "--json"]);
    assert_eq!(status.json()["goal"]["status"], "active");
    assert!(status.stderr.starts_with("warning: ") && status.stderr.contains(KEY), "{status:?}");
    assert_eq!(status.stderr.lines().count(), 1, "{status:?}");
    assert_eq!(env.run(&["usage", "runs"]).stderr.matches(KEY).count(), 1);
    assert!(env.run(&["goal", "start", "y", "--session", "s2"]).succeeds().stderr.contains(KEY));
    let doctor = env.run(&["doctor"]);
    assert!(doctor.code == 4 && doctor.stdout.contains("fail  config") && doctor.stdout.contains(KEY), "{doctor:?}");
}

#[test]
fn hooks_tell_of_an_unknown_key_once_and_work_on() {
    let env = Env::new();
    env.start(&["x"]);
    let prompt = json!({"hook_event_name": "UserPromptSubmit", "prompt": "hello"});
    assert!(!told(&env.hook("s1", &prompt)));
    std::thread::sleep(std::time::Duration::from_millis(20));
    write(&env, "[goal]\nno_progres_limit = 3\n");
    assert!(told(&env.hook("s1", &prompt)), "the file changed");
    for _ in 0..2 {
        assert!(!told(&env.hook("s1", &prompt)));
    }
    let reply = env.stop("s1", "working", false);
    assert!(reply["decision"] == "block" && !told(&reply), "{reply}");
    assert!(told(&env.hook("s2", &json!({"hook_event_name": "SessionStart", "source": "startup"}))));
    assert!(!told(&env.hook("s2", &prompt)));
    assert!(!told(&env.hook("s1", &json!({"hook_event_name": "SessionStart", "source": "compact"}))));
}

#[test]
fn a_limit_in_the_wrong_place_starts_nothing() {
    let env = Env::new();
    write(&env, "daily_usd = 5\n");
    let said = "line 1: `daily_usd` is a limit; write it under [limits]";
    env.run(&["goal", "start", "x", "--session", "s1"]).fails_with(4, said);
    let doctor = env.run(&["doctor"]);
    assert!(doctor.code == 4 && doctor.stdout.contains(said), "{doctor:?}");
}

#[test]
fn what_starts_nothing_works_under_a_broken_configuration_with_a_warning() {
    let env = Env::new();
    env.start(&["x"]);
    for text in ["[limits]\ndaily_usd = [\n", "[goal]\nno_progress_limit = \"many\"\n", "\u{1}"] {
        write(&env, text);
        for command in [
            &["goal", "status", "--session", "s1"][..],
            &["goal", "history", "--session", "s1"],
            &["session", "list"],
            &["loop", "list"],
            &["db", "path"],
        ] {
            let output = env.run(command);
            output.succeeds();
            assert_eq!(output.stderr.matches("warning: ").count(), 1, "{command:?} {output:?}");
            assert!(output.stderr.contains("config.toml is not a valid configuration: line "), "{output:?}");
        }
        for command in [&["goal", "start", "y", "--session", "s2"][..], &["goal", "resume", "--session", "s1"]] {
            env.run(command).fails_with(4, "config.toml is not a valid configuration: line ");
        }
        let doctor = env.run(&["doctor"]);
        assert!(doctor.code == 4 && doctor.stdout.contains("fail  config"), "{doctor:?}");
    }
    env.goal(&["pause"]).succeeds();
    write(&env, "");
    assert_eq!(env.status()["status"], "paused");
}
