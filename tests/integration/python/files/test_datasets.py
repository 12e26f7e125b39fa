"""gd.Dataset and gd.DataLoader: batches are the same bytes whatever they are read from and by whom,
and what is wrong is said before anything is read."""

import asyncio
import os
import pickle
import signal
import sys
import threading
import weakref

import h5py
import numpy as np
import pytest

N = 1000
SHAPE = (N, 3, 5)
X = (np.arange(np.prod(SHAPE), dtype="f4") * 0.37).reshape(SHAPE)
Y = np.arange(N, dtype="i8") * 3


@pytest.fixture
def data(folder, monkeypatch):
    """The same rows in three formats; the working directory."""
    monkeypatch.chdir(folder)
    zarr = pytest.importorskip("zarr")
    np.save("x.npy", X)
    np.save("y.npy", Y)
    with h5py.File("d.h5", "w") as file:
        file.create_dataset("x", data=X, chunks=(64, 3, 2), compression="gzip", shuffle=True)
        file.create_dataset("y", data=Y, chunks=(100,), compression="gzip")
    for name, whole, chunks in (("x", X, (37, 3, 5)), ("y", Y, (250,))):
        zarr.create_array(f"{name}.zarr", shape=whole.shape, dtype=whole.dtype,
                          chunks=chunks)[...] = whole
    return {"npy": {"x": "x.npy", "y": "y.npy"}, "hdf5": {"x": "d.h5:/x", "y": "d.h5:/y"},
            "zarr": {"x": "x.zarr", "y": "y.zarr"}}


def taken(loader):
    """Copies of an epoch's batches, parts by name."""
    return [{name: one.copy() for name, one in batch.items()} for batch in loader]


def joined(batches):
    return {name: np.concatenate([one[name] for one in batches]) for name in batches[0]}


def assert_same(some, others):
    assert len(some) == len(others)
    for one, other in zip(some, others, strict=True):
        assert {k: v.tobytes() for k, v in one.items()} == {k: v.tobytes() for k, v in other.items()}


NOISY = {"x": "(x - m) / s + 0.1*normal(dtype=float32)", "y": "float32(y) + uniform(dtype=float32)"}
ARGS = {"m": np.arange(5, dtype="f4"), "s": np.float32(2.5)}


def test_a_batch_is_a_function_of_data_and_seed_alone(gd, data, folder):
    """Not of format, plan, prefetch, memory or ranks."""
    how = {"batch_size": 96, "shuffle": True, "seed": 7, "transform": NOISY, "args": ARGS}
    loader = gd.DataLoader(gd.Dataset(**data["npy"]), **how)
    first = taken(loader)
    second = taken(loader)  # the next epoch
    assert len(first) == len(loader) == 11 and loader.epoch == 2
    assert not np.array_equal(first[0]["x"], second[0]["x"])
    assert (first[0]["x"].dtype, first[0]["x"].shape) == ("f4", (96, 3, 5))
    assert (first[0]["y"].dtype, first[-1]["y"].shape) == ("f4", (40,))
    for other in ({"prefetch": 5}, {"memory": "64K"}, {"plan": "resident"}, {"plan": "scan"},
                  {"scratch": str(folder), "plan": "copy"}):
        for name in ("hdf5", "zarr") if "plan" in other else data:
            loader = gd.DataLoader(gd.Dataset(**data[name]), **how, **other)
            assert_same(taken(loader), first)
    ranks = [taken(gd.DataLoader(gd.Dataset(**data["hdf5"]), **how, shard=(rank, 3)))
             for rank in range(3)]
    assert_same([joined(parts) for parts in zip(*ranks, strict=True)], first)


def test_each_row_comes_once_in_the_order_of_permutation(gd, data):
    loader = gd.DataLoader(gd.Dataset(**data["npy"]), 64, shuffle=True, seed=11)
    whole = joined(taken(loader))
    order = gd.random.permutation(N, seed=11).compute()
    assert np.array_equal(whole["y"], Y[order]) and np.array_equal(whole["x"], X[order])
    loader.set_epoch(0)
    assert np.array_equal(np.concatenate([batch.rows for batch in loader]), order)
    loader.set_epoch(5)
    assert sorted(joined(taken(loader))["y"]) == list(Y)
    plain = gd.DataLoader(gd.Dataset(**data["npy"]), 300, drop_last=True)
    assert len(plain) == 3 and np.array_equal(joined(taken(plain))["x"], X[:900])


def test_random_numbers_are_those_of_their_row(gd, data):
    """In any batch; and gd.random makes them again."""
    def drawn(size, **how):
        loader = gd.DataLoader(gd.Dataset(x="x.npy"), size, seed=5, **how, transform={
            "x": "0*x + normal(dtype=float32)*uniform(size=(-1, 1, 1), dtype=float32)"})
        loader.set_epoch(2)
        found = np.empty_like(X)
        for batch in loader:
            found[batch.rows] = batch["x"]
        return found

    from gpuarrayd.random._generator import call_seed
    name = 0xCBF29CE484222325
    for letter in b"x":
        name = (name ^ letter) * 0x100000001B3 % 2**64
    seed = call_seed(call_seed(5, 2), name)
    normal = gd.random.normal(size=SHAPE, seed=seed, dtype="f4").compute()
    uniform = gd.random.uniform(size=N, seed=seed, dtype="f4").compute()
    expected = normal * uniform[:, None, None]
    assert drawn(1000).tobytes() == expected.tobytes()
    assert drawn(7, shuffle=True).tobytes() == expected.tobytes()


def test_a_transform_along_rows_is_refused_of_a_single_row_of_a_rank_too(gd, data):
    for size in (2, 8):
        with pytest.raises(gd.BadShape, match="several ranks"):
            gd.DataLoader(gd.Dataset(**data["npy"]), size, shard=(0, 2),
                          transform={"x": "x - mean(x, axis=0)"})
    gd.DataLoader(gd.Dataset(**data["npy"]), 2, shard=(0, 2),
                  transform={"x": "x - mean(x, axis=(1, 2), keepdims=True)"})


def test_a_transform_sees_the_parts_as_they_were_read(gd, data):
    loader = gd.DataLoader(gd.Dataset(**data["npy"]), 200, transform={
        "x": "x * 2", "y": "y + int64(max(x, axis=(1, 2)))"})
    whole = joined(taken(loader))
    assert np.array_equal(whole["x"], X * 2)
    assert np.array_equal(whole["y"], Y + X.max(axis=(1, 2)).astype("i8"))


def test_batches_are_writable_memory_that_goes_back_with_its_last_view(gd, data):
    loader = gd.DataLoader(gd.Dataset(**data["npy"]), 100, memory="16K")
    batches = iter(loader)
    batch = next(batches)
    x = batch["x"]
    assert x.flags.writeable and x.flags.c_contiguous and x.ctypes.data % 64 == 0
    x += 1
    view = x[5, 1]
    del batch, x
    for _ in batches:
        pass
    assert np.array_equal(view, X[5, 1] + 1)  # nobody else had the slot
    held = []
    with pytest.raises(gd.errors.LimitExceeded) as refused:
        for batch in loader:
            held.append(batch)
    assert 1 <= len(held) < 10 and refused.value.message
    n = len(held)
    assert all(np.array_equal(one["y"], Y[i * 100:i * 100 + 100]) for i, one in enumerate(held))
    del held, batch, view
    rest = gd.evaluate("sum(y)", y=loader[n]["y"])
    assert rest == Y[n * 100:n * 100 + 100].sum()


@pytest.mark.parametrize("ranks", [(1, 2, 8), (8, 3, 1)])
def test_a_state_resumes_on_other_ranks_and_formats(gd, data, ranks):
    how = {"batch_size": 90, "shuffle": True, "seed": 3, "transform": NOISY, "args": ARGS}
    whole = gd.DataLoader(gd.Dataset(**data["npy"]), **how)
    whole.set_epoch(4)
    expected, got = taken(whole), []
    state = None
    for world, name in zip(ranks, data, strict=True):
        loaders = [gd.DataLoader(gd.Dataset(**data[name]), **how, shard=(rank, world))
                   for rank in range(world)]
        for loader in loaders:
            if state is None:
                loader.set_epoch(4)
            else:
                loader.load_state_dict(pickle.loads(pickle.dumps(state)))
        iterations = [iter(loader) for loader in loaders]
        for _ in range(4):
            parts = [next(one, None) for one in iterations]
            if parts[0] is not None:
                got.append(joined([dict(one) for one in parts]))
        states = [loader.state_dict() for loader in loaders]
        assert all(one == states[0] for one in states) and len(str(states[0])) < 512
        state = states[0]
    assert_same(got, expected)


def test_any_batch_by_its_number(gd, data):
    loader = gd.DataLoader(gd.Dataset(**data["hdf5"]), 64, shuffle=True, seed=1, transform=NOISY,
                           args=ARGS)
    expected = taken(loader)
    loader.set_epoch(0)
    assert_same([dict(loader[k]) for k in (15, -2, 0)], [expected[k] for k in (15, 14, 0)])
    for wrong in (16, -17):
        with pytest.raises(IndexError):
            loader[wrong]


def test_every_kind_of_source(gd, data, folder):
    for i in range(3):
        np.save(f"part{i}.npy", X[i * 300:(i + 1) * 300 if i < 2 else N])
    np.savez("z.npz", y=Y)
    with h5py.File("d.h5") as file:
        dataset = gd.Dataset(
            a="part*.npy", b=["part0.npy", "part1.npy", "part2.npy"], c=X, d=gd.open("x.npy"),
            e=gd.open("x.npy") * 2, f=file["x"], g=np.load("x.npy", mmap_mode="r"), h="z.npz:y",
            i=gd.from_generator(lambda: iter([X[:400], X[400:]]), "f4", SHAPE),
            j=gd.open("x.npy")[:, 1:], k=list(range(N)), l=np.asfortranarray(X),
            m=gd.from_generator(lambda: iter([X[:400], X[400:]]), "f4", SHAPE)[:, :2] + 1)
        assert len(dataset) == N and dataset.shapes["j"] == (N, 2, 5)
        assert "e: float32 (1000, 3, 5)" in repr(dataset)
        whole = joined(taken(gd.DataLoader(dataset, 128, shuffle=True, seed=2)))
    order = gd.random.permutation(N, seed=2).compute()
    for name in "abcdfgil":
        assert np.array_equal(whole[name], X[order]), name
    assert np.array_equal(whole["m"], X[order][:, :2] + 1)
    assert np.array_equal(whole["e"], X[order] * 2) and np.array_equal(whole["h"], Y[order])
    assert np.array_equal(whole["j"], X[order][:, 1:]) and np.array_equal(whole["k"], order)
    computed = gd.Dataset(e=gd.open("x.npy") * 2)
    loader = gd.DataLoader(computed, 32, memory="128K", scratch=folder)
    assert np.array_equal(joined(taken(loader))["e"], X * 2)
    assert not [name for name in os.listdir(folder) if name.startswith("gpuarrayd-")]
    assert gd.DataLoader(computed, 32).explain()


def test_a_product_of_the_same_shape_has_memory_of_its_own(gd, data):
    m = np.arange(25, dtype="f4").reshape(5, 5) % 7
    for text, want in (("x @ m", X @ m), ("x @ m + x", X @ m + X)):
        whole = joined(taken(gd.DataLoader(gd.Dataset(**data["npy"]), 250, transform={"x": text}, args={"m": m})))
        assert np.allclose(whole["x"], want, rtol=1e-5)


def test_packed_parts_are_what_they_stand_for(gd, folder, monkeypatch):
    monkeypatch.chdir(folder)
    stored = np.arange(N * 4, dtype="i2").reshape(N, 4)
    stored[5, 2] = -99
    with h5py.File("p.h5", "w") as file:
        file.create_dataset("v", data=stored, chunks=(64, 4), compression="gzip")
        file["v"].attrs.update(scale_factor=np.float32(0.5), add_offset=np.float32(10), _FillValue=np.int16(-99))
    meant = np.where(stored == -99, np.nan, stored * np.float32(0.5) + np.float32(10)).astype("f4")
    parts = {"v": gd.open("p.h5:/v", mask_and_scale=True), "y": Y}
    for transform in (None, {"v": "v * 2", "y": "float32(y) + max(v, axis=1)"}, {"y": "y + 1"}):
        for how in ({}, {"shuffle": True, "memory": "8K"}):
            for batch in gd.DataLoader(gd.Dataset(**parts), 64, transform=transform, **how):
                v = meant[batch.rows]
                y = Y[batch.rows] + (0 if not transform else 1 if "v" not in transform else v.max(axis=1))
                assert batch["v"].tobytes() == (v * 2 if transform and "v" in transform else v).tobytes()
                assert np.array_equal(batch["y"], y.astype(batch["y"].dtype), equal_nan=True)


def test_what_is_wrong_is_said_before_anything_is_read(gd, data, folder):
    def refused(kind, says, make):
        with pytest.raises(kind) as error:
            make()
        assert says in str(error.value), str(error.value)

    good = gd.Dataset(**data["npy"])
    np.save("y999.npy", Y[:999])
    np.save("i1.npy", np.ones((3, 3), "i4"))
    np.save("i2.npy", np.ones((3, 3), "f8"))
    refused(gd.errors.BadShape, "y has 999", lambda: gd.Dataset(x="x.npy", y="y999.npy"))
    refused(gd.errors.NotFound, "none*.npy", lambda: gd.Dataset(x="none*.npy"))
    refused(gd.errors.BadDtype, "i2.npy", lambda: gd.Dataset(x="i*.npy"))
    refused(gd.errors.BadDtype, "img has dtype float16", lambda: gd.Dataset(img=X.astype("f2")))
    np.save("f2.npy", X.astype("f2"))
    refused(gd.errors.BadDtype, "astype('f4')", lambda: gd.Dataset(img="f2.npy"))
    refused(gd.errors.UnknownName, "an argument: x, y, k", lambda: gd.DataLoader(
        good, 4, transform={"x": "q - 1"}, args={"k": 1}))
    refused(gd.errors.BadShape, "x has no axis", lambda: gd.Dataset(x=3.0))
    refused(gd.Unsupported, "from_generator", lambda: gd.Dataset(x=lambda: iter([])))
    refused(gd.errors.BadArgument, "at least one", lambda: gd.Dataset())
    refused(gd.errors.NotFound, "empty list", lambda: gd.Dataset(x=[]))
    refused(gd.errors.NotFound, "no folder", lambda: gd.DataLoader(
        gd.Dataset(x="d.h5:/x"), 4, plan="copy", scratch="x.npy"))
    refused(gd.Unsupported, "prefetch=", lambda: gd.DataLoader(good, 4, num_workers=2))
    refused(gd.Unsupported, "transform=", lambda: gd.DataLoader(good, 4, collate_fn=len))
    refused(gd.Unsupported, "shuffle=", lambda: gd.DataLoader(good, 4, sampler=[1]))
    refused(TypeError, "unexpected keyword", lambda: gd.DataLoader(good, 4, colour=2))
    for wrong in ({"batch_size": 0}, {"batch_size": 2.5}, {"seed": -1}, {"shard": (2, 2)},
                  {"shuffle": "some"}, {"memory": "much"}, {"on_error": "pass"}, {"plan": "luck"}):
        refused(gd.errors.BadArgument, [*wrong][0].split("_")[0],
                lambda wrong=wrong: gd.DataLoader(good, **{"batch_size": 4, **wrong}))
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
    np.lib.format.open_memmap("huge.npy", "w+", "i8", (machine // 4,))  # of holes
    for wrong, parts in (("4K", good), (0, good), ("0M", good), (3 * machine, gd.Dataset(x="huge.npy"))):
        with pytest.raises(gd.errors.BadArgument) as error:
            gd.DataLoader(parts, 900, memory=wrong, plan="scan", shuffle=True)
        assert error.value.argument == "memory" and error.value.expected, wrong
    os.unlink("huge.npy")
    for text, kind, says in (("x + q", gd.errors.UnknownName, "column 5"),
                             ("x @ x", gd.errors.BadShape, "column"),
                             ("sum(x)", gd.errors.BadShape, "first axis"),
                             ("normal(", gd.errors.BadExpression, "column")):
        refused(kind, says, lambda text=text: gd.DataLoader(good, 4, transform={"x": text}))
    refused(gd.errors.UnknownName, "'z'", lambda: gd.DataLoader(good, 4, transform={"z": "x"}))
    refused(gd.errors.BadShape, "ranks", lambda: gd.DataLoader(
        good, 4, shard=(0, 2), transform={"x": "x - mean(x, axis=0)"}))
    long = gd.Dataset(x=gd.from_generator(lambda: iter([X]), "f4", SHAPE))
    refused(gd.errors.BadArgument, "scratch=", lambda: gd.DataLoader(long, 4, shuffle=True,
                                                                     memory="64K"))
    loader, other = gd.DataLoader(good, 10), gd.DataLoader(gd.Dataset(x="x.npy"), 10)
    refused(gd.errors.BadArgument, "names, dtypes or shapes of parts differ",
            lambda: loader.load_state_dict(other.state_dict()))
    refused(gd.errors.BadArgument, "state", lambda: loader.load_state_dict({"seed": 1}))


def test_a_chunk_that_is_damaged_fails_its_batch_or_is_left_out(gd, data):
    with h5py.File("d.h5") as file:
        place = file["x"].id.get_chunk_info_by_coord((64, 0, 0))
    with open("d.h5", "r+b") as file:
        file.seek(place.byte_offset + 10)
        file.write(b"\xff" * 40)
    loader = gd.DataLoader(gd.Dataset(**data["hdf5"]), 32)
    batches = iter(loader)
    good = [next(batches).index for _ in range(2)]
    with pytest.raises(gd.Error) as failed:
        next(batches)
    assert good == [0, 1] and "d.h5" in str(failed.value)
    loader = gd.DataLoader(gd.Dataset(**data["hdf5"]), 32, on_error="skip")
    assert [batch.index for batch in loader] == [0, 1, *range(4, 32)] and loader.skipped == 2


def test_threads_share_an_iteration(gd, data):
    loader = gd.DataLoader(gd.Dataset(**data["npy"]), 10, shuffle=True, prefetch=8)
    batches, found, lock = iter(loader), [], threading.Lock()

    def take():
        for batch in batches:
            with lock:
                found.append((batch.index, batch["y"].copy()))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(index for index, _ in found) == list(range(100))
    assert sorted(np.concatenate([y for _, y in found])) == list(Y)
    old = iter(loader)
    assert next(iter(loader)).index == 0
    with pytest.raises(gd.errors.BadArgument, match="another iteration"):
        next(old)


def test_a_loader_that_is_broken_off_goes_with_its_last_name(gd, data):
    """Its memory and thread too, without the collector of cycles."""
    loader = gd.DataLoader(gd.Dataset(**data["npy"]), 100)
    for _ in loader:
        break
    gone = weakref.ref(loader)
    del loader
    assert gone() is None


def test_under_asyncio_the_loop_goes_on(gd, data):
    async def run():
        loader = gd.DataLoader(gd.Dataset(**data["hdf5"]), 50, transform={"x": "x*1"})
        found = [batch["y"].copy() async for batch in loader]
        batches = aiter(loader)
        task = asyncio.ensure_future(anext(batches))
        await asyncio.sleep(0)
        task.cancel()
        rest = [batch.index async for batch in batches]
        return found, rest

    found, rest = asyncio.run(run())
    assert np.array_equal(np.concatenate(found), Y)
    assert rest in (list(range(20)), list(range(1, 20)))


def test_tasks_share_an_iteration(gd, data):
    async def take(batches, found):
        async for batch in batches:
            found.append(batch.index)
            del batch
            await asyncio.sleep(0)

    async def run():
        loader = gd.DataLoader(gd.Dataset(**data["hdf5"]), 10, shuffle=True)
        batches, found = aiter(loader), []
        await asyncio.gather(*(take(batches, found) for _ in range(4)))
        return found

    assert sorted(asyncio.run(run())) == list(range(100))


def test_a_batch_that_a_cancelled_task_waited_for_is_the_next_one(gd, data):
    loader = gd.DataLoader(gd.Dataset(**data["hdf5"]), 50, transform={"x": "x*1"})

    async def give_up(batches):
        task = asyncio.ensure_future(anext(batches))
        await asyncio.sleep(0)
        if task.done():
            return (await task).index + 1
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return 0

    batches = aiter(loader)
    first = asyncio.run(give_up(batches))  # which waits for the thread
    assert loader.state_dict()["position"] == 50 * first
    assert [batch.index for batch in batches] == list(range(first, 20))


def test_a_child_of_fork_makes_its_own(gd, data):
    loader = gd.DataLoader(gd.Dataset(**data["npy"]), 100, shuffle=True, transform=NOISY, args=ARGS)
    batches = iter(loader)
    first = next(batches)
    expected = float(first["x"].sum())
    child = os.fork()
    if child == 0:
        try:
            del first
            again = next(iter(loader))
            os._exit(0 if float(again["x"].sum()) == expected else 1)
        except BaseException as error:
            print(error, file=sys.stderr)
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [batch.index for batch in batches] == list(range(1, 10))
    state = pickle.loads(pickle.dumps(loader))
    assert_same(taken(state), taken(loader))


def test_a_child_of_fork_has_the_seed_of_the_state(gd, data):
    dataset = gd.Dataset(**data["npy"])
    state = gd.DataLoader(dataset, 100, shuffle=True, seed=9).state_dict()
    loader = gd.DataLoader(dataset, 100, shuffle=True, seed=7)
    loader.load_state_dict(state)
    first = next(iter(loader)).rows.tolist()
    loader.set_epoch(0)
    child = os.fork()
    if child == 0:
        os._exit(0 if next(iter(loader)).rows.tolist() == first else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_child_of_fork_does_not_wait_for_a_thread_of_its_parent(gd, data):
    """One that waits for a batch meanwhile."""
    loader = gd.DataLoader(gd.Dataset(**data["npy"]), 100, shuffle=True)
    held = threading.Event(), threading.Event()

    def hold():  # as a thread does that waits for a batch
        with loader._lock:
            held[0].set()
            held[1].wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    held[0].wait()
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        os._exit(0 if len(list(loader)) == 10 else 1)
    held[1].set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_dlpack_shares_the_memory(gd, data):
    loader = gd.DataLoader(gd.Dataset(**data["npy"]), 10)
    x = np.from_dlpack(loader[3]["x"])
    assert np.array_equal(x, X[30:40]) and x.ctypes.data % 64 == 0


def test_tensors_of_pytorch(gd, data):
    torch = pytest.importorskip("torch")
    loader = gd.DataLoader(gd.Dataset(**data["npy"]), 10)
    batch = loader[0]
    made = batch.to_torch()
    made["x"] += 1
    assert made["y"].dtype == torch.int64 and batch["x"][3, 2, 1] == X[3, 2, 1] + 1
    assert made["x"].data_ptr() == batch["x"].ctypes.data
    there = batch.to_torch(device="meta")  # a device without memory, which every PyTorch has
    assert there["x"].device.type == "meta" and there["x"].shape == made["x"].shape and there["y"].dtype == torch.int64


def test_arrays_of_jax(gd, data, monkeypatch):
    jax = pytest.importorskip("jax")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    batch = gd.DataLoader(gd.Dataset(x="x.npy"), 10)[0]
    made = batch.to_jax()["x"]
    assert made.unsafe_buffer_pointer() == batch["x"].ctypes.data
    assert np.array_equal(np.asarray(made), X[:10])
    np.save("i.npy", Y - 2**31)
    batch = gd.DataLoader(gd.Dataset(y="y.npy", i="i.npy"), 10)[0]
    with pytest.raises(gd.errors.BadDtype, match="i: JAX makes int32 of int64"):
        batch["i"][3] -= 2**32
        batch.to_jax()
    batch["i"][3] = 0
    assert np.array_equal(np.asarray(batch.to_jax()["i"]), batch["i"])
    jax.config.update("jax_enable_x64", True)
    assert batch.to_jax()["y"].unsafe_buffer_pointer() == batch["y"].ctypes.data
