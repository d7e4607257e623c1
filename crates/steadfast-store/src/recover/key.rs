//! The key of a table, and keys between two others: to read what is behind a place that cannot be read, a reader must
//! begin at a key that lies there.

use rusqlite::Connection;
use rusqlite::types::Value;

use super::super::StoreError;

/// Printable characters; keys have few others.
const LOWEST: u8 = b' ';
const HIGHEST: u8 = b'~';
const DIGITS: u128 = (HIGHEST - LOWEST) as u128 + 2;
/// How many characters of a text are looked at behind what two texts share.
const PLACES: usize = 12;

/// The columns by which a table is sorted on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TableKey {
    pub(super) columns: Vec<String>,
    is_text: Vec<bool>,
}

impl TableKey {
    /// The rowid, or the primary key where there is none.
    pub(super) fn of(db: &Connection, table: &str) -> Result<Self, StoreError> {
        let has_rowid: bool =
            db.query_row("SELECT wr = 0 FROM pragma_table_list WHERE name = ?1 AND schema = 'main'", [table], |row| {
                row.get(0)
            })?;
        if has_rowid {
            return Ok(Self { columns: vec!["rowid".to_owned()], is_text: vec![false] });
        }
        let mut statement =
            db.prepare("SELECT name, type = 'TEXT' FROM pragma_table_info(?1) WHERE pk > 0 ORDER BY pk")?;
        let rows: Vec<(String, bool)> =
            statement.query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
        let (columns, is_text) = rows.into_iter().unzip();
        Ok(Self { columns, is_text })
    }

    pub(super) fn lowest(&self) -> Vec<Value> {
        self.is_text.iter().map(|is_text| lowest(*is_text)).collect()
    }

    pub(super) fn highest(&self) -> Vec<Value> {
        self.is_text.iter().map(|is_text| highest(*is_text)).collect()
    }

    /// A key between two others; `None` if there is none worth a try.
    pub(super) fn between(&self, low: &[Value], high: &[Value]) -> Option<Vec<Value>> {
        let at = low.iter().zip(high).position(|(low, high)| low != high)?;
        let mut key = low.to_vec();
        let rest = at + 1..low.len();
        // First all that shares the beginning of the lower key, then what is behind it.
        if rest.clone().any(|column| key.get(column) != Some(&highest(self.is_text(column)))) {
            for column in rest {
                *key.get_mut(column)? = highest(self.is_text(column));
            }
            return Some(key);
        }
        *key.get_mut(at)? = middle(low.get(at)?, high.get(at)?)?;
        for column in rest {
            *key.get_mut(column)? = lowest(self.is_text(column));
        }
        Some(key)
    }

    /// Keys above or below another, at distances that grow.
    pub(super) fn jumps(&self, from: &[Value], is_up: bool) -> Vec<Vec<Value>> {
        let mut keys = Vec::new();
        for column in (0..from.len()).rev() {
            let Some(value) = from.get(column) else { continue };
            for jump in jumps(value, is_up) {
                let mut key = from.to_vec();
                for (at, place) in key.iter_mut().enumerate().skip(column) {
                    *place = if at == column { jump.clone() } else { lowest(self.is_text(at)) };
                }
                keys.push(key);
            }
        }
        keys
    }

    fn is_text(&self, column: usize) -> bool {
        self.is_text.get(column).copied().unwrap_or(true)
    }
}

fn lowest(is_text: bool) -> Value {
    if is_text { Value::Text(String::new()) } else { Value::Integer(0) }
}

fn highest(is_text: bool) -> Value {
    if is_text { Value::Text("\u{10FFFF}".to_owned()) } else { Value::Integer(i64::MAX) }
}

/// Values above or below another, the nearest first.
fn jumps(from: &Value, is_up: bool) -> Vec<Value> {
    match from {
        Value::Integer(from) => {
            let jump = |power| {
                let step = 1_i64 << power;
                Value::Integer(if is_up { from.saturating_add(step) } else { from.saturating_sub(step) })
            };
            (0..53).map(jump).collect()
        }
        Value::Text(from) => text_jumps(from, is_up).into_iter().map(Value::Text).collect(),
        _ => Vec::new(),
    }
}

/// Changes the last character, then the one before it, and so on.
fn text_jumps(from: &str, is_up: bool) -> Vec<String> {
    let mut texts = Vec::new();
    for (at, last) in from.char_indices().rev().filter(|(_, last)| last.is_ascii()) {
        for power in 0..7 {
            let (last, step) = (u32::from(last), 1_u32 << power);
            let other = if is_up { last.checked_add(step) } else { last.checked_sub(step) };
            let range = u32::from(LOWEST)..=u32::from(HIGHEST);
            if let Some(other) = other.filter(|other| range.contains(other)).and_then(char::from_u32) {
                texts.push(format!("{}{other}", from.get(..at).unwrap_or_default()));
            }
        }
    }
    texts
}

fn middle(low: &Value, high: &Value) -> Option<Value> {
    match (low, high) {
        (Value::Integer(low), Value::Integer(high)) => {
            let middle = i64::midpoint(*low, *high);
            (middle > *low && middle < *high).then_some(Value::Integer(middle))
        }
        (Value::Text(low), Value::Text(high)) => middle_text(low, high).map(Value::Text),
        _ => None,
    }
}

fn middle_text(low: &str, high: &str) -> Option<String> {
    let shared = low.bytes().zip(high.bytes()).take_while(|(low, high)| low == high).count();
    let number = |text: &str| {
        let digit = |at: usize| {
            let byte = text.as_bytes().get(shared + at);
            byte.map_or(0, |byte| u128::from((*byte).clamp(LOWEST, HIGHEST) - LOWEST) + 1)
        };
        (0..PLACES).fold(0, |number: u128, at| number * DIGITS + digit(at))
    };
    let mut middle = u128::midpoint(number(low), number(high));
    let mut text: Vec<u8> = Vec::new();
    for _ in 0..PLACES {
        text.push(u8::try_from(middle % DIGITS).ok()?);
        middle /= DIGITS;
    }
    let digits = text.iter().rev().take_while(|digit| **digit > 0);
    let end: String = digits.map(|digit| char::from(LOWEST + digit - 1)).collect();
    let text = format!("{}{end}", low.get(..shared)?);
    (text.as_str() > low && text.as_str() < high).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_between_two_others_is_between_them() {
        for (low, high) in [("", "\u{10FFFF}"), ("a", "b"), ("msg_01", "msg_02"), ("0f3a", "0f3b"), ("x", "x~~")] {
            let found = middle_text(low, high).unwrap();
            assert!(low < found.as_str() && found.as_str() < high, "{low} {found} {high}");
        }
        assert_eq!((middle_text("a", "a"), middle_text("a", "a ")), (None, None));
        let number = |low, high| middle(&Value::Integer(low), &Value::Integer(high));
        assert_eq!(number(1, 4), Some(Value::Integer(2)));
        assert_eq!(number(1, 2), None);
    }

    #[test]
    fn jumps_grow_and_go_one_way() {
        let texts = text_jumps("m-35", true);
        assert_eq!((texts[0].as_str(), texts.last().unwrap().as_str()), ("m-36", "}"));
        assert!(texts.iter().all(|text| text.as_str() > "m-35"), "{texts:?}");
        assert!(text_jumps("m-35", false).iter().all(|text| text.as_str() < "m-35"));
        let numbers: Vec<Value> = jumps(&Value::Integer(5), true).into_iter().take(3).collect();
        assert_eq!(numbers, [6, 7, 9].map(Value::Integer));
    }

    #[test]
    fn a_key_of_several_columns_first_leaves_the_beginning_of_the_lower_one() {
        let key = TableKey { columns: vec!["host".into(), "id".into()], is_text: vec![true, true] };
        let text = |host: &str, id: &str| vec![Value::Text(host.into()), Value::Text(id.into())];
        let end = text("claude", "\u{10FFFF}");
        assert_eq!(key.between(&text("claude", "m1"), &text("codex", "r1")), Some(end.clone()));
        let behind = key.between(&end, &text("codex", "r1")).unwrap();
        assert!(matches!(&behind[0], Value::Text(host) if host.as_str() > "claude" && host.as_str() < "codex"));
        let inside = key.between(&text("claude", "m1"), &end).unwrap();
        assert_eq!(inside[0], Value::Text("claude".into()));
    }
}
