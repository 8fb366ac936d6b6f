//! Holds a request against the limits: is it well-formed, does it fit into its model, may it be sent
//! now. Only what passes all of it is charged; the charge goes with the request, and ends with it.

use bytes::Bytes;
use flexinfer_core::backends::Api;
use flexinfer_core::fleet::{Named, Served};
use flexinfer_core::limits::{
    Clamp, Clamped, Demand, Need, REQUEST_HEADERS, Standing, TOKEN_HEADERS, UsageEvents, figures,
    validate, with_usage,
};
use flexinfer_core::openai::apis::Operation;
use flexinfer_core::openai::facts::Key;
use flexinfer_core::openai::{Facts, Understood};
use flexinfer_core::rejection::Rejection;
use flexinfer_core::routing::stored_response;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::aside;
use crate::context::{Body, Context, Ruled, Stored, Target};
use crate::metrics::Outcome;
use crate::parts::Parts;
use crate::rules::Rules;

/// The headers that tell how a caller stands, ready to be put in.
static OF_REQUESTS: [HeaderName; 3] = ready(REQUEST_HEADERS);
static OF_TOKENS: [HeaderName; 3] = ready(TOKEN_HEADERS);

const fn ready([limit, left, reset]: [&'static str; 3]) -> [HeaderName; 3] {
    [HeaderName::from_static(limit), HeaderName::from_static(left), HeaderName::from_static(reset)]
}

/// Refuses what is over a limit already, before its body is read. Nothing is charged yet.
pub(crate) fn by_head(parts: &Parts, context: &Context, model: &Served) -> Result<(), Rejection> {
    let Some(accounts) = &parts.rules.accounts else { return Ok(()) };
    let id = &model.effective.id;
    let need = Need { model: id, caller: context.ruled.caller.as_deref(), tokens: 0 };
    accounts.check(&need).map_err(|limited| {
        let series = parts.metrics.model(model.name());
        series.rate_limited(limited.scope);
        series.finished(Outcome::RateLimited, context.started.elapsed(), None);
        limited.into()
    })
}

/// Whether a limit depends on what the body says, for what goes by a name.
pub(crate) fn depends(parts: &Parts, context: &Context, named: &Named) -> bool {
    let counted = context.ruled.caller.as_ref().is_some_and(|caller| caller.counts_tokens());
    let mut models = named.candidates().iter();
    counted
        || parts.rules.admission.is_some() && models.any(|model| model.effective.context_bounded)
}

/// Checks and charges a request whose model is known, and notes what has to change in its body.
pub(crate) async fn limit(
    parts: &Parts,
    context: &mut Context,
    operation: Option<&Operation>,
) -> Result<(), Rejection> {
    let Some(target) = &context.target else { return Ok(()) };
    let rules = &parts.rules;
    let api = operation.map(|operation| operation.api);
    context.answer.stored = recalled(parts, target, operation);
    let mut demand = Demand::UNKNOWN;
    if let Some(body) = &mut context.body {
        demand = hold(rules, target, api, body, &mut context.ruled).await?;
    }
    let Some(accounts) = &rules.accounts else { return Ok(()) };
    let wordless = context.answer.stored.is_some() || api.is_some_and(wordless);
    let answer = if wordless { 0 } else { rules.default_max_tokens };
    let need = Need {
        model: &target.served.effective.id,
        caller: context.ruled.caller.as_deref(),
        tokens: demand.total(u64::from(answer)),
    };
    match accounts.charge(&need) {
        Ok(charged) => {
            context.ruled.prompt_tokens = demand.prompt;
            context.ruled.reserved = need.tokens;
            let counted =
                context.ruled.caller.as_ref().is_some_and(|caller| caller.counts_tokens());
            let session = charged.is_some() && counted && api == Some(Api::Realtime);
            context.answer.session = session.then(Box::default);
            context.ruled.charged = charged;
            Ok(())
        }
        Err(limited) => {
            target.series.rate_limited(limited.scope);
            context.ruled.refused = Some(Outcome::RateLimited);
            Err(limited.into())
        }
    }
}

/// The stored response that a request is about, if it recalls one.
fn recalled(parts: &Parts, target: &Target, operation: Option<&Operation>) -> Option<Stored> {
    operation.filter(|operation| operation.recalls())?;
    let id = stored_response(&target.path)?;
    let here = parts.remembered.maker(&id).is_some_and(|maker| maker == target.served.effective.id);
    Some(if here { Stored::Recalled(id.into_owned()) } else { Stored::Foreign })
}

/// Holds a body against the rules, and says how many tokens it asks for if anything depends on it.
async fn hold(
    rules: &Rules,
    target: &Target,
    api: Option<Api>,
    body: &mut Body,
    ruled: &mut Ruled,
) -> Result<Demand, Rejection> {
    let counted = ruled.caller.as_ref().is_some_and(|caller| caller.counts_tokens());
    let bounded = rules.admission.is_some() && target.served.effective.context_bounded;
    let Understood::Json(facts) = &body.understood else {
        let unread = ruled.unread.take().filter(|_| counted || bounded);
        return unread.map_or(Ok(Demand::UNKNOWN), |rejection| Err(*rejection));
    };
    let reading = Reading {
        api,
        form: api.filter(|_| rules.validate),
        tokens: counted || bounded,
        cut: rules.clamp.zip(target.served.effective.context_window),
    };
    let (mut demand, clamped) = reading.of(facts, &body.received).await?;
    if bounded && let Err(rejection) = fits(rules, target, &demand) {
        ruled.refused = Some(Outcome::AdmissionRejected);
        return Err(rejection);
    }
    if let Some(clamped) = clamped {
        target.series.clamped();
        ruled.clamped = HeaderValue::try_from(clamped.to_string()).ok();
        demand.answer = demand.answer.map(|answer| answer.min(clamped.to));
        body.changes.extend(clamped.splices);
    }
    ruled.background = api == Some(Api::Responses) && in_background(facts, &body.received);
    if counted && matches!(api, Some(Api::Chat | Api::Completions)) {
        let asked = with_usage(facts, &body.received);
        ruled.usage_events = asked.is_some().then(UsageEvents::default);
        body.changes.extend(asked);
    }
    Ok(demand)
}

/// Whether the engine is asked to answer at once and to go on with it. Some take more than `true` for yes.
fn in_background(facts: &Facts, body: &[u8]) -> bool {
    facts.text(Key::Background, body).is_some_and(|asked| !matches!(asked, "false" | "null"))
}

/// What the whole body is gone through for.
#[derive(Clone, Copy)]
struct Reading {
    /// Which API is called, if it is known.
    api: Option<Api>,
    /// Whether it is what this API takes.
    form: Option<Api>,
    /// How many tokens it asks for.
    tokens: bool,
    /// What is to be cut down, to fit into a window.
    cut: Option<(Clamp, u32)>,
}

impl Reading {
    async fn of(self, facts: &Facts, body: &Bytes) -> Result<(Demand, Option<Clamped>), Rejection> {
        // Ollama's options may be nearly all of it.
        let cut = self.cut.is_some() && facts.span(Key::Options).is_some();
        if (self.form.is_some() || self.tokens || cut) && aside::is_long(body) {
            let (facts, body) = (facts.clone(), body.clone());
            return aside::read(move || self.read(&facts, &body)).await.flatten();
        }
        self.read(facts, body)
    }

    fn read(self, facts: &Facts, body: &[u8]) -> Result<(Demand, Option<Clamped>), Rejection> {
        if let Some(api) = self.form {
            well_formed(api, body)?;
        }
        let demand = if self.tokens { Demand::of(self.api, facts, body) } else { Demand::UNKNOWN };
        let clamped = self.cut.and_then(|(clamp, window)| clamp.apply(facts, body, window));
        Ok((demand, clamped))
    }
}

fn well_formed(api: Api, body: &[u8]) -> Result<(), Rejection> {
    let Ok(body) = std::str::from_utf8(body) else { return Ok(()) };
    validate(api, body).map_err(|invalid| Rejection::ValidationFailed {
        field: invalid.field,
        expected: invalid.expected,
        others: invalid.others,
    })
}

/// Whether the request fits into its model's context, where that is known.
fn fits(rules: &Rules, target: &Target, demand: &Demand) -> Result<(), Rejection> {
    let Some((admission, window)) = rules.admission.zip(target.served.effective.context_window)
    else {
        return Ok(());
    };
    let verdict = admission.admit(demand, window);
    target.series.admission(verdict.is_ok());
    verdict.map_err(|excess| Rejection::ContextExceeded {
        name: target.served.name().to_owned(),
        excess,
    })
}

/// Whether an API's answers have no tokens to be counted.
fn wordless(api: Api) -> bool {
    matches!(api, Api::Embeddings | Api::Rerank | Api::Score | Api::Moderations | Api::Tokenize)
}

/// Says in the fields of an answer how its caller stands.
pub(crate) fn tell(fields: &mut HeaderMap, standing: &Standing) {
    // At once, and not whenever the next of them finds no room.
    fields.reserve(OF_REQUESTS.len() + OF_TOKENS.len());
    for (names, stands) in [(&OF_REQUESTS, standing.requests), (&OF_TOKENS, standing.tokens)] {
        let Some(stands) = stands else { continue };
        for (name, figure) in names.iter().zip(figures(stands)) {
            // Digits and letters are always a value.
            if let Ok(figure) = HeaderValue::from_maybe_shared(figure) {
                fields.insert(name.clone(), figure);
            }
        }
    }
}

/// Whether the engine has agreed to speak something else than HTTP.
pub(crate) fn switched(context: &Context) -> bool {
    context.answer.status == Some(101)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::mpsc;

    use futures::poll;
    use tokio::runtime::Builder;
    use tokio::task::spawn_blocking;

    use super::*;

    /// A chat whose text has `length` bytes.
    fn chat(length: usize) -> (Facts, Bytes) {
        let text = "word ".repeat(length / 5);
        let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{text}"}}]}}"#);
        (Facts::read(body.as_bytes()).unwrap(), body.into())
    }

    /// The only thread for long bodies is busy: what waits for it is read there and nowhere else.
    #[test]
    fn a_long_body_is_held_against_the_rules_aside_and_a_short_one_at_once() {
        let runtime = Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
        runtime.block_on(async {
            let (free, busy) = mpsc::channel::<()>();
            let occupied = spawn_blocking(move || busy.recv());
            let api = Some(Api::Chat);
            let reading = Reading { api, form: api, tokens: true, cut: None };
            let ((facts, short), (many, long)) = (chat(1000), chat(30 << 20));
            let mut at_once = pin!(reading.of(&facts, &short));
            assert!(poll!(&mut at_once).is_ready());
            let mut aside = pin!(reading.of(&many, &long));
            assert!(poll!(&mut aside).is_pending());
            free.send(()).unwrap();
            assert_eq!(aside.await, Ok((Demand::of(api, &many, &long), None)));
            occupied.await.unwrap().unwrap();
            let nothing = Reading { api, form: None, tokens: false, cut: None };
            assert_eq!(pin!(nothing.of(&many, &long)).await, Ok((Demand::UNKNOWN, None)));
        });
    }
}
