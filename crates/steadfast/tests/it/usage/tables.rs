//! Tables that fit the terminal, and the bars of the last days.

use super::{VIEWS, line, shapes, write};
use crate::env::{Env, Output, finish};

fn in_columns(env: &Env, arguments: &[&str], columns: &str) -> Output {
    finish(env.command(&[&["usage"], arguments].concat()).env("COLUMNS", columns), b"")
}

#[test]
fn tables_fit_the_terminal() {
    let env = Env::new();
    shapes(&env);
    for view in VIEWS {
        for columns in [30, 40, 60, 80, 120] {
            let output = in_columns(&env, &[view], &columns.to_string());
            let widest = output.succeeds().stdout.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= columns, "{view} in {columns} columns:\n{}", output.stdout);
            assert!(output.stdout.contains("Total") && output.stdout.contains("Cost"), "{output:?}");
            assert!(!output.stdout.contains('\u{1b}'), "colour without a terminal: {output:?}");
        }
    }
    let wide = in_columns(&env, &[], "");
    assert!(wide.stdout.contains("Cache write") && wide.stdout.contains("1,003"), "{wide:?}");
}

#[test]
fn the_daily_view_shows_the_last_days_as_bars() {
    let env = Env::new();
    write(&env, "-p/s.jsonl", &[line("m1", &crate::env::now(), [1_000_000, 0, 0, 0])]);
    let output = env.run(&["usage"]);
    assert!(output.stdout.contains("last 14 days  ·············█"), "{output:?}");
    assert!(!env.run(&["usage", "monthly"]).stdout.contains("last 14 days"));
}
