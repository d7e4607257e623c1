//! Writing is on the way of every hook, so it must not get slower with what is stored: each statement finds its rows
//! through an index, and none sorts.

use super::*;

fn plan(world: &World, sql: &str) -> Vec<String> {
    let mut statement = world.store.db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let mut rows = statement.raw_query();
    let mut steps = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        steps.push(row.get("detail").unwrap());
    }
    steps
}

#[test]
fn every_statement_of_a_hook_searches_an_index() {
    let world = World::new();
    for sql in [
        COUNT_REPETITION,
        NEWEST_OF_TASK,
        evict::COUNT,
        evict::NEWEST_OF_CATEGORY,
        evict::NEWEST_UNRESOLVED,
        evict::DROP,
        super::super::fixes::FAILING,
        super::super::fixes::RESOLVE,
        super::super::fixes::STEPS,
    ] {
        let plan = plan(&world, sql);
        assert!(!plan.is_empty(), "{sql}");
        for step in &plan {
            let fine = step.starts_with("SEARCH ") || step.contains("SUBQUERY");
            assert!(fine, "{step} in {plan:#?} of {sql}");
        }
    }
    let dropping = plan(&world, evict::DROP);
    assert!(dropping.iter().any(|step| step.contains("idx_session_events_eviction (session_id=?)")), "{dropping:?}");
}
