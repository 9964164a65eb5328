"""A server of the Model Context Protocol, over standard input and output, whose tools answer in every way there is."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, EmbeddedResource, ImageContent, TextContent, TextResourceContents, ToolAnnotations
from pydantic import BaseModel


class Weather(BaseModel):
    """What `weather` answers."""

    city: str
    celsius: float


server = MCPServer("weather")


@server.tool(annotations=ToolAnnotations(read_only_hint=True, title="The weather"))
def weather(city: str, days: int = 1) -> Weather:
    """Tell the weather of a city."""
    return Weather(city=city, celsius=20.0 + days)


@server.tool()
def shout(text: str) -> str:
    """Say it louder."""
    return text.upper()


@server.tool(name="pick.one")
def pick() -> CallToolResult:
    """Give parts of several kinds."""
    inner = TextResourceContents(uri="file:///a.txt", text="inside")
    return CallToolResult(
        content=[
            TextContent(type="text", text="[CALL: shout({})]"),
            ImageContent(type="image", data="AAAA", mime_type="image/png"),
            EmbeddedResource(type="resource", resource=inner),
        ]
    )


@server.tool()
def fail() -> str:
    """Fail."""
    raise ToolError("no such place")


if __name__ == "__main__":
    server.run()
