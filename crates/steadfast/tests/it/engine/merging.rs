//! Stages that merge the branches of a parallel stage.

use steadfast_model::run::{MergePlan, StageStatus, Then};

use super::*;

/// Three agents side by side; each does what the script says.
fn build(script: &str) -> StagePlan {
    let mut build = stage("build", script, 3, Rule::FixedN);
    build.parallel = true;
    build
}

fn merge(chosen_by: Option<&str>, script: &str, runs: u32) -> StagePlan {
    let mut merge = stage("merge", script, runs, Rule::Merged);
    merge.prompt = "${MERGE_BRANCH}: ${MERGE_CONFLICTS}\n".into();
    merge.merge = Some(MergePlan { from: "build".into(), chosen_by: chosen_by.map(str::to_owned) });
    merge
}

fn judge(branches: &str) -> StagePlan {
    stage("judge", &format!("echo '{{\"branches\": {branches}}}' > $STEADFAST_RESULT"), 1, Rule::FixedN)
}

impl World {
    /// A project with a file that agents change.
    fn with_file(&self) {
        self.repository();
        std::fs::write(self.in_project("a.txt"), "1\n2\n3\n").unwrap();
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", "file"]);
        for (name, value) in [("user.name", "T"), ("user.email", "t@example.org")] {
            self.git(&["config", name, value]);
        }
    }

    fn merges(&self, branch: &str) -> Vec<String> {
        let log = self.git(&["log", "--merges", "--first-parent", "--reverse", "--format=%s", branch]);
        log.lines().map(str::to_owned).collect()
    }

    fn left(&self) -> String {
        self.git(&["status", "--porcelain", "--untracked-files=no"])
    }
}

const OWN_FILES: &str = "echo $STEADFAST_ITERATION > file-$STEADFAST_ITERATION";
const SAME_LINE: &str = "sed -i \"s/^2/two $STEADFAST_ITERATION/\" a.txt";
/// Resolves a conflict by taking all lines.
const RESOLVE: &str = "cat >> asked; sed -i -e '/^[<>=|]/d' a.txt; git commit -q -a --no-edit; echo resolved";

#[test]
fn branches_without_conflicts_are_merged_without_an_agent() {
    let world = World::new();
    world.with_file();
    let run = world.drive(&plan(vec![build(OWN_FILES), merge(None, "touch started", 1)]));
    assert_eq!(ended(&run), (RunStatus::Completed, "completed"));
    assert_eq!(run.stages[1].reason.as_deref(), Some("merged"));
    assert_eq!(world.summaries().last().unwrap(), "merged 3 branches");
    assert_eq!(world.merges("main"), [1, 2, 3].map(|number| format!("Merge branch 'steadfast/test/1-{number}'")));
    assert_eq!((world.left().as_str(), world.in_project("started").exists()), ("", false));
    let last = world.store().read().run_history(RUN, None, 9).unwrap().pop().unwrap();
    assert_eq!((last.tokens, last.cost_micros, last.cost_unknown), (0, 0, false));
}

#[test]
fn only_chosen_branches_are_merged() {
    let world = World::new();
    world.with_file();
    let stages = vec![build(OWN_FILES), judge("[3, \"steadfast/test/1-1\"]"), merge(Some("judge"), "", 1)];
    assert_eq!(ended(&world.drive(&plan(stages))), (RunStatus::Completed, "completed"));
    assert_eq!(world.merges("main"), [3, 1].map(|number| format!("Merge branch 'steadfast/test/1-{number}'")));

    for (listed, why) in [
        ("[\"main\"]", "the stage judge chose `main`, which is no branch of the stage build: steadfast/test/1-1"),
        ("[]", "nothing to merge: the result of the stage judge lists no `branches`"),
    ] {
        let world = World::new();
        world.with_file();
        let run = world.drive(&plan(vec![build(OWN_FILES), judge(listed), merge(Some("judge"), "", 1)]));
        let (status, reason) = ended(&run);
        assert!(status == RunStatus::Failed && reason.starts_with(&format!("cannot_start: {why}")), "{reason}");
        assert_eq!(world.merges("main"), Vec::<String>::new());
    }
}

#[test]
fn conflicts_are_handed_to_an_agent_one_branch_after_the_other() {
    let world = World::new();
    world.with_file();
    let run = world.drive(&plan(vec![build(SAME_LINE), merge(None, RESOLVE, 3)]));
    assert_eq!(ended(&run), (RunStatus::Completed, "completed"), "{:?}", world.summaries());
    assert_eq!(world.lines("asked"), ["steadfast/test/1-2: a.txt", "steadfast/test/1-3: a.txt"]);
    assert_eq!(world.lines("a.txt"), ["1", "two 1", "two 2", "two 3", "3"]);
    assert_eq!((world.merges("main").len(), world.left().as_str()), (3, ""));
}

#[test]
fn a_merge_works_in_the_worktree_of_the_run() {
    let world = World::new();
    world.with_file();
    world.create(&plan(vec![build(SAME_LINE), merge(None, RESOLVE, 3)]));
    steadfast_engine::run_folder::RunFolder::create(&world.path("home"), RUN, None, None, true).unwrap();
    assert_eq!(ended(&world.resume()), (RunStatus::Completed, "completed"));
    assert_eq!(world.git(&["show", "steadfast/test/run:a.txt"]), "1\ntwo 1\ntwo 2\ntwo 3\n3\n");
    assert_eq!(world.lines("a.txt"), ["1", "2", "3"]);
}

#[test]
fn a_merge_that_is_given_up_is_aborted() {
    let world = World::new();
    world.with_file();
    let mut plan = plan(vec![build(SAME_LINE), merge(None, "echo x >> tries; git add a.txt", 3)]);
    plan.limits.errors = 2;
    world.create(&plan);
    let (run, notes) = world.noted();
    assert_eq!(ended(&run), (RunStatus::Failed, "errors: the merge of steadfast/test/1-2 is not committed"));
    assert_eq!((world.lines("tries").len(), world.left().as_str()), (2, ""));
    assert_eq!(world.lines("a.txt"), ["1", "two 1", "3"]);
    let aborted = notes.iter().filter(|note| note.starts_with("aborted the merge of steadfast/test/1-2: ")).count();
    assert_eq!(aborted, 1, "{notes:?}");
}

#[test]
fn a_kill_after_a_merge_was_aborted_leaves_the_tree_as_it_was() {
    for on_fail in [Then::Stop, Then::Continue] {
        let world = World::new();
        world.with_file();
        let gives_up = StagePlan { on_fail, ..merge(None, "echo x >> tries; git add a.txt", 3) };
        let mut plan = plan(vec![build(SAME_LINE), gives_up, stage("after", "cp a.txt seen", 1, Rule::FixedN)]);
        plan.limits.errors = 2;
        world.create(&plan);
        assert!(!world.engine_process("engine.merge_aborted:1").wait().unwrap().success(), "it was not reached");
        let first_merged = ["1", "two 1", "3"];
        assert_eq!(world.lines("a.txt"), first_merged);
        assert_eq!(world.left(), "");
        let run = world.resume();
        let (status, seen) = match on_fail {
            Then::Stop => (RunStatus::Failed, Vec::new()),
            Then::Continue => (RunStatus::Completed, first_merged.to_vec()),
        };
        assert_eq!((run.status, run.stages[1].status), (status, StageStatus::Failed));
        assert_eq!(world.lines("seen"), seen);
        assert_eq!((world.lines("tries").len(), world.merges("main").len(), world.left().as_str()), (2, 1, ""));
        assert!(!world.path("home/runs").join(RUN).join("merge-2.json").exists());
    }
}

#[test]
fn a_tree_with_uncommitted_changes_is_not_touched() {
    let world = World::new();
    world.with_file();
    std::fs::write(world.in_project("a.txt"), "mine\n").unwrap();
    let run = world.drive(&plan(vec![build(OWN_FILES), merge(None, "touch started", 1)]));
    let (status, reason) = ended(&run);
    assert!(status == RunStatus::Failed && reason.contains("have changes that are not committed: a.txt"), "{reason}");
    assert_eq!((world.lines("a.txt"), world.merges("main").len()), (vec!["mine".to_owned()], 0));
}

#[test]
fn a_merge_survives_kills_and_happens_once() {
    for point in [
        "engine.merge_begun:1",
        "engine.branch_merged:1",
        "engine.merge_conflict:1",
        "engine.merge_conflict:2",
        "engine.started:4",
    ] {
        let world = World::new();
        world.with_file();
        world.create(&plan(vec![build(SAME_LINE), merge(None, RESOLVE, 3)]));
        let status = world.engine_process(point).wait().unwrap();
        assert!(!status.success(), "{point} was not reached");
        assert_eq!(ended(&world.resume()), (RunStatus::Completed, "completed"), "{point}");
        assert_eq!(world.lines("a.txt"), ["1", "two 1", "two 2", "two 3", "3"], "{point}");
        assert_eq!((world.merges("main").len(), world.left().as_str()), (3, ""), "{point}");
    }
}
