//! The request is over for its engine: what it was charged is settled by what it took, as far as its answer told, or
//! given back. What goes on in the background is charged by whatever tells how far it has come: the answer to the
//! request that began it, or to one that asks for it later.

use flexinfer_core::limits::{Paid, Used};
use flexinfer_core::openai::UsageReader;

use super::limit;
use crate::context::{Context, Stored};
use crate::parts::Parts;

/// How a request ended for its engine.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The answer came to its end.
    Whole,
    /// It broke off, or its client left.
    Early,
    /// There was none but the gateway's own.
    Refused,
}

/// Settles what it was charged, once.
pub(crate) fn settle(parts: &Parts, context: &mut Context, ending: Ending) {
    let stored = context.answer.stored.take();
    let charged = context.ruled.charged.take();
    if stored.is_none() && charged.is_none() {
        return;
    }
    let failed = context.answer.status.is_some_and(|status| status >= 400);
    let used = if failed || ending == Ending::Refused {
        Used::Tokens(0)
    } else {
        used(parts, context, stored.as_ref(), took(context, ending))
    };
    if let Some(mut charged) = charged {
        charged.used(used);
    }
}

/// How many tokens it has taken, as far as the answer told or that can be seen.
fn took(context: &Context, ending: Ending) -> Option<u64> {
    if let Some(session) = context.answer.session.as_ref().filter(|_| limit::switched(context)) {
        return Some(session.tokens());
    }
    let usage = context.answer.usage.as_ref().map(UsageReader::usage);
    let told = usage.map(|usage| (usage.prompt_tokens, usage.completion_tokens));
    let (told_prompt, told_answer) = told.unwrap_or_default();
    let knows = told_prompt.is_some() || told_answer.is_some();
    // A piece of a stream is a token, or more.
    let came = context.answer.counted.map(|pieces| pieces.count());
    let answer = match (ending, came) {
        (Ending::Whole, _) if knows => Some(told_answer.unwrap_or_default()),
        // What it told on its way may be old: Anthropic's streams begin with a usage.
        (_, Some(came)) => Some(came.max(told_answer.unwrap_or_default())),
        (_, None) => knows.then(|| told_answer.unwrap_or_default()),
    };
    let prompt = told_prompt.unwrap_or(context.ruled.prompt_tokens);
    answer.map(|answer| prompt.saturating_add(answer))
}

/// What it is charged that `took` so many tokens.
fn used(parts: &Parts, context: &mut Context, stored: Option<&Stored>, took: Option<u64>) -> Used {
    let at_once = took.map_or(Used::Reserved, Used::Tokens);
    let so_far = took.unwrap_or_default();
    let before = match stored {
        Some(Stored::Made(id) | Stored::Recalled(id)) => parts.remembered.took(id, so_far),
        Some(Stored::Foreign) | None => None,
    };
    match stored {
        Some(Stored::Recalled(_) | Stored::Foreign) => {
            let more = before.filter(|before| so_far > before.tokens);
            if more.is_none() {
                // They were counted before.
                context.answer.usage = None;
            }
            more.map_or(Used::Tokens(0), |paid| Used::Beyond { took: so_far, paid })
        }
        Some(Stored::Made(_)) | None if context.ruled.background => {
            let reserved = Paid { reserved: context.ruled.reserved, tokens: 0 };
            Used::Beyond { took: so_far, paid: before.unwrap_or(reserved) }
        }
        Some(Stored::Made(_)) | None => at_once,
    }
}
