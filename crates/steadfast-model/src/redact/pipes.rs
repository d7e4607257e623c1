//! Secrets that a program reads from its input: `echo … | docker login --password-stdin`, `sudo -S ls <<< …`. Nothing at
//! the secret itself gives it away, so the rest of the pipeline is looked at when something is written into it.

use std::ops::Range;

use super::arguments::{Holds, secret_in};
use super::operands::{past_blanks, word_from};
use super::plain::is_reference;
use super::{after, is_run, window};

/// The farthest that the pipe behind what is written is looked for, and the readers behind the pipe.
const WRITTEN_MAX: usize = 4_096;
const READERS_MAX: usize = 512;

/// Flags that make a program read a secret from its input.
const FLAGS: [&str; 5] = ["--password-stdin", "--with-token", "--passphrase-fd", "--pass-stdin", "--token-stdin"];

pub(super) fn is_reader(word: &str) -> bool {
    word.starts_with("--") && FLAGS.contains(&word)
}

/// What `echo` or `printf` writes into a pipeline that reads a secret; `end` is where the name of the program ends.
/// With it comes how far the command goes, so that none is read twice.
pub(super) fn of_echo(text: &str, end: usize, formats: bool) -> (usize, Option<Range<usize>>) {
    let near = window(text, end, WRITTEN_MAX);
    let mut operands: Vec<Range<usize>> = Vec::new();
    let mut flags = true;
    let mut at = 0;
    while let Some(word) = word_from(near, at) {
        at = word.end;
        let written = near.get(word.clone()).unwrap_or_default();
        flags &= written.starts_with('-') && written.len() < 4;
        if !flags {
            operands.push(word);
        }
    }
    let rest = after(near, at);
    let rest = past_blanks(rest.strip_prefix(['"', '\'']).unwrap_or(rest));
    let stop = end + near.len() - rest.len();
    if !rest.starts_with('|') || rest.starts_with("||") {
        return (stop, None);
    }
    let (reads, pipeline_end) = readers(text, stop);
    // Without a reader there is none for whatever else is written inside of the pipeline.
    if !reads {
        return (pipeline_end, None);
    }
    // The first word is how the others are written.
    let first = usize::from(formats && operands.len() > 1);
    let (Some(first), Some(last)) = (operands.get(first), operands.last()) else {
        return (stop, None);
    };
    let several = first != last;
    let start = if several { opening_quote(near, first.start) } else { first.start };
    let finish = if several { closing_quote(near, last.end) } else { last.end };
    let hidden = near.get(start..finish).is_some_and(|written| !is_reference(written));
    (stop, hidden.then_some(end + start..end + finish))
}

/// The secret of `<<< …`; `at` is where that may begin.
pub(super) fn of_here_string(text: &str, at: usize) -> Option<Range<usize>> {
    after(text, at).strip_prefix("<<<")?;
    secret_in(text, at + 3, Holds::Password, true)
}

fn opening_quote(text: &str, at: usize) -> usize {
    at - usize::from(text.get(..at).is_some_and(|before| before.ends_with(['"', '\''])))
}

fn closing_quote(text: &str, at: usize) -> usize {
    at + usize::from(after(text, at).starts_with(['"', '\'']))
}

/// Whether one of the programs behind a pipe takes a secret from its input, and where the pipeline ends.
fn readers(text: &str, pipe: usize) -> (bool, usize) {
    let near = window(text, pipe, READERS_MAX);
    let pipeline = near.get(..pipeline_end(near)).unwrap_or(near);
    let words: Vec<&str> =
        pipeline.split(|c: char| !c.is_ascii() || !is_run(c as u8)).filter(|word| !word.is_empty()).collect();
    let has = |word: &str| words.contains(&word);
    let pair =
        |first: &str, second: &str| words.windows(2).any(|pair| matches!(pair, [a, b] if *a == first && *b == second));
    let reads = words.iter().any(|word| is_reader(word))
        || has("chpasswd")
        || (has("sudo") && has("-S"))
        || (has("passwd") && has("--stdin"))
        || (has("openssl") && has("stdin"))
        || (has("gh") && pair("secret", "set"))
        || (has("wrangler") && pair("secret", "put"))
        || ((has("docker") || has("podman")) && pair("secret", "create"));
    (reads, pipe + pipeline.len())
}

/// Where a pipeline ends. A line that goes on is the same one.
fn pipeline_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let ends = |(at, byte): (usize, &u8)| match byte {
        b'\n' => {
            let line = text.get(..at).unwrap_or_default().trim_end_matches([' ', '\t', '\r']);
            !line.ends_with(['\\', '|'])
        }
        b';' => true,
        b'&' | b'|' => bytes.get(at + 1) == Some(byte),
        _ => false,
    };
    bytes.iter().enumerate().position(ends).unwrap_or(bytes.len())
}
