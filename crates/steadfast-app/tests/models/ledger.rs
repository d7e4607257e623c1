//! The ledger: responses that are read in any order, again, in part and from forks are charged once, to the goal that
//! was active when they were given.

use std::collections::BTreeMap;
use std::path::PathBuf;

use proptest::prelude::*;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};
use steadfast_model::goal::Goal;
use steadfast_model::goal::budget::Budget;
use steadfast_model::goal::change::Span;
use steadfast_model::goal::turn::Charge;
use steadfast_model::host::Host;
use steadfast_model::reading::{Reading, Response, Tokens};
use steadfast_store::testing::{START, USER, World, new_goal};
use steadfast_store::{Source, Store};

const SECOND: i64 = 1_000;
/// The second one is a fork of the first: its file begins with copies of the same responses.
const SESSIONS: [&str; 2] = ["parent", "fork"];

#[derive(Debug, Clone)]
enum LedgerStep {
    /// The goal of a session starts or stops to claim what its session uses.
    Claim {
        session: usize,
        open: bool,
    },
    /// A file of a session shows responses: id, output tokens so far, how many seconds ago it began.
    Read {
        session: usize,
        agent: bool,
        responses: Vec<(u8, i64, i64)>,
    },
    /// The file is read once more from its start.
    ReadAgain,
    Reopen,
}

/// The spans of one session's goal: from, to.
type Spans = Vec<(i64, Option<i64>)>;

/// Id, output tokens, and when it was given.
type Seen = (u8, i64, i64);

#[derive(Debug, Clone, Default)]
struct LedgerModel {
    now: i64,
    spans: [Spans; 2],
    /// By id: the goal that pays for it, and its largest record.
    known: BTreeMap<u8, (Option<usize>, i64)>,
    last: Option<(usize, bool, Vec<Seen>)>,
}

impl LedgerModel {
    fn is_open(&self, session: usize) -> bool {
        self.spans[session].last().is_some_and(|(_, to)| to.is_none())
    }

    fn payer(&self, session: usize, at: i64) -> Option<usize> {
        let holds = |(from, to): &(i64, Option<i64>)| *from <= at && to.is_none_or(|to| at < to);
        self.spans[session].iter().any(holds).then_some(session)
    }

    fn read(&mut self, session: usize, responses: &[Seen]) {
        // Of several lines of a response, the largest counts, at the time of the first.
        let mut lines: BTreeMap<u8, (i64, i64)> = BTreeMap::new();
        for (id, output, at) in responses {
            let line = lines.entry(*id).or_insert((*output, *at));
            if *output >= line.0 {
                *line = (*output, line.1.min(*at));
            }
        }
        for (id, (output, at)) in lines {
            let payer = self.payer(session, at);
            let known = self.known.entry(id).or_insert((payer, 0));
            known.1 = known.1.max(output);
        }
    }

    fn total(&self, goal: usize) -> i64 {
        self.known.values().filter(|(payer, _)| *payer == Some(goal)).map(|(_, output)| output).sum()
    }
}

impl ReferenceStateMachine for LedgerModel {
    type State = Self;
    type Transition = LedgerStep;

    fn init_state() -> BoxedStrategy<Self> {
        Just(Self { now: START, ..Self::default() }).boxed()
    }

    fn transitions(_state: &Self) -> BoxedStrategy<LedgerStep> {
        let responses = prop::collection::vec((0..12_u8, 1..50_i64, 0..20_i64), 1..5);
        prop_oneof![
            2 => (0..2_usize, any::<bool>()).prop_map(|(session, open)| LedgerStep::Claim { session, open }),
            5 => (0..2_usize, any::<bool>(), responses)
                .prop_map(|(session, agent, responses)| LedgerStep::Read { session, agent, responses }),
            1 => Just(LedgerStep::ReadAgain),
            1 => Just(LedgerStep::Reopen),
        ]
        .boxed()
    }

    fn apply(mut state: Self, step: &LedgerStep) -> Self {
        state.now += 5 * SECOND;
        match step {
            LedgerStep::Claim { session, open } => {
                if *open && !state.is_open(*session) {
                    let now = state.now;
                    // A span that begins where another began replaces it.
                    state.spans[*session].push((now, None));
                } else if !*open && state.is_open(*session) {
                    let now = state.now;
                    state.spans[*session].last_mut().expect("an open span").1 = Some(now);
                }
            }
            LedgerStep::Read { session, agent, responses } => {
                let responses = moments(responses, state.now);
                state.read(*session, &responses);
                state.last = Some((*session, *agent, responses));
            }
            LedgerStep::ReadAgain => {
                if let Some((session, _, responses)) = state.last.clone() {
                    state.read(session, &responses);
                }
            }
            LedgerStep::Reopen => {}
        }
        state
    }
}

fn moments(responses: &[(u8, i64, i64)], now: i64) -> Vec<Seen> {
    responses.iter().map(|(id, output, ago)| (*id, *output, now - ago * SECOND)).collect()
}

struct LedgerTest {
    world: World,
    goals: [Goal; 2],
    charged: [i64; 2],
}

impl LedgerTest {
    fn path(session: usize, agent: bool) -> PathBuf {
        PathBuf::from(format!("/sessions/{}{}.jsonl", SESSIONS[session], if agent { "-agent" } else { "" }))
    }

    fn read(&mut self, session: usize, agent: bool, responses: &[Seen], now: i64) -> i64 {
        let path = Self::path(session, agent);
        let agent_id = if agent { "a" } else { "" };
        let source =
            Source { host: Host::Claude, session_id: SESSIONS[session], agent_id, agent_type: "", path: &path };
        let mut reading = Reading::default();
        for (id, output, at) in responses {
            reading.add(response(*id, *output, *at));
        }
        let recorded = self.world.store.write(|db| db.record(source, &reading, None, now)).expect("a reading");
        let mut sum = 0;
        for (goal_id, charge) in recorded.charges {
            let goal = self.goals.iter().position(|goal| goal.goal_id == goal_id).expect("one of the goals");
            let Charge { worker_tokens, subagent_tokens, .. } = charge;
            self.charged[goal] += worker_tokens + subagent_tokens;
            sum += worker_tokens + subagent_tokens;
        }
        sum
    }
}

fn response(id: u8, output: i64, at_ms: i64) -> Response {
    let tokens = Tokens { output, ..Tokens::default() };
    Response { id: format!("m{id}"), model: "claude-opus-4-8".into(), tokens, at_ms, ..Response::default() }
}

impl StateMachineTest for LedgerTest {
    type SystemUnderTest = Self;
    type Reference = LedgerModel;

    fn init_test(_model: &LedgerModel) -> Self {
        let mut world = World::new();
        let goals = SESSIONS.map(|session| {
            let goal = Goal::start(new_goal(Budget::default()), session, Host::Claude, None, START);
            let started = world.store.write(|db| {
                let goal = db.start_goal(&goal, None, USER)?;
                db.move_span(&goal, Span::Close, START)?;
                Ok::<_, steadfast_store::StoreError>(goal)
            });
            started.expect("a goal")
        });
        Self { world, goals, charged: [0, 0] }
    }

    fn apply(mut test: Self, model: &LedgerModel, step: LedgerStep) -> Self {
        match step {
            LedgerStep::Claim { session, open } => {
                let span = if open { Span::Open } else { Span::Close };
                let goal = test.goals[session].clone();
                test.world.store.write(|db| db.move_span(&goal, span, model.now)).expect("a span");
            }
            LedgerStep::Read { session, agent, responses } => {
                test.read(session, agent, &moments(&responses, model.now), model.now);
            }
            LedgerStep::ReadAgain => {
                if let Some((session, agent, responses)) = &model.last {
                    let charged = test.read(*session, *agent, responses, model.now);
                    assert_eq!(charged, 0, "what is known is not charged again");
                }
            }
            LedgerStep::Reopen => {
                test.world.store = Store::open(test.world.store.path()).expect("the same store");
            }
        }
        test
    }

    fn check_invariants(test: &Self, model: &LedgerModel) {
        assert_eq!(test.charged, [model.total(0), model.total(1)], "{:?}", model.known);
    }
}

prop_state_machine! {
    #![proptest_config(super::cases(48))]

    #[test]
    fn a_response_is_charged_once_to_the_goal_of_its_moment(sequential 1..30 => LedgerTest);
}
