//! Impossible or endless profiles: refused in one line without waiting.

use std::path::{Path, PathBuf};
use std::process::Command;

use headstart_device::limits::PROFILE_BYTES_MAX;
use headstart_device::{build_device, Mechanical};
use toml::{Table, Value};

const PROFILE: &str = "rpm = 6000\nsurfaces = 1\nhead_switch = '0.1ms'\nnominal_service = '8ms'
    seek = {form = 'constant', time = '1ms'}\nbus = {sector_time = '0.02ms'}\ncontroller = {overhead = '1ms'}
    buffer = {size = '0B', read_ahead = false}\n";
const ZONE: &str = "[[zones]]\ncylinders = 1\nsectors_per_track = 100\ntrack_skew = 1\ncylinder_skew = 1\n";

/// A separate, empty folder for this test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("profile_input_{name}"));
    _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn error_of(path: &Path) -> String {
    build_device(path.to_str().unwrap(), Table::new()).err().unwrap().to_string()
}

#[test]
fn a_name_is_a_line_that_can_be_shown() {
    let named = |name: &str| {
        let mut table: Table = format!("{PROFILE}{ZONE}").parse().unwrap();
        table.insert("name".to_owned(), Value::from(name));
        Mechanical::from_table(table)
    };
    assert!(named("Barracuda, 2 GB: \u{e9}\u{4e00}").is_ok());
    assert!(named(&"n".repeat(200)).is_ok());
    let allowed = "; allowed: a line of at most 200 characters without control characters";
    for (name, problem) in [
        ("a\u{1}b", "name: contains the control character \\u{1}"),
        ("a\nb", "name: contains the control character \\u{a}"),
        ("\u{9b}31m", "name: contains the control character \\u{9b}"),
        (&"n".repeat(201), "name: has 201 characters"),
        (" ", "name: is empty"),
    ] {
        assert_eq!(named(name).unwrap_err().to_string(), format!("{problem}{allowed}"));
    }
}

#[test]
fn a_profile_has_a_bounded_size_and_a_bounded_number_of_zones() {
    let folder = folder("size");
    let path = folder.join("zones.toml");
    std::fs::write(&path, format!("name = 'many'\n{PROFILE}{}", ZONE.repeat(1_000))).unwrap();
    assert!(build_device(path.to_str().unwrap(), Table::new()).is_ok());
    std::fs::write(&path, format!("name = 'many'\n{PROFILE}{}", ZONE.repeat(1_001))).unwrap();
    assert!(error_of(&path).ends_with("zones.toml: zones: a list of 1001; allowed: a list of 1 to 1000"));
    // 200,000 zones are 15 MB: reading stops at the limit.
    std::fs::write(&path, format!("name = 'many'\n{PROFILE}{}", ZONE.repeat(200_000))).unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() > PROFILE_BYTES_MAX);
    assert!(error_of(&path).contains("zones.toml: larger than 4 MiB; allowed: "), "{}", error_of(&path));
}

#[test]
fn pipes_devices_and_folders_are_no_profiles() {
    let folder = folder("kinds");
    let pipe = folder.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // Opening the pipe, or reading the device to its end, would never return.
    for path in [&pipe, Path::new("/dev/zero")] {
        assert!(error_of(path).contains(": not a regular file; allowed: "), "{}", error_of(path));
    }
    assert!(error_of(&folder).contains(": is a folder, not a regular file; allowed: "), "{}", error_of(&folder));
}
