"""Which test fuzzes which parser of what others say. A module that begins to parse must enter one of the two tables."""

import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import pytest

OPERATOR = Path(__file__).parents[3] / "operator" / "paceline"
PARSES = re.compile(
    r"json\.loads|yaml\.load|model_validate_json|zlib\.decompress|b85decode|b64decode|fromisoformat|csv\.reader"
)
"""How a text becomes objects and times."""
ENGINES, MESSAGES, MODELS, CLUSTER, COMMANDS, WIRE = (
    f"tests.unit.foreign.test_{name}" for name in ("engines", "messages", "models", "cluster", "commands", "wire")
)
FUZZED: Mapping[str, tuple[str, str]] = {
    "engines/probe.py": (ENGINES, "test_a_probe_reads_a_server_or_costs_its_arm"),
    "engines/sglang/probe.py": (ENGINES, "test_a_probe_reads_a_server_or_costs_its_arm"),
    "engines/sglang_jax/probe.py": (ENGINES, "test_a_probe_reads_a_server_or_costs_its_arm"),
    "engines/vllm/probe.py": (ENGINES, "test_a_probe_reads_a_server_or_costs_its_arm"),
    "engines/monitor.py": (ENGINES, "test_a_monitor_reads_a_page_or_says_why_not"),
    "engines/log_tail.py": (ENGINES, "test_the_line_that_tells_why_is_never_longer_than_asked"),
    "controller/prometheus.py": (ENGINES, "test_prometheus_answers_with_samples_or_is_not_believed"),
    "evidence/clocks.py": (ENGINES, "test_what_nvidia_smi_says_is_read_or_skipped"),
    "pods/round/parity.py": (ENGINES, "test_an_answer_is_compared_or_incomparable"),
    "evidence/result_log.py": (MESSAGES, "test_a_rounds_log_is_a_result_or_an_answer_error"),
    "evidence/round_plan.py": (MESSAGES, "test_a_rounds_plan_is_read_or_refused"),
    "fetching/result.py": (MESSAGES, "test_a_prefetch_has_ended_well_or_not"),
    "fetching/failure.py": (MESSAGES, "test_a_failed_prefetch_is_at_least_a_sentence"),
    "fetching/request.py": (MESSAGES, "test_a_prefetch_is_asked_or_refuses"),
    "pods/fetch/reading.py": (MODELS, "test_a_model_has_facts_or_is_refused"),
    "preflight/config.py": (MODELS, "test_a_value_of_another_type_counts_as_absent"),
    "pods/prompt_file.py": (MODELS, "test_a_file_of_prompts_is_read_or_refused"),
    "pods/prompt_table.py": (MODELS, "test_a_file_of_prompts_is_read_or_refused"),
    "pods/conversation.py": (MODELS, "test_a_file_of_prompts_is_read_or_refused"),
    "core/response_format.py": (MODELS, "test_a_response_format_is_a_problem_or_can_be_held_against_an_answer"),
    "core/source.py": (MODELS, "test_an_address_is_one_or_none"),
    "kube/reading.py": (CLUSTER, "test_an_answer_of_the_api_server_is_objects_or_broken"),
    "kube/names.py": (CLUSTER, "test_an_answer_of_the_api_server_is_objects_or_broken"),
    "kube/errors.py": (CLUSTER, "test_a_refusal_is_an_error_of_the_api_whatever_it_says"),
    "kube/transport.py": (CLUSTER, "test_a_refusal_is_an_error_of_the_api_whatever_it_says"),
    "core/record.py": (CLUSTER, "test_a_status_of_any_release_is_read"),
    "api/problems.py": (CLUSTER, "test_a_manifest_is_a_run_or_has_problems"),
    "api/convert.py": (CLUSTER, "test_a_manifest_is_a_run_or_has_problems"),
    "plan/deployment/fetch.py": (CLUSTER, "test_an_amount_of_a_claim_is_bytes_in_any_notation"),
    "cli/cluster.py": (CLUSTER, "test_a_kubeconfig_names_a_cluster_or_is_refused"),
    "cli/gate_case.py": (COMMANDS, "test_a_case_is_judged_or_refused"),
    "cli/report_source.py": (COMMANDS, "test_a_file_has_runs_or_is_refused"),
    "engines/vllm/importing.py": (COMMANDS, "test_a_speculative_config_is_a_candidate_or_a_question"),
    "measure/record.py": (COMMANDS, "test_a_file_has_runs_or_is_refused"),
    "report/read.py": (COMMANDS, "test_a_run_of_anybodys_is_a_page_or_refused"),
    "report/facts.py": (COMMANDS, "test_a_run_of_anybodys_is_a_page_or_refused"),
    "api/text.py": (COMMANDS, "test_a_manifest_has_problems_or_none"),
    "evidence/signature.py": (COMMANDS, "test_an_envelope_is_opened_or_refused"),
    "plan/run/statement.py": (COMMANDS, "test_a_statement_is_made_again_or_refused"),
    "plan/run/imported.py": ("tests.plan.test_forged", "test_what_is_forged_is_judged_or_refused"),
    "evidence/judge.py": ("tests.plan.test_odd_numbers", "test_a_server_says_what_cannot_be"),
    "pods/round/server.py": (
        "tests.unit.round.test_hostile_server",
        "test_a_bad_answer_costs_its_arm_and_not_the_round",
    ),
    "pods/fetch/volume.py": (
        "tests.unit.fetch.test_hostile",
        "test_a_bad_note_stops_nobodys_fetch_and_keeps_what_it_may_mean",
    ),
    "pods/fetch/hub.py": (WIRE, "test_a_hub_lists_files_or_is_refused"),
    "pods/round/answers.py": (WIRE, "test_a_stream_is_an_answer_or_an_error"),
}
"""Of foreign data: where it is parsed → the test that gives it anything. Those of other directories are examples, not
drawn."""
HELD_ELSEWHERE: Mapping[str, str] = {
    "api/pool.py": "what it parses has just been checked by core/response_format.py",
    "cli/live/wording.py": "times of a status, which the API server has checked",
    "controller/settings.py": "the chart's own object",
    "engines/arguments.py": "our own tables of flags",
    "engines/lora.py": "arguments of a spec (tests/unit/engines/test_lora.py)",
    "engines/rules.py": "arguments of a spec (tests/unit/engines)",
    "engines/sglang/custom.py": "arguments of a spec (tests/unit/engines/sglang)",
    "engines/vllm/rules.py": "arguments of a spec (tests/unit/engines/test_vllm_rules.py)",
    "engines/vllm/keys.py": "arguments of a spec (tests/unit/engines/test_vllm_rules.py)",
    "kube/store.py": "what it has packed itself, of objects that kube/reading.py has read",
    "measure/emulated.py": "config.json that the prefetch has read (tests/unit/measure/test_any_model.py)",
    "measure/prompts.py": "a ConfigMap in the question's own file (tests/unit/measure/test_prompts.py)",
    "plan/step.py": "times that the API server has checked, or our own",
    "pods/datasets/__init__.py": "our own prompts",
    "pods/fetch/bucket.py": "a text whose digest is the pinned commit (tests/unit/fetch/test_buckets.py)",
    "pods/round/contamination.py": "bodies of our own requests",
    "pods/round/client.py": "a load of our own process",
    "pods/round/load.py": "bodies of our own requests; the report of the client, our own process",
}
"""What parses, and is given nothing of strangers, or only what another has checked; and who."""


def test_every_parser_is_fuzzed_or_says_who_has_checked() -> None:
    parsing = {str(file.relative_to(OPERATOR)) for file in OPERATOR.rglob("*.py") if PARSES.search(file.read_text())}
    assert sorted(parsing - FUZZED.keys() - HELD_ELSEWHERE.keys()) == []
    assert sorted(name for name in (*FUZZED, *HELD_ELSEWHERE) if not (OPERATOR / name).exists()) == []
    assert sorted(HELD_ELSEWHERE.keys() - parsing) == []


@pytest.mark.parametrize(("module", "test"), sorted({*FUZZED.values()}), ids=lambda name: name.rpartition(".")[2])
def test_the_tests_of_the_table_are_there(module: str, test: str) -> None:
    assert callable(getattr(import_module(module), test))
