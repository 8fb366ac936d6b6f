//! A gateway on a port of its own, with models whose engines are whatever a test says.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use flexinfer_core::effective::{Defaults, Effective};
use flexinfer_core::fleet::{Fleet, Served};
use flexinfer_core::queueing::Policy;
use flexinfer_core::routing::Preferences;
use flexinfer_crds::Model;
use flexinfer_crds::model::ModelSpec;
use flexinfer_gateway::adapters::OnDemand;
use flexinfer_gateway::labels::Labels;
use flexinfer_gateway::lifecycle::Lifecycle;
use flexinfer_gateway::metrics::Metrics;
use flexinfer_gateway::parts::{Limits, Parts};
use flexinfer_gateway::proxy::Proxy;
use flexinfer_gateway::remembered::Remembered;
use flexinfer_gateway::replay::Budget;
use flexinfer_gateway::rules::Rules;
use flexinfer_gateway::secrets::Secrets;
use flexinfer_gateway::server::{self, Entrance, Running};
use flexinfer_gateway::tls::{Certificates, TlsFiles, Trust};
use flexinfer_telemetry::traces::Tracer;

use crate::desk::{Counter, Desk};

/// How long a state may take to come about on a slow machine.
pub(crate) const BOUND: Duration = Duration::from_secs(60);

/// The limits of a test's gateway, before the test changes some.
pub(crate) fn limits() -> Limits {
    Limits {
        max_body: 64 << 20,
        body_pause: BOUND,
        body_deadline: 4 * BOUND,
        connect: BOUND,
        first_byte: BOUND,
        silence: BOUND,
        // The tests' engines keep theirs for ever; a machine may be busy between two requests.
        pooled: 2 * BOUND,
        busy: BOUND,
        connections: 2,
        stale: BOUND,
    }
}

/// A model called `name` whose engine insists on `engine_name`, if that is given.
pub(crate) fn model(name: &str, engine_name: Option<&str>) -> Served {
    let spec = ModelSpec { backend: "vllm".to_owned(), ..ModelSpec::default() };
    let effective = Effective {
        slots: None,
        served_name: engine_name.map(str::to_owned),
        ..Effective::of(&Model::new(name, spec), 1, &Defaults::default()).unwrap()
    };
    Served::new(effective, "vllm", "HF://org/model", 1_700_000_000)
}

/// How a test's gateway is to be.
pub(crate) struct Terms {
    pub(crate) limits: Limits,
    pub(crate) budget: u64,
    pub(crate) rules: Rules,
    pub(crate) queue: Policy,
    pub(crate) tls: Option<TlsFiles>,
    /// How many threads serve plain HTTP/1.
    pub(crate) lanes: usize,
}

impl Default for Terms {
    fn default() -> Self {
        let patient = Policy { cold_start_timeout: 4 * BOUND, ..Policy::default() };
        let (limits, rules) = (limits(), Rules::default());
        Self { limits, budget: 1 << 30, rules, queue: patient, tls: None, lanes: 2 }
    }
}

/// One gateway and what it works with.
pub(crate) struct World {
    pub(crate) address: SocketAddr,
    pub(crate) desk: Arc<Desk>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) lifecycle: Arc<Lifecycle>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) gateway: Running,
}

impl World {
    /// A gateway for `models`, all of them on the engine at `engine`.
    pub(crate) fn new(engine: SocketAddr, models: Vec<Served>) -> Self {
        Self::with(engine, models, limits(), 1 << 30)
    }

    /// A gateway with rules, all of whose connections of plain HTTP/1 share one thread.
    pub(crate) fn on_one_lane(engine: SocketAddr, models: Vec<Served>, rules: Rules) -> Self {
        Self::serve(engine, Fleet::build(models).0, Terms { rules, lanes: 1, ..Terms::default() })
    }

    /// The same with other limits.
    pub(crate) fn with(
        engine: SocketAddr,
        models: Vec<Served>,
        limits: Limits,
        budget: u64,
    ) -> Self {
        Self::serve(engine, Fleet::build(models).0, Terms { limits, budget, ..Terms::default() })
    }

    /// A gateway with rules for who may send how much.
    pub(crate) fn ruled(engine: SocketAddr, models: Vec<Served>, rules: Rules) -> Self {
        Self::serve(engine, Fleet::build(models).0, Terms { rules, ..Terms::default() })
    }

    /// A gateway that speaks TLS.
    pub(crate) fn secured(engine: SocketAddr, models: Vec<Served>, files: &TlsFiles) -> Self {
        let tls = Some(files.clone());
        Self::serve(engine, Fleet::build(models).0, Terms { tls, ..Terms::default() })
    }

    /// A gateway that believes the certificates of engines that `authorities` have signed.
    pub(crate) fn trusting(engine: SocketAddr, models: Vec<Served>, authorities: &Path) -> Self {
        let secrets = Secrets::default().trusting(Trust::new(Some(authorities)).unwrap());
        let rules = Rules { secrets: Arc::new(secrets), ..Rules::default() };
        Self::ruled(engine, models, rules)
    }

    /// A gateway for a fleet with adapters in it.
    pub(crate) fn of_fleet(engine: SocketAddr, fleet: Fleet) -> Self {
        Self::serve(engine, fleet, Terms::default())
    }

    /// A gateway as `terms` say.
    pub(crate) fn serve(engine: SocketAddr, fleet: Fleet, terms: Terms) -> Self {
        let Terms { limits, budget, rules, queue, tls, lanes } = terms;
        let desk = Desk::new();
        for model in fleet.all() {
            desk.set_engine(model.name(), engine);
        }
        let budget = Budget::new(budget, limits.max_body);
        let lifecycle = Lifecycle::new();
        let metrics = Metrics::new().unwrap();
        let certificates = tls.map(|files| Certificates::follow(&files, &metrics).unwrap());
        metrics.know(fleet.listed().map(|model| model.name()));
        let awake = Arc::clone(&desk);
        let proxy = Proxy::new(Parts {
            fleet: Arc::new(ArcSwap::from_pointee(fleet)),
            dispatch: Arc::new(Counter(Arc::clone(&desk))),
            adapters: OnDemand::new("/models", Arc::clone(&rules.secrets)),
            rules,
            queue,
            routing: Preferences::default(),
            remembered: Remembered::default(),
            liveness: Arc::new(move |model| awake.liveness(model)),
            labels: Labels::default(),
            limits,
            budget: Arc::clone(&budget),
            lifecycle: Arc::clone(&lifecycle),
            metrics: Arc::clone(&metrics),
            tracer: Tracer::default(),
        });
        let listener = server::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        let entrance = Entrance { listener, certificates };
        let gateway = server::start(entrance, proxy, Arc::clone(&lifecycle), lanes).unwrap();
        Self { address: gateway.address, desk, budget, lifecycle, metrics, gateway }
    }

    /// Whether nothing is held for any request any more.
    pub(crate) fn at_rest(&self) -> bool {
        self.desk.held() == 0
            && self.desk.waiting() == 0
            && self.budget.held() == 0
            && self.lifecycle.in_flight() == 0
    }
}
