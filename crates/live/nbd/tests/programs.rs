//! Both sides against other programs, if installed: nbdinfo and nbdcopy of libnbd, qemu-img, qemu-nbd, nbdkit.

mod common;

use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::{Child, Command as Program, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use common::{all_flags, export, serve_tcp, serve_unix, Fault};
use headstart_nbd::client::{Client, ConnectOptions};
use headstart_nbd::{Address, Flags, Uri};

const SIZE: usize = 8 << 20;

fn pattern() -> Vec<u8> {
    (0..SIZE).map(|index| if index >> 16 & 3 == 1 { 0 } else { (index % 251) as u8 }).collect()
}

/// Runs a program to its end; prints a message and returns `None` if it is not installed.
fn run(program: &str, arguments: &[&str]) -> Option<String> {
    match Program::new(program).args(arguments).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("SKIPPED: {program} is not installed");
            None
        }
        output => {
            let output = output.unwrap();
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{program} {arguments:?}: {errors}");
            Some(String::from_utf8(output.stdout).unwrap())
        }
    }
}

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("headstart-nbd-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn libnbd_sees_what_is_offered() {
    let memory = Arc::new(Mutex::new(pattern()));
    let uri = serve_tcp(export("a", SIZE as u64, all_flags()), memory, Fault::None).to_string();
    let Some(text) = run("nbdinfo", &["--json", &uri]) else { return };
    for part in [
        "\"structured\": true",
        "\"export-name\": \"a\"",
        "\"description\": \"the export a\"",
        "\"export-size\": 8388608",
        "\"base:allocation\"",
        "\"can_cache\": true",
        "\"can_df\": true",
        "\"can_fast_zero\": true",
        "\"can_flush\": true",
        "\"can_fua\": true",
        "\"can_multi_conn\": true",
        "\"can_trim\": true",
        "\"can_zero\": true",
        "\"is_read_only\": false",
        "\"block_size_preferred\": 4096",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let map = run("nbdinfo", &["--map", "--totals", &uri]).unwrap();
    assert!(map.contains("hole"), "{map}");
    run("nbdinfo", &["--list", &uri]).unwrap();
}

#[test]
fn nbdcopy_and_qemu_img_copy_every_byte() {
    let folder = Folder::new("copies");
    let (there, back) = (folder.path("there"), folder.path("back"));
    std::fs::write(&there, pattern()).unwrap();
    let memory = Arc::new(Mutex::new(vec![0xee; SIZE]));
    let socket = folder.0.join("socket");
    let uri = serve_unix(&socket, export("a", SIZE as u64, all_flags()), Arc::clone(&memory)).to_string();
    if run("nbdcopy", &["--connections=4", "--requests=64", "--flush", &there, &uri]).is_some() {
        assert!(*memory.lock().unwrap() == pattern());
        run("nbdcopy", &["--connections=4", "--requests=64", &uri, &back]).unwrap();
        assert!(std::fs::read(&back).unwrap() == pattern());
    }
    memory.lock().unwrap().fill(0xee);
    let converted = ["convert", "-n", "-f", "raw", "-O", "raw", "-W", "-m", "16"];
    if run("qemu-img", &[converted.as_slice(), &[&there, &uri]].concat()).is_some() {
        assert!(*memory.lock().unwrap() == pattern());
        run("qemu-img", &["compare", "-f", "raw", "-F", "raw", &there, &uri]).unwrap();
        run("qemu-img", &["convert", "-f", "raw", "-O", "raw", &uri, &back]).unwrap();
        assert!(std::fs::read(&back).unwrap() == pattern());
    }
}

/// Another program's server, killed at the end.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

fn client_of(program: &str, arguments: &[&str], socket: PathBuf, name: &str) -> Option<(Served, Client)> {
    let child = Program::new(program).args(arguments).stdout(Stdio::null()).spawn();
    let served = match child {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("SKIPPED: {program} is not installed");
            return None;
        }
        child => Served(child.unwrap()),
    };
    let uri = Uri { address: Address::Unix(socket), export: name.to_owned(), tls: None };
    let options = ConnectOptions { connection_count: 4, ..ConnectOptions::default() };
    #[expect(clippy::disallowed_methods, reason = "waits for a program to listen")]
    let begun = Instant::now();
    loop {
        match Client::connect(&uri, options) {
            Ok(client) => return Some((served, client)),
            Err(error) if begun.elapsed() > Duration::from_secs(60) => panic!("{program}: {error}"),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Writes, reads and zeroes, then compares with the server's file.
fn exercise(client: &Client, file: &str) {
    assert_eq!(client.export().size_bytes, SIZE as u64);
    let content = pattern();
    for (index, piece) in content.chunks(1 << 20).enumerate() {
        client.write_at((index << 20) as u64, piece, index % 2 == 0).unwrap();
    }
    client.flush().unwrap();
    assert!(std::fs::read(file).unwrap() == content);
    let mut buffer = Vec::new();
    for (index, piece) in content.chunks(1 << 20).enumerate() {
        buffer = client.read_at((index << 20) as u64, 1 << 20, buffer).unwrap();
        assert!(buffer == piece);
    }
    if client.export().allocation.is_some() {
        let told: u64 =
            client.block_status(0, SIZE as u32).unwrap().iter().map(|extent| u64::from(extent.length)).sum();
        assert!(told > 0 && told <= SIZE as u64);
    }
    assert!(client.read_at(SIZE as u64, 512, Vec::new()).is_err());
    assert!(!client.is_lost());
}

#[test]
fn our_client_of_qemu_nbd() {
    let folder = Folder::new("qemu");
    let (file, socket) = (folder.path("image"), folder.path("socket"));
    std::fs::write(&file, vec![0; SIZE]).unwrap();
    let arguments = ["--format=raw", "--shared=8", "--persistent", "--export-name=x", "--socket", &socket, &file];
    let Some((_served, client)) = client_of("qemu-nbd", &arguments, socket.clone().into(), "x") else { return };
    assert!(client.export().structured && client.export().flags.contains(Flags::FLUSH));
    exercise(&client, &file);
}

#[test]
fn our_client_of_nbdkit() {
    let folder = Folder::new("nbdkit");
    let (file, socket) = (folder.path("image"), folder.path("socket"));
    std::fs::write(&file, vec![0; SIZE]).unwrap();
    let arguments = ["--foreground", "--unix", &socket, "file", &file];
    let Some((_served, client)) = client_of("nbdkit", &arguments, socket.clone().into(), "") else { return };
    assert_eq!(client.connection_count(), 4);
    exercise(&client, &file);
}
