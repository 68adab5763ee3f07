//! The client that replaces a lost connection: what a server may do, and what its requests then say.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{all_flags, export, serve_in_turn, Fault};
use headstart_nbd::client::{ClientError, ConnectOptions, Reconnecting, DISK_LIMITS};
use headstart_nbd::{BlockSizes, Export, Flags};

const SIZE: u64 = 1 << 16;
const SHORT: ConnectOptions = ConnectOptions { reply_time_max: Some(Duration::from_millis(500)), ..DISK_LIMITS };

fn pattern() -> Vec<u8> {
    (0..SIZE).map(|index| (index / 7 % 251) as u8).collect()
}

fn disk() -> Export {
    export("a", SIZE, all_flags())
}

fn connected(turns: Vec<(Export, Fault)>) -> (Reconnecting, Arc<AtomicUsize>) {
    let is_late = matches!(turns[0].1, Fault::Mute(_) | Fault::Halfway);
    let (uri, connections) = serve_in_turn(turns, Arc::new(Mutex::new(pattern())));
    (Reconnecting::connect(uri, if is_late { SHORT } else { DISK_LIMITS }).unwrap(), connections)
}

/// Reads bytes that are aligned to nothing.
fn read(client: &Reconnecting) -> Result<(), String> {
    let read = client.client().and_then(|client| client.read_range(5..9001)).map_err(|error| error.to_string())?;
    assert!(read == pattern()[5..9001]);
    Ok(())
}

#[test]
fn a_request_says_why_it_failed_and_a_later_one_connects_again() {
    let lost = "the connection to the server is lost: ";
    let (late, closed) = (format!("{lost}the server does not reply in time"), format!("{lost}the server closed it"));
    let (over, again) = (Fault::ClosesAt(0), (disk(), Fault::None));
    let resized = |size| [(disk(), over), (export("a", size, all_flags()), Fault::None)];
    let (read_only, blocks) = (all_flags().with(Flags::READ_ONLY), BlockSizes { bytes_max: 1024, ..disk().blocks });
    for (turns, first, second) in [
        ([(disk(), Fault::Mute(0)), again.clone()], late.clone(), None),
        ([(disk(), Fault::Halfway), again.clone()], late, None),
        ([(disk(), Fault::Broken), again.clone()], closed.clone(), None),
        ([(disk(), over), again.clone()], closed.clone(), None),
        (
            [(disk(), Fault::Short), again],
            format!("{lost}the server broke the protocol: a reply without all of the content"),
            None,
        ),
        (resized(SIZE - 512), closed.clone(), Some("the export has another size than before")),
        (resized(SIZE + 512), closed.clone(), Some("the export has another size than before")),
        (
            [(disk(), over), (disk(), Fault::Away)],
            closed.clone(),
            Some("cannot connect: the server closed the connection while negotiating"),
        ),
        (
            [(disk(), over), (export("b", SIZE, all_flags()), Fault::None)],
            closed.clone(),
            Some("the server has no export \"a\": it says \"there is no export of that name\""),
        ),
        ([(disk(), over), (export("a", SIZE, read_only), Fault::None)], closed.clone(), None),
        ([(disk(), over), (Export { blocks, ..disk() }, Fault::None)], closed.clone(), None),
    ] {
        let said = format!("{turns:?}");
        let (client, _) = connected(turns.to_vec());
        assert_eq!(read(&client), Err(first), "{said}");
        match second {
            Some(second) => (0..2).for_each(|_| assert_eq!(read(&client), Err(second.to_owned()), "{said}")),
            // On a busy machine, an answer may be late once more.
            None => assert!((0..20).any(|_| read(&client).is_ok()), "{said}"),
        }
    }
}

/// Servers answer only requests of whole blocks that are not too long.
#[test]
fn a_range_is_read_in_blocks() {
    for (bytes_min, bytes_max) in [(1, 1), (1, 1000), (512, 512), (512, 4096), (4096, 8192), (4096, 32 << 20)] {
        let blocks = BlockSizes { bytes_min, bytes_preferred: 4096, bytes_max };
        let client = connected(vec![(Export { blocks, ..disk() }, Fault::None)]).0.client().unwrap();
        for range in [0..0, 0..1, 511..513, 4096..8192, 5..1500, SIZE - 700..SIZE] {
            let expected = &pattern()[range.start as usize..range.end as usize];
            assert_eq!(client.read_range(range.clone()).unwrap(), expected, "{blocks:?} {range:?}");
        }
    }
}

#[test]
fn a_lost_connection_is_kept_until_its_owner_lets_it_go() {
    let (client, connections) = connected(vec![(disk(), Fault::ClosesAt(0)), (disk(), Fault::None)]);
    client.while_kept(|is_lost| assert!(!is_lost));
    assert!(read(&client).is_err());
    client.while_kept(|is_lost| assert!(is_lost));
    let kept = || Err(ClientError::Lost("with writes".to_owned()));
    assert!(client.client_if(kept, || panic!("it is kept")).is_err());
    assert_eq!(connections.load(Ordering::SeqCst), 1);
    let mut replaced = 0;
    for _ in 0..2 {
        client.client_if(|| Ok::<_, ClientError>(()), || replaced += 1).unwrap();
    }
    assert_eq!((replaced, connections.load(Ordering::SeqCst)), (1, 2));
}

#[test]
fn requests_that_wait_for_an_attempt_share_its_failure() {
    let (client, connections) = connected(vec![(disk(), Fault::ClosesAt(0)), (disk(), Fault::Away)]);
    assert!(read(&client).is_err());
    std::thread::scope(|scope| {
        client.while_kept(|_| {
            for _ in 0..8 {
                scope.spawn(|| assert!(client.client().is_err()));
            }
            std::thread::sleep(Duration::from_millis(100));
        });
    });
    assert!(connections.load(Ordering::SeqCst) < 1 + 8);
}
