//! Follows the requests of a device and sets its read-ahead accordingly; the old number is restored at the end.
//!
//! The caller says every now and then that it is time to look. Between looks nothing happens, so that a watch is as
//! testable as a policy: events come from a [`Source`], the time from the caller.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use headstart_types::{system_says, Nanos};
use toml::Table;

use super::adapt::{Adapter, Pace};
use super::depth::{check, deepest, facts, kb_of, mean_rate, page_bytes};
use super::events::{Line, Lines};
use super::faults::Faults;
use super::instance::{Instance, Source};
use super::report::{Ended, Status};
use super::state::{Entry, State};
use super::tuner::Held;
use super::{Device, Error, Settings, Tuner};
use headstart_host::owned::{replace, LockedFile};
use headstart_host::Process;

/// How often the presence of the device and its number are checked.
const CHECKS: Nanos = Nanos::from_millis(1_000);

/// Of the file of metrics, whatever the umask: collectors of metrics run as users of their own.
const METRICS_MODE: u32 = 0o644;

/// What to follow, and how.
#[derive(Debug, Clone)]
pub struct WatchSettings {
    /// The drive: a name of the registry or the path of a profile.
    pub profile: String,
    /// Laid over its own keys.
    pub keys: Table,
    /// When to write.
    pub pace: Pace,
    /// A file that is to hold the status as OpenMetrics.
    pub openmetrics: Option<PathBuf>,
}

/// A device that is watched. Dropping it writes what was found.
#[derive(Debug)]
pub struct Watch<S: Source = Instance> {
    tuner: Tuner,
    settings: WatchSettings,
    source: S,
    lines: Lines,
    /// `None` where the kernel does not show them.
    faults: Option<Faults<S>>,
    adapter: Adapter,
    entry: Entry,
    status: Status,
    checked: Nanos,
    over: bool,
    /// Held so that no other process changes the device. Released last.
    _lock: LockedFile,
}

impl Watch {
    /// Writes the depth of the drive's average switch, and follows from there.
    ///
    /// # Errors
    /// There is no such drive, nothing to follow, or the system does not allow it. Then the number is as it was.
    pub fn start(tuner: Tuner, settings: WatchSettings) -> Result<Self, Error> {
        let roots = tuner.settings.roots.clone();
        let (number, numbers) = (tuner.device().number, tuner.device().numbers());
        Self::with(tuner, settings, || Ok((Instance::new(&roots, number)?, Instance::faults(&roots, number, &numbers))))
    }
}

impl<S: Source> Watch<S> {
    /// The same, with events from elsewhere: requests, and faults if there are any to see.
    pub(super) fn with(
        tuner: Tuner,
        settings: WatchSettings,
        sources: impl FnOnce() -> Result<(S, Result<S, Error>), Error>,
    ) -> Result<Self, Error> {
        let facts = facts(&settings.profile, &settings.keys)?;
        check("profile", deepest(&facts), tuner.settings.force)?;
        let device = tuner.device();
        if !device.has_requests() {
            let problem = format!("{} has no requests of its own that could be followed", device.label());
            let allowed = "--apply; or --watch with a disk or a loop device, not FUSE, NFS, device mapper or md";
            return Err(Error::path(&device.path, problem, allowed));
        }
        if let Some(metrics) = settings.openmetrics.as_deref().filter(|path| same_file(path, &tuner.settings.state)) {
            return Err(Error::path(metrics, "is the state file too", "a file of its own"));
        }
        let Held { mut state, mut notes, lock } = tuner.hold()?;
        if let Some(entry) = state.entry(device) {
            let problem = format!("was set by --apply, and was {} before", entry.old_kb);
            return Err(Error::path(&device.path, problem, "headstart tune --restore first, then --watch"));
        }
        let (source, faults) = sources()?;
        let faults = match faults {
            Ok(source) => Some(Faults::new(source)),
            Err(error) => {
                notes.push(format!("faults of mapped files are not taken into account: {error}"));
                None
            }
        };
        let found = tuner.found()?;
        let rate = mean_rate(&facts, device.size_bytes);
        let mut adapter = Adapter::new(&facts, rate, page_bytes(), settings.pace);
        adapter.found(found.saturating_mul(1024));
        let entry = Entry::new(device, &tuner.settings.roots, found, Some(Process::own(&tuner.settings.roots)))?;
        notes.extend(tuner.remarks_on_drive(&facts));
        let status = Status::new(device, &settings.profile, &facts, found, notes);
        let (lines, checked) = (Lines::default(), Nanos::ZERO);
        let (over, _lock) = (false, lock);
        let mut watch = Self { tuner, settings, source, lines, faults, adapter, entry, status, checked, over, _lock };
        let begun = watch.publish().and_then(|()| watch.follow(Nanos::ZERO, &mut state));
        // Dropping the watch, as an error does, writes what was found, and takes its turn with the state for that.
        drop(state);
        begun?;
        Ok(watch)
    }

    /// Takes in what has happened up to `now`, and writes another number if that is called for. Says why there is nothing
    /// more to watch, if so.
    ///
    /// # Errors
    /// The system, or the state file. The number is not what was found before this is dropped.
    pub fn look(&mut self, now: Nanos) -> Result<Option<Ended>, Error> {
        let (adapter, lines, number) = (&mut self.adapter, &mut self.lines, self.tuner.device.number);
        let mut saw = |line: Line| match line {
            Line::Served(device, sectors) if device == number => adapter.served(now, sectors),
            Line::Lost(events) => adapter.lost(events),
            Line::Served(..) | Line::Fault(_) | Line::Other => {}
        };
        let taken = self.source.take(&mut |piece| lines.take(piece, &mut saw));
        self.status.elapsed_ns = now.0;
        self.look_at_faults(now);
        if now >= self.checked + CHECKS {
            self.checked = now;
            if let Some(ended) = self.check()? {
                return Ok(Some(ended));
            }
            if let Err(error) = self.publish() {
                self.note(error.to_string());
            }
        }
        taken.map_err(|source| {
            let problem = system_says(&source);
            Error::path(&self.tuner.settings.roots.tracing, problem, "a tracefs that stays")
        })?;
        if self.adapter.wants(now).is_none() {
            return Ok(None);
        }
        // Of another program's number it is to be known before ours stands there.
        if let Some(ended) = self.check()? {
            return Ok(Some(ended));
        }
        let Settings { roots, state, .. } = &self.tuner.settings;
        // The number stays until the state file can record the next one: the next look tries again.
        let mut state = match State::try_open(roots, state) {
            Ok(Some(state)) => state,
            Ok(None) => return Ok(None),
            Err(error) => {
                self.note(format!("{error}; the number stays until that is well"));
                return Ok(None);
            }
        };
        match self.follow(now, &mut state) {
            Err(_) if !self.tuner.device.is_there() => Ok(Some(Ended::Gone)),
            other => other.map(|()| None),
        }
    }

    /// Without them it goes on.
    fn look_at_faults(&mut self, now: Nanos) {
        let Some(faults) = &mut self.faults else { return };
        let adapter = &mut self.adapter;
        match faults.take(now, |event| adapter.fault(event)) {
            Ok(taken) => adapter.took_faults(taken, faults.pauses),
            Err(error) => {
                self.faults = None;
                self.note(format!("faults of mapped files are no longer seen: {}", system_says(&error)));
            }
        }
    }

    /// What it has seen and done so far.
    #[must_use]
    pub fn status(&self) -> Status {
        Status { seen: self.adapter.seen(), ..self.status.clone() }
    }

    /// Writes what was found, and says what was seen and done.
    ///
    /// # Errors
    /// The system, or the state file.
    pub fn end(mut self, why: Ended) -> Result<Status, Error> {
        self.status.ended = Some(why);
        let restored = self.restore();
        let published = self.publish();
        restored.and(published).map(|()| self.status())
    }

    /// Writes the number that the averages ask for: first into the state.
    fn follow(&mut self, now: Nanos, state: &mut State) -> Result<(), Error> {
        let Some(pages) = self.adapter.wants(now) else { return Ok(()) };
        let kb = kb_of(pages, page_bytes());
        self.entry.writes(self.status.now_kb, kb);
        state.put(self.entry.clone())?;
        self.tuner.device.write(kb)?;
        self.adapter.wrote(now, pages);
        self.status.now_kb = kb;
        self.status.lowest_kb = self.status.lowest_kb.map(|lowest| lowest.min(kb)).or(Some(kb));
        self.status.highest_kb = self.status.highest_kb.map(|highest| highest.max(kb)).or(Some(kb));
        Ok(())
    }

    /// Why it must not go on, if so.
    fn check(&self) -> Result<Option<Ended>, Error> {
        // Read first: in between it may go.
        let now = self.tuner.device.read_ahead_kb();
        if !self.tuner.device.is_there() {
            return Ok(Some(Ended::Gone));
        }
        Ok((now? != self.status.now_kb).then_some(Ended::Changed))
    }

    /// Whether a number is one that was written here. Another program may have set the one before the latest, too.
    fn is_ours(&self, now: u64) -> bool {
        match self.status.ended {
            Some(Ended::Changed) => now == self.status.now_kb,
            _ => self.entry.ours_kb.contains(&now),
        }
    }

    /// Whether what has its number now, if anything has, is another device.
    fn is_replaced(&self) -> bool {
        let device = &self.tuner.device;
        Device::at(&self.tuner.settings.roots, &device.path, device.number, false)
            .is_ok_and(|now| !self.entry.is_for(&now))
    }

    /// A second time it does nothing.
    fn restore(&mut self) -> Result<(), Error> {
        if std::mem::replace(&mut self.over, true) {
            return Ok(());
        }
        let device = &self.tuner.device;
        let (found, label) = (self.entry.old_kb, device.label());
        let now = device.read_ahead_kb();
        // A loop device without a file, or with another, has its number still.
        let there = device.is_there();
        match now {
            _ if !there && self.is_replaced() => self.note(format!("{label} has gone; another device has its number")),
            Err(_) if !there => self.note(format!("{label} has gone, and its read-ahead with it")),
            Err(error) => return Err(error),
            Ok(now) if now == found || self.is_ours(now) => {
                if now != found {
                    device.write(found)?;
                }
                self.status.now_kb = found;
                if !there {
                    self.note(format!("{label} has gone; the number stays, and is {found} again"));
                }
            }
            Ok(now) => {
                self.status.now_kb = now;
                // The kernel itself does, when a loop device is detached from some file systems.
                let who =
                    if there { "another program".to_owned() } else { format!("{label} has gone, and another program") };
                self.note(format!("{who} has set {now}, which stays; {found} was found"));
            }
        }
        let backing = &self.entry.backing;
        let Settings { roots, state, .. } = &self.tuner.settings;
        State::open(roots, state)?.retain(|entry| entry.backing != *backing)
    }

    /// Each thing is said once.
    fn note(&mut self, text: String) {
        if !self.status.notes.contains(&text) {
            self.status.notes.push(text);
        }
    }

    /// From now on the state is where it cannot be written.
    #[cfg(test)]
    pub(super) fn lose_the_state(&mut self, path: &std::path::Path) {
        self.tuner.settings.state = path.to_owned();
    }

    fn publish(&self) -> Result<(), Error> {
        let Some(path) = &self.settings.openmetrics else { return Ok(()) };
        let text = self.status().to_openmetrics();
        replace(path, text.as_bytes(), METRICS_MODE, false)
            .map_err(|error| Error::path(path, system_says(&error), "a file in a folder that can be written"))
    }
}

/// Whether two paths lead to one file, which need not be there.
fn same_file(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| path.metadata().ok().map(|found| (found.dev(), found.ino()));
    one == other || identity(one).is_some_and(|found| identity(other) == Some(found))
}

impl<S: Source> Drop for Watch<S> {
    fn drop(&mut self) {
        // The caller already has another error. The state file says what was found.
        let _ = self.restore();
    }
}
