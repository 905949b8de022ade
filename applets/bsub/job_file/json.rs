//! Reads a JSON job file (bsub -json). Keys keep their order, and none is lost where it is there
//! twice.

use super::contents::Value;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// The value of the whole file.
pub fn read(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|e| e.to_string())
}

struct AnyValue;

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Value, D::Error> {
        from.deserialize_any(AnyValue)
    }
}

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a value of JSON")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Flag)
    }
    fn visit_bool<E>(self, on: bool) -> Result<Value, E> {
        Ok(if on { Value::Flag } else { Value::Off })
    }
    fn visit_u64<E>(self, n: u64) -> Result<Value, E> {
        Ok(Value::Text(n.to_string()))
    }
    fn visit_i64<E>(self, n: i64) -> Result<Value, E> {
        Ok(Value::Text(n.to_string()))
    }
    fn visit_f64<E>(self, n: f64) -> Result<Value, E> {
        Ok(Value::Text(n.to_string()))
    }
    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.into()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(value) = from.next_element()? {
            all.push(value);
        }
        Ok(Value::List(all))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(pair) = from.next_entry()? {
            all.push(pair);
        }
        Ok(Value::Map(all))
    }
}
