//! Edits of the registry by hand.

use super::*;

pub(super) const KEY: &str = "loop-myfeature";

pub(super) fn own(world: &World) -> Value {
    world.json(REGISTRY)["sessions"][KEY].clone()
}

#[test]
fn an_entry_marked_as_killed_is_a_request_to_stop_and_stays_marked() {
    let mut world = World::a_loop();
    let mut files = world.open();
    world.publish(&mut files);
    assert!(!files.is_marked_killed().unwrap());
    world.edit(REGISTRY, |registry| {
        registry["sessions"][KEY]["status"] = json!("killed");
        registry["sessions"][KEY]["killed_at"] = json!("2025-01-10T10:30:00Z");
        registry["sessions"][KEY]["note"] = json!("enough");
    });
    assert!(files.is_marked_killed().unwrap());
    // An iteration that was under way ends.
    world.commit(None, None);
    world.publish(&mut files);
    assert!(files.is_marked_killed().unwrap(), "still wanted");
    assert_eq!((&own(&world)["status"], &world.json(LOOP_STATE)["tokens"]), (&json!("killed"), &json!(1_000)));

    world.end(RunStatus::Killed, "marked as killed");
    world.publish(&mut files);
    let entry = own(&world);
    assert_eq!(
        (&entry["status"], &entry["killed_at"], &entry["completed_at"], &entry["note"]),
        (&json!("killed"), &json!("2025-01-10T10:30:00Z"), &Value::Null, &json!("enough"))
    );
    assert!(!files.is_marked_killed().unwrap(), "it has been obeyed");

    world.run.status = RunStatus::Running;
    (world.run.reason, world.run.completed_at_ms) = (None, None);
    let mut resumed = world.open();
    world.publish(&mut resumed);
    assert!(!resumed.is_marked_killed().unwrap(), "resuming a run overrides the mark");
    assert_eq!((&own(&world)["status"], &own(&world)["killed_at"]), (&json!("running"), &Value::Null));
}

#[test]
fn a_removed_entry_stays_removed_and_the_run_continues() {
    let mut world = World::a_loop();
    let mut files = world.open();
    world.publish(&mut files);
    let remove = |registry: &mut Value| {
        registry["sessions"].as_object_mut().unwrap().remove(KEY);
    };
    world.edit(REGISTRY, remove);
    assert!(!files.is_marked_killed().unwrap());
    world.commit(None, None);
    world.publish(&mut files);
    assert_eq!(world.json(REGISTRY), json!({"sessions": {}}));
    // Another process of ours knows it from the state.
    world.publish(&mut world.open());
    assert_eq!(world.json(REGISTRY), json!({"sessions": {}}));
    assert_eq!(world.json(LOOP_STATE)["iteration"], json!(1));

    world.end(RunStatus::Killed, "stopped");
    world.publish(&mut files);
    assert_eq!(world.json(REGISTRY), json!({"sessions": {}}));
    world.run.status = RunStatus::Running;
    world.run.completed_at_ms = None;
    world.publish(&mut world.open());
    assert_eq!(own(&world)["status"], json!("running"), "a run that is opened again is listed again");
}

#[test]
fn a_missing_registry_is_not_a_removed_entry() {
    let world = World::a_loop();
    let mut files = world.open();
    world.publish(&mut files);
    fs_err::remove_file(world.path(REGISTRY)).unwrap();
    assert!(!files.is_marked_killed().unwrap());
    world.publish(&mut files);
    assert_eq!(own(&world)["status"], json!("running"));
}

/// A run of another name in the same project.
fn another(world: &World) -> (PublicFiles, Plan) {
    let plan = Plan { name: "other".into(), ..world.plan.clone() };
    (PublicFiles::open(world.directory.path(), plan.kind, &plan.name).unwrap(), plan)
}

#[test]
fn a_registry_that_was_lost_lists_all_live_runs_again_and_none_that_was_removed() {
    type Lose = fn(&World);
    let ways: [Lose; 4] = [
        |world| fs_err::remove_dir_all(world.path("")).unwrap(),
        |world| fs_err::remove_file(world.path(REGISTRY)).unwrap(),
        |world| fs_err::write(world.path(REGISTRY), "").unwrap(),
        |world| fs_err::write(world.path(REGISTRY), "{\"sessions\": [").unwrap(),
    ];
    let keys = |world: &World| {
        let mut keys: Vec<_> = world.json(REGISTRY)["sessions"].as_object().unwrap().keys().cloned().collect();
        keys.sort();
        keys
    };
    for lose in ways {
        let mut world = World::a_loop();
        let mut files = world.open();
        let (mut others, plan) = another(&world);
        world.publish(&mut files);
        let publish_other = |world: &World, others: &mut PublicFiles| {
            let view = FileView { run_id: "run-2", plan: &plan, ..world.view() };
            others.publish(&view, world.store.read()).unwrap();
        };
        publish_other(&world, &mut others);
        lose(&world);
        world.publish(&mut files);
        world.commit(None, None);
        publish_other(&world, &mut others);
        assert_eq!(keys(&world), [KEY, "loop-other"], "at the next step");
        let before = own(&world);

        lose(&world);
        for _ in 0..3 {
            files.put_entry_back().unwrap();
            others.put_entry_back().unwrap();
        }
        assert_eq!(keys(&world), [KEY, "loop-other"], "while nothing happens");
        assert_eq!(own(&world), before);

        world.edit(REGISTRY, |registry| {
            registry["sessions"].as_object_mut().unwrap().remove(KEY);
        });
        for _ in 0..3 {
            files.put_entry_back().unwrap();
        }
        world.publish(&mut files);
        publish_other(&world, &mut others);
        assert_eq!(keys(&world), ["loop-other"], "a person removed it");
    }
}

#[test]
fn an_edit_that_was_begun_before_the_entry_was_there_does_not_remove_it() {
    let mut world = World::a_loop();
    let by_hand = json!({"sessions": {"mine": {"status": "running"}}});
    for at_the_next_step in [true, false] {
        world.write(REGISTRY, &json!({"sessions": {}}).to_string());
        // `jq … > tmp` has read the registry, and `mv` comes when the entry is there.
        world.write("tmp", &by_hand.to_string());
        std::thread::sleep(std::time::Duration::from_millis(30));
        let _ = fs_err::remove_file(world.path(LOOP_STATE));
        let mut files = world.open();
        world.publish(&mut files);
        fs_err::rename(world.path("tmp"), world.path(REGISTRY)).unwrap();
        if at_the_next_step {
            world.commit(None, None);
            world.publish(&mut files);
        } else {
            (0..3).for_each(|_| drop(files.put_entry_back().unwrap()));
        }
        let sessions = world.json(REGISTRY)["sessions"].clone();
        assert_eq!((&sessions["mine"], &sessions[KEY]["status"]), (&by_hand["sessions"]["mine"], &json!("running")));
        fs_err::remove_file(world.path(REGISTRY)).unwrap();
    }
}

#[test]
fn an_editor_that_empties_the_registry_for_a_moment_is_let_finish() {
    let world = World::a_loop();
    let mut files = world.open();
    world.publish(&mut files);
    let text = fs_err::read_to_string(world.path(REGISTRY)).unwrap();
    fs_err::write(world.path(REGISTRY), "").unwrap();
    files.put_entry_back().unwrap();
    assert_eq!(fs_err::read_to_string(world.path(REGISTRY)).unwrap(), "");
    fs_err::write(world.path(REGISTRY), text).unwrap();
    for _ in 0..3 {
        assert_eq!(files.put_entry_back().unwrap(), Vec::<String>::new());
    }
}

#[test]
fn iterations_leave_the_registry_alone() {
    let mut world = World::a_loop();
    let mut files = world.open();
    world.publish(&mut files);
    let path = world.path(REGISTRY);
    let inode = || std::os::unix::fs::MetadataExt::ino(&fs_err::metadata(&path).unwrap());
    let before = inode();
    world.commit(None, None);
    world.publish(&mut files);
    assert_eq!(inode(), before);
    assert_eq!(world.json(LOOP_STATE)["tokens"], json!(1_000));
}

#[test]
fn entries_that_a_person_adds_while_runs_publish_are_kept() {
    const ADDED: u32 = 100;
    let world = World::a_loop();
    let project: &Path = world.directory.path();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for number in 0..2 {
            let (mut plan, mut run) = (world.plan.clone(), world.run.clone());
            let store = Store::open_existing(&world.home.path().join("goals.db")).unwrap();
            plan.name = format!("n{number}");
            let done = &done;
            scope.spawn(move || {
                let mut files = PublicFiles::open(project, RunKind::Loop, &plan.name).unwrap();
                let mut reason = 0_u64;
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    reason += 1;
                    run.reason = Some(reason.to_string());
                    let view = FileView { run_id: &plan.name, plan: &plan, run: &run, pid: None };
                    files.publish(&view, store.read()).unwrap();
                }
            });
        }
        while !world.path(REGISTRY).exists() {
            std::thread::yield_now();
        }
        for number in 0..ADDED {
            // A person is slower; an edit without any pause between reading and replacing cannot be protected.
            std::thread::sleep(std::time::Duration::from_millis(2));
            world.edit(REGISTRY, |registry| {
                registry["sessions"][format!("by-hand-{number}")] = json!({"status": "running"});
            });
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let sessions = world.json(REGISTRY)["sessions"].clone();
    let lost: Vec<_> = (0..ADDED).filter(|number| sessions.get(format!("by-hand-{number}")).is_none()).collect();
    assert_eq!(lost, Vec::<u32>::new());
}

#[test]
fn foreign_entries_and_unknown_fields_survive_in_their_places() {
    let world = World::a_loop();
    let by_hand = json!({"type": "loop", "status": "running", "started_at": "2025-01-09T00:00:00Z", "mood": 0.1});
    let before = json!({"version": 7, "sessions": {
        "zeta": by_hand, KEY: {"colour": "blue", "type": "loop", "note": "my run"}, "alpha": 1}, "tail": [1.5e300]});
    world.write(REGISTRY, &before.to_string());
    let mut files = world.open();
    world.publish(&mut files);
    let registry = world.json(REGISTRY);
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&registry), ["version", "sessions", "tail"]);
    assert_eq!(keys(&registry["sessions"]), ["zeta", KEY, "alpha"]);
    assert_eq!((&registry["sessions"]["zeta"], &registry["tail"]), (&by_hand, &before["tail"]));
    let entry = own(&world);
    assert_eq!(keys(&entry)[..3], ["colour", "type", "note"]);
    assert_eq!((&entry["note"], &entry["status"]), (&json!("my run"), &json!("running")));
    let named = |key: &str| RegistryEntry {
        key: key.into(),
        kind: None,
        status: String::new(),
        started_at: None,
        project_path: None,
        note: None,
        title: None,
        max_iterations: None,
        pid: None,
        run_id: None,
        entry: before["sessions"][key].clone(),
    };
    let zeta = RegistryEntry {
        kind: Some(RunKind::Loop),
        status: "running".into(),
        started_at: Some("2025-01-09T00:00:00Z".into()),
        ..named("zeta")
    };
    let listed = super::super::registry(world.directory.path()).unwrap();
    let foreign: Vec<_> = listed.into_iter().filter(|entry| entry.run_id.is_none()).collect();
    assert_eq!(foreign, [zeta, named("alpha")]);
    world.edit(LOOP_STATE, |state| state["mine"] = json!("kept"));
    world.publish(&mut files);
    assert_eq!(world.json(LOOP_STATE)["mine"], json!("kept"));
}

#[test]
fn a_removed_completion_is_not_written_again() {
    let mut world = World::a_loop();
    world.end(RunStatus::Completed, "beads-empty");
    let mut files = world.open();
    world.publish(&mut files);
    fs_err::remove_file(world.path("loop-completions.json")).unwrap();
    world.publish(&mut files);
    world.publish(&mut world.open());
    assert!(!world.path("loop-completions.json").exists());
    world.run.completed_at_ms = Some(START + 90 * MINUTE);
    world.publish(&mut world.open());
    let log = world.json("loop-completions.json");
    assert_eq!((log.as_array().unwrap().len(), &log[0]["completed_at"]), (1, &json!("2025-01-10T11:30:00Z")));
}

#[test]
fn the_last_end_of_a_run_takes_the_place_of_the_one_before() {
    let mut world = World::a_loop();
    let file = "loop-completions.json";
    world.end(RunStatus::Failed, "error");
    world.publish(&mut world.open());
    world.edit(file, |list| {
        list[0]["seen"] = json!(true);
        list.as_array_mut().unwrap().push(json!({"session": "later"}));
    });
    world.run.status = RunStatus::Running;
    (world.run.reason, world.run.completed_at_ms) = (None, None);
    world.publish(&mut world.open());
    // In the same second.
    world.end(RunStatus::Completed, "plateau");
    world.publish(&mut world.open());
    let list = world.json(file);
    let ends: Vec<_> = list.as_array().unwrap().iter().map(|end| (&end["status"], &end["seen"])).collect();
    assert_eq!(ends, [(&json!("completed"), &json!(true)), (&Value::Null, &Value::Null)]);
}

#[test]
fn only_the_newest_completions_are_kept_and_all_that_are_not_ours() {
    let mut world = World::a_loop();
    let file = "loop-completions.json";
    let of_others = json!({"session": "mine"});
    let mut list: Vec<Value> = (1..=1_000).map(|number| json!({"run_id": format!("old-{number}")})).collect();
    list.insert(1, of_others.clone());
    // An earlier end of this run.
    list.insert(0, json!({"run_id": RUN, "status": "failed"}));
    world.write(file, &json!(list).to_string());
    world.end(RunStatus::Completed, "plateau");
    world.publish(&mut world.open());
    let list = world.json(file);
    let ids: Vec<&Value> = list.as_array().unwrap().iter().map(|end| &end["run_id"]).collect();
    assert_eq!((ids.len(), ids[0], &list[1]), (1_001, &json!(RUN), &of_others));
    assert_eq!((ids[2], ids[1_000]), (&json!("old-2"), &json!("old-1000")));
}
