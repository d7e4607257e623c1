//! Requests that must not get in.

use super::Ui;
use crate::env::Env;

const PLACES: [&str; 13] = [
    "/",
    "/now.json",
    "/goals/x",
    "/goals/x.json",
    "/runs/x",
    "/runs/x/log",
    "/runs/x/diff",
    "/usage",
    "/search?q=x",
    "/assets/style.css",
    "/events",
    "/metrics",
    "/nothing",
];

#[test]
fn a_rebound_name_is_refused_even_with_the_token() {
    let env = Env::new();
    let ui = Ui::start(&env, &[]);
    for host in ["evil.example", &format!("evil.example:{}", ui.port), "127.0.0.1", "127.0.0.1:1", ""] {
        for place in PLACES {
            let reply = ui.ask("GET", place, &[("host", host), ("cookie", &ui.cookie)], "");
            reply.is(403, "--allow-host");
        }
    }
    // HTTP/1.1 without a host, with two, and with another one in the request line.
    assert!(matches!(ui.ask("GET", "/", &[("cookie", &ui.cookie)], "").status, 400 | 403));
    let two = [("host", ui.host()), ("host", "evil.example".into()), ("cookie", ui.cookie.clone())];
    let two = two.each_ref().map(|(name, value)| (*name, value.as_str()));
    assert!(matches!(ui.ask("GET", "/", &two, "").status, 400 | 403));
    let absolute = [("host", ui.host()), ("cookie", ui.cookie.clone())];
    let absolute = absolute.each_ref().map(|(name, value)| (*name, value.as_str()));
    ui.ask("GET", "http://evil.example/", &absolute, "").is(403, "");
    for host in [ui.host(), format!("localhost:{}", ui.port), format!("[::1]:{}", ui.port)] {
        assert_eq!(ui.ask("GET", "/", &[("host", &host), ("cookie", &ui.cookie)], "").status, 200, "{host}");
    }
}

#[test]
fn nothing_is_shown_without_the_token() {
    let env = Env::new();
    let ui = Ui::start(&env, &[]);
    let host = ui.host();
    let other_end = if ui.cookie.ends_with('0') { '1' } else { '0' };
    let wrong = format!("{}{other_end}", &ui.cookie[..ui.cookie.len() - 1]);
    let other_name = ui.cookie.replace("steadfast_", "steadfast_1");
    for place in PLACES {
        for cookie in ["", "a=b", &wrong, &other_name, &format!("steadfast_{}=", ui.port)] {
            let reply = ui.ask("GET", place, &[("host", &host), ("cookie", cookie)], "");
            reply.is(403, "press Enter in the terminal");
        }
        let token = ui.cookie.split_once('=').unwrap().1;
        let bearer = format!("Bearer {token}");
        ui.ask("GET", place, &[("host", &host), ("authorization", &bearer)], "").is(403, "");
        ui.ask("GET", &format!("{place}?token={token}"), &[("host", &host)], "").is(403, "");
    }
    let asked_as_json = [("host", host.as_str()), ("accept", "application/json")];
    assert_eq!(ui.ask("GET", "/", &asked_as_json, "").json()["ok"], false);
}

#[test]
fn other_pages_can_neither_read_nor_act() {
    let env = Env::new();
    let goal = env.start(&["x"]);
    let ui = Ui::start(&env, &[]);
    let pause = format!("/goals/{}/pause", goal["goal_id"].as_str().unwrap());
    let (host, origin) = (ui.host(), ui.origin());
    let own = [("host", host.as_str()), ("cookie", &ui.cookie), ("content-type", "application/x-www-form-urlencoded")];
    let post = |more: &[(&str, &str)]| ui.ask("POST", &pause, &[&own, more].concat(), "a=b");
    post(&[]).is(403, "another origin");
    let other_port = format!("http://127.0.0.1:{}", ui.port ^ 1);
    let other_name = format!("http://localhost:{}", ui.port);
    for evil in ["http://evil.example", "null", &other_port, &other_name, &origin.replace("http", "https")] {
        post(&[("origin", evil)]).is(403, "another origin");
        ui.ask("GET", "/", &[&own[..2], &[("origin", evil)]].concat(), "").is(403, "another origin");
    }
    for site in ["cross-site", "same-site"] {
        post(&[("origin", &origin), ("sec-fetch-site", site)]).is(403, "another page");
        for place in PLACES {
            ui.ask("GET", place, &[&own[..2], &[("sec-fetch-site", site)]].concat(), "").is(403, "another page");
        }
    }
    assert_eq!(env.status()["status"], "active");
    // A browser asks first; there is no answer that would let another page in.
    let preflight = [("origin", "http://evil.example"), ("access-control-request-method", "POST")];
    let reply = ui.ask("OPTIONS", &pause, &[&own[..2], &preflight].concat(), "");
    assert_eq!((reply.status, reply.header("access-control-allow-origin")), (403, None));
}

#[test]
fn a_link_works_once() {
    let env = Env::new();
    let mut ui = Ui::start_unentered(env.command(&["ui"]));
    let path = ui.key_path().to_owned();
    let host = ui.host();
    ui.ask("GET", "/enter/wrong", &[("host", &host)], "").is(403, "press Enter in the terminal");
    ui.ask("GET", "/enter/", &[("host", &host)], "").is(403, "");
    ui.ask("GET", &path, &[("host", "evil.example")], "").is(403, "");
    ui.ask("GET", &path, &[("host", &host), ("sec-fetch-site", "cross-site")], "").is(403, "another page");
    assert_eq!(ui.ask("HEAD", &path, &[("host", &host)], "").status, 200);
    ui.enter();
    let again = ui.ask("GET", &path, &[("host", &host)], "");
    assert_eq!(again.is(403, "this link is used or wrong").header("set-cookie"), None);
    assert_eq!(ui.get("/").status, 200);
}

#[test]
fn every_answer_has_the_headers_that_keep_it_inert() {
    let env = Env::new();
    let ui = Ui::start(&env, &[]);
    let host = ui.host();
    let refused = ui.ask("GET", "/", &[("host", &host)], "");
    let missing = ui.post("/goals/none/pause", "");
    for reply in [ui.get("/"), ui.get("/now.json"), ui.get("/assets/live.js"), ui.get("/nothing"), refused, missing] {
        let policy = reply.header("content-security-policy").unwrap();
        for part in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"] {
            assert!(policy.contains(part), "{reply:?}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(reply.header("cross-origin-opener-policy"), Some("same-origin"));
        assert_eq!(reply.header("cross-origin-resource-policy"), Some("same-origin"));
        assert!(reply.header("referrer-policy").is_some() && reply.header("cache-control").is_some(), "{reply:?}");
        assert!(!reply.head.to_lowercase().contains("access-control"), "{reply:?}");
    }
    assert_eq!(ui.get("/").header("cache-control"), Some("no-store"));
}

#[test]
fn assets_come_from_the_program_only() {
    let env = Env::new();
    let ui = Ui::start(&env, &[]);
    let style = ui.get("/assets/style.css");
    assert_eq!((style.status, style.header("content-type")), (200, Some("text/css; charset=utf-8")));
    assert_eq!(style.header("cache-control"), Some("no-cache"));
    let (host, tag) = (ui.host(), style.header("etag").unwrap());
    let known = [("host", host.as_str()), ("cookie", &ui.cookie), ("if-none-match", tag)];
    let unchanged = ui.ask("GET", "/assets/style.css", &known, "");
    assert_eq!((unchanged.status, unchanged.body.as_str()), (304, ""));
    for path in [
        "/assets/",
        "/assets/../Cargo.toml",
        "/assets/..%2f..%2fetc/passwd",
        "/assets/%2e%2e/%2e%2e/etc/passwd",
        "/assets//etc/passwd",
        "/assets/style.css%00",
        "/assets/STYLE.CSS",
        "/../../etc/passwd",
    ] {
        assert_eq!(ui.get(path).status, 404, "{path}");
    }
}

#[test]
fn other_methods_and_contents_are_refused() {
    let env = Env::new();
    let ui = Ui::start(&env, &[]);
    let (host, origin) = (ui.host(), ui.origin());
    let own = [("host", host.as_str()), ("cookie", &ui.cookie), ("origin", &origin)];
    for method in ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"] {
        assert_eq!(ui.ask(method, "/", &own, "").status, 405, "{method}");
        assert_eq!(ui.ask(method, "/goals/x/pause", &own, "").header("allow"), Some("POST"), "{method}");
    }
    assert_eq!(ui.get("/goals/x/pause").status, 405);
    assert_eq!(ui.post("/", "a=b").status, 405);
    assert_eq!(ui.post("/goals/x/dance", "a=b").status, 404);
    for kind in ["application/json", "text/plain", "multipart/form-data; boundary=x", ""] {
        let reply = ui.ask("POST", "/goals/x/pause", &[&own[..], &[("content-type", kind)]].concat(), "a=b");
        assert_eq!(reply.status, 415, "{kind}");
    }
}

#[test]
fn a_metrics_token_opens_the_metrics_and_nothing_else() {
    use std::os::unix::fs::PermissionsExt as _;
    let env = Env::new();
    let file = env.path("token");
    let token = "0123456789abcdef0123456789abcdef";
    std::fs::write(&file, format!("{token}\n")).unwrap();
    let close = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    let path = file.to_str().unwrap();
    close(0o644);
    env.run(&["ui", "--metrics-token", path]).fails_with(1, "other users can read");
    close(0o600);
    env.start(&["x"]);
    let ui = Ui::start(&env, &["--metrics-token", path]);
    ui.get("/metrics").is(200, "# TYPE steadfast_");
    let (host, bearer) = (ui.host(), format!("Bearer {token}"));
    for place in PLACES {
        let reply = ui.ask("GET", place, &[("host", &host), ("authorization", &bearer)], "");
        assert_eq!(reply.status, if place == "/metrics" { 200 } else { 403 }, "{place}");
    }
    for wrong in ["Bearer x", "Basic x", token, "Bearer "] {
        ui.ask("GET", "/metrics", &[("host", &host), ("authorization", wrong)], "").is(403, "");
    }
    ui.ask("GET", "/metrics", &[("host", "evil.example"), ("authorization", &bearer)], "").is(403, "");
    std::fs::write(&file, "short\n").unwrap();
    env.run(&["ui", "--metrics-token", path]).fails_with(1, "shorter than 32");
    env.run(&["ui", "--metrics-token", "none"]).fails_with(1, "cannot read the metrics token");
}
