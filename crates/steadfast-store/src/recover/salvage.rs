//! Reads the rows of a damaged table. Where a page cannot be read, it begins again behind it: from the other end, and at
//! keys in between.

use std::collections::VecDeque;

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, params_from_iter};

use super::super::StoreError;
use super::key::TableKey;

/// How often a table is tried to be read, and one gap in it. A gap takes about as many tries as rows are lost in it.
const TRIES: usize = 4_000;
const TRIES_OF_GAP: usize = 400;

/// The rows between two keys.
#[derive(Debug, Clone)]
struct Range {
    low: Bound,
    high: Bound,
}

#[derive(Debug, Clone)]
struct Bound {
    key: Vec<Value>,
    is_inside: bool,
    /// Rows are known to be near this key; otherwise it is only the end of all keys.
    is_near: bool,
}

impl Bound {
    fn near(key: Vec<Value>, is_inside: bool) -> Self {
        Self { key, is_inside, is_near: true }
    }

    fn far(key: Vec<Value>) -> Self {
        Self { key, is_inside: true, is_near: false }
    }
}

/// Reads a table.
pub(super) struct TableReader<'a> {
    db: &'a Connection,
    table: &'a str,
    columns: &'a [String],
    key: TableKey,
    /// How many rows were read that no table can have, such as text that is not UTF-8.
    pub(super) refused: usize,
    pub(super) gaps: usize,
    rows: usize,
    tries: usize,
}

impl<'a> TableReader<'a> {
    pub(super) fn new(db: &'a Connection, table: &'a str, columns: &'a [String]) -> Result<Self, StoreError> {
        Ok(Self { db, table, columns, key: TableKey::of(db, table)?, refused: 0, gaps: 0, rows: 0, tries: 0 })
    }

    /// Calls `each` with the values of every row that can be read. A row may come twice.
    pub(super) fn read(&mut self, each: &mut dyn FnMut(&[Value]) -> Result<(), StoreError>) -> Result<(), StoreError> {
        let all = Range { low: Bound::far(self.key.lowest()), high: Bound::far(self.key.highest()) };
        let mut left = VecDeque::from([all]);
        while let Some(mut range) = left.pop_front() {
            if self.scan(&mut range, true, each)? || self.scan(&mut range, false, each)? {
                continue;
            }
            self.gaps += 1;
            if range.low.is_near && range.high.is_near {
                self.search_between(range, each)?;
            } else {
                left.extend(self.jump(&range, each)?);
            }
        }
        Ok(())
    }

    /// Looks for rows behind a gap whose end is not known, in steps that grow. Returns what is left to read.
    fn jump(
        &mut self,
        range: &Range,
        each: &mut dyn FnMut(&[Value]) -> Result<(), StoreError>,
    ) -> Result<Vec<Range>, StoreError> {
        let is_up = range.low.is_near || !range.high.is_near;
        let from = if is_up { &range.low.key } else { &range.high.key };
        for key in self.key.jumps(from, is_up) {
            if self.tries >= TRIES {
                break;
            }
            let landed = Bound::near(key.clone(), true);
            let before = Bound::near(key, false);
            let (mut behind, gap) = if is_up {
                (Range { low: landed, ..range.clone() }, Range { high: before, ..range.clone() })
            } else {
                (Range { high: landed, ..range.clone() }, Range { low: before, ..range.clone() })
            };
            let rows = self.rows;
            let is_over = self.scan(&mut behind, is_up, each)?;
            if self.rows > rows {
                // It begins again at the last row that was read.
                return Ok(if is_over { vec![gap] } else { vec![gap, behind] });
            }
            if is_over {
                return Ok(vec![gap]);
            }
        }
        Ok(vec![])
    }

    /// Looks for rows inside a gap.
    fn search_between(
        &mut self,
        gap: Range,
        each: &mut dyn FnMut(&[Value]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let most = TRIES.min(self.tries + TRIES_OF_GAP);
        let mut left = VecDeque::from([gap]);
        while let Some(mut range) = left.pop_front() {
            if self.tries >= most || self.scan(&mut range, true, each)? || self.scan(&mut range, false, each)? {
                continue;
            }
            if let Some(middle) = self.key.between(&range.low.key, &range.high.key) {
                let lower = Range { high: Bound::near(middle.clone(), false), ..range.clone() };
                left.push_back(Range { low: Bound::near(middle, true), ..range });
                left.push_back(lower);
            }
        }
        Ok(())
    }

    /// Reads a range from one end until its other end or an error, and makes it smaller by what was read. Returns
    /// whether there was no error.
    fn scan(
        &mut self,
        range: &mut Range,
        is_forward: bool,
        each: &mut dyn FnMut(&[Value]) -> Result<(), StoreError>,
    ) -> Result<bool, StoreError> {
        let key = self.key.columns.join(", ");
        let signs = vec!["?"; self.key.columns.len()].join(", ");
        let above = if range.low.is_inside { ">=" } else { ">" };
        let below = if range.high.is_inside { "<=" } else { "<" };
        let order = if is_forward { "ASC" } else { "DESC" };
        let ordered: Vec<String> = self.key.columns.iter().map(|column| format!("{column} {order}")).collect();
        // Keys come first, and only the table itself is read: its indexes may be damaged too.
        let sql = format!(
            "SELECT {key}, {} FROM {} NOT INDEXED WHERE ({key}) {above} ({signs}) AND ({key}) {below} ({signs})
             ORDER BY {}",
            self.columns.join(", "),
            self.table,
            ordered.join(", "),
        );
        let bounds: Vec<Value> = range.low.key.iter().chain(&range.high.key).cloned().collect();
        self.tries += 1;
        let count = self.key.columns.len();
        let Ok(mut statement) = self.db.prepare_cached(&sql) else { return Ok(false) };
        let Ok(mut rows) = statement.query(params_from_iter(bounds)) else { return Ok(false) };
        loop {
            let row = match rows.next() {
                Ok(Some(row)) => row,
                Ok(None) => return Ok(true),
                Err(_) => return Ok(false),
            };
            let read = |at: usize| row.get_ref(at).ok().and_then(value);
            let found: Option<Vec<Value>> = (0..count).map(read).collect();
            let values: Option<Vec<Value>> = (count..count + self.columns.len()).map(read).collect();
            self.rows += 1;
            if let Some(key) = found {
                *(if is_forward { &mut range.low } else { &mut range.high }) = Bound::near(key, false);
            }
            match values {
                Some(values) => each(&values)?,
                None => self.refused += 1,
            }
        }
    }
}

/// A value; `None` for text that is not UTF-8.
fn value(found: ValueRef<'_>) -> Option<Value> {
    match found {
        ValueRef::Text(bytes) => std::str::from_utf8(bytes).ok().map(|text| Value::Text(text.to_owned())),
        ValueRef::Null => Some(Value::Null),
        ValueRef::Integer(number) => Some(Value::Integer(number)),
        ValueRef::Real(number) => Some(Value::Real(number)),
        ValueRef::Blob(bytes) => Some(Value::Blob(bytes.to_vec())),
    }
}
