//! The command itself: its link, its errors, its end.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::Ui;
use crate::attempts::eventually;
use crate::env::{Env, finish};

#[test]
fn two_servers_do_not_share_their_cookies() {
    let env = Env::new();
    env.start(&["x"]);
    let (one, other) = (Ui::start(&env, &[]), Ui::start(&env, &[]));
    assert_ne!(one.port, other.port);
    assert_eq!((one.get("/").status, other.get("/").status), (200, 200));
    let (name, token) = one.cookie.split_once('=').unwrap();
    let own_name = name.replace(&one.port.to_string(), &other.port.to_string());
    for cookie in [one.cookie.clone(), format!("{own_name}={token}")] {
        other.ask("GET", "/", &[("host", &other.host()), ("cookie", &cookie)], "").is(403, "");
    }
    let both = format!("{}; {}", one.cookie, other.cookie);
    for ui in [&one, &other] {
        assert_eq!(ui.ask("GET", "/", &[("host", &ui.host()), ("cookie", &both)], "").status, 200);
    }
    let second = env.run(&["ui", "--port", &one.port.to_string()]);
    second.fails_with(4, &format!("port {} is in use", one.port));
}

#[test]
fn a_signal_ends_it_and_its_streams() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 0)] {
        let env = Env::new();
        let mut ui = Ui::start(&env, &[]);
        let mut stream = ui.stream().unwrap();
        super::next_change(&mut stream);
        kill_process(Pid::from_raw(ui.pid()).unwrap(), signal).unwrap();
        let mut rest = String::new();
        let _ = stream.read_to_string(&mut rest);
        let status = ui.process.wait().unwrap();
        assert_eq!((status.code(), status.signal()), (Some(code), None));
    }
}

#[test]
fn the_link_is_data_and_the_rest_is_not() {
    let env = Env::new();
    let mut command = env.command(&["ui", "--json", "--read-only"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut text = String::new();
    let printed: Value = loop {
        let mut byte = [0];
        assert_eq!(stdout.read(&mut byte).unwrap(), 1, "{text}");
        text.push(char::from(byte[0]));
        if let Ok(printed) = serde_json::from_str(&text) {
            break printed;
        }
    };
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    let url = printed["url"].as_str().unwrap();
    assert!(url.starts_with(&format!("http://127.0.0.1:{}/enter/", printed["port"])), "{printed}");
    assert_eq!(printed["read_only"], true);
    let notes = String::from_utf8(output.stderr).unwrap();
    assert!(notes.contains("the link works once") && !notes.contains("/enter/"), "{notes}");
}

/// Runs the server in a terminal of its own, presses Enter once, and prints both links.
const IN_TERMINAL: &str = r#"
import os, pty, signal, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1], "ui"])
def link():
    text = b""
    while b"/enter/" not in text or not text.endswith(b"\n"):
        text += os.read(terminal, 1)
    return next(line.strip() for line in text.decode().splitlines() if "/enter/" in line)
first = link()
os.write(terminal, b"\n")
print(first)
print(link())
sys.stdout.flush()
sys.stdin.read()
os.kill(pid, signal.SIGTERM)
"#;

#[test]
fn enter_in_the_terminal_makes_another_link() {
    let env = Env::new();
    let mut command = std::process::Command::new("python3");
    command.args(["-c", IN_TERMINAL, env!("CARGO_BIN_EXE_steadfast")]).env("STEADFAST_HOME", env.home());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut printed = BufReader::new(child.stdout.take().unwrap()).lines();
    let links: Vec<String> = printed.by_ref().take(2).map(Result::unwrap).collect();
    assert_ne!(links[0], links[1]);
    let rest = links[0].strip_prefix("http://").unwrap();
    let (host, _) = rest.split_once('/').unwrap();
    for link in &links {
        let path = link.split_once(host).unwrap().1;
        let mut stream = std::net::TcpStream::connect(host).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").unwrap();
        let reply = super::read_reply(stream);
        assert!(reply.status == 200 && reply.header("set-cookie").is_some(), "{reply:?}");
    }
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn the_browser_is_opened_only_if_the_user_asks() {
    use std::os::unix::fs::PermissionsExt as _;
    let env = Env::new();
    let (browser, opened) = (env.path("bin/xdg-open"), env.path("opened"));
    std::fs::create_dir_all(env.path("bin")).unwrap();
    std::fs::write(&browser, format!("#!/bin/sh\necho \"$#:$1\" >> {}\n", opened.display())).unwrap();
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).unwrap();
    let search = format!("{}:{}", env.path("bin").display(), std::env::var("PATH").unwrap());
    let start = |arguments: &[&str]| {
        let mut command = env.command(arguments);
        command.env("PATH", &search);
        Ui::start_unentered(command)
    };
    let quiet = [start(&["ui"]), start(&["ui", "--open", "--no-open"])];
    let ui = start(&["ui", "--open"]);
    let lines = eventually(|| std::fs::read_to_string(&opened).ok().filter(|text| text.ends_with('\n')));
    assert_eq!(lines, format!("1:{}\n", ui.link));
    drop(quiet);
}

#[test]
fn an_agent_may_not_look_at_all_sessions() {
    let env = Env::new();
    env.start(&["x"]);
    let inside = |arguments: &[&str]| {
        let mut command = env.command(arguments);
        command.env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", "s1");
        command
    };
    for arguments in [&["ui"][..], &["ui", "--read-only"], &["top"], &["top", "--once"], &["top", "--json"]] {
        let refused = finish(&mut inside(arguments), b"");
        let said = refused.stderr.clone() + &refused.stdout;
        assert!(refused.code == 3 && said.contains("is for the user"), "{refused:?}");
        assert!(said.contains("type it in a terminal of your own") && !said.contains("http://"), "{refused:?}");
    }
    let refused = "SELECT json_extract(payload, '$.verb') FROM goal_events WHERE kind = 'privileged_verb_refused'";
    assert_eq!(env.sql(refused).len(), 5);
}

#[test]
fn a_panic_restarts_the_server_for_the_same_browsers() {
    for place in ["ui.page", "ui.request"] {
        let env = Env::new();
        env.start(&["Make every test pass"]);
        let mut command = env.command(&["ui"]);
        command.env("STEADFAST_CRASH_AT", place);
        let mut ui = Ui::start_unentered(command);
        if place == "ui.request" {
            ui.is_cut_off(ui.key_path());
        }
        // The link that was printed before works after the restart.
        ui.enter();
        if place == "ui.page" {
            ui.is_cut_off("/");
        }
        ui.get("/").is(200, "Make every test pass");
        let log = std::fs::read_to_string(env.home().join("log/hooks.log")).unwrap();
        assert!(log.contains("internal error at ") && log.contains("a test asked for this"), "{log}");
    }
}

#[test]
fn names_of_tunnels_are_checked_and_served() {
    let env = Env::new();
    for wrong in ["https://laptop.example", "a b", "laptop.example/x", ""] {
        env.run(&["ui", &format!("--allow-host={wrong}")]).fails_with(1, "is not the name of a host");
    }
    let ui = Ui::start(&env, &["--allow-host", "laptop.example"]);
    for (host, status) in [("laptop.example", 200), ("laptop.example:8443", 200), ("evil.example", 403)] {
        assert_eq!(ui.ask("GET", "/", &[("host", host), ("cookie", &ui.cookie)], "").status, status, "{host}");
    }
}
