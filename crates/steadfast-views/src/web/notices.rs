//! Answers of actions that wait to be shown on the next page. A page names its notice by an id, so that no text of an
//! answer is in an address.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::pages::Notice;
use super::secret::Secret;

const MOST: usize = 32;
/// A page that updates itself asks again, so a notice stays for a moment.
const SHOWN_FOR: Duration = Duration::from_secs(15);

#[derive(Debug, Default)]
pub(crate) struct Notices(Mutex<Vec<NoticeEntry>>);

#[derive(Debug)]
struct NoticeEntry {
    id: Secret,
    notice: Notice,
    first_shown: Option<Instant>,
}

impl Notices {
    /// Keeps a notice and returns its id.
    pub(crate) fn add(&self, notice: Notice) -> std::io::Result<String> {
        let id = Secret::new()?;
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = id.reveal().to_owned();
        entries.push(NoticeEntry { id, notice, first_shown: None });
        let excess = entries.len().saturating_sub(MOST);
        entries.drain(..excess);
        Ok(text)
    }

    pub(crate) fn show(&self, id: &str) -> Option<Notice> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|entry| entry.first_shown.is_none_or(|shown| shown.elapsed() < SHOWN_FOR));
        let entry = entries.iter_mut().find(|entry| entry.id.is(id.as_bytes()))?;
        entry.first_shown.get_or_insert_with(Instant::now);
        Some(entry.notice.clone())
    }
}

/// Where the browser goes after an action: the page it came from, with the notice. Only paths of this server.
pub(crate) fn place(back: Option<&str>, otherwise: &str, notice: &str) -> String {
    let is_local = |path: &&str| {
        path.starts_with('/')
            && !path.starts_with("//")
            && path.len() <= 1_000
            && path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
    };
    let back = back.filter(is_local).unwrap_or(otherwise);
    let (back, fragment) = back.split_once('#').map_or((back, None), |(back, fragment)| (back, Some(fragment)));
    let (path, query) = back.split_once('?').unwrap_or((back, ""));
    let mut fields: Vec<&str> = query.split('&').filter(|field| !field.is_empty()).collect();
    fields.retain(|field| !field.starts_with("notice="));
    let notice = format!("notice={notice}");
    fields.push(&notice);
    let fragment = fragment.map(|fragment| format!("#{fragment}")).unwrap_or_default();
    format!("{path}?{}{fragment}", fields.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_shown_to_who_knows_its_id() {
        let notices = Notices::default();
        let notice = Notice { is_error: false, text: "done".into() };
        let id = notices.add(notice.clone()).unwrap();
        assert_eq!(notices.show("other"), None);
        assert_eq!(notices.show(&id), Some(notice.clone()));
        for _ in 0..MOST {
            notices.add(notice.clone()).unwrap();
        }
        assert_eq!(notices.show(&id), None, "the oldest of too many");
    }

    #[test]
    fn the_way_back_stays_on_this_server() {
        for (back, expected) in [
            (Some("/goals/g?a=1&notice=old#x"), "/goals/g?a=1&notice=N#x"),
            (Some("/"), "/?notice=N"),
            (None, "/runs/r?notice=N"),
            (Some("//evil.example/"), "/runs/r?notice=N"),
            (Some("/\\evil.example"), "/runs/r?notice=N"),
            (Some("https://evil.example/"), "/runs/r?notice=N"),
            (Some("/a\r\nset-cookie: x"), "/runs/r?notice=N"),
            (Some("javascript:alert(1)"), "/runs/r?notice=N"),
        ] {
            assert_eq!(place(back, "/runs/r", "N"), expected, "{back:?}");
        }
    }
}
