//! Desktop notifications. The texts are arguments, never parts of a script, and a missing desktop is no error.

use std::path::Path;
use std::time::Duration;

use crate::process::LimitedCommand;

const LIMIT: Duration = Duration::from_secs(5);

/// Shows a notification with the first program that can.
pub fn desktop(title: &str, body: &str) {
    for (program, arguments) in commands(title, body) {
        let shown = LimitedCommand::new(program, Path::new("/"), LIMIT).args(arguments).run();
        if shown.is_ok_and(|outcome| outcome.exit_code == Some(0)) {
            return;
        }
    }
}

fn commands<'a>(title: &'a str, body: &'a str) -> [(&'static str, Vec<&'a str>); 2] {
    let show = "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run";
    [("notify-send", vec!["--app-name=Steadfast", "--", title, body]), ("osascript", vec!["-e", show, title, body])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_arguments_and_never_parts_of_a_script() {
        let hostile = "\" & do shell script \"id";
        for (_, arguments) in commands("-t $(id)", hostile) {
            assert_eq!(arguments[arguments.len() - 2..], ["-t $(id)", hostile]);
            assert!(arguments[..arguments.len() - 2].iter().all(|word| !word.contains("do shell script")));
        }
    }
}
