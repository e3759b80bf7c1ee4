"""Runs tasks here, on a pool of processes, or on Dask. Results come as they are ready."""

import concurrent.futures
import contextlib
import importlib
import multiprocessing
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection
from typing import Any

from modelserve import errors
from servelab.sweep import task

# Of a Dask cluster, how many tasks are under way at most; more would fill its scheduler.
MOST_AHEAD = 2000

Results = Iterator[tuple[int, task.Done]]
Run = Callable[[Sequence[task.Task]], Results]


def cores() -> int:
    """Those this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def local(tasks: Sequence[task.Task], workers: int) -> Results:
    """Number of the task and what it came to; with one worker in this process, in order.

    The processes end with this one, however it ends. Raises SetUpError if one of them dies.
    """
    if workers <= 1 or len(tasks) <= 1:
        for number, each in enumerate(tasks):
            yield number, each.run()
        return
    context = multiprocessing.get_context("spawn")
    pool = concurrent.futures.ProcessPoolExecutor(
        min(workers, len(tasks)), mp_context=context, initializer=_begin
    )
    try:
        with _deaf():  # the processes are made with the first of these
            waiting = {pool.submit(task.run, each): number for number, each in enumerate(tasks)}
        for future in concurrent.futures.as_completed(waiting):
            yield waiting.pop(future), future.result()
    except BrokenProcessPool as error:
        raise errors.SetUpError(
            "a process of the sweep died, perhaps for want of memory: try fewer --workers"
        ) from error
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            process.terminate()


@contextlib.contextmanager
def _deaf() -> Iterator[None]:
    """Ignore Ctrl-C for a moment; processes that begin now do for good: the parent ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _begin() -> None:
    """In a new process: where the parent ends, however it does, this one does."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "a pool's process has a parent"

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def dask(tasks: Sequence[task.Task], address: str, workers: int) -> Results:
    """The same on a Dask cluster; with address ``""`` on one of this machine, made for it.

    Its workers need this package, and the traces under the same paths. Raises SetUpError.
    """
    client = _client(address, workers)
    try:
        for first in range(0, len(tasks), MOST_AHEAD):
            part = tasks[first : first + MOST_AHEAD]
            futures = client.map(task.run, part, pure=False)
            numbers = {future.key: first + at for at, future in enumerate(futures)}
            yield from _gathered(futures, numbers)
    finally:
        client.close()


def _gathered(futures: Sequence[Any], numbers: dict[str, int]) -> Results:
    distributed = _distributed()
    try:
        for future, done in distributed.as_completed(futures, with_results=True):
            yield numbers[future.key], done
    except (OSError, ModuleNotFoundError, distributed.scheduler.KilledWorker) as error:
        raise errors.SetUpError(
            f"Dask could not run a point: {error}; its workers need this version of modelserve"
        ) from error


def _distributed() -> Any:
    try:
        return importlib.import_module("distributed")
    except ModuleNotFoundError as error:
        raise errors.SetUpError(
            "--dask needs the package distributed: pip install 'modelserve[sweep]'"
        ) from error


def _client(address: str, workers: int) -> Any:
    distributed = _distributed()
    if not address:
        with warnings.catch_warnings():
            # A busy machine is slow at it too, whatever Dask makes of that.
            warnings.filterwarnings("ignore", "Creating scratch directories")
            cluster = distributed.LocalCluster(
                n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0"
            )
        return distributed.Client(cluster)
    try:
        return distributed.Client(address, timeout=10)
    except (OSError, ValueError, TimeoutError) as error:
        raise errors.SetUpError(f"no Dask scheduler answers at {address}: {error}") from error
