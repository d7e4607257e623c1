//! Reports of made-up goals and runs: what they say, and that text in them is never markup.

use serde_json::Map;
use steadfast_app::overview::goal_page::goal_page;
use steadfast_app::overview::runs::talk::{ApprovalView, NoteView};
use steadfast_app::overview::runs::{
    BranchView, CheckView, EndedBy, IterationView, LimitsView, RunDetail, RunView, StageView, Timestamp, Usd,
};
use steadfast_model::goal::proof::CompletedBy;
use steadfast_model::goal::{Goal, GoalStatus};
use steadfast_model::redact::redact;
use steadfast_model::run::{RunKind, RunStatus, StageStatus};
use steadfast_store::Store;
use steadfast_system::paths::Paths;

use super::*;

const START: i64 = 1_790_000_000_000;
const HOSTILE: &str = "<script>x</script>\"'&{{ run }}{% raw %}\u{1b}[2J";

fn html_of(goal: &Goal) -> String {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(&home.path().join("goals.db")).unwrap();
    let paths = Paths::at(home.path().to_owned(), home.path().join("goals.db"), "test").unwrap();
    let page = goal_page(store.read(), goal, &paths, START + 1).unwrap();
    goal_html(&page, START + 1).unwrap()
}

fn goal(status: GoalStatus, completed_by: Option<CompletedBy>) -> Goal {
    Goal {
        goal_id: "g1".to_owned(),
        session_id: "s1".to_owned(),
        objective: format!("Ship {HOSTILE}"),
        status,
        completed_by,
        created_at_ms: START,
        updated_at_ms: START,
        ..Goal::default()
    }
}

fn stage(number: u32, name: &str, status: StageStatus) -> StageView {
    StageView {
        stage: number,
        name: name.to_owned(),
        loop_type: None,
        max_iterations: 3,
        parallel: false,
        status,
        started_at: Some(Timestamp(START)),
        completed_at: None,
        iterations: 1,
        reason: Some(HOSTILE.to_owned()),
        needs: None,
        approve: None,
        answer: None,
        note: Some(HOSTILE.to_owned()),
    }
}

fn iteration(number: u32) -> IterationView {
    IterationView {
        stage: 1,
        stage_name: Some(HOSTILE.to_owned()),
        iteration: number,
        timestamp: Timestamp(START + i64::from(number) * 60_000),
        plateau: true,
        reasoning: None,
        summary: Some(format!("did {HOSTILE}")),
        decision: None,
        attempts: 2,
        tokens: Some(1_000),
        cost: Some(Usd(250_000)),
        duration_seconds: 61,
        place: BranchView { branch: Some(format!("b{HOSTILE}")), worktree: None, kept_because: None },
        checks: vec![CheckView { holds: Some(false), detail: HOSTILE.to_owned() }],
        fields: Map::new(),
        files_touched: vec![HOSTILE.to_owned()],
        items_completed: vec![HOSTILE.to_owned()],
        errors: vec![HOSTILE.to_owned()],
        branches: vec![HOSTILE.to_owned()],
    }
}

fn detail(iterations: u32) -> RunDetail {
    RunDetail {
        run: RunView {
            name: HOSTILE.to_owned(),
            kind: RunKind::Pipeline,
            status: RunStatus::Failed,
            iteration: iterations,
            max_iterations: 9,
            started_at: Timestamp(START),
            completed_at: Some(Timestamp(START + 3_600_000)),
            reason: Some(HOSTILE.to_owned()),
            tokens: Some(1_000 * i64::from(iterations)),
            cost: None,
            pid: None,
            is_live: false,
            is_orphaned: false,
            title: HOSTILE.to_owned(),
            stage: 1,
            project: format!("/home/ann/{HOSTILE}"),
            run_id: "r1".to_owned(),
            is_stop_requested: false,
            is_asking: false,
            is_of_fleet: false,
        },
        limits: LimitsView { tokens: Some(5_000_000), usd: Some(Usd(7_000_000)), hours: None },
        is_stopping: false,
        waiting_until: None,
        waiting_for: None,
        under_way: vec![],
        ended_by: Some(EndedBy { stage: 2, name: HOSTILE.to_owned(), why: format!("stage {HOSTILE} failed") }),
        stages: vec![stage(1, HOSTILE, StageStatus::Completed), stage(2, "b", StageStatus::Failed)],
        history: (1..=iterations).map(iteration).collect(),
        goal: None,
        notes: vec![NoteView { text: HOSTILE.to_owned(), added_at: Timestamp(START), stage: None, iteration: None }],
        approvals: vec![ApprovalView {
            stage: 2,
            stage_name: Some(HOSTILE.to_owned()),
            question: HOSTILE.to_owned(),
            asked_at: Timestamp(START),
            waiting: false,
            approved: Some(true),
            note: Some(HOSTILE.to_owned()),
            answered_at: Some(Timestamp(START)),
        }],
        elapsed_seconds: 3_600,
        is_history_only: false,
    }
}

fn check_inert(html: &str) {
    for absent in ["<script", "\u{1b}", "style=\"", "href=", "src="] {
        assert!(!html.contains(absent), "{absent:?} in {html}");
    }
    assert!(html.contains("{{ run }}{% raw %}"), "text is no template: {html}");
}

#[test]
fn a_goal_says_how_its_end_is_known() {
    use CompletedBy::{Evaluator, SelfUpdate, User, Verification};
    for (status, by, word, known) in [
        (GoalStatus::Complete, Some(Verification), "Complete, verified", "Every check passed"),
        (GoalStatus::Complete, Some(Evaluator), "Complete, verified", "The evaluator"),
        (GoalStatus::Complete, Some(User), "Complete", "A person said so"),
        (GoalStatus::Complete, Some(SelfUpdate), "Complete, unverified", "own word"),
        (GoalStatus::Complete, None, "Complete, unverified", "not recorded"),
        (GoalStatus::BudgetLimited, None, "Stopped by its budget", "before the objective was met"),
        (GoalStatus::Abandoned, None, "Abandoned", "gave the goal up"),
        (GoalStatus::Active, None, "In progress", "not met yet"),
    ] {
        let html = html_of(&goal(status, by));
        check_inert(&html);
        assert!(html.contains(word) && html.contains(known), "{status} {by:?}: {html}");
        assert_eq!(html.contains("The goal is not over."), status.is_live(), "{status}");
    }
}

#[test]
fn nothing_in_a_run_is_markup() {
    let html = run_html(&detail(3), None, START).unwrap();
    check_inert(&html);
    assert!(html.contains("&lt;script&gt;x"), "{html}");
    for part in ["The stage b failed.", "The cost is not known.", "No iteration has read 1 message", "✓ approved"] {
        assert!(html.contains(part), "{part:?} is missing in {html}");
    }
    assert!(!html.contains("/home/ann"), "where the project is stays here: {html}");
}

#[test]
fn a_long_run_keeps_its_newest_iterations_and_says_so() {
    let html = run_html(&detail(1_200), None, START).unwrap();
    assert!(html.contains("700 earlier iterations are left out"), "{html}");
    assert_eq!(html.matches("decided").count(), 0);
    let table = html.split_once("class=\"iterations\"").unwrap().1.split_once("</table>").unwrap().0;
    assert_eq!(table.matches("<tr>").count(), 501);
    assert!(table.contains("<td class=\"n\">1200<br>") && !table.contains("<td class=\"n\">700<br>"), "{table}");
    // The chart is made of all of them.
    assert!(html.contains("1,200,000 of 5,000,000 tokens and $300.00 of $7.00"), "{html}");
}

#[test]
fn hashes_and_ids_are_no_secrets() {
    for kept in [
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "4f1c2a9e77b0c3d2a14f1c2a9e77b0c3d2a14f1c",
        "fc080c4f-1ff7-4ae1-8abc-a953c930b7d4",
    ] {
        assert_eq!(redact(kept), kept);
    }
}
