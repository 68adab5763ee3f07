//! xds: "25 planar slice images at random orientations from a 64MB data file".
//!
//! Rows of a plain array would make a slice touch thousands of blocks; Table 3 has 417 reads a slice. So the volume is
//! stored in bricks of a block each: 8192 of them. Two geometries, with equal odds: 256 cubed numbers of 4 bytes in
//! bricks of 16 x 16 x 8, or 512 x 512 x 256 bytes in bricks of 32 x 16 x 16. A plane's direction is uniform on the
//! sphere, its distance from the middle uniform as far as the volume reaches in that direction. Planes are drawn, and
//! one at a time again, until they touch 5392 bricks or up to 40 more, in no more than 10,435 reads; then bricks that
//! one plane alone touches are left out of it, at random, until there are 5392. A slice reads its bricks in the order
//! of the file, or, with equal odds, image row by image row. The reads that remain of 10,435 are bricks read again when
//! the next row meets them: a brick among the last 32 of the slice, at random.

use rand_chacha::rand_core::RngCore;
use rand_chacha::ChaCha8Rng;

use super::super::draw::below;
use super::{between, choose, Program, Script};

const PLANES: usize = 25;
const BRICKS: usize = 8192;
/// Bricks in excess that may be left out.
const EXCESS: u64 = 40;
/// How far back a brick is met again, in reads.
const BACK: u64 = 32;

/// Bricks along each axis, and elements of a brick along it.
type Geometry = ([u32; 3], [f64; 3]);
const GEOMETRIES: [Geometry; 2] = [([16, 16, 32], [16.0, 16.0, 8.0]), ([16, 32, 16], [32.0, 16.0, 16.0])];

pub(super) fn script(program: &Program, rng: &mut ChaCha8Rng) -> Script {
    let geometry = &GEOMETRIES[below(2, rng) as usize];
    let by_rows = below(2, rng) == 0;
    let mut planes = planes(program, geometry, by_rows, rng);
    leave_out(&mut planes, program.distinct, rng);

    let mut script = Script::default();
    let volume = script.file("volume", BRICKS as u64);
    let visits: usize = planes.iter().map(Vec::len).sum();
    let more = program.reads as usize - visits;
    let mut again = vec![more / visits; visits];
    let mut order: Vec<usize> = (0..visits).collect();
    choose(&mut order, more % visits, rng);
    order[..more % visits].iter().for_each(|visit| again[*visit] += 1);
    let mut again = again.into_iter();
    for plane in planes {
        for ((at, brick), more) in plane.iter().enumerate().zip(&mut again) {
            script.read(volume, u64::from(*brick));
            for _ in 0..more {
                let back = between(0, BACK.min(at as u64), rng) as usize;
                script.read(volume, u64::from(plane[at - back]));
            }
        }
    }
    script
}

/// Planes that touch the bricks of Table 3 or somewhat more, in no more reads.
fn planes(program: &Program, geometry: &Geometry, by_rows: bool, rng: &mut ChaCha8Rng) -> Vec<Vec<u32>> {
    let mut planes: Vec<Vec<u32>> = (0..PLANES).map(|_| plane(geometry, by_rows, rng)).collect();
    loop {
        let touched = touches(&planes).iter().filter(|count| **count > 0).count() as u64;
        let visits: usize = planes.iter().map(Vec::len).sum();
        let excess = touched.checked_sub(program.distinct).is_some_and(|excess| excess <= EXCESS);
        if excess && visits as u64 <= program.reads {
            return planes;
        }
        planes[below(PLANES as u64, rng) as usize] = plane(geometry, by_rows, rng);
    }
}

/// How many planes touch each brick.
fn touches(planes: &[Vec<u32>]) -> Vec<u32> {
    let mut touches = vec![0; BRICKS];
    planes.iter().flatten().for_each(|brick| touches[*brick as usize] += 1);
    touches
}

/// Leaves out bricks that one plane alone touches until `distinct` remain.
fn leave_out(planes: &mut [Vec<u32>], distinct: u64, rng: &mut ChaCha8Rng) {
    let touches = touches(planes);
    let excess = touches.iter().filter(|count| **count > 0).count() - distinct as usize;
    let mut single: Vec<u32> = (0..BRICKS as u32).filter(|brick| touches[*brick as usize] == 1).collect();
    choose(&mut single, excess, rng);
    let out = &single[..excess];
    planes.iter_mut().for_each(|plane| plane.retain(|brick| !out.contains(brick)));
}

/// The bricks that a random plane touches, in reading order.
fn plane((bricks, size): &Geometry, by_rows: bool, rng: &mut ChaCha8Rng) -> Vec<u32> {
    let normal = direction(rng);
    let along = |axis: usize, at: f64| normal[axis] * (at - f64::from(bricks[axis]) / 2.0) * size[axis];
    let reach: f64 = (0..3).map(|axis| along(axis, f64::from(bricks[axis])).abs()).sum();
    let distance = (2.0 * unit(rng) - 1.0) * reach;
    // A plane touches a brick whose middle is no further away than its corners reach.
    let half: f64 = (0..3).map(|axis| (normal[axis] * size[axis] / 2.0).abs()).sum();
    let (across, down) = image_axes(&normal);
    let mut touched = Vec::new();
    for z in 0..bricks[2] {
        for y in 0..bricks[1] {
            for x in 0..bricks[0] {
                let middle = [f64::from(x) + 0.5, f64::from(y) + 0.5, f64::from(z) + 0.5];
                let away: f64 = (0..3).map(|axis| along(axis, middle[axis])).sum::<f64>() - distance;
                if away.abs() <= half {
                    let on = |axes: &[f64; 3]| (0..3).map(|axis| axes[axis] * middle[axis] * size[axis]).sum::<f64>();
                    let row = if by_rows { (on(&down) / size[1]).floor() } else { 0.0 };
                    let column = if by_rows { on(&across) } else { 0.0 };
                    touched.push((row, column, (z * bricks[1] + y) * bricks[0] + x));
                }
            }
        }
    }
    touched.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)));
    touched.into_iter().map(|(_, _, brick)| brick).collect()
}

/// A uniform number of 0..1.
fn unit(rng: &mut ChaCha8Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// A uniform direction: a point of the unit ball, drawn from the cube around it, and moved to the sphere.
fn direction(rng: &mut ChaCha8Rng) -> [f64; 3] {
    loop {
        let point: [f64; 3] = std::array::from_fn(|_| 2.0 * unit(rng) - 1.0);
        let square: f64 = point.iter().map(|each| each * each).sum();
        if square > 0.01 && square <= 1.0 {
            return scaled(point, square);
        }
    }
}

/// The directions of rows and columns of a slice's image: across its normal and across the axis it leans to least.
fn image_axes(normal: &[f64; 3]) -> ([f64; 3], [f64; 3]) {
    let least = (0..3).min_by(|a, b| normal[*a].abs().total_cmp(&normal[*b].abs())).unwrap_or(0);
    let axis: [f64; 3] = std::array::from_fn(|each| f64::from(u8::from(each == least)));
    let across = cross(normal, &axis);
    let across = scaled(across, across.iter().map(|each| each * each).sum());
    (across, cross(normal, &across))
}

fn cross(a: &[f64; 3], b: &[f64; 3]) -> [f64; 3] {
    std::array::from_fn(|axis| {
        let (next, last) = ((axis + 1) % 3, (axis + 2) % 3);
        a[next] * b[last] - a[last] * b[next]
    })
}

fn scaled(vector: [f64; 3], square: f64) -> [f64; 3] {
    vector.map(|each| each / square.sqrt())
}

#[cfg(test)]
mod tests {
    use rand_chacha::rand_core::SeedableRng;

    use super::super::tests::{drawn, places};
    use super::*;

    #[test]
    fn a_plane_touches_a_connected_layer_of_bricks() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for geometry in &GEOMETRIES {
            let sizes: Vec<usize> = (0..200).map(|_| plane(geometry, false, &mut rng).len()).collect();
            let mean = sizes.iter().sum::<usize>() / 200;
            // A middle plane across one axis touches 256 or 512 bricks, a slanted one up to three times as many.
            assert!((300..500).contains(&mean), "{mean}");
            assert!(sizes.iter().all(|size| *size < 1200));
        }
    }

    #[test]
    fn directions_are_of_length_1_and_balanced() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let mut sums = [0.0; 3];
        for _ in 0..10_000 {
            let normal = direction(&mut rng);
            let (across, down) = image_axes(&normal);
            for (a, b, expected) in [(&normal, &normal, 1.0), (&normal, &across, 0.0), (&down, &across, 0.0)] {
                let product: f64 = (0..3).map(|axis| a[axis] * b[axis]).sum();
                assert!((product - expected).abs() < 1e-9);
            }
            (0..3).for_each(|axis| sums[axis] += normal[axis] * normal[axis] / 10_000.0);
        }
        assert!(sums.iter().all(|sum| (sum - 1.0 / 3.0).abs() < 0.01), "{sums:?}");
    }

    #[test]
    fn slices_in_file_order_rise_25_times() {
        let mut risen = 0;
        for seed in 1..=20 {
            let records = drawn("xds", seed).1;
            let blocks: Vec<u64> = places(&records).into_iter().map(|place| place.1).collect();
            // A brick that is met again is one of the slice's last 32: a new slice falls back further.
            let falls = blocks.windows(2).filter(|pair| pair[0] > pair[1] + 2000).count();
            risen += usize::from(falls < 40);
        }
        assert!((4..=16).contains(&risen), "{risen} of 20 draws");
    }
}
