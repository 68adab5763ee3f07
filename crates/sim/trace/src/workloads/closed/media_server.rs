//! `media-server`: a web server of media clips; each request reads a clip whole.
//!
//! "Apache hosting media clips" of li07, section 6.1: the video and audio clips of the 1998 World Cup. The paper gives:
//! about 9 % of the clips are large (video), sizes from 24 to 1418 KB with an average of 152 KB, 20.4 GB in all; clips
//! are chosen by Zipf's law. These five figures are keys.
//!
//! Guesses: KB and GB are 10^3 and 10^9 bytes, which makes 134,210 clips; video clips are uniform from `video_min` (400
//! kB) to the largest, audio clips uniform from the smallest to the size that gives the average (130 kB by default);
//! large and small clips are interleaved; popularity is independent of size, with exponent 1; the server reads 64 KiB
//! at a time.

use headstart_types::{keys, read_keys, stream_seed, Bytes, KeyError, KeyTable};
use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha8Rng;
use toml::Table;

use super::super::draw::{even, share};
use super::super::generator::{Size, REQUESTS_MAX};
use super::super::zipf::{Ranks, ALPHA_MAX};
use super::super::{Compute, GeneratorContext, Workload};
use super::{entries, FileAccesses, Server, Stage, System, CLIENTS_MAX, FILES_MAX, SOURCE};
use crate::{FileEntry, RecordReader};

pub(in super::super) const WORKLOAD: Workload = Workload {
    name: "media-server",
    summary: "closed system, a web server of media clips: whole files, popularity by Zipf's law",
    source: SOURCE,
    keys: KeyTable::of::<MediaKeys>(),
    make: open,
};

keys! {
    /// Keys of `media-server`.
    struct MediaKeys {
        /// Number of clients.
        #[schemars(range(min = 1, max = CLIENTS_MAX))]
        concurrency: u64 = 1,
        /// Number of requests of all clients together, dealt out to the clients in turn.
        #[schemars(range(min = 1, max = REQUESTS_MAX))]
        requests: u64 = 1000,
        /// Size of all clips together.
        size: Size = Size::bytes(20_400_000_000),
        /// Size of the smallest clip.
        smallest: Size = Size::bytes(24_000),
        /// Mean size of a clip.
        mean: Size = Size::bytes(152_000),
        /// Size of the largest clip.
        largest: Size = Size::bytes(1_418_000),
        /// Share of video clips.
        #[schemars(range(min = 0.0, max = 1.0))]
        video: f64 = 0.09,
        /// Size of the smallest video clip.
        video_min: Size = Size::bytes(400_000),
        /// The exponent of Zipf's law.
        #[schemars(range(min = 0.0, max = ALPHA_MAX))]
        alpha: f64 = 1.0,
        /// Size of each read.
        read: Size = Size::bytes(64 << 10),
        /// The think time after each read or write.
        compute: Compute = Compute::NONE,
    }
}

fn open(keys: Table, context: &GeneratorContext) -> Result<Box<dyn RecordReader>, KeyError> {
    let keys: MediaKeys = read_keys(keys)?;
    let clips = Clips::new(&keys)?;
    let mut rng = ChaCha8Rng::seed_from_u64(stream_seed(context.seed, "ranks", 0));
    let ranks = Ranks::new(clips.count as usize, keys.alpha, &mut rng);
    Ok(System::new(keys.concurrency, keys.requests, keys.compute, context)?.boxed(Media {
        clips,
        ranks,
        read: keys.read.0 .0,
    }))
}

/// The sizes of the clips.
#[derive(Debug, Clone, Copy)]
struct Clips {
    count: u64,
    /// Share of video clips, in units of 2^-64.
    video: u64,
    /// The smallest and largest size of each kind, in bytes.
    video_sizes: (u64, u64),
    audio_sizes: (u64, u64),
}

impl Clips {
    fn new(keys: &MediaKeys) -> Result<Self, KeyError> {
        let sizes = [keys.size, keys.mean, keys.smallest, keys.largest, keys.video_min];
        let ([size, mean, smallest, largest, video_min], video) = (sizes.map(|Size(size)| size.0), keys.video);
        if !(smallest..=largest).contains(&video_min) {
            let problem = format!("{} is out of range", Bytes(video_min));
            let allowed = format!("smallest to largest, {} to {}", Bytes(smallest), Bytes(largest));
            return Err(KeyError::new("video_min", problem, allowed));
        }
        let count = size / mean;
        if !(1..=FILES_MAX).contains(&count) {
            let problem = format!("{} of {} each on average are {count} clips", Bytes(size), Bytes(mean));
            return Err(KeyError::new("size", problem, format!("1 to {FILES_MAX} of them")));
        }
        let audio_max = audio_max(mean, video, (video_min + largest) as f64 / 2.0, smallest);
        if !(smallest as f64..=video_min as f64).contains(&audio_max) {
            let problem =
                format!("{} would need audio clips of up to {}", Bytes(mean), Bytes(audio_max as u64).rounded());
            let allowed = "a mean for which this lies between smallest and video_min";
            return Err(KeyError::new("mean", problem, allowed));
        }
        let audio_sizes = (smallest, audio_max as u64);
        Ok(Self { count, video: (video * 2f64.powi(64)) as u64, video_sizes: (video_min, largest), audio_sizes })
    }

    /// The size of clip `index`: its position in the even sequence determines its kind and its size within the kind.
    fn size(&self, index: u64) -> u64 {
        let place = even(index);
        let ((least, most), begin, end) = match place.checked_sub(self.video) {
            None => (self.video_sizes, 0, self.video),
            Some(_) => (self.audio_sizes, self.video, u64::MAX),
        };
        let within = (u128::from(place - begin) << 64) / (u128::from(end - begin) + 1);
        least + share(within as u64, most - least + 1)
    }
}

/// The largest audio clip that gives all clips their `mean`, if a share `video` of them has `video_mean`.
fn audio_max(mean: u64, video: f64, video_mean: f64, smallest: u64) -> f64 {
    if video == 1.0 {
        return smallest as f64;
    }
    2.0 * (mean as f64 - video * video_mean) / (1.0 - video) - smallest as f64
}

struct Media {
    clips: Clips,
    ranks: Ranks,
    read: u64,
}

impl Server for Media {
    fn files(&self) -> Vec<FileEntry> {
        entries(0, (0..self.clips.count).map(|clip| (format!("clip{clip}"), self.clips.size(clip))))
    }

    fn request(&self, _number: u64, rng: &mut ChaCha8Rng) -> Vec<Stage> {
        let clip = self.ranks.draw(rng);
        vec![Stage::new([FileAccesses::read(clip, (0, self.clips.size(clip.into())), self.read)])]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(keys: &str) -> Result<Box<dyn RecordReader>, KeyError> {
        open(keys.parse().expect("TOML"), &GeneratorContext { seed: 1, block_bytes: 4096 })
    }

    #[test]
    fn sizes_have_the_printed_figures() {
        let reader = opened("").expect("defaults");
        let sizes: Vec<u64> = reader.files().iter().map(|entry| entry.size_bytes).collect();
        let total: u64 = sizes.iter().sum();
        assert_eq!(sizes.len(), 134_210);
        assert!((total as f64 / 20.4e9 - 1.0).abs() < 1e-3, "{total}");
        assert!((total as f64 / sizes.len() as f64 / 152e3 - 1.0).abs() < 1e-3);
        assert!((24_000..24_100).contains(sizes.iter().min().expect("clips")));
        assert!((1_417_000..=1_418_000).contains(sizes.iter().max().expect("clips")));
        let video = sizes.iter().filter(|size| **size >= 400_000).count() as f64 / sizes.len() as f64;
        assert!((video - 0.09).abs() < 1e-4, "{video}");
        let audio = sizes.iter().filter(|size| **size < 400_000).max().expect("audio");
        assert!((129_000..131_000).contains(audio), "{audio}");
    }

    #[test]
    fn whole_clips_are_read_and_some_more_often() {
        let mut reader = opened("requests = 3000\nsize = \"152MB\"").expect("keys");
        let (mut all, mut batch) = (Vec::new(), Vec::new());
        while reader.read(&mut batch).expect("generated") {
            all.extend_from_slice(&batch);
        }
        let mut times = vec![0u32; reader.files().len()];
        for request in all.chunk_by(|_, next| next.offset > 0) {
            let clip = request[0].file;
            times[clip as usize] += 1;
            let read: u64 = request.iter().map(|record| record.size).sum();
            assert_eq!(read, reader.files()[clip as usize].size_bytes);
        }
        assert_eq!((times.len(), times.iter().sum()), (1000, 3000));
        // The first of 1000 ranks has 1 / 7.49 of all: 401 requests, with a standard deviation of 19.
        let most = times.iter().max().expect("clips");
        assert!((325..480).contains(most), "{most}");
    }

    #[test]
    fn only_sizes_that_can_be_are_taken() {
        let error = |keys: &str| opened(keys).err().expect("refused").to_string();
        assert!(error("mean = \"60kB\"").starts_with("mean: 60kB would need audio clips of up to 0 B"));
        assert!(error("mean = \"500kB\"").starts_with("mean: 500kB would need audio clips of up to 8"));
        assert!(error("size = \"100kB\"").starts_with("size: 100kB of 152kB each on average are 0 clips"));
        assert!(error("video_min = \"2MB\"").starts_with("video_min: 2MB is out of range; allowed: smallest to"));
        assert!(error("video = 1.5").starts_with("video: 1.5 is out of range"));
        let all_video = opened("video = 1.0\nmean = \"909kB\"").expect("keys");
        assert!(all_video.files().iter().all(|entry| entry.size_bytes >= 400_000));
    }
}
