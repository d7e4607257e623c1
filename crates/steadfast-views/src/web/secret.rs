//! Secrets: 256 bits from the system's random source, compared in constant time, never printed by accident.

use std::fmt;

use steadfast_model::text;

/// A secret as text.
#[derive(Clone)]
pub(crate) struct Secret(String);

impl Secret {
    /// A new one; fails if the system has no random numbers.
    pub(crate) fn new() -> std::io::Result<Self> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(format!("no random numbers: {error}")))?;
        Ok(Self(text::hex(&bytes)))
    }

    pub(crate) fn of(text: String) -> Self {
        Self(text)
    }

    /// Compares all bytes, so that the time shows nothing but the length.
    pub(crate) fn is(&self, other: &[u8]) -> bool {
        let own = self.0.as_bytes();
        let differs = own.iter().zip(other).fold(0, |differs, (own, other)| differs | (own ^ other));
        own.len() == other.len() && std::hint::black_box(differs) == 0
    }

    /// The text, for a cookie or a link.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_only_itself() {
        let (one, other) = (Secret::new().unwrap(), Secret::new().unwrap());
        assert_eq!(one.reveal().len(), 64);
        assert!(one.is(one.reveal().as_bytes()));
        assert!(!one.is(other.reveal().as_bytes()));
        let text = one.reveal();
        for wrong in [&text[1..], "", &format!("{text}0"), &text.to_uppercase().replace('A', "B")] {
            assert!(!one.is(wrong.as_bytes()) || wrong == text, "{wrong}");
        }
        assert!(!format!("{one:?}").contains(text));
    }
}
