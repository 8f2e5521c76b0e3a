"""XOR once more, with nothing but NumPy: every derivative written out, no tape, no layers. A page to read.

The network of xor.py: h = tanh(x w1 + b1), y = sigmoid(h w2 + b2), loss = mean of (y - target)^2.
`forward` keeps what `backward` needs; `backward` walks the same lines from the bottom up, the chain rule one line
at a time; `adam` moves the weights. A test holds the losses against those of xor.py.
Run it: python -m gradexamples.xor_by_hand [SEED]
"""

import argparse

import numpy as np

POINTS = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=float)  # x, (4, 2)
TARGETS = np.array([[0], [1], [1], [0]], dtype=float)  # (4, 1)
HIDDEN = 8

Weights = dict[str, np.ndarray]


def initial_weights(seed: int) -> Weights:
    """Uniform in +-1/sqrt(inputs): small enough for tanh to be in its steep part, different for each unit."""
    draw = np.random.default_rng(seed).uniform
    a, b = 1 / np.sqrt(2), 1 / np.sqrt(HIDDEN)
    return {
        "w1": draw(-a, a, (2, HIDDEN)),
        "b1": draw(-a, a, HIDDEN),
        "w2": draw(-b, b, (HIDDEN, 1)),
        "b2": draw(-b, b, 1),
    }


def forward(w: Weights, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The hidden values h (4, HIDDEN) and the prediction y (4, 1)."""
    h = np.tanh(x @ w["w1"] + w["b1"])
    y = 1 / (1 + np.exp(-(h @ w["w2"] + w["b2"])))
    return h, y


def backward(w: Weights, x: np.ndarray, h: np.ndarray, y: np.ndarray, target: np.ndarray) -> Weights:
    """How much the loss grows with each weight. d_z means d(loss)/d(z)."""
    d_y = 2 * (y - target) / len(x)  # loss = mean of (y - target)^2
    d_z2 = d_y * y * (1 - y)  # sigmoid' = sigmoid (1 - sigmoid)
    d_w2 = h.T @ d_z2  # z2 = h w2 + b2: each weight meets its input ...
    d_b2 = d_z2.sum(axis=0)  # ... the bias meets every sample ...
    d_h = d_z2 @ w["w2"].T  # ... and the rest goes on down
    d_z1 = d_h * (1 - h**2)  # tanh' = 1 - tanh^2
    d_w1 = x.T @ d_z1  # z1 = x w1 + b1
    d_b1 = d_z1.sum(axis=0)
    return {"w1": d_w1, "b1": d_b1, "w2": d_w2, "b2": d_b2}


def adam(w: Weights, gradient: Weights, mean: Weights, square: Weights, t: int, lr: float) -> None:
    """Step number t (from 1): along the running mean of the gradient, measured in its running size.

    Both averages start at 0; dividing by 1 - beta^t makes up for that. Changes w, mean and square in place.
    """
    for name, g in gradient.items():
        mean[name] += 0.1 * (g - mean[name])
        square[name] += 0.001 * (g * g - square[name])
        m = mean[name] / (1 - 0.9**t)
        s = square[name] / (1 - 0.999**t)
        w[name] -= lr * m / (np.sqrt(s) + 1e-8)


def train(w: Weights, epochs: int = 1000, lr: float = 0.1) -> list[float]:
    """Train the weights in place on all four points; the loss of each epoch, before its step."""
    mean = {name: np.zeros_like(value) for name, value in w.items()}
    square = {name: np.zeros_like(value) for name, value in w.items()}
    losses = []
    for epoch in range(1, epochs + 1):
        h, y = forward(w, POINTS)
        losses.append(float(((y - TARGETS) ** 2).mean()))
        adam(w, backward(w, POINTS, h, y, TARGETS), mean, square, epoch, lr)
    return losses


def main(seed: int = 0) -> None:
    w = initial_weights(seed)
    losses = train(w)
    for epoch in range(100, len(losses) + 1, 100):
        print(f"Epoch [{epoch}/{len(losses)}], Loss: {losses[epoch - 1]:.6f}")
    _, y = forward(w, POINTS)
    for point, prediction, target in zip(POINTS.tolist(), y[:, 0], TARGETS[:, 0], strict=True):
        print(f"{point} => {prediction:.4f} ({target:.1f})")
    print(f"Final Loss: {((y - TARGETS) ** 2).mean():.6f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m gradexamples.xor_by_hand", description="XOR by hand, in NumPy.")
    parser.add_argument("seed", metavar="SEED", nargs="?", type=int, default=0, help="0 or more; 0 unless given")
    seed = parser.parse_args().seed
    if seed < 0:
        parser.error(f"SEED must be 0 or more, got {seed}")
    main(seed)
