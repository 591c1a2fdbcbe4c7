"""Registration refuses expected failures that give no reason."""

import pytest

from tensorplug.core import plugins
from tensorplug.core.errors import RegistrationError

from .conftest import Plugin, ToyRuntime


@pytest.mark.parametrize("listed", [["forward/exp-*"], {"forward/exp-*": ""}, {3: "why"}], ids=str)
def test_a_reason_is_asked_for(listed):
    class Runtime(ToyRuntime):
        expected_failures = listed

    with pytest.raises(RegistrationError, match="reason"):
        plugins.register(Plugin("reasons", devices=[Runtime()]))
