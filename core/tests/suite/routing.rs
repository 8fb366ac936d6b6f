//! Endpoints of different speed under load for minutes, in simulated time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use flexinfer_core::routing::{Key, Roster, Source, Strategy, Wish};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const ENDPOINTS: usize = 4;
/// The one that is three times slower.
const SLOW: usize = 2;
/// Requests that an endpoint works on at once; it queues the others itself.
const WORKERS: usize = 8;
const SECOND: Duration = Duration::from_secs(1);

#[derive(Default)]
struct Endpoint {
    busy: usize,
    /// When each of those that wait came.
    waiting: VecDeque<Duration>,
    longest: usize,
}

struct Simulation {
    roster: Roster<usize>,
    endpoints: [Endpoint; ENDPOINTS],
    /// When who is done with a request that came when.
    done: BinaryHeap<Reverse<(Duration, usize, Duration)>>,
    dice: StdRng,
    took: Vec<Duration>,
}

impl Simulation {
    fn new(strategy: Strategy) -> Self {
        let mut roster = Roster::new(strategy, None);
        roster.set_members(0..ENDPOINTS);
        (0..ENDPOINTS).for_each(|endpoint| roster.set_open(&endpoint, true));
        Self {
            roster,
            endpoints: Default::default(),
            done: BinaryHeap::new(),
            dice: StdRng::seed_from_u64(7),
            took: Vec::new(),
        }
    }

    /// A duration with this mean, as most come that have no memory.
    fn about(&mut self, mean: Duration) -> Duration {
        let share: f64 = self.dice.random_range(f64::EPSILON..1.0);
        mean.mul_f64(-share.ln())
    }

    fn begin(&mut self, now: Duration, endpoint: usize, came: Duration) {
        let mean = if endpoint == SLOW { 3 * SECOND } else { SECOND };
        let work = self.about(mean);
        self.endpoints[endpoint].busy += 1;
        self.done.push(Reverse((now + work, endpoint, came)));
    }

    fn arrive(&mut self, now: Duration) {
        let key = Key::new(Source::Canonical, &self.dice.random::<u64>().to_string());
        let wish = Wish { key: Some(key), ..Wish::default() };
        let endpoint = self.roster.book(&wish).expect("all are open");
        if self.endpoints[endpoint].busy < WORKERS {
            self.begin(now, endpoint, now);
        } else {
            let queue = &mut self.endpoints[endpoint];
            queue.waiting.push_back(now);
            queue.longest = queue.longest.max(queue.waiting.len());
        }
    }

    fn finish_until(&mut self, now: Duration) {
        while let Some(&Reverse((at, endpoint, came))) = self.done.peek()
            && at <= now
        {
            self.done.pop();
            self.took.push(at.saturating_sub(came));
            self.roster.finish(&endpoint);
            self.endpoints[endpoint].busy -= 1;
            if let Some(came) = self.endpoints[endpoint].waiting.pop_front() {
                self.begin(at, endpoint, came);
            }
        }
    }

    /// Five minutes of requests with prompts that are all different, at 80 % of what all endpoints can
    /// do together: the 99th percentile of the time they take, and the slow one's longest queue.
    fn run(mut self) -> (Duration, usize) {
        let workers = u32::try_from(WORKERS).expect("few");
        // In thirds of a request per second: three endpoints do three thirds per worker, one does one.
        let thirds = (3 * 3 + 1) * workers;
        let gap = 3 * SECOND * 100 / (thirds * 80);
        let mut now = Duration::ZERO;
        while now < 300 * SECOND {
            now += self.about(gap);
            self.finish_until(now);
            self.arrive(now);
        }
        self.finish_until(Duration::MAX);
        self.took.sort_unstable();
        (self.took[self.took.len() * 99 / 100], self.endpoints[SLOW].longest)
    }
}

#[test]
fn route_06_a_slow_endpoint_is_not_fed_more_than_it_can_do() {
    let (even, _) = Simulation::new(Strategy::LeastLoaded).run();
    let (keyed, queue) = Simulation::new(Strategy::Prefix).run();
    assert!(queue <= 3 * WORKERS, "{queue} waited for the slow one");
    let worst = even + even / 5;
    assert!(keyed <= worst, "99th percentile {keyed:?}, by load alone {even:?}");
}
