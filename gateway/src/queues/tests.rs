//! The queues with real tasks and a platform that the test plays.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use flexinfer_core::activation::Report;
use flexinfer_core::effective::{Defaults, Effective};
use flexinfer_core::fleet::{Fleet, Served};
use flexinfer_core::ids::{InstanceId, ModelId};
use flexinfer_core::queueing::{Notice, Policy};
use flexinfer_crds::Model;
use flexinfer_crds::model::ModelSpec;
use futures::future::join_all;
use parking_lot::Mutex;
use rand::Rng;
use tokio::runtime::Handle;

use super::*;

/// Starts engines that are ready at once, and ends them at once.
#[derive(Default)]
struct Obedient {
    queues: Mutex<Option<Arc<Queues>>>,
    starts: Mutex<u32>,
}

impl Platform for Obedient {
    fn start(&self, instance: InstanceId, _: &ModelId) {
        *self.starts.lock() += 1;
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        self.report(Report::Ready { instance, address });
    }

    fn stop(&self, instance: InstanceId, _: &ModelId) {
        self.report(Report::Gone { instance });
    }

    fn tell(&self, _: &ModelId, _: &Notice) {}
}

impl Obedient {
    fn report(&self, report: Report) {
        if let Some(queues) = &*self.queues.lock() {
            queues.report(report);
        }
    }
}

fn model(name: &str, slots: Option<u32>) -> Served {
    let spec = ModelSpec { backend: "simulator".to_owned(), ..ModelSpec::default() };
    let effective = Effective {
        swap_cooldown: Duration::ZERO,
        slots,
        max_queue: Some(10_000),
        served_name: None,
        ..Effective::of(&Model::new(name, spec), 1, &Defaults::default()).unwrap()
    };
    Served::new(effective, "simulator", "", 0)
}

fn queues(models: Vec<Served>) -> (Arc<Queues>, Arc<Obedient>, Arc<Fleet>) {
    let platform = Arc::new(Obedient::default());
    let orders: Arc<dyn Platform> = Arc::clone(&platform) as _;
    let queues = Queues::new(Policy::default(), Budgets::default(), orders, Handle::current());
    *platform.queues.lock() = Some(Arc::clone(&queues));
    let fleet = Arc::new(Fleet::build(models).0);
    queues.configure(Arc::clone(&fleet));
    (queues, platform, fleet)
}

fn busy(queues: &Queues, served: &Served) -> (u32, usize) {
    let member = queues.member(&served.effective.id).expect("it is a member");
    (member.in_flight, member.waiting)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_waiters_of_one_cold_model_are_all_served_by_one_activation() {
    let (queues, platform, fleet) = queues(vec![model("a", Some(8))]);
    let served = fleet.resolve("a").expect("it exists");
    let served_all = join_all((0..1000).map(|_| {
        let booking = queues.book(Arc::clone(served), Wish::default());
        tokio::spawn(async move { drop(booking.await.expect("it is served")) })
    }))
    .await;
    assert!(served_all.into_iter().all(|served| served.is_ok()));
    assert_eq!(*platform.starts.lock(), 1);
    assert_eq!(busy(&queues, served), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queue_02_clients_that_leave_around_the_grant_leak_no_slot() {
    let (queues, _, fleet) = queues(vec![model("a", Some(2))]);
    let served = fleet.resolve("a").expect("it exists");
    for _ in 0..100 {
        let clients = (0..100).map(|_| {
            let booking = queues.book(Arc::clone(served), Wish::default());
            let patience = Duration::from_micros(rand::rng().random_range(0..2_000));
            tokio::spawn(async move {
                if let Ok(Ok(slot)) = tokio::time::timeout(patience, booking).await {
                    tokio::task::yield_now().await;
                    drop(slot);
                }
            })
        });
        for client in clients.collect::<Vec<_>>() {
            client.await.expect("no client panics");
        }
    }
    assert_eq!(busy(&queues, served), (0, 0));
    let (first, second) = (
        queues.book(Arc::clone(served), Wish::default()).await,
        queues.book(Arc::clone(served), Wish::default()).await,
    );
    assert!(first.is_ok() && second.is_ok(), "exactly two slots are free");
    let third = tokio::spawn(queues.book(Arc::clone(served), Wish::default()));
    while busy(&queues, served).1 == 0 {
        assert!(!third.is_finished(), "a third slot was free");
        tokio::task::yield_now().await;
    }
    third.abort();
}

#[tokio::test]
async fn a_removed_model_tells_its_waiters_and_its_group_goes() {
    let (queues, _, fleet) = queues(vec![model("a", Some(1))]);
    let served = fleet.resolve("a").expect("it exists");
    let held = queues.book(Arc::clone(served), Wish::default()).await.expect("it is served");
    let waiting = tokio::spawn(queues.book(Arc::clone(served), Wish::default()));
    while busy(&queues, served).1 == 0 {
        tokio::task::yield_now().await;
    }
    queues.configure(Arc::new(Fleet::default()));
    let rejection = waiting.await.expect("it does not panic").expect_err("its model is gone");
    assert_eq!(rejection.code(), "model_not_found");
    drop(held);
    while !queues.view().is_empty() {
        tokio::task::yield_now().await;
    }
}
