//! A webhook that answers with anything: each message is delivered, tried again or given up, and nothing hangs or breaks.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use serde_json::json;
use steadfast_fuzz::mutate::{Random, mutated};

use crate::env::Env;

const MESSAGES: usize = 10;

fn samples() -> Vec<Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/http_answer");
    let mut files: Vec<_> = fs_err::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|path| fs_err::read(path).unwrap()).collect()
}

/// Answers every request with bytes made from the samples, and closes the connection.
fn serve(listener: &TcpListener) {
    let (samples, mut random) = (samples(), Random::new(1));
    for stream in listener.incoming().map_while(Result::ok) {
        let _ = answer(stream, &mutated(&samples, &mut random, 4_096));
    }
}

fn answer(mut stream: TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_millis(200)))?;
    // The end of the request does not matter; a client that still writes gets its answer early.
    let _ = stream.read(&mut [0; 4_096])?;
    stream.write_all(bytes)
}

#[test]
fn any_answer_of_a_webhook_ends_a_try() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    std::thread::spawn(move || serve(&listener));
    let env = Env::new();
    fs_err::create_dir_all(env.home()).unwrap();
    let config = format!("[notify]\ndesktop = false\nwebhook = '{url}'\nback_off_ms = 1\n");
    fs_err::write(env.home().join("config.toml"), config).unwrap();
    env.hook("s1", &json!({"hook_event_name": "SessionStart", "source": "startup"}));
    for number in 0..MESSAGES {
        env.execute(&format!(
            "INSERT INTO outbox (kind, subject_id, title, body, created_at_ms) VALUES ('blocked', 'g', 't{number}', 'b', 1)"
        ));
    }
    let (home, store) = (env.home(), env.store());
    let arguments = ["__deliver", home.to_str().unwrap(), store.to_str().unwrap()];
    let delivered = env.command(&arguments).output().unwrap();
    assert!(delivered.status.success(), "{delivered:?}");
    assert_eq!(env.sql("SELECT count(*) FROM deliveries WHERE done_at_ms IS NOT NULL"), [[MESSAGES.to_string()]]);
    let log = fs_err::read_to_string(home.join("log/hooks.log")).unwrap_or_default();
    assert!(!log.contains("internal error"), "{log}");
}
