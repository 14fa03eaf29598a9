//! How far a clock on another machine is from ours.
//!
//! The answer to a ping was written somewhere between sending and receiving: the middle is off by half of the round
//! trip at most, so the shortest round trip says most. (Cristian's algorithm, 1989.)

use serde::{Deserialize, Serialize};

/// Two clocks of a machine at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReading {
    /// Monotonic, since some instant of the process.
    pub monotonic_ns: i64,
    /// Time of day, since 1970.
    pub wall_ns: i64,
}

/// A ping: our clocks before and after, the other's in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ping {
    /// Ours when it was sent.
    pub sent: ClockReading,
    /// What the other said.
    pub there: ClockReading,
    /// Ours when the answer arrived.
    pub received: ClockReading,
}

/// How far another's clocks are ahead of ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offsets {
    /// The monotonic clock, with an arbitrary start.
    pub monotonic_ns: i64,
    /// The time of day.
    pub wall_ns: i64,
    /// Both are off by no more than this. 0 <= bound
    pub bound_ns: u64,
}

/// What the ping with the shortest round trip says; `None` when there is none.
pub fn best(pings: &[Ping]) -> Option<Offsets> {
    let round_trip = |ping: &Ping| ping.received.monotonic_ns - ping.sent.monotonic_ns;
    let ping = pings.iter().filter(|ping| round_trip(ping) >= 0).min_by_key(|ping| round_trip(ping))?;
    let half = round_trip(ping) / 2;
    Some(Offsets {
        monotonic_ns: ping.there.monotonic_ns - (ping.sent.monotonic_ns + half),
        // Our time of day may be set in between; the monotonic clock is not.
        wall_ns: ping.there.wall_ns - (ping.sent.wall_ns + half),
        bound_ns: (round_trip(ping) - half).unsigned_abs(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_is_within_its_bound_whichever_way_the_delay_lies() {
        let (true_offset, wall) = (7_000_000, 3_000_000_000);
        // Delays there and back; their difference is what nobody can know.
        let pings: Vec<Ping> = [(900, 10), (10, 900), (200, 250), (5000, 5)]
            .iter()
            .map(|(there, back)| {
                let at = |ns: i64| ClockReading { monotonic_ns: ns, wall_ns: ns + 50 };
                let arrives = 1000 + there;
                Ping {
                    sent: at(1000),
                    there: ClockReading { monotonic_ns: arrives + true_offset, wall_ns: arrives + 50 + wall },
                    received: at(arrives + back),
                }
            })
            .collect();
        for ping in &pings {
            let found = best(&[*ping]).unwrap();
            assert!((found.monotonic_ns - true_offset).unsigned_abs() <= found.bound_ns, "{found:?}");
            assert!((found.wall_ns - wall).unsigned_abs() <= found.bound_ns, "{found:?}");
        }
        // The shortest round trip is the best bound.
        assert_eq!(best(&pings).unwrap().bound_ns, 225);
        assert_eq!(best(&[]), None);
    }
}
