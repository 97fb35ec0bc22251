"""One whole stack for every test under tests/stack, ended with the session however it ends."""

import pytest

from resources.devstack.stack import DevStack


@pytest.fixture(scope="session")
def stack(tmp_path_factory):
    with DevStack.start(tmp_path_factory.mktemp("stack")) as running:
        yield running


@pytest.fixture(scope="session")
def endpoints(stack):
    return stack.endpoints
