"""The domain as frozen types. It imports nothing of Paceline; every other package but `kube` builds on it."""

from paceline.core.algorithms import ALGORITHMS, SHAPES, SPECULATORS, WITH_A_HEAD
from paceline.core.arm import BASELINE, Arm
from paceline.core.gateway import EndpointPicker, Gateway
from paceline.core.model_facts import ModelFacts
from paceline.core.outputs import Answers, Parity
from paceline.core.server import TOPOLOGY_LABEL, Accelerator, Cache, Engine, SecretKey, Server
from paceline.core.slo import Slo
from paceline.core.source import HUB, Scheme, Source
from paceline.core.spec import (
    CapacityPolicy,
    ClaimTemplate,
    DeploymentSpec,
    GuardAction,
    GuardSource,
    GuardSpec,
    Measured,
    PoolSpec,
    PromotionMode,
    PromotionSpec,
    Purpose,
    RunSpec,
    Surge,
    Trigger,
    UntilDecided,
)
from paceline.core.timeouts import Timeouts
from paceline.core.tree import CUSTOM, Adaptive, Custom, Depth, Draft, Model, Ngram, Range, Search, Tree
from paceline.core.verdict import (
    ArmOutcome,
    ArmVerdict,
    Bounds,
    Gate,
    Limit,
    Measurement,
    Outcome,
    Verdict,
    default_looks,
)
from paceline.core.workload import WAVES, Arrivals, Dataset, Workload

__all__ = [
    "ALGORITHMS",
    "BASELINE",
    "CUSTOM",
    "HUB",
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
    "EndpointPicker",
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
    "PoolSpec",
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
    "Workload",
    "default_looks",
]
