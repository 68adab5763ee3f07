//! ld: "the Ultrix link-editor, building the Ultrix 4.3 kernel from about 25MB of object files".
//!
//! A link editor reads its files twice: the header and the symbols of all, then all sections. In the object files of
//! the time symbols lie behind the sections. A block in which one part ends and another begins is read for both.
//! Ranges: 200 to 800 files of exponential size; 30 to 70 % of each are symbols. The reads that remain of 5881 are
//! second reads of random blocks, right after the first.

use rand_chacha::ChaCha8Rng;

use super::{between, choose, split, Program, Script};

pub(super) fn script(program: &Program, rng: &mut ChaCha8Rng) -> Script {
    let mut script = Script::default();
    let sizes = split(program.distinct, between(200, 800, rng), rng);
    let symbols_percent = between(30, 70, rng);
    let files: Vec<(u32, u64)> =
        sizes.iter().zip(0..).map(|(size, n)| (script.file(format!("object{n}.o"), *size), *size)).collect();

    let mut visits = Vec::new();
    for (file, size) in &files {
        let symbols = (size * symbols_percent / 100).min(size - 1);
        visits.push((*file, 0));
        visits.extend((size - symbols..*size).map(|block| (*file, block)));
    }
    visits.extend(files.iter().flat_map(|(file, size)| (0..*size).map(|block| (*file, block))));

    let more = program.reads as usize - visits.len();
    let mut order: Vec<usize> = (0..visits.len()).collect();
    choose(&mut order, more, rng);
    let mut again = vec![false; visits.len()];
    order[..more].iter().for_each(|visit| again[*visit] = true);
    for ((file, block), again) in visits.into_iter().zip(again) {
        (0..=u32::from(again)).for_each(|_| script.read(file, block));
    }
    script
}

#[cfg(test)]
mod tests {
    use super::super::tests::{drawn, places};

    #[test]
    fn headers_and_symbols_are_read_first_then_everything_in_order() {
        for seed in 1..=20 {
            let (files, records) = drawn("ld", seed);
            assert!((200..=800).contains(&files.len()), "seed {seed}: {} files", files.len());
            let mut seen = places(&records);
            seen.dedup();
            let all: Vec<(u32, u64)> =
                files.iter().flat_map(|entry| (0..entry.size_bytes / 8192).map(|block| (entry.file, block))).collect();
            // Every part is in order, and so is the whole: nothing is lost to `dedup` but second reads.
            assert_eq!(seen.split_off(seen.len() - 2882), all, "seed {seed}");
            assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "seed {seed}");
            assert_eq!(seen.iter().filter(|place| place.1 == 0).count(), files.len());
            let share = (seen.len() - files.len()) as f64 / 2882.0;
            assert!((0.1..0.7).contains(&share), "seed {seed}: {share} of the blocks have symbols");
        }
    }
}
