//! Which models a caller may use. What it may not use does not exist for it: the answer is the one for
//! a model that nobody has, and no list, suggestion or hint names it.

use std::sync::Arc;

use crate::fleet::{Fleet, Named, Served};
use crate::rejection::Rejection;

/// The models of one caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Allowed {
    /// Every model.
    #[default]
    All,
    /// Those whose name is one of these: `name`, `namespace/name`, or the beginning of one and a `*`.
    /// Names are those of Models and not of their aliases, so that an alias opens nothing.
    Named(Vec<Arc<str>>),
}

impl Allowed {
    /// Whether `model` may be used.
    pub fn includes(&self, model: &Served) -> bool {
        let id = &model.effective.id;
        match self {
            Self::All => true,
            Self::Named(names) => names.iter().any(|allowed| match allowed.strip_suffix('*') {
                Some(start) => {
                    id.name.starts_with(start)
                        || (start.contains('/') && id.to_string().starts_with(start))
                }
                None => {
                    **allowed == *id.name || (allowed.contains('/') && **allowed == *id.to_string())
                }
            }),
        }
    }

    /// What goes by `name`, for this caller: see [`Fleet::lookup`]. Of a label, only those models that
    /// are its.
    pub fn lookup(&self, fleet: &Fleet, name: &str) -> Result<Named, Rejection> {
        let found = fleet.lookup(name);
        if *self == Self::All {
            return found.cloned();
        }
        match found {
            Ok(named) => named
                .narrowed(|model| self.includes(model))
                .ok_or_else(|| unknown(name, Vec::new())),
            Err(Rejection::ModelParked { .. }) => Err(unknown(name, Vec::new())),
            Err(Rejection::ModelNotFound { nearest, .. }) => {
                Err(unknown(name, self.seen(fleet, nearest)))
            }
            Err(Rejection::ModelAmbiguous { name, candidates }) => {
                match self.seen(fleet, candidates) {
                    seen if seen.is_empty() => Err(unknown(&name, seen)),
                    candidates => Err(Rejection::ModelAmbiguous { name, candidates }),
                }
            }
            Err(other) => Err(other),
        }
    }

    /// Those of `names` that lead to a model of this caller's.
    fn seen(&self, fleet: &Fleet, names: Vec<String>) -> Vec<String> {
        let included = |model: &Arc<Served>| self.includes(model);
        let seen = |name: &String| {
            fleet.lookup(name).is_ok_and(|named| named.candidates().iter().any(included))
        };
        names.into_iter().filter(seen).collect()
    }

    /// `rejection` without the names of models that are not this caller's.
    pub fn discreet(&self, rejection: Rejection) -> Rejection {
        match (self, rejection) {
            (Self::Named(_), Rejection::ApiNotServed { name, path, .. }) => {
                Rejection::ApiNotServed { name, path, hint: None }
            }
            (_, other) => other,
        }
    }
}

fn unknown(name: &str, nearest: Vec<String>) -> Rejection {
    Rejection::ModelNotFound { name: name.to_owned(), nearest }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::tests::served;

    fn named(names: &[&str]) -> Allowed {
        Allowed::Named(names.iter().map(|name| Arc::from(*name)).collect())
    }

    fn fleet() -> Fleet {
        let mut parked = served("a", "parked", &[]);
        parked.effective.parked = true;
        let models = vec![
            served("a", "qwen-chat", &["gpt-4"]),
            served("a", "qwen-code", &[]),
            served("a", "both", &[]),
            served("b", "both", &[]),
            parked,
        ];
        Fleet::build(models).0
    }

    #[test]
    fn a_name_a_full_name_or_a_beginning_allows_a_model() {
        let model = served("a", "qwen-chat", &["gpt-4"]);
        for names in [["qwen-chat"], ["a/qwen-chat"], ["qwen*"], ["a/*"], ["*"]] {
            assert!(named(&names).includes(&model), "{names:?}");
        }
        for names in [["gpt-4"], ["qwen"], ["b/*"], ["Qwen-Chat"], [""]] {
            assert!(!named(&names).includes(&model), "{names:?}");
        }
    }

    fn resolved(allowed: &Allowed, fleet: &Fleet, name: &str) -> Result<String, Rejection> {
        let named = allowed.lookup(fleet, name)?;
        Ok(named.candidates().iter().map(|model| model.name()).collect::<Vec<_>>().join(","))
    }

    #[test]
    fn a_label_leads_a_caller_to_its_own_models() {
        let mut models = vec![served("a", "one", &[]), served("a", "two", &[])];
        for model in &mut models {
            model.effective.service_labels = vec!["any".into()];
        }
        let fleet = Fleet::build(models).0;
        assert_eq!(resolved(&Allowed::All, &fleet, "any"), Ok("one,two".into()));
        assert_eq!(resolved(&named(&["two"]), &fleet, "any"), Ok("two".into()));
        let unknown = Rejection::ModelNotFound { name: "any".into(), nearest: Vec::new() };
        assert_eq!(resolved(&named(&["three"]), &fleet, "any"), Err(unknown));
    }

    #[test]
    fn an_alias_opens_what_its_model_is_allowed_for_and_nothing_else() {
        let fleet = fleet();
        assert!(resolved(&named(&["qwen-chat"]), &fleet, "gpt-4").is_ok());
        assert!(resolved(&named(&["qwen-code"]), &fleet, "gpt-4").is_err());
    }

    #[test]
    fn what_is_not_allowed_is_answered_like_what_does_not_exist() {
        let fleet = fleet();
        let caller = named(&["qwen-code", "b/both"]);
        for name in ["qwen-chat", "parked", "a/both"] {
            let unknown = Rejection::ModelNotFound { name: name.into(), nearest: Vec::new() };
            assert_eq!(resolved(&caller, &fleet, name), Err(unknown));
        }
        let Err(Rejection::ModelNotFound { nearest, .. }) = resolved(&caller, &fleet, "qwen-cod")
        else {
            panic!("found");
        };
        assert_eq!(nearest, ["qwen-code", "a/qwen-code"]);
        let Err(Rejection::ModelAmbiguous { candidates, .. }) = resolved(&caller, &fleet, "both")
        else {
            panic!("not ambiguous");
        };
        assert_eq!(candidates, ["b/both"]);
    }

    #[test]
    fn no_hint_names_a_model_of_others() {
        let rejection = Rejection::ApiNotServed {
            name: "m".into(),
            path: "/v1/images/generations".into(),
            hint: Some("secret does".into()),
        };
        assert!(named(&["m"]).discreet(rejection.clone()).message().find("secret").is_none());
        assert_eq!(Allowed::All.discreet(rejection.clone()), rejection);
    }
}
