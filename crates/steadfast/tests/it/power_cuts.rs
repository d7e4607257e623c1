//! What must be on the disk before a step is recorded. `./faults power` cuts the power itself.

use crate::runs::World;

#[test]
fn git_syncs_the_commits_and_branches_of_worktrees() {
    let world = World::new();
    world.repository();
    let seen = world.env.path("seen");
    let hook = world.in_project(".git/hooks/post-checkout");
    world.write(&hook, &format!("#!/bin/sh\ngit config core.fsync >> '{}'\n", seen.display()));
    world.make_executable(&hook);
    world.write(
        &world.in_project("p.yaml"),
        "defaults: {delay: 0}\nstages:\n  - {name: p, runs: 1, parallel: true, prompt: go}\n",
    );
    let agent = world.agent("cat > mine; echo done");
    world.run(&["pipeline", "run", "p.yaml", "safe", "--agent", &agent]).succeeds();
    assert_eq!(std::fs::read_to_string(seen).unwrap(), "added,reference\n");
}
