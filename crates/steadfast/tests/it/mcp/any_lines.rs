//! Lines that no client sends: whatever comes in, every line that goes out is a message, and the server continues.

use serde_json::json;
use steadfast_fuzz::mutate::{Random, mutated};

use super::world::World;

/// Lines between two proofs that the server lives.
const BATCH: usize = 25;
const BATCHES: usize = 24;
const LONGEST: usize = 8 * 1024;

fn samples() -> Vec<Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/mcp_line");
    let mut files: Vec<_> = fs_err::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|path| fs_err::read(path).unwrap()).collect()
}

#[test]
fn no_line_ends_the_server() {
    let world = World::new();
    world.register("s1", None, None);
    world.note_as("toolu_0", "s1", "");
    let samples = samples();
    let mut random = Random::new(1);
    let mut server = world.server();
    for batch in 0..BATCHES {
        let mut sent = Vec::new();
        for _ in 0..BATCH {
            // The end of a line is the end of a message.
            let line = mutated(&samples, &mut random, LONGEST);
            let line = String::from_utf8_lossy(&line).replace(['\n', '\r'], " ");
            server.send_line(&line);
            sent.push(line);
        }
        let mark = format!("mark-{batch}");
        server.send(&json!({"jsonrpc": "2.0", "id": mark, "method": "ping"}));
        let mut answers = 0;
        while server.receive()["id"] != json!(mark) {
            answers += 1;
            assert!(answers <= BATCH, "more answers than lines: {sent:#?}");
        }
    }
    let (code, stderr) = server.end();
    assert_eq!((code, stderr.contains("panicked")), (0, false), "{stderr}");
    assert_eq!(world.store().integrity_faults().unwrap(), Vec::<String>::new());
}
