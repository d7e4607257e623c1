//! Worktrees of iterations, separate or shared, and the reports when one is lost.

use steadfast_engine::run_folder::RunFolder;
use steadfast_model::run::{Check, Checked};

use super::*;

impl World {
    pub(super) fn repository(&self) {
        self.git(&["init", "-q", "-b", "main"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "first"]);
    }

    /// A run whose iterations work in one worktree.
    pub(super) fn create_apart(&self, plan: &Plan) {
        self.repository();
        self.create(plan);
        RunFolder::create(&self.path("home"), RUN, None, None, true).unwrap();
    }

    pub(super) fn noted(&self) -> (Run, Vec<String>) {
        let mut notes = KeptNotes::default();
        let run = dispatcher::drive(&mut self.store(), &engine(self.root.path()), RUN, &mut [&mut notes]).unwrap();
        (run, notes.0)
    }
}

/// Keeps the notes for the user.
#[derive(Default)]
struct KeptNotes(Vec<String>);

impl Observer for KeptNotes {
    fn note(&mut self, message: &str) {
        self.0.push(message.to_owned());
    }
}

#[test]
fn a_loop_can_work_in_a_worktree_of_its_own() {
    let world = World::new();
    world.create_apart(&plan(vec![stage("work", "echo $STEADFAST_ITERATION >> lines", 2, Rule::FixedN)]));
    let (run, notes) = world.noted();
    assert_eq!((ended(&run), notes), ((RunStatus::Completed, "fixed-n"), vec![]));
    assert_eq!(world.git(&["show", "steadfast/test/run:lines"]), "1\n2\n");
    assert!(!world.in_project("lines").exists());
}

#[test]
fn parallel_iterations_work_on_branches_of_their_own() {
    let world = World::new();
    world.repository();
    let mut apart = stage("apart", "echo $STEADFAST_ITERATION > mine; ls", 3, Rule::FixedN);
    apart.parallel = true;
    let run = world.drive(&plan(vec![apart]));
    assert_eq!(ended(&run), (RunStatus::Completed, "fixed-n"));
    for iteration in 1..=3 {
        assert_eq!(world.git(&["show", &format!("steadfast/test/1-{iteration}:mine")]), format!("{iteration}\n"));
    }
    assert!(!world.in_project("mine").exists());
    assert_eq!(world.git(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn a_rule_is_not_checked_if_its_worktree_is_lost() {
    let world = World::new();
    let project = world.path("project").display().to_string();
    let script = format!("mv {project}/.git {project}/git; touch {project}/ok");
    let rule = Rule::Command("test -e ok".into());
    world.create_apart(&plan(vec![stage("work", &script, 1, rule)]));
    let (run, notes) = world.noted();
    assert_eq!(ended(&run), (RunStatus::Completed, "max_iterations"));
    let why = format!("{project} is not in a git repository with a commit, which worktrees need");
    let detail = format!("cannot enter the worktree: {why}");
    let fact = Checked { check: Check::Command("test -e ok".into()), holds: None, detail, usage: None };
    assert_eq!(world.store().read().run_history(RUN, None, 9).unwrap()[0].facts, [fact]);
    let [uncommitted, untested] = notes.as_slice() else { panic!("{notes:?}") };
    assert!(uncommitted.starts_with("the work in ") && uncommitted.contains(" is not committed: "), "{uncommitted}");
    assert!(untested.starts_with(&format!("cannot check the rule: {why} (")), "{untested}");
}

#[test]
fn work_that_cannot_be_committed_is_reported_once() {
    let world = World::new();
    let script = "echo bad > \"$(git rev-parse --git-path index)\"; echo $STEADFAST_ITERATION >> lines";
    world.create_apart(&plan(vec![stage("work", script, 3, Rule::FixedN)]));
    let (run, notes) = world.noted();
    assert_eq!(ended(&run), (RunStatus::Completed, "fixed-n"));
    let worktree = world.path("home/worktrees").join(RUN).join("run");
    let [note] = notes.as_slice() else { panic!("{notes:?}") };
    assert!(note.starts_with(&format!("the work in {} is not committed: git ", worktree.display())), "{note}");
    assert_eq!(std::fs::read_to_string(worktree.join("lines")).unwrap(), "1\n2\n3\n");
}

#[test]
fn a_stop_request_is_honoured_while_git_creates_a_worktree() {
    let world = World::new();
    world.create_apart(&plan(vec![stage("work", "echo $STEADFAST_ITERATION >> lines", 1, Rule::FixedN)]));
    let (begun, over) = (world.path("begun"), world.path("over"));
    let hook = world.in_project(".git/hooks/post-checkout");
    std::fs::write(&hook, format!("#!/bin/sh\ntouch {}\nsleep 90\ntouch {}\n", begun.display(), over.display()))
        .unwrap();
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    std::thread::scope(|scope| {
        let driving = scope.spawn(|| world.resume());
        eventually(|| begun.exists().then_some(()));
        let stopping = Stopping { status: RunStatus::Killed, reason: "killed".into() };
        world.store().write(|db| db.request_stop(RUN, Some(&stopping))).unwrap();
        assert_eq!(ended(&driving.join().unwrap()), (RunStatus::Killed, "killed"));
    });
    assert!(!over.exists(), "git was not waited for");
    std::fs::remove_file(&hook).unwrap();
    dispatcher::reopen(&mut world.store(), &engine(world.root.path()), RUN, None).unwrap();
    assert_eq!(ended(&world.resume()), (RunStatus::Completed, "fixed-n"));
    assert_eq!(world.git(&["show", "steadfast/test/run:lines"]), "1\n");
}
