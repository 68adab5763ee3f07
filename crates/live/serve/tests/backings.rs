//! The conformance suite on each kind of backing, except objects, which `object.rs` tests with a server.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{mpsc, Arc};

use headstart_serve::backing::{conformance, named, open, Backing};
use headstart_serve::{run, Settings};

/// A multiple of neither pages nor sectors.
const SIZE: usize = (1 << 20) + 5_003;

/// A folder that is removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("headstart-backings-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("there is room");
        Self(path)
    }

    fn file(&self, bytes: &[u8]) -> String {
        let path = self.0.join("image");
        std::fs::write(&path, bytes).expect("there is room");
        path.to_str().expect("it is text").to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Content with a hole.
fn content() -> Vec<u8> {
    let hole = 200_000..600_000;
    (0..SIZE).map(|at| if hole.contains(&at) { 0 } else { (at / 3 % 251) as u8 }).collect()
}

fn opened(name: &str, writable: bool, direct: bool) -> Arc<dyn Backing> {
    let settings = Settings { writable, direct, ..Settings::default() };
    Arc::from(open(name, &settings).unwrap_or_else(|error| panic!("{error}")))
}

/// A new form of a name needs a test here, or beside the objects.
#[test]
fn each_kind_is_tested() {
    let forms: Vec<&str> = named().map(|(form, _)| form).collect();
    let here = ["a file", "a block device", "mem:SIZE", "emulate:PROFILE[,SCHEDULER]:IMAGE"];
    let servers = ["nbd://HOST[:PORT]/EXPORT", "nbd+unix:///EXPORT?socket=PATH"];
    let objects = ["https://HOST[:PORT]/PATH", "s3://BUCKET/KEY", "gs://BUCKET/KEY", "az://CONTAINER/KEY"];
    assert_eq!(forms, [&here[..], &servers, &objects].concat());
}

#[test]
fn memory() {
    conformance::backing(&opened("mem:3000000B", true, false), &vec![0; 3_000_000], true);
}

#[test]
fn a_file_read_only_and_written() {
    let folder = Folder::new("file");
    let name = folder.file(&content());
    conformance::backing(&opened(&name, false, false), &content(), false);
    conformance::backing(&opened(&name, true, false), &content(), true);
}

#[test]
fn a_file_past_the_page_cache() {
    let folder = Folder::new("direct");
    let bytes = &content()[..1 << 20];
    let name = folder.file(bytes);
    match open(&name, &Settings { direct: true, ..Settings::default() }) {
        Ok(backing) => conformance::backing(&Arc::from(backing), bytes, false),
        Err(error) => eprintln!("SKIPPED: {error}"),
    }
}

#[test]
fn an_emulated_disk() {
    let folder = Folder::new("emulated");
    let bytes = &content()[..1 << 20];
    let backing = opened(&format!("emulate:sata-ssd:{}", folder.file(bytes)), false, false);
    conformance::backing(&backing, bytes, false);
}

/// Another server, whose cache is smaller than its export.
#[test]
fn a_server() {
    let folder = Folder::new("server");
    let socket = folder.0.join("socket");
    let settings = Settings {
        backing: Some(folder.file(&content())),
        socket: Some(socket.display().to_string()),
        cache: Some("128KiB".to_owned()),
        readahead: Some("linux".to_owned()),
        writable: true,
        ..Settings::default()
    };
    let (over, (ready, is_ready)) = (AtomicBool::new(false), mpsc::channel());
    std::thread::scope(|scope| {
        let (settings, is_over) = (&settings, &over);
        let served = scope.spawn(move || {
            run(settings, &mut |_| {
                _ = ready.send(());
                !is_over.load(Ordering::Relaxed)
            })
        });
        is_ready.recv().expect("it begins");
        let name = format!("nbd+unix:///?socket={}", socket.display());
        let conforms = std::panic::catch_unwind(|| conformance::backing(&opened(&name, true, false), &content(), true));
        // The server must end in any case, since it is joined.
        over.store(true, Ordering::Relaxed);
        served.join().expect("it ends").expect("it ends in order");
        conforms.unwrap_or_else(|said| std::panic::resume_unwind(said));
    });
}
