"""Functions that run as another user, in a process of their own."""

import multiprocessing
import os

import pytest

needs_users = pytest.mark.skipif(os.geteuid() != 0, reason="other users need root")
NOBODY = 65534


def become(uid):
    """This process is another user from now on, in no group but its own."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def as_user(uid, function, *arguments):
    """Runs function(*arguments) in a child with another identity; its result or its exception."""
    ours, theirs = multiprocessing.Pipe()

    def body():
        become(uid)
        try:
            theirs.send((True, function(*arguments)))
        except BaseException as error:  # noqa: B902 - the test reports it
            theirs.send((False, repr(error)))

    process = multiprocessing.get_context("fork").Process(target=body)
    process.start()
    theirs.close()
    ok, value = ours.recv()
    process.join()
    assert ok, value
    return value
