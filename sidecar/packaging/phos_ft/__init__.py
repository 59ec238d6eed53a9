"""phos-ft as a Python package: the program, its shim for the job, and its CRIU.

The package brings the command ``phos-ft``. A training job needs nothing from here: it is checkpointed as it is. One that likes may give hints,
which do nothing where phos-ft does not look after the process::

    import phos_ft

    for step, batch in enumerate(loader):
        train(batch)
        phos_ft.step(step)              # the place for a checkpoint

    with phos_ft.no_checkpoint():       # not within this
        tell_somebody()

    phos_ft.checkpoint()                # one as soon as can be
    phos_ft.last()                      # the newest one

:mod:`phos_ft.hf` and :mod:`phos_ft.lightning` have callbacks that tell the steps of Hugging Face's Trainer and of Lightning.
"""

import contextlib as _contextlib
import ctypes as _ctypes
import operator as _operator
import time as _time
from pathlib import Path as _Path
from typing import Iterator, NamedTuple, Optional

__all__ = ["Checkpoint", "PROGRAM", "__version__", "checkpoint", "enabled", "last", "no_checkpoint", "step"]

__version__ = "@VERSION@"

#: The program.
PROGRAM = _Path(__file__).parent / "dist" / "bin" / "phos-ft"


class Checkpoint(NamedTuple):
    """A checkpoint of this job."""

    #: Its number, as ``phos-ft list`` shows it: on this machine, or in the store if it is there.
    number: int
    #: When the job was held for it, in seconds since 1970; of one that the job was resumed from, when it was stored.
    time: float
    #: The last step that was told before it, if one was.
    step: Optional[int]
    #: Whether it is in the store, and not on this machine alone.
    in_store: bool


class _Last(_ctypes.Structure):
    """``struct phos_ft_checkpoint`` of phos_ft.h."""

    _fields_ = [
        ("size", _ctypes.c_size_t),
        ("number", _ctypes.c_uint64),
        ("unix_ms", _ctypes.c_uint64),
        ("step", _ctypes.c_int64),
        ("in_store", _ctypes.c_int),
    ]


def _functions():
    """The shim's functions, if it is in this process."""
    try:
        shim = _ctypes.CDLL(None)
        found = shim.phos_ft_step, shim.phos_ft_no_checkpoint, shim.phos_ft_checkpoint, shim.phos_ft_last
    except (AttributeError, OSError):
        return None
    for function, argument in zip(found, (_ctypes.c_uint64, _ctypes.c_int, None, _ctypes.POINTER(_Last))):
        function.restype = _ctypes.c_int
        function.argtypes = [argument] if argument else []
    return found


_found = _functions()
_step, _no_checkpoint, _checkpoint, _last = _found or (None,) * 4


def enabled() -> bool:
    """Whether phos-ft is in this process. It looks after it from when CUDA is initialised; before that, hints are not heard."""
    return _found is not None


def step(number: int) -> None:
    """A step of training has ended, and this was its number. A checkpoint that is due is taken here, before the function returns, if the GPU can be
    idle within a second. Cheap enough for every step: about a microsecond."""
    # Of whatever kind it is, NumPy's and those of tensors too.
    number = _operator.index(number)
    if _step:
        _step(number)


@_contextlib.contextmanager
def no_checkpoint() -> Iterator[None]:
    """No checkpoint is taken within the block: for work that must not be done twice, such as a message to a service outside the job. A checkpoint that
    is due waits for a minute, fails then, and is tried again; so blocks should be short."""
    begun = False
    try:
        if _no_checkpoint:
            # First: the call may wait for a checkpoint, and an interrupt be raised as it returns.
            begun = True
            _no_checkpoint(1)
        yield
    finally:
        if begun:
            _no_checkpoint(0)


def checkpoint(wait: Optional[float] = None) -> bool:
    """Asks for a checkpoint as soon as can be. With ``wait``, waits at most so many seconds for one of the time of this call, or later, to
    be stored. Whether one was asked for, or was stored in time.

    Where a checkpoint that was waited for is resumed, the call returns True there as well.
    """
    if not _checkpoint:
        return False
    called = _time.time()
    if _checkpoint() != 0:
        return False
    if wait is None:
        return True
    until = _time.monotonic() + wait
    while True:
        now = last()
        # One that was held for before has nothing of this call; held for is said in whole milliseconds.
        if now is not None and now.time > called - 0.01:
            return True
        if _time.monotonic() >= until:
            return False
        _time.sleep(0.02)


def last() -> Optional[Checkpoint]:
    """The newest checkpoint of this job: the one that it was resumed from, until there is a newer one. None where there is none, or no phos-ft."""
    if not _last:
        return None
    found = _Last(size=_ctypes.sizeof(_Last))
    if _last(_ctypes.byref(found)) != 1:
        return None
    return Checkpoint(found.number, found.unix_ms / 1e3, None if found.step < 0 else found.step, bool(found.in_store))
