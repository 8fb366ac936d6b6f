#!/usr/bin/env bash
# The most chats of 2 KB a second that a gateway serves, at 1 and at 32 connections, by oha.
set -euo pipefail
url=${FLEXINFER_URL:-http://127.0.0.1:8080}
model=${MODEL:?set MODEL to a model that the gateway serves}
seconds=${SECONDS_EACH:-10}
key=()
[ -z "${API_KEY:-}" ] || key=(-H "authorization: Bearer $API_KEY")
command -v oha >/dev/null || { echo "oha is not installed: cargo install oha" >&2; exit 1; }

text=$(head -c 1900 < <(yes "the quick brown fox jumps over the lazy dog" | tr '\n' ' '))
body=$(printf '{"model":"%s","messages":[{"role":"user","content":"%s"}],"max_tokens":1}' "$model" "$text")
# Awake before anything is measured.
curl --fail --silent --show-error --output /dev/null "${key[@]}" -H 'content-type: application/json' \
    -d "$body" "$url/v1/chat/completions"
for connections in 1 32; do
    oha --no-tui -z "${seconds}s" -c "$connections" -m POST -T application/json "${key[@]}" -d "$body" \
        "$url/v1/chat/completions"
done
