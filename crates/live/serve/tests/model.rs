//! Sixteen connections read, write, zero, trim and flush at random, and every byte read is compared with a model of the
//! contents. Each connection owns every sixteenth slot of the export; slots have 3000 bytes, so that connections share
//! pages. `HEADSTART_SERVE_SECONDS=600` runs for ten minutes; `HEADSTART_RANDOM_SEED=N` starts at another seed.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use headstart_nbd::client::{Client, Completion, ConnectOptions};
use headstart_nbd::{Address, Command, Uri};
use headstart_serve::{run, Settings};
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

const CONNECTIONS: usize = 16;
const SLOT: usize = 3000;
const SLOTS: usize = 512;
/// Default number of rounds of each connection, each of up to eight concurrent requests.
const ROUNDS: u64 = 60;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}: {text} is not a whole number")))
}

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A byte that is undefined since a trim.
const UNKNOWN: u16 = 256;

struct Owner {
    client: Client,
    rng: ChaCha8Rng,
    index: usize,
    /// The content of slot `index + CONNECTIONS * n`.
    slots: Vec<Vec<u16>>,
}

/// What a request of a round must return.
enum Expected {
    Nothing,
    Content(usize, std::ops::Range<usize>),
}

impl Owner {
    fn offset(&self, slot: usize) -> usize {
        (self.index + CONNECTIONS * slot) * SLOT
    }

    /// Up to eight concurrent requests, each to a different slot.
    fn round(&mut self) {
        let mut chosen: Vec<usize> = (0..8).map(|_| self.rng.random_range(0..self.slots.len())).collect();
        chosen.sort_unstable();
        chosen.dedup();
        let (sender, receiver) = mpsc::channel();
        let mut expected = Vec::new();
        for slot in chosen {
            let start = self.rng.random_range(0..SLOT);
            let range = start..self.rng.random_range(start..SLOT) + 1;
            let length = range.len() as u32;
            let (fua, no_hole) = (self.rng.random_bool(0.1), self.rng.random());
            let mut payload = Vec::new();
            let mut expect = Expected::Nothing;
            let command = match self.rng.random_range(0..100) {
                0..45 => {
                    expect = Expected::Content(slot, range.clone());
                    Command::Read { single_chunk: self.rng.random() }
                }
                45..75 => {
                    payload.resize(range.len(), 0);
                    self.rng.fill_bytes(&mut payload);
                    for (known, byte) in self.slots[slot][range.clone()].iter_mut().zip(&payload) {
                        *known = (*byte).into();
                    }
                    Command::Write { fua }
                }
                75..83 => {
                    self.slots[slot][range.clone()].fill(0);
                    Command::WriteZeroes { fua, no_hole, fast: false }
                }
                83..91 => {
                    self.slots[slot][range.clone()].fill(UNKNOWN);
                    Command::Trim { fua }
                }
                91..95 => Command::Cache,
                _ => Command::Flush,
            };
            let (offset, length) = match command {
                Command::Flush => (0, 0),
                _ => ((self.offset(slot) + range.start) as u64, length),
            };
            let (number, sender) = (expected.len(), sender.clone());
            expected.push(expect);
            let done = move |result| _ = sender.send((number, result));
            self.client.submit(command, offset, length, &payload, Vec::new(), done);
        }
        for _ in 0..expected.len() {
            let (number, result) = receiver.recv().unwrap();
            let Completion { buffer, .. } = result.unwrap_or_else(|error| panic!("connection {}: {error}", self.index));
            if let Expected::Content(slot, range) = &expected[number] {
                self.compare(*slot, range.clone(), &buffer);
            }
        }
    }

    /// Compares read bytes with the model; undefined bytes become known.
    fn compare(&mut self, slot: usize, range: std::ops::Range<usize>, read: &[u8]) {
        let offset = self.offset(slot);
        for (at, byte) in range.zip(read) {
            let known = &mut self.slots[slot][at];
            let is = u16::from(*byte);
            assert!(*known == UNKNOWN || *known == is, "byte {}: {is}, not {known}", offset + at);
            *known = is;
        }
    }
}

fn exercise(backing: &str, file: Option<&PathBuf>, level: &str, seed: u64) {
    let folder = Folder(std::env::temp_dir().join(format!("headstart-model-{}-{seed}", std::process::id())));
    std::fs::create_dir_all(&folder.0).unwrap();
    let socket = folder.0.join("socket");
    let settings = Settings {
        backing: Some(backing.to_owned()),
        socket: Some(socket.display().to_string()),
        level: Some(toml::from_str(level).unwrap()),
        writable: true,
        ..Settings::default()
    };
    #[expect(clippy::disallowed_methods, reason = "runs for the seconds that are asked for")]
    let begun = Instant::now();
    let seconds = number("HEADSTART_SERVE_SECONDS").map(Duration::from_secs);
    let (ended, (ready, is_ready)) = (AtomicBool::new(false), mpsc::channel());
    std::thread::scope(|scope| {
        let (settings, over) = (&settings, &ended);
        // It owns the sender, so a server that fails to start is noticed at once.
        let served = scope.spawn(move || {
            run(settings, &mut |_| {
                _ = ready.send(());
                !over.load(Ordering::Relaxed)
            })
        });
        if is_ready.recv().is_err() {
            panic!("{:?}", served.join().unwrap().err());
        }
        let uri = Uri { address: Address::Unix(socket.clone()), export: String::new(), tls: None };
        let owners: Vec<_> = (0..CONNECTIONS)
            .map(|index| {
                let client = Client::connect(&uri, ConnectOptions::default()).unwrap();
                let rng = ChaCha8Rng::seed_from_u64(seed * CONNECTIONS as u64 + index as u64);
                let mut owner = Owner { client, rng, index, slots: vec![vec![0; SLOT]; SLOTS / CONNECTIONS] };
                scope.spawn(move || {
                    let mut rounds = 0;
                    while seconds.map_or(rounds < ROUNDS, |seconds| begun.elapsed() < seconds) {
                        owner.round();
                        rounds += 1;
                    }
                    owner.client.flush().unwrap();
                    owner
                })
            })
            .collect();
        let owners: Vec<_> = owners.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        // The server must end in any case, since it is joined.
        let whole = Client::connect(&uri, ConnectOptions::default())
            .and_then(|client| client.read_at(0, (SLOTS * SLOT) as u32, Vec::new()));
        ended.store(true, Ordering::Relaxed);
        let report = served.join().unwrap().unwrap();
        let mut stored = vec![whole.unwrap()];
        stored.extend(file.map(|file| std::fs::read(file).unwrap()));
        for owner in owners {
            let mut owner = owner.unwrap_or_else(|_| panic!("HEADSTART_RANDOM_SEED={seed} {backing} {level}"));
            for content in &stored {
                for slot in 0..owner.slots.len() {
                    let offset = owner.offset(slot);
                    owner.compare(slot, 0..SLOT, &content[offset..offset + SLOT]);
                }
            }
        }
        let report = serde_json::to_value(&report).unwrap();
        let counts = ["read_requests", "write_requests", "trim_requests", "flush_requests", "cache_requests"]
            .map(|name| format!("{name} {}", report["exports"][0][name]));
        eprintln!("{backing}: {}", counts.join(", "));
    });
}

#[test]
fn connections_against_a_model_of_the_contents() {
    let seed = number("HEADSTART_RANDOM_SEED").unwrap_or(1);
    let folder = Folder(std::env::temp_dir().join(format!("headstart-image-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).unwrap();
    let image = folder.0.join("image");
    std::fs::write(&image, vec![0; SLOTS * SLOT]).unwrap();
    // Small caches, so that pages are replaced all the time.
    let levels = [
        "size = \"128KiB\"\npolicy = \"linux\"\nreplacement = \"lru\"",
        "size = \"256KiB\"\npolicy = \"amp\"\nreplacement = \"arc\"\ncoordinator = \"pfc\"",
    ];
    exercise(image.to_str().unwrap(), Some(&image), levels[0], seed);
    exercise(&format!("mem:{}KiB", SLOTS * SLOT / 1024), None, levels[1], seed + 1);
}
