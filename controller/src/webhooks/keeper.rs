//! Keeps the certificates: from what the cluster shows, one step after another until there is nothing to do. Every
//! controller keeps them, whoever leads, since every one is asked; of two who write at the same time one is refused and
//! goes on from what the other wrote.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use flexinfer_core::admission::certificates::{Step, Worth, step};
use futures::StreamExt as _;
use futures::stream::{BoxStream, select_all};
use k8s_openapi::ClusterResourceScope;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::watch_object;
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::sleep;

use super::edition::{Edition, EditionError};
use super::server::Shown;
use super::shelf::Shelf;
use super::trust::{Configuration, trusting, trusts};
use crate::pages::Health;

/// The first wait after a failure; it doubles with each.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// What there is to keep certificates for.
pub(super) struct Place {
    pub(super) namespace: String,
    /// The Service, and the Secret.
    pub(super) service: String,
    /// The two configurations.
    pub(super) configuration: String,
    pub(super) life: Duration,
}

/// What is known of an object.
enum Sight<K> {
    /// It was not looked for yet.
    Unknown,
    /// There is none.
    Missing,
    There(Box<K>),
}

impl<K> Sight<K> {
    fn of(found: Option<K>) -> Self {
        found.map_or(Self::Missing, |object| Self::There(Box::new(object)))
    }

    const fn known(&self) -> bool {
        !matches!(self, Self::Unknown)
    }

    fn there(&self) -> Option<&K> {
        match self {
            Self::There(object) => Some(object),
            Self::Unknown | Self::Missing => None,
        }
    }
}

/// What a watch says.
enum News {
    Secret(Sight<Secret>),
    Validating(Sight<ValidatingWebhookConfiguration>),
    Mutating(Sight<MutatingWebhookConfiguration>),
}

/// Why a step was not taken.
#[derive(Debug, thiserror::Error)]
enum StepError {
    #[error(transparent)]
    Edition(#[from] EditionError),
    #[error("cannot write {what}: {source}")]
    Write { what: String, source: kube::Error },
}

/// Who keeps the certificates.
pub(super) struct Keeper {
    client: Client,
    place: Place,
    shown: Arc<Shown>,
    health: Health,
    secret: Sight<Secret>,
    validating: Sight<ValidatingWebhookConfiguration>,
    mutating: Sight<MutatingWebhookConfiguration>,
    in_use: Option<Edition>,
    failures: u32,
}

impl Keeper {
    pub(super) fn new(client: Client, place: Place, shown: Arc<Shown>, health: Health) -> Self {
        Self {
            client,
            place,
            shown,
            health,
            secret: Sight::Unknown,
            validating: Sight::Unknown,
            mutating: Sight::Unknown,
            in_use: None,
            failures: 0,
        }
    }

    /// For ever.
    pub(super) async fn keep(mut self) {
        let mut news = self.news();
        loop {
            let wait = self.look_again();
            tokio::select! {
                Some(news) = news.next() => self.take(news),
                () = sleep(wait) => {}
            }
            if self.secret.known() && self.validating.known() && self.mutating.known() {
                self.look().await;
            }
        }
    }

    fn news(&self) -> BoxStream<'static, News> {
        let Place { namespace, service, configuration, .. } = &self.place;
        let secrets = Api::namespaced(self.client.clone(), namespace);
        let streams = [
            watched(secrets, service).map(News::Secret).boxed(),
            watched(Api::all(self.client.clone()), configuration).map(News::Validating).boxed(),
            watched(Api::all(self.client.clone()), configuration).map(News::Mutating).boxed(),
        ];
        select_all(streams).boxed()
    }

    fn take(&mut self, news: News) {
        let (kind, missing) = match &news {
            News::Secret(found) => ("Secret", found.there().is_none()),
            News::Validating(found) => ("ValidatingWebhookConfiguration", found.there().is_none()),
            News::Mutating(found) => ("MutatingWebhookConfiguration", found.there().is_none()),
        };
        if missing {
            let Place { service, configuration, .. } = &self.place;
            let name = if kind == "Secret" { service } else { configuration };
            tracing::warn!(
                kind,
                name,
                "the webhooks need an object that is not there; install it with the chart, or set ENABLE_WEBHOOKS=false"
            );
        }
        match news {
            News::Secret(found) => self.secret = found,
            News::Validating(found) => self.validating = found,
            News::Mutating(found) => self.mutating = found,
        }
    }

    /// How long nothing has to be done where nothing changes: certificates age.
    fn look_again(&self) -> Duration {
        if let Some(doublings) = self.failures.checked_sub(1) {
            let factor = 2_u32.checked_pow(doublings).unwrap_or(u32::MAX);
            return FIRST_WAIT.saturating_mul(factor).min(LONGEST_WAIT);
        }
        self.place.life / 60
    }

    /// Takes steps until none is left, or until one has to wait for what the cluster will show.
    async fn look(&mut self) {
        loop {
            match self.take_step().await {
                Ok(true) => self.failures = 0,
                Ok(false) => return self.failures = 0,
                Err(error) => {
                    self.failures = self.failures.saturating_add(1);
                    return tracing::warn!(%error, "the webhooks' certificates are not in order; once more later");
                }
            }
        }
    }

    /// Whether a step was taken after which there may be another.
    async fn take_step(&mut self) -> Result<bool, StepError> {
        let Some(secret) = self.secret.there() else { return Ok(false) };
        let shelf = Shelf::read(secret.data.as_ref());
        let (name, now) = (self.name(), SystemTime::now());
        let worth = |edition: &Edition| edition.worth(&name, self.place.life, now);
        let (present, follows) =
            (shelf.present.as_ref().map(worth), shelf.follows.as_ref().map(worth));
        let trusted = self.is_trusted(&shelf);
        let step = step(present, follows, trusted);
        if let Some(edition) = shelf.present.as_ref().filter(|_| present > Some(Worth::None)) {
            // What is shown already may be trusted where this is not yet.
            if trusted || self.in_use.is_none() {
                self.show(edition.clone())?;
            }
            self.health.set_trusted(trusted);
        }
        let new = || Edition::new(&name, self.place.life, now);
        let shelf = match step {
            Step::Rest => return Ok(false),
            Step::Trust => return self.tell_whom_to_trust(&shelf).await,
            Step::Begin => shelf.begun(new()?),
            Step::Prepare => shelf.prepared(new()?),
            Step::Promote => shelf.promoted(),
        };
        tracing::info!(?step, name, "the webhooks' certificates change");
        self.keep_in_secret(&shelf).await
    }

    /// The name by which the API server reaches the Service.
    fn name(&self) -> String {
        format!("{}.{}.svc", self.place.service, self.place.namespace)
    }

    fn is_trusted(&self, shelf: &Shelf) -> bool {
        let both = self.validating.there().zip(self.mutating.there());
        both.is_some_and(|(validating, mutating)| {
            trusts(validating, shelf) && trusts(mutating, shelf)
        })
    }

    fn show(&mut self, edition: Edition) -> Result<(), EditionError> {
        if self.in_use.as_ref() != Some(&edition) {
            self.shown.show(edition.certified()?);
            tracing::info!("the webhooks show another certificate");
            self.in_use = Some(edition);
        }
        Ok(())
    }

    async fn keep_in_secret(&mut self, shelf: &Shelf) -> Result<bool, StepError> {
        let Some(secret) = self.secret.there() else { return Ok(false) };
        let api = Api::namespaced(self.client.clone(), &self.place.namespace);
        let changed = Secret { data: Some(shelf.written()), ..secret.clone() };
        let written = replace(&api, &self.place.service, &changed).await?;
        let kept = written.is_some();
        if kept {
            self.secret = Sight::of(written);
        }
        Ok(kept)
    }

    async fn tell_whom_to_trust(&mut self, shelf: &Shelf) -> Result<bool, StepError> {
        let name = &self.place.configuration;
        let validating = tell(&self.client, name, &self.validating, shelf).await?;
        let mutating = tell(&self.client, name, &self.mutating, shelf).await?;
        let told = validating.is_some() || mutating.is_some();
        if validating.is_some() {
            self.validating = Sight::of(validating);
        }
        if mutating.is_some() {
            self.mutating = Sight::of(mutating);
        }
        Ok(told)
    }
}

/// Writes into a configuration whom to trust; `None` where that was not to be done, or somebody else wrote it.
async fn tell<C>(
    client: &Client,
    name: &str,
    seen: &Sight<C>,
    shelf: &Shelf,
) -> Result<Option<C>, StepError>
where
    C: Configuration
        + Resource<DynamicType = (), Scope = ClusterResourceScope>
        + Clone
        + DeserializeOwned
        + Serialize
        + Debug,
{
    match seen.there().filter(|configuration| !trusts(*configuration, shelf)) {
        Some(there) => {
            replace(&Api::all(client.clone()), name, &trusting(there.clone(), shelf)).await
        }
        None => Ok(None),
    }
}

/// What becomes of an object. A watch that cannot be had is told, and tried again.
fn watched<K>(api: Api<K>, name: &str) -> impl futures::Stream<Item = Sight<K>> + Send + use<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let told = |result: Result<Option<K>, _>| async {
        let told = |error: &kube::runtime::watcher::Error| {
            tracing::warn!(kind = %K::kind(&()), %error, "the webhooks cannot see an object that they need");
        };
        result.inspect_err(told).ok()
    };
    watch_object(api, name).default_backoff().filter_map(told).map(Sight::of)
}

/// Writes `object` where nobody else has since it was read; `None` where somebody has.
async fn replace<K>(api: &Api<K>, name: &str, object: &K) -> Result<Option<K>, StepError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Serialize + Debug,
{
    match api.replace(name, &PostParams::default(), object).await {
        Ok(written) => Ok(Some(written)),
        // It was changed, or is gone; the watch says what there is now.
        Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => Ok(None),
        Err(source) => Err(StepError::Write { what: format!("{} {name}", K::kind(&())), source }),
    }
}
