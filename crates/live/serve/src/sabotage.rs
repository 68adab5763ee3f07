//! Faults planted on purpose in a [`Conductor`](crate::conductor::Conductor): a fuzzer that does not find them is of no use. Without the feature `sabotage` there
//! are none.

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// Pages arrive with a wrong byte.
    WrongByte,
    /// Pages in the cache do not change with the backing.
    StaleCache,
    /// Pages stay in the cache though their change has failed.
    KeepsFailed,
    /// A change that has failed is answered as if it had not.
    HidesFailure,
    /// Changes are answered and not made.
    LosesWrite,
    /// A flush is answered and not made.
    SkipsFlush,
    /// What is to be stable with a change is not.
    DropsFua,
    /// Pages are read while they change.
    ReadsBesideChange,
    /// Pages change while they are read.
    ChangesBesideRead,
    /// Requests are answered twice.
    AnswersTwice,
    /// Requests are not answered.
    LosesAnswer,
    /// What clients wait for is behind prefetches.
    DemandBehindPrefetch,
    /// Prefetches leave no room for what clients wait for.
    PrefetchesFillQueue,
    /// One read that is stuck holds up the others.
    WaitsForStuck,
    /// A bad page fails its neighbours.
    SpreadsError,
    /// Buffers are not used again.
    LosesBuffer,
    /// A frame of the level is never free again.
    LosesFrame,
    /// The number of a page that requests wait for is given to another page.
    GivesNumbersAway,
}

impl Sabotage {
    /// All of them.
    pub const ALL: [Self; 18] = [
        Self::WrongByte,
        Self::StaleCache,
        Self::KeepsFailed,
        Self::HidesFailure,
        Self::LosesWrite,
        Self::SkipsFlush,
        Self::DropsFua,
        Self::ReadsBesideChange,
        Self::ChangesBesideRead,
        Self::AnswersTwice,
        Self::LosesAnswer,
        Self::DemandBehindPrefetch,
        Self::PrefetchesFillQueue,
        Self::WaitsForStuck,
        Self::SpreadsError,
        Self::LosesBuffer,
        Self::LosesFrame,
        Self::GivesNumbersAway,
    ];
}

/// The fault that is planted, if any is.
#[derive(Debug, Default)]
pub struct Planted {
    #[cfg(feature = "sabotage")]
    fault: Option<Sabotage>,
}

impl Planted {
    /// Whether it is this one.
    #[cfg(feature = "sabotage")]
    pub fn has(&self, fault: Sabotage) -> bool {
        self.fault == Some(fault)
    }

    /// Whether it is this one: there is none.
    #[cfg(not(feature = "sabotage"))]
    #[allow(clippy::unused_self)]
    pub const fn has(&self, _fault: Sabotage) -> bool {
        false
    }

    /// From now on there is this one.
    #[cfg(feature = "sabotage")]
    pub fn plant(&mut self, fault: Sabotage) {
        self.fault = Some(fault);
    }
}
