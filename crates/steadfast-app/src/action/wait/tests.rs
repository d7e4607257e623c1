//! Who may wait for what, and looks of several processes.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use super::*;
use crate::action;
use crate::testing::{SECOND, SESSION, START, USER, WORKER, World};
use steadfast_model::goal::budget::Budget;
use steadfast_model::goal::event::EventKind;

const LOOK: Duration = Duration::from_secs(62);

fn command(text: &str) -> WaitRequest {
    WaitRequest { condition: Some(WaitCondition::Command(text.into())), ..WaitRequest::default() }
}

fn path(text: &str) -> WaitRequest {
    WaitRequest { condition: Some(WaitCondition::File(text.into())), ..WaitRequest::default() }
}

fn pid(pid: i64) -> WaitRequest {
    WaitRequest { condition: Some(WaitCondition::Process(pid)), ..WaitRequest::default() }
}

/// A world with a goal whose directory is `project`.
fn world(project: Option<&Path>) -> World {
    let mut world = World::new();
    let project_dir = project.map(|path| path.to_str().unwrap().to_owned());
    let place = action::Place { project_dir, ..world.place() };
    let new = steadfast_model::goal::NewGoal {
        verify: vec!["make test".into()],
        ..crate::testing::new_goal(Budget::default())
    };
    action::start(&mut world.store, &place, new, USER, START).unwrap();
    world
}

fn ask(world: &mut World, request: &WaitRequest, origin: Origin) -> Result<WaitFor, WaitError> {
    match start(&mut world.store, SESSION, request, &["curl -f localhost".into()], origin, START) {
        Ok(goal) => {
            action::resume(&mut world.store, SESSION, USER, START).unwrap();
            Ok(goal.wait.unwrap().wait_for)
        }
        Err(ActionError::Wait(error)) => Err(error),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn an_agent_may_wait_only_for_commands_that_the_user_approved() {
    let mut world = world(None);
    for text in ["make test", "curl -f localhost"] {
        assert_eq!(ask(&mut world, &command(text), WORKER), Ok(WaitFor::Command(text.into())));
    }
    for text in ["make test; id", " make test", "curl", "true"] {
        assert_eq!(ask(&mut world, &command(text), WORKER), Err(WaitError::UnapprovedCommand), "{text}");
        assert_eq!(ask(&mut world, &command(text), USER), Ok(WaitFor::Command(text.into())));
    }
    let goal = world.store.read().goal(SESSION).unwrap().unwrap();
    let refused = world.store.read().last_event(&goal.goal_id, EventKind::PrivilegedVerbRefused).unwrap().unwrap();
    assert_eq!(refused.payload["verb"], "wait --command");
}

#[test]
fn an_agent_may_wait_only_for_files_inside_the_project() {
    let root = tempfile::tempdir().unwrap();
    let project = root.path().join("project");
    fs_err::create_dir_all(project.join("build")).unwrap();
    std::os::unix::fs::symlink("/etc", project.join("out")).unwrap();
    let mut world = world(Some(&project));
    let whole = |path: &str| project.join(path).to_str().unwrap().to_owned();
    for inside in ["build/done", "not/yet/there", "$(id) `id`;\n目 '\"", &whole("x")] {
        assert_eq!(ask(&mut world, &path(inside), WORKER), Ok(WaitFor::File(whole(inside))), "{inside}");
    }
    for outside in ["/etc/passwd", "../secret", "build/../../secret", "out/passwd", "/"] {
        let refused = ask(&mut world, &path(outside), WORKER);
        assert!(matches!(refused, Err(WaitError::OutsideProject(_))), "{outside}: {refused:?}");
        assert_eq!(ask(&mut world, &path(outside), USER), Ok(WaitFor::File(whole(outside))));
    }
    assert_eq!(ask(&mut world, &path("~/x"), USER), Ok(WaitFor::File(whole("~/x"))), "nothing is expanded");
    assert_eq!(ask(&mut self::world(None), &path("x"), USER), Err(WaitError::NoDirectory));
}

#[test]
fn a_process_must_run_and_an_agents_must_belong_to_the_user() {
    let mut world = world(None);
    let own = ProcessIdentity::own();
    let expected = WaitFor::Process { pid: own.pid, started: own.started, boot: own.boot };
    assert_eq!(ask(&mut world, &pid(i64::from(own.pid)), WORKER), Ok(expected));
    for none in [0, -1, i64::from(i32::MAX), i64::MAX, i64::MIN] {
        assert_eq!(ask(&mut world, &pid(none), USER), Err(WaitError::NoProcess(none)));
    }
    if !cfg!(target_os = "linux") {
        return;
    }
    let mut child = process::is_of_same_user(1).then(|| {
        let nobody = 65_534;
        Command::new("sleep").arg("60").uid(nobody).spawn().expect("only root is the user of process 1")
    });
    let foreign = child.as_ref().map_or(1, |child| i64::from(child.id()));
    assert_eq!(ask(&mut world, &pid(foreign), WORKER), Err(WaitError::ForeignProcess(foreign)));
    assert!(ask(&mut world, &pid(foreign), USER).is_ok());
    if let Some(child) = &mut child {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn two_processes_never_run_the_command_at_the_same_time() {
    let mut world = world(None);
    let goal = start(&mut world.store, SESSION, &command("x"), &[], USER, START).unwrap();
    let first = begin_check(&mut world.store, &goal, LOOK, START).unwrap().unwrap();
    assert_eq!(begin_check(&mut world.store, &goal, LOOK, START).unwrap(), None);
    let noted = note_check(&mut world.store, SESSION, &first, Seen::Exited(1), START + SECOND).unwrap().unwrap();
    assert_eq!((noted.next_check(), noted.wake_at_ms), (Some(START + 6 * SECOND), goal.wake_at_ms));
    // A process that was killed while it looked recorded nothing.
    let killed = begin_check(&mut world.store, &goal, LOOK, START + 6 * SECOND).unwrap().unwrap();
    assert_eq!(begin_check(&mut world.store, &goal, LOOK, START + 67 * SECOND).unwrap(), None);
    let second = begin_check(&mut world.store, &goal, LOOK, START + 68 * SECOND).unwrap().unwrap();
    assert_eq!((killed.checks, second.checks), (1, 1));
    let met = note_check(&mut world.store, SESSION, &second, Seen::Met, START + 70 * SECOND).unwrap().unwrap();
    assert_eq!((met.wake_at_ms, met.next_check()), (Some(START + 70 * SECOND), None));
    assert_eq!(note_check(&mut world.store, SESSION, &killed, Seen::Met, START + 71 * SECOND).unwrap(), None);
}

#[test]
fn waiting_stops_the_clock() {
    let mut world = world(None);
    let goal = start(&mut world.store, SESSION, &path("/x"), &[], USER, START + 5 * SECOND).unwrap();
    assert_eq!(goal.active_seconds(START + 500 * SECOND), goal.active_seconds(START + 5 * SECOND));
    assert_eq!(goal.resume_at_ms, None);
}

#[test]
fn the_goal_of_a_run_cannot_wait() {
    let mut world = World::new();
    let session_id = "run-01234567".to_owned();
    let place = action::Place { session_id: session_id.clone(), ..world.place() };
    action::start(&mut world.store, &place, crate::testing::new_goal(Budget::default()), USER, START).unwrap();
    let refused = start(&mut world.store, &session_id, &path("/x"), &[], USER, START);
    assert!(matches!(refused, Err(ActionError::Wait(WaitError::GoalOfRun))), "{refused:?}");
}
