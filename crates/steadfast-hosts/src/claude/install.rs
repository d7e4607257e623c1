//! What has to be where for Claude Code to load the plugin, measured with 2.1.197. `extraKnownMarketplaces` and
//! `enabledPlugins` in `settings.json` alone work from the *second* start on. With the entry in
//! `plugins/known_marketplaces.json`, which the first start would write, the plugin is there at once.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::command::{AnsweredBy, SlashCommand};
use crate::install::apply::read;
use crate::install::json::{JsonDocument, JsonEdit, Ours};
use crate::install::manifest::{ManifestContent, ManifestEntry, OptionalSetting};
use crate::install::setup::{Setup, UserFile, Wanted, unicode};
use crate::install::{Choice, InstallError, InstallPlan, InstallRequest, Question, shell_word};
use steadfast_model::host::Host;

const MARKETPLACE: &str = "steadfast";
const PLUGIN_ID: &str = "steadfast@steadfast";
const BLOCK_CAP: [&str; 2] = ["env", "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"];
const STATUS_LINE: [&str; 1] = ["statusLine"];
/// The block cap to suggest: more than any real sequence of turns needs, and it still ends a loop of empty turns.
const SUGGESTED_BLOCK_CAP: u32 = 100;
/// The client opens its dialog by this command. A file of the user with that name comes first, and our hook answers it.
const LIMIT_DIALOG: &str = "rate-limit-options.md";
const LIMIT_DIALOG_TEXT: &str = "---\ndescription: Shown when the plan is used up\ndisable-model-invocation: true\n---\n\n\
    The plan of this account is used up. Answer with one short sentence that says so, and do nothing else.\n";
const ASK_STATUS_LINE: Question<'_> = Question {
    text: "Show the goal below the input line of Claude Code?",
    change: "adds `statusLine` to settings.json, such as: \u{25ce} goal active 1.2M/10M \u{b7} 14 turns",
    default: true,
};
const ASK_BLOCK_CAP: Question<'_> = Question {
    text: "Let long goals continue in scripts that run `claude -p`?",
    change: "Claude Code ends such a script after 8 answers in a row without an action; this makes it 100, by \
        `CLAUDE_CODE_STOP_HOOK_BLOCK_CAP` in settings.json. If you never run `claude -p`, either answer is fine",
    default: true,
};
const ASK_LIMIT_DIALOG: Question<'_> = Question {
    text: "When your plan is used up, let goals continue at its reset without you?",
    change: "adds the command rate-limit-options, so that Claude Code's own dialog does not wait for a key",
    default: false,
};
/// Seconds. The line shows minutes, and a run costs a few milliseconds.
const STATUS_LINE_REFRESH: u32 = 5;

/// The settings as they are without our part in them.
pub(crate) fn user_settings(home: &Path, config_dir: &Path) -> Result<JsonDocument, InstallError> {
    Ok(Setup::load(home, Host::Claude, config_dir)?.file("settings.json")?.base)
}

/// The client makes a directory for the plugin's data, and one around it.
pub(crate) fn plugin_dirs(config_dir: &Path) -> Vec<PathBuf> {
    let data = config_dir.join("plugins/data");
    vec![data.join("steadfast-steadfast"), data]
}

/// Decides about the optional settings, then plans.
pub(super) fn plan_request(request: &InstallRequest<'_>) -> Result<InstallPlan, InstallError> {
    let theirs = user_settings(request.home, request.config_dir)?;
    let command = format!("{} statusline", shell_word(&request.lasting_program.to_string_lossy()));
    let mut setup = Setup::load(request.home, Host::Claude, request.config_dir)?;
    let settings = setup.file("settings.json")?;
    // What an earlier setup wrote is not asked for again.
    let earlier = setup.earlier_edit(&settings, &STATUS_LINE);
    let wanted = Wanted {
        setting: OptionalSetting::StatusLine,
        consent: request.statusline,
        value: command.as_str(),
        is_theirs: user_status_line(&theirs).is_some(),
        question: ASK_STATUS_LINE,
        may_ask: earlier.is_none(),
    };
    let statusline = setup.choose(wanted, request)?;
    // A line of ours follows the program to where it is now.
    let is_moved = earlier.is_some_and(|edit| edit.written.get("command") != Some(&json!(command)));
    let statusline = if statusline == Choice::Leave && is_moved { Choice::Set(command.as_str()) } else { statusline };
    let wanted = Wanted {
        setting: OptionalSetting::BlockCap,
        consent: request.block_cap,
        value: request.block_cap_value.unwrap_or(SUGGESTED_BLOCK_CAP),
        is_theirs: theirs.get(&BLOCK_CAP).is_some(),
        question: ASK_BLOCK_CAP,
        may_ask: setup.earlier_edit(&settings, &BLOCK_CAP).is_none(),
    };
    let block_cap = setup.choose(wanted, request)?;
    let mut commands: Vec<_> = request.commands.iter().flat_map(command_files).collect();
    if skips_limit_dialog(&mut setup, request)? {
        commands.push((LIMIT_DIALOG.to_owned(), LIMIT_DIALOG_TEXT.to_owned()));
    }
    plan(setup, request, &commands, statusline, block_cap)
}

/// Whether our command takes the place of the client's dialog about a used-up plan. The user has to ask for it; an
/// earlier choice stays.
fn skips_limit_dialog(setup: &mut Setup, request: &InstallRequest<'_>) -> Result<bool, InstallError> {
    let was_chosen = setup.old.entry(&setup.config_dir.join("commands").join(LIMIT_DIALOG)).is_some();
    let wanted = Wanted {
        setting: OptionalSetting::LimitDialog,
        consent: request.limit_dialog,
        value: (),
        is_theirs: was_chosen,
        question: ASK_LIMIT_DIALOG,
        may_ask: !was_chosen,
    };
    Ok(match setup.choose(wanted, request)? {
        Choice::Set(()) => true,
        Choice::Leave => was_chosen,
        Choice::Remove => false,
    })
}

/// How our commands begin for the user: `setup` writes short ones beside those of the plugin.
pub(super) fn typed_prefix() -> &'static str {
    let has_short =
        super::files::below_config_dirs("commands").iter().any(|commands| commands.join("goal-start.md").exists());
    if has_short { Host::Claude.capabilities().command_prefix } else { "/steadfast:goal-" }
}

/// A command file. Its text is what the model reads if the hook did not run.
pub(super) fn command_files(command: &SlashCommand) -> Vec<(String, String)> {
    let arguments = match command.arguments {
        "" => String::new(),
        arguments => format!("argument-hint: '{arguments}'\n"),
    };
    let body = match command.answered_by {
        AnsweredBy::Hook => {
            "Steadfast answers this command itself, without a model. If you read this, its hook did not run"
        }
        AnsweredBy::Model => {
            "Steadfast has carried out this command and says above what to do. If no text from Steadfast about a durable \
             goal came with this message, its hook did not run"
        }
    };
    let text = format!(
        "---\ndescription: {}\n{arguments}disable-model-invocation: true\n---\n\n\
         {body}: ask the user to run `steadfast doctor` in a terminal, and do nothing else.\n",
        command.description
    );
    vec![(format!("goal-{}.md", command.name), text)]
}

/// Plans everything `setup claude` does; running it again changes nothing. `commands` are name and text of files.
pub(crate) fn plan(
    mut setup: Setup,
    request: &InstallRequest<'_>,
    commands: &[(String, String)],
    statusline: Choice<&str>,
    block_cap: Choice<u32>,
) -> Result<InstallPlan, InstallError> {
    setup.config_toml()?;
    setup.plugin_and_settings(request, statusline, block_cap)?;
    for (name, text) in commands {
        let stem = name.trim_end_matches(".md");
        setup.own_file(&format!("commands/{name}"), text, &format!("/{MARKETPLACE}:{stem} does the same"))?;
    }
    setup.finish()
}

impl Setup {
    fn plugin_and_settings(
        &mut self,
        request: &InstallRequest<'_>,
        statusline: Choice<&str>,
        block_cap: Choice<u32>,
    ) -> Result<(), InstallError> {
        let settings = self.file("settings.json")?;
        let known = self.file("plugins/known_marketplaces.json")?;
        let root = self.home.join("claude");
        self.plugin_files(request, &root)?;
        let source = json!({ "source": "directory", "path": unicode(&root)? });

        let theirs = [settings.base.get(&["extraKnownMarketplaces", MARKETPLACE]), known.base.get(&[MARKETPLACE])];
        let foreign = theirs
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.get("source"))
            .find(|theirs| **theirs != source && is_alive(theirs))
            .cloned();

        let mut edits = Vec::new();
        if let Some(foreign) = foreign {
            // Two marketplaces cannot share a name, and the user chose this one.
            self.note(format!("the plugin is already registered from {foreign}: kept"));
        } else {
            self.known_marketplace(known, &source, &root, request.now)?;
            self.watch_installed_plugins()?;
            edits.push(JsonEdit::new(
                &["extraKnownMarketplaces", MARKETPLACE],
                json!({ "source": source }),
                Ours::Member("source".to_owned()),
            ));
        }
        edits.push(JsonEdit::new(&["enabledPlugins", PLUGIN_ID], json!(true), Ours::Any));
        if settings.base.get(&["disableAllHooks"]) == Some(&json!(true)) {
            self.note(format!(
                "`disableAllHooks` is on in {}: no hook will run, so no goal can",
                settings.path.display()
            ));
        }
        edits.extend(self.status_line(statusline, &settings));
        edits.extend(match block_cap {
            Choice::Set(cap) => Some(JsonEdit::new(&BLOCK_CAP, json!(cap.to_string()), Ours::Exact)),
            Choice::Leave => self.earlier_edit(&settings, &BLOCK_CAP),
            Choice::Remove => None,
        });
        self.edit(settings, edits, json!({}))
    }

    fn plugin_files(&mut self, request: &InstallRequest<'_>, root: &Path) -> Result<(), InstallError> {
        let plugin = root.join("plugin");
        let manifest = root.join(".claude-plugin/marketplace.json");
        let files = request.plugin.iter().map(|(name, text)| (plugin.join(name), *text));
        for (path, text) in files.chain([(manifest, request.marketplace)]) {
            let current = read(&path)?;
            self.record(current, ManifestEntry::shared(path, None, Some(text.to_owned()), ManifestContent::Whole));
        }
        Ok(())
    }

    fn known_marketplace(
        &mut self,
        known: UserFile,
        source: &Value,
        root: &Path,
        now: &str,
    ) -> Result<(), InstallError> {
        let present = JsonDocument::parse(&known.path, known.current.as_deref())?;
        let entry = match present.get(&[MARKETPLACE]) {
            // Only the time differs: writing it again would make every run a change.
            Some(entry) if entry.get("source") == Some(source) && entry.get("lastUpdated").is_some() => entry.clone(),
            _ => json!({ "source": source, "installLocation": unicode(root)?, "lastUpdated": now }),
        };
        let edit = JsonEdit::new(&[MARKETPLACE], entry, Ours::Member("source".to_owned()));
        self.edit(known, vec![edit], json!({}))
    }

    /// The client adds our plugin to this file by itself; recorded for uninstall to remove it.
    fn watch_installed_plugins(&mut self) -> Result<(), InstallError> {
        let file = self.file("plugins/installed_plugins.json")?;
        let content = ManifestContent::Json {
            edits: vec![JsonEdit::new(&["plugins", PLUGIN_ID], Value::Null, Ours::Any)],
            empty: json!({ "version": 2, "plugins": {} }),
        };
        let entry = self.entry(file.path, file.base_text.clone(), file.base_text, content);
        self.new.files.push(entry);
        Ok(())
    }

    fn status_line(&mut self, choice: Choice<&str>, settings: &UserFile) -> Option<JsonEdit> {
        let command = match choice {
            Choice::Set(command) => command,
            Choice::Leave => return self.earlier_edit(settings, &STATUS_LINE),
            Choice::Remove => return None,
        };
        if let Some(line) = user_status_line(&settings.base) {
            if line.get("command") != Some(&json!(command)) {
                self.note(format!(
                    "you have a status line already: kept; to show the goal after it, use `{command} --wrap 'YOUR COMMAND'`, \
                     or add the output of `{command} --segment`"
                ));
            }
            return None;
        }
        let line = json!({ "type": "command", "command": command, "refreshInterval": STATUS_LINE_REFRESH });
        Some(JsonEdit::new(&STATUS_LINE, line, Ours::Member("command".to_owned())))
    }
}

fn user_status_line(settings: &JsonDocument) -> Option<&Value> {
    settings.get(&STATUS_LINE).filter(|line| !line.is_null())
}

/// A directory that is gone is left over from something; every other source we have to believe in.
fn is_alive(source: &Value) -> bool {
    let directory = source.get("path").and_then(Value::as_str);
    source.get("source") != Some(&json!("directory")) || directory.is_none_or(|path| Path::new(path).exists())
}
