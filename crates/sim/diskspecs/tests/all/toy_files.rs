//! Files for the tests of the importer: a toy drive next to this file, and folders of small files.

#![allow(dead_code)] // not every test uses every helper

use std::path::{Path, PathBuf};

/// The toy drive's file of this name.
pub fn toy(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/toy_files").join(name)
}

/// A folder of files that is removed with this value.
pub struct Folder(pub PathBuf);

impl Folder {
    /// The folder `name` (one for each test) with these files.
    pub fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let folder = std::env::temp_dir().join(format!("headstart-diskspecs-{name}-{}", std::process::id()));
        for (file, text) in files {
            let path = folder.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Self(folder)
    }

    /// The path of a file in it.
    pub fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The toy model in one file, with each text of `changes` replaced.
pub fn changed(file: &str, changes: &[(&str, &str)]) -> String {
    let mut text = std::fs::read_to_string(toy(file)).unwrap();
    for (from, to) in changes {
        assert!(text.contains(from), "{file} lacks {from:?}");
        text = text.replace(from, to);
    }
    text
}
