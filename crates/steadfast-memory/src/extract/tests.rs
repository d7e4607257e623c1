//! Every rule of what is remembered, with the inputs that other tools got wrong.

use super::*;
use steadfast_model::memory::observation::{Shell, ShellDirectory, ShellOutcome};
use steadfast_model::memory::{TaskChange, TaskStatus};

mod commands;
mod prompts;

fn found(category: Category, kind: &'static str, importance: Importance, subject: &str, text: &str) -> Finding {
    Finding { category, kind, importance, subject: subject.into(), text: text.into() }
}

fn only(observation: Observation) -> Findings {
    findings(&[observation])
}

fn file(action: FileAction, path: &str) -> Observation {
    Observation::File { action, path: path.into(), to: None }
}

fn failed(attempt: &str, output: &str) -> Observation {
    Observation::Failed { attempt: attempt.into(), output: output.into() }
}

#[test]
fn files_are_remembered_by_what_was_done_to_them() {
    use Importance::{Low, Normal};
    let seen = findings(&[
        file(FileAction::Read, "/p/a.rs"),
        file(FileAction::Write, "/p/b.rs"),
        file(FileAction::Edit, "/p/c.rs"),
        file(FileAction::Delete, "/p/d.rs"),
        Observation::File { action: FileAction::Move, path: "/p/e.rs".into(), to: Some("/p/f.rs".into()) },
        Observation::Search { pattern: "fn main".into(), path: "/p/src".into() },
        Observation::Search { pattern: "**/*.rs".into(), path: String::new() },
    ]);
    let file = |kind, importance, subject, text| found(Category::File, kind, importance, subject, text);
    let expected = vec![
        file("read", Low, "/p/a.rs", "/p/a.rs"),
        file("write", Normal, "/p/b.rs", "/p/b.rs"),
        file("edit", Normal, "/p/c.rs", "/p/c.rs"),
        file("delete", Normal, "/p/d.rs", "/p/d.rs"),
        file("move", Normal, "/p/f.rs", "/p/e.rs → /p/f.rs"),
        file("search", Low, "/p/src", "fn main in /p/src"),
        file("search", Low, "**/*.rs", "**/*.rs"),
    ];
    assert_eq!(seen.findings, expected);
}

#[test]
fn an_error_is_over_when_the_same_works() {
    let error = only(failed("edit: /p/a.rs", "String to replace not found in file."));
    let expected =
        found(Category::Error, "failed", Importance::High, "edit: /p/a.rs", "String to replace not found in file.");
    assert_eq!(error, Findings { findings: vec![expected.clone()], ..Findings::default() });
    // Who cannot edit a file may write it anew.
    for action in [FileAction::Edit, FileAction::Write] {
        assert!(only(file(action, "/p/a.rs")).worked.contains(&expected.subject), "{action:?}");
    }
    assert_eq!(only(file(FileAction::Read, "/p/a.rs")).worked, ["read: /p/a.rs"]);
    assert_eq!(only(failed("read: /p/x", "File does not exist.")).findings[0].importance, Importance::Normal);
    assert_eq!(only(failed("mcp: db query", "")).findings[0].text, "failed without a word");
    let worked = only(Observation::Worked { attempt: "mcp: db query".into() });
    assert_eq!(worked, Findings { worked: vec!["mcp: db query".into()], ..Findings::default() });
}

#[test]
fn of_instructions_only_the_path_is_kept() {
    let rule = found(Category::Rule, "instructions", Importance::High, "/p/CLAUDE.md", "/p/CLAUDE.md");
    assert_eq!(only(Observation::Instructions { path: "/p/CLAUDE.md".into() }).findings, std::slice::from_ref(&rule));
    let read = only(file(FileAction::Read, "/p/CLAUDE.md")).findings;
    assert_eq!(read[1..], [rule]);
    assert_eq!(only(file(FileAction::Read, "/p/NOTCLAUDE.md")).findings.len(), 1);
}

#[test]
fn tasks_go_by_id_or_as_a_whole() {
    use TaskStatus::{Completed, InProgress, Pending};
    let put =
        |subject: Option<&str>, status| TaskChange::Put { id: "7".into(), subject: subject.map(Into::into), status };
    let task = |kind, text| found(Category::Task, kind, Importance::Normal, "7", text);
    let changed = |subject: Option<&str>, status| {
        only(Observation::TaskChanged { id: "7".into(), subject: subject.map(Into::into), status })
    };
    for (subject, status, change, findings) in [
        (
            Some("Write tests"),
            Some(Pending),
            put(Some("Write tests"), Some(Pending)),
            vec![task("pending", "task 7: Write tests")],
        ),
        (None, Some(Completed), put(None, Some(Completed)), vec![task("completed", "task 7")]),
        (Some("Renamed"), None, put(Some("Renamed"), None), vec![]),
    ] {
        assert_eq!(changed(subject, status), Findings { findings, tasks: vec![change], ..Findings::default() });
    }
    let announced = only(Observation::TaskAnnounced { id: "7".into(), subject: Some("T".into()), status: Completed });
    let tasks = vec![put(Some("T"), Some(Completed))];
    assert_eq!(announced, Findings { findings: vec![task("completed", "task 7: T")], tasks, ..Findings::default() });

    let list = vec![("one".into(), Completed), ("two".into(), InProgress), ("three".into(), Pending)];
    let replaced = only(Observation::TaskList(list.clone()));
    let text = found(Category::Task, "list", Importance::Normal, "", "1 of 3 done, now: two\nto do: three\ndone: one");
    let expected = Findings { findings: vec![text], tasks: vec![TaskChange::Replace(list)], ..Findings::default() };
    assert_eq!(replaced, expected);
    assert_eq!(only(Observation::TaskList(vec![])).tasks, [TaskChange::Replace(vec![])]);
}

#[test]
fn a_long_list_drops_finished_tasks_first_and_counts_open_ones_that_do_not_fit() {
    let list = |done: usize, open: usize| {
        let done = (0..done).map(|number| (format!("d{number}"), TaskStatus::Completed));
        done.chain((0..open).map(|number| (format!("o{number}"), TaskStatus::Pending))).collect::<Vec<_>>()
    };
    let kept = |done, open| {
        let mut tasks = only(Observation::TaskList(list(done, open))).tasks;
        let Some(TaskChange::Replace(kept)) = tasks.pop() else { panic!("no list") };
        kept
    };
    assert_eq!(kept(100, 200), list(100, 200));
    assert_eq!(kept(150, 200), list(150, 200)[50..]);
    let mut expected = list(0, 299);
    expected.push(("… and 6 more open tasks of this list".into(), TaskStatus::Pending));
    assert_eq!(kept(10, 305), expected);
}

#[test]
fn what_the_user_decided_is_kept_above_all() {
    let answered = only(Observation::Answer { question: "Which database?".into(), answer: "Postgres".into() });
    let decision = |kind, subject, text| found(Category::Decision, kind, Importance::Critical, subject, text);
    assert_eq!(answered.findings, [decision("answer", "Which database?", "Which database? → Postgres")]);
    let plan = |approved, said: &str| {
        let plan = "# Plan\n1. Do it".to_owned();
        only(Observation::Plan { approved, plan, said: said.into() }).findings
    };
    assert_eq!(plan(true, ""), [decision("plan_approved", "Plan", "# Plan\n1. Do it")]);
    assert_eq!(plan(false, "smaller"), [decision("plan_rejected", "Plan", "smaller\n\n# Plan\n1. Do it")]);
}

#[test]
fn subagents_and_skills() {
    let seen = findings(&[
        Observation::SubagentStarted { id: "a1".into(), kind: "Explore".into() },
        Observation::SubagentTasked { id: "a1".into(), kind: "Explore".into(), task: "find it".into() },
        Observation::SubagentFinished { id: "a1".into(), kind: String::new(), message: "x".repeat(9_000) },
        Observation::Skill { name: "pdf".into() },
    ]);
    let agent = |kind, importance, text| found(Category::Subagent, kind, importance, "a1", text);
    let expected = vec![
        agent("started", Importance::Low, "Explore"),
        agent("tasked", Importance::Normal, "Explore: find it"),
        agent("finished", Importance::Normal, &format!("{}…", "x".repeat(499))),
        found(Category::Skill, "used", Importance::Normal, "pdf", "pdf"),
    ];
    assert_eq!(seen.findings, expected);
}

#[test]
fn nothing_is_kept_unredacted() {
    let secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let text = || format!("x {secret} y");
    let shell = |outcome| {
        Observation::Shell(Shell {
            command: format!(
                "git push https://u:{secret}@h && pip install --token {secret} p && export T={secret} && cd /{secret}"
            ),
            output: format!("remote: {secret}\nfatal: x {secret}"),
            outcome,
            directory: ShellDirectory::Before("/p".into()),
        })
    };
    let everything = findings(&[
        Observation::Prompt(format!("always use {secret}, please")),
        Observation::Prompt(format!("goal: use {secret}")),
        Observation::Prompt(format!("we take {secret}, not the other")),
        shell(ShellOutcome::Worked),
        shell(ShellOutcome::Failed),
        Observation::Shell(Shell {
            command: format!("git commit -m '{secret}'"),
            output: String::new(),
            outcome: ShellOutcome::Worked,
            directory: ShellDirectory::After(text()),
        }),
        Observation::File { action: FileAction::Move, path: text(), to: Some(text()) },
        file(FileAction::Read, &text()),
        Observation::Search { pattern: text(), path: text() },
        Observation::TaskChanged { id: text(), subject: Some(text()), status: Some(TaskStatus::Pending) },
        Observation::TaskList(vec![(text(), TaskStatus::InProgress)]),
        Observation::Answer { question: text(), answer: text() },
        Observation::Plan { approved: true, plan: text(), said: text() },
        Observation::Instructions { path: text() },
        Observation::Skill { name: text() },
        Observation::SubagentStarted { id: text(), kind: text() },
        Observation::SubagentTasked { id: text(), kind: text(), task: text() },
        Observation::SubagentFinished { id: text(), kind: text(), message: text() },
        failed(&text(), &text()),
        Observation::Worked { attempt: text() },
    ]);
    assert!(everything.findings.len() > 20);
    let text = format!("{everything:?}");
    assert!(text.contains("[redacted]"));
    assert!(!text.contains("abcdefghij"), "{text}");
}

#[test]
fn long_and_wild_text_is_bounded_and_clean() {
    let wild = format!("\u{1b}[31m{}\u{0}\u{7}", "red 目 ".repeat(300_000));
    let secret_at_the_edge = format!("{} sk-ant-abcdefghijklmnop {}", "x ".repeat(1_995), "y".repeat(50_000));
    let seen = findings(&[
        Observation::Prompt(wild.clone()),
        Observation::Prompt(secret_at_the_edge),
        failed(&wild, &wild),
        file(FileAction::Edit, &wild),
        Observation::SubagentFinished { id: wild.clone(), kind: wild.clone(), message: wild },
    ]);
    for finding in &seen.findings {
        assert!(finding.text.chars().count() <= 4_000, "{:?}", finding.category);
        assert!(finding.subject.chars().count() <= SUBJECT_MAX, "{:?}", finding.category);
        assert!(!finding.text.contains(['\u{1b}', '\u{0}', '\u{7}']) && !finding.text.contains("[31m"));
        assert!(!finding.text.contains("abcdefgh"));
    }
    let prompts: Vec<&Finding> = seen.findings.iter().filter(|it| it.category == Category::Prompt).collect();
    assert_eq!(prompts.len(), 2);
    assert!(prompts.iter().all(|prompt| prompt.text.ends_with('…')));
    let error = seen.findings.iter().find(|it| it.category == Category::Error).unwrap();
    assert!((900..=ERROR_MAX).contains(&error.text.chars().count()));
}
