use axum::http::Request;

use super::*;

const OWN: &str = "127.0.0.1:7777";

fn guard(tunnels: &[&str]) -> RequestGuard {
    let tunnels: Vec<String> = tunnels.iter().map(|name| (*name).to_owned()).collect();
    RequestGuard::new(7777, &tunnels, Some(Secret::of("m".repeat(32))), None).unwrap()
}

fn cookie(guard: &RequestGuard) -> String {
    let key = guard.add_key().unwrap();
    guard.enter(key.reveal()).unwrap().split(';').next().unwrap().to_owned()
}

fn ask(guard: &RequestGuard, method: &str, path: &str, headers: &[(&str, &str)]) -> Result<(), RequestRefusal> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    guard.check(&request.body(()).unwrap().into_parts().0)
}

#[test]
fn only_listed_hosts_are_served() {
    let guard = guard(&["Laptop.example", "box:8443"]);
    let cookie = cookie(&guard);
    let table = [
        (OWN, true),
        ("localhost:7777", true),
        ("LOCALHOST:7777", true),
        ("[::1]:7777", true),
        ("laptop.example", true),
        ("laptop.example:9000", true),
        ("box:8443", true),
        ("box", false),
        ("box:8444", false),
        ("127.0.0.1", false),
        ("127.0.0.1:7778", false),
        ("localhost", false),
        ("evil.example:7777", false),
        ("evil.laptop.example", false),
        ("laptop.example.evil:1", false),
        ("127.0.0.1:7777.evil.example", false),
        ("", false),
    ];
    for (host, is_allowed) in table {
        let asked = ask(&guard, "GET", "/", &[("host", host), ("cookie", &cookie)]);
        assert_eq!(asked, if is_allowed { Ok(()) } else { Err(RequestRefusal::Host) }, "{host}");
    }
    assert_eq!(ask(&guard, "GET", "/", &[("cookie", &cookie)]), Err(RequestRefusal::Host), "none");
    let two = [("host", OWN), ("host", "evil.example"), ("cookie", cookie.as_str())];
    assert_eq!(ask(&guard, "GET", "/", &two), Err(RequestRefusal::Host));
    let absolute = ask(&guard, "GET", "http://evil.example/", &[("host", OWN), ("cookie", &cookie)]);
    assert_eq!(absolute, Err(RequestRefusal::Host));
}

#[test]
fn other_pages_are_refused() {
    let guard = guard(&["laptop.example"]);
    let cookie = cookie(&guard);
    let with =
        |method, host, name, value| ask(&guard, method, "/", &[("host", host), ("cookie", &cookie), (name, value)]);
    for site in ["same-origin", "none"] {
        assert_eq!(with("GET", OWN, "sec-fetch-site", site), Ok(()));
    }
    for site in ["cross-site", "same-site", "", "None", "same-origin, none"] {
        assert_eq!(with("GET", OWN, "sec-fetch-site", site), Err(RequestRefusal::Site), "{site}");
    }
    let table = [
        (OWN, "http://127.0.0.1:7777", true),
        (OWN, "https://127.0.0.1:7777", false),
        (OWN, "http://localhost:7777", false),
        (OWN, "http://127.0.0.1:7778", false),
        (OWN, "http://evil.example", false),
        (OWN, "http://127.0.0.1:7777.evil.example", false),
        (OWN, "null", false),
        (OWN, "", false),
        ("laptop.example", "https://laptop.example", true),
        ("laptop.example", "http://laptop.example", true),
        ("laptop.example:444", "https://laptop.example", false),
        ("laptop.example", "https://evil.example", false),
    ];
    for (host, origin, is_allowed) in table {
        for method in ["GET", "POST"] {
            let expected = if is_allowed { Ok(()) } else { Err(RequestRefusal::Origin) };
            assert_eq!(with(method, host, "origin", origin), expected, "{method} {host} {origin}");
        }
    }
    for method in ["POST", "PUT", "DELETE"] {
        assert_eq!(with(method, OWN, "x-nothing", ""), Err(RequestRefusal::Origin), "{method} without an origin");
    }
}

#[test]
fn a_request_needs_the_token_and_metrics_may_have_their_own() {
    let guard = guard(&[]);
    let cookie = cookie(&guard);
    let ask = |path, name, value: &str| ask(&guard, "GET", path, &[("host", OWN), (name, value)]);
    for path in ["/", "/now.json", "/assets/style.css", "/events", "/metrics", "/enter", "/nothing"] {
        assert_eq!(ask(path, "x-nothing", ""), Err(RequestRefusal::Token), "{path}");
        assert_eq!(ask(path, "cookie", "steadfast_7777="), Err(RequestRefusal::Token), "{path}");
        assert_eq!(ask(path, "cookie", &cookie.replace("7777", "7778")), Err(RequestRefusal::Token), "{path}");
        assert_eq!(ask(path, "cookie", &cookie), Ok(()), "{path}");
        assert_eq!(ask(path, "cookie", &format!("a=b; steadfast_7777=x; {cookie}")), Ok(()), "{path}");
        let bearer = format!("Bearer {}", "m".repeat(32));
        let expected = if path == "/metrics" { Ok(()) } else { Err(RequestRefusal::Token) };
        assert_eq!(ask(path, "authorization", &bearer), expected, "{path}");
        assert_eq!(ask(path, "authorization", "Bearer mm"), Err(RequestRefusal::Token), "{path}");
    }
    assert_eq!(ask("/enter/anything", "x-nothing", ""), Ok(()), "the key is checked later");
}

#[test]
fn a_key_works_once() {
    let guard = guard(&[]);
    let key = guard.add_key().unwrap();
    assert_eq!(guard.enter("wrong"), None);
    assert_eq!(guard.enter(""), None);
    let set = guard.enter(key.reveal()).unwrap();
    assert!(set.starts_with("steadfast_7777=") && set.ends_with("; HttpOnly; SameSite=Strict; Path=/"), "{set}");
    assert_eq!(guard.enter(key.reveal()), None);
    // The oldest of too many unused keys is dropped.
    let first = guard.add_key().unwrap();
    let last = (0..MOST_KEYS).map(|_| guard.add_key().unwrap()).last().unwrap();
    assert_eq!(guard.enter(first.reveal()), None);
    assert!(guard.enter(last.reveal()).is_some());
}
