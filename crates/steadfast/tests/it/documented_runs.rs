//! Everything that `docs/runs.md` shows: its definitions are written and validated, and the commands of its tutorial are
//! run, section by section, with a scripted `claude`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::attempts::eventually;
use crate::env::finish;
use crate::runs::World;

/// Does what each stage of the tutorial asks for, and reports its usage as Claude Code does.
const CLAUDE: &str = r#"#!/bin/sh
[ "$1" = --version ] && { echo '2.1.197 (Claude Code)'; exit; }
cat > /dev/null
case $STEADFAST_STAGE in
  fix-lints) echo fixed >> fixed ;;
  notes) echo 'It works now.' > NOTES.md ;;
  build) echo "$STEADFAST_ITERATION" > built; git add built; git commit -qm built ;;
  judge) printf '{"summary": "the second", "branches": [2]}' > "$STEADFAST_RESULT" ;;
  report) echo 'All is well.' > nightly.md ;;
  push) sh ./publish.sh ;;
esac
usage='"usage":{"input_tokens":7,"output_tokens":3}'
echo '{"type":"result","subtype":"success","is_error":false,"result":"did it","total_cost_usd":0.01,'"$usage}"
"#;

/// A block between code fences.
struct Block {
    section: String,
    part: String,
    language: String,
    text: String,
}

fn blocks() -> Vec<Block> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/runs.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (mut section, mut part) = (String::new(), String::new());
    let mut open: Option<Block> = None;
    let mut blocks = Vec::new();
    for line in page.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(language), None) => {
                let (section, part) = (section.clone(), part.clone());
                open = Some(Block { section, part, language: language.to_owned(), text: String::new() });
            }
            (None, Some(block)) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {
                if let Some(heading) = line.strip_prefix("## ") {
                    (section, part) = (heading.to_owned(), String::new());
                } else if let Some(heading) = line.strip_prefix("### ") {
                    heading.clone_into(&mut part);
                }
            }
        }
    }
    blocks
}

impl Block {
    /// The file that the first line names, and its content.
    fn file(&self) -> Option<(&str, &str)> {
        let (first, rest) = self.text.split_once('\n')?;
        let name = first.strip_prefix("# ").or_else(|| first.strip_prefix("<!-- ")?.strip_suffix(" -->"))?;
        name.starts_with(".claude/").then_some((name, rest))
    }
}

/// A project with what the tutorial expects, and a scripted client on the PATH.
fn project() -> (World, PathBuf) {
    let world = World::new();
    let programs = world.env.path("programs");
    world.write(&programs.join("claude"), CLAUDE);
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_steadfast"), programs.join("steadfast")).unwrap();
    world.write(&world.in_project("TASK.md"), "Make it work.\n");
    let check = "#!/bin/sh\n[ ! -f fixed ] || [ \"$(wc -l < fixed)\" -ge 2 ]\n";
    world.write(&world.in_project("check.sh"), check);
    world.write(&world.in_project("publish.sh"), "echo published > published\n");
    world.make_executable(&programs.join("claude"));
    world.make_executable(&world.in_project("check.sh"));
    world.commit_all();
    (world, programs)
}

fn shell(world: &World, programs: &Path, script: &str) {
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let as_user = world.env.command(&[]);
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", script]).env_clear().current_dir(world.env.project());
    shell.envs(as_user.get_envs().filter_map(|(name, value)| Some((name, value?))));
    for name in ["AUTHOR", "COMMITTER"] {
        shell.env(format!("GIT_{name}_NAME"), "A").env(format!("GIT_{name}_EMAIL"), "a@example.org");
    }
    let output = finish(shell.env("PATH", path), b"");
    assert_eq!(output.code, 0, "{script}\n{output:?}");
}

fn run_part(part: &str) -> World {
    let (world, programs) = project();
    let blocks: Vec<Block> = blocks().into_iter().filter(|block| block.part == part).collect();
    assert!(blocks.iter().any(|block| block.language == "sh"), "{part} has no commands");
    for block in &blocks {
        if let Some((name, text)) = block.file() {
            world.write(&world.in_project(name), text);
        } else if block.language == "sh" {
            if block.text.contains("approve") {
                let waits = || world.status("pipeline", "tonight")["stages"][3]["status"] == "awaiting_approval";
                eventually(|| waits().then_some(()));
            }
            shell(&world, &programs, &block.text);
        }
    }
    world
}

#[test]
fn the_first_loop() {
    let world = run_part("A first loop");
    assert_eq!(world.lines("fixed").len(), 3, "two iterations, and one of the second run");
}

#[test]
fn the_first_pipeline() {
    run_part("A first pipeline");
}

#[test]
fn side_by_side_judged_and_merged() {
    let world = run_part("Side by side, judged and merged");
    assert_eq!(std::fs::read_to_string(world.in_project("built")).unwrap(), "2\n", "the branch that was chosen");
}

#[test]
fn every_night_with_a_cap() {
    let world = run_part("Every night, with a cap");
    assert_eq!(std::fs::read_to_string(world.in_project("published")).unwrap(), "published\n");
}

#[test]
fn every_part_of_the_tutorial_is_run() {
    let mut parts: Vec<String> =
        blocks().into_iter().filter(|block| block.section == "Tutorial").map(|b| b.part).collect();
    parts.dedup();
    let run = ["A first loop", "A first pipeline", "Side by side, judged and merged", "Every night, with a cap"];
    assert_eq!(parts, run);
}

#[test]
fn every_definition_of_the_reference_is_valid() {
    let (world, _) = project();
    let mut count = 0;
    for block in blocks().iter().filter(|block| block.language == "yaml" && block.section != "Tutorial") {
        let (name, text) = block.file().unwrap_or_else(|| panic!("no file name in {}", block.text));
        world.write(&world.in_project(name), text);
        let output = world.run(&["pipeline", "validate", &format!("./{name}")]);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{name}: {output:?}");
        count += 1;
    }
    assert!(count >= 2, "the reference shows definitions");
}
