//! Reads a TOML value into a type through serde. Errors are structured and carry the path of the key.

use serde::de::value::{MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{DeserializeOwned, Deserializer, IntoDeserializer, Unexpected, Visitor};
use toml::Value;

use super::refusal::{in_words, quoted, Refusal};
use crate::KeyError;

/// Reads `value` into a `T`; errors carry the path of the key. `allowed` describes what a missing key would accept.
pub(super) fn read<T: DeserializeOwned>(value: &Value, allowed: &dyn Fn(&str, &str) -> String) -> Result<T, KeyError> {
    serde_path_to_error::deserialize(Reader(value)).map_err(|error| {
        let path = error.path().to_string();
        let path = if path == "." { String::new() } else { path };
        let table = |key: &str| path.strip_suffix(key).unwrap_or(&path).trim_end_matches('.').to_owned();
        match error.into_inner() {
            Refusal::UnknownKey { key, known } => {
                let error = KeyError::unknown_key(&key, known.iter().copied());
                let error = if known.is_empty() { KeyError { allowed: "no keys".to_owned(), ..error } } else { error };
                inside(error, &table(&key))
            }
            Refusal::MissingKey(key) => {
                let allowed = allowed(&path, key);
                inside(KeyError::new(key, "is missing", allowed), &path)
            }
            Refusal::Value { problem, allowed } => KeyError::new(path, problem, allowed),
        }
    })
}

fn inside(error: KeyError, table: &str) -> KeyError {
    if table.is_empty() {
        error
    } else {
        error.within(table)
    }
}

#[derive(Clone, Copy)]
struct Reader<'a>(&'a Value);

impl Reader<'_> {
    fn is_not(self, allowed: impl Into<String>) -> Refusal {
        let found = match self.0 {
            Value::String(text) => Unexpected::Str(text),
            Value::Integer(number) => Unexpected::Signed(*number),
            Value::Float(number) => Unexpected::Float(*number),
            Value::Boolean(value) => Unexpected::Bool(*value),
            Value::Array(_) => Unexpected::Seq,
            Value::Table(_) => Unexpected::Map,
            Value::Datetime(_) => Unexpected::Other("a date"),
        };
        Refusal::value(in_words(found), allowed)
    }

    /// A whole number within the bounds of an integer type.
    fn whole(self, least: i64, most: u64) -> Result<i64, Refusal> {
        let allowed = || match (least, most) {
            (0, most) if most > u64::from(u32::MAX) => "a whole number from 0".to_owned(),
            (_, most) if most > u64::from(u32::MAX) => "a whole number".to_owned(),
            _ => format!("a whole number from {least} to {most}"),
        };
        match self.0 {
            Value::Integer(number) if *number >= least && (*number < 0 || *number as u64 <= most) => Ok(*number),
            Value::Integer(number) => Err(Refusal::value(format!("{number} is out of range"), allowed())),
            _ if least == 0 => Err(self.is_not("a whole number from 0")),
            _ => Err(self.is_not("a whole number")),
        }
    }
}

impl<'a> IntoDeserializer<'a, Refusal> for Reader<'a> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! whole {
    ($($method:ident $visit:ident $type:ty),*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
            // TOML integers are signed 64-bit.
            visitor.$visit(self.whole(<$type>::MIN as i64, <$type>::MAX as u64)? as $type)
        })*
    };
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Refusal;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        match self.0 {
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Integer(number) => visitor.visit_i64(*number),
            Value::Float(number) => visitor.visit_f64(*number),
            Value::Boolean(value) => visitor.visit_bool(*value),
            Value::Array(list) => visitor.visit_seq(SeqDeserializer::new(list.iter().map(Reader))),
            Value::Table(table) => {
                let pairs = table.iter().map(|(key, value)| (key.as_str(), Reader(value)));
                visitor.visit_map(MapDeserializer::new(pairs))
            }
            Value::Datetime(_) => Err(self.is_not("a value")),
        }
    }

    whole!(
        deserialize_u8 visit_u8 u8, deserialize_u16 visit_u16 u16, deserialize_u32 visit_u32 u32,
        deserialize_u64 visit_u64 u64, deserialize_i8 visit_i8 i8, deserialize_i16 visit_i16 i16,
        deserialize_i32 visit_i32 i32, deserialize_i64 visit_i64 i64
    );

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        self.deserialize_f64(visitor)
    }

    /// TOML distinguishes 1 from 1.0; users need not.
    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        match self.0 {
            Value::Float(number) => visitor.visit_f64(*number),
            Value::Integer(number) => visitor.visit_f64(*number as f64),
            _ => Err(self.is_not("a number")),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        match self.0 {
            Value::Boolean(value) => visitor.visit_bool(*value),
            _ => Err(self.is_not("true or false")),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        match self.0 {
            Value::String(text) => visitor.visit_borrowed_str(text),
            _ => Err(self.is_not("a quoted string")),
        }
    }

    /// For types written as text, such as times: the type's visitor describes what is allowed.
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        self.deserialize_any(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Refusal> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        match self.0 {
            Value::Array(_) => self.deserialize_any(visitor),
            _ => Err(self.is_not("a list")),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, Refusal> {
        match self.0 {
            Value::Array(list) if list.len() == length => self.deserialize_any(visitor),
            Value::Array(list) => {
                Err(Refusal::value(format!("a list of {}", list.len()), format!("a list of {length}")))
            }
            _ => Err(self.is_not(format!("a list of {length}"))),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        match self.0 {
            Value::Table(_) => self.deserialize_any(visitor),
            _ => Err(self.is_not("a table of keys")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        match self.0 {
            Value::String(text) => visitor.visit_enum(StrDeserializer::new(text)),
            _ => Err(self.is_not(quoted(names))),
        }
    }

    serde::forward_to_deserialize_any! {
        i128 u128 char bytes byte_buf unit unit_struct tuple_struct identifier ignored_any
    }
}
