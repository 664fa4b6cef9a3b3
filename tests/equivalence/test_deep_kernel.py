"""A deep kernel, a two-layer network under a squared exponential: explained as Captum explains its
mean, with uncertainty.
"""

import pytest

pytest.importorskip("captum")

import numpy as np
import torch
from captum.attr import IntegratedGradients

from gpattr import Explainer
from gpattr.kernels import Matern52, SquaredExponential, Warped
from gpattr.posteriors import ExactPosterior

RNG = np.random.default_rng(0)
Z = RNG.normal(size=(40, 4))
Y = np.tanh(Z[:, 0] * Z[:, 1]) + 0.5 * Z[:, 2] + 0.1 * RNG.normal(size=40)
X, B = RNG.normal(size=(3, 4)), np.zeros(4)


def network(activation):
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(4, 16), activation, torch.nn.Linear(16, 2)).double()


class Mean(torch.nn.Module):
    """The predictive mean, written in PyTorch from scratch."""

    def __init__(self, net, posterior, profile):
        super().__init__()
        self.net, self.profile = net, profile
        self.Z, self.alpha = torch.tensor(posterior.inputs), torch.tensor(posterior.alpha)

    def forward(self, x):
        square = ((self.net(x)[:, None, :] - self.net(self.Z)) ** 2).sum(-1)
        return self.profile(square) @ self.alpha


@pytest.mark.parametrize(
    ("activation", "kernel", "profile", "steps", "tolerance"),
    [
        (torch.nn.Tanh(), SquaredExponential(), lambda s: torch.exp(-s / 2), 64, 1e-9),
        (
            torch.nn.Softplus(),
            Matern52(),
            lambda s: (1 + (5 * s).sqrt() + 5 / 3 * s) * torch.exp(-(5 * s).sqrt()),
            400,
            1e-6,
        ),
        # The gradient of a ReLU network jumps along the path: Captum's steps cannot see where.
        pytest.param(
            *(torch.nn.ReLU(), SquaredExponential(), lambda s: torch.exp(-s / 2), 1000, 1e-2),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["tanh", "softplus", "relu"],
)
def test_matches_captum(activation, kernel, profile, steps, tolerance):
    net = network(activation)
    posterior = ExactPosterior(Warped(kernel, net), Z, Y, noise=0.05)
    ex = Explainer(posterior, B)(X)
    assert ex.method == "quadrature"
    assert ex.error.max() < 1e-6
    assert np.abs(ex.delta).max() < 1e-9
    captum = IntegratedGradients(Mean(net, posterior, profile))
    expected = captum.attribute(
        torch.tensor(X), torch.tensor(B)[None], n_steps=steps, internal_batch_size=2000
    )
    np.testing.assert_allclose(ex.values, expected.detach().numpy(), atol=tolerance)
    difference = [posterior.predict(np.stack([x, B]), return_cov=True)[1] for x in X]
    gains = [C[0, 0] - 2 * C[0, 1] + C[1, 1] for C in difference]
    np.testing.assert_allclose(ex.cov.sum(axis=(1, 2)), gains, atol=1e-9)
