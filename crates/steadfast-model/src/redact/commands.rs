//! Secrets in the arguments and the input of programs: `curl -u user:password`, `mysql -pPASSWORD`,
//! `npm config set _authToken …`, `echo … | docker login --password-stdin`.

use std::ops::Range;

use super::context::is_cookies;
use super::names::{self, Grade};
use super::words::{LetterSet, has, is_ordinary, is_reference, is_sentence};
use super::{after, is_run, window};

/// Which argument of which programs is a secret.
struct Rule {
    programs: &'static str,
    /// Words that must come before, alternatives separated by `|`.
    after: &'static str,
    /// `-p`: the next word. `-p*`: also glued. `-p+`: only glued. `-*p`: also as the last of several letters. `--name`:
    /// the next word or behind `=`. Empty: the words themselves.
    flags: &'static str,
    takes: Takes,
}

/// Which part of an argument is the secret.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    All,
    /// What follows this character: `user:password`.
    Behind(char),
    /// What follows `pass:`.
    Pass,
    /// The value of `name=value`.
    Entry,
    Cookies,
    /// The first operand is a name, the second its value.
    NameAndValue,
    /// `htpasswd -b FILE USER PASSWORD`
    Htpasswd,
    /// What is written into a pipe that reads a secret.
    Written,
}

use Takes::{All, Behind, Cookies, Entry, Htpasswd, NameAndValue, Pass, Written};

const fn rule(programs: &'static str, after: &'static str, flags: &'static str, takes: Takes) -> Rule {
    Rule { programs, after, flags, takes }
}

const MYSQL: &str = "mysql mysqldump mysqladmin mysqlimport mysqlsh mariadb mariadb-dump mariadb-admin mariadb-import";
const LDAP: &str = "ldapsearch ldapmodify ldapadd ldapdelete ldappasswd ldapwhoami ldapcompare";
const CONTAINERS: &str = "docker podman nerdctl buildah skopeo helm oc az kubectl";

const RULES: [Rule; 25] = [
    rule("curl", "", "-u* -*u -*U --user --proxy-user", Behind(':')),
    rule("curl", "", "-b* -*b", Cookies),
    rule("http https xh xhs", "", "-*a", Behind(':')),
    rule("sshpass", "", "-p*", All),
    rule(MYSQL, "", "-p+", All),
    rule("7z 7za 7zz 7zr", "", "-p+", All),
    rule("redis-cli redis-benchmark valkey-cli keydb-cli", "", "-a", All),
    rule("zip unzip zipcloak sqlcmd mosquitto_pub mosquitto_sub", "", "-P*", All),
    rule(LDAP, "", "-*w", All),
    rule("openssl", "", "-k -K", All),
    rule("openssl", "", "-pass -passin -passout", Pass),
    rule("mongo mongosh mongodump mongorestore mongoimport mongoexport", "", "-p", All),
    rule("smbclient rpcclient smbget smbcacls", "", "-U* --user", Behind('%')),
    rule("lftp", "", "-u* --user", Behind(',')),
    rule("ssh-keygen", "", "-N* -P*", All),
    rule("gh", "secret set", "-b* --body", All),
    rule(CONTAINERS, "login", "-p", All),
    rule(CONTAINERS, "create secret", "--from-literal", Entry),
    rule("vault bao", "kv put|kv patch|vault write|bao write", "", Entry),
    rule("npm pnpm yarn pip aws", "config set|configure set|npm set", "", NameAndValue),
    rule("setx setenv", "", "", NameAndValue),
    rule("set", "", "", NameAndValue),
    rule("htpasswd", "", "", Htpasswd),
    rule("echo printf", "", "", Written),
    // For their input only.
    rule("sudo chpasswd passwd wrangler", "", "", All),
];

/// Words that, in this order, make a program read a secret from its input; alternatives separated by `|`.
const READERS: &str = "--password-stdin|--with-token|--passphrase-fd|--pass-stdin|--token-stdin|chpasswd|\
    sudo -S|passwd --stdin|openssl stdin|gh secret set|wrangler secret put|docker secret create|podman secret create";
/// How far readers behind a pipe are searched.
const READERS_MAX: usize = 256;

/// How far a command is read.
const COMMAND_MAX: usize = 1_024;
/// How many words before or behind another one matter to it, so that the time is linear.
const WORDS_MAX: usize = 64;

/// Last words of names in a secret store whose values are not secrets.
const PLAIN_NAMES: &str = "user username login host hostname port ttl policies type";

static PROGRAMS: LetterSet = {
    let mut lists = [""; RULES.len()];
    let mut at = 0;
    while at < RULES.len() {
        lists[at] = RULES[at].programs;
        at += 1;
    }
    LetterSet::new(&lists)
};

fn rules(program: &str) -> impl Iterator<Item = &'static Rule> {
    RULES.iter().filter(move |rule| has(rule.programs, program))
}

fn is_program(word: &str) -> bool {
    PROGRAMS.begin(word.as_bytes()) && rules(word).next().is_some()
}

/// Whether the run that ends at `end` is a program with arguments.
pub(super) fn begins(text: &str, run: &str, end: usize) -> bool {
    PROGRAMS.begin(run.as_bytes())
        && after(text, end).starts_with([' ', '\t', '\\'])
        && is_program(run.strip_suffix(".exe").unwrap_or(run))
}

/// The secrets in a command.
pub(super) fn find(text: &str, words: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let command = CommandWords { text, words };
    let mut program = 0;
    let mut active = Vec::new();
    for at in 0..words.len() {
        let word = command.name(at);
        // `sudo docker exec db mysql …`: the last program named has the flags. Some are only commands on their own.
        if at == 0 || (is_program(word) && !has("set echo printf", word)) {
            program = at;
            active = rules(word).collect();
        }
        if command.word(at) == "<<<" && reads_secret((near(at)..at).map(|at| command.word(at))) {
            found.extend(words.get(at + 1).and_then(|input| command.part(input.clone(), All)));
        }
        found.extend(active.iter().filter_map(|rule| command.secret(rule, program, at)));
    }
    found
}

struct CommandWords<'t> {
    text: &'t str,
    words: &'t [Range<usize>],
}

impl<'t> CommandWords<'t> {
    fn word(&self, at: usize) -> &'t str {
        self.words.get(at).and_then(|word| self.text.get(word.clone())).unwrap_or_default()
    }

    /// The name of a program without its directory or a bracket before it.
    fn name(&self, at: usize) -> &'t str {
        let name = self.word(at).rsplit(|c: char| !c.is_ascii() || "/({[$<>".contains(c)).next().unwrap_or_default();
        name.strip_suffix(".exe").unwrap_or(name)
    }

    /// What a rule finds at a word of the command.
    fn secret(&self, rule: &Rule, program: usize, at: usize) -> Option<Range<usize>> {
        let first = at == program;
        match rule.takes {
            Written if first => return self.written(),
            Htpasswd if first => return self.htpasswd(at),
            NameAndValue if first && rule.after.is_empty() => return self.name_and_value(at),
            NameAndValue if self.follows(rule.after, program, at) => return self.name_and_value(at),
            Written | Htpasswd | NameAndValue => return None,
            _ => {}
        }
        if first
            || !(rule.after.is_empty() || (near(at).max(program)..at).any(|at| self.follows(rule.after, program, at)))
        {
            return None;
        }
        let word = self.words.get(at)?;
        if rule.flags.is_empty() {
            return (rule.takes == Entry).then(|| self.part(word.clone(), Entry)).flatten();
        }
        let glued = rule.flags.split(' ').find_map(|flag| flag_end(flag, self.word(at)))?;
        let next = at + 1 + usize::from(self.word(at + 1) == "=");
        let argument = if glued < word.len() { word.start + glued..word.end } else { self.words.get(next)?.clone() };
        self.part(argument, rule.takes)
    }

    /// Whether one of the phrases ends with the word at `at`.
    fn follows(&self, phrases: &str, program: usize, at: usize) -> bool {
        phrases.split('|').any(|phrase| {
            let length = phrase.split(' ').count();
            let from = (at + 1).checked_sub(length).filter(|from| *from >= program);
            from.is_some_and(|from| phrase.split(' ').enumerate().all(|(nth, word)| self.word(from + nth) == word))
        })
    }

    /// The secret part of an argument, without its quotes.
    fn part(&self, argument: Range<usize>, takes: Takes) -> Option<Range<usize>> {
        let written = self.text.get(argument.clone())?;
        let quoted = written.starts_with(['"', '\'', '\\']);
        let inner = without_quotes(written);
        let secret = match takes {
            Behind(between) => without_quotes(inner.split_once(between)?.1),
            Pass => without_quotes(inner.strip_prefix("pass:")?),
            Entry => {
                let (name, value) = inner.split_once('=').filter(|(name, _)| !name.starts_with('-'))?;
                let plain = has(PLAIN_NAMES, name.rsplit(['_', '-', '.']).next()?) || value.starts_with('@');
                without_quotes(value).get(if plain { value.len().. } else { 0.. })?
            }
            Cookies => Some(inner).filter(|inner| is_cookies(inner))?,
            _ => inner,
        };
        let whole = matches!(takes, All | NameAndValue);
        // `docker run mysql -p80:80` opens ports.
        let ports = whole && secret.contains(':') && secret.bytes().all(|b| b.is_ascii_digit() || b":.".contains(&b));
        let talk = whole && !quoted && is_sentence(secret);
        let plain = ports
            || talk
            || (!quoted && secret.starts_with('('))
            || (takes == NameAndValue && is_ordinary(secret))
            || is_reference(secret);
        let start = argument.start + secret.as_ptr().addr() - written.as_ptr().addr();
        (!secret.is_empty() && !plain).then_some(start..start + secret.len())
    }

    /// The operands behind a word, without flags.
    fn operands(&self, from: usize) -> impl Iterator<Item = usize> {
        (from + 1..self.words.len()).filter(|at| !self.word(*at).starts_with('-'))
    }

    fn name_and_value(&self, from: usize) -> Option<Range<usize>> {
        let is_option = |word: &str| word.starts_with('/') && word.len() <= 2;
        let mut operands = self.operands(from).filter(|at| !is_option(self.word(*at)));
        let name = operands.next()?;
        // In fish, `set` needs a flag, and these flags erase or query a variable.
        let erases = |flag: &str| match flag.strip_prefix("--") {
            Some(long) => has("erase query show names", long),
            None => flag.starts_with('-') && flag.contains(['e', 'q', 'S', 'n', 'o']),
        };
        let flags = || (from + 1..name).map(|at| self.word(at));
        if self.word(from) == "set" && from == 0 && (name == from + 1 || flags().any(erases)) {
            return None;
        }
        let run = self.word(name).rsplit(|c: char| !c.is_ascii() || !is_run(c as u8)).next()?;
        let named = matches!(names::grade(run), Some(Grade::Strong | Grade::Token | Grade::Weak));
        self.part(self.words.get(operands.next().filter(|_| named)?)?.clone(), NameAndValue)
    }

    fn htpasswd(&self, program: usize) -> Option<Range<usize>> {
        let (mut in_command, mut prints, mut number) = (false, false, false);
        let mut operands = Vec::new();
        for at in program + 1..self.words.len().min(program + WORDS_MAX) {
            match self.word(at).strip_prefix('-') {
                Some(letters) => {
                    in_command |= letters.contains('b');
                    prints |= letters.contains('n');
                    number = letters.ends_with(['C', 'r']);
                }
                None if std::mem::take(&mut number) => {}
                None => operands.push(at),
            }
        }
        let password = *operands.get(if prints { 1 } else { 2 }).filter(|_| in_command)?;
        let talk = operands.first().is_some_and(|first| is_sentence(self.word(*first)));
        self.part(self.words.get(password).filter(|_| !talk)?.clone(), Htpasswd)
    }

    /// What `echo` or `printf` writes, if the pipe behind it leads to a program that reads a secret.
    fn written(&self) -> Option<Range<usize>> {
        let behind = window(self.text, self.words.last()?.end, READERS_MAX);
        let pipeline = behind.trim_start_matches([' ', '\t', '\r', '\\', '\n', '"', '\'']);
        if !pipeline.starts_with('|') || pipeline.starts_with("||") {
            return None;
        }
        let pipeline = pipeline.get(..pipeline_end(pipeline))?;
        if !reads_secret(pipeline.split(|c: char| !c.is_ascii() || !is_run(c as u8))) {
            return None;
        }
        let flags =
            (1..self.words.len()).take_while(|at| matches!(self.word(*at), "-n" | "-e" | "-E" | "-ne" | "-en")).count();
        let mut operands = self.words.get(1 + flags..)?;
        if let ("printf", [_, others @ ..]) = (self.word(0), operands)
            && !others.is_empty()
        {
            operands = others;
        }
        match operands {
            [one] => self.part(one.clone(), Written),
            [first, .., last] => Some(first.start..last.end),
            [] => None,
        }
    }
}

fn near(at: usize) -> usize {
    at.saturating_sub(WORDS_MAX)
}

/// Where the argument of a flag begins in a word; at its end if the argument is the next word.
fn flag_end(flag: &str, word: &str) -> Option<usize> {
    if let Some(last) = flag.strip_prefix("-*") {
        let letters = word.strip_prefix('-').filter(|letters| letters.len() <= 5 && letters.ends_with(last))?;
        return letters.bytes().all(|byte| byte.is_ascii_alphabetic()).then_some(word.len());
    }
    let name = flag.trim_end_matches(['*', '+']);
    let argument = word.strip_prefix(name)?;
    let fits = match flag.strip_prefix(name)? {
        "*" => true,
        "+" => !argument.is_empty(),
        _ => argument.is_empty() || argument.starts_with('='),
    };
    fits.then(|| word.len() - argument.strip_prefix('=').unwrap_or(argument).len())
}

/// Whether these words make a program read a secret from its input.
fn reads_secret<'t>(words: impl Iterator<Item = &'t str>) -> bool {
    let words: Vec<&str> = words.collect();
    READERS.split('|').any(|reader| {
        let mut rest = words.iter();
        reader.split(' ').all(|part| rest.any(|word| *word == part))
    })
}

/// The words of the command at a position, with their quotes.
pub(super) fn words(text: &str, from: usize) -> Vec<Range<usize>> {
    let mut words = Vec::new();
    let mut at = from;
    while at - from < COMMAND_MAX {
        let rest = after(text, at).trim_start_matches([' ', '\t', '\r']);
        at = text.len() - rest.len();
        if rest.starts_with("\\\n") {
            at += 2;
        } else if rest.starts_with("<<<") {
            words.push(at..at + 3);
            at += 3;
        } else if rest.starts_with(['<', '>']) {
            at += 1;
        } else {
            let length = word_length(rest);
            // A quote right behind a word closes a quotation around the command.
            let closes = quote_at(after(rest, length).as_bytes()).map_or(0, str::len);
            if length + closes == 0 {
                break;
            }
            if length > 0 {
                words.push(at..at + length);
            }
            at += length + closes;
        }
    }
    words
}

/// The length of the word that a text begins with. Quotes belong to it, escaped ones too, as in JSON.
fn word_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut quote = None;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let rest = bytes.get(at..).unwrap_or_default();
        at += match (quote, quote_at(rest)) {
            (Some(open), _) if rest.starts_with(str::as_bytes(open)) => {
                quote = None;
                open.len()
            }
            (Some(_), _) if *byte == b'\n' => return at,
            (Some("\""), _) if *byte == b'\\' => 2,
            (None, Some(mark)) => {
                // `isn't`, or the end of a quotation around the command. Flags are followed by quotes: `-p'…'`.
                let inside = at.checked_sub(1).and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_alphanumeric);
                if inside && !(at == 2 && bytes.starts_with(b"-")) {
                    return at;
                }
                quote = Some(mark);
                mark.len()
            }
            (None, None) if ends_word(rest) => return at,
            (Some(_), _) | (None, None) => 1,
        };
    }
    text.len()
}

fn ends_word(rest: &[u8]) -> bool {
    match rest {
        [b'<', b'<', b'<', ..] | [] => true,
        // A password may contain this sign.
        [b'&', next, ..] => *next == b'&' || next.is_ascii_whitespace(),
        [first, ..] => first.is_ascii_whitespace() || b"&;|)`".contains(first),
    }
}

const QUOTES: [&str; 4] = ["\\\"", "\\'", "\"", "'"];

fn quote_at(rest: &[u8]) -> Option<&'static str> {
    QUOTES.into_iter().find(|mark| rest.starts_with(mark.as_bytes()))
}

fn without_quotes(word: &str) -> &str {
    let inner = after(word, quote_at(word.as_bytes()).map_or(0, str::len));
    QUOTES.iter().find_map(|mark| inner.strip_suffix(mark)).unwrap_or(inner)
}

/// Where a pipeline ends: a line that ends with `\` or `|` continues.
fn pipeline_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let ends = |(at, byte): (usize, &u8)| match byte {
        b'\n' => !text.get(..at).unwrap_or_default().trim_end_matches([' ', '\t', '\r']).ends_with(['\\', '|']),
        b';' => true,
        b'&' | b'|' => bytes.get(at + 1) == Some(byte),
        _ => false,
    };
    bytes.iter().enumerate().position(ends).unwrap_or(bytes.len())
}
