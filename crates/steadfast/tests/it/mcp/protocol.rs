//! Handshake, tool list, broken input and the end of the connection.

use serde_json::{Value, json};

use super::world::{World, refusal};

const TOOLS: [&str; 9] = [
    "get_goal",
    "create_goal",
    "update_goal",
    "record_verdict",
    "update_objective",
    "resume_goal",
    "abandon_goal",
    "wait_goal",
    "recall",
];

#[test]
fn the_handshake_names_the_server_and_its_version() {
    let world = World::new();
    let server = world.server();
    let hello = &server.hello["result"];
    assert_eq!(hello["protocolVersion"], "2025-11-25");
    assert_eq!(hello["serverInfo"]["name"], "steadfast");
    assert_eq!(hello["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(hello["capabilities"], json!({"tools": {}}));
    assert_eq!(hello.get("instructions"), None, "every request would carry them");
}

/// What a client adds to every request of every session for our tools: name, description and schema of each. It was
/// 7,390 characters once; a new argument has to fit, or make another text shorter.
const DEFINITIONS_MAX: usize = 3_850;

#[test]
fn nine_tools_are_listed_with_short_schemas() {
    let world = World::new();
    let mut server = world.server();
    let answer = server.request("tools/list", &json!({}));
    let tools = answer["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, TOOLS);
    for tool in tools {
        let schema = &tool["inputSchema"];
        assert_eq!(schema["type"], "object");
        assert!(jsonschema::validator_for(schema).is_ok(), "{tool}");
        assert!(tool["description"].as_str().unwrap().len() > 40);
        let properties = schema["properties"].as_object().unwrap();
        for forbidden in ["session_id", "verify"] {
            assert!(!properties.contains_key(forbidden), "{tool}");
        }
        for (name, property) in properties {
            assert!(property["type"].is_string(), "{name} of {tool}");
        }
        for noise in ["$ref", "$schema", "title", "format", "null", "additionalProperties"] {
            assert!(!schema.to_string().contains(noise), "{noise}: {tool}");
        }
    }
    let create = &tools[1]["inputSchema"];
    assert_eq!(create["required"], json!(["objective"]));
    let profiles = create["properties"]["budget_profile"].to_string();
    for profile in ["quick", "standard", "deep", "overnight", "auto"] {
        assert!(profiles.contains(profile), "{profiles}");
    }
}

#[test]
fn the_definitions_of_the_tools_stay_short() {
    let world = World::new();
    let mut server = world.server();
    let answer = server.request("tools/list", &json!({}));
    let as_sent = |tool: &Value| {
        let name = format!("mcp__plugin_steadfast_steadfast__{}", tool["name"].as_str().unwrap());
        let sent = json!({"name": name, "description": tool["description"], "input_schema": tool["inputSchema"]});
        sent.to_string().chars().count()
    };
    let total: usize = answer["result"]["tools"].as_array().unwrap().iter().map(as_sent).sum();
    assert!(total <= DEFINITIONS_MAX, "{total} characters");
}

#[test]
fn an_unknown_tool_or_method_is_a_protocol_error_and_the_server_continues() {
    let world = World::new();
    let mut server = world.server();
    let answer = server.call_with_id("extend_goal", &json!({}), None);
    assert_eq!(answer["error"]["code"], -32602);
    assert!(answer["error"]["message"].as_str().unwrap().contains("extend_goal"));
    assert_eq!(server.request("goals/extend", &json!({}))["error"]["code"], -32601);
    assert_eq!(server.request("ping", &json!({}))["result"], json!({}));
}

#[test]
fn bad_arguments_are_answered_with_a_sentence_that_names_them() {
    let world = World::new();
    let mut server = world.server();
    let long = "x".repeat(1_001);
    let cases = [
        ("create_goal", json!({}), "`objective`"),
        ("create_goal", json!({"objective": 5}), "`objective`"),
        ("create_goal", json!({"objective": null}), "`objective`"),
        ("create_goal", json!({"objective": "  \n"}), "objective is empty"),
        ("create_goal", json!({"objective": "x".repeat(4_001)}), "4001 characters"),
        ("create_goal", json!({"objective": "a\u{0}b"}), "NUL"),
        ("create_goal", json!({"objective": "x", "verify": ["true"]}), "`verify`"),
        ("create_goal", json!({"objective": "x", "session_id": "other"}), "`session_id`"),
        ("create_goal", json!({"objective": "x", "token_budget": 0}), "`token_budget`"),
        ("create_goal", json!({"objective": "x", "token_budget": -5}), "`token_budget`"),
        ("create_goal", json!({"objective": "x", "token_budget": 1.5}), "`token_budget`"),
        ("create_goal", json!({"objective": "x", "token_budget": "10M"}), "`token_budget`"),
        ("create_goal", json!({"objective": "x", "token_budget": u64::MAX}), "`token_budget`"),
        ("create_goal", json!({"objective": "x", "budget_profile": "huge"}), "`budget_profile`"),
        (
            "create_goal",
            json!({"objective": "x", "budget_profile": "deep", "token_budget": 5}),
            "`token_budget` and `budget_profile`",
        ),
        ("create_goal", json!({"objective": "x", "max_turns": 0}), "`max_turns`"),
        ("create_goal", json!({"objective": "x", "max_hours": 0}), "`max_hours`"),
        ("create_goal", json!({"objective": "x", "max_hours": 1e300}), "`max_hours`"),
        ("create_goal", json!({"objective": "x", "max_usd": -1}), "`max_usd`"),
        ("update_goal", json!({}), "set `status` or `items`"),
        ("update_goal", json!({"status": "active"}), "`status`"),
        ("update_goal", json!({"status": "blocked"}), "`blocked_reason`"),
        ("update_goal", json!({"status": "blocked", "blocked_reason": " "}), "`blocked_reason`"),
        ("update_goal", json!({"status": "blocked", "blocked_reason": long}), "`blocked_reason`"),
        (
            "update_goal",
            json!({"status": "blocked", "blocked_reason": "x", "completed_by": "evaluator"}),
            "`completed_by`",
        ),
        ("update_goal", json!({"status": "complete", "completed_by": "user"}), "`completed_by`"),
        ("update_goal", json!({"status": "complete", "goal_id": 5}), "`goal_id`"),
        ("record_verdict", json!({"verdict": "done"}), "`verdict`"),
        ("record_verdict", json!({"verdict": "complete", "reason": long}), "`reason`"),
        ("record_verdict", json!({"verdict": "complete", "evidence": "text"}), "`evidence`"),
        ("record_verdict", json!({"verdict": "complete", "evidence": vec!["x"; 21]}), "`evidence`"),
        ("update_objective", json!({"objective": ""}), "objective is empty"),
        ("wait_goal", json!({}), "`seconds`, `until`, `file`, `pid` or `command`"),
        ("wait_goal", json!({"seconds": 5, "until": "17:30"}), "`seconds` and `until`"),
        ("wait_goal", json!({"seconds": 0}), "`seconds`"),
        ("wait_goal", json!({"seconds": 604_801}), "`seconds`"),
        ("wait_goal", json!({"file": "x", "pid": 1}), "`file`, `pid` and `command`"),
        ("wait_goal", json!({"until": "soon"}), "`until`"),
        ("wait_goal", json!({"until": "2020-01-01T00:00:00Z"}), "`until`"),
        ("get_goal", json!({"goal_id": "x"}), "`goal_id`"),
        ("recall", json!({"query": ""}), "`query`"),
        ("recall", json!({"query": " \n"}), "`query`"),
        ("recall", json!({"query": "x".repeat(401)}), "`query`"),
        ("recall", json!({"query": "x", "limit": 0}), "`limit`"),
        ("recall", json!({"query": "x", "limit": 51}), "`limit`"),
        ("recall", json!({"query": "x", "category": "gossip"}), "`category`"),
    ];
    for (tool, arguments, named) in cases {
        let text = refusal(&server.call_with_id(tool, &arguments, None));
        assert!(text.contains(named), "{tool} {arguments}: {text}");
    }
    for arguments in [json!([1]), json!("text"), json!(5)] {
        let text = refusal(&server.call_with_id("create_goal", &arguments, None));
        assert!(text.contains("`arguments`"), "{text}");
    }
    assert!(!world.path("goals.db").exists(), "nothing was stored");
}

#[test]
fn lines_that_are_not_messages_do_not_end_the_server() {
    let world = World::new();
    let mut server = world.server();
    server.send_line("not json");
    server.send_line("");
    server.send_line("{\"jsonrpc\": \"2.0\", \"id\": 9");
    assert_eq!(server.request("ping", &json!({}))["result"], json!({}));
}

#[test]
fn closing_stdin_ends_the_process_with_0() {
    let world = World::new();
    for mut server in [world.server(), world.silent_server_with(&[])] {
        let (code, stderr) = server.end();
        assert_eq!((code, stderr.as_str()), (0, ""));
    }
}

#[test]
fn a_running_call_is_answered_after_stdin_closes() {
    let world = World::new();
    world.register("s1", None, None);
    let id = world.note("s1", "");
    let mut server = world.server();
    let meta = json!({"claudecode/toolUseId": id});
    let asked =
        server.ask("tools/call", &json!({"name": "create_goal", "arguments": {"objective": "x"}, "_meta": meta}));
    server.close_stdin();
    let answer = server.receive();
    assert_eq!(answer["id"], json!(asked));
    assert_eq!(answer["result"]["isError"], Value::Bool(false));
    assert_eq!(server.end().0, 0);
}
