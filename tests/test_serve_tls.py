"""`headstart serve --tls-cert`: clients must start TLS, with a certificate of their own if that is required."""

import contextlib
import datetime
import json
import os
import random
import shutil
import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.conftest import Run
from tests.machines import PATIENCE_S
from tests.test_bad_input import one_line
from tests.test_serve import Client, ended, serving

BYTES = 5_000_123


class Authority:
    """An authority, and certificates that it signs, as PEM files in a folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.key = folder, ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.cert = self.write(name, self.signed(self.name, self.key, authority=True), self.key)[0]

    def signed(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, authority: bool) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = x509.CertificateBuilder(self.name, subject, key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(now - datetime.timedelta(days=1))
        builder = builder.not_valid_after(now + datetime.timedelta(days=1))
        builder = builder.add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        names = x509.SubjectAlternativeName([x509.DNSName("localhost")])
        return builder.add_extension(names, critical=False).sign(self.key, hashes.SHA256())

    def write(self, name: str, cert: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> tuple[Path, Path]:
        paths = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        paths[0].write_bytes(cert.public_bytes(serialization.Encoding.PEM))
        form = serialization.PrivateFormat.PKCS8
        paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
        paths[1].chmod(0o600)
        return paths

    def issue(self, name: str) -> tuple[Path, Path]:
        """Return the paths of a new certificate and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        return self.write(name, self.signed(subject, key, authority=False), key)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"), "authority")


class SecureClient(Client):
    """A client that starts TLS before it chooses the default export."""

    def __init__(self, path: Path, context: ssl.SSLContext, injected: bytes = b"") -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(os.fspath(path))
        assert self.take(18)[:16] == b"NBDMAGICIHAVEOPT"
        self.socket.sendall(struct.pack(">I8sII", 3, b"IHAVEOPT", 5, 0) + injected)
        assert self.take(20) == struct.pack(">QIII", 0x3E889045565A9, 5, 1, 0)
        self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        self.socket.sendall(struct.pack(">8sII", b"IHAVEOPT", 1, 0))
        self.size, self.flags = struct.unpack(">QH", self.take(10))


def trusting(authority: Authority, own: tuple[Path, Path] | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=os.fspath(authority.cert))
    if own is not None:
        context.load_cert_chain(*own)
    return context


def words(files: tuple[Path, Path]) -> list[str]:
    return ["--tls-cert", str(files[0]), "--tls-key", str(files[1])]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=lambda each: each.name)
def test_what_clients_write_and_read_is_encrypted(
    authority: Authority, tmp_path: Path, version: ssl.TLSVersion
) -> None:
    path, numbers = tmp_path / "socket", random.Random(1)
    image = tmp_path / "image"
    content = bytearray(numbers.randbytes(BYTES))
    image.write_bytes(content)
    context = trusting(authority)
    context.maximum_version = version
    with serving(path, str(image), "--writable", *words(authority.issue("server")), "--json", "-") as process:
        client = SecureClient(path, context)
        assert client.size == BYTES
        assert client.read(0, BYTES) == content, "a reply longer than what a socket holds"
        for _ in range(200):
            offset = numbers.randrange(BYTES)
            length = numbers.randint(1, min(300_000, BYTES - offset))
            if numbers.random() < 0.5:
                data = numbers.randbytes(length)
                assert client.ask(1, offset, length, data, flags=1) == (0, b"")
                content[offset : offset + length] = data
            else:
                assert client.read(offset, length) == content[offset : offset + length]
        clients = [SecureClient(path, context) for _ in range(8)]
        read: list[bytes] = []
        threads = [threading.Thread(target=lambda each=each: read.append(each.read(7, BYTES - 7))) for each in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert read == [content[7:]] * 8
        report = json.loads(ended(process))
    assert report["uris"] == [f"nbds+unix:///?socket={path}"]
    assert image.read_bytes() == content


def refused(begin: Callable[[], Client]) -> None:
    """Check that the server ends the connection, or reports an error."""
    with pytest.raises((EOFError, ConnectionError, ssl.SSLError)):
        begin()


def test_nothing_goes_on_without_tls(authority: Authority, tmp_path: Path) -> None:
    path, log = tmp_path / "socket", tmp_path / "log"
    with serving(path, "mem:1MiB", *words(authority.issue("server")), "--log", str(log)) as process:
        refused(lambda: Client(path))
        # Data between STARTTLS and TLS could come from an attacker.
        refused(lambda: SecureClient(path, trusting(authority), struct.pack(">8sII", b"IHAVEOPT", 3, 0)))
        other = Authority(tmp_path, "other")
        refused(lambda: SecureClient(path, trusting(other)))
        with socket.socket(socket.AF_UNIX) as raw:
            raw.connect(os.fspath(path))
            raw.sendall(struct.pack(">I8sII", 3, b"IHAVEOPT", 5, 0))
            assert len(raw.recv(18, socket.MSG_WAITALL)) == 18
            assert len(raw.recv(20, socket.MSG_WAITALL)) == 20
            raw.sendall(b"this is no TLS at all" * 100)
            # Unread data turns the server's close into a reset.
            with contextlib.suppress(ConnectionResetError):
                while raw.recv(4096):
                    pass
        assert SecureClient(path, trusting(authority)).read(0, 100) == bytes(100), "others are served"
        ended(process)
    details = [json.loads(line).get("detail", "") for line in log.read_text(encoding="utf-8").splitlines()]
    assert any(detail.startswith("TLS: ") for detail in details), details


def test_clients_need_certificates_where_that_is_asked_for(authority: Authority, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    other = Authority(tmp_path, "other")
    asked = [*words(authority.issue("server")), "--tls-clients", str(authority.cert)]
    with serving(path, "mem:1MiB", *asked) as process:
        assert SecureClient(path, trusting(authority, authority.issue("client"))).read(0, 8) == bytes(8)
        refused(lambda: SecureClient(path, trusting(authority)))
        refused(lambda: SecureClient(path, trusting(authority, other.issue("stranger"))))
        ended(process)


def test_mistakes_are_one_line(run: Run, authority: Authority, tmp_path: Path) -> None:
    cert, key = authority.issue("server")
    empty = tmp_path / "empty"
    empty.write_text("nothing", encoding="utf-8")
    remote = ["--listen", "0.0.0.0:0"]
    for given, said in [
        (["--tls-cert", str(cert)], "tls_key (--tls-key): is missing"),
        (["--tls-key", str(key)], "tls_cert (--tls-cert): is missing"),
        (["--tls-clients", str(cert)], "tls_cert (--tls-cert): is missing"),
        (["--tls-cert", str(empty), "--tls-key", str(key)], "has no certificate in it; allowed: a PEM file"),
        (["--tls-cert", str(cert), "--tls-key", str(empty)], "has no private key in it; allowed: a PEM file"),
        (["--tls-cert", "/no/such", "--tls-key", str(key)], "/no/such: No such file or directory"),
        (["--tls-cert", str(cert), "--tls-key", str(authority.issue("another")[1])], "allowed: the key of the"),
        ([*words((cert, key)), "--tls-clients", str(empty)], "(--tls-clients)"),
        (remote, "an address of this machine, or --allow-remote too"),
        ([*remote, "--allow-remote"], "without encryption; allowed: --tls-cert and --tls-key too, or --insecure"),
    ]:
        one_line(run("serve", "mem:1MiB", *given), said)


def test_a_key_that_others_can_read_is_refused(run: Run, authority: Authority, tmp_path: Path) -> None:
    path, (cert, key) = tmp_path / "socket", authority.issue("server")
    own = folder(tmp_path / "own", authority, authority.issue("client"))

    def check(key: Path, *line: str) -> None:
        for mode in (0o644, 0o604, 0o660, 0o601):
            key.chmod(mode)
            said = f"{key.name}: others can read it (mode {mode:o}); allowed: a key of mode 600, or of mode 640"
            one_line(run("serve", *line, "--socket", tmp_path / "other"), said)

    check(key, "mem:1MiB", *words((cert, key)))
    key.chmod(0o640 if os.geteuid() == 0 else 0o400)
    with serving(path, "mem:1MiB", *words((cert, key)), "--tls-clients", str(authority.cert)) as process:
        check(own / "client-key.pem", f"nbds+unix:///?socket={path}&tls-certificates={own}")
        ended(process)


def test_the_log_names_certificates(authority: Authority, tmp_path: Path) -> None:
    path, log, own = tmp_path / "socket", tmp_path / "log", authority.issue("a client")
    asks = [*words(authority.issue("server")), "--tls-clients", str(authority.cert)]
    with serving(path, "mem:1MiB", *asks, "--log", str(log)) as process:
        assert SecureClient(path, trusting(authority, own)).read(0, 8) == bytes(8)
        ended(process)
    events = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    (encrypted,) = [each["detail"] for each in events if each["event"] == "encrypted"]
    digest = x509.load_pem_x509_certificate(own[0].read_bytes()).fingerprint(hashes.SHA256()).hex(":").upper()
    assert encrypted == f"TLSv1.3, certificate CN=a client, SHA-256 {digest}"


@pytest.mark.skipif(shutil.which("nbdinfo") is None, reason="SKIPPED, other people's clients: there is no nbdinfo")
def test_libnbd_connects(authority: Authority, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    # libnbd looks for these names in a folder.
    shutil.copy(authority.cert, tmp_path / "ca-cert.pem")
    with serving(path, "mem:1MiB", *words(authority.issue("server"))) as process:
        uri = f"nbds+unix://localhost/?socket={path}&tls-certificates={tmp_path}"
        info = subprocess.run(
            ["nbdinfo", "--json", uri], capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert info.returncode == 0, info.stderr
        assert json.loads(info.stdout)["TLS"] is True
        ended(process)


def folder(path: Path, authority: Authority, own: tuple[Path, Path] | None = None) -> Path:
    """A folder of certificates with the names that libnbd expects."""
    path.mkdir()
    shutil.copy(authority.cert, path / "ca-cert.pem")
    if own is not None:
        shutil.copy(own[0], path / "client-cert.pem")
        shutil.copy(own[1], path / "client-key.pem")
    return path


def test_a_server_over_another_and_a_replay_use_tls(authority: Authority, tmp_path: Path, run: Run) -> None:
    far, near, numbers = tmp_path / "far", tmp_path / "near", random.Random(2)
    image = tmp_path / "image"
    content = bytearray(numbers.randbytes(BYTES))
    image.write_bytes(content)
    asks = [*words(authority.issue("server")), "--tls-clients", str(authority.cert)]
    trust = folder(tmp_path / "trust", authority, authority.issue("client"))
    uri = f"nbds+unix:///?socket={far}&tls-certificates={trust}"
    with serving(far, str(image), "--writable", *asks) as process, serving(near, uri, "--writable") as upper:
        client = Client(near)
        assert client.read(0, BYTES) == content
        for offset in range(0, BYTES - 300_000, 700_001):
            data = numbers.randbytes(300_000)
            assert client.ask(1, offset, len(data), data, flags=1) == (0, b"")
            content[offset : offset + len(data)] = data
        readers = [Client(near) for _ in range(4)]
        read: list[bytes] = []
        threads = [threading.Thread(target=lambda each=each: read.append(each.read(9, BYTES - 9))) for each in readers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert read == [content[9:]] * 4
        trace = tmp_path / "trace.csv"
        trace.write_text("time_ns,file,offset,length\n" + "".join(f"{k},0,{k * 8192},8192\n" for k in range(100)))
        played = run("play", trace, "--to", uri, "--depth", "16", "--json", "-")
        assert (played.returncode, played.stderr) == (0, "")
        assert json.loads(played.stdout)["requests"] == 100
        ended(upper)
        ended(process)
    assert image.read_bytes() == content


def test_a_client_that_does_not_trust_or_is_not_trusted(authority: Authority, tmp_path: Path, run: Run) -> None:
    path, plain = tmp_path / "socket", tmp_path / "plain"
    stranger = Authority(tmp_path, "stranger")
    known = folder(tmp_path / "known", authority)
    other = folder(tmp_path / "other", stranger)
    half = folder(tmp_path / "half", authority, authority.issue("half"))
    (half / "client-key.pem").unlink()
    (tmp_path / "empty").mkdir()
    asks = [*words(authority.issue("server")), "--tls-clients", str(authority.cert)]
    with serving(path, "mem:1MiB", *asks) as process, serving(plain, "mem:1MiB") as open_to_all:
        base = f"nbds+unix:///?socket={path}"
        for uri, said in [
            (f"nbd+unix:///?socket={path}", "the server requires TLS; allowed: nbds:// or nbds+unix://"),
            (f"{base}&tls-certificates={other}", "UnknownIssuer"),
            (f"nbds+unix://elsewhere/?socket={path}&tls-certificates={known}", 'not valid for name "elsewhere"'),
            (f"{base}&tls-certificates={known}", "ertificate"),
            (f"{base}&tls-certificates={half}", "client-key.pem: "),
            (f"{base}&tls-certificates={tmp_path / 'empty'}", "ca-cert.pem: "),
            (f"nbds+unix:///?socket={plain}&tls-certificates={known}", "the server has no TLS"),
        ]:
            one_line(run("serve", uri, "--listen", str(tmp_path / "upper")), said)
        ended(open_to_all)
        ended(process)
