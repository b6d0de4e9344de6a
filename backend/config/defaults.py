"""The keys that resolution fills in: hosts, ports, folders, versions. Only absent keys are filled, except the three outputs."""

from __future__ import annotations

import os
import platform
import socket
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from backend.config.errors import ConfigError
from backend.config.findings import Findings
from backend.config.instances import Inventory, ServerBlock, as_integer
from backend.config.interpolation import is_interpolation
from backend.config.nodes import Node, Origin, format_path, node_of
from backend.config.schema import (
    AGENTS,
    DEFAULT_HEAD_PORT,
    DEFAULT_HOST,
    DEFAULT_PORT_RANGE,
    SERVER_READINESS_TIMEOUT,
    TOKEN_ID_CAPTURE_KEYS,
)
from backend.errors import closest

_DEFAULT = Origin("default", "(default)")
_RANGE_KEYS = ("port_range_low", "port_range_high")
_FOLDERS = {"results_dir": "results", "cache_dir": "cache"}
_WILDCARD_HOSTS = ("0.0.0.0", "::", "")


def fill_server_defaults(root: Node, inventory: Inventory) -> None:
    """Host and port of every server, and the global verification switches of agents.

    A port that is not fixed is null: whoever starts the server lets the system choose one.
    """
    host = default_host(root)
    for server in inventory.servers:
        fields = server.node.value
        _fill(fields, "host", host)
        port = fields.get("port")
        if port is None:
            fields["port"] = node_of(None, _DEFAULT)
        else:
            port.value = as_integer(port.value) or None
        if server.kind == AGENTS:
            for key in ("skip_verification", "skip_verification_reward"):
                given = root.value.get(key)
                if given is not None and given.value is not None and key not in fields:
                    fields[key] = given.copy()


def fill_absent_globals(root: Node, cwd: Path) -> None:
    """The global keys that nobody set, in the order in which they are shown after what the user set; interpolations may name them."""
    low, high = DEFAULT_PORT_RANGE
    _fill(root.value, "use_absolute_ip", False)
    _fill(root.value, "port_range_low", low)
    _fill(root.value, "port_range_high", high)
    _fill_head_server(root)
    _put(root, "disallowed_ports", None)
    _fill(root.value, "allow_openai_version_skew", False)
    _put(root, "head_server_deps", _own_pins())
    _put(root, "python_version", platform.python_version())
    _fill(root.value, "skip_venv_if_present", False)
    _fill(root.value, "dry_run", False)
    _fill(root.value, "model_endpoint_readiness_timeout_seconds", 600)
    for key, folder in _FOLDERS.items():
        if key not in root.value or root.value[key].value is None:
            root.value[key] = node_of(str(cwd / folder), _DEFAULT)
    _fill(root.value, "uv_cache_dir", _uv_cache(root, cwd))
    _fill(root.value, "uv_venv_dir", str(cwd))


def settle_globals(root: Node, cwd: Path, findings: Findings) -> None:
    """Make the folders among the global keys absolute, and fill what may have come out of an interpolation."""
    for key in _FOLDERS:
        node = root.value[key]
        if isinstance(node.value, str) and node.value.strip():
            node.value = str(cwd / os.path.expanduser(node.value))
        else:
            findings.error(
                ConfigError(f"'{key}' must be the path of a folder", place=node.source.place(key), fix=f"++{key}={_FOLDERS[key]}")
            )
    if root.value["uv_cache_dir"].value is None:
        root.value["uv_cache_dir"] = node_of(_uv_cache(root, cwd), _DEFAULT)
    _fill_head_server(root)


def _uv_cache(root: Node, cwd: Path) -> str | None:
    """Below the cache folder; None while that is still to be evaluated."""
    cache = root.value["cache_dir"].value
    return str(cwd / os.path.expanduser(cache) / "uv") if isinstance(cache, str) and not is_interpolation(cache) else None


def check_globals(root: Node, inventory: Inventory, findings: Findings) -> None:
    """The global keys have usable values, and no two servers ask for one port; sets the output `disallowed_ports`."""
    low, high = (_number(root, key, findings) for key in _RANGE_KEYS)
    if low is not None and high is not None and low > high:
        findings.error(
            ConfigError(
                f"port_range_low ({low}) is above port_range_high ({high})",
                place=root.value["port_range_low"].source.place("port_range_low"),
                fix=f"++port_range_low={high} ++port_range_high={low}",
            )
        )
    skew = root.value["allow_openai_version_skew"]
    if not isinstance(skew.value, bool):
        findings.error(
            ConfigError(
                "'allow_openai_version_skew' must be true or false",
                place=skew.source.place("allow_openai_version_skew"),
                fix="++allow_openai_version_skew=true",
            )
        )
    for name in ("model_endpoint_readiness_timeout_seconds", SERVER_READINESS_TIMEOUT):
        timeout = root.value.get(name)
        if timeout is not None and (isinstance(timeout.value, bool) or not isinstance(timeout.value, int | float)):
            findings.error(
                ConfigError(f"'{name}' must be a number of seconds", place=timeout.source.place(name), fix=f"++{name}=600")
            )
    _check_token_capture(root, findings)
    _check_ports(root, inventory, findings)


def default_host(root: Node) -> str:
    """The host of servers that name none."""
    given = root.value.get("default_host")
    if given is not None and given.value:
        return str(given.value)
    absolute = root.value.get("use_absolute_ip")
    if absolute is not None and absolute.value is True:
        try:
            return socket.gethostbyname(socket.gethostname())
        except OSError:
            return DEFAULT_HOST
    return DEFAULT_HOST


def _fill_head_server(root: Node) -> None:
    head = root.value.get("head_server")
    if head is None or head.value is None:
        root.value["head_server"] = head = node_of({}, _DEFAULT)
    if isinstance(head.value, dict):
        _fill(head.value, "host", default_host(root))
        port = head.value.get("port")
        if port is None or port.value is None:
            head.value["port"] = node_of(DEFAULT_HEAD_PORT, _DEFAULT)


def _own_pins() -> list[str]:
    """Versions that a server's own environment must share with this one, of the packages that are here."""
    present = [(pin, package) for pin, package in (("ray[default]", "ray"), ("openai", "openai")) if find_spec(package)]
    if not present:
        return []
    from importlib import metadata  # 0.04 s to import, for packages that are seldom here

    pins = []
    for pin, package in present:
        with suppress(metadata.PackageNotFoundError):  # just a folder of that name
            pins.append(f"{pin}=={metadata.version(package)}")
    return pins


def _number(root: Node, key: str, findings: Findings) -> int | None:
    node = root.value[key]
    number = as_integer(node.value)
    if number is None or not 1 <= number <= 65535:
        default = dict(zip(_RANGE_KEYS, DEFAULT_PORT_RANGE, strict=True))[key]
        findings.error(ConfigError(f"'{key}' must be a port number", place=node.source.place(key), fix=f"++{key}={default}"))
        return None
    return number


def _check_token_capture(root: Node, findings: Findings) -> None:
    block = root.value.get("token_id_capture")
    if block is None or block.value is None:
        return
    if not isinstance(block.value, dict):
        findings.error(ConfigError("'token_id_capture' must be a mapping", place=block.source.place("token_id_capture")))
        return
    for key, node in block.value.items():
        if key not in TOKEN_ID_CAPTURE_KEYS:
            near = closest(str(key), TOKEN_ID_CAPTURE_KEYS)
            findings.error(
                ConfigError(
                    f"'{key}' is not a key of token_id_capture",
                    place=node.source.place(f"token_id_capture.{key}"),
                    nearest=near,
                    fix=f"{near}: {node.value}" if near and not isinstance(node.value, dict | list) else None,
                )
            )


def _check_ports(root: Node, inventory: Inventory, findings: Findings) -> None:
    head = root.value["head_server"]
    claims: list[tuple[str, str, int, Node]] = []
    if not isinstance(head.value, dict):
        findings.error(
            ConfigError(
                "'head_server' must be a mapping with host and port",
                place=head.source.place("head_server"),
                fix=f"head_server: {{host: {DEFAULT_HOST}, port: {DEFAULT_HEAD_PORT}}}",
            )
        )
    else:
        port = as_integer(head.value["port"].value)
        if port is None or not 0 <= port <= 65535:
            place = head.value["port"].source.place("head_server.port")
            fix = f"++head_server.port={DEFAULT_HEAD_PORT}"
            findings.error(ConfigError("'head_server.port' must be a port number", place=place, fix=fix))
        else:
            claims.append(("the head server", str(head.value["host"].value), port, head.value["port"]))
    for server in inventory.servers:
        node = server.node.value["port"]
        if node.value:
            claims.append((f"'{server.name}'", str(server.node.value["host"].value), node.value, node))
    for index, (name, host, port, node) in enumerate(claims):
        for earlier, other_host, other_port, other in claims[:index]:
            same_host = host == other_host or host in _WILDCARD_HOSTS or other_host in _WILDCARD_HOSTS
            if port and port == other_port and same_host:
                where = f" (set in {other.source})" if other.source.file else ""
                findings.error(
                    ConfigError(
                        f"{name} and {earlier}{where} both ask for port {port}",
                        place=node.source.place(_port_key(inventory, name)),
                        hint="give one of them another port, or none to have one chosen",
                        fix=f"++{_port_key(inventory, name)}=null",
                    )
                )
    _put(root, "disallowed_ports", [port for _, _, port, _ in claims])


def _port_key(inventory: Inventory, shown_name: str) -> str:
    server: ServerBlock | None = next((item for item in inventory.servers if f"'{item.name}'" == shown_name), None)
    return format_path((*server.path, "port")) if server else "head_server.port"


def _fill(fields: dict[Any, Node], key: str, value: Any) -> None:
    """Set a key that is absent."""
    if key not in fields:
        fields[key] = node_of(value, _DEFAULT)


def _put(root: Node, key: str, value: Any) -> None:
    """Set an output key, whatever it was."""
    node = node_of(value, Origin("default", "(output)"))
    previous = root.value.get(key)
    if previous is not None and previous.value is not None:
        node.history = (*previous.history, *node.history)
    root.value[key] = node
