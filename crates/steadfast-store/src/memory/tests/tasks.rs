//! The client's list of tasks.

use super::*;
use steadfast_model::memory::{Task, TaskChange, TaskStatus};

fn put(id: &str, subject: Option<&str>, status: Option<TaskStatus>) -> TaskChange {
    TaskChange::Put { id: id.into(), subject: subject.map(str::to_owned), status }
}

fn replace(tasks: &[(&str, TaskStatus)]) -> TaskChange {
    TaskChange::Replace(tasks.iter().map(|(subject, status)| ((*subject).to_owned(), *status)).collect())
}

fn task(id: &str, subject: &str, status: TaskStatus) -> Task {
    Task { id: id.into(), subject: subject.into(), status }
}

impl World {
    fn tasks_change(&mut self, tasks: Vec<TaskChange>, now: Millis) {
        let found = Findings { tasks, ..Findings::default() };
        self.store.write(|db| db.remember(SESSION, &found, now)).unwrap();
    }

    fn tasks(&self) -> Vec<Task> {
        self.store.read().tasks_of(SESSION).unwrap()
    }
}

#[test]
fn what_a_change_does_not_say_stays() {
    use TaskStatus::{Completed, Deleted, InProgress, Pending};
    let mut world = World::new();
    world.tasks_change(vec![put("7", Some("parse"), None), put("3", Some("print"), Some(Pending))], START);
    world.tasks_change(vec![put("7", None, Some(InProgress))], START + 1);
    world.tasks_change(vec![put("9", None, Some(Completed))], START + 2);
    world.tasks_change(vec![put("3", Some("print all"), None), put("4", Some("x"), Some(Deleted))], START + 3);
    assert_eq!(
        world.tasks(),
        [task("7", "parse", InProgress), task("3", "print all", Pending), task("9", "", Completed)]
    );
    world.tasks_change(vec![put("4", None, Some(Pending))], START + 4);
    assert_eq!(world.tasks().pop(), Some(task("4", "x", Pending)), "a deleted task may come back");
}

#[test]
fn a_list_replaces_the_list_before_and_nothing_else() {
    use TaskStatus::{Completed, InProgress, Pending};
    let mut world = World::new();
    world.tasks_change(vec![put("a", Some("own"), None)], START);
    world.tasks_change(vec![replace(&[("one", Pending), ("two", Pending), ("three", Pending)])], START + 1);
    world.tasks_change(vec![replace(&[("one", Completed), ("four", InProgress)])], START + 2);
    let expected = [task("a", "own", Pending), task("list-1", "one", Completed), task("list-2", "four", InProgress)];
    assert_eq!(world.tasks(), expected);
    world.tasks_change(vec![put("list-2", None, Some(Completed)), put("b", Some("later"), None)], START + 3);
    world.tasks_change(vec![replace(&[])], START + 4);
    assert_eq!(world.tasks(), [task("a", "own", Pending), task("b", "later", Pending)]);
}

#[test]
fn finished_tasks_go_and_open_ones_stay() {
    use TaskStatus::{Completed, Pending};
    let mut world = World::new();
    let changes = (0..350_i64).map(|number| {
        let status = if number % 10 == 0 { Completed } else { Pending };
        put(&number.to_string(), Some("t"), Some(status))
    });
    world.tasks_change(changes.collect(), START);
    let kept: Vec<i64> = world.tasks().iter().map(|task| task.id.parse().unwrap()).collect();
    assert_eq!(kept, (0..350).filter(|number| number % 10 != 0).collect::<Vec<_>>(), "all 35 finished ones went");
    assert_eq!(world.remembered(), []);

    let mut world = World::new();
    for number in 0..320_i64 {
        let status = if number % 2 == 0 { Completed } else { Pending };
        world.tasks_change(vec![put(&number.to_string(), Some("t"), Some(status))], START + number);
    }
    let kept: Vec<i64> = world.tasks().iter().map(|task| task.id.parse().unwrap()).collect();
    let newest = (0..320).filter(|number| number % 2 != 0 || *number >= 40);
    assert_eq!(kept, newest.collect::<Vec<_>>(), "the oldest 20 of the finished ones went");
}

#[test]
fn open_tasks_beyond_all_measure_are_told_in_number() {
    let mut world = World::new();
    let long = "目".repeat(2_000);
    let list: Vec<(&str, TaskStatus)> = (0..2_500).map(|_| (long.as_str(), TaskStatus::Pending)).collect();
    world.tasks_change(vec![replace(&list)], START);
    assert_eq!(world.tasks().len(), 2_000);
    assert!(world.tasks().iter().all(|task| task.subject.chars().count() == 500));
    world.tasks_change(vec![put("one more", Some("x"), None)], START + 1);
    let told: Vec<(String, i64)> = world.remembered().into_iter().map(|event| (event.kind, event.repeats)).collect();
    assert_eq!(told, [("left_out".into(), 501)]);
    assert_eq!(world.store.read().tasks_left_out(SESSION).unwrap(), 501);
    let known = world.store.read().session_memory(SESSION, Host::Claude, None).unwrap();
    let told = steadfast_memory::snapshot::render(
        &known,
        Host::Claude.capabilities().start_cap,
        &steadfast_memory::snapshot::Framing::after(steadfast_memory::snapshot::After::Resume),
    );
    assert!(told.contains("<task_state count=\"2501\">"), "{told}");
}

#[test]
fn a_change_that_was_announced_and_then_told_is_one_event() {
    let mut world = World::new();
    let event = |kind, id: &str, text: &str| finding(Category::Task, kind, Importance::Normal, id, text);
    for (kind, id, text) in [
        ("pending", "1", "task 1: parse"),
        ("pending", "2", "task 2: print"),
        ("pending", "1", "task 1: parse"),
        ("pending", "2", "task 2: print"),
        ("completed", "1", "task 1: parse"),
        ("completed", "1", "task 1"),
        ("pending", "1", "task 1"),
    ] {
        world.remember(vec![event(kind, id, text)]);
    }
    let kept: Vec<(String, String, i64)> =
        world.remembered().into_iter().map(|event| (event.kind, event.text, event.repeats)).collect();
    let expected = [
        ("pending", "task 1: parse"),
        ("pending", "task 2: print"),
        ("completed", "task 1: parse"),
        ("pending", "task 1"),
    ];
    assert_eq!(kept, expected.map(|(kind, text)| (kind.into(), text.into(), 1)));
}
