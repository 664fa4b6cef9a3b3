"""Ray datasets, on a local Ray with two processes."""

import pandas as pd
import pytest

from engines.conftest import ALONE, REASON, only_missing, same
from gpattr.exceptions import InvalidInputError

pytestmark = [
    pytest.mark.skipif(ALONE is None, reason=REASON),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # raised inside Ray
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # its processes and files
]


@pytest.fixture(scope="module")
def ray():
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    pytest.importorskip("ray.data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
        ray.data.DataContext.get_current().enable_progress_bars = False
        yield ray
        ray.shutdown()


def test_datasets_are_explained_by_block(ray, explainer, table, expected, with_a_hole):
    blocks = ray.data.from_pandas([table[:30], table[30:100], table[100:]])
    result = explainer.map_table(blocks, keep=["id"])
    same(result.to_pandas(), expected, table)
    holes = ray.data.from_pandas(with_a_hole)
    missing = explainer.map_table(holes, errors="missing", keep=["id"])
    only_missing(pd.DataFrame(missing.take_all()), 77, expected)
    with pytest.raises(Exception, match="X: .*nan in row 77, column 'b'"):
        explainer.map_table(holes, keep=["id"]).to_pandas()
    with pytest.raises(InvalidInputError, match=r"unknown \['id'\]"):
        explainer.map_table(holes)
