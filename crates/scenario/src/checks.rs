//! What sections of a scenario say together: contradictions are refused.

use headstart_policy::readahead::Needs;
use headstart_types::{KeyError, Nanos};

use headstart_layout::{Addresses, Placement};

use super::device::DISKS_MAX;
use super::{Arrival, BlockSize, HintsKeys, HostKeys, Input, Issue, Meets, Processes, Scenario, Shown, Writes};

impl Scenario {
    /// What two sections say must not contradict.
    pub(super) fn fits_together(&self) -> Result<(), KeyError> {
        let hinted = self.policy.needs_hints();
        let foretold = hinted || self.policy.needs() == Needs::Future;
        let workload =
            |key: &str, problem: &str, allowed: &str| Err(KeyError::new(format!("workload.{key}"), problem, allowed));
        if let Arrival::Open(_) = self.workload.arrival {
            if foretold {
                return workload("arrival", "hints follow one process, arrivals by the clock none", "\"closed\"");
            }
            if self.host != HostKeys::default() {
                let problem = "arrivals by the clock take no processor time";
                return Err(KeyError::new("host", problem, "no costs, or workload.arrival = \"closed\""));
            }
        }
        if self.workload.processes.are_several() && hinted {
            let minimum = self.policy.name == "demand";
            if minimum || self.lower.iter().any(|level| level.clients > 1) {
                let problem = "hints of several processes are of one level, and for prefetching";
                return workload("processes", problem, "\"merged\", or a hinted policy that prefetches");
            }
            if matches!(&self.policy.hints, Some(HintsKeys { shown: Shown::Window(_), .. })) {
                let problem = "a window is of one process, several disclose from the start";
                let allowed = "processes, fraction, wrong and reordered, or workload.processes = \"merged\"";
                return Err(KeyError::new("policy.hints.window", problem, allowed));
            }
        }
        let by_process = self.policy.hints.as_ref().is_some_and(|hints| hints.processes.is_some());
        if by_process && !self.workload.processes.are_several() {
            let allowed = "workload.processes = \"per-pid\" or \"dealt\" beside it, or no such key";
            return Err(KeyError::new("policy.hints.processes", "the workload is one process", allowed));
        }
        if matches!(self.workload.placement, Some(Placement::Ffs(_))) {
            self.is_read_through_files()?;
        }
        let shared: u64 = self.lower.iter().map(|level| u64::from(level.clients)).product();
        if shared > 1 && !self.workload.processes.are_several() {
            let problem = "several first levels need several processes";
            return workload("processes", problem, "\"per-pid\", or clients = 1");
        }
        if shared > 100_000 {
            let problem = format!("{shared} first levels");
            return Err(KeyError::new("level.clients", problem, "at most 100000 in all"));
        }
        self.servers_fit()
    }

    /// What stands above, below and beside a level of several servers.
    fn servers_fit(&self) -> Result<(), KeyError> {
        let mut spread = self.lower.iter().zip(1..).filter(|(level, _)| level.spread.is_some());
        let Some((_, at)) = spread.next() else { return Ok(()) };
        let refused = |at: usize, key: &str, problem: &str, allowed: &str| {
            Err(KeyError::new(format!("level[{at}].{key}"), problem, allowed))
        };
        if let Some((_, second)) = spread.next() {
            let problem = "another level has servers already, and each of those has what stands below it alone";
            return refused(second, "servers", problem, "servers on one level");
        }
        if let Some(below) = (at..self.lower.len()).find(|below| self.lower[*below].clients > 1) {
            let problem = "a server shares nothing with others";
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

    /// What a file system's read path needs.
    fn is_read_through_files(&self) -> Result<(), KeyError> {
        let refused = |key: &str, problem: &str, allowed: &str| Err(KeyError::new(key, problem, allowed));
        if matches!(self.workload.input, Input::References(_)) {
            return refused("workload.placement", "inline references are of no files", "a trace or a generator");
        }
        if self.workload.block_size == BlockSize::Object {
            return refused("workload.block_size", "objects are no blocks of files", "a size such as \"8KiB\"");
        }
        if self.workload.writes == Writes::Through {
            let problem = "nobody waits for a write of the simulated file system";
            return refused("workload.writes", problem, "\"as-read\", \"skip\" or \"back\", or another placement");
        }
        if self.workload.arrival != Arrival::Closed || self.workload.issue == Issue::Whole {
            let problem = "a file system reads block by block";
            return refused("workload.issue", problem, "\"blocks\" and arrival = \"closed\", or another placement");
        }
        if matches!(self.workload.addresses, Addresses::Compact { .. }) {
            return refused(
                "workload.addresses",
                "a file system's blocks have places of their own",
                "\"error\" or \"auto\"",
            );
        }
        if self.device.layout.is_some() {
            return refused("device.layout", "given beside a file system's layout", "one of the two");
        }
        Ok(())
    }

    /// What a parallel program must have, and must not. `actions`: a key that says how prefetch actions go.
    pub(super) fn makes_a_program(&self, actions: Option<&str>) -> Result<(), KeyError> {
        let refused = |key: &str, problem: &str, allowed: &str| Err(KeyError::new(key, problem, allowed));
        let count = self.process.as_ref().and_then(|process| process.count);
        if self.workload.processes == Processes::Dealt && count.is_none() {
            let problem = "nothing says how many processes files are dealt out to";
            return refused("workload.processes", problem, "process.count beside it, or \"per-pid\"");
        }
        let Some(process) = &self.process else {
            if self.has_actions() {
                let problem =
                    format!("{} works from what the processes of a parallel program will read", self.policy.name);
                return refused("policy.name", &problem, "[process] beside it, or another policy");
            }
            return Ok(());
        };
        if let Arrival::Open(_) = self.workload.arrival {
            return refused(
                "workload.arrival",
                "processes wait, arrivals by the clock do not",
                "\"closed\", or no [process]",
            );
        }
        if count.is_some() && process.pattern.is_none() && self.workload.processes != Processes::Dealt {
            let allowed = "a pattern, or workload.processes = \"dealt\" beside it, or no count";
            return refused("process.count", "a trace's processes are as many as they are", allowed);
        }
        if let (Some(key), false) = (actions, self.has_actions()) {
            let problem = format!("{} gives processors no prefetch actions", self.policy.name);
            return refused(&format!("process.{key}"), &problem, "policy rapid-transit, or no such key");
        }
        if self.has_actions() && self.workload.writes.reach_devices() {
            let allowed = "\"as-read\" or \"skip\"";
            return refused("workload.writes", "prefetch actions are for files that are only read", allowed);
        }
        if self.has_actions() && self.lower.iter().any(|level| level.clients > 1) {
            return refused("level.clients", "prefetch actions are for one first level", "clients = 1");
        }
        if process.remote_cost > Nanos::ZERO && self.lower.iter().any(|level| level.clients > 1) {
            return refused("level.clients", "the buffers of a program are of one first level", "clients = 1");
        }
        if process.pattern.is_none() && process.meets == Meets::Portion {
            let allowed = "a pattern, or scope = \"process\", \"all\" or \"none\"";
            return refused("process.barrier.scope", "a trace says nothing of portions", allowed);
        }
        let foretold = self.policy.needs_hints() || self.policy.needs() == Needs::Future;
        if process.pattern.is_some() && foretold {
            return refused("policy", "who reads which reference of a pattern is not known", "a policy without hints");
        }
        if process.pattern.is_some() && !self.has_actions() && self.policy.name != "demand" {
            let problem = format!("{} prefetches without a processor, which takes no time", self.policy.name);
            return refused("policy.name", &problem, "\"demand\" or \"rapid-transit\" with process.pattern");
        }
        if process.pattern.is_some() && self.workload.placement.is_some_and(|placement| placement != Placement::Address)
        {
            return refused("workload.placement", "a pattern is of one file", "\"address\"");
        }
        if process.pattern.is_some() && !self.cache.initial.is_empty() {
            return refused("cache.initial", "names blocks, which only inline references have", "no initial");
        }
        Ok(())
    }
}
