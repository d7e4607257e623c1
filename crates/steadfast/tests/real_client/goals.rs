//! A durable goal in the real client, from start to end.

use crate::model::ScriptedModel;
use crate::reply::{Reply, Usage};
use crate::request::Kind;
use crate::with_steadfast::{client, event_kinds, goal, steadfast};

const PRINT: &[&str] = &["--allowedTools", "Bash"];

#[test]
fn a_goal_started_by_slash_command_goes_on_until_the_breaker() {
    let model =
        ScriptedModel::start(|request| Reply::text(format!("Answer {}.", request.seq)).usage(Usage::new(10, 2, 3, 4)));
    let client = client(&model);

    let output = client.print(
        PRINT,
        "/steadfast:goal-start \"The file done.txt exists\" --budget standard",
    );

    model.check_script();
    assert!(output.status.success(), "{output:?}");
    // One turn of the user and three continuations without a tool call, then the breaker.
    let requests = model.requests_of(Kind::Main);
    assert_eq!(
        requests.len(),
        4,
        "{:#?}",
        requests.iter().map(|r| r.summary()).collect::<Vec<_>>()
    );
    assert!(requests[0].all_text().contains("The file done.txt exists"));
    assert!(
        requests[1]
            .last_user_text()
            .contains("The goal of this session is not finished")
    );
    let goal = goal(&client);
    assert_eq!(goal["status"], "paused");
    assert_eq!(goal["paused_reason"], "no_progress");
    assert_eq!(goal["total_tokens"], 4 * 15, "{goal:#}");
    println!(
        "{:?} {}",
        event_kinds(&client),
        steadfast(
            &client,
            &["goal", "status", "--session", goal["session_id"].as_str().unwrap()]
        )
        .1
    );
}
