//! Secrets behind the flags of programs (`curl -u user:password`, `mysql -pPASSWORD`) and behind the names of settings
//! and variables (`aws configure set aws_secret_access_key …`, `set -gx API_TOKEN …`). For other programs the same words mean
//! something else, so what the command named is remembered on the way; that way nothing is ever read twice.

use std::ops::Range;

use super::arguments::{Holds, secret_in};
use super::names::{self, Grade};
use super::{after, before, operands, pipes, window};

/// The farthest that a flag stands behind its program.
const COMMAND_MAX: usize = 2_048;

/// Programs by the flags that take a secret.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Program {
    Curl,
    Httpie,
    Sshpass,
    Mysql,
    Redis,
    Zip,
    SevenZip,
    Ldap,
    Openssl,
    Mongo,
    Samba,
    Lftp,
    Htpasswd,
    /// Programs that keep settings, and with `set` get one of them as two words.
    Settings,
    /// Programs that have a `login` with `-p`; without it the flag is a port. Some keep secrets, too.
    Registry,
    SshKeygen,
    Github,
    Vault,
    /// What sets a variable of the environment, as two words.
    Variable,
}

/// What the command does, as far as that matters.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Verb {
    #[default]
    Other,
    LogIn,
    Configure,
    /// One setting or variable, which follows by its name.
    Set,
    /// Secrets are stored, whatever they are called.
    KeepSecret,
}

/// The command that is being read: which of the programs it named, and where.
#[derive(Default)]
pub(super) struct Command {
    program: Option<(Program, usize)>,
    verb: Verb,
    /// It takes a secret from its input.
    reads_secret: bool,
    /// The quote that is open.
    quote: Option<u8>,
    /// How far the text has been looked at for what is written into a pipeline.
    looked_at: usize,
}

impl Command {
    /// Takes notice of a word.
    pub(super) fn see_word(&mut self, text: &str, at: usize, run: &str) {
        let name = run.strip_suffix(".exe").unwrap_or(run);
        let program = match name {
            "curl" => Program::Curl,
            // The scheme of a URL is no program.
            "http" | "https" | "xh" | "xhs" if text.as_bytes().get(at + run.len()) != Some(&b':') => Program::Httpie,
            "sshpass" => Program::Sshpass,
            "mysql" | "mysqldump" | "mysqladmin" | "mysqlimport" | "mysqlsh" | "mariadb" | "mariadb-dump"
            | "mariadb-admin" | "mariadb-import" => Program::Mysql,
            "redis-cli" | "redis-benchmark" | "valkey-cli" | "keydb-cli" => Program::Redis,
            "zip" | "unzip" | "zipcloak" | "sqlcmd" | "mosquitto_pub" | "mosquitto_sub" => Program::Zip,
            "7z" | "7za" | "7zz" | "7zr" => Program::SevenZip,
            "ldapsearch" | "ldapmodify" | "ldapadd" | "ldapdelete" | "ldappasswd" | "ldapwhoami" | "ldapcompare" => {
                Program::Ldap
            }
            "openssl" => Program::Openssl,
            "mongo" | "mongosh" | "mongodump" | "mongorestore" | "mongoimport" | "mongoexport" => Program::Mongo,
            "docker" | "podman" | "nerdctl" | "buildah" | "skopeo" | "helm" | "oc" | "az" | "kubectl" => {
                Program::Registry
            }
            "smbclient" | "rpcclient" | "smbget" | "smbcacls" => Program::Samba,
            "lftp" => Program::Lftp,
            "htpasswd" => Program::Htpasswd,
            "aws" | "npm" | "pnpm" | "yarn" | "pip" => Program::Settings,
            "ssh-keygen" => Program::SshKeygen,
            "gh" => Program::Github,
            "vault" | "bao" => Program::Vault,
            "setx" | "SETX" | "setenv" => Program::Variable,
            other => return self.see_other(text, at, other),
        };
        self.program = Some((program, at));
        if program == Program::Variable {
            self.verb = Verb::Set;
        }
    }

    /// Takes notice of a word that is no program's name.
    fn see_other(&mut self, text: &str, at: usize, word: &str) {
        let program = self.program.map(|(program, _)| program);
        let follows = |word: &str| before(text, at, word.len()) == word;
        let verb = match (word, program) {
            ("login", _) => Verb::LogIn,
            ("configure" | "config", _) => Verb::Configure,
            ("set", _) if self.verb == Verb::Configure => Verb::Set,
            ("set", Some(Program::Settings)) if follows("npm ") => Verb::Set,
            ("set", Some(Program::Github)) if follows("secret ") => Verb::KeepSecret,
            ("set", _) if after(text, at + word.len()).starts_with(" -") => {
                self.program = Some((Program::Variable, at));
                Verb::Other
            }
            ("secret", Some(Program::Registry)) if follows("create ") => Verb::KeepSecret,
            ("put" | "patch", Some(Program::Vault)) if follows("kv ") => Verb::KeepSecret,
            ("write", Some(Program::Vault)) if follows("vault ") || follows("bao ") => Verb::KeepSecret,
            // What is erased or asked for has no value.
            (flag, Some(Program::Variable)) if is_without_value(flag) => {
                self.program = None;
                return;
            }
            (flag, Some(Program::Variable)) if flag.starts_with('-') => Verb::Set,
            (flag, _) if pipes::is_reader(flag) => {
                self.reads_secret = true;
                return;
            }
            _ => return,
        };
        self.verb = verb;
    }

    /// Takes notice of what stands between a word and the secret that it announced.
    pub(super) fn see_gap(&mut self, text: &str, gap: Range<usize>) {
        for (at, byte) in text.get(gap.clone()).unwrap_or_default().bytes().enumerate() {
            if matches!(byte, b'"' | b'\'') {
                self.see_byte(text, gap.start + at, byte);
            }
        }
    }

    /// A byte between words; some end the command.
    pub(super) fn see_byte(&mut self, text: &str, at: usize, byte: u8) {
        let neighbour = |at: Option<usize>| at.and_then(|at| text.as_bytes().get(at)).copied();
        let ends = match byte {
            // A line that goes on is the same command.
            b'\n' => neighbour(at.checked_sub(1)) != Some(b'\\'),
            // Inside a quotation these are text.
            b';' | b'|' => self.quote.is_none(),
            b'&' => self.quote.is_none() && neighbour(Some(at + 1)) == Some(b'&'),
            b'"' | b'\'' => {
                let apostrophe = byte == b'\'' && is_apostrophe(text, at);
                match self.quote {
                    _ if apostrophe || self.program.is_none() => {}
                    None => self.quote = Some(byte),
                    Some(open) if open == byte => self.quote = None,
                    Some(_) => {}
                }
                false
            }
            _ => false,
        };
        if ends {
            *self = Self { looked_at: self.looked_at, ..Self::default() };
        }
    }

    /// The secret that is given to the command as its input.
    pub(super) fn input_of(&self, text: &str, at: usize) -> Option<Range<usize>> {
        self.reads_secret.then(|| pipes::of_here_string(text, at)).flatten()
    }

    /// The secret that a word of this command announces.
    pub(super) fn secret_of(&mut self, text: &str, at: usize, run: &str) -> Option<Range<usize>> {
        let end = at + run.len();
        if matches!(run, "echo" | "printf") && at >= self.looked_at {
            let (looked_at, hidden) = pipes::of_echo(text, end, run == "printf");
            self.looked_at = looked_at;
            return hidden;
        }
        let (program, named) = self.program.filter(|(_, named)| at - named <= COMMAND_MAX)?;
        match program {
            Program::Htpasswd if named == at => return operands::of_htpasswd(text, end),
            Program::Settings | Program::Variable if self.verb == Verb::Set && named < at && !run.starts_with('-') => {
                let telling = matches!(names::grade(run), Some(Grade::Strong | Grade::Token | Grade::Weak))
                    && after(text, end).starts_with(' ');
                // What follows is the value, whatever it is called. The name of a setting may have several parts.
                if telling || (program == Program::Variable && !before(text, at, 1).starts_with('/')) {
                    self.verb = Verb::Other;
                }
                return telling.then(|| secret_in(text, end, Holds::Setting, true)).flatten();
            }
            Program::Vault if self.verb == Verb::KeepSecret && after(text, end).starts_with('=') => {
                // Name and value may be quoted together.
                let quoted = before(text, at, 1).starts_with(['"', '\'']);
                let entry = !run.starts_with('-');
                return entry.then(|| secret_in(text, at - usize::from(quoted), Holds::Entry, false)).flatten();
            }
            _ => {}
        }
        let letters = run.strip_prefix('-')?;
        let (holds, flag) = self.taken(program, letters)?;
        secret_in(text, at + 1 + flag, holds, !matches!(program, Program::Mysql | Program::SevenZip))
    }

    /// What a flag of the program holds, and how many of the letters behind the `-` are the flag itself.
    fn taken(&self, program: Program, letters: &str) -> Option<(Holds, usize)> {
        let alone = |flag: &str, holds: Holds| (letters == flag).then_some((holds, flag.len()));
        let begins = |flag: &str, holds: Holds| letters.starts_with(flag).then_some((holds, flag.len()));
        // Several flags in one, the last of which takes the value: `-sSu`.
        let ends = |flag: char, holds: Holds| {
            let short = letters.len() <= 5 && letters.bytes().all(|byte| byte.is_ascii_alphabetic());
            (short && letters.ends_with(flag)).then_some((holds, letters.len()))
        };
        match program {
            Program::Curl => alone("-user", Holds::UserAndPassword(':'))
                .or_else(|| alone("-proxy-user", Holds::UserAndPassword(':')))
                .or_else(|| begins("u", Holds::UserAndPassword(':')))
                .or_else(|| ends('u', Holds::UserAndPassword(':')))
                .or_else(|| ends('U', Holds::UserAndPassword(':')))
                .or_else(|| ends('b', Holds::Cookies))
                .or_else(|| begins("b", Holds::Cookies)),
            Program::Httpie => ends('a', Holds::UserAndPassword(':')),
            Program::Sshpass | Program::Mysql | Program::SevenZip => begins("p", Holds::Password),
            Program::Redis => alone("a", Holds::Password),
            Program::Zip => begins("P", Holds::Password),
            Program::Ldap => ends('w', Holds::Password),
            Program::Openssl => ["pass", "passin", "passout"]
                .iter()
                .find_map(|flag| alone(flag, Holds::Source))
                .or_else(|| alone("k", Holds::Password))
                .or_else(|| alone("K", Holds::Password)),
            Program::Mongo => alone("p", Holds::Password),
            Program::Samba => {
                alone("-user", Holds::UserAndPassword('%')).or_else(|| begins("U", Holds::UserAndPassword('%')))
            }
            Program::Lftp => {
                alone("-user", Holds::UserAndPassword(',')).or_else(|| begins("u", Holds::UserAndPassword(',')))
            }
            Program::SshKeygen => begins("N", Holds::Password).or_else(|| begins("P", Holds::Password)),
            Program::Github if self.verb == Verb::KeepSecret => {
                alone("-body", Holds::Password).or_else(|| begins("b", Holds::Password))
            }
            Program::Registry if self.verb == Verb::KeepSecret => alone("-from-literal", Holds::Entry),
            Program::Registry => alone("p", Holds::Password).filter(|_| self.verb == Verb::LogIn),
            Program::Htpasswd | Program::Settings | Program::Github | Program::Vault | Program::Variable => None,
        }
    }
}

/// The flags of `set` with which a variable gets no value.
fn is_without_value(flag: &str) -> bool {
    match flag.strip_prefix("--") {
        Some(name) => matches!(name, "erase" | "query" | "show" | "names"),
        None => flag.starts_with('-') && flag.contains(['e', 'q', 'S', 'n', 'o']),
    }
}

/// The sign in `isn't` quotes nothing.
fn is_apostrophe(text: &str, at: usize) -> bool {
    const ENDINGS: [&str; 7] = ["s", "t", "d", "m", "re", "ve", "ll"];
    let letter = before(text, at, 1).starts_with(|c: char| c.is_ascii_alphabetic());
    let word = window(text, at + 1, 3);
    let ending = word.find(|c: char| !c.is_ascii_alphabetic()).and_then(|end| word.get(..end)).unwrap_or(word);
    letter && ENDINGS.contains(&ending)
}
