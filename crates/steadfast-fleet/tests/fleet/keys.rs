//! With a key, nothing of a run can be read on the server; without it, or with another one, errors say so.

use serde_json::json;

use crate::world::World;

fn key_file(world: &World, name: &str) -> String {
    let line = world.ok(&["fleet", "key"]);
    let path = world.dir.path().join(name);
    std::fs::write(&path, line).unwrap();
    path.display().to_string()
}

#[test]
fn nothing_can_be_read_in_an_exported_history_when_a_key_is_set() {
    let Some(mut world) = World::new() else { return };
    let key = key_file(&world, "key");
    world.variables.push(("STEADFAST_FLEET_KEY_FILE".into(), key));
    world.add_loop("work", "completion: fixed-n\ndelay: 0", "the quiet prompt of ${SESSION_NAME}");
    let _worker = world.driver("w1", "1");
    let mark = world.dir.path().join("quiet-mark");
    let agent = world.agent(
        "secretive",
        &format!(
            "cat >/dev/null\necho quiet-file >quiet.txt\nprintf '{{\"summary\":\"quiet summary\"}}' >\"$STEADFAST_RESULT\"\n\
             if [ \"$STEADFAST_ITERATION\" = 2 ] && [ ! -e {0} ]; then : >{0}; echo 'quiet failure' >&2; exit 5; fi",
            mark.display()
        ),
    );
    world.start_loop("work", "hidden", &agent, &["--max", "2"]);
    let status = world.wait_end("hidden");
    assert_eq!(status["status"], json!("completed"), "{status}");
    // As the server has it, by Temporal's own program.
    let output = world.temporal(&["workflow", "show", "--workflow-id", "steadfast/hidden", "--output", "json"]);
    let history = String::from_utf8(output.stdout).unwrap();
    assert!(history.contains("binary/encrypted") || history.contains("YmluYXJ5L2VuY3J5cHRlZA"), "{history:.500}");
    let clear = decoded(&history);
    for word in ["quiet", &world.repo().display().to_string(), "input_tokens", "fixed-n"] {
        assert!(!clear.contains(word), "`{word}` can be read on the server");
    }
    // Anyone without the key sees that the run exists, and no more.
    let mut other = world.command(&["fleet", "status", "hidden"]);
    let output = other.env_remove("STEADFAST_FLEET_KEY_FILE").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("key") && said.contains("STEADFAST_FLEET_KEY_FILE"), "{said}");
    let wrong = key_file(&world, "other-key");
    let output = world.command(&["fleet", "list"]).env("STEADFAST_FLEET_KEY_FILE", wrong).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("key"), "{said}");
}

/// The history with every text that is base64 decoded beside it.
fn decoded(history: &str) -> String {
    let mut all = history.to_owned();
    for text in history.split('"').filter(|text| text.len() > 8 && text.len() % 4 == 0) {
        if let Some(bytes) = base64(text) {
            all.push('\n');
            all.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
    all
}

fn base64(text: &str) -> Option<Vec<u8>> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bits = 0_u32;
    let (mut count, mut bytes) = (0, Vec::new());
    for letter in text.trim_end_matches('=').bytes() {
        let value = LETTERS.iter().position(|known| *known == letter)?;
        bits = (bits << 6) | u32::try_from(value).ok()?;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from((bits >> count) & 0xff).ok()?);
        }
    }
    Some(bytes)
}
