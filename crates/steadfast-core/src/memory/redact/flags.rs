//! Secrets behind the short flags of programs: `curl -u user:password`, `mysql -pPASSWORD`, `redis-cli -a PASSWORD`, and
//! behind the name of a setting (`aws configure set aws_secret_access_key …`). For other programs these letters mean something else, so the programs of the command are remembered on the way to
//! the flag; that way nothing is ever read twice.

use std::ops::Range;

use super::names::{self, Grade};
use super::operands;
use super::places::cookies;
use super::plain::{is_reference, is_sentence};
use super::{MARK, after, window};

/// The farthest that a flag stands behind its program.
const COMMAND_MAX: usize = 2_048;
/// The longest name before the colon of `user:password`.
const USER_MAX: usize = 256;

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
    /// Programs that have a `login` with `-p`; without it the flag is a port.
    Registry,
}

/// What the value of a flag is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Password,
    /// With what stands between the two.
    UserAndPassword(char),
    /// `pass:…`, or where else it comes from.
    Source,
    Cookies,
}

/// What the command does, as far as that matters.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Verb {
    #[default]
    Other,
    LogIn,
    Configure,
    /// One setting, which follows by its name.
    Set,
}

/// The command that is being read: which of the programs it named, and where.
#[derive(Default)]
pub(super) struct Command {
    program: Option<(Program, usize)>,
    verb: Verb,
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
            "docker" | "podman" | "nerdctl" | "buildah" | "skopeo" | "helm" | "oc" | "az" => Program::Registry,
            "smbclient" | "rpcclient" | "smbget" | "smbcacls" => Program::Samba,
            "lftp" => Program::Lftp,
            "htpasswd" => Program::Htpasswd,
            "aws" | "npm" | "pnpm" | "yarn" | "pip" => Program::Settings,
            other => {
                self.verb = match other {
                    "login" => Verb::LogIn,
                    "configure" | "config" => Verb::Configure,
                    "set" if self.verb == Verb::Configure => Verb::Set,
                    _ => return,
                };
                return;
            }
        };
        self.program = Some((program, at));
    }

    /// A byte between words; some end the command.
    pub(super) fn see_byte(&mut self, text: &str, at: usize, byte: u8) {
        let neighbour = |at: Option<usize>| at.and_then(|at| text.as_bytes().get(at)).copied();
        let ends = match byte {
            // A line that goes on is the same command.
            b'\n' => neighbour(at.checked_sub(1)) != Some(b'\\'),
            b';' | b'|' => true,
            b'&' => neighbour(Some(at + 1)) == Some(b'&'),
            _ => false,
        };
        if ends {
            *self = Self::default();
        }
    }

    /// The secret that a flag of this command takes.
    pub(super) fn secret_of(&self, text: &str, at: usize, run: &str) -> Option<Range<usize>> {
        let (program, named) = self.program.filter(|(_, named)| at - named <= COMMAND_MAX)?;
        let end = at + run.len();
        match program {
            Program::Htpasswd if named == at => return operands::of_htpasswd(text, end),
            Program::Settings if self.verb == Verb::Set && after(text, end).starts_with(' ') => {
                let telling = matches!(names::grade(run), Some(Grade::Strong | Grade::Token));
                return telling.then(|| value(text, end, Holds::Password, true)).flatten();
            }
            _ => {}
        }
        let letters = run.strip_prefix('-')?;
        let (holds, flag) = self.taken(program, letters)?;
        value(text, at + 1 + flag, holds, !matches!(program, Program::Mysql | Program::SevenZip))
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
            Program::Htpasswd | Program::Settings => None,
            Program::Registry => alone("p", Holds::Password).filter(|_| self.verb == Verb::LogIn),
        }
    }
}

/// The secret in the value that begins at `from`, glued to its flag or, if the flag may stand alone, behind a blank.
fn value(text: &str, from: usize, holds: Holds, spaced: bool) -> Option<Range<usize>> {
    let glued = after(text, from);
    let rest = if spaced { glued.trim_start_matches([' ', '=']) } else { glued };
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
    let rest = quote.and_then(|quote| rest.strip_prefix(quote)).unwrap_or(rest);
    let start = text.len() - rest.len();
    let ends = |c: char| match quote {
        Some(quote) => c == quote || c == '\n',
        None => c.is_whitespace() || matches!(c, '"' | '\'' | '`' | ';' | '|' | ')'),
    };
    let skipped = match holds {
        Holds::Password => 0,
        Holds::Cookies => return cookies(text, start, ends),
        Holds::UserAndPassword(between) => {
            let user = window(rest, 0, USER_MAX);
            user.get(..user.find(ends).unwrap_or(user.len()))?.find(between)? + 1
        }
        Holds::Source if rest.starts_with("pass:") => "pass:".len(),
        Holds::Source if rest.starts_with(MARK) => 0,
        Holds::Source => return None,
    };
    let secret = after(rest, skipped);
    if secret.starts_with(MARK) {
        return Some(start + skipped..start + skipped + MARK.len());
    }
    let secret = secret.get(..secret.find(ends).unwrap_or(secret.len()))?;
    let another_flag = holds == Holds::Password && quote.is_none() && is_sentence(secret);
    // `docker run mysql -p80:80` opens ports.
    let ports = holds == Holds::Password
        && secret.contains(':')
        && secret.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.'));
    let hidden = !secret.is_empty() && !another_flag && !ports && !is_reference(secret);
    hidden.then_some(start + skipped..start + skipped + secret.len())
}
