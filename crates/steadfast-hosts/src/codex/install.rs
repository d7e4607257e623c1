//! What has to be where for Codex to run our hooks, know our tools and show our skills, measured with 0.166.0.
//! Hooks go to `hooks.json`, except for a user who keeps theirs in `config.toml`: Codex warns at every start when a layer
//! has both. Our group is added behind the user's, since Codex ties its trust to the place in the list.

pub(crate) mod evaluator;
pub(crate) mod trust;

use std::path::{Path, absolute};

use serde_json::{Map, Value, json};

use self::trust::HookTrust;
use crate::command::SlashCommand;
use crate::install::apply::read;
use crate::install::codex_config::{self as config, CodexEdits, Group, Trust};
use crate::install::codex_tables::{EVALUATOR, OwnTable, SERVER};
use crate::install::json::{JsonEdit, Ours};
use crate::install::manifest::ManifestContent;
use crate::install::setup::Setup;
use crate::install::{InstallError, InstallPlan, InstallRequest, shell_word};
use steadfast_model::host::Host;
use steadfast_system::env_vars;

pub(super) struct CodexEvent {
    pub(super) name: &'static str,
    matcher: Option<&'static str>,
    /// Seconds.
    timeout: u32,
}

const fn event(name: &'static str, timeout: u32) -> CodexEvent {
    CodexEvent { name, matcher: None, timeout }
}

/// What we listen to, and how long Codex waits for us.
pub(super) const EVENTS: [CodexEvent; 12] = [
    event("SessionStart", 30),
    // `$goal-verify` is answered here and runs the user's own commands.
    event("UserPromptSubmit", 900),
    // Our own tools only touch this session's goal: no question is needed.
    CodexEvent { name: "PermissionRequest", matcher: Some("mcp__steadfast__.*"), timeout: 30 },
    // The next tool calls of a goal at its limit are refused.
    event("PreToolUse", 30),
    event("PostToolUse", 30),
    // The only word about a turn that failed: there is no Stop after it.
    event("PostModelRequest", 30),
    event("SubagentStart", 30),
    event("SubagentStop", 30),
    event("PreCompact", 30),
    event("Stop", 60),
    // Codex allows these two no more, and warns at every start of one that asks for it.
    event("Interrupt", 3),
    event("SessionEnd", 3),
];

/// What the user reads while the program is missing, as JSON for an `echo` of sh.
const MISSING: &str = r#"{\"systemMessage\":\"steadfast: the program is missing, so no goal is driven. Install it again as you did (for example: npm install -g steadfast), then type in a terminal: steadfast setup\"}"#;

impl CodexEvent {
    /// A program that is gone is reported at the start of a session; Codex would report a failure of every hook. Codex
    /// runs the command in the user's own shell, which may be no POSIX shell: `exec` and quotes are all that it needs.
    pub(super) fn lasting_command(&self, program: &Path) -> String {
        let otherwise =
            if self.name == "SessionStart" { format!("exec echo \"{MISSING}\"") } else { "exit 0".to_owned() };
        let script = format!(r#"command -v "$0" >/dev/null || {otherwise}; exec "$0" "$@""#);
        format!("exec /bin/sh -c '{script}' {}", hook_command(program))
    }

    fn group(&self, command: &str) -> Value {
        let handler = json!({ "type": "command", "command": command, "timeout": self.timeout });
        match self.matcher {
            Some(matcher) => json!({ "matcher": matcher, "hooks": [handler] }),
            None => json!({ "hooks": [handler] }),
        }
    }
}

/// Flags that bring our hooks along for one run of `codex exec`, with the trust that this run needs; the user's
/// configuration is neither read nor changed.
pub(crate) fn per_run_flags(hook_command: &str) -> Vec<String> {
    let mut flags = Vec::new();
    let mut state = Map::new();
    for event in &EVENTS {
        let group = event.group(hook_command);
        let key = format!("/<session-flags>/config.toml:{}:0:0", trust::key_name(event.name));
        let hash = trust::hash(event.name, &group, &group["hooks"][0]);
        state.insert(key, json!({ "trusted_hash": hash }));
        flags.extend(["-c".to_owned(), format!("hooks.{}={}", event.name, config::toml_value(&json!([group])))]);
    }
    flags.extend(["-c".to_owned(), format!("hooks.state={}", config::toml_value(&Value::Object(state)))]);
    flags
}

pub(super) fn plan_request(request: &InstallRequest<'_>) -> Result<InstallPlan, InstallError> {
    let skills: Vec<_> = request.commands.iter().flat_map(skill_files).collect();
    plan(request, &skills, server(request.lasting_program)?)
}

/// The command for one run, which this program starts.
pub(super) fn hook_command(program: &Path) -> String {
    format!("{} hook codex", shell_word(&program.to_string_lossy()))
}

/// Only the user may invoke a skill, never the model by itself.
const POLICY: &str = "policy:\n  allow_implicit_invocation: false\n";

/// One of our commands as a skill, the only kind of command that a user can add to Codex: path below `skills/`, text.
/// A hook answers it. The model reads the text of the skill if the hook did not run, or let the prompt through.
pub(super) fn skill_files(command: &SlashCommand) -> Vec<(String, String)> {
    let name = format!("goal-{}", command.name);
    vec![(format!("{name}/SKILL.md"), skill(&name, command)), (format!("{name}/agents/openai.yaml"), POLICY.to_owned())]
}

fn skill(name: &str, command: &SlashCommand) -> String {
    let usage = format!("{}{} {}", Host::Codex.capabilities().command_prefix, command.name, command.arguments);
    format!(
        "---\nname: {name}\ndescription: {}\n---\n\n\
         `{}` is a command for Steadfast, which carries it out itself and says in this turn what to do. If no text from \
         Steadfast came with this message, its hook did not run, usually because Codex does not trust it yet: ask the user to type \
         `/hooks` and trust the hooks of Steadfast, or to run `steadfast doctor` in a terminal, and do nothing else.\n",
        command.description,
        usage.trim_end(),
    )
}

/// Codex runs the hooks only after the user has trusted them there.
pub(super) fn trust_note(codex_home: &Path, dry_run: bool) -> Option<String> {
    let pending = || {
        let found = trust::codex_hooks(codex_home).ok()?;
        Some(found.count(HookTrust::Untrusted) + found.count(HookTrust::Changed) > 0)
    };
    (dry_run || pending().unwrap_or(true)).then(|| {
        "Codex will ask you to trust these hooks the next time it starts (or type /hooks there); until you do, they are \
         silent and no goal is driven"
            .to_owned()
    })
}

/// Plans everything `setup codex` does; running it again changes nothing. `skills` are path and text of files, `server`
/// is the table of our tool server.
pub(crate) fn plan(
    request: &InstallRequest<'_>,
    skills: &[(String, String)],
    server: Value,
) -> Result<InstallPlan, InstallError> {
    let mut setup = Setup::load(request.home, Host::Codex, request.config_dir)?;
    setup.config_toml()?;
    if setup.codex_config(request.lasting_program, server)? {
        setup.own_file(evaluator::FILE, &evaluator::file(), "it judges goals")?;
    }
    for (name, text) in skills {
        setup.own_file(&format!("skills/{name}"), text, "Codex shows that one")?;
    }
    setup.finish()
}

impl Setup {
    /// Returns whether the evaluator is ours.
    fn codex_config(&mut self, program: &Path, server: Value) -> Result<bool, InstallError> {
        let path = self.config_dir.join("config.toml");
        let current = read(&path)?;
        let base = self.without_us(&path, current.clone())?;
        let theirs = config::content(&path, base.as_deref())?;
        let hooks = self.file("hooks.json")?;
        let earlier = match self.old.entry(&path).map(|entry| &entry.content) {
            Some(ManifestContent::Codex(edits)) => edits.clone(),
            _ => CodexEdits::default(),
        };

        let has_hooks = hooks.base.get(&["hooks"]).and_then(Value::as_object).is_some_and(|events| !events.is_empty());
        let in_toml = config::has_events(&theirs) && !has_hooks && self.old.entry(&hooks.path).is_none();
        let groups: Vec<Group> = EVENTS
            .iter()
            .map(|event| Group { event: event.name.to_owned(), group: event.group(&event.lasting_command(program)) })
            .collect();
        let hooks_file = if in_toml { &path } else { &hooks.path };
        // An upgrade may change the commands. What the client noted of the earlier ones is ours to remove all the same.
        let mut trust = earlier.trust.clone();
        trust.extend(expected_trust(hooks_file, &groups).into_iter().filter(|new| !earlier.trust.contains(new)));
        let mut edits = CodexEdits { trust, ..CodexEdits::default() };
        if switched_off(&theirs) {
            self.note(format!(
                "hooks are switched off by `features` in {}: no hook will run, so no goal can",
                path.display()
            ));
        }

        edits.server = self.own_table(&path, &theirs, &SERVER, server, "");
        edits.evaluator = self.own_table(
            &path,
            &theirs,
            &EVALUATOR,
            evaluator::table(&self.config_dir),
            "; its verdicts do not count",
        );
        if in_toml {
            edits.groups = groups;
        } else {
            let items = groups
                .into_iter()
                .map(|group| JsonEdit::new(&["hooks", &group.event], group.group, Ours::HookGroup))
                .collect();
            self.edit(hooks, items, json!({}))?;
        }
        let after = config::with(&path, current.as_deref(), &earlier, &mut edits)?;
        let after = if after.is_empty() { current.clone() } else { Some(after) };
        let has_evaluator = edits.evaluator.is_some();
        let entry = self.entry(path, base, after, ManifestContent::Codex(edits));
        self.record(current, entry);
        Ok(has_evaluator)
    }

    /// The table to write; `None` if the user has one of that name. `otherwise` adds what follows from that.
    fn own_table(
        &mut self,
        path: &Path,
        theirs: &Value,
        table: &OwnTable,
        ours: Value,
        otherwise: &str,
    ) -> Option<Value> {
        match table.found(theirs) {
            Value::Null => return Some(ours),
            found if *found == ours => {}
            _ => self.note(format!("kept `{}` in {}: it is yours{otherwise}", table.key(), path.display())),
        }
        None
    }
}

/// Codex switches hooks off by this feature; the second name is the old one.
pub(crate) fn switched_off(config: &Value) -> bool {
    ["hooks", "codex_hooks"].iter().any(|name| config["features"][name] == json!(false))
}

/// Codex gives the tool server hardly any of its environment, so that what decides about the store is passed on.
fn server(program: &Path) -> Result<Value, InstallError> {
    let mut env = Map::new();
    // The last one shows the tool server that its client is the agent of a run.
    let mut env_vars = vec![env_vars::CODEX_HOME, env_vars::XDG_DATA_HOME, env_vars::ATTEMPT];
    for name in [env_vars::HOME, env_vars::DB] {
        match env_vars::path(name) {
            Some(path) => _ = env.insert(name.to_owned(), json!(absolute(path)?.to_string_lossy())),
            None => env_vars.push(name),
        }
    }
    let mut server = json!({ "command": program.to_string_lossy(), "args": ["mcp"], "env_vars": env_vars });
    if !env.is_empty() {
        server["env"] = Value::Object(env);
    }
    Ok(server)
}

/// What Codex will note in `config.toml` once the user trusts these hooks, so that uninstall can take that out again.
fn expected_trust(file: &Path, groups: &[Group]) -> Vec<Trust> {
    let file = trust::real_path(file);
    groups
        .iter()
        .map(|Group { event, group }| Trust {
            prefix: format!("{}:{}:", file.display(), trust::key_name(event)),
            hash: trust::hash(event, group, &group["hooks"][0]),
        })
        .collect()
}
