//! Encrypts what the server stores: AES-256-GCM under a key that only the machines of the fleet have. The id of the key
//! is in the metadata of each payload, so that keys can be replaced while runs last.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use prost::Message;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use temporalio_common::data_converters::{PayloadCodec, PayloadConversionError, SerializationContextData};
use temporalio_common::protos::temporal::api::common::v1::Payload;

const ENCODING: &str = "encoding";
const ENCRYPTED: &[u8] = b"binary/encrypted";
const KEY_ID: &str = "encryption-key-id";

#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum KeyError {
    #[error("the key file has no keys")]
    Empty,
    #[error("line {0} of the key file is not `ID:BASE64`")]
    Line(usize),
    #[error("the key on line {0} of the key file has {1} bytes; a key has 32")]
    Length(usize, usize),
    #[error("the key file has two keys with the id `{0}`")]
    Twice(String),
}

impl KeyError {
    pub fn hint(&self) -> &'static str {
        "make a line with `echo \"k1:$(head -c 32 /dev/urandom | base64)\"`; the first line encrypts, all decrypt"
    }
}

/// What went wrong with one payload. The server's other readers see these texts, so they have no content.
#[derive(Debug, thiserror::Error)]
enum CodecError {
    #[error("no key `{0}` here: this payload was encrypted with a key that is not in the key file")]
    UnknownKey(String),
    #[error("the key `{0}` does not fit: the key file has another key under this id")]
    WrongKey(String),
    #[error("this payload is encrypted, and no key is set: set STEADFAST_FLEET_KEY_FILE")]
    NoKey,
    #[error("random bytes are not available")]
    Random,
}

/// The keys by id. The first one encrypts, all of them decrypt.
#[derive(Clone)]
pub struct PayloadKeys(Arc<Vec<(String, LessSafeKey)>>);

impl std::fmt::Debug for PayloadKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.ids()).finish()
    }
}

impl PayloadKeys {
    /// Reads lines `ID:BASE64`; empty lines and lines that begin with `#` do not count.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let mut keys: Vec<(String, LessSafeKey)> = Vec::new();
        for (number, line) in (1..).zip(text.lines().map(str::trim)) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (id, key) = line.split_once(':').ok_or(KeyError::Line(number))?;
            let bytes = STANDARD.decode(key.trim()).map_err(|_| KeyError::Line(number))?;
            let length = KeyError::Length(number, bytes.len());
            let key = UnboundKey::new(&AES_256_GCM, &bytes).map_err(|_| length)?;
            let id = id.trim();
            if id.is_empty() {
                return Err(KeyError::Line(number));
            }
            if keys.iter().any(|(other, _)| other == id) {
                return Err(KeyError::Twice(id.to_owned()));
            }
            keys.push((id.to_owned(), LessSafeKey::new(key)));
        }
        if keys.is_empty() {
            return Err(KeyError::Empty);
        }
        Ok(Self(Arc::new(keys)))
    }

    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(id, _)| id.as_str())
    }

    fn encrypt(&self, payload: &Payload) -> Result<Payload, CodecError> {
        let Some((id, key)) = self.0.first() else { return Err(CodecError::NoKey) };
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(|_| CodecError::Random)?;
        let mut sealed = payload.encode_to_vec();
        // The id is authenticated too, so that nobody can move a payload to another key.
        let result = key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(id), &mut sealed);
        result.map_err(|_| CodecError::Random)?;
        let mut data = nonce.to_vec();
        data.append(&mut sealed);
        let metadata = [(ENCODING, ENCRYPTED), (KEY_ID, id.as_bytes())];
        let metadata = metadata.into_iter().map(|(name, value)| (name.to_owned(), value.to_vec())).collect();
        Ok(Payload { metadata, data, ..Payload::default() })
    }

    fn decrypt(&self, payload: &Payload) -> Result<Payload, CodecError> {
        let id = key_id(payload);
        let key = self.0.iter().find(|(known, _)| *known == id).map(|(_, key)| key);
        let key = key.ok_or_else(|| CodecError::UnknownKey(id.clone()))?;
        let wrong = || CodecError::WrongKey(id.clone());
        let (nonce, sealed) = payload.data.split_first_chunk::<NONCE_LEN>().ok_or_else(wrong)?;
        let mut sealed = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let clear = key.open_in_place(nonce, Aad::from(id.as_str()), &mut sealed).map_err(|_| wrong())?;
        Payload::decode(&*clear).map_err(|_| wrong())
    }
}

fn key_id(payload: &Payload) -> String {
    payload.metadata.get(KEY_ID).map(|id| String::from_utf8_lossy(id).into_owned()).unwrap_or_default()
}

fn is_encrypted(payload: &Payload) -> bool {
    payload.metadata.get(ENCODING).is_some_and(|encoding| encoding == ENCRYPTED)
}

/// What the client and the workers encode payloads with. Without keys, payloads pass, and encrypted ones are refused in
/// words that name the reason.
#[derive(Debug, Clone, Default)]
pub struct Codec(pub Option<PayloadKeys>);

impl PayloadCodec for Codec {
    fn encode(
        &self,
        _: &SerializationContextData,
        payloads: Vec<Payload>,
    ) -> BoxFuture<'static, Result<Vec<Payload>, PayloadConversionError>> {
        let encode =
            |payload: &Payload| self.0.as_ref().map_or_else(|| Ok(payload.clone()), |keys| keys.encrypt(payload));
        ready(payloads.iter().map(encode).collect())
    }

    fn decode(
        &self,
        _: &SerializationContextData,
        payloads: Vec<Payload>,
    ) -> BoxFuture<'static, Result<Vec<Payload>, PayloadConversionError>> {
        // Payloads from before the first key stay readable.
        let decode = |payload: &Payload| match &self.0 {
            _ if !is_encrypted(payload) => Ok(payload.clone()),
            Some(keys) => keys.decrypt(payload),
            None => Err(CodecError::NoKey),
        };
        ready(payloads.iter().map(decode).collect())
    }
}

fn ready(result: Result<Vec<Payload>, CodecError>) -> BoxFuture<'static, Result<Vec<Payload>, PayloadConversionError>> {
    let result = result.map_err(|error| PayloadConversionError::EncodingError(error.into()));
    std::future::ready(result).boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    const OTHER: &str = "k1:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
    const TWO: &str = "k2:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";

    fn payload() -> Payload {
        let metadata = [(ENCODING.to_owned(), b"json/plain".to_vec())];
        Payload { metadata: metadata.into(), data: b"\"a secret prompt\"".to_vec(), ..Payload::default() }
    }

    #[test]
    fn an_encrypted_payload_shows_nothing_and_comes_back_whole() {
        let keys = PayloadKeys::parse(ONE).unwrap();
        let sealed = keys.encrypt(&payload()).unwrap();
        assert!(!sealed.encode_to_vec().windows(6).any(|window| window == b"secret"));
        assert_ne!(sealed.data, keys.encrypt(&payload()).unwrap().data, "each payload has its own nonce");
        assert_eq!(keys.decrypt(&sealed).unwrap(), payload());
    }

    #[test]
    fn a_new_first_key_encrypts_and_the_old_one_still_decrypts() {
        let sealed = PayloadKeys::parse(ONE).unwrap().encrypt(&payload()).unwrap();
        let rotated = PayloadKeys::parse(&format!("# new first\n{TWO}\n\n{ONE}\n")).unwrap();
        assert_eq!(rotated.decrypt(&sealed).unwrap(), payload());
        assert_eq!(key_id(&rotated.encrypt(&payload()).unwrap()), "k2");
    }

    #[test]
    fn a_wrong_a_missing_and_a_moved_key_are_told_apart() {
        let sealed = PayloadKeys::parse(ONE).unwrap().encrypt(&payload()).unwrap();
        let failed =
            |text: &str, payload: &Payload| PayloadKeys::parse(text).unwrap().decrypt(payload).unwrap_err().to_string();
        assert!(failed(OTHER, &sealed).contains("does not fit"));
        assert!(failed(TWO, &sealed).contains("no key `k1` here"));
        let mut moved = sealed;
        moved.metadata.insert(KEY_ID.to_owned(), b"k2".to_vec());
        assert!(failed(&ONE.replace("k1", "k2"), &moved).contains("does not fit"));
    }

    #[test]
    fn what_is_no_key_file_is_refused_with_its_line() {
        for (text, expected) in [
            ("", KeyError::Empty),
            ("# only words\n", KeyError::Empty),
            ("\nk1", KeyError::Line(2)),
            ("k1:not base64", KeyError::Line(1)),
            (":AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", KeyError::Line(1)),
            ("k1:AAAA", KeyError::Length(1, 3)),
            (&format!("{ONE}\n{OTHER}"), KeyError::Twice("k1".to_owned())),
        ] {
            assert_eq!(PayloadKeys::parse(text).unwrap_err(), expected, "{text:?}");
        }
    }
}
