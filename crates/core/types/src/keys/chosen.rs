//! Keys as a registry passes them on: read into their row's struct, whose type only the row's file knows.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use toml::{Table, Value};

use super::KeyTable;
use crate::KeyError;

/// Keys that have been read into the struct of their row.
#[derive(Clone)]
pub struct TypedKeys(Arc<dyn AnyKeys>);

trait AnyKeys: Any + Send + Sync {
    fn table(&self) -> Table;
}

impl<K: Serialize + Send + Sync + 'static> AnyKeys for K {
    fn table(&self) -> Table {
        Table::try_from(self).expect("keys are plain values")
    }
}

impl TypedKeys {
    /// Keys of type `K`.
    #[must_use]
    pub fn new<K: Serialize + Send + Sync + 'static>(keys: K) -> Self {
        Self(Arc::new(keys))
    }

    /// The keys as their struct.
    ///
    /// # Panics
    /// They are of another type: they belong to another row.
    #[must_use]
    pub fn get<K: 'static>(&self) -> &K {
        let keys: &dyn Any = &*self.0;
        keys.downcast_ref().expect("a row gets keys that it has read")
    }

    /// The keys as a table, those without a value left out.
    #[must_use]
    pub fn table(&self) -> Table {
        self.0.table()
    }
}

/// A row of a registry that users choose by its name.
pub trait Row: 'static {
    /// The name in scenarios.
    fn name(&self) -> &'static str;

    /// Its keys.
    fn keys(&self) -> &KeyTable;
}

/// A row that was chosen, with its keys.
pub struct Chosen<R: 'static> {
    /// The row.
    pub row: &'static R,
    /// Its keys, with every default.
    pub keys: TypedKeys,
}

impl<R: Row> Chosen<R> {
    /// The row with the keys that were given, and the defaults of the others.
    ///
    /// # Errors
    /// The first key that is unknown, missing, of the wrong type or out of range.
    pub fn read(row: &'static R, given: Table) -> Result<Self, KeyError> {
        Ok(Self { row, keys: row.keys().read(given)? })
    }

    /// The row with its defaults.
    ///
    /// # Panics
    /// A key has no default.
    #[must_use]
    pub fn plain(row: &'static R) -> Self {
        Self::read(row, Table::new()).expect("each key has a default")
    }

    /// The name in scenarios.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.row.name()
    }

    /// The table that a user would write: the name and all keys.
    #[must_use]
    pub fn table(&self) -> Table {
        let name = ("name".to_owned(), Value::from(self.name()));
        std::iter::once(name).chain(self.keys.table()).collect()
    }
}

impl<R> Clone for Chosen<R> {
    fn clone(&self) -> Self {
        Self { row: self.row, keys: self.keys.clone() }
    }
}

impl<R: Row> fmt::Debug for Chosen<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table().fmt(f)
    }
}

impl<R: Row> Serialize for Chosen<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.table().serialize(serializer)
    }
}
