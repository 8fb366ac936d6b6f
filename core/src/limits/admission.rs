//! Refuses requests that cannot fit into their model's context window, for Models that ask for it by
//! the annotation `flexinfer.ai/admission: context-bounded`. An engine would say the same later, after
//! the model was woken for it.

use super::Demand;

/// How requests are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// How much of the window is kept free, in percent: what is measured is an estimate.
    pub safety_margin_percent: u32,
    /// The tokens of an answer that the request does not bound.
    pub default_max_tokens: u32,
}

/// By how much a request does not fit, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Excess {
    /// The most that a request may take: the window without the margin.
    pub tokens_budget: u64,
    /// What this one takes, prompt and answer.
    pub tokens_submitted: u64,
    /// The difference.
    pub tokens_over: u64,
    /// How long a prompt may be beside the answer that was asked for; 0 where the answer alone is
    /// too long.
    pub suggested_truncate_to: u64,
    /// The window.
    pub context_window: u64,
}

impl Admission {
    /// Whether `demand` fits into `window`.
    pub fn admit(self, demand: &Demand, window: u32) -> Result<(), Excess> {
        let window = u64::from(window);
        let kept = 100_u64.saturating_sub(u64::from(self.safety_margin_percent));
        let budget = window * kept / 100;
        // Every answer has the window to itself.
        let answer = demand.answer.unwrap_or(u64::from(self.default_max_tokens));
        let submitted = demand.prompt.saturating_add(answer);
        if submitted <= budget {
            return Ok(());
        }
        Err(Excess {
            tokens_budget: budget,
            tokens_submitted: submitted,
            tokens_over: submitted - budget,
            suggested_truncate_to: budget.saturating_sub(answer),
            context_window: window,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADMISSION: Admission = Admission { safety_margin_percent: 5, default_max_tokens: 256 };

    fn admit(prompt: u64, answer: Option<u64>) -> Result<(), Excess> {
        ADMISSION.admit(&Demand { prompt, answer, bounded: answer.is_some(), answers: 1 }, 1000)
    }

    #[test]
    fn prompt_and_answer_together_must_fit_below_the_margin() {
        assert_eq!(admit(694, None), Ok(()));
        assert_eq!(admit(850, Some(100)), Ok(()));
        let excess = admit(900, Some(100)).expect_err("too long");
        assert_eq!(
            excess,
            Excess {
                tokens_budget: 950,
                tokens_submitted: 1000,
                tokens_over: 50,
                suggested_truncate_to: 850,
                context_window: 1000
            }
        );
    }

    #[test]
    fn an_answer_that_is_too_long_alone_leaves_no_prompt() {
        assert_eq!(admit(1, Some(951)).expect_err("too long").suggested_truncate_to, 0);
        assert!(admit(u64::MAX, Some(u64::MAX)).is_err());
    }
}
