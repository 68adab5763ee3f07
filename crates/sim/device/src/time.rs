//! Times in the keys of devices and schedulers.

use headstart_types::{as_text, from_text, Nanos};
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize};

use crate::limits::TIME_MAX;

/// A time of at most [`TIME_MAX`].
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("x-max" = "1h"))]
pub struct Time(#[serde(serialize_with = "as_text")] pub Nanos);

impl Time {
    pub(crate) const fn from_millis(ms: u64) -> Self {
        Self(Nanos::from_millis(ms))
    }
}

/// A time of magnitude up to [`TIME_MAX`] with an optional minus, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SignedTime(pub i64);

impl std::str::FromStr for SignedTime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (sign, rest) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
        match rest.parse()? {
            time if time > TIME_MAX => Err(format!("{time} is too long")),
            Nanos(time) => Ok(Self(sign * time as i64)),
        }
    }
}

impl<'de> Deserialize<'de> for SignedTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer, "a time of at most 1h with a unit, such as \"0.4ms\" or \"-0.4ms\"")
    }
}

impl JsonSchema for SignedTime {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SignedTime".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^-?[0-9.]+ *[a-z]+$"})
    }
}
