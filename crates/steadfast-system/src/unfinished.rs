//! Temporary files that a killed process left. They are known by their name, their owner and their age.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

/// The letters and digits between the two ends of a name.
const RANDOM: usize = 6;

/// Whether a path is a plain file of this user, named `PREFIX??????SUFFIX`, that was last written longer than `age` ago.
pub fn is_left_over(path: &Path, prefix: &str, suffix: &str, age: Duration) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let random = name.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(suffix)).unwrap_or_default();
    if random.len() != RANDOM || !random.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return false;
    }
    fs_err::symlink_metadata(path).is_ok_and(|found| {
        let is_old = found.modified().is_ok_and(|at| at.elapsed().is_ok_and(|since| since > age));
        is_old && found.is_file() && found.uid() == rustix::process::geteuid().as_raw()
    })
}
