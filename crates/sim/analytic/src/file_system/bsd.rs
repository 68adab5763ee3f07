//! Reading a file as 4.4BSD's code does: the disk requests, when each is issued, and the waits for them. Our addition;
//! the paper's equations only count requests.
//!
//! After 4.4BSD-Lite, sys/kern/vfs_cluster.c, `cluster_read`, as in the simulated file system: an absent block is
//! fetched together with the window after it; a resident block triggers the fetch of the blocks one window further on,
//! while the application continues. The window begins empty, is one block with the first prefetch, and doubles with
//! each fetch as long as more blocks are contiguous than it holds. 64 KB are thus read in requests of 8, 16, 24 and 16
//! KB. An indirect block is read when the blocks it leads to are to be prefetched, and these wait for it.
//!
//! The recursion follows the application's references with two clocks: the application's, which costs and think times
//! advance, and the end of the last fetch. A fetch ends when the disk has served it, at the earliest as if it were
//! alone, and not before the disk has served all streams once since the last one: exact if the disk is always busy and
//! if it is mostly idle; in between it overestimates the waits. Cost: constant per reference and disk request.

use super::parameters::{FileSystem, Prefetch, Work};
use super::requests::indirect_before;

/// A disk request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fetch {
    /// For this many bytes of the file; the first of all.
    First(u64),
    /// For this many bytes after what has been read.
    Further(u64),
    /// For this many indirect blocks, one after another.
    Indirect(u64),
}

/// The time of a disk request, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Served {
    /// With no other stream.
    pub alone: f64,
    /// With all streams requesting at once.
    pub contended: f64,
}

/// Reads a file from start to end; `serve` gets each disk request in order. Returns the sum of the waits, in
/// nanoseconds.
pub(super) fn read_through(file_system: &FileSystem, work: &Work, serve: impl FnMut(Fetch) -> Served) -> f64 {
    let (first, limit) = match file_system.prefetch {
        Prefetch::Off => (1, 0),
        Prefetch::Doubling { first_bytes, limit_bytes } => {
            (first_bytes / file_system.block_bytes, limit_bytes / file_system.block_bytes)
        }
    };
    let (full, fragment) = file_system.blocks_of(work.file_bytes);
    let reader = Reader {
        map: Map { file_system, full, fragment },
        limit,
        window: first.min(limit.max(1)) - 1,
        reached: 0,
        known: 0,
        mapped_at: 0.0,
        put_off: None,
        fetched: Vec::new(),
        last_end: 0.0,
        now: 0.0,
        waits: 0.0,
        serve,
    };
    reader.through(work)
}

/// Where the blocks of a file lie.
struct Map<'a> {
    file_system: &'a FileSystem,
    /// Whole blocks of the file, and the bytes of the fragment after them.
    full: u64,
    fragment: u64,
}

impl Map<'_> {
    /// 0 for direct blocks, from 1 on for those of an indirect block; and the position in it.
    fn region(&self, block: u64) -> (u64, u64) {
        match block.checked_sub(self.file_system.direct_blocks) {
            None => (0, block),
            Some(beyond) => (1 + beyond / self.file_system.pointers(), beyond % self.file_system.pointers()),
        }
    }

    /// Number of contiguous whole blocks from `block` on.
    fn together(&self, block: u64) -> u64 {
        let (region, place) = self.region(block);
        let cluster = self.file_system.cluster_bytes / self.file_system.block_bytes;
        let size = if region == 0 { self.file_system.direct_blocks } else { self.file_system.pointers() };
        (cluster - place % cluster).min(size - place).min(self.full - block.min(self.full))
    }

    /// Bytes of a request for `count` blocks from `block` on. A fragment is read alone.
    fn bytes(&self, block: u64, count: u64) -> u64 {
        if block < self.full {
            count * self.file_system.block_bytes
        } else {
            self.fragment
        }
    }
}

/// A disk request for blocks of the file that may not all have been read.
#[derive(Debug, Clone, Copy)]
struct Fetched {
    first: u64,
    /// The block after the last.
    end: u64,
    /// When it ends.
    at: f64,
}

struct Reader<'a, Serve> {
    map: Map<'a>,
    /// Blocks of the largest request; 0: no read-ahead.
    limit: u64,
    window: u64,
    /// The last block of the latest fetch; blocks beyond it cannot have been evicted.
    reached: u64,
    /// The last region whose indirect block was requested, and when it is available.
    known: u64,
    mapped_at: f64,
    /// Where the prefetch begins that waits for an indirect block.
    put_off: Option<u64>,
    /// Requests with blocks from the current one on: a few.
    fetched: Vec<Fetched>,
    /// The end of the last request.
    last_end: f64,
    /// The application's clock.
    now: f64,
    waits: f64,
    serve: Serve,
}

impl<Serve: FnMut(Fetch) -> Served> Reader<'_, Serve> {
    fn through(mut self, work: &Work) -> f64 {
        let FileSystem { block_bytes, system_call_ns, copy_ns_per_kib, .. } = *self.map.file_system;
        let mut last = None;
        let mut begin = 0;
        while begin < work.file_bytes {
            let end = work.file_bytes.min(begin.saturating_add(work.request_bytes));
            for block in begin / block_bytes..=(end - 1) / block_bytes {
                let moved = last.replace(block) != Some(block);
                self.read(block, moved);
                let of_block = end.min((block + 1) * block_bytes) - begin.max(block * block_bytes);
                self.now += copy_ns_per_kib * of_block as f64 / 1024.0;
            }
            self.now += system_call_ns + work.think_ns;
            begin = end;
        }
        self.waits
    }

    fn read(&mut self, block: u64, moved: bool) {
        self.fetched.retain(|fetched| fetched.end > block);
        if !self.is_fetched(block) {
            self.read_absent(block, moved);
        } else if self.limit > 0 {
            self.look_ahead(block, moved);
        }
        let ready = self.fetched.iter().find(|fetched| fetched.first <= block).map_or(0.0, |fetched| fetched.at);
        self.wait_until(ready);
    }

    fn is_fetched(&self, block: u64) -> bool {
        self.fetched.iter().any(|fetched| (fetched.first..fetched.end).contains(&block))
    }

    /// Fetches `block` with the window after it.
    fn read_absent(&mut self, block: u64, moved: bool) {
        self.put_off = None;
        let (region, _) = self.map.region(block);
        if region > self.known {
            self.fetch_indirect(region);
        }
        if region == self.known {
            self.wait_until(self.mapped_at);
        }
        let behind = self.map.together(block).min(self.limit).saturating_sub(1);
        if block > 0 {
            self.resize(block, behind, moved);
        }
        self.fetch_window(block, behind);
        // The last of a contiguous run: the next blocks are fetched with it.
        if block > 0 && block < self.map.full && behind == 0 && self.limit > 1 && !self.is_fetched(block + 1) {
            self.prefetch(block, block + 1, moved);
        }
    }

    /// `block` is resident: fetches what lies one window further on.
    fn look_ahead(&mut self, block: u64, moved: bool) {
        let put_off = self.put_off.take().filter(|put_off| *put_off > block);
        let from = put_off.unwrap_or(block + self.window.max(1));
        if !self.is_fetched(from) {
            self.prefetch(block, from, moved);
        }
    }

    /// Fetches the window from `from` on, if its indirect block is available.
    fn prefetch(&mut self, block: u64, from: u64, moved: bool) {
        if from >= self.map.full {
            return;
        }
        let (region, _) = self.map.region(from);
        if region != self.map.region(block).0 {
            if region > self.known {
                self.fetch_indirect(region);
            }
            if self.mapped_at > self.now {
                self.put_off = Some(from);
                return;
            }
        }
        let behind = self.map.together(from).min(self.limit) - 1;
        self.resize(from, behind, moved);
        self.fetch_window(from, behind);
    }

    /// Adapts the window to a fetch from `from`, which is followed by `behind` contiguous blocks.
    fn resize(&mut self, from: u64, behind: u64, moved: bool) {
        if behind == 0 {
            return;
        }
        if from <= self.reached {
            self.window = (self.window / 2).max(1);
        } else if behind > self.window && moved {
            self.window = if self.window == 0 { 1 } else { behind.min(2 * self.window) };
        }
    }

    /// Fetches `from` and the following blocks of the window that have not been fetched.
    fn fetch_window(&mut self, from: u64, behind: u64) {
        self.reached = from + behind.min(self.window);
        let end = self.reached + 1;
        let mut first = from;
        while first < end {
            let count = (first..end).take_while(|block| !self.is_fetched(*block)).count() as u64;
            if count > 0 {
                let bytes = self.map.bytes(first, count);
                self.fetch(if first == 0 { Fetch::First(bytes) } else { Fetch::Further(bytes) });
                self.fetched.push(Fetched { first, end: first + count, at: self.last_end });
            }
            first += count + 1;
        }
    }

    /// Reads the indirect blocks of `region`.
    fn fetch_indirect(&mut self, region: u64) {
        self.fetch(Fetch::Indirect(indirect_before(region, self.map.file_system.pointers())));
        self.known = region;
        self.mapped_at = self.last_end;
    }

    fn fetch(&mut self, fetch: Fetch) {
        let Served { alone, contended } = (self.serve)(fetch);
        self.last_end = (self.now.max(self.last_end) + alone).max(self.last_end + contended);
    }

    fn wait_until(&mut self, end: f64) {
        self.waits += (end - self.now).max(0.0);
        self.now = self.now.max(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_system::{tables, Form};

    const KIB: u64 = 1024;

    fn doubling(first: u64, limit: u64) -> Prefetch {
        Prefetch::Doubling { first_bytes: first * KIB, limit_bytes: limit * KIB }
    }

    fn file_system(prefetch: Prefetch) -> FileSystem {
        // Contiguous data is no longer divided into clusters.
        FileSystem { prefetch, form: Form::Bsd, cluster_bytes: 1 << 20, ..tables::file_system() }
    }

    /// Disk requests, in KB and "i" for an indirect block, and the waits in ms, on a disk that takes 2 ms.
    fn read(file_system: &FileSystem, file_kib: f64, request_kib: u64, think_ms: f64) -> (String, f64) {
        let work = Work {
            streams: 1,
            file_bytes: (file_kib * 1024.0) as u64,
            request_bytes: request_kib * KIB,
            think_ns: think_ms * 1e6,
            lone_seek: 0.0,
        };
        let mut requests = Vec::new();
        let free = FileSystem { system_call_ns: 0.0, copy_ns_per_kib: 0.0, ..*file_system };
        let waits = read_through(&free, &work, |fetch| {
            requests.push(match fetch {
                Fetch::First(bytes) | Fetch::Further(bytes) => (bytes / KIB).to_string(),
                Fetch::Indirect(blocks) => "i".repeat(blocks as usize),
            });
            Served { alone: 2e6, contended: 2e6 }
        });
        (requests.join(" "), waits / 1e6)
    }

    #[test]
    fn requests_of_the_code() {
        let on = file_system(doubling(8, 64));
        assert_eq!(read(&on, 64.0, 8, 0.0), ("8 16 24 16".into(), 8.0));
        assert_eq!(read(&on, 64.0, 64, 0.0), ("8 16 24 16".into(), 8.0));
        // 7 to 11 are five blocks, 12 the last direct one; the following blocks wait for their indirect block.
        assert_eq!(read(&on, 128.0, 8, 0.0), ("8 16 24 40 8 i 32".into(), 14.0));
        assert_eq!(read(&file_system(doubling(64, 64)), 160.0, 8, 0.0).0, "64 32 i 64");
        assert_eq!(read(&file_system(Prefetch::Off), 112.0, 8, 0.0), ("8 8 8 8 8 8 8 8 8 8 8 8 i 8 8".into(), 30.0));
        // Requests smaller than a block read it again: block 1 is prefetched then, and the window does not grow.
        assert_eq!(read(&on, 64.0, 4, 0.0), ("8 8 16 24 8".into(), 10.0));
    }

    #[test]
    fn clusters_cut_requests() {
        let cut = FileSystem { cluster_bytes: 32 * KIB, ..file_system(doubling(8, 64)) };
        // Blocks 3 and 7 end clusters and are fetched alone; of the following clusters of four, three blocks are
        // fetched, then four.
        assert_eq!(read(&cut, 96.0, 8, 0.0).0, "8 16 8 24 8 32");
    }

    #[test]
    fn fragments_are_read_alone() {
        let on = file_system(doubling(8, 64));
        assert_eq!(read(&on, 20.5, 8, 0.0).0, "8 8 5");
        assert_eq!(read(&on, 3.0, 8, 0.0).0, "3");
        // After an indirect block there are no fragments.
        assert_eq!(read(&on, 98.0, 8, 0.0).0, "8 16 24 40 8 i 8");
    }

    #[test]
    fn the_disk_works_while_the_reader_thinks() {
        // As the simulation's test of that name: 5 ms of 8 are waited for.
        assert_eq!(read(&file_system(doubling(8, 64)), 64.0, 8, 1.0).1, 5.0);
        // A reader with long think times only waits for the first two, which were not prefetched.
        assert_eq!(read(&file_system(doubling(8, 64)), 64.0, 8, 100.0).1, 4.0);
    }
}
