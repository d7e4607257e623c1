//! A short run of every fuzz target with fixed seeds: all inputs of its corpus, then changes of them.
//! `STEADFAST_FUZZ_SECONDS` makes it longer.
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "helpers of tests may panic and report as tests do")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use steadfast_fuzz::TARGETS;
use steadfast_fuzz::mutate::{Random, mutated};

/// How long a target is run; the same inputs come first on every machine.
const USUAL: Duration = Duration::from_secs(1);
/// The least number of changed inputs, however slow the machine is.
const LEAST: usize = 150;
const LONGEST: usize = 64 * 1024;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The inputs in `fuzz/corpus/TARGET` and the samples that `fuzz/seeds.txt` names, in a fixed order.
fn inputs(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let seeds = fs_err::read_to_string(root().join("fuzz/seeds.txt")).unwrap();
    let named = seeds.lines().filter_map(|line| line.strip_prefix(target)?.strip_prefix(' '));
    let mut files = Vec::new();
    list(&root().join("fuzz/corpus").join(target), &mut files);
    for path in named.flat_map(|line| line.split(' ')) {
        list(&root().join(path), &mut files);
    }
    files.sort();
    files.into_iter().map(|path| (path.clone(), fs_err::read(path).unwrap())).collect()
}

fn list(path: &Path, files: &mut Vec<PathBuf>) {
    if path.is_file() {
        files.push(path.to_owned());
    } else {
        for entry in fs_err::read_dir(path).unwrap() {
            list(&entry.unwrap().path(), files);
        }
    }
}

/// Keeps the input that broke a target, to be replayed.
struct Keep<'a>(&'a str, &'a [u8]);

impl Drop for Keep<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let path = root().join("target").join(format!("fuzz-{}", self.0));
            let _ = fs_err::write(&path, self.1);
            eprintln!("the input is in {}; `scripts/fuzz` says what to do with it", path.display());
        }
    }
}

fn run_target(name: &str) {
    let call = |data: &[u8]| {
        let _keep = Keep(name, data);
        steadfast_fuzz::run(name, data);
    };
    let inputs = inputs(name);
    assert!(!inputs.is_empty(), "{name} has no corpus");
    for (path, data) in &inputs {
        eprintln!("{}", path.display());
        call(data);
    }
    let inputs: Vec<Vec<u8>> = inputs.into_iter().map(|(_, data)| data).collect();
    let (begin, length) = (Instant::now(), length());
    let mut random = Random::new(1);
    let mut count = 0;
    while count < LEAST || begin.elapsed() < length {
        call(&mutated(&inputs, &mut random, LONGEST));
        count += 1;
    }
    eprintln!("{name}: {} inputs, {count} changes of them", inputs.len());
}

#[expect(clippy::disallowed_methods, reason = "a variable of this test alone")]
fn length() -> Duration {
    let seconds = std::env::var("STEADFAST_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    seconds.map_or(USUAL, Duration::from_secs)
}

macro_rules! short_runs {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            run_target(stringify!($name));
        })*

        /// A target that is missing in one of the lists would never be run.
        #[test]
        fn every_target_is_run_by_both_drivers() {
            let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
            let project = fs_err::read_to_string(root().join("fuzz/Cargo.toml")).unwrap();
            let project: toml::Table = project.parse().unwrap();
            let binaries: Vec<&str> = project["bin"].as_array().unwrap().iter().filter_map(|bin| bin["name"].as_str()).collect();
            assert_eq!(names, binaries);
        }
    };
}

short_runs! {
    claude_hook
    codex_hook
    tool_call
    tool_arguments
    http_request
    statusline
    whole_hook
    claude_transcript
    codex_rollout
    agent_stream
    pipeline
    loop_type
    condition
    template
    state_files
    attempt
    agent_result
    config
    prices
    redact
    text
    prompt
    error_message
    amounts
    snapshot
}
