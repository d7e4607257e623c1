//! The service that starts `steadfast watch` at login: a systemd user unit on Linux, a launchd agent on macOS. Setup writes
//! the file; only the user, or `--yes`, enables it.

use std::path::{Path, PathBuf, absolute};

use super::manifest::Manifest;
use super::setup::{Setup, unicode};
use super::{Access, FileChange, InstallError, InstallPlan};
use steadfast_model::text::escape_xml;

/// The name of its manifest.
const NAME: &str = "watch";

/// What starts services on this system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceSystem {
    Systemd,
    Launchd,
}

/// What the service starts.
#[derive(Debug, Clone, Copy)]
pub struct ServiceRequest<'a> {
    /// `$STEADFAST_HOME`, absolute.
    pub home: &'a Path,
    /// The user's own home directory.
    pub user_home: &'a Path,
    /// This executable, by a path that survives upgrades.
    pub program: &'a Path,
    /// Variables of the service, which has none of a terminal's: where the store, the clients and their files are.
    pub environment: &'a [(&'a str, String)],
}

impl ServiceSystem {
    pub const HERE: Self = if cfg!(target_os = "macos") { Self::Launchd } else { Self::Systemd };

    fn directory(self, user_home: &Path) -> PathBuf {
        user_home.join(match self {
            Self::Systemd => ".config/systemd/user",
            Self::Launchd => "Library/LaunchAgents",
        })
    }

    fn file_name(self) -> &'static str {
        match self {
            Self::Systemd => "steadfast-watch.service",
            Self::Launchd => "steadfast-watch.plist",
        }
    }

    /// The command that starts the service now and at each login.
    pub fn enable(self, user_home: &Path) -> Vec<String> {
        self.command(user_home, ["enable", "--now"], "load")
    }

    /// The command that stops it for good.
    pub fn disable(self, user_home: &Path) -> Vec<String> {
        self.command(user_home, ["disable", "--now"], "unload")
    }

    fn command(self, user_home: &Path, systemd: [&str; 2], launchd: &str) -> Vec<String> {
        let file = self.directory(user_home).join(self.file_name()).display().to_string();
        match self {
            Self::Systemd => ["systemctl", "--user"]
                .into_iter()
                .chain(systemd)
                .chain([self.file_name()])
                .map(str::to_owned)
                .collect(),
            Self::Launchd => ["launchctl", launchd, "-w", &file].map(str::to_owned).to_vec(),
        }
    }

    fn text(self, request: &ServiceRequest<'_>) -> Result<String, InstallError> {
        let program = unicode(request.program)?;
        let variables = |of: fn(&str, &str) -> String| -> String {
            request.environment.iter().map(|(name, value)| of(name, value)).collect()
        };
        Ok(match self {
            Self::Systemd => format!(
                "[Unit]\nDescription=Steadfast: wakes goals and keeps detached runs alive\n\n[Service]\n\
                 {}ExecStart={} watch\nRestart=on-failure\nRestartSec=60\n\n\
                 [Install]\nWantedBy=default.target\n",
                variables(|name, value| format!("Environment={}\n", unit_word(&format!("{name}={value}")))),
                unit_word(program).replace('$', "$$"),
            ),
            Self::Launchd => format!(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<plist version=\"1.0\">\n<dict>\n\
                 \t<key>Label</key><string>steadfast-watch</string>\n\
                 \t<key>ProgramArguments</key><array><string>{}</string><string>watch</string></array>\n\
                 \t<key>EnvironmentVariables</key><dict>\n{}\t</dict>\n\
                 \t<key>RunAtLoad</key><true/>\n\
                 \t<key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>\n\
                 \t<key>ThrottleInterval</key><integer>60</integer>\n</dict>\n</plist>\n",
                escape_xml(program),
                variables(|name, value| { format!("\t\t<key>{name}</key><string>{}</string>\n", escape_xml(value)) }),
            ),
        })
    }
}

/// A word of a unit file; systemd expands `%`.
fn unit_word(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    format!("\"{escaped}\"")
}

/// Plans the file of the service; a second run changes nothing.
pub fn plan_service(system: ServiceSystem, request: &ServiceRequest<'_>) -> Result<InstallPlan, InstallError> {
    let mut setup = Setup::of_service(request.home, NAME, &system.directory(request.user_home))?;
    setup.own_file(system.file_name(), &system.text(request)?, "remove it to use ours")?;
    setup.finish()
}

/// Plans the removal of the service.
pub fn plan_service_removal(home: &Path) -> Result<InstallPlan, InstallError> {
    let path = Manifest::path(&absolute(home)?, NAME);
    let (manifest, before) = Manifest::load(&absolute(home)?, NAME)?;
    let mut plan = InstallPlan::default();
    if before.is_none() {
        plan.notes.push("no service is set up".to_owned());
        return Ok(plan);
    }
    for entry in manifest.files.iter().rev() {
        plan.undo(entry)?;
    }
    plan.remove_dirs = manifest.dirs;
    plan.remove_dirs.sort_by_key(|dir| std::cmp::Reverse(dir.components().count()));
    plan.push(FileChange { path, before, after: None, access: Access::Private });
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_as_each_system_wants_it() {
        let request = ServiceRequest {
            home: Path::new("/h o/100%"),
            user_home: Path::new("/u"),
            program: Path::new("/opt/a & \"b\"/$x/steadfast"),
            environment: &[("STEADFAST_HOME", "/h o/100%".to_owned()), ("CODEX_HOME", "/c".to_owned())],
        };
        let unit = ServiceSystem::Systemd.text(&request).unwrap();
        let variables = "\nEnvironment=\"STEADFAST_HOME=/h o/100%%\"\nEnvironment=\"CODEX_HOME=/c\"\n";
        assert!(unit.contains(variables), "{unit}");
        assert!(unit.contains("\nExecStart=\"/opt/a & \\\"b\\\"/$$x/steadfast\" watch\n"), "{unit}");
        let agent = ServiceSystem::Launchd.text(&request).unwrap();
        assert!(agent.contains("<string>/h o/100%</string>") && agent.contains("a &amp; "), "{agent}");
        assert_eq!(
            ServiceSystem::Launchd.enable(request.user_home),
            ["launchctl", "load", "-w", "/u/Library/LaunchAgents/steadfast-watch.plist"]
        );
    }

    #[test]
    fn the_file_is_written_once_and_removed_with_its_directories() {
        let world = tempfile::tempdir().unwrap();
        let request = ServiceRequest {
            home: &world.path().join("home"),
            user_home: &world.path().join("user"),
            program: Path::new("/bin/steadfast"),
            environment: &[],
        };
        let plan = || plan_service(ServiceSystem::Systemd, &request).unwrap();
        plan().apply().unwrap();
        assert!(world.path().join("user/.config/systemd/user/steadfast-watch.service").exists());
        assert!(plan().is_empty());
        plan_service_removal(request.home).unwrap().apply().unwrap();
        assert_eq!(fs_err::read_dir(world.path()).unwrap().count(), 0);
        assert!(plan_service_removal(request.home).unwrap().is_empty());
    }
}
