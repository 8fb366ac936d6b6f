//! Every label, annotation, finalizer and ConfigMap key that FlexInfer reads or writes.

/// Node label: the GPU's vendor, `NVIDIA` or `AMD`.
pub const GPU_VENDOR: &str = "flexinfer.ai/gpu.vendor";
/// Node label: the GPU's architecture, such as `sm_89` or `gfx1100`.
pub const GPU_ARCHITECTURE: &str = "flexinfer.ai/gpu.arch";
/// Node label: the GPU's architecture, as older agents wrote it.
pub const GPU_ARCHITECTURE_OLDER: &str = "flexinfer.ai/gpu-arch";
/// Node label: the memory of one GPU, such as `24Gi`.
pub const GPU_VRAM: &str = "flexinfer.ai/gpu.vram";
/// Node label: how many GPUs the node has.
pub const GPU_COUNT: &str = "flexinfer.ai/gpu.count";
/// Node label: what the GPU is sold as, made to fit a label; the full text is an annotation of the same name.
pub const GPU_PRODUCT: &str = "flexinfer.ai/gpu.product";
/// Node label: whether the GPU computes in four-bit integers.
pub const GPU_INT4: &str = "flexinfer.ai/gpu.int4";
/// Node label: whether the processor has AVX-512.
pub const CPU_AVX512: &str = "flexinfer.ai/cpu.avx512";
/// Node label: `true` on nodes whose agent's metrics shall be scraped; an operator's `false` stays.
pub const ENABLED: &str = "flexinfer.ai/enabled";
/// Node annotation: percent of the GPUs in use, on average.
pub const GPU_UTILIZATION: &str = "flexinfer.ai/gpu.util";
/// Node annotation: free GPU memory in MB, over all GPUs.
pub const GPU_FREE_MEMORY: &str = "flexinfer.ai/gpu-free-memory";
/// Node annotation: free memory of each GPU device in MB, in the driver's order, separated by commas.
pub const GPU_FREE_MEMORY_EACH: &str = "flexinfer.ai/gpu-free-memory.each";
/// Node annotation: when the free memory was measured that the node tells, RFC 3339. It moves when the
/// memory does, and when a pod has become ready since: what that took is then in the measurement.
pub const GPU_MEASURED_AT: &str = "flexinfer.ai/gpu-measured-at";
/// Node annotation: `good`, or `attention: …`, `degraded: …` (some GPUs do not answer) or `unknown: …` (place
/// nothing new here) with the reason.
pub const GPU_HEALTH: &str = "flexinfer.ai/gpu-health";
/// Node annotation: the most GPUs that answered at one boot of the machine, as `8@<boot id>`.
pub const GPU_PROVEN: &str = "flexinfer.ai/gpu-proven";
/// Node annotation: the share of the key-value cache in use, 0 to 1.
pub const KV_CACHE_USAGE: &str = "flexinfer.ai/kv-cache-usage";
/// Node annotation, by an operator: what the node costs per hour.
pub const COST: &str = "flexinfer.ai/cost";
/// Node annotation and taint: the node is about to be taken away.
pub const SPOT_TERMINATING: &str = "flexinfer.ai/spot-terminating";
/// Node annotation: when the node will be taken away, RFC 3339.
pub const SPOT_TERMINATING_AT: &str = "flexinfer.ai/spot-terminating-at";
/// Node label, by an operator, for `nodeSelector`: `nvidia` or `amd`.
pub const NODE_GPU_VENDOR: &str = "node.flexstack.io/gpu-vendor";

/// Pod label and Service selector: the model's name.
pub const MODEL: &str = "flexinfer.ai/model";
/// Pod label: the backend.
pub const BACKEND: &str = "flexinfer.ai/backend";
/// Pod label: the ModelDeployment that the pod belongs to.
pub const DEPLOYMENT: &str = "modeldeployment_cr";
/// Pod annotation: the GPU memory that the model needs, in MiB per GPU.
pub const VRAM_ESTIMATE: &str = "flexinfer.ai/gpu.vram-estimate-mb";
/// Pod annotation: an engine whose node is about to be taken away; it serves until another does in its place, and is
/// counted no more among its Deployment's.
pub const SET_APART: &str = "flexinfer.ai/set-apart";
/// Label: the group that the model shares a GPU with.
pub const GPU_GROUP: &str = "flexinfer.ai/gpu-group";
/// Label: which part of FlexInfer an object belongs to.
pub const COMPONENT: &str = "flexinfer.ai/component";
/// Label: the cache that an object serves.
pub const CACHE: &str = "flexinfer.ai/cache";
/// Label: the format of quantized weights, such as `AWQ`; on a pod also as an annotation.
pub const FORMAT: &str = "flexinfer.ai/format";
/// Label: the FederatedModel that made an object.
pub const FEDERATED_MODEL: &str = "flexinfer.ai/federated-model";
/// Label: who manages an object; see [`MANAGED_BY_FLEXINFER`].
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The value of [`MANAGED_BY`] on our objects.
pub const MANAGED_BY_FLEXINFER: &str = "flexinfer";

/// Model annotation: how requests are spread over endpoints: `round-robin`, `least-loaded`,
/// `session-affinity` or `prefix`.
pub const ROUTING: &str = "flexinfer.ai/routing";
/// Model annotation: `context-bounded` refuses requests larger than the context window.
pub const ADMISSION: &str = "flexinfer.ai/admission";
/// Model annotation: the only path prefixes that the model serves, separated by commas.
pub const SERVE_PATHS: &str = "flexinfer.ai/serve-paths";
/// Model annotation: the PriorityClass of the model's pods.
pub const SERVING_PRIORITY_CLASS: &str = "flexinfer.ai/serving-priority-class";
/// Model annotation: `external` leaves the number of replicas to another autoscaler.
pub const AUTOSCALER: &str = "flexinfer.ai/autoscaler";
/// Model annotation: the most requests that wait for the model; 0 lets none queue.
pub const MAX_QUEUE: &str = "flexinfer.ai/max-queue";
/// Model annotation: `auto` has the model's speed measured where no result is there.
pub const BENCHMARK: &str = "flexinfer.ai/benchmark";
/// Model annotation, by an operator: changing it makes the controller look again.
pub const FORCE_RECONCILE: &str = "flexinfer.ai/force-reconcile";
/// Service annotation: the labels that a model serves, separated by commas.
pub const SERVICE_LABELS: &str = "flexinfer.ai/service-labels";
/// Service annotation: the labels that a member of a group serves now; it beats
/// [`SERVICE_LABELS`], and empty means none.
pub const ACTIVE_SERVICES: &str = "ai.flexinfer/active-services";

/// Annotation for a LiteLLM in front: the name that the model is offered by.
pub const LITELLM_SERVED_MODEL: &str = "litellm.flexinfer.ai/served-model";
/// Annotation for a LiteLLM in front: further names, separated by commas.
pub const LITELLM_ALIASES: &str = "litellm.flexinfer.ai/aliases";
/// Annotation for a LiteLLM in front: the name for editors' assistants.
pub const LITELLM_COPILOT_MODEL: &str = "litellm.flexinfer.ai/copilot-model";
/// Annotation for a LiteLLM in front: what the model can do, as JSON.
pub const LITELLM_CAPABILITIES: &str = "litellm.flexinfer.ai/capabilities";
/// Annotation for a LiteLLM in front: the context window in tokens.
pub const LITELLM_CONTEXT_WINDOW: &str = "litellm.flexinfer.ai/context-window";
/// Annotation for a LiteLLM in front: the most tokens of a prompt.
pub const LITELLM_MAX_INPUT_TOKENS: &str = "litellm.flexinfer.ai/max-input-tokens";
/// Annotation for a LiteLLM in front: the most tokens of an answer.
pub const LITELLM_MAX_OUTPUT_TOKENS: &str = "litellm.flexinfer.ai/max-output-tokens";

/// Annotation of an object that FlexInfer made: a hash of it as it was wanted; while it is the same, nothing
/// has to be applied.
pub const SPEC_HASH: &str = "flexinfer.ai/spec-hash";
/// Model annotation: the Secrets in the model's namespace that its images are pulled with, separated by
/// commas, beside those of the controller's settings.
pub const PULL_SECRETS: &str = "flexinfer.ai/image-pull-secrets";
/// Model annotation: the Secret in the model's namespace whose key `HF_TOKEN` opens gated repositories.
pub const HUB_TOKEN_SECRET: &str = "flexinfer.ai/hf-token-secret";
/// Job annotation: the source that the job fetches; a job of another source is replaced.
pub const JOB_SOURCE: &str = "flexinfer.ai/source";
/// Job annotation: a hash of what the job does, its image apart; a job of other work is replaced.
pub const JOB_WORK: &str = "flexinfer.ai/work";
/// ConfigMap label: a training job that holds a group's GPU.
pub const GPU_LEASE: &str = "ai.flexinfer/gpu-lease";

/// Finalizer of a Model.
pub const MODEL_FINALIZER: &str = "flexinfer.ai/model-cleanup";
/// Finalizer of a LoRAAdapter.
pub const LORA_FINALIZER: &str = "flexinfer.ai/lora-cleanup";
/// Finalizer of a ModelDeployment.
pub const DEPLOYMENT_FINALIZER: &str = "flexinfer.ai/cleanup";

/// The field manager of the controller's applies.
pub const FIELD_MANAGER: &str = "flexinfer-controller";

/// ConfigMap of measured speeds, unless `BENCHMARK_RESULTS_CONFIGMAP` names another.
pub const BENCHMARK_RESULTS: &str = "flexinfer-benchmark-results";
/// Begins the keys of measured speeds in [`BENCHMARK_RESULTS`].
pub const BENCHMARK_KEY_PREFIX: &str = "bench_";
/// Value of the label `app` of ConfigMaps with measured speeds.
pub const BENCHMARKS_APP: &str = "flexinfer-benchmarks";
