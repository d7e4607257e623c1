//! Checks against real files and real programs.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::checklist::{Boxes, count};
use super::*;

fn here(directory: &Path) -> CheckContext {
    CheckContext {
        directory: directory.to_owned(),
        limit: Duration::from_mins(1),
        cancel: Cancel::default(),
        mark: None,
        judge: None,
        environment: StageEnvironment::default(),
        branches: None,
        evidence: directory.join("evidence.json"),
    }
}

#[test]
fn commands_hold_when_they_exit_with_0() {
    let directory = tempfile::tempdir().unwrap();
    let look = |check: Check| carry_out(&check, &here(directory.path()));
    let command = |text: &str| look(Check::Command(text.into()));
    assert_eq!((command("true").holds, command("touch here; test -e here").holds), (Some(true), Some(true)));
    let failed = command("echo first; echo 'not \u{1b}yet'; exit 3");
    assert_eq!((failed.holds, failed.detail.as_str()), (Some(false), "exit code 3: not yet"));
    let verify = |commands: &[&str]| look(Check::Verify(commands.iter().map(|c| (*c).to_owned()).collect()));
    assert_eq!(verify(&["true", "test -e here"]).holds, Some(true));
    let failed = verify(&["true", "echo no; false", "touch never"]);
    assert_eq!((failed.holds, failed.detail.as_str()), (Some(false), "`echo no; false` failed: no"));
    assert!(!directory.path().join("never").exists());
    assert_eq!(verify(&[]).holds, Some(false));
    assert_eq!(look(Check::Judge).holds, None);
    let slow = CheckContext { limit: Duration::from_millis(50), ..here(directory.path()) };
    assert_eq!(carry_out(&Check::Command("sleep 60".into()), &slow).holds, None);
    let gone = here(&directory.path().join("gone"));
    assert_eq!(carry_out(&Check::Command("true".into()), &gone).holds, None);
}

#[test]
fn checkboxes_follow_markdown_rules() {
    let text = "# Plan\n- [ ] one\n* [x] two\n  + [X] three\n1. [ ] four\n2) [x] five\n> - [ ] quoted\n\
                ```md\n- [ ] example\n````\n~~~\n- [ ] other\n```\n~~~\n- [-] dropped\n-[ ] no list\n- [ ]no box\n- [ ]\ntext [ ]\n";
    // The four marks close the fence of three.
    assert_eq!(count(text), Boxes { ticked: 3, open: 4 });
    assert_eq!(count(""), Boxes::default());
}

#[test]
fn a_checklist_holds_when_no_box_is_open() {
    let directory = tempfile::tempdir().unwrap();
    let look = || carry_out(&Check::Checklist("plan.md".into()), &here(directory.path()));
    assert_eq!(look().holds, None);
    for (text, holds) in [("- [ ] a\n- [x] b\n", Some(false)), ("- [x] a\n", Some(true)), ("no boxes\n", None)] {
        fs_err::write(directory.path().join("plan.md"), text).unwrap();
        assert_eq!(look().holds, holds, "{text}");
    }
}

#[test]
fn a_checklist_that_is_no_plain_file_is_unknown_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe.md");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    std::os::unix::fs::symlink("/dev/zero", directory.path().join("endless.md")).unwrap();
    fs_err::File::create(directory.path().join("huge.md")).unwrap().set_len(1 << 40).unwrap();
    for (file, about) in [("pipe.md", "is not a file"), ("endless.md", "is not a file"), ("huge.md", "is too large")] {
        let found = carry_out(&Check::Checklist(file.into()), &here(directory.path()));
        let path = directory.path().join(file);
        let detail = format!("cannot read the checklist: `{}` {about}", path.display());
        assert_eq!((found.holds, found.detail), (None, detail));
    }
}

/// A `bd` that answers from two files; it is found by its path, since tests share their environment.
fn asked(ready: &str, list: &str, code: i32) -> CheckResult {
    let directory = tempfile::tempdir().unwrap();
    let script = format!(
        "#!/bin/sh\n[ \"$2 $3 $4\" = '--json --label loop/x' ] || exit 9\ncase $1 in ready) echo '{ready}';; list) echo '{list}';; esac\necho oops >&2\nexit {code}\n"
    );
    let bd = directory.path().join("bd");
    fs_err::write(&bd, script).unwrap();
    fs_err::set_permissions(&bd, std::fs::Permissions::from_mode(0o755)).unwrap();
    beads::are_empty_by(bd.to_str().unwrap(), "loop/x", &here(directory.path()))
}

#[test]
fn beads_are_empty_when_none_is_ready_or_in_progress() {
    assert_eq!(asked("[]", "[]", 0).0, Some(true));
    assert_eq!(asked("", "", 0).0, Some(true));
    assert_eq!(asked("null", r#"[{"id":"a","status":"closed"}]"#, 0).0, Some(true));
    assert_eq!(asked(r#"[{"id":"a"}]"#, "[]", 0), (Some(false), "1 bead is ready".into()));
    assert_eq!(asked("[]", r#"[{"id":"a","status":"in_progress"}]"#, 0).0, Some(false));
    assert_eq!(asked("[]", r#"[{"id":"a","status":"blocked"}]"#, 0).0, Some(false));
    let (holds, detail) = asked("[]", "[]", 1);
    assert!(holds.is_none() && detail.ends_with("failed: oops"), "{detail}");
    assert_eq!(asked("not json", "[]", 0).0, None);
    let missing = beads::are_empty_by("steadfast-no-bd", "x", &here(Path::new("/")));
    assert_eq!(missing, (None, "cannot count beads: `bd` is not installed".into()));
}

/// The longest part of a secret that a text shows.
fn shown_of(secret: &str, text: &str) -> usize {
    let parts = (0..secret.len()).flat_map(|from| (from + 1..=secret.len()).map(move |to| from..to));
    parts.filter(|part| text.contains(&secret[part.clone()])).map(|part| part.len()).max().unwrap_or(0)
}

#[test]
fn no_part_of_a_secret_is_kept_where_the_output_is_cut() {
    let directory = tempfile::tempdir().unwrap();
    let secrets = ["ghp_0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R", "glpat-aB3dE5fG7hI9jK1lM3nO"];
    let keep = |printed: &str| {
        fs_err::write(directory.path().join("printed"), printed).unwrap();
        let evidence = verify::run(&["cat printed; false".to_owned()], directory.path(), |command| {
            LimitedCommand::shell(command, directory.path(), Duration::from_mins(1))
        });
        let tail = evidence.unwrap()[0].output_tail.clone();
        let checks = [Check::Command("cat printed; false".into()), Check::Verify(vec!["cat printed; false".into()])];
        let [command, verify] = checks.map(|check| carry_out(&check, &here(directory.path())).detail);
        [tail, command, verify]
    };
    for secret in secrets {
        for cut in (0..=secret.len()).step_by(5) {
            let after_it = "word ".repeat(6_000);
            // The tail, or the detail, would begin or end inside the secret.
            let tail = |most: usize| format!("x {secret} {}\n", &after_it[..most - 2 - (secret.len() - cut)]);
            let detail = format!("{}{secret} {after_it}\n", &after_it[..286 - cut]);
            let keys = format!("{secret}\n").repeat(1_000);
            for printed in [tail(4_096), tail(4_096 + 16_384), detail, keys[cut..].to_owned()] {
                for kept in keep(&printed) {
                    assert!(shown_of(secret, &kept) < 10, "{cut}: {kept}");
                    assert!(kept.len() <= 4_096, "{}", kept.len());
                }
            }
        }
    }
}
