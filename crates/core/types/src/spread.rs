//! Files striped over servers: which server holds a block, and at which index of its own.

/// How the blocks of files are distributed over servers. Consecutive stripes go to consecutive servers, starting at
/// server `file` mod `servers` so that short files do not all start on the first. Each server stores its stripes of a
/// file contiguously.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spread {
    /// Number of servers, at least 1.
    pub servers: u32,
    /// Blocks per stripe, at least 1; `None`: each file lies on one server as a whole.
    pub unit: Option<u64>,
}

impl Spread {
    /// The server that holds block `index` of `file`, and that block's index among the server's blocks of the file.
    #[inline]
    #[must_use]
    pub fn local(&self, file: u32, index: u64) -> (u32, u64) {
        let servers = u64::from(self.servers);
        let start = u64::from(file) % servers;
        let Some(unit) = self.unit else { return (start as u32, index) };
        let stripe = index / unit;
        let server = (stripe % servers + start) % servers;
        (server as u32, stripe / servers * unit + index % unit)
    }

    /// The block of `file` that is block `local` of `server`: the inverse of [`Spread::local`]. `None` if the file has
    /// none there, or the index exceeds 64 bits.
    #[inline]
    #[must_use]
    pub fn global(&self, file: u32, (server, local): (u32, u64)) -> Option<u64> {
        let servers = u64::from(self.servers);
        let start = u64::from(file) % servers;
        let Some(unit) = self.unit else { return (u64::from(server) == start).then_some(local) };
        let turn = (u64::from(server) + servers - start) % servers;
        (local / unit).checked_mul(servers)?.checked_add(turn)?.checked_mul(unit)?.checked_add(local % unit)
    }

    /// How many of the `blocks` blocks of `file` are on `server`.
    #[must_use]
    pub fn blocks_of(&self, file: u32, server: u32, blocks: u64) -> u64 {
        let servers = u64::from(self.servers);
        let start = u64::from(file) % servers;
        let turn = (u64::from(server) + servers - start) % servers;
        let Some(unit) = self.unit else { return if turn == 0 { blocks } else { 0 } };
        let (stripes, rest) = (blocks / unit, blocks % unit);
        let whole = (stripes / servers + u64::from(turn < stripes % servers)) * unit;
        whole + if turn == stripes % servers { rest } else { 0 }
    }

    /// The size in blocks of the largest file that fits if each server has room for `each` blocks of it.
    #[must_use]
    pub fn room(&self, each: u64) -> u64 {
        self.unit.map_or(each, |unit| (each / unit * unit).saturating_mul(u64::from(self.servers)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stripes_go_round() {
        // Stripes of two blocks over three servers. File 0: 0 1 | 2 3 | 4 5, then 6 7 behind 0 1. File 1 begins on
        // server 1.
        let spread = Spread { servers: 3, unit: Some(2) };
        let of = |file| (0..8).map(|index| spread.local(file, index)).collect::<Vec<_>>();
        assert_eq!(of(0), [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (0, 2), (0, 3)]);
        assert_eq!(of(1), [(1, 0), (1, 1), (2, 0), (2, 1), (0, 0), (0, 1), (1, 2), (1, 3)]);
        assert_eq!((0..3).map(|server| spread.blocks_of(0, server, 7)).collect::<Vec<_>>(), [3, 2, 2]);
        assert_eq!(spread.room(5), 12);
        let files = Spread { servers: 3, unit: None };
        assert_eq!((files.local(4, 9), files.global(4, (1, 9)), files.global(4, (0, 9))), ((1, 9), Some(9), None));
        assert_eq!((files.blocks_of(4, 1, 7), files.blocks_of(4, 0, 7), files.room(5)), (7, 0, 5));
    }

    #[test]
    fn each_block_is_on_one_server_once() {
        for (servers, unit, file) in [(1, 1, 0), (2, 1, 3), (3, 4, 1), (5, 3, 7), (4, 64, 2)] {
            let spread = Spread { servers, unit: Some(unit) };
            let mut next = vec![0; servers as usize];
            for index in 0..1000 {
                let (server, local) = spread.local(file, index);
                assert_eq!(spread.global(file, (server, local)), Some(index));
                assert_eq!(local, next[server as usize], "a server's blocks of a file are numbered without gaps");
                next[server as usize] += 1;
                let counts: Vec<u64> = (0..servers).map(|server| spread.blocks_of(file, server, index + 1)).collect();
                assert_eq!(counts, next);
            }
        }
        assert_eq!(Spread { servers: 9, unit: Some(8) }.global(0, (1, u64::MAX)), None);
    }
}
