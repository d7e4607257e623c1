//! Definitions of runs as users and repositories write them: YAML, conditions, templates.

use std::cell::Cell;
use std::path::Path;

use steadfast_engine::plan::{Catalogue, Overrides, PlanError, Planned, dry_run, plan_loop, plan_pipeline};
use steadfast_model::run::Plan;
use steadfast_model::run::condition::{self, FactValue};
use steadfast_model::run::template::{self, Variables};

use crate::scratch;

pub(crate) fn pipeline(data: &[u8]) {
    let file = scratch::file("project/.claude/pipelines/fuzzed.yaml", data);
    check(&file, data, |catalogue, flags| plan_pipeline(catalogue, "fuzzed", Some("name"), flags, 0));
}

pub(crate) fn loop_type(data: &[u8]) {
    let mut parts = scratch::parts(data);
    let definition = parts.next().unwrap_or_default();
    let file = scratch::file("project/.claude/loops/fuzzed/loop.yaml", definition);
    scratch::file("project/.claude/loops/fuzzed/prompt.md", parts.next().unwrap_or(b"Work."));
    check(&file, definition, |catalogue, flags| plan_loop(catalogue, "fuzzed", Some("name"), flags));
}

/// A definition becomes a plan that survives the store, or faults that a person can find.
fn check(file: &Path, data: &[u8], plan: impl Fn(&Catalogue, &Overrides) -> Result<Planned, PlanError>) {
    let project = file.ancestors().find(|path| path.ends_with("project")).expect("the project");
    let catalogue = Catalogue { project: project.to_owned(), home: project.join("home") };
    let flags = Overrides::default();
    match plan(&catalogue, &flags) {
        Ok(planned) => {
            let stored = serde_json::to_string(&planned.plan).expect("a plan is JSON");
            let read: Plan = serde_json::from_str(&stored).expect("a stored plan can be read");
            assert_eq!(read, planned.plan);
            dry_run::dry_run(&planned.plan, "").expect("a plan can be shown");
            assert_eq!(plan(&catalogue, &flags).expect("the same plan"), planned);
        }
        Err(PlanError::Faults(faults)) => {
            assert!(!faults.is_empty());
            let lines = data.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count() + 1;
            for fault in faults {
                assert!(!fault.what.is_empty() && !fault.fix.is_empty(), "{fault:?}");
                let is_own = fault.file.ends_with("fuzzed.yaml") || fault.file.ends_with("loop.yaml");
                assert!(!is_own || fault.line as usize <= lines + 1, "{fault:?}, {lines} lines");
            }
        }
        Err(_) => {}
    }
}

pub(crate) fn condition(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let parsed = match condition::parse(text) {
        Ok(parsed) => parsed,
        Err(error) => {
            assert!(error.at <= text.chars().count() + 1, "{error:?}");
            return;
        }
    };
    let shown = parsed.to_string();
    match condition::parse(&shown) {
        Ok(again) => assert_eq!(again, parsed, "{shown}"),
        // Escapes can make it longer than a condition may be.
        Err(error) => assert!(error.at > text.chars().count(), "{error:?}, {shown}"),
    }
    let stored = serde_json::to_string(&parsed).expect("a condition is JSON");
    assert_eq!(serde_json::from_str::<condition::Condition>(&stored).ok(), Some(parsed.clone()));
    for fact in [None, Some(FactValue::Number(0)), Some(FactValue::Text("stop".into()))] {
        let asked = Cell::new(0_usize);
        let answer = parsed.evaluate(
            |stage, _| {
                asked.set(asked.get() + 1);
                assert!(parsed.stages().contains(stage));
                fact.clone()
            },
            |_| true,
        );
        assert!(answer.is_ok() || fact.is_some(), "{answer:?}");
        assert!(asked.get() <= text.len());
    }
}

pub(crate) fn template(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    // A value is never read as a template again.
    let value = "${ITEM} and ${nothing}".to_owned();
    let variables = Variables { session: "name".into(), item: value.clone(), context: value, ..Variables::default() };
    let rendered = template::render(text, &variables);
    for name in &rendered.unknown {
        assert!(text.contains(name.as_str()), "{name}");
    }
    assert!(rendered.text.len() <= text.len() * 30, "{} bytes", rendered.text.len());
    if !template::uses(text, |_| true) {
        assert!(rendered.unknown.is_empty());
    }
    assert_eq!(template::render(text, &variables), rendered);
    template::render_name(text, "name");
}
