"""``servelab fault``: what it says of bad input; the rest needs a cluster."""

import pytest
from click import testing

from servelab import cli


def fault(*arguments: str) -> testing.Result:
    return testing.CliRunner().invoke(cli.main, ["fault", *arguments])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("inject", "XID", "dgx-0"), "write pod/NAME, node/NAME or pool/NAME"),
        (("inject", "XID", "rack/dgx-0"), "write pod/NAME, node/NAME or pool/NAME"),
        (("inject", "Nope", "pod/a"), "'Nope' is not one of 'ImagePullError'"),
        (("inject", "NodeLost", "pod/a"), "NodeLost befalls nodes: name node/NAME or pool/NAME"),
        (("inject", "XID", "pod/a", "--factor", "3"), "factor acts only in faults of type Slow"),
        (("inject", "XID", "pod/a", "--for", "0"), "'--for': 0.0 should be greater than 0"),
        (
            ("inject", "XID", "pod/a", "--probability", "2"),
            "'--probability': 2.0 should be less than or equal",
        ),
        (("clear", "pod"), "write pod/NAME, node/NAME or pool/NAME"),
    ],
)
def test_what_cannot_be_exits_with_2_and_a_sentence(arguments: tuple[str, ...], told: str) -> None:
    result = fault(*arguments)
    assert result.exit_code == 2
    assert told in " ".join(result.output.split())
    assert "Traceback" not in result.output


def test_help_names_the_commands() -> None:
    assert all(word in fault("--help").output for word in ("inject", "list", "clear"))
