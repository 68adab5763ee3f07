//! What a server has done, in the words of the simulator's result.

use headstart_assemble::{level_report, LevelReport};
use headstart_engine::Summary;
use headstart_hints::FollowReport;
use headstart_types::printable;
use serde::Serialize;
use toml::Table;

use crate::conductor::Conductor;
use crate::server::Server;
use crate::spill::SpillReport;
use crate::stability::{Unflushed, Unstable};
use crate::statistics::Totals;

/// Of all exports.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Of this form.
    pub schema: u32,
    /// Of headstart.
    pub version: &'static str,
    /// Since the start.
    pub elapsed_ns: u64,
    /// What clients can connect to.
    pub uris: Vec<String>,
    /// Clients now.
    pub connections: usize,
    /// All clients that there have been.
    pub connections_total: u64,
    /// In the order in which they were named.
    pub exports: Vec<ExportReport>,
}

/// Of one export.
#[derive(Debug, Clone, Serialize)]
pub struct ExportReport {
    /// Its name.
    pub name: String,
    /// What stands behind it.
    pub backing: String,
    /// Its size.
    pub size_bytes: u64,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// The level's keys, with all defaults.
    pub level_keys: Table,
    /// Requests that have not been replied to.
    pub outstanding: usize,
    /// Since when and why changes fail, and which acknowledged ones may be lost; null as long as none are.
    pub unstable: Option<UnstableReport>,
    /// From request to reply.
    pub response_ns: Summary,
    /// Counts of requests and of reads of the backing.
    #[serde(flatten)]
    pub totals: Totals,
    /// Counts of the level, in pages.
    pub level: LevelReport,
    /// What prefetching from hints has come to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hints: Option<FollowReport>,
    /// What the spill file has been good for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spill: Option<SpillReport>,
    /// What an emulated disk behind it has done, as `headstart emulate` says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<serde_json::Value>,
}

/// What of an export may be lost.
#[derive(Debug, Clone, Serialize)]
pub struct UnstableReport {
    /// All of it in one line.
    pub summary: String,
    /// Since when, why, and which changes.
    #[serde(flatten)]
    pub unstable: Unstable,
}

impl UnstableReport {
    /// Of the export `name` in front of `backing`, with requests that have not been answered.
    fn new(unstable: &Unstable, (name, backing): (&str, &str), outstanding: usize) -> Self {
        let named = if name.is_empty() { backing.to_owned() } else { format!("{name} ({backing})") };
        let Unflushed { unflushed_writes: writes, unflushed_bytes: bytes, first_byte, end_byte } = unstable.unflushed;
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
    /// Of `server` as it is now; `about` has each export's backing and keys.
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
                spill: conductor.spill(),
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
