//! Messages to commands and webhooks: signed, tried again, in order, once, and never in the way of a hook.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::os::unix::fs::PermissionsExt as _;
use std::process::Child;

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;
use steadfast_model::text;

use crate::attempts::eventually;
use crate::env::Env;
use crate::receiver::{Answer, Receiver, Request};

/// Later than `__deliver` lingers.
const NEVER: &str = "back_off_ms = 10_000_000";

struct Notified(Env);

impl Notified {
    fn new(config: &str) -> Self {
        let notified = Self(Env::new());
        notified.configure(config);
        notified.0.hook("s1", &json!({"hook_event_name": "SessionStart", "source": "startup"}));
        notified
    }

    fn configure(&self, config: &str) {
        fs_err::create_dir_all(self.0.home()).unwrap();
        let text = format!("[notify]\ndesktop = false\n{config}\n");
        fs_err::write(self.0.home().join("config.toml"), text).unwrap();
    }

    fn add(&self, titles: &[&str]) {
        for title in titles {
            self.0.execute(&format!(
                "INSERT INTO outbox (kind, subject_id, title, body, created_at_ms) VALUES ('blocked', 'g', '{title}', 'b', 1)"
            ));
        }
    }

    fn start(&self) -> Child {
        let (home, store) = (self.0.home(), self.0.store());
        let arguments = ["__deliver", home.to_str().unwrap(), store.to_str().unwrap()];
        self.0.command(&arguments).spawn().unwrap()
    }

    /// Delivers until nothing is due.
    fn deliver(&self) {
        assert!(self.start().wait().unwrap().success());
    }

    /// The deliveries as (tries, whether it is over, error).
    fn deliveries(&self) -> Vec<Vec<String>> {
        self.0.sql("SELECT tries, done_at_ms IS NOT NULL, error FROM deliveries ORDER BY outbox_id, channel")
    }

    /// Waits until the only delivery is that.
    fn wait_for(&self, delivery: [&str; 3]) {
        eventually(|| (self.deliveries() == [delivery]).then_some(()));
    }

    fn log(&self) -> String {
        fs_err::read_to_string(self.0.home().join("log/hooks.log")).unwrap_or_default()
    }
}

fn titles(requests: &[Request]) -> Vec<String> {
    requests.iter().map(|request| request.json()["title"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_webhook_is_signed_and_tried_again_in_order_until_it_is_accepted() {
    let broken = Answer::Status("500 Broken");
    let receiver = Receiver::new([broken.clone(), broken]);
    let config = format!("webhook = '{}'\nwebhook_secret = 'geheim'\nback_off_ms = 5", receiver.url);
    let notified = Notified::new(&config);
    notified.add(&["first", "second"]);
    notified.deliver();
    let requests = receiver.requests();
    assert_eq!(titles(&requests), ["first", "first", "first", "second"]);
    assert_eq!(notified.deliveries(), [["3", "1", "NULL"], ["1", "1", "NULL"]]);
    for request in &requests {
        let mut mac = Hmac::<Sha256>::new_from_slice(b"geheim").unwrap();
        mac.update(request.body.as_bytes());
        let expected = format!("sha256={}", text::hex(&mac.finalize().into_bytes()));
        assert_eq!(request.header("X-Steadfast-Signature"), Some(&*expected));
        assert_eq!(request.header("X-Steadfast-Id"), request.json()["id"].as_str());
        assert!(request.header("X-Steadfast-Timestamp").unwrap().parse::<u64>().unwrap() > 1_700_000_000);
        assert!(request.head.starts_with("POST /token-123 HTTP/1.1\r\n"), "{request:?}");
    }
    assert_eq!(requests[0].body, requests[2].body);
    assert_ne!(requests[2].header("X-Steadfast-Id"), requests[3].header("X-Steadfast-Id"));
    let expected = json!({"id": "g-1", "kind": "blocked", "subject_id": "g", "title": "first", "body": "b",
                          "text": "first\nb", "created_at": "1970-01-01T00:00:00Z"});
    assert_eq!(requests[0].json(), expected);
}

#[test]
fn a_hook_does_not_wait_for_a_webhook() {
    let receiver = Receiver::new([Answer::Held]);
    let notified = Notified::new(&format!("webhook = '{}'\n{NEVER}", receiver.url));
    notified.0.start(&["x", "--budget", "100"]);
    notified.0.says("s1", "m1", "one", 150);
    notified.0.stop("s1", "x", true);
    // Had the hook waited, this try would have timed out before it is answered.
    receiver.wait_for(1);
    receiver.release();
    notified.wait_for(["1", "1", "NULL"]);
    let message = receiver.requests()[0].json();
    assert_eq!((&message["kind"], &message["title"]), (&json!("limit"), &json!("Goal stopped: its budget is spent")));
    assert_eq!(message["body"], "x\nsteadfast goal extend --add-tokens N --session s1");
}

#[test]
fn many_deliverers_at_once_deliver_each_message_once_and_in_order() {
    let receiver = Receiver::new([]);
    let notified = Notified::new(&format!("webhook = '{}'\n{NEVER}", receiver.url));
    let names = ["a", "b", "c", "d", "e"];
    notified.add(&names);
    let deliverers: Vec<Child> = (0..6).map(|_| notified.start()).collect();
    for mut deliverer in deliverers {
        assert!(deliverer.wait().unwrap().success());
    }
    assert_eq!(titles(&receiver.requests()), names);
}

#[test]
fn what_a_killed_deliverer_had_under_way_is_delivered_again_with_the_same_id() {
    let receiver = Receiver::new([Answer::Held]);
    let notified = Notified::new(&format!("webhook = '{}'\n{NEVER}", receiver.url));
    notified.add(&["first"]);
    let mut killed = notified.start();
    receiver.wait_for(1);
    killed.kill().unwrap();
    killed.wait().unwrap();
    receiver.release();
    assert_eq!(notified.deliveries(), [["1", "0", "NULL"]]);
    // The time that the killed process had is over.
    notified.0.execute("UPDATE deliveries SET due_ms = 0");
    notified.deliver();
    notified.deliver();
    let requests = receiver.requests();
    assert_eq!(titles(&requests), ["first", "first"]);
    assert_eq!(requests[0].header("X-Steadfast-Id"), requests[1].header("X-Steadfast-Id"));
    assert_eq!(notified.deliveries(), [["2", "1", "NULL"]]);
}

#[test]
fn messages_wait_for_the_end_of_the_quiet_hours() {
    let receiver = Receiver::new([]);
    let webhook = format!("webhook = '{}'\n{NEVER}", receiver.url);
    let hour =
        |hours: i64| (jiff::Timestamp::now() + jiff::SignedDuration::from_hours(hours)).strftime("%H:%M").to_string();
    let notified = Notified::new(&format!("{webhook}\nquiet_hours = '{}-{}'", hour(-1), hour(1)));
    notified.add(&["at night"]);
    notified.deliver();
    assert_eq!(notified.deliveries(), [["0", "0", "NULL"]]);
    notified.configure(&format!("{webhook}\nquiet_hours = '{}-{}'", hour(2), hour(4)));
    notified.deliver();
    assert_eq!(titles(&receiver.requests()), ["at night"]);
}

#[test]
fn a_receiver_that_refuses_or_redirects_is_given_up_at_once() {
    let other = Receiver::new([]);
    let moved: &'static str = Box::leak(format!("307 Moved\r\nLocation: {}", other.url).into_boxed_str());
    let receiver = Receiver::new([Answer::Status("404 Not Found"), Answer::Status(moved)]);
    let notified = Notified::new(&format!("webhook = '{}'\nback_off_ms = 1", receiver.url));
    notified.add(&["first", "second", "third"]);
    notified.deliver();
    assert_eq!(titles(&receiver.requests()), ["first", "second", "third"]);
    assert!(other.requests().is_empty(), "a redirect is not followed");
    let (log, rows) = (notified.log(), notified.deliveries());
    assert!(log.contains("notify webhook: given up at try 1: the webhook answered 404"), "{log}");
    assert_eq!(rows[0], ["1", "1", "the webhook answered 404 Not Found"]);
    assert_eq!(rows[2], ["1", "1", "NULL"]);
}

#[test]
fn an_address_that_does_not_answer_is_given_up_after_five_tries() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let notified = Notified::new(&format!("webhook = 'http://{closed}/token-123'\nback_off_ms = 1"));
    notified.add(&["first"]);
    notified.deliver();
    let rows = notified.deliveries();
    assert_eq!(rows[0][..2], ["5", "1"]);
    assert!(!rows[0][2].contains("token-123") && !notified.log().contains("token-123"), "{rows:?}");
}

#[test]
fn a_message_is_not_sent_without_its_secret() {
    let receiver = Receiver::new([]);
    let secret = "webhook_secret_env = 'NO_SUCH_SECRET'";
    let notified = Notified::new(&format!("webhook = '{}'\n{secret}\n{NEVER}", receiver.url));
    notified.add(&["first"]);
    notified.deliver();
    assert!(receiver.requests().is_empty());
    let error = "the variable NO_SUCH_SECRET of webhook_secret_env is not set";
    assert_eq!(notified.deliveries(), [["1", "0", error]]);
    let checks = notified.0.run(&["doctor", "--json"]).json()["checks"].clone();
    let check = checks.as_array().unwrap().iter().find(|check| check["id"] == "notify_webhook").unwrap();
    assert_eq!((&check["status"], &check["detail"]), (&json!("warn"), &json!(error)));
}

#[test]
fn only_the_chosen_events_are_delivered() {
    let receiver = Receiver::new([]);
    let notified = Notified::new(&format!("webhook = '{}'\nevents = ['complete']\n{NEVER}", receiver.url));
    notified.add(&["not wanted"]);
    notified.0.execute(
        "INSERT INTO outbox (kind, subject_id, title, body, created_at_ms) VALUES ('complete', 'g', 'wanted', 'b', 1)",
    );
    notified.deliver();
    assert_eq!(titles(&receiver.requests()), ["wanted"]);
}

/// A program that keeps what it gets.
fn recorder(env: &Env) -> String {
    let program = env.path("record");
    let script = format!(
        "#!/bin/sh\ncat > '{0}/stdin'\nprintf '%s' \"$STEADFAST_KIND|$STEADFAST_TITLE|$STEADFAST_BODY\" > '{0}/variables'\n\
         printf '%s' \"$*\" > '{0}/arguments'\n",
        env.path("").display()
    );
    fs_err::write(&program, script).unwrap();
    fs_err::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    program.to_str().unwrap().to_owned()
}

#[test]
fn hostile_text_stays_data_for_a_command() {
    let notified = Notified::new("");
    let program = recorder(&notified.0);
    notified.configure(&format!("command = ['{program}', '$(touch pwned)', 'a b']\n{NEVER}"));
    let mut objective =
        format!("'; touch {}; \"`id`\" \\ \u{1b}]0;x\u{7}\u{202e}\t", notified.0.path("pwned").display());
    objective.push_str("\nsecond line ");
    objective.extend(std::iter::repeat_n('x', 4_000 - objective.chars().count()));
    notified.0.start(&[&objective, "--budget", "100"]);
    notified.0.says("s1", "m1", "one", 150);
    notified.0.stop("s1", "x", true);
    notified.wait_for(["1", "1", "NULL"]);
    let kept = |name| fs_err::read_to_string(notified.0.path(name)).unwrap();
    let message: Value = serde_json::from_str(&kept("stdin")).unwrap();
    let body = message["body"].as_str().unwrap();
    assert!(body.starts_with("'; touch /") && body.chars().count() < 300, "{body:?}");
    assert!(body.chars().all(|c| c == '\n' || !c.is_control()), "{body:?}");
    assert_eq!(kept("variables"), format!("limit|Goal stopped: its budget is spent|{body}"));
    assert_eq!(kept("arguments"), "$(touch pwned) a b");
    assert!(!notified.0.path("pwned").exists());
}

#[test]
fn a_command_that_hangs_is_ended_at_its_limit() {
    let notified = Notified::new(&format!("command = ['sleep', '1000']\n{NEVER}"));
    notified.add(&["first"]);
    notified.deliver();
    assert_eq!(notified.deliveries(), [["1", "0", "sleep: did not end within 10 s"]]);
}

#[test]
fn a_command_that_fails_is_tried_again() {
    let notified = Notified::new("");
    let mark = notified.0.path("mark");
    let script = format!("test -e {0} || {{ touch {0}; echo not yet; exit 3; }}", mark.display());
    notified.configure(&format!("command = ['sh', '-c', '{script}']\n{NEVER}"));
    notified.add(&["first"]);
    notified.deliver();
    assert_eq!(notified.deliveries(), [["1", "0", "sh: exit code 3 not yet"]]);
    notified.0.execute("UPDATE deliveries SET due_ms = 0");
    notified.deliver();
    assert_eq!(notified.deliveries(), [["2", "1", "NULL"]]);
}
