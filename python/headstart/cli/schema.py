"""`headstart schema`: the JSON Schema of a scenario, for completion and checks in editors."""

import typer

from headstart import _core
from headstart.cli import options, output


def schema(json: options.Json = None) -> None:
    """Print the JSON Schema of a scenario. Editors use it to complete and check scenario files.

    Example: headstart schema --json scenario.schema.json
    """
    output.check_targets(json)
    text = _core.schema()
    if json is None:
        typer.echo(text)
    else:
        output.write_json(json, text)
