//! How many known secrets are removed, and how much ordinary text is left alone, measured on the files in `corpus/`.

use super::*;

const KEYS: &str = include_str!("corpus/keys.txt");
const CONTEXTS: &str = include_str!("corpus/contexts.txt");
const INNOCENTS: &str = include_str!("corpus/innocents.txt");
/// These were written before they were measured, and no rule is for one of their lines.
const HELD_OUT: &str = include_str!("corpus/held-out-secrets.txt");
const HELD_OUT_ORDINARY: &str = include_str!("corpus/held-out-ordinary.txt");

/// It records what is measured here.
const PAGE: &str = include_str!("../../../../../docs/reliability.md");

/// How many values are made of each line.
const SEEDS: u64 = 4;

/// Characters without a glyph, put inside of secrets.
const INVISIBLE: [char; 9] =
    ['\u{200b}', '\u{200d}', '\u{feff}', '\u{ad}', '\u{fe0f}', '\u{2060}', '\u{e0041}', '\u{34f}', '\u{180e}'];

/// A small generator, so that every run tests the same values.
struct Made(u64);

impl Made {
    fn draw(&mut self) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap()
    }

    fn of(&mut self, alphabet: char, count: usize) -> String {
        let (lower, upper, digits) = ("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789");
        let characters: Vec<char> = match alphabet {
            'a' => [lower, upper].concat(),
            'l' => lower.to_owned(),
            'u' => upper.to_owned(),
            'n' => [lower, digits].concat(),
            'N' => [upper, digits].concat(),
            'A' => [lower, upper, digits].concat(),
            'x' => "0123456789abcdef".to_owned(),
            'X' => "0123456789ABCDEF".to_owned(),
            'd' => digits.to_owned(),
            'b' => [lower, upper, digits, "+/"].concat(),
            'w' => [lower, upper, digits, "-_"].concat(),
            '_' => [lower, upper, digits, "_"].concat(),
            't' => [lower, "234567"].concat(),
            'T' => [upper, "234567"].concat(),
            's' => "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz".to_owned(),
            'y' => "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L".to_owned(),
            other => panic!("no alphabet {other}"),
        }
        .chars()
        .collect();
        (0..count).map(|_| characters[self.draw() % characters.len()]).collect()
    }

    /// A line with its generators replaced.
    fn line(&mut self, template: &str) -> String {
        let mut text = String::new();
        let mut rest = template;
        while let Some((plain, behind)) = rest.split_once('{') {
            text.push_str(plain);
            let (inside, after) = behind.split_once('}').unwrap_or((behind, ""));
            let mut letters = inside.chars();
            let alphabet = letters.next().unwrap_or(' ');
            if inside == "uuid" {
                let groups = [8, 4, 4, 4, 12].map(|count| self.of('x', count));
                text.push_str(&groups.join("-"));
                rest = after;
            } else if let Some(count) = letters.as_str().parse().ok().filter(|_| alphabet.is_ascii_alphabetic()) {
                text.push_str(&self.of(alphabet, count));
                rest = after;
            } else {
                text.push('{');
                rest = behind;
            }
        }
        (text + rest).replace('↵', "\n")
    }
}

fn lines(file: &str) -> impl Iterator<Item = &str> {
    file.lines().filter(|line| !line.is_empty() && !line.starts_with("# "))
}

/// The text and the secrets in it.
fn marked(line: &str) -> (String, Vec<String>) {
    let secrets = line.split('«').skip(1).filter_map(|part| part.split_once('»')).map(|(secret, _)| secret.to_owned());
    let secrets = secrets.collect();
    (line.replace(['«', '»'], ""), secrets)
}

/// Whether a secret or half of it is still there.
fn leaks(clean: &str, secret: &str) -> bool {
    let letters: Vec<char> = secret.chars().filter(|c| !INVISIBLE.contains(c)).collect();
    let seen: String = clean.chars().filter(|c| !INVISIBLE.contains(c)).collect();
    letters.windows(letters.len().div_ceil(2)).any(|half| seen.contains(&half.iter().collect::<String>()))
}

/// The secret with an invisible character after every fifth.
fn broken_up(secret: &str, made: &mut Made) -> String {
    let mut text = String::new();
    for (at, letter) in secret.chars().enumerate() {
        text.push(letter);
        if at % 5 == 2 {
            text.push(INVISIBLE[made.draw() % INVISIBLE.len()]);
        }
    }
    text
}

/// What was tried and what failed of it.
struct Measured {
    group: &'static str,
    failed: usize,
    tried: usize,
}

impl Measured {
    /// The share that fails, in hundredths of a percent.
    fn share(&self) -> usize {
        self.failed * 10_000 / self.tried
    }

    /// The line of the table on the page about reliability.
    fn line(&self) -> String {
        let percent = |share: usize| format!("{}.{:02} %", share / 100, share % 100);
        format!("| {} | {} | {} | {} |", self.group, self.tried, self.failed, percent(self.share()))
    }
}

/// Tries each line with several values, and prints those that fail.
#[expect(clippy::print_stdout, reason = "the measurement is the point of the test")]
fn measure(group: &'static str, file: &str, fails: impl Fn(&str, &mut Made) -> Option<String>) -> Measured {
    let (mut failed, mut tried) = (0, 0);
    for line in lines(file) {
        for seed in 0..SEEDS {
            let mut made = Made(seed * 1_000_003 + 17);
            tried += 1;
            if let Some(shown) = fails(line, &mut made) {
                failed += 1;
                println!("{group}: {line}\n    {shown}");
            }
        }
    }
    println!("{group}: {failed} of {tried}");
    Measured { group, failed, tried }
}

#[test]
fn known_secrets_are_removed_and_ordinary_text_is_not() {
    let leaked = |text: &str, secrets: &[String]| {
        let clean = redact(text);
        secrets.iter().any(|secret| leaks(&clean, secret)).then(|| clean.into_owned())
    };
    let bare = measure("keys by themselves", KEYS, |line, made| {
        let key = made.line(line);
        leaked(&format!("use {key} here"), std::slice::from_ref(&key)).or_else(|| leaked(&key.clone(), &[key]))
    });
    let context = measure("secrets in what surrounds them", CONTEXTS, |line, made| {
        let (text, secrets) = marked(&made.line(line));
        leaked(&text, &secrets)
    });
    let broken = measure("keys with invisible characters", KEYS, |line, made| {
        let key = made.line(line);
        leaked(&broken_up(&key, made), &[key])
    });
    let broken_context = measure("the same in what surrounds them", CONTEXTS, |line, made| {
        let (text, secrets) = marked(&made.line(line));
        leaked(&broken_up(&text, made), &secrets)
    });
    let changed = |line: &str, made: &mut Made| {
        let text = made.line(line);
        let clean = redact(&text);
        (clean != text).then(|| clean.into_owned())
    };
    let touched = measure("ordinary text that was changed", INNOCENTS, changed);
    let held_out = measure("held-out secrets", HELD_OUT, |line, made| {
        let (text, secrets) = marked(&made.line(line));
        leaked(&text, &secrets)
    });
    let held_out_touched = measure("held-out ordinary lines that were changed", HELD_OUT_ORDINARY, changed);
    for Measured { group, failed, tried } in [&bare, &context, &broken, &broken_context] {
        assert!(failed * 100 <= tried * 3, "{group}: {failed} of {tried} leaked");
    }
    assert!(touched.share() <= 70, "{} of {} innocents touched", touched.failed, touched.tried);
    assert!(held_out.share() <= 500, "{} of {} held-out secrets leaked", held_out.failed, held_out.tried);
    assert!(held_out_touched.share() <= 100, "{} of {} touched", held_out_touched.failed, held_out_touched.tried);
    let groups = [&bare, &context, &broken, &broken_context, &touched, &held_out, &held_out_touched];
    let table: Vec<String> = groups.map(Measured::line).into();
    let table = table.join("\n");
    assert!(PAGE.contains(&table), "docs/reliability.md must have these lines:\n{table}");
}
