//! Events: a page hears of every change, and of nothing else.

use std::io::{BufRead as _, ErrorKind};
use std::time::Duration;

use super::{Ui, next_change};
use crate::attempts::eventually;
use crate::env::Env;
use crate::runs::World;

#[test]
fn a_change_by_another_process_reaches_the_page() {
    let env = Env::new();
    env.start(&["x"]);
    let ui = Ui::start(&env, &[]);
    let (mut one, mut other) = (ui.stream().unwrap(), ui.stream().unwrap());
    let first = next_change(&mut one);
    next_change(&mut other);
    env.goal(&["pause"]).succeeds();
    let second = next_change(&mut one);
    assert!(second > first, "{first} {second}");
    assert_eq!(next_change(&mut other), second);
}

#[test]
fn a_store_that_is_created_later_reaches_the_page() {
    let env = Env::new();
    let ui = Ui::start(&env, &[]);
    assert_eq!(ui.get("/").status, 200, "without a store there is a page that says how to begin");
    let mut stream = ui.stream().unwrap();
    next_change(&mut stream);
    env.start(&["x"]);
    next_change(&mut stream);
}

#[test]
fn looking_at_pages_changes_nothing() {
    let env = Env::new();
    env.start(&["x"]);
    let ui = Ui::start(&env, &[]);
    let mut stream = ui.stream().unwrap();
    next_change(&mut stream);
    // The stream may have been opened between two changes of the start.
    stream.get_ref().set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let mut is_quiet = || {
        let mut line = String::new();
        loop {
            match stream.read_line(&mut line) {
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return !line.contains("changed");
                }
                read => assert!(read.unwrap() > 0),
            }
        }
    };
    eventually(|| is_quiet().then_some(()));
    for path in ["/", "/usage", "/search?q=x", "/runs/none/log", "/runs/none/diff", "/now.json"] {
        ui.get(path);
    }
    assert!(is_quiet());
}

#[test]
fn the_output_of_an_agent_reaches_the_page() {
    let world = World::new();
    world.loop_type("work", "completion: fixed");
    let script =
        "cat > /dev/null; while [ ! -e go ]; do sleep 0.05; done; echo said; while [ ! -e end ]; do sleep 0.05; done";
    let agent = world.agent(script);
    let ui = Ui::start(&world.env, &[]);
    world.run(&["loop", "run", "work", "w", "--max", "1", "--agent", &agent, "--detach"]).succeeds();
    let run_id = world.status("loop", "w")["run_id"].as_str().unwrap().to_owned();
    let mut stream = ui.stream().unwrap();
    next_change(&mut stream);
    world.write(&world.in_project("go"), "");
    let said = || ui.get(&format!("/runs/{run_id}/log")).json();
    // Looks first: what was written before the look is announced only once.
    let log = eventually(|| {
        let log = said();
        if log["text"] == "said\n" {
            return Some(log);
        }
        next_change(&mut stream);
        None
    });
    assert_eq!((log["is_over"].as_bool(), log["next"].as_u64()), (Some(false), Some(5)));
    world.write(&world.in_project("end"), "");
    world.ends("loop", "w");
    let rest = ui.get(&format!("/runs/{run_id}/log?stage=1&iteration=1&from=5")).json();
    assert_eq!(
        (rest["text"].as_str(), rest["next"].as_u64(), rest["is_over"].as_bool()),
        (Some(""), Some(5), Some(true))
    );
}
