"""A network of two layers, trained from a compressed file that is larger than the memory it gets.

    python trained_network.py                # of random numbers, in a folder that goes away

Each epoch has the rows in another random order, exactly, and adds noise of its own to each row.
Training is broken off in the middle of an epoch and goes on from a few numbers, with two loaders in
place of one, as two processes would have them: the same samples, so the same weights to the bit.
"""

import json
import pathlib
import tempfile

import h5py
import numpy as np

import gpuarrayd as gd

N_ROWS, N_FEATURES, N_CLASSES, N_HIDDEN, BATCH, MEMORY = 12_000, 256, 10, 32, 100, 3 << 20


def make_measurements(path):
    rng = np.random.default_rng(4)
    labels = rng.integers(0, N_CLASSES, N_ROWS)
    centres = rng.normal(size=(N_CLASSES, N_FEATURES)).astype("f4")
    x = np.round(40 * centres[labels] + rng.normal(0, 60, (N_ROWS, N_FEATURES))).astype("f4")
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=x, chunks=(250, N_FEATURES), compression="gzip",
                            compression_opts=1, shuffle=True)
        file.create_dataset("label", data=labels)


def loader(path, rank=0, world=1):
    """One of `world` ranks'. mean and deviation are found in one pass over the file."""
    x = gd.open(f"{path}:/x")
    mean, deviation = gd.compute(x.mean(), x.std())
    return gd.DataLoader(
        gd.Dataset(x=x, label=f"{path}:/label"), BATCH, shuffle=True, seed=1, drop_last=True,
        shard=(rank, world), memory=MEMORY,
        transform={"x": "(x - mean) / deviation + 0.1*normal(dtype=float32)"},
        args={"mean": float(mean), "deviation": float(deviation)})


class Network:
    def __init__(self):
        rng = np.random.default_rng(0)
        self.weights = [rng.normal(0, 0.1, shape).astype("f4")
                        for shape in ((N_FEATURES, N_HIDDEN), (N_HIDDEN, N_CLASSES))]

    def train(self, x, label, rate=0.1):
        """One step down the gradient of the cross entropy; the loss before it."""
        first, second = self.weights
        hidden = np.maximum(x @ first, 0)
        scores = hidden @ second
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        scores /= scores.sum(axis=1, keepdims=True)
        rows = np.arange(len(x))
        loss = -np.log(scores[rows, label]).mean()
        scores[rows, label] -= 1
        back = (scores @ second.T) * (hidden > 0)
        second -= rate / len(x) * hidden.T @ scores
        first -= rate / len(x) * x.T @ back
        return loss


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "measured.h5"
        make_measurements(path)
        packed = path.stat().st_size >> 20
        print(f"{N_ROWS * N_FEATURES * 4 >> 20} MiB of rows, {packed} MiB packed, "
              f"{MEMORY >> 20} MiB of memory")
        batches, network = loader(path), Network()
        for epoch in range(2):
            losses = []
            for batch in batches:
                losses.append(network.train(batch["x"], batch["label"]))
                if epoch == 1 and batch.index == 69:
                    state = json.dumps(batches.state_dict())
                    kept = [one.copy() for one in network.weights]
            print(f"epoch {epoch}: loss {losses[0]:.2f} to {np.mean(losses[-10:]):.2f}")

        again, ranks = Network(), [loader(path, rank, 2) for rank in range(2)]
        again.weights = kept
        for one in ranks:
            one.load_state_dict(json.loads(state))
        for parts in zip(*ranks, strict=True):
            again.train(*(np.concatenate([part[name] for part in parts])
                          for name in ("x", "label")))
        same = all(map(np.array_equal, network.weights, again.weights))
        print("two ranks go on from batch 70 of epoch 1:",
              "the same weights" if same else "other weights")


if __name__ == "__main__":
    main()
