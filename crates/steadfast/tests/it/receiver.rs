//! An HTTP server on loopback that records what it gets and answers as it is told.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver as Queue, Sender, channel};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::attempts::eventually;

/// A request as it came in.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

pub(crate) struct Receiver {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<Request>>>,
    release: Sender<()>,
}

/// What the server answers to one request.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Status(&'static str),
    /// 200, once the test releases it.
    Held,
}

impl Receiver {
    /// Answers as listed, then with 200.
    pub(crate) fn new(answers: impl Into<Vec<Answer>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/token-123", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (release, held) = channel();
        let (answers, seen) = (answers.into(), Arc::clone(&requests));
        std::thread::spawn(move || serve(&listener, &answers, &seen, &held));
        Self { url, requests, release }
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// All requests, once there are that many.
    pub(crate) fn wait_for(&self, count: usize) -> Vec<Request> {
        eventually(|| Some(self.requests()).filter(|requests| requests.len() >= count))
    }

    pub(crate) fn release(&self) {
        self.release.send(()).unwrap();
    }
}

fn serve(listener: &TcpListener, answers: &[Answer], seen: &Mutex<Vec<Request>>, held: &Queue<()>) {
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let Some(request) = read(&stream) else { continue };
        let answer = {
            let mut seen = seen.lock().unwrap();
            seen.push(request);
            answers.get(seen.len() - 1).cloned().unwrap_or(Answer::Status("200 OK"))
        };
        let status = match answer {
            Answer::Status(status) => status,
            Answer::Held => {
                // Ends with the test.
                let Ok(()) = held.recv() else { return };
                "200 OK"
            }
        };
        // The client may be dead.
        let _ = write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let mut request = Request { head, body: String::new() };
    let length: u64 = request.header("content-length")?.parse().ok()?;
    reader.take(length).read_to_string(&mut request.body).ok()?;
    Some(request)
}
