//! Trees of session files of many shapes: their totals, which are the same with and without the cache.

use std::cell::Cell;

use tempfile::TempDir;

use super::*;
use crate::testing::{MINUTE, START, append, reply};
use crate::usage::summary::Sum;

/// A tree of Claude Code's files and a cache.
struct Machine {
    directory: TempDir,
    read: Cell<u64>,
}

impl Machine {
    fn new() -> Self {
        Self { directory: TempDir::new().unwrap(), read: Cell::new(0) }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join("projects/p").join(name)
    }

    fn write(&self, name: &str, lines: &[String]) {
        append(&self.file(name), &lines.concat());
    }

    fn cache(&self) -> PathBuf {
        self.directory.path().join("home/usage-cache/claude")
    }

    fn run(&self, cache: &Path) -> Summary {
        let roots = [self.directory.path().join("projects")];
        self.read.set(0);
        let mut progress = |_, total| self.read.set(total);
        collect(Host::Claude, &roots, cache, Table::shipped(), &mut progress).unwrap()
    }

    /// Runs with the cache and without any, which must agree.
    fn summary(&self) -> Summary {
        let warm = self.run(&self.cache());
        let read = self.read.get();
        let cold = self.run(&self.directory.path().join("elsewhere/cache"));
        fs_err::remove_dir_all(self.directory.path().join("elsewhere")).ok();
        self.read.set(read);
        assert_eq!(names(&warm), names(&cold));
        warm
    }

    /// Responses and total tokens.
    fn totals(&self) -> (i64, i64) {
        let summary = self.summary();
        let responses = summary.sums.iter().map(|sum| sum.responses).sum();
        (responses, summary.sums.iter().map(|sum| sum.tokens.total()).sum())
    }
}

/// Sums by name; models may be numbered differently when files were read in another order.
type Named = (i64, [String; 4], i64, Tokens, Option<i64>);

fn names(summary: &Summary) -> Vec<Named> {
    let mut sums: Vec<_> = summary
        .sums
        .iter()
        .map(|sum| {
            let session = summary.sessions[sum.session as usize].id.clone();
            let model = summary.models[sum.model as usize].clone();
            let name = |index: u32| summary.names[index as usize].clone();
            let kinds = [session, model, name(sum.tool), name(sum.agent)];
            (sum.slot, kinds, sum.responses, sum.tokens, sum.cost_micros)
        })
        .collect();
    sums.sort_by(|a, b| (a.0, &a.1, a.4).cmp(&(b.0, &b.1, b.4)));
    sums
}

#[test]
fn a_response_counts_once_however_many_lines_and_files_contain_it() {
    let machine = Machine::new();
    let copied = [
        reply("m1", START, [10, 1, 0, 0]),
        reply("m1", START + 1, [10, 40, 7, 9]),
        reply("m2", START + MINUTE, [5, 5, 0, 0]),
    ];
    machine.write("a.jsonl", &copied);
    machine.write("b.jsonl", &copied);
    machine.write("b.jsonl", &[reply("m3", START + MINUTE, [1, 0, 0, 0])]);
    machine.write("a/subagents/agent-x.jsonl", &[reply("m4", START, [2, 0, 0, 0])]);
    assert_eq!(machine.totals(), (4, 66 + 10 + 1 + 2));
    // A response in both files counts for the older session.
    let summary = machine.summary();
    let of_fork = summary.sums.iter().filter(|sum| summary.sessions[sum.session as usize].id == "b");
    assert_eq!(of_fork.map(|sum| sum.responses).sum::<i64>(), 1);
}

#[test]
fn the_largest_record_counts_even_if_it_is_in_another_file() {
    for (first, second) in [(1, 40), (40, 1)] {
        let machine = Machine::new();
        machine.write("a.jsonl", &[reply("m1", START, [10, first, 0, 0])]);
        machine.write("b.jsonl", &[reply("m1", START, [10, second, 0, 0])]);
        assert_eq!(machine.totals(), (1, 50));
    }
}

#[test]
fn only_what_is_new_is_read() {
    let machine = Machine::new();
    let lines = ["m1", "m2"].map(|id| reply(id, START, [10, 5, 0, 0]));
    machine.write("a.jsonl", &lines);
    machine.write("b.jsonl", &[reply("m3", START, [1, 1, 1, 1])]);
    assert_eq!(machine.totals(), (3, 34));
    assert!(machine.read.get() > 0);
    assert_eq!(machine.totals(), (3, 34));
    assert_eq!(machine.read.get(), 0);

    let more = [reply("m2", START, [10, 25, 0, 0]), reply("m4", START, [1, 0, 0, 0])];
    machine.write("a.jsonl", &more);
    assert_eq!(machine.totals(), (4, 55));
    assert_eq!(machine.read.get(), more.concat().len() as u64);
}

#[test]
fn an_incomplete_last_line_counts_when_it_is_complete() {
    let machine = Machine::new();
    let line = reply("m1", START, [10, 5, 0, 0]);
    let (begun, rest) = line.split_at(line.len() / 2);
    machine.write("a.jsonl", &[reply("m0", START, [1, 0, 0, 0]), begun.to_owned()]);
    assert_eq!(machine.totals(), (1, 1));
    machine.write("a.jsonl", &[rest.to_owned()]);
    assert_eq!(machine.totals(), (2, 16));
}

#[test]
fn deleted_and_rewritten_files_no_longer_count() {
    let machine = Machine::new();
    let [a, b, c] = ["a", "b", "c"].map(|id| reply(id, START, [1, 0, 0, 0]));
    machine.write("one.jsonl", &[a.clone(), b.clone()]);
    machine.write("two.jsonl", &[b.clone(), c.clone()]);
    assert_eq!(machine.totals(), (3, 3));
    fs_err::remove_file(machine.file("one.jsonl")).unwrap();
    assert_eq!(machine.totals(), (2, 2));
    fs_err::write(machine.file("two.jsonl"), format!("{a}{a}{a}{a}")).unwrap();
    assert_eq!(machine.totals(), (1, 1));
    fs_err::remove_file(machine.file("two.jsonl")).unwrap();
    assert_eq!(machine.totals(), (0, 0));
}

#[test]
fn a_broken_cache_is_ignored() {
    let machine = Machine::new();
    machine.write("a.jsonl", &["m1", "m2"].map(|id| reply(id, START, [10, 5, 0, 0])));
    machine.summary();
    let good = fs_err::read(machine.cache()).unwrap();
    for length in (0..good.len()).step_by(11) {
        fs_err::write(machine.cache(), &good[..length]).unwrap();
        assert_eq!(names(&machine.run(&machine.cache())).len(), 1, "cut to {length} bytes");
    }
    for at in (0..good.len()).step_by(5) {
        let mut bytes = good.clone();
        bytes[at] ^= 0x41;
        fs_err::write(machine.cache(), &bytes).unwrap();
        assert_eq!(machine.run(&machine.cache()).sums[0].responses, 2, "byte {at} changed");
    }
    // A cache that cannot be written is not an error.
    fs_err::remove_dir_all(machine.directory.path().join("home")).unwrap();
    fs_err::write(machine.directory.path().join("home"), "a file").unwrap();
    assert_eq!(machine.totals(), (2, 30));
}

#[cfg(unix)]
#[test]
fn only_its_owner_can_read_the_cache() {
    use std::os::unix::fs::PermissionsExt as _;
    let machine = Machine::new();
    machine.write("a.jsonl", &[reply("m1", START, [1, 0, 0, 0])]);
    machine.summary();
    let mode = |path: &Path| fs_err::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&machine.cache()), 0o600);
    assert_eq!(mode(machine.cache().parent().unwrap()), 0o700);
    let beside = fs_err::read_dir(machine.cache().parent().unwrap()).unwrap().count();
    assert_eq!(beside, 1, "no temporary file is left");
}

#[test]
fn other_prices_do_not_reread_the_files() {
    let machine = Machine::new();
    machine.write("a.jsonl", &[reply("m1", START, [1_000_000, 0, 0, 0])]);
    let cost = |summary: &Summary| summary.sums[0].cost_micros;
    assert_eq!(cost(&machine.summary()), Some(5_000_000));
    let prices =
        "[models.claude-opus-4-8]\ninput = 7\noutput = 0\ncache_write_5m = 0\ncache_write_1h = 0\ncache_read = 0\n";
    let roots = [machine.directory.path().join("projects")];
    let table = Table::from_toml(prices, Path::new("prices.toml")).unwrap();
    let mut read = false;
    let other = collect(Host::Claude, &roots, &machine.cache(), &table, &mut |_, _| read = true).unwrap();
    assert_eq!((cost(&other), read), (Some(7_000_000), false));
    assert_eq!(cost(&machine.summary()), Some(5_000_000));
}

#[test]
fn a_malformed_response_is_left_out_and_reported() {
    let machine = Machine::new();
    let usage = serde_json::json!({"input_tokens": -5, "output_tokens": 1});
    let bad = crate::testing::reply_with_usage("bad", START, &usage);
    machine.write("a.jsonl", &[bad, reply("m1", START, [1, 0, 0, 0])]);
    assert_eq!(machine.totals(), (1, 1));
    assert_eq!(machine.summary().malformed_files, 1);
}

#[test]
fn a_session_belongs_to_its_own_directory_not_its_subagents() {
    let machine = Machine::new();
    let line = |id: &str, cwd: &str| {
        let mut line: serde_json::Value = serde_json::from_str(&reply(id, START, [1, 0, 0, 0])).unwrap();
        line["cwd"] = cwd.into();
        format!("{line}\n")
    };
    machine.write("s/subagents/agent-x.jsonl", &[line("m1", "/src/tree")]);
    machine.write("s.jsonl", &[line("m2", "/src/\"quoted\"\\é"), line("m3", "/elsewhere")]);
    machine.write("bare.jsonl", &[reply("m4", START, [1, 0, 0, 0])]);
    let projects: HashMap<String, String> =
        machine.summary().sessions.into_iter().map(|session| (session.id, session.project)).collect();
    assert_eq!(projects["s"], "/src/\"quoted\"\\é");
    assert_eq!(projects["bare"], "p");
}

/// A line with more fields, in the line itself and in its usage.
fn line_with(id: &str, tokens: [i64; 4], fields: &[(&str, &str)], usage: &[(&str, &str)]) -> String {
    let mut line: serde_json::Value = serde_json::from_str(&reply(id, START, tokens)).unwrap();
    for (name, value) in fields {
        line[*name] = (*value).into();
    }
    for (name, value) in usage {
        line["message"]["usage"][*name] = (*value).into();
    }
    format!("{line}\n")
}

/// A name, the fields of the usage, the cost.
type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], Option<i64>);

#[test]
fn a_response_is_priced_by_what_its_line_says() {
    let machine = Machine::new();
    let tokens = [1_000, 1_000, 0, 0];
    let cases: [Case<'_>; 6] = [
        ("standard", &[("speed", "standard"), ("service_tier", "standard")], Some(30_000)),
        ("fast", &[("speed", "fast"), ("service_tier", "standard")], Some(60_000)),
        ("batch", &[("service_tier", "batch")], Some(15_000)),
        ("priority", &[("service_tier", "priority")], None),
        ("new speed", &[("speed", "ludicrous")], None),
        ("new tier", &[("service_tier", "gold")], None),
    ];
    for (id, usage, _) in &cases {
        machine.write(&format!("{id}.jsonl"), &[line_with(id, tokens, &[], usage)]);
    }
    let summary = machine.summary();
    for (id, _, cost) in &cases {
        let of_session = |sum: &&Sum| summary.sessions[sum.session as usize].id == *id;
        let sum = summary.sums.iter().find(of_session).unwrap();
        assert_eq!(sum.cost_micros, *cost, "{id}");
    }
}

#[test]
fn agents_and_tools_are_those_that_the_client_names() {
    let machine = Machine::new();
    let one = [1, 0, 0, 0];
    machine.write(
        "s.jsonl",
        &[
            reply("m1", START, one),
            line_with("m2", one, &[("attributionSkill", "pdf"), ("attributionMcpServer", "x")], &[]),
            line_with("m3", one, &[("attributionMcpServer", "gith\"ub")], &[]),
        ],
    );
    machine.write("s/subagents/agent-a.jsonl", &[line_with("m4", one, &[("attributionAgent", "Plan")], &[])]);
    machine.write("s/subagents/agent-b.jsonl", &[reply("m5", START, one)]);
    fs_err::write(machine.file("s/subagents/agent-b.meta.json"), r#"{"agentType":"Explore"}"#).unwrap();
    machine.write("s/subagents/agent-c.jsonl", &[reply("m6", START, one)]);
    let kinds: Vec<(String, String)> =
        names(&machine.summary()).into_iter().map(|(_, [_, _, tool, agent], ..)| (tool, agent)).collect();
    let expected = [("", ""), ("", "Explore"), ("", "Plan"), ("", "subagent"), ("gith\"ub", ""), ("pdf", "")];
    assert_eq!(kinds, expected.map(|(tool, agent)| (tool.to_owned(), agent.to_owned())));
    // What is appended later belongs to the same agent.
    machine.write("s/subagents/agent-b.jsonl", &[reply("m7", START, one)]);
    assert!(
        names(&machine.summary()).iter().any(|(_, [.., agent], responses, ..)| agent == "Explore" && *responses == 2)
    );
}
