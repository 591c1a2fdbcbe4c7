"""What is no int among the ints of a size, of dimensions, of paddings is refused by every op."""

import pytest

import tensorplug as tp
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.core.errors import KernelContractError
from tensorplug.testing import cases
from tensorplug.testing.records import all_records

tp.nn  # noqa: B018  # its ops have records too

SPACES = {"linalg_": tp.linalg, "fft_": tp.fft, "special_": tp.special}


def is_public(name):
    return (
        hasattr(tp, name)
        or hasattr(tp.nn.functional, name)
        or any(
            name.startswith(prefix) and hasattr(space, name.removeprefix(prefix))
            for prefix, space in SPACES.items()
        )
    )


RECORDS = [record for record in all_records() if is_public(record.op)]
SLICES = 4


def calls(record):
    """Yield calls with one int of one sequence replaced, each place and kind once, and what it is."""
    seen = set()
    for sample in cases.samples_of(record, "cpu", record.dtypes[0]):
        for place, value in [*enumerate(sample.args), *sample.kwargs.items()]:
            ints = isinstance(value, (tuple, list)) and value and all(type(v) is int for v in value)
            for position in {0, len(value) - 1} if ints else ():
                for other in (float(value[position]), value[position] + 0.5, str(value[position])):
                    kind = (place, len(value), position, type(other), isinstance(other, float))
                    if (*kind, other == value[position]) in seen:
                        continue
                    seen.add((*kind, other == value[position]))
                    changed = [*value[:position], other, *value[position + 1 :]]
                    args, kwargs = list(sample.args), dict(sample.kwargs)
                    (args if isinstance(place, int) else kwargs)[place] = changed
                    yield args, kwargs, f"{place}={changed}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(SLICES))
def test_ops(part):
    wrong, count = [], 0
    for record in RECORDS[part::SLICES]:
        op = get_op(record.op)
        for args, kwargs, what in calls(record):
            count += 1
            try:
                op.call(*args, **kwargs)
            except (TypeError, IndexError, ValueError):
                continue
            except KernelContractError:  # of ops that others call, with sizes of what is there
                continue
            except Exception as error:
                wrong.append(f"{op.name} {what}: {type(error).__name__} {error}"[:200])
            else:
                wrong.append(f"{op.name} {what}: accepted")
    assert not wrong, "\n".join(wrong)
    assert count >= 30
