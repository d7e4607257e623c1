//! What plans say about the definitions they were made of.

use sha2::{Digest as _, Sha256};
use steadfast_model::text;

use super::*;

fn used(kind: RunKind, file: &Path, yaml: &str, commands: &[&str]) -> UsedDefinition {
    UsedDefinition {
        kind,
        origin: DefinitionOrigin::Project,
        file: file.display().to_string(),
        sha256: text::hex(&Sha256::digest(yaml)),
        shadows: false,
        commands: commands.iter().map(|command| (*command).to_owned()).collect(),
        prompt: (kind == RunKind::Loop).then(|| {
            let prompt = file.with_file_name("prompt.md").display().to_string();
            (prompt, text::hex(&Sha256::digest("Do it.")))
        }),
    }
}

#[test]
fn a_loop_names_its_definition_as_it_was_read_and_the_commands_that_are_not_the_users() {
    let world = World::new();
    let yaml = "completion: {any: [{command: make}, {verify: [a, b]}, {promise: X}]}\nagent: \"sh x\"\n\
                judge: {agent: \"sh judge\"}\n";
    world.add_loop("mine", yaml);
    let file = world.catalogue.project.join(".claude/loops/mine/loop.yaml");
    let planned = |flags: &Overrides| plan_loop(&world.catalogue, "mine", None, flags).unwrap().used;
    let all = used(RunKind::Loop, &file, yaml, &["make", "a", "b", "sh x", "sh judge"]);
    assert_eq!(planned(&Overrides::default()), [all]);
    // The user's own agent takes the place of theirs; his verification comes on top.
    let agent = Some(AgentKind::Command(vec!["mine".into()]));
    let flags = Overrides { agent, verify: vec!["my check".into()], ..Overrides::default() };
    assert_eq!(planned(&flags), [used(RunKind::Loop, &file, yaml, &["make", "a", "b", "sh judge"])]);

    world.write("home/loops/mine/loop.yaml", "");
    assert!(planned(&flags)[0].shadows);
    assert_eq!(plan_loop(&world.catalogue, "work", None, &flags).unwrap().used[0].origin, DefinitionOrigin::BuiltIn);
}

#[test]
fn a_pipeline_names_its_own_commands_and_those_of_its_loop_types_apart() {
    let world = World::new();
    let (parallel, plain) = ("parallel: true\ncommand: make one\nagent: \"sh x\"", "verify: [make two]");
    world.add_loop("parallel", parallel);
    world.add_loop("plain", plain);
    let yaml = "stages:\n\
                - {name: a, loop: parallel, parallel: false, judge: {agent: \"sh judge\"}}\n\
                - {name: b, loop: plain, agent: \"sh y\"}\n\
                - {name: c, loop: plain}\n\
                - {name: d, prompt: hi, command: make three}\n";
    world.write("project/.claude/pipelines/p.yaml", yaml);
    let flags = Overrides { verify: vec!["my check".into()], ..Overrides::default() };
    let planned = plan_pipeline(&world.catalogue, "p", Some("auth"), &flags, 0).unwrap();
    let at = |path: &str| world.catalogue.project.join(".claude").join(path);
    assert_eq!(
        planned.used,
        [
            used(RunKind::Pipeline, &at("pipelines/p.yaml"), yaml, &["sh judge", "sh y", "make three"]),
            used(RunKind::Loop, &at("loops/parallel/loop.yaml"), parallel, &["make one", "sh x"]),
            used(RunKind::Loop, &at("loops/plain/loop.yaml"), plain, &["make two"]),
        ]
    );
}
