"""The domain as frozen types. It imports nothing of Paceline; all other packages except `kube` build on it."""

from paceline.core.algorithms import ALGORITHMS, CUSTOM, SHAPES, SPECULATORS, WITH_A_HEAD
from paceline.core.arm import BASELINE, Arm, by_server, server_of
from paceline.core.gate import Gate, Limit, default_looks
from paceline.core.gateway import EndpointPickerReference, Gateway
from paceline.core.model_facts import ModelFacts
from paceline.core.outputs import Answers, Parity
from paceline.core.server import TOPOLOGY_LABEL, Accelerator, Cache, Engine, SecretKey, Server
from paceline.core.slo import Slo
from paceline.core.source import HUB, Scheme, Source
from paceline.core.spec import (
    MAIN,
    CapacityPolicy,
    ClaimTemplate,
    DeploymentSpec,
    GuardAction,
    GuardSource,
    GuardSpec,
    Measured,
    PoolSettings,
    PromotionMode,
    PromotionSpec,
    Purpose,
    RunSpec,
    Surge,
    Trigger,
    UntilDecided,
    purpose_of,
    source_run,
)
from paceline.core.timeouts import Timeouts
from paceline.core.tree import Adaptive, Custom, Depth, Draft, Model, Ngram, Range, Search, Tree, Widths
from paceline.core.verdict import ArmOutcome, ArmVerdict, Bounds, Measurement, Outcome, Verdict
from paceline.core.workload import WAVES, Arrivals, Dataset, Workload

__all__ = [
    "ALGORITHMS",
    "BASELINE",
    "CUSTOM",
    "HUB",
    "MAIN",
    "SHAPES",
    "SPECULATORS",
    "TOPOLOGY_LABEL",
    "WAVES",
    "WITH_A_HEAD",
    "Accelerator",
    "Adaptive",
    "Answers",
    "Arm",
    "ArmOutcome",
    "ArmVerdict",
    "Arrivals",
    "Bounds",
    "Cache",
    "CapacityPolicy",
    "ClaimTemplate",
    "Custom",
    "Dataset",
    "DeploymentSpec",
    "Depth",
    "Draft",
    "EndpointPickerReference",
    "Engine",
    "Gate",
    "Gateway",
    "GuardAction",
    "GuardSource",
    "GuardSpec",
    "Limit",
    "Measured",
    "Measurement",
    "Model",
    "ModelFacts",
    "Ngram",
    "Outcome",
    "Parity",
    "PoolSettings",
    "PromotionMode",
    "PromotionSpec",
    "Purpose",
    "Range",
    "RunSpec",
    "Scheme",
    "Search",
    "SecretKey",
    "Server",
    "Slo",
    "Source",
    "Surge",
    "Timeouts",
    "Tree",
    "Trigger",
    "UntilDecided",
    "Verdict",
    "Widths",
    "Workload",
    "by_server",
    "default_looks",
    "purpose_of",
    "server_of",
    "source_run",
]
