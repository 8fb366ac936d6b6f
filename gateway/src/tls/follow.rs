//! The certificate that counts now, replaced whenever its files hold a better one.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use rustls::ServerConfig;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};
use tokio_rustls::TlsAcceptor;
use tracing::{error, info, warn};

use super::pair::{Pair, understand};
use super::{TlsError, TlsFiles};
use crate::followed::Followed;
use crate::metrics::Metrics;

/// How long before its end a certificate is warned of.
const WARNED_BEFORE: Duration = Duration::from_secs(14 * 24 * 3600);
/// How often.
const BETWEEN_WARNINGS: Duration = Duration::from_secs(24 * 3600);

/// What connections are secured with.
pub struct Certificates {
    config: Arc<ArcSwap<ServerConfig>>,
    following: JoinHandle<()>,
}

impl Drop for Certificates {
    fn drop(&mut self) {
        self.following.abort();
    }
}

impl Certificates {
    /// The pair in `files`, followed until this is dropped. Must be called in a tokio runtime.
    pub fn follow(files: &TlsFiles, metrics: &Arc<Metrics>) -> Result<Arc<Self>, TlsError> {
        let followed = Followed::open([files.certificate.clone(), files.key.clone()])?;
        let [certificate, key] = followed.contents();
        let first = understand(certificate, key)?;
        let config = Arc::new(ArcSwap::new(Arc::clone(&first.config)));
        let mut shown = Shown {
            config: Arc::clone(&config),
            metrics: Arc::clone(metrics),
            expires: first.expires,
        };
        shown.take(first);
        Ok(Arc::new(Self { config, following: tokio::spawn(shown.follow(followed)) }))
    }

    /// Secures one connection as the files say now.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.config.load_full())
    }
}

/// The pair that clients are shown.
struct Shown {
    config: Arc<ArcSwap<ServerConfig>>,
    metrics: Arc<Metrics>,
    expires: Timestamp,
}

impl Shown {
    async fn follow(mut self, mut followed: Followed<2>) {
        let mut looks = interval(BETWEEN_WARNINGS);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let changed = tokio::select! {
                changed = followed.changed() => changed,
                _ = looks.tick() => {
                    self.warn();
                    continue;
                }
            };
            if let Err(error) = changed {
                let why = error.source.to_string();
                warn!(path = %error.path.display(), error = %why, "a file of the TLS certificate cannot be read; the certificate stays as it was");
                continue;
            }
            let [certificate, key] = followed.contents();
            match understand(certificate, key) {
                Ok(pair) => {
                    self.take(pair);
                    self.metrics.tls_certificate_reloaded(true);
                    info!(expires = %self.expires, "the TLS certificate has changed");
                    self.warn();
                }
                Err(fault) => {
                    self.metrics.tls_certificate_reloaded(false);
                    let fault = anyhow::Error::new(fault);
                    warn!(
                        "the new TLS certificate does not count and the old one stays: {fault:#}"
                    );
                }
            }
        }
    }

    fn take(&mut self, pair: Pair) {
        self.expires = pair.expires;
        self.metrics.tls_certificate_expires(pair.expires.as_second());
        self.config.store(pair.config);
        if let Some(position) = pair.out_of_order {
            warn!(
                position,
                "a certificate of the TLS chain did not sign the one before it; some clients refuse such a chain"
            );
        }
    }

    fn warn(&self) {
        let (now, expires) = (Timestamp::now(), self.expires);
        if expires <= now {
            error!(%expires, "the TLS certificate has expired; clients refuse it");
        } else if expires.duration_since(now).unsigned_abs() < WARNED_BEFORE {
            warn!(%expires, "the TLS certificate expires soon; put a new one into its files");
        }
    }
}
