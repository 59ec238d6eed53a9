"""Serves S3 with one bucket: what scripts/with-s3.sh starts and the image phos-s3 runs (scripts/s3-image.sh).

    s3-serve.py --host HOST --port PORT --bucket NAME [--state FILE] [--ready FILE]

moto keeps everything in memory. With --state, a SIGTERM (`docker stop`, `docker restart`) writes it to that file, and the next
start has it again, so that tests can restart their store. A SIGKILL loses it. --ready names a file that says that the bucket is
there, which costs a health check next to nothing.
"""

import argparse
import functools
import os
import pickle
import signal
import sys
import threading
import urllib.request

import waitress
from moto.core import serialize
from moto.moto_server.werkzeug_app import create_backend_app
from moto.s3.models import s3_backends
from moto.s3.responses import S3Response

# Docker kills after 10 s where nothing else is said.
PATIENCE = 6.0
ENDS = {signal.SIGTERM, signal.SIGINT}
# Requests at a time, and connections.
THREADS = 16
CONNECTIONS = 2000
# Bytes of a request or an answer, which stay in memory.
LARGEST = 1 << 31


def make_creation_atomic():
    """moto looks whether an object is there and then writes it: of two conditional creations at once, both could win."""
    lock, put_object = threading.Lock(), S3Response.put_object

    def alone(self):
        with lock:
            return put_object(self)

    S3Response.put_object = alone


def make_listings_quick():
    """A quarter of the server's time went into reading the same times, once for each object of each listing."""
    serialize.parse_to_aware_datetime = functools.lru_cache(maxsize=1 << 16)(serialize.parse_to_aware_datetime)


class Gate:
    """Lets requests through until it is closed; then none is under way, and none is answered that is not in the state: it waits for the process to end."""

    def __init__(self, app):
        self.app = app
        self.changed = threading.Condition()
        self.active = 0
        self.closed = False
        self.saved = False

    def __call__(self, environ, start_response):
        with self.changed:
            self.changed.wait_for(lambda: not self.closed)
            self.active += 1
        try:
            body = b"".join(self.app(environ, start_response))
            with self.changed:
                self.changed.wait_for(lambda: not self.saved)
            return [body]
        finally:
            with self.changed:
                self.active -= 1
                self.changed.notify_all()

    def close(self):
        with self.changed:
            self.closed = True
            # One that hangs in the middle is not waited for: its client gets no answer.
            self.changed.wait_for(lambda: self.active == 0, timeout=PATIENCE)
            self.saved = True


def state():
    """All buckets as bytes. Of a request that hangs something may be written meanwhile: then once more."""
    for left in reversed(range(100)):
        try:
            return pickle.dumps(
                {(account, partition): backend.buckets for account, of in s3_backends.items() for partition, backend in of.items()}
            )
        except RuntimeError:
            if not left:
                raise


def save(path):
    with open(path + ".new", "wb") as file:
        file.write(state())
    os.rename(path + ".new", path)


def load(path):
    with open(path, "rb") as file:
        saved = pickle.load(file)
    for (account, partition), buckets in saved.items():
        s3_backends[account][partition].buckets = buckets
        for name in buckets:
            s3_backends.bucket_accounts[name] = (partition, account)


def main():
    parser = argparse.ArgumentParser(description="serves S3 with one bucket")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--bucket", required=True)
    parser.add_argument("--state")
    parser.add_argument("--ready")
    args = parser.parse_args()
    make_creation_atomic()
    make_listings_quick()
    # The application of S3 alone: the one of all services looks for the right one among them for each request, one at a time.
    gate = Gate(create_backend_app("s3"))
    if args.ready and os.path.exists(args.ready):
        os.remove(args.ready)
    known = args.state is not None and os.path.exists(args.state)
    if known:
        load(args.state)
    # moto's own server takes a connection and a thread for each request, which were most of the time that it took.
    server = waitress.create_server(
        gate,
        host=args.host,
        port=args.port,
        threads=THREADS,
        connection_limit=CONNECTIONS,
        asyncore_use_poll=True,
        max_request_body_size=LARGEST,
        inbuf_overflow=LARGEST,
        outbuf_overflow=LARGEST,
        outbuf_high_watermark=LARGEST,
    )
    # For all threads, and waited for below. A handler runs when the main thread wakes up, and after `docker unpause` the kernel
    # gives the signal to whichever thread runs first: the main one slept on until SIGKILL.
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)
    threading.Thread(target=server.run, daemon=True).start()
    if not known:
        urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{args.port}/{args.bucket}", method="PUT"))
    if args.ready:
        open(args.ready, "w", encoding="ascii").close()
    signal.sigwait(ENDS)
    if args.state:
        gate.close()
        save(args.state)
        print("saved", file=sys.stderr, flush=True)
    os._exit(0)


main()
