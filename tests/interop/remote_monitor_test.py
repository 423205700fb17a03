"""Python's server gets each epoch that RemoteMonitor sends, by HTTP and by verified HTTPS, also after failures."""

import http.server
import json
import os
import ssl
import subprocess
import threading
from contextlib import contextmanager

import pytest

EPOCHS = 5


class Collector(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.received.append((self.headers["Idempotency-Key"], body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        pass  # a client that does not trust the certificate


@contextmanager
def serving(certificate=None):
    server = Server(("localhost", 0), Collector)
    server.received = []
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def train(run, *arguments, faults=""):
    """Returns what was printed."""
    program = os.path.join(os.environ["HOLDFAST_BUILD"], "bin", "logging_program")
    environment = {**os.environ, "HOLDFAST_FAULTS": faults}
    result = subprocess.run([program, run, *arguments], capture_output=True, text=True, timeout=300, env=environment)
    assert result.returncode == 0, result.stderr
    return result.stdout + result.stderr


def certificate_for(folder, name):
    files = folder / f"{name}.pem", folder / f"{name}.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                    "-addext", f"subjectAltName=DNS:{name}", "-out", files[0], "-keyout", files[1]],
                   check=True, capture_output=True)
    return files


@pytest.mark.parametrize("faults", ["", "rank=0,step=40,fault=kill", "rank=0,step=31,phase=callback,fault=kill"])
def test_each_epoch_arrives_with_its_key(faults, tmp_path):
    with serving() as server:
        train(tmp_path / "run", f"http://localhost:{server.server_port}", faults=faults)
        received = dict(server.received)

    assert sorted(received) == [f"r/0/{epoch}" for epoch in range(EPOCHS)]
    assert [received[f"r/0/{epoch}"]["epoch"] for epoch in range(EPOCHS)] == list(range(EPOCHS))
    assert all("val_loss" in body for body in received.values())


def test_https_is_verified(tmp_path):
    certificate = certificate_for(tmp_path, "localhost")
    with serving(certificate) as server:
        url = f"https://localhost:{server.server_port}"
        train(tmp_path / "known", url, certificate[0])
        assert len(server.received) == EPOCHS
        server.received.clear()

        said = train(tmp_path / "unknown", url)

        assert not server.received
    assert f"RemoteMonitor cannot reach {url}" in said


def test_a_certificate_of_another_name_is_refused(tmp_path):
    certificate = certificate_for(tmp_path, "other.example")
    with serving(certificate) as server:
        said = train(tmp_path / "run", f"https://localhost:{server.server_port}", certificate[0])

        assert not server.received
    assert "RemoteMonitor has dropped" in said
