"""Writes a model in llama.cpp's format with the shape of a real one and random weights: a few hundred
kilobytes that a real engine loads and generates from. What it says is noise.

Usage: python tiny_gguf.py OUT.gguf (needs the package `gguf`)
"""

import sys

import gguf
import numpy

WIDTH, LAYERS, HEADS, INNER, CONTEXT = 64, 2, 4, 128, 2048

# Three control tokens, every byte, and a few words: what a tokenizer of this kind must have.
WORDS = [f"\u2581{word}" for word in "the a and of to in is it that was for on are with as".split()]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
TOKENS = ["<unk>", "<s>", "</s>", *BYTES, "\u2581", *WORDS]
KINDS = [
    gguf.TokenType.UNKNOWN,
    gguf.TokenType.CONTROL,
    gguf.TokenType.CONTROL,
    *[gguf.TokenType.BYTE] * len(BYTES),
    *[gguf.TokenType.NORMAL] * (1 + len(WORDS)),
]


def describe(writer):
    writer.add_name("tiny random model")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(TOKENS))
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(TOKENS)
    writer.add_token_scores([0.0] * len(TOKENS))
    writer.add_token_types(KINDS)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)


def tensors():
    dice = numpy.random.default_rng(7)

    def weights(rows, columns):
        return dice.normal(0, 0.05, (rows, columns)).astype(numpy.float32)

    ones = numpy.ones(WIDTH, numpy.float32)
    yield "token_embd.weight", weights(len(TOKENS), WIDTH)
    yield "output_norm.weight", ones
    yield "output.weight", weights(len(TOKENS), WIDTH)
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        yield f"{block}.attn_norm.weight", ones
        yield f"{block}.ffn_norm.weight", ones
        for part in ["attn_q", "attn_k", "attn_v", "attn_output"]:
            yield f"{block}.{part}.weight", weights(WIDTH, WIDTH)
        yield f"{block}.ffn_gate.weight", weights(INNER, WIDTH)
        yield f"{block}.ffn_up.weight", weights(INNER, WIDTH)
        yield f"{block}.ffn_down.weight", weights(WIDTH, INNER)


def main(path):
    writer = gguf.GGUFWriter(path, "llama")
    describe(writer)
    for name, weights in tensors():
        writer.add_tensor(name, weights)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


main(sys.argv[1])
