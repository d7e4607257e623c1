//! Files that an agent or its supervisor leaves in the folder of an attempt. The agent can write there, too.

use steadfast_engine::attempt::{Attempt, AttemptState, RunKey};
use steadfast_engine::testing;

use crate::scratch;

/// The records of a supervisor: `exit.json`, `pid` and `escaped.json`.
pub(crate) fn attempt(data: &[u8]) {
    let mut parts = scratch::parts(data);
    let mut directory = None;
    for name in ["exit.json", "pid", "escaped.json", "spec.json"] {
        let path = scratch::file(&format!("attempt/{name}"), parts.next().unwrap_or_default());
        directory = path.parent().map(ToOwned::to_owned);
    }
    let attempt = Attempt::in_directory(directory.expect("the directory of the files"));
    // A missing record is a case of its own.
    for (name, is_there) in [("exit.json", data.first()), ("pid", data.last())] {
        if is_there == Some(&b'-') {
            fs_err::remove_file(attempt.directory().join(name)).expect("it was just written");
        }
    }
    let sealed = attempt.clone().with_key(Some(RunKey::new("0123456789abcdef")));
    if let Ok(AttemptState::Ended(exit)) = sealed.inspect() {
        panic!("a record without a seal was believed: {exit:?}");
    }
    let first = attempt.inspect().ok();
    if let Some(AttemptState::Ended(exit)) = &first {
        let stored = serde_json::to_string(exit).expect("an exit is JSON");
        assert_eq!(serde_json::from_str(&stored).ok().as_ref(), Some(exit));
    }
}

/// What an agent says about its iteration: a result file, a status file, its last words.
pub(crate) fn agent_result(data: &[u8]) {
    let mut parts = scratch::parts(data);
    let file = scratch::file("result.json", parts.next().unwrap_or_default());
    let status = scratch::file("status.json", parts.next().unwrap_or_default());
    let answer = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    testing::check_result(&file, &status, &answer);
}
