//! Parameter files without end, or outside the folder: refused in one line without waiting.

use std::path::{Path, PathBuf};
use std::process::Command;

use headstart_diskspecs::import;

/// A separate, empty folder for this test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("diskspecs_input_{name}"));
    _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn pipes_and_devices_are_no_parameter_files() {
    let pipe = folder("kinds").join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // Opening the pipe, or reading the device to its end, would never return.
    for path in [&pipe, Path::new("/dev/zero")] {
        assert!(import(path).unwrap_err().to_string().contains(": not a regular file; allowed: "));
    }
}

#[test]
fn parameters_source_files_below_their_own_folder_only() {
    let folder = folder("source");
    let (drives, deep) = (folder.join("drives"), folder.join("drives/deep"));
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::write(folder.join("secret"), "secret words").unwrap();
    std::fs::write(deep.join("inner"), "dm_disk INNER { a = 1 }").unwrap();
    std::os::unix::fs::symlink("../secret", drives.join("link")).unwrap();
    std::os::unix::fs::symlink("deep/inner", drives.join("good")).unwrap();
    let said = |source: &str| {
        let path = drives.join("t.parv");
        std::fs::write(&path, format!("source {source}\n")).unwrap();
        import(&path).unwrap_err().to_string()
    };
    let outside = "it lies outside the folder of the file that was named";
    for source in ["../secret", "/etc/passwd", "link", "deep/../../secret", "deep/../link"] {
        let said = said(source);
        assert!(said.contains("t.parv:1: cannot read ") && said.contains(outside), "{source}: {said}");
        assert!(!said.contains("words"), "{said}");
    }
    // Files below are read, including through links and `..`: the block lacks its parameters, not its file.
    for source in ["deep/inner", "good", "deep/../good"] {
        assert!(!said(source).contains("cannot read"), "{source}: {}", said(source));
    }
    // A file named through a link is looked up in its real folder, not that of the link.
    std::os::unix::fs::symlink("drives/t.parv", folder.join("t.parv")).unwrap();
    std::fs::write(drives.join("t.parv"), "source secret\n").unwrap();
    assert!(import(&folder.join("t.parv")).unwrap_err().to_string().contains(outside));
}
