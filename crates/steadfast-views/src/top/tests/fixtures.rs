//! First pages to draw, made from a real store.

use steadfast_app::overview::goal_view;
use steadfast_app::overview::now::{
    Action, CapView, Doing, EndedCard, GoalCard, Header, LimitBar, NeedKind, Now, PlanView, Point, RecentEnding,
    RunCard, SpendPace, StageDot, Subject, UserNeed, WaitCard,
};
use steadfast_app::overview::runs::{RunView, Timestamp, Usd};
use steadfast_model::clock::{HOUR, MINUTE, Millis, SECOND};
use steadfast_model::goal::Goal;
use steadfast_model::host::Host;
use steadfast_model::limit::Axis;
use steadfast_model::run::{RunKind, RunStatus, StageStatus};
use steadfast_store::testing::{START, World, goal};
use steadfast_system::config::Config;
use steadfast_system::paths::Paths;

use crate::top::state::{SeenView, TopState};
use crate::top::style::Palette;

/// The moment of all pages.
pub(in crate::top) const AT: Millis = START + 3 * HOUR;

pub(in crate::top) fn subject(id: &str) -> Subject {
    Subject::Goal { goal_id: format!("goal-{id}"), session_id: format!("session-{id}"), host: Host::default() }
}

pub(in crate::top) fn run_subject(name: &str) -> Subject {
    Subject::Run { run_id: format!("run-{name}"), name: name.to_owned(), kind: RunKind::Pipeline }
}

pub(in crate::top) fn working(id: &str, objective: &str) -> GoalCard {
    let world = World::new();
    let paths = Paths {
        home: world.root.path().join("home"),
        store: world.store.path().to_owned(),
        store_from: "test",
        config: Config::default(),
        closed: Vec::new(),
    };
    let goal = Goal {
        goal_id: format!("goal-{id}"),
        session_id: format!("session-{id}"),
        objective: objective.to_owned(),
        project_dir: Some("/home/ann/shop".into()),
        ..goal()
    };
    let mut view = goal_view(world.store.read(), &goal, &paths, AT).unwrap();
    view.next = "the turn ends, then the next one begins by itself".into();
    let bar = |axis, used: &str, most: &str, percent| LimitBar { axis, used: used.into(), most: most.into(), percent };
    GoalCard {
        goal: view,
        limits: vec![
            bar(Axis::Tokens, "6,200,000 tokens", "10,000,000 tokens", 62),
            bar(Axis::Usd, "$1.20", "$5.00", 24),
            bar(Axis::Turns, "14 turns", "40 turns", 35),
        ],
        pace: Some(SpendPace {
            tokens_per_hour: 1_700_000,
            usd_per_hour: Some(2.0),
            first: Some(Axis::Tokens),
            seconds_left: Some(7_800),
            usd_then: Some(14.0),
        }),
        burn: (0..20).map(|at| Point { at_ms: START + at * MINUTE, tokens: at * at, cost_micros: 0 }).collect(),
        doing: Some(Doing { what: "Bash: cargo test --workspace".into(), at_ms: AT - 12 * SECOND }),
        actions: vec![Action::Pause, Action::Extend, Action::Verify, Action::Complete, Action::Abandon],
    }
}

pub(in crate::top) fn need(kind: NeedKind, subject: Subject, title: &str, actions: &[Action]) -> UserNeed {
    UserNeed {
        kind,
        subject,
        title: title.to_owned(),
        project: Some("/home/ann/shop".into()),
        since_ms: AT - 12 * MINUTE,
        why: "it needs the password of the staging database".into(),
        hint: "answer it, then `steadfast goal resume`".into(),
        items: Vec::new(),
        stage: (kind == NeedKind::Approval).then_some(2),
        actions: actions.to_vec(),
    }
}

pub(in crate::top) fn running(name: &str) -> RunCard {
    let stage = |name: &str, status| StageDot { name: name.into(), status };
    RunCard {
        run: RunView {
            name: name.to_owned(),
            kind: RunKind::Pipeline,
            status: RunStatus::Running,
            iteration: 3,
            max_iterations: 25,
            started_at: Timestamp(AT - HOUR - 2 * MINUTE),
            completed_at: None,
            reason: None,
            tokens: Some(1_000),
            cost: Some(Usd(2_330_000)),
            pid: Some(1),
            is_live: true,
            is_orphaned: false,
            title: "ship".into(),
            stage: 2,
            project: "/home/ann/shop".into(),
            run_id: format!("run-{name}"),
            is_stop_requested: false,
            is_asking: false,
            is_of_fleet: false,
        },
        stages: vec![
            stage("plan", StageStatus::Completed),
            stage("build", StageStatus::Running),
            stage("deploy", StageStatus::Pending),
        ],
        last_summary: Some("moved the session to its own module".into()),
        actions: vec![Action::Say, Action::Kill],
    }
}

pub(in crate::top) fn empty() -> Now {
    Now {
        at_ms: AT,
        header: Header {
            live_goals: 0,
            live_runs: 0,
            today_tokens: 0,
            today_cost_usd: Some(0.0),
            caps: vec![],
            plan: vec![],
        },
        needs: vec![],
        working: vec![],
        runs: vec![],
        waiting: vec![],
        ended: vec![],
        goals_left_out: 0,
        runs_left_out: 0,
        fleet: None,
    }
}

pub(in crate::top) fn typical() -> Now {
    let ended = |ending, title: &str| EndedCard {
        subject: subject(title),
        title: title.to_owned(),
        project: Some("/home/ann/shop".into()),
        ending,
        reason: None,
        at_ms: AT - 3 * HOUR,
        tokens: Some(1_200_000),
        cost_usd: Some(0.5),
        seconds: 720,
    };
    Now {
        header: Header {
            live_goals: 4,
            live_runs: 1,
            today_tokens: 9_000_000,
            today_cost_usd: Some(4.12),
            caps: vec![CapView {
                name: "daily_usd".into(),
                used: "$4.12".into(),
                most: "$20.00".into(),
                percent: 21,
                is_reached: false,
            }],
            plan: vec![PlanView {
                host: Host::default(),
                window: "five_hour",
                noun: "5-hour window",
                used_percent: 42,
                resets_at_ms: None,
            }],
        },
        needs: vec![
            need(NeedKind::Blocked, subject("login"), "Fix the login", &[Action::Resume, Action::Abandon]),
            need(NeedKind::Approval, run_subject("ship"), "ship", &[Action::Approve, Action::Reject, Action::Kill]),
        ],
        working: vec![working("tests", "Make every test pass"), working("docs", "Write the guide")],
        runs: vec![running("ship")],
        waiting: vec![WaitCard {
            subject: subject("wait"),
            title: "Import the data".into(),
            project: None,
            what: "a usage limit".into(),
            until_ms: Some(AT + 72 * MINUTE),
            woken_by: "Claude Code".into(),
            actions: vec![Action::Resume],
        }],
        ended: vec![
            ended(RecentEnding::Verified, "Remove the old API"),
            ended(RecentEnding::Failed, "Port to Windows"),
        ],
        ..empty()
    }
}

/// A page with as many goals as the read model shows of 1,000.
pub(in crate::top) fn large() -> Now {
    let card = working("0", "");
    let card = |number: usize| {
        let mut card = card.clone();
        (card.goal.goal_id, card.goal.session_id) = (format!("goal-{number}"), format!("session-{number}"));
        card.goal.objective = format!("Objective number {number} of a thousand");
        card
    };
    let mut now = typical();
    now.working = (0..60).map(card).collect();
    now.header.live_goals = 1_000;
    now.goals_left_out = 936;
    now
}

/// Text that would move the cursor, turn the direction, or fill two columns with one character.
pub(in crate::top) const HOSTILE: [&str; 6] = [
    "\u{1b}[2J\u{1b}[31mred\u{1b}]0;title\u{7} alert",
    "safe \u{202e}txt.exe\u{2069} turned",
    "目標を達成するまで毎日テストを実行し続ける、絶対に止まらない、何があっても最後まで",
    "tab\there\nand\r\nlines\u{2028}more",
    "👩\u{200d}👩\u{200d}👧\u{200d}👦 family 👍\u{1f3fd} ❤\u{fe0f} thumbs e\u{301}",
    "\u{9b}31m\u{0}\u{8}\u{8}\u{7f}back",
];

pub(in crate::top) fn hostile() -> Now {
    let mut now = typical();
    for (at, text) in HOSTILE.iter().enumerate() {
        let id = format!("h{at}");
        let mut card = working(&id, text);
        card.goal.next = (*text).to_owned();
        card.goal.project_dir = Some(format!("/x/{text}"));
        card.doing = Some(Doing { what: (*text).to_owned(), at_ms: AT });
        now.working.push(card);
        let mut found = need(NeedKind::Blocked, subject(&format!("n{at}")), text, &[Action::Resume]);
        (found.why, found.hint, found.project) = ((*text).to_owned(), (*text).to_owned(), Some((*text).to_owned()));
        now.needs.push(found);
        let mut run = running(text);
        run.last_summary = Some((*text).to_owned());
        run.run.title = (*text).to_owned();
        run.stages = vec![
            StageDot { name: (*text).to_owned(), status: StageStatus::Running },
            StageDot { name: (*text).to_owned(), status: StageStatus::Pending },
        ];
        now.runs.push(run);
    }
    now
}

/// A screen that shows a page.
pub(in crate::top) fn state(now: Now, columns: u16, lines: u16) -> TopState {
    let mut state = TopState::new(columns, lines, Palette { has_colour: true });
    state.at_ms = now.at_ms;
    state.seen = SeenView::Now(Box::new(now));
    state.list_rows();
    state
}
