//! An emulated link between an export and its clients: each reply is held for the time that the simulator's link would take.
//!
//! It is what a level's `link` says in a scenario, so that one machine can stand for two with a network between them. One
//! thread for each export; the loop around the exports waits for sockets, which it does in whole milliseconds only.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use headstart_engine::Link;
use headstart_types::Nanos;
use nix::sys::prctl::set_timerslack;

use crate::work::Answer;

/// Replies are counted in bytes.
const BYTE: u64 = 1;

#[derive(Default)]
struct Held {
    /// When replies have crossed, the first first; the second number finds the reply.
    due: BinaryHeap<Reverse<(Instant, u64)>>,
    answers: std::collections::BTreeMap<u64, Answer>,
    crossed: Vec<(u64, Answer)>,
    closed: bool,
}

/// The replies of one export on their way.
pub struct EmulatedLink {
    link: Link,
    shared: Arc<(Mutex<Held>, Condvar)>,
}

fn lock(held: &Mutex<Held>) -> MutexGuard<'_, Held> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

#[expect(clippy::disallowed_methods, reason = "what is emulated takes real time")]
fn now() -> Instant {
    Instant::now()
}

impl EmulatedLink {
    /// A link that takes so long; `None` if it takes no time. `wake` is called when a reply has crossed.
    ///
    /// # Errors
    /// The system has no more threads.
    pub fn try_new(link: Link, wake: Arc<dyn Fn() + Send + Sync>) -> std::io::Result<Option<Self>> {
        if link == Link::default() {
            return Ok(None);
        }
        let shared: Arc<(Mutex<Held>, Condvar)> = Arc::default();
        let own = Self { link, shared: shared.clone() };
        thread::Builder::new().name("serve-link".into()).spawn(move || {
            // Without it timers end up to 50 us late, which is no reason to stop.
            let _ = set_timerslack(1);
            run(&shared, &*wake);
        })?;
        Ok(Some(own))
    }

    /// The reply to request `id` begins to cross.
    pub fn cross(&self, id: u64, answer: Answer) {
        let bytes = if let Answer::Data(data) = &answer { data.length() } else { 0 };
        let Nanos(cost) = self.link.cost(bytes, BYTE);
        let mut held = lock(&self.shared.0);
        held.due.push(Reverse((now() + Duration::from_nanos(cost), id)));
        held.answers.insert(id, answer);
        self.shared.1.notify_one();
    }

    /// Replies that have crossed since this was last asked.
    pub fn crossed(&self) -> Vec<(u64, Answer)> {
        std::mem::take(&mut lock(&self.shared.0).crossed)
    }
}

impl Drop for EmulatedLink {
    fn drop(&mut self) {
        lock(&self.shared.0).closed = true;
        self.shared.1.notify_one();
    }
}

/// What the thread does until the link is dropped.
fn run((held, changed): &(Mutex<Held>, Condvar), wake: &(dyn Fn() + Send + Sync)) {
    let mut guard = lock(held);
    while !guard.closed {
        let Some(&Reverse((due, id))) = guard.due.peek() else {
            guard = changed.wait(guard).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        let left = due.saturating_duration_since(now());
        if left.is_zero() {
            guard.due.pop();
            let answer = guard.answers.remove(&id);
            guard.crossed.extend(answer.map(|answer| (id, answer)));
            drop(guard);
            wake();
            guard = lock(held);
        } else {
            guard = changed.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
