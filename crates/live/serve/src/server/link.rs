//! An emulated link between an export and its clients: delays each reply for as long as the simulator's link would.
//!
//! It models a level's `link` of a scenario, so that one machine can stand for two with a network between them. It has
//! one thread per export, since the loop around the exports waits for sockets in whole milliseconds.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use headstart_engine::Link;
use headstart_types::Nanos;
use nix::sys::prctl::set_timerslack;

use crate::work::Answer;

/// The link's cost is computed in bytes.
const BYTE: u64 = 1;

#[derive(Default)]
struct Held {
    /// Times at which replies arrive, earliest first, with the ids of their requests.
    due: BinaryHeap<Reverse<(Instant, u64)>>,
    answers: std::collections::BTreeMap<u64, Answer>,
    crossed: Vec<(u64, Answer)>,
    closed: bool,
}

/// The delayed replies of one export.
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
    /// Creates a link; `None` if it has no delay. `wake` is called when a reply has crossed.
    ///
    /// # Errors
    /// The system cannot create more threads.
    pub fn try_new(link: Link, wake: Arc<dyn Fn() + Send + Sync>) -> std::io::Result<Option<Self>> {
        if link == Link::default() {
            return Ok(None);
        }
        let shared: Arc<(Mutex<Held>, Condvar)> = Arc::default();
        let own = Self { link, shared: shared.clone() };
        thread::Builder::new().name("serve-link".into()).spawn(move || {
            // Without this, timers may be up to 50 us late, which is tolerable.
            let _ = set_timerslack(1);
            run(&shared, &*wake);
        })?;
        Ok(Some(own))
    }

    /// Sends the reply to request `id` over the link.
    pub fn cross(&self, id: u64, answer: Answer) {
        let bytes = if let Answer::Data(data) = &answer { data.length() } else { 0 };
        let Nanos(cost) = self.link.cost(bytes, BYTE);
        let mut held = lock(&self.shared.0);
        held.due.push(Reverse((now() + Duration::from_nanos(cost), id)));
        held.answers.insert(id, answer);
        self.shared.1.notify_one();
    }

    /// Replies that have crossed since the last call.
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

/// The thread's loop until the link is dropped.
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
