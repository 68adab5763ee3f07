//! Show, apply, restore. Each first cleans up after a killed instance.

use headstart_host::owned::LockedFile;
use std::path::PathBuf;

use headstart_types::{Bytes, DriveFacts};

use super::cautions;
use super::depth::bytes_of;
use super::lock::try_lock;
use super::report::SCHEMA;
use super::state::{self, Entry, State, LARGEST_KB};
use super::{Action, Depth, Device, Error, Report, Wanted};
use headstart_host::tracefs::sweep;
use headstart_host::{Process, Roots};

const NOTHING_PROPOSED: &str =
    "nothing is proposed: --profile (a name of `headstart list devices`, or what `headstart profile` has written) or \
     --depth says how deep";
const FORGOTTEN: &str = "another device has its number now: what was found is forgotten";

/// The device, and where the old number is kept.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The machine.
    pub roots: Roots,
    /// A block device, or a path on what is to be tuned.
    pub device: PathBuf,
    /// The state file.
    pub state: PathBuf,
    /// Allows depths that are most likely a mistake.
    pub force: bool,
}

/// One device and its number.
#[derive(Debug)]
pub struct Tuner {
    pub(super) settings: Settings,
    pub(super) device: Device,
}

/// A device and the state file, both locked against other instances.
pub(super) struct Held {
    pub state: State,
    pub notes: Vec<String>,
    /// Of the device: two of us never change one device, whatever state files they have.
    pub lock: LockedFile,
}

impl Tuner {
    /// Finds the device.
    ///
    /// # Errors
    /// There is none.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        let device = Device::of(&settings.roots, &settings.device)?;
        Ok(Self { settings, device })
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// What there is, and what there should be if something is wanted. Changes nothing.
    ///
    /// # Errors
    /// The profile is none, or the state file is damaged.
    pub fn show(&self, wanted: Option<&Wanted>) -> Result<Report, Error> {
        let depth = wanted.map(|wanted| Depth::of(&self.device, wanted, self.settings.force)).transpose()?;
        let now = self.device.read_ahead_kb()?;
        let roots = &self.settings.roots;
        let boot = roots.boot_id()?;
        let entries = state::read_if_allowed(&self.settings.state)?;
        let of_this = |entry: &&Entry| entry.backing == self.device.backing_name() && entry.boot_id == boot;
        let entry = entries.iter().flatten().find(of_this).filter(|entry| entry.is_for(&self.device));
        let mut notes = depth.as_ref().map_or_else(Vec::new, |depth| self.remarks(depth));
        notes.extend(depth.as_ref().and_then(|depth| cautions::of_faults(depth.kb)));
        if depth.is_none() {
            notes.push(NOTHING_PROPOSED.to_owned());
        }
        if entries.is_none() {
            let state = self.settings.state.display();
            notes.push(format!("{state} is for root to read: whether something has been applied is not known"));
        }
        let watcher = entry.and_then(|entry| entry.watcher);
        if let (Some(entry), Some(dead)) = (entry, watcher.filter(|watcher| !watcher.lives(roots))) {
            let old = entry.old_kb;
            let stands = match now {
                now if now == old => format!("it is {old}, as it was found"),
                now if entry.ours_kb.contains(&now) => {
                    format!("the number there is its own; the next --apply, --watch or --restore writes {old} first")
                }
                now => format!("another program has set {now} since, which stays"),
            };
            notes.push(format!("process {} watched it and was killed: {stands}", dead.pid));
        }
        let report = self.report(Action::DryRun, now, depth, entry.map(|entry| entry.old_kb), notes)?;
        Ok(Report { watcher: watcher.filter(|watcher| watcher.lives(roots)), ..report })
    }

    /// Writes the depth. What was found before the first time is kept until [`Tuner::restore`].
    ///
    /// # Errors
    /// As [`Tuner::show`]; the system does not allow it; another program watches the device. Then the number is as it was.
    pub fn apply(&self, wanted: &Wanted) -> Result<Report, Error> {
        let depth = Depth::of(&self.device, wanted, self.settings.force)?;
        let Held { mut state, mut notes, lock } = self.hold()?;
        let found = self.found()?;
        notes.extend(self.remarks(&depth));
        let mut entry = match state.entry(&self.device) {
            Some(before) if before.goes_on(&self.device, found) => before.clone(),
            _ => Entry::new(&self.device, &self.settings.roots, found, None)?,
        };
        let old = entry.old_kb;
        if !entry.ours_kb.is_empty() && found != old && !entry.ours_kb.contains(&found) {
            notes.push(format!("another program had set {found} since the last --apply"));
        }
        entry.writes(found, depth.kb);
        state.put(entry)?;
        notes.extend(self.write(depth.kb)?);
        drop(lock);
        self.report(Action::Apply, found, Some(depth), Some(old), notes)
    }

    /// Writes what was found before the first [`Tuner::apply`]; with `force` even if another program has changed the number
    /// since.
    ///
    /// # Errors
    /// The system does not allow it; another program watches the device, or has changed the number. Then it is as it was.
    pub fn restore(&self, force: bool) -> Result<Report, Error> {
        let Held { mut state, mut notes, lock } = self.hold()?;
        let found = self.device.read_ahead_kb()?;
        let Some(entry) = state.entry(&self.device).cloned() else {
            if notes.is_empty() {
                notes.push("nothing has been applied to it".to_owned());
            }
            return self.report(Action::Restore, found, None, None, notes);
        };
        let old = entry.old_kb;
        let ours = entry.ours_kb.contains(&found);
        if !entry.is_for(&self.device) {
            notes.push(FORGOTTEN.to_owned());
        } else if found == old {
            notes.push(format!("it was {old} already"));
        } else if ours || force {
            notes.extend(self.write(old)?);
        } else if !entry.is_of(&self.device) {
            notes.push(FORGOTTEN.to_owned());
        } else {
            let ours = entry.ours_kb.iter().map(u64::to_string).collect::<Vec<_>>().join(" or ");
            let problem =
                format!("is {found}, neither ours ({ours}) nor what was found ({old}): another program has changed it");
            return Err(Error::path(&self.device.file(), problem, "--force, which writes what was found"));
        }
        state.retain(|each| each.backing != entry.backing)?;
        drop(lock);
        self.report(Action::Restore, found, None, None, notes)
    }

    /// The device for us alone, and the state file, in which nothing is left of other boots, of devices that have gone,
    /// and of a watcher of this one that was killed: what that had found is written.
    ///
    /// # Errors
    /// The system does not allow it, or another program has the device.
    pub(super) fn hold(&self) -> Result<Held, Error> {
        self.device.check_writable()?;
        let lock = self.lock()?;
        let roots = &self.settings.roots;
        let mut state = State::open(roots, &self.settings.state)?;
        // Watches that were killed leave theirs, whichever device they watched.
        sweep(roots);
        let mut notes = Vec::new();
        let boot = roots.boot_id()?;
        let there = |entry: &Entry| is_there(roots, entry);
        for entry in state.entries() {
            if entry.boot_id != boot {
                notes.push(format!("{}: what was found before the last boot is forgotten, not written", entry.name));
            } else if !there(entry) {
                notes.push(format!("{}: has gone, and what was found with it", entry.name));
            }
        }
        state.retain(|entry| entry.boot_id == boot && there(entry))?;
        let killed = state.entry(&self.device).filter(|entry| entry.watcher.is_some()).cloned();
        if let Some((entry, watcher)) = killed.and_then(|entry| entry.watcher.map(|watcher| (entry, watcher))) {
            // Locks do not reach into other mount namespaces, such as those of containers.
            if watcher.lives(roots) {
                return Err(self.is_watched());
            }
            notes.push(self.recover(&entry, watcher)?);
            state.retain(|each| each.backing != entry.backing)?;
        }
        Ok(Held { state, notes, lock })
    }

    /// Writes what a watcher had found that was killed. Returns what to say.
    fn recover(&self, entry: &Entry, watcher: Process) -> Result<String, Error> {
        let (now, old) = (self.device.read_ahead_kb()?, entry.old_kb);
        let who = format!("process {} watched it and was killed", watcher.pid);
        Ok(match now {
            _ if !entry.is_for(&self.device) => format!("{who}: {FORGOTTEN}"),
            now if now == old => format!("{who}: it is {old}, as it was found"),
            now if entry.ours_kb.contains(&now) => {
                let said = self.write(old)?.unwrap_or_else(|| format!("and is {old} again, as it was found"));
                format!("{who}: it was {now}, {said}")
            }
            now => format!("{who}: another program has set {now} since, which stays"),
        })
    }

    /// Writes the number. Says so if another program has set another at once, which stays.
    fn write(&self, kb: u64) -> Result<Option<String>, Error> {
        let now = self.device.write(kb)?;
        Ok((now != kb).then(|| format!("{kb} was written, and another program has set {now} since, which stays")))
    }

    /// The number in effect, to be written again later.
    ///
    /// # Errors
    /// It is more than a state file may say.
    pub(super) fn found(&self) -> Result<u64, Error> {
        let found = self.device.read_ahead_kb()?;
        match found > LARGEST_KB {
            true => {
                let problem = format!("is {found}, which could not be restored");
                Err(Error::path(&self.device.file(), problem, format!("at most {LARGEST_KB}: set one by hand first")))
            }
            false => Ok(found),
        }
    }

    /// # Errors
    /// Another program has it.
    fn lock(&self) -> Result<LockedFile, Error> {
        let name = format!("tune-{}", self.device.backing_name());
        try_lock(&self.settings.roots, &name)?.ok_or_else(|| self.is_watched())
    }

    fn is_watched(&self) -> Error {
        let entries = state::read(&self.settings.state).unwrap_or_default();
        let of_this = entries.iter().filter(|entry| entry.backing == self.device.backing_name());
        let who = match of_this.filter_map(|entry| entry.watcher).next() {
            Some(watcher) => format!("process {}", watcher.pid),
            None => "another process".to_owned(),
        };
        let problem = format!("{who} is tuning {}", self.device.label());
        Error::path(&self.device.path, problem, "one at a time: wait, or end it with SIGTERM, which restores")
    }

    /// What speaks against the depth of a profile on this device.
    fn remarks(&self, depth: &Depth) -> Vec<String> {
        let size = depth.profile_bytes.and_then(|bytes| self.remark(bytes));
        let arm = if depth.is_of_an_arm() { cautions::of_an_arm(&self.device) } else { Vec::new() };
        size.into_iter().chain(depth.note.clone()).chain(arm).collect()
    }

    /// The same of a drive that is watched.
    pub(super) fn remarks_on_drive(&self, facts: &DriveFacts) -> Vec<String> {
        let about = self.remark(bytes_of(facts)).into_iter().chain(facts.note());
        about.chain(cautions::of_an_arm(&self.device)).collect()
    }

    fn remark(&self, profile: u64) -> Option<String> {
        // A tenth: sizes of one make differ by less.
        let device = self.device.size_bytes.filter(|device| profile.abs_diff(*device) > profile / 10)?;
        Some(format!(
            "the device has {}, the drive of the profile {}",
            Bytes(device).rounded(),
            Bytes(profile).rounded()
        ))
    }

    fn report(
        &self,
        action: Action,
        found_kb: u64,
        proposed: Option<Depth>,
        old_kb: Option<u64>,
        notes: Vec<String>,
    ) -> Result<Report, Error> {
        Ok(Report {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            action,
            device: self.device.clone(),
            found_kb,
            now_kb: self.device.read_ahead_kb()?,
            proposed,
            old_kb,
            watcher: None,
            state: self.settings.state.clone(),
            notes,
        })
    }
}

/// Whether the backing device of an entry has not gone, as far as is known.
fn is_there(roots: &Roots, entry: &Entry) -> bool {
    roots.sys.join("class/bdi").join(&entry.backing).try_exists().unwrap_or(true)
}

/// Forgets what was found on a device that is not there any more, by its path then or the name in that: with the device its
/// number has gone.
///
/// # Errors
/// It was forgotten, which the error says; or the state file cannot be written, or is damaged.
pub fn forget_gone(settings: &Settings) -> Result<(), Error> {
    let Settings { roots, device, state, .. } = settings;
    let name = device.file_name().unwrap_or_default().to_string_lossy();
    let path = device.to_string_lossy();
    let gone = |entry: &Entry| (entry.path == path || entry.name == name) && !is_there(roots, entry);
    if device.exists() || !state::read(state)?.iter().any(gone) {
        return Ok(());
    }
    State::open(roots, state)?.retain(|entry| !gone(entry))?;
    Err(Error::path(
        device,
        "has gone, and its read-ahead with it: what was found is forgotten",
        "a device that is there",
    ))
}
