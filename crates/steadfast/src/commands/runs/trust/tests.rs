//! Trust applies to the plan that runs, not to the current content of its files.

use steadfast_engine::plan::{Catalogue, Overrides, plan_loop, plan_pipeline};
use steadfast_system::config::Config;
use steadfast_system::paths::Paths;
use tempfile::TempDir;

use super::*;

struct World {
    _directory: TempDir,
    here: Here,
    catalogue: Catalogue,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let project = fs_err::canonicalize(directory.path()).unwrap();
        let home = project.join("home");
        let catalogue = Catalogue { project: project.clone(), home: home.clone() };
        let paths = Paths { store: home.join("goals.db"), home, store_from: "test", config: Config::default() };
        let here = Here { paths, kind: RunKind::Loop, project, now: 0, json: false };
        Self { _directory: directory, here, catalogue }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.here.project.join(".claude").join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }

    fn add_loop(&self, name: &str, yaml: &str) {
        self.write(&format!("loops/{name}/prompt.md"), "Go on.");
        self.write(&format!("loops/{name}/loop.yaml"), yaml);
    }

    fn plan(&self, name: &str) -> Planned {
        plan_loop(&self.catalogue, name, Some("auth"), &Overrides::default()).unwrap()
    }

    fn plan_pipeline(&self, name: &str) -> Planned {
        plan_pipeline(&self.catalogue, name, Some("auth"), &Overrides::default(), 0).unwrap()
    }

    /// As `--trust` does, which is refused in an agent's shell, where these tests may run.
    fn trust(&self, planned: &Planned) {
        let trusted = planned.used.iter().map(|used| (key(&used.file), used.sha256.clone())).collect();
        write(&self.here.paths.home.join("trust.json"), &trusted).unwrap();
    }

    /// Why a plan is refused.
    fn refusal(&self, planned: &Planned) -> Option<String> {
        require_trust(&self.here, planned, false).err().map(|failure| failure.message)
    }
}

#[test]
fn the_planned_definition_must_be_trusted_not_the_current_file() {
    let world = World::new();
    world.add_loop("work", "command: touch one");
    let planned = world.plan("work");
    world.add_loop("work", "description: harmless");
    let refused = world.refusal(&planned).unwrap();
    assert!(
        refused.ends_with("loop.yaml takes the place of another loop of that name and runs commands (`touch one`)")
    );
    assert_eq!(world.refusal(&world.plan("work")), None);

    world.trust(&planned);
    assert_eq!(world.refusal(&planned), None);
    world.add_loop("work", "command: touch two");
    assert!(
        world.refusal(&world.plan("work")).unwrap().ends_with("(`touch two`) and has changed since you trusted it")
    );
    assert_eq!(world.refusal(&planned), None, "it is still what was trusted");
}

#[test]
fn loop_types_of_a_shadowing_pipeline_need_trust_too() {
    let world = World::new();
    world.add_loop("helpful", "command: touch one");
    for name in ["code-review", "their-own"] {
        world.write(&format!("pipelines/{name}.yaml"), "stages: [{name: a, loop: helpful}]");
    }
    assert_eq!(world.refusal(&world.plan_pipeline("their-own")), None);
    let planned = world.plan_pipeline("code-review");
    let refused = world.refusal(&planned).unwrap();
    let why = "helpful/loop.yaml is used by a pipeline that takes the place of another of its name and runs commands";
    assert!(refused.contains(why), "{refused}");
    world.trust(&planned);
    assert_eq!(world.refusal(&planned), None);
}
