//! Talking to the cloud's metadata server.

use std::time::Duration;

use anyhow::Context as _;
use flexinfer_core::hardware::spot::{Answer, Cloud, Question, Reading, aws, azure, gcp};
use jiff::Timestamp;
use reqwest::Method;

/// How long an answer may take. The server is on the same host.
const LIMIT: Duration = Duration::from_secs(1);

/// The metadata server of whichever cloud this is.
pub(super) struct Server {
    client: reqwest::Client,
    url: String,
}

impl Server {
    pub(super) fn new(url: &str) -> anyhow::Result<Self> {
        // No proxy and no redirect: the answer of anybody else is no answer.
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(LIMIT)
            .build()
            .context("no HTTP client can be made")?;
        Ok(Self { client, url: url.trim_end_matches('/').to_owned() })
    }

    /// The answer; `None` if there was none.
    async fn ask(&self, question: &Question) -> Option<Answer> {
        let method = Method::from_bytes(question.method.as_bytes()).ok()?;
        let mut request = self.client.request(method, format!("{}{}", self.url, question.path));
        for (name, value) in &question.headers {
            request = request.header(*name, value);
        }
        let response = request.send().await.ok()?;
        let status = response.status().as_u16();
        let texts = response.headers().iter();
        let headers = texts.filter_map(|(name, value)| {
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        });
        let headers = headers.collect();
        Some(Answer { status, headers, body: response.text().await.ok()? })
    }

    /// The cloud whose server this is, by what only it answers.
    pub(super) async fn identify(&self) -> Option<Cloud> {
        if self.ask(&gcp::identity_question()).await.is_some_and(|answer| gcp::is_identity(&answer))
        {
            return Some(Cloud::Gcp);
        }
        if self
            .ask(&azure::identity_question())
            .await
            .is_some_and(|answer| azure::identity(&answer).is_some())
        {
            return Some(Cloud::Azure);
        }
        let token = self.token().await?;
        let identity = self.ask(&aws::identity_question(&token)).await?;
        aws::is_identity(&identity).then_some(Cloud::Aws)
    }

    async fn token(&self) -> Option<String> {
        aws::token(&self.ask(&aws::token_question()).await?).map(str::to_owned)
    }
}

/// Asks one cloud for notices, and keeps what it needs for that.
pub(super) struct Detector {
    cloud: Cloud,
    /// EC2's token and when it was got.
    token: Option<(String, Timestamp)>,
    /// The name by which Azure's events mean this machine.
    name: Option<String>,
}

impl Detector {
    pub(super) fn new(cloud: Cloud) -> Self {
        Self { cloud, token: None, name: None }
    }

    /// Asks once.
    pub(super) async fn look(&mut self, server: &Server, now: Timestamp) -> Reading {
        let reading = match self.cloud {
            Cloud::Gcp => {
                server.ask(&gcp::notice_question()).await.map(|answer| gcp::notice(&answer, now))
            }
            Cloud::Azure => self.azure(server, now).await,
            Cloud::Aws => match self.aws(server, now).await {
                // A token that is not taken any more is replaced at once.
                Some(Reading::TokenRefused) => self.aws(server, now).await,
                reading => reading,
            },
        };
        match reading {
            Some(Reading::TokenRefused) => {
                Reading::Unclear("the metadata server takes no token".to_owned())
            }
            Some(reading) => reading,
            None => Reading::Unclear("the metadata server does not answer".to_owned()),
        }
    }

    async fn azure(&mut self, server: &Server, now: Timestamp) -> Option<Reading> {
        let name = match self.name.take() {
            Some(name) => name,
            None => azure::identity(&server.ask(&azure::identity_question()).await?)?,
        };
        let answer = server.ask(&azure::notice_question()).await;
        let reading = answer.map(|answer| azure::notice(&answer, &name, now));
        self.name = Some(name);
        reading
    }

    async fn aws(&mut self, server: &Server, now: Timestamp) -> Option<Reading> {
        // Renewed in good time, so that no look falls between two tokens.
        let fresh = |got: Timestamp| now.duration_since(got).unsigned_abs() < aws::TOKEN_LIFE / 2;
        let (token, got) = match self.token.take() {
            Some((token, got)) if fresh(got) => (token, got),
            _ => (server.token().await?, now),
        };
        let reading = aws::notice(&server.ask(&aws::notice_question(&token)).await?, now);
        if reading != Reading::TokenRefused {
            self.token = Some((token, got));
        }
        Some(reading)
    }
}
