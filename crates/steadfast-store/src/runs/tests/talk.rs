//! What people and runs say to each other, as rows.

use super::*;
use steadfast_model::run::StageStatus;

fn notes_for(engine: &Engine, attempt: &str) -> Vec<String> {
    engine.world.store.read().notes_for("run-1", id(attempt)).unwrap()
}

#[test]
fn the_next_iteration_takes_what_was_said_and_keeps_it_for_its_retries() {
    let mut engine = Engine::new(&loop_of(stage(Rule::FixedN, 3)));
    let say = |engine: &mut Engine, text: &str| {
        engine.world.store.write(|db| db.add_note("run-1", text, START)).unwrap();
    };
    say(&mut engine, "before");
    engine.send(RunEvent::Started);
    assert_eq!(notes_for(&engine, "1.1.1"), ["before"]);
    say(&mut engine, "one");
    say(&mut engine, "two");
    engine.ended("1.1.1", failure(FailureKind::Exit));
    engine.now += MINUTE;
    engine.send(RunEvent::Woke);
    // The second attempt of the first iteration takes what was said meanwhile.
    assert_eq!(notes_for(&engine, "1.1.2"), ["before", "one", "two"]);
    say(&mut engine, "last");
    engine.ok("1.1.2");
    assert_eq!(notes_for(&engine, "1.2.1"), ["last"]);
    assert_eq!(notes_for(&engine, "1.1.2"), ["before", "one", "two"]);
    say(&mut engine, "unsaid");
    assert_eq!(engine.world.store.write(|db| db.drop_notes("run-1")).unwrap(), 1);
    let all = engine.world.store.read().notes("run-1").unwrap();
    let taken: Vec<_> = all.iter().map(|note| (note.text.as_str(), note.taken_by)).collect();
    let first = Some((1, 1));
    assert_eq!(taken, [("before", first), ("one", first), ("two", first), ("last", Some((1, 2)))]);
}

fn asking() -> Plan {
    let deploy = StagePlan { name: "deploy".into(), approve: Some("Ship to users?".into()), ..stage(Rule::FixedN, 1) };
    pipeline_of(vec![stage(Rule::FixedN, 1), deploy])
}

/// Saves a step that changes the status of the second stage, as the state machine does.
fn turn(engine: &mut Engine, status: StageStatus, record: Record) {
    let row = engine.row();
    let mut run = row.run;
    run.stages[1].status = status;
    engine.save(row.version, &Step { run, records: vec![record], acts: Vec::new() }).unwrap();
    engine.now += MINUTE;
}

fn ask(engine: &mut Engine) {
    turn(engine, StageStatus::AwaitingApproval, Record::ApprovalAsked { stage: 2 });
}

fn answer(engine: &mut Engine, approved: bool) -> bool {
    let now = engine.now;
    engine.world.store.write(|db| db.answer_approval("run-1", 2, approved, Some("ok"), now)).unwrap()
}

fn take(engine: &mut Engine) -> Option<(bool, Option<String>)> {
    let now = engine.now;
    engine.world.store.write(|db| db.take_answer("run-1", 2, now)).unwrap()
}

fn messages(engine: &Engine) -> Vec<String> {
    engine.rows("SELECT title || '|' || body FROM outbox ORDER BY id")
}

#[test]
fn a_question_is_stored_once_with_its_message_and_keeps_its_answer() {
    let mut engine = Engine::new(&asking());
    assert!(!answer(&mut engine, true), "it is not asked yet");
    ask(&mut engine);
    let expected = "pipeline refine: stage deploy waits for your yes|Ship to users? · shop\n\
                    steadfast pipeline approve refine deploy (or reject)";
    assert_eq!(messages(&engine), [expected]);
    assert_eq!(take(&mut engine), None);
    assert!(answer(&mut engine, false) && answer(&mut engine, true), "it can be changed until it is taken");
    // A resumed engine asks again while the stage waits.
    ask(&mut engine);
    assert_eq!(messages(&engine).len(), 1);
    let taken = Some((true, Some("ok".to_owned())));
    assert_eq!(take(&mut engine), taken);
    assert!(!answer(&mut engine, false), "it was taken");
    ask(&mut engine);
    assert_eq!(take(&mut engine), taken, "an engine that died after it took the answer finds it again");
}

#[test]
fn a_stage_that_asks_again_gets_a_new_question() {
    let mut engine = Engine::new(&asking());
    ask(&mut engine);
    answer(&mut engine, false);
    take(&mut engine);
    let ended = Record::StageEnded { stage: 2, status: StageStatus::Failed, reason: "rejected".into() };
    turn(&mut engine, StageStatus::Failed, ended);
    let old = engine.world.store.read().approvals("run-1").unwrap();
    assert_eq!((old[0].approved, old[0].taken_at_ms.is_some()), (Some(false), true));
    ask(&mut engine);
    assert_eq!(take(&mut engine), None);
    let new = engine.world.store.read().approvals("run-1").unwrap();
    assert_eq!((new.len(), new[0].approved, new[0].note.as_deref()), (1, None, None));
    assert!(new[0].asked_at_ms > old[0].asked_at_ms);
    assert_eq!(messages(&engine).len(), 2);
}
