//! Many, large, slow and broken requests.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use super::{Ui, read_reply};
use crate::attempts::eventually;
use crate::env::Env;

/// What the server may grow by under load.
const MOST_GROWTH_KIB: u64 = 64 << 10;

fn memory(ui: &Ui) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", ui.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn of_two_hundred_streams_sixty_four_are_held_and_pages_are_still_served() {
    let env = Env::new();
    env.start(&["x"]);
    let ui = Ui::start(&env, &[]);
    ui.get("/");
    let before = memory(&ui);
    let streams: Vec<_> = (0..200).map(|_| ui.stream()).collect();
    assert_eq!(streams.iter().flatten().count(), 64);
    for _ in 0..20 {
        assert_eq!(ui.get("/").status, 200);
    }
    env.goal(&["pause"]).succeeds();
    for mut stream in streams.into_iter().flatten() {
        super::next_change(&mut stream);
        super::next_change(&mut stream);
    }
    let growth = memory(&ui).saturating_sub(before);
    assert!(growth < MOST_GROWTH_KIB, "{growth} KiB");
    // All were closed by now.
    eventually(|| ui.stream());
}

#[test]
fn connections_that_say_nothing_end_and_make_room() {
    let env = Env::new();
    let ui = Ui::start(&env, &[]);
    let mut slow = ui.connect();
    slow.write_all(b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: ").unwrap();
    assert_eq!(ui.get("/").status, 200);
    let idle: Vec<TcpStream> = (0..300).map(|_| ui.connect()).collect();
    // More than are served at once: this one waits until the others are closed.
    assert_eq!(ui.get("/").status, 200);
    let mut rest = Vec::new();
    let _ = slow.read_to_end(&mut rest);
    assert!(!String::from_utf8_lossy(&rest).contains("200 OK"));
    drop(idle);
}

#[test]
fn large_headers_and_bodies_are_refused() {
    let env = Env::new();
    let goal = env.start(&["x"]);
    let pause = format!("/goals/{}/pause", goal["goal_id"].as_str().unwrap());
    let ui = Ui::start(&env, &[]);
    let (host, origin) = (ui.host(), ui.origin());
    let long = "x".repeat(100 << 10);
    let headers = [("host", host.as_str()), ("cookie", &ui.cookie), ("x-long", &long)];
    let reply = ui.ask("GET", "/", &headers, "");
    assert!(matches!(reply.status, 0 | 431), "{reply:?}");
    let many: Vec<(String, String)> = (0..500).map(|number| (format!("x-{number}"), "x".to_owned())).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let reply = ui.ask("GET", "/", &[&headers[..2], &many].concat(), "");
    assert!(matches!(reply.status, 0 | 431), "{reply:?}");
    ui.post(&pause, &format!("text={}", "x".repeat(17 << 10))).is(413, "too large");
    // The length is not known before.
    let mut stream = ui.connect();
    let head = format!(
        "POST {pause} HTTP/1.1\r\nhost: {host}\r\ncookie: {}\r\norigin: {origin}\r\nconnection: close\r\n\
         content-type: application/x-www-form-urlencoded\r\ntransfer-encoding: chunked\r\n\r\n",
        ui.cookie
    );
    stream.write_all(head.as_bytes()).unwrap();
    for _ in 0..100 {
        // The server stops reading.
        if write!(stream, "400\r\n{}\r\n", "x".repeat(0x400)).is_err() {
            break;
        }
    }
    assert!(matches!(read_reply(stream).status, 0 | 413));
    assert_eq!((env.status()["status"].as_str(), ui.get("/").status), (Some("active"), 200));
}

#[test]
fn what_is_no_http_is_refused() {
    let env = Env::new();
    let ui = Ui::start(&env, &[]);
    for garbage in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01"[..],
        b"hello\r\n\r\n",
        b"GET / HTTP/1.1\r\n\0: \r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let mut stream = ui.connect();
        stream.write_all(garbage).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(matches!(read_reply(stream).status, 0 | 400 | 403 | 505), "{garbage:?}");
    }
    assert_eq!(ui.get("/").status, 200);
}
