"""These tests import PyTorch, which no target installs yet: they are collected when asked for by `pytest -m torch`."""


def pytest_ignore_collect(config):
    return None if config.option.markexpr == "torch" else True
