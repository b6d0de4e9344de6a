"""Our version, and the version of NeMo Gym whose behaviour this project follows (also importable as `nemo_gym.package_info`)."""

MAJOR = 0
MINOR = 6
PATCH = 0
PRE_RELEASE = ""
VERSION = (MAJOR, MINOR, PATCH, PRE_RELEASE)

__shortversion__ = "0.6.0"
__version__ = "0.6.0"
__package_name__ = "nemo_gym"

GYM_TUI_VERSION = "0.1.0"
"""Version of this project; a test compares it with pyproject.toml."""
