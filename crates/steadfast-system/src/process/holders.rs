//! Which processes have a file open or work in a directory. Only Linux shows that.

use std::path::Path;

use super::list;

/// A process that has a file open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileHolder {
    pub pid: i32,
    /// Its program and first arguments.
    pub command: String,
}

/// The other processes of this user that have one of these files open.
pub fn holders(files: &[&Path]) -> Vec<FileHolder> {
    let real: Vec<_> = files.iter().filter_map(|file| fs_err::canonicalize(file).ok()).collect();
    let own = std::process::id();
    let is_other = |pid: i32| u32::try_from(pid) != Ok(own);
    let holds = |pid: i32| {
        let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        entries.filter_map(|entry| std::fs::read_link(entry.path()).ok()).any(|target| real.contains(&target))
    };
    let found = list().into_iter().map(|process| process.pid).filter(|pid| is_other(*pid) && holds(*pid));
    found.map(|pid| FileHolder { pid, command: command_of(pid) }).collect()
}

/// Whether another process with this name works in a directory or below it; `true` where the system does not show it.
pub fn works_in(name: &str, directory: &Path) -> bool {
    let Ok(real) = fs_err::canonicalize(directory) else { return true };
    let is_there = |pid: i32| {
        let named = fs_err::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|found| found.trim_end() == name);
        named && std::fs::read_link(format!("/proc/{pid}/cwd")).map_or(true, |at| at.starts_with(&real))
    };
    !cfg!(target_os = "linux") || list().into_iter().any(|process| is_there(process.pid))
}

fn command_of(pid: i32) -> String {
    let line = fs_err::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = line.split(|byte| *byte == 0).filter(|word| !word.is_empty()).take(3);
    let words: Vec<String> = words.map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let program = words.first().and_then(|path| Path::new(path).file_name()).map(|name| name.to_string_lossy());
    let program = program.map(std::borrow::Cow::into_owned);
    program.into_iter().chain(words.into_iter().skip(1)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_that_has_a_file_open_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let file = fs_err::File::create(&path).unwrap();
        assert_eq!(holders(&[&path]), [], "this process does not count");
        let (file, _) = file.into_parts();
        let mut child = std::process::Command::new("sleep").arg("60").stdin(file).spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        assert_eq!(holders(&[&path]), [FileHolder { pid, command: "sleep 60".to_owned() }]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(holders(&[&path, &directory.path().join("none")]), []);
    }
}
