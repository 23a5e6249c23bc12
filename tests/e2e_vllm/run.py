"""A real vLLM server, the sidecar beside it, and requests whose usage objects say what the sidecar must count.

usage: VLLM_VERSION=0.32.0 RUNS=full,chunked,preempt RECORD=1 python tests/e2e_vllm/run.py

Asserts step by step that the sidecar knows the release, believes its page wholly, and that its counters grew by what
the responses' usage objects sum to; where the engine is known to count otherwise (aborted streams, n > 1,
prompt_logprobs), that it does. RECORD=1 writes what it saw to `tests/pages`, RECORD=FOLDER elsewhere; a run that
differed is not recorded.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from e2e_vllm.client import Client
from e2e_vllm.environment import CACHE, ensure
from e2e_vllm.expect import RECOUNTED_BEFORE, expected, numbers
from e2e_vllm.processes import say, sidecar, vllm
from e2e_vllm.recording import PAGES, Recording
from e2e_vllm.steps import RUNS, Run, Step, shared_prefix
from e2e_vllm.watching import Sidecar, block_size, has_sides, settled

DEFAULT_VERSION = "0.32.0"


def main() -> int:
    """Runs what the environment names; 1 where a step differed."""
    version = os.environ.get("VLLM_VERSION") or DEFAULT_VERSION
    names = (os.environ.get("RUNS") or ",".join(RUNS)).split(",")
    unknown = [name for name in names if name not in RUNS]
    if unknown:
        say(f"RUNS: got {unknown[0]}, expected some of {', '.join(RUNS)}")
        return 2
    python = ensure(version)
    differences = sum(one_run(python, version, name, RUNS[name]) for name in names)
    say(f"{'all steps as the usage objects say' if not differences else f'{differences} differences'}")
    return 1 if differences else 0


def one_run(python: Path, version: str, name: str, run: Run) -> int:
    """One server and its script; the number of differences."""
    folder = CACHE / version / name
    folder.mkdir(parents=True, exist_ok=True)
    root = os.environ.get("RECORD", "")
    where = Path(root) if root not in {"", "1"} else PAGES
    recording = Recording(f"{version}{run.suffix}", shared_prefix if name == "full" else None, where)
    say(f"== {version} {name}: starting the server")
    began = time.monotonic()
    with vllm(python, folder, run.options) as port:
        client = Client(port)
        say(f"== {version} {name}: answers after {time.monotonic() - began:.0f} s, says it is {client.version()}")
        page = settled(client)
        recording.page("00_start", page)
        size = block_size(page)
        recording.known(client.version(), size)
        with sidecar(folder, f"http://127.0.0.1:{port}") as exporter:
            watched = Sidecar(exporter)
            found = 0
            for number, step in enumerate(run.steps(size), 1):
                if step.name == "prompt_logprobs" and not has_sides(page):
                    continue  # V0 on a CPU ends with an AssertionError
                found += one_step(client, watched, recording, f"{number:02}_{step.name}", step)
    if root and not found:
        say(f"== recorded {recording.write()}")
    return found


def one_step(client: Client, watched: Sidecar, recording: Recording, name: str, step: Step) -> int:
    """Sends a step's requests and holds the sidecar's increases to their usage; the number of differences."""
    began = time.monotonic()
    requests = client.together(step.sends) if step.at_once else [client.send(send) for send in step.sends]
    seconds = time.monotonic() - began
    page = settled(client)
    increases = watched.increases()
    recording.page(name, page)
    recording.step(name, step.note, seconds=seconds, requests=requests, increases=increases)
    wanted = expected(requests, recording.version)
    if not has_sides(page):
        wanted = wanted.without_sides()
    elif increases.get("preemptions") and numbers(recording.version) < RECOUNTED_BEFORE:
        wanted = wanted.recounted()
        increases["prompt_tokens"] += increases.get("excluded_prompt_tokens", 0)
    differences = [*wanted.differences(increases), *watched.doubts(recording.version)]
    shown = ", ".join(f"{measure} {increases.get(measure):g}" for measure in wanted.bounds if measure in increases)
    say(f"{name:28} {'ok ' if not differences else 'BAD'} {shown}")
    for exception in dict.fromkeys(wanted.exceptions):
        say(f"{'':32} asserted as an exception: {exception}")
    for difference in differences:
        say(f"{'':32} {difference}")
    return len(differences)


if __name__ == "__main__":
    sys.exit(main())
