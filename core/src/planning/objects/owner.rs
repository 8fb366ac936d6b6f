//! Whose an object is that has the name of one of a model's.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Whether `there` is left of a deleted Model of the same name: the cluster removes it in a moment.
pub fn is_of_the_model_before(there: &ObjectMeta, wanted: &ObjectMeta) -> bool {
    let model = |meta: &ObjectMeta| {
        let mut owners = meta.owner_references.iter().flatten();
        let owner = owners.find(|owner| owner.controller == Some(true))?;
        Some((
            owner.uid.clone(),
            (owner.api_version.clone(), owner.kind.clone(), owner.name.clone()),
        ))
    };
    let (Some((its, there)), Some((ours, wanted))) = (model(there), model(wanted)) else {
        return false;
    };
    its != ours && there == wanted
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(kind: &str, name: &str, uid: &str) -> ObjectMeta {
        let owner = json!({ "apiVersion": "v1", "kind": kind, "name": name, "uid": uid, "controller": true });
        serde_json::from_value(json!({ "ownerReferences": [owner] })).unwrap()
    }

    #[test]
    fn only_what_a_model_of_the_same_name_left_is_that_of_the_model_before() {
        let wanted = of("Model", "m", "2");
        assert!(is_of_the_model_before(&of("Model", "m", "1"), &wanted));
        assert!(!is_of_the_model_before(&of("Model", "m", "2"), &wanted), "it is its own");
        assert!(!is_of_the_model_before(&of("Model", "n", "1"), &wanted));
        assert!(!is_of_the_model_before(&of("Other", "m", "1"), &wanted));
        assert!(!is_of_the_model_before(&ObjectMeta::default(), &wanted));
        assert!(!is_of_the_model_before(&of("Model", "m", "1"), &ObjectMeta::default()));
    }
}
