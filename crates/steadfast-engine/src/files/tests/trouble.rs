//! Broken files, old files under our names, and places where we must not write.

use super::*;

#[test]
fn a_broken_file_is_put_aside_and_named() {
    let mut world = World::a_loop();
    world.end(RunStatus::Completed, "plateau");
    for (name, text) in [
        (REGISTRY, ""),
        (REGISTRY, "{\"sessions\": []}"),
        (REGISTRY, "[]"),
        (LOOP_STATE, "{\"session\": \"myf"),
        (LOOP_STATE, "\u{0}\u{0}\u{0}"),
        ("loop-completions.json", "{}"),
    ] {
        world.write(name, text);
        let warnings = world.publish(&mut world.open());
        assert_eq!(warnings.len(), 1, "{name}: {warnings:?}");
        assert!(warnings[0].contains(&format!("{name}.broken-")), "{warnings:?}");
        assert!(world.json(name).is_object() || name == "loop-completions.json");
        // So that the end is written again.
        fs_err::remove_file(world.path(LOOP_STATE)).unwrap();
    }
    let aside = |name: &str| fs_err::read_to_string(world.path(name)).unwrap();
    assert_eq!(aside("loop-sessions.json.broken-1"), "");
    assert_eq!(aside("loop-sessions.json.broken-3"), "[]");
    assert_eq!(aside("loop-completions.json.broken-1"), "{}");
    let left: Vec<_> = world.names().into_iter().filter(|name| name.contains(".tmp")).collect();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn a_state_that_is_not_ours_makes_room_and_is_kept() {
    let world = World::a_loop();
    let theirs = "{\"session\": \"myfeature\", \"status\": \"complete\", \"history\": [{\"iteration\": 1}]}";
    world.write(LOOP_STATE, theirs);
    let warnings = world.publish(&mut world.open());
    assert!(warnings[0].ends_with("loop-state-myfeature.json.previous-1`"), "{warnings:?}");
    let aside = world.path("loop-state-myfeature.json.previous-1");
    assert_eq!(fs_err::read_to_string(aside).unwrap(), theirs);
    assert_eq!(world.json(LOOP_STATE)["history"], json!([]));

    let mut next = world;
    next.run.started_at_ms += MINUTE;
    let view = FileView { run_id: "run-2", ..next.view() };
    let published = next.open().publish(&view, next.store.read()).unwrap();
    assert_eq!(published, Vec::<String>::new(), "a run of ours is in the store");
    assert_eq!(next.json(LOOP_STATE)["started_at"], json!("2025-01-10T10:01:00Z"));
}

#[test]
fn outputs_of_an_earlier_pipeline_are_not_taken_for_this_ones() {
    let world = World::a_pipeline();
    let mut files = world.open();
    files.begin(&world.view(), Some("a: 1"), world.store.read()).unwrap();
    files.save_output(world.output(1, 1), b"old").unwrap();
    let view = FileView { run_id: "run-2", ..world.view() };
    let published = world.open().begin(&view, Some("a: 2"), world.store.read()).unwrap();
    assert!(published[0].ends_with("pipeline-runs/myrefine.previous-1`"), "{published:?}");
    let read = |name: &str| fs_err::read_to_string(world.path("pipeline-runs").join(name)).ok();
    assert_eq!(read("myrefine/pipeline.yaml").as_deref(), Some("a: 2"));
    assert_eq!(read("myrefine/stage-1-improve-plan/output.md"), None);
    assert_eq!(read("myrefine.previous-1/stage-1-improve-plan/output.md").as_deref(), Some("old"));
}

#[test]
fn nothing_is_written_outside_the_project() {
    for name in ["../x", "a/b", "", ".hidden", "a..b", "x y", "ü", &"n".repeat(65)] {
        let refused = PublicFiles::open(Path::new("/"), RunKind::Loop, name);
        assert!(matches!(refused, Err(FilesError::Name(_))), "{name:?}");
    }
    let outside = tempfile::tempdir().unwrap();
    for (link, name) in
        [("", ".claude"), (".claude", REGISTRY), (".claude", LOOP_STATE), (".claude", ".steadfast.lock")]
    {
        let world = World::a_loop();
        let directory = world.directory.path().join(link);
        fs_err::create_dir_all(&directory).unwrap();
        std::os::unix::fs::symlink(outside.path(), directory.join(name)).unwrap();
        let refused = world.open().publish(&world.view(), world.store.read());
        assert!(matches!(refused, Err(FilesError::LeavesProject { .. })), "{name}: {refused:?}");
    }
    assert_eq!(fs_err::read_dir(outside.path()).unwrap().count(), 0);

    let mut world = World::a_pipeline();
    world.plan.stages[1].name = "../../etc".into();
    let refused = world.open().begin(&world.view(), None, world.store.read());
    assert!(matches!(refused, Err(FilesError::Name(_))), "{refused:?}");
}

#[test]
fn words_of_an_agent_are_bounded_and_harmless() {
    let mut world = World::a_loop();
    world.fields = vec![("risk".into(), "low\u{7}".into()), ("plateau".into(), "mine".into())];
    world.commit(Some(true), Some(&format!("\u{1b}[31m{}", "x".repeat(5_000))));
    world.publish(&mut world.open());
    let entry = world.json(LOOP_STATE)["history"][0].clone();
    let reasoning = entry["reasoning"].as_str().unwrap();
    assert_eq!((reasoning.chars().count(), reasoning.contains('\u{1b}')), (2_000, false));
    assert_eq!((&entry["risk"], &entry["plateau"]), (&json!("low"), &json!(true)));
}

#[test]
fn one_bad_file_does_not_keep_the_others_from_being_written() {
    for bad in ["loop-completions.json", REGISTRY, LOOP_STATE] {
        let mut world = World::a_loop();
        world.publish(&mut world.open());
        world.commit(Some(true), None);
        world.end(RunStatus::Completed, "plateau");
        let (path, aside) = (world.path(bad), world.path("aside"));
        if path.exists() {
            fs_err::rename(&path, &aside).unwrap();
        }
        std::os::unix::fs::symlink("/etc/hostname", &path).unwrap();
        let error = world.open().publish(&world.view(), world.store.read()).unwrap_err();
        assert!(matches!(&error, FilesError::LeavesProject { path } if path.ends_with(bad)), "{bad}: {error:?}");
        let shows_end = |name: &str| {
            fs_err::read_to_string(world.path(name)).is_ok_and(|text| text.contains("\"reason\": \"plateau\""))
        };
        let all = ["loop-completions.json", REGISTRY, LOOP_STATE];
        let shown: Vec<_> = all.into_iter().filter(|name| shows_end(name)).collect();
        assert_eq!(shown, all.into_iter().filter(|name| *name != bad).collect::<Vec<_>>(), "{bad}");

        fs_err::remove_file(&path).unwrap();
        if aside.exists() {
            fs_err::rename(&aside, &path).unwrap();
        }
        assert!(world.open().is_behind(&world.view()).unwrap(), "{bad}");
        world.publish(&mut world.open());
        assert!(all.into_iter().all(shows_end), "{bad}");
        assert_eq!(world.json(LOOP_STATE).get("unpublished"), None);
        assert!(!world.open().is_behind(&world.view()).unwrap(), "{bad}");
    }
}

#[test]
fn files_are_behind_when_they_do_not_show_the_end_and_not_when_a_person_removed_them() {
    let mut world = World::a_loop();
    world.publish(&mut world.open());
    let running = world.json(LOOP_STATE);
    world.end(RunStatus::Completed, "plateau");
    let behind = |world: &World| world.open().is_behind(&world.view()).unwrap();
    assert!(behind(&world), "nothing shows the end");
    world.publish(&mut world.open());
    assert!(!behind(&world));
    world.write(LOOP_STATE, &running.to_string());
    assert!(behind(&world), "the registry shows the end, the state does not");
    fs_err::remove_file(world.path(LOOP_STATE)).unwrap();
    assert!(behind(&world), "the entry is there, the state is not");
    fs_err::remove_file(world.path(REGISTRY)).unwrap();
    assert!(!behind(&world), "both were removed");
}

#[test]
fn every_public_file_is_looked_at_before_a_run_starts() {
    for name in
        [REGISTRY, LOOP_STATE, "loop-completions.json", ".steadfast.lock", "loop-progress/progress-myfeature.txt"]
    {
        let world = World::a_loop();
        assert!(world.open().check(&world.plan).is_ok());
        let path = world.path(name);
        fs_err::create_dir_all(&path).unwrap();
        let refused = world.open().check(&world.plan);
        assert!(matches!(refused, Err(FilesError::NotAFile { .. })), "{name}: {refused:?}");
        fs_err::remove_dir(&path).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", &path).unwrap();
        let refused = world.open().check(&world.plan);
        assert!(matches!(refused, Err(FilesError::LeavesProject { .. })), "{name}: {refused:?}");
    }
}

#[test]
fn tidying_removes_what_an_engine_left_that_was_killed_after_the_end() {
    let world = World::a_loop();
    world.publish(&mut world.open());
    let left = [".", "loop-progress", "pipeline-runs/p", "pipeline-runs/p/stage-1-a"]
        .map(|directory| world.path(directory).join(".steadfast-aB3xY9.tmp"));
    for path in &left {
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, "half").unwrap();
    }
    let how = |dry_run| Tidy { is_alive: &|_| true, before_ms: 0, now: START, dry_run };
    tidy(world.directory.path(), how(true)).unwrap();
    assert!(left.iter().all(|path| path.exists()), "a dry run removes nothing");
    tidy(world.directory.path(), how(false)).unwrap();
    assert!(!left.iter().any(|path| path.exists()), "{left:?}");
}
