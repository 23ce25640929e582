"""OS::Heat::MultipartMime: several configs in one MIME message for cloud-init
(docs/internals/resource-types.md §A9).
"""

from __future__ import annotations

import email
import uuid
from collections.abc import Iterator, Mapping
from email.message import Message
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from pathlib import PurePosixPath

import orjson

from orchestrator.resources.base import Context, Property, Value
from orchestrator.resources.builtin.software_config import SoftwareConfig
from orchestrator.resources.software_api import ConfigDraft
from orchestrator.schema.constraints import AllowedValues


class MultipartMime(SoftwareConfig):
    """A MIME message of parts, each given inline or as the id of a config."""

    name = "OS::Heat::MultipartMime"
    properties = {
        "group": SoftwareConfig.properties["group"],
        "parts": Property(
            "list",
            "The parts.",
            default=[],
            schema=Property(
                "map",
                schema={
                    "config": Property("string", "The id of a config, or the content.", required=True),
                    "filename": Property("string", "The file name of the part."),
                    "type": Property(
                        "string",
                        "Type of the part: a text, or a multipart message whose parts are merged.",
                        default="text",
                        constraints=(AllowedValues(("text", "multipart")),),
                    ),
                    "subtype": Property("string", "Subtype of the part's content type."),
                },
            ),
        ),
    }

    def draft(self, ctx: Context, props: Mapping[str, Value]) -> ConfigDraft:
        """Return the config: the message as text."""
        parts = [part for item in props["parts"] for part in _parts(ctx, item)]
        # A fixed boundary: equal parts produce an equal message.
        message = MIMEMultipart(boundary=f"==============={uuid.uuid5(uuid.NAMESPACE_OID, ctx.token).hex}==")
        for part in parts:
            message.attach(part)
        return ConfigDraft(name=ctx.physical_name, group=props.get("group"), config=message.as_string())


def _parts(ctx: Context, item: Mapping[str, Value]) -> Iterator[MIMEText]:
    """Yield the message parts of one entry of the property."""
    text = _content(ctx, item["config"])
    if item.get("type") != "multipart":
        yield _part(text, item.get("subtype"), item.get("filename"))
        return
    inner = email.message_from_string(text)
    for part in inner.get_payload() if inner.is_multipart() else ():
        if isinstance(part, Message):
            payload = part.get_payload(decode=True)
            content = (
                payload.decode(part.get_content_charset() or "utf-8", "replace")
                if isinstance(payload, bytes)
                else ""
            )
            yield _part(content, part.get_content_subtype(), part.get_filename())


def _content(ctx: Context, config: str) -> str:
    """Return the config with this id, or the text itself if no such config exists."""
    try:
        config_id = str(uuid.UUID(config))
    except ValueError:
        return config
    stored = ctx.software.config(config_id)
    if stored is None:
        return config
    content = stored.draft.config
    return content if isinstance(content, str) else orjson.dumps(content).decode()


def _part(text: str, subtype: str | None, filename: str | None) -> MIMEText:
    if not subtype and filename:
        subtype = PurePosixPath(filename).stem
    charset = "us-ascii" if text.isascii() else "utf-8"
    part = MIMEText(text, subtype or "plain", charset)
    if filename:
        part.add_header("Content-Disposition", "attachment", filename=filename)
    return part
