"""Which of an application's routes are tools, and whether calling them as tools means the same as calling them over HTTP."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI, params
from fastapi.routing import APIRoute
from pydantic import BaseModel

from backend.errors import GymError, name_some

RESERVED = ("verify", "seed_session", "aggregate_metrics", "mcp")
ANY_OBJECT = {"type": "object", "additionalProperties": True}
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_CATCH_ALL = re.compile(r"/\{[^{}/]+\}")


class ExposureError(GymError, ValueError):
    """A server's routes cannot be offered over MCP as they are."""


@dataclass
class MCPTool:
    """One tool: what clients see of it, and the path that a call goes to. Authors may change what was harvested."""

    name: str
    path: str
    input_schema: dict[str, Any]
    description: str
    route: APIRoute = field(repr=False, compare=False)

    def listing(self) -> dict[str, Any]:
        """The entry in the answer to `tools/list`; its schema is an object's, as the protocol demands."""
        return {"name": self.name, "description": self.description, "inputSchema": {"type": "object", **self.input_schema}}


@dataclass(frozen=True)
class CatchAll:
    """The route `POST /{name}` of servers that dispatch by name; false where the server has none."""

    route: APIRoute | None

    def tool(self, name: str, input_schema: dict[str, Any], description: str | None = None) -> MCPTool:
        """The tool `name` of the dispatcher. Raises `ExposureError` (a ValueError) where there is none."""
        if self.route is None:
            raise ExposureError(f"MCP tool `{name}` needs a route `POST /{{name}}`, and this server has none")
        return MCPTool(name, f"/{name}", input_schema, description or "", self.route)

    def __bool__(self) -> bool:
        return self.route is not None


def harvest(app: FastAPI) -> tuple[list[MCPTool], CatchAll]:
    """A tool for every POST route with a fixed path, except the documented ones, and the catch-all route.

    Raises `ExposureError` for two catch-all routes.
    """
    tools = []
    catch_alls = []
    for route in app.routes:
        if not isinstance(route, APIRoute) or "POST" not in (route.methods or ()):
            continue
        name = route.path.removeprefix("/")
        if "{" not in route.path and name not in RESERVED:
            tools.append(MCPTool(name, route.path, _schema_of(route), inspect.getdoc(route.endpoint) or "", route))
        elif _CATCH_ALL.fullmatch(route.path):
            catch_alls.append(route)
    if len(catch_alls) > 1:
        raise ExposureError(
            f"two catch-all routes ({name_some([route.path for route in catch_alls])}): only the first could be reached over MCP"
        )
    return tools, CatchAll(catch_alls[0] if catch_alls else None)


def check_tools(tools: Sequence[MCPTool]) -> dict[str, MCPTool]:
    """The tools by name. Raises `ExposureError` naming each one that cannot be offered, and why."""
    by_name: dict[str, MCPTool] = {}
    problems = []
    for tool in tools:
        if not _NAME.fullmatch(tool.name):
            problems.append(f"`{tool.name}`: a name may have letters, digits, `_` and `-` only")
        elif tool.name in RESERVED:
            problems.append(f"`{tool.name}`: the name is reserved")
        elif tool.name in by_name:
            problems.append(f"`{tool.name}`: there are two tools of this name")
        problems += [f"`{tool.name}`: {problem}" for problem in _problems_of(tool.route)]
        by_name[tool.name] = tool
    if problems:
        raise ExposureError(
            "some routes cannot be offered as MCP tools",
            details=problems,
            hint="leave them out by overriding `mcp_tools`, or change their handlers to one required body and a request",
        )
    return by_name


def _problems_of(route: APIRoute) -> Iterator[str]:
    """Why a call over MCP could mean something else than one over HTTP: only path, body and session can be given."""
    kinds = {parameter.kind for parameter in inspect.signature(route.endpoint).parameters.values()}
    if kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}:
        yield "its handler takes any number of arguments"
        return
    needs = route.dependant
    if needs.query_params:
        yield f"its handler has query parameters ({name_some([item.name for item in needs.query_params])})"
    if needs.header_params or needs.cookie_params:
        yield f"its handler reads headers ({name_some([item.name for item in (*needs.header_params, *needs.cookie_params)])})"
    if needs.dependencies:
        yield "its handler has dependencies (`Depends`)"
    if any(item.field_info.annotation is not str for item in needs.path_params):
        yield "its path parameter is no text (`str`)"
    if len(needs.body_params) > 1:
        yield f"its handler has several bodies ({name_some([item.name for item in needs.body_params])})"
    for item in needs.body_params:
        if not item.field_info.is_required():
            yield f"its body (`{item.name}`) is optional"
        if isinstance(item.field_info, params.Form) or getattr(item.field_info, "embed", None):
            yield f"its body (`{item.name}`) is a form or embedded"


def _schema_of(route: APIRoute) -> dict[str, Any]:
    bodies = route.dependant.body_params
    annotation = bodies[0].field_info.annotation if bodies else None
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return annotation.model_json_schema()
    return dict(ANY_OBJECT)
