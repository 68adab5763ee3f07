//! Every coordinator by name: one row each. Help, docs and the conformance tests iterate the table.

use serde::{Deserialize, Serialize};
use toml::Table;

use headstart_types::{typed_keys, KeyError};

use super::pfc::{Actions, Contexts, Start, Update};
use super::{Coordinator, Demote, Du, Pfc, PfcSetting, Share, Uncoordinated};

/// What a host tells about the level that a coordinator is built for.
#[derive(Debug, Clone, Copy)]
pub struct CoordinatorContext {
    /// Frames of the lower level; 0 if it only passes on.
    pub frames: u32,
}

/// How a row makes its coordinator.
pub type BuildCoordinator = fn(Table, &CoordinatorContext) -> Result<Box<dyn Coordinator>, KeyError>;

/// A coordinator's row.
pub struct CoordinatorRow {
    /// The name in scenarios.
    pub name: &'static str,
    /// One line for help.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Its keys with their defaults.
    pub defaults: fn() -> Table,
    /// Builds it from its keys (without `name`).
    ///
    /// # Errors
    /// An unknown key or a value out of range.
    pub build: BuildCoordinator,
}

/// The coordinators.
pub static COORDINATORS: &[CoordinatorRow] = &[
    CoordinatorRow {
        name: "none",
        summary: "each level for itself",
        source: "the base case of zhang-pfc, section 4",
        defaults: Table::new,
        build: |keys, _| without_keys(keys, Uncoordinated),
    },
    CoordinatorRow {
        name: "du",
        summary: "what was just sent up is evicted first",
        source: "zhang-pfc, section 4.3; Chen et al., SIGMETRICS 2005",
        defaults: Table::new,
        build: |keys, _| without_keys(keys, Du),
    },
    CoordinatorRow {
        name: "demote",
        summary: "exclusive caching: what was sent up leaves, what is evicted above comes back",
        source: "Wong and Wilkes, USENIX 2002",
        defaults: Table::new,
        build: |keys, _| without_keys(keys, Demote),
    },
    CoordinatorRow {
        name: "pfc",
        summary: "lets requests bypass the lower level, or makes it read more, by what two queues of names show",
        source: "zhang-pfc, section 3, Algorithms 1 and 2",
        defaults: || Table::try_from(PfcKeys::default()).expect("keys are plain values"),
        build: |keys, context| Ok(Box::new(Pfc::new(typed_keys::<PfcKeys>(keys)?.setting(context)?))),
    },
];

/// The row of coordinator `name`.
///
/// # Errors
/// There is none; lists the names.
pub fn coordinator(name: &str) -> Result<&'static CoordinatorRow, KeyError> {
    let unknown = || KeyError::unknown("name", "coordinator", name, COORDINATORS.iter().map(|row| row.name));
    COORDINATORS.iter().find(|row| row.name == name).ok_or_else(unknown)
}

#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct NoKeys {}

fn without_keys<C: Coordinator + 'static>(keys: Table, coordinator: C) -> Result<Box<dyn Coordinator>, KeyError> {
    typed_keys::<NoKeys>(keys)?;
    Ok(Box::new(coordinator))
}

#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct PfcKeys {
    /// Size of each queue, as a share of the lower level's frames.
    queue: f64,
    actions: Actions,
    context: Contexts,
    contexts: u32,
    large: f64,
    ahead: Start,
    window: Start,
    update: Update,
}

impl Default for PfcKeys {
    fn default() -> Self {
        Self {
            queue: PfcSetting::QUEUE,
            actions: Actions::default(),
            context: Contexts::default(),
            contexts: PfcSetting::CONTEXTS,
            large: 1.0,
            ahead: Start::default(),
            window: Start::default(),
            update: Update::default(),
        }
    }
}

impl PfcKeys {
    fn setting(self, context: &CoordinatorContext) -> Result<PfcSetting, KeyError> {
        let refused = |key: &str, value: String, allowed: &str| {
            Err(KeyError::new(key, format!("{value} is out of range"), allowed))
        };
        let Some(queue) = Share::try_new(self.queue).filter(|queue| *queue > Share::ZERO) else {
            return refused("queue", self.queue.to_string(), "a share above 0, at most 1000");
        };
        let Some(large) = Share::try_new(self.large) else {
            return refused("large", self.large.to_string(), "a number from 0 to 1000");
        };
        if self.contexts == 0 {
            return refused("contexts", self.contexts.to_string(), "a whole number from 1");
        }
        Ok(PfcSetting {
            queue_blocks: queue.of(context.frames).max(1),
            large,
            ahead: self.ahead,
            window: self.window,
            update: self.update,
            actions: self.actions,
            context: self.context,
            contexts: self.contexts,
        })
    }
}
