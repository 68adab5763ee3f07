//! Simulated drives, measured like real ones: the findings match their parameters. Also devices that cannot be
//! measured.

use std::fs::File;
use std::path::{Path, PathBuf};

use headstart_device::{build_device, build_scheduler, Device, Drive, Mechanical, MODELS};
use headstart_profile::{
    facts, measure, profile, DirectProbe, Error, NoArm, Probe, Profile, Read, Settings, SimulatedProbe, Span,
};
use headstart_types::{DriveFacts, Nanos};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use toml::Table;

fn probe_of(device: Box<dyn Device>) -> SimulatedProbe {
    SimulatedProbe::new(Drive::new(device, build_scheduler("fcfs", Table::new()).expect("it is there")))
}

fn device(name: &str, keys: &str) -> Box<dyn Device> {
    build_device(name, keys.parse().expect("TOML")).expect("shipped")
}

fn seconds(seconds: u64) -> Settings {
    Settings { time: Nanos(seconds * 1_000_000_000), ..Settings::default() }
}

fn measured(device: Box<dyn Device>, settings: &Settings) -> Profile {
    measure(&mut probe_of(device), "a drive", settings, &mut |_| true).expect("it can be measured")
}

fn off(found: f64, truth: f64) -> f64 {
    found / truth - 1.0
}

fn depth_bytes(facts: &DriveFacts) -> f64 {
    (facts.mean_seek + facts.half_turn).0 as f64 * facts.mean_rate() / 1e9
}

/// Mean seek, rate and competitive depth within `share` of the truth.
fn assert_like(name: &str, found: &DriveFacts, truth: &DriveFacts, share: f64) {
    let compared = [
        ("mean seek", off(found.mean_seek.0 as f64, truth.mean_seek.0 as f64)),
        ("half a turn", off(found.half_turn.0 as f64, truth.half_turn.0 as f64)),
        ("mean rate", off(found.mean_rate(), truth.mean_rate())),
        ("competitive depth", off(depth_bytes(found), depth_bytes(truth))),
    ];
    println!("{name}: {compared:.4?}");
    assert!(compared.iter().all(|(_, off)| off.abs() < share), "{name}: {compared:.4?}");
}

#[test]
fn every_shipped_drive_is_recovered() {
    let mut drives = 0;
    for model in MODELS {
        let Ok(device) = model.build(Table::new()) else { continue };
        let Some(truth) = device.drive_facts() else { continue };
        let found = measured(device, &Settings::default());
        let facts = found.facts.expect("it has an arm");
        assert_like(model.name, &facts, &truth, 0.05);
        // The curve, by the share of the cylinders, within an eighth of a turn; shorter distances are few, and a part of a
        // cylinder counts there.
        for part in 2..=19 {
            let at = |facts: &DriveFacts| facts.seek[facts.seek.len() * part / 20].0 as f64;
            let error = (at(&facts) - at(&truth)).abs() / (2.0 * truth.half_turn.0 as f64);
            assert!(error < 0.125, "{}, {part}/20: {} of {}", model.name, at(&facts), at(&truth));
        }
        assert!(found.findings.elapsed_ns < 70_000_000_000, "{}: {}", model.name, found.findings.elapsed_ns);
        drives += 1;
    }
    assert!(drives >= 9, "{drives}");
}

#[test]
fn a_disk_of_ten_thousand_turns_is_recovered_in_a_third_of_the_time() {
    let truth = device("ibm-36gb-10k", "").drive_facts().expect("an arm");
    let found = measured(device("ibm-36gb-10k", ""), &seconds(20));
    let facts = found.facts.expect("an arm");
    assert_like("20 s", &facts, &truth, 0.05);
    let arm = found.findings.arm.expect("an arm");
    assert_eq!((arm.rpm, arm.segments), (10_000, 16));
    // As `headstart tune` and `headstart model competitive` compute it from the profile.
    assert_eq!(arm.mean_bytes_per_s, facts.mean_rate_of_places(None).round() as u64);
    assert!(off(arm.bus_bytes_per_s.expect("a buffer") as f64, 37_500_000.0).abs() < 0.01);
    // By hand: 7.529 ms and 3 ms at 37.3 MB/s are 392.8 kB. Most zones are faster than the bus.
    assert!(off(arm.competitive_depth_bytes as f64, 392_800.0).abs() < 0.05, "{arm:?}");
    let [note] = &found.findings.notes[..] else { panic!("{:?}", found.findings.notes) };
    assert!(note.ends_with("zones the bus hides the media: the rate is the bus's"), "{note}");
    assert!(found.findings.elapsed_ns < 23_000_000_000, "{}", found.findings.elapsed_ns);
}

#[test]
fn what_was_measured_is_measured_again() {
    for name in ["ibm-36gb-10k", "hp97560", "ibm-0661", "seagate-cheetah-4lp", "seagate-exos-x20"] {
        let first = measured(device(name, ""), &Settings::default());
        let table: Table = first.toml.parse().expect("TOML");
        let drive = Mechanical::from_table(table).expect("a profile");
        assert_eq!(drive.capacity_sectors(), device(name, "").capacity_sectors(), "{name}");
        let facts = first.facts.expect("an arm");
        assert_eq!(drive.drive_facts().as_ref(), Some(&facts), "{name}: the file holds what was said of it");
        let second = measured(Box::new(drive), &Settings { seed: 2, ..Settings::default() });
        assert_like(name, &second.facts.expect("an arm"), &facts, 0.05);
    }
}

/// Mean time of reads of every `step`th 8 KiB block in order, 20 us after one another, in ms.
fn mean_ms_in_order(device: &mut dyn Device, step: u64) -> f64 {
    let mut now = Nanos::ZERO;
    for index in 0..1_000 {
        let read = headstart_device::Request::read(1_000_000 + index * step * 16, 16, index);
        now = device.serve(now + Nanos(20_000), &read).end;
    }
    now.0 as f64 / 1e9
}

#[test]
fn a_profiled_drive_of_today_loses_no_turns() {
    let toml = |name| measured(device(name, ""), &seconds(20)).toml;
    let exos = toml("seagate-exos-x20");
    for step in [1, 2, 4] {
        let mut drive = Mechanical::from_table(exos.parse().expect("TOML")).expect("a profile");
        let mean = mean_ms_in_order(&mut drive, step);
        // A turn takes 8.3 ms.
        assert!(mean < 1.0, "every {step}: {mean} ms");
    }
    // The profile of an old drive does not claim that.
    let old = toml("seagate-cheetah-4lp");
    assert!(!old.contains("hit_ahead") && !old.contains("hit_under_way"), "{old}");
}

/// A device that is late by up to 150 us, mostly by less, as a busy machine is.
struct Late(SimulatedProbe, ChaCha8Rng);

impl Probe for Late {
    fn sectors(&self) -> u64 {
        self.0.sectors()
    }

    fn now(&self) -> Nanos {
        self.0.now()
    }

    fn pause(&mut self, time: Nanos) {
        self.0.pause(time);
    }

    fn read(&mut self, read: Read) -> Result<Span, Error> {
        let Span { from, .. } = self.0.read(read)?;
        let late = self.1.random_range(0.0..1.0_f64).powi(3) * 150_000.0;
        self.0.pause(Nanos(10_000 + late as u64));
        Ok(Span { from, to: self.0.now() })
    }

    fn read_together(&mut self, reads: &[Read], depth: usize) -> Result<Nanos, Error> {
        self.0.read_together(reads, depth)
    }
}

#[test]
fn lateness_is_told_from_the_disk() {
    for name in ["ibm-36gb-10k", "seagate-146gb-10k"] {
        let mut probe = Late(probe_of(device(name, "")), ChaCha8Rng::seed_from_u64(5));
        let found = measure(&mut probe, "late", &Settings::default(), &mut |_| true).expect("it can be measured");
        assert_like(name, &found.facts.expect("an arm"), &device(name, "").drive_facts().expect("an arm"), 0.05);
    }
}

#[test]
fn the_same_seed_finds_the_same() {
    let found = |seed| measured(device("ibm-36gb-10k", ""), &Settings { seed, ..seconds(5) });
    assert_eq!(found(7), found(7));
    assert_ne!(found(7).toml, found(8).toml);
}

#[test]
fn devices_without_an_arm_have_no_seeks_and_are_saturated() {
    // A read of sata-ssd takes 76.9 us alone and 10.2 us of the link: from 8 on the link sets the pace, nearly.
    let sata = measured(device("sata-ssd", ""), &seconds(5)).findings;
    assert!(sata.arm.is_none() && (8..=32).contains(&sata.saturating_depth), "{}", sata.saturating_depth);
    // One of 4 MiB takes 66.7 us before and 7.6 ms on the link; one of 1 MiB 3 % more than its share of that.
    let bytes = sata.saturating_bytes.expect("by size");
    assert!((512 << 10..=4 << 20).contains(&bytes), "{bytes}");
    // 64 dies of nvme bring 1.4 million reads a second, which takes 64 reads on 64 different ones.
    let nvme = measured(device("nvme", ""), &seconds(5)).findings;
    assert!(nvme.arm.is_none() && nvme.saturating_depth > 64, "{}", nvme.saturating_depth);
    // 2 ms for every read: the largest read is the best, and one at a time suffices.
    let uniform = measured(device("uniform", "fetch_time = \"2ms\""), &seconds(5));
    assert_eq!((uniform.findings.saturating_bytes, uniform.findings.saturating_depth), (Some(16 << 20), 1));
    // For tune.
    let toml = uniform.toml;
    assert!(toml.contains("\nform = \"no-arm\"\n") && uniform.facts.is_none(), "{toml}");
    let folder = std::env::temp_dir().join(format!("headstart-no-arm-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("there is room");
    let path = folder.join("uniform.toml");
    std::fs::write(&path, &toml).expect("there is room");
    let read = NoArm::read(&path).expect("ours").expect("of this form");
    assert_eq!(Some(read.saturating_size.0), uniform.findings.saturating_bytes);
    assert_eq!(read.saturating_depth, uniform.findings.saturating_depth);
    // And for all that simulates: its model takes as long.
    let mut loaded = build_device(&path.to_string_lossy(), Table::new()).expect("a model");
    let service = loaded.serve(Nanos::ZERO, &headstart_device::Request::read(1_000, 8, 0));
    assert!(service.end.0.abs_diff(2_000_000) < 2_000 && loaded.drive_facts().is_none(), "{service:?}");
    std::fs::write(&path, toml.replace("saturating_size", "size")).expect("there is room");
    assert!(NoArm::read(&path).expect_err("a key is missing").to_string().contains("size"));
    std::fs::remove_dir_all(&folder).expect("ours");
    assert_eq!(uniform.findings.latency.far_ns, 2_000_000);
}

#[test]
fn facts_of_a_profile_are_the_drives() {
    let found = facts("ibm-36gb-10k", Table::new()).expect("shipped");
    assert_eq!(found, device("ibm-36gb-10k", "").drive_facts());
    assert_eq!(facts("nvme", Table::new()).expect("shipped"), None);
    let error = facts("ibm-36gb-10", Table::new()).expect_err("unknown").to_string();
    assert!(error.starts_with("model: unknown model \"ibm-36gb-10\" (did you mean"), "{error}");
}

/// Reads take longer the farther away they are, and by chance: nothing turns. Or it is gone after some reads.
struct Odd {
    now: Nanos,
    at: u64,
    chance: ChaCha8Rng,
    sectors: u64,
    gone_after: u64,
}

impl Odd {
    fn new(sectors: u64, gone_after: u64) -> Self {
        Self { now: Nanos::ZERO, at: 0, chance: ChaCha8Rng::seed_from_u64(1), sectors, gone_after }
    }
}

impl Probe for Odd {
    fn sectors(&self) -> u64 {
        self.sectors
    }

    fn now(&self) -> Nanos {
        self.now
    }

    fn pause(&mut self, time: Nanos) {
        self.now += time;
    }

    fn read(&mut self, read: Read) -> Result<Span, Error> {
        if self.gone_after == 0 {
            return Err(Error::Unclear { problem: "gone".to_owned(), allowed: "one that stays".to_owned() });
        }
        self.gone_after -= 1;
        assert!(read.sector.is_multiple_of(8) && read.sectors.is_multiple_of(8) && read.sectors > 0, "{read:?}");
        assert!(read.sector + u64::from(read.sectors) <= self.sectors, "{read:?}");
        let from = self.now;
        let share = self.at.abs_diff(read.sector) as f64 / self.sectors as f64;
        self.now += Nanos(1_000_000 + (share * 1e7) as u64 + self.chance.random_range(0..4_000_000));
        self.at = read.sector;
        Ok(Span { from, to: self.now })
    }

    fn read_together(&mut self, reads: &[Read], _depth: usize) -> Result<Nanos, Error> {
        let from = self.now;
        reads.iter().try_for_each(|read| self.read(*read).map(|_| ()))?;
        Ok(self.now - from)
    }
}

#[test]
fn what_says_nothing_is_refused() {
    let refused = |probe: &mut Odd| measure(probe, "odd", &seconds(5), &mut |_| true).expect_err("refused").to_string();
    let error = refused(&mut Odd::new(1 << 22, u64::MAX));
    assert!(error.starts_with("reads take longer the farther away they are, but nothing turns: "), "{error}");
    assert_eq!(refused(&mut Odd::new(1 << 22, 100)), "gone; allowed: one that stays");
    assert_eq!(
        refused(&mut Odd::new(131_071, u64::MAX)),
        "67108352B is too small to tell anything; allowed: a device of 64MiB at least"
    );
}

#[test]
fn it_stops_when_it_is_told_to() {
    let mut told = 0;
    let mut probe = probe_of(device("ibm-36gb-10k", ""));
    let stopped = measure(&mut probe, "stopped", &Settings::default(), &mut |progress| {
        assert!((0.0..=1.0).contains(&progress.share));
        told += 1;
        told < 100
    });
    assert!(matches!(stopped, Err(Error::Stopped)) && told == 100, "{told}");
}

/// A folder of a test's own, which goes when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("headstart-profiled-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("there is room");
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn only_what_can_be_read_directly_is_opened() {
    let folder = Folder::new("open");
    let refused = |path: &Path| DirectProbe::open(path).err().expect("refused").to_string();
    let allowed = "allowed: a block device, or a regular file, that can be read directly";
    let missing = folder.0.join("missing");
    assert_eq!(refused(&missing), format!("{}: No such file or directory; {allowed}", missing.display()));
    for path in [folder.0.as_path(), Path::new("/dev/null")] {
        assert_eq!(refused(path), format!("{}: is neither; {allowed}", path.display()));
    }
    let holes = folder.0.join("holes");
    File::create(&holes).and_then(|file| file.set_len(1 << 30)).expect("a file may have holes");
    let error = refused(&holes);
    // Or, where a file system has no direct reads, that.
    assert!(error.contains("has holes, which no device reads") || error.contains("O_DIRECT"), "{error}");
    let error = profile(&missing, "missing", &seconds(0), |_| true).expect_err("no time").to_string();
    assert_eq!(error, "time: 0s is outside; allowed: from 1 s to 110 s");
}
