//! Which files are a repository's.

use super::*;

struct World {
    directory: tempfile::TempDir,
    project: PathBuf,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let top = fs_err::canonicalize(directory.path()).unwrap();
        for folder in ["repo/.git", "repo/web/deep", "other", "repo/sub"] {
            fs_err::create_dir_all(top.join(folder)).unwrap();
        }
        fs_err::write(top.join("repo/sub/.git"), "gitdir: ../.git/modules/sub\n").unwrap();
        for file in ["repo/p.yaml", "repo/web/p.yaml", "repo/sub/p.yaml", "other/p.yaml"] {
            fs_err::write(top.join(file), "x").unwrap();
        }
        Self { project: top.join("repo/web"), directory }
    }

    fn at(&self, path: &str) -> PathBuf {
        fs_err::canonicalize(self.directory.path()).unwrap().join(path)
    }
}

#[test]
fn a_file_is_the_repositorys_however_it_is_reached() {
    let world = World::new();
    let link = |target: &str, place: &str| std::os::unix::fs::symlink(target, world.at(place)).unwrap();
    link("../../other", "repo/web/out");
    link("../repo/web", "other/into");
    link("../repo/web/out/p.yaml", "other/through.yaml");
    link("round", "other/round");
    for project in ["repo/web", "repo/sub"] {
        let repository = Repository::of(&world.at(project));
        for (file, is_of_repository) in [
            ("p.yaml", true),
            ("./p.yaml", true),
            ("../p.yaml", true),
            ("../../repo/web/p.yaml", true),
            ("../../other/into/p.yaml", true),
            ("../../other/through.yaml", true),
            ("../web/out/p.yaml", true),
            ("../../other/round/p.yaml", true),
            ("missing.yaml", true),
            ("../../other/p.yaml", false),
            ("deep/../../../other/p.yaml", false),
            ("/etc/passwd", false),
        ] {
            assert_eq!(repository.has(Path::new(file)), is_of_repository, "{project}: {file}");
        }
        assert!(repository.has(&world.at("repo/web/p.yaml")));
    }
}

#[test]
fn a_link_has_another_digest_than_a_file_of_the_same_content() {
    let world = World::new();
    let plain = digest(&world.at("other/p.yaml")).unwrap();
    assert_eq!(plain, digest(&world.at("repo/p.yaml")).unwrap());
    std::os::unix::fs::symlink("p.yaml", world.at("other/link")).unwrap();
    assert_ne!(plain, digest(&world.at("other/link")).unwrap());
    assert!(digest(&world.at("other")).is_err());
}

#[test]
fn trust_is_kept_by_repository_and_content() {
    let world = World::new();
    let home = world.at("home");
    let repository = Repository::of(&world.project);
    let items = repository.scripts(&[world.at("repo/web/p.yaml"), world.at("repo/p.yaml")]).unwrap();
    assert_eq!(Ledger::read(&home).unwrap().state(&repository, &items[0]), State::New);
    Ledger::update(&home, |ledger| ledger.trust(&repository, &items)).unwrap();
    let ledger = Ledger::read(&home).unwrap();
    assert!(items.iter().all(|item| ledger.state(&repository, item) == State::Trusted));
    fs_err::write(world.at("repo/p.yaml"), "y").unwrap();
    let changed = repository.scripts(&[world.at("repo/p.yaml")]).unwrap();
    assert_eq!(ledger.state(&repository, &changed[0]), State::Changed);
    // A subdirectory of the repository has the same answers; another repository has none.
    assert_eq!(ledger.state(&Repository::of(&world.at("repo")), &items[0]), State::Trusted);
    assert_eq!(ledger.state(&Repository::of(&world.at("other")), &items[0]), State::New);
    let revoke = |items| Ledger::update(&home, |ledger| ledger.revoke(&repository, items)).unwrap();
    assert_eq!(revoke(Some(&items[..1])), 1);
    assert_eq!(revoke(None), 1);
    assert_eq!(Ledger::read(&home).unwrap(), Ledger::default());
    // What earlier versions wrote counts no more.
    fs_err::write(Ledger::path(&home), "{\"/a/loop.yaml\": \"00\"}").unwrap();
    assert_eq!(Ledger::read(&home).unwrap(), Ledger::default());
}

#[test]
fn trust_given_by_two_processes_at_once_is_kept() {
    let world = World::new();
    let (home, repository) = (world.at("home"), Repository::of(&world.project));
    let files: Vec<PathBuf> = (0..24).map(|number| world.at("repo").join(format!("{number}.sh"))).collect();
    for file in &files {
        fs_err::write(file, "x").unwrap();
    }
    let items = repository.scripts(&files).unwrap();
    std::thread::scope(|scope| {
        for item in &items {
            scope.spawn(|| {
                Ledger::update(&home, |ledger| ledger.trust(&repository, std::slice::from_ref(item))).unwrap();
            });
        }
    });
    let ledger = Ledger::read(&home).unwrap();
    assert!(items.iter().all(|item| ledger.state(&repository, item) == State::Trusted), "{ledger:?}");
}
