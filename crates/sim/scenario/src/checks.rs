//! Checks across sections: contradictions are refused.

use headstart_policy::readahead::Needs;
use headstart_types::{KeyError, Nanos};

use headstart_layout::{Addresses, Placement};

use super::device::DISKS_MAX;
use super::{Arrival, BlockSize, HostKeys, Input, Issue, Meets, Processes, Scenario, Writes};

impl Scenario {
    /// Refuses sections that contradict each other.
    pub(super) fn fits_together(&self) -> Result<(), KeyError> {
        let hinted = self.policy.needs_hints();
        let foretold = hinted || self.policy.needs() == Needs::Future;
        let workload =
            |key: &str, problem: &str, allowed: &str| Err(KeyError::new(format!("workload.{key}"), problem, allowed));
        if let Arrival::Open(_) = self.workload.arrival {
            if foretold {
                return workload("arrival", "hints follow one process, open arrivals have none", "\"closed\"");
            }
            if self.host != HostKeys::default() {
                let problem = "open arrivals take no processor time";
                return Err(KeyError::new("host", problem, "no costs, or workload.arrival = \"closed\""));
            }
        }
        if self.workload.section.processes.are_several() && hinted {
            let minimum = self.policy.name() == "demand";
            if minimum || self.lower.iter().any(|level| level.section.clients > 1) {
                let problem = "hints of several processes need a single level and a prefetching policy";
                return workload("processes", problem, "\"merged\", or a hinted policy that prefetches");
            }
            if self.policy.hints.as_ref().is_some_and(|hints| hints.window.is_some()) {
                let problem = "a window follows one process, several processes disclose everything from the start";
                let allowed = "processes, fraction, wrong and reordered, or workload.processes = \"merged\"";
                return Err(KeyError::new("policy.hints.window", problem, allowed));
            }
        }
        let by_process = self.policy.hints.as_ref().is_some_and(|hints| hints.processes.is_some());
        if by_process && !self.workload.section.processes.are_several() {
            let allowed = "workload.processes = \"per-pid\" or \"dealt\" in addition, or no such key";
            return Err(KeyError::new("policy.hints.processes", "the workload is one process", allowed));
        }
        if matches!(self.workload.placement, Some(Placement::Ffs(_))) {
            self.is_read_through_files()?;
        }
        let shared: u64 = self.lower.iter().map(|level| u64::from(level.section.clients)).product();
        if shared > 1 && !self.workload.section.processes.are_several() {
            let problem = "several first levels need several processes";
            return workload("processes", problem, "\"per-pid\", or clients = 1");
        }
        if shared > 100_000 {
            let problem = format!("{shared} first levels");
            return Err(KeyError::new("level.clients", problem, "at most 100000 in all"));
        }
        self.servers_fit()
    }

    /// Checks the levels above, below and beside a level of several servers.
    fn servers_fit(&self) -> Result<(), KeyError> {
        let mut spread = self.lower.iter().zip(1..).filter(|(level, _)| level.spread.is_some());
        let Some((_, at)) = spread.next() else { return Ok(()) };
        let refused = |at: usize, key: &str, problem: &str, allowed: &str| {
            Err(KeyError::new(format!("level[{at}].{key}"), problem, allowed))
        };
        if let Some((_, second)) = spread.next() {
            let problem = "another level already has servers, each of which has its own levels below";
            return refused(second, "servers", problem, "servers on one level");
        }
        if let Some(below) = (at..self.lower.len()).find(|below| self.lower[*below].section.clients > 1) {
            let problem = "a server does not share its lower levels";
            return refused(below + 1, "clients", problem, "clients = 1 below a level with servers");
        }
        if matches!(self.workload.placement, Some(Placement::Ffs(_))) {
            return refused(at, "servers", "a file system lies on one server", "1, or another placement");
        }
        if self.device.layout.is_some() {
            return refused(at, "servers", "device.layout says where blocks lie", "1, or no layout");
        }
        let disks = u64::from(self.device.servers) * u64::from(self.device.disks_of_server());
        if disks > u64::from(DISKS_MAX) {
            let problem = format!("{disks} disks of all servers");
            return refused(at, "servers", &problem, &format!("at most {DISKS_MAX} disks in all"));
        }
        Ok(())
    }

    /// Checks what a file system's read path needs.
    fn is_read_through_files(&self) -> Result<(), KeyError> {
        let refused = |key: &str, problem: &str, allowed: &str| Err(KeyError::new(key, problem, allowed));
        if matches!(self.workload.input, Input::References(_)) {
            return refused("workload.placement", "inline references do not belong to files", "a trace or a generator");
        }
        if self.workload.block_size == BlockSize::Object {
            return refused("workload.block_size", "objects are not blocks of files", "a size such as \"8KiB\"");
        }
        if self.workload.section.writes == Writes::Through {
            let problem = "no process waits for a write of the simulated file system";
            return refused("workload.writes", problem, "\"as-read\", \"skip\" or \"back\", or another placement");
        }
        if self.workload.arrival != Arrival::Closed || self.workload.section.issue == Issue::Whole {
            let problem = "a file system reads block by block";
            return refused("workload.issue", problem, "\"blocks\" and arrival = \"closed\", or another placement");
        }
        if matches!(self.workload.addresses, Addresses::Compact { .. }) {
            return refused(
                "workload.addresses",
                "a file system determines the places of its blocks",
                "\"error\" or \"auto\"",
            );
        }
        if self.device.layout.is_some() {
            return refused("device.layout", "given together with a file system's layout", "one of the two");
        }
        Ok(())
    }

    /// Checks what a parallel program requires and forbids. `actions`: a key of prefetch actions that was given.
    pub(super) fn makes_a_program(&self, actions: Option<&str>) -> Result<(), KeyError> {
        let refused = |key: &str, problem: &str, allowed: &str| Err(KeyError::new(key, problem, allowed));
        let count = self.process.as_ref().and_then(|process| process.section.count);
        if self.workload.section.processes == Processes::Dealt && count.is_none() {
            let problem = "files are dealt to processes, but their number is not given";
            return refused("workload.processes", problem, "process.count in addition, or \"per-pid\"");
        }
        let Some(process) = &self.process else {
            if self.has_actions() {
                let problem =
                    format!("{} needs to know what the processes of a parallel program will read", self.policy.name());
                return refused("policy.name", &problem, "[process] in addition, or another policy");
            }
            return Ok(());
        };
        if let Arrival::Open(_) = self.workload.arrival {
            return refused("workload.arrival", "processes wait, open arrivals do not", "\"closed\", or no [process]");
        }
        if count.is_some() && process.pattern.is_none() && self.workload.section.processes != Processes::Dealt {
            let allowed = "a pattern, or workload.processes = \"dealt\" in addition, or no count";
            return refused("process.count", "the trace determines the number of processes", allowed);
        }
        if let (Some(key), false) = (actions, self.has_actions()) {
            let problem = format!("{} has no prefetch actions", self.policy.name());
            return refused(&format!("process.{key}"), &problem, "policy rapid-transit, or no such key");
        }
        if self.has_actions() && self.workload.section.writes.reach_devices() {
            let allowed = "\"as-read\" or \"skip\"";
            return refused("workload.writes", "prefetch actions require files that are only read", allowed);
        }
        if self.has_actions() && self.lower.iter().any(|level| level.section.clients > 1) {
            return refused("level.clients", "prefetch actions require a single first level", "clients = 1");
        }
        if process.section.remote_cost > Nanos::ZERO && self.lower.iter().any(|level| level.section.clients > 1) {
            return refused("level.clients", "the buffers of a program require a single first level", "clients = 1");
        }
        if process.pattern.is_none() && process.meets == Meets::Portion {
            let allowed = "a pattern, or scope = \"process\", \"all\" or \"none\"";
            return refused("process.barrier.scope", "a trace has no portions", allowed);
        }
        let foretold = self.policy.needs_hints() || self.policy.needs() == Needs::Future;
        if process.pattern.is_some() && foretold {
            return refused(
                "policy",
                "the process of each reference of a pattern is not known in advance",
                "a policy without hints",
            );
        }
        if process.pattern.is_some() && !self.has_actions() && self.policy.name() != "demand" {
            let problem = format!("{} prefetches without using processors", self.policy.name());
            return refused("policy.name", &problem, "\"demand\" or \"rapid-transit\" with process.pattern");
        }
        if process.pattern.is_some() && self.workload.placement.is_some_and(|placement| placement != Placement::Address)
        {
            return refused("workload.placement", "a pattern reads one file", "\"address\"");
        }
        if process.pattern.is_some() && !self.cache.section.initial.is_empty() {
            return refused("cache.initial", "has block labels, which only inline references have", "no initial");
        }
        Ok(())
    }
}
