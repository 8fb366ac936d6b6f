//! The rights that the chart gives, and no others: programs that a test starts itself act by the chart's service
//! accounts too. And what is said where a right is missing.

use std::path::PathBuf;

use flexinfer_crds::model::Phase;
use flexinfer_e2e::Helm;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::rbac::v1::Role;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use crate::controller::{Desk, simulated};
use crate::crds::checkout;
use crate::gateway::Site;
use crate::shared::{World, eventually};

/// A program of the chart, as its objects are named.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Account {
    Controller,
    Gateway,
    Scheduler,
}

impl Account {
    const fn name(self) -> &'static str {
        match self {
            Self::Controller => "flexinfer-controller",
            Self::Gateway => "flexinfer-proxy",
            Self::Scheduler => "flexinfer-scheduler",
        }
    }

    /// Something that it may do, but a new account may not.
    const fn proof(self) -> (&'static str, &'static str) {
        match self {
            Self::Controller => ("node.k8s.io", "runtimeclasses"),
            Self::Gateway | Self::Scheduler => ("", "nodes"),
        }
    }

    /// Who it is in the world's namespace.
    pub(crate) fn user(self, world: &World) -> String {
        format!("system:serviceaccount:{}:{}", world.namespace, self.name())
    }
}

impl World {
    /// The same for gateways.
    pub(crate) async fn gateways_kubeconfig(&self) -> PathBuf {
        self.kubeconfig_of(Account::Gateway).await
    }

    /// A configuration by which a program has the rights that the chart gives it in this namespace.
    pub(crate) async fn kubeconfig_of(&self, account: Account) -> PathBuf {
        self.rights.get_or_init(async || grant(self).await).await;
        let (group, resource) = account.proof();
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let review: SubjectAccessReview = serde_json::from_value(json!({ "spec": {
            "user": account.user(self),
            "resourceAttributes": { "verb": "watch", "group": group, "resource": resource },
        } }))
        .unwrap();
        eventually("the API server knows of the rights", async || {
            let answer = reviews.create(&PostParams::default(), &review).await.unwrap();
            answer.status.unwrap().allowed.then_some(())
        })
        .await;
        self.cluster.kubeconfig_of(&self.namespace, account.name()).await.unwrap()
    }
}

/// Installs what the chart has of accounts and rights, and nothing else of it.
async fn grant(world: &World) {
    let home = tempfile::tempdir().unwrap();
    let chart = checkout().join("chart").display().to_string();
    let template = ["template", "flexinfer", &chart, "--namespace", &world.namespace];
    let settings = ["--set", "crds.install=false,scheduler.enabled=true"];
    let arguments = [&template[..], &settings].concat();
    let printed = Helm::alone(home.path()).run(&arguments).await.unwrap();
    assert!(printed.success, "{}", printed.stderr);
    let rights = |object: &&str| {
        let kind = object.lines().find_map(|line| line.strip_prefix("kind: "));
        kind.is_some_and(|kind| kind == "ServiceAccount" || kind.contains("Role"))
    };
    let objects: Vec<&str> = printed.stdout.split("\n---\n").filter(rights).collect();
    let apply = ["apply", "--filename", "-"];
    let applied = world.cluster.kubectl().run_with_input(&apply, &objects.join("\n---\n")).await;
    let applied = applied.unwrap();
    assert!(applied.success, "{}", applied.stderr);
}

/// Takes all rights on `resource` away that the chart gives a program in its namespace; `verb` is one of them.
async fn take_away(world: &World, account: Account, verb: &str, group: &str, resource: &str) {
    world.kubeconfig_of(account).await;
    let roles: Api<Role> = Api::namespaced(world.client.clone(), &world.namespace);
    let mut role = roles.get(account.name()).await.unwrap();
    for rule in role.rules.iter_mut().flatten() {
        rule.resources.iter_mut().flatten().filter(|named| *named == resource).for_each(|named| {
            "nothing".clone_into(named);
        });
    }
    roles.replace(account.name(), &PostParams::default(), &role).await.unwrap();
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let review = json!({ "spec": {
        "user": account.user(world),
        "resourceAttributes": {
            "namespace": world.namespace, "verb": verb, "group": group, "resource": resource,
            "subresource": subresource,
        },
    } });
    let reviews: Api<SubjectAccessReview> = Api::all(world.client.clone());
    let review = serde_json::from_value(review).unwrap();
    eventually("the right is gone", async || {
        let answer = reviews.create(&PostParams::default(), &review).await.unwrap();
        (!answer.status.unwrap().allowed).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_controller_says_which_right_to_read_it_lacks_and_goes_on_when_it_has_it() {
    let mut desk = Desk::without_controller().await;
    take_away(desk.world(), Account::Controller, "list", "", "pods").await;
    desk.start_controller(&[]);
    eventually("the right is named", async || {
        let log = desk.log();
        let lacking = log.lines().find(|line| line.contains("a right is missing"))?;
        assert!(lacking.contains("cannot list resource") && lacking.contains("pods"), "{lacking}");
        Some(())
    })
    .await;
    grant(desk.world()).await;
    desk.apply("m", &simulated(&json!({}))).await;
    desk.until_phase("m", Phase::Idle).await;
}

#[tokio::test]
async fn a_controller_says_which_right_to_write_it_lacks() {
    let mut desk = Desk::without_controller().await;
    take_away(desk.world(), Account::Controller, "patch", "apps", "deployments").await;
    // It may look, so that it comes as far as writing.
    let read = ["create", "role", "looks", "--verb=get,list,watch", "--resource=deployments"];
    desk.models.succeed(&read, "").await;
    let account = format!("{}:flexinfer-controller", desk.world().namespace);
    let bind = ["create", "rolebinding", "looks", "--role=looks", "--serviceaccount", &account];
    desk.models.succeed(&bind, "").await;
    desk.start_controller(&[]);
    desk.apply("m", &simulated(&json!({}))).await;
    eventually("the right is named", async || {
        let log = desk.log();
        let named = |line: &&str| line.contains("deployments.apps") && line.contains("forbidden");
        log.lines().find(named).map(|_| ())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_says_which_right_it_lacks_and_serves_all_the_same() {
    let site = Site::new().await;
    site.simulated("a").await;
    let (group, resource) = ("inference.flexinfer.ai", "models/status");
    take_away(&site.models.world, Account::Gateway, "patch", group, resource).await;
    let mut gateway = site.gateway("one").await;
    let asking = gateway.asking("a");
    let line = gateway.program.line("may not be written", crate::gateway::BOUND).await.unwrap();
    assert!(line.contains("models/status"), "{line}");
    let engine = site.engine(flexinfer_testkit::simulator::Settings::default()).await;
    site.list("a", &engine).await;
    assert_eq!(asking.await.unwrap().status(), 200);
}
