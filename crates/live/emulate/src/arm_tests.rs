//! The arm with a stepped clock, calculated by hand, exact to the nanosecond.

use std::sync::{Arc, Mutex};

use headstart_device::{build_device, build_scheduler, Drive};
use headstart_types::Nanos;

use super::arm::{Answer, Arm};
use super::image::Image;
use super::{About, Spread, Statistics};
use headstart_host::{Clock, SteppedClock};

const MS: fn(u64) -> Nanos = Nanos::from_millis;

/// An answer: number of the read, time, and data; `None` if it failed.
type Told = (u32, Nanos, Option<Vec<u8>>);

struct RecordingAnswer {
    read: u32,
    clock: Arc<SteppedClock>,
    told: Arc<Mutex<Vec<Told>>>,
}

impl RecordingAnswer {
    fn hear(self, what: Option<Vec<u8>>) {
        self.told.lock().expect("no panic").push((self.read, self.clock.now(), what));
    }
}

impl Answer for RecordingAnswer {
    fn data(self, data: &[u8]) {
        self.hear(Some(data.to_vec()));
    }

    fn failed(self) {
        self.hear(None);
    }
}

/// The content of the tests' image: each byte is its offset modulo 251.
fn bytes(from: usize, to: usize) -> Option<Vec<u8>> {
    Some((from..to).map(|at| (at % 251) as u8).collect())
}

/// An image of 10,000 bytes whose last `missing` bytes were truncated after opening.
fn image(name: &str, missing: u64) -> Image {
    let path = std::env::temp_dir().join(format!("headstart-arm-{name}-{}", std::process::id()));
    std::fs::write(&path, bytes(0, 10_000).expect("some")).expect("there is room");
    let image = Image::open(&path).expect("it is there");
    let file = std::fs::OpenOptions::new().write(true).open(&path).expect("it is there");
    file.set_len(10_000 - missing).expect("it is ours");
    std::fs::remove_file(&path).expect("it is ours");
    image
}

/// Runs reads (time, offset, bytes) on a drive that takes 2 ms for each, first come first served. The arm is closed at
/// `close` ms, and one more read arrives then.
fn run(image: Image, reads: &[(Nanos, u64, u32)], close: u64) -> (Vec<Told>, Statistics) {
    let device = build_device("uniform", "fetch_time = \"2ms\"".parse().expect("TOML")).expect("it is there");
    let scheduler = build_scheduler("fcfs", toml::Table::new()).expect("it is there");
    let names = ["uniform", "fcfs", "image"].map(str::to_owned);
    let [profile, scheduler_name, path] = names;
    let about =
        About { profile, scheduler: scheduler_name, image: path, image_bytes: image.bytes, capacity_bytes: None };
    let clock = Arc::new(SteppedClock::new(2));
    let arm = Arm::new(clock.clone(), image, Drive::new(device, scheduler), about);
    let told = Arc::new(Mutex::new(Vec::new()));
    let recording = |read| RecordingAnswer { read, clock: clock.clone(), told: told.clone() };
    let statistics = std::thread::scope(|scope| {
        scope.spawn(|| arm.run(false));
        clock.enter(1);
        for (read, (at, offset, bytes)) in (0..).zip(reads) {
            if *at > clock.now() {
                clock.park(1, Some(*at));
            }
            arm.submit(*offset, *bytes, None, recording(read));
        }
        clock.park(1, Some(MS(close)));
        let statistics = arm.statistics(None);
        arm.close();
        arm.submit(0, 1, None, recording(u32::MAX));
        clock.leave(1);
        statistics
    });
    let told = std::mem::take(&mut *told.lock().expect("no panic"));
    (told, statistics)
}

#[test]
fn each_read_is_answered_when_the_drive_is_done_with_it() {
    // 2 ms each. 0 at 1 ms: until 3. 1 at 2: until 5. 2 at 2: until 7. 3 at 9: until 11, cut at the end of the image. 4
    // lies beyond the end: immediately, without the drive.
    let reads = [(MS(1), 0, 512), (MS(2), 512, 700), (MS(2), 4096, 1), (MS(9), 9_990, 4096), (MS(9), 10_000, 1)];
    let (told, statistics) = run(image("each", 0), &reads, 20);
    let expected = [
        (0, MS(3), bytes(0, 512)),
        (1, MS(5), bytes(512, 1212)),
        (2, MS(7), bytes(4096, 4097)),
        (4, MS(9), Some(Vec::new())),
        (3, MS(11), bytes(9_990, 10_000)),
        (u32::MAX, MS(20), None),
    ];
    assert_eq!(told, expected);
    assert_eq!((statistics.requests, statistics.device_requests, statistics.outstanding), (4, 4, 0));
    assert_eq!((statistics.bytes, statistics.sequential, statistics.queue_depth_max), (512 + 700 + 1 + 10, 1, 3));
    assert_eq!((statistics.elapsed_ns, statistics.busy_ns, statistics.service_ns), (20_000_000, 8_000_000, 8_000_000));
    assert_eq!((statistics.utilization, statistics.sequential_share), (0.4, 0.25));
    // 1 waits from 2 to 3, 2 from 2 to 5.
    assert_eq!((statistics.queue_ns, statistics.response_ns), (4_000_000, 12_000_000));
    assert_eq!((statistics.failed, statistics.lateness_ns), (0, Spread { count: 4, ..Spread::default() }));
}

#[test]
fn what_has_not_been_answered_fails_at_the_end() {
    let (told, statistics) = run(image("end", 0), &[(MS(1), 0, 512), (MS(1), 512, 512)], 4);
    assert_eq!(told, [(0, MS(3), bytes(0, 512)), (1, MS(4), None), (u32::MAX, MS(4), None)]);
    assert_eq!((statistics.requests, statistics.outstanding), (1, 1));
}

#[test]
fn an_image_that_has_become_shorter_is_an_error_when_the_drive_is_done() {
    let (told, statistics) = run(image("shorter", 1_000), &[(MS(1), 8_900, 200), (MS(1), 8_900, 100)], 9);
    assert_eq!(told, [(0, MS(3), None), (1, MS(5), bytes(8_900, 9_000)), (u32::MAX, MS(9), None)]);
    assert_eq!((statistics.requests, statistics.failed), (2, 1));
}
