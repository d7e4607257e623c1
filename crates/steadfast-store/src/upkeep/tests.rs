//! What goes, what stays, and that sums do not change.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use steadfast_model::clock;
use steadfast_model::goal::Goal;
use steadfast_model::goal::budget::Budget;
use steadfast_model::goal::change;
use steadfast_model::host::Host;
use steadfast_model::limit::Spend;
use steadfast_model::reading::{Reading, Response, Tokens};
use steadfast_model::testing::{HOUR, START, new_goal};

use super::*;
use crate::testing::{USER, World};
use crate::{EventFilter, Session, Source};

const SESSIONS: [&str; 3] = ["live", "over", "none"];

fn keep(details: &RetentionConfig) -> Keep<'_> {
    Keep { details, memory_days: 30 }
}

fn short() -> RetentionConfig {
    RetentionConfig { goal_events_days: 20, ledger_days: 20, goals_days: 60, ..RetentionConfig::default() }
}

fn source(session_id: &str) -> Source<'_> {
    Source { host: Host::Claude, session_id, agent_id: "", agent_type: "", path: Path::new("/t.jsonl") }
}

impl World {
    fn start_in(&mut self, session_id: &str, now: Millis) -> Goal {
        let goal = Goal::start(new_goal(Budget::default()), session_id, Host::Claude, None, now);
        let replaced = self.store.read().goal(session_id).unwrap();
        self.store.write(|db| db.start_goal(&goal, replaced.as_ref(), USER)).unwrap()
    }

    fn abandon(&mut self, session_id: &str, now: Millis) {
        let goal = self.store.read().goal(session_id).unwrap().unwrap();
        self.store.write(|db| db.save(&goal, change::abandon(&goal, now).unwrap(), USER)).unwrap();
    }

    /// Reads a file with these responses; returns whether a goal was charged.
    fn read_file(&mut self, session_id: &str, responses: &[Response], now: Millis) -> bool {
        let mut reading = Reading::default();
        for response in responses {
            reading.add(response.clone());
        }
        let origin = USER;
        self.store
            .write(|db| {
                let charges = db.record(source(session_id), &reading, None, now)?.charges;
                let is_charged = !charges.is_empty();
                for (goal_id, charge) in charges {
                    db.charge_other_goal(&goal_id, charge, origin, now)?;
                }
                Ok::<_, StoreError>(is_charged)
            })
            .unwrap()
    }

    fn upkeep_now(&mut self, now: Millis) {
        self.store.upkeep_all(&keep(&short()), now).unwrap();
    }

    /// All numbers that are counted from the ledger.
    fn numbers(&self, now: Millis) -> Numbers {
        let db = self.store.read();
        let totals = SESSIONS.iter().filter_map(|id| db.goal(id).unwrap());
        Numbers {
            days: db.usage_by_day().unwrap(),
            today: db.spent_since(clock::day_start(now)).unwrap(),
            week: db.spent_since(clock::week_start(now)).unwrap(),
            sessions: SESSIONS.map(|id| db.spent_by_session(id).unwrap()),
            goals: totals.map(|goal| (goal.goal_id.clone(), goal.total_tokens(), goal.cost_micros)).collect(),
        }
    }
}

#[derive(Debug, PartialEq)]
struct Numbers {
    days: BTreeMap<UsageKey, UsageDay>,
    today: Spend,
    week: Spend,
    sessions: [Spend; 3],
    goals: Vec<(String, i64, i64)>,
}

fn response(number: usize, at_ms: Millis, tokens: i64, known_price: bool) -> Response {
    let model = if known_price { "claude-opus-4-5" } else { "some-model" };
    let tokens = Tokens { input: tokens, output: tokens / 2, cache_read: tokens * 3, ..Tokens::default() };
    Response { id: format!("r{number}"), model: model.into(), tokens, at_ms, ..Response::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Before and after pruning, and after all files are read again from their start, every number is the same.
    #[test]
    fn no_number_changes(
        given in prop::collection::vec((0usize..3, 0i64..100, 1i64..5_000, any::<bool>()), 1..150),
        steps in 0usize..6,
    ) {
        let mut world = World::new();
        let now = START + 100 * DAY;
        world.start_in("live", START + 5 * DAY);
        world.start_in("over", START + 5 * DAY);
        let known = Session { session_id: "none".into(), last_seen_ms: now, ..Session::default() };
        world.store.write(|db| db.put_session(&known)).unwrap();
        let mut files: [Vec<Response>; 3] = Default::default();
        for (number, (session, day, tokens, known)) in given.into_iter().enumerate() {
            files[session].push(response(number, START + day * DAY + 7, tokens, known));
        }
        for (session, file) in SESSIONS.iter().zip(&files) {
            world.read_file(session, file, now - HOUR);
        }
        world.abandon("over", START + 70 * DAY);
        let before = world.numbers(now);
        let live = "SELECT count(*) FROM responses WHERE goal_id IN (SELECT goal_id FROM goals WHERE status = 'active')";
        let of_live_goal = world.count(live);
        // Some steps, then another process continues.
        for step in 0..steps {
            world.store.upkeep(&keep(&short()), now + Millis::try_from(step).unwrap() * SOON).unwrap();
        }
        prop_assert_eq!(&before, &world.numbers(now));
        world.store = Store::open(world.store.path()).unwrap();
        world.upkeep_now(now + HOUR);
        let left = world.count("SELECT count(*) FROM responses WHERE at_ms < (SELECT before_ms FROM ledger_pruned)");
        prop_assert_eq!(&before, &world.numbers(now));
        prop_assert_eq!(of_live_goal, world.count(live), "a live goal keeps its details");
        for (session, file) in SESSIONS.iter().zip(&files) {
            let old: Vec<Response> = file.iter().filter(|old| old.at_ms < now - 30 * DAY).cloned().collect();
            prop_assert!(!world.read_file(session, &old, now), "counted again");
            world.read_file(session, file, now);
        }
        prop_assert_eq!(&before, &world.numbers(now));
        prop_assert!(left <= of_live_goal);
    }
}

#[test]
fn old_responses_are_deleted_at_all() {
    let mut world = World::new();
    let file: Vec<Response> = (0..1_000).map(|number| response(number, START + 5, 10, true)).collect();
    world.read_file("none", &file, START + 6);
    world.upkeep_now(START + 10 * DAY);
    assert_eq!(world.count("SELECT count(*) FROM responses"), 1_000);
    world.upkeep_now(START + 30 * DAY);
    world.upkeep_now(START + 32 * DAY);
    assert_eq!(world.count("SELECT count(*) FROM responses"), 0, "also those of one millisecond");
    assert_eq!(world.count("SELECT responses FROM usage_days"), 1_000);
}

#[test]
fn a_live_goal_loses_nothing_and_an_old_one_goes_in_two_steps() {
    let mut world = World::new();
    for (id, ends) in [("live", false), ("over", true)] {
        world.start_in(id, START);
        for number in 0..150 {
            let file = [response(number, START + 10, 10, true)];
            let id_of = Response { id: format!("{id}{number}"), ..file[0].clone() };
            world.read_file(id, &[id_of], START + 11 + Millis::try_from(number).unwrap());
        }
        let sql = "INSERT INTO goal_environments SELECT goal_id, '{}' FROM goals WHERE session_id = ?1";
        world.store.db.execute(sql, [id]).unwrap();
        if ends {
            world.abandon(id, START + HOUR);
        }
    }
    let replaced = world.store.read().goal("over").unwrap().unwrap();
    world.start_in("over", START + 2 * HOUR);
    world.abandon("over", START + 3 * HOUR);
    let events =
        |world: &World, id: &str| world.store.read().events(EventFilter::Session(id), usize::MAX).unwrap().len();
    let (live, over) = (events(&world, "live"), events(&world, "over"));
    assert!(live > 100 && over > 100);

    world.upkeep_now(START + 10 * DAY);
    assert_eq!((events(&world, "live"), events(&world, "over")), (live, over), "nothing is old yet");

    world.upkeep_now(START + 40 * DAY);
    assert_eq!(events(&world, "live"), live);
    let kinds: Vec<String> = world
        .store
        .read()
        .events(EventFilter::Session("over"), 99)
        .unwrap()
        .into_iter()
        .map(|event| event.kind)
        .collect();
    let expected = ["goal_created", "goal_abandoned", "goal_replaced", "goal_created", "goal_abandoned"];
    assert_eq!(kinds, expected, "what became of them");
    assert_eq!(world.store.read().replaced_goals(Some("over")).unwrap()[0].total_tokens(), replaced.total_tokens());

    world.upkeep_now(START + 80 * DAY);
    assert_eq!((events(&world, "live"), events(&world, "over")), (live, 0));
    let left = world.store.read().goals().unwrap();
    assert_eq!(left.iter().map(|goal| goal.session_id.as_str()).collect::<Vec<_>>(), ["live"]);
    for table in ["goal_history", "goal_spans WHERE session_id = 'over'", "responses WHERE session_id = 'over'"] {
        assert_eq!(world.count(&format!("SELECT count(*) FROM {table}")), 0, "{table}");
    }
    assert_eq!(world.count("SELECT count(*) FROM goal_environments"), 1);
    assert_eq!(world.count("SELECT count(*) FROM responses"), 150);
}

#[test]
fn sessions_cursors_and_notes_that_nobody_needs_go() {
    let mut world = World::new();
    world.start_in("with a goal", START);
    for id in ["with a goal", "bare", "elder", "younger"] {
        let parent = (id == "younger").then(|| "elder".to_owned());
        let session =
            Session { session_id: id.into(), ended_at_ms: Some(START), last_seen_ms: START, ..Session::default() };
        let session = Session { parent_session_id: parent, started_at_ms: START, ..session };
        world.store.write(|db| db.put_session(&session)).unwrap();
        let path = format!("/{id}.jsonl");
        let file = Source { path: Path::new(&path), ..source(id) };
        world.store.write(|db| db.record(file, &Reading::default(), None, START)).unwrap();
        world.store.write(|db| db.note_subagent(id, "a", "t", START)).unwrap();
    }
    let recent = Session { session_id: "recent".into(), last_seen_ms: START + 25 * DAY, ..Session::default() };
    world.store.write(|db| db.put_session(&recent)).unwrap();
    world.upkeep_now(START + 30 * DAY);
    let ids = |world: &World| world.count("SELECT count(*) FROM sessions");
    assert_eq!(ids(&world), 3, "the parent goes after its child");
    world.upkeep_now(START + 32 * DAY);
    let mut left: Vec<String> =
        world.store.read().known_sessions().unwrap().into_iter().map(|known| known.session_id).collect();
    left.sort();
    assert_eq!(left, ["recent", "with a goal"]);
    assert_eq!(world.count("SELECT count(*) FROM transcript_cursors"), 1);
    assert_eq!(world.count("SELECT count(*) FROM subagents"), 0);
}

#[test]
fn sums_of_sessions_that_are_gone_go_with_their_last_response() {
    let mut world = World::new();
    world.start_in("with a goal", START);
    let bare = Session { session_id: "bare".into(), last_seen_ms: START + 55 * DAY, ..Session::default() };
    world.store.write(|db| db.put_session(&bare)).unwrap();
    for (number, id) in ["with a goal", "bare", "purged", "purged late"].into_iter().enumerate() {
        let late = if id == "purged late" { START + 50 * DAY } else { START };
        let file = [response(2 * number, START, 10, true), response(2 * number + 1, late, 10, true)];
        world.read_file(id, &file, START + 50 * DAY);
    }
    world.store.db.execute("UPDATE responses SET goal_id = NULL", []).unwrap();
    world.upkeep_now(START + 60 * DAY);
    world.upkeep_now(START + 62 * DAY);
    let left = "SELECT group_concat(session_id) FROM (SELECT session_id FROM session_sums ORDER BY 1)";
    let left: String = world.store.db.query_row(left, [], |row| row.get(0)).unwrap();
    assert_eq!(left, "bare,purged late,with a goal");
    world.upkeep_now(START + 90 * DAY);
    world.upkeep_now(START + 92 * DAY);
    assert_eq!(world.count("SELECT count(*) FROM session_sums"), 1, "of the session with a goal");
}

#[test]
fn each_step_is_small_and_the_next_one_continues() {
    let mut world = World::new();
    let file: Vec<Response> =
        (0_usize..2_000).zip(START..).map(|(number, at)| response(number, at, 10, true)).collect();
    world.read_file("none", &file, START + HOUR);
    let (mut now, mut most, mut steps, mut left) = (START + 40 * DAY, 0, 0, 2_000);
    while world.store.upkeep(&keep(&short()), now).unwrap() {
        let rows = world.count("SELECT count(*) FROM responses");
        most = most.max(left - rows);
        left = rows;
        steps += 1;
        now += SOON;
    }
    assert_eq!(left, 0);
    assert!(most <= i64::try_from(SEEN).unwrap() && steps > 5, "{most} rows in one of {steps} steps");
    assert!(!world.store.upkeep(&keep(&short()), now + HOUR).unwrap(), "it rests for a day");
    assert!(world.store.upkeep(&keep(&short()), now + DAY).unwrap());
}

#[test]
fn a_busy_store_is_left_alone_and_a_wrong_clock_deletes_nothing() {
    let mut world = World::new();
    world.read_file("none", &[response(1, START, 10, true)], START);
    let mut other = Store::open(world.store.path()).unwrap();
    let done = other.write(|_| Ok::<_, StoreError>(world.store.upkeep(&keep(&short()), START + 40 * DAY)));
    assert!(!done.unwrap().unwrap(), "another process writes");
    world.store.db.execute("UPDATE clock SET aged_ms = ?1", [START + DAY]).unwrap();
    world.upkeep_now(START + 400 * DAY);
    assert_eq!(world.count("SELECT count(*) FROM responses"), 1);
    assert!(world.store.upkeep(&keep(&short()), START + 2 * DAY).unwrap(), "due again when the clock is right");
}

#[test]
fn free_pages_are_given_back() {
    let mut world = World::new();
    world.store.db.execute_batch("CREATE TABLE bulk AS SELECT zeroblob(4000000); DROP TABLE bulk").unwrap();
    assert!(world.store.free_size().unwrap() > 3_900_000);
    world.upkeep_now(START);
    assert!(world.store.free_size().unwrap() <= PAGES_KEPT * 4096);
}

#[test]
fn a_task_that_fails_does_not_stop_the_others() {
    let mut world = World::new();
    world.read_file("none", &[response(1, START, 10, true)], START);
    world.store.db.execute_batch("DROP TABLE transcript_cursors; DROP TABLE session_sums").unwrap();
    let (mut now, mut errors) = (START + 40 * DAY, 0);
    // As hooks do it, which ignore errors.
    for _ in 0..100 {
        errors += usize::from(world.store.upkeep(&keep(&short()), now).is_err());
        now += SOON;
    }
    assert_eq!(errors, 3, "all three tasks rest after they failed");
    assert_eq!(world.count("SELECT count(*) FROM upkeep WHERE task = 'pages'"), 1);
    for _ in 0..3 {
        errors += usize::from(world.store.upkeep(&keep(&short()), now + HOUR).is_err());
    }
    assert_eq!(errors, 6, "they are tried again");
}

#[test]
fn a_session_of_any_name_does_not_end_a_task_for_good() {
    let mut world = World::new();
    world
        .store
        .db
        .execute("INSERT INTO upkeep (task, position, due_at_ms) VALUES ('sessions', 'done', 0)", [])
        .unwrap();
    world.upkeep_now(START);
    assert_eq!(world.count("SELECT due_at_ms > 0 FROM upkeep WHERE task = 'sessions'"), 1);
}
