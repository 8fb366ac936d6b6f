//! Two models that share a GPU, a gateway before them, and a look-out that sees both at once.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use serde_json::json;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use crate::controller::{Desk, simulated};
use crate::gateway::{Gateway, start};
use crate::shared::{World, eventually};

/// The models, of which one may be up at a time.
pub(crate) const NAMES: [&str; 2] = ["a", "b"];

pub(crate) struct Pair {
    pub(crate) desk: Desk,
    pub(crate) gateway: Gateway,
    both: Arc<Mutex<Vec<String>>>,
    _lookout: AbortOnDropHandle<()>,
}

impl Pair {
    /// In a namespace of `world`. Nobody acts on them yet.
    pub(crate) async fn of(world: World) -> Self {
        let desk = Desk::of(world).await;
        for name in NAMES {
            let gpu = json!({ "vendor": "nvidia", "shared": "gpu0", "swapCooldown": "1s" });
            let patient = json!({ "coldStartTimeout": "4m" });
            let mut spec = simulated(&json!({ "gpu": gpu, "serverless": patient }));
            spec["config"]["args"] = json!(["--load-time=200ms", "--time-per-token=50ms"]);
            desk.apply(name, &spec).await;
        }
        let gateway =
            start(&desk.models, "one", desk.world().gateways_kubeconfig().await, &[]).await;
        for name in NAMES {
            gateway.knows(name).await;
        }
        let both = Arc::default();
        let pods: Api<Pod> = Api::namespaced(desk.world().client.clone(), &desk.world().namespace);
        let lookout = tokio::spawn(look_out(pods, Arc::clone(&both)));
        Self { desk, gateway, both, _lookout: AbortOnDropHandle::new(lookout) }
    }

    pub(crate) fn start_controller(&mut self, kubeconfig: &Path) {
        self.desk.start_controller_by(kubeconfig, &[]);
    }

    /// Asks a model and says what happened where that fails.
    pub(crate) async fn ask(&self, model: &str) {
        let answer = self.gateway.ask(model).await;
        assert_eq!(answer.status(), 200, "{model}: {}\n{}", answer.text(), self.desk.log());
    }

    /// Waits until `resident` is up and nothing is left of the other; they were never both there.
    pub(crate) async fn settled(&self, resident: &str, when: &str) {
        let other = NAMES.into_iter().find(|name| *name != resident).unwrap();
        eventually(&format!("{resident} alone, {when}"), async || {
            let replicas = (self.desk.replicas(resident).await, self.desk.replicas(other).await);
            let alone = replicas == (Some(1), Some(0)) && self.desk.pods(other).await.is_empty();
            alone.then_some(())
        })
        .await;
        let both = self.both.lock().unwrap();
        assert!(both.is_empty(), "{when}, both had pods: {both:?}\n{}", self.desk.log());
    }
}

async fn look_out(pods: Api<Pod>, both: Arc<Mutex<Vec<String>>>) {
    loop {
        // While the API server is busy or away nothing can be seen.
        if let Ok(found) = pods.list(&ListParams::default()).await {
            let of = |model: &str| {
                let mut names = found.items.iter().filter(|pod| {
                    let labels = pod.metadata.labels.as_ref();
                    labels.and_then(|labels| labels.get("flexinfer.ai/model"))
                        == Some(&model.to_owned())
                });
                names.next().and_then(|pod| pod.metadata.name.clone())
            };
            if let (Some(one), Some(other)) = (of(NAMES[0]), of(NAMES[1])) {
                both.lock().unwrap().push(format!("{one} and {other}"));
            }
        }
        sleep(Duration::from_millis(30)).await;
    }
}
