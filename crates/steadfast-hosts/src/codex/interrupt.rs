//! Ends a turn from outside, by a request to Codex's daemon: JSON-RPC in a WebSocket on a socket in `$CODEX_HOME`. A
//! client without the daemon offers no such way. Only a turn that ignores its hooks is ended like this.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::files;
use steadfast_model::hook::HookInput;

const SOCKET: &str = "app-server-control/app-server-control.sock";
/// Together below the time that Codex gives the hook.
const PATIENCE: Duration = Duration::from_secs(2);
const TOTAL: Duration = Duration::from_secs(5);
/// Far above any answer to these requests.
const FRAME_MAX: u64 = 1024 * 1024;

const UPGRADE: &str = "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: c3RlYWRmYXN0LWhvb2tzIQ==\r\n\r\n";
const TEXT: u8 = 1;
const CLOSE: u8 = 8;

/// Returns `false` if no daemon runs.
pub(super) fn end_turn(input: &HookInput) -> io::Result<bool> {
    let home = input.transcript.as_deref().and_then(files::home_of);
    let (Some(home), Some(turn_id)) = (home, &input.turn_id) else {
        return Ok(false);
    };
    let Ok(stream) = UnixStream::connect(home.join(SOCKET)) else {
        return Ok(false);
    };
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut daemon = Daemon { stream: BufReader::new(stream), until: Instant::now() + TOTAL };
    daemon.upgrade()?;
    let client = json!({"clientInfo": {"name": "steadfast", "version": env!("CARGO_PKG_VERSION")}});
    daemon.ask(1, "initialize", &client)?;
    daemon.send(&json!({"method": "initialized"}))?;
    daemon.ask(2, "turn/interrupt", &json!({"threadId": input.session_id, "turnId": turn_id}))?;
    Ok(true)
}

struct Daemon {
    stream: BufReader<UnixStream>,
    until: Instant,
}

impl Daemon {
    fn upgrade(&mut self) -> io::Result<()> {
        self.stream.get_mut().write_all(UPGRADE.as_bytes())?;
        let mut line = String::new();
        self.stream.by_ref().take(FRAME_MAX).read_line(&mut line)?;
        if !line.starts_with("HTTP/1.1 101") {
            return Err(io::Error::other(format!("no WebSocket: {}", line.trim())));
        }
        while line.trim() != "" {
            line.clear();
            self.stream.by_ref().take(FRAME_MAX).read_line(&mut line)?;
        }
        Ok(())
    }

    fn ask(&mut self, id: i64, method: &str, params: &Value) -> io::Result<()> {
        self.send(&json!({"id": id, "method": method, "params": params}))?;
        while Instant::now() < self.until {
            let answer = self.receive()?;
            if answer["id"] == id {
                let error = &answer["error"];
                return if error.is_null() { Ok(()) } else { Err(io::Error::other(format!("{method}: {error}"))) };
            }
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, format!("no answer to {method}")))
    }

    /// A client has to mask its frames; with zeros, the text stays as it is.
    fn send(&mut self, message: &Value) -> io::Result<()> {
        let text = message.to_string();
        let length = u16::try_from(text.len()).map_err(io::Error::other)?;
        let mut frame = vec![0x80 | TEXT, 0x80 | 0x7e];
        frame.extend(length.to_be_bytes());
        frame.extend([0; 4]);
        frame.extend(text.as_bytes());
        self.stream.get_mut().write_all(&frame)
    }

    /// The next message; null for a frame of another kind.
    fn receive(&mut self) -> io::Result<Value> {
        let [head, length] = self.bytes()?;
        let length = match length & 0x7f {
            126 => u64::from(u16::from_be_bytes(self.bytes()?)),
            127 => u64::from_be_bytes(self.bytes()?),
            short => u64::from(short),
        };
        if head & 0x0f == CLOSE || length > FRAME_MAX {
            return Err(io::Error::other("the daemon closed the connection"));
        }
        let mut payload = Vec::new();
        self.stream.by_ref().take(length).read_to_end(&mut payload)?;
        Ok(serde_json::from_slice(&payload).unwrap_or_default())
    }

    fn bytes<const COUNT: usize>(&mut self) -> io::Result<[u8; COUNT]> {
        let mut bytes = [0; COUNT];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}
