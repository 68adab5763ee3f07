//! The report of a server, in the terms of a simulation's result.

use headstart_assemble::{level_report, LevelReport};
use headstart_engine::Summary;
use headstart_hints::FollowReport;
use headstart_types::printable;
use schemars::JsonSchema;
use serde::Serialize;
use toml::Table;

use crate::conductor::Conductor;
use crate::server::Server;
use crate::spill::SpillReport;
use crate::stability::{UnflushedChanges, Unstable};
use crate::statistics::Totals;

/// Report of a server.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Report {
    /// Version of this schema.
    pub schema: u32,
    /// Version of headstart.
    pub version: &'static str,
    /// Time since the start of the server.
    pub elapsed_ns: u64,
    /// The URLs that clients can connect to.
    pub uris: Vec<String>,
    /// Number of connected clients.
    pub connections: usize,
    /// Number of clients that have connected since the start.
    pub connections_total: u64,
    /// The exports, in the order in which they were given.
    pub exports: Vec<ExportReport>,
}

/// Report of an export.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ExportReport {
    /// Name of the export.
    pub name: String,
    /// The backing.
    pub backing: String,
    /// Size of the export in bytes.
    pub size_bytes: u64,
    /// Page size in bytes.
    pub page_bytes: u64,
    /// Keys of the export's level, with all defaults.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub level_keys: Table,
    /// Number of requests without a reply.
    pub outstanding: usize,
    /// Acknowledged changes that may be lost, and why later changes fail. Null if none may be lost.
    pub unstable: Option<UnstableReport>,
    /// Time from a request's arrival to its reply.
    pub response_ns: Summary,
    /// Counts of requests and of reads of the backing.
    #[serde(flatten)]
    pub totals: Totals,
    /// Counts of the level, in pages.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub level: LevelReport,
    /// Prefetch statistics, if `hints` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hints: Option<FollowReport>,
    /// Statistics of the spill file, if `spill` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spill: Option<SpillReport>,
    /// Statistics of the emulated disk behind the export, as in `headstart emulate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<serde_json::Value>,
}

/// Changes of an export that may be lost.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct UnstableReport {
    /// The following fields in one line.
    pub summary: String,
    /// The time, the reason and the changes.
    #[serde(flatten)]
    pub unstable: Unstable,
}

impl UnstableReport {
    /// Report on the export `name` in front of `backing`, with unanswered requests.
    fn new(unstable: &Unstable, (name, backing): (&str, &str), outstanding: usize) -> Self {
        let named = if name.is_empty() { backing.to_owned() } else { format!("{name} ({backing})") };
        let UnflushedChanges { unflushed_writes: writes, unflushed_bytes: bytes, first_byte, end_byte } =
            unstable.unflushed;
        let mut summary = format!("{named}: not known to be stable: {writes} acknowledged writes");
        if writes > 0 {
            summary += &format!(", {bytes} bytes between {first_byte} and {end_byte}");
        }
        if outstanding > 0 {
            summary += &format!("; unanswered: {outstanding} requests");
        }
        summary += &format!("; reason: {}", unstable.reason);
        Self { summary: printable(&summary).into_owned(), unstable: unstable.clone() }
    }
}

impl Report {
    /// Report on the current state of `server`; `about` has each export's backing and keys.
    #[must_use]
    pub fn new(server: &Server, uris: &[String], about: &[(String, Table)]) -> Self {
        let of = |((name, conductor, device), (backing, keys)): ((&str, &Conductor, _), &(String, Table))| {
            let setting = conductor.setting();
            ExportReport {
                name: name.to_owned(),
                backing: backing.clone(),
                size_bytes: setting.size_bytes,
                page_bytes: setting.page_bytes,
                level_keys: keys.clone(),
                outstanding: conductor.open_requests(),
                unstable: conductor
                    .unstable()
                    .map(|unstable| UnstableReport::new(unstable, (name, backing), conductor.open_requests())),
                response_ns: conductor.statistics().response_ns(),
                totals: conductor.statistics().totals.clone(),
                level: level_report(conductor.counts(), "server", setting.frames, setting.page_bytes),
                hints: conductor.hints(),
                spill: conductor.spill_report(),
                device,
            }
        };
        let (connections, connections_total) = server.connections();
        Self {
            schema: 1,
            version: env!("CARGO_PKG_VERSION"),
            elapsed_ns: server.now().0,
            uris: uris.to_vec(),
            connections,
            connections_total,
            exports: server.exports_with_devices().zip(about).map(of).collect(),
        }
    }
}
