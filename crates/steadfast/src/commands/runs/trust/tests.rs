//! Trust is checked against the plan that will run, not against the current content of its files.

use steadfast_engine::plan::{Catalogue, Overrides, plan_loop, plan_pipeline};
use steadfast_system::config::Config;
use steadfast_system::paths::Paths;
use tempfile::TempDir;

use super::*;

struct World {
    _directory: TempDir,
    context: RunContext,
    catalogue: Catalogue,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let project = fs_err::canonicalize(directory.path()).unwrap();
        let home = project.join("home");
        let catalogue = Catalogue { project: project.clone(), home: home.clone() };
        let paths = Paths { store: home.join("goals.db"), home, store_from: "test", config: Config::default() };
        let context = RunContext { paths, kind: RunKind::Loop, project, now: 0, json: false };
        Self { _directory: directory, context, catalogue }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.context.project.join(".claude").join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }

    fn add_loop(&self, name: &str, yaml: &str) {
        self.write(&format!("loops/{name}/prompt.md"), "Continue.");
        self.write(&format!("loops/{name}/loop.yaml"), yaml);
    }

    fn plan(&self, name: &str) -> Planned {
        plan_loop(&self.catalogue, name, Some("auth"), &Overrides::default()).unwrap()
    }

    fn plan_pipeline(&self, name: &str) -> Planned {
        plan_pipeline(&self.catalogue, name, Some("auth"), &Overrides::default(), 0).unwrap()
    }

    /// Trusts without `--trust`, which is refused inside an agent's shell, where these tests may run.
    fn trust(&self, planned: &Planned) {
        let trusted = planned.used.iter().map(|used| (key(&used.file), used.sha256.clone())).collect();
        write(&self.context.paths.home.join("trust.json"), &trusted).unwrap();
    }

    /// The error for a plan that is not trusted.
    fn refusal(&self, planned: &Planned) -> Option<String> {
        require_trust(&self.context, planned, false).err().map(|failure| failure.message)
    }
}

#[test]
fn trust_is_about_the_plan_even_if_its_file_has_changed_since() {
    let world = World::new();
    world.add_loop("work", "command: touch one");
    let planned = world.plan("work");
    world.add_loop("work", "description: harmless");
    let refused = world.refusal(&planned).unwrap();
    assert!(refused.ends_with("loop.yaml shadows another loop of that name and runs commands (`touch one`)"));
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
fn loop_types_of_a_shadowing_pipeline_have_to_be_trusted_too() {
    let world = World::new();
    world.add_loop("helpful", "command: touch one");
    for name in ["code-review", "their-own"] {
        world.write(&format!("pipelines/{name}.yaml"), "stages: [{name: a, loop: helpful}]");
    }
    assert_eq!(world.refusal(&world.plan_pipeline("their-own")), None);
    let planned = world.plan_pipeline("code-review");
    let refused = world.refusal(&planned).unwrap();
    let why = "helpful/loop.yaml is used by a pipeline that shadows another of that name and runs commands";
    assert!(refused.contains(why), "{refused}");
    world.trust(&planned);
    assert_eq!(world.refusal(&planned), None);
}
