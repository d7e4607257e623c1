//! The `db` key of `$STEADFAST_HOME/config.toml`; comments and layout stay as they are.

use std::path::Path;

use toml_edit::DocumentMut;

use super::InstallError;

const KEY: &str = "db";

pub(crate) fn parse(path: &Path, text: Option<&str>) -> Result<DocumentMut, InstallError> {
    text.unwrap_or_default().parse().map_err(|error: toml_edit::TomlError| InstallError::Toml {
        path: path.into(),
        message: error.message().to_owned(),
    })
}

/// The store the file names now.
pub(crate) fn db(path: &Path, text: Option<&str>) -> Result<Option<String>, InstallError> {
    let document = parse(path, text)?;
    Ok(document.get(KEY).and_then(|item| item.as_str()).map(str::to_owned))
}

/// The text with `db` set.
pub(crate) fn with_db(path: &Path, text: Option<&str>, db: &str) -> Result<String, InstallError> {
    let mut document = parse(path, text)?;
    document.insert(KEY, toml_edit::value(db));
    Ok(document.to_string())
}

/// The text without our `db`; another value is the user's and stays.
pub(crate) fn without_db(path: &Path, text: &str, ours: &str) -> Result<String, InstallError> {
    let mut document = parse(path, Some(text))?;
    if document.get(KEY).and_then(|item| item.as_str()) == Some(ours) {
        document.remove(KEY);
    }
    Ok(document.to_string())
}
