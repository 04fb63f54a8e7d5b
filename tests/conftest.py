"""For all tests: properties are tried on the same examples each time, and a slow machine is no failure."""

from hypothesis import HealthCheck, settings

settings.register_profile("paceline", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("paceline")
