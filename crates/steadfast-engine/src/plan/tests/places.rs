//! Where definitions are looked for, and from where nothing is read.

use super::*;

#[test]
fn the_project_comes_before_the_home_and_that_before_what_is_built_in() {
    let world = World::new();
    let origin = |name: &str| world.catalogue.find_loop(name).unwrap().origin;
    assert_eq!(origin("work"), DefinitionOrigin::BuiltIn);
    world.write("home/loops/work/stage.yaml", "description: mine at home");
    assert_eq!(origin("work"), DefinitionOrigin::User);
    world.add_loop("work", "description: of the project");
    assert_eq!(origin("work"), DefinitionOrigin::Project);
    assert_eq!(world.catalogue.find_loop("./.claude/loops/work").unwrap().origin, DefinitionOrigin::Path);
    let listed = world.catalogue.list(RunKind::Loop).unwrap();
    let work: Vec<_> = listed.iter().filter(|listed| listed.name == "work").collect();
    assert_eq!(work.len(), 1);
    assert_eq!(work[0].description.as_deref(), Some("of the project"));

    let origin = |file: &str| world.catalogue.find_pipeline(file).map(|source| source.origin).ok();
    assert_eq!(
        (origin("full-refine"), origin("full-refine.yaml")),
        (Some(DefinitionOrigin::BuiltIn), Some(DefinitionOrigin::BuiltIn))
    );
    world.write("home/pipelines/full-refine.yaml", "");
    assert_eq!(
        (origin("full-refine"), origin("full-refine.yaml")),
        (Some(DefinitionOrigin::User), Some(DefinitionOrigin::User))
    );
    world.write("project/.claude/pipelines/full-refine.yml", "description: d");
    assert_eq!(
        (origin("full-refine"), origin("full-refine.yaml")),
        (Some(DefinitionOrigin::Project), Some(DefinitionOrigin::User))
    );
    // A bare word is a name, also if the repository has a file of that name at its top.
    for file in ["full-refine", "code-review", "only-a-file"] {
        world.write(&format!("project/{file}"), "");
    }
    assert_eq!(origin("full-refine"), Some(DefinitionOrigin::Project));
    assert_eq!((origin("code-review"), origin("missing"), origin("")), (Some(DefinitionOrigin::BuiltIn), None, None));
    assert_eq!((origin("./code-review"), origin("only-a-file")), (Some(DefinitionOrigin::Path), None));
    assert_eq!(
        world.catalogue.find_pipeline("only-a-file").unwrap_err().hint(),
        "to run the file, write `./only-a-file`"
    );
    world.write("project/Code-Review.YAML", "");
    assert_eq!(origin("Code-Review.YAML"), Some(DefinitionOrigin::Path));
    let listed = world.catalogue.list(RunKind::Pipeline).unwrap();
    assert_eq!(listed.iter().filter(|listed| listed.name == "full-refine").count(), 1);
}

#[test]
fn an_unknown_name_is_reported_with_the_nearest_one() {
    let world = World::new();
    let error = plan_loop(&world.catalogue, "wrok", None, &Overrides::default()).unwrap_err();
    assert_eq!(error.to_string(), "there is no loop type `wrok`");
    assert_eq!(error.hint(), "did you mean `work`? see `steadfast loop types`");
    let found = |file: &str| {
        let error = plan_pipeline(&world.catalogue, file, None, &Overrides::default(), 0).unwrap_err();
        (error.to_string().rsplit('/').next().unwrap().to_owned(), error.hint())
    };
    world.write("project/folder/x", "");
    assert_eq!(found("folder").0, "folder` is a directory");
    assert_eq!(found("folder/p.yaml").0, "p.yaml` does not exist");
    assert_eq!(found("p.yaml"), ("there is no pipeline `p.yaml`".into(), "see `steadfast pipeline types`".into()));
    let error = |name: &str| plan_loop(&world.catalogue, name, None, &Overrides::default()).unwrap_err();
    assert!(matches!(error("./folder"), PlanError::NoDefinition { .. }));
    assert!(matches!(error("./nowhere"), PlanError::Missing { .. }));
    // The current directory is below the project.
    world.add_loop("mine", "");
    let below = Catalogue { project: world.catalogue.project.join("folder"), ..world.catalogue.clone() };
    let error = plan_loop(&below, "mine", None, &Overrides::default()).unwrap_err();
    let project = world.catalogue.project.display();
    assert_eq!(error.hint(), format!("see `steadfast loop types`; a project is further up: `cd {project}` first"));
    assert_eq!(world.catalogue.project_above(), None);
    for name in ["", "..", "../../etc", "a/../../b", "x\0y"] {
        assert!(plan_loop(&world.catalogue, name, None, &Overrides::default()).is_err(), "{name:?}");
    }
    let named = plan_loop(&world.catalogue, "work", Some("../x"), &Overrides::default());
    assert!(matches!(named, Err(PlanError::Name(_))), "{named:?}");
}

#[test]
fn what_cannot_be_read_is_an_error_and_never_absent() {
    // A link to itself cannot be followed by root either.
    let unreadable = |place: &str| {
        let world = World::new();
        world.add_loop("mine", "completion: fixed-n");
        world.write("project/p.yaml", "stages: [{name: a, loop: mine}]");
        let place = world.catalogue.project.join(".claude").join(place);
        let _ = fs_err::remove_dir_all(&place).or_else(|_| fs_err::remove_file(&place));
        fs_err::create_dir_all(place.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(place.file_name().unwrap(), &place).unwrap();
        (world, place)
    };
    let is_read_error = |error: PlanError, place: &Path| match error {
        PlanError::Io(error) => error.to_string().contains(&*place.to_string_lossy()),
        _ => false,
    };
    // `work` is built in, but the one of the project comes first.
    for (place, name) in
        [("loops", "mine"), ("loops", "work"), ("loops/mine/loop.yaml", "mine"), ("loops/mine", "mine")]
    {
        let (world, place) = unreadable(place);
        let error = plan_loop(&world.catalogue, name, None, &Overrides::default()).unwrap_err();
        assert!(is_read_error(error, &place), "{name}, {place:?}");
        assert!(is_read_error(world.catalogue.list(RunKind::Loop).unwrap_err(), &place), "{place:?}");
        assert!(is_read_error(check_project(&world.catalogue).unwrap_err(), &place), "{place:?}");
    }
    for place in ["loops", "loops/mine/prompt.md"] {
        let (world, place) = unreadable(place);
        let error = plan_pipeline(&world.catalogue, "./p.yaml", None, &Overrides::default(), 0).unwrap_err();
        assert!(is_read_error(error, &place), "{place:?}");
    }
    let (world, place) = unreadable("pipelines");
    assert!(is_read_error(world.catalogue.list(RunKind::Pipeline).unwrap_err(), &place));
    let error = plan_pipeline(&world.catalogue, "nowhere", None, &Overrides::default(), 0).unwrap_err();
    assert!(is_read_error(error, &place));
}

#[test]
fn a_prompt_is_read_from_its_own_folder_only() {
    let world = World::new();
    let secret = world.write("secret.md", "key");
    world.add_loop("mine", "prompt: linked");
    let folder = world.catalogue.project.join(".claude/loops/mine");
    std::os::unix::fs::symlink(&secret, folder.join("linked.md")).unwrap();
    let found = |yaml: &str| {
        fs_err::write(folder.join("loop.yaml"), yaml).unwrap();
        let faults = validate_loop(&world.catalogue, "mine").unwrap();
        faults.into_iter().map(|fault| fault.what).collect::<Vec<_>>().join("; ")
    };
    assert!(found("prompt: linked").ends_with("is a link that leaves its folder"));
    for name in ["../../../../../secret", "/etc/passwd", "prompts/../../x"] {
        assert!(found(&format!("prompt: {name}")).ends_with("is not in the loop type's folder"), "{name}");
    }
    assert_eq!(found("prompt: nowhere"), "there is no prompt `nowhere`");
    assert_eq!(found("prompt: prompt.md"), "");
    assert_eq!(found("prompt: |\n  several\n  lines\n"), "");
    fs_err::write(folder.join("prompt.md"), [0xff, 0xfe]).unwrap();
    assert!(found("x: 1").contains("is not UTF-8 text"));
    fs_err::remove_file(folder.join("prompt.md")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", folder.join("prompt.md")).unwrap();
    assert!(found("description: x").contains("leaves its folder"));
    // A folder of loop types that is itself a link is the user's own choice.
    fs_err::rename(world.catalogue.project.join(".claude/loops"), world.catalogue.home.join("shared")).unwrap();
    std::os::unix::fs::symlink("../../home/shared", world.catalogue.project.join(".claude/loops")).unwrap();
    let shared = world.catalogue.home.join("shared/mine");
    fs_err::remove_file(shared.join("prompt.md")).unwrap();
    fs_err::write(shared.join("prompt.md"), "fine").unwrap();
    fs_err::write(shared.join("loop.yaml"), "description: x").unwrap();
    assert_eq!(validate_loop(&world.catalogue, "mine").unwrap(), []);
}
