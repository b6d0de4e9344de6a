"""The calls of a rollout as chains in which each prompt begins with all tokens of the call before: what can be trained on.

`prefix_merging`: calls are linked to the parent that was verified when they were made; links that the tokens contradict are cut; of
calls with the same prompt below the same parent, those that nothing continues are lost retries and are set aside.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from backend.responses.base import REQUIRED_TOKEN_FIELDS
from backend.servers.token_id_capture.records import (
    ParentResolutionStatus,
    TokenEntry,
    compute_digest,
    cumulative_tokens,
    token_bearer,
)

PREFIX_MERGING = "prefix_merging"


@dataclass(frozen=True, slots=True)
class ChainLink:
    """One call of a chain; its entry holds the whole prompt."""

    entry: TokenEntry


@dataclass(slots=True)
class Chain:
    """Calls that continue each other, from a root on."""

    chain_id: str
    links: list[ChainLink] = field(default_factory=list)
    root_prompt: list[int] = field(default_factory=list)

    @property
    def generated_tokens(self) -> int:
        """How many tokens the model wrote in it."""
        return sum(len(link.entry.generation_token_ids) for link in self.links)

    def holds(self, call_id: str) -> bool:
        """Whether a call is part of it."""
        return any(link.entry.model_call_id == call_id for link in self.links)

    def validate(self) -> None:
        """Raises ValueError when a prompt does not begin with all tokens of the call before."""
        before: list[int] = []
        for link in self.links:
            if link.entry.prompt_token_ids[: len(before)] != before:
                raise ValueError(f"the prompt of call {link.entry.model_call_id} does not continue the call before it")
            before = cumulative_tokens(link.entry)


@dataclass(slots=True)
class BuildOutput:
    """The chains of a rollout, the one that is delivered, and what was set aside on the way."""

    chains: list[Chain] = field(default_factory=list)
    main: Chain | None = None
    entries: list[TokenEntry] = field(default_factory=list)
    """All calls, without doubles, with whole prompts."""
    roots: int = 0
    quarantined: list[str] = field(default_factory=list)
    unresolved_retries: list[str] = field(default_factory=list)
    """Equal calls of which none was continued: which of them counted is not known."""
    unresolved_parents: list[str] = field(default_factory=list)
    empty_generations: int = 0
    link_failures: Counter[str] = field(default_factory=Counter)

    @property
    def generated_tokens(self) -> int:
        """How many tokens the model wrote in all calls."""
        return sum(len(entry.generation_token_ids) for entry in self.entries)


def run_builder(entries: Sequence[TokenEntry], builder: str = PREFIX_MERGING, terminal_call_id: str | None = None) -> BuildOutput:
    """The chains by the rule `builder`; raises ValueError for one that does not exist."""
    if builder != PREFIX_MERGING:
        raise ValueError(f"no builder of chains is called {builder!r}; there is {PREFIX_MERGING!r}")
    return prefix_merging(entries, terminal_call_id)


def prefix_merging(entries: Sequence[TokenEntry], terminal_call_id: str | None = None) -> BuildOutput:
    """See the module. The delivered chain ends with `terminal_call_id`; without one it is that of the earliest root."""
    output = BuildOutput()
    output.entries = _whole_entries(entries, output)
    parents = _links(output)
    kept = _without_lost_retries(output, parents, terminal_call_id)
    children: defaultdict[str | None, list[TokenEntry]] = defaultdict(list)
    for entry in kept:
        children[parents[entry.model_call_id]].append(entry)
    output.roots = len(children[None])
    by_id = {entry.model_call_id: entry for entry in kept}
    for leaf in (entry for entry in kept if not children[entry.model_call_id]):
        output.chains.append(_chain_to(leaf, by_id, parents))
    output.main = _main_chain(output.chains, by_id, parents, terminal_call_id)
    return output


def project_chain_to_output_items(chain: Chain) -> list[dict[str, Any]]:
    """What the model said in a chain, as items; those with tokens carry their whole prompt, so that each continues the one before."""
    items: list[dict[str, Any]] = []
    for link in chain.links:
        entry = link.entry
        tokens: dict[str, Any] = {key: getattr(entry, key) for key in REQUIRED_TOKEN_FIELDS}
        if entry.routed_experts is not None:
            tokens["routed_experts"] = entry.routed_experts
        last = len(entry.output_items) - 1 if entry.token_item_index is None else entry.token_item_index
        items += [item | tokens if index == last else item for index, item in enumerate(entry.output_items)]
    return items


def project_main_chain_response(rollout_id: str, out: BuildOutput, model: str = "") -> dict[str, Any]:
    """The delivered chain as a response object."""
    chain = out.main or Chain("")
    return {
        "id": f"proj-{rollout_id}",
        "model": model,
        "object": "response",
        "output": project_chain_to_output_items(chain),
        "usage": {"input_tokens": len(chain.root_prompt), "output_tokens": chain.generated_tokens},
    }


def assert_prefix_contiguity(response: dict[str, Any]) -> None:
    """Raises ValueError when an item with tokens does not begin with all tokens of the one before."""
    before: list[int] = []
    for index, item in enumerate(response.get("output") or []):
        if token_bearer([item]) is None:
            continue
        if item["prompt_token_ids"][: len(before)] != before:
            raise ValueError(f"item {index} of the output does not continue the tokens before it")
        before = [*item["prompt_token_ids"], *item["generation_token_ids"]]


def _whole_entries(entries: Iterable[TokenEntry], output: BuildOutput) -> list[TokenEntry]:
    """Each call once, with its whole prompt, without those that generated nothing."""
    whole: dict[str, TokenEntry] = {}
    for entry in sorted(entries, key=lambda entry: entry.created_at):
        if entry.model_call_id in whole:
            continue
        if entry.prompt_is_delta:
            parent = whole.get(entry.parent_call_id or "")
            if parent is None:
                output.link_failures["delta_without_parent"] += 1
                output.unresolved_parents.append(entry.model_call_id)
                continue
            prompt = [*cumulative_tokens(parent), *entry.prompt_token_ids]
            entry = entry.model_copy(update={"prompt_token_ids": prompt, "prompt_is_delta": False})
        whole[entry.model_call_id] = entry
    output.empty_generations = sum(not entry.generation_token_ids for entry in whole.values())
    return [entry for entry in whole.values() if entry.generation_token_ids]


def _links(output: BuildOutput) -> dict[str, str | None]:
    """Call -> the call that it verifiably continues."""
    by_id = {entry.model_call_id: entry for entry in output.entries}
    parents: dict[str, str | None] = {}
    for entry in output.entries:
        parent = by_id.get(entry.parent_call_id or "")
        failure = None
        if entry.parent_resolution == ParentResolutionStatus.UNRESOLVED:
            failure = "parent_unresolved"
        elif entry.parent_call_id and parent is None:
            failure = "parent_missing"
        elif parent is not None and not _continues(entry, parent):
            failure = "prefix_mismatch"
        if failure:
            output.link_failures[failure] += 1
            output.unresolved_parents.append(entry.model_call_id)
        parents[entry.model_call_id] = parent.model_call_id if parent is not None and not failure else None
    return parents


def _continues(entry: TokenEntry, parent: TokenEntry) -> bool:
    tokens = cumulative_tokens(parent)
    return entry.prompt_token_ids[: len(tokens)] == tokens and parent.digest in (None, compute_digest(tokens))


def _without_lost_retries(output: BuildOutput, parents: dict[str, str | None], terminal_call_id: str | None) -> list[TokenEntry]:
    continued = {parent for parent in parents.values() if parent is not None} | {terminal_call_id}
    groups: defaultdict[tuple[str | None, tuple[int, ...]], list[TokenEntry]] = defaultdict(list)
    for entry in output.entries:
        groups[parents[entry.model_call_id], tuple(entry.prompt_token_ids)].append(entry)
    lost: set[str] = set()
    for group in groups.values():
        ends = [entry.model_call_id for entry in group if entry.model_call_id not in continued]
        if len(group) == 1 or not ends:
            continue
        if len(ends) == len(group):
            # Nothing tells which answer reached the caller; the last one is the likeliest.
            output.unresolved_retries += ends
            ends = ends[:-1]
        lost.update(ends)
    output.quarantined = sorted(lost)
    return [entry for entry in output.entries if entry.model_call_id not in lost]


def _chain_to(leaf: TokenEntry, by_id: dict[str, TokenEntry], parents: dict[str, str | None]) -> Chain:
    links = [ChainLink(leaf)]
    while (parent := parents[links[-1].entry.model_call_id]) is not None:
        links.append(ChainLink(by_id[parent]))
    links.reverse()
    return Chain(leaf.model_call_id, links, list(links[0].entry.prompt_token_ids))


def _main_chain(
    chains: list[Chain], by_id: dict[str, TokenEntry], parents: dict[str, str | None], terminal_call_id: str | None
) -> Chain | None:
    if terminal_call_id in by_id:
        return _chain_to(by_id[terminal_call_id], by_id, parents)
    if not chains:
        return None
    first_root = min((chain.links[0].entry for chain in chains), key=lambda entry: entry.created_at)
    candidates = [chain for chain in chains if chain.links[0].entry is first_root]
    return max(candidates, key=lambda chain: chain.links[-1].entry.created_at)
