//! Byte strings from users (commands, paths, environments): opaque, rarely non-UTF-8.
//!
//! The wire carries a JSON string if the bytes are valid UTF-8, else `{"b64": "..."}`.

use serde::de::{self, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// An opaque byte string.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ByteStr(pub Vec<u8>);

impl ByteStr {
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// The text, with what is not UTF-8 replaced.
    pub fn lossy(&self) -> Cow<'_, str> {
        // the quick way for what is text, as nearly all is
        match std::str::from_utf8(&self.0) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(&self.0),
        }
    }
}

impl fmt::Debug for ByteStr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.lossy())
    }
}
impl From<&str> for ByteStr {
    fn from(s: &str) -> Self {
        ByteStr(s.as_bytes().to_vec())
    }
}
impl From<String> for ByteStr {
    fn from(s: String) -> Self {
        ByteStr(s.into_bytes())
    }
}
impl From<Vec<u8>> for ByteStr {
    fn from(v: Vec<u8>) -> Self {
        ByteStr(v)
    }
}

/// Cuts a text to so many bytes, at the end of a character.
pub fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

/// The byte that the log has in place of a character that could end a record for some reader or act
/// on a terminal; `None`: the character itself.
pub fn log_substitute(c: char) -> Option<u8> {
    match c {
        '\n' | '\u{85}' | '\u{2028}' | '\u{2029}' => Some(b';'),
        c if c.is_control() => Some(b'?'),
        _ => None,
    }
}

/// A text as the log keeps it.
pub fn log_text(text: &str) -> String {
    text.chars().map(|c| log_substitute(c).map_or(c, char::from)).collect()
}

/// Does the log's text of these bytes differ from them?
pub fn log_loses(text: &[u8]) -> bool {
    let plain = |b: &u8| (0x20..0x7f).contains(b);
    let run = text.iter().take_while(|b| plain(b)).count();
    text[run..].utf8_chunks().any(|chunk| {
        !chunk.invalid().is_empty() || chunk.valid().chars().any(|c| log_substitute(c).is_some())
    })
}

const B64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Standard base64 with padding.
pub fn b64_encode(data: &[u8]) -> String {
    let mut out = String::with_capacity(data.len().div_ceil(3) * 4);
    for chunk in data.chunks(3) {
        let word = (u32::from(chunk[0]) << 16)
            | (u32::from(*chunk.get(1).unwrap_or(&0)) << 8)
            | u32::from(*chunk.get(2).unwrap_or(&0));
        for i in 0..4 {
            if i <= chunk.len() {
                out.push(B64[(word >> (18 - 6 * i)) as usize & 63] as char);
            } else {
                out.push('=');
            }
        }
    }
    out
}

/// The bytes of standard base64, or `None` where it is not.
pub fn b64_decode(text: &str) -> Option<Vec<u8>> {
    let body = text.trim_end_matches('=');
    let mut out = Vec::with_capacity(body.len() / 4 * 3 + 3);
    let (mut word, mut bits) = (0u32, 0u32);
    for c in body.bytes() {
        let v = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        word = (word << 6) | u32::from(v);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((word >> bits) as u8);
            word &= (1 << bits) - 1;
        }
    }
    (bits < 6).then_some(out)
}

impl Serialize for ByteStr {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => s.serialize_str(text),
            Err(_) => {
                let mut m = s.serialize_map(Some(1))?;
                m.serialize_entry("b64", &b64_encode(&self.0))?;
                m.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for ByteStr {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = ByteStr;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a string or {\"b64\": ...}")
            }
            fn visit_str<E: de::Error>(self, v: &str) -> Result<ByteStr, E> {
                Ok(ByteStr::from(v))
            }
            fn visit_string<E: de::Error>(self, v: String) -> Result<ByteStr, E> {
                Ok(ByteStr::from(v))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut m: A) -> Result<ByteStr, A::Error> {
                let Some((key, text)) = m.next_entry::<String, String>()? else {
                    return Err(de::Error::custom("empty byte string object"));
                };
                if key != "b64" {
                    return Err(de::Error::custom("byte string object without b64"));
                }
                b64_decode(&text).map(ByteStr).ok_or_else(|| de::Error::custom("bad base64"))
            }
        }
        d.deserialize_any(V)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_round_trip() {
        for v in [&b""[..], b"a", b"ab", b"abc", b"\xff\x00\x01", b"\xfe\xfd", b"\xc3\xa9"] {
            let b = ByteStr(v.to_vec());
            let json = serde_json::to_string(&b).unwrap();
            assert_eq!(serde_json::from_str::<ByteStr>(&json).unwrap(), b, "{json}");
        }
        assert_eq!(serde_json::to_string(&ByteStr(vec![0xff])).unwrap(), r#"{"b64":"/w=="}"#);
        assert!(serde_json::from_str::<ByteStr>(r#"{"b64":"!"}"#).is_err());
        assert!(serde_json::from_str::<ByteStr>(r#"{"x":"AA=="}"#).is_err());
    }
}
