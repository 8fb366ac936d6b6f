//! From the adapters that the folder defines to those of the fleet, and of each model's engine.

use std::collections::HashMap;
use std::sync::Arc;

use flexinfer_core::fleet::Adapter;
use flexinfer_core::ids::ModelId;
use flexinfer_crds::LoRAAdapter;
use flexinfer_crds::lora_adapter::AdapterSourceType;

use super::ListedAdapter;
use super::models::now;

/// Adapters by the model that they are added to, each in the order of their names.
pub(super) type ByModel = HashMap<ModelId, Vec<Arc<LoRAAdapter>>>;

/// What has to be remembered of adapters.
#[derive(Default)]
pub(super) struct Adapters {
    created: HashMap<ModelId, u64>,
}

impl Adapters {
    /// Takes in what the folder says now.
    pub(super) fn take(
        &mut self,
        listed: Vec<ListedAdapter>,
        complaints: &mut Vec<String>,
    ) -> (Vec<Adapter>, ByModel) {
        let (mut fleet, mut by_model) = (Vec::new(), ByModel::new());
        for ListedAdapter { id, adapter, file, line } in listed {
            let spec = &adapter.spec;
            if spec.source.r#type == AdapterSourceType::Oci {
                complaints.push(format!(
                    "{}:{line}: spec.source.type: adapters of OCI registries are fetched on clusters only; \
                     write LocalPath or HuggingFace",
                    file.display()
                ));
                continue;
            }
            let base = ModelId::new(&id.namespace, &spec.model_ref);
            let created = *self.created.entry(id.clone()).or_insert_with(now);
            let name = spec.adapter_name.as_str().into();
            let on_demand = Adapter::on_demand(&adapter);
            fleet.push(Adapter { id, base: base.clone(), name, created, on_demand });
            by_model.entry(base).or_default().push(adapter);
        }
        (fleet, by_model)
    }
}
