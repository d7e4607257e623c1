//! Every problem of the connection is one line with a hint and exit code 4.

use crate::world::World;

fn refused(world: &World, variables: &[(&str, &str)], words: &[&str]) {
    for arguments in [&["fleet", "list"][..], &["fleet", "status", "x", "--repo", "/no/such/repository"]] {
        let output = world.command(arguments).envs(variables.iter().copied()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(4), "{variables:?}: {said}");
        assert_eq!(said.lines().count(), 2, "one line and a hint: {said}");
        assert!(said.starts_with("error: ") && said.contains("\nhint: "), "{said}");
        for word in words {
            assert!(said.contains(word), "`{word}` is missing: {said}");
        }
    }
}

#[test]
fn no_server_a_wrong_namespace_and_tls_that_does_not_fit_are_clear_errors() {
    let Some(world) = World::new() else { return };
    refused(&world, &[("TEMPORAL_ADDRESS", "127.0.0.1:9")], &["no Temporal server at", "temporal server start-dev"]);
    refused(&world, &[("TEMPORAL_NAMESPACE", "nowhere")], &["namespace `nowhere`", "TEMPORAL_NAMESPACE"]);
    refused(&world, &[("TEMPORAL_TLS", "true")], &["does not speak TLS"]);
    refused(&world, &[("STEADFAST_FLEET_KEY_FILE", "/no/such/file")], &["key", "STEADFAST_FLEET_KEY_FILE"]);
    let output = world.run(&["fleet", "status", "nothing"]);
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    let json = world.run(&["fleet", "kill", "nothing", "--json"]);
    let error: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((json.status.code(), &error["error"]["kind"]), (Some(2), &serde_json::json!("not_found")), "{error}");
}

#[test]
fn flags_that_mean_nothing_on_the_fleet_are_refused() {
    let Some(world) = World::new() else { return };
    world.add_loop("work", "completion: fixed-n", "go");
    let agent = world.writer("0");
    for (more, word) in [
        (&["--tmux"][..], "--tmux"),
        (&["--worktree"], "--worktree"),
        (&["--at", "22:00"], "--at"),
        (&["--every", "1d"], "--every"),
    ] {
        let output = world.run(&[&["loop", "run", "work", "x", "--agent", &agent, "--fleet"], more].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("--fleet") && said.contains(word), "{said}");
    }
    let output = world.run(&["loop", "run", "work", "x", "--agent", &agent, "--label", "gpu"]);
    assert_eq!(output.status.code(), Some(1), "--label needs --fleet");
    std::fs::write(world.project().join("new.txt"), "not committed").unwrap();
    let output = world.run(&["loop", "run", "work", "x", "--agent", &agent, "--fleet", "--detach"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("--allow-dirty"), "{said}");
}
