"""Brings the fixtures to the suite, and to nothing else."""

from gradcore.testing.fixtures import *  # noqa: F403
