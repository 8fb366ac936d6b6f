"""Asks a model one thing through OpenAI's client: ask.py ADDRESS MODEL WORDS. Prints what the model says."""

import sys

from openai import OpenAI

address, model, words = sys.argv[1:]
client = OpenAI(base_url=f"http://{address}/v1", api_key="unused", timeout=100, max_retries=0)
answer = client.chat.completions.create(
    model=model, messages=[{"role": "user", "content": words}]
)
print(answer.choices[0].message.content)
