//! Work on many things at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Does this with every item, whose index it is given; the results are in their order. After an error, no more is
/// begun; of several, that of the first item counts.
pub fn on_all_cpus<I: Sync, T: Send, E: Send>(
    items: &[I],
    of: impl Fn(usize, &I) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        while let Some((at, item)) = items.iter().enumerate().nth(next.fetch_add(1, Ordering::Relaxed)) {
            let result = of(at, item);
            if result.is_err() {
                next.store(items.len(), Ordering::Relaxed);
            }
            done.push((at, result));
        }
        done
    };
    let workers = thread::available_parallelism().map_or(1, |cpus| cpus.get().min(items.len()));
    let mut all = thread::scope(|scope| {
        let others: Vec<_> = (1..workers).map(|_| scope.spawn(worker)).collect();
        let mut all = worker();
        for other in others {
            all.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        all
    });
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<usize> = (10..200).collect();
        assert_eq!(on_all_cpus(&items, |at, item| Ok::<_, ()>(at + item)), Ok((10..200).map(|n| 2 * n - 10).collect()));
        assert_eq!(on_all_cpus(&[], |_, (): &()| Ok::<(), ()>(())), Ok(Vec::new()));
    }

    #[test]
    fn an_error_ends_the_work() {
        let begun = AtomicUsize::new(0);
        let items: Vec<usize> = (0..10_000).collect();
        let failed = on_all_cpus(&items, |_, item| {
            begun.fetch_add(1, Ordering::Relaxed);
            Err::<(), _>(*item)
        });
        assert_eq!(failed, Err(0));
        assert!(begun.into_inner() <= thread::available_parallelism().unwrap().get());
    }
}
