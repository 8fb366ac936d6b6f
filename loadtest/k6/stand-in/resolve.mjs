// Sends the imports of k6's own modules to the stand-in. What shares the environment is loaded anew with it.

const MODULES = { k6: "./k6.mjs", "k6/http": "./http.mjs", "k6/metrics": "./metrics.mjs" };

export async function resolve(specifier, context, next) {
  const ours = MODULES[specifier];
  if (ours) return { url: new URL(ours, import.meta.url).href, shortCircuit: true };
  const resolved = await next(specifier, context);
  const query = context.parentURL ? new URL(context.parentURL).search : "";
  if (specifier === "./gateway.js") resolved.url += query;
  return resolved;
}
