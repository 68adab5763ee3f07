//! From a recording (`headstart_trace::hints`) to what is prefetched.

use headstart_trace::hints::{FileKind, RecordedFile, Recording};

use super::list::{device_number, HintList, HintedFile, HintedRange, PAGE_BYTES};
use super::Error;

impl TryFrom<&Recording> for HintList {
    type Error = Error;

    /// What the command itself has referenced, in order, without files whose paths are not known.
    fn try_from(recording: &Recording) -> Result<Self, Error> {
        if recording.about.page_bytes != PAGE_BYTES {
            return Err(Error::Pages(recording.about.page_bytes));
        }
        let mut number_of = Vec::with_capacity(recording.files.len());
        let about = &recording.about;
        let mut list = Self {
            elapsed_ns: about.elapsed_ns,
            command: about.command.iter().map(Into::into).collect(),
            folder: about.folder.clone().into(),
            ..Self::default()
        };
        let mut came = vec![0; recording.files.len()];
        for read in recording.reads.iter().filter(|read| !read.hit) {
            came[read.file as usize] += u64::from(read.pages);
        }
        for file in &recording.files {
            let hinted = hinted(file, came[number_of.len()]);
            number_of.push(hinted.is_some().then_some(list.files.len() as u32));
            list.files.extend(hinted);
        }
        for read in recording.references() {
            if let Some(file) = number_of[read.file as usize] {
                let done_ns = read.time_ns.saturating_add(read.wait_ns);
                let (first, count, wait_ns, hit) = (read.start, read.pages, read.wait_ns, read.hit);
                list.ranges.push(HintedRange { file, first, count, done_ns, wait_ns, hit });
            }
        }
        Ok(list)
    }
}

/// `None` if it cannot be read ahead: its path is not known, or it is a directory that is cached as a file is.
fn hinted(file: &RecordedFile, came_pages: u64) -> Option<HintedFile> {
    if file.path.as_os_str().is_empty() {
        return None;
    }
    let device = device_number(u64::from(file.major), u64::from(file.minor));
    let path = file.path.clone();
    match file.kind {
        FileKind::Regular => Some(HintedFile {
            path,
            identity: (device, file.inode),
            is_device: false,
            size: Some(file.size_bytes),
            mtime_ns: Some(i128::from(file.mtime_ns)),
            came_pages,
        }),
        FileKind::Device => {
            Some(HintedFile { path, identity: (0, device), is_device: true, size: None, mtime_ns: None, came_pages })
        }
        FileKind::Other => None,
    }
}
