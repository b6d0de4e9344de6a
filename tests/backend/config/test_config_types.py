from __future__ import annotations

import pytest
from pydantic import ValidationError

from backend.config import config_types as types
from backend.errors import GymError


def test_error_family_keeps_its_second_bases() -> None:
    missing = types.ConfigPathNotFoundError("gone", hint="look")
    assert isinstance(missing, FileNotFoundError)
    assert str(missing) == "gone\nhint: look"
    for name in [
        "MalformedConfigPathsError",
        "NoServerInstancesError",
        "ConfigMissingValuesError",
        "ConfigInterpolationError",
        "ServerRefNotFoundError",
        "InheritPathNotFoundError",
        "AlmostServerError",
        "AgentCompositionError",
        "UnsupportedAgentPairingError",
        "UnsupportedAgentOverrideError",
    ]:
        error = getattr(types, name)("x")
        assert isinstance(error, ValueError)
        assert isinstance(error, types.ConfigError)
        assert isinstance(error, GymError)
    for name in [
        "RegistryError",
        "ManifestError",
        "EnvironmentValidationError",
        "EnvironmentOnboardingError",
        "EnvironmentPublicationError",
        "ScaffoldError",
    ]:
        assert issubclass(getattr(types, name), types.ConfigError)


def test_references() -> None:
    assert types.ModelServerRef(type="responses_api_models", name="m", extra=1).name == "m"
    assert types.ResourcesServerRef.model_validate({"type": "resources_servers", "name": "r"}).type == "resources_servers"
    with pytest.raises(ValidationError):
        types.AgentServerRef(type="resources_servers", name="a")


def test_server_configs() -> None:
    config = types.BaseRunServerInstanceConfig(host="h", port="8000", entrypoint="app.py", name="n", domain="math")
    assert (config.port, config.num_workers, config.domain) == (8000, None, types.Domain.MATH)
    assert types.BaseRunServerConfig(host="h", port=1, entrypoint="app.py").domain is None


def test_aggregate_metrics() -> None:
    assert types.AggregateMetrics().model_dump() == {
        "group_level_metrics": [],
        "agent_metrics": {},
        "key_metrics": {},
        "perf_summary": None,
        "repeat_level_metrics": [],
    }
    assert types.AggregateMetricsRequest(verify_responses=[{"reward": 1.0}]).verify_responses == [{"reward": 1.0}]
    assert (types.ROLLOUT_PATH_PREFIX, types.TOKEN_CAPTURE_PATH_SEGMENT) == ("ng-rollout", "training-token-capture")
