"""A model folder that vLLM serves with random weights: two layers, the tokenizer and template of the recordings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tokenizers import decoders

from support.tiny_model import SPECIAL, tokenizer

if TYPE_CHECKING:
    from pathlib import Path

LONGEST = 4096
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
    "{% if m['content'] is string %}{{ m['content'] }}"
    "{% else %}{% for part in m['content'] %}{{ part['text'] }}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def build(folder: Path) -> Path:
    """Writes the folder; `--load-format dummy` makes the weights."""
    folder.mkdir(parents=True, exist_ok=True)
    words = tokenizer()
    words.decoder = decoders.ByteLevel()
    words.save(str(folder / "tokenizer.json"))
    pad, bos, eos = SPECIAL[:3]
    ids = {
        "pad_token_id": words.token_to_id(pad),
        "bos_token_id": words.token_to_id(bos),
        "eos_token_id": words.token_to_id(eos),
    }
    names = {"pad_token": pad, "bos_token": bos, "eos_token": eos}
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 32,
        "max_position_embeddings": LONGEST,
        "vocab_size": -(-words.get_vocab_size() // 64) * 64,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        "initializer_range": 0.02,
        **ids,
    }
    tokenizing = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": LONGEST,
        "clean_up_tokenization_spaces": False,
        "chat_template": TEMPLATE,
        **names,
    }
    for name, content in (
        ("config.json", config),
        ("generation_config.json", ids),
        ("tokenizer_config.json", tokenizing),
        ("special_tokens_map.json", names),
    ):
        (folder / name).write_text(json.dumps(content, indent=1), "utf-8")
    (folder / "chat_template.jinja").write_text(TEMPLATE, "utf-8")
    return folder
