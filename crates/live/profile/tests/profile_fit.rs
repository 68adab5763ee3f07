//! The model fitted to a measurement: the parameters of known devices are recovered within the stated errors, the
//! profile is a device that behaves like the measured one, and if no model fits, it says so.

use std::path::PathBuf;

use headstart_device::{build_device, build_scheduler, Device, Drive, MODELS};
use headstart_profile::{
    measure, Error, HeldOut, ModelFound, Places, Probe, Profile, Read, Settings, SimulatedProbe, Span,
};
use headstart_types::Nanos;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use toml::{Table, Value};

fn device(name: &str, keys: &str) -> Box<dyn Device> {
    build_device(name, keys.parse().expect("TOML")).expect("it can be built")
}

fn probe_of(device: Box<dyn Device>) -> SimulatedProbe {
    SimulatedProbe::new(Drive::new(device, build_scheduler("fcfs", Table::new()).expect("it is there")))
}

fn measured(name: &str, keys: &str, seconds: u64, seed: u64) -> Profile {
    let mut device = device(name, keys);
    device.reseed(seed);
    let settings = Settings { time: Nanos(seconds * 1_000_000_000), seed };
    measure(&mut probe_of(device), "a device", &settings, &mut |_| true).expect("it can be measured")
}

/// A simulated device that says that it is a store.
struct Store(SimulatedProbe);

impl Probe for Store {
    fn is_object_store(&self) -> bool {
        true
    }

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
        self.0.read(read)
    }

    fn read_together(&mut self, reads: &[Read], depth: usize) -> Result<Nanos, Error> {
        self.0.read_together(reads, depth)
    }
}

fn measured_as_store(keys: &str, seconds: u64, seed: u64) -> Profile {
    let mut device = device("object-store", keys);
    device.reseed(seed);
    let settings = Settings { time: Nanos(seconds * 1_000_000_000), seed };
    measure(&mut Store(probe_of(device)), "a store", &settings, &mut |_| true).expect("it can be measured")
}

fn model(profile: &Profile) -> &ModelFound {
    profile.findings.model.as_ref().expect("every device has a model")
}

/// The number of a model's key: nanoseconds, bytes or a count.
fn number(table: &Table, key: &str) -> f64 {
    match &table[key] {
        Value::Integer(number) => *number as f64,
        Value::String(text) => match text.parse::<Nanos>() {
            Ok(time) => time.0 as f64,
            Err(_) => text.parse::<headstart_types::Bytes>().expect("a time or a size").0 as f64,
        },
        other => panic!("{key} = {other}"),
    }
}

/// The keys that a device was made of.
fn truth(name: &str, keys: &str) -> Table {
    let row = MODELS.iter().find(|row| row.name == name).expect("a row of the registry");
    let mut table = row.keys.defaults();
    table.extend(keys.parse::<Table>().expect("TOML"));
    table
}

/// How often the truth is within the error that was stated, over several devices and seeds.
#[derive(Default)]
struct Within {
    all: u32,
    within: u32,
}

impl Within {
    fn count(&mut self, what: &str, found: f64, error: f64, truth: f64) {
        let off = (found - truth).abs();
        self.all += 1;
        self.within += u32::from(off <= error);
        println!("{what}: {found:.1} +- {error:.1}, truth {truth:.1}{}", if off > error { " BEYOND" } else { "" });
        // Values outside the error are not far outside.
        assert!(off <= 3.0 * error, "{what}: {found} +- {error}, truth {truth}");
    }

    fn assert(&self) {
        // 2 standard errors would be 19 of 20.
        assert!(self.within * 100 >= self.all * 90, "{} of {}", self.within, self.all);
    }
}

/// Networks: the key table of each, over that of `object-store`. Admission is not measured.
const NETWORKS: [&str; 5] = [
    "reads_per_second = 0",
    "reads_per_second = 0\nlatency = \"30ms\"\nlatency_p99 = \"200ms\"\nconnections = 24",
    "reads_per_second = 0\nlatency = \"2ms\"\nlatency_p99 = \"3ms\"\nconnections = 8\nconnection_bytes_per_second = 400_000_000",
    "reads_per_second = 0\nlatency = \"500us\"\nlatency_p99 = \"500us\"\nconnections = 4\nconnection_bytes_per_second = 110_000_000",
    "reads_per_second = 0\nlatency = \"8ms\"\nlatency_p99 = \"40ms\"\nconnections = 100\nconnection_bytes_per_second = 50_000_000",
];

#[test]
fn networks_are_recovered_within_the_stated_error() {
    let (mut counts, mut connection_errors) = (Within::default(), Vec::new());
    for keys in NETWORKS {
        let truth = truth("object-store", keys);
        for (seconds, seed, store) in [(60, 1, false), (60, 2, false), (30, 3, false), (60, 4, true)] {
            let found = match store {
                true => measured_as_store(keys, seconds, seed),
                false => measured("object-store", keys, seconds, seed),
            };
            let model = model(&found);
            assert_eq!(model.name, "object-store", "{keys}");
            for parameter in &model.parameters {
                if let Some(error) = parameter.error {
                    let what = format!("{} {seconds} s, seed {seed}", parameter.name);
                    counts.count(&what, parameter.value, error, number(&truth, parameter.name));
                }
            }
            // An error that is always large says nothing.
            let [latency, _, rate, connections, ..] = &model.parameters[..] else { panic!("{:?}", model.parameters) };
            let share = |parameter: &headstart_profile::Parameter| parameter.error.map(|error| error / parameter.value);
            assert!(share(latency).is_some_and(|share| share < 0.25), "{latency:?}");
            assert!(share(rate).is_some_and(|share| share < 0.25), "{rate:?}");
            connection_errors.push(share(connections).expect("it has an error"));
            println!("{:?}", (model.check.mean_error, model.check.largest_error, model.check.demerit));
            // Where latency is by chance, few reads held out are too: a long tail moves them far.
            let constant = truth["latency"] == truth["latency_p99"];
            let (most, demerit) = if constant { (0.01, 0.01) } else { (0.35, 1.0) };
            assert!(model.check.mean_error < most && model.check.demerit < demerit, "{:#?}", model.check);
        }
    }
    // Few connections with a long tail of latencies are hard to distinguish; mostly the result is better.
    connection_errors.sort_by(f64::total_cmp);
    assert!(connection_errors[connection_errors.len() / 2] < 0.35, "{connection_errors:?}");
    assert!(counts.all >= 50, "{}", counts.all);
    counts.assert();
}

/// Drives of flash: the key table of each, over that of a row.
const FLASH: [(&str, &str); 3] = [
    ("nvme", ""),
    ("sata-ssd", ""),
    ("nvme", "channels = 16\nread_time = \"80us\"\nread_overhead = \"10us\"\nlink_bytes_per_second = 3_000_000_000"),
];

/// The time of a drive for a single read of 4 KiB without the link, in nanoseconds; and the maximum number of such
/// reads in a second.
fn of_reads(of: impl Fn(&str) -> f64) -> (f64, f64) {
    let time = of("read_time") + of("read_overhead") + of("link_command");
    let on_link = of("link_command") + 4096e9 / of("link_bytes_per_second");
    (time, (1e9 * of("channels") / of("read_time")).min(1e9 / on_link))
}

#[test]
fn flash_is_recovered_within_the_stated_error() {
    let mut counts = Within::default();
    for (name, keys) in FLASH {
        let truth = truth(name, keys);
        for (seconds, seed) in [(20, 1), (10, 2)] {
            let found = measured(name, keys, seconds, seed);
            let model = model(&found);
            println!("{name} {keys}: {:?}", (model.check.mean_error, model.check.largest_error, model.check.demerit));
            assert_eq!(model.name, "flash", "{name}, {keys}");
            for parameter in &model.parameters {
                if let Some(error) = parameter.error {
                    let what = format!("{name} {} seed {seed}", parameter.name);
                    counts.count(&what, parameter.value, error, number(&truth, parameter.name));
                }
            }
            // The division of a read is hardly visible in reads; its time and the number of reads are.
            let value =
                |key: &str| model.parameters.iter().find(|each| each.name == key).map_or(0.0, |each| each.value);
            let (time, most) = of_reads(value);
            let (true_time, true_most) = of_reads(|key| number(&truth, key));
            assert!((time / true_time - 1.0).abs() < 0.02, "{name}, {keys}: {time} of {true_time}");
            assert!((most / true_most - 1.0).abs() < 0.15, "{name}, {keys}: {most} of {true_most}");
            assert!(model.check.mean_error < 0.05 && model.check.demerit < 0.05, "{:#?}", model.check);
        }
    }
    assert!(counts.all >= 30, "{}", counts.all);
    counts.assert();
}

#[test]
fn every_shipped_device_has_a_model_that_says_how_far_it_is_off() {
    for row in MODELS {
        let keys = if row.name == "uniform" { "fetch_time = \"2ms\"" } else { "" };
        let found = measured(row.name, keys, 60, 1);
        let model = model(&found);
        let check = &model.check;
        println!(
            "{}: {} {:.3} {:.3} {:.3}",
            row.name, model.name, check.mean_error, check.largest_error, check.demerit
        );
        for held in &check.held_out {
            println!("   {held:?}");
        }
        let of_arm = device(row.name, keys).drive_facts().is_some();
        assert_eq!(model.name == "mechanical", of_arm, "{}", row.name);
        // A drive's read-ahead and buffer are not fitted, which affects nearby and sequential reads.
        let anywhere: Vec<&HeldOut> = check.held_out.iter().filter(|held| held.places == Places::Anywhere).collect();
        for held in anywhere.iter().filter(|held| held.depth == 1) {
            let chance = 1.5 * held.chance_ns.unwrap_or_default() / held.measured_ns;
            assert!(held.off().abs() < chance.max(0.1), "{}: {held:?}", row.name);
        }
        let mean_error = anywhere.iter().map(|held| held.off().abs()).sum::<f64>() / anywhere.len() as f64;
        assert!(of_arm || mean_error < 0.15, "{}: {check:#?}", row.name);
        // The file is a device, with the reported model.
        let folder = Folder::new(row.name);
        let path = folder.0.join("found.toml");
        std::fs::write(&path, &found.toml).expect("there is room");
        let loaded = build_device(&path.to_string_lossy(), Table::new()).expect("it loads");
        assert_eq!(loaded.drive_facts().is_some(), of_arm, "{}", row.name);
        let percent = format!("off by {:.1} % on average", check.mean_error * 100.0);
        assert!(found.toml.contains(&percent), "{}", found.toml);
        assert!(found.toml.contains("+- "), "{}", found.toml);
    }
}

#[test]
fn what_was_fitted_is_fitted_again() {
    for (name, keys) in [("nvme", ""), ("object-store", NETWORKS[2])] {
        let first = measured(name, keys, 30, 1);
        let folder = Folder::new(&format!("again-{name}"));
        let path = folder.0.join("found.toml");
        std::fs::write(&path, &first.toml).expect("there is room");
        let path = path.to_string_lossy().into_owned();
        let second = measured(&path, "", 30, 2);
        assert_eq!(model(&first).name, model(&second).name);
        for (one, other) in model(&first).parameters.iter().zip(&model(&second).parameters) {
            let (Some(error), Some(second_error)) = (one.error, other.error) else { continue };
            let off = (one.value - other.value).abs();
            assert!(off <= 2.0 * (error + second_error), "{name}: {one:?} {other:?}");
        }
    }
}

/// A folder of a test's own, which goes when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("headstart-profile-fit-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("there is room");
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A device of the simulator of which every fifth read takes ten times as long: no model of the simulator's.
struct Stumbling(SimulatedProbe, ChaCha8Rng);

impl Probe for Stumbling {
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
        let Span { from, to } = self.0.read(read)?;
        if self.1.random_range(0..5) == 0 {
            self.0.pause(Nanos(9 * (to - from).0));
        }
        Ok(Span { from, to: self.0.now() })
    }

    fn read_together(&mut self, reads: &[Read], depth: usize) -> Result<Nanos, Error> {
        self.0.read_together(reads, depth)
    }
}

#[test]
fn a_device_that_no_model_fits_is_said_to_be_one() {
    let mut probe = Stumbling(probe_of(device("sata-ssd", "")), ChaCha8Rng::seed_from_u64(1));
    let settings = Settings { time: Nanos(10_000_000_000), seed: 1 };
    let found = measure(&mut probe, "stumbling", &settings, &mut |_| true).expect("it can be measured");
    let check = &model(&found).check;
    println!("{:?}", (check.mean_error, check.largest_error, check.demerit));
    assert!(check.demerit > 0.3 && check.largest_error > 0.3, "{check:#?}");
}

#[test]
fn mistakes_in_a_profile_are_named() {
    let profile = measured("sata-ssd", "", 5, 1).toml;
    let folder = Folder::new("mistakes");
    let path = folder.0.join("found.toml");
    let refused = |text: &str| {
        std::fs::write(&path, text).expect("there is room");
        let error = build_device(&path.to_string_lossy(), Table::new()).map(|_| ()).expect_err("refused").to_string();
        error.split_once("found.toml: ").expect("the file is named").1.to_owned()
    };
    let error = refused(&profile.replace("model = \"flash\"", "model = \"flsh\""));
    assert!(error.starts_with("service.model: unknown model \"flsh\" (did you mean \"flash\"?)"), "{error}");
    let error = refused(&profile.replace("read_overhead =", "overhead ="));
    assert!(error.starts_with("service.overhead: unknown key"), "{error}");
    let before = profile.split("[service]").next().expect("the first part");
    let error = refused(before);
    assert!(
        error.starts_with("form: \"no-arm\" is the profile of a device without an arm, but it has no table"),
        "{error}"
    );
}
