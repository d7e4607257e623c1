//! `steadfast ui` over raw sockets: who gets in, what actions do, and what many or hostile clients cost.

mod acting;
mod command;
mod gates;
mod live;
mod load;
mod output;

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::attempts::eventually;
use crate::env::Env;

/// Longer than any answer takes.
const PATIENCE: Duration = Duration::from_mins(1);

/// A server, and a browser that has opened its link.
struct Ui {
    process: Child,
    /// Stays open: the server may print more links.
    _stdout: BufReader<std::process::ChildStdout>,
    port: u16,
    link: String,
    cookie: String,
}

#[derive(Debug)]
struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Reply {
    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    fn is(&self, status: u16, about: &str) -> &Self {
        assert!(self.status == status && self.body.contains(about), "{status} {about}: {self:?}");
        self
    }
}

impl Ui {
    fn start(env: &Env, arguments: &[&str]) -> Self {
        let mut ui = Self::start_unentered(env.command(&[&["ui"], arguments].concat()));
        ui.enter();
        ui
    }

    fn start_unentered(mut command: Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        let mut link = String::new();
        stdout.read_line(&mut link).unwrap();
        let link = link.trim().to_owned();
        let rest = link.strip_prefix("http://127.0.0.1:").unwrap_or_else(|| panic!("{link:?}"));
        let port = rest.split('/').next().unwrap().parse().unwrap();
        Self { process, _stdout: stdout, port, link, cookie: String::new() }
    }

    fn key_path(&self) -> &str {
        self.link.split_once(&self.port.to_string()).unwrap().1
    }

    /// Opens the link and keeps the cookie.
    fn enter(&mut self) {
        let reply = self.ask("GET", self.key_path(), &[("host", &self.host())], "");
        assert_eq!(reply.status, 200, "{reply:?}");
        let set = reply.header("set-cookie").unwrap();
        assert!(set.ends_with("; HttpOnly; SameSite=Strict; Path=/"), "{set}");
        set.split(';').next().unwrap().clone_into(&mut self.cookie);
    }

    fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn origin(&self) -> String {
        format!("http://{}", self.host())
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// A request with these headers only.
    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut stream = self.connect();
        // The server may refuse and close before everything is written.
        let _ =
            stream.write_all(request(method, path, &[headers, &[("connection", "close")]].concat(), body).as_bytes());
        read_reply(stream)
    }

    /// Makes a request that the server does not survive, and waits until it answers again.
    fn is_cut_off(&self, path: &str) {
        let mut stream = self.connect();
        let headers = [("host", &*self.host()), ("cookie", &self.cookie)];
        stream.write_all(request("GET", path, &headers, "").as_bytes()).unwrap();
        let mut reply = Vec::new();
        let read = stream.read_to_end(&mut reply);
        assert!(reply.is_empty(), "{read:?} {}", String::from_utf8_lossy(&reply));
        // The old socket may take connections for a moment after this one ended.
        eventually(|| {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
            stream.write_all(request("GET", "/", &[("connection", "close")], "").as_bytes()).ok()?;
            (read_reply(stream).status != 0).then_some(())
        });
    }

    fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, &[("host", &self.host()), ("cookie", &self.cookie)], "")
    }

    /// A form of the page, with the answer as JSON.
    fn post(&self, path: &str, form: &str) -> Reply {
        self.submit(path, form, &[("accept", "application/json")])
    }

    fn submit(&self, path: &str, form: &str, more: &[(&str, &str)]) -> Reply {
        let (host, origin) = (self.host(), self.origin());
        let own = [
            ("host", host.as_str()),
            ("cookie", &self.cookie),
            ("origin", &origin),
            ("sec-fetch-site", "same-origin"),
            ("content-type", "application/x-www-form-urlencoded"),
        ];
        self.ask("POST", path, &[&own, more].concat(), form)
    }

    /// Opens a stream of events and reads its head; `None` if it is refused with 503.
    fn stream(&self) -> Option<BufReader<TcpStream>> {
        let mut stream = self.connect();
        let headers = [("host", self.host()), ("cookie", self.cookie.clone())];
        let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
        stream.write_all(request("GET", "/events", &headers, "").as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
        }
        if head.starts_with("HTTP/1.1 503") {
            assert!(head.to_lowercase().contains("retry-after: 30"), "{head}");
            return None;
        }
        assert!(head.starts_with("HTTP/1.1 200") && head.contains("text/event-stream"), "{head}");
        Some(reader)
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.process.id()).unwrap()
    }
}

impl Drop for Ui {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let mut text = format!("{method} {path} HTTP/1.1\r\n");
    for (name, value) in headers {
        write!(text, "{name}: {value}\r\n").unwrap();
    }
    if !body.is_empty() {
        write!(text, "content-length: {}\r\n", body.len()).unwrap();
    }
    format!("{text}\r\n{body}")
}

fn read_reply(mut stream: TcpStream) -> Reply {
    let mut bytes = Vec::new();
    // A connection that is reset after its answer is still an answer.
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Reply { status, head: head.to_owned(), body: body.to_owned() }
}

/// Reads a stream of events up to the next `changed`, and returns its id.
fn next_change(stream: &mut BufReader<TcpStream>) -> u64 {
    let mut id = None;
    loop {
        let mut line = String::new();
        assert!(stream.read_line(&mut line).unwrap() > 0, "the stream ended");
        if let Some(number) = line.strip_prefix("id: ") {
            id = number.trim().parse().ok();
        }
        if line.starts_with("event: changed") {
            return id.unwrap();
        }
    }
}
