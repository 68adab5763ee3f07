"""A real server of S3 on loopback, for tests."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

KEYS = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_DEFAULT_REGION": "us-east-1"}


@contextmanager
def s3_server(environment: pytest.MonkeyPatch, bucket: str, objects: Mapping[str, Path]) -> Iterator[list[str]]:
    """Serve `objects` in `bucket`, with its address in the environment; gives the requests received."""
    boto3: Any = pytest.importorskip("boto3")
    moto_server: Any = pytest.importorskip("moto.server")
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        for name, value in {**KEYS, "AWS_ENDPOINT_URL": f"http://{host}:{port}"}.items():
            environment.setenv(name, value)
        client = boto3.client("s3")
        client.create_bucket(Bucket=bucket)
        for key, path in objects.items():
            client.upload_file(str(path), bucket, key)
        requests: list[str] = []
        whole = server._server.app

        def listening(call: dict[str, Any], start: Any) -> Any:
            requests.append(f"{call['REQUEST_METHOD']} {call['PATH_INFO']} {call.get('HTTP_RANGE', '')}".rstrip())
            return whole(call, start)

        server._server.app = listening
        yield requests
    finally:
        server.stop()
