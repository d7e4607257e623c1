use steadfast_model::clock::{DAY, Millis};
use steadfast_model::goal::budget::Budget;
use steadfast_model::goal::change;
use steadfast_model::goal::proof::{Basis, Proof};
use steadfast_model::outbox::delivery::{Channel, Delivery, Ending, LEASE};
use steadfast_model::outbox::{Message, MessageKind};

use crate::Store;
use crate::testing::{START, WORKER, World};

fn finished() -> World {
    let mut world = World::new();
    let goal = world.add_goal(Budget::default(), START);
    let done = change::complete(&goal, &Proof::from_agent(&goal, &Basis::default()).unwrap(), START + 1).unwrap();
    world.store.write(|db| db.save(&goal, done, WORKER)).unwrap();
    world
}

fn add(world: &mut World, kind: MessageKind, title: &str) {
    let message = Message { kind, subject_id: "g".into(), title: title.into(), body: "b".into(), created_at_ms: START };
    world.store.write(|db| db.add_message(&message)).unwrap();
}

fn to_webhook(_: MessageKind) -> Vec<Channel> {
    vec![Channel::Webhook]
}

fn claim(store: &mut Store, now: Millis) -> Option<Delivery> {
    store.claim_delivery(Channel::Webhook, now).unwrap()
}

fn title(delivery: Option<Delivery>) -> Option<String> {
    delivery.map(|delivery| delivery.title)
}

#[test]
fn a_message_is_written_with_its_change_and_taken_once() {
    let mut world = finished();
    assert!(world.store.added_message() && world.store.has_news(START).unwrap());
    let mut other = Store::open(world.store.path()).unwrap();
    for store in [&mut other, &mut world.store] {
        store.take_messages(to_webhook, START + 2).unwrap();
    }
    assert!(!world.store.added_message());
    assert_eq!(title(claim(&mut other, START + 2)).as_deref(), Some("Goal complete (unverified)"));
    assert_eq!(claim(&mut world.store, START + 2), None);
    assert!(!world.store.has_news(START + 2).unwrap());
}

#[test]
fn a_change_that_is_rolled_back_leaves_no_message() {
    let mut world = World::new();
    let goal = world.add_goal(Budget::default(), START);
    let done = change::complete(&goal, &Proof::from_agent(&goal, &Basis::default()).unwrap(), START + 1).unwrap();
    let failed = world.store.write(|db| {
        db.save(&goal, done, WORKER)?;
        Err::<(), _>(crate::StoreError::Stale)
    });
    assert!(failed.is_err());
    assert!(!world.store.has_news(START + 2).unwrap());
}

#[test]
fn of_many_processes_one_takes_a_message_and_one_delivers_it() {
    let world = finished();
    let path = world.store.path().to_owned();
    let deliverers: Vec<_> = (0..8)
        .map(|_| {
            let path = path.clone();
            std::thread::spawn(move || {
                let mut store = Store::open(&path).unwrap();
                store.take_messages(to_webhook, START + 2).unwrap();
                usize::from(claim(&mut store, START + 2).is_some())
            })
        })
        .collect();
    assert_eq!(deliverers.into_iter().map(|deliverer| deliverer.join().unwrap()).sum::<usize>(), 1);
}

#[test]
fn a_delivery_of_a_killed_process_is_claimed_again_and_the_late_one_changes_nothing() {
    let mut world = finished();
    world.store.take_messages(to_webhook, START).unwrap();
    let killed = claim(&mut world.store, START).unwrap();
    assert_eq!(world.store.next_delivery().unwrap(), Some(START + LEASE));
    assert_eq!(claim(&mut world.store, START + LEASE - 1), None);
    let again = claim(&mut world.store, START + LEASE).unwrap();
    assert_eq!((killed.tries, again.tries, killed.id() == again.id()), (1, 2, true));
    world.store.end_delivery(&killed, &Ending::GivenUp { error: "late".into() }, START + LEASE).unwrap();
    assert!(world.store.next_delivery().unwrap().is_some());
    world.store.end_delivery(&again, &Ending::Accepted, START + LEASE).unwrap();
    assert_eq!(world.store.next_delivery().unwrap(), None);
}

#[test]
fn messages_keep_their_order_within_a_channel() {
    let mut world = World::new();
    add(&mut world, MessageKind::Blocked, "first");
    add(&mut world, MessageKind::Complete, "second");
    let both = |_| vec![Channel::Desktop, Channel::Webhook];
    world.store.take_messages(both, START).unwrap();
    let first = claim(&mut world.store, START).unwrap();
    assert_eq!(first.title, "first");
    let failed = Ending::Failed { error: "500".into(), again_at: START + 10 };
    world.store.end_delivery(&first, &failed, START).unwrap();
    assert_eq!(claim(&mut world.store, START + 9), None, "the second waits for the first");
    let desktop = world.store.claim_delivery(Channel::Desktop, START + 9).unwrap();
    assert_eq!(title(desktop).as_deref(), Some("first"), "another channel does not");
    let first = claim(&mut world.store, START + 10).unwrap();
    assert_eq!((&*first.title, first.tries), ("first", 2));
    world.store.end_delivery(&first, &Ending::GivenUp { error: "500".into() }, START + 10).unwrap();
    assert_eq!(title(claim(&mut world.store, START + 10)).as_deref(), Some("second"));
}

#[test]
fn messages_of_a_week_ago_go_with_their_deliveries() {
    let mut world = finished();
    world.store.take_messages(to_webhook, START).unwrap();
    add(&mut world, MessageKind::Blocked, "new");
    world.store.take_messages(to_webhook, START + 8 * DAY).unwrap();
    assert_eq!(title(claim(&mut world.store, START + 8 * DAY)).as_deref(), Some("new"));
}

#[test]
fn the_same_refused_completion_is_reported_once_in_a_row() {
    let mut world = World::new();
    for (kind, title) in [
        (MessageKind::Refused, "refused"),
        (MessageKind::Refused, "refused"),
        (MessageKind::Refused, "refused for something else"),
        (MessageKind::Stalled, "stalled"),
        (MessageKind::Stalled, "stalled"),
    ] {
        add(&mut world, kind, title);
    }
    world.store.take_messages(to_webhook, START).unwrap();
    let titles: Vec<String> = std::iter::from_fn(|| {
        let delivery = claim(&mut world.store, START)?;
        world.store.end_delivery(&delivery, &Ending::Accepted, START).unwrap();
        Some(delivery.title)
    })
    .collect();
    assert_eq!(titles, ["refused", "refused for something else", "stalled", "stalled"]);
}
