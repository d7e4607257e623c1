//! The fields of a query or a form, `application/x-www-form-urlencoded`.

use percent_encoding::percent_decode_str;

/// More than any page or form of ours has.
const MOST: usize = 64;

/// Fields by name; of several with the same name the first counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    pub(crate) fn parse(encoded: &str) -> Self {
        let pairs = encoded.split('&').filter(|pair| !pair.is_empty()).take(MOST);
        Self(
            pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).map(|(k, v)| (decode(k), decode(v))).collect(),
        )
    }

    /// A field that is not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// A number; `None` if the field is missing or no number.
    pub(crate) fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.get(name)?.parse().ok()
    }
}

/// Decodes `%20` and `+`. Bytes that are no text become replacement characters.
fn decode(encoded: &str) -> String {
    percent_decode_str(&encoded.replace('+', " ")).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_decoded() {
        let fields = Fields::parse("a=1&b=x+y%26z%3D&c&a=2&%64=%ff&=e&");
        assert_eq!(fields.get("a"), Some("1"));
        assert_eq!(fields.get("b"), Some("x y&z="));
        assert_eq!(fields.get("c"), None);
        assert_eq!(fields.get("d"), Some("\u{fffd}"));
        assert_eq!(fields.get(""), Some("e"));
        assert_eq!((fields.number::<u32>("a"), fields.number::<u32>("b")), (Some(1), None));
        assert_eq!(Fields::parse(&"x=1&".repeat(100)).0.len(), MOST);
    }
}
