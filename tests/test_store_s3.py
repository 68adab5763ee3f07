"""`headstart store --s3`: programs that speak S3 read through it, each as its users do."""

import json
import random
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import botocore.client
import polars
import pyarrow
import pyarrow.dataset
import pyarrow.fs
import pyarrow.parquet
import pytest
import s3fs
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.conftest import COMMAND
from tests.machines import wait_until
from tests.s3_server import s3_server
from tests.test_serve import ended
from tests.test_serve_tls import Authority

ID, SECRET = "reader", "not a secret/+"
OBJECTS = {"a/one": 1_000_003, "a/two": 17, "b c/ü+%": 5, "empty": 0}


@dataclass
class Door:
    """A store with its door."""

    process: subprocess.Popen[str]
    url: str
    bucket: str

    def client(self, key: str = ID, secret: str = SECRET, **more: Any) -> Any:
        config = Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1})
        return boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id=key,
            aws_secret_access_key=secret,
            config=config,
            **more,
        )

    def report(self) -> dict[str, Any]:
        """End the store."""
        report: dict[str, Any] = json.loads(ended(self.process))
        return report


@contextmanager
def door(source: Path | str, *words: str) -> Iterator[Door]:
    line = [str(COMMAND), "store", str(source), "--s3", "127.0.0.1:0", "--cache", "64MiB", "--json", "-", *words]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        said = process.stderr.readline()
        assert said.startswith("ready: http"), said + process.stderr.read()
        scheme, _, address, bucket, _ = said.removeprefix("ready: ").strip().split("/", 4)
        yield Door(process, f"{scheme}//{address}", bucket)
    finally:
        process.kill()
        process.communicate()


def content(key: str) -> bytes:
    return random.Random(key).randbytes(OBJECTS[key])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Objects, and a table of four files with four row groups each."""
    path = tmp_path_factory.mktemp("source") / "objects"
    for key in OBJECTS:
        (path / key).parent.mkdir(parents=True, exist_ok=True)
        (path / key).write_bytes(content(key))
    (path / "table").mkdir()
    for number in range(4):
        numbers = range(number * 40_000, (number + 1) * 40_000)
        columns = {
            "x": list(numbers),
            "y": [each * 7919 % 1009 for each in numbers],
            "z": [str(each) for each in numbers],
        }
        pyarrow.parquet.write_table(pyarrow.table(columns), path / f"table/{number}.parquet", row_group_size=10_000)
    return path


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.touch(mode=0o600)
    path.write_text(f"{ID}\n{SECRET}\n")
    return path


def refused(call: Callable[[], object]) -> tuple[int, str]:
    with pytest.raises(ClientError) as caught:
        call()
    return caught.value.response["ResponseMetadata"]["HTTPStatusCode"], caught.value.response["Error"]["Code"]


def test_boto3_reads_lists_and_is_refused(folder: Path, key: Path) -> None:
    with door(folder, "--s3-key", str(key)) as opened:
        client, bucket = opened.client(), opened.bucket
        assert [each["Name"] for each in client.list_buckets()["Buckets"]] == [bucket]
        client.head_bucket(Bucket=bucket)
        assert client.get_bucket_location(Bucket=bucket)["LocationConstraint"] is None
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, PaginationConfig={"PageSize": 2})
        listed = {each["Key"]: each["Size"] for page in pages for each in page["Contents"]}
        assert OBJECTS.items() <= listed.items()
        top = client.list_objects_v2(Bucket=bucket, Delimiter="/")
        assert [each["Prefix"] for each in top["CommonPrefixes"]] == ["a/", "b c/", "table/"]
        assert [each["Key"] for each in client.list_objects(Bucket=bucket, Prefix="b c/")["Contents"]] == ["b c/ü+%"]
        for name, length in OBJECTS.items():
            assert client.head_object(Bucket=bucket, Key=name)["ContentLength"] == length
            assert client.get_object(Bucket=bucket, Key=name)["Body"].read() == content(name)
        part = client.get_object(Bucket=bucket, Key="a/one", Range="bytes=500-999999")
        assert (part["Body"].read(), part["ContentRange"]) == (
            content("a/one")[500:1_000_000],
            "bytes 500-999999/1000003",
        )
        url = client.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": "a/two"})
        with urllib.request.urlopen(url) as answer:
            assert answer.read() == content("a/two")
        assert refused(lambda: client.get_object(Bucket=bucket, Key="none")) == (404, "NoSuchKey")
        assert refused(lambda: client.get_object(Bucket="other", Key="a/one")) == (404, "NoSuchBucket")
        assert refused(lambda: client.get_object(Bucket=bucket, Key="a/two", Range="bytes=17-")) == (
            416,
            "InvalidRange",
        )
        assert refused(lambda: client.put_object(Bucket=bucket, Key="new", Body=b"x" * 100_000)) == (
            403,
            "AccessDenied",
        )
        assert refused(lambda: client.delete_object(Bucket=bucket, Key="a/one")) == (403, "AccessDenied")
        assert refused(lambda: client.create_multipart_upload(Bucket=bucket, Key="new")) == (403, "AccessDenied")
        other = opened.client(secret="another")
        assert refused(lambda: other.list_objects_v2(Bucket=bucket)) == (403, "SignatureDoesNotMatch")
        assert refused(lambda: opened.client("nobody").list_objects_v2(Bucket=bucket)) == (403, "InvalidAccessKeyId")
        report = opened.report()
    assert SECRET not in json.dumps(report)
    assert (folder / "a/one").read_bytes() == content("a/one")


def test_metrics_and_a_page(folder: Path, tmp_path: Path) -> None:
    text, page = tmp_path / "metrics", tmp_path / "store.html"
    with door(folder, "--metrics", str(text), "--html", str(page)) as opened:
        with urllib.request.urlopen(f"{opened.url}/{opened.bucket}/a/one") as answer:
            assert answer.read() == content("a/one")
        wanted = "headstart_store_read_bytes_total{} 1000003\n"
        wait_until(lambda: text.exists() and wanted in text.read_text())
        opened.report()
    found = text.read_text()
    assert found.endswith("# EOF\n") and "headstart_store_cache_bytes{} 67108864\n" in found
    assert 'headstart_store_wait_seconds{quantile="0.99"} ' in found and "schema" not in found
    assert "were fetched for" in page.read_text()


def test_s3fs_reads(folder: Path, key: Path) -> None:
    with door(folder, "--s3-key", str(key)) as opened:
        files = s3fs.S3FileSystem(key=ID, secret=SECRET, endpoint_url=opened.url, skip_instance_cache=True)
        assert sorted(files.glob(f"{opened.bucket}/a/*")) == [f"{opened.bucket}/a/one", f"{opened.bucket}/a/two"]
        assert files.isdir(f"{opened.bucket}/table") and not files.exists(f"{opened.bucket}/tables")
        with files.open(f"{opened.bucket}/a/one", block_size=100_000) as file:
            file.seek(500_000)
            assert file.read(300_000) == content("a/one")[500_000:800_000]
        assert files.cat(f"{opened.bucket}/b c/ü+%") == content("b c/ü+%")
        with pytest.raises(PermissionError):
            files.pipe(f"{opened.bucket}/new", b"x")


def arrow(opened: Door) -> int:
    address = opened.url.removeprefix("http://")
    files = pyarrow.fs.S3FileSystem(
        access_key=ID, secret_key=SECRET, endpoint_override=address, scheme="http", region="us-east-1"
    )
    table = pyarrow.dataset.dataset(f"{opened.bucket}/table", filesystem=files).to_table(columns=["x", "y"])
    return int(table["x"].to_numpy() @ table["y"].to_numpy())


def frame(opened: Door) -> int:
    options = {"aws_access_key_id": ID, "aws_secret_access_key": SECRET, "endpoint_url": opened.url}
    options |= {"aws_region": "us-east-1", "allow_http": "true"}
    scanned = polars.scan_parquet(f"s3://{opened.bucket}/table/*.parquet", storage_options=options)
    return int(scanned.select((polars.col("x") * polars.col("y")).sum()).collect().item())


def duck(opened: Door) -> int:
    duckdb: Any = pytest.importorskip("duckdb")
    connection = duckdb.connect(config={"autoinstall_known_extensions": False})
    found = Path(duckdb.__file__).parent.parent.glob("duckdb_ext/extensions/*/*/httpfs.duckdb_extension")
    extension = next(found, None)
    if extension is None:
        pytest.skip("DuckDB's httpfs is not installed")
    connection.execute(f"LOAD '{extension}'")
    connection.execute(
        f"CREATE SECRET (TYPE s3, KEY_ID '{ID}', SECRET '{SECRET}', ENDPOINT '{opened.url.removeprefix('http://')}', "
        "USE_SSL false, URL_STYLE path, REGION 'us-east-1')"
    )
    query = f"SELECT sum(x * y) FROM 's3://{opened.bucket}/table/*.parquet'"
    return int(connection.execute(query).fetchall()[0][0])


@pytest.mark.parametrize("scan", [arrow, frame, duck], ids=lambda scan: str(scan.__name__))
def test_a_table_is_fetched_once(folder: Path, key: Path, scan: Callable[[Door], int]) -> None:
    expected = sum(each * (each * 7919 % 1009) for each in range(160_000))
    with door(folder, "--s3-key", str(key)) as opened:
        for _ in range(3):
            assert scan(opened) == expected
        report = opened.report()
    whole = sum(path.stat().st_size for path in (folder / "table").iterdir())
    assert 0 < report["fetched_bytes"] <= whole
    # Clients may keep what they read of a file's end.
    assert report["read_bytes"] > 2 * report["fetched_bytes"]


def test_a_door_without_a_key_is_open_to_signed_requests_too(folder: Path) -> None:
    with door(folder) as opened:
        assert opened.client("any", "thing").get_object(Bucket=opened.bucket, Key="a/two")["Body"].read() == content(
            "a/two"
        )
        unsigned = Config(signature_version=botocore.UNSIGNED, s3={"addressing_style": "path"})
        client = boto3.client("s3", endpoint_url=opened.url, region_name="us-east-1", config=unsigned)
        assert client.get_object(Bucket=opened.bucket, Key="a/two")["Body"].read() == content("a/two")


def test_clients_may_have_to_use_tls(folder: Path, tmp_path: Path) -> None:
    authority = Authority(tmp_path, "authority")
    cert, key = authority.issue("server")
    with door(folder, "--tls-cert", str(cert), "--tls-key", str(key)) as opened:
        assert opened.url.startswith("https://")
        opened.url = opened.url.replace("127.0.0.1", "localhost")
        client = opened.client(verify=str(authority.cert))
        assert client.get_object(Bucket=opened.bucket, Key="a/one")["Body"].read() == content("a/one")


def test_only_the_prefix_of_a_bucket_is_seen(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = {"a/b/one": folder / "a/one", "a/b/deep/two": folder / "a/two", "a/other": folder / "empty"}
    with s3_server(monkeypatch, "data", objects) as requests, door("s3://data/a/b/") as opened:
        client = opened.client()
        assert opened.bucket == "data"

        def names(**asked: str) -> list[str]:
            listed = client.list_objects_v2(Bucket="data", **asked)
            keys = [each["Key"] for each in listed.get("Contents", [])]
            return keys + [each["Prefix"] for each in listed.get("CommonPrefixes", [])]

        assert names() == ["a/b/deep/two", "a/b/one"]
        assert (names(Delimiter="/"), names(Delimiter="/", Prefix="a/")) == (["a/"], ["a/b/"])
        assert names(Delimiter="/", Prefix="a/b/") == ["a/b/one", "a/b/deep/"]
        assert (names(Prefix="a/other"), names(Prefix="a/b/d")) == ([], ["a/b/deep/two"])
        assert client.get_object(Bucket="data", Key="a/b/one")["Body"].read() == content("a/one")
        assert refused(lambda: client.get_object(Bucket="data", Key="a/other")) == (404, "NoSuchKey")
        asked = len(requests)
        assert (
            client.get_object(Bucket="data", Key="a/b/one", Range="bytes=5-900")["Body"].read()
            == content("a/one")[5:901]
        )
        assert len(requests) == asked, "nothing is fetched twice"
