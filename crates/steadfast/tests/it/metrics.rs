//! `steadfast metrics`: the page for Prometheus, and metrics and traces for a collector that is slow, broken or gone.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::env::{Env, Output};
use crate::receiver::{Answer, Receiver, Request};
use crate::runs::World;

/// A goal that a person completed after one turn, and a live one.
fn story() -> Env {
    let env = Env::new();
    env.start(&["Find the hidden word SESAME", "--budget", "1000"]);
    env.says("s1", "m1", "one", 100);
    env.stop("s1", "one", false);
    env.goal(&["complete"]).succeeds();
    env.run(&["goal", "start", "Another SESAME", "--session", "s2", "--max-turns", "4"]).succeeds();
    env
}

fn export(env: &Env, collector: &Receiver, more: &[&str]) -> Output {
    env.run(&[&["metrics", "--otlp", &collector.url], more].concat())
}

fn path(request: &Request) -> &str {
    request.head.split(' ').nth(1).unwrap()
}

/// All spans of all requests, each in the shape of the JSON encoding.
fn spans(requests: &[Request]) -> Vec<Value> {
    let mut spans = Vec::new();
    for request in requests.iter().filter(|request| path(request).ends_with("/v1/traces")) {
        let body = request.json();
        let resource = &body["resourceSpans"][0];
        attributes(&resource["resource"]);
        let scope = &resource["scopeSpans"][0];
        assert_eq!(scope["scope"]["name"], "steadfast");
        spans.extend(scope["spans"].as_array().unwrap().iter().cloned());
    }
    for span in &spans {
        let is_hex = |key: &str, length: usize| {
            let id = span[key].as_str().unwrap();
            id.len() == length && id.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
        };
        assert!(is_hex("traceId", 32) && is_hex("spanId", 16), "{span:#}");
        assert!(span.get("parentSpanId").is_none() || is_hex("parentSpanId", 16), "{span:#}");
        assert!(nanos(&span["startTimeUnixNano"]) <= nanos(&span["endTimeUnixNano"]), "{span:#}");
        assert!(span["kind"].is_u64() && span["status"]["code"].is_u64() && span["name"].is_string(), "{span:#}");
        for event in span["events"].as_array().unwrap() {
            assert!(nanos(&event["timeUnixNano"]) > 0 && event["name"].is_string(), "{span:#}");
        }
        attributes(span);
    }
    spans
}

fn nanos(value: &Value) -> u64 {
    value.as_str().unwrap_or_else(|| panic!("64-bit numbers are strings: {value}")).parse().unwrap()
}

/// Checks that every attribute has exactly one value of a known type.
fn attributes(of: &Value) {
    for attribute in of["attributes"].as_array().unwrap() {
        let value = attribute["value"].as_object().unwrap();
        assert!(attribute["key"].is_string() && value.len() == 1, "{attribute}");
        let is_well_formed = match value.iter().next().unwrap() {
            (kind, value) if kind == "stringValue" => value.is_string(),
            (kind, value) if kind == "intValue" => value.as_str().is_some_and(|text| text.parse::<i64>().is_ok()),
            (kind, value) if kind == "doubleValue" => value.is_number(),
            _ => false,
        };
        assert!(is_well_formed, "{attribute}");
    }
}

fn attribute<'a>(span: &'a Value, key: &str) -> Option<&'a str> {
    let found = span["attributes"].as_array().unwrap().iter().find(|attribute| attribute["key"] == key)?;
    found["value"].as_object().unwrap().values().next().unwrap().as_str()
}

#[test]
fn the_page_is_printed_and_written_whole_or_not_at_all() {
    let env = story();
    let page = env.run(&["metrics"]).succeeds().stdout.clone();
    assert!(page.starts_with("# HELP steadfast_build_info") && page.contains("\nsteadfast_goals{"), "{page}");
    assert!(page.contains("project=\"project\"") && !page.contains("SESAME"), "{page}");
    let goal = env.run(&["goal", "status", "--session", "s2", "--json"]).json()["goal"]["goal_id"].clone();
    assert!(page.contains(&format!("goal_id=\"{}\"", goal.as_str().unwrap())), "{page}");

    let file = env.path("steadfast.prom");
    let written = env.run(&["metrics", "--out", file.to_str().unwrap()]);
    assert_eq!(written.succeeds().stdout, "");
    let text = std::fs::read_to_string(&file).unwrap();
    let names =
        |page: &str| page.lines().filter(|line| line.starts_with("# TYPE")).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(names(&text), names(&page));
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_ne!(mode & 0o040, 0, "node_exporter is another user: {mode:o}");
    // A name without a folder is in the current one.
    env.run(&["metrics", "--out", "steadfast.prom"]).succeeds();
    assert_eq!(names(&std::fs::read_to_string(env.project().join("steadfast.prom")).unwrap()), names(&page));
    let nowhere = env.path("missing/steadfast.prom");
    env.run(&["metrics", "--out", nowhere.to_str().unwrap()]).fails_with(4, "missing/steadfast.prom");

    let json = env.run(&["metrics", "--json"]).succeeds().json();
    let goals = json["metrics"].as_array().unwrap().iter().find(|metric| metric["name"] == "steadfast_goals").unwrap();
    let complete = goals["samples"]
        .as_array()
        .unwrap()
        .iter()
        .find(|sample| sample["labels"]["status"] == "complete" && sample["labels"]["host"] == "claude");
    assert_eq!(complete.unwrap()["value"], 1.0);
    Env::new().run(&["metrics"]).fails_with(4, "goals.db");

    std::fs::write(env.home().join("config.toml"), "[limits]\ndaily_tokens = 200\n").unwrap();
    env.run(&["goal", "block", "--reason", "a key", "--session", "s2"]).succeeds();
    let page = env.run(&["metrics"]).succeeds().stdout.clone();
    for line in [
        "steadfast_needs_you{reason=\"blocked\"} 1",
        "steadfast_cap_used_ratio{cap=\"daily_tokens\"} 0.5",
        "steadfast_cap_limit_tokens{cap=\"daily_tokens\"} 200",
        "steadfast_today_tokens 100",
    ] {
        assert!(page.lines().any(|found| found == line), "no {line}:\n{page}");
    }
}

#[test]
fn a_collector_gets_metrics_and_each_span_once() {
    let env = story();
    let collector = Receiver::new([]);
    let first = export(&env, &collector, &["--header", "X-Tenant=me", "--header", "Authorization=Bearer hush"]);
    assert!(first.succeeds().stdout.starts_with("sent ") && !first.stdout.contains("token-123"), "{first:?}");
    let requests = collector.requests();
    let paths: Vec<&str> = requests.iter().map(path).collect();
    assert_eq!(paths, ["/token-123/v1/metrics", "/token-123/v1/traces"]);
    for request in &requests {
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert_eq!((request.header("x-tenant"), request.header("authorization")), (Some("me"), Some("Bearer hush")));
        assert!(!request.body.contains("SESAME"), "{}", request.body);
    }
    let metrics = requests[0].json();
    let scope = &metrics["resourceMetrics"][0]["scopeMetrics"][0];
    for metric in scope["metrics"].as_array().unwrap() {
        let is_sum = metric.get("sum").is_some();
        let data = if is_sum { &metric["sum"] } else { &metric["gauge"] };
        assert_eq!(is_sum, metric["name"].as_str().unwrap().ends_with("_total"), "{metric}");
        if is_sum {
            assert_eq!((&data["aggregationTemporality"], &data["isMonotonic"]), (&2.into(), &true.into()));
        }
        for point in data["dataPoints"].as_array().unwrap() {
            attributes(point);
            assert!(nanos(&point["timeUnixNano"]) > 0 && point["asDouble"].is_number(), "{point}");
            if is_sum {
                assert!(nanos(&point["startTimeUnixNano"]) <= nanos(&point["timeUnixNano"]), "{point}");
            }
        }
    }
    let sent = spans(&requests);
    let root = sent.iter().find(|span| span["name"] == "goal").unwrap();
    assert_eq!(attribute(root, "steadfast.goal.status"), Some("complete"));
    assert_eq!(root["status"]["code"], 1);
    let turns: Vec<&Value> = sent.iter().filter(|span| span["parentSpanId"] == root["spanId"]).collect();
    assert_eq!(turns.len(), 2, "the turn of the prompt, and the one that the person ended: {sent:#?}");
    assert_eq!(attribute(turns[0], "gen_ai.usage.output_tokens"), Some("2"));
    assert_eq!(attribute(turns[0], "gen_ai.request.model"), Some("claude-opus-4-8"));

    export(&env, &collector, &[]).succeeds();
    env.run(&["goal", "abandon", "--session", "s2"]).succeeds();
    export(&env, &collector, &[]).succeeds();
    export(&env, &collector, &[]).succeeds();
    let all = spans(&collector.requests());
    let mut ids: Vec<&Value> = all.iter().map(|span| &span["spanId"]).collect();
    ids.sort_by_key(|id| id.as_str());
    ids.dedup();
    assert_eq!(ids.len(), all.len(), "nothing is sent twice");
    assert_eq!(all.iter().filter(|span| span["name"] == "goal").count(), 2);
    let mode = std::fs::metadata(env.home().join("otlp-sent.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let other = Receiver::new([]);
    export(&env, &other, &["--with-text"]).succeeds();
    let again = spans(&other.requests());
    assert_eq!(again.len(), all.len(), "another collector has got nothing yet");
    assert!(again.iter().all(|span| all.iter().any(|known| known["spanId"] == span["spanId"])), "the ids are the same");
    assert!(
        again.iter().any(|span| attribute(span, "steadfast.goal.objective") == Some("Find the hidden word SESAME"))
    );
}

#[test]
fn a_run_is_a_trace_of_its_iterations() {
    let world = World::new();
    world.loop_type("count", "completion: fixed-n\nruns: 2");
    let script = "cat > /dev/null; date +%N > x; echo '{\"summary\":\"SESAME\",\"usage\":{\"input_tokens\":7,\
                  \"output_tokens\":1,\"cost_usd\":0.5}}' > $STEADFAST_RESULT";
    world.loop_run(&["count", "sums"], script, &[]).succeeds();
    let collector = Receiver::new([]);
    export(&world.env, &collector, &[]).succeeds();
    export(&world.env, &collector, &[]).succeeds();
    let sent = spans(&collector.requests());
    let root = sent.iter().find(|span| span["name"] == "loop").unwrap_or_else(|| panic!("{sent:#?}"));
    assert_eq!(attribute(root, "steadfast.run.name"), Some("sums"));
    let iterations: Vec<Option<&str>> = sent
        .iter()
        .filter(|span| span["parentSpanId"] == root["spanId"] && span["traceId"] == root["traceId"])
        .map(|span| attribute(span, "steadfast.iteration"))
        .collect();
    assert_eq!(iterations, [Some("1"), Some("2")]);
    assert!(!collector.requests().iter().any(|request| request.body.contains("SESAME")));
    let page = world.run(&["metrics"]).succeeds().stdout.clone();
    assert!(page.contains("steadfast_runs{status=\"completed\",kind=\"loop\"} 1"), "{page}");
    assert!(page.contains("steadfast_tokens_total{host=\"run\",model=\"unknown\",type=\"input\"} 14"), "{page}");
}

#[test]
fn what_a_broken_collector_did_not_get_is_sent_later() {
    let env = story();
    let collector = Receiver::new([Answer::Status("200 OK"), Answer::Status("500 Internal Server Error")]);
    let failed = export(&env, &collector, &[]);
    failed.fails_with(4, "answered 500 Internal Server Error to /v1/traces");
    assert!(!failed.stderr.contains("token-123"), "{failed:?}");
    export(&env, &collector, &[]).succeeds();
    let requests = collector.requests();
    assert_eq!(requests[1].body, requests[3].body, "the same spans once more");
    export(&env, &Receiver::new([Answer::Status("401 Unauthorized")]), &[]).fails_with(4, "answered 401");
    export(&env, &Receiver::new([Answer::Status("307 Temporary Redirect")]), &[]).fails_with(4, "answered 307");
}

#[test]
fn a_collector_that_is_not_there_is_an_error_with_a_hint() {
    let env = story();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://me:hush@{closed}/hush");
    let output = env.run(&["metrics", "--otlp", &url, "--header", "Key=hush"]);
    output.fails_with(4, &format!("cannot reach the collector at http://{closed}"));
    assert!(output.stderr.contains("4318") && !output.stderr.contains("hush"), "{output:?}");
    for wrong in [
        ["--otlp", "localhost:4318"].as_slice(),
        &["--otlp", "http://localhost", "--header", "hush"],
        &["--otlp", "http://localhost", "--every", "soon"],
        &["--otlp", "http://localhost", "--out", "x"],
        &["--header", "a=b"],
        &["--with-text"],
    ] {
        let output = env.run(&[&["metrics"], wrong].concat());
        assert!(output.code == 1 && output.stderr.contains("hint: "), "{wrong:?}: {output:?}");
    }
    Env::new().run(&["metrics", "--otlp", &url]).fails_with(4, "goals.db");
}

#[test]
fn an_exporter_that_repeats_survives_an_outage_and_ends_when_asked() {
    let env = story();
    let collector = Receiver::new([Answer::Status("503 Service Unavailable")]);
    let mut command = env.command(&["metrics", "--otlp", &collector.url, "--every", "1s"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let requests = collector.wait_for(4);
    assert_eq!(spans(&requests).iter().filter(|span| span["name"] == "goal").count(), 1);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.contains("every 1s") && said.contains("answered 503") && said.contains("trying again in 1s"),
        "{said}"
    );
}
