//! Joins buffers that are adjacent in memory: the kernel pins each buffer of a direct read separately, and devices
//! accept a limited number of segments.

use bytes::BytesMut;

/// The system's maximum number of buffers per call.
pub const BUFFERS_MAX: usize = 1024;

/// Lengths needed to split joined buffers again; empty for a single buffer.
#[derive(Debug, Default)]
pub struct Joints(Vec<usize>);

/// Joins adjacent buffers.
pub fn join(buffers: Vec<BytesMut>) -> (Vec<BytesMut>, Joints) {
    if buffers.len() < 2 {
        return (buffers, Joints::default());
    }
    let lengths = buffers.iter().map(|buffer| buffer.len()).collect();
    let mut joined: Vec<BytesMut> = Vec::new();
    for buffer in buffers {
        match joined.last_mut() {
            // Nothing is copied. Adjacent buffers belong to one allocation, since each allocation begins with bytes
            // that belong to no buffer.
            Some(last) if last.as_ptr_range().end == buffer.as_ptr() => last.unsplit(buffer),
            _ => joined.push(buffer),
        }
    }
    (joined, Joints(lengths))
}

impl Joints {
    /// Splits the buffers again.
    pub fn part(self, joined: Vec<BytesMut>) -> Vec<BytesMut> {
        if self.0.is_empty() {
            return joined;
        }
        let mut joined = joined.into_iter();
        let mut rest = BytesMut::new();
        let next = |length| {
            if rest.is_empty() {
                rest = joined.next().expect("parts are as long as the buffers");
            }
            rest.split_to(length)
        };
        self.0.into_iter().map(next).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffers::Buffers;

    #[test]
    fn neighbours_are_joined_and_come_back_as_they_were() {
        let mut buffers = Buffers::new(4096).take_run(8);
        let places: Vec<*const u8> = buffers.iter().map(|buffer| buffer.as_ptr()).collect();
        buffers.swap(2, 6);
        let (mut joined, joints) = join(buffers);
        joined.iter_mut().zip(1..).for_each(|(piece, number)| piece.fill(number));
        assert_eq!(joined.iter().map(|piece| piece.len() / 4096).collect::<Vec<_>>(), [2, 1, 3, 1, 1]);
        let mut buffers = joints.part(joined);
        buffers.swap(2, 6);
        assert_eq!(buffers.iter().map(|buffer| buffer[4095]).collect::<Vec<_>>(), [1, 1, 4, 3, 3, 3, 2, 5]);
        assert!(buffers.iter().zip(places).all(|(buffer, place)| buffer.as_ptr() == place && buffer.len() == 4096));
        let (joined, joints) = join(buffers.split_off(7));
        assert_eq!(joints.part(joined).iter().map(|buffer| buffer[0]).collect::<Vec<_>>(), [5]);
    }
}
