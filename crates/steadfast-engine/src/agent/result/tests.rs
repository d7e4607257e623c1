//! Agent results: well-formed, malformed and hostile.

use steadfast_model::run::AgentDecision;

use super::*;

fn in_file(content: &[u8]) -> Option<AgentResult> {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs_err::write(file.path(), content).unwrap();
    from_file(file.path(), false)
}

fn said(text: &str) -> Option<AgentResult> {
    let markers = [("score".to_owned(), "SCORE".to_owned())];
    read(&ResultSource { markers: &markers, ..source(Path::new("/nonexistent/result.json")) }, None, text)
}

fn source(file: &Path) -> ResultSource<'_> {
    ResultSource { file, status: Path::new("/nonexistent/status.json"), votes: false, markers: &[] }
}

/// What an agent reports that wrote these files.
fn wrote(result: Option<&str>, status: Option<&str>, votes: bool) -> Option<AgentResult> {
    let directory = tempfile::tempdir().unwrap();
    let [result_file, status_file] = ["result.json", "status.json"].map(|name| directory.path().join(name));
    for (file, text) in [(&result_file, result), (&status_file, status)] {
        if let Some(text) = text {
            fs_err::write(file, text).unwrap();
        }
    }
    read(&ResultSource { status: &status_file, votes, ..source(&result_file) }, None, "")
}

#[test]
fn a_result_file_is_read_with_its_types() {
    let whole =
        br#"{"summary": "did it", "plateau": true, "reasoning": "all \u001b[31mred\u0000", "decision": "stop"}"#;
    let expected = AgentResult {
        summary: Some("did it".into()),
        plateau: Some(true),
        reasoning: Some("all red".into()),
        decision: Some(AgentDecision::Stop),
        ..AgentResult::default()
    };
    assert_eq!(in_file(whole), Some(expected));
    for (word, plateau) in
        [("\"true\"", Some(true)), ("\"False\"", Some(false)), ("\"true or false\"", None), ("1", None)]
    {
        let file = format!("{{\"summary\": \"x\", \"plateau\": {word}}}");
        assert_eq!(in_file(file.as_bytes()).unwrap().plateau, plateau, "{word}");
    }
    let fenced = b"\xef\xbb\xbf```json\n{\"plateau\": false, \"summary\": 7, \"decision\": \"maybe\"}\n```\n";
    assert_eq!(in_file(fenced), Some(AgentResult { plateau: Some(false), ..AgentResult::default() }));
}

#[test]
fn invalid_results_are_ignored() {
    for content in [
        &b""[..],
        b"not json",
        b"[1, 2]",
        b"{\"plateau\": \"maybe\"}",
        b"{\"summary\": null, \"extra\": 1}",
        b"{\"summary\": \"cut",
        b"\xff\xfe\x00",
    ] {
        assert_eq!(in_file(content), None, "{}", String::from_utf8_lossy(content));
    }
    let huge = format!("{{\"summary\": \"{}\"}}", "x".repeat(1 << 20));
    assert_eq!(in_file(huge.as_bytes()), None);
    assert_eq!(from_file(Path::new("/"), false), None);
}

#[test]
fn votes_are_found_in_formatted_marker_lines() {
    for (line, vote) in [
        ("PLATEAU: true", Some(true)),
        ("plateau: false", Some(false)),
        ("**PLATEAU:** yes", Some(true)),
        ("**PLATEAU**: No.", Some(false)),
        ("   - PLATEAU: true (ready)", Some(true)),
        ("1. `PLATEAU: true`", Some(true)),
        ("> ### PLATEAU: TRUE", Some(true)),
        ("* __Plateau:__ true", Some(true)),
        ("PLATEAU: true or false", None),
        ("PLATEAU: true/false", None),
        ("PLATEAU: maybe", None),
        ("PLATEAU:", None),
        ("we reached a PLATEAU: true", None),
        ("PLATEAUS: true", None),
    ] {
        let found = from_markers(line, &[]).and_then(|result| result.plateau);
        assert_eq!(found, vote, "{line}");
    }
    // If a marker is explained first and then used, the last one counts.
    assert_eq!(said("PLATEAU: true\nno, wait\nPLATEAU: false").unwrap().plateau, Some(false));
}

#[test]
fn further_markers_become_fields_and_the_last_lines_a_summary() {
    let result = said("Work.\n\nREASONING: nothing left: really\nSCORE: 3\n- SCORE: 4 of 5\nPLATEAU: yes\n").unwrap();
    let expected = AgentResult {
        summary: Some("Work.\nREASONING: nothing left: really\nSCORE: 3\n- SCORE: 4 of 5\nPLATEAU: yes".into()),
        plateau: Some(true),
        reasoning: Some("nothing left: really".into()),
        decision: None,
        fields: vec![("score".into(), "4 of 5".into())],
        ..AgentResult::default()
    };
    assert_eq!(result, expected);
    assert_eq!(said(" \n\n"), None);
    let long = said(&format!("{}\nthe end", "y".repeat(5_000))).unwrap().summary.unwrap();
    assert_eq!(long, "the end");
}

#[test]
fn the_result_file_comes_first_and_the_answer_fills_gaps() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs_err::write(file.path(), r#"{"summary": "from the file", "plateau": false}"#).unwrap();
    let result = read(&source(file.path()), Some(r#"{"plateau": true}"#), "PLATEAU: true\nREASONING: because").unwrap();
    let expected = AgentResult {
        summary: Some("from the file".into()),
        plateau: Some(false),
        reasoning: Some("because".into()),
        ..AgentResult::default()
    };
    assert_eq!(result, expected);
    let structured = read(&source(Path::new("/none")), Some(r#"{"plateau": true}"#), "words").unwrap();
    assert_eq!((structured.plateau, structured.summary.as_deref()), (Some(true), Some("words")));
    assert_eq!(said("```\n{\"decision\": \"Continue\"}\n```").unwrap().decision, Some(AgentDecision::Continue));
}

#[test]
fn only_complete_promise_elements_count() {
    assert_eq!(promises("a <promise>ALL  DONE\n now</promise> <promise>x</promise>"), ["ALL DONE now", "x"]);
    assert_eq!(promises("<promise>never closed"), Vec::<String>::new());
    assert_eq!(promises("</promise><promise></promise>"), Vec::<String>::new());
    assert_eq!(promises(&"<promise>same</promise>".repeat(1000)), ["same"]);
}

#[test]
fn a_repeated_prompt_is_not_a_promise() {
    let prompt = "Do it.\n\n- When done, end with this line: <promise>DONE</promise>\nOr with\n<promise>X</promise>\n";
    let of = |said: &str| promises(&without_echo(said, prompt));
    assert_eq!(of(prompt), Vec::<String>::new());
    assert_eq!(of(&format!("I was told:\n{prompt}")), Vec::<String>::new());
    assert_eq!(of(&format!("{prompt}\nIt is done.\n<promise>DONE</promise>")), ["DONE"]);
    assert_eq!(of(&format!("{prompt}<promise>X</promise>")), ["X"]);
    assert_eq!(of("<promise>X</promise>\n"), ["X"]);
    assert_eq!(of("It is <promise>ALL\nDONE</promise>"), ["ALL DONE"]);
}

#[test]
fn a_verdict_in_the_form_of_other_tools_is_understood() {
    let nowhere = Path::new("/nonexistent/result.json");
    let fenced = "```json\n{\"stop\": true, \"reason\": \"nothing new\", \"confidence\": 0.2}\n```";
    assert_eq!(verdict(nowhere, fenced), Some((Some(true), Some("nothing new".into()))));
    assert_eq!(verdict(nowhere, "{\"stop\": \"yes\"}"), Some((None, None)));
    assert_eq!(verdict(nowhere, "stop"), None);
    let file = tempfile::NamedTempFile::new().unwrap();
    fs_err::write(file.path(), "{\"stop\": false}").unwrap();
    assert_eq!(verdict(file.path(), fenced), Some((Some(false), None)), "the file comes first");
}

#[test]
fn our_own_result_may_list_files_items_errors_and_branches() {
    let whole = r#"{"summary": "s", "reason": "r", "files": ["a.rs", "a.rs", "b\u001b[1m.rs"], "items": "one",
                    "errors": [{"message": "m"}, 7, null], "branches": ["x/1"]}"#;
    let result = wrote(Some(whole), None, false).unwrap();
    assert_eq!((result.reasoning.as_deref(), result.decision), (Some("r"), None));
    assert_eq!((result.files, result.items), (vec!["a.rs".to_owned(), "b.rs".into()], vec!["one".to_owned()]));
    assert_eq!(
        (result.errors, result.branches),
        (vec![r#"{"message":"m"}"#.to_owned(), "7".into()], vec!["x/1".into()])
    );
    let many: Vec<String> = (0..5_000).map(|number| format!("{number}{}", "x".repeat(2_000))).collect();
    let many = wrote(Some(&serde_json::json!({"files": many}).to_string()), None, false);
    assert_eq!(many, None, "larger than a result file may be");
    let many: Vec<String> = (0..300).map(|number| format!("{number}{}", "x".repeat(2_000))).collect();
    let files = wrote(Some(&serde_json::json!({"files": many}).to_string()), None, false).unwrap().files;
    assert_eq!((files.len(), files[0].chars().count()), (200, 1_000));
}

#[test]
fn the_stop_of_other_tools_is_a_vote_where_iterations_vote() {
    use AgentDecision::{Continue, Error, Stop};
    let status = |decision: &str| {
        format!(
            r#"{{"decision": "{decision}", "reason": "why", "summary": "did", "errors": [],
                "work": {{"items_completed": ["i"], "files_touched": ["f"]}}}}"#
        )
    };
    let signals = |plateau: bool, risk: &str| {
        format!(
            r#"{{"summary": "did", "work": {{"items_completed": [], "files_touched": ["f"]}},
                "artifacts": {{"outputs": ["o"], "paths": []}},
                "signals": {{"plateau_suspected": {plateau}, "risk": "{risk}", "notes": "why"}}}}"#
        )
    };
    for (result, from_status, votes, plateau, decision) in [
        (None, Some(status("stop")), true, Some(true), None),
        (None, Some(status("continue")), true, Some(false), None),
        (None, Some(status("error")), true, None, Some(Error)),
        (None, Some(status("stop")), false, None, Some(Stop)),
        (None, Some(status("continue")), false, None, Some(Continue)),
        (Some(signals(true, "low")), None, true, Some(true), None),
        (Some(signals(false, "low")), None, true, Some(false), None),
        (Some(signals(true, "low")), None, false, None, Some(Stop)),
        (Some(signals(true, "High")), None, true, None, Some(Error)),
        // Our own result file comes first, and its decision is one.
        (Some(status("stop")), None, true, None, Some(Stop)),
        (Some(r#"{"plateau": false}"#.to_owned()), Some(status("stop")), true, Some(false), None),
    ] {
        let read = wrote(result.as_deref(), from_status.as_deref(), votes).unwrap();
        assert_eq!((read.plateau, read.decision), (plateau, decision), "{result:?} {from_status:?} {votes}");
        assert_eq!(read.reasoning.as_deref(), Some("why"));
        assert_eq!((read.summary.as_deref(), read.files.first().map(String::as_str)), (Some("did"), Some("f")));
    }
    assert_eq!(wrote(None, Some("no json"), true), None);
}
