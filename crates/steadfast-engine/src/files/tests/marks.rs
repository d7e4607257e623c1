//! Marks by hand, and what git puts in their place.

use super::edits::{KEY, own};
use super::*;

#[test]
fn a_mark_counts_only_for_this_run_and_since_its_start() {
    let current = json!({"run_id": RUN, "pid": 4711, "status": "killed"});
    let with = |change: &[(&str, Value)]| {
        let mut entry = current.clone();
        for (name, value) in change {
            entry[*name] = value.clone();
        }
        entry
    };
    let (at, old) = (json!("2025-01-10T10:00:00Z"), json!("2025-01-10T09:59:59Z"));
    for (counts, entry) in [
        (true, current.clone()),
        (true, with(&[("killed_at", at.clone())])),
        (true, with(&[("killed_at", json!("today"))])),
        (true, json!({"status": "killed"})),
        (true, json!({"status": "killed", "killed_at": at})),
        (true, json!({"status": "killed", "run_id": null, "pid": null})),
        (true, json!({"status": "killed", "run_id": RUN})),
        (false, with(&[("killed_at", old.clone())])),
        (false, json!({"status": "killed", "killed_at": old})),
        (false, with(&[("run_id", json!("run-0"))])),
        (false, with(&[("run_id", json!("run-0")), ("killed_at", json!("2030-01-01T00:00:00Z"))])),
        // Of an earlier engine, and of an end.
        (false, with(&[("pid", json!(17))])),
        (false, with(&[("pid", Value::Null)])),
    ] {
        let mut world = World::a_loop();
        // The file has whole seconds.
        world.run.started_at_ms += 700;
        let mut files = world.open();
        world.publish(&mut files);
        world.edit(REGISTRY, |registry| registry["sessions"][KEY] = entry.clone());
        assert_eq!(files.is_marked_killed().unwrap(), counts, "{entry}");
        (0..3).for_each(|_| drop(files.put_entry_back().unwrap()));
        assert_eq!(own_status(&world), if counts { "killed" } else { "running" }, "{entry}");
        world.publish(&mut files);
        assert_eq!(own_status(&world), if counts { "killed" } else { "running" }, "{entry}");
    }
}

fn own_status(world: &World) -> String {
    own(world)["status"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn what_git_puts_back_is_neither_a_mark_nor_a_removal() {
    let git = |world: &World, arguments: &[&str]| {
        let identity = ["-c", "user.name=T", "-c", "user.email=t@example.org"];
        let mut command = std::process::Command::new("git");
        let output = command.current_dir(world.directory.path()).args(identity).args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    for old in [json!({}), json!({KEY: {"status": "killed"}}), json!({KEY: {"status": "killed", "run_id": "run-0"}})] {
        let mut world = World::a_loop();
        world.write(REGISTRY, &json!({"sessions": old}).to_string());
        world.write(LOOP_STATE, "{\"run_id\": \"run-0\", \"status\": \"killed\", \"history\": [{\"iteration\": 1}]}");
        for arguments in [&["init", "-q"][..], &["add", "-A"], &["commit", "-q", "-m", "old"]] {
            git(&world, arguments);
        }
        let mut files = world.open();
        world.publish(&mut files);
        for at_the_next_step in [true, false] {
            git(&world, &["reset", "-q", "--hard"]);
            assert!(files.is_touched());
            assert!(!files.is_marked_killed().unwrap(), "{old}");
            if !at_the_next_step {
                (0..3).for_each(|_| drop(files.put_entry_back().unwrap()));
            }
            world.commit(None, None);
            world.publish(&mut files);
            assert_eq!((own_status(&world), &own(&world)["run_id"]), ("running".to_owned(), &json!(RUN)), "{old}");
            assert!(!files.is_touched());
        }
        let state = world.json(LOOP_STATE);
        assert_eq!((&state["run_id"], state["history"].as_array().unwrap().len()), (&json!(RUN), 2));
        // Another process, after the end.
        git(&world, &["reset", "-q", "--hard"]);
        world.end(RunStatus::Completed, "plateau");
        world.publish(&mut world.open().continued(true, None));
        assert_eq!(own_status(&world), "completed");
        assert_eq!(world.names().iter().filter(|name| name.contains("previous")).count(), 0);
    }
}
