//! The client's list of tasks.

use super::*;
use crate::memory::{Task, TaskChange, TaskStatus};

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
fn finished_tasks_go_before_open_ones_and_old_before_new() {
    use TaskStatus::{Completed, Pending};
    let mut world = World::new();
    for number in 0..350_i64 {
        let status = if number % 10 == 0 { Completed } else { Pending };
        world.tasks_change(vec![put(&number.to_string(), Some("t"), Some(status))], START + number);
    }
    let kept: Vec<i64> = world.tasks().iter().map(|task| task.id.parse().unwrap()).collect();
    let open: Vec<i64> = (0..350).filter(|number| number % 10 != 0).collect();
    assert_eq!(kept, open[open.len() - 300..], "35 finished ones went, then the 15 oldest");
}

#[test]
fn a_huge_list_is_bounded() {
    let mut world = World::new();
    let long = "目".repeat(2_000);
    let list: Vec<(&str, TaskStatus)> = (0..5_000).map(|_| (long.as_str(), TaskStatus::Pending)).collect();
    world.tasks_change(vec![replace(&list)], START);
    assert_eq!(world.tasks().len(), 300);
    assert!(world.tasks().iter().all(|task| task.subject.chars().count() == 500));
}
