//! Deletes at the user's request, so that the text is in no file afterwards, and gives free space back. All of it works
//! in short transactions with pauses between them, so that other processes write in between. Only [`Store::rewrite`],
//! for small files and for those of earlier versions, rewrites the file at once.

use std::thread;
use std::time::Duration;

use crate::steps::Pace;
use crate::{Db, Forgotten, Store, StoreError, explain, limit};

const ROWS: (usize, usize) = (20, 2_000);
const PAGES: (usize, usize) = (16, 1_024);
/// Pages that a merge of the search index writes. It reads more: all parts of the index that cancel each other out.
const MERGED_PAGES: (usize, usize) = (1, 1_024);
/// Rows that are put into a new search index in one step.
const INDEXED_AT_ONCE: usize = 500;
/// How often an emptying of the log is tried, and the pause between two tries. It must not wait: it holds the lock.
const LOG_TRIES: u32 = 60;
const LOG_WAIT: Duration = Duration::from_millis(50);
/// A file up to this size is rewritten in less time than the steps take.
const SMALL: u64 = 4 * 1024 * 1024;

/// A part of the work, for a display of progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PurgePart {
    Rows,
    SearchIndex,
    FreePages,
}

/// Called after each step with the part, and with how much of it is done.
pub type Progress<'a> = &'a mut dyn FnMut(PurgePart, u64, u64);

impl Store {
    /// Deletes the memory of sessions at the user's request, whatever their state. Their goals stay; a row in `sessions`
    /// stays only while a goal or a client needs it. A purge that was cut short is continued by the next one.
    pub fn purge(&mut self, session_ids: &[String], progress: Progress<'_>) -> Result<Vec<Forgotten>, StoreError> {
        self.set_secure_delete("ON")?;
        let purged = self.drop_replaced_tables().and_then(|()| self.purge_rows(session_ids, progress));
        self.set_secure_delete("FAST")?;
        purged
    }

    fn purge_rows(&mut self, ids: &[String], progress: Progress<'_>) -> Result<Vec<Forgotten>, StoreError> {
        let mut gone = Vec::new();
        for id in ids {
            gone.push(self.read().weigh(id)?);
        }
        let total = gone.iter().map(|gone| u64::try_from(gone.events).unwrap_or(0) + 1).sum();
        let (mut pace, mut done, mut left) = (Pace::new(ROWS), 0, ids);
        while !left.is_empty() {
            let (events, sessions) = pace.step(|most| self.write(|db| db.purge_some(left, most)))?;
            left = left.get(sessions..).unwrap_or_default();
            done += u64::try_from(events + sessions).unwrap_or(0);
            progress(PurgePart::Rows, done, total);
        }
        Ok(gone)
    }

    /// Removes deleted text from the search index, from free pages and from the log. Returns whether nothing of it can
    /// be left: a file of an earlier version has text that was deleted before pages were wiped.
    pub fn erase_deleted(&mut self, progress: Progress<'_>) -> Result<bool, StoreError> {
        // Where almost all rows are gone, a merge would read the whole index in one step and write nothing.
        let index_again = |db: Db<'_>| db.index_few_rows_again();
        if !self.write(index_again)? {
            self.set_secure_delete("ON")?;
            let merged = self.merge_search_index(progress);
            self.set_secure_delete("FAST")?;
            merged?;
        }
        if !self.returns_pages()? && self.size()? <= SMALL {
            self.rewrite()?;
            return Ok(true);
        }
        let is_whole = self.returns_pages()?;
        if is_whole {
            self.return_pages(progress)?;
        } else {
            self.wipe_free_pages(progress)?;
        }
        self.empty_log()?;
        Ok(is_whole)
    }

    /// Gives all free pages back, step by step. Only for files that can: see [`Store::returns_pages`].
    pub fn compact(&mut self, progress: Progress<'_>) -> Result<(), StoreError> {
        self.return_pages(progress)?;
        self.empty_log()
    }

    /// Rewrites the whole file without free space. Other processes wait until it is done.
    pub fn rewrite(&self) -> Result<(), StoreError> {
        let sql = "PRAGMA auto_vacuum = INCREMENTAL; VACUUM";
        let rewritten = self.db.execute_batch(sql).map_err(|error| explain(&self.path, error));
        // The log has old pages too, whatever became of the file.
        self.empty_log()?;
        rewritten
    }

    /// The bytes of the file that hold data or are free.
    pub fn size(&self) -> Result<u64, StoreError> {
        Ok(self.number("page_count")?.saturating_mul(self.number("page_size")?))
    }

    /// The bytes of the file that are free.
    pub fn free_size(&self) -> Result<u64, StoreError> {
        Ok(self.number("freelist_count")?.saturating_mul(self.number("page_size")?))
    }

    /// Whether free pages can be given back one by one: files of earlier versions keep them.
    pub fn returns_pages(&self) -> Result<bool, StoreError> {
        Ok(self.number("auto_vacuum")? == 2)
    }

    fn number(&self, pragma: &str) -> Result<u64, StoreError> {
        let number: i64 = self.db.pragma_query_value(None, pragma, |row| row.get(0))?;
        Ok(u64::try_from(number).unwrap_or(0))
    }

    /// `ON` writes zeros over everything that is deleted, `FAST` only where the page is written anyway.
    pub(crate) fn set_secure_delete(&self, mode: &str) -> Result<(), StoreError> {
        Ok(self.db.query_row(&format!("PRAGMA secure_delete = {mode}"), [], |_| Ok(()))?)
    }

    /// The index keeps the words of deleted rows until it merges the parts that have them.
    fn merge_search_index(&mut self, progress: Progress<'_>) -> Result<(), StoreError> {
        let mut pace = Pace::new(MERGED_PAGES);
        let pages: i64 = self.db.query_row("SELECT count(*) FROM session_events_fts_data", [], |row| row.get(0))?;
        let (pages, mut done) = (u64::try_from(pages).unwrap_or(0), 0);
        // The first step puts all parts on one level, the others merge that level.
        let mut is_first = true;
        loop {
            let changed = pace.step(|most| {
                let most = if is_first { -limit(most) } else { limit(most) };
                self.write(|db| db.merge_search_index(most))
            })?;
            done += u64::try_from(pace.amount).unwrap_or(0);
            progress(PurgePart::SearchIndex, done.min(pages), pages);
            if changed < 2 && !is_first {
                return Ok(());
            }
            is_first = false;
        }
    }

    /// Moves the last pages to free places and cuts the file.
    fn return_pages(&mut self, progress: Progress<'_>) -> Result<(), StoreError> {
        let (mut pace, total) = (Pace::new(PAGES), self.number("freelist_count")?);
        loop {
            let left = self.number("freelist_count")?;
            progress(PurgePart::FreePages, total.saturating_sub(left), total);
            if left == 0 {
                return Ok(());
            }
            pace.step(|most| self.write(|db| db.return_pages(most)))?;
        }
    }

    /// Fills the free pages with zeros and frees them again.
    fn wipe_free_pages(&mut self, progress: Progress<'_>) -> Result<(), StoreError> {
        let (mut pace, total, mut filled) = (Pace::new(PAGES), self.number("freelist_count")?, 0);
        // A process that uses up free pages ends this early, one that frees more does not prolong it.
        while filled < total && self.number("freelist_count")? > 0 {
            filled += pace.step(|most| self.write(|db| db.fill_pages(most)))?;
            progress(PurgePart::FreePages, filled / 2, total);
        }
        let mut freed = 0;
        let free = |db: Db<'_>| db.free_filled_pages();
        while pace.step(|_| self.write(free))? > 0 {
            freed += 1;
            progress(PurgePart::FreePages, (total / 2 + freed).min(total), total);
        }
        Ok(())
    }

    /// Writes the log into the file and cuts it to nothing. Writers wait only for the last of it.
    fn empty_log(&self) -> Result<(), StoreError> {
        let checkpoint = |mode: &str| {
            let sql = format!("PRAGMA wal_checkpoint({mode})");
            self.db.query_row(&sql, [], |row| row.get::<_, i64>(0)).map_err(|error| explain(&self.path, error))
        };
        let mut is_empty = Ok(false);
        for _ in 0..LOG_TRIES {
            let emptied = self.waits.without(|| checkpoint("PASSIVE").and_then(|_| checkpoint("TRUNCATE")));
            is_empty = emptied.map(|busy| busy == 0);
            if !matches!(is_empty, Ok(false) | Err(StoreError::Busy(_))) {
                break;
            }
            thread::sleep(LOG_WAIT);
        }
        if is_empty? { Ok(()) } else { Err(StoreError::Busy(self.path.clone())) }
    }
}

impl Db<'_> {
    /// Deletes up to `most` rows of some sessions, one session after the other. Returns how many events are deleted, and
    /// how many sessions are gone.
    fn purge_some(self, ids: &[String], most: usize) -> Result<(usize, usize), StoreError> {
        let (mut events, mut sessions) = (0, 0);
        for id in ids {
            let room = most.saturating_sub(events + sessions);
            let deleted = self.delete_events_of(id, room)?;
            events += deleted;
            if deleted == room {
                break;
            }
            self.purge_rest(id)?;
            sessions += 1;
        }
        Ok((events, sessions))
    }

    /// Deletes up to `most` events of a session, the oldest first. Returns how many.
    pub(crate) fn delete_events_of(self, session_id: &str, most: usize) -> Result<usize, StoreError> {
        let sql = "DELETE FROM session_events WHERE id IN
                     (SELECT id FROM session_events WHERE session_id = ?1 ORDER BY id LIMIT ?2)";
        self.execute(sql, rusqlite::params![session_id, limit(most)])
    }

    /// Makes the search index anew if few rows are left. Returns whether it did. The pages of the old one are free then.
    fn index_few_rows_again(self) -> Result<bool, StoreError> {
        let count = "SELECT count(*) FROM (SELECT 1 FROM session_events LIMIT ?1)";
        let rows: Option<i64> = self.first(count, [limit(INDEXED_AT_ONCE + 1)], |row| row.get(0))?;
        let are_few = rows.is_some_and(|rows| rows <= limit(INDEXED_AT_ONCE));
        if are_few {
            self.execute("INSERT INTO session_events_fts (session_events_fts) VALUES ('rebuild')", [])?;
        }
        Ok(are_few)
    }

    fn merge_search_index(self, pages: i64) -> Result<u64, StoreError> {
        let before = self.0.total_changes();
        self.execute("INSERT INTO session_events_fts (session_events_fts, rank) VALUES ('merge', ?1)", [pages])?;
        Ok(self.0.total_changes().saturating_sub(before))
    }

    /// Gives up to `most` free pages back to the file system.
    pub(crate) fn return_pages(self, most: usize) -> Result<(), StoreError> {
        let mut statement = self.0.prepare(&format!("PRAGMA incremental_vacuum({most})"))?;
        let mut rows = statement.query([])?;
        // Each row is a page.
        while rows.next()?.is_some() {}
        Ok(())
    }

    /// Uses up to `most` free pages for zeros. Returns how many.
    fn fill_pages(self, most: usize) -> Result<u64, StoreError> {
        let pragma = |name| self.0.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let (free, page) = (pragma("freelist_count")?, pragma("page_size")?);
        let pages = free.min(limit(most));
        // With what stays in the row's own page, the others are full to the last byte.
        self.execute("INSERT INTO wiped_pages (zeros) VALUES (zeroblob(?1))", [pages * (page - 4) + page / 4])?;
        Ok(u64::try_from(pages).unwrap_or(0))
    }

    fn free_filled_pages(self) -> Result<usize, StoreError> {
        self.execute("DELETE FROM wiped_pages WHERE id = (SELECT min(id) FROM wiped_pages)", [])
    }
}

#[cfg(test)]
mod tests;
