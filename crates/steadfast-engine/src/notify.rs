//! A word on the desktop when a run ended while nobody was looking. The texts are arguments, never parts of a script,
//! and a desktop that is not there is no failure.

use std::path::Path;
use std::time::Duration;

use crate::process;

const LIMIT: Duration = Duration::from_secs(5);

/// Shows a notification, if the system has a way to.
pub fn desktop(title: &str, body: &str) {
    for argv in commands(title, body) {
        let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
        // Not there, or no desktop to show it on.
        if process::run(&argv, Path::new("/"), LIMIT).is_ok_and(|outcome| outcome.exit_code == Some(0)) {
            return;
        }
    }
}

fn commands(title: &str, body: &str) -> [Vec<String>; 2] {
    let show = "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run";
    [
        ["notify-send", "--app-name=Steadfast", "--", title, body].map(str::to_owned).to_vec(),
        ["osascript", "-e", show, title, body].map(str::to_owned).to_vec(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_arguments_and_never_parts_of_a_script() {
        let hostile = "\" & do shell script \"id";
        for argv in commands("-t $(id)", hostile) {
            assert_eq!(argv[argv.len() - 2..], ["-t $(id)".to_owned(), hostile.to_owned()]);
            assert!(argv[..argv.len() - 2].iter().all(|word| !word.contains("do shell script")));
        }
    }
}
