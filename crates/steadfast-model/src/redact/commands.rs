//! Secrets in the arguments and the input of programs: `curl -u user:password`, `mysql -pPASSWORD`,
//! `npm config set _authToken …`, `echo … | docker login --password-stdin`.

use std::ops::Range;

use super::context::is_cookies;
use super::names::{self, Grade};
use super::words::{has, is_ordinary, is_reference, is_sentence, looks_random};
use super::{after, is_run, window};

type Rule = (&'static str, &'static str, &'static str, Takes);

/// Which part of an argument is the secret.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    All,
    /// What follows this text: `user:password`.
    Behind(&'static str),
    /// What stands between these: `user/password@service`.
    Between(&'static str, &'static str),
    /// What follows a file and a user, after a flag with `b`.
    ThirdOperand,
    /// The value of `name=value`.
    Entry,
    Cookies,
    /// The first operand is a name, the second its value.
    NameAndValue,
    /// The word that stands so far behind the phrase.
    Operand(usize),
    /// What is written into a pipe that reads a secret.
    Written,
}

use Takes::{All, Behind, Between, Cookies, Entry, NameAndValue, Operand, ThirdOperand, Written};

const MYSQL: &str = "mysql mysqldump mysqladmin mysqlimport mysqlsh mariadb mariadb-dump mariadb-admin mariadb-import";
const LDAP: &str = "ldapsearch ldapmodify ldapadd ldapdelete ldappasswd ldapwhoami ldapcompare";
const CONTAINERS: &str = "docker podman nerdctl buildah skopeo helm oc az kubectl";

/// Programs, words that must come before (alternatives separated by `|`), flags, and what is the secret.
///
/// `-p`: the next word. `-p*`: also glued. `-p+`: only glued. `-*p`: also as the last of several letters. `--name`: the
/// next word or behind `=`. Empty: the words themselves.
const RULES: [Rule; 46] = [
    ("curl", "", "-u* -*u -*U --user --proxy-user", Behind(":")),
    ("curl", "", "-b* -*b", Cookies),
    ("http https xh xhs", "", "-*a", Behind(":")),
    ("sshpass", "", "-p*", All),
    (MYSQL, "", "-p+", All),
    ("7z 7za 7zz 7zr", "", "-p+", All),
    ("redis-cli redis-benchmark valkey-cli keydb-cli", "", "-a", All),
    ("zip unzip zipcloak sqlcmd mosquitto_pub mosquitto_sub", "", "-P*", All),
    (LDAP, "", "-*w", All),
    ("openssl", "", "-k -K", All),
    ("openssl", "", "-pass -passin -passout", Behind("pass:")),
    ("mongo mongosh mongodump mongorestore mongoimport mongoexport", "", "-p", All),
    ("smbclient rpcclient smbget smbcacls", "", "-U* --user", Behind("%")),
    ("lftp", "", "-u* --user", Behind(",")),
    ("ssh-keygen", "", "-N* -P*", All),
    ("gh", "secret set", "-b* --body", All),
    (CONTAINERS, "login", "-p", All),
    (CONTAINERS, "create secret", "--from-literal", Entry),
    ("vault bao", "kv put|kv patch|vault write|bao write", "", Entry),
    ("npm pnpm yarn pip aws", "config set|configure set|npm set", "", NameAndValue),
    ("echo printf", "", "", Written),
    ("keytool jarsigner", "", "-storepass -keypass -srcstorepass -deststorepass -destkeypass -new", All),
    ("bcp isql tsql", "", "-P*", All),
    ("sqlplus expdp impdp", "", "", Between("/", "@")),
    ("xfreerdp wlfreerdp mstsc", "", "/p:+", All),
    ("chpasswd", "", "", Behind(":")),
    ("htpasswd", "", "", ThirdOperand),
    ("etcdctl", "", "--user", Behind(":")),
    ("psexec PsExec", "", "-p", All),
    ("redis-server valkey-server", "", "--requirepass --masterauth", All),
    ("twine cqlsh", "", "-p*", All),
    ("ipmitool", "", "-P*", All),
    ("snmpwalk snmpget snmpset snmpbulkwalk snmpgetnext snmptrap", "", "-c* -A* -X*", All),
    ("rar unrar", "", "-p+ -hp+", All),
    ("wpa_passphrase", "wpa_passphrase", "", Operand(2)),
    ("cargo", "cargo login", "", Operand(1)),
    ("gem", "gem signin", "", Operand(1)),
    ("rabbitmqctl", "add_user|change_password|authenticate_user", "", Operand(2)),
    ("security", "add-generic-password|add-internet-password|unlock-keychain", "-w* -p*", All),
    ("aws", "put-parameter|create-secret|put-secret-value|update-secret", "--value --secret-string", All),
    ("az", "secret set", "--value", All),
    ("net", "net user", "", Operand(2)),
    ("net", "net use", "", Operand(2)),
    ("net", "net use", "", Operand(3)),
    ("influx cypher-shell arangosh", "", "-p", All),
    ("svn svnadmin hg", "", "--password", All),
];

/// Words that, in this order, make a program read a secret from its input; alternatives separated by `|`.
const READERS: &str = "--password-stdin|--with-token|--passphrase-fd|--pass-stdin|--token-stdin|chpasswd|\
    sudo -S|passwd --stdin|openssl stdin|gh secret set|wrangler secret put|docker secret create|podman secret create";
const READERS_MAX: usize = 256;

const COMMAND_MAX: usize = 1_024;
/// How many words before another one matter to it, so that the time is linear.
const WORDS_MAX: usize = 64;

/// Last words of names in a secret store whose values are not secrets.
const PLAIN_NAMES: &str = "user username login host hostname port ttl policies type";

/// The lengths of program names by first letter, as bits: most words are ruled out without looking at the table.
const LENGTHS: [u32; 256] = {
    let (mut lengths, mut rule) = ([0; 256], 0);
    while rule < RULES.len() {
        let (names, mut start, mut at) = (RULES[rule].0.as_bytes(), 0, 0);
        while at <= names.len() {
            if at == names.len() || names[at] == b' ' {
                lengths[names[start] as usize] |= 1 << (at - start);
                start = at + 1;
            }
            at += 1;
        }
        rule += 1;
    }
    lengths
};

/// The first letters of the programs of each rule, as bits.
const FIRSTS: [u32; RULES.len()] = {
    let (mut firsts, mut rule) = ([0; RULES.len()], 0);
    while rule < RULES.len() {
        let (names, mut at) = (RULES[rule].0.as_bytes(), 0);
        while at < names.len() {
            if at == 0 || names[at - 1] == b' ' {
                firsts[rule] |= letter(names[at]);
            }
            at += 1;
        }
        rule += 1;
    }
    firsts
};

const fn letter(byte: u8) -> u32 {
    1 << (byte & 31)
}

fn is_program(word: &str) -> bool {
    let lengths = word.bytes().next().map_or(0, |first| LENGTHS[usize::from(first)]);
    let first = word.bytes().next().map_or(0, letter);
    let mut rules = RULES.iter().zip(FIRSTS).filter(|(_, letters)| letters & first != 0);
    word.len() < 32 && lengths & (1 << word.len()) != 0 && rules.any(|((programs, ..), _)| has(programs, word))
}

/// Whether the run that ends at `end` is a program with arguments.
pub(super) fn begins(text: &str, run: &str, end: usize) -> bool {
    after(text, end).starts_with([' ', '\t', '\\']) && is_program(run.strip_suffix(".exe").unwrap_or(run))
}

pub(super) fn find(text: &str, words: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let command = CommandWords { text, words };
    let mut program = 0;
    let mut active: Vec<&Rule> = Vec::new();
    for at in 0..words.len() {
        let word = command.name(at);
        // `sudo docker exec db mysql …`: the last program named has the flags. `echo` is only a command on its own.
        if at == 0 || (is_program(word) && !has("echo printf", word)) {
            program = at;
            active = RULES.iter().filter(|(programs, ..)| has(programs, word)).collect();
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

    fn secret(&self, rule: &Rule, program: usize, at: usize) -> Option<Range<usize>> {
        let (_, after, flags, takes) = *rule;
        let first = at == program;
        let applies = match takes {
            Written => first,
            NameAndValue | Operand(_) => self.follows(after, program, at),
            _ if after.is_empty() => !first,
            _ => (at.saturating_sub(WORDS_MAX).max(program)..at).any(|at| self.follows(after, program, at)),
        };
        match takes {
            _ if !applies => None,
            Written => self.written(),
            NameAndValue => self.name_and_value(at),
            Operand(number) => self.operand(at, number),
            ThirdOperand => self.third_operand(program, at).then(|| self.part(at, 0, All)).flatten(),
            _ if flags.is_empty() => self.part(at, 0, takes),
            _ => {
                let glued = flags.split(' ').find_map(|flag| flag_end(flag, self.word(at)))?;
                if glued < self.word(at).len() {
                    return self.part(at, glued, takes);
                }
                self.part(at + 1 + usize::from(self.word(at + 1) == "="), 0, takes)
            }
        }
    }

    /// Whether one of the phrases ends with the word at `at`.
    fn follows(&self, phrases: &str, program: usize, at: usize) -> bool {
        phrases.split('|').any(|phrase| {
            let mut words = (program..=at).rev().map(|at| self.word(at));
            phrase.rsplit(' ').all(|expected| words.next() == Some(expected))
        })
    }

    /// The secret in the argument that begins `skipped` bytes behind the start of a word, without its quotes.
    fn part(&self, at: usize, skipped: usize, takes: Takes) -> Option<Range<usize>> {
        let argument = after(self.word(at), skipped);
        let quoted = argument.starts_with(['"', '\'', '\\']);
        let inner = without_quotes(argument);
        let secret = match takes {
            Behind(between) => without_quotes(inner.split_once(between)?.1),
            Between(open, close) => inner.split_once(open)?.1.split_once(close)?.0,
            Entry => {
                let (name, value) = inner.split_once('=').filter(|(name, _)| !name.starts_with('-'))?;
                let plain = has(PLAIN_NAMES, name.rsplit(['_', '-', '.']).next()?) || value.starts_with('@');
                Some(without_quotes(value)).filter(|_| !plain)?
            }
            Cookies => Some(inner).filter(|inner| is_cookies(inner))?,
            _ => inner,
        };
        let whole = matches!(takes, All | NameAndValue);
        // `docker run mysql -p80:80` opens ports.
        let ports = whole && secret.contains(':') && secret.bytes().all(|b| b.is_ascii_digit() || b":.".contains(&b));
        let plain = ports
            || secret.starts_with("file://")
            || (whole && !quoted && is_sentence(secret))
            || (takes == NameAndValue && is_ordinary(secret))
            || is_reference(secret);
        let start = self.words.get(at)?.start + secret.as_ptr().addr() - self.word(at).as_ptr().addr();
        (!secret.is_empty() && !plain).then_some(start..start + secret.len())
    }

    fn third_operand(&self, program: usize, at: usize) -> bool {
        let mut flags = (program + 1..at).map(|at| self.word(at)).filter(|word| word.starts_with('-'));
        let mut operands = (program + 1..=at).map(|at| self.word(at)).filter(|word| !word.starts_with('-'));
        flags.any(|flag| flag.contains('b'))
            && operands.next().is_some_and(|file| file.contains(['.', '/']))
            && operands.count() == 2
            && !self.word(at).starts_with('-')
    }

    fn operand(&self, phrase: usize, number: usize) -> Option<Range<usize>> {
        let words = (phrase + 1..=phrase + number).map(|at| self.word(at));
        let word = without_quotes(self.word(phrase + number));
        let flags = words.into_iter().any(|word| word.starts_with(['-', '/']));
        let plain = flags || word.starts_with("\\\\") || word.ends_with(':');
        (!plain && looks_random(word)).then(|| self.part(phrase + number, 0, All)).flatten()
    }

    fn name_and_value(&self, from: usize) -> Option<Range<usize>> {
        let mut operands = (from + 1..self.words.len()).filter(|at| !self.word(*at).starts_with('-'));
        let name = self.word(operands.next()?);
        let run = name.rsplit(|c: char| !c.is_ascii() || !is_run(c as u8)).next()?;
        match names::grade(run)? {
            Grade::Strong | Grade::Token | Grade::Weak => self.part(operands.next()?, 0, NameAndValue),
            _ => None,
        }
    }

    /// The last word that `echo` or `printf` writes, if the pipe behind it leads to a program that reads a secret.
    fn written(&self) -> Option<Range<usize>> {
        let last = self.words.len().checked_sub(1).filter(|last| *last > 0)?;
        let behind = window(self.text, self.words.get(last)?.end, READERS_MAX).replace("\\\n", " ");
        let pipe = behind.trim_start_matches([' ', '\t', '\r', '"', '\'']).strip_prefix('|')?;
        let pipeline = pipe.split(['\n', ';', '&']).next().filter(|pipeline| !pipeline.contains("||"))?;
        let programs: Vec<&str> = pipeline.split(|c: char| !c.is_ascii() || !is_run(c as u8)).collect();
        let reads_secret = READERS.split('|').any(|reader| {
            let mut rest = programs.iter();
            reader.split(' ').all(|part| rest.any(|word| *word == part))
        });
        if reads_secret && !pipe.starts_with('|') { self.part(last, 0, All) } else { None }
    }
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

/// The words of the command at a position, with their quotes.
pub(super) fn words(text: &str, from: usize) -> Vec<Range<usize>> {
    let mut words = Vec::new();
    let mut at = from;
    while at - from < COMMAND_MAX {
        let rest = after(text, at).trim_start_matches([' ', '\t', '\r', '<', '>']);
        at = text.len() - rest.len();
        if rest.starts_with("\\\n") {
            at += 2;
            continue;
        }
        let length = word_length(rest);
        // A quote right behind a word closes a quotation around the command.
        let closes = quote_at(after(rest, length).as_bytes()).map_or(0, str::len);
        if length > 0 {
            words.push(at..at + length);
        } else if closes == 0 {
            break;
        }
        at += length + closes;
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
        [] => true,
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
