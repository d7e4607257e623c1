//! Which skills of Codex are ours. Users and repositories may have skills of their own with our names; those are left
//! alone.

use std::path::{Path, PathBuf};

use super::files;
use crate::command::{is_own_file, is_plain};

/// Whether `$goal-VERB` calls a skill that is not ours. Where ours is installed, it is meant.
pub(super) fn is_foreign(verb: &str, cwd: &Path) -> bool {
    let file = |skills: PathBuf| skills.join(format!("goal-{verb}")).join("SKILL.md");
    let installed = files::home().and_then(|home| is_own_file(&file(home.join("skills"))));
    let shared = || {
        let home = etcetera::home_dir().ok();
        let roots = cwd.ancestors().take_while(|dir| !dir.as_os_str().is_empty()).map(Path::to_path_buf).chain(home);
        roots.map(|root| file(root.join(".agents/skills"))).any(|file| is_own_file(&file) == Some(false))
    };
    is_plain(verb) && installed.map_or_else(shared, |is_own| !is_own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_of_the_repository_is_not_ours() {
        let project = tempfile::tempdir().unwrap();
        let below = project.path().join("src");
        let skill = project.path().join(".agents/skills/goal-launch");
        fs_err::create_dir_all(&skill).unwrap();
        fs_err::create_dir_all(&below).unwrap();
        fs_err::write(skill.join("SKILL.md"), "Launch the rocket.").unwrap();
        assert!(is_foreign("launch", project.path()) && is_foreign("launch", &below));
        assert!(!is_foreign("land", project.path()) && !is_foreign("../goal-launch", project.path()));
        fs_err::write(skill.join("SKILL.md"), "If you read this, its hook did not run.").unwrap();
        assert!(!is_foreign("launch", project.path()));
    }
}
