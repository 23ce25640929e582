"""Server address and credentials: options, then environment variables, then a profile, then the variables of
OpenStack's clients, then defaults.

The configuration file is `$XDG_CONFIG_HOME/orchestrator/config.toml` (docs/cli.md, "Profiles").
"""

from __future__ import annotations

import os
import stat
import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from orchestrator.cli.exit_codes import Failure
from orchestrator.json_types import JsonObject

DEFAULT_URL: Final = "http://127.0.0.1:8004"
DEFAULT_PROJECT: Final = "demo"
KEYS: Final = ("url", "project", "token", "token_file", "username", "password", "password_file")
SECRETS: Final = frozenset({"token", "password"})
Profile = dict[str, str]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Everything that a client needs to send requests."""

    url: str
    project: str
    token: str | None = None
    login: tuple[str, str] | None = None


def config_path() -> Path:
    """Return the path of the configuration file."""
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "orchestrator" / "config.toml"


def endpoint(url: str | None = None, project: str | None = None, profile: str | None = None) -> Endpoint:
    """Return address and credentials; the arguments are the options of the command line.

    Raises:
        Failure: the profile does not exist, the file is not valid, a secret cannot be read, or Keystone gives
            no token.
    """
    chosen = read_profile(profile or os.environ.get("ORCHESTRATOR_PROFILE") or None)
    if project == "" or url == "":
        raise Failure(f"--{'url' if url == '' else 'project'} must not be empty")
    token, login = _credentials(chosen)
    url = url or os.environ.get("ORCHESTRATOR_URL") or chosen.get("url") or DEFAULT_URL
    project = project or os.environ.get("ORCHESTRATOR_PROJECT") or chosen.get("project")
    if token is None and login is None and os.environ.get("OS_AUTH_URL"):
        token, project_id = _keystone_login()
        project = project or project_id
    return Endpoint(url, project or DEFAULT_PROJECT, token, login)


def read_profile(name: str | None) -> Profile:
    """Return the profile `name`; without a name the default profile, or an empty profile.

    Raises:
        Failure: it does not exist, or the file is not valid.
    """
    path = config_path()
    try:
        text = path.read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except FileNotFoundError:
        if name:
            raise Failure(f"profile {name} does not exist: there is no file {path}") from None
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"cannot read {path}: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise Failure(f"{path} is not valid TOML: {error}") from error
    name = name or document.get("default")
    profiles = _checked(document, path, name)
    if name is None:
        return {}
    if name not in profiles:
        near = get_close_matches(str(name), profiles)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise Failure(
            f"profile {name} does not exist in {path}{hint}",
            details=[f"  profiles: {', '.join(profiles) or 'none'}"],
        )
    return profiles[name]


def _checked(document: JsonObject, path: Path, chosen: object) -> dict[str, Profile]:
    """Return the profiles of a configuration file; faults in profiles that are not chosen are overlooked.

    Raises:
        Failure: an unknown key, a value of the wrong type, or secrets readable by other users.
    """
    profiles = document.get("profiles", {})
    unknown = [key for key in document if key not in {"default", "profiles"}]
    if unknown or not isinstance(profiles, dict):
        raise Failure(
            f"{path}: unknown key {unknown[0] if unknown else 'profiles'}; expected: default, [profiles.NAME]"
        )
    for name, profile in profiles.items():
        if chosen is not None and name != chosen:
            continue
        if not isinstance(profile, dict):
            raise Failure(f"{path}: profile {name} must be a table: [profiles.{name}]")
        for key, value in profile.items():
            if key not in KEYS:
                raise Failure(f"{path}: unknown key {key} in profile {name}; known keys: {', '.join(KEYS)}")
            if not isinstance(value, str):
                raise Failure(f"{path}: {key} in profile {name} must be a string")
    secret = any(SECRETS & profile.keys() for profile in profiles.values() if isinstance(profile, dict))
    if secret and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise Failure(
            f"{path} contains secrets and is readable by other users", details=[f"  run: chmod 600 {path}"]
        )
    return profiles


def _credentials(profile: Profile) -> tuple[str | None, tuple[str, str] | None]:
    """Return token and login; credentials in the environment replace those of the profile as a whole."""
    token = _from_environment("ORCHESTRATOR_TOKEN")
    user = os.environ.get("ORCHESTRATOR_USERNAME")
    if token or user:
        password = _from_environment("ORCHESTRATOR_PASSWORD") or ""
        return token, (user, password) if user else None
    token = profile.get("token") or _from_file(profile.get("token_file"), "token_file")
    user = profile.get("username")
    password = profile.get("password") or _from_file(profile.get("password_file"), "password_file") or ""
    return token, (user, password) if user else None


def _keystone_login() -> tuple[str, str]:
    """Return a token for the credentials of OpenStack's clients, and its project.

    Raises:
        Failure: there is none.
    """
    source = f"no token from Keystone at {os.environ['OS_AUTH_URL']} (OS_AUTH_URL)"
    try:
        from orchestrator.clients.keystone.environment_login import log_in  # noqa: PLC0415 - slow

        return log_in()
    except ModuleNotFoundError:
        hint = "  requires the extra openstack: pip install 'stack-orchestrator[openstack]'"
        raise Failure(source, details=[hint]) from None
    except LookupError as error:
        raise Failure(f"{source}: {error}", details=["  or set ORCHESTRATOR_TOKEN"]) from error


def _from_environment(variable: str) -> str | None:
    """Return a secret from a variable, or from the file in `<variable>_FILE`.

    No option takes secrets: other users can read command lines.
    """
    if secret := os.environ.get(variable):
        return secret.strip()
    return _from_file(os.environ.get(f"{variable}_FILE"), f"{variable}_FILE")


def _from_file(path: str | None, source: str) -> str | None:
    if not path:
        return None
    try:
        return Path(path).expanduser().read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{source} cannot be read: {error}") from error
